"""Submodels with a number of features for each view, from a path that was made before.

A submodel path gives the projection onto any of its features, not only onto the first ones: with
z = R^-T u as in `baldur.inference.submodel_path`, u = R^T z and Sigma = R^T R are known for all
features of the path, and the features S have R_S^T R_S = Sigma_SS and z_S = R_S^-T u_S. So a number
of features for each view needs no second fit: of every view its first features are taken, in the
order of the path, in every fold.

Shapes: F folds, C outputs, K features of the path, M views.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import linalg

from baldur.core.types import IntArray, Mask
from baldur.inference.final_predictor import submodel_predictor
from baldur.inference.fit_context import FitContext
from baldur.inference.inner_folds import FoldBatch
from baldur.inference.path_search import Basis
from baldur.inference.shared_factors import share_factors
from baldur.inference.submodel_path import (
    SIZES,
    MakeRecords,
    SubmodelPath,
    entering_columns,
    moments_at,
)
from baldur.inference.submodels import Submodel

STORED = 64
"""Columns of a path that are stored for submodels per view: a few megabytes for forty folds."""


def first_columns(path: SubmodelPath, limit: int) -> SubmodelPath:
    """Return the path cut after so many columns, without what only a projection needs."""
    basis = path.basis
    length = []
    for f, ends in enumerate(basis.ends):
        within = ends[ends <= limit]
        # A category with more levels than that is kept whole.
        length.append(int(within[-1]) if len(within) else basis.whole_groups(f, 1))
    k = max(length, default=0)
    F, C = path.noise.shape
    cut = Basis(
        basis.order[:, :k].copy(),
        np.array(length, dtype=np.intp),
        np.zeros((F, C, 0, 0)),
        np.zeros((F, C, 0)),
        basis.R_inverse[:, :, : k + 1, : k + 1].copy(),
        [ends[ends <= size] for ends, size in zip(basis.ends, length, strict=True)],
    )
    mean, cov = path.mean[..., : k + 1].copy(), path.cov[..., : k + 1, : k + 1].copy()
    return SubmodelPath(cut, mean, cov, path.noise)


def with_columns(path: SubmodelPath, places: Sequence[IntArray]) -> SubmodelPath:
    """Return the path with some of its columns only."""
    basis = path.basis
    F, C = path.noise.shape
    length = np.array([len(at) for at in places], dtype=np.intp)
    K = int(length.max(initial=0))
    order = np.zeros((F, K), dtype=np.intp)
    R_inverse = np.zeros((F, C, K + 1, K + 1))
    mean, cov = np.zeros((F, C, K + 1)), np.zeros((F, C, K + 1, K + 1))
    for f, at in enumerate(places):
        k, size = len(at), int(basis.length[f])
        order[f, :k] = basis.order[f, at]
        for c in range(C):
            old = basis.R_inverse[f, c, : size + 1, : size + 1]
            R = linalg.solve_triangular(old[1:, 1:], np.eye(size))
            centre = -old[0, 1:] @ R
            # R_S: the triangle of the columns S of R.
            triangle = np.linalg.qr(R[:, at], mode="r")
            inverse = linalg.solve_triangular(triangle, np.eye(k))
            R_inverse[f, c, 0, 0] = old[0, 0]
            R_inverse[f, c, 0, 1 : k + 1] = -centre[at] @ inverse
            R_inverse[f, c, 1 : k + 1, 1 : k + 1] = inverse
            new = np.zeros((k + 1, size + 1))  # z_S = R_S^-T R_.S^T z
            new[0, 0] = 1.0
            new[1:, 1:] = inverse.T @ R[:, at].T
            mean[f, c, : k + 1] = new @ path.mean[f, c, : size + 1]
            cov[f, c, : k + 1, : k + 1] = new @ path.cov[f, c, : size + 1, : size + 1] @ new.T
    ends = [np.array([k], dtype=np.intp) for k in length]
    nothing = np.zeros((F, C, 0, 0)), np.zeros((F, C, 0))
    return SubmodelPath(Basis(order, length, *nothing, R_inverse, ends), mean, cov, path.noise)


@dataclass(frozen=True)
class _Columns:
    """View, feature and necessity of the columns of one path, (K,) arrays in its order."""

    owner: IntArray
    numbers: IntArray
    always: Mask

    @classmethod
    def of(cls, batch: FoldBatch, path: SubmodelPath, fold: int) -> _Columns:
        """Look up the columns of the path of one fold."""
        data = batch.data
        length = path.basis.length[fold]
        columns = batch.candidates[fold][path.basis.order[fold, :length]]
        numbers = columns if data.groups is None else data.groups[columns]
        always = np.zeros(len(columns), dtype=bool) if data.always is None else data.always[columns]
        return cls(data.owner[columns], numbers, always)

    def counts(self, n_views: int) -> IntArray:
        """Return how many features of each view count, (M,)."""
        counted = ~self.always
        first = np.unique(self.numbers[counted], return_index=True)[1]
        return np.bincount(self.owner[counted][first], minlength=n_views)

    def first_of_views(self, most: IntArray) -> IntArray:
        """Return the places of the first features of each view, and of those always in."""
        room = most.copy()
        taken: set[int] = set()
        places = []
        for place, (view, number) in enumerate(zip(self.owner, self.numbers, strict=True)):
            if not self.always[place] and number not in taken:
                if room[view] < 1:
                    continue
                room[view] -= 1
                taken.add(int(number))
            places.append(place)
        return np.array(places, dtype=np.intp)


@dataclass(frozen=True)
class StoredPath:
    """A submodel path on all rows and in every inner fold, cut to its first columns."""

    fit: FitContext
    path: SubmodelPath  # on all rows
    folds: Sequence[tuple[FoldBatch, SubmodelPath]]  # (FoldBatch, SubmodelPath)
    views: Mask  # (M,); views whose features the path may have
    complete: bool  # whether nothing was cut off
    make_records: MakeRecords
    n_factors: int  # latent factors behind several outputs

    @classmethod
    def of(
        cls,
        fit: FitContext,
        path: SubmodelPath,
        folds: Sequence[SubmodelPath],
        views: Mask,
        make_records: MakeRecords,
        n_factors: int,
        limit: int = STORED,
    ) -> StoredPath:
        """Cut a path on all rows, and those of the batches of folds, after so many columns."""
        cut = first_columns(path, limit)
        in_folds = [
            (batch, first_columns(own, limit))
            for batch, own in zip(fit.batches, folds, strict=True)
        ]
        complete = bool(cut.basis.length[0] == path.basis.length[0] < max(SIZES))
        return cls(fit, cut, in_folds, views, complete, make_records, n_factors)

    def available(self) -> IntArray:
        """Return how many features of each view the path has on all rows, (M,)."""
        columns = _Columns.of(self.fit.everyone, self.path, 0)
        return columns.counts(len(self.views))

    def missing(self, most: IntArray) -> IntArray:
        """Return the views that have more features than the path has, although asked for."""
        wanted = np.minimum(most, self.fit.problem.n_features)
        enough = (wanted <= self.available()) | (self.views & self.complete)
        return np.flatnonzero(~enough & (most > 0))

    def first_of_views(self, most: IntArray) -> IntArray:
        """Return the candidates, on all rows, that `submodel` selects, in the order of the path."""
        columns = _Columns.of(self.fit.everyone, self.path, 0)
        return self.path.basis.order[0, columns.first_of_views(most)]

    def submodel(self, most: IntArray, row: int) -> tuple[Submodel, dict[str, Any]]:
        """Return the submodel with at most so many features of each view, and its record.

        Shapes: most (M,).
        """
        found = []
        for batch, path in self.folds:
            places = [_Columns.of(batch, path, f).first_of_views(most) for f in range(len(batch))]
            own = with_columns(path, places)
            found.append(moments_at(batch, own, own.basis.length[None]))
        scores = self.fit.score(found)
        columns = _Columns.of(self.fit.everyone, self.path, 0)
        path = with_columns(self.path, [columns.first_of_views(most)])
        size = int(path.basis.length[0])
        predictor, index = submodel_predictor(self.fit, path, size, scores)
        predictor = share_factors(predictor, self.fit.problem.views, self.n_factors)
        chosen = _Columns.of(self.fit.everyone, path, 0)
        count = int(chosen.counts(len(self.views)).sum())
        n_views = len(np.unique(chosen.owner))
        enters = entering_columns(path.basis.order[0], [size], self.fit.index)
        (record,) = self.make_records("per view", [n_views], [size], scores, enters)
        return Submodel(count, predictor, index, row), {**record, "selected": True}
