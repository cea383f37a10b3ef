"""Display: the base class of all figures, with the numbers apart from the drawing."""

from __future__ import annotations

import io
import os
import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from baldur.core.atomic_io import write_atomically
from baldur.evaluation.results import Results
from baldur.exceptions import InputError
from baldur.plots.style import LEAST_HEIGHT, Style, make_style, matplotlib

FORMATS = ("png", "svg", "pdf")
_SCRIPTS = (
    "Noto Sans CJK SC", "Noto Sans CJK JP", "Noto Sans Devanagari", "Noto Sans Thai",
    "Hiragino Sans", "PingFang SC", "Microsoft YaHei", "Yu Gothic", "Malgun Gothic",
)  # fmt: skip
"""Fonts for scripts that the font of matplotlib does not have."""
_PAD = 0.08
"""Inches around the axes, so that nothing touches the edge."""
_SALT = "baldur"
"""Seed of the ids in an SVG file, which are the same on every run."""
_NOTEBOOK_DPI = 110
"""Dots per inch of the picture that a notebook shows: about 570 pixels at the default width."""


class Display(ABC):
    """A figure: its numbers in `table`, its drawing by `plot`.

    A notebook shows the figure where a cell ends with the object. ``from_estimator(model)`` shows a
    fitted estimator. ``from_result(result)`` shows a `NestedResult`, or a results folder by its
    path; of figures of one model the parameter `model` is its name, by default the first.

    Parameters
    ----------
    table : DataFrame
        The numbers shown.

    Attributes
    ----------
    table : DataFrame
        The numbers shown.
    alt_text : str
        What is shown, in one sentence with its numbers.
    figure_ : matplotlib Figure
        After `plot`.
    ax_ : matplotlib Axes
        After `plot`; the first of `axes_` where there are several panels.
    axes_ : list of matplotlib Axes
        After `plot`.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import Display, ViewShareDisplay
    >>> table = pd.DataFrame({"group": "all", "view": ["clinic", "genes"], "share": [0.7, 0.3]})
    >>> display = ViewShareDisplay(table)
    >>> isinstance(display, Display)
    True
    >>> display
    <ViewShareDisplay: Share of each view in the prediction's variance: clinic 70%, genes 30%.>
    """

    table: pd.DataFrame
    ax_: Any
    axes_: list[Any]
    figure_: Any
    _own_figure: bool

    columns: ClassVar[Sequence[str]] = ()
    """Columns that a table without rows gets."""
    nothing: tuple[str, str] = ("", "")
    """Alternative text of a figure without rows, and what is written in it."""

    def __init__(self, table: pd.DataFrame) -> None:
        table = pd.DataFrame(table).reset_index(drop=True)
        self.table = table if len(table.columns) else pd.DataFrame(columns=list(self.columns))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.alt_text}>"

    def _repr_png_(self) -> bytes | None:
        """Return the picture that a notebook shows; None where it was drawn in given axes."""
        if hasattr(self, "figure_") and not self._own_figure:
            return None
        return self._bytes("png", _NOTEBOOK_DPI)

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        return (self._is_empty and self.nothing[0]) or self._sentence()

    @abstractmethod
    def _sentence(self) -> str:
        """Return the alternative text of a figure that shows something."""

    @property
    def _is_empty(self) -> bool:
        return not len(self.table)

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        **options: Any,
    ) -> Self:
        """Draw the figure.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Axes to draw in; a figure of several panels divides their area. By default a new
            figure is made, which pyplot does not manage: nothing has to be closed.
        theme : {"light", "dark", "both"}, optional
            For white pages (default), for dark pages, or transparent for both.
        width : float, optional
            Width in inches, 5.2 by default. About 3.6 suits a phone.
        **options
            Options of the class, which its documentation lists, such as `most`.

        Returns
        -------
        Display
            This object, with `figure_`, `ax_` and `axes_` set.
        """
        style = make_style(theme, width, ax)
        self.ax_, self._own_figure = ax, ax is None
        with matplotlib().rc_context({**style.rc(), "font.family": _fonts()}):
            if self._is_empty and self.nothing[1]:
                style.empty(self._axes(style, LEAST_HEIGHT)[0], self.nothing[1])
            else:
                self._draw(style, **options)
        return self

    _draw: Callable[..., None]
    """Draw the figure in a style, with the options of the class."""

    def save(self, path: str | os.PathLike[str], *, dpi: float = 200) -> Path:
        """Write the figure, drawn in the default way if it has not been drawn yet.

        Parameters
        ----------
        path : str or path-like
            A file name that ends in .png, .svg or .pdf. The file is written completely or not at
            all.
        dpi : float, default=200
            Dots per inch of a PNG, and of the rasterised parts of other formats.

        Returns
        -------
        Path
        """
        path = Path(path)
        form = path.suffix.lower().removeprefix(".")
        if form not in FORMATS:
            raise InputError(
                f"{path}: expected a file name that ends in .png, .svg or .pdf. Rename the file."
            )
        write_atomically(path, self._bytes(form, dpi))
        return path

    def svg(self, prefix: str = "") -> str:
        """Return the figure as an ``<svg>`` element for a page of HTML.

        Text and axes of a figure drawn with ``theme="both"`` take the text colour of the page.

        Parameters
        ----------
        prefix : str, default=""
            Put before every id, so that a page can have several figures.

        Returns
        -------
        str
        """
        if re.fullmatch(r"[A-Za-z][A-Za-z0-9_-]*|", prefix) is None:
            raise InputError(f"prefix must be letters, digits, - and _, but got {prefix!r}.")
        text = self._bytes("svg", 150).decode()
        text = text[text.index("<svg") :].strip()
        text = re.sub(r"<metadata>.*?</metadata>\s*", "", text, flags=re.DOTALL)
        if prefix:
            text = re.sub(r'\bid="|url\(#|href="#', rf"\g<0>{prefix}", text)
        # Only the neutral text colour is replaced, never a colour with a meaning.
        return text.replace(make_style("both", None).ink, "currentColor")

    def png(self, dpi: float = 150) -> bytes:
        """Return the figure as a PNG, for figures with too many marks for an SVG.

        Parameters
        ----------
        dpi : float, default=150
            Dots per inch.

        Returns
        -------
        bytes
        """
        return self._bytes("png", dpi)

    def _bytes(self, form: str, dpi: float) -> bytes:
        """Return the figure as a file of a format, drawn in the default way if it is not drawn."""
        if not hasattr(self, "figure_"):
            self.plot()
        mpl = matplotlib()
        stream = io.BytesIO()
        # Without a date, so that the same figure gives the same file.
        metadata = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
        with mpl.rc_context({"svg.hashsalt": _SALT}), warnings.catch_warnings():
            # A letter without a font is drawn as a box; the table and the alternative text have it.
            warnings.filterwarnings("ignore", r"Glyph .* missing from font")
            if form == "svg" and self._own_figure:
                # The same as by `savefig`, which draws a figure twice to lay it out.
                canvas = matplotlib("backends.backend_svg").FigureCanvasSVG(self.figure_)
                dpi_before = self.figure_.dpi
                self.figure_.dpi = dpi
                canvas.print_svg(stream, metadata=metadata[form])
                self.figure_.dpi = dpi_before
            else:
                self.figure_.savefig(stream, format=form, dpi=dpi, metadata=metadata[form])
        return stream.getvalue()

    def _axes(
        self,
        style: Style,
        height: float,
        widths: Sequence[float] = (1.0,),
        heights: Sequence[float] = (1.0,),
    ) -> list[Any]:
        """Return panels of these relative sizes, row by row: of an own figure, or in given axes."""
        if self.ax_ is None:
            self.figure_ = matplotlib("figure").Figure((style.width, height), layout="constrained")
            self.figure_.get_layout_engine().set(w_pad=_PAD, h_pad=_PAD)
            self.axes_ = _cells(self.figure_, self.figure_.add_gridspec, widths, heights)
        else:
            self.figure_ = self.ax_.get_figure()
            is_divided = len(widths) * len(heights) > 1
            self.axes_ = _inside(self.ax_, widths, heights) if is_divided else [self.ax_]
        self.ax_ = self.axes_[0]
        return self.axes_

    def _panels(self, style: Style, n: int, height: float, extra: float = 0.0) -> list[Any]:
        """Return n axes of this height beside each other, or below each other on a phone.

        `extra` is the height of what all of them share, such as a legend.
        """
        sizes = (1.0,) * max(1, n)
        if style.narrow:
            return self._axes(style, height * len(sizes) + extra, (1.0,), sizes)
        return self._axes(style, height + extra, sizes)

    def _legend(
        self,
        handles: Sequence[Any],
        names: Sequence[str],
        style: Style,
        notes: Sequence[str] | None = None,
    ) -> Any:
        """Write a legend above all axes of an own figure, or above the first of given axes."""
        figure = self.figure_ if self._own_figure else None
        return style.legend(self.ax_, handles, names, notes=notes, figure=figure)


