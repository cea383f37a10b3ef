"""The dual posterior q(A) with the dimensions restored that the paper leaves out.

The weights are w_k = Lambda^-1 X~^T a_k plus an independent part outside the span of
Lambda^-1 X~^T, which keeps its prior variance:

    q(w_k) = N(B <c_k>, B diag(1/(tau S + delta_k)) B^T + (Lambda^-1 - B B^T)/delta_k),

where B = Lambda^-1 X~^T E is a basis of that span with B^T Lambda B = I. Every dimension of the
prior then has a dimension of the posterior, so the functional is a bound of the same evidence as
in the primal form, and features, views and factors are dropped by the same rule. With all rows as
relevance vectors X~ it is the exact posterior. With fewer it is the best one of this form, and the
bound subtracts tau/2 tr(X Lambda^-1 X^T - X B B^T X^T)/delta_k for what the rows have outside the
span, as in variational sparse Gaussian processes (Titsias, 2009).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from baldur.paper.meanfield.products import ViewProducts
from baldur.paper.meanfield.weights import Spectrum
from baldur.types import Array, IntArray

RANK_TOLERANCE = 1e-12
"""Directions of X~ Lambda^-1 X~^T below this share of the largest keep their prior variance."""
AUTO_RESIDUAL = 0.01
"""Share of the trace of the kernel that automatic relevance vectors may leave unexplained. In the
four cases of ``docs/understand/paper.md`` the AUC is then within 0.01 of that with all rows."""


def spectrum_dual(
    view: ViewProducts,
    index: IntArray,
    gamma: Array,
    weight: Array,
    relevance: IntArray,
    norms: Array,
) -> Spectrum:
    """Basis of the span of Lambda^-1 X~^T: E^T (X~ Lambda^-1 X~^T) E = I, (X B)^T (X B) = S.

    Departure from the paper: it has W^T = X~^T A, without the prior variances Lambda^-1. Weights
    of that form cannot be sparse, for a row of X~ is not.

    Shapes: index (d,), gamma (d,), weight (N,), relevance (r,), norms (d,).
    """
    inverse = np.zeros(view.shape[1])
    inverse[index] = 1.0 / gamma
    cross = view.weighted_gram(inverse)[:, relevance]  # X Lambda^-1 X~^T
    size, P = eigh(cross[relevance])
    positive = size > RANK_TOLERANCE * max(size.max(initial=0.0), np.finfo(float).tiny)
    T = P[:, positive] / np.sqrt(size[positive])
    scores = cross @ T
    S, Q = eigh(scores.T @ (weight[:, None] * scores))
    left = np.zeros((view.shape[0], S.size))
    left[relevance] = T @ Q
    S = np.maximum(S, 0.0)
    return Spectrum(
        index=index,
        scores=scores @ Q,
        S=S,
        n_null=index.size - S.size,
        outside=max(float(norms @ (1.0 / gamma) - S.sum()), 0.0),
        logdet=-float(np.log(gamma).sum()),
        basis=None,
        left=left,
        scale=1.0 / gamma,
        null_scale=1.0 / gamma,
    )


def choose_relevance_vectors(kernel: Array, most: int | None = None) -> IntArray:
    """Choose rows that span a kernel, by pivoted Cholesky decomposition.

    Each step takes the row that the rows before it explain least.

    Shapes: kernel (N, N); returns (r,).
    """
    left = np.diag(kernel).astype(float).copy()
    total = left.sum()
    stop = (AUTO_RESIDUAL if most is None else RANK_TOLERANCE) * total
    limit = kernel.shape[0] if most is None else most
    factor = np.zeros((kernel.shape[0], limit))
    chosen: list[int] = []
    while len(chosen) < limit and left.sum() > stop:
        n, k = int(np.argmax(left)), len(chosen)
        column = (kernel[:, n] - factor[:, :k] @ factor[n, :k]) / np.sqrt(left[n])
        factor[:, k] = column
        left = np.maximum(left - column**2, 0.0)
        left[n] = 0.0
        chosen.append(n)
    return np.sort(np.array(chosen, dtype=np.intp))
