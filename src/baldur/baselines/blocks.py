"""Prepared views as baselines read them: products, dense copies, features from Gram matrices.

A method that is ridge-like in each view sees the view only through ``K = X X'``. With the
eigendecomposition ``K = U S^2 U'`` every reduction of a view is a pair of n x r matrices:

- ``features`` F, what the method is trained on;
- ``lift`` L, with ``W = X' L W_F`` turning weights on F into weights on the columns of X, so that
  new rows need neither the training rows nor a loading matrix.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.core.parameters import Constraint, is_number, one_of, optional
from baldur.core.types import Array
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.views.prepared_view import PreparedView

COLUMN_BLOCK = 8192
"""Number of columns that are standardised at a time while a dense copy is filled."""


@dataclass(frozen=True)
class Block:
    """One prepared view times a constant (the block scaling), read only through products."""

    view: PreparedView
    preparation: Preparation
    factor: float = 1.0

    @property
    def name(self) -> str:
        """Name of the view."""
        return self.view.name

    @property
    def width(self) -> int:
        """Number of columns after the preparation."""
        return int(self.view.shape[1])

    def over_input(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of prepared columns (first axis) over all columns of the input."""
        return np.ascontiguousarray(self.preparation.expand(self.name, values.T).T)

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the columns of the input (first axis) for the prepared columns."""
        columns = self.preparation.columns_[self.name]
        return values if len(columns) == len(values) else values[columns]

    def mask(self, value: bool) -> NDArray[np.bool_]:
        """Return a mask of the columns of the input: `value` where they are prepared."""
        return self.over_input(np.full(self.width, value))

    @property
    def rtol(self) -> float | None:
        """Relative rounding of `gram`: views too wide for float64 are multiplied in float32."""
        return 1e-6 if self.view.dtype == np.float32 else None

    def gram(self) -> Array:
        """Return the Gram matrix ``X X'`` (n, n)."""
        return self.factor**2 * np.asarray(self.view.weighted_gram())

    def project(self, A: Array) -> Array:
        """Return the product ``X'A`` (D, k)."""
        return self.factor * np.asarray(self.view.project(A))

    def weights(self, A: Array) -> Array:
        """Return the weights ``X'A`` over the columns of the input (D of the input, k)."""
        return self.over_input(self.project(A))

    def apply(self, B: Array) -> Array:
        """Return the product ``X B`` (n, k)."""
        return self.factor * np.asarray(self.view.apply(B))

    def predict(self, coef: NDArray[Any]) -> Array:
        """Return ``X B`` (n, k) for weights over the columns of the input (D, k)."""
        return self.apply(self.take(coef))

    def columns(self, idx: NDArray[np.intp]) -> Array:
        """Return the columns ``idx`` as a dense array (n, len(idx))."""
        return self.factor * np.asarray(self.view.columns(idx))

    def column_blocks(self) -> Iterator[tuple[slice, Array]]:
        """Yield all columns as dense arrays, a block at a time."""
        for start in range(0, self.width, COLUMN_BLOCK):
            stop = min(start + COLUMN_BLOCK, self.width)
            yield slice(start, stop), self.columns(np.arange(start, stop))

    def row_norms(self) -> Array:
        """Return the squared length of each row (n,)."""
        total = np.zeros(self.view.shape[0])
        for _, part in self.column_blocks():
            total += np.einsum("ij,ij->i", part, part)
        return total


# -- all views side by side ------------------------------------------------------------------


def total_width(blocks: list[Block]) -> int:
    """Return the number of columns of all views."""
    return sum(b.width for b in blocks)


def available_memory() -> int | None:
    """Return the bytes available without swapping; None where the system does not say.

    Systems without /proc/meminfo give the size of the memory instead.
    """
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(needed: float, shape: tuple[int, int], method: str, advice: str) -> None:
    """Raise an InputError with the figures where a fit needs more memory than there is."""
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{method} on {shape[0]} rows and {shape[1]:,} features needs about "
            f"{needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are available. {advice}"
        )


def dense_concatenation(blocks: list[Block], dtype: Any, method: str) -> NDArray[Any]:
    """Return all views side by side as one dense standardised array (n, D) of ``dtype``.

    Columns are contiguous: trees read them one at a time, up to twice as fast on wide data.
    """
    n, D = blocks[0].view.shape[0], total_width(blocks)
    check_memory(
        float(n) * D * np.dtype(dtype).itemsize,
        (n, D),
        method,
        "Use fewer features: an l1 baseline, or a filter that is learned from the training rows.",
    )
    out = np.empty((n, D), dtype=dtype, order="F")
    # Slices of `out`, which are written in place.
    for b, out_of_view in zip(blocks, split_columns(out, blocks), strict=True):
        for cols, part in b.column_blocks():
            out_of_view[:, cols] = part
    return out


