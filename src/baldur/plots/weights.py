"""Weights of the selected features: forest plot, and the weights of each fold."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.estimators.summary import n_usable_features
from baldur.plots.display import Display, fold_names, results_of, rows_of_model
from baldur.plots.style import Style, matplotlib, points, row_height
from baldur.plots.text import full_name, label, listed, number, plain
from baldur.views.validate import counted

FEWEST = 5
"""Features that are drawn however many outputs there are."""


_FOREST_COLUMNS = [
    "view", "feature", "output", "weight_scaled", "lower", "upper", "inclusion_probability",
    "sign_agreement",
]  # fmt: skip
_FOREST_NAMES = {
    "class": "output",
    "mean_weight": "weight_scaled",
    "frequency": "inclusion_probability",
}


class ForestDisplay(Display):
    """Weights per standard deviation with intervals, and inclusion probabilities.

    ``plot(most=30)`` draws so many features at most, and says how many more there are. With several
    outputs, which share the row of a feature, fewer are drawn.

    Parameters
    ----------
    table : DataFrame
        view, feature, output, weight_scaled, lower, upper and, where known,
        inclusion_probability; the strongest first. As `BaldurClassifier.summary` gives it.
    interval : str, default="95 % interval"
        Meaning of lower and upper.
    probability : str, default="Inclusion probability"
        Meaning of the column inclusion_probability.
    total : int, optional
        Number of features that the selected ones were chosen from.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import ForestDisplay
    >>> table = pd.DataFrame({"view": ["sleep"], "feature": ["RLS"], "output": ["PD"],
    ...                       "weight_scaled": [0.8], "lower": [0.2], "upper": [1.4]})
    >>> ForestDisplay(table).alt_text
    'Forest plot of 1 weight per standard deviation: sleep RLS 0.8 (95 % interval 0.2 to 1.4).'
    """

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        interval: str = "95 % interval",
        probability: str = "Inclusion probability",
        total: int | None = None,
    ) -> None:
        super().__init__(table)
        self.interval, self.probability, self.total = interval, probability, total
        of = f" of {total:,} features" if total else ""
        self.nothing = (
            f"Forest plot without rows: no feature{of} was selected.",
            "No feature was selected.",
        )

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the selected features of a fitted model."""
        return cls(model.summary(), total=n_usable_features(model))

    @classmethod
    def from_result(cls, result: Any, model: str | None = None) -> Self:
        """Show the features of one model over the outer folds.

        The interval is the range over the folds that select a feature, and the probability is the
        share of these folds.
        """
        results = results_of(result)
        selection, name = rows_of_model(results, "selection", model, "selected features")
        is_view = selection["feature"] == "*"  # rows about a whole view
        table = selection[~is_view].rename(columns=_FOREST_NAMES)
        ends = pd.DataFrame(columns=["min", "max"], dtype=float)
        if len(weights := results.of_model("weights", name)):
            ends = weights.groupby(["view", "feature", "class"])["weight"].agg(["min", "max"])
        keys = pd.MultiIndex.from_frame(table[["view", "feature", "output"]])
        ends = ends.reindex(keys).astype(float)
        numbers = table[["weight_scaled", "inclusion_probability", "sign_agreement"]].astype(float)
        table = table.assign(**numbers, lower=ends["min"].to_numpy(), upper=ends["max"].to_numpy())
        table = table[_FOREST_COLUMNS].reset_index(drop=True)
        size = np.nan_to_num(table["weight_scaled"].abs().to_numpy(dtype=float))
        order = np.lexsort((-size, -table["inclusion_probability"].to_numpy(dtype=float)))
        return cls(
            table.iloc[order],
            interval="range over folds",
            probability="Share of folds that select it",
            total=int(selection.loc[is_view, "n_features"].astype(int).sum()),
        )

    def _sentence(self) -> str:
        """Return the alternative text: the weights of the strongest features."""
        first = []
        for row in self.table.head(4).to_dict("records"):
            text = f"{plain(row['view'])} {plain(row['feature'])} {number(row['weight_scaled'])}"
            if self._many_outputs:
                text += f" for {plain(row['output'])}"
            if np.isfinite(row["lower"]):
                text += f" ({self.interval} {number(row['lower'])} to {number(row['upper'])})"
            first.append(text)
        weights = f"{counted(len(self.table), 'weight')} per standard deviation{self._among}"
        return f"Forest plot of {weights}: {listed(first)}."

    @property
    def _among(self) -> str:
        """Return ", of 24 features selected from 132", or an empty text if that is not known."""
        n = len(self.table[["view", "feature"]].drop_duplicates())
        if self.total:
            return f", of {counted(n, 'feature')} selected from {self.total:,}"
        return f", of {counted(n, 'feature')}" if self._many_outputs else ""

    @property
    def _many_outputs(self) -> bool:
        return "output" in self.table and self.table["output"].nunique() > 1

    def _draw(self, style: Style, *, most: int = 30) -> None:
        """Draw one row per feature, and a second panel with the inclusion probabilities."""
        features = self.table[["view", "feature"]].drop_duplicates()
        outputs = list(dict.fromkeys(self.table["output"])) if self._many_outputs else [None]
        if len(outputs) > 1:
            # A feature is as tall as all its outputs; the figure should fit on a page.
            most = max(FEWEST, 2 * most // len(outputs))
        shown = pd.MultiIndex.from_frame(features.head(most))
        # The row of the figure for each weight, -1 for those that are not drawn.
        at = shown.get_indexer(pd.MultiIndex.from_frame(self.table[["view", "feature"]]))
        part, at = self.table[at >= 0], at[at >= 0]
        probability = self.table.get("inclusion_probability")
        has_probability = probability is not None and probability.notna().any()
        widths = ((2.2 if style.narrow else 3.0), 1.0) if has_probability else (1.0,)
        # Several outputs share the row of a feature.
        tall = len(shown) * max(1.0, 0.4 * len(outputs))
        height = row_height(int(np.ceil(tall)), 1.2 + (0.6 if len(outputs) > 1 else 0.0))
        main, *beside = self._axes(style, height, widths)
        main.axvline(0.0, color=style.faint, linewidth=0.8, zorder=0)
        self._rows(main, part, at.astype(float), outputs, style)
        style.name_features(main, list(shown), 0.46)
        main.set_xlabel(f"Weight per s.d.\n({self.interval})")
        style.fit_ticks(main, 0.3 if has_probability else 0.45)
        if beside:
            self._probabilities(beside[0], part.assign(row=at).drop_duplicates("row"), style)
        more = len(features) - len(shown)
        if more > 0:
            # Below the names, where no axis has its title.
            main.text(
                -0.02, -0.01, f"and {more:,} more", transform=main.transAxes, ha="right",
                va="top", color=style.ink, fontsize=style.size - 1.5,
            )  # fmt: skip

    def _rows(
        self, ax: Any, part: pd.DataFrame, at: np.ndarray, outputs: list[Any], style: Style
    ) -> None:
        """Draw the weights of `part` with their intervals in the rows `at`, a colour per output."""
        # Several outputs share the row of a feature, one below the other.
        shifts = np.linspace(-0.3, 0.3, len(outputs)) if len(outputs) > 1 else [0.0]
        handles = []
        for c, output in enumerate(outputs):
            rows = np.full(len(part), True) if output is None else part["output"] == output
            handles += points(
                ax, part[rows], at[rows] + shifts[c], style.colour(c), style.marker(c),
                ("lower", "weight_scaled", "upper"), markersize=5.5, zorder=3,
            )  # fmt: skip
        if len(outputs) > 1:
            self._legend(handles, [str(o) for o in outputs], style)

    def _probabilities(self, ax: Any, features: pd.DataFrame, style: Style) -> None:
        """Draw the inclusion probability of each feature in its row."""
        at = features["row"].to_numpy(dtype=float)
        p = features["inclusion_probability"].to_numpy(dtype=float)
        ax.hlines(at, 0.0, np.nan_to_num(p), color=style.faint, linewidth=1.0)
        ax.plot(p, at, linestyle="none", marker="s", markersize=4.5, color=style.ink)
        ax.set_xlim(0.0, 1.05)
        ax.set_xticks([0.0, 0.5, 1.0], ["0", "0.5", "1"])
        ax.set_ylim(self.axes_[0].get_ylim())
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        words = self.probability.split()
        # The panel is narrow: the title is broken into two lines of similar length.
        halves = [(" ".join(words[:k]), " ".join(words[k:])) for k in range(1, len(words) + 1)]
        ax.set_xlabel("\n".join(min(halves, key=lambda h: max(map(len, h)))), loc="right")


class FoldHeatmapDisplay(Display):
    """Weights as cells, one row per feature and one column per fold.

    ``plot(most=40)`` draws so many features at most, those selected most often first.

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

    columns = ("fold", "view", "feature", "weight", "frequency")
    _title = "Heat map without rows"

    def __init__(self, table: pd.DataFrame, folds: list[str] | None = None) -> None:
        super().__init__(table)
        self.folds = list(dict.fromkeys(self.table["fold"])) if folds is None else list(folds)
        self.nothing = (
            f"{self._title}: none of {len(self.folds)} folds selects a feature.",
            "No fold selects a feature.",
        )

    @classmethod
    def from_result(cls, result: Any, model: str | None = None, output: str | None = None) -> Self:
        """Show the features of one model: those that most folds select come first.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model : str, optional
            Default: the first.
        output : str, optional
            Class whose weights are shown; by default the largest weight over the classes.
        """
        results = results_of(result)
        _, name = rows_of_model(results, "selection", model, "selected features")
        folds, weights = results.of_model("folds", name), results.of_model("weights", name)
        names = list(fold_names(folds))
        if not len(weights):
            return cls(pd.DataFrame(), names)
        if output is not None:
            weights = weights[weights["class"].astype(str) == output]
        fold_of = dict(zip(zip(folds["repeat"], folds["fold"], strict=True), names, strict=True))
        pairs = zip(weights["repeat"], weights["fold"], strict=True)
        table = weights[["view", "feature", "weight"]].astype({"weight": float})
        table.insert(0, "fold", [fold_of[pair] for pair in pairs])
        # Of several classes the largest weight in absolute value.
        size = table["weight"].abs().fillna(0.0).to_numpy()
        table = table.iloc[np.argsort(-size, kind="stable")]
        table = table.drop_duplicates(["fold", "view", "feature"])
        by = table.groupby(["view", "feature"], sort=False)
        table["frequency"] = by["fold"].transform("size") / max(1, len(names))
        mean = by["weight"].transform(lambda w: w.abs().mean()).fillna(0.0).to_numpy()
        # Most frequent first, then by mean weight, then by fold.
        rank = {fold: i for i, fold in enumerate(names)}
        order = np.lexsort((table["fold"].map(rank), -mean, -table["frequency"].to_numpy()))
        return cls(table.iloc[order], names)

    @property
    def features(self) -> list[tuple[str, str]]:
        """View and feature of each row, in their order."""
        return list(dict.fromkeys(zip(self.table["view"], self.table["feature"], strict=True)))

    def wide(self) -> pd.DataFrame:
        """Return features by folds, NaN where a fold does not select the feature."""
        wide = self.table.pivot(index=["view", "feature"], columns="fold", values="weight")
        keys = self.table[["view", "feature"]].drop_duplicates()
        return wide.reindex(pd.MultiIndex.from_frame(keys)).reindex(columns=self.folds)

    def _sentence(self) -> str:
        """Return the alternative text: how often the first features are selected."""
        pairs = self.table.drop_duplicates(["view", "feature"])
        features = [
            f"{plain(full_name(r['view'], r['feature']))} in {r['frequency']:.0%} of folds"
            for r in pairs.head(4).to_dict("records")
        ]
        return (
            f"Heat map of the weights of {counted(len(pairs), 'feature')} in {len(self.folds)} "
            f"folds: {listed(features)}."
        )

    def _draw(self, style: Style, *, most: int = 40) -> None:
        """Draw the cells; each has the sign of its weight, for readers who do not see colours."""
        wide = self.wide().head(most)
        main = self._axes(style, row_height(len(wide), 1.2))[0]
        # Cells that are selected, also where the model gives no weights.
        keys = set(zip(self.table["view"], self.table["feature"], self.table["fold"], strict=True))
        inside = np.array([[(v, f, fold) in keys for fold in self.folds] for v, f in wide.index])
        style.name_features(main, list(wide.index), 0.4)
        style.draw_cells(main, wide.to_numpy(dtype=float), "Weight per s.d.", inside=inside)
        style.name_columns(main, self.folds, 0.4)
        more = len(self.features) - len(wide)
        main.set_xlabel(f"Fold ({more:,} more features not drawn)" if more > 0 else "Fold")


class FoldWeightsDisplay(FoldHeatmapDisplay):
    """Absolute weights of the selected features in every outer fold.

    ``plot(most=20, most_folds=10)`` draws so many features and folds at most.

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

    _title = "Absolute weights per fold"

    def __init__(self, table: pd.DataFrame, folds: list[str] | None = None) -> None:
        super().__init__(table, folds)
        self.table["absolute"] = self.table["weight"].astype(float).abs()
        self.table["common"] = self.table["frequency"].astype(float) >= 1.0 - 1e-9

    @property
    def common(self) -> list[tuple[str, str]]:
        """View and feature of each feature that every fold selects."""
        rows = self.table[self.table["common"]][["view", "feature"]].drop_duplicates()
        return list(rows.itertuples(index=False, name=None))

    def _sentence(self) -> str:
        """Return the alternative text: the features that every fold selects."""
        common = self.common
        named = ", ".join(plain(full_name(*pair)) for pair in common[:7])
        more = " and more" if len(common) > 7 else ""
        which = f": {named}{more}" if common else ""
        return (
            f"Absolute weights of {counted(len(self.features), 'feature')} selected in "
            f"{len(self.folds)} folds, {len(common):,} of them in every fold{which}."
        )

    def _draw(self, style: Style, *, most: int = 20, most_folds: int = 10) -> None:
        """Draw a panel per fold and a row per feature."""
        shown = self.features[:most]
        folds = self.folds[:most_folds]
        across = min(len(folds), 3 if style.narrow else 5)
        down = -(-len(folds) // across)  # rounded up
        height = row_height(len(shown), 0.55) * down + 0.6
        axes = self._axes(style, height, (1.0,) * across, (1.0,) * down)
        for spare in axes[len(folds) :]:
            spare.set_axis_off()
        for i, fold in enumerate(folds):
            self._panel(axes[i], fold, shown, style, first=i % across == 0)
        # All panels get the longest of their axes.
        end = max(panel.get_xlim()[1] for panel in axes[: len(folds)])
        tick = _round_below(end)
        for panel in axes[: len(folds)]:
            panel.set_xlim(0.0, end)
            panel.set_xticks([0.0, tick], ["0", f"{tick:g}"])
        has_no_weights = self.table["absolute"].isna().all()
        axes[-across].set_xlabel("selected" if has_no_weights else "|weight| per s.d.")
        self._explain_bars(len(self.features) - len(shown), style)

    def _panel(
        self, ax: Any, fold: str, shown: list[tuple[str, str]], style: Style, *, first: bool
    ) -> None:
        """Draw the weights of one fold; the first panel of a row has the names of the features."""
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
            style.name_features(ax, shown, 0.38)
            for text, pair in zip(ax.get_yticklabels(), shown, strict=True):
                text.set_fontweight("bold" if pair in common else "normal")
        # Five panels have no room for long titles.
        ax.set_title(label(f"fold {fold}" if len(fold) < 3 else fold, 14))

    def _explain_bars(self, more: int, style: Style) -> None:
        """Write the legend, with how many more features there are."""
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
