"""Calibration: intercept, slope, smooth curve with band, integrated index, Brier score in parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Unpack

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    Rows,
    Statistic,
    resample,
)
from baldur.evaluation.clinical.logistic_fit import fit_intercept, fit_line, log_odds
from baldur.evaluation.metrics import Predicted

SPAN = 0.75
"""Share of people in a neighbourhood; the customary value for calibration curves."""

# Curves for sums over people are computed at no more points than this, and read between them.
_MOST_POINTS = 200


def neighbour_weights(x: np.ndarray, grid: np.ndarray, span: float = SPAN) -> np.ndarray:
    """Return how much each person counts at each point of a grid: tricube weights of lowess.

    Shapes: x (n,), grid (g,); returns (g, n).
    """
    near = min(len(x), max(2, int(span * len(x) + 1e-10)))
    distance = np.abs(x[None, :] - grid[:, None])
    radius = np.partition(distance, near - 1, axis=1)[:, near - 1 : near]
    # Where so many people have one prediction that the radius is zero, they alone count.
    with np.errstate(divide="ignore", invalid="ignore"):
        scaled = np.where(radius > 0, distance / radius, np.where(distance > 0, 1.0, 0.0))
    kernel = (1 - np.minimum(scaled, 1.0) ** 3) ** 3
    # Between two predictions that all people share, everyone near lies at the very edge.
    empty = kernel.sum(axis=1) == 0
    kernel[empty] = distance[empty] <= radius[empty]
    return kernel


def local_regression(
    x: np.ndarray, y: np.ndarray, weights: np.ndarray, grid: np.ndarray, span: float = SPAN
) -> np.ndarray:
    """Return the local linear regression of y on x, read on a grid, for every line of weights.

    Shapes: x, y (n,), weights (k, n), grid (g,); returns (k, g).
    """
    kernel = neighbour_weights(x, grid, span)
    offsets = x[None, :] - grid[:, None]
    first = kernel * offsets
    s0, s1, s2 = (weights @ m.T for m in (kernel, first, first * offsets))
    t0, t1 = (weights @ (m * y).T for m in (kernel, first))
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = s0 * s2 - s1**2
        line = (s2 * t0 - s1 * t1) / determinant
        # Neighbours with one prediction have a mean but no slope.
        flat = determinant <= 1e-10 * s0 * s2
        return np.where(s0 > 0, np.where(flat, t0 / s0, line), np.nan)


# Points of a drawn curve: finer than any line is thick.
CURVE_POINTS = 51
# A curve is drawn where people are; the outermost percent on each side has too few neighbours.
_CURVE_TAIL = 0.01

SEPARATED = "predictions separate the classes: no finite slope exists"
NO_PROBABILITIES = "calibration needs probabilities, which this model does not give"


# -- on arrays -------------------------------------------------------------------------------


def calibration_line(
    proba: np.ndarray, truth: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return calibration in the large and the calibration slope.

    The slope is below one where predictions are too extreme.

    Shapes: proba (n,), truth (n,), weights (k, n); returns intercept, slope (k,).
    """
    x, y = log_odds(proba), np.asarray(truth, dtype=float)
    return fit_intercept(x, y, weights), fit_line(x, y, weights)[1]


