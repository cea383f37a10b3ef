"""Eigenvectors and singular values of a wide matrix from its Gram matrix, in sample space."""

from __future__ import annotations

import numpy as np


def gram_eigh(gram: np.ndarray, rtol: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvectors and singular values of X from G = X X^T, largest first.

    Shapes: gram (n, n); returns U (n, r), S (r,).
    """
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    if rtol is None:
        rtol = len(values) * np.finfo(np.float64).eps
    keep = values > rtol * max(float(values[0]), 0.0)
    U = vectors[:, keep]
    if U.shape[1]:
        peak = np.abs(U).argmax(axis=0)
        U = U * np.sign(U[peak, np.arange(U.shape[1])])
    return U, np.sqrt(values[keep])
