"""What ROC and precision-recall figures share: curves of predictions that rank people."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, Self

import pandas as pd

from baldur.evaluation.clinical.curves import curve_areas
from baldur.evaluation.threads import one_thread
from baldur.plots.drawing.curves import area_texts, chosen_models, draw_bands, lines_of
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.parts import empty, legend, legend_height
from baldur.plots.drawing.style import Style, style_of
from baldur.plots.results.tables import Results

__all__ = ["RankingDisplay"]


class RankingDisplay(Display):
    """One curve per model or class with its band, and the area under it.

    Parameters
    ----------
    table : DataFrame
        model, class, the two columns of the curve, low and high.
    areas : DataFrame, optional
        model, class, measure, estimate, low, high; as `curve_areas` gives it.
    """

    curves: ClassVar[Callable[..., pd.DataFrame]]
    called: ClassVar[str]
    columns: ClassVar[tuple[str, str]]
    headings: ClassVar[tuple[str, str]]
    area: ClassVar[tuple[str, str, str]]
    """Measure of the area, its name in words and its name in a legend."""

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
        predictions : DataFrame
            As ``predictions.csv``.
        classes : list of str, optional
            The positive one last.
        models : list of str, optional
            Default: the first six; of several classes the first model alone.
        resamples : int, default=2000
            How often people are drawn for the bands.

        Returns
        -------
        RankingDisplay
        """
        rows = chosen_models(predictions, models, cls.called, classes)
        if not len(rows):
            return cls(pd.DataFrame(columns=["model", "class", *cls.columns, "low", "high"]))
        how: dict[str, Any] = {"classes": classes, "resamples": resamples}
        with one_thread():
            return cls(cls.curves(rows, **how), curve_areas(rows, **how))

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
            return f"{self.called} without lines: no model ranks people by class."
        said = area_texts(lines, self.areas, self.area[0], self.area[1])
        return f"{self.called} with 95 % bands{self._chance_text()}: {'; '.join(said)}."

    def plot(self, ax: Any = None, *, theme: str | None = None, width: float | None = None) -> Self:
        """Draw a curve per model or class, with bands where there are at most three.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.

        Returns
        -------
        RankingDisplay
        """
        lines = lines_of(self.table)
        names = area_texts(lines, self.areas, self.area[0], self.area[2])
        page = style_of(theme, width)
        height = page.width * 0.92 + legend_height(names, page)
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "No model ranks people by class.", style)
                return self
            self._chance(main, style)
            handles = draw_bands(main, lines, *self.columns, style)
            main.set_xlim(-0.01, 1.01)
            main.set_ylim(-0.01, 1.01)
            main.set_aspect("equal")
            main.set_xlabel(self.headings[0])
            main.set_ylabel(self.headings[1])
            legend(main, handles, names, style)
        return self

    def _chance_text(self) -> str:
        return ""

    def _chance(self, ax: Any, style: Style) -> None:
        """Draw what chance gives."""
        ax.plot([0, 1], [0, 1], color=style.faint, linestyle=":", linewidth=1.0, zorder=0)
