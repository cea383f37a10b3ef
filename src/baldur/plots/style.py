"""How figures look: colours for the colour-blind, sizes and themes, and the parts they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.optional import import_extra
from baldur.evaluation.metric_table import fixed
from baldur.exceptions import InputError
from baldur.plots.text import ESTIMATE, feature_labels, short_names

# The colours of Okabe and Ito, which can be distinguished with every common colour blindness.
# Those that are pale on white come last; yellow, which cannot be seen there, is left out.
_PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
# In grey prints, and beyond six colours, markers and line styles tell the curves apart.
_MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
_LINES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (7, 2)))
_HATCHES = ("", "///", "...", "\\\\\\", "xxx", "+++", "ooo", "---")

WIDTH = 5.2
"""Inches. A page shows this at 500 pixels; on a phone of 360 pixels the text still has 10."""
NARROWEST = 2.4
CHARACTER = 0.082
"""Inches that a character of a tick label takes on average, at the full text size."""
ROW = 0.27
"""Inches of a row with a name."""
LEAST_HEIGHT = 1.6
"""Inches of the lowest figure: axes, ticks and their labels need as much without any row."""

# Vermilion above zero and blue below, distinguishable with every colour blindness.
_COLOURS = ("#0072B2", "#9ecae8", "#f4f4f4", "#f5b78f", "#D55E00")
MOST_VECTOR = 5000
"""Cells drawn as vectors; more of them are rasterised."""
MOST_SIGNED = 600
"""Cells with a sign written in them; more of them would be too small."""


@dataclass(frozen=True)
class Style:
    """Colours and sizes of one figure, and the parts of figures that are drawn in them."""

    ink: str = "#1a1a1a"
    faint: str = "#767676"
    ground: str = "white"  # Colour of the background, or "none"
    width: float = WIDTH  # Width of the figure in inches

    @property
    def size(self) -> float:
        """Font size of plain text in points."""
        return 10.5 if self.width >= 4.2 else 9.0

    @property
    def narrow(self) -> bool:
        """Whether the figure is drawn for a phone."""
        return self.width < 4.2

    def colour(self, i: int) -> str:
        """Return the colour of the i-th curve or group."""
        return _PALETTE[i % len(_PALETTE)]

    def marker(self, i: int) -> str:
        """Return the marker of the i-th curve or group."""
        return _MARKERS[i % len(_MARKERS)]

    def line(self, i: int) -> Any:
        """Return the line style of the i-th curve."""
        # Shifted by one whenever the colours repeat, so that no pair of both repeats soon.
        return _LINES[(i + i // len(_PALETTE)) % len(_LINES)]

    def hatch(self, i: int) -> str:
        """Return the hatching of the i-th bar."""
        return _HATCHES[i % len(_HATCHES)]

    def characters(self, share: float = 0.38) -> int:
        """Return how many characters of a name fit into this share of the width."""
        return max(12, int(self.width * share / (CHARACTER * self.size / 10.5)))

    def columns(self, names: Sequence[str]) -> int:
        """Return the number of columns, at most four, in which a legend of these names fits."""
        longest = max((len(name) for name in names), default=1) + 8
        return int(np.clip(self.characters(1.0) // longest, 1, min(4, max(1, len(names)))))

    def rc(self) -> dict[str, Any]:
        """Return the settings of matplotlib that draw in this style."""
        return {
            "axes.edgecolor": self.ink,
            "axes.facecolor": "none",
            "axes.formatter.useoffset": False,
            "axes.grid": False,
            "axes.labelcolor": self.ink,
            "axes.labelsize": self.size,
            "axes.linewidth": 0.8,
            "axes.spines.right": False,
            "axes.spines.top": False,
            "axes.titlecolor": self.ink,
            "axes.titlesize": self.size,
            "figure.edgecolor": "none",
            "figure.facecolor": self.ground,
            "font.size": self.size,
            "grid.color": self.faint,
            "hatch.color": self.ground if self.ground != "none" else "#ffffff",
            "hatch.linewidth": 0.8,
            "legend.fontsize": self.size - 1,
            "legend.frameon": False,
            "legend.labelcolor": self.ink,
            "lines.linewidth": 1.6,
            "savefig.edgecolor": "none",
            "savefig.facecolor": self.ground,
            "text.color": self.ink,
            "text.usetex": False,
            "xtick.color": self.ink,
            "xtick.labelsize": self.size - 1,
            "ytick.color": self.ink,
            "ytick.labelsize": self.size - 1,
        }

    # -- parts that several figures draw

    def empty(self, ax: Any, text: str) -> None:
        """Write in the middle of the axes why there is nothing to see."""
        ax.set_axis_off()
        middle = {"ha": "center", "va": "center", "transform": ax.transAxes}
        ax.text(0.5, 0.5, text, color=self.ink, wrap=True, **middle)

    def name_rows(self, ax: Any, names: Sequence[Any], share: float = 0.38) -> None:
        """Write names beside rows 0, 1, ... from the top, in this share of the width."""
        self._write_rows(ax, short_names(names, self.characters(share)))

    def name_features(self, ax: Any, pairs: Sequence[tuple[Any, Any]], share: float = 0.42) -> None:
        """Write features, given as pairs of view and feature, beside rows 0, 1, ..."""
        self._write_rows(ax, feature_labels(pairs, self.characters(share)))

    def _write_rows(self, ax: Any, texts: Sequence[str]) -> None:
        ax.set_yticks(range(len(texts)), texts)
        ax.tick_params(axis="y", length=0)
        ax.set_ylim(len(texts) - 0.4, -0.6)

    def name_columns(self, ax: Any, names: Sequence[str], share: float = 0.5) -> None:
        """Write as many names below columns 0, 1, ... as fit into this share of the width."""
        longest = max((len(name) for name in names), default=1)
        column = self.width * share / max(1, len(names))
        step = int(np.ceil(self._text_width(longest) / column))
        at = range(0, len(names), max(1, step))
        ax.set_xticks(at, [names[i] for i in at])

    def fit_ticks(self, ax: Any, share: float, most: int = 6) -> None:
        """Set at most so many ticks along x, fewer where their numbers would touch.

        `share` is the width of the axes as a part of the width of the figure.
        """
        low, high = sorted(ax.get_xlim())
        inches = self.width * share
        for bins in range(most, 0, -1):
            ax.locator_params(axis="x", nbins=bins)
            ticks = [t for t in ax.get_xticks() if low <= t <= high]
            if len(ticks) < 2:
                return
            texts = ax.xaxis.get_major_formatter().format_ticks(ticks)
            distance = (ticks[1] - ticks[0]) / (high - low) * inches
            wanted = self._text_width(max(map(len, texts)))
            if distance >= wanted:
                return
        # The locator makes at least three ticks: some of them are left out.
        ax.set_xticks(ticks[:: int(np.ceil(wanted / distance))])

    def _text_width(self, characters: int) -> float:
        """Return the inches that a tick label of so many characters and the gap beside it take."""
        return characters * CHARACTER * self.size / 10.5 + 0.1

    def reference_line(self, ax: Any, value: float, *, upright: bool = True) -> None:
        """Draw the value that chance gives, or that others are compared with."""
        draw = ax.axvline if upright else ax.axhline
        draw(value, color=self.faint, linestyle="--", linewidth=1.0, zorder=0)

    def stacked_bars(self, ax: Any, parts: Sequence[Any], height: float) -> list[Any]:
        """Draw bars in rows, each part where the one before it ends; return legend handles."""
        start = np.zeros(len(parts[0]) if len(parts) else 0)
        handles = []
        for i, part in enumerate(parts):
            value = np.asarray(part, dtype=float)
            handles.append(
                ax.barh(
                    np.arange(len(value)), value, left=start, height=height, color=self.colour(i),
                    hatch=self.hatch(i), edgecolor=self.rc()["hatch.color"], linewidth=0.6,
                )
            )  # fmt: skip
            start = start + value
        return handles

    def legend_height(self, names: Sequence[str], notes: Sequence[str] | None = None) -> float:
        """Return the inches that a legend of these names, with a note after each, takes."""
        texts = names if notes is None else [n + note for n, note in zip(names, notes, strict=True)]
        return 0.215 * -(-len(texts) // self.columns(texts)) + 0.15

    def legend(
        self,
        ax: Any,
        handles: Sequence[Any],
        names: Sequence[str],
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
        room = self.characters(0.88) - max(map(len, notes))
        shown = [
            f"{n}{note}" for n, note in zip(short_names(names, max(8, room)), notes, strict=True)
        ]
        look: dict[str, Any] = {
            "ncols": self.columns(shown), "borderaxespad": 0.2, "handlelength": 2.6,
            "columnspacing": 1.2,
        }  # fmt: skip
        if figure is not None:
            return figure.legend(list(handles), shown, loc="outside upper left", **look)
        return ax.legend(list(handles), shown, loc="lower left", bbox_to_anchor=(0.0, 1.0), **look)

    def draw_cells(
        self,
        ax: Any,
        values: np.ndarray,
        title: str,
        *,
        limit: float | None = None,
        inside: np.ndarray | None = None,
        written: Callable[[float], str] | None = None,
        signed: bool = True,
    ) -> None:
        """Draw a matrix of signed numbers with a colour bar.

        Cells without a number stay empty, except that those of the mask `inside` get a dot. The
        others get their sign, or what `written` makes of their number. Numbers that cannot be
        negative, such as shares, are drawn with `signed=False`. The colours end at `limit`, by
        default the largest absolute value.
        """
        colors = matplotlib("colors")
        colours = colors.LinearSegmentedColormap.from_list(
            "baldur", _COLOURS if signed else _COLOURS[2:]
        )
        if limit is None:
            size = np.abs(values[np.isfinite(values)])
            limit = float(size.max()) if size.size and size.max() > 0 else 1.0
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
                look: dict[str, Any] = {
                    "color": "white" if abs(value) > 0.75 * limit else "#1a1a1a"
                }
                look["fontsize"] = self.size - 1
                text = (written or _sign)(float(value)) if not np.isnan(value) else ""
                if not text and inside is not None and inside[row, column]:
                    text, look = "•", {"color": self.ink}
                if text:
                    ax.text(column, row, text, ha="center", va="center", **look)
        ax.spines[["left", "bottom"]].set_visible(False)
        bar = self.colour_bar(ax, mesh, title, aspect=28, shrink=0.95)
        bar.outline.set_visible(False)

    def colour_bar(self, ax: Any, mapped: Any, title: str, **look: Any) -> Any:
        """Draw a colour bar with about five ticks beside the axes; return it."""
        ticks = matplotlib("ticker").MaxNLocator(5)
        return ax.figure.colorbar(mapped, ax=ax, label=title, ticks=ticks, pad=0.02, **look)

    def draw_curves(self, ax: Any, lines: Sequence[Line], x: str, y: str) -> list[Any]:
        """Draw the curves and the band of the first model; return the handles of a legend."""
        handles = []
        for i, line in enumerate(lines):
            x_values, y_values = (line.rows[c].to_numpy(dtype=float) for c in (x, y))
            if line is banded(lines):
                low, high = (line.rows[c].to_numpy(dtype=float) for c in ("low", "high"))
                known = np.isfinite(low) & np.isfinite(high)
                look = {"color": self.colour(i), "alpha": 0.18, "linewidth": 0.0}
                ax.fill_between(x_values, low, high, where=known, zorder=1, **look)
            handles += ax.plot(
                x_values, y_values, color=self.colour(i), linestyle=self.line(i), zorder=2,
                marker=self.marker(i) if len(x_values) == 1 else None,  # one point has no line
            )  # fmt: skip
        return handles


THEMES = {
    "light": Style(),
    "dark": Style(ink="#e8e8e8", faint="#9a9a9a", ground="#16181d"),
    # A grey with the contrast that text needs (4.5 to 1) on white and on black.
    "both": Style(ink="#767676", faint="#8a8a8a", ground="none"),
}
"""Name of a theme to its style; "both" is transparent and legible on white and on black."""


def make_style(theme: str | None, width: float | None, ax: Any = None) -> Style:
    """Return the style of a figure; in given axes it has their width, and by default their ink."""
    if theme is not None and theme not in THEMES:
        raise InputError(f"theme must be one of {tuple(THEMES)}, but got {theme!r}.")
    style = THEMES[theme or "light"]
    if ax is not None:
        box = ax.get_window_extent()
        inches = float(box.width / ax.figure.dpi)
        ink = ax.xaxis.label.get_color() if theme is None else style.ink
        return replace(style, ink=str(ink), width=width or max(inches, NARROWEST))
    if width is not None and not NARROWEST <= width <= 40:
        raise InputError(f"width must lie between {NARROWEST} and 40 inches, but got {width!r}.")
    return replace(style, width=width or WIDTH)


def row_height(rows: int, extra: float) -> float:
    """Return the height in inches of a figure with so many rows."""
    return max(LEAST_HEIGHT, rows * ROW + extra)


def spaced(places: Iterable[float], least: float) -> list[float]:
    """Return those places that keep this distance from all before them, as ticks have to."""
    chosen: list[float] = []
    for place in places:
        if all(abs(place - other) >= least for other in chosen):
            chosen.append(place)
    return chosen


def points(
    ax: Any,
    table: pd.DataFrame,
    at: Any,
    colour: str,
    marker: str = "o",
    columns: Sequence[str] = ESTIMATE,
    *,
    upright: bool = False,
    **look: Any,
) -> Any:
    """Draw estimates and known intervals in rows `at`, or columns; return legend handles."""
    low, middle, high = (table[c].to_numpy(dtype=float) for c in columns)
    at = np.asarray(at, dtype=float)
    known = np.isfinite(low) & np.isfinite(high)
    if known.any():
        draw = ax.vlines if upright else ax.hlines
        draw(at[known], low[known], high[known], color=colour, linewidth=1.6, zorder=2.0)
    look = {"markersize": 6, "linestyle": "none", **look}
    x, y = (at, middle) if upright else (middle, at)
    return ax.plot(x, y, marker=marker, color=colour, **look)


def _sign(value: float) -> str:
    return "+" if value > 0 else ("−" if value < 0 else "0")


# -- curves of a table ---------------------------------------------------------------------------

MOST_MODELS = 6
"""Curves drawn unless models are named: more of them cannot be distinguished."""


@dataclass(frozen=True)
class Line:
    """One curve of a table."""

    model: str  # model, target: Model and class that the curve belongs to
    target: str
    name: str
    rows: pd.DataFrame  # The rows of the table

    def note(self, table: pd.DataFrame | None, measure: str, name: str) -> str:
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
        return f", {name} {value}" + (f" ({low} to {high})" if known else "")


def table_lines(table: pd.DataFrame) -> list[Line]:
    """Return the curves of a table with the columns model and class, in their order."""
    model = table["model"].astype(str)
    target = table["class"].fillna("").astype(str) if "class" in table else model.map(lambda _: "")
    many_models, many_targets = model.nunique() > 1, target.nunique() > 1
    lines = []
    for key, rows in table.groupby([model, target], sort=False):
        of_model, of_class = map(str, key)
        # Named by what distinguishes the curves: model, class or both.
        name = f"{of_model}: {of_class}" if many_models else of_class
        lines.append(Line(of_model, of_class, name if many_targets else of_model, rows))
    return lines


def chosen_models(
    table: pd.DataFrame,
    models: Sequence[str] | None,
    what: str,
    classes: Sequence[str] | None = None,
) -> pd.DataFrame:
    """Return the rows of the models to draw, by default the first six.

    By default only the first one where each has a curve for several classes. `table` has curves,
    with a column class, or predictions of some `classes`; `what` is what an error calls them.
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
    order = table["model"].astype(str).map({m: i for i, m in enumerate(models)})
    return table.loc[order.dropna().sort_values(kind="stable").index].reset_index(drop=True)


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
    line = banded(lines)
    if line is None:
        return ""
    return " with a 95 % band" + ("" if len(lines) == 1 else f" for {line.name}")


def matplotlib(module: str = "") -> Any:
    """Return matplotlib, or one of its modules: ``matplotlib("figure")``."""
    return import_extra(f"matplotlib.{module}".rstrip("."), "report", "Drawing figures")


def imaging(module: str) -> Any:
    """Return a module of the libraries for brain images, such as "nilearn.plotting"."""
    return import_extra(module, "imaging", "Drawing brains")
