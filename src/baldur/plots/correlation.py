"""Correlations of the selected features of all views, with their credible sets."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.selected_features import CORRELATION_COLUMNS, feature_correlations
from baldur.plots.display import Display, results_of, rows_of_model
from baldur.plots.style import Style, matplotlib, row_height
from baldur.plots.text import feature_labels, full_name, plain
from baldur.views.estimator_input import open_views
from baldur.views.validate import counted

Pair = tuple[str, str]

_FRAME = "#1a1a1a"
"""Colour of frames: the cells are pale on dark pages too."""


class CorrelationDisplay(Display):
    """Correlations of the selected features across views, with their credible sets.

    Parameters
    ----------
    table : DataFrame
        view_a, feature_a, view_b, feature_b, correlation: every ordered pair.
    sets : DataFrame, optional
        view, feature, member_view, member_feature, probability; as `credible_sets_` of a model.
        Members that are in the table are framed together with their feature.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import CorrelationDisplay
    >>> table = pd.DataFrame(
    ...     [("clinic", "age", "clinic", "age", 1.0), ("clinic", "age", "tests", "MMSE", -0.4),
    ...      ("tests", "MMSE", "clinic", "age", -0.4), ("tests", "MMSE", "tests", "MMSE", 1.0)],
    ...     columns=["view_a", "feature_a", "view_b", "feature_b", "correlation"])
    >>> CorrelationDisplay(table).matrix()
    array([[ 1. , -0.4],
           [-0.4,  1. ]])
    """

    columns = tuple(CORRELATION_COLUMNS)
    nothing = ("Correlations without rows: no feature was selected.", "No feature was selected.")

    def __init__(self, table: pd.DataFrame, sets: pd.DataFrame | None = None) -> None:
        super().__init__(pd.DataFrame(table, columns=CORRELATION_COLUMNS))
        self.sets = sets

    @classmethod
    def from_estimator(
        cls, model: Any, X: Any, most: int = 20, n_interchangeable: int = 2, least: float = 0.05
    ) -> Self:
        """Show the selected features of a model with the most probable interchangeable features.

        Parameters
        ----------
        model : fitted estimator
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples to compute the correlations from, such as the training samples.
        most : int, default=20
            Largest number of selected features, those with the largest weights.
        n_interchangeable : int, default=2
            Largest number of members of each credible set besides the feature itself.
        least : float, default=0.05
            Smallest probability of an interchangeable feature.
        """
        selected = model.summary()[["view", "feature"]].drop_duplicates().head(most)
        sets = getattr(model, "credible_sets_", None)
        chosen: dict[Pair, None] = {}
        interchangeable = []
        # Views one after the other, so that each forms a block.
        for view in model.view_names_:
            for feature in selected.loc[selected["view"] == view, "feature"].astype(str):
                chosen[view, feature] = None
                if sets is not None:
                    others = _others(sets, (view, feature))
                    others = others[others["probability"] >= least].head(n_interchangeable)
                    interchangeable.append(others)
                    chosen |= dict.fromkeys(_members(others))
        data = open_views(model, X, reset=False)
        members = pd.DataFrame()
        if interchangeable:
            members = pd.concat(interchangeable, ignore_index=True)
        return cls(feature_correlations(data, list(chosen)), members if len(members) else None)

    @classmethod
    def from_result(cls, result: Any, model: str | None = None) -> Self:
        """Show the features that at least half of the folds of a model select."""
        results = results_of(result)
        if not len(results.table("correlations")):
            return cls(pd.DataFrame())
        return cls(rows_of_model(results, "correlations", model, "correlations of features")[0])

    @property
    def features(self) -> list[Pair]:
        """View and feature of each row of the matrix."""
        pairs = zip(self.table["view_a"], self.table["feature_a"], strict=True)
        return list(dict.fromkeys(pairs))

    def matrix(self) -> np.ndarray:
        """Return the correlations as a square array."""
        row_of = {pair: i for i, pair in enumerate(self.features)}
        cells = np.full((len(row_of), len(row_of)), np.nan)
        for view_a, a, view_b, b, value in self.table[CORRELATION_COLUMNS].to_numpy():
            cells[row_of[view_a, a], row_of[view_b, b]] = value
        return cells

    @property
    def groups(self) -> list[list[int]]:
        """Rows of each credible set: the feature and its interchangeable features."""
        if self.sets is None:
            return []
        row_of = {pair: i for i, pair in enumerate(self.features)}
        groups = []
        for (view, feature), part in self.sets.groupby(["view", "feature"], sort=False):
            rows = {row_of[p] for p in [(view, feature), *_members(part)] if p in row_of}
            if len(rows) > 1:
                groups.append(sorted(rows))
        return groups

    def _sentence(self) -> str:
        """Return the alternative text: the numbers of features, and the largest correlation."""
        features, cells = self.features, self.matrix()
        views = dict.fromkeys(view for view, _ in features)
        n, from_views = counted(len(features), "feature"), counted(len(views), "view")
        text = f"Correlations of {n} from {from_views}"
        upper = np.abs(np.where(np.triu(np.ones_like(cells), 1) > 0, cells, np.nan))
        if np.isfinite(upper).any():
            i, j = np.unravel_index(int(np.nanargmax(upper)), upper.shape)
            text += (
                f", the largest {cells[i, j]:.2f} between {plain(full_name(*features[i]))} and "
                f"{plain(full_name(*features[j]))}"
            )
        if self.groups:
            text += f", with {counted(len(self.groups), 'credible set')} of several features"
        return text + "."

    def _draw(self, style: Style) -> None:
        """Draw the matrix; lines separate the views, frames enclose credible sets."""
        features = self.features
        # Many names do not fit below the matrix; numbers do.
        numbered = len(features) > (8 if style.narrow else 14)
        height = row_height(len(features), 0.9 if numbered else 1.9)
        main = self._axes(style, height)[0]
        cells = self.matrix()
        # The correlation of a feature with itself is not informative.
        np.fill_diagonal(cells, np.nan)
        main.set_facecolor("#d0d0d0")
        style.name_features(main, features, 0.36)
        self._mark_rows(main, numbered=numbered)
        style.draw_cells(main, cells, "Correlation", limit=1.0)
        if numbered:
            style.name_columns(main, [str(i + 1) for i in range(len(features))], 0.42)
        else:
            main.set_xticks(range(len(features)), feature_labels(features, 18), rotation=90)
        self._frames(main)

    def _interchangeable(self) -> set[Pair]:
        """Return the features that are shown only as members of the set of another feature."""
        if self.sets is None:
            return set()
        selected = set(zip(self.sets["view"], self.sets["feature"], strict=True))
        return set(_members(self.sets)) - selected

    def _mark_rows(self, ax: Any, *, numbered: bool) -> None:
        """Mark interchangeable features in the names of the rows, and number these."""
        marked = self._interchangeable()
        texts = [text.get_text() for text in ax.get_yticklabels()]
        for i, pair in enumerate(self.features):
            before = "~ " if pair in marked else ""
            texts[i] = f"{before}{texts[i]}{f'  {i + 1}' if numbered else ''}"
        ax.set_yticklabels(texts)

    def _frames(self, ax: Any) -> None:
        """Draw lines between views, and a frame around each credible set in adjacent rows."""
        Rectangle = matplotlib("patches").Rectangle
        outside = self._interchangeable()
        selected = [(i, view) for i, (view, name) in enumerate(self.features)
                    if (view, name) not in outside]  # fmt: skip
        for (_, view_before), (i, view) in pairwise(selected):
            if view != view_before:
                ax.axhline(i - 0.5, color=_FRAME, linewidth=1.6)
                ax.axvline(i - 0.5, color=_FRAME, linewidth=1.6)
        for rows in self.groups:
            # Members follow their feature, unless an earlier set has them too.
            if rows[-1] - rows[0] != len(rows) - 1:
                continue
            ax.add_patch(
                Rectangle(
                    (rows[0] - 0.5, rows[0] - 0.5), len(rows), len(rows), fill=False,
                    edgecolor=_FRAME, linewidth=2.6, zorder=4,
                )
            )  # fmt: skip
        if self.groups:
            ax.set_xlabel("Framed: credible set. ~ interchangeable feature")


def _members(sets: pd.DataFrame) -> list[Pair]:
    return list(
        zip(sets["member_view"].astype(str), sets["member_feature"].astype(str), strict=True)
    )


def _others(sets: pd.DataFrame, pair: Pair) -> pd.DataFrame:
    """Return the other members of the set of a feature, the most probable first."""
    members = sets[(sets["view"] == pair[0]) & (sets["feature"].astype(str) == pair[1])]
    others = members.loc[[member != pair for member in _members(members)]]
    return others.sort_values("probability", ascending=False, kind="stable")
