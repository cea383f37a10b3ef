"""Samples that have the same values in a view and lie on both sides of a split."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.study.checks.finding import Finding, names

# Columns looked at to judge how likely equal rows are by chance; more make it less likely still.
_COLUMNS = 1000
# Expected number of equal pairs above which equal rows say nothing (a few yes-or-no questions).
_BY_CHANCE = 0.01


class RowHashes:
    """Finds equal rows of a view that is read block by block.

    Shapes: present (n_samples,).
    """

    def __init__(self, present: np.ndarray) -> None:
        self.present = present
        self._hashes = [hashlib.blake2b(digest_size=16) for _ in present]
        self._log_agree = 0.0
        self._seen = 0

    def add(self, block: np.ndarray) -> None:
        """Add the next columns to the hash of every row.

        Shapes: block (n_samples, b).
        """
        # Minus zero and every NaN get one form each, so that equal cells are equal bytes.
        cells = np.ascontiguousarray(np.where(np.isnan(block), np.nan, block + 0.0))
        for i in np.flatnonzero(self.present):
            self._hashes[i].update(cells[i].tobytes())
        for j in range(min(block.shape[1], max(_COLUMNS - self._seen, 0))):
            counts = np.unique(block[self.present, j], return_counts=True)[1]
            share = counts / max(counts.sum(), 1)
            self._log_agree += float(np.log(max((share**2).sum(), 1e-300)))
        self._seen += block.shape[1]

    def pairs(self) -> list[tuple[int, int]]:
        """Return pairs of equal rows, unless these are expected by chance."""
        n = int(self.present.sum())
        if n < 2 or np.log(n * (n - 1) / 2) + self._log_agree > np.log(_BY_CHANCE):
            return []
        first: dict[bytes, int] = {}
        found = []
        for i in np.flatnonzero(self.present).tolist():
            at = first.setdefault(self._hashes[i].digest(), i)
            if at != i:
                found.append((at, i))
        return found


def repeats(
    by_view: dict[str, list[tuple[int, int]]], ids: np.ndarray, folds: Sequence[Any]
) -> list[Finding]:
    """Report equal rows that some fold has among its training and its test rows.

    Shapes: ids (n_samples,).
    """
    made = []
    sides = []
    for fold in folds:
        side = np.zeros(len(ids), dtype=np.int8)
        side[fold.train], side[fold.test] = 1, 2
        sides.append(side)
    for view, pairs in by_view.items():
        apart = [(a, b) for a, b in pairs if any(s[a] + s[b] == 3 for s in sides)]
        if not apart:
            continue
        listed = [f"{ids[a]}/{ids[b]}" for a, b in apart]
        made.append(
            Finding(
                view,
                f"samples {names(listed)} have the same values and lie in training and test rows",
                "drop one of each pair, or give both the same samples.group",
            )
        )
    return made
