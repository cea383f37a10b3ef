"""HeldOutScorer: scores of submodels from their moments on the held-out rows of all inner folds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baldur.inference.fold_batch import FoldBatch
from baldur.inference.predictive import Task
from baldur.inference.selection import Scores, score_submodels
from baldur.types import Array, IntArray


def without_padding(batch: FoldBatch, values: Array) -> Array:
    """Return predictions (..., F, C, p) of a batch as (..., R, C), without padding."""
    moved = np.moveaxis(values, -2, -1)  # (..., F, p, C)
    return moved[..., batch.held_counted > 0, :]


@dataclass(frozen=True)
class HeldOutScorer:
    """What submodels are scored against: the ensemble's predictions and the outcomes."""

    batches: Sequence[FoldBatch]
    whole_mean: Array  # whole_mean, whole_var: (R, C); held-out moments of the ensemble
    whole_var: Array
    slope: float  # the calibration slope
    row: IntArray  # (R,); the row that each prediction is for
    T: Array  # T, weight: (N, C); and (N,) arrays, outcomes and weights of the rows
    weight: Array
    task: Task

    def gather(self, found: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return moments (V, F, C, p) of all batches side by side, each (V, R, C)."""
        mean, var = (
            np.concatenate(
                [without_padding(b, part) for b, part in zip(self.batches, parts, strict=True)],
                axis=1,
            )
            for parts in zip(*found, strict=True)
        )
        return mean, var

    def score(self, found: Sequence[tuple[Array, Array]]) -> Scores:
        """Score V submodels by their held-out moments (V, F, C, p) in every batch."""
        mean, var = self.gather(found)
        return score_submodels(
            mean,
            var,
            self.whole_mean,
            self.whole_var,
            slope=self.slope,
            row=self.row,
            T=self.T,
            weight=self.weight,
            task=self.task,
        )
