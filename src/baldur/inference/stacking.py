"""Stacking: the members' linear predictors pooled into one, with weights learned on held-out rows.

Member k predicts eta ~ N(m_k, v_k) for a row. With shares on the simplex and one calibration slope,

    m = base + slope (sum_k share_k m_k - base)
    v = sum_k share_k (v_k + (m_k - sum_j share_j m_j)^2) + slope_var (m - base)^2

`base` being the base logit and slope_var what held-out rows leave unknown of the ln slope. A pool
of probabilities would be too cautious even where every member is calibrated (Ranjan and Gneiting,
2010), and no weights could mend that. A pool of linear predictors is again one Gaussian over the
weights. Its slope shrinks a weak signal towards the base rate, and is above 1 where members were
shrunk too much, as where classes separate.

Stacking weights are learned once on all held-out rows, and once for each fold without the rows that
this fold holds out, so that the rows that judge the ensemble had no part in its weights. All of
these problems are solved together by Newton's method with one common curvature matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from baldur.core.types import Array, IntArray
from baldur.model.likelihood import Task
from baldur.model.predictions import score_and_slopes, shrinkage

PRIOR_COUNT = 2.0
"""Rows' worth of prior spread evenly over the members: Dirichlet(1 + 2/K)."""
SLOPE_SD = 0.5
"""The logarithm of the slope is normal: two s.d. are a factor of e either way, which is what
members of well separated classes ask for; few rows do not know it much better."""
FLAT = 1e-3
"""Precision of the free parameters of the shares, whose sum the score does not know."""
DIFFERENCE = 0.02
"""Step for the curvature of the score, far below what the parameters are known to."""
FARTHEST_SLOPE, FARTHEST_SHARE = 4.0, 12.0
"""Limits of ln slope and of the arguments of the softmax, far beyond what the priors leave room
for."""
TOLERANCE = 1e-6
"""Gain of the objective, relative to its value, below which a problem has converged."""
MAX_ITER, HALVINGS = 100, 12
BATCH_SIZE = 1 << 21
"""Predictions, times outputs and folds, for which stacking weights are learned at once."""


@dataclass(frozen=True)
class Stacking:
    """Stacking weights and calibration slope, for one or several problems."""

    shares: Array  # (F, K); on the simplex
    slope: Array  # (F,)
    slope_var: Array  # (F,); posterior variance of the ln slope

    @property
    def member_weights(self) -> Array:
        """Weight of each member's linear predictor, slope times share, (F, K)."""
        return self.slope[:, None] * self.shares


def mixture(means: Array, variances: Array, weights: Array) -> tuple[Array, Array]:
    """Return mean and variance of a mixture over the first axis; weights broadcast."""
    mean = (weights * means).sum(axis=0)
    return mean, (weights * (variances + (means - mean) ** 2)).sum(axis=0)


def calibrated_moments(
    mean: Array, var: Array, base: Array, slope: Array, slope_var: Array
) -> tuple[Array, Array]:
    """Return mean and variance after the calibration slope.

    Moments are those of the pooled members, `base` is the base logit, slope_var the variance of
    the ln slope; all of them broadcast.
    """
    away = slope * (mean - base)
    return base + away, var + slope_var * away**2


def pooled_weights(
    means: Array,
    covs: Array,
    weights: Array,
    base: Array,
    slope: Array,
    slope_var: Array,
) -> tuple[Array, Array]:
    """Return J Gaussians pooled and calibrated: mean (..., k) and covariance (..., k, k).

    They are Gaussians over the k weights of a model, with means (J, ..., k) and covariances
    (J, ..., k, k), or (1, ..., k, k) where averaged already. `weights` (J, ...) say how much each
    counts; `base` (..., k) is the model that knows the base rate alone. The calibration slope and
    the variance of its logarithm broadcast with (...).
    """
    w = weights[..., None]
    mean = (w * means).sum(axis=0)
    away = means - mean
    cov = covs[0].copy() if len(covs) < len(weights) else (w[..., None] * covs).sum(axis=0)
    cov += np.einsum("j...,j...k,j...l->...kl", weights, away, away)
    sloped = slope[..., None] * (mean - base)
    cov += slope_var[..., None, None] * sloped[..., :, None] * sloped[..., None, :]
    return base + sloped, cov


