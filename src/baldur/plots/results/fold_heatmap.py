"""Fold by feature: who selects what, with which sign and weight."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.plots.drawing.cells import draw_cells
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.parts import empty, full_name, name_rows, row_height
from baldur.plots.drawing.style import plain
from baldur.plots.results.fold_table import fold_weights

__all__ = ["FoldHeatmapDisplay"]


class FoldHeatmapDisplay(Display):
    """Weights as cells, one row per feature and one column per fold.

    Parameters
    ----------
    table : DataFrame
        fold, view, feature, weight, frequency; as in `FoldWeightsDisplay`.
    folds : list of str, optional
        Names of all folds; default those of the table.
    """

    def __init__(self, table: pd.DataFrame, folds: list[str] | None = None) -> None:
        super().__init__(pd.DataFrame(table).reset_index(drop=True))
        self.folds = list(dict.fromkeys(self.table["fold"])) if folds is None else list(folds)

    @classmethod
    def from_result(cls, result: Any, model: str | None = None, output: str | None = None) -> Self:
        """Show the features of one model.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model, output : str, optional
            As in `FoldWeightsDisplay.from_result`.

        Returns
        -------
        FoldHeatmapDisplay
        """
        table, folds, _ = fold_weights(result, model, output)
        return cls(table, folds)

    def wide(self) -> pd.DataFrame:
        """Return features by folds, NaN where a fold does not select the feature."""
        keys = self.table[["view", "feature"]].drop_duplicates()
        wide = self.table.pivot(index=["view", "feature"], columns="fold", values="weight")
        return wide.reindex(pd.MultiIndex.from_frame(keys)).reindex(columns=self.folds)

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        pairs = self.table.drop_duplicates(["view", "feature"])
        if not len(pairs):
            return f"Heat map without rows: none of {len(self.folds)} folds selects a feature."
        listed = "; ".join(
            f"{plain(full_name(r['view'], r['feature']), 40)} in {r['frequency']:.0%} of folds"
            for r in pairs.head(3).to_dict("records")
        )
        return (
            f"Heat map of the weights of {len(pairs):,} "
            f"{'feature' if len(pairs) == 1 else 'features'} in {len(self.folds)} folds: "
            f"{listed}{', and more' if len(pairs) > 3 else ''}."
        )

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        most: int = 40,
    ) -> Self:
        """Draw the cells; a sign in each says the direction where colours are not seen.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        most : int, default=40
            Features drawn, those of the most folds.

        Returns
        -------
        FoldHeatmapDisplay
        """
        wide = self.wide().head(most) if len(self.table) else pd.DataFrame()
        with self._drawing(ax, theme, width, row_height(len(wide), 1.2)) as (axes, style):
            main = axes[0]
            if not len(wide):
                empty(main, "No fold selects a feature.", style)
                return self
            keys = set(
                zip(self.table["view"], self.table["feature"], self.table["fold"], strict=True)
            )
            inside = np.array(
                [[(v, f, fold) in keys for fold in self.folds] for v, f in wide.index]
            )
            draw_cells(main, wide.to_numpy(dtype=float), style, "Weight per s.d.", inside=inside)
            many = self.table["view"].nunique() > 1
            name_rows(main, [full_name(v, f, many) for v, f in wide.index], style, 0.34)
            main.set_ylim(len(wide) - 0.5, -0.5)
            # As many names of folds as fit.
            step = max(1, int(np.ceil(len(self.folds) / (10 if not style.narrow else 5))))
            at = np.arange(0, len(self.folds), step)
            main.set_xticks(at, [self.folds[i] for i in at])
            main.set_xlabel("Fold")
            more = len(self.table.drop_duplicates(["view", "feature"])) - len(wide)
            if more > 0:
                main.set_xlabel(f"Fold ({more:,} more features not drawn)")
        return self
