"""Stacking: the members' linear predictors pooled into one, as held-out rows ask for it.

Member k predicts eta ~ N(m_k, v_k) for a row. With shares on the simplex and one slope,

    m = level + slope (sum_k share_k m_k - level)
    v = sum_k share_k (v_k + (m_k - sum_j share_j m_j)^2) + slope_var (m - level)^2

level being the base rate and slope_var what held-out rows leave unknown of the ln slope. A pool of
probabilities would be too cautious even where every member is right about itself (Ranjan and
Gneiting), and no weights could mend that. A pool of linear predictors is again one Gaussian over
the weights, and its slope says how far the members are to be believed: towards 0 there is little
but the base rate, and above 1 they were shrunk too much, as where classes separate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax

from baldur.inference.predictive import Task, score_and_slopes, shrinkage

Array = NDArray[np.float64]

PRIOR_COUNT = 2.0
"""Rows' worth of prior spread evenly over the members: Dirichlet(1 + 2/K)."""
SLOPE_SD = 0.5
"""The logarithm of the slope is normal: two s.d. are a factor of e either way, which is what
members of well separated classes ask for; few rows do not know it much better."""
FLAT = 1e-3
"""Of the free parameters, whose sum the score does not know."""
MAX_ITER, CALM = 100, 1e-7
DIFFERENCE = 0.02
"""Step for the curvature of the score, far below what the parameters are known to."""


@dataclass(frozen=True)
class Stack:
    """How much each member counts.

    Attributes
    ----------
    shares : (K,) on the simplex
    slope : float
    slope_var : float, posterior variance of the ln slope
    """

    shares: Array
    slope: float
    slope_var: float = 0.0


@dataclass
class HeldOut:
    """What the members predicted for rows that they had not seen.

    Attributes
    ----------
    mean, var : (n, K, C) moments of the linear predictors, noise included
    level : (n, C) base rate of the rows that the members were fitted to
    T : (n, C) outcomes
    weight : (n,) how much each row counts
    """

    mean: Array
    var: Array
    level: Array
    T: Array
    weight: Array

    def only(self, rows: NDArray[np.bool_]) -> HeldOut:
        """Return some of the rows."""
        parts = (self.mean, self.var, self.level, self.T, self.weight)
        return HeldOut(*(part[rows] for part in parts))


def attenuation(var: Array, *, logistic: bool) -> Array:
    """Return how much of its linear predictor each member stands behind, (K,), from (n, K, C).

    The probability of eta ~ N(m, v) is close to that of m/(1 + pi v/8)^1/2. Members of which little
    is left count for little from the start: their means are large for want of knowledge. Real
    outputs have no such shrinkage.
    """
    return np.asarray(shrinkage(var).mean(axis=(0, 2))) if logistic else np.ones(var.shape[1])


def shares_of(x: Array, trust: Array) -> tuple[Array, Array]:
    """Return softmax(x), and with it the shares in the linear predictor, each (K,)."""
    q = softmax(x)
    return q, q * trust / (q @ trust)


Objective = Callable[[Array], tuple[float, Array]]


def objective(held: HeldOut, task: Task, trust: Array) -> Objective:
    """Return the negative of the score that the stack maximises, with its gradient.

    F = sum_n weight_n ln p(t_n) + 2/K sum_k ln q_k - 2 (ln slope)^2

    as a function of the ln slope and the K arguments of the softmax that gives q.
    """
    K = held.mean.shape[1]
    U = held.mean - held.level[:, None]

    def loss(x: Array) -> tuple[float, Array]:
        slope = np.exp(x[0])
        q, share = shares_of(x[1:], trust)
        middle = np.einsum("nkc,k->nc", U, share)
        apart = held.var + (U - middle[:, None]) ** 2
        score, by_mean, by_var = score_and_slopes(
            held.level + slope * middle, np.einsum("nkc,k->nc", apart, share), held.T, task
        )
        by_mean, by_var = (held.weight[:, None] * each for each in (by_mean, by_var))
        # By the mean within `apart` the score has no slope: shares sum to one.
        by_share = slope * np.einsum("nkc,nc->k", U, by_mean)
        by_share += np.einsum("nkc,nc->k", apart, by_var)
        tilted = share * (by_share - share @ by_share)
        gradient = np.concatenate([[slope * (middle * by_mean).sum()], tilted])
        gradient[0] -= x[0] / SLOPE_SD**2
        gradient[1:] += PRIOR_COUNT / K - PRIOR_COUNT * q - FLAT * x[1:]
        value = held.weight @ score + PRIOR_COUNT / K * np.log(q).sum()
        value -= 0.5 * (x[0] / SLOPE_SD) ** 2 + 0.5 * FLAT * (x[1:] @ x[1:])
        return -float(value), -gradient

    return loss


@dataclass(frozen=True)
class Start:
    """Where to begin: parameters x, and steps that each move the objective about alike.

    Attributes
    ----------
    x : (1 + K,) array
    steps : (1 + K, 1 + K) array, one step a column
    """

    x: Array
    steps: Array


def around(held: HeldOut, task: Task, trust: Array, x: Array) -> Start:
    """Return the start of fits to most of the same rows: the optimum, and its curvature.

    In the steps H^-1/2 the objective is about round, and few evaluations find a new optimum.
    """
    loss = objective(held, task, trust)
    H = np.array([_slope_along(loss, x, step) for step in DIFFERENCE * np.eye(len(x))])
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    return Start(x, vectors / np.sqrt(np.maximum(values, FLAT)))


def _slope_along(loss: Objective, x: Array, step: Array) -> Array:
    """Return the derivative of the gradient in the direction of a step."""
    return np.asarray((loss(x + step)[1] - loss(x - step)[1]) / (2.0 * np.linalg.norm(step)))


def fit_stack(
    held: HeldOut, task: Task, trust: Array | None = None, start: Start | None = None
) -> tuple[Stack, Array]:
    """Return the stack that maximises the held-out log score, and the parameters it came from.

    Parameters
    ----------
    held : HeldOut
    task : Task
    trust : (K,) array, optional
        See `attenuation`, by which it is set otherwise.
    start : Start, optional
        Parameters to begin with, see `around`.
    """
    K = held.mean.shape[1]
    if trust is None:
        trust = attenuation(held.var, logistic=task != "regression")
    if start is None:
        start = Start(np.zeros(1 + K), np.eye(1 + K))
    loss, far = objective(held, task, trust), np.append(4.0, np.full(K, 12.0))

    def along(z: Array) -> tuple[float, Array]:
        # Far beyond what the priors leave room for, the line search may still ask.
        value, gradient = loss(np.clip(start.x + start.steps @ z, -2.0 * far, far))
        return value, start.steps.T @ gradient

    options = {"maxiter": MAX_ITER, "ftol": CALM, "gtol": 1e-4}
    z = minimize(along, np.zeros(1 + K), jac=True, method="L-BFGS-B", options=options).x
    x = np.clip(start.x + start.steps @ z, -2.0 * far, far)
    curvature = _slope_along(loss, x, np.append(DIFFERENCE, np.zeros(K)))[0]
    # Rows cannot make it less certain than it was before them.
    slope_var = 1.0 / max(curvature, 1.0 / SLOPE_SD**2)
    return Stack(shares_of(x[1:], trust)[1], float(np.exp(x[0])), slope_var), x
