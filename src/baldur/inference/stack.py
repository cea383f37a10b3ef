"""Stacking: how much each member counts, from what it predicted for rows it had not seen."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

PRIOR_COUNT = 2.0
"""Rows' worth of prior spread evenly over the members: Dirichlet(1 + 2/K). Keeps weights that the
data hardly determine near equal, and none at exactly zero."""
MAX_ITER, CALM = 100, 1e-10


def stacking_weights(density: Array, weight: Array) -> Array:
    """Return weights on the simplex that maximise the held-out log score, (K,).

    F(w) = sum_n weight_n ln sum_k w_k p_k(t_n) + (2/K) sum_k ln w_k, concave with its maximum
    inside the simplex, climbed by Newton steps along it.

    Parameters
    ----------
    density : (n, K) array
        What each member predicted for each held-out outcome.
    weight : (n,) array
        How much each outcome counts.
    """
    K = density.shape[1]
    each = PRIOR_COUNT / K
    # Only ratios of a row's densities matter.
    P = np.maximum(density, 1e-300) / np.maximum(density.max(axis=1, keepdims=True), 1e-300)

    def score(w: Array) -> float:
        return float(weight @ np.log(P @ w) + each * np.log(w).sum())

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
