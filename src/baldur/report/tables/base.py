"""Cell, Column, Table: a table of the page that can be sorted and filtered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baldur.report.formatting import estimate, kind, number, percent, probability
from baldur.safety.escape import one_line


def sort_key(value: Any) -> float | str:
    """Return the number that a cell is sorted by; "" where there is no finite one."""
    x = float("nan") if value is None else float(value)
    return x if np.isfinite(x) else ""


@dataclass(frozen=True)
class Cell:
    """The text of a cell, a second line in small type, and the value it is sorted by."""

    text: str
    sort: float | str = ""
    small: str = ""

    @property
    def kind(self) -> str:
        """How its text may be broken into lines."""
        return kind(self.text)

    @classmethod
    def of(cls, value: Any, digits: int = 2, *, small: bool = False) -> Cell:
        """Make a cell from a number with decimals."""
        return cls(number(value, digits, small=small), sort_key(value))

    @classmethod
    def whole(cls, value: Any) -> Cell:
        """Make a cell from a whole number, such as a count."""
        key = sort_key(value)
        return cls("–" if key == "" else f"{key:,.0f}", key)

    @classmethod
    def share(cls, value: Any, digits: int = 0) -> Cell:
        """Make a cell from a share, shown as a percentage."""
        return cls(percent(value, digits), sort_key(value))

    @classmethod
    def probability(cls, value: Any) -> Cell:
        """Make a cell from a probability, with >0.99 and <0.01 near the ends."""
        return cls(probability(value), sort_key(value))

    @classmethod
    def interval(cls, value: Any, low: Any, high: Any, digits: int = 2) -> Cell:
        """Make a cell from an estimate with its interval."""
        text, _, ends = estimate(value, low, high, digits).partition(" ")
        return cls(text, sort_key(value), ends)

    @classmethod
    def name(cls, text: Any) -> Cell:
        """Make a cell from a name, whatever it holds."""
        line = one_line(str(text))
        return cls(line, line.casefold())


@dataclass(frozen=True)
class Column:
    """A heading, its explanation, and whether the column holds numbers."""

    name: str
    help: str = ""
    numeric: bool = True


@dataclass
class Table:
    """A table of the page: columns, rows and caption."""

    id: str
    caption: str  # Title, also read aloud by screen readers
    columns: list[Column]
    rows: list[list[Cell]] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)
    note: str = ""  # What a reader should know, such as rows that were left out

    def add(self, cells: Sequence[Cell], **tags: str) -> None:
        """Add a row of cells to the table."""
        self.rows.append(list(cells))
        self.tags.append(tags)

    def __bool__(self) -> bool:
        return bool(self.rows)
