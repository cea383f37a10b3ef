"""Which features a fit looks at one by one: the best by marginal score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Index, Rows
from baldur.inference.predictive import Task
from baldur.model.likelihood import Likelihood
from baldur.views.products import PreparedView

Array = NDArray[np.float64]

CANDIDATES = 1000
"""Features that the in-or-out prior looks at, where features outnumber samples: the best by
marginal score, an order of magnitude more than a sample of some hundreds can tell apart."""

PER_VIEW = 100
"""At least so many of each view, so that a narrow view is looked at whole beside a wide one."""


@dataclass
class Problem:
    """One fit: views, likelihood and what both need.

    Attributes
    ----------
    views : list of M PreparedView
    likelihood : Likelihood
    task : Task
    groups : list of M (D_m,) int arrays, or None
        Columns of a view with the same number, those of one category, are kept or dropped
        together. None: every column stands alone.
    """

    views: Sequence[PreparedView]
    likelihood: Likelihood
    task: Task
    groups: Sequence[NDArray[np.intp]] | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.views[0].shape[0]

    @property
    def widths(self) -> Array:
        """Features per view, (M,)."""
        return np.array([view.shape[1] for view in self.views], dtype=float)

    def group_numbers(self, index: Index) -> NDArray[np.intp]:
        """Return one number for each of some columns, those of all views side by side, (L,).

        Columns of one group share it.
        """
        if self.groups is None:
            return np.arange(sum(map(len, index)), dtype=np.intp)
        starts = np.cumsum([0, *(group.max(initial=-1) + 1 for group in self.groups)])
        parts = [g[i] + start for g, i, start in zip(self.groups, index, starts, strict=False)]
        return np.concatenate(parts).astype(np.intp)


def best_features(scores: Sequence[Array], limit: int) -> Index:
    """Return the features of each view that are among the `limit` best of all views."""
    flat = np.concatenate(scores)
    best = np.zeros(flat.size, dtype=bool)
    best[np.argsort(-flat, kind="stable")[:limit]] = True
    edges = np.concatenate([[0], np.cumsum([len(s) for s in scores])])
    return [np.flatnonzero(best[edges[m] : edges[m + 1]]) for m in range(len(scores))]


def candidates(problem: Problem, fits: Sequence[Rows]) -> list[Index]:
    """Return the candidates of each set of training rows: one pass for all of them.

    All features, where they are fewer than the samples or than `CANDIDATES`.
    """
    if problem.widths.sum() <= max(CANDIDATES, problem.n_samples):
        return [[np.arange(int(D)) for D in problem.widths] for _ in fits]
    columns = []
    for rows in fits:
        residual = problem.likelihood.rows(rows).residual()
        full = np.zeros((problem.n_samples, residual.shape[1]))
        full[rows] = residual / np.maximum(np.linalg.norm(residual, axis=0), 1e-12)
        columns.append(full)
    edges = np.concatenate([[0], np.cumsum([part.shape[1] for part in columns])])
    projected = [np.abs(view.project(np.hstack(columns))) for view in problem.views]
    chosen = [
        best_everywhere([p[:, a:b].max(axis=1) for p in projected], CANDIDATES, PER_VIEW)
        for a, b in pairwise(edges)
    ]
    groups = problem.groups
    return chosen if groups is None else [with_their_groups(index, groups) for index in chosen]


def best_everywhere(scores: Sequence[Array], count: int, per_view: int) -> Index:
    """Return the best features of all views together, and the best of each view."""
    overall = best_features(scores, count)
    own = [np.argsort(-s, kind="stable")[:per_view] for s in scores]
    return [np.union1d(a, b) for a, b in zip(overall, own, strict=True)]


def with_their_groups(index: Index, groups: Sequence[NDArray[np.intp]]) -> Index:
    """Return the features of each view, and all others of their groups."""
    return [
        np.flatnonzero(np.isin(group, group[columns]))
        for columns, group in zip(index, groups, strict=True)
    ]
