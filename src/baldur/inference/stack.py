"""Stacking: how much each member counts, from what it predicted for rows it had not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PRIOR_COUNT = 2.0
"""Rows' worth of prior spread evenly over the members: Dirichlet(1 + 2/K)."""
MAX_ITER, CALM = 100, 1e-10


def prior_exponents(K: int) -> Array:
    """Return the exponents of the weights in what is maximised, (K,); the base rate is last.

    Held-out rows hardly tell members that predict alike apart, and the most probable weights then
    swing from one to the other with every new draw of the folds. The mean of the weights does not:
    for a Dirichlet posterior it is the maximum with exponents that are one larger, 1 + 2/K. The
    base rate is no such member. It has the exponent of the mode, 2/K: it counts as far as the rows
    ask for it.
    """
    each = np.full(K, 1.0 + PRIOR_COUNT / K)
    each[-1] = PRIOR_COUNT / K
    return each


def stacking_weights(density: Array, weight: Array, each: Array) -> Array:
    """Return weights on the simplex that maximise the held-out log score, (K,).

    F(w) = sum_n weight_n ln sum_k w_k p_k(t_n) + sum_k each_k ln w_k, concave with its maximum
    inside the simplex, climbed by Newton steps along it.

    Parameters
    ----------
    density : (n, K) array
        What each member predicted for each held-out outcome.
    weight : (n,) array
        How much each outcome counts.
    each : (K,) array
        Positive exponents, see `prior_exponents`.
    """
    K = density.shape[1]
    # Only ratios of a row's densities matter.
    P = np.maximum(density, 1e-300) / np.maximum(density.max(axis=1, keepdims=True), 1e-300)

    def score(w: Array) -> float:
        return float(weight @ np.log(P @ w) + each @ np.log(w))

    w = np.full(K, 1.0 / K)
    value = score(w)
    system = np.zeros((K + 1, K + 1))
    system[K, :K] = system[:K, K] = 1.0
    for _ in range(MAX_ITER):
        mixed = P @ w
        gradient = P.T @ (weight / mixed) + each / w
        scaled = P * (np.sqrt(weight) / mixed)[:, None]
        system[:K, :K] = -scaled.T @ scaled - np.diag(each / w**2)
        step = np.linalg.solve(system, np.append(-gradient, 0.0))[:K]
        falling = step < 0
        length = min(1.0, 0.95 * float((-w[falling] / step[falling]).min(initial=np.inf)))
        while length > 1e-12 and score(w + length * step) < value:
            length *= 0.5
        w = w + length * step
        gained, value = score(w) - value, score(w)
        if gained <= CALM * max(1.0, abs(value)):
            break
    return np.asarray(w / w.sum())
