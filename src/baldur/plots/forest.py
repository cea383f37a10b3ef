"""Forest plot: weights of the selected features with intervals and inclusion probabilities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.estimators.summary import n_usable_features
from baldur.plots.display import Display
from baldur.plots.drawing import (
    empty,
    fit_ticks,
    intervals,
    name_features,
    name_rows,
    row_height,
    stacked_bars,
)
from baldur.plots.results_tables import fold_names, one_model, results_of
from baldur.plots.style import Style, count, number, plain, style_of

FEWEST = 5
"""Features that are drawn however many outputs there are."""


class ForestDisplay(Display):
    """Weights per standard deviation with intervals, and inclusion probabilities.

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

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the selected features of a fitted model.

        Parameters
        ----------
        model : fitted estimator

        Returns
        -------
        ForestDisplay
        """
        return cls(model.summary(), total=n_usable_features(model))

    @classmethod
    def from_result(cls, result: Any, model: str | None = None) -> Self:
        """Show the features of one model over the outer folds.

        The interval is the range over the folds that select a feature, and the probability is the
        share of these folds.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model : str, optional
            Default: the first.

        Returns
        -------
        ForestDisplay
        """
        found = results_of(result)
        selection = found.table("selection")
        name = one_model(selection, model, "selected features")
        mine = selection[selection["model"] == name]
        listed = mine[mine["feature"] != "*"]
        weights = found.table("weights")
        if len(weights):
            weights = weights[weights["model"] == name]
            ends = weights.groupby(["view", "feature", "class"])["weight"].agg(["min", "max"])
        else:
            ends = pd.DataFrame(columns=["min", "max"], dtype=float)
        keys = pd.MultiIndex.from_frame(listed[["view", "feature", "class"]])
        ends = ends.reindex(keys)
        table = pd.DataFrame(
            {
                "view": listed["view"].to_numpy(),
                "feature": listed["feature"].to_numpy(),
                "output": listed["class"].to_numpy(),
                "weight_scaled": listed["mean_weight"].to_numpy(dtype=float),
                "lower": ends["min"].to_numpy(dtype=float),
                "upper": ends["max"].to_numpy(dtype=float),
                "inclusion_probability": listed["frequency"].to_numpy(dtype=float),
                "sign_agreement": listed["sign_agreement"].to_numpy(dtype=float),
            }
        )
        size = np.nan_to_num(table["weight_scaled"].abs().to_numpy(dtype=float))
        order = np.lexsort((-size, -table["inclusion_probability"].to_numpy(dtype=float)))
        total = int(mine.loc[mine["feature"] == "*", "n_features"].astype(int).sum())
        return cls(
            table.iloc[order],
            interval="range over folds",
            probability="Share of folds that select it",
            total=total,
        )

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        of = f" of {self.total:,} features" if self.total else ""
        if not len(self.table):
            return f"Forest plot without rows: no feature{of} was selected."
        first = []
        for row in self.table.head(3).to_dict("records"):
            text = f"{plain(row['view'])} {plain(row['feature'])} {number(row['weight_scaled'])}"
            if self._many_outputs:
                text += f" for {plain(row['output'])}"
            if np.isfinite(row["lower"]):
                text += f" ({self.interval} {number(row['lower'])} to {number(row['upper'])})"
            first.append(text)
        more = ", and more" if len(self.table) > 3 else ""
        return (
            f"Forest plot of {count(len(self.table), 'weight')} per standard deviation"
            f"{self._among}: {'; '.join(first)}{more}."
        )

    @property
    def _among(self) -> str:
        """Return ", of 24 features selected from 132", or an empty text if that is not known."""
        n = len(self.table[["view", "feature"]].drop_duplicates())
        if self.total:
            return f", of {count(n, 'feature')} selected from {self.total:,}"
        return f", of {count(n, 'feature')}" if self._many_outputs else ""

    @property
    def _many_outputs(self) -> bool:
        return "output" in self.table and self.table["output"].nunique() > 1

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        most: int = 30,
    ) -> Self:
        """Draw one row per feature, and a second panel with the inclusion probabilities.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        most : int, default=30
            Largest number of features that are drawn; a line says how many more there are. With
            several outputs, which share the row of a feature, fewer are drawn.

        Returns
        -------
        ForestDisplay
        """
        table = self.table
        features = table[["view", "feature"]]
        if self._many_outputs:
            features = features.drop_duplicates()
        outputs = list(dict.fromkeys(table["output"])) if self._many_outputs else [None]
        if len(outputs) > 1:
            # A feature is as tall as all its outputs; the figure should fit on a page.
            most = max(FEWEST, 2 * most // len(outputs))
        shown = features.head(most)
        rows = {key: i for i, key in enumerate(shown.itertuples(index=False, name=None))}
        known = table.get("inclusion_probability")
        sure = known is not None and known.notna().any() and len(rows)
        narrow = style_of(theme, width, ax).narrow
        widths = ((3.0, 1.0) if not narrow else (2.2, 1.0)) if sure else (1.0,)
        # Several outputs share the row of a feature.
        tall = len(rows) * max(1.0, 0.4 * len(outputs))
        height = row_height(int(np.ceil(tall)), 1.2 + (0.6 if len(outputs) > 1 else 0.0))
        with self._drawing(ax, theme, width, height, widths) as (axes, style):
            main = axes[0]
            if not rows:
                empty(main, "No feature was selected.", style)
                return self
            part = table if self._many_outputs else table.head(most)
            keys = zip(part["view"], part["feature"], strict=True)
            at = np.array([rows.get(key, -1) for key in keys])
            part, at = part[at >= 0], at[at >= 0]
            main.axvline(0.0, color=style.faint, linewidth=0.8, zorder=0)
            self._rows(main, part, at.astype(float), outputs, style)
            name_features(main, list(rows), style, 0.46)
            main.set_xlabel(f"Weight per s.d.\n({self.interval})")
            fit_ticks(main, style, 0.3 if sure else 0.45)
            if sure:
                once = part.assign(row=at).drop_duplicates("row")
                self._probabilities(axes[1], once, style)
            more = len(features) - len(shown)
            if more > 0:
                # Below the names, where no axis has its title.
                main.text(
                    -0.02, -0.01, f"and {more:,} more", transform=main.transAxes, ha="right",
                    va="top", color=style.ink, fontsize=style.size - 1.5,
                )  # fmt: skip
        return self

    def _rows(
        self,
        ax: Any,
        part: pd.DataFrame,
        at: np.ndarray,
        outputs: list[Any],
        style: Style,
    ) -> None:
        handles = []
        # Several outputs share the row of a feature, one below the other.
        apart = np.linspace(-0.3, 0.3, len(outputs)) if len(outputs) > 1 else [0.0]
        for c, output in enumerate(outputs):
            mine = np.ones(len(part), bool) if output is None else (part["output"] == output)
            mine = np.asarray(mine)
            y = at[mine] + apart[c]
            weight = part["weight_scaled"].to_numpy(dtype=float)[mine]
            colour = style.colour(c)
            lower, upper = (part[k].to_numpy(dtype=float)[mine] for k in ("lower", "upper"))
            intervals(ax, lower, upper, y, colour)
            (drawn,) = ax.plot(
                weight, y, linestyle="none", marker=style.marker(c), markersize=5.5, color=colour,
                zorder=3,
            )  # fmt: skip
            handles.append(drawn)
        if len(outputs) > 1:
            self._legend(handles, [str(o) for o in outputs], style)

    def _probabilities(self, ax: Any, once: pd.DataFrame, style: Style) -> None:
        at = once["row"].to_numpy(dtype=float)
        p = once["inclusion_probability"].to_numpy(dtype=float)
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


MOST_VIEWS = 8
"""Views drawn with a colour of their own; the smallest of more are drawn as one."""
OTHERS = "other views"
ALL = "all"


class ViewShareDisplay(Display):
    """Shares of the views as stacked bars, one bar per fold or factor and one overall.

    Parameters
    ----------
    table : DataFrame
        group ("all", or the name of a fold or factor), view, share. Shares of a group add up to 1,
        or to 0 where no feature was selected.
    groups : str, default="fold"
        Kind of the groups.
    of : str, default="the prediction's variance"
        Quantity that the shares divide.

    Examples
    --------
    >>> from baldur import BaldurClassifier
    >>> from baldur.datasets import make_multiview
    >>> from baldur.plots import ViewShareDisplay
    >>> made = make_multiview(60, {"clinic": 3, "genes": 6}, informative={"clinic": 2},
    ...                       random_state=0)
    >>> model = BaldurClassifier(members=("pooled",)).fit(made.data, made.target)
    >>> print(ViewShareDisplay.from_estimator(model).alt_text)
    Share of each view in the prediction's variance: clinic 8...%, genes 1...%.
    """

    def __init__(
        self, table: pd.DataFrame, *, groups: str = "fold", of: str = "the prediction's variance"
    ) -> None:
        super().__init__(table)
        self.groups, self.of = groups, of

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the share of each view in the prediction and in each factor.

        Parameters
        ----------
        model : fitted estimator

        Returns
        -------
        ViewShareDisplay
        """
        selected = any(mask.any() for mask in model.selected_features_.values())
        rows = [(ALL, v, s if selected else 0.0) for v, s in model.view_relevance_.items()]
        factors = model.factor_relevance_
        if len(factors) > 1:
            rows += [
                (str(factor), view, float(share))
                for factor, shares in factors.iterrows()
                for view, share in shares.items()
            ]
        return cls(pd.DataFrame(rows, columns=["group", "view", "share"]), groups="factor")

    @classmethod
    def from_result(cls, result: Any, model: str | None = None) -> Self:
        """Show the share of each view in every outer fold.

        The shares divide the variance of the linear predictor or, for a model without weights, the
        number of selected features.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        model : str, optional
            Default: the first.

        Returns
        -------
        ViewShareDisplay
        """
        found = results_of(result)
        shares = found.table("view_shares")
        views = found.table("views")
        name = one_model(views, model, "shares of views")
        views = views[views["model"] == name]
        column = "variance_share" if views["variance_share"].notna().all() else "share"
        table = pd.DataFrame({"group": ALL, "view": views["view"], "share": views[column]})
        if len(shares):
            mine = shares[shares["model"] == name]
            each = pd.DataFrame(
                {"group": fold_names(mine), "view": mine["view"], "share": mine[column]}
            )
            table = pd.concat([table, each], ignore_index=True)
        of = "the prediction's variance" if column == "variance_share" else "the selected features"
        return cls(table, of=of)

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        overall = self.table[self.table["group"] == ALL].sort_values("share", ascending=False)
        if not overall["share"].sum() > 0:
            return "Shares of the views: no feature was selected."
        used = overall[overall["share"] > 0]
        listed = ", ".join(
            f"{plain(view)} {'under 1%' if share < 0.005 else f'{share:.0%}'}"
            for view, share in zip(used["view"].head(8), used["share"].head(8), strict=True)
        )
        n = self.table.loc[self.table["group"] != ALL, "group"].nunique()
        each = f", also for each of {n} {self.groups}s" if n else ""
        return f"Share of each view in {self.of}: {listed}{each}."

    def _drawn(self) -> pd.DataFrame:
        """Return groups by used views, the largest first, the smallest of many as one column."""
        wide = self.table.pivot_table(
            index="group", columns="view", values="share", aggfunc="sum", sort=False
        ).fillna(0.0)
        total = wide.sum().sort_values(ascending=False, kind="stable")
        wide = wide[total.index[(total > 0) | (total.max() <= 0)]]
        if wide.shape[1] > MOST_VIEWS:
            rest = wide.iloc[:, MOST_VIEWS - 1 :].sum(axis=1)
            wide = wide.iloc[:, : MOST_VIEWS - 1].assign(**{OTHERS: rest})
        return wide

    def plot(
        self,
        ax: Any = None,
        *,
        theme: str | None = None,
        width: float | None = None,
        most: int = 20,
    ) -> Self:
        """Draw one stacked bar per group.

        Parameters
        ----------
        ax, theme, width
            As in `Display.plot`.
        most : int, default=20
            Largest number of folds or factors that are drawn, besides the bar of all.

        Returns
        -------
        ViewShareDisplay
        """
        wide = self._drawn() if len(self.table) else pd.DataFrame()
        wide = wide.head(most + 1)
        lines = 1 + min(wide.shape[1], MOST_VIEWS) // 3
        with self._drawing(ax, theme, width, row_height(len(wide), 1.0 + 0.22 * lines)) as (
            axes,
            style,
        ):
            main = axes[0]
            if not wide.to_numpy().sum() > 0:
                empty(main, "No feature was selected.", style)
                return self
            handles = stacked_bars(main, [wide[view] for view in wide], style, height=0.72)
            for row in np.flatnonzero(wide.sum(axis=1).to_numpy() == 0):
                main.text(0.01, row, "no feature selected", va="center", color=style.ink)
            called = [
                g if g == ALL or str(g).startswith(self.groups) else f"{self.groups} {g}"
                for g in wide.index
            ]
            name_rows(main, called, style, 0.25)
            main.set_xlim(0.0, 1.0)
            main.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
            main.set_xlabel(f"Share of {self.of}")
            self._legend(handles, list(map(str, wide.columns)), style)
        return self
