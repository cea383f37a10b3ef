"""Parts that several figures draw: rows with names, ticks that fit, legends, intervals."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.plots.drawing.names import feature_labels, short_names
from baldur.plots.drawing.style import CHARACTER, Style

ROW = 0.27
"""Inches of a row with a name."""
LEAST_HEIGHT = 1.6
"""Inches of the lowest figure: axes, ticks and their labels need as much without any row."""


def row_height(rows: int, extra: float) -> float:
    """Return the height in inches of a figure with so many rows."""
    return max(LEAST_HEIGHT, rows * ROW + extra)


def empty(ax: Any, text: str, style: Style) -> None:
    """Write in the middle of the axes why there is nothing to see."""
    ax.set_axis_off()
    ax.text(
        0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=style.ink, wrap=True
    )


def name_rows(ax: Any, names: Sequence[Any], style: Style, share: float = 0.38) -> None:
    """Write names beside rows 0, 1, ... from the top, in this share of the width."""
    _write_rows(ax, short_names(names, style.characters(share)))


def name_features(
    ax: Any, pairs: Sequence[tuple[Any, Any]], style: Style, share: float = 0.42
) -> None:
    """Write features, given as pairs of view and feature, beside rows 0, 1, ... from the top."""
    _write_rows(ax, feature_labels(pairs, style.characters(share)))


def _write_rows(ax: Any, texts: Sequence[str]) -> None:
    ax.set_yticks(range(len(texts)), texts)
    ax.tick_params(axis="y", length=0)
    ax.set_ylim(len(texts) - 0.4, -0.6)


def name_columns(ax: Any, names: Sequence[str], style: Style, share: float = 0.5) -> None:
    """Write as many names below columns 0, 1, ... as fit into this share of the width."""
    longest = max((len(name) for name in names), default=1)
    column = style.width * share / max(1, len(names))
    step = int(np.ceil(_text_width(longest, style) / column))
    at = range(0, len(names), max(1, step))
    ax.set_xticks(at, [names[i] for i in at])


def fit_ticks(ax: Any, style: Style, share: float, most: int = 6) -> None:
    """Set at most so many ticks along x, fewer where their numbers would touch.

    `share` is the width of the axes as a part of the width of the figure.
    """
    low, high = sorted(ax.get_xlim())
    inches = style.width * share
    for bins in range(most, 0, -1):
        ax.locator_params(axis="x", nbins=bins)
        ticks = [t for t in ax.get_xticks() if low <= t <= high]
        if len(ticks) < 2:
            return
        texts = ax.xaxis.get_major_formatter().format_ticks(ticks)
        apart = (ticks[1] - ticks[0]) / (high - low) * inches
        wanted = _text_width(max(map(len, texts)), style)
        if apart >= wanted:
            return
    # The locator makes at least three ticks: some of them are left out.
    ax.set_xticks(ticks[:: int(np.ceil(wanted / apart))])


def _text_width(characters: int, style: Style) -> float:
    """Return the inches that a tick label of so many characters and the gap beside it take."""
    return characters * CHARACTER * style.size / 10.5 + 0.1


def intervals(ax: Any, low: Any, high: Any, at: Any, colour: Any) -> None:
    """Draw horizontal intervals at rows `at`, except those with an unknown or infinite end."""
    low, high, at = (np.asarray(v, dtype=float) for v in (low, high, at))
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        ax.hlines(at[known], low[known], high[known], color=colour, linewidth=1.6, zorder=2.0)


def stacked_bars(ax: Any, parts: Sequence[Any], style: Style, height: float) -> list[Any]:
    """Draw rows of horizontal bars, one part after the other; return the handles of a legend."""
    start = np.zeros(len(parts[0]) if len(parts) else 0)
    handles = []
    for i, part in enumerate(parts):
        value = np.asarray(part, dtype=float)
        handles.append(
            ax.barh(
                np.arange(len(value)), value, left=start, height=height, color=style.colour(i),
                hatch=style.hatch(i), edgecolor=style.rc()["hatch.color"], linewidth=0.6,
            )
        )  # fmt: skip
        start = start + value
    return handles


def legend_height(names: Sequence[str], style: Style) -> float:
    """Return the inches that a legend of these names takes."""
    return 0.215 * -(-len(names) // style.columns(names)) + 0.15


def legend(
    ax: Any,
    handles: Sequence[Any],
    names: Sequence[str],
    style: Style,
    *,
    notes: Sequence[str] | None = None,
    figure: Any = None,
) -> Any:
    """Write a legend above the axes, in as many columns as fit; return it, or None.

    Names are shortened where they must be; `notes`, which follow the names, never are. With
    `figure` the legend is placed above all axes of the figure.
    """
    if not handles:
        return None
    notes = [""] * len(names) if notes is None else list(notes)
    room = style.characters(0.88) - max(map(len, notes))
    shown = [f"{n}{note}" for n, note in zip(short_names(names, max(8, room)), notes, strict=True)]
    look: dict[str, Any] = {
        "ncols": style.columns(shown), "borderaxespad": 0.2, "handlelength": 2.6,
        "columnspacing": 1.2,
    }  # fmt: skip
    if figure is not None:
        return figure.legend(list(handles), shown, loc="outside upper left", **look)
    return ax.legend(list(handles), shown, loc="lower left", bbox_to_anchor=(0.0, 1.0), **look)
