"""Numbers, intervals and names as text for readers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import one_line
from baldur.evaluation.metric_table import fixed

UNBROKEN = 24
"""Characters of a word that fit into a column."""
MOST_DECIMALS = 4
"""Of an end of an interval that lies close to 0."""
LONGEST = 60
"""Characters of a name inside a sentence; tables and figures have the whole one."""


def number(value: Any, digits: int = 2, *, small: bool = False, sign: bool = False) -> str:
    """Return a number with so many decimals; a dash where there is none.

    Large ones, and with `small` also small ones, have significant digits instead. With `sign`,
    positive numbers begin with a plus. A number that is rounded to 0 has no sign.
    """
    try:
        x = float(value)
    except (TypeError, ValueError):
        return "–"
    if not np.isfinite(x):
        return "–" if np.isnan(x) else ("∞" if x > 0 else "−∞")
    if abs(x) >= 1e6 or (small and 1e-12 < abs(x) < 0.5 * 10.0**-digits):
        text = f"{x:+.2g}" if sign else f"{x:.2g}"
    else:
        text = fixed(x, digits, sign=sign)
    return text.replace("-", "−")


def decimals(ends: Iterable[Any], digits: int = 2) -> int:
    """Return so many decimals that an end of an interval is not shown as 0 unless it is 0.

    Whether an interval includes 0 decides sentences, so that its ends have to show it.
    """
    known = [abs(float(x)) for x in ends if x is not None and np.isfinite(float(x))]
    least = min((x for x in known if x > 0), default=1.0)
    while digits < MOST_DECIMALS and least < 0.5 * 10.0**-digits:
        digits += 1
    return digits


def sd_decimals(sd: float) -> int:
    """Return so many decimals that a standard deviation has two digits; 2 for one of 0."""
    return max(1 - math.floor(math.log10(sd)), 0) if np.isfinite(sd) and sd > 0 else 2


def estimate(
    value: Any, low: Any = None, high: Any = None, digits: int = 2, *, sign: bool = False
) -> str:
    """Return ``0.86 [0.80, 0.90]``, without brackets where the ends are not known."""
    if low is not None and high is not None:
        digits = decimals((low, high), digits)
    text = number(value, digits, sign=sign)
    if low is None or high is None or text == "–":
        return text
    ends = [number(low, digits), number(high, digits)]
    return text if "–" in ends else f"{text} [{ends[0]}, {ends[1]}]"


def in_words(value: Any, low: Any, high: Any, digits: int = 2) -> str:
    """Return ``0.86 (95 % interval 0.80 to 0.90)``, without the interval where it is not known."""
    digits = decimals((low, high), digits)
    ends = [number(low, digits), number(high, digits)]
    text = number(value, digits)
    return text if "–" in ends else f"{text} (95 % interval {ends[0]} to {ends[1]})"


def probability(p: Any) -> str:
    """Return a probability with two decimals, ``>0.99`` and ``<0.01`` near its ends."""
    x = float("nan") if p is None else float(p)
    if not np.isfinite(x):
        return "–"
    return ">0.99" if x > 0.995 else "<0.01" if x < 0.005 else number(x)


def p_value(p: Any) -> str:
    """Return a p-value with three decimals, ``<0.001`` where that would be 0."""
    x = float(p)
    return "<0.001" if x < 0.0005 else number(x, 3)


def whole(value: Any) -> str:
    """Return a whole number, such as a count; a dash where there is none."""
    key = sort_key(value)
    return "–" if key == "" else f"{key:,.0f}"


def percent(share: Any, digits: int = 0) -> str:
    """Return a share as a percentage; a dash where there is none."""
    x = float("nan") if share is None else float(share)
    if not np.isfinite(x):
        return "–"
    if 0 < x < 0.5 * 10.0 ** -(digits + 2):
        return f"<{10.0**-digits:g} %"
    return f"{100.0 * x:.{digits}f} %"


def direction(greater_is_better: bool) -> str:
    """Return which values of a metric are better, in words."""
    return "higher is better" if greater_is_better else "lower is better"


def plain(value: Any) -> str:
    """Return a value as text: integers without decimals, "not set" for None."""
    if value is None:
        return "not set"
    if isinstance(value, str):
        text = one_line(value)
        if text.lower() in ("nan", "none", ""):
            return "not set"
        return text[:-2] if text.endswith(".0") and text[:-2].lstrip("-").isdigit() else text
    if isinstance(value, (bool, np.bool_)):
        return str(bool(value))
    if isinstance(value, (int, np.integer)):
        return str(int(value))
    if isinstance(value, (float, np.floating)):
        if np.isnan(value):
            return "not set"
        x = float(value)
        is_whole = np.isfinite(x) and abs(x) < 1e15 and x == int(x)
        return str(int(x)) if is_whole else f"{x:.4g}"
    return one_line(str(value))


def short(text: Any, most: int = LONGEST) -> str:
    """Return a name that fits into a sentence: the middle of a long one is left out."""
    line = one_line(str(text))
    if len(line) <= most:
        return line
    end = (most - 1) // 3  # a third of the characters are of its end
    return f"{line[: most - 1 - end]}…{line[len(line) - end :]}"


def distinct(names: Iterable[Any], most: int = LONGEST) -> list[str]:
    """Return names that fit into a sentence, cut so that different names stay different."""
    lines = [one_line(str(name)) for name in names]
    cut = [short(name, most) for name in lines]
    longest = max(map(len, lines), default=0)
    while most < longest and len(set(cut)) < len(set(lines)):
        most += LONGEST
        # Names that were cut to the same text get more characters.
        n_names = Counter(text for text, _ in set(zip(cut, lines, strict=True)))
        cut = [
            short(name, most) if n_names[text] > 1 else text
            for text, name in zip(cut, lines, strict=True)
        ]
    return cut


def listed(texts: Iterable[str], most: int = 8) -> str:
    """Return ``a, b and c``, or the first of them and how many more there are.

    Texts are not cut; names from files go through `distinct` or `short` first.
    """
    items = list(texts)
    shown = items[:most]
    if len(items) > most:
        return f"{', '.join(shown)} and {len(items) - most:,} more"
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def kind(text: str) -> str:
    """Return "long" for text with a very long word, "text" for text of many words, else ""."""
    if max((len(word) for word in text.split()), default=0) > UNBROKEN:
        return "long"
    return "text" if len(text) > 2 * UNBROKEN else ""


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


ENDS = ("estimate", "low", "high")
"""Columns of an interval in a table of results."""


@dataclass(frozen=True)
class Column:
    """A column of a table: its heading, the column of the DataFrame, how it is shown, and help.

    An interval is shown from three columns of the DataFrame, its ends in small type. Without a
    format a single value is a name. Cells that were made before are shown as they are.
    """

    name: str
    values: str | tuple[str, ...] = ""
    format: Callable[..., str] | None = None
    help: str = ""

    @property
    def numeric(self) -> bool:
        """Whether the column holds numbers."""
        return self.format is not None or not isinstance(self.values, str)

    def cell(self, row: Mapping[Any, Any]) -> Cell:
        """Return the cell of one row of the DataFrame."""
        if not isinstance(self.values, str):
            interval = [row.get(name) for name in self.values]
            as_text: Callable[..., str] = self.format or estimate
            text, _, ends = as_text(*interval).partition(" ")  # such as "0.86 [0.80, 0.90]"
            return Cell(text, sort_key(interval[0]), ends)
        value = row[self.values]
        if isinstance(value, Cell):
            return value
        if self.format is not None:
            return Cell(self.format(value), sort_key(value))
        line = one_line(str(value))
        return Cell(line, line.casefold())


@dataclass
class Table:
    """A table of the page: columns, rows and caption."""

    id: str
    caption: str  # Title, also read aloud by screen readers
    columns: list[Column]
    rows: list[list[Cell]] = field(default_factory=list)
    tags: list[dict[str, str]] = field(default_factory=list)  # Of each row, for its filters
    note: str = ""  # What a reader should know, such as rows that were left out

    def __bool__(self) -> bool:
        return bool(self.rows)


def make_table(
    name: str,
    caption: str,
    frame: pd.DataFrame | Iterable[Mapping[Any, Any]],
    columns: list[Column],
    note: str = "",
    tags: Sequence[str] = (),
) -> Table:
    """Return a DataFrame, or its rows, as a table of the page."""
    rows = frame.to_dict("records") if isinstance(frame, pd.DataFrame) else list(frame)
    cells = [[column.cell(row) for column in columns] for row in rows]
    tagged = [{tag: str(row[tag]) for tag in tags} for row in rows]
    return Table(name, caption, columns, cells, tagged, note)


def spread(
    frame: pd.DataFrame, index: Sequence[str], across: str, ends: Sequence[str] = ENDS
) -> list[dict[Any, Any]]:
    """Return a long table in wide form: one row for each group with the same values of `index`.

    Each row of a group becomes keys such as ``"auc low"``: its value of `across`, and an end.
    """
    groups: dict[tuple[Any, ...], dict[Any, Any]] = {}
    for row in frame.to_dict("records"):
        group = groups.setdefault(tuple(row[name] for name in index), dict(row))
        for end in ends:
            group.setdefault(f"{row[across]} {end}", row[end])
    return list(groups.values())


def ends_of(key: str, ends: Sequence[str] = ENDS) -> tuple[str, ...]:
    """Return the names of the columns that `spread` makes for one key."""
    return tuple(f"{key} {end}" for end in ends)


def named(*tables: Table) -> dict[str, Table]:
    """Return the tables that have rows, by their names."""
    return {table.id: table for table in tables if table}
