"""The submodels of one fit as predictors: the base rate, the sizes of the path, whole views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.inference.final_predictor import submodel_predictor, whole_view_predictor
from baldur.inference.fit_context import FitContext
from baldur.inference.gaussians import WeightGaussian
from baldur.inference.inner_folds import FoldBatch
from baldur.inference.predictor import Predictor
from baldur.inference.screening import Problem
from baldur.inference.selection import Scores
from baldur.inference.shared_factors import share_factors
from baldur.inference.submodel_path import (
    SIZES,
    Entering,
    MakeRecords,
    SubmodelPath,
    entering_columns,
    moments_at,
)

MOST_PAYMENTS = 40
"""Payments whose submodels are scored besides the usual sizes of the path: enough for tests that
are ordered one by one, where each of thousands of features has a cost the usual sizes serve."""


def last_before_payments(paid: Array) -> list[int]:
    """Return the numbers of columns after which something is paid for, and all columns.

    Shapes: paid (K,).
    """
    ends = np.flatnonzero(np.diff(paid) > 0) + 1
    return [*ends[:MOST_PAYMENTS].tolist(), *([len(paid)] if len(paid) else [])]


def cost_along(batch: FoldBatch, path: SubmodelPath, fold: int) -> Array | None:
    """Return the cost so far after each column of the path of a fold; None without costs."""
    costs = batch.data.costs
    return None if costs is None else costs.along(*_path_columns(batch, path, fold))


def _path_columns(
    batch: FoldBatch, path: SubmodelPath, fold: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the columns of the path of a fold, and view and feature of all columns."""
    data = batch.data
    columns = batch.candidates[fold][path.basis.order[fold, : path.basis.length[fold]]]
    numbers = np.arange(len(data.owner)) if data.groups is None else data.groups
    return columns, data.owner, numbers


