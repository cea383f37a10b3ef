"""Learning curves: scores against the number of training samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.plots.display import Display
from baldur.plots.drawing import (
    chosen_models,
    empty,
    fit_ticks,
    legend,
    legend_height,
    lines_of,
    stacked_bars,
)
from baldur.plots.results_tables import results_of
from baldur.plots.style import Style, count, number, plain, short_names, style_of
from baldur.views.container import MultiView

COLUMNS = ["model", "metric", "people", "kind", "estimate", "low", "high"]


class LearningCurveDisplay(Display):
    """Measured scores with intervals against the number of training samples.

    Parameters
    ----------
    table : DataFrame
        model, metric, people, kind ("measured"), estimate, low, high; as ``learning_curve.csv``
        has it.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import LearningCurveDisplay
    >>> table = pd.DataFrame({"model": "ridge", "metric": "auc", "people": [40, 80],
    ...                       "kind": "measured", "estimate": [0.7, 0.78], "low": [0.6, 0.7],
    ...                       "high": [0.8, 0.86]})
    >>> LearningCurveDisplay(table).alt_text
    'Learning curve of AUC: ridge from 0.7 with 40 samples to 0.78 with 80.'
    """

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show the learning curve of a results folder.

        Parameters
        ----------
        result : path of a results folder, or the table that `learning_curve` returned
        models : list of str, optional
            Default: the first six.

        Returns
        -------
        LearningCurveDisplay
        """
        if isinstance(result, pd.DataFrame):
            table = result
        else:
            table = results_of(result).table("learning_curve")
        if not len(table):
            return cls(pd.DataFrame(columns=COLUMNS))
        # Older results have fitted curves as well.
        measured = table[table["kind"] == "measured"]
        return cls(chosen_models(measured, models, "learning curve"))

    @property
    def metric(self) -> str:
        """Heading of the metric that the curve shows."""
        name = str(self.table["metric"].iloc[0])
        return METRICS[name].heading if name in METRICS else name

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        if not len(self.table):
            return "Learning curve without points: the study did not ask for one."
        said = []
        for line in lines_of(self.table):
            rows = line.rows.sort_values("people")
            first, last = rows.iloc[0], rows.iloc[-1]
            said.append(
                f"{plain(line.name)} from {number(first['estimate'])} with "
                f"{first['people']:.0f} samples to {number(last['estimate'])} with "
                f"{last['people']:.0f}"
            )
        return f"Learning curve of {self.metric}: {'; '.join(said)}."

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw the points of each model with their intervals, joined by a line."""
        lines = lines_of(self.table)
        names, page = [line.name for line in lines], style_of(theme, width)
        height = page.width * 0.62 + legend_height(names, page)
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "There is no learning curve.", style)
                return
            handles = []
            for i, line in enumerate(lines):
                colour = style.colour(i)
                points = line.rows.sort_values("people")
                x, y, low, high = (
                    points[c].to_numpy(dtype=float) for c in ("people", "estimate", "low", "high")
                )
                # Shifted a little, so that the intervals of several models can be seen.
                apart = (i - (len(lines) - 1) / 2) * 0.008 * max(float(np.ptp(x)), 1.0)
                main.vlines(x + apart, low, high, color=colour, linewidth=1.3)
                (drawn,) = main.plot(
                    x + apart, y, linewidth=1.4, marker=style.marker(i), color=colour,
                    markersize=6, zorder=3,
                )  # fmt: skip
                handles.append(drawn)
            main.set_xlabel("Training samples")
            main.locator_params(axis="x", integer=True)
            main.set_ylabel(self.metric)
            self._legend(handles, names, style)


_HAS, _LABEL = "has_", "n_"
MOST_LABELS = 10


class MissingViewsDisplay(Display):
    """Patterns of present and missing views, with the number of samples of each.

    Parameters
    ----------
    presence : DataFrame
        One row per sample: a column ``has_<view>`` of 0 and 1 for each view and, in
        classification, label; as ``presence.csv`` has it.
    by_label : bool, optional
        Divide the bars by label; by default where there are at most ten labels.

    Attributes
    ----------
    table : DataFrame
        One row per pattern, the most frequent first: ``has_<view>``, people, and ``n_<label>``.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur import MultiView
    >>> from baldur.plots import MissingViewsDisplay
    >>> data = MultiView({"clinic": np.ones((4, 2)), "genes": np.ones((4, 3))},
    ...                  present={"genes": [True, True, False, False]})
    >>> MissingViewsDisplay.from_data(data).alt_text
    'Of 4 samples, 2 have all 2 views; 2 have no genes.'
    """

    def __init__(self, presence: pd.DataFrame, by_label: bool | None = None) -> None:
        presence = pd.DataFrame(presence)
        columns = [c for c in presence.columns if str(c).startswith(_HAS)]
        self.views = [str(c).removeprefix(_HAS) for c in columns]
        labels = presence["label"].astype(str) if "label" in presence else None
        if labels is not None and by_label is None:
            by_label = labels.nunique() <= MOST_LABELS
        self.labels = sorted(labels.unique()) if labels is not None and by_label else []
        has = presence[columns].astype(int).to_numpy(dtype=int)
        found, which = np.unique(has, axis=0, return_inverse=True) if len(has) else (has, has[:, 0])
        which = np.asarray(which).ravel()
        people = np.bincount(which, minlength=len(found))
        table = pd.DataFrame(found, columns=columns)
        table["people"] = people
        for name in self.labels:
            mine = which[(labels == name).to_numpy()] if labels is not None else which[:0]
            table[f"{_LABEL}{name}"] = np.bincount(mine, minlength=len(found))
        super().__init__(table.iloc[np.argsort(-people, kind="stable")].reset_index(drop=True))

    @classmethod
    def from_data(cls, data: MultiView, y: Any = None) -> Self:
        """Show the patterns of some data.

        Parameters
        ----------
        data : MultiView
        y : array-like of shape (n_samples,), optional
            Labels.

        Returns
        -------
        MissingViewsDisplay
        """
        has = {f"{_HAS}{v}": data.view(v).present.astype(int) for v in data.view_names}
        table = pd.DataFrame(has)
        if y is not None:
            table["label"] = np.asarray(y)
        return cls(table)

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Show the patterns of the data of a comparison.

        Parameters
        ----------
        result : NestedResult or path of a results folder

        Returns
        -------
        MissingViewsDisplay
        """
        found = results_of(result)
        return cls(found.table("presence"), by_label=bool(found.classes))

    @property
    def people(self) -> int:
        """Number of samples over all patterns."""
        return int(self.table["people"].sum())

    def present(self, view: str) -> int:
        """Return the number of samples that have a view."""
        return int((self.table[f"{_HAS}{view}"] * self.table["people"]).sum())

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        columns = [f"{_HAS}{v}" for v in self.views]
        whole = self.table[self.table[columns].all(axis=1)]["people"].sum()
        lacking = ", ".join(
            f"{missing:,} {'has' if missing == 1 else 'have'} no {plain(v)}"
            for v in self.views
            if (missing := self.people - self.present(v))
        )
        text = f"Of {count(self.people, 'sample')}, {int(whole):,} have all "
        text += count(len(self.views), "view")
        return f"{text}; {lacking}." if lacking else f"{text}."

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        most: int = 12,
    ) -> Self:
        """Draw a row per pattern: filled dots for present views, and a bar with the count.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        most : int, default=12
            Largest number of patterns that are drawn, the most frequent first.

        Returns
        -------
        MissingViewsDisplay
        """
        shown = self.table.head(most)
        # Names of views are written vertically above the dots.
        high = 0.09 * max((min(len(v), 22) + 5 for v in self.views), default=5)
        height = max(1.8, 0.3 * len(shown) + high + 0.8)
        columns = len(self.views)
        widths = (max(1.0, 0.28 * columns), 2.2)
        with self._drawing(ax, theme, width, height, widths) as (axes, style):
            dots, bars = axes
            if not self.people or not columns:
                bars.set_axis_off()
                empty(dots, "There are no samples.", style)
                return self
            self._dots(dots, shown, style)
            self._bars(bars, shown, style)
            bars.set_ylim(dots.get_ylim())
            more = len(self.table) - len(shown)
            note = f"\n({more:,} rarer patterns not drawn)" if more else ""
            bars.set_xlabel(f"Samples{note}", loc="right")
        return self

    def _dots(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        has = shown[[f"{_HAS}{v}" for v in self.views]].to_numpy(dtype=bool)
        y, x = np.mgrid[: has.shape[0], : has.shape[1]]
        ax.plot(x[has], y[has], linestyle="none", marker="o", markersize=7, color=style.colour(0))
        ax.plot(
            x[~has], y[~has], linestyle="none", marker="o", markersize=7, markerfacecolor="none",
            markeredgecolor=style.faint,
        )  # fmt: skip
        short = short_names(self.views, 22)
        names = [f"{n} ({self.present(v):,})" for n, v in zip(short, self.views, strict=True)]
        ax.xaxis.tick_top()
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks([])
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.tick_params(length=0)
        for side in ax.spines.values():
            side.set_visible(False)

    def _bars(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        parts = [shown[f"{_LABEL}{name}"] for name in self.labels] or [shown["people"]]
        handles = stacked_bars(ax, parts, style, height=0.62)
        for row, people in enumerate(shown["people"]):
            ax.text(
                people, row, f" {people:,}", va="center", color=style.ink, fontsize=style.size - 1
            )
        ax.set_xlim(0.0, float(shown["people"].max()) * 1.25)
        ax.set_yticks([])
        ax.locator_params(axis="x", integer=True)
        fit_ticks(ax, style, 0.5, most=4)
        if self.labels:
            legend(ax, handles, self.labels, style)
