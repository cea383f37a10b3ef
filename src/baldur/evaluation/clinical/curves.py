"""ROC and precision-recall curves of held-out predictions, with pointwise bands.

A curve is read at fixed false-positive rates (or sensitivities), on the sample and on every
resample, so that its band is that of every other figure here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.calibration import targets_of
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    resample,
)
from baldur.evaluation.metrics import Predicted, weighted_auc

GRID = np.round(np.linspace(0.0, 1.0, 101), 2)
"""Where curves are read: finer than any line is thick."""

Statistic = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


# -- on arrays -------------------------------------------------------------------------------


def _counts(
    values: np.ndarray, positive: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return cases and controls called positive, from none to all, each (k, thresholds + 1)."""
    order = np.argsort(-values, kind="stable")
    ordered = values[order]
    last = np.flatnonzero(np.r_[ordered[1:] != ordered[:-1], True])
    start = np.zeros((len(weights), 1))
    weights = weights[:, order]
    sides = (weights * positive[order], weights * ~positive[order])
    cases, controls = (
        np.concatenate([start, np.cumsum(side, axis=1)[:, last]], axis=1) for side in sides
    )
    return cases, controls


def sensitivity_at(
    rates: np.ndarray, values: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the height of the ROC curve at some false-positive rates.

    Shapes: rates (g,), values (n,), positive (n,), weights (k, n); returns (k, g).
    """
    weights = np.ones((1, len(values))) if weights is None else weights
    cases, controls = _counts(values, positive, weights)
    found = np.full((len(weights), len(rates)), np.nan)
    for k in np.flatnonzero((cases[:, -1] > 0) & (controls[:, -1] > 0)):
        x, y = controls[k] / controls[k, -1], cases[k] / cases[k, -1]
        left = np.searchsorted(x, rates, side="right") - 1
        right = np.minimum(left + 1, len(x) - 1)
        step = x[right] - x[left]
        share = np.divide(rates - x[left], step, out=np.zeros(len(rates)), where=step > 0)
        found[k] = y[left] + share * (y[right] - y[left])
    return found


def precision_at(
    sensitivities: np.ndarray,
    values: np.ndarray,
    positive: np.ndarray,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the precision of the highest threshold that reaches each sensitivity.

    Shapes: sensitivities (g,); returns (k, g).
    """
    weights = np.ones((1, len(values))) if weights is None else weights
    cases, controls = _counts(values, positive, weights)
    found = np.full((len(weights), len(sensitivities)), np.nan)
    for k in np.flatnonzero(cases[:, -1] > 0):
        reached = cases[k] / cases[k, -1]
        # Nobody called positive has no precision; rounding must not ask for one case more.
        at = np.searchsorted(reached[1:], sensitivities - 1e-12, side="left") + 1
        called = cases[k] + controls[k]
        # A resample may lack everybody above a threshold.
        at = np.maximum(at, int(np.argmax(called > 0)))
        found[k] = cases[k, at] / called[at]
    return found


def average_precision(
    values: np.ndarray, positive: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the mean precision over thresholds, weighted by the cases each one adds.

    Shapes: returns (k,).
    """
    weights = np.ones((1, len(values))) if weights is None else weights
    cases, controls = _counts(values, positive, weights)
    called = cases[:, 1:] + controls[:, 1:]
    precision = np.divide(cases[:, 1:], called, out=np.zeros_like(called), where=called > 0)
    total = cases[:, -1]
    summed = (np.diff(cases, axis=1) * precision).sum(axis=1)
    return np.divide(summed, total, out=np.full(len(total), np.nan), where=total > 0)


# -- on a predictions table ------------------------------------------------------------------


def roc_curves(
    predictions: pd.DataFrame | Resampled,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give the ROC curve of every model with its pointwise band.

    With more than two classes each is judged against the rest. Curves of several repeats are
    averaged at each false-positive rate.

    Parameters
    ----------
    predictions : DataFrame or Resampled
        As ``predictions.csv``; see `read_held_out` for the columns.
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

    Returns
    -------
    DataFrame
        model, class, false_positive_rate, sensitivity, low, high; no rows in regression.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation.clinical import roc_curves
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> curve = roc_curves(table)
    >>> at = curve.set_index("false_positive_rate")["sensitivity"]
    >>> at.loc[[0.0, 0.5, 1.0]].tolist()
    [0.5, 1.0, 1.0]
    """
    sample = resample(predictions, **bootstrap)
    return _frame(sample, sensitivity_at, ("false_positive_rate", "sensitivity"))


def precision_recall_curves(
    predictions: pd.DataFrame | Resampled,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give the precision of every model at each sensitivity, with its pointwise band.

    Parameters
    ----------
    predictions, **bootstrap
        As in `roc_curves`.

    Returns
    -------
    DataFrame
        model, class, sensitivity, precision, low, high, prevalence (share of the class, the
        precision of chance); no rows in regression.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation.clinical import precision_recall_curves
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> curve = precision_recall_curves(table).set_index("sensitivity")
    >>> curve.loc[[0.5, 1.0], "precision"].round(2).tolist()
    [1.0, 0.67]
    """
    sample = resample(predictions, **bootstrap)
    return _frame(sample, precision_at, ("sensitivity", "precision"))


def curve_areas(
    predictions: pd.DataFrame | Resampled,
    *,
    measures: Sequence[str] = ("auc", "average_precision"),
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give the area under both curves of every model and class, with intervals.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation.clinical import curve_areas
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> curve_areas(table)[["measure", "estimate", "low", "high"]].round(2)
                 measure  estimate   low  high
    0                auc      0.83  0.73   0.9
    1  average_precision      0.83  0.73   0.9
    """
    sample = resample(predictions, **bootstrap)
    areas = {"auc": weighted_auc, "average_precision": average_precision}
    rows = []
    for model, one in sample.models.items():
        for name, target in _usable(one):
            # As for the AUC of the table: scores of exactly 1 rest on the smaller side.
            share = one.truth[one.members] == target
            count = float(min(share.sum(), (~share).sum()))
            for measure in measures:
                draws = one.draw(sample.boot, _by_values(areas[measure], target))
                low, high = draws.interval("logit", count)
                rows.append((model, name, measure, float(draws.estimate), float(low), float(high)))
    columns = ["model", "class", "measure", "estimate", "low", "high"]
    return pd.DataFrame(rows, columns=columns)


def _by_values(
    statistic: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray], target: int
) -> Callable[[Predicted, np.ndarray], np.ndarray]:
    """Turn a statistic of values and truth into one of predictions."""

    def of(p: Predicted, weights: np.ndarray) -> np.ndarray:
        values = _values(p, target)
        if values is None:
            raise TypeError("expected only models that have scores")
        return statistic(values, p.truth == target, weights)

    return of


def _values(p: Predicted, target: int) -> np.ndarray | None:
    """Return what ranks people by one class; a margin before a probability, as for the AUC."""
    values = p.margin if p.margin is not None else p.proba
    if values is None or not np.isfinite(values).all():
        return None
    return values if values.ndim == 1 else values[:, target]


def _usable(held: HeldOutPredictions) -> Iterator[tuple[str, int]]:
    for name, target in targets_of(held):
        if target is None or any(_values(p, target) is None for _, p in held.repeats):
            continue
        seen = held.truth[held.members] == target
        if seen.any() and not seen.all():
            yield name, target


def _frame(sample: Resampled, statistic: Statistic, names: tuple[str, str]) -> pd.DataFrame:
    columns = ["model", "class", *names, "low", "high"]
    with_prevalence = names[1] == "precision"
    parts = []
    for model, one in sample.models.items():
        for name, target in _usable(one):
            draws = one.draw(sample.boot, _by_values(partial(statistic, GRID), target))
            cases = one.truth[one.members] == target
            low, high = draws.interval("logit", float(cases.sum()))
            part = pd.DataFrame(
                {"model": model, "class": name, names[0]: GRID, names[1]: draws.estimate,
                 "low": low, "high": high}
            )  # fmt: skip
            if with_prevalence:
                part["prevalence"] = float(cases.mean())
            parts.append(part)
    if with_prevalence:
        columns.append("prevalence")
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)