@cache
def _fonts() -> list[str]:
    """Return the font of figures, and the fonts of other scripts that are installed."""
    manager = matplotlib("font_manager").fontManager
    have = {font.name for font in manager.ttflist}
    return ["DejaVu Sans", *(name for name in _SCRIPTS if name in have)]


def _cells(
    figure: Any, add_grid: Callable[..., Any], widths: Sequence[float], heights: Sequence[float]
) -> list[Any]:
    """Return axes in the cells of a new grid, row by row."""
    ratios = {"width_ratios": list(widths), "height_ratios": list(heights)}
    return [figure.add_subplot(cell) for cell in add_grid(len(heights), len(widths), **ratios)]


def _inside(ax: Any, widths: Sequence[float], heights: Sequence[float]) -> list[Any]:
    """Return axes in the area of one given Axes, row by row."""
    ax.set_axis_off()
    spec = ax.get_subplotspec()
    if spec is not None:
        return _cells(ax.get_figure(), spec.subgridspec, widths, heights)
    # Fractions of the given axes, from the lower left; the rest of each cell is for labels.
    filled = 0.88
    across, down = (np.array(sizes) / sum(sizes) for sizes in (widths, heights))
    lefts, tops = np.cumsum(across) - across, 1.0 - (np.cumsum(down) - down)
    return [
        ax.inset_axes((left, top - high * filled, wide * filled, high * filled))
        for top, high in zip(tops, down, strict=True)
        for left, wide in zip(lefts, across, strict=True)
    ]


