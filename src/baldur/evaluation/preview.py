"""preview: the jobs of a comparison and an estimate of its time, before it is run."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import clone

from baldur.evaluation.clinical.logistic_fit import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.engine.job import predict_rows
from baldur.evaluation.engine.run import seed_of
from baldur.evaluation.models import fit_with_groups
from baldur.evaluation.splits import Fold
from baldur.evaluation.threads import one_thread
from baldur.views import MultiView
from baldur.views.replace_columns import select_columns

__all__ = ["Preview", "preview"]

_SMALL = (20, 20)
"""Rows and columns of the first trial fit of a model; BALDUR takes about 0.15 s for it."""

_ROWS_PER_CLASS = 8
"""Rows of the first trial fit for each class, enough for inner folds of its own."""

_ENOUGH = 0.12
"""Seconds of a trial fit from which the time of a full fit is extrapolated; quicker models are
tried on more of the data, the quickest on all of it."""

_LONGEST = 0.5
"""Seconds that such a further trial fit is expected to take at most."""


@dataclass
class Preview:
    """What a comparison is going to do.

    Attributes
    ----------
    scheme : str
        How outer folds are made.
    folds : list of Fold
        The outer folds.
    n_inner : int
        Inner folds of the first outer fold.
    jobs, fits : dict of str to int
        Jobs and single fits of every model.
    seconds : dict of str to float
        Estimated time of one fit of every model, where it was tried.
    failures : dict of str to str
        Models whose trial failed, and why.
    """

    scheme: str
    folds: list[Fold]
    n_inner: int
    jobs: dict[str, int]
    fits: dict[str, int]
    seconds: dict[str, float] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)

    def total_seconds(self, n_jobs: int) -> float | None:
        """Estimate the time of the whole, or None where no model was tried with success."""
        if not self.seconds:
            return None
        return sum(self.fits[m] * s for m, s in self.seconds.items()) / max(n_jobs, 1)


def preview(comparison: Comparison, *, trial: bool = False, parts: int = 0) -> Preview:
    """Count the jobs of a comparison, and estimate its time from trial fits.

    Parameters
    ----------
    comparison : Comparison
        As `open_comparison` returns it.
    trial : bool, default=False
        Fit the first setting of every model on a part of the data, to estimate the time.
    parts : int, default=0
        How often the comparison is repeated on parts of the training rows, for a learning curve.

    Returns
    -------
    Preview

    Raises
    ------
    InputError
        Where the folds cannot be made.
    """
    folds = comparison.folds
    inner = [comparison.plan.inner_folds(comparison.y, fold) for fold in folds]
    runs = comparison.permutations + 1 + parts
    jobs, fits = {}, {}
    for model in comparison.models:
        settings = len(model.settings())
        tried = settings if settings > 1 else 0
        jobs[model.name] = runs * len(folds) * (tried + 1)
        fits[model.name] = runs * sum(tried * len(pairs) + 1 for pairs in inner)
        if needs_platt(model.estimator, comparison.n_classes):
            fits[model.name] += (1 + parts) * sum(len(pairs) for pairs in inner)
    found = Preview(comparison.plan.scheme, folds, len(inner[0]), jobs, fits)
    if trial:
        _try_models(comparison, folds[0], inner[0][0], found)
    return found


def _try_models(
    comparison: Comparison, fold: Fold, inner: tuple[np.ndarray, np.ndarray], found: Preview
) -> None:
    """Fit every model on a part of one inner fold, and extrapolate to the size of that fold.

    The time of the processor is measured, as a fit of milliseconds may be interrupted for longer
    than it takes; all trials together tell how busy the machine is.
    """
    started, used = time.perf_counter(), time.process_time()
    for model in comparison.models:
        first, *others = model.settings()
        # Where a grid is searched, nearly all fits are those of the search.
        seed = seed_of(comparison, model, 0, fold)
        estimator = model.make(first, seed, searching=bool(others))
        try:
            with warnings.catch_warnings(), one_thread():
                warnings.simplefilter("ignore")
                found.seconds[model.name] = _time_of_fit(comparison, estimator, *inner)
        except Exception as error:  # a model may fail in any way; that is what is asked here
            found.failures[model.name] = " ".join(str(error).split()) or type(error).__name__
    busy = (time.perf_counter() - started) / max(time.process_time() - used, 1e-3)
    found.seconds = {name: seconds * max(busy, 1.0) for name, seconds in found.seconds.items()}


def _time_of_fit(
    comparison: Comparison, estimator: Any, train: np.ndarray, test: np.ndarray
) -> float:
    """Return the estimated processor time of one fit on the training rows and all columns."""
    full = (len(train), comparison.data.shape[1])
    small = (
        min(full[0], max(_SMALL[0], _ROWS_PER_CLASS * comparison.n_classes)),
        min(full[1], _SMALL[1]),
    )
    # From the smallest to the full size in equal steps of the logarithm.
    sizes = [
        tuple(round(s * (f / s) ** (step / 4)) for s, f in zip(small, full, strict=True))
        for step in range(5)
    ]
    size = sizes[0]
    try:
        seconds = _trial_fit(comparison, estimator, train, test, size)
    except Exception:
        # The part may be the reason, with too few rows of a class; the whole decides.
        return _trial_fit(comparison, estimator, train, test, full)
    while seconds < _ENOUGH and size != full:
        wanted = [s for s in sizes if seconds * _work(*s) / _work(*size) <= _LONGEST]
        if wanted[-1] == size:
            break
        size = wanted[-1]
        seconds = _trial_fit(comparison, estimator, train, test, size)
    return seconds * _work(*full) / _work(*size)


def _work(rows: int, columns: int) -> float:
    """Return how the time of a fit grows with the size of the data, up to a factor.

    The powers were fitted to times of BALDUR on ten data sets of 32 to 919 training rows and 132 to
    12,600 columns: a fit on 20 rows and 20 columns then predicts each of them within a factor 2.
    From five times more rows than columns on, the time is taken as proportional to the rows.
    """
    smaller = min(rows, columns)
    tall = rows / smaller
    wide = columns / smaller
    return float(smaller**1.2 * wide**0.1 * min(tall, 5.0) ** -0.3 * max(tall / 5.0, 1.0))


def _trial_fit(
    comparison: Comparison,
    estimator: Any,
    train: np.ndarray,
    test: np.ndarray,
    size: tuple[int, ...],
) -> float:
    """Fit on a number of rows and columns, predict, and return the processor time."""
    data = _some_columns(comparison.data, size[1])
    rows = _some_rows(train, comparison.y, size[0])
    groups = comparison.plan.inner_groups
    started = time.process_time()
    inside = None if groups is None else groups[rows]
    fitted = fit_with_groups(clone(estimator), data[rows], comparison.y[rows], inside)
    predict_rows(fitted, data[test], comparison.n_classes)
    return time.process_time() - started


def _some_rows(rows: np.ndarray, y: np.ndarray, wanted: int) -> np.ndarray:
    """Return evenly spaced rows of every class, or of the whole range of a numeric outcome."""
    ordered = rows[np.argsort(y[rows], kind="stable")]
    at = np.unique(np.linspace(0, len(rows) - 1, wanted).round().astype(np.intp))
    return np.sort(ordered[at])


def _some_columns(data: MultiView, wanted: int) -> MultiView:
    """Return evenly spaced columns of every view, in proportion to its width."""
    total = data.shape[1]
    if total <= wanted:
        return data
    selected = {}
    for name, width in data.n_features.items():
        count = min(max(round(wanted * width / total), 1), width)
        selected[name] = np.unique(np.linspace(0, width - 1, count).astype(np.intp))
    return select_columns(data, selected)
