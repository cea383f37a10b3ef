"""Calibration: intercept, slope, smooth curve with band, integrated index, Brier score in parts.

The logistic regressions on one predictor that they need, and Platt scaling, fit every line of
weights (a resample) at once, so that no loop runs over resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    Rows,
    Statistic,
    resample,
)
from baldur.evaluation.metrics import Predicted

# Log odds of a probability of 0 or 1 are infinite. At this distance from them they are 18, where a
# single wrong certainty still ruins a slope, as it should.
PROBABILITY_EDGE = 1e-8

_STEPS = 50
# Newton's errors are squared in each step: after one of this size they are at rounding.
_TOLERANCE = 1e-7
# More log odds than any data can support: past this there is no finite answer.
_FAR = 1e6
# Newton's steps shorter than this (in log odds per standard deviation) do not overshoot.
_LONG_STEP = 1.0

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
    # Weighted sums of 1, offset and offset squared (s), and of y and offset times y (t).
    s0, s1, s2 = (weights @ m.T for m in (kernel, first, first * offsets))
    t0, t1 = (weights @ (m * y).T for m in (kernel, first))
    with np.errstate(divide="ignore", invalid="ignore"):
        determinant = s0 * s2 - s1**2
        line = (s2 * t0 - s1 * t1) / determinant  # The line's height where the offset is 0
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
    fraction = (x - grid[left]) / np.where(right > left, grid[right] - grid[left], 1.0)
    gaps = np.abs(curve[:, left] * (1 - fraction) + curve[:, right] * fraction - x)
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

    isotonic = IsotonicRegression(out_of_bounds="clip").fit(proba, truth).predict(proba)
    brier, recalibrated, plain = (
        float(np.mean((p - truth) ** 2)) for p in (proba, isotonic, truth.mean())
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
    predictions, **bootstrap
        As in `evaluate_predictions`.

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
    """Yield the rows of `calibration_measures` for one model."""
    for name, target in held.targets:
        names = {"model": held.model, "class": name, "note": held.mark}
        if held.classes and not held.predicted.has_proba:
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
    predictions : DataFrame
        As in `evaluate_predictions`.
    points : int, default=51
        Points of the curve, evenly spaced where 98 % of the predictions lie.
    **bootstrap
        As in `evaluate_predictions`.

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
        for name, target in held.targets if held.predicted.has_proba or not held.classes else ():
            ends = np.quantile(pairs(held.predicted, target)[0], [_CURVE_TAIL, 1 - _CURVE_TAIL])
            grid = np.unique(np.linspace(ends[0], ends[1], points))
            kernel = neighbour_weights(pairs(held.repeats[0][1], target)[0], grid)
            # Effective number of people behind each point, distant ones weighted less.
            effective_people = kernel.sum(axis=1) ** 2 / (kernel**2).sum(axis=1)
            scale = "identity" if target is None else "logit"
            names = {"class": name, "predicted": grid}
            yield Statistic(held, partial(_curve, target, grid), names, scale, effective_people)

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
    """Return the mean of observed minus predicted, and the slope of observed on predicted.

    Shapes: predicted, observed (n,), weights (k, n); returns intercept, slope (k,).
    """
    total = weights.sum(axis=1)
    intercept = weights @ (observed - predicted) / total
    x, y = predicted - predicted.mean(), observed - observed.mean()
    sum_xx = weights @ (x * x) - (weights @ x) ** 2 / total
    sum_xy = weights @ (x * y) - (weights @ x) * (weights @ y) / total
    return intercept, np.divide(sum_xy, sum_xx, out=np.full(len(total), np.nan), where=sum_xx > 0)


# -- logistic regression on one predictor ---------------------------------------------------------


def log_odds(proba: np.ndarray) -> np.ndarray:
    """Return log odds, with finite values for probabilities 0 and 1."""
    return logit(np.clip(proba, PROBABILITY_EDGE, 1 - PROBABILITY_EDGE))


def fit_line(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Fit log odds of y = a + b x by maximum likelihood, once per line of weights.

    Where x separates cases from controls, b is infinite; where there is nothing to fit, NaN.

    Shapes: x (n,), y (n,) from 0 to 1, weights (k, n); returns a, b (k,).
    """
    centre, spread = x.mean(), x.std()
    k = len(weights)
    a, b = np.full(k, np.nan), np.full(k, np.nan)
    if spread == 0 or not np.isfinite(spread):
        return a, b
    z = (x - centre) / spread
    low_case, high_case = _range(z, (weights > 0) & (y > 0))
    low_control, high_control = _range(z, (weights > 0) & (y < 1))
    x_varies = np.maximum(high_case, high_control) > np.minimum(low_case, low_control)
    defined = (weights @ y > 0) & (weights @ (1 - y) > 0) & x_varies
    # Without a finite slope every case lies at or above every control, or all lie below.
    rising = low_case >= high_control
    falling = high_case <= low_control
    b[defined & falling] = -np.inf
    b[defined & rising] = np.inf
    mixed = defined & ~rising & ~falling
    if mixed.any():
        design = np.column_stack([np.ones_like(z), z])
        intercept, slope = _newton(design, np.zeros_like(z), y, weights[mixed]).T
        a[mixed], b[mixed] = intercept - slope * centre / spread, slope / spread
    return a, b