def results_of(source: Any, *, several: bool = False) -> Results:
    """Return the tables of a `NestedResult`, of the path of a results folder, or of `Results`.

    A result of several outcomes is refused unless `several` is true.
    """
    if isinstance(source, Results):
        return source
    if isinstance(source, (str, os.PathLike)):
        folder = Path(source)
        if not folder.is_dir():
            raise InputError(f"{folder}: there is no such folder of results.")
        return Results(folder=folder)
    from baldur.evaluation import NestedResult

    if isinstance(source, NestedResult):
        if source.outcomes and not several:
            raise InputError(
                "The result has several outcomes; give that of one, such as "
                f"result[{source.outcomes[0]!r}], or draw them all with OutcomesDisplay."
            )
        return Results(source)
    raise InputError(
        "Expected what nested_cv returned, or the path of a results folder, but got "
        f"{type(source).__name__}."
    )


def rows_of_model(
    results: Results, table: str, model: str | None, what: str
) -> tuple[pd.DataFrame, str]:
    """Return the rows of a model in a table of results, by default of the first, and its name."""
    rows = results.table(table)
    names = list(dict.fromkeys(rows["model"].astype(str))) if "model" in rows else []
    if model is None and not names:
        raise InputError(f"There is no finished model with {what} in these results.")
    name = str(names[0]) if model is None else model
    if name not in names:
        raise InputError(f"Model {name!r} has no {what}; models that have some: {names}.")
    return rows[rows["model"] == name], name


def fold_names(table: pd.DataFrame) -> np.ndarray:
    """Return the name of the fold of each row: "3", or "2.3" where there are repeats."""
    repeats = table["repeat"].astype(int)
    folds = table["fold"].astype(int).astype(str)
    if repeats.nunique() <= 1:
        return folds.to_numpy(dtype=str)
    return (repeats.astype(str) + "." + folds).to_numpy(dtype=str)
