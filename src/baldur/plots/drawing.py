"""Parts that several figures draw: rows with names, ticks that fit, legends, intervals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.metric_table import fixed
from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError
from baldur.plots.style import (
    CHARACTER,
    Style,
    feature_labels,
    matplotlib,
    number,
    short_names,
)

ESTIMATE = ("low", "estimate", "high")
"""Columns of an estimate with its interval."""
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


def spaced(places: Iterable[float], least: float) -> list[float]:
    """Return those places that keep this distance from all that are before them."""
    chosen: list[float] = []
    for place in places:
        if all(abs(place - other) >= least for other in chosen):
            chosen.append(place)
    return chosen


def _text_width(characters: int, style: Style) -> float:
    """Return the inches that a tick label of so many characters and the gap beside it take."""
    return characters * CHARACTER * style.size / 10.5 + 0.1


def points(
    ax: Any,
    table: pd.DataFrame,
    at: Any,
    colour: str,
    marker: str = "o",
    columns: Sequence[str] = ESTIMATE,
    **look: Any,
) -> Any:
    """Draw estimates at rows `at` with intervals where known; return the handle of a legend."""
    low, middle, high = (table[c].to_numpy(dtype=float) for c in columns)
    at = np.asarray(at, dtype=float)
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        ax.hlines(at[known], low[known], high[known], color=colour, linewidth=1.6, zorder=2.0)
    look = {"markersize": 6, **look}
    (drawn,) = ax.plot(middle, at, linestyle="none", marker=marker, color=colour, **look)
    return drawn


def reference_line(ax: Any, value: float, style: Style, *, upright: bool = True) -> None:
    """Draw the value that chance gives, or that others are compared with."""
    draw = ax.axvline if upright else ax.axhline
    draw(value, color=style.faint, linestyle="--", linewidth=1.0, zorder=0)


def metric_axis(metric: str, name: str | None = None, between: str = "\n") -> str:
    """Return the title of the axis of a metric, which says the better direction."""
    up = metric not in METRICS or METRICS[metric].greater_is_better
    return f"{name or metric_name(metric)}{between}{'better →' if up else '← better'}"


def metric_name(metric: str) -> str:
    """Return the name of a metric on an axis."""
    names = {"balanced_accuracy": "Balanced accuracy", "brier": "Brier score", "r2": "R²",
             "loss": "Loss"}  # fmt: skip
    return names.get(metric) or (METRICS[metric].heading if metric in METRICS else metric)


def with_interval(row: Mapping[Any, Any], columns: Sequence[str] = ESTIMATE) -> str:
    """Return "0.84 (0.76 to 0.92)" for the estimate of a row with its interval."""
    low, middle, high = (number(row[c]) for c in columns)
    return f"{middle} ({low} to {high})"


def listed(texts: Sequence[str], most: int) -> str:
    """Return the first texts, with a note where there are more."""
    return "; ".join(texts[:most]) + (", and more" if len(texts) > most else "")


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


def legend_height(names: Sequence[str], style: Style, notes: Sequence[str] | None = None) -> float:
    """Return the inches that a legend of these names, with a note after each, takes."""
    texts = names if notes is None else [n + note for n, note in zip(names, notes, strict=True)]
    return 0.215 * -(-len(texts) // style.columns(texts)) + 0.15


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
) -> None:
    """Draw a matrix of signed numbers with a colour bar.

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
        for (row, column), value in np.ndenumerate(values):
            # White text on dark cells, black text on pale ones.
            look: dict[str, Any] = {"color": "white" if abs(value) > 0.75 * limit else "#1a1a1a"}
            look["fontsize"] = style.size - 1
            text = (written or _sign)(float(value)) if not np.isnan(value) else ""
            if not text and inside is not None and inside[row, column]:
                text, look = "•", {"color": style.ink}
            if text:
                ax.text(column, row, text, ha="center", va="center", **look)
    ax.spines[["left", "bottom"]].set_visible(False)
    bar = colour_bar(ax, mesh, called, aspect=28, shrink=0.95)
    bar.outline.set_visible(False)


def colour_bar(ax: Any, mapped: Any, called: str, **look: Any) -> Any:
    """Draw a colour bar with about five ticks beside the axes; return it."""
    ticks = matplotlib("ticker").MaxNLocator(5)
    return ax.figure.colorbar(mapped, ax=ax, label=called, ticks=ticks, pad=0.02, **look)


def _sign(value: float) -> str:
    return "+" if value > 0 else ("−" if value < 0 else "0")


MOST_MODELS = 6
"""Curves drawn unless models are named: more of them cannot be distinguished."""


@dataclass(frozen=True)
class Line:
    """One curve of a table."""

    model: str  # model, target: Model and class that the curve belongs to
    target: str
    name: str
    rows: pd.DataFrame  # The rows of the table

    def note(self, table: pd.DataFrame | None, measure: str, called: str) -> str:
        """Return ", AUC 0.90 (0.85 to 0.94)" for this curve in a table of measures, or nothing."""
        if table is None or not len(table):
            return ""
        target = table["class"].fillna("").astype(str)
        is_curve = (table["model"].astype(str) == self.model) & (target == self.target)
        rows = table.loc[is_curve & (table["measure"] == measure), list(ESTIMATE)].astype(float)
        if not len(rows) or not np.isfinite(rows["estimate"].iloc[0]):
            return ""
        low, value, high = (fixed(end).replace("-", "−") for end in rows.iloc[0])
        known = np.isfinite(rows.iloc[0]).all()
        return f", {called} {value}" + (f" ({low} to {high})" if known else "")


def table_lines(table: pd.DataFrame) -> list[Line]:
    """Return the curves of a table with the columns model and class, in their order."""
    if not len(table):
        return []
    model = table["model"].astype(str)
    target = table["class"].fillna("").astype(str) if "class" in table else model.map(lambda _: "")
    many_models, many_targets = model.nunique() > 1, target.nunique() > 1
    lines = []
    for key, rows in table.groupby([model, target], sort=False):
        of_model, of_class = map(str, key)
        name = f"{of_model}: {of_class}" if many_models else of_class
        lines.append(Line(of_model, of_class, name if many_targets else of_model, rows))
    return lines


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


def draw_curves(ax: Any, lines: Sequence[Line], x: str, y: str, style: Style) -> list[Any]:
    """Draw the curves and the band of the first model; return the handles of a legend."""
    handles = []
    for i, line in enumerate(lines):
        at, value = (line.rows[c].to_numpy(dtype=float) for c in (x, y))
        if line is banded(lines):
            low, high = (line.rows[c].to_numpy(dtype=float) for c in ("low", "high"))
            known = np.isfinite(low) & np.isfinite(high)
            look = {"color": style.colour(i), "alpha": 0.18, "linewidth": 0.0}
            ax.fill_between(at, low, high, where=known, zorder=1, **look)
        (drawn,) = ax.plot(
            at, value, color=style.colour(i), linestyle=style.line(i), zorder=2,
            marker=style.marker(i) if len(at) == 1 else None,
        )  # fmt: skip
        handles.append(drawn)
    return handles
