"""Matrices of signed numbers as coloured cells, with signs for grey prints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baldur.plots.drawing.libraries import matplotlib
from baldur.plots.drawing.style import Style

# Vermilion above zero and blue below, distinguishable with every colour blindness.
_COLOURS = ("#0072B2", "#9ecae8", "#f4f4f4", "#f5b78f", "#D55E00")
MOST_VECTOR = 5000
"""Cells drawn as vectors; more of them are rasterised."""
MOST_SIGNED = 600
"""Cells with a sign written in them; more of them would be too small."""


def draw_cells(
    ax: Any,
    values: np.ndarray,
    style: Style,
    called: str,
    *,
    limit: float | None = None,
    inside: np.ndarray | None = None,
    written: Callable[[float], str] | None = None,
    signed: bool = True,
) -> Any:
    """Draw a matrix of signed numbers with a colour bar; return the mesh.

    Cells without a number stay empty, except that those of the mask `inside` get a dot. The others
    get their sign, or what `written` makes of their number. Numbers that cannot be negative, such
    as shares, are drawn with `signed=False`.
    """
    colors = matplotlib("colors")
    colours = colors.LinearSegmentedColormap.from_list(
        "baldur", _COLOURS if signed else _COLOURS[2:]
    )
    if limit is None:
        known = np.abs(values[np.isfinite(values)])
        limit = float(known.max()) if known.size and known.max() > 0 else 1.0
    rows, columns = values.shape
    # Cell i is centred at i, like rows with names.
    mesh = ax.pcolormesh(
        np.arange(columns + 1) - 0.5, np.arange(rows + 1) - 0.5, np.ma.masked_invalid(values),
        cmap=colours, vmin=-limit if signed else 0.0, vmax=limit, edgecolors="#ffffff",
        linewidth=0.6, rasterized=rows * columns > MOST_VECTOR,
    )  # fmt: skip
    ax.tick_params(length=0)
    ax.set_xlim(-0.5, columns - 0.5)
    ax.set_ylim(rows - 0.5, -0.5)
    if rows * columns <= MOST_SIGNED:
        _signs(ax, values, inside, limit, style, written or _sign)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    bar = ax.figure.colorbar(mesh, ax=ax, pad=0.02, aspect=28, shrink=0.95)
    bar.set_label(called)
    bar.outline.set_visible(False)
    bar.locator = matplotlib("ticker").MaxNLocator(5)
    bar.update_ticks()
    return mesh


def _signs(
    ax: Any,
    values: np.ndarray,
    inside: np.ndarray | None,
    limit: float,
    style: Style,
    written: Callable[[float], str],
) -> None:
    for (row, column), value in np.ndenumerate(values):
        if np.isnan(value):
            if inside is not None and inside[row, column]:
                ax.text(column, row, "•", ha="center", va="center", color=style.ink)
            continue
        # White text on dark cells, black text on pale ones.
        ink = "white" if abs(value) > 0.75 * limit else "#1a1a1a"
        text = written(float(value))
        ax.text(column, row, text, ha="center", va="center", color=ink, fontsize=style.size - 1)


def _sign(value: float) -> str:
    return "+" if value > 0 else ("−" if value < 0 else "0")
