"""PreparedView: products of a standardised view, taken tile by tile over its columns.

This is the only code that touches a wide view. The standardised matrix X has cells
(x - mean) / scale, minus what confounders explain; missing cells and samples with a missing view
are 0, which is the training mean. It exists one tile at a time, except for in-memory views of
moderate size, which are stored standardised because that makes repeated passes cheaper.

Precision
---------
Views up to 64 MB in float64 are worked on in float64. Wider ones are worked on in float32: tiles
are centred before they are rounded, BLAS multiplies tiles in float32, and sums over tiles are
kept in float64. Relative errors are then about 1e-6 of the largest entry of a product.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from baldur.core.state import Flags, Object, Text, stored
from baldur.exceptions import InputError
from baldur.views import standardised_blocks as standardised
from baldur.views.sources import ArraySource, SubsetSource
from baldur.views.standardised_blocks import Standardised, StandardisedArray

KEEP_LIMIT_BYTES = 1 << 29
"""In-memory float views up to this size (as float32) are stored standardised."""

DENSE_LIMIT_BYTES = 1 << 30


@dataclass(eq=False, repr=False)
class PreparedView:
    """A standardised view (n samples by D features), known through its products.

    Instances come from `Preparation.transform`. All products return float64.

    Shapes: absent (n_samples,).
    """

    kind: ClassVar[str] = "prepared view"

    name: str = stored(Text())
    absent: np.ndarray = stored(Flags("N"))
    cells: Standardised | StandardisedArray = stored(Object(StandardisedArray, Standardised))
    reads: list[int] = field(default_factory=list)
    """Columns of each reading since the view was prepared. Rows taken from it share the list, as do
    threads: to append is one step."""

    @property
    def shape(self) -> tuple[int, int]:
        """Number of samples and of features."""
        return len(self.absent), self.cells.shape[1]

    @property
    def dtype(self) -> np.dtype:
        """Precision of the products."""
        return self.cells.dtype

    @property
    def is_array(self) -> bool:
        """Whether the standardised cells are held as one array."""
        return isinstance(self.cells, StandardisedArray)

    def _tiles(
        self,
        width: int | None = None,
        weights: np.ndarray | None = None,
        columns: np.ndarray | None = None,
        exact: bool = False,
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield tiles as (columns, standardised cells), and count their columns as read.

        `weights` multiply the columns, `columns` are those to read (None: all), and `exact` is in
        float64.
        """
        self.reads.append(self.shape[1] if columns is None else len(columns))
        cells = self.cells.exact() if exact else self.cells
        return cells.tiles(width or self.cells.width(self.shape[0]), weights, columns)

    def _check(self, array: Any, shape: tuple[int | None, ...], what: str) -> np.ndarray:
        """Return an argument as float64, or refuse another shape; None stands for any length."""
        array = np.asarray(array, dtype=np.float64)
        wrong = array.ndim != len(shape) or any(
            want is not None and got != want for got, want in zip(array.shape, shape, strict=True)
        )
        if wrong:
            expected = tuple("k" if want is None else want for want in shape)
            raise InputError(
                f"View {self.name!r}: {what} must have shape {expected}, but its shape is "
                f"{array.shape}."
            )
        return array

    def project(self, A: Any) -> np.ndarray:
        """Return the product X^T A of the standardised view.

        Shapes: A (n_samples, k); returns (n_features, k).
        """
        A = self._check(A, (self.shape[0], None), "A")
        out = np.empty((self.shape[1], A.shape[1]))
        for cols, block in self.project_blocks(A):
            out[cols] = block
        return out

    def project_blocks(
        self, A: Any, gram: np.ndarray | None = None
    ) -> Iterator[tuple[slice, np.ndarray]]:
        """Yield X^T A by blocks of features, for uses that do not need all of it at once.

        X X^T is added to `gram`, if given, in place and from the same reading of the view.

        Shapes: A (n_samples, k), gram (n_samples, n_samples); yields a slice of columns and
        their block (n_columns, k).
        """
        A = self._check(A, (self.shape[0], None), "A").astype(self.dtype)
        for cols, tile in self._tiles():
            if gram is not None:
                gram += tile @ tile.T
            yield cols, tile.T @ A

    def apply(self, B: Any) -> np.ndarray:
        """Return the product X B of the standardised view.

        Shapes: B (n_features, k); returns (n_samples, k).
        """
        B = self._check(B, (self.shape[1], None), "B")
        out = np.zeros((self.shape[0], B.shape[1]))
        # Features without a weight need not be read.
        used = _worth_gathering(B.any(axis=1))
        if used is not None:
            B = B[used]
        for cols, tile in self._tiles(columns=used):
            out += tile @ B[cols].astype(self.dtype)
        return out

    def weighted_gram(self, s: Any = None) -> np.ndarray:
        """Return the weighted Gram matrix X diag(s) X^T.

        Shapes: s (n_features,); returns (n_samples, n_samples).
        """
        n = self.shape[0]
        gram = np.zeros((n, n))
        root, sign, peak, used = self._roots(s)
        for cols, tile in self._tiles(weights=root, columns=used):
            # One array times its own transpose is half the work for BLAS (syrk).
            gram += tile @ tile.T if sign is None else (tile * sign[cols]) @ tile.T
        return gram * peak

    def cross_gram(self, other: PreparedView, s: Any = None) -> np.ndarray:
        """Return the products X_other diag(s) X^T with other samples.

        Shapes: s (n_features,); returns (n_other, n_samples).
        """
        if other.shape[1] != self.shape[1]:
            raise InputError(
                f"View {self.name!r}: cross_gram needs the same features on both sides, but they "
                f"have {self.shape[1]} and {other.shape[1]}."
            )
        root, sign, peak, used = self._roots(s)
        width = self.cells.width(max(self.shape[0], other.shape[0]))
        gram = np.zeros((other.shape[0], self.shape[0]))
        ours = self._tiles(width, root, used)
        theirs = other._tiles(width, root, used)
        for (cols, tile), (_, other_tile) in zip(ours, theirs, strict=True):
            gram += other_tile @ (tile if sign is None else tile * sign[cols]).T
        return gram * peak

    def _roots(
        self, s: Any
    ) -> tuple[np.ndarray | None, np.ndarray | None, float, np.ndarray | None]:
        """Return root, sign, peak and columns, so that s = peak * sign * root^2.

        `sign` is None if no weight is negative, and `columns` are those with a weight other than 0
        if these are few, which root and sign then refer to; None for all.
        """
        if s is None:
            return None, None, 1.0, None
        s = self._check(s, (self.shape[1],), "s")
        # Dividing by the peak keeps extreme weights inside the range of float32.
        peak = float(np.abs(s).max(initial=0.0)) or 1.0
        if not np.isfinite(peak):
            raise InputError(f"View {self.name!r}: the weights s must be finite.")
        used = _worth_gathering(s != 0)
        if used is not None:
            s = s[used]
        sign = np.sign(s).astype(self.dtype) if (s < 0).any() else None
        return np.sqrt(np.abs(s) / peak), sign, peak, used

    def project_with_quadratics(
        self, A: Any, matrices: Sequence[Any]
    ) -> tuple[np.ndarray, np.ndarray]:
        """Return (X^T A)^T and x_d^T M x_d for several M, from one reading of the view.

        Shapes: A (n_samples, k), each matrix M (n_samples, n_samples); returns projected
        (k, n_features), quadratics (n_matrices, n_features).
        """
        n = self.shape[0]
        A = self._check(A, (n, None), "A").astype(self.dtype)
        Ms = [self._check(M, (n, n), "M").astype(self.dtype) for M in matrices]
        projected = np.empty((A.shape[1], self.shape[1]))
        quadratics = np.empty((len(Ms), self.shape[1]))
        for cols, tile in self._tiles():
            projected[:, cols] = A.T @ tile
            for out, M in zip(quadratics, Ms, strict=True):
                product = M @ tile
                product *= tile
                out[cols] = product.sum(axis=0, dtype=np.float64)
        return projected, quadratics

    def columns(self, idx: Any) -> np.ndarray:
        """Return chosen columns, standardised, as float64 of shape (n_samples, len(idx))."""
        index = np.arange(self.shape[1])[np.asarray(idx)].reshape(-1)
        out = np.empty((self.shape[0], len(index)))
        for cols, tile in self._tiles(columns=index, exact=True):
            out[:, cols] = tile
        return out

    def dense(self, max_bytes: int = DENSE_LIMIT_BYTES) -> np.ndarray:
        """Return the whole standardised matrix as float64, or refuse when it is too large."""
        n, d = self.shape
        if n * d * 8 > max_bytes:
            raise InputError(
                f"View {self.name!r}: {n:,} x {d:,} cells need {n * d * 8 / 2**30:.1f} GB as "
                f"float64, above the limit of {max_bytes / 2**30:.1f} GB. Use project, apply, "
                "weighted_gram or columns, which read the view piece by piece, or raise max_bytes."
            )
        out = np.empty((n, d))
        for cols, tile in self._tiles(exact=True):
            out[:, cols] = tile
        return out

    def take_rows(self, rows: Any) -> PreparedView:
        """Return chosen samples with the same statistics; nothing wide is copied."""
        index = np.arange(self.shape[0])[np.asarray(rows)].reshape(-1)
        return PreparedView(self.name, self.absent[index], self.cells.take_rows(index), self.reads)

    def __repr__(self) -> str:
        n, d = self.shape
        how = "stored" if self.is_array else "by blocks"
        return f"PreparedView({self.name!r}, {n:,} samples, {d:,} features, {self.dtype}, {how})"


