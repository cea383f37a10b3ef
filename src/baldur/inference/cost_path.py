"""Costs along a submodel path: where something is paid for, and what a budget buys in each fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.inference.final_predictor import TrainingRows
from baldur.inference.fold_batch import EnsembleData, FoldBatch
from baldur.inference.held_out_scorer import HeldOutScorer
from baldur.inference.path_table import Entering, MakeRecords, entering_columns
from baldur.inference.submodel_path import SubmodelPath, moments_at
from baldur.types import Array, IntArray

MOST_PAYMENTS = 40
"""Payments whose submodels are scored besides the usual sizes of the path: enough for tests that
are ordered one by one, where each of thousands of features has a cost the usual sizes serve."""


def last_before_payments(paid: Array) -> list[int]:
    """Return the numbers of columns after which something is paid for, and all columns.

    Shapes: paid (K,).
    """
    ends = np.flatnonzero(np.diff(paid) > 0) + 1
    return [*ends[:MOST_PAYMENTS].tolist(), *([len(paid)] if len(paid) else [])]


def cost_along(data: EnsembleData, batch: FoldBatch, path: SubmodelPath, fold: int) -> Array | None:
    """Return the cost so far after each column of the path of a fold; None without costs."""
    if data.costs is None:
        return None
    return data.costs.along(*_path_columns(data, batch, path, fold))


def _path_columns(
    data: EnsembleData, batch: FoldBatch, path: SubmodelPath, fold: int
) -> tuple[IntArray, IntArray, IntArray]:
    """Return the columns of the path of a fold, and view and feature of all columns."""
    columns = batch.candidates[fold][path.basis.order[fold, : path.basis.length[fold]]]
    numbers = np.arange(len(data.owner)) if data.groups is None else data.groups
    return columns, data.owner, numbers


def cost_records(
    rows: TrainingRows,
    path: SubmodelPath,
    folds: Sequence[SubmodelPath],
    sizes: Sequence[int],
    scorer: HeldOutScorer,
    make_records: MakeRecords,
    base: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return a record for every cost along the path; each fold spends at most as much."""
    data, everyone = rows.data, rows.everyone
    paid = cost_along(data, everyone, path, 0)
    if data.costs is None or paid is None or not sizes:
        return []
    columns, cost = cost_levels(paid, sizes)
    found = []
    for batch, own in zip(scorer.batches, folds, strict=True):
        spent = [cost_along(data, batch, own, f) for f in range(len(batch))]
        at = prefixes_within(spent, own.basis.ends, cost)
        found.append(moments_at(data, batch, own, at))
    order = path.basis.order[0]
    owner = data.owner[everyone.candidates[0][order]]
    n_views = [len(np.unique(owner[:k])) for k in columns]
    enters = entering_columns(order, columns, rows.index)
    records = make_records("cost", n_views, columns, scorer.score(found), enters)
    payments = data.costs.payments(*_path_columns(data, everyone, path, 0))
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
