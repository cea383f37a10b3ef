"""Costs of measurements: the order in which features enter a submodel path by gain per cost.

The cost of a view is paid once, when the first of its features enters, as the cost of a scan is
paid once whatever is read from it. The cost of a feature is paid when it enters. Levels of one
category are one feature.

The search is greedy. The next feature is the one with the largest gain, in explained loss of the
ensemble, per unit of what it costs at that moment. With the first feature of a view that has a
cost, all features of the view that cost nothing themselves become available; so its gain is that of
their whole part of the ensemble's linear predictor. What is paid for already is not weighed against
further costs: such features enter first, as long as each of them gains something worth mentioning.

Shapes: F folds, C outputs, n training rows, L columns, M views.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.core.types import Array, IntArray, Mask

WORTH = 0.01
"""Part of what the ensemble explains that a feature must gain to enter because it costs nothing
more. Without a limit, the thousands of features of a view that is paid for would all enter before
a second test is ordered."""


@dataclass(frozen=True)
class EntryCosts:
    """What measurements cost."""

    views: Array  # (M,); paid with the first feature of each view
    columns: Array  # (..., L); cost of the feature of each column; the same for all its levels

    def take(self, columns: IntArray) -> EntryCosts:
        """Return the costs of some columns."""
        return EntryCosts(self.views, self.columns[columns])

    def along(self, order: IntArray, owner: IntArray, numbers: IntArray) -> Array:
        """Return the cost so far after each column of a path, (K,).

        Shapes: order (K,), owner, numbers (L,).
        """
        of_views, of_features = self.payments(order, owner, numbers)
        return np.asarray(np.cumsum(of_views + of_features))

    def payments(self, order: IntArray, owner: IntArray, numbers: IntArray) -> tuple[Array, Array]:
        """Return what is paid with each column of a path for its view and its feature, (K,)."""
        own = owner[order]
        of_views = _first_places(own) * self.views[own]
        return of_views, _first_places(numbers[order]) * self.columns[order]


def _first_places(values: IntArray) -> Mask:
    """Return where each value occurs for the first time."""
    first = np.zeros(len(values), dtype=bool)
    first[np.unique(values, return_index=True)[1]] = True
    return first


class CostOrder:
    """The order by gain per cost, in a search over several folds.

    Shapes: costs (F, L), owner (F, L), parts (F, C, M, L), variance (F, C, M), total (F,).
    """

    def __init__(
        self, costs: EntryCosts, owner: IntArray, parts: Array, variance: Array, total: Array
    ) -> None:
        F = len(owner)
        self.owner, self.parts, self.total = owner, parts, total
        self.left, self.first = variance.copy(), variance
        # The last entry is for padding, which costs nothing and never enters.
        self.due = np.tile(np.append(costs.views, 0.0), (F, 1))
        self.own = costs.columns

    def score(self, gain: Array, agree: Array) -> Array:
        """Return scores (F, L) whose largest is the next column; below 0 for none.

        Shapes: gain (F, L), agree (F, C, L).
        """
        due = np.take_along_axis(self.due, self.owner, axis=1)
        price = due + self.own
        together = np.einsum("fcml,fcl->fcm", self.parts, agree) ** 2
        known = self.left > 1e-9 * self.first  # what is in already explains the rest of the part
        together = np.divide(together, self.left, out=np.zeros_like(together), where=known)
        of_view = np.append(together.sum(axis=1), np.zeros((len(gain), 1)), axis=1)
        shared = np.where(
            (due > 0) & (self.own == 0), np.take_along_axis(of_view, self.owner, axis=1), 0.0
        )
        per_cost = np.divide(
            np.maximum(gain, shared), price, out=np.full(gain.shape, -1.0), where=price > 0
        )
        useful = gain > 0
        ready = useful & (price == 0) & (gain >= WORTH * self.total[:, None])
        paid = useful & (price > 0)
        best = np.where(paid, per_cost, -1.0).max(axis=1, keepdims=True)
        # Features that open one view tie: of these, the one that gains most by itself.
        leading = paid & (per_cost >= best * (1.0 - 1e-12))
        pick = np.where(
            ready.any(axis=1, keepdims=True),
            ready,
            np.where(paid.any(axis=1, keepdims=True), leading, useful),
        )
        return np.where(pick, gain, -1.0)

    def enter(self, folds: IntArray, columns: IntArray, row: Array) -> None:
        """Note that columns (P,) entered in some folds (P,); row (F, C, L) of the triangle."""
        self.due[folds, self.owner[folds, columns]] = 0.0
        along = np.einsum("pcml,pcl->pcm", self.parts[folds], row[folds])
        self.left[folds] = np.maximum(self.left[folds] - along**2, 0.0)
