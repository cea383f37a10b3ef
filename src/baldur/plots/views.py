"""What views contribute: patterns of missing views, shares in a prediction, and latent factors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from baldur.estimators.summary import output_names
from baldur.exceptions import InputError
from baldur.plots.display import Display, fold_names, results_of, rows_of_model
from baldur.plots.style import Style, row_height
from baldur.plots.text import number, plain, short_names
from baldur.views.validate import counted

if TYPE_CHECKING:
    from baldur.views.container import MultiView

_HAS, _LABEL = "has_", "n_"
MOST_LABELS = 10


class MissingViewsDisplay(Display):
    """Patterns of present and missing views, with the number of samples of each.

    ``plot(most=12)`` draws so many patterns at most, the most frequent first.

    Parameters
    ----------
    presence : DataFrame
        One row per sample: a column ``has_<view>`` of 0 and 1 for each view and, in
        classification, label; as ``presence.csv`` has it.
    by_label : bool, optional
        Divide the bars by label; by default where there are at most ten labels.

    Attributes
    ----------
    table : DataFrame
        One row per pattern, the most frequent first: ``has_<view>``, people, and ``n_<label>``.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur import MultiView
    >>> from baldur.plots import MissingViewsDisplay
    >>> data = MultiView({"clinic": np.ones((4, 2)), "genes": np.ones((4, 3))},
    ...                  present={"genes": [True, True, False, False]})
    >>> MissingViewsDisplay.from_data(data).alt_text
    'Of 4 samples, 2 have all 2 views; 2 have no genes.'
    """

    nothing = ("", "There are no samples.")

    def __init__(self, presence: pd.DataFrame, by_label: bool | None = None) -> None:
        presence = pd.DataFrame(presence)
        columns = [c for c in presence.columns if str(c).startswith(_HAS)]
        self.views = [str(c).removeprefix(_HAS) for c in columns]
        labels = presence["label"].astype(str) if "label" in presence else pd.Series(dtype=str)
        if by_label is None:
            by_label = labels.nunique() <= MOST_LABELS
        self.labels = sorted(labels.unique()) if by_label else []
        table = presence[columns].astype(int).assign(people=1)
        for name in self.labels:
            table[f"{_LABEL}{name}"] = (labels == name).astype(int)
        table = table.groupby(columns, as_index=False).sum()
        super().__init__(table.sort_values("people", ascending=False, kind="stable"))

    @classmethod
    def from_data(cls, data: MultiView, y: Any = None) -> Self:
        """Show the patterns of some data.

        Parameters
        ----------
        data : MultiView
        y : array-like of shape (n_samples,), optional
            Labels.
        """
        has = {f"{_HAS}{v}": data.view(v).present.astype(int) for v in data.view_names}
        table = pd.DataFrame(has)
        if y is not None:
            table["label"] = np.asarray(y)
        return cls(table)

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Show the patterns of the data of a comparison."""
        results = results_of(result)
        return cls(results.table("presence"), by_label=bool(results.classes))

    @property
    def people(self) -> int:
        """Number of samples over all patterns."""
        return int(self.table["people"].sum())

    def present(self, view: str) -> int:
        """Return the number of samples that have a view."""
        return int((self.table[f"{_HAS}{view}"] * self.table["people"]).sum())

    def _sentence(self) -> str:
        """Return the alternative text: samples with all views, and without each view."""
        columns = [f"{_HAS}{v}" for v in self.views]
        complete = self.table[self.table[columns].all(axis=1)]["people"].sum()
        lacking = ", ".join(
            f"{missing:,} {'has' if missing == 1 else 'have'} no {plain(v)}"
            for v in self.views
            if (missing := self.people - self.present(v))
        )
        text = f"Of {counted(self.people, 'sample')}, {int(complete):,} have all "
        text += counted(len(self.views), "view")
        return f"{text}; {lacking}." if lacking else f"{text}."

    def _draw(self, style: Style, *, most: int = 12) -> None:
        """Draw a row per pattern: filled dots for present views, and a bar with the count."""
        shown = self.table.head(most)
        # Names of views are written vertically above the dots.
        above = 0.09 * max((min(len(v), 22) + 5 for v in self.views), default=5)
        height = max(1.8, 0.3 * len(shown) + above + 0.8)
        dots, bars = self._axes(style, height, (max(1.0, 0.28 * len(self.views)), 2.2))
        self._dots(dots, shown, style)
        self._bars(bars, shown, style)
        bars.set_ylim(dots.get_ylim())
        more = len(self.table) - len(shown)
        note = f"\n({more:,} rarer patterns not drawn)" if more else ""
        bars.set_xlabel(f"Samples{note}", loc="right")

    def _dots(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        """Draw a row of dots per pattern: filled for views that it has, empty for the others."""
        has = shown[[f"{_HAS}{v}" for v in self.views]].to_numpy(dtype=bool)
        y, x = np.mgrid[: has.shape[0], : has.shape[1]]
        ax.plot(x[has], y[has], linestyle="none", marker="o", markersize=7, color=style.colour(0))
        ax.plot(
            x[~has], y[~has], linestyle="none", marker="o", markersize=7, markerfacecolor="none",
            markeredgecolor=style.faint,
        )  # fmt: skip
        short = short_names(self.views, 22)
        names = [f"{n} ({self.present(v):,})" for n, v in zip(short, self.views, strict=True)]
        ax.xaxis.tick_top()
        ax.set_xticks(range(len(names)), names, rotation=90)
        ax.set_yticks([])
        ax.set_xlim(-0.6, len(names) - 0.4)
        ax.set_ylim(len(shown) - 0.4, -0.6)
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)

    def _bars(self, ax: Any, shown: pd.DataFrame, style: Style) -> None:
        """Draw the number of samples of each pattern, divided by label."""
        parts = [shown[f"{_LABEL}{name}"] for name in self.labels] or [shown["people"]]
        handles = style.stacked_bars(ax, parts, height=0.62)
        for row, people in enumerate(shown["people"]):
            ax.text(
                people, row, f" {people:,}", va="center", color=style.ink, fontsize=style.size - 1
            )
        ax.set_xlim(0.0, float(shown["people"].max()) * 1.25)
        ax.set_yticks([])
        ax.locator_params(axis="x", integer=True)
        style.fit_ticks(ax, 0.5, most=4)
        if self.labels:
            style.legend(ax, handles, self.labels)