def fit_intercept(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Fit log odds of y = a + x by maximum likelihood, once per line of weights.

    Shapes: x, y (n,), weights (k, n); returns a (k,).
    """
    intercept = np.full(len(weights), np.nan)
    both = (weights @ y > 0) & (weights @ (1 - y) > 0)
    if both.any():
        intercept[both] = _newton(np.ones((len(x), 1)), x, y, weights[both])[:, 0]
    return intercept


def _newton(
    design: np.ndarray, offset: np.ndarray, y: np.ndarray, weights: np.ndarray
) -> np.ndarray:
    """Fit logistic regressions by Newton's method, from the solution at their mean weights.

    Shapes: design (n, q), offset, y (n,), weights (k, n); returns coefficients (k, q).
    """
    start = np.zeros((1, design.shape[1]))
    if len(weights) > 1:
        start = _newton(design, offset, y, weights.mean(axis=0, keepdims=True))
    q = design.shape[1]
    solution = np.repeat(start, len(weights), axis=0)
    # Products of columns, so that all Hessians come out of one matrix product.
    products = np.einsum("ni,nj->nij", design, design).reshape(len(y), q * q)

    def log_likelihood(coefficients: np.ndarray, w: np.ndarray) -> np.ndarray:
        eta = coefficients @ design.T + offset
        return np.einsum("kn,kn->k", w, y * eta - np.logaddexp(0.0, eta))

    active = np.arange(len(weights))
    for _ in range(_STEPS):
        w = weights if len(active) == len(weights) else weights[active]
        p = _expit(solution[active] @ design.T + offset)
        gradient = (w * (y - p)) @ design
        np.subtract(p, p * p, out=p)
        np.multiply(p, w, out=p)  # p holds w p (1 - p) from here
        hessian = (p @ products).reshape(-1, q, q)
        # Saturated probabilities can leave no curvature; a trace of ridge keeps the step finite.
        ridge = 1e-12 * np.trace(hessian, axis1=1, axis2=2) + 1e-300
        hessian += ridge[:, None, None] * np.eye(q)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        far = np.abs(step).max(axis=1) > _LONG_STEP
        if far.any():
            step[far] = _shortened(solution[active][far], step[far], w[far], log_likelihood)
        solution[active] += step
        size = np.abs(solution[active]).max(axis=1)
        active = active[(np.abs(step).max(axis=1) > _TOLERANCE * (1 + size)) & (size < _FAR)]
        if not len(active):
            break
    return solution


def _shortened(
    coefficients: np.ndarray,
    step: np.ndarray,
    weights: np.ndarray,
    log_likelihood: Callable[[np.ndarray, np.ndarray], np.ndarray],
) -> np.ndarray:
    """Return Newton's steps (k, q), those that lower the likelihood halved until they do not."""
    before = log_likelihood(coefficients, weights)
    for _ in range(30):
        # Not `<`: NaN is worse as well.
        worse = ~(log_likelihood(coefficients + step, weights) >= before)
        if not worse.any():
            break
        step = np.where(worse[:, None], step / 2, step)
    return step


def _expit(x: np.ndarray) -> np.ndarray:
    """Overwrite log odds by probabilities; several times faster than scipy's on large arrays."""
    with np.errstate(over="ignore"):
        np.exp(np.negative(x, out=x), out=x)
    np.add(x, 1.0, out=x)
    return np.reciprocal(x, out=x)


def _range(z: np.ndarray, counted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and largest z (n,) of the people counted (k, n) in each resample."""
    low = np.where(counted, z, np.inf).min(axis=1)
    return low, np.where(counted, z, -np.inf).max(axis=1)


# -- Platt scaling -----------------------------------------------------------------------------


def needs_platt(estimator: Any, n_classes: int) -> bool:
    """Return whether an estimator has decision scores of two classes but no probabilities."""
    has_margin = hasattr(estimator, "decision_function")
    return n_classes == 2 and has_margin and not hasattr(estimator, "predict_proba")


@dataclass(frozen=True)
class Platt:
    """A rising logistic curve from decision scores to probabilities of the positive class.

    A score of a support vector machine ranks samples but is not a probability. The training rows
    are split into inner folds, and a model fitted on the others gives the scores of each. A
    logistic curve is fitted to these scores. It is then applied to the scores of the test rows,
    which come from the model fitted on all training rows.
    """

    intercept: float
    slope: float

    @classmethod
    def learn(cls, margin: np.ndarray, positive: np.ndarray) -> Platt:
        """Fit the curve to held-out decision scores.

        The targets are moved from 0 and 1 as if each class had one more person, so that scores
        which separate the classes have a curve too. A falling curve means that the scores rank
        these rows by chance; it is replaced by the share of positive rows.

        Shapes: margin (n,), positive (n,).

        References
        ----------
        J. Platt, "Probabilistic outputs for support vector machines and comparisons to regularized
        likelihood methods", Advances in Large Margin Classifiers (1999).
        """
        n_positive, n_negative = int(positive.sum()), int((~positive).sum())
        target = np.where(positive, (n_positive + 1) / (n_positive + 2), 1 / (n_negative + 2))
        intercept, slope = (
            float(v[0]) for v in fit_line(margin, target, np.ones((1, len(margin))))
        )
        if not (np.isfinite(intercept) and slope > 0):
            return cls(float(np.log((n_positive + 1) / (n_negative + 1))), 0.0)
        return cls(intercept, slope)

    def proba(self, margin: np.ndarray) -> np.ndarray:
        """Return probabilities of both classes, of shape (n, 2)."""
        p = expit(self.intercept + self.slope * margin)
        return np.column_stack([1 - p, p])
