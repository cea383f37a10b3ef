"""Pieces that several figures draw: rows with names, legends, intervals, an empty figure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.plots.drawing.style import Style, label, plain

__all__ = [
    "ROW",
    "empty",
    "full_name",
    "intervals",
    "legend",
    "legend_height",
    "name_rows",
    "row_height",
]

ROW = 0.27
"""Inches of a row with a name."""


def row_height(rows: int, extra: float = 0.9, least: float = 1.6) -> float:
    """Return the height in inches of a figure with so many rows."""
    return max(least, rows * ROW + extra)


def empty(ax: Any, text: str, style: Style) -> None:
    """Say why there is nothing to see."""
    ax.set_axis_off()
    ax.text(
        0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=style.ink, wrap=True
    )


def name_rows(ax: Any, names: Sequence[Any], style: Style, share: float = 0.38) -> None:
    """Write names beside rows 0, 1, ... from the top."""
    shown = [label(name, style.characters(share)) for name in names]
    ax.set_yticks(range(len(shown)), shown)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(shown) - 0.4, -0.6)


def full_name(view: Any, feature: Any, many: bool = True) -> str:
    """Return a feature with its view before it, unless its name begins with that already."""
    view, feature = str(view), str(feature)
    if not many or not view or feature.startswith((f"{view}_", f"{view}:", f"{view}.")):
        return feature
    # The feature is what is looked for: a long view leaves it room.
    return f"{plain(view, 10)}: {feature}"


def intervals(ax: Any, low: Any, high: Any, at: Any, colour: Any, *, zorder: float = 2.0) -> None:
    """Draw horizontal intervals at rows `at`, ends that are unknown or infinite left out."""
    low, high, at = (np.asarray(v, dtype=float) for v in (low, high, at))
    known = np.isfinite(low) & np.isfinite(high)
    shades = (
        colour if isinstance(colour, str) else [c for c, k in zip(colour, known, strict=True) if k]
    )
    if known.any():
        ax.hlines(at[known], low[known], high[known], color=shades, linewidth=1.6, zorder=zorder)


def legend_height(names: Sequence[str], style: Style) -> float:
    """Return the inches that a legend of these names takes."""
    return 0.21 * -(-len(names) // style.columns(names)) + 0.1


def legend(
    ax: Any, handles: Sequence[Any], names: Sequence[str], style: Style, *, figure: Any = None
) -> Any:
    """Write a legend above the panel, in as many columns as fit; return it, or None.

    With `figure` it stands above all its panels, and takes width from none of them.
    """
    if not handles:
        return None
    shown = [label(name, style.characters(0.8)) for name in names]
    look: dict[str, Any] = {
        "ncols": style.columns(shown), "borderaxespad": 0.2, "handlelength": 2.6,
        "columnspacing": 1.2,
    }  # fmt: skip
    if figure is not None:
        return figure.legend(list(handles), shown, loc="outside upper left", **look)
    return ax.legend(list(handles), shown, loc="lower left", bbox_to_anchor=(0.0, 1.0), **look)
