"""What ROC and precision-recall curves share: curves, areas and the line of chance."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.curves import curve_areas
from baldur.evaluation.threads import one_thread
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

LEAST_RESAMPLES = 100
"""Fewest that the bootstrap takes, for curves whose band is not drawn."""


class RankingDisplay(Display):
    """One curve per model or class, a band for the first model, and the areas under the curves."""

    curves: ClassVar[Callable[..., pd.DataFrame]]
    called: ClassVar[str]
    columns: ClassVar[tuple[str, str]]
    headings: ClassVar[tuple[str, str]]
    area: ClassVar[tuple[str, str, str]]
    """Measure of the area in the table of areas, its name, and its short name in a legend."""

    def __init__(self, table: pd.DataFrame, areas: pd.DataFrame | None = None) -> None:
        super().__init__(table)
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
        predictions : DataFrame
            As ``predictions.csv``.
        classes : list of str, optional
            All classes, the positive one last.
        models : list of str, optional
            Default: the first six, or only the first one where there are more than two classes.
        resamples : int, default=2000
            Number of bootstrap samples for the bands.

        Returns
        -------
        RankingDisplay
        """
        rows = chosen_models(predictions, models, cls.called, classes)
        if not len(rows):
            return cls(pd.DataFrame(columns=["model", "class", *cls.columns, "low", "high"]))
        how: dict[str, Any] = {"classes": classes, "resamples": resamples}
        with one_thread():
            first = rows["model"] == rows["model"].iloc[0]
            table = cls.curves(rows[first], **how)
            if not first.all():
                # Only the first model has a band, which takes most of the time.
                others = cls.curves(rows[~first], classes=classes, resamples=LEAST_RESAMPLES)
                table = pd.concat([table, others.assign(low=np.nan, high=np.nan)])
            return cls(table, curve_areas(rows, measures=cls.area[:1], **how))

    @classmethod
    def from_result(
        cls, result: Any, models: Sequence[str] | None = None, resamples: int = 2000
    ) -> Self:
        """Show the models of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        models, resamples
            As in `from_predictions`.

        Returns
        -------
        RankingDisplay
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
            return f"{self.called} without lines: no model has scores of classes."
        notes = self._areas(lines, self.area[1])
        listed = "; ".join(f"{plain(o.name)}{note}" for o, note in zip(lines, notes, strict=True))
        return f"{self.called}{band_text(lines)}{self._chance_text()}: {listed}."

    def _areas(self, lines: Sequence[Line], called: str) -> list[str]:
        """Return the area under each curve with its interval, as text after the name."""
        return [interval_text(called, o.measure(self.areas, self.area[0])) for o in lines]

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw a curve per model or class, and the 95 % band of the first model."""
        lines = lines_of(self.table)
        names, notes = [line.name for line in lines], self._areas(lines, self.area[2])
        page = style_of(theme, width)
        height = page.width + legend_height(
            [f"{n}{m}" for n, m in zip(names, notes, strict=True)], page
        )
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "No model has scores of classes.", style)
                return
            self._chance(main, style)
            handles = draw_curves(main, lines, *self.columns, style)
            main.set_xlim(-0.01, 1.01)
            main.set_ylim(-0.01, 1.01)
            main.set_box_aspect(1)
            main.set_xlabel(self.headings[0])
            main.set_ylabel(self.headings[1])
            self._legend(handles, names, style, notes)

    def _chance_text(self) -> str:
        return ""

    def _chance(self, ax: Any, style: Style) -> None:
        """Draw the curve that chance gives."""
        ax.plot([0, 1], [0, 1], color=style.faint, linestyle=":", linewidth=1.0, zorder=0)