def passes(views: Sequence[PreparedView]) -> float:
    """Return how often the views were read since they were prepared, weighted by width.

    A product with every column is one pass; gathering a few columns is a small part of one.
    Rows taken from a view count with it.
    """
    total = sum(view.shape[1] for view in views)
    return sum(sum(view.reads) for view in views) / total if total else 0.0


def _worth_gathering(used: np.ndarray) -> np.ndarray | None:
    """Return the indices of the used columns if gathering them beats reading all, else None."""
    index = np.flatnonzero(used)
    return index if len(index) < 0.5 * len(used) else None


def prepare_view(cells: Standardised) -> PreparedView:
    """Return products over `cells`, stored as one array where that is safe and faster.

    Small views of any storage but int8, sparse and lazy are stored; so are larger in-memory ones
    up to 512 MB as float32. A memory-mapped view of that size is worked on by blocks, so
    processes that share it do not each copy it.
    """
    n, d = cells.shape
    # Of what kind the cells are stored, whichever rows are chosen of them.
    base = cells.source.base if isinstance(cells.source, SubsetSource) else cells.source
    size = n * d * cells.dtype.itemsize
    limit = KEEP_LIMIT_BYTES if cells.source.in_memory else standardised.FLOAT64_LIMIT_BYTES
    if not isinstance(base, ArraySource) or cells.source.dtype == np.int8 or size > limit:
        return PreparedView(cells.name, cells.absent, cells)
    array: np.ndarray | None = None
    for cols, tile in cells.tiles(cells.width(n)):
        if array is None:
            array = np.empty((n, d), cells.dtype, order="F" if tile.flags.fnc else "C")
        array[:, cols] = tile
    if array is None:
        array = np.empty((n, d), dtype=cells.dtype)
    return PreparedView(cells.name, cells.absent, StandardisedArray(array))
