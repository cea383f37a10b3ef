"""Would more people help? Scores against training people, and the curve through them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.plots.drawing.curves import chosen_models, lines_of
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.parts import empty, legend, legend_height
from baldur.plots.drawing.style import number, plain, style_of
from baldur.plots.results.tables import Results

__all__ = ["LearningCurveDisplay"]

COLUMNS = ["model", "metric", "people", "kind", "estimate", "low", "high"]


class LearningCurveDisplay(Display):
    """Measured scores with intervals, and a fitted law that goes on to more people.

    Parameters
    ----------
    table : DataFrame
        model, metric, people, kind ("measured", "curve" or "gain"), estimate, low, high; as
        ``learning_curve.csv`` has it.
    """

    def __init__(self, table: pd.DataFrame) -> None:
        super().__init__(pd.DataFrame(table).reset_index(drop=True))

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
            table = Results(result).frame("learning_curve")
        if not len(table):
            return cls(pd.DataFrame(columns=COLUMNS))
        return cls(chosen_models(table, models, "learning curve"))

    @property
    def metric(self) -> str:
        """What is measured, in words."""
        name = str(self.table["metric"].iloc[0])
        return METRICS[name].heading if name in METRICS else name

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        if not len(self.table):
            return "Learning curve without points: none was asked for."
        said = []
        for line in lines_of(self.table):
            rows = line.rows[line.rows["kind"] == "measured"].sort_values("people")
            first, last = rows.iloc[0], rows.iloc[-1]
            text = (
                f"{plain(line.name, 40)} from {number(first['estimate'])} with "
                f"{first['people']:.0f} people to {number(last['estimate'])} with "
                f"{last['people']:.0f}"
            )
            gain = line.rows[line.rows["kind"] == "gain"].sort_values("people")
            if len(gain):
                more = gain.iloc[-1]
                text += (
                    f", {more['estimate']:+.2g} expected of {more['people'] - last['people']:.0f} "
                    "more"
                )
            said.append(text)
        return f"Learning curve of {self.metric}: {'; '.join(said)}."

    def plot(self, ax: Any = None, *, theme: str | None = None, width: float | None = None) -> Self:
        """Draw points with intervals, and curves that are dashed where they foretell.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.

        Returns
        -------
        LearningCurveDisplay
        """
        lines = lines_of(self.table)
        names, page = [line.name for line in lines], style_of(theme, width)
        height = page.width * 0.62 + legend_height(names, page)
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "There is no learning curve.", style)
                return self
            handles = []
            for i, line in enumerate(lines):
                colour = style.colour(i)
                points = line.rows[line.rows["kind"] == "measured"]
                x, y, low, high = (
                    points[c].to_numpy(dtype=float) for c in ("people", "estimate", "low", "high")
                )
                # A little apart, so that intervals of several models can be seen.
                apart = (i - (len(lines) - 1) / 2) * 0.008 * max(float(np.ptp(x)), 1.0)
                main.vlines(x + apart, low, high, color=colour, linewidth=1.3)
                (drawn,) = main.plot(
                    x + apart, y, linestyle="none", marker=style.marker(i), color=colour,
                    markersize=6, zorder=3,
                )  # fmt: skip
                handles.append(drawn)
                curve = line.rows[line.rows["kind"] == "curve"].sort_values("people")
                at, value = (curve[c].to_numpy(dtype=float) for c in ("people", "estimate"))
                last = float(x.max())
                main.plot(at[at <= last], value[at <= last], color=colour, linewidth=1.4)
                main.plot(
                    at[at >= last], value[at >= last], color=colour, linewidth=1.4, linestyle="--"
                )
                if len(lines) <= 3 and len(curve):
                    main.fill_between(
                        at, curve["low"], curve["high"], color=colour, alpha=0.14, linewidth=0.0
                    )
            main.set_xlabel("Training people (dashed: foretold)")
            main.set_ylabel(self.metric)
            legend(main, handles, names, style)
        return self
