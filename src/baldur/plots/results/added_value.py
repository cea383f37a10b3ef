"""Sets of views: how well sets of views predict, and what each view adds."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.added_value.comparisons import (
    ADDED,
    ALL,
    ALL_ADDED,
    ALONE,
    BASELINE,
    BEYOND,
    WITH,
    WITHOUT,
)
from baldur.evaluation.added_value.differences import main_metric
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import number, plain
from baldur.plots.drawing.parts import (
    empty,
    fit_ticks,
    intervals,
    legend,
    legend_height,
    name_rows,
    row_height,
)
from baldur.plots.drawing.style import Style, style_of
from baldur.plots.results.tables import Results

_HEADINGS = {"auc": "AUC", "r2": "R²"}
_COLUMNS = [
    "views", "people", "value", "value_low", "value_high", "compared_with", "difference", "low",
    "high", "compared_on",
]  # fmt: skip
_ALL_VIEWS = "all views"
_LEVELS = (BASELINE, WITH, ALL, ALONE, WITHOUT)


class AddedValueDisplay(Display):
    """How well sets of views predict, and what each view adds, with intervals.

    Parameters
    ----------
    table : DataFrame
        As `baldur.evaluation.AddedValue.table` has it, or ``added_value.csv``.

    Attributes
    ----------
    table : DataFrame
        A row per set of views: views, people, value with its interval, compared_with, difference
        with its interval (of this set minus the one it is compared with), compared_on (people).
        The baseline and the sets that contain it are compared with the baseline, sets without one
        view with all views.
    metric : str
        "auc" or "r2".

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import AddedValueDisplay
    >>> table = pd.DataFrame({
    ...     "question": ["baseline", "all", "added"], "view": ["clinic", "", "genes"],
    ...     "model": ["A", "B", "B"], "metric": "auc", "people": 90, "value": [0.7, 0.78, 0.78],
    ...     "value_low": [0.6, 0.69, 0.69], "value_high": [0.8, 0.87, 0.87],
    ...     "difference": [None, None, 0.08], "low": [None, None, -0.01],
    ...     "high": [None, None, 0.17]})
    >>> print(AddedValueDisplay(table).alt_text)
    AUC of 2 sets of views: clinic (baseline) 0.7; all views 0.78, 0.08 (-0.01 to 0.17) compared
    with clinic.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        table = pd.DataFrame(table)
        known = set(table["metric"]) if "metric" in table else set()
        self.metric = main_metric(main_metric(True) in known or not known)
        part = table[table["metric"] == self.metric] if len(table) else table
        base = part[part["question"] == BASELINE] if len(part) else part
        self.baseline = plain(base["view"].iloc[0]) if len(base) else "the baseline"
        super().__init__(pd.DataFrame(self._set_rows(part), columns=_COLUMNS))

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Show what the views of a result add.

        Parameters
        ----------
        result : NestedResult or path of a results folder
            Of a comparison with `baseline_views`.

        Returns
        -------
        AddedValueDisplay
        """
        return cls(Results(result).frame("added_value"))

    def _set_rows(self, part: pd.DataFrame) -> list[tuple[Any, ...]]:
        """Return the rows in order: baseline and what is added, each view alone, all but each."""
        rows = part.to_dict("records") if len(part) else []
        levels = {r["model"]: r for r in rows if r["question"] in _LEVELS}
        added = {r["model"]: r for r in rows[::-1] if r["question"] in (ADDED, ALL_ADDED)}
        left_out = {r["reference"]: r for r in rows if r["question"] == BEYOND}
        nothing: tuple[Any, ...] = ("", np.nan, np.nan, np.nan, np.nan)
        found = []
        for model, row in levels.items():
            question, view = row["question"], row["view"]
            name = {
                BASELINE: f"{self.baseline} (baseline)", WITH: f"+ {view}", ALL: _ALL_VIEWS,
                ALONE: f"{view} alone", WITHOUT: f"all but {view}",
            }[question]  # fmt: skip
            compared = nothing
            if model in added:
                compared = (self.baseline, *_difference(added[model]))
            elif model in left_out:
                compared = (_ALL_VIEWS, *_difference(left_out.pop(model), -1.0))
            found.append((name, row["people"], *_level(row), *compared))
        # A set that is compared with the baseline and with all views has a row for each.
        for model, other in left_out.items():
            compared = (_ALL_VIEWS, *_difference(other, -1.0))
            level = (levels[model]["people"], *_level(levels[model]))
            found.append((f"all but {other['view']}", *level, *compared))
        return found

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        heading = _HEADINGS[self.metric]
        if not len(self.table):
            return f"Sets of views without {heading}: there is nothing to compare."
        first = self.table.iloc[0]
        parts = [f"{plain(first['views'])} {number(first['value'])}"]
        for row in self.table[self.table["compared_with"] != ""].to_dict("records"):
            change = (
                f"{number(row['difference'])} ({number(row['low'])} to {number(row['high'])}) "
                f"compared with {row['compared_with']}"
            )
            parts.append(f"{plain(row['views'])} {number(row['value'])}, {change}")
        return f"{heading} of {len(self.table)} sets of views: {'; '.join(parts)}."

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw a row per set of views: its metric, and the difference beside it."""
        rows = len(self.table)
        references = [r for r in dict.fromkeys(self.table["compared_with"]) if r]
        below = style_of(theme, width, ax).narrow
        names = [f"compared with {name}" for name in references]
        height = row_height(rows, 1.1) * (2 if below else 1)
        height += legend_height(names, style_of(theme, width, ax))
        shape: tuple[Any, Any] = ((1.0,), (1.0, 1.0)) if below else ((1.0, 1.0), (1.0,))
        with self._drawing(ax, theme, width, height, *shape) as (axes, style):
            if not rows:
                axes[1].set_axis_off()
                empty(axes[0], "There are no view sets to compare.", style)
                return
            self._values(axes[0], style)
            handles = self._differences(axes[1], references, style, named=below)
            legend(axes[0], handles, names, style, figure=axes[0].figure if ax is None else None)

    def _values(self, ax: Any, style: Style) -> None:
        at = np.arange(len(self.table))
        low, value, high = (
            self.table[c].to_numpy(dtype=float) for c in ("value_low", "value", "value_high")
        )
        intervals(ax, low, high, at, style.ink)
        ax.plot(value, at, linestyle="none", marker="o", color=style.ink, markersize=6)
        ax.axvline(float(value[0]), color=style.faint, linestyle="--", linewidth=1.0, zorder=0)
        name_rows(ax, self.table["views"].tolist(), style, 0.34)
        ax.set_xlabel(f"{_HEADINGS[self.metric]}\nbetter →", fontsize=style.size - 0.5)
        fit_ticks(ax, style, 0.6 if style.narrow else 0.3)

    def _differences(
        self, ax: Any, references: list[str], style: Style, *, named: bool
    ) -> list[Any]:
        """Draw the differences, a colour for each set that is compared with; return handles."""
        handles = []
        for i, reference in enumerate(references):
            mine = (self.table["compared_with"] == reference).to_numpy()
            at = np.flatnonzero(mine)
            part = self.table[mine]
            low, value, high = (
                part[c].to_numpy(dtype=float) for c in ("low", "difference", "high")
            )
            intervals(ax, low, high, at, style.colour(i))
            marks = ax.plot(
                value, at, linestyle="none", marker="os"[i % 2], color=style.colour(i), markersize=6
            )
            handles += marks
        ax.axvline(0.0, color=style.faint, linestyle="--", linewidth=1.0, zorder=0)
        name_rows(ax, self.table["views"].tolist(), style, 0.34)
        if not named:
            ax.tick_params(axis="y", labelleft=False)
        ax.set_xlabel(
            f"Difference in {_HEADINGS[self.metric]}\nbetter →", fontsize=style.size - 0.5
        )
        fit_ticks(ax, style, 0.6 if style.narrow else 0.3)
        return handles


def _difference(row: dict[Any, Any], sign: float = 1.0) -> tuple[float, ...]:
    """Return a difference with its interval, and on how many people."""
    ends = sorted((sign * row["low"], sign * row["high"]))
    return (sign * row["difference"], *ends, row["people"])


def _level(row: dict[Any, Any]) -> tuple[float, float, float]:
    return row["value"], row["value_low"], row["value_high"]
