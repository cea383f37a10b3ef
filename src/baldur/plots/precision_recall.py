"""Precision-recall curves with bands."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import pandas as pd

from baldur.evaluate.clinical.curves import curve_areas, precision_recall_curves
from baldur.evaluate.handle import one_thread
from baldur.plots.base import Display
from baldur.plots.curves import area_texts, chosen_models, draw_bands, lines_of
from baldur.plots.parts import empty, legend
from baldur.plots.results import Results

__all__ = ["PrecisionRecallDisplay"]


class PrecisionRecallDisplay(Display):
    """Precision against sensitivity, with pointwise 95 % bands and what chance gives.

    Parameters
    ----------
    table : DataFrame
        model, class, sensitivity, precision, low, high, prevalence; as
        `baldur.evaluate.clinical.precision_recall_curves` gives it.
    areas : DataFrame, optional
        model, class, measure, estimate, low, high; as `curve_areas` gives it.
    """

    def __init__(self, table: pd.DataFrame, areas: pd.DataFrame | None = None) -> None:
        super().__init__(pd.DataFrame(table).reset_index(drop=True))
        self.areas = areas

    @classmethod
    def from_predictions(
        cls,
        predictions: pd.DataFrame,
        *,
        classes: Sequence[str] | None = None,
        models: Sequence[str] | None = None,
        resamples: int = 2000,
    ) -> Self:
        """Compute the curves from held-out predictions.

        Parameters
        ----------
        predictions, classes, models, resamples
            As in `RocDisplay.from_predictions`.

        Returns
        -------
        PrecisionRecallDisplay
        """
        with one_thread():
            rows = chosen_models(predictions, models, "precision-recall curve", classes)
            if not len(rows):
                return cls(pd.DataFrame(columns=["model", "class"]))
            table = precision_recall_curves(rows, classes=classes, resamples=resamples)
            return cls(table, curve_areas(rows, classes=classes, resamples=resamples))

    @classmethod
    def from_result(
        cls, result: Any, models: Sequence[str] | None = None, resamples: int = 2000
    ) -> Self:
        """Show the models of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        models, resamples
            As in `RocDisplay.from_predictions`.

        Returns
        -------
        PrecisionRecallDisplay
        """
        found = Results(result)
        return cls.from_predictions(
            found.frame("predictions"), classes=found.classes, models=models, resamples=resamples
        )

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        lines = lines_of(self.table)
        if not lines:
            return "Precision-recall curve without lines: no model ranks people by class."
        said = area_texts(lines, self.areas, "average_precision", "average precision")
        share = float(self.table["prevalence"].iloc[0])
        return f"Precision-recall curve with 95 % bands, chance {share:.0%}: {'; '.join(said)}."

    def plot(self, ax: Any = None, *, theme: str | None = None, width: float | None = None) -> Self:
        """Draw a curve per model or class, with bands where there are at most three.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.

        Returns
        -------
        PrecisionRecallDisplay
        """
        lines = lines_of(self.table)
        height = (width or 5.2) * 0.92 + 0.2 * len(lines)
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "No model ranks people by class.", style)
                return self
            for share in dict.fromkeys(self.table["prevalence"].astype(float)):
                main.axhline(share, color=style.faint, linestyle=":", linewidth=1.0, zorder=0)
            handles = draw_bands(main, lines, "sensitivity", "precision", style)
            main.set_xlim(-0.01, 1.01)
            main.set_ylim(-0.01, 1.01)
            main.set_aspect("equal")
            main.set_xlabel("Sensitivity (recall)")
            main.set_ylabel("Precision")
            legend(main, handles, area_texts(lines, self.areas, "average_precision", "AP"), style)
        return self
