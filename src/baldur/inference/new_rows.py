"""Rows of prepared views in the forms that posteriors ask for: columns, inner products, blocks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Index = list[NDArray[np.intp]]
Views = Sequence[PreparedView]


class Cross(NamedTuple):
    """New rows by view: inner products (n, N) with the training rows and (n,) with themselves."""

    grams: list[Array]
    own: list[Array]


class NewRows:
    """New rows in the forms that Gaussians ask for; each form is made once."""

    def __init__(self, views: Views) -> None:
        self.views = list(views)
        self._columns: dict[int, Array] = {}
        self._cross: dict[int, Cross] = {}

    @cached_property
    def absent(self) -> Array:
        """1 where a row lacks a view, (n, M)."""
        return absent_matrix(self.views)

    def columns(self, index: Index) -> Array:
        """Return chosen columns side by side, (n, L)."""
        if id(index) not in self._columns:
            self._columns[id(index)] = gather(self.views, index)
        return self._columns[id(index)]

    def cross(self, train: Views) -> Cross:
        """Return inner products with training rows and with themselves, by view."""
        if id(train) not in self._cross:
            self._cross[id(train)] = Cross(
                [old.cross_gram(new) for old, new in zip(train, self.views, strict=True)],
                [squares(new) for new in self.views],
            )
        return self._cross[id(train)]


def squares(view: PreparedView) -> Array:
    """Return |x_n|^2 of every row, (n,), a few rows at a time."""
    out = np.empty(view.shape[0])
    for start in range(0, len(out), 256):
        rows = np.arange(start, min(start + 256, len(out)))
        out[rows] = np.diag(view.take_rows(rows).weighted_gram())
    return out


def gather(views: Views, index: Index) -> Array:
    """Return chosen columns of every view side by side, (n, L) float64."""
    return np.concatenate(
        [view.columns(columns) for view, columns in zip(views, index, strict=True)], axis=1
    )


def absent_matrix(views: Views) -> Array:
    """Return the (n, M) matrix that is 1 where a sample lacks a view."""
    return np.stack([view.absent for view in views], axis=1).astype(float)
