"""The few products that the posterior asks of a view, and how they are computed in memory.

A view may be far wider than what the posterior works on. `SelectedColumns` therefore holds the
columns of the selected features in memory, and the whole view is read only by
`column_statistics`, once per fit.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from baldur.types import Array, IntArray

COLUMN_BLOCK = 4096
"""Columns read at once when a pass over all features is needed."""
HELD_BYTES = 1 << 29
"""Selected columns of a view are held in memory up to this size, as float64."""


class ViewProducts(Protocol):
    """What a standardised N x D view must offer (`PreparedView` does)."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and of features D."""

    def weighted_gram(self, s: Array) -> Array:
        """Return X diag(s) X^T, (N, N)."""

    def columns(self, idx: Any) -> Array:
        """Return the columns `idx` as a dense (N, len(idx)) array."""


class DenseView:
    """A standardised N x D array in memory."""

    def __init__(self, X: Any) -> None:
        self.X = np.asarray(X, dtype=np.float64)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and of features D."""
        return self.X.shape[0], self.X.shape[1]

    def weighted_gram(self, s: Array) -> Array:
        """Return X diag(s) X^T over the columns where `s` is not zero."""
        used = np.flatnonzero(s)
        return _gram(self.X if used.size == s.size else self.X[:, used], s[used])

    def columns(self, idx: Any) -> Array:
        """Return the columns `idx` as an (N, len(idx)) array."""
        return self.X[:, idx]


class SelectedColumns:
    """A view that holds the columns last asked for by `hold`, and reads all others."""

    def __init__(self, view: ViewProducts) -> None:
        self.view = view
        self._place = np.full(view.shape[1], -1, dtype=np.int32)
        self._held = np.zeros((view.shape[0], 0))

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples N and of features D."""
        return self.view.shape

    def hold(self, index: IntArray) -> None:
        """Read the columns `index` into memory, unless they are there or are too many."""
        if (self._place[index] >= 0).all() or 8 * self.shape[0] * index.size > HELD_BYTES:
            return
        held = self.view.columns(index)
        self._place[:] = -1
        self._place[index] = np.arange(index.size)
        self._held = held

    def _find(self, index: IntArray) -> IntArray | None:
        """Return where the columns `index` are held, or None where one of them is not."""
        place: IntArray = self._place[index].astype(np.intp)
        return place if (place >= 0).all() else None

    def weighted_gram(self, s: Array) -> Array:
        """Return X diag(s) X^T, (N, N)."""
        used = np.flatnonzero(s)
        place = self._find(used)
        return self.view.weighted_gram(s) if place is None else _gram(self._held[:, place], s[used])

    def columns(self, idx: Any) -> Array:
        """Return the columns `idx` as a dense (N, len(idx)) array."""
        place = self._find(np.asarray(idx))
        return self.view.columns(idx) if place is None else self._held[:, place]


def _gram(X: Array, s: Array) -> Array:
    half = X * np.sqrt(s)
    return half @ half.T


def as_products(X: Any) -> ViewProducts:
    """Wrap an array; pass through an object that already offers the products."""
    if hasattr(X, "weighted_gram") and hasattr(X, "columns"):
        return X
    return DenseView(X)


def hold(view: ViewProducts, index: IntArray) -> None:
    """Store the columns `index` in memory if the view supports it."""
    if isinstance(view, SelectedColumns):
        view.hold(index)


def blocks(index: IntArray, size: int = COLUMN_BLOCK) -> list[IntArray]:
    """Cut an index array into consecutive blocks."""
    return [index[i : i + size] for i in range(0, index.size, size)]


def column_statistics(view: ViewProducts, weight: Array, A: Array) -> tuple[Array, Array]:
    """Return sum_n s_n x_nd^2, (D,), and X^T A, (D, k), from one pass over the columns."""
    norms, scores = np.empty(view.shape[1]), np.empty((view.shape[1], A.shape[1]))
    for block in blocks(np.arange(view.shape[1])):
        X = view.columns(block)
        scores[block] = X.T @ A
        norms[block] = weight @ X**2
    return norms, scores


def apply(view: ViewProducts, B: Array, index: IntArray) -> Array:
    """Return X[:, index] B, (N, k), reading one block of columns at a time."""
    out = np.zeros((view.shape[0], B.shape[1]))
    for i in range(0, index.size, COLUMN_BLOCK):
        out += view.columns(index[i : i + COLUMN_BLOCK]) @ B[i : i + COLUMN_BLOCK]
    return out


def quadratic(view: ViewProducts, scale: Array, index: IntArray) -> Array:
    """Return sum_d x_nd^2 scale_d over the features `index`, (N,)."""
    out = np.zeros(view.shape[0])
    for i in range(0, index.size, COLUMN_BLOCK):
        out += view.columns(index[i : i + COLUMN_BLOCK]) ** 2 @ scale[i : i + COLUMN_BLOCK]
    return out
