"""ReadCounter: how many columns of a view were read, and `passes` over the data."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Protocol

# Threads share counters; one lock for all of them, because a counter travels with its view and
# locks cannot be pickled.
_LOCK = Lock()


class ReadCounter:
    """Columns read of one view since it was prepared, whatever the rows."""

    def __init__(self) -> None:
        self.columns = 0

    def add(self, columns: int) -> None:
        """Count columns that are about to be read."""
        with _LOCK:
            self.columns += int(columns)


class _Counted(Protocol):
    shape: tuple[int, int]
    reads: ReadCounter


def passes(views: Sequence[_Counted]) -> float:
    """Return how often the views were read since they were prepared, weighted by width.

    A product with every column is one pass; gathering a few columns is a small part of one.
    Rows taken from a view count with it.
    """
    total = sum(view.shape[1] for view in views)
    return sum(view.reads.columns for view in views) / total if total else 0.0
