"""The Gram trick: principal components and linear kernels of wide views, in sample space.

With G = X X^T = U S^2 U^T, the scores of the training samples are U S and a new row z maps to
(z X^T) U S^-1. Nothing of size D x D is formed and no loadings are stored; new rows are compared
with the training rows by one pass over the columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.views.products import PreparedView

__all__ = ["GramPCA", "gram_eigh"]


def gram_eigh(gram: np.ndarray, rtol: float | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvectors and singular values of X from G = X X^T, largest first.

    Parameters
    ----------
    gram : ndarray of shape (n, n)
        Symmetric and positive semi-definite up to rounding.
    rtol : float, optional
        Eigenvalues below `rtol` times the largest count as zero. Default: n times the machine
        precision of float64.

    Returns
    -------
    U : ndarray of shape (n, r)
        The sign of each vector is such that its entry of largest magnitude is positive.
    S : ndarray of shape (r,)
        Square roots of the eigenvalues that are not zero.
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


class GramPCA:
    """Principal components of one prepared view through its Gram matrix.

    Parameters
    ----------
    view : PreparedView
        Training rows. It is kept for mapping new rows; wide views are not copied.
    n_components : int or float, optional
        Number of components, or the share of variance to reach (between 0 and 1). Default:
        all, at most n - 1 for a centred view, which loses nothing for a method that does not
        depend on rotation.

    Attributes
    ----------
    gram : ndarray of shape (n, n)
        X X^T.
    U : ndarray of shape (n, r)
    S : ndarray of shape (r,)
        Singular values of X, largest first.

    Notes
    -----
    Components below the rounding of the working precision are dropped: 1e-6 of the largest
    eigenvalue when the view is worked on in float32.
    """

    def __init__(self, view: PreparedView, n_components: int | float | None = None) -> None:
        self.view = view
        self.gram = view.weighted_gram()
        U, S = gram_eigh(self.gram, 1e-6 if view.dtype == np.float32 else None)
        r = _how_many(n_components, S)
        self.U, self.S = U[:, :r], S[:r]

    @property
    def scores(self) -> np.ndarray:
        """Scores U S of the training samples, shape (n, r)."""
        return self.U * self.S

    def kernel(self, new: PreparedView) -> np.ndarray:
        """Return Z X^T between new rows Z and the training rows, shape (n_new, n)."""
        return self.view.cross_gram(new)

    def transform(self, new: PreparedView) -> np.ndarray:
        """Return the scores (Z X^T) U S^-1 of new rows, shape (n_new, r)."""
        return self.from_kernel(self.kernel(new))

    def from_kernel(self, kernel: np.ndarray) -> np.ndarray:
        """Return scores from Z X^T when it is already known."""
        return np.asarray(kernel @ (self.U / self.S))

    def coef(self, weights: Any) -> np.ndarray:
        """Return weights on the features from weights on the scores: X^T U S^-1 weights.

        Parameters
        ----------
        weights : array of shape (r,) or (r, k)

        Returns
        -------
        ndarray of shape (n_features,) or (n_features, k)
            On the standardised columns, made in one pass.
        """
        weights = np.asarray(weights, dtype=np.float64)
        dual = (self.U / self.S) @ weights
        return self.view.project(dual[:, None])[:, 0] if dual.ndim == 1 else self.view.project(dual)


def _how_many(n_components: int | float | None, S: np.ndarray) -> int:
    if n_components is None:
        return len(S)
    if isinstance(n_components, (int, np.integer)) and n_components >= 1:
        return min(int(n_components), len(S))
    if isinstance(n_components, (float, np.floating)) and 0 < n_components < 1:
        share = np.cumsum(S**2) / np.sum(S**2) if len(S) else np.zeros(0)
        return min(int(np.searchsorted(share, n_components)) + 1, len(S))
    raise InputError(
        "n_components must be None, a whole number of at least 1, or a share of variance "
        f"between 0 and 1, but got {n_components!r}."
    )
