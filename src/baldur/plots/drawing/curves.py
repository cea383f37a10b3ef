"""Curves with a pointwise band: one curve per model or class, and a band for the first model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.tables.formatting import fixed
from baldur.exceptions import InputError
from baldur.plots.drawing.style import Style

MOST_MODELS = 6
"""Curves drawn unless models are named: more of them cannot be distinguished."""


@dataclass(frozen=True)
class Line:
    """One curve of a table."""

    model: str  # model, target: Model and class that the curve belongs to
    target: str
    name: str
    rows: pd.DataFrame  # The rows of the table

    def measure(self, table: pd.DataFrame | None, name: str) -> tuple[float, float, float] | None:
        """Return estimate, low and high of this curve in a table of measures; None without one."""
        if table is None or not len(table):
            return None
        at = (table["model"].astype(str) == self.model) & (table["measure"] == name)
        at &= table["class"].fillna("").astype(str) == self.target
        if not at.any():
            return None
        row = table[at].iloc[0]
        return float(row["estimate"]), float(row["low"]), float(row["high"])


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
    """Return the rows of some models; of the first one where each has a curve for several classes.

    `table` has curves, with a column class, or predictions of some `classes`.
    """
    if not len(table) or (classes is not None and not len(classes)):
        return table.head(0)
    if "model" not in table:
        return table.assign(model="model")
    known = list(dict.fromkeys(table["model"].astype(str)))
    if models is None:
        several = table["class"].nunique() > 1 if "class" in table else len(classes or ()) > 2
        models = known[: 1 if several else MOST_MODELS]
    unknown = [m for m in models if m not in known]
    if unknown:
        raise InputError(f"Model {unknown[0]!r} has no {what}; models that have one: {known}.")
    # In the order asked for, as the first model is the one with a band.
    place = table["model"].astype(str).map({m: i for i, m in enumerate(models)})
    return table.loc[place.dropna().sort_values(kind="stable").index].reset_index(drop=True)


def interval_text(called: str, found: tuple[float, float, float] | None) -> str:
    """Return ", AUC 0.90 (0.85 to 0.94)" for a measure; nothing where it is not known."""
    if found is None or not np.isfinite(found[0]):
        return ""
    value, low, high = (fixed(one).replace("-", "−") for one in found)
    text = f", {called} {value}"
    return f"{text} ({low} to {high})" if np.isfinite(found[1:]).all() else text


def banded(lines: Sequence[Line]) -> Line | None:
    """Return the curve that has a band: the first model, or none where the curves are classes.

    Bands of several curves hide each other; the table of the figure has all of them. There is none
    where the ends of the band are not known.
    """
    if not lines or (len(lines) > 1 and lines[0].target != lines[1].target):
        return None
    known = np.isfinite(lines[0].rows[["low", "high"]].to_numpy(dtype=float)).all(axis=1)
    return lines[0] if known.any() else None


def band_text(lines: Sequence[Line]) -> str:
    """Return " with a 95 % band for RF" for the alternative text; nothing without a band."""
    one = banded(lines)
    if one is None:
        return ""
    return " with a 95 % band" + ("" if len(lines) == 1 else f" for {one.name}")


def draw_band(ax: Any, at: Any, low: Any, high: Any, colour: str) -> None:
    """Fill the area between two curves, where both are known."""
    low, high = np.asarray(low, dtype=float), np.asarray(high, dtype=float)
    known = np.isfinite(low) & np.isfinite(high)
    ax.fill_between(at, low, high, where=known, color=colour, alpha=0.18, linewidth=0.0, zorder=1)


def draw_curves(ax: Any, lines: Sequence[Line], x: str, y: str, style: Style) -> list[Any]:
    """Draw the curves and the band of the first model; return the handles of a legend."""
    handles = []
    for i, line in enumerate(lines):
        at, value = (line.rows[c].to_numpy(dtype=float) for c in (x, y))
        if line is banded(lines):
            draw_band(ax, at, line.rows["low"], line.rows["high"], style.colour(i))
        (drawn,) = ax.plot(
            at, value, color=style.colour(i), linestyle=style.line(i), zorder=2,
            marker=style.marker(i) if len(at) == 1 else None,
        )  # fmt: skip
        handles.append(drawn)
    return handles