def integrated_calibration_index(
    proba: np.ndarray, truth: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Return the mean distance between predictions and the smooth calibration curve.

    Shapes: proba (n,), truth (n,), 0 or 1 or numbers, weights (k, n); returns (k,).
    """
    x, y = proba, np.asarray(truth, dtype=float)
    grid = np.unique(x)
    if len(grid) > _MOST_POINTS:
        grid = np.unique(np.quantile(x, np.linspace(0, 1, _MOST_POINTS)))
    curve = local_regression(x, y, weights, grid)
    if np.isin(y, (0, 1)).all():
        curve = np.clip(curve, 0.0, 1.0)
    # The curve at every person's prediction, between the points of the grid on both sides.
    right = np.clip(np.searchsorted(grid, x), min(1, len(grid) - 1), len(grid) - 1)
    left = np.maximum(right - 1, 0)
    share = (x - grid[left]) / np.where(right > left, grid[right] - grid[left], 1.0)
    gaps = np.abs(curve[:, left] * (1 - share) + curve[:, right] * share - x)
    # Nobody near means nobody there in the resample.
    gaps = np.where(weights > 0, np.nan_to_num(gaps), 0.0)
    return np.einsum("kn,kn->k", weights, gaps) / weights.sum(axis=1)


def brier_parts(proba: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """Decompose the Brier score without bins (Dimitriadis, Gneiting and Jordan, PNAS 118, 2021).

    The probabilities are recalibrated by the best rising function (isotonic regression). What
    that gains is miscalibration; what the recalibrated ones gain over the plain share of events
    is discrimination; the Brier score of that share is uncertainty. The Brier score is
    miscalibration - discrimination + uncertainty.

    Shapes: proba (n,), truth (n,).
    """
    from sklearn.isotonic import IsotonicRegression

    best = IsotonicRegression(out_of_bounds="clip").fit(proba, truth).predict(proba)
    brier, recalibrated, plain = (
        float(np.mean((p - truth) ** 2)) for p in (proba, best, truth.mean())
    )
    return {
        "miscalibration": brier - recalibrated,
        "discrimination": plain - recalibrated,
        "uncertainty": plain,
    }


# -- on a predictions table ------------------------------------------------------------------


def calibration_measures(
    predictions: pd.DataFrame | Resampled,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give intercept, slope, integrated index and Brier score in parts of every model.

    With more than two classes each is judged against the rest. In regression the intercept is the
    mean of truth minus prediction and the slope that of truth on prediction.

    Parameters
    ----------
    predictions : DataFrame or Resampled
        As ``predictions.csv``; see `read_held_out` for the columns.
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

    Returns
    -------
    DataFrame
        model, class, measure, estimate, low, high, note.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import calibration_measures
    >>> label = ["no", "no", "no", "yes", "no", "yes", "yes", "yes"] * 20
    >>> table = pd.DataFrame({"label": label, "p_yes": ([0.1] * 4 + [0.9] * 4) * 20})
    >>> found = calibration_measures(table).set_index("measure")
    >>> found.loc[["intercept", "slope", "brier"], "estimate"].round(2).abs().to_dict()
    {'intercept': 0.0, 'slope': 0.5, 'brier': 0.21}
    """
    columns = ["model", "class", "measure", "estimate", "low", "high", "note"]
    table = resample(predictions, **bootstrap).table(_measures, columns)
    separated = (table["measure"] == "slope") & np.isinf(table["estimate"].astype(float))
    table["note"] = table["note"].mask(separated, SEPARATED)
    return table


def _measures(held: HeldOutPredictions) -> Iterator[Rows]:
    for name, target in held.targets:
        names = {"model": held.model, "class": name, "note": held.mark}
        if held.classes and not held.has_proba:
            yield {**names, "measure": ["slope"], "note": NO_PROBABILITIES}
            continue
        yield from calibration_statistics(held, target, **names)
        if target is None:
            continue
        yield Statistic(held, partial(_brier, target), {"measure": "brier", **names}, "logit")
        # Resampling inflates what isotonic regression gains, so the parts have no intervals.
        parts = pd.DataFrame([brier_parts(*pairs(p, target)) for _, p in held.repeats]).mean()
        yield {**names, "measure": list(parts.index), "estimate": parts.to_numpy()}


def _brier(target: int, p: Predicted, weights: np.ndarray) -> np.ndarray:
    predicted, observed = pairs(p, target)
    return weights @ (predicted - observed) ** 2 / weights.sum(axis=1)


def calibration_curves(
    predictions: pd.DataFrame | Resampled,
    *,
    points: int = CURVE_POINTS,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give the smooth calibration curve of every model with its pointwise band.

    Parameters
    ----------
    predictions : DataFrame or Resampled
        As in `calibration_measures`.
    points : int, default=51
        Points of the curve, evenly spaced where 98 % of the predictions lie.
    **bootstrap
        As in `calibration_measures`.

    Returns
    -------
    DataFrame
        model, class, predicted, observed, low, high.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from baldur.evaluation import calibration_curves
    >>> p, u = np.random.default_rng(0).uniform(size=(2, 300))
    >>> table = pd.DataFrame({"label": np.where(u < p**2, "yes", "no"), "p_yes": p})
    >>> curve = calibration_curves(table, points=3)
    >>> curve[["predicted", "observed"]].round(2).to_numpy().tolist()
    [[0.01, 0.0], [0.5, 0.24], [0.99, 0.99]]
    """

    def statistics(held: HeldOutPredictions) -> Iterator[Statistic]:
        for name, target in held.targets if held.has_proba or not held.classes else ():
            ends = np.quantile(pairs(held.predicted, target)[0], [_CURVE_TAIL, 1 - _CURVE_TAIL])
            grid = np.unique(np.linspace(ends[0], ends[1], points))
            kernel = neighbour_weights(pairs(held.repeats[0][1], target)[0], grid)
            # Effective number of people behind each point, distant ones weighted less.
            near = kernel.sum(axis=1) ** 2 / (kernel**2).sum(axis=1)
            scale = "identity" if target is None else "logit"
            names = {"class": name, "predicted": grid}
            yield Statistic(held, partial(_curve, target, grid), names, scale, near)

    columns = ["model", "class", "predicted", "estimate", "low", "high"]
    table = resample(predictions, **bootstrap).table(statistics, columns)
    return table.rename(columns={"estimate": "observed"})


def _curve(target: int | None, grid: np.ndarray, p: Predicted, weights: np.ndarray) -> np.ndarray:
    smooth = local_regression(*pairs(p, target), weights, grid)
    return smooth if target is None else np.clip(smooth, 0.0, 1.0)


def pairs(p: Predicted, target: int | None) -> tuple[np.ndarray, np.ndarray]:
    """Return probabilities and events of one class, or predictions and truth in regression."""
    if target is None or p.proba is None:
        return p.label.astype(float), p.truth.astype(float)
    return p.proba[:, target], (p.truth == target).astype(float)


def calibration_statistics(
    held: HeldOutPredictions, target: int | None, **names: Any
) -> Iterable[Statistic]:
    """Return intercept and slope, and the integrated calibration index, of a class or a number."""

    def line(p: Predicted, weights: np.ndarray) -> np.ndarray:
        fit = _straight_line if target is None else calibration_line
        return np.stack(fit(*pairs(p, target), weights), axis=1)

    def index(p: Predicted, weights: np.ndarray) -> np.ndarray:
        return integrated_calibration_index(*pairs(p, target), weights)

    return (
        Statistic(held, line, {"measure": ["intercept", "slope"], **names}),
        Statistic(held, index, {"measure": "ici", **names}, "log"),
    )


def _straight_line(
    predicted: np.ndarray, observed: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    total = weights.sum(axis=1)
    intercept = weights @ (observed - predicted) / total
    x, y = predicted - predicted.mean(), observed - observed.mean()
    spread = weights @ (x * x) - (weights @ x) ** 2 / total
    both = weights @ (x * y) - (weights @ x) * (weights @ y) / total
    return intercept, np.divide(both, spread, out=np.full(len(total), np.nan), where=spread > 0)
