"""What the benchmark scripts share: arguments, parallel runs, tables, and bars met or missed.

Scripts with seeds take ``--seeds``, ``--part`` and ``--jobs``; figures do not depend on ``--jobs``,
because every run keeps to one thread. To measure another checkout on the same seeds put its sources
first::

    PYTHONPATH=/path/to/checkout/src python benchmarks/regimes.py --save there.json
    python benchmarks/regimes.py --against there.json
"""

import argparse
import importlib
import itertools
import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from joblib import Memory, Parallel, delayed
from sklearn.metrics import log_loss, roc_auc_score
from threadpoolctl import threadpool_limits


def parse(doc, parts, seeds=None, **more):
    """Read the arguments; `more` are options of a script's own by name, `seeds` the default."""
    parser = argparse.ArgumentParser(
        description=doc, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--part", nargs="+", choices=tuple(parts), default=tuple(parts))
    if seeds is not None:
        parser.add_argument("--seeds", type=int, default=seeds, help=f"number of seeds ({seeds})")
        parser.add_argument("--jobs", type=int, default=1, help="runs at the same time")
        parser.add_argument("--cache", type=Path, help="folder that remembers competitors' scores")
        parser.add_argument("--save", type=Path, help="write the figures to this file")
        parser.add_argument("--against", type=Path, help="figures saved by another checkout")
    for name, options in more.items():
        parser.add_argument(f"--{name.replace('_', '-')}", **options)
    given = parser.parse_args()
    import baldur

    print(f"measured: {Path(baldur.__file__).parent}\n", flush=True)
    return given


def alone(script, name, arguments, cache):
    """Call a function of a script with one thread and without warnings."""
    function = getattr(importlib.import_module(script), name)
    if cache is not None:
        function = Memory(cache, verbose=0).cache(function)
    with warnings.catch_warnings(), threadpool_limits(limits=1):
        warnings.simplefilter("ignore")
        return function(*arguments)


def run(function, tasks, jobs, cache=None):
    """Return the results of a function over tuples of arguments, in their order.

    The function goes to other processes by its name; ``cache`` is a folder that remembers results.
    """
    script = Path(sys.argv[0]).stem if function.__module__ == "__main__" else function.__module__
    tasks = list(tasks)
    work = Parallel(n_jobs=jobs, return_as="generator")
    found = []
    for result in work(delayed(alone)(script, function.__name__, t, cache) for t in tasks):
        found.append(result)
        print(f"\r{len(found)} of {len(tasks)} ", end="", file=sys.stderr, flush=True)
    print("\r", end="", file=sys.stderr)
    return found


def run_parts(function, given, parts=None, folds=(), cache=None):
    """Return the results of a function of a part, a seed and a fold: (parts, seeds x folds, ...).

    `folds` are numbers of folds, none where the function has no such argument.
    """
    parts = given.part if parts is None else parts
    numbers = [(fold,) for fold in folds] or [()]
    triples = itertools.product(parts, range(given.seeds), numbers)
    tasks = [(part, seed, *fold) for part, seed, fold in triples]
    found = np.array(run(function, tasks, given.jobs, cache))
    return found.reshape(len(parts), given.seeds * len(numbers), *found.shape[1:])


def fit_default(estimator, data, y, groups=None):
    """Fit with default settings; return the model and the seconds."""
    started = time.perf_counter()
    options = {} if groups is None else {"groups": groups}
    model = estimator().fit(data, y, **options)
    return model, time.perf_counter() - started


def kept_features(model):
    """Return how many features a model keeps."""
    return sum(int(np.sum(mask)) for mask in model.selected_features_.values())


def auc(y, p):
    """Return the AUC; with several classes its mean over classes against the rest."""
    if p.shape[1] == 2:
        return float(roc_auc_score(y, p[:, 1]))
    return float(np.mean([roc_auc_score(y == c, p[:, c]) for c in range(p.shape[1])]))


def loss(y, p):
    """Return the log-loss of probabilities (n, classes) for labels 0, 1, ..."""
    p = np.clip(p, 1e-15, 1.0)
    return float(log_loss(y, p / p.sum(axis=1, keepdims=True), labels=np.arange(p.shape[1])))


def header(*names):
    """Print the head of a table."""
    print("| " + " | ".join(names) + " |\n|" + " --- |" * len(names), flush=True)


def row(*cells):
    """Print a line of a table; numbers with three decimals, whole ones as they are."""
    print("| " + " | ".join(_cell(c) for c in cells) + " |", flush=True)


def _cell(value):
    if isinstance(value, (float, np.floating)):
        return f"{value:.3f}"
    return str(value)


class Bars:
    """The bars of a benchmark: what was measured, against what, met or missed."""

    def __init__(self):
        self.lines = []

    def least(self, what, value, bar):
        """Add a figure that must be at least `bar`."""
        self._add(what, value, f">= {bar:.4g}", value >= bar - 1e-12)

    def most(self, what, value, bar):
        """Add a figure that must be at most `bar`."""
        self._add(what, value, f"<= {bar:.4g}", value <= bar + 1e-12)

    def above(self, what, value, bar):
        """Add a figure that must exceed `bar`."""
        self._add(what, value, f"> {bar:.4g}", value > bar)

    def within(self, what, value, low, high):
        """Add a figure that must lie between two values."""
        self._add(what, value, f"{low:g} to {high:g}", low <= value <= high)

    def missing(self, what, why):
        """Add a figure that cannot be measured on this checkout."""
        self.lines.append((what, "-", why, "NOT MEASURED"))

    def _add(self, what, value, bar, met):
        self.lines.append((what, f"{value:.4f}", bar, "met" if met else "MISSED"))

    def show(self):
        """Print all bars and how many are met."""
        print()
        header("figure", "value", "bar", "")
        for line in self.lines:
            row(*line)
        met = sum(line[-1] == "met" for line in self.lines)
        print(f"\n{met} of {len(self.lines)} bars met", flush=True)


def store(given, figures):
    """Save the figures if asked to; return those of the other checkout, or None."""
    if given.save:
        given.save.write_text(json.dumps(figures))
    return json.loads(given.against.read_text()) if given.against else None
