"""CategoryEncoder: the levels of categories, learned on training rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from baldur.core.dataframe_state import Table
from baldur.core.state import ByName, Choice, Form, Names, Numbers, Sizes, Text, Texts, need
from baldur.exceptions import InputError
from baldur.preparation.sample_flags import UnknownLevel
from baldur.preparation.steps import Step, check_multiview, chosen_views
from baldur.views.container import MultiView, select_columns, set_view
from baldur.views.encode import level_text
from baldur.views.standardised_blocks import column_blocks
from baldur.views.validate import rename_hint, some
from baldur.views.view import View

_ENCODED = "encoded"
"""Mark among ``feature_info.attrs`` of a view that has been encoded, and passes unchanged."""


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

    def __init__(
        self,
        views: str | Sequence[str] | None = None,
        *,
        drop: str | None = "first",
        unknown: str = "ignore",
    ) -> None:
        self.views = views
        self.drop = drop
        self.unknown = unknown

    def fit(self, X: MultiView, y: Any = None) -> CategoryEncoder:
        """Learn the levels from the rows of `X`; `y` is not used."""
        self._check_options()
        X = check_multiview(X, "CategoryEncoder")
        self.levels_: dict[str, dict[str, list[str]]] = {}
        self.reference_: dict[str, dict[str, str]] = {}
        self.features_: dict[str, np.ndarray] = {}
        self._columns: dict[str, np.ndarray] = {}
        self._info: dict[str, pd.DataFrame] = {}
        self._seen: dict[str, dict[str, str]] = {}
        for name in chosen_views(X, self.views, "CategoryEncoder"):
            view = X.view(name)
            coded = _coded(view)
            if coded is None or view.feature_info is None:
                continue
            at = np.flatnonzero(coded)
            kept = ~coded
            kept[at] = np.concatenate(
                [np.nan_to_num(view.read(block)).any(axis=0) for block in _blocks(at, view)]
            )
            info = view.feature_info
            self.levels_[name] = {
                str(column): info["level"].to_numpy()[rows[kept[rows]]].tolist()
                for column, rows in _groups(info["column"].to_numpy(), at)
            }
            self.reference_[name] = {}
            for column, rows in _groups(info["column"].to_numpy(), at):
                seen = rows[kept[rows]]
                # A category of one level needs no reference.
                if (len(seen) == 2 and self.drop is not None) or (
                    len(seen) > 2 and self.drop == "first"
                ):
                    kept[seen[0]] = False
                    self.reference_[name][str(column)] = str(info["level"].iloc[seen[0]])
            if not kept.any():
                raise InputError(
                    f"View {name!r}: every category is missing in all {len(X)} training rows, and "
                    "the view has no other column. Leave the view out."
                )
            self._columns[name] = np.flatnonzero(kept)
            self.features_[name] = view.feature_names[kept]
            owners = np.where(coded, info["column"].astype(str).to_numpy(), "")
            self._seen[name] = dict(
                zip(map(str, view.feature_names), map(str, owners), strict=True)
            )
            left = info.iloc[self._columns[name]]
            self._info[name] = left[["column", "level"]].reset_index(drop=True)
        return self

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view with categories, the columns of the input that remain."""
        return self._columns

    @property
    def level_columns(self) -> dict[str, dict[str, str]]:
        """For each view with categories, the category of every input column that is a level."""
        return {
            name: {column: owner for column, owner in seen.items() if owner}
            for name, seen in self._seen.items()
        }

    def _check_options(self) -> None:
        legal = self.drop in ("first", "if_binary", None) and self.unknown in ("ignore", "error")
        if not legal:
            raise InputError(
                "CategoryEncoder: drop must be 'first', 'if_binary' or None and unknown 'ignore' "
                f"or 'error', but got {self.drop!r} and {self.unknown!r}."
            )

    def transform(self, X: MultiView) -> MultiView:
        """Return `X` with the columns learned in `fit`, in their order."""
        check_is_fitted(self, "features_")
        X = check_multiview(X, "CategoryEncoder")
        for name in self.features_:
            if name not in X.view_names:
                raise InputError(
                    f"CategoryEncoder: expected the view {name!r} seen in fit, but the views are "
                    f"{X.view_names}."
                )
        if self.unknown == "error":
            self._refuse_unknown(X)
        columns, filled = {}, {}
        for name, wanted in self.features_.items():
            view = X.view(name)
            found = pd.Index(view.feature_names).get_indexer(pd.Index(wanted))
            self._check(view, found)
            unknown = self._unknown_rows(view)
            if (found >= 0).all() and not unknown:
                columns[name] = found
                continue
            cells = self._filled(view, found)
            for column, rows in unknown.items():
                # All zeros would say that they have the reference level.
                cells[np.ix_(rows, self._info[name]["column"].to_numpy() == column)] = np.nan
            filled[name] = cells
        X = select_columns(X, columns)
        for name, cells in filled.items():
            X = set_view(X, name, cells, self.features_[name], self._info[name])
        made = {}
        for name in self.features_:
            table = X.table(name)
            info = self._info[name] if table.info is None else table.info.copy()
            info.attrs[_ENCODED] = True
            made[name] = replace(table, info=info)
        return X.replace_tables(made)

    def _refuse_unknown(self, X: MultiView) -> None:
        unknown = self.unknown_levels(X)
        if unknown:
            one = unknown[0]
            raise InputError(
                f"View {one.view!r}: sample {str(X.sample_ids[one.row])!r} has {one}, a level that "
                f"did not occur in training ({len(unknown)} such cells in all). Correct the cell, "
                "add such samples to the training set, merge rare levels, or use unknown='ignore'."
            )

    def _check(self, view: View, found: np.ndarray) -> None:
        """Refuse columns that are missing or new."""
        info = self._info[view.name]
        categories = self.levels_[view.name]
        new_info = view.feature_info
        has = set() if new_info is None or "column" not in new_info else set(new_info["column"])
        has |= set(view.feature_names.tolist())
        gone = sorted({str(c) for c in info["column"].to_numpy()[found < 0]} - has)
        coded = _coded(view)
        coded = np.zeros(view.shape[1], dtype=bool) if coded is None else coded
        names = view.feature_names
        extra = [
            n
            for n in names[~coded].tolist()
            if n not in self._seen[view.name] and n not in categories
        ]
        if gone or extra:
            raise InputError(
                f"View {view.name!r}: expected the columns seen in fit, but "
                + " and ".join(
                    part
                    for part in (
                        f"{some(gone)} missing" if gone else "",
                        f"{some(extra)} new" if extra else "",
                    )
                    if part
                )
                + f".{rename_hint(extra, gone)} Give the columns of fit, and read tables with the "
                "same columns= and categorical=."
            )

    def unknown_levels(self, X: MultiView) -> list[UnknownLevel]:
        """Return the categories of samples whose level did not occur in training.

        Parameters
        ----------
        X : MultiView
            Any samples of the same views.

        Returns
        -------
        list of UnknownLevel
            In the order of views, categories and samples.
        """
        found: list[UnknownLevel] = []
        for name, categories in self.levels_.items():
            view = X.view(name)
            coded = self._unknown_cells(view)
            for column, known in categories.items():
                cells = coded.get(column)
                if cells is None:
                    cells = self._unknown_numbers(view, column)
                found += [
                    UnknownLevel(int(row), name, column, str(level), known) for row, level in cells
                ]
        return found

    def _unknown_cells(self, view: View) -> dict[str, list[tuple[int, str]]]:
        """Return samples with a level that did not occur in training, by encoded category."""
        info, coded = view.feature_info, _coded(view)
        if info is None or coded is None:
            return {}
        found = {}
        level = info["level"].to_numpy().astype(str)
        for column, at in _groups(info["column"].to_numpy(), np.flatnonzero(coded)):
            known = self.levels_[view.name].get(str(column))
            if known is None:
                continue
            new = at[~np.isin(level[at], known)]
            found[str(column)] = sorted(
                (int(row), str(level[block[k]]))
                for block in _blocks(new, view)
                for row, k in np.argwhere(np.nan_to_num(view.read(block)))
            )
        return found

    def _unknown_numbers(self, view: View, column: str) -> list[tuple[int, str]]:
        """Return samples with an unknown level, for a category given as one column of numbers."""
        at = np.flatnonzero(view.feature_names == column)
        if not len(at):
            return []
        values = view.read(at)[:, 0]
        known = self.levels_[view.name][column]
        texts = [level_text(float(v)) for v in values]
        return [
            (row, text)
            for row, text in enumerate(texts)
            if not np.isnan(values[row]) and text not in known
        ]

    def _unknown_rows(self, view: View) -> dict[str, np.ndarray]:
        """Return samples with an unknown level, for encoded categories with a reference level."""
        return {
            column: np.unique([row for row, _ in cells])
            for column, cells in self._unknown_cells(view).items()
            if cells and column in self.reference_[view.name]
        }

    def _filled(self, view: View, found: np.ndarray) -> np.ndarray:
        """Return the columns in memory, with zeros for levels this file does not have."""
        info = self._info[view.name]
        cells = np.zeros((view.shape[0], len(found)))
        known = found >= 0
        cells[:, known] = view.read(found[known])
        given = view.feature_info
        for at in np.flatnonzero(~known):
            column, level = str(info["column"].iloc[at]), str(info["level"].iloc[at])
            rows = np.zeros(0, dtype=np.intp)
            if given is not None:
                rows = np.flatnonzero(given["column"].to_numpy() == column)
            if len(rows):
                cells[np.isnan(view.read(rows)).all(axis=1), at] = np.nan
            else:
                cells[:, at] = self._of_numbers(view, column, level)
        return cells

    def _of_numbers(self, view: View, column: str, level: str) -> np.ndarray:
        """Return the 0/1 column of one level, for a category given as one column of numbers.

        A category that no new row has is a column of missing cells; one whose levels are written
        as numbers may be a column of these.
        """
        values = view.read(np.flatnonzero(view.feature_names == column))[:, 0]
        texts = np.array([level_text(float(v)) for v in values], dtype=object)
        made = (texts == level).astype(np.float64)
        unknown = np.isnan(values)
        if column in self.reference_[view.name]:
            unknown |= ~np.isin(texts, self.levels_[view.name][column])
        made[unknown] = np.nan
        return made

    kind = "category encoder"
    stored_fields: ClassVar[dict[str, Form]] = {
        "views": Names(or_text=True, optional=True),
        "drop": Choice(("first", "if_binary", None)),
        "unknown": Choice(("ignore", "error")),
        "levels_": ByName(ByName(Names())),
        "reference_": ByName(ByName(Text())),
        "features_": ByName(Texts("?")),
        "_columns": ByName(Numbers("?", "int", low=0)),
        "_info": ByName(Table({"column": "text", "level": None})),
        # Names of all input columns, and the category that each one is a level of, or empty text.
        "_seen": ByName(Texts("2 ?")),
    }

    def state_values(self) -> dict[str, Any]:
        """Return tables and names in the form they are stored in."""
        return {
            "_info": {
                name: info.astype(object).where(info.notna(), None)
                for name, info in self._info.items()
            },
            "_seen": {
                name: np.array([list(seen), list(seen.values())], dtype=object)
                for name, seen in self._seen.items()
            },
        }

    @classmethod
    def from_values(cls, values: dict[str, Any]) -> CategoryEncoder:
        """Return the fitted encoder of stored values."""
        settings = {name: values.pop(name) for name in ("views", "drop", "unknown")}
        made = cls(**settings)
        pairs = values.pop("_seen").items()
        seen = {name: dict(zip(*pair.tolist(), strict=True)) for name, pair in pairs}
        made.__dict__.update(values, _seen=seen)
        return made

    def check_state(self, sizes: Sizes) -> None:
        """Refuse parts that are not of the same views, columns and categories."""
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
    drops: dict[str, str | None] = dict.fromkeys(mv.view_names, "first")
    for step in steps:
        if isinstance(step, CategoryEncoder):
            chosen = mv.view_names if step.views is None else np.atleast_1d(step.views).tolist()
            drops |= dict.fromkeys(chosen, step.drop)
    return {
        name: width - _n_references(mv.view(name), drops[name])
        for name, width in mv.n_features.items()
    }


def _n_references(view: View, drop: str | None) -> int:
    coded, info = _coded(view), view.feature_info
    if coded is None or info is None or drop is None:
        return 0
    levels = [len(rows) for _, rows in _groups(info["column"].to_numpy(), np.flatnonzero(coded))]
    return sum(n == 2 or (n > 2 and drop == "first") for n in levels)


def has_categories(view: View) -> bool:
    """Whether some columns of a view are levels of a category."""
    return _coded(view) is not None


def _coded(view: View) -> np.ndarray | None:
    """Return which columns are levels of a category, or None where there are none."""
    info = view.feature_info
    if info is None or "column" not in info or "level" not in info or info.attrs.get(_ENCODED):
        return None
    coded = info["level"].notna().to_numpy()
    return coded if coded.any() else None


def _groups(column: np.ndarray, at: np.ndarray) -> list[tuple[Any, np.ndarray]]:
    grouped = pd.Series(at).groupby(column[at], sort=False)
    return [(name, rows.to_numpy()) for name, rows in grouped]


def _blocks(columns: np.ndarray, view: View) -> list[np.ndarray]:
    """Return the columns in blocks that are small enough to be copied."""
    return [columns[cut] for cut in column_blocks(view.shape[0], len(columns), 8)]
