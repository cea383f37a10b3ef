"""Selection: the smallest submodel that is shown to predict as well as the ensemble.

A submodel is a candidate if, with 95 % confidence, its held-out loss exceeds the ensemble's by at
most `margin` of what the ensemble gains over the base rate. Losses are compared row by row;
repeats of the folds are averaged before, so they do not count as rows. The margin says what may be
lost, not that it should be: of the candidates, the smallest is selected whose loss is within half a
standard error of that of the best submodel, or a tenth of what may be lost. That also holds where
the ensemble itself is beaten, as where few features carry all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.core.types import Array, IntArray, Mask
from baldur.model.likelihood import Task
from baldur.model.predictions import integrate_left_out, score_and_slopes, shrinkage

CONFIDENT = 1.645
"""Standard errors of a one-sided 95 % bound."""
NEAR, A_LITTLE = 0.5, 0.1
"""How far behind the best submodel is as good: so many standard errors, or such a part of what may
be lost, whichever is more. The first alone would vanish with many rows, the second alone asks small
samples for what they cannot know. Of thirty such pairs and rules these select sets that depend
least on the seed, at equal loss (ad_csf, golub, pd_speech)."""
RESAMPLES = 200
"""The selection is the mean place over so many resamples of the rows. A rule with thresholds jumps
when a loss moves by a hair; its mean over resamples does not."""


def paired_gap(loss: Array, other: Array, weight: Array) -> tuple[float, float]:
    """Return the weighted mean of `loss` minus `other` and its standard error.

    Negative where `loss` is the smaller. Shapes: loss, other, weight (n,) of n rows.
    """
    gap = loss - other
    share = weight / weight.sum()
    mean = float(share @ gap)
    error = float(np.sqrt((share**2 * (gap - mean) ** 2).sum()))
    rounding = np.finfo(float).eps * abs(mean)  # what rows that all differ alike leave behind
    return mean, error if error > rounding else 0.0


def in_errors(mean: float, error: float) -> float:
    """Return a difference in standard errors; infinite where all rows differ alike."""
    if error > 0:
        return mean / error
    return float(np.copysign(np.inf, mean)) if mean else 0.0


def select_smallest(
    losses: Array, ensemble: Array, allowed: float, weight: Array
) -> tuple[int, Mask]:
    """Return the index of the selected submodel, and which submodels were candidates.

    A candidate loses at most `allowed` against the ensemble, with 95 % confidence; the last one is
    always one. The smallest candidate is selected that is about as good as the best submodel, by
    the mean over resamples of the rows. Larger values of `allowed` never select more.

    Shapes: losses (K, n) of K submodels, from small to large, ensemble (n,), weight (n,).
    """
    n = losses.shape[1]
    counts = np.empty((RESAMPLES, n))
    # Resampling counts are assigned by loss rank, so that the order of the rows does not matter.
    ranked = np.argsort(ensemble, kind="stable")
    counts[:, ranked] = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), RESAMPLES)
    drawn = np.concatenate([np.ones((1, n)), counts])  # the rows themselves, then the resamples
    shares = weight * drawn
    shares /= shares.sum(axis=1, keepdims=True)
    mean, error = _gaps(losses - ensemble, shares, drawn)
    candidate = mean + CONFIDENT * error <= allowed
    candidate[:, -1] = True
    best = (shares @ losses.T).argmin(axis=1)
    enough = candidate.copy()
    for place in np.unique(best):
        at = best == place
        mean, error = _gaps(losses - losses[place], shares[at], drawn[at])
        enough[at] &= mean <= np.maximum(NEAR * error, A_LITTLE * allowed)
    enough[:, -1] = True
    mean_place = round(float(enough[1:].argmax(axis=1).mean()))
    candidates = np.flatnonzero(candidate[0])
    return int(candidates[candidates >= mean_place][0]), candidate[0]


def _gaps(gap: Array, shares: Array, drawn: Array) -> tuple[Array, Array]:
    """Return means and standard errors of K gaps (K, n) in B resamples of n rows, each (B, K).

    `shares` (B, n) are the rows' weights and `drawn` (B, n) how often each was drawn: a row that
    was drawn c times is c rows.
    """
    mean = shares @ gap.T
    squares = shares**2 / np.maximum(drawn, 1.0)
    spread = squares @ (gap**2).T - 2.0 * mean * (squares @ gap.T)
    spread += mean**2 * squares.sum(axis=1, keepdims=True)
    return mean, np.sqrt(np.maximum(spread, 0.0))


@dataclass(frozen=True)
class Score:
    """How a submodel compares with the ensemble, and its held-out losses."""

    stretch: Array  # (C,); factor of the variance of its linear predictors
    left_out: Array  # (C,); variance of the ensemble's linear predictor that it leaves out
    losses: Array  # (N,); mean loss of each row over the folds that held it out
    accuracy: float  # held-out AUC, in regression R2, and its standard error
    accuracy_error: float


def score_submodels(
    mean: Array,
    var: Array,
    whole_mean: Array,
    whole_var: Array,
    *,
    slope: float,
    row: IntArray,
    T: Array,
    weight: Array,
    task: Task,
) -> list[Score]:
    """Score submodels by their moments on held-out rows.

    The calibration slope has stretched their means, and stretches their standard deviations
    alike: what is known of a weight is known in proportion. But a submodel is no more uncertain
    than the ensemble, whose slope was learned with all its variance. What is left of that, and the
    distance of the means, is what a submodel leaves out: it is integrated over, see
    `integrate_left_out`. All this is measured on the held-out rows, all folds together.

    Shapes: mean, var (V, R, C) of V submodels and R held-out predictions of C outputs, whole_mean,
    whole_var (R, C) of the ensemble, row (R,) the row of each prediction, T (N, C), weight (N,).
    """
    w = weight[row]
    # Weighted sums over rows: variances, those of the ensemble, squared distances of the means.
    spread = np.einsum("vrc,r->vc", var, w)
    whole_spread = w @ whole_var
    apart = np.einsum("vrc,r->vc", (mean - whole_mean) ** 2, w)
    stretch = np.ones(spread.shape)
    if task != "regression":  # where variances are mostly noise
        stretch = np.minimum(slope**2, np.maximum(whole_spread / np.maximum(spread, 1e-300), 1.0))
    left_out = np.maximum((apart + whole_spread - stretch * spread) / w.sum(), 0.0)
    mean, var = integrate_left_out(mean, stretch[:, None] * var, left_out[:, None], task)
    losses = mean_losses(mean, var, row, T, task)
    value, error = (part.tolist() for part in accuracies(mean, var, row, T, weight, task))
    return [Score(*parts) for parts in zip(stretch, left_out, losses, value, error, strict=True)]


def mean_losses(mean: Array, var: Array, row: IntArray, T: Array, task: Task) -> Array:
    """Return the mean loss of each row over the folds that held it out, (..., N).

    From moments (..., R, C) of R predictions for the rows `row` with outcomes T (N, C).
    """
    losses = -score_and_slopes(mean, var, T[row], task)[0]
    times = np.bincount(row, minlength=len(T))
    flat = losses.reshape(-1, len(row))
    total = np.stack([np.bincount(row, loss, minlength=len(T)) for loss in flat])
    return np.asarray(total / times).reshape(*losses.shape[:-1], len(T))


INTERVAL = 1.959964
"""Standard errors on either side of a 95 % interval."""


def accuracies(
    mean: Array, var: Array, row: IntArray, T: Array, weight: Array, task: Task
) -> tuple[Array, Array]:
    """Return the AUC (in regression R2) of V submodels and its standard error, each (V,).

    Predictions of one row in several repeats are averaged before; outputs are averaged after.

    Shapes: mean, var (V, R, C) of R predictions, row (R,) the row of each, T (N, C), weight (N,).
    """
    V, _, C = mean.shape
    # The order of probabilities; a linear predictor that is less certain gives less extreme ones.
    values = mean if task == "regression" else shrinkage(var) * mean
    share = weight / weight.sum()
    times = np.bincount(row, minlength=len(T))
    measure = r2 if task == "regression" else auc
    accuracy, errors = np.empty(V), np.empty(V)
    for v in range(V):
        total, influence = 0.0, np.zeros(len(T))
        for c in range(C):
            prediction = np.bincount(row, values[v, :, c], minlength=len(T)) / times
            value, parts = measure(prediction, T[:, c], share)
            total, influence = total + value / C, influence + parts / C
        accuracy[v], errors[v] = total, np.sqrt((share**2 * influence**2).sum())
    return accuracy, errors


def auc(score: Array, t: Array, share: Array) -> tuple[float, Array]:
    """Return the area under the ROC curve of scores (N,), and the influence of each row on it.

    From the influences follows its standard error. Rows count by `share` (N,), which sums to 1;
    ties count half. Without rows of both classes the area is 0.5.
    """
    ones, zeros = share * t, share * (1.0 - t)
    n_ones, n_zeros = float(ones.sum()), float(zeros.sum())
    if min(n_ones, n_zeros) <= 0.0:
        return 0.5, np.zeros(len(t))
    _, at = np.unique(score, return_inverse=True)
    zeros_below = _share_below(zeros, at) / n_zeros
    ones_above = 1.0 - _share_below(ones, at) / n_ones
    area = float(ones @ zeros_below) / n_ones
    influence = t * (zeros_below - area) / n_ones + (1.0 - t) * (ones_above - area) / n_zeros
    return area, influence


def _share_below(share: Array, at: IntArray) -> Array:
    """Return the share of rows with a smaller score than each row, ties counted half."""
    total = np.bincount(at, share)
    return np.asarray((np.cumsum(total) - 0.5 * total)[at])


def r2(prediction: Array, y: Array, share: Array) -> tuple[float, Array]:
    """Return the share of variance explained by predictions (N,), and each row's influence.

    From the influences follows its standard error. Where the outcomes do not vary, it is 0.
    """
    if not np.ptp(y):
        return 0.0, np.zeros(len(y))
    away = (y - share @ y) ** 2
    left = (y - prediction) ** 2
    variance = float(share @ away)
    value = 1.0 - float(share @ left) / variance
    return value, np.asarray(((1.0 - value) * away - left) / variance)


def accuracy_interval(value: float, error: float, task: Task) -> tuple[float, float]:
    """Return the 95 % interval of an AUC, which is made on the logit scale, or of an R2."""
    if task == "regression":
        return value - INTERVAL * error, min(value + INTERVAL * error, 1.0)
    if not 0.0 < value < 1.0:
        return value, value
    logit = np.log(value / (1.0 - value))
    spread = INTERVAL * error / (value * (1.0 - value))
    low, high = 1.0 / (1.0 + np.exp(-np.clip([logit - spread, logit + spread], -500.0, 500.0)))
    return float(low), float(high)