def attenuation(var: Array, *, logistic: bool) -> Array:
    """Return how confident each member is in its linear predictor, (K,).

    The probability of eta ~ N(m, v) is close to that of m/(1 + pi v/8)^1/2. Members of which little
    is left count for little from the start: their means are large for want of knowledge. Real
    outputs have no such shrinkage. Shapes: var (R, K, C) of R rows, K members and C outputs.
    """
    return np.asarray(shrinkage(var).mean(axis=(0, 2))) if logistic else np.ones(var.shape[1])


def shares_of(x: Array, confidence: Array) -> tuple[Array, Array]:
    """Return softmax(x), and with it the shares in the linear predictor, each (B, K)."""
    q = softmax(x, axis=-1)
    shares = q * confidence
    return q, shares / shares.sum(axis=-1, keepdims=True)


@dataclass
class HeldOut:
    """Predictions of the members for held-out rows, and the objective of stacking weights on them.

    Stacking maximises the score

    F = sum_n weight_n ln p(t_n) + 2/K sum_k ln q_k - 2 (ln slope)^2

    as a function of the ln slope and the K arguments of the softmax that gives q. The objective is
    its negative, for B problems that differ in the weights of rows.
    """

    mean: Array  # mean, var: (R, K, C); moments of the linear predictors, noise included
    var: Array
    base: Array  # (R, C); base logit of the rows that the members were fitted to
    T: Array  # (R, C); outcomes
    row: IntArray  # (R,); the row that each prediction is for
    weight: Array  # (R,); how much each prediction counts
    task: Task

    def __post_init__(self) -> None:
        R, K, C = self.mean.shape
        self.confidence = attenuation(self.var, logistic=self.task != "regression")
        U = self.mean - self.base[:, None]
        self.U = np.ascontiguousarray(U.transpose(1, 0, 2)).reshape(K, R * C)
        spread = self.var + U**2
        self.spread = np.ascontiguousarray(spread.transpose(1, 0, 2)).reshape(K, R * C)

    def objective(self, x: Array, weight: Array) -> tuple[Array, Array]:
        """Return values (B,) and gradients (B, 1 + K) at ln slopes and arguments x (B, 1 + K)."""
        R, K, C = self.mean.shape
        B = len(x)
        slope = np.exp(x[:, :1])
        q, share = shares_of(x[:, 1:], self.confidence)
        middle = share @ self.U  # (B, RC); pooled linear predictor minus base
        var = np.maximum(share @ self.spread - middle**2, 1e-12)
        eta = self.base.ravel() + slope * middle
        score, by_mean, by_var = score_and_slopes(
            eta.reshape(B, R, C), var.reshape(B, R, C), self.T, self.task
        )
        by_mean = (weight[:, :, None] * by_mean).reshape(B, R * C)
        by_var = (weight[:, :, None] * by_var).reshape(B, R * C)
        # The pooled variance is sum_k share_k spread_k - middle^2.
        by_middle = slope * by_mean - 2.0 * middle * by_var
        by_share = by_middle @ self.U.T + by_var @ self.spread.T
        by_argument = share * (by_share - (share * by_share).sum(axis=1, keepdims=True))
        by_log_slope = slope * (middle * by_mean).sum(axis=1, keepdims=True)
        gradient = np.concatenate([by_log_slope, by_argument], axis=1)
        # The priors of both, and the term that keeps the sum of the arguments finite.
        gradient[:, 0] -= x[:, 0] / SLOPE_SD**2
        gradient[:, 1:] += PRIOR_COUNT / K - PRIOR_COUNT * q - FLAT * x[:, 1:]
        value = (weight * score).sum(axis=1) + PRIOR_COUNT / K * np.log(q).sum(axis=1)
        value -= 0.5 * (x[:, 0] / SLOPE_SD) ** 2 + 0.5 * FLAT * (x[:, 1:] ** 2).sum(axis=1)
        return -value, -gradient

    def curvature(self, x: Array, weight: Array) -> Array:
        """Return the symmetric matrix of second derivatives at one x (1 + K,), by differences."""
        steps = DIFFERENCE * np.eye(len(x))
        at = np.concatenate([x + steps, x - steps])
        _, gradient = self.objective(at, np.broadcast_to(weight, (len(at), len(weight))))
        H = (gradient[: len(x)] - gradient[len(x) :]) / (2.0 * DIFFERENCE)
        return 0.5 * (H + H.T)