def cost_records(
    fit: FitContext,
    path: SubmodelPath,
    folds: Sequence[SubmodelPath],
    sizes: Sequence[int],
    make_records: MakeRecords,
    base: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return a record for every cost along the path; each fold spends at most as much."""
    data, everyone = fit.data, fit.everyone
    paid = cost_along(everyone, path, 0)
    if data.costs is None or paid is None or not sizes:
        return []
    columns, cost = cost_levels(paid, sizes)
    found = []
    for batch, own in zip(fit.batches, folds, strict=True):
        spent = [cost_along(batch, own, f) for f in range(len(batch))]
        at = prefixes_within(spent, own.basis.ends, cost)
        found.append(moments_at(batch, own, at))
    order = path.basis.order[0]
    owner = data.owner[everyone.candidates[0][order]]
    n_views = [len(np.unique(owner[:k])) for k in columns]
    enters = entering_columns(order, columns, fit.index)
    records = make_records("cost", n_views, columns, fit.score(found), enters)
    payments = data.costs.payments(*_path_columns(everyone, path, 0))
    orders = paid_measurements(*payments, columns, records)
    return [
        {"cost": 0.0, "orders": [], **base},
        *(
            {"cost": float(one), "orders": paid_for, **record}
            for one, paid_for, record in zip(cost, orders, records, strict=True)
        ),
    ]


def cost_levels(paid: Array, columns: Sequence[int]) -> tuple[list[int], Array]:
    """Return the largest of some submodels at every cost, and these costs, both rising.

    Shapes: paid (K,).
    """
    cost = paid[np.array(columns) - 1]
    last = np.append(np.diff(cost) > 0, True)
    return [k for k, use in zip(columns, last, strict=True) if use], cost[last]


def paid_measurements(
    of_views: Array,
    of_features: Array,
    columns: Sequence[int],
    records: Sequence[dict[str, Any]],
) -> list[Entering]:
    """Return the views and features that are paid for at each cost, in the order of the path.

    Shapes: of_views, of_features (K,).
    """
    found: list[Entering] = []
    for start, record in zip([0, *columns], records, strict=False):
        paid: list[tuple[int, int | None]] = []
        for place, (view, column) in enumerate(record["enters"], start):
            if of_views[place] > 0:
                paid.append((view, None))
            if of_features[place] > 0:
                paid.append((view, column))
        found.append(paid)
    return found


def prefixes_within(
    spent: Sequence[Array | None], ends: Sequence[IntArray], budgets: Array
) -> IntArray:
    """Return how many columns of each fold cost at most each budget, (S, F).

    Shapes: budgets (S,).
    """
    at = np.zeros((len(budgets), len(spent)), dtype=np.intp)
    for f, (cost, whole) in enumerate(zip(spent, ends, strict=True)):
        if cost is None or not len(whole):
            continue
        # Costs are sums in another order: equal ones may differ by rounding.
        within = np.searchsorted(cost[whole - 1], budgets * (1.0 + 1e-12), side="right")
        at[:, f] = np.concatenate([[0], whole])[within]
    return at


EVERY_SIZE = 20
"""Every number of features up to this one is scored, so that it can be asked for."""


@dataclass(frozen=True)
class Submodel:
    """One submodel of a fit, with what an estimator needs to predict with it."""

    n_features: int
    predictor: Predictor
    columns: Index  # Selected columns of each view
    row: int  # Its row in the table of the submodel path
    cost: float = 0.0  # What its features cost


@dataclass(frozen=True)
class PathSizes:
    """Sizes at which a submodel path is scored, from small to large."""

    scored: list[int]
    columns: list[int]  # Columns of the path on all rows
    n_features: list[int]  # Features of the path on all rows that count, a category counted once
    automatic: list[int]  # Places of the sizes among which the automatic selection chooses
    shown: list[int]
    total: int  # Features of the selected views that count, on the path or not

    @property
    def complete(self) -> bool:
        """Whether the largest size has all features."""
        return [0, *self.n_features][-1] == self.total


def column_masks(submodel: Submodel) -> list[Mask]:
    """Return which columns of each view a submodel has, (D_m,) bool arrays."""
    masks = [np.zeros(D, dtype=bool) for D in submodel.predictor.widths]
    for mask, columns in zip(masks, submodel.columns, strict=True):
        mask[columns] = True
    return masks


def path_sizes(fit: FitContext, path: SubmodelPath, views: Mask) -> PathSizes:
    """Return the sizes of the submodel path of some views.

    These are `SIZES` (of those that a group makes one, the largest), every number of features up to
    `EVERY_SIZE`, the last one before something is paid for, and all features where the path has
    them all. Features at the beginning of the path that every submodel has do not count.

    Shapes: views (M,).
    """
    basis = path.basis
    width, n_features = count_columns(fit.problem, views), count_features(fit.problem, views)
    longest = int(basis.length[0])
    necessary = fit.everyone.always()
    always = 0 if necessary is None else int(necessary[0, basis.order[0, :longest]].sum())
    grid = [always + size for size in ((0, *SIZES) if always else SIZES)]
    grid = [size for size in grid if size <= longest and size < width]
    by_columns = {basis.whole_groups(0, size): size for size in grid}
    automatic = set(by_columns)
    ends = basis.ends[0]
    free = int(np.searchsorted(ends, always, side="right"))  # features that do not count
    for size in [*ends[free : free + EVERY_SIZE], *(ends[-1:] if len(ends) == n_features else [])]:
        by_columns.setdefault(int(size), int(size))
    paid = cost_along(fit.everyone, path, 0)
    if paid is not None:
        for size in last_before_payments(paid):
            by_columns.setdefault(size, size)
    columns = sorted(by_columns)
    counts = 1 + np.searchsorted(ends, columns) - free
    return PathSizes(
        [by_columns[size] for size in columns],
        columns,
        counts.tolist(),
        [place for place, size in enumerate(columns) if size in automatic],
        [place for place, size in enumerate(columns) if size < width or size in automatic],
        n_features - free,
    )


def largest_within(counts: Sequence[int], n_features: int) -> int:
    """Return the index of the largest of some ascending counts that is at most `n_features`."""
    return int(np.searchsorted(counts, n_features, side="right")) - 1


def base_rate_predictor(fit: FitContext) -> Predictor:
    """Return the predictor without features, which predicts the base rate for every row."""
    base = fit.full.base_logit[0]
    C, M = len(base), len(fit.problem.widths)
    nothing = [np.zeros(0, dtype=np.intp) for _ in range(M)]
    block = WeightGaussian(nothing, base[None, :, None].copy(), np.zeros((1, C, 1, 1)))
    none = np.zeros((M, C))
    noise = fit.full.base_variance[0].copy()
    return Predictor([block], np.ones((1, C)), fit.problem.widths, noise, none, none, none)


def make_submodels(
    fit: FitContext,
    path: SubmodelPath,
    sizes: PathSizes,
    steps: Scores,
    n_factors: int,
    first_row: int,
) -> list[Submodel]:
    """Return the base rate and the submodel of every size, from small to large."""
    paid = cost_along(fit.everyone, path, 0)
    base = base_rate_predictor(fit)
    made = [Submodel(0, base, base.blocks[0].entering(base.widths), 0)]
    for place, (columns, count) in enumerate(zip(sizes.columns, sizes.n_features, strict=True)):
        predictor, index = submodel_predictor(fit, path, columns, steps[place : place + 1])
        predictor = share_factors(predictor, fit.problem.views, n_factors)
        cost = 0.0 if paid is None else float(paid[columns - 1])
        made.append(Submodel(count, predictor, index, first_row + place, cost))
    return made


def whole_views_submodel(
    fit: FitContext, views: Mask, whole: Scores, n_factors: int, row: int, n_features: int
) -> Submodel:
    """Return the submodel with all features of some views (M,); see `make_submodels`.

    `n_features` is how many of them count.
    """
    problem = fit.problem
    predictor = whole_view_predictor(fit, views[None], whole)
    predictor = share_factors(predictor, problem.views, n_factors)
    columns = [np.arange(D if use else 0) for D, use in zip(problem.widths, views, strict=True)]
    return Submodel(n_features, predictor, columns, row, problem.total_cost())


def count_columns(problem: Problem, views: Mask) -> int:
    """Return the number of columns of some views (M,)."""
    return sum(D for D, use in zip(problem.widths, views, strict=True) if use)


def count_features(problem: Problem, views: Mask) -> int:
    """Return the number of features of some views (M,), a category counted once."""
    return sum(n for n, use in zip(problem.n_features, views, strict=True) if use)
