"""Share of each view in the prediction: overall, and in each fold or factor."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import plain
from baldur.plots.drawing.parts import empty, name_rows, row_height, stacked_bars
from baldur.plots.results.tables import Results, fold_names, one_model

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
        found = Results(result)
        shares = found.frame("view_shares")
        views = found.frame("views")
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
