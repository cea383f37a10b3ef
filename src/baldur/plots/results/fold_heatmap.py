"""Signed weights of the selected features, one cell per feature and fold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.plots.drawing.cells import draw_cells
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import count, full_name, plain
from baldur.plots.drawing.parts import empty, name_columns, name_features, row_height
from baldur.plots.results.fold_table import fold_weights


class FoldHeatmapDisplay(Display):
    """Weights as cells, one row per feature and one column per fold.

    Parameters
    ----------
    table : DataFrame
        fold, view, feature, weight, frequency; as in `FoldWeightsDisplay`.
    folds : list of str, optional
        Names of all folds; by default those of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import FoldHeatmapDisplay
    >>> table = pd.DataFrame({"fold": ["1", "2", "2"], "view": "clinic",
    ...                       "feature": ["age", "age", "sex"], "weight": [0.8, 0.6, -0.1],
    ...                       "frequency": [1.0, 1.0, 0.5]})
    >>> FoldHeatmapDisplay(table).wide()
    fold              1    2
    view   feature
    clinic age      0.8  0.6
           sex      NaN -0.1
    """

    def __init__(self, table: pd.DataFrame, folds: list[str] | None = None) -> None:
        super().__init__(table)
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
        return cls(*fold_weights(result, model, output))

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
            f"{plain(full_name(r['view'], r['feature']))} in {r['frequency']:.0%} of folds"
            for r in pairs.head(3).to_dict("records")
        )
        return (
            f"Heat map of the weights of {count(len(pairs), 'feature')} in {len(self.folds)} "
            f"folds: {listed}{', and more' if len(pairs) > 3 else ''}."
        )

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        most: int = 40,
    ) -> Self:
        """Draw the cells; each has the sign of its weight, for readers who do not see colours.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        most : int, default=40
            Largest number of features that are drawn, those selected most often first.

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
            name_features(main, list(wide.index), style, 0.4)
            main.set_ylim(len(wide) - 0.5, -0.5)
            name_columns(main, self.folds, style, 0.4)
            more = len(self.table.drop_duplicates(["view", "feature"])) - len(wide)
            main.set_xlabel(f"Fold ({more:,} more features not drawn)" if more > 0 else "Fold")
        return self
