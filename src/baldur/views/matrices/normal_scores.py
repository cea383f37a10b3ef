"""Normal scores: the rank of a cell among the training values of its column, as a quantile.

Each ranked column holds knots (training values in rising order) and their scores. A cell between
two knots is interpolated, a cell beyond the ends takes the score of the end. All columns of a tile
are searched at once, by bisection.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.state import Fields, State


@dataclass(frozen=True)
class NormalScores:
    """Knots and scores of the ranked columns of one view."""

    position: np.ndarray  # (n_features,)
    knots: np.ndarray  # (n_knots, n_ranked)
    scores: np.ndarray

    def to_state(self) -> State:
        """Return the knots and their scores as plain values."""
        return {
            "kind": "normal scores",
            "position": self.position,
            "knots": self.knots,
            "scores": self.scores,
        }

    @classmethod
    def from_state(cls, state: Any, *, width: int) -> NormalScores:
        """Build the scores from their state, for a view of `width` features."""
        with Fields(state, "normal scores") as read:
            knots = read.array("knots", ("k", "r"), largest=np.inf)
            read.need(len(knots), "expected at least one knot", "knots")
            read.need((knots[1:] >= knots[:-1]).all(), "expected knots in rising order", "knots")
            return cls(
                read.index("position", (width,), knots.shape[1], lowest=-1),
                knots,
                read.array("scores", ("k", "r")),
            )

    def fill(
        self,
        raw: np.ndarray,
        columns: slice | np.ndarray,
        factor: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Write the scores of the ranked columns among `columns`, times a factor, into `out`.

        Shapes: raw (n_samples, k), factor (k,), out (n_samples, k).
        """
        at = self.position[columns]
        here = np.flatnonzero(at >= 0)
        if here.size:
            out[:, here] = self._of(raw[:, here], at[here]) * factor[here]

    def _of(self, cells: np.ndarray, at: np.ndarray) -> np.ndarray:
        knots, scores = self.knots[:, at], self.scores[:, at]
        last = len(knots) - 1
        # Bisection for the number of knots not above each cell; NaN counts none.
        low = np.zeros(cells.shape, dtype=np.intp)
        high = np.full(cells.shape, last + 1, dtype=np.intp)
        for _ in range(int(last + 1).bit_length()):
            middle = (low + high) // 2
            reached = np.take_along_axis(knots, np.minimum(middle, last), axis=0) <= cells
            reached &= middle <= last
            low, high = np.where(reached, middle + 1, low), np.where(reached, high, middle)
        left = np.maximum(low - 1, 0)
        right = np.minimum(low, last)
        x0, x1 = (np.take_along_axis(knots, i, axis=0) for i in (left, right))
        s0, s1 = (np.take_along_axis(scores, i, axis=0) for i in (left, right))
        gap = x1 - x0
        inside = gap > 0
        share = np.divide(cells - x0, gap, out=np.zeros(cells.shape), where=inside)
        return np.asarray(s0 + share * (s1 - s0))
