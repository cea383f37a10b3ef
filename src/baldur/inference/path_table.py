"""The table of the submodel path: one record per submodel, with its held-out loss."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from baldur.inference.held_out_accuracy import INTERVAL, accuracy_interval
from baldur.inference.predictive import Task
from baldur.inference.selection import Scores, paired_gap
from baldur.types import Array, Index, IntArray

Entering = list[tuple[int, int | None]] | None
"""Pairs of a view and its column, or of a view and None for all its columns, that enter with a
submodel; None for all features that are not in yet."""

MakeRecords = Callable[..., list[dict[str, Any]]]
"""`path_records` with what all records of a fit share: `ensemble`, `weight`, `allowed`, `task`."""


def entering_views(order: IntArray, counts: Sequence[int]) -> list[Entering]:
    """Return the views that enter at each number of views, from their order."""
    edges = [0, *counts]
    return [[(int(m), None) for m in order[a:b]] for a, b in pairwise(edges)]


def entering_columns(order: IntArray, sizes: Sequence[int], candidates: Index) -> list[Entering]:
    """Return the columns that enter at each size, from their order among the candidates."""
    owner = np.repeat(np.arange(len(candidates)), [len(own) for own in candidates])
    place = np.concatenate(candidates)
    edges = [0, *sizes]
    return [[(int(owner[c]), int(place[c])) for c in order[a:b]] for a, b in pairwise(edges)]


def path_records(
    kind: str,
    n_views: Sequence[int],
    n_features: Sequence[int],
    scores: Scores,
    enters: Sequence[Entering],
    *,
    ensemble: Array,
    weight: Array,
    allowed: float,
    task: Task,
) -> list[dict[str, Any]]:
    """Return the records of the submodels of one kind, from small to large.

    Shapes: ensemble, weight (N,).
    """
    records: list[dict[str, Any]] = []
    largest = len(scores.losses) - 1
    name = "r2" if task == "regression" else "auc"
    for place, loss in enumerate(scores.losses):
        gap = paired_gap(loss, ensemble, weight)
        own = paired_gap(loss, np.zeros(len(loss)), weight)
        accuracy = float(scores.accuracy[place])
        low, high = accuracy_interval(accuracy, float(scores.accuracy_error[place]), task)
        records.append(
            {
                "step": kind,
                "n_views": int(n_views[place]),
                "n_features": int(n_features[place]),
                "loss": float(loss @ weight / weight.sum()),
                "loss_difference": gap.mean,
                "standard_error": gap.error,
                "upper": gap.upper,
                "candidate": kind != "nothing" and (place == largest or gap.upper <= allowed),
                "selected": False,
                "loss_lower": own.mean - INTERVAL * own.error,
                "loss_upper": own.mean + INTERVAL * own.error,
                name: accuracy,
                f"{name}_lower": low,
                f"{name}_upper": high,
                "enters": enters[place],
            }
        )
    return records
