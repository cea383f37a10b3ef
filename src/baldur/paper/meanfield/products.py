"""The few products the mean-field family asks of a view, and their dense in-memory form."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

COLUMN_BLOCK = 4096
"""Columns read at once when a pass over all features is needed."""


class ViewProducts(Protocol):
    """What a standardised N x D view must offer (``PreparedView`` does)."""

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""

    def weighted_gram(self, s: Array) -> Array:
        """X diag(s) X^T, (N, N)."""

    def columns(self, idx: Any) -> Array:
        """Read the columns ``idx`` as a dense (N, len(idx)) array."""


class DenseView:
    """A standardised N x D array in memory."""

    def __init__(self, X: Any) -> None:
        self.X = np.asarray(X, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """N and D."""
        return self.X.shape[0], self.X.shape[1]

    def weighted_gram(self, s: Array) -> Array:
        """X diag(s) X^T over the columns where ``s`` is not zero."""
        used = np.flatnonzero(s)
        X = self.X if used.size == s.size else self.X[:, used]
        half = X * np.sqrt(s[used])
        return half @ half.T

    def columns(self, idx: Any) -> Array:
        """Read the columns ``idx``."""
        return self.X[:, idx]


def as_products(X: Any) -> ViewProducts:
    """Wrap an array; pass through an object that already offers the products."""
    if hasattr(X, "weighted_gram") and hasattr(X, "columns"):
        return X
    return DenseView(X)


def blocks(index: NDArray[np.intp], size: int = COLUMN_BLOCK) -> list[NDArray[np.intp]]:
    """Cut an index array into consecutive blocks."""
    return [index[i : i + size] for i in range(0, index.size, size)]


def squared_norms(view: ViewProducts, weight: Array) -> Array:
    """sum_n s_n x_nd^2 for every feature, (D,), reading one block of columns at a time."""
    out = np.empty(view.shape[1])
    for block in blocks(np.arange(view.shape[1])):
        out[block] = weight @ view.columns(block) ** 2
    return out


def project(view: ViewProducts, A: Array) -> Array:
    """X^T A, (D, k), reading one block of columns at a time."""
    out = np.empty((view.shape[1], A.shape[1]))
    for block in blocks(np.arange(view.shape[1])):
        out[block] = view.columns(block).T @ A
    return out


def apply(view: ViewProducts, B: Array, index: NDArray[np.intp]) -> Array:
    """X[:, index] B, (N, k), reading one block of columns at a time; ``B`` is (len(index), k)."""
    out = np.zeros((view.shape[0], B.shape[1]))
    for i in range(0, index.size, COLUMN_BLOCK):
        out += view.columns(index[i : i + COLUMN_BLOCK]) @ B[i : i + COLUMN_BLOCK]
    return out
