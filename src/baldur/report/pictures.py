"""The figures of a page: which ones, in which section, and as what."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pandas as pd

__all__ = ["Numbers", "Picture"]

MOST_ROWS = 60
"""Rows of a figure's numbers on the page; the files have them all."""


@dataclass
class Numbers:
    """The first rows of the numbers of a figure."""

    columns: list[str]
    rows: list[list[str]]
    note: str = ""


@dataclass
class Picture:
    """A figure of the page.

    Attributes
    ----------
    id, section, caption, alt : str
    svg : str
        Or empty, for a figure with too many marks.
    image : str
        Then a data address.
    wide : bool
    table : Numbers or None
    """

    id: str
    section: str
    caption: str
    alt: str
    svg: Any = ""
    image: str = ""
    wide: bool = False
    table: Numbers | None = field(default=None)


def numbers_of(frame: pd.DataFrame) -> Numbers | None:
    """Return the first rows of a figure's table, as text."""
    if not len(frame):
        return None
    shown = frame.head(MOST_ROWS)
    rows = [[_text(v) for v in row] for row in shown.itertuples(index=False)]
    left = len(frame) - len(shown)
    return Numbers([str(c) for c in frame.columns], rows, f"{left:,} rows more." if left else "")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    return str(value)
