"""Smooth calibration curves: observed against predicted, and a histogram of the predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.plots.drawing.curves import (
    Line,
    band_text,
    chosen_models,
    draw_curves,
    interval_text,
    lines_of,
)
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import plain
from baldur.plots.drawing.parts import empty, legend_height
from baldur.plots.drawing.style import Style, style_of
from baldur.plots.results.tables import Results

BINS = 20
"""Bins of the histogram: enough to see where the predictions are."""


class CalibrationDisplay(Display):
    """Smooth calibration curves with a 95 % band.

    Parameters
    ----------
    table : DataFrame
        model, class, predicted, observed, low, high; as ``calibration_curve.csv`` has it.
    measures : DataFrame, optional
        model, class, measure, estimate, low, high; as ``calibration.csv`` has it.
    spread : DataFrame, optional
        model, class, left, right, people: a histogram of the predictions.
    regression : bool, default=False
        Whether the predictions are numbers and not probabilities.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import CalibrationDisplay
    >>> table = pd.DataFrame({"model": "ridge", "class": "PD", "predicted": [0.2, 0.5, 0.8],
    ...                       "observed": [0.25, 0.5, 0.7], "low": [0.1, 0.4, 0.5],
    ...                       "high": [0.4, 0.6, 0.9]})
    >>> print(CalibrationDisplay(table).alt_text)
    Smooth calibration curves with a 95 % band: ridge, at most 0.1 from the diagonal.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        measures: pd.DataFrame | None = None,
        spread: pd.DataFrame | None = None,
        *,
        regression: bool = False,
    ) -> None:
        super().__init__(table)
        self.measures, self.spread, self.regression = measures, spread, regression

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show the models of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        models : list of str, optional
            Default: the first six, or only the first one where there are more than two classes.

        Returns
        -------
        CalibrationDisplay
        """
        found = Results(result)
        table = chosen_models(found.frame("calibration_curve"), models, "calibration curve")
        if not len(table):
            table = pd.DataFrame(columns=["model", "class", "predicted", "observed", "low", "high"])
        measures = found.frame("calibration")
        spread = _histogram(found.frame("predictions"), table, found.classes)
        return cls(
            table,
            measures if len(measures) else None,
            spread,
            regression=not found.classes,
        )

    def _slopes(self, lines: Sequence[Line]) -> list[str]:
        """Return the calibration slope of each curve, as text after the name."""
        return [interval_text("slope", line.measure(self.measures, "slope")) for line in lines]

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        lines = lines_of(self.table)
        if not lines:
            return "Calibration without curves: no model gives probabilities."
        said = []
        for line, slope in zip(lines, self._slopes(lines), strict=True):
            far = np.abs(line.rows["observed"] - line.rows["predicted"]).max()
            said.append(f"{plain(line.name)}{slope}, at most {far:.2g} from the diagonal")
        return f"Smooth calibration curves{band_text(lines)}: {'; '.join(said)}."

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw the curves, and below them a histogram of the predictions."""
        lines = lines_of(self.table)
        below = self.spread is not None and len(self.spread) > 0 and len(lines) > 0
        names, notes, page = [o.name for o in lines], self._slopes(lines), style_of(theme, width)
        texts = [f"{n}{note}" for n, note in zip(names, notes, strict=True)]
        height = page.width * 0.85 + legend_height(texts, page) + (0.9 if below else 0.0)
        heights = (4.0, 1.0) if below else (1.0,)
        with self._drawing(ax, theme, width, height, (1.0,), heights) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "No model gives probabilities.", style)
                return
            ends = self._ends()
            main.plot(ends, ends, color=style.faint, linestyle=":", linewidth=1.2, zorder=0)
            handles = draw_curves(main, lines, "predicted", "observed", style)
            main.set_xlim(*ends)
            main.set_ylim(*ends)
            main.set_ylabel("Observed" if self.regression else "Observed share")
            self._legend(handles, names, style, notes)
            said = "Predicted" if self.regression else "Predicted probability"
            if not below:
                main.set_xlabel(said)
                return
            self._people(axes[1], lines, style)
            main.tick_params(axis="x", labelbottom=False)
            axes[1].set_xlim(*ends)
            axes[1].set_xlabel(said)

    def _ends(self) -> tuple[float, float]:
        if not self.regression:
            return -0.01, 1.01
        values = self.table[["predicted", "observed", "low", "high"]].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        room = 0.03 * max(float(np.ptp(values)), 1e-9)
        return float(values.min()) - room, float(values.max()) + room

    def _people(self, ax: Any, lines: Sequence[Line], style: Style) -> None:
        if self.spread is None:
            return
        for i, line in enumerate(lines):
            at = (self.spread["model"] == line.model) & (self.spread["class"] == line.target)
            part = self.spread[at]
            if len(part):
                edges = np.r_[part["left"].to_numpy(), part["right"].to_numpy()[-1:]]
                ax.stairs(
                    part["people"], edges, color=style.colour(i), linestyle=style.line(i),
                    linewidth=1.2, fill=len(lines) == 1, alpha=0.6 if len(lines) == 1 else 1.0,
                )  # fmt: skip
        ax.set_ylabel("Samples")
        ax.locator_params(axis="y", nbins=2, integer=True)


def _histogram(
    predictions: pd.DataFrame, curves: pd.DataFrame, classes: Sequence[str]
) -> pd.DataFrame | None:
    """Count the samples (the mean over repeats) in bins of the prediction."""
    if not len(predictions) or not len(curves):
        return None
    ends = (0.0, 1.0)
    if not classes:
        # The same bins for all models, so that their histograms can be compared.
        drawn = predictions["model"].astype(str).isin(set(curves["model"].astype(str)))
        every = predictions.loc[drawn, "predicted"].to_numpy(dtype=float)
        every = every[np.isfinite(every)]
        ends = (float(every.min()), float(every.max())) if len(every) else ends
    parts = []
    for line in lines_of(curves):
        mine = predictions[predictions["model"].astype(str) == line.model]
        column = f"p_{line.target}" if classes else "predicted"
        if column not in mine or not len(mine):
            continue
        values = mine[column].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        counts, edges = np.histogram(values, BINS, range=ends)
        repeats = mine["repeat"].nunique() if "repeat" in mine else 1
        parts.append(
            pd.DataFrame(
                {"model": line.model, "class": line.target, "left": edges[:-1],
                 "right": edges[1:], "people": counts / repeats}
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else None