def split_columns(values: NDArray[Any], blocks: list[Block]) -> list[NDArray[Any]]:
    """Return an array over all columns (last axis) as one array per view."""
    return np.split(values, np.cumsum([b.width for b in blocks])[:-1], axis=-1)


def gather_columns(blocks: list[Block], idx: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the columns ``idx`` (sorted, counted over all views) as one dense array."""
    starts = np.cumsum([0] + [b.width for b in blocks])[:-1]
    parts = np.split(idx, np.searchsorted(idx, starts[1:]))
    return np.hstack([b.columns(p - s) for b, p, s in zip(blocks, parts, starts, strict=True)])


def project_all(blocks: list[Block], A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X'A`` over all views, stacked (D, k)."""
    return np.vstack([b.project(A) for b in blocks])


# -- features from Gram matrices -------------------------------------------------------------

REDUCTION = optional(one_of("pca", "linear_kernel"))
"""Constraint of the argument ``reduction``; None keeps all information."""
COMPONENTS = Constraint(
    lambda v: v is None or (v == "n-1" if isinstance(v, str) else is_number(v, 0) and v > 0),
    "a positive count, a share of variance in (0, 1), 'n-1' or None",
)
"""Constraint of the argument ``n_components`` of a reduction."""


def count_components(n_components: Any, singular: Array, n: int) -> int:
    """Return the number of components for a count, "n-1", a share of variance, or None (all)."""
    rank = len(singular)
    if n_components is None or n_components == "n-1":
        return min(rank, n - 1)
    if n_components < 1:
        explained = np.cumsum(singular**2) / max(float(np.sum(singular**2)), np.finfo(float).tiny)
        return min(rank, int(np.searchsorted(explained, n_components - 1e-12)) + 1)
    return min(rank, int(n_components))


def gram_eigh(gram: Array, rtol: float | None = None) -> tuple[Array, Array]:
    """Return eigenvectors and singular values of X from G = X X^T, largest first.

    Eigenvalues below `rtol` times the largest count as zero and are left out.

    Shapes: gram (n, n); returns U (n, r), S (r,).
    """
    values, vectors = np.linalg.eigh((gram + gram.T) / 2)
    values, vectors = values[::-1], vectors[:, ::-1]
    if rtol is None:
        rtol = len(values) * np.finfo(np.float64).eps
    keep = values > rtol * max(float(values[0]), 0.0)
    U = vectors[:, keep]
    if U.shape[1]:
        # A fixed sign, so that the result does not depend on the LAPACK in use.
        peak = np.abs(U).argmax(axis=0)
        U = U * np.sign(U[peak, np.arange(U.shape[1])])
    return U, np.sqrt(values[keep])


def reduce_gram(
    K: Array, reduction: str | None = None, components: Any = 0.95, *, rtol: float | None = None
) -> tuple[Array, Array]:
    """Return features F of one view, and the lift L, from its training Gram matrix ``K = X X'``.

    A method is trained on F; weights W on F are the weights ``X' L W`` on the columns of the view.

    Shapes: K (n, n); returns F (n, r) and L (n, r).
    """
    U, s = gram_eigh(K, rtol)
    return _reduce(U, s, float(np.trace(K)), reduction, components)


def reduce_block(
    block: Block, reduction: str | None = None, components: Any = 0.95
) -> tuple[Array, Array]:
    """Return the features and the lift of one view, from whichever of its two products is smaller.

    The result is that of `reduce_gram`, up to rounding and the signs of components. A view with
    fewer columns than rows needs the eigenvectors V of ``X'X`` alone, because ``U S = X V``.
    """
    n, D = block.view.shape
    if not 0 < D < n or block.rtol is not None:
        return reduce_gram(block.gram(), reduction, components, rtol=block.rtol)
    X = block.columns(np.arange(D))
    # As many multiples of the machine precision count as zero as for the Gram matrix.
    V, s = gram_eigh(X.T @ X, n * np.finfo(np.float64).eps)
    return _reduce((X @ V) / s, s, float(np.sum(X**2)), reduction, components)


def _reduce(
    U: Array, s: Array, trace: float, reduction: str | None, components: Any
) -> tuple[Array, Array]:
    """Return features and lift as `reduce_gram`, from ``K = U S^2 U'`` and the trace of K."""
    n = len(U)
    if reduction == "linear_kernel":
        c = max(trace / n, np.finfo(np.float64).tiny)
        # K/c = U (s^2/c) U'; weights on the rotated features reach X through X' U / c.
        return U * (s**2 / c), U / c
    q = len(s) if reduction is None else count_components(components, s, n)
    return U[:, :q] * s[:q], U[:, :q] / s[:q]
