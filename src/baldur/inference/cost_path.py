"""Costs along a submodel path: where something is paid for, and what a budget buys in each fold."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.inference.fold_batch import EnsembleData, FoldBatch
from baldur.inference.held_out_scorer import HeldOutScorer
from baldur.inference.path_table import Entering
from baldur.inference.selection import Scores
from baldur.inference.submodel_path import SubmodelPath, moments_at
from baldur.types import Array, IntArray

MOST_PAYMENTS = 40
"""Payments whose submodels are scored besides the usual sizes of the path: enough for tests that
are ordered one by one, where each of thousands of features has a cost the usual sizes serve."""


def last_before_payments(paid: Array) -> list[int]:
    """Return the numbers of columns after which something is paid for, and all columns.

    Parameters
    ----------
    paid : (K,) array, cost so far after each column
    """
    ends = np.flatnonzero(np.diff(paid) > 0) + 1
    return [*ends[:MOST_PAYMENTS].tolist(), *([len(paid)] if len(paid) else [])]


def cost_levels(paid: Array, columns: Sequence[int]) -> tuple[list[int], Array]:
    """Return the largest of some submodels at every cost, and these costs, both rising.

    Parameters
    ----------
    paid : (K,) array, cost so far after each column
    columns : rising numbers of columns of the submodels
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

    Parameters
    ----------
    of_views, of_features : (K,) arrays, what is paid with each column of the path
    columns : rising numbers of columns of the submodels
    records : list of dict, their records, which say what enters
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

    Parameters
    ----------
    spent : list of F arrays, cost so far after each column of the path
    ends : list of F int arrays, numbers of columns at which no group is cut
    budgets : (S,) array
    """
    at = np.zeros((len(budgets), len(spent)), dtype=np.intp)
    for f, (cost, whole) in enumerate(zip(spent, ends, strict=True)):
        if cost is None or not len(whole):
            continue
        # Costs are sums in another order: equal ones may differ by rounding.
        within = np.searchsorted(cost[whole - 1], budgets * (1.0 + 1e-12), side="right")
        at[:, f] = np.concatenate([[0], whole])[within]
    return at


def cost_along(
    data: EnsembleData, batch: FoldBatch, path: SubmodelPath, fold: int = 0
) -> Array | None:
    """Return the cost so far after each column of the path of a fold; None without costs."""
    if data.costs is None:
        return None
    columns = batch.candidates[fold][path.basis.order[fold, : path.basis.length[fold]]]
    return data.costs.along(columns, data.owner, _group_numbers(data))


def _group_numbers(data: EnsembleData) -> IntArray:
    """Return the number of the group of each column, those that stand alone counted as groups."""
    return np.arange(len(data.owner)) if data.groups is None else data.groups


def score_costs(
    data: EnsembleData,
    everyone: FoldBatch,
    path: SubmodelPath,
    folds: Sequence[SubmodelPath],
    columns: Sequence[int],
    scorer: HeldOutScorer,
) -> tuple[list[int], Array, Scores]:
    """Return the largest submodel at every cost, these costs, and their held-out scores.

    Each inner fold spends at most as much as the path on all rows.

    Parameters
    ----------
    data : EnsembleData
    everyone, path : the batch and the submodel path of all rows
    folds : paths of the inner folds, one per batch
    columns : rising numbers of columns of the submodels
    scorer : HeldOutScorer
    """
    paid = cost_along(data, everyone, path)
    assert paid is not None
    largest, cost = cost_levels(paid, columns)
    found = []
    for batch, own in zip(scorer.batches, folds, strict=True):
        spent = [cost_along(data, batch, own, f) for f in range(len(batch))]
        at = prefixes_within(spent, own.basis.ends, cost)
        found.append(moments_at(data, batch, own, at))
    return largest, cost, scorer.score(found)


def payments(data: EnsembleData, everyone: FoldBatch, path: SubmodelPath) -> tuple[Array, Array]:
    """Return what is paid for views and for features with each column of the path on all rows."""
    assert data.costs is not None
    columns = everyone.candidates[0][path.basis.order[0, : path.basis.length[0]]]
    return data.costs.payments(columns, data.owner, _group_numbers(data))
