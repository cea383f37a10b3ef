"""Estimated and true time of a study: the estimate before the run, within a factor of two or not.

Usage::

    python benchmarks/estimates.py [--part ad_csf golub rows] [--models BALDUR RF]

Both times are processor time of one process, so that other work on the machine does not count:

- ad_csf: 333 rows, four views with 132 columns;
- golub: 72 rows, 7,129 columns;
- rows: 1,149 rows, two views with 209 columns, simulated.

Every study has five outer and five inner folds and the default settings of its models. The estimate
is that of ``baldur evaluate --check``; it must be within a factor of two of the whole.
"""

import time
import warnings

from common import Bars, header, parse, row
from shared_sets import load

from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.design import open_comparison
from baldur.evaluation.preview import preview

PARTS = ("ad_csf", "golub", "rows")
MODELS = ("BALDUR", "Ridge logistic", "LSVM-l1", "RF")
FACTOR = 2.0


def study(part):
    """Return the data and the outcome of one study."""
    if part == "rows":
        sim = make_multiview(1_149, {"lab": 150, "image": 59}, informative=4, random_state=0)
        return sim.data, sim.target
    found = load({"golub": "golub_leukemia"}.get(part, part))
    return found.data, found.y


def times(model, X, y):
    """Return the estimated and the true seconds of one model."""
    comparison = open_comparison([model], X, y, outer=5, inner=5)
    estimated = preview(comparison, trial=True).total_seconds(1)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        nested_cv([model], X, y, outer=5, inner=5, n_jobs=1)
    return estimated, time.process_time() - started


def main():
    """Print a row for every study and model, and a bar for every study."""
    given = parse(__doc__, PARTS, models={"nargs": "+", "default": MODELS})
    # The estimate is made with the clock on the wall; here other processes must not count.
    time.perf_counter = time.process_time
    bars = Bars()
    header("study", "model", "estimated", "true", "ratio")
    for part in given.part:
        X, y = study(part)
        total = [0.0, 0.0]
        for model in given.models:
            found = times(model, X, y)
            total = [a + b for a, b in zip(total, found, strict=True)]
            row(part, model, f"{found[0]:.1f}", f"{found[1]:.1f}", f"{found[0] / found[1]:.2f}")
        ratio = total[0] / total[1]
        row(part, "all", f"{total[0]:.1f}", f"{total[1]:.1f}", f"{ratio:.2f}")
        bars.within(f"{part}: estimated over true", ratio, 1 / FACTOR, FACTOR)
    bars.show()


if __name__ == "__main__":
    main()
