"""ROC and precision-recall curves of held-out predictions, with pointwise bands.

A curve is read at fixed false-positive rates (or sensitivities), on the sample and on every
resample, so that its band is that of every other figure here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    Statistic,
    resample,
)
from baldur.evaluation.metrics import Predicted, weighted_auc

GRID = np.round(np.linspace(0.0, 1.0, 101), 2)
"""Where curves are read: finer than any line is thick."""


# -- on arrays -------------------------------------------------------------------------------


def _cumulative_counts(
    values: np.ndarray, positive: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return cases and controls at or above each distinct value, from the highest, after zeros.

    Shapes: values, positive (n,), weights (k, n); returns cases, controls (k, thresholds + 1).
    """
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    last_of_ties = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    none = np.zeros((len(weights), 1))
    weights = weights[:, order]
    cases, controls = (
        np.concatenate([none, np.cumsum(counted, axis=1)[:, last_of_ties]], axis=1)
        for counted in (weights * positive[order], weights * ~positive[order])
    )
    return cases, controls


def sensitivity_at(
    rates: np.ndarray, values: np.ndarray, positive: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the sensitivity at some false-positive rates: the height of the ROC curve.

    Shapes: rates (g,), values (n,), positive (n,), weights (k, n); returns (k, g).
    """
    cases, controls = _cumulative_counts(values, positive, weights)
    sensitivity = np.full((len(weights), len(rates)), np.nan)
    for k in np.flatnonzero((cases[:, -1] > 0) & (controls[:, -1] > 0)):
        # False-positive rates and sensitivities at the thresholds.
        x, y = controls[k] / controls[k, -1], cases[k] / cases[k, -1]
        left = np.searchsorted(x, rates, side="right") - 1
        right = np.minimum(left + 1, len(x) - 1)
        step = x[right] - x[left]
        fraction = np.divide(rates - x[left], step, out=np.zeros(len(rates)), where=step > 0)
        sensitivity[k] = y[left] + fraction * (y[right] - y[left])
    return sensitivity


def precision_at(
    sensitivities: np.ndarray, values: np.ndarray, positive: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the precision of the highest threshold that reaches each sensitivity.

    Shapes: sensitivities (g,), values, positive (n,), weights (k, n); returns (k, g).
    """
    cases, controls = _cumulative_counts(values, positive, weights)
    precision = np.full((len(weights), len(sensitivities)), np.nan)
    for k in np.flatnonzero(cases[:, -1] > 0):
        reached = cases[k] / cases[k, -1]
        # Nobody called positive has no precision; rounding must not ask for one case more.
        threshold = np.searchsorted(reached[1:], sensitivities - 1e-12, side="left") + 1
        called = cases[k] + controls[k]
        # A resample may lack everybody above a threshold.
        threshold = np.maximum(threshold, int(np.argmax(called > 0)))
        precision[k] = cases[k, threshold] / called[threshold]
    return precision


def average_precision(values: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the mean precision over thresholds, weighted by the cases each one adds.

    Shapes: values, positive (n,), weights (k, n); returns (k,).
    """
    cases, controls = _cumulative_counts(values, positive, weights)
    called = cases[:, 1:] + controls[:, 1:]
    precision = np.divide(cases[:, 1:], called, out=np.zeros_like(called), where=called > 0)
    total = cases[:, -1]
    summed = (np.diff(cases, axis=1) * precision).sum(axis=1)
    return np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0)


# -- on a predictions table ------------------------------------------------------------------


def roc_curves(
    predictions: pd.DataFrame | Resampled, **bootstrap: Unpack[BootstrapOptions]
) -> pd.DataFrame:
    """Return the sensitivity of every model at each false-positive rate, with its pointwise band.

    There is one curve for the positive class, or for each of several classes against the rest.
    """
    heights = {"sensitivity": partial(sensitivity_at, GRID)}
    statistics = partial(_rank_statistics, heights, false_positive_rate=GRID)
    columns = ["model", "class", "false_positive_rate", "estimate", "low", "high"]
    table = resample(predictions, **bootstrap).table(statistics, columns)
    return table.rename(columns={"estimate": "sensitivity"})


def precision_recall_curves(
    predictions: pd.DataFrame | Resampled, **bootstrap: Unpack[BootstrapOptions]
) -> pd.DataFrame:
    """Return the precision of every model at each sensitivity, with its pointwise band.

    The prevalence of the class is the precision of chance.
    """
    heights = {"precision": partial(precision_at, GRID)}
    statistics = partial(_rank_statistics, heights, sensitivity=GRID)
    columns = ["model", "class", "sensitivity", "estimate", "low", "high", "prevalence"]
    table = resample(predictions, **bootstrap).table(statistics, columns)
    return table.rename(columns={"estimate": "precision"})


def curve_areas(
    predictions: pd.DataFrame | Resampled,
    *,
    measures: Sequence[str] = ("auc", "average_precision"),
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Return the area under both curves of every model and class, with intervals."""
    areas = {"auc": weighted_auc, "average_precision": average_precision}
    statistics = partial(_rank_statistics, {measure: areas[measure] for measure in measures})
    columns = ["model", "class", "measure", "estimate", "low", "high"]
    return resample(predictions, **bootstrap).table(statistics, columns)


def _rank_statistics(
    measures: Mapping[str, Callable[..., np.ndarray]],
    held: HeldOutPredictions,
    **points: np.ndarray,
) -> Iterator[Statistic]:
    """Yield rank measures of classes with people in and outside; curves are read at `points`."""
    for name, target in held.targets:
        if target is None or _class_scores(held.predicted, target) is None:
            continue
        is_class = held.truth[held.members] == target
        cases, controls = float(is_class.sum()), float((~is_class).sum())
        # As for the AUC of the table: areas of exactly 1 rest on the smaller class.
        count = cases if points else min(cases, controls)
        for measure, function in measures.items() if min(cases, controls) else ():
            names = {"class": name, "measure": measure, "prevalence": held.share(target), **points}
            yield Statistic(held, partial(_ranked, function, target), names, "logit", count)


def _ranked(
    function: Callable[..., np.ndarray], target: int, p: Predicted, weights: np.ndarray
) -> np.ndarray:
    return function(_class_scores(p, target), p.truth == target, weights)


def _class_scores(p: Predicted, target: int) -> np.ndarray | None:
    """Return what ranks people by one class; a margin before a probability, as for the AUC."""
    scores = p.margin if p.margin is not None else p.proba
    if scores is None or not np.isfinite(scores).all():
        return None
    return scores if scores.ndim == 1 else scores[:, target]
