"""preview: the jobs of a comparison and an estimate of its time, before it is run."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from baldur.core.limits import one_thread
from baldur.estimators.classifier import BaldurClassifier
from baldur.estimators.regressor import BaldurRegressor
from baldur.evaluation.clinical.calibration import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.fitted_model import predict_rows
from baldur.evaluation.jobs import ALL, Split, outcomes_of, seed_of
from baldur.evaluation.models import fit_with_groups
from baldur.evaluation.splits import Fold, label_strata
from baldur.inference.inner_folds import n_repeats
from baldur.views import MultiView
from baldur.views.container import select_columns

# Columns of a first trial, and of a second where all of them may take long.
_TRIAL_COLUMNS = (300, 900)
# All columns are tried if that takes at most so many seconds, should time grow with the width.
_LONG_TRIAL = 10.0
# A trial below so many seconds is repeated: imports and first calls are a large part of it.
_SHORT_TRIAL = 0.3
# Time grows with the rows, but most fits have a part that does not: between 0.2 and 1 was measured.
_ROWS_EXPONENT = 0.7
# Of one repeat of the inner folds of the default fit; measured on 53 to 919 rows: 1.06 and 1.10.
_OUR_ROWS_EXPONENT = 1.05
# Rows of the smallest class in a trial on a part of the rows; with fewer all rows are used.
_LEAST_ROWS = 12


@dataclass
class Preview:
    """The jobs of a comparison and its estimated time."""

    scheme: str  # How outer folds are made
    folds: list[Fold]
    n_inner: int  # Inner folds of the first outer fold
    jobs: dict[str, int]  # Jobs of every model
    fits: dict[str, int]  # Single fits of every model
    seconds: dict[str, float] = field(default_factory=dict)  # Of one fit, where it was tried
    failures: dict[str, str] = field(default_factory=dict)  # Models whose trial failed, and why

    def total_seconds(self, n_jobs: int) -> float | None:
        """Estimate the time of the whole, or None where no model was tried with success."""
        if not self.seconds:
            return None
        return sum(self.fits[m] * s for m, s in self.seconds.items()) / max(n_jobs, 1)


def preview(comparison: Comparison, *, trial: bool = False, parts: int = 0) -> Preview:
    """Count the jobs of a comparison, and estimate its time from trial fits.

    `parts` is how often it is repeated on parts of the training rows, for a learning curve. A trial
    fits the first and the last setting of every model a few times, on some rows and columns.
    """
    folds = comparison.folds
    inner = [comparison.plan.inner_folds(comparison.y, fold) for fold in folds]
    runs = comparison.permutations + 1 + parts
    jobs, fits = {}, {}
    for model in comparison.models:
        settings = len(model.settings())
        tried = settings if settings > 1 else 0
        times = len(outcomes_of(comparison, model))
        jobs[model.name] = times * runs * len(folds) * (tried + 1)
        fits[model.name] = times * runs * sum(tried * len(pairs) + 1 for pairs in inner)
        if needs_platt(model.estimator, comparison.n_classes):
            fits[model.name] += times * (1 + parts) * sum(len(pairs) for pairs in inner)
    plan = Preview(comparison.plan.scheme, folds, len(inner[0]), jobs, fits)
    if trial:
        _try_models(comparison, folds[0], inner[0][0], plan)
    return plan


def _try_models(comparison: Comparison, fold: Fold, inner: Split, plan: Preview) -> None:
    """Enter the time of one fit of every model into the preview, or why its trial failed."""
    for model in comparison.models:
        # Where a grid is searched, nearly all fits are those of the search.
        settings = model.settings()
        searching = len(settings) > 1
        rows = len(inner[0]) if searching else len(fold.train)
        seed = seed_of(comparison, model, 0, fold)
        try:
            part = replace(comparison, data=comparison.data_of(model))
            if outcomes_of(comparison, model) != [ALL]:
                part = part.one_outcome(0)
            # Grids are written from one extreme to the other, often in powers, and strong
            # penalties are fast: the time of a middle one is about their geometric mean.
            ends = [settings[0], settings[-1]] if searching else settings
            estimators = [model.make(setting, seed, searching=searching) for setting in ends]
            seconds = [_estimate(part, estimator, inner, rows) for estimator in estimators]
            plan.seconds[model.name] = float(np.exp(np.mean(np.log(seconds))))
        except Exception as error:  # a model may fail in any way; that is what is asked here
            plan.failures[model.name] = " ".join(str(error).split()) or type(error).__name__


def _estimate(comparison: Comparison, estimator: Any, inner: Split, rows: int) -> float:
    """Estimate the time of one fit on so many rows and all columns, from cheaper fits."""
    train, test = inner
    # Ours takes the longest, and its time is the one that a quarter of the rows predicts well.
    fewer = _fewer_rows(comparison, train, (4, 2) if _is_ours(estimator) else (2,))
    outputs = comparison.n_classes if comparison.n_classes > 2 else 1
    cost = partial(_relative_cost, estimator, outputs=outputs)  # Of a number of rows
    if cost(len(fewer)) < cost(len(train)):
        train = fewer
    first, second = _TRIAL_COLUMNS
    part, width = _some_columns(comparison.data, first), comparison.data.shape[1]
    try:
        seconds = [_time(comparison, estimator, part, train, test)]
    except Exception:
        if len(train) == len(inner[0]):
            raise
        # The model may need more rows than the trial has.
        train = inner[0]
        seconds = [_time(comparison, estimator, part, train, test)]
    widths = [part.shape[1]]
    if widths[0] < width:
        is_long = seconds[0] * width / widths[0] > _LONG_TRIAL
        part = _some_columns(comparison.data, second) if is_long else comparison.data
        widths.append(part.shape[1])
        seconds.append(_time(comparison, estimator, part, train, test))
    return _at_width(widths, seconds, width) * cost(rows) / cost(len(train))


def _relative_cost(estimator: Any, rows: int, outputs: int = 1) -> float:
    """Return how the time of a fit grows with the rows, up to a factor."""
    if not _is_ours(estimator):
        return float(rows**_ROWS_EXPONENT)
    # The default fit repeats its inner folds less often the more rows there are.
    return float(rows**_OUR_ROWS_EXPONENT * n_repeats(rows, outputs))


def _is_ours(estimator: Any) -> bool:
    return isinstance(estimator, (BaldurClassifier, BaldurRegressor))


def _time(
    comparison: Comparison, estimator: Any, data: MultiView, train: np.ndarray, test: np.ndarray
) -> float:
    """Return the time of one fit; a short one is timed twice, since first calls take longer."""
    groups = comparison.plan.inner_groups
    seconds = np.inf
    for _ in range(2):
        started = time.perf_counter()
        with warnings.catch_warnings(), one_thread():
            warnings.simplefilter("ignore")
            of_train = None if groups is None else groups[train]
            fitted = fit_with_groups(clone(estimator), data[train], comparison.y[train], of_train)
            predict_rows(fitted, data[test], comparison.n_classes)
        seconds = min(seconds, time.perf_counter() - started)
        if seconds >= _SHORT_TRIAL:
            break
    return seconds


def _at_width(widths: list[int], seconds: list[float], width: int) -> float:
    """Extrapolate the time of a fit to all columns.

    Some models have a large constant part and then grow linearly; others, such as forests, grow
    like a root of the width. The result is the geometric mean of a line and of a power law through
    the two trials.
    """
    last = seconds[-1]
    if widths[-1] == width:
        return last
    slope = max((last - seconds[-2]) / (widths[-1] - widths[-2]), 0.0)
    line = last + slope * (width - widths[-1])
    growth = np.log(max(last / seconds[-2], 1.0)) / np.log(widths[-1] / widths[-2])
    power = last * (width / widths[-1]) ** min(growth, 1.0)
    return float(np.sqrt(line * power))


def _fewer_rows(comparison: Comparison, train: np.ndarray, steps: tuple[int, ...]) -> np.ndarray:
    """Return every n-th training row of each class, or all of them if too few would be left.

    Each of the `steps` is such an n; the first that leaves enough rows is taken.
    """
    y = comparison.y if comparison.y.ndim == 1 else label_strata(comparison.y, _LEAST_ROWS)
    order = np.argsort(y[train], kind="stable")
    for step in steps:
        kept = np.sort(train[order[::step]])
        if comparison.outcomes:
            count = comparison.y[kept].sum(axis=0)
            smallest = np.minimum(count, len(kept) - count).min()
        elif comparison.n_classes:
            smallest = np.bincount(y[kept], minlength=comparison.n_classes).min()
        else:
            smallest = len(kept)
        if smallest >= _LEAST_ROWS:
            return kept
    return train


def _some_columns(mv: MultiView, most: int) -> MultiView:
    """Return evenly spaced columns of every view, about `most` in all."""
    total = mv.shape[1]
    if total <= most:
        return mv
    columns = {}
    for name, width in mv.n_features.items():
        # Narrow views stay whole, so that none of them vanishes beside a wide one.
        wanted = max(round(most * width / total), min(width, 20))
        columns[name] = np.unique(np.linspace(0, width - 1, min(wanted, width)).astype(np.intp))
    return select_columns(mv, columns)
