"""Curves with pointwise bands, as four figures draw them: one line per model or class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.plots.drawing.style import Style, plain

__all__ = ["Line", "area_texts", "chosen_models", "draw_bands", "lines_of"]

MOST_MODELS = 6
"""Curves drawn unless models are named: more are a tangle."""


class Line:
    """One curve: whose it is, and its rows.

    Attributes
    ----------
    model, target : str
        Model and class.
    name : str
        How it is called where the others are known.
    rows : DataFrame
    """

    def __init__(self, model: str, target: str, name: str, rows: pd.DataFrame) -> None:
        self.model, self.target, self.name, self.rows = model, target, name, rows


def lines_of(table: pd.DataFrame) -> list[Line]:
    """Return the curves of a table with the columns model and class, in their order."""
    if not len(table):
        return []
    model = table["model"].astype(str)
    target = table["class"].fillna("").astype(str) if "class" in table else model.map(lambda _: "")
    many_models, many_targets = model.nunique() > 1, target.nunique() > 1
    found = []
    for one, of in dict.fromkeys(zip(model, target, strict=True)):
        name = f"{one}: {of}" if many_models else of
        rows = table[(model == one) & (target == of)]
        found.append(Line(one, of, name if many_targets else one, rows))
    return found


def chosen_models(
    table: pd.DataFrame,
    models: Sequence[str] | None,
    what: str,
    classes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the rows of some models; of one alone where each has a curve for several classes.

    `table` has curves, with a column class, or predictions of some `classes`.
    """
    if not len(table) or (classes is not None and not len(classes)):
        return table.head(0)
    if "model" not in table:
        return table
    known = list(dict.fromkeys(table["model"].astype(str)))
    if models is None:
        several = table["class"].nunique() > 1 if "class" in table else len(classes or ()) > 2
        models = known[: 1 if several else MOST_MODELS]
    unknown = [m for m in models if m not in known]
    if unknown:
        raise InputError(f"There is no {what} of a model {unknown[0]!r}; those with one: {known}.")
    return table[table["model"].astype(str).isin(list(models))].reset_index(drop=True)


def area_texts(
    lines: Sequence[Line], areas: pd.DataFrame | None, measure: str, called: str
) -> list[str]:
    """Return the name of each curve with its area and interval, where known."""
    found = []
    for line in lines:
        text = plain(line.name, 40)
        if areas is not None and len(areas):
            at = (areas["model"].astype(str) == line.model) & (areas["measure"] == measure)
            at &= areas["class"].astype(str) == line.target
            if at.any():
                row = areas[at].iloc[0]
                ends = f"{row['low']:.2f}–{row['high']:.2f}"
                text += f", {called} {row['estimate']:.2f} ({ends})"
        found.append(text)
    return found


def draw_bands(
    ax: Any, lines: Sequence[Line], x: str, y: str, style: Style, *, first: int = 0
) -> list[Any]:
    """Draw curves with their bands; return the handles of a legend.

    Bands of more than three curves hide each other and are left out; the table has them.
    """
    handles = []
    for i, line in enumerate(lines):
        at, value, low, high = (line.rows[c].to_numpy(dtype=float) for c in (x, y, "low", "high"))
        colour = style.colour(i + first)
        if len(lines) <= 3:
            known = np.isfinite(low) & np.isfinite(high)
            ax.fill_between(
                at, low, high, where=known, color=colour, alpha=0.18, linewidth=0.0, zorder=1
            )
        (drawn,) = ax.plot(
            at, value, color=colour, linestyle=style.line(i + first), zorder=2,
            marker=style.marker(i + first) if len(at) == 1 else None,
        )  # fmt: skip
        handles.append(drawn)
    return handles
