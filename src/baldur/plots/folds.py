"""Signed weights of the selected features, one cell per feature and fold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.plots.display import Display
from baldur.plots.drawing import draw_cells, empty, name_columns, name_features, row_height
from baldur.plots.results_tables import fold_names, one_model, results_of
from baldur.plots.style import Style, count, full_name, label, matplotlib, plain, style_of

COLUMNS = ["fold", "view", "feature", "weight", "frequency"]


def fold_weights(
    result: Any, model: str | None, output: str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the features that each fold selects, and the names of all folds.

    The columns are fold, view, feature, weight (per standard deviation; of several classes that of
    `output`, or else the largest in absolute value) and frequency (share of all folds). Features
    that most folds select come first, then those with the largest weights.
    """
    found = results_of(result)
    selection = found.table("selection")
    name = one_model(selection, model, "selected features")
    folds = found.table("folds")
    folds = folds[folds["model"] == name]
    names = list(fold_names(folds))
    weights = found.table("weights")
    weights = weights[weights["model"] == name] if len(weights) else weights
    if not len(weights):
        return pd.DataFrame(columns=COLUMNS), names
    if output is not None:
        weights = weights[weights["class"].astype(str) == output]
    called = dict(zip(zip(folds["repeat"], folds["fold"], strict=True), names, strict=True))
    table = pd.DataFrame(
        {
            "fold": [called[key] for key in zip(weights["repeat"], weights["fold"], strict=True)],
            "view": weights["view"].to_numpy(),
            "feature": weights["feature"].to_numpy(),
            "weight": weights["weight"].to_numpy(dtype=float),
        }
    )
    size = table["weight"].abs().fillna(0.0).to_numpy()
    keys = ["fold", "view", "feature"]
    table = table.iloc[np.argsort(-size, kind="stable")].drop_duplicates(keys)
    by = table.groupby(["view", "feature"], sort=False)
    table["frequency"] = by["fold"].transform("size") / max(1, len(names))
    mean = by["weight"].transform(lambda w: w.abs().mean()).fillna(0.0).to_numpy()
    place = {fold: i for i, fold in enumerate(names)}
    order = np.lexsort((table["fold"].map(place), -mean, -table["frequency"].to_numpy()))
    return table.iloc[order].reset_index(drop=True), names


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


