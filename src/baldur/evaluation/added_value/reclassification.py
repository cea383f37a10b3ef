"""Reclassification: who moves across a threshold when views are added, cases and controls apart."""

from __future__ import annotations

import numpy as np

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.decision import shifted
from baldur.evaluation.clinical.held_out import HeldOutPredictions

COLUMNS = [
    "question", "view", "model", "reference", "threshold", "class", "people", "up", "down",
    "unchanged", "net", "low", "high",
]  # fmt: skip


def reclassified(
    held: HeldOutPredictions,
    without: HeldOutPredictions,
    people: np.ndarray,
    boot: Bootstrap,
    threshold: float,
    prevalence: float | None = None,
) -> list[tuple[str, float, float, float, float, float, float, float]]:
    """Return who moves across a threshold, of the controls and of the cases.

    Shapes: returns (class, people, up, down, unchanged, net, low, high).
    """
    rows = []
    moves = _moves(held, without, threshold, prevalence)
    for side, name in enumerate(held.classes):
        chosen = people & (held.truth == side)
        draws = _shares(moves, chosen, boot, len(np.unique(held.units[chosen])))
        up, down = draws.part(0), draws.part(1)
        net = up.minus(down) if side else down.minus(up)
        low, high = (float(v) for v in net.interval())
        n, more, less = float(chosen.sum()), float(up.estimate), float(down.estimate)
        up_n, down_n = round(n * more, 6), round(n * less, 6)
        rows.append((name, n, up_n, down_n, n - up_n - down_n, float(net.estimate), low, high))
    return rows


def _moves(
    held: HeldOutPredictions,
    without: HeldOutPredictions,
    threshold: float,
    prevalence: float | None,
) -> list[np.ndarray]:
    """Return for each repeat 1, -1 or 0 for people who move up, down or not; NaN if not there."""
    found = []
    for (rows, p), (rows_without, q) in zip(held.repeats, without.repeats, strict=True):
        moved = np.full((2, len(held.people)), np.nan)
        moved[0, rows] = shifted(held, p, prevalence, True) >= threshold
        moved[1, rows_without] = shifted(without, q, prevalence, True) >= threshold
        found.append(moved[0] - moved[1])
    return found


def _shares(moves: list[np.ndarray], chosen: np.ndarray, boot: Bootstrap, units: int) -> Draws:
    """Return the shares of the chosen people who move up and down, averaged over repeats."""

    def mean(weights: np.ndarray) -> np.ndarray:
        parts = []
        for move in moves:
            at = chosen & ~np.isnan(move)
            sides = np.column_stack([move[at] > 0, move[at] < 0]).astype(float)
            with np.errstate(divide="ignore", invalid="ignore"):
                parts.append(weights[:, at] @ sides / weights[:, at].sum(axis=1, keepdims=True))
        return np.asarray(np.mean(parts, axis=0))

    return boot.run(mean, max(units, 1))