MOST_VIEWS = 8
"""Views drawn with a colour of their own; the smallest of more are drawn as one."""
OTHER_VIEWS = "other views"
ALL_GROUPS = "all"


class ViewShareDisplay(Display):
    """Shares of the views as stacked bars, one bar per fold or factor and one overall.

    ``plot(most=20)`` draws so many folds or factors at most, besides the bar of all.

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

    nothing = ("Shares of the views: no feature was selected.", "No feature was selected.")

    def __init__(
        self, table: pd.DataFrame, *, groups: str = "fold", of: str = "the prediction's variance"
    ) -> None:
        super().__init__(table)
        self.groups, self.of = groups, of

    @classmethod
    def from_estimator(cls, model: Any) -> Self:
        """Show the share of each view in the prediction and in each factor."""
        selected = any(mask.any() for mask in model.selected_features_.values())
        rows = [(ALL_GROUPS, v, s if selected else 0.0) for v, s in model.view_relevance_.items()]
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
        """
        results = results_of(result)
        views, name = rows_of_model(results, "views", model, "shares of views")
        column = "variance_share" if views["variance_share"].notna().all() else "share"
        folds = results.of_model("view_shares", name)
        parts = [views.assign(group=ALL_GROUPS)]
        if len(folds):
            parts.append(folds.assign(group=fold_names(folds)))
        table = pd.concat(part[["group", "view", column]] for part in parts)
        of = "the prediction's variance" if column == "variance_share" else "the selected features"
        return cls(table.rename(columns={column: "share"}), of=of)

    @property
    def _overall(self) -> pd.DataFrame:
        return self.table[self.table["group"] == ALL_GROUPS]

    @property
    def _is_empty(self) -> bool:
        return not self._overall["share"].sum() > 0

    def _sentence(self) -> str:
        """Return the alternative text: the overall share of each view."""
        used = self._overall.sort_values("share", ascending=False)
        used = used[used["share"] > 0].head(8)
        listed = ", ".join(
            f"{plain(view)} {'under 1%' if share < 0.005 else f'{share:.0%}'}"
            for view, share in zip(used["view"], used["share"], strict=True)
        )
        n = self.table.loc[self.table["group"] != ALL_GROUPS, "group"].nunique()
        each = f", also for each of {n} {self.groups}s" if n else ""
        return f"Share of each view in {self.of}: {listed}{each}."

    def _drawn(self) -> pd.DataFrame:
        """Return groups by used views, the largest first; the smallest of many as one column."""
        wide = self.table.pivot_table(
            index="group", columns="view", values="share", aggfunc="sum", sort=False
        ).fillna(0.0)
        total = wide.sum().sort_values(ascending=False, kind="stable")
        wide = wide[total.index[(total > 0) | (total.max() <= 0)]]
        if wide.shape[1] > MOST_VIEWS:
            rest = wide.iloc[:, MOST_VIEWS - 1 :].sum(axis=1)
            wide = wide.iloc[:, : MOST_VIEWS - 1].assign(**{OTHER_VIEWS: rest})
        return wide

    def _draw(self, style: Style, *, most: int = 20) -> None:
        """Draw one stacked bar per group."""
        wide = self._drawn().head(most + 1)
        height = row_height(len(wide), 1.0 + 0.22 * (1 + wide.shape[1] // 3))
        main = self._axes(style, height)[0]
        handles = style.stacked_bars(main, [wide[view] for view in wide], height=0.72)
        for row in np.flatnonzero(wide.sum(axis=1).to_numpy() == 0):  # all shares are 0
            main.text(0.01, row, "no feature selected", va="center", color=style.ink)
        names = [
            g if g == ALL_GROUPS or str(g).startswith(self.groups) else f"{self.groups} {g}"
            for g in wide.index
        ]
        style.name_rows(main, names, 0.25)
        main.set_xlim(0.0, 1.0)
        main.set_xticks([0, 0.25, 0.5, 0.75, 1.0], ["0 %", "25 %", "50 %", "75 %", "100 %"])
        main.set_xlabel(f"Share of {self.of}")
        self._legend(handles, list(map(str, wide.columns)), style)


OUTPUT, VIEW = "output", "view"
"""Kinds of rows: a loading of an output, or the share of a view."""
_SHARED = 0.1
"""Share of a factor from which on a view is named among its sources."""


class LoadingsDisplay(Display):
    """Outputs by factors (loadings), and views by factors (share of each view in each factor).

    Parameters
    ----------
    table : DataFrame
        factor, features (its strongest ones), kind ("output" or "view"), name (of the output or
        view), value: the loading of an output, or the share of a view in the variance of the
        factor.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import LoadingsDisplay
    >>> table = pd.DataFrame({"factor": "factor0", "features": "clinic age",
    ...                       "kind": ["output", "output", "view", "view"],
    ...                       "name": ["stroke", "pain", "clinic", "genes"],
    ...                       "value": [0.9, -0.2, 0.95, 0.05]})
    >>> print(LoadingsDisplay(table).alt_text)
    2 outputs on 1 latent factor: factor0 moves stroke most (0.9) and comes from clinic 95%.
    """

    columns = ("factor", "features", "kind", "name", "value")
    nothing = (
        "Loadings: the model has no latent factors.",
        "The model has no latent factors.",
    )

    @classmethod
    def from_estimator(cls, model: Any, outputs: Sequence[str] | None = None) -> Self:
        """Show the latent factors of a fitted model.

        Parameters
        ----------
        model : fitted estimator
        outputs : list of str, optional
            Names of the outputs; by default classes, or the numbers of labels or targets.
        """
        loadings = np.asarray(model.loadings_, dtype=float)
        names = _output_names(model, len(loadings)) if outputs is None else list(map(str, outputs))
        if len(names) != len(loadings):
            raise InputError(f"outputs: expected {len(loadings)} names, but got {len(names)}.")
        shares = model.factor_relevance_
        rows = []
        for k, (factor, features) in enumerate(zip(shares.index, model.factor_names_, strict=True)):
            of_factor = (str(factor), str(features))
            rows += [(*of_factor, OUTPUT, name, loadings[c, k]) for c, name in enumerate(names)]
            for view in shares.columns:
                rows.append((*of_factor, VIEW, str(view), float(shares.loc[factor, view])))
        return cls(pd.DataFrame(rows, columns=cls.columns))

    @property
    def factors(self) -> list[str]:
        """The factors, by falling variance."""
        return list(dict.fromkeys(self.table["factor"].astype(str)))

    def wide(self, kind: str) -> pd.DataFrame:
        """Return outputs or views by factors.

        Parameters
        ----------
        kind : {"output", "view"}

        Returns
        -------
        DataFrame
        """
        part = self.table[self.table["kind"] == kind]
        wide = part.pivot_table(index="name", columns="factor", values="value", sort=False)
        return wide.reindex(columns=self.factors)

    def _sentence(self) -> str:
        """Return the alternative text: output and views of the first four factors."""
        factors = self.factors
        loadings, shares = self.wide(OUTPUT), self.wide(VIEW)
        if len(factors) == 1 and len(loadings) == 1:
            return "The model has one output and one factor, which is its score."
        texts = []
        for factor in factors[:4]:
            column = loadings[factor].astype(float)
            best = str(column.abs().idxmax())
            views = shares[factor].sort_values(ascending=False)
            used = views[views >= _SHARED]
            source = ", ".join(f"{plain(v)} {s:.0%}" for v, s in used.items()) or "no view"
            texts.append(
                f"{factor} moves {plain(best)} most ({number(float(column[best]))}) and "
                f"comes from {source}"
            )
        more = f"; {len(factors) - 4} more" if len(factors) > 4 else ""
        return (
            f"{counted(len(loadings), 'output')} on {counted(len(factors), 'latent factor')}: "
            f"{'; '.join(texts)}{more}."
        )

    def _draw(self, style: Style) -> None:
        """Draw the loadings above the shares of views, with a column for each factor."""
        loadings, shares = self.wide(OUTPUT), self.wide(VIEW)
        heights = (max(2.0, len(loadings)) + 1.0, max(2.0, len(shares)) + 1.6)
        height = row_height(int(sum(heights)), 1.0)
        axes = self._axes(style, height, (1.0,), heights)
        self._panel(axes[0], loadings, style, "Loading")
        self._panel(axes[1], shares, style, "Share", share=True)
        axes[0].tick_params(axis="x", labelbottom=False)
        axes[1].set_xlabel("Latent factor, by falling variance")

    def _panel(
        self, ax: Any, wide: pd.DataFrame, style: Style, title: str, *, share: bool = False
    ) -> None:
        """Draw a matrix of loadings, or of shares, whose colours go from 0 to 1."""
        limit = 1.0 if share else None
        style.name_rows(ax, list(wide.index), 0.3)
        cells = wide.to_numpy(dtype=float)
        style.draw_cells(ax, cells, title, limit=limit, written=number, signed=not share)
        style.name_columns(ax, list(map(str, wide.columns)), 0.5)


def _output_names(model: Any, n: int) -> list[str]:
    if hasattr(model, "classes_"):
        return output_names(model)
    return ["outcome"] if n == 1 else [f"target {c}" for c in range(n)]
