"""The exact posterior q(W): a d x d eigendecomposition, or its equal from the sample side.

Both return the same `Spectrum` up to rounding. The sample side follows from Woodbury's identity:
with X Lambda^-1 X^T = U S U^T the basis is B = Lambda^-1 X^T U S^(-1/2), and the d - r dimensions
outside it keep their prior variance 1/(delta_k gamma_d).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import eigh

from baldur.paper.meanfield.products import ViewProducts
from baldur.paper.meanfield.weights import Spectrum
from baldur.types import Array, IntArray

RANK_TOLERANCE = 1e-13
"""Eigenvalues of the Gram matrix below this share of the largest count as zero."""


def spectrum_features(view: ViewProducts, index: IntArray, gamma: Array, weight: Array) -> Spectrum:
    """Basis from the d x d side: Lambda^(-1/2) X^T diag(s) X Lambda^(-1/2) = Q S Q^T.

    Shapes: index (d,), gamma (d,), weight (N,).
    """
    root = 1.0 / np.sqrt(gamma)
    X = view.columns(index) * root
    S, Q = eigh(X.T @ (weight[:, None] * X))
    return Spectrum(
        index=index,
        scores=X @ Q,
        S=np.maximum(S, 0.0),
        n_null=0,
        outside=0.0,
        logdet=-float(np.log(gamma).sum()),
        basis=root[:, None] * Q,
        left=np.zeros((view.shape[0], 0)),
        scale=np.ones(index.size),
        null_scale=np.zeros(index.size),
    )


def spectrum_samples(view: ViewProducts, index: IntArray, gamma: Array, weight: Array) -> Spectrum:
    """Basis from the N x N side: diag(s)^(1/2) X Lambda^-1 X^T diag(s)^(1/2) = U S U^T.

    Same parameters as `spectrum_features`; never forms a d x d matrix.
    """
    inverse = np.zeros(view.shape[1])
    inverse[index] = 1.0 / gamma
    gram = view.weighted_gram(inverse)
    root = np.sqrt(weight)
    S, U = eigh(root[:, None] * gram * root)
    positive = RANK_TOLERANCE * max(S[-1], np.finfo(float).tiny) < S
    S, U = S[positive], U[:, positive]
    left = root[:, None] * U / np.sqrt(S)
    return Spectrum(
        index=index,
        scores=gram @ left,
        S=S,
        n_null=index.size - S.size,
        outside=0.0,
        logdet=-float(np.log(gamma).sum()),
        basis=None,
        left=left,
        scale=1.0 / gamma,
        null_scale=1.0 / gamma,
    )


def spectrum_primal(view: ViewProducts, index: IntArray, gamma: Array, weight: Array) -> Spectrum:
    """Build the exact posterior's basis from whichever side is smaller."""
    if index.size > view.shape[0]:
        return spectrum_samples(view, index, gamma, weight)
    return spectrum_features(view, index, gamma, weight)
