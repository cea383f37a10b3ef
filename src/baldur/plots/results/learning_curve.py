"""Learning curves: scores against the number of training samples, and their extrapolation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.plots.drawing.curves import banded, chosen_models, draw_band, lines_of
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import number, plain
from baldur.plots.drawing.parts import empty, legend_height
from baldur.plots.drawing.style import style_of
from baldur.plots.results.tables import Results

COLUMNS = ["model", "metric", "people", "kind", "estimate", "low", "high"]


class LearningCurveDisplay(Display):
    """Measured scores with intervals, and a fitted curve that extrapolates to more samples.

    Parameters
    ----------
    table : DataFrame
        model, metric, people, kind ("measured", "curve" or "gain"), estimate, low, high; as
        ``learning_curve.csv`` has it.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import LearningCurveDisplay
    >>> table = pd.DataFrame({"model": "ridge", "metric": "auc", "people": [40, 80, 160],
    ...                       "kind": ["measured", "measured", "gain"],
    ...                       "estimate": [0.7, 0.78, 0.03], "low": [0.6, 0.7, -0.01],
    ...                       "high": [0.8, 0.86, 0.07]})
    >>> print(LearningCurveDisplay(table).alt_text)
    Learning curve of AUC: ridge from 0.7 with 40 samples to 0.78 with 80, an expected change of
    +0.03 with 80 more.
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
            table = Results(result).frame("learning_curve")
        if not len(table):
            return cls(pd.DataFrame(columns=COLUMNS))
        return cls(chosen_models(table, models, "learning curve"))

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
            rows = line.rows[line.rows["kind"] == "measured"].sort_values("people")
            first, last = rows.iloc[0], rows.iloc[-1]
            text = (
                f"{plain(line.name)} from {number(first['estimate'])} with "
                f"{first['people']:.0f} samples to {number(last['estimate'])} with "
                f"{last['people']:.0f}"
            )
            gain = line.rows[line.rows["kind"] == "gain"].sort_values("people")
            if len(gain):
                more = gain.iloc[-1]
                text += (
                    f", an expected change of {more['estimate']:+.2g} with "
                    f"{more['people'] - last['people']:.0f} more"
                )
            said.append(text)
        return f"Learning curve of {self.metric}: {'; '.join(said)}."

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw points with intervals, and curves that are dashed where they extrapolate."""
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
                points = line.rows[line.rows["kind"] == "measured"]
                x, y, low, high = (
                    points[c].to_numpy(dtype=float) for c in ("people", "estimate", "low", "high")
                )
                # Shifted a little, so that the intervals of several models can be seen.
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
                if line is banded(lines):
                    draw_band(main, at, curve["low"], curve["high"], colour)
            main.set_xlabel("Training samples (dashed: extrapolated)")
            main.locator_params(axis="x", integer=True)
            main.set_ylabel(self.metric)
            self._legend(handles, names, style)