def _inside(x: Array) -> Array:
    far = np.append(FARTHEST_SLOPE, np.full(x.shape[1] - 1, FARTHEST_SHARE))
    return np.clip(x, -2.0 * far, far)


def _newton_steps(H: Array) -> Array:
    """Return the matrix that turns a gradient into a Newton step; eigenvalues are made positive."""
    values, vectors = np.linalg.eigh(H)
    positive = np.maximum(np.abs(values), FLAT)
    return np.asarray((vectors / positive) @ vectors.T)


def _minimise(held: HeldOut, x: Array, weight: Array, *, renew: bool) -> Array:
    """Minimise B problems from x (B, P) by damped Newton steps; each falls at every step.

    With `renew` the curvature is computed anew at every step (for one problem); otherwise it is
    that at the start, which all problems share.
    """
    x = x.copy()
    steps = _newton_steps(held.curvature(x[0], weight[0] if renew else weight.mean(axis=0)))
    value, gradient = held.objective(x, weight)
    live = np.arange(len(x))  # problems that have not converged
    for _ in range(MAX_ITER):
        direction = -gradient[live] @ steps
        length = np.ones((len(live), 1))
        trying = np.arange(len(live))  # those of them whose step has not lowered the objective
        gained = np.zeros(len(live))
        for _ in range(HALVINGS):
            at = live[trying]
            trial = _inside(x[at] + length[trying] * direction[trying])
            new_value, new_gradient = held.objective(trial, weight[at])
            better = new_value <= value[at]
            gained[trying[better]] = value[at[better]] - new_value[better]
            x[at[better]], value[at[better]] = trial[better], new_value[better]
            gradient[at[better]] = new_gradient[better]
            trying = trying[~better]
            if not len(trying):
                break
            length[trying] *= 0.4
        live = live[gained > TOLERANCE * np.maximum(1.0, np.abs(value[live]))]
        if not len(live):
            break
        if renew:
            steps = _newton_steps(held.curvature(x[0], weight[0]))
    return x


def fit_stacking(held: HeldOut, folds: list[IntArray]) -> tuple[Stacking, Stacking]:
    """Return the stacking weights, and for each fold those learned without its held-out rows."""
    R, K, C = held.mean.shape
    x = _minimise(held, np.zeros((1, 1 + K)), held.weight[None], renew=True)
    whole = _stacking(held, x, held.weight[None])
    n_rows = int(held.row.max()) + 1
    without = []
    step = max(1, BATCH_SIZE // (R * C))
    for start in range(0, len(folds), step):
        batch = folds[start : start + step]
        kept = np.ones((len(batch), n_rows))
        for at, rows in enumerate(batch):
            kept[at, rows] = 0.0
        weight = held.weight * kept[:, held.row]
        optimum = _minimise(held, np.repeat(x, len(batch), axis=0), weight, renew=False)
        without.append(_stacking(held, optimum, weight))
    parts = zip(*((part.shares, part.slope, part.slope_var) for part in without), strict=True)
    return whole, Stacking(*(np.concatenate(part) for part in parts))


def _stacking(held: HeldOut, x: Array, weight: Array) -> Stacking:
    """Return shares, slope and variance of the ln slope at the optimum x (B, 1 + K)."""
    step = np.zeros_like(x)
    step[:, 0] = DIFFERENCE
    curvature = (held.objective(x + step, weight)[1] - held.objective(x - step, weight)[1])[:, 0]
    # Rows cannot make it less certain than it was before them.
    slope_var = 1.0 / np.maximum(curvature / (2.0 * DIFFERENCE), 1.0 / SLOPE_SD**2)
    _, shares = shares_of(x[:, 1:], held.confidence)
    return Stacking(shares, np.exp(x[:, 0]), slope_var)
