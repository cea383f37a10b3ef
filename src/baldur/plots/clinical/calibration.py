"""Smooth calibration: what was said against what happened, and how often it was said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.plots.drawing.curves import Line, chosen_models, draw_bands, lines_of
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.parts import empty, legend, legend_height
from baldur.plots.drawing.style import Style, plain, style_of
from baldur.plots.results.tables import Results

__all__ = ["CalibrationDisplay"]

BINS = 20
"""Bars of the histogram below: enough to see where people are."""


class CalibrationDisplay(Display):
    """Smooth calibration curves with 95 % bands.

    Parameters
    ----------
    table : DataFrame
        model, class, predicted, observed, low, high; as ``calibration_curve.csv`` has it.
    measures : DataFrame, optional
        model, class, measure, estimate, low, high; as ``calibration.csv`` has it.
    spread : DataFrame, optional
        model, class, left, right, people: a histogram of the predictions.
    regression : bool, default=False
        Predictions are numbers, not probabilities.
    """

    def __init__(
        self,
        table: pd.DataFrame,
        measures: pd.DataFrame | None = None,
        spread: pd.DataFrame | None = None,
        *,
        regression: bool = False,
    ) -> None:
        super().__init__(pd.DataFrame(table).reset_index(drop=True))
        self.measures, self.spread, self.regression = measures, spread, regression

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show the models of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        models : list of str, optional
            Default: the first six; of several classes the first model alone.

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

    def _measure(self, line: Line, name: str) -> tuple[float, float, float] | None:
        table = self.measures
        if table is None:
            return None
        at = (table["model"].astype(str) == line.model) & (table["measure"] == name)
        at &= table["class"].fillna("").astype(str) == line.target
        if not at.any():
            return None
        row = table[at].iloc[0]
        return float(row["estimate"]), float(row["low"]), float(row["high"])

    def _texts(self, lines: Sequence[Line]) -> list[str]:
        found = []
        for line in lines:
            text = plain(line.name, 40)
            slope = self._measure(line, "slope")
            if slope is not None and np.isfinite(slope[0]):
                text += f", slope {slope[0]:.2f}"
                if np.isfinite(slope[1:]).all():
                    text += f" ({slope[1]:.2f}–{slope[2]:.2f})"
            found.append(text)
        return found

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        lines = lines_of(self.table)
        if not lines:
            return "Calibration without curves: no model gives probabilities."
        said = []
        for line, text in zip(lines, self._texts(lines), strict=True):
            far = np.abs(line.rows["observed"] - line.rows["predicted"]).max()
            said.append(f"{text}, at most {far:.2g} from the diagonal")
        return f"Smooth calibration curves with 95 % bands: {'; '.join(said)}."

    def plot(self, ax: Any = None, *, theme: str | None = None, width: float | None = None) -> Self:
        """Draw the curves, and below them how many people got which prediction.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.

        Returns
        -------
        CalibrationDisplay
        """
        lines = lines_of(self.table)
        below = self.spread is not None and len(self.spread) > 0 and len(lines) > 0
        names, page = self._texts(lines), style_of(theme, width)
        height = page.width * 0.85 + legend_height(names, page) + (0.9 if below else 0.0)
        heights = (4.0, 1.0) if below else (1.0,)
        with self._drawing(ax, theme, width, height, (1.0,), heights) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "No model gives probabilities.", style)
                return self
            ends = self._ends()
            main.plot(ends, ends, color=style.faint, linestyle=":", linewidth=1.2, zorder=0)
            handles = draw_bands(main, lines, "predicted", "observed", style)
            main.set_xlim(*ends)
            main.set_ylim(*ends)
            main.set_ylabel("Observed" if self.regression else "Observed share")
            legend(main, handles, names, style)
            said = "Predicted" if self.regression else "Predicted probability"
            if not below:
                main.set_xlabel(said)
                return self
            self._people(axes[1], lines, style)
            main.tick_params(axis="x", labelbottom=False)
            axes[1].set_xlim(*ends)
            axes[1].set_xlabel(said)
        return self

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
        ax.set_ylabel("People")
        ax.locator_params(axis="y", nbins=2, integer=True)


def _histogram(
    predictions: pd.DataFrame, curves: pd.DataFrame, classes: Sequence[str]
) -> pd.DataFrame | None:
    """Count the people (a mean over repeats) in bins of the prediction."""
    if not len(predictions) or not len(curves):
        return None
    parts = []
    for line in lines_of(curves):
        mine = predictions[predictions["model"].astype(str) == line.model]
        column = f"p_{line.target}" if classes else "predicted"
        if column not in mine or not len(mine):
            continue
        values = mine[column].to_numpy(dtype=float)
        values = values[np.isfinite(values)]
        ends = (0.0, 1.0) if classes else (float(values.min()), float(values.max()))
        counts, edges = np.histogram(values, BINS, range=ends)
        repeats = mine["repeat"].nunique() if "repeat" in mine else 1
        parts.append(
            pd.DataFrame(
                {"model": line.model, "class": line.target, "left": edges[:-1],
                 "right": edges[1:], "people": counts / repeats}
            )
        )  # fmt: skip
    return pd.concat(parts, ignore_index=True) if parts else None
