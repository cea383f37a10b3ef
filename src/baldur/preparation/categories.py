"""CategoryEncoder: the levels of categories, learned on training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.dataframe_state import Table
from baldur.core.state import (
    ByName,
    Choice,
    Names,
    Numbers,
    OrNone,
    Sizes,
    Text,
    Texts,
    need,
    stored,
)
from baldur.exceptions import InputError
from baldur.preparation.covariates import UnknownLevel
from baldur.preparation.steps import Step, chosen_views, missing_and_new, names_in
from baldur.views.container import MultiView, select_columns
from baldur.views.sources import ArraySource, column_blocks
from baldur.views.table_encoding import level_text
from baldur.views.validate import rename_hint
from baldur.views.view import View

_DROP = ("first", "if_binary", None)
_UNKNOWN = ("ignore", "error")

_ENCODED = "encoded"
"""Mark among ``feature_info.attrs`` of a view that has been encoded, and passes unchanged."""


@dataclass(eq=False, repr=False)
class CategoryEncoder(Step):
    """Code categories for linear models, with the levels that occur in the training rows.

    `read_table` writes one column per level found in the file. This step, fitted on training
    rows, drops the columns of levels that no training row has, and that of the reference level,
    the first in alphabetical order: a category of two levels is one column, one of more levels one
    column for each but the reference. A row whose level did not occur in training is missing in
    all of them. New files are matched by name, so a level that they do not have becomes a column
    of zeros. Views without categories pass unchanged.

    Columns of one category belong together: `MultiView.feature_groups` of what is returned has
    one number for all of them.

    Parameters
    ----------
    views : str or sequence of str, optional
        Views to work on; all by default.
    drop : {"first", "if_binary", None}, default="first"
        Leave the reference level out of every category, of those with two levels in the training
        rows only, or of none. In a category that keeps it, a level that did not occur in training
        is 0 in all columns.
    unknown : {"ignore", "error"}, default="ignore"
        What to do with rows whose level did not occur in training.

    Attributes
    ----------
    levels_ : dict of str to dict of str to list of str
        For each view and category, the levels seen in training.
    reference_ : dict of str to dict of str to str
        For each view, the categories whose reference level has no column, and that level.
    features_ : dict of str to array of str
        For each view with categories, the names of the columns that remain.
    columns_ : dict of str to int array
        Where these stand in the input.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from baldur import MultiView
    >>> from baldur.preparation import CategoryEncoder
    >>> info = pd.DataFrame({"column": ["site"] * 3, "level": ["Lima", "Oslo", "Rome"]})
    >>> X = MultiView(
    ...     {"clinic": np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1]])},
    ...     feature_names={"clinic": ["site=Lima", "site=Oslo", "site=Rome"]},
    ...     feature_info={"clinic": info},
    ... )
    >>> encoder = CategoryEncoder().fit(X[[0, 1]])
    >>> encoder.levels_, encoder.reference_
    ({'clinic': {'site': ['Lima', 'Oslo']}}, {'clinic': {'site': 'Lima'}})
    >>> encoder.transform(X).view("clinic").read().ravel()
    array([ 0.,  1., nan])
    """

    kind = "category encoder"

    views: str | Sequence[str] | None = stored(OrNone(Names(or_text=True)), default=None)
    _: KW_ONLY
    drop: str | None = stored(Choice(_DROP), default="first")
    unknown: str = stored(Choice(_UNKNOWN), default="ignore")
    levels_: dict[str, dict[str, list[str]]] = stored(ByName(ByName(Names())), init=False)
    reference_: dict[str, dict[str, str]] = stored(ByName(ByName(Text())), init=False)
    features_: dict[str, np.ndarray] = stored(ByName(Texts("?")), init=False)
    _columns: dict[str, np.ndarray] = stored(ByName(Numbers("?", "int", low=0)), init=False)
    _info: dict[str, pd.DataFrame] = stored(
        ByName(Table({"column": "text", "level": None})), init=False
    )
    # Names of all input columns, and the category that each one is a level of, or empty text.
    _seen: dict[str, np.ndarray] = stored(ByName(Texts("2 ?")), init=False)

    def _check_options(self) -> None:
        if self.drop not in _DROP or self.unknown not in _UNKNOWN:
            raise InputError(
                "CategoryEncoder: drop must be 'first', 'if_binary' or None and unknown 'ignore' "
                f"or 'error', but got {self.drop!r} and {self.unknown!r}."
            )

    def _fit(self, X: MultiView) -> None:
        """Learn the levels of every category, and which of their columns remain."""
        self.levels_, self.reference_, self.features_ = {}, {}, {}
        self._columns, self._info, self._seen = {}, {}, {}
        for name in chosen_views(X, self.views, "CategoryEncoder"):
            view = X.view(name)
            categories, info = level_columns(view), view.feature_info
            if not categories or info is None:
                continue
            # Of each column: its level, whether it remains, and its category ("": none).
            level = info["level"].to_numpy()
            kept = np.ones(view.shape[1], dtype=bool)
            owner = np.full(view.shape[1], "", dtype=object)
            self.levels_[name], self.reference_[name] = {}, {}
            for category, at in categories.items():
                occurs = [np.nan_to_num(view.read(b)).any(axis=0) for b in _blocks(at, view)]
                kept[at] = np.concatenate(occurs)
                owner[at] = category
                seen = at[kept[at]]
                self.levels_[name][category] = level[seen].tolist()
                if _has_reference(len(seen), self.drop):
                    kept[seen[0]] = False
                    self.reference_[name][category] = str(level[seen[0]])
            if not kept.any():
                raise InputError(
                    f"View {name!r}: every category is missing in all {len(X)} training rows, and "
                    "the view has no other column. Leave the view out."
                )
            self._columns[name] = np.flatnonzero(kept)
            self.features_[name] = view.feature_names[kept]
            self._seen[name] = np.stack([view.feature_names.astype(object), owner])
            self._info[name] = info.loc[kept, ["column", "level"]].reset_index(drop=True)

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view with categories, the columns of the input that remain."""
        return self._columns

    @property
    def level_columns(self) -> dict[str, dict[str, str]]:
        """For each view with categories, the category of every input column that is a level."""
        return {
            name: {str(column): owner for column, owner in seen.T if owner}
            for name, seen in self._seen.items()
        }

    def _transform(self, X: MultiView) -> MultiView:
        """Return the columns that remained in fit, found by name.

        Levels that the new file does not have are 0 throughout, and a row whose level did not occur
        in training is NaN in all columns of the category, if its reference level has no column.
        """
        for name in self.features_:
            if name not in X.view_names:
                raise InputError(
                    f"CategoryEncoder: expected the view {name!r} seen in fit, but the views are "
                    f"{X.view_names}."
                )
        if self.unknown == "error":
            self._refuse_unknown(X)
        encoded = []
        for name, features in self.features_.items():
            view = X.view(name)
            at = pd.Index(view.feature_names).get_indexer(pd.Index(features))
            self._check_columns(view, at)
            # Without a column for the reference level, all zeros would say that they have it.
            unknown = {
                category: sorted({row for row, _ in cells})
                for category, cells in self._unknown(view).items()
                if cells and category in self.reference_[name]
            }
            if (at >= 0).all() and not unknown:
                new = select_columns(X, {name: at}).view(name)
            else:
                cells = self._filled(view, at)
                for category, rows in unknown.items():
                    cells[np.ix_(rows, self._info[name]["column"].to_numpy() == category)] = np.nan
                new = View(name, ArraySource(cells), features, None, view.declared_present)
            info = self._info[name] if new.feature_info is None else new.feature_info
            info = info.copy()
            info.attrs[_ENCODED] = True
            encoded.append(replace(new, feature_info=info))
        return X.replace_views(encoded)

    def _refuse_unknown(self, X: MultiView) -> None:
        """Raise an error if a sample has a level that did not occur in training."""
        unknown = self.unknown_levels(X)
        if unknown:
            first = unknown[0]
            raise InputError(
                f"View {first.view!r}: sample {str(X.sample_ids[first.row])!r} has {first}, a "
                f"level that did not occur in training ({len(unknown)} such cells in all). Correct "
                "the cell, add such samples to the training set, merge rare levels, or use "
                "unknown='ignore'."
            )

    def _check_columns(self, view: View, at: np.ndarray) -> None:
        """Refuse columns of the input that are new, or missing although a feature needs them.

        `at` is the position of each feature in the view, -1 for one that is not there. That of a
        level may be missing, as long as its category is there.
        """
        categories, info = level_columns(view), view.feature_info
        given = set(view.feature_names.tolist())
        given |= set() if info is None or "column" not in info else set(info["column"])
        needed = {str(c) for c in self._info[view.name]["column"].to_numpy()[at < 0]}
        lacking = sorted(needed - given)
        of_levels = {j for columns in categories.values() for j in columns.tolist()}
        seen = {*self._seen[view.name][0], *self.levels_[view.name]}
        names = view.feature_names.tolist()
        extra = [name for j, name in enumerate(names) if j not in of_levels and name not in seen]
        if lacking or extra:
            raise InputError(
                f"View {view.name!r}: expected the columns seen in fit, but "
                f"{missing_and_new(lacking, extra)}.{rename_hint(extra, lacking)} Give the columns "
                "of fit, and read tables with the same columns= and categorical=."
            )

    def unknown_levels(self, X: MultiView) -> list[UnknownLevel]:
        """Return the categories of samples whose level did not occur in training.

        Parameters
        ----------
        X : MultiView
            Any samples of the same views, or of some of them.

        Returns
        -------
        list of UnknownLevel
            In the order of views, categories and samples.
        """
        return [
            UnknownLevel(row, name, category, level, self.levels_[name][category])
            for name in self.levels_
            if name in X.view_names
            for category, cells in self._unknown(X.view(name)).items()
            for row, level in cells
        ]

    def _unknown(self, view: View) -> dict[str, list[tuple[int, str]]]:
        """Return for each category the samples whose level training did not have: (row, level)."""
        unknown = {}
        columns, info = level_columns(view), view.feature_info
        for category, known in self.levels_[view.name].items():
            if category in columns and info is not None:
                level = info["level"].to_numpy().astype(str)
                new = columns[category][~np.isin(level[columns[category]], known)]
                unknown[category] = sorted(
                    (int(row), str(level[block[k]]))
                    for block in _blocks(new, view)
                    for row, k in np.argwhere(np.nan_to_num(view.read(block)))
                )
            else:  # the category is one column of numbers, or not there
                missing, levels = _levels_in_numbers(view, category)
                unknown[category] = [
                    (row, level)
                    for row, level in enumerate(levels)
                    if not missing[row] and level not in known
                ]
        return unknown

    def _filled(self, view: View, at: np.ndarray) -> np.ndarray:
        """Return the cells (n_samples, n_features) of the columns `at`; -1: a level not there."""
        # In the order in which a selection of columns is read, so that products round alike.
        cells = np.zeros((view.shape[0], len(at)), order="F")
        cells[:, at >= 0] = view.read(at[at >= 0])
        for j in np.flatnonzero(at < 0):
            category, level = map(str, self._info[view.name].iloc[j])
            cells[:, j] = level_cells(view, category, level)
        return cells

    def state_values(self) -> dict[str, Any]:
        """Return what is stored in another form: the tables of features, with None for NaN."""
        return {
            "_info": {
                name: info.astype(object).where(info.notna(), None)
                for name, info in self._info.items()
            },
        }

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored parts that are not of the same views, columns and categories."""
        for part in ("levels_", "reference_", "_columns", "_info", "_seen"):
            same = list(getattr(self, part)) == list(self.features_)
            need(same, "expected one entry for each view", part)
        for name, features in self.features_.items():
            known = set(self.reference_[name]) <= set(self.levels_[name])
            need(known, "expected categories that have levels", "reference_", name)
            for part in ("_columns", "_info"):
                fits = len(getattr(self, part)[name]) == len(features)
                need(fits, f"expected {len(features)} columns", part, name)


def feature_counts(mv: MultiView, steps: Sequence[Any] = ()) -> dict[str, int]:
    """Return the number of features of each view, with categories as models get them.

    A category has one feature for each level without the reference level, so that a model that
    uses everything uses all features.
    """
    # The option `drop` of the step that encodes each view; views without one get an encoder.
    drops: dict[str, str | None] = dict.fromkeys(mv.view_names, "first")
    for step in steps:
        if isinstance(step, CategoryEncoder):
            drops |= dict.fromkeys(
                mv.view_names if step.views is None else names_in(step.views), step.drop
            )
    levels = {name: level_columns(mv.view(name)).values() for name in mv.view_names}
    return {
        name: width - sum(_has_reference(len(at), drops[name]) for at in levels[name])
        for name, width in mv.n_features.items()
    }


def _has_reference(n_levels: int, drop: str | None) -> bool:
    """Return whether a category leaves a level out; one of a single level needs no reference."""
    return (n_levels == 2 and drop is not None) or (n_levels > 2 and drop == "first")


def level_columns(view: View) -> dict[str, np.ndarray]:
    """Return for each category of a view that is to be encoded the columns of its levels."""
    info = view.feature_info
    if info is None or "column" not in info or "level" not in info or info.attrs.get(_ENCODED):
        return {}
    at = np.flatnonzero(info["level"].notna())
    grouped = pd.Series(at).groupby(info["column"].to_numpy()[at], sort=False)
    return {str(category): rows.to_numpy() for category, rows in grouped}


def _levels_in_numbers(view: View, category: str) -> tuple[np.ndarray, np.ndarray]:
    """Return which samples lack a category given as one column of numbers, and their levels.

    A category that no sample has is a column of missing cells; one whose levels are written as
    numbers may be a column of these. Without such a column all samples lack it.
    """
    at = np.flatnonzero(view.feature_names == category)
    if not len(at):
        return np.ones(view.shape[0], dtype=bool), np.full(view.shape[0], "", dtype=object)
    values = view.read(at)[:, 0]
    return np.isnan(values), np.array([level_text(float(v)) for v in values], dtype=object)


def level_cells(view: View, category: str, level: str) -> np.ndarray:
    """Return 0 and 1 for a level that a view has no column for, NaN where the category is missing.

    Shapes: returns (n_samples,).
    """
    columns = level_columns(view).get(category)
    if columns is not None:  # of other levels, so that no sample has this one
        return np.where(np.isnan(view.read(columns)).all(axis=1), np.nan, 0.0)
    missing, levels = _levels_in_numbers(view, category)
    return np.where(missing, np.nan, levels == level)


def _blocks(columns: np.ndarray, view: View) -> list[np.ndarray]:
    """Return the columns in blocks that are small enough to be copied."""
    return [columns[cut] for cut in column_blocks(view.shape[0], len(columns), 8)]
