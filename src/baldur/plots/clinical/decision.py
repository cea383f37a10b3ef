"""Decision curves: the net benefit of acting on the predictions, over threshold probabilities."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.decision import TREAT_ALL, TREAT_NONE
from baldur.plots.drawing.curves import band_text, chosen_models, draw_curves, lines_of
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import number, plain
from baldur.plots.drawing.parts import empty, legend_height
from baldur.plots.drawing.style import style_of
from baldur.plots.results.tables import Results

COLUMNS = ["model", "threshold", "net_benefit", "low", "high"]


class DecisionDisplay(Display):
    """Net benefit of each model, with treating all and treating none for comparison.

    Parameters
    ----------
    table : DataFrame
        model, threshold, net_benefit, low, high; as ``decision.csv`` has it. The models "treat all"
        and "treat none" are drawn as reference lines.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import DecisionDisplay
    >>> table = pd.DataFrame({"model": ["treat all", "treat none", "ridge"] * 2,
    ...                       "threshold": [0.2] * 3 + [0.5] * 3,
    ...                       "net_benefit": [0.25, 0.0, 0.28, -0.2, 0.0, 0.1],
    ...                       "low": [0.12, 0.0, 0.17, -0.4, 0.0, 0.02],
    ...                       "high": [0.37, 0.0, 0.4, 0.0, 0.0, 0.2]})
    >>> print(DecisionDisplay(table).alt_text)
    Decision curves with a 95 % band: net benefit above treating all or none for ridge at 2 of 2
    thresholds from 0.2 to 0.5, by 0.1 at most.
    """

    @classmethod
    def from_result(cls, result: Any, models: Sequence[str] | None = None) -> Self:
        """Show the models of a result with two classes.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        models : list of str, optional
            Default: the first six.

        Returns
        -------
        DecisionDisplay
        """
        table = Results(result).frame("decision")
        if not len(table):
            return cls(pd.DataFrame(columns=COLUMNS))
        both = table["model"].isin([TREAT_ALL, TREAT_NONE])
        mine = chosen_models(table[~both], models, "decision curve")
        return cls(pd.concat([table[both], mine], ignore_index=True))

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        lines = lines_of(self._models)
        if not lines:
            return "Decision curves without lines: they need two classes and probabilities."
        best = self._default()
        said = []
        for line in lines:
            over = line.rows["net_benefit"].to_numpy(dtype=float) - best
            t = line.rows["threshold"].to_numpy(dtype=float)[over > 1e-12]
            where = "at no threshold"
            if len(t):
                where = f"at {len(t)} of {len(over)} thresholds from {t.min():g} to {t.max():g}"
            most = f", by {number(over.max())} at most" if len(t) else ""
            said.append(f"{plain(line.name)} {where}{most}")
        return (
            f"Decision curves{band_text(lines)}: net benefit above treating all or none for "
            f"{'; '.join(said)}."
        )

    @property
    def _models(self) -> pd.DataFrame:
        return self.table[~self.table["model"].isin([TREAT_ALL, TREAT_NONE])]

    def _default(self) -> np.ndarray:
        """Return the better of treating all and none at each threshold."""
        treated = self.table[self.table["model"] == TREAT_ALL]
        return np.maximum(treated["net_benefit"].to_numpy(dtype=float), 0.0)

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw the curves, and the 95 % band of the first model."""
        lines = lines_of(self._models)
        names, page = [line.name for line in lines], style_of(theme, width)
        height = page.width * 0.62 + legend_height([*names, TREAT_ALL, TREAT_NONE], page)
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not lines:
                empty(main, "Decision curves need two classes and probabilities.", style)
                return
            handles = draw_curves(main, lines, "threshold", "net_benefit", style)
            for name, look in ((TREAT_ALL, ":"), (TREAT_NONE, "-")):
                part = self.table[self.table["model"] == name]
                (drawn,) = main.plot(
                    part["threshold"], part["net_benefit"], color=style.ink, linestyle=look,
                    linewidth=1.0, zorder=1,
                )  # fmt: skip
                handles.append(drawn)
                names.append(name)
            # In this order, 0.02 is returned where every net benefit is missing.
            top = max(0.02, float(self.table["net_benefit"].max()))
            # Curves far below zero would take the space of the useful ones.
            main.set_ylim(-0.25 * top, 1.15 * top)
            main.set_xlim(0.0, 1.0)
            main.set_xlabel("Threshold probability")
            main.set_ylabel("Net benefit")
            self._legend(handles, names, style)
