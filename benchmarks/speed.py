"""Processor time of the default fit, beside that of a random forest on the same data.

Usage::

    python benchmarks/speed.py [--part small missing digits grid] [--size 100x220] [--repeat 3]

Both times of a ratio are measured in one run, on one thread, with ``time.process_time``, so that
the speed of the machine cancels. ``--repeat`` measures each fit several times and takes the
fastest. The forest is ``RandomForestClassifier(500, n_jobs=1, random_state=0)``.

- small: two Gaussian views, 20 clinical columns and the rest genes, with informative features in
  both; at most 3 times the forest;
- missing: the same with 5 % of the cells missing; at most 1.3 times the own time without;
- digits: mfeat_digits, 1,600 training rows, 649 columns, ten classes; at most 10 times the forest;
- grid: a grid search over `margin`, 4 values x 3 folds and the fit on all rows, on a table of
  147 x 33; at most 60 seconds of processor time, which depends on the machine.
"""

import time
import warnings

import numpy as np
from common import Bars, header, parse, row
from shared_sets import five_folds, load
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV
from threadpoolctl import threadpool_limits

from baldur import BaldurClassifier
from baldur.datasets import make_multiview

PARTS = ("small", "missing", "digits", "grid")
N_CLINIC = 20
SIZES = ((100, 220), (200, 2_020), (200, 20_020), (1_000, 220), (1_000, 2_020))
FOREST_BAR, MISSING_BAR, DIGITS_BAR, GRID_BAR = 3.0, 1.3, 10.0, 60.0
MARGINS = (0.05, 0.1, 0.2, 0.4)


def best_seconds(make, X, y, repeat):
    """Return the least processor time of several fits of a new estimator."""
    seconds = []
    for _ in range(repeat):
        model = make()
        started = time.process_time()
        model.fit(X, y)
        seconds.append(time.process_time() - started)
    return min(seconds)


def forest():
    """Return the forest that the default fit is compared with."""
    return RandomForestClassifier(500, n_jobs=1, random_state=0)


def concatenate(data):
    """Return all views as one matrix."""
    return np.concatenate([data.view(name).read() for name in data.view_names], axis=1)


def simulate(n, width, missing=0.0):
    """Return a simulated set with three informative clinical columns and five genes."""
    return make_multiview(
        n,
        {"clinic": N_CLINIC, "genes": width - N_CLINIC},
        informative={"clinic": 3, "genes": 5},
        missing_cells=missing,
        random_state=0,
    )


def label(size):
    """Return a size as it is given on the command line."""
    return f"{size[0]}x{size[1]}"


def simulated_sets(given, bars):
    """Measure the parts `small` and `missing`, size by size."""
    header("size", "BALDUR, s", "forest, s", "ratio", "5 % missing, s", "ratio")
    for size in [size for size in SIZES if label(size) in given.size]:
        sim = simulate(*size)
        own = best_seconds(BaldurClassifier, sim.data, sim.target, given.repeat)
        cells = ["", "", "", ""]
        if "small" in given.part:
            other = best_seconds(forest, concatenate(sim.data), sim.target, given.repeat)
            cells[:2] = other, own / other
            bars.most(f"{label(size)}: times a forest", own / other, FOREST_BAR)
        if "missing" in given.part:
            gaps = simulate(*size, missing=0.05)
            slower = best_seconds(BaldurClassifier, gaps.data, gaps.target, given.repeat)
            cells[2:] = slower, slower / own
            bars.most(f"{label(size)}: 5 % missing, times without", slower / own, MISSING_BAR)
        row(label(size), own, *cells)


def digits(given, bars):
    """Measure ten classes on real data."""
    cohort = load("mfeat_digits")
    train, _ = five_folds(cohort.y, None, 0)[0]
    data, y = cohort.data[train], cohort.y[train]
    own = best_seconds(BaldurClassifier, data, y, given.repeat)
    other = best_seconds(forest, concatenate(data), y, given.repeat)
    print(f"\nmfeat_digits: BALDUR {own:.1f} s, forest {other:.1f} s", flush=True)
    bars.most("mfeat_digits: times a forest", own / other, DIGITS_BAR)


def grid(given, bars):
    """Measure a grid search of 13 fits."""
    sim = make_multiview(147, {"clinic": 33}, informative={"clinic": 5}, random_state=0)
    X, y = concatenate(sim.data), sim.target
    views = {"questions": range(13), "tests": range(13, 33)}

    def search():
        model = BaldurClassifier(views={name: list(columns) for name, columns in views.items()})
        return GridSearchCV(model, {"margin": MARGINS}, cv=3, scoring="neg_log_loss")

    seconds = best_seconds(search, X, y, given.repeat)
    print(f"\ngrid search, 13 fits of 147 x 33: {seconds:.1f} s", flush=True)
    bars.most("grid search of 13 fits, processor seconds", seconds, GRID_BAR)


def main():
    """Read the arguments; print the times and the bars."""
    sizes = [label(size) for size in SIZES]
    given = parse(
        __doc__,
        PARTS,
        size={"nargs": "+", "choices": sizes, "default": sizes},
        repeat={"type": int, "default": 1, "help": "fits of which the fastest counts"},
    )
    bars = Bars()
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        # Modules that are imported by the first fit must not count.
        warm_up = simulate(30, 25)
        BaldurClassifier().fit(warm_up.data, warm_up.target)
        if {"small", "missing"} & set(given.part):
            simulated_sets(given, bars)
        if "digits" in given.part:
            digits(given, bars)
        if "grid" in given.part:
            grid(given, bars)
    bars.show()


if __name__ == "__main__":
    main()
