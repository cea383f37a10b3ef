"""Screening: the candidate features of every fold, the best by marginal score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.stats import chi2

from baldur.core.types import Array, Index, IntArray
from baldur.inference.dense_members import Member, learn_variances, over_scales
from baldur.inference.design import ColumnDesign, GramDesign
from baldur.inference.entry_costs import EntryCosts
from baldur.inference.predictive import Task
from baldur.model.likelihood import Likelihood, residual
from baldur.views.prepared_view import PreparedView

CANDIDATES = 1000
"""Features that the spike-and-slab prior looks at, where features outnumber samples: the best by
marginal score, an order of magnitude more than a sample of some hundreds can tell apart."""

PER_VIEW = 100
"""At least so many of each view, so that a narrow view is looked at whole beside a wide one."""


@dataclass
class Problem:
    """The data of one fit: views, outcomes, weights and groups."""

    views: Sequence[PreparedView]
    T: Array  # (N, C); outputs: 0 and 1, or real for regression
    weight: Array  # (N,); how much each row counts
    task: Task
    groups: Sequence[IntArray] | None = None  # (D_m,)
    costs: EntryCosts | None = None  # Of the columns of all views side by side

    @property
    def n_samples(self) -> int:
        """Number of samples in the fit."""
        return self.views[0].shape[0]

    @property
    def widths(self) -> list[int]:
        """Number of features of each view."""
        return [view.shape[1] for view in self.views]

    @cached_property
    def n_features(self) -> list[int]:
        """Number of features of each view, a category counted once."""
        if self.groups is None:
            return self.widths
        return [len(np.unique(group)) for group in self.groups]

    def total_cost(self) -> float:
        """Return what all features of all views cost together."""
        if self.costs is None:
            return 0.0
        owner = np.repeat(np.arange(len(self.widths)), self.widths)
        numbers = self.group_numbers([np.arange(D) for D in self.widths])
        every = np.arange(len(owner))
        along = self.costs.along(every, owner, every if numbers is None else numbers)
        return float(along[-1])

    def group_numbers(self, index: Index) -> IntArray | None:
        """Return one number for each of some columns, those of all views side by side, (L,).

        Columns of one group share it. None where every column stands alone.
        """
        if self.groups is None:
            return None
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


def candidates(
    problem: Problem, fits: Sequence[IntArray]
) -> tuple[list[Index], list[Array] | None]:
    """Return the candidates of each set of training rows, and the Gram matrix of each view.

    One pass over the views gives both. The candidates are all features, and there are no Gram
    matrices, where features are fewer than the samples; and all features, where they are fewer than
    `CANDIDATES`.
    """
    if sum(problem.widths) <= max(CANDIDATES, problem.n_samples):
        every = [[np.arange(D) for D in problem.widths] for _ in fits]
        if sum(problem.widths) < problem.n_samples:
            return every, None
        return every, [view.weighted_gram() for view in problem.views]
    columns = []
    for rows in fits:
        logistic = problem.task != "regression"
        left = residual(problem.T[rows].T, problem.weight[rows], logistic=logistic).T
        full: Array = np.zeros(np.shape(problem.T))
        full[rows] = left / np.maximum(np.linalg.norm(left, axis=0), 1e-12)
        columns.append(full)
    first = np.cumsum([0, *(part.shape[1] for part in columns[:-1])])
    A = np.hstack(columns)
    grams = [np.zeros((problem.n_samples, problem.n_samples)) for _ in problem.views]
    most = max(CANDIDATES, PER_VIEW)
    best = [
        strongest(view, A, first, most, gram)
        for view, gram in zip(problem.views, grams, strict=True)
    ]
    chosen = []
    for f in range(len(fits)):
        index = best_everywhere([scores[:, f] for _, scores in best], CANDIDATES, PER_VIEW)
        chosen.append([places[i, f] for i, (places, _) in zip(index, best, strict=True)])
    groups = problem.groups
    if groups is not None:
        chosen = [with_their_groups(index, groups) for index in chosen]
    return chosen, grams


def strongest(
    view: PreparedView, A: Array, first: IntArray, count: int, gram: Array | None = None
) -> tuple[IntArray, Array]:
    """Return the features with the largest |x_d^T a| of every fit, and the values, (K, fits).

    In one pass, without holding the projections of all features. Features are in rising order.

    Shapes: A (N, P), first (fits,), gram (N, N).
    """
    places = np.empty((0, len(first)), dtype=np.intp)
    scores = np.empty((0, len(first)))
    for columns, part in view.project_blocks(A, gram):
        here = np.maximum.reduceat(np.abs(part), first, axis=1).astype(float)
        at = np.arange(view.shape[1])[columns]
        places = np.concatenate([places, np.tile(at[:, None], len(first))])
        scores = np.concatenate([scores, here])
        if len(scores) > 4 * count:
            places, scores = _largest(places, scores, count)
    if len(scores) > count:
        places, scores = _largest(places, scores, count)
    order = np.argsort(places, axis=0)
    return np.take_along_axis(places, order, axis=0), np.take_along_axis(scores, order, axis=0)


def _largest(places: IntArray, scores: Array, count: int) -> tuple[IntArray, Array]:
    """Return the row indices of the largest scores of every column."""
    at = np.argpartition(-scores, count - 1, axis=0)[:count]
    return np.take_along_axis(places, at, axis=0), np.take_along_axis(scores, at, axis=0)


def best_everywhere(scores: Sequence[Array], count: int, per_view: int) -> Index:
    """Return the best features of all views together, and the best of each view."""
    overall = best_features(scores, count)
    own = [np.argsort(-s, kind="stable")[:per_view] for s in scores]
    return [np.union1d(a, b) for a, b in zip(overall, own, strict=True)]


def with_their_groups(index: Index, groups: Sequence[IntArray]) -> Index:
    """Return the features of each view, and all others of their groups."""
    return [
        np.flatnonzero(np.isin(group, group[columns]))
        for columns, group in zip(index, groups, strict=True)
    ]


TOLERANCE = 0.1
"""Largest change of a view's prior variance, as a share of all views', that counts as converged:
the share that chance does not explain, by which variances are multiplied, is known no better."""
LEAST = 1e-3
"""Least share of a variance that is kept: what is left predicts the base rate, and variances of 0
would leave the posterior undefined."""


@dataclass(frozen=True)
class Associations:
    """Marginal associations of the candidate columns of each fold."""

    order: IntArray  # (F, L); columns by falling strength; those that pad come last
    squares: Array  # (F, L); z^2 in this order
    n_tests: int  # features times outputs that could have been chosen

    def beyond_chance(self, size: int) -> Array:
        """Return the share of the strongest associations that chance does not explain, (F,)."""
        ranks = np.arange(1, size + 1) - 0.5
        by_chance = float(chi2.isf(ranks / max(self.n_tests, size), 1).mean())
        found = self.squares[:, :size].mean(axis=1)
        return np.maximum(1.0 - by_chance / np.maximum(found, 1e-12), LEAST)


def marginal_associations(
    design: ColumnDesign, left: Array, absent: Array | None, n_features: int
) -> Associations:
    """Return the associations z_d = x_d^T r of all candidate columns.

    r has length 1 over the rows that have the view of the column; cells of other rows are 0. Of
    several outputs the largest absolute value counts.

    Shapes: left (F, C, n), absent (F, n, M).
    """
    present = np.ones((*left.shape[::2], design.n_views)) if absent is None else 1.0 - absent
    power = np.matmul(left**2, present)  # (F, C, M)
    z2 = np.square(np.matmul(left, design.X1[:, :, 1:])) / np.maximum(design.spread(power), 1e-12)
    z2 = z2.max(axis=1)
    z2[design.owner == design.n_views] = -1.0
    order = np.argsort(-z2, axis=1, kind="stable")
    return Associations(order, np.take_along_axis(z2, order, axis=1), n_features * left.shape[1])


def fit_screened(
    design: ColumnDesign,
    absent: Array | None,
    likelihood: Likelihood,
    found: Associations,
    size: int,
    *,
    smaller: Member | None = None,
    max_iter: int = 200,
) -> Member:
    """Learn q(w) of the strongest columns, with one prior variance per view.

    The variances are not integrated over: their evidence would use the outcome twice, because it
    chose the columns.

    Shapes: absent (F, n, M).
    """
    chosen = found.order[:, :size]
    part = design.reordered(chosen)
    # Variances of views need no columns, only the Gram matrices of these.
    views = part if part.uses_features else GramDesign(part.grams, part.count, part.intercept_var)
    near = None
    if smaller is not None and smaller.variances is not None:
        q = smaller.points[0].q
        near = q, smaller.variances * q.design.scales()[:, None]
    q, variances, history, converged = learn_variances(
        views, absent, likelihood, max_iter=max_iter, tolerance=TOLERANCE, near=near
    )
    shrunk = found.beyond_chance(size)[:, None, None] * variances
    points, weights = over_scales(q.with_variances(part.spread(shrunk), part), most=0)
    points = [replace(p, selects=True, columns=chosen[p.folds]) for p in points]
    return Member(points, weights, history, converged, variances)
