"""Calibration: intercept, slope, smooth curve with band, integrated index, Brier score in parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Unpack

import numpy as np
import pandas as pd
from sklearn.isotonic import IsotonicRegression

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    resample,
)
from baldur.evaluation.clinical.logistic_fit import fit_intercept, fit_line, log_odds
from baldur.evaluation.metrics import Predicted

SPAN = 0.75
"""Share of people in a neighbourhood; the customary value for calibration curves."""

# Curves for sums over people are computed at no more points than this, and read between them.
_MOST_POINTS = 200


class Smoother:
    """Local linear regression on fixed values of the predictor.

    Shapes: x (n,), grid (g,).
    """

    def __init__(self, x: np.ndarray, grid: np.ndarray | None = None, span: float = SPAN) -> None:
        if grid is None:
            grid = np.unique(x)
            if len(grid) > _MOST_POINTS:
                grid = np.unique(np.quantile(x, np.linspace(0, 1, _MOST_POINTS)))
        self.x, self.grid = x, grid
        near = min(len(x), max(2, int(span * len(x) + 1e-10)))
        self.offsets = x[None, :] - grid[:, None]
        distance = np.abs(self.offsets)
        radius = np.partition(distance, near - 1, axis=1)[:, near - 1 : near]
        # Where so many people have one prediction that the radius is zero, they alone count.
        with np.errstate(divide="ignore", invalid="ignore"):
            scaled = np.where(radius > 0, distance / radius, np.where(distance > 0, 1.0, 0.0))
        self.kernel = (1 - np.minimum(scaled, 1.0) ** 3) ** 3
        # Between two predictions that all people share, everyone near lies at the very edge.
        empty = self.kernel.sum(axis=1) == 0
        self.kernel[empty] = distance[empty] <= radius[empty]
        self._first = self.kernel * self.offsets
        self._second = self._first * self.offsets

    @property
    def neighbours(self) -> np.ndarray:
        """Effective number of people behind each point of the grid, distant ones weighted less."""
        return self.kernel.sum(axis=1) ** 2 / (self.kernel**2).sum(axis=1)

    def curve(self, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Return the curve on the grid for every line of weights.

        Shapes: y (n,), weights (k, n); returns (k, g).
        """
        s0, s1, s2 = (weights @ m.T for m in (self.kernel, self._first, self._second))
        t0, t1 = (weights @ (m * y).T for m in (self.kernel, self._first))
        with np.errstate(divide="ignore", invalid="ignore"):
            determinant = s0 * s2 - s1**2
            line = (s2 * t0 - s1 * t1) / determinant
            # Neighbours with one prediction have a mean but no slope.
            flat = determinant <= 1e-10 * s0 * s2
            return np.where(s0 > 0, np.where(flat, t0 / s0, line), np.nan)

    def at_people(self, curve: np.ndarray) -> np.ndarray:
        """Return curves (k, g) read at every person's prediction, as (k, n)."""
        if len(self.grid) == 1:
            return np.repeat(curve, len(self.x), axis=1)
        right = np.clip(np.searchsorted(self.grid, self.x), 1, len(self.grid) - 1)
        left = right - 1
        share = (self.x - self.grid[left]) / (self.grid[right] - self.grid[left])
        return curve[:, left] * (1 - share) + curve[:, right] * share


# Points of a drawn curve: finer than any line is thick.
CURVE_POINTS = 51
# A curve is drawn where people are; the outermost percent on each side has too few neighbours.
_CURVE_TAIL = 0.01

SEPARATED = "predictions separate the classes: no finite slope exists"
NO_PROBABILITIES = "calibration needs probabilities, which this model does not give"


class BrierParts(NamedTuple):
    """Brier score = miscalibration - discrimination + uncertainty.

    Examples
    --------
    >>> from baldur.evaluation.clinical.calibration import brier_parts
    >>> parts = brier_parts([0.1, 0.1, 0.9, 0.9], [0, 1, 1, 1])
    >>> round(parts.brier, 3)
    0.21
    >>> round(parts.miscalibration - parts.discrimination + parts.uncertainty, 3)
    0.21
    """

    brier: float
    miscalibration: float
    discrimination: float
    uncertainty: float


# -- on arrays -------------------------------------------------------------------------------


