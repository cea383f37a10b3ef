"""Numbers, intervals and lists as a reader wants them, and tables that a page can sort."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baldur.safety.escape import one_line

__all__ = [
    "Cell",
    "Column",
    "Table",
    "count",
    "estimate",
    "in_words",
    "kind",
    "listed",
    "number",
    "percent",
    "short",
]

UNBROKEN = 24
"""Characters of a word that fit into a column."""
LONGEST = 60
"""Characters of a name inside a sentence; tables and figures have the whole one."""


def number(value: Any, digits: int = 2, *, small: bool = False) -> str:
    """Return a number with so many decimals; a dash where there is none.

    Large ones, and with `small` also small ones, have significant digits instead.
    """
    try:
        x = float(value)
    except (TypeError, ValueError):
        return "–"
    if not np.isfinite(x):
        return "–" if np.isnan(x) else ("∞" if x > 0 else "−∞")
    if abs(x) >= 1e6 or (small and 1e-12 < abs(x) < 0.5 * 10.0**-digits):
        text = f"{x:.2g}"
    else:
        text = f"{x:.{digits}f}"
        if float(text) == 0:
            text = text.lstrip("-")
    return text.replace("-", "−")


def estimate(value: Any, low: Any = None, high: Any = None, digits: int = 2) -> str:
    """Return ``0.86 [0.80, 0.90]``, without brackets where the ends are unknown."""
    text = number(value, digits)
    if low is None or high is None or text == "–":
        return text
    ends = [number(low, digits), number(high, digits)]
    return text if "–" in ends else f"{text} [{ends[0]}, {ends[1]}]"


def in_words(value: Any, low: Any, high: Any, digits: int = 2) -> str:
    """Return ``0.86 (95 % interval 0.80 to 0.90)``."""
    ends = [number(low, digits), number(high, digits)]
    text = number(value, digits)
    return text if "–" in ends else f"{text} (95 % interval {ends[0]} to {ends[1]})"


def percent(share: Any, digits: int = 0) -> str:
    """Return a share as a percentage."""
    x = float("nan") if share is None else float(share)
    if not np.isfinite(x):
        return "–"
    if 0 < x < 0.5 * 10.0 ** -(digits + 2):
        return f"<{10.0**-digits:g} %"
    return f"{100.0 * x:.{digits}f} %"


def count(n: Any, one: str, many: str | None = None) -> str:
    """Return ``1 person`` or ``1,234 people``."""
    return f"{int(n):,} {one if int(n) == 1 else (many or one + 's')}"


def short(text: Any, most: int = LONGEST) -> str:
    """Return a name that fits into a sentence."""
    line = one_line(str(text))
    return line if len(line) <= most else f"{line[: most - 1]}…"


def listed(names: Iterable[Any], most: int = 8) -> str:
    """Return ``a, b and c``, or the first of them and how many more there are."""
    every = [short(name) for name in names]
    if len(every) > most:
        return f"{', '.join(every[:most])} and {len(every) - most:,} more"
    if len(every) < 2:
        return "".join(every)
    return f"{', '.join(every[:-1])} and {every[-1]}"


def kind(text: str) -> str:
    """Return "long" for a text with a word that has to be broken, "text" for one of many words."""
    if max((len(word) for word in text.split()), default=0) > UNBROKEN:
        return "long"
    return "text" if len(text) > 2 * UNBROKEN else ""


@dataclass(frozen=True)
class Cell:
    """What a cell shows, in small below it, and what it is sorted by."""

    text: str
    sort: float | str = ""
    small: str = ""

    @property
    def kind(self) -> str:
        """How its text may be broken into lines."""
        return kind(self.text)

    @classmethod
    def of(cls, value: Any, digits: int = 2, *, small: bool = False) -> Cell:
        """Make it from a number."""
        x = float(value) if value is not None else float("nan")
        return cls(number(x, digits, small=small), x if np.isfinite(x) else "")

    @classmethod
    def interval(cls, value: Any, low: Any, high: Any, digits: int = 2) -> Cell:
        """Make it from an estimate with its interval."""
        x = float(value) if value is not None else float("nan")
        text, _, ends = estimate(x, low, high, digits).partition(" ")
        return cls(text, x if np.isfinite(x) else "", ends)

    @classmethod
    def name(cls, text: Any) -> Cell:
        """Make it from a name, whatever it holds."""
        line = one_line(str(text))
        return cls(line, line.casefold())


@dataclass(frozen=True)
class Column:
    """A heading, what it means, and whether it is a number."""

    name: str
    help: str = ""
    numeric: bool = True


@dataclass
class Table:
    """A table of the page.

    Attributes
    ----------
    id : str
    caption : str
        For those who hear it.
    columns : list of Column
    rows : list of list of Cell
    tags : list of dict of str to str
        Of every row, what the page may filter by.
    note : str
        What was left out.
    """

    id: str
    caption: str
    columns: list[Column]
    rows: list[list[Cell]] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)
    note: str = ""

    def add(self, cells: Sequence[Cell], **tags: str) -> None:
        """Add a row."""
        self.rows.append(list(cells))
        self.tags.append(tags)

    def __bool__(self) -> bool:
        return bool(self.rows)