class FoldWeightsDisplay(Display):
    """Absolute weights of the selected features in every outer fold.

    Parameters
    ----------
    table : DataFrame
        fold, view, feature, weight and frequency (share of folds that select the feature). The
        features are drawn in the order of the table.
    folds : list of str, optional
        Names of all folds, also of those that select nothing; by default those of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import FoldWeightsDisplay
    >>> table = pd.DataFrame({"fold": ["1", "2", "2"], "view": "clinic",
    ...                       "feature": ["age", "age", "sex"], "weight": [0.8, 0.6, -0.1],
    ...                       "frequency": [1.0, 1.0, 0.5]})
    >>> print(FoldWeightsDisplay(table).alt_text)
    Absolute weights of 2 features selected in 2 folds, 1 of them in every fold: clinic: age.
    """

    def __init__(self, table: pd.DataFrame, folds: list[str] | None = None) -> None:
        table = pd.DataFrame(table).reset_index(drop=True)
        table["absolute"] = table["weight"].astype(float).abs()
        table["common"] = table["frequency"].astype(float) >= 1.0 - 1e-9
        super().__init__(table)
        self.folds = list(dict.fromkeys(table["fold"])) if folds is None else list(folds)

    @classmethod
    def from_result(cls, result: Any, model: str | None = None, output: str | None = None) -> Self:
        """Show the features of one model.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model : str, optional
            Default: the first.
        output : str, optional
            Class whose weights are shown; by default the largest weight over the classes.

        Returns
        -------
        FoldWeightsDisplay
        """
        return cls(*fold_weights(result, model, output))

    @property
    def common(self) -> list[tuple[str, str]]:
        """View and feature of each feature that every fold selects."""
        rows = self.table[self.table["common"]][["view", "feature"]].drop_duplicates()
        return list(rows.itertuples(index=False, name=None))

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        n = len(self.table[["view", "feature"]].drop_duplicates())
        if not n:
            return f"Absolute weights per fold: none of {len(self.folds)} folds selects a feature."
        common = self.common
        named = ", ".join(plain(full_name(*pair)) for pair in common[:7])
        more = " and more" if len(common) > 7 else ""
        which = f": {named}{more}" if common else ""
        return (
            f"Absolute weights of {count(n, 'feature')} selected in {len(self.folds)} folds, "
            f"{len(common):,} of them in every fold{which}."
        )

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        most: int = 20,
        most_folds: int = 10,
    ) -> Self:
        """Draw a panel per fold and a row per feature.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        most, most_folds : int
            Largest numbers of features and folds that are drawn.

        Returns
        -------
        FoldWeightsDisplay
        """
        pairs = self.table[["view", "feature"]].drop_duplicates()
        shown = list(pairs.head(most).itertuples(index=False, name=None))
        folds = self.folds[:most_folds] if shown else []
        across = min(len(folds), 3 if style_of(theme, width, ax).narrow else 5) or 1
        down = -(-len(folds) // across) or 1
        height = row_height(len(shown), 0.55) * down + 0.6
        shape = ((1.0,) * across, (1.0,) * down)
        with self._drawing(ax, theme, width, height, *shape) as (axes, style):
            if not shown:
                empty(axes[0], "No fold selects a feature.", style)
                return self
            for spare in axes[len(folds) :]:
                spare.set_axis_off()
            for i, fold in enumerate(folds):
                self._panel(axes[i], fold, shown, style, first=i % across == 0)
            ends = [a.get_xlim()[1] for a in axes[: len(folds)]]
            tick = _round_below(max(ends))
            for a in axes[: len(folds)]:
                a.set_xlim(0.0, max(ends))
                a.set_xticks([0.0, tick], ["0", f"{tick:g}"])
            unknown = self.table["absolute"].isna().all()
            axes[-across].set_xlabel("selected" if unknown else "|weight| per s.d.")
            self._explain_bars(len(pairs) - len(shown), style)
        return self

    def _panel(
        self, ax: Any, fold: str, shown: list[tuple[str, str]], style: Style, *, first: bool
    ) -> None:
        part = self.table[self.table["fold"] == fold]
        named = zip(part["view"], part["feature"], strict=True)
        sizes = dict(zip(named, part["absolute"].astype(float), strict=True))
        common = set(self.common)
        for row, pair in enumerate(shown):
            if pair not in sizes:
                continue
            # A model may select features without weights.
            size = 1.0 if np.isnan(sizes[pair]) else sizes[pair]
            ax.barh(
                [row], [size], height=0.66, linewidth=0.6,
                color=style.colour(2) if pair in common else style.faint,
                hatch="" if pair in common else "///", edgecolor=style.rc()["hatch.color"],
            )  # fmt: skip
        if not first:
            ax.set_yticks([])
            ax.set_ylim(len(shown) - 0.4, -0.6)
        else:
            name_features(ax, shown, style, 0.38)
            for text, pair in zip(ax.get_yticklabels(), shown, strict=True):
                text.set_fontweight("bold" if pair in common else "normal")
        # Five panels have no room for long titles.
        ax.set_title(label(f"fold {fold}" if len(fold) < 3 else fold, 14))

    def _explain_bars(self, more: int, style: Style) -> None:
        Patch = matplotlib("patches").Patch
        edge = style.rc()["hatch.color"]
        handles = [
            Patch(facecolor=style.colour(2), edgecolor=edge),
            Patch(facecolor=style.faint, edgecolor=edge, hatch="///"),
        ]
        names = ["in every fold", "in some folds"]
        notes = ["", f" ({more:,} more not drawn)" if more > 0 else ""]
        drawn = self._legend(handles, names, style, notes)
        if not self._own_figure:
            # Above the title of the first panel, without changing the width of the panel.
            drawn.borderaxespad = 2.2
            drawn.set_in_layout(False)


def _round_below(value: float) -> float:
    """Return the largest of 1, 2 and 5 times a power of ten that is not above a positive value."""
    power = 10.0 ** np.floor(np.log10(value))
    return float(max(k * power for k in (1, 2, 5) if k * power <= value))