def calibration_line(
    proba: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Return calibration in the large and the calibration slope.

    The intercept is a in log odds(truth) = a + log odds(proba), zero where as many events happen
    as were predicted. The slope is b in log odds(truth) = c + b log odds(proba), below one where
    predictions are too extreme.

    Shapes: proba (n,), truth (n,), weights (k, n); returns intercept, slope (k,).

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.clinical.calibration import calibration_line
    >>> truth = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> for proba in ([0.25, 0.75], [0.1, 0.9]):  # calibrated, too extreme
    ...     _, slope = calibration_line(np.repeat(proba, 4), truth)
    ...     print(f"{slope[0]:.2f}")
    1.00
    0.50
    """
    weights = np.ones((1, len(truth))) if weights is None else weights
    x, y = log_odds(np.asarray(proba, dtype=float)), np.asarray(truth, dtype=float)
    return fit_intercept(x, y, weights), fit_line(x, y, weights)[1]


def integrated_calibration_index(
    proba: np.ndarray, truth: np.ndarray, weights: np.ndarray | None = None
) -> np.ndarray:
    """Return the mean distance between predictions and the smooth calibration curve.

    Parameters
    ----------
    proba : array of shape (n,)
        Probabilities, or numbers in regression.
    truth : array of shape (n,)
        0 or 1, or numbers.
    weights : array of shape (k, n), optional
        How often each row counts, for k resamples; default once.

    Returns
    -------
    array of shape (k,)

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation import integrated_calibration_index
    >>> predicted = np.linspace(0, 10, 30)
    >>> observed = predicted + 2
    >>> integrated_calibration_index(predicted, observed).round(2).tolist()
    [2.0]
    """
    weights = np.ones((1, len(truth))) if weights is None else weights
    smoother = Smoother(np.asarray(proba, dtype=float))
    curve = smoother.curve(np.asarray(truth, dtype=float), weights)
    if _is_binary(truth):
        curve = np.clip(curve, 0.0, 1.0)
    gaps = np.abs(smoother.at_people(curve) - smoother.x)
    # Nobody near means nobody there in the resample.
    gaps = np.where(weights > 0, np.nan_to_num(gaps), 0.0)
    return np.einsum("kn,kn->k", weights, gaps) / weights.sum(axis=1)


def brier_parts(proba: np.ndarray, truth: np.ndarray) -> BrierParts:
    """Decompose the Brier score into miscalibration, discrimination and uncertainty, without bins.

    The probabilities are recalibrated by the best rising function (isotonic regression). What
    that gains is miscalibration; what the recalibrated ones gain over the plain share of events
    is discrimination; the Brier score of that share is uncertainty.

    Shapes: proba (n,), truth (n,).

    References
    ----------
    T. Dimitriadis, T. Gneiting and A. I. Jordan, "Stable reliability diagrams for probabilistic
    classifiers", PNAS 118 (2021).

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.clinical.calibration import brier_parts
    >>> truth = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> parts = brier_parts(np.repeat([0.1, 0.9], 4), truth)
    >>> {name: round(value, 4) for name, value in parts._asdict().items()}
    {'brier': 0.21, 'miscalibration': 0.0225, 'discrimination': 0.0625, 'uncertainty': 0.25}
    """
    proba, truth = np.asarray(proba, dtype=float), np.asarray(truth, dtype=float)
    best = IsotonicRegression(out_of_bounds="clip").fit(proba, truth).predict(proba)
    own = float(np.mean((proba - truth) ** 2))
    recalibrated = float(np.mean((best - truth) ** 2))
    plain = float(np.mean((truth.mean() - truth) ** 2))
    return BrierParts(own, own - recalibrated, plain - recalibrated, plain)


def _is_binary(truth: np.ndarray) -> bool:
    return bool(np.isin(truth, (0, 1)).all())


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
    sample = resample(predictions, **bootstrap)
    rows: list[tuple[object, ...]] = []
    nan = float("nan")
    for model, one in sample.models.items():
        for name, target in targets_of(one):
            if one.classes and not one.has_proba:
                rows.append((model, name, "slope", nan, nan, nan, NO_PROBABILITIES))
                continue
            for measure, draws, scale in _drawn(one, sample.boot, target):
                low, high = draws.interval(scale)
                value = float(draws.estimate)
                note = SEPARATED if measure == "slope" and np.isinf(value) else one.mark
                rows.append((model, name, measure, value, float(low), float(high), note))
            if target is None:
                continue
            # Resampling inflates what isotonic regression gains, so the parts have no intervals.
            parts = np.mean(
                [brier_parts(*pairs(p, target))[1:] for _, p in one.repeats], axis=0
            ).tolist()
            rows += [
                (model, name, measure, value, nan, nan, one.mark)
                for measure, value in zip(BrierParts._fields[1:], parts, strict=True)
            ]
    columns = ["model", "class", "measure", "estimate", "low", "high", "note"]
    return pd.DataFrame(rows, columns=columns)


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
    sample = resample(predictions, **bootstrap)
    parts = []
    for model, one in sample.models.items():
        if one.classes and not one.has_proba:
            continue
        for name, target in targets_of(one):
            everything = np.concatenate([pairs(p, target).predicted for _, p in one.repeats])
            ends = np.quantile(everything, [_CURVE_TAIL, 1 - _CURVE_TAIL])
            grid = np.unique(np.linspace(ends[0], ends[1], points))
            draws = held_curve(one, sample.boot, target, grid)
            near = Smoother(pairs(one.repeats[0][1], target).predicted, grid).neighbours
            low, high = draws.interval("identity" if target is None else "logit", near)
            parts.append(
                pd.DataFrame(
                    {"model": model, "class": name, "predicted": grid,
                     "observed": draws.estimate, "low": low, "high": high}
                )
            )  # fmt: skip
    columns = ["model", "class", "predicted", "observed", "low", "high"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


class Pairs(NamedTuple):
    """One class against the rest, or a numeric outcome: predicted and observed values."""

    predicted: np.ndarray
    observed: np.ndarray


def pairs(p: Predicted, target: int | None) -> Pairs:
    """Return probabilities and events of one class, or predictions and truth in regression."""
    if target is None or p.proba is None:
        return Pairs(p.label.astype(float), p.truth.astype(float))
    return Pairs(p.proba[:, target], (p.truth == target).astype(float))


def targets_of(held: HeldOutPredictions) -> Iterator[tuple[str, int | None]]:
    """Yield the targets to evaluate: the positive class, each of several classes, or the number."""
    if not held.classes:
        yield "", None
    elif len(held.classes) == 2:
        yield held.classes[1], 1
    else:
        yield from ((name, c) for c, name in enumerate(held.classes))


def line_draws(held: HeldOutPredictions, boot: Bootstrap, target: int | None) -> Draws:
    """Return intercept and slope on the sample and every resample, as (..., 2)."""

    def both(p: Predicted, weights: np.ndarray) -> np.ndarray:
        predicted, observed = pairs(p, target)
        if target is None:
            return np.stack(_straight_line(predicted, observed, weights), axis=1)
        return np.stack(calibration_line(predicted, observed, weights), axis=1)

    return held.draw(boot, both)


def index_draws(held: HeldOutPredictions, boot: Bootstrap, target: int | None) -> Draws:
    """Return the integrated calibration index on the sample and every resample."""
    return held.draw(boot, lambda p, w: integrated_calibration_index(*pairs(p, target), w))


def _straight_line(
    predicted: np.ndarray, observed: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    total = weights.sum(axis=1)
    intercept = weights @ (observed - predicted) / total
    x, y = predicted - predicted.mean(), observed - observed.mean()
    spread = weights @ (x * x) - (weights @ x) ** 2 / total
    both = weights @ (x * y) - (weights @ x) * (weights @ y) / total
    return intercept, np.divide(both, spread, out=np.full(len(total), np.nan), where=spread > 0)


def _drawn(
    held: HeldOutPredictions, boot: Bootstrap, target: int | None
) -> Iterator[tuple[str, Draws, str]]:
    line = line_draws(held, boot, target)
    for j, measure in enumerate(("intercept", "slope")):
        yield measure, line.part(j), "identity"
    yield "ici", index_draws(held, boot, target), "log"
    if target is not None:

        def brier(p: Predicted, weights: np.ndarray) -> np.ndarray:
            predicted, observed = pairs(p, target)
            return weights @ (predicted - observed) ** 2 / weights.sum(axis=1)

        yield "brier", held.draw(boot, brier), "logit"


def held_curve(
    held: HeldOutPredictions, boot: Bootstrap, target: int | None, grid: np.ndarray
) -> Draws:
    """Return the smooth curve on a grid, on the sample and every resample."""

    def curve(p: Predicted, weights: np.ndarray) -> np.ndarray:
        predicted, observed = pairs(p, target)
        found = Smoother(predicted, grid).curve(observed, weights)
        return found if target is None else np.clip(found, 0.0, 1.0)

    return held.draw(boot, curve)
