"""CategoryEncoder: the levels of categories, learned on training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from baldur.exceptions import InputError
from baldur.prepare.learned import check_multiview, chosen_views
from baldur.views.container import MultiView
from baldur.views.rebuild import select_columns, set_view
from baldur.views.validate import some
from baldur.views.view import View

__all__ = ["CategoryEncoder"]


class CategoryEncoder(TransformerMixin, BaseEstimator):
    """Keep the levels that occur in the training rows.

    `read_table` writes one column per level found in the file. This step, fitted on training
    rows, drops the columns of levels that no training row has: a row with such a level is then 0
    in all remaining columns of its category. New files are matched by name, so a level they lack
    becomes a column of zeros and a level they add is left out. Views without categories pass
    unchanged.

    Parameters
    ----------
    views : str or sequence of str, optional
        Views to work on; all by default.
    drop : {None, "if_binary"}, default=None
        "if_binary" leaves the first level out of categories with two levels in the training
        rows, as its column is the mirror image of the other.
    unknown : {"ignore", "error"}, default="ignore"
        What to do with rows whose level did not occur in training.

    Attributes
    ----------
    levels_ : dict of str to dict of str to list of str
        For each view and category, the levels seen in training.
    features_ : dict of str to array of str
        For each view with categories, the names of the columns that remain.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from baldur import MultiView
    >>> from baldur.prepare import CategoryEncoder
    >>> info = pd.DataFrame({"column": ["site", "site"], "level": ["Oslo", "Rome"]})
    >>> X = MultiView(
    ...     {"clinic": np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]])},
    ...     feature_names={"clinic": ["site=Oslo", "site=Rome"]},
    ...     feature_info={"clinic": info},
    ... )
    >>> encoder = CategoryEncoder().fit(X[[0, 1]])
    >>> encoder.levels_
    {'clinic': {'site': ['Oslo']}}
    >>> encoder.transform(X).view("clinic").read().ravel()
    array([1., 1., 0.])
    """

    def __init__(
        self,
        views: str | Sequence[str] | None = None,
        *,
        drop: str | None = None,
        unknown: str = "ignore",
    ) -> None:
        self.views = views
        self.drop = drop
        self.unknown = unknown

    def fit(self, X: MultiView, y: Any = None) -> CategoryEncoder:
        """Learn the levels from the rows of `X`; `y` is not used."""
        if self.drop not in (None, "if_binary") or self.unknown not in ("ignore", "error"):
            raise InputError(
                "CategoryEncoder: drop must be None or 'if_binary' and unknown 'ignore' or "
                f"'error', but got {self.drop!r} and {self.unknown!r}."
            )
        X = check_multiview(X, "CategoryEncoder")
        self.levels_: dict[str, dict[str, list[str]]] = {}
        self.features_: dict[str, np.ndarray] = {}
        self._info: dict[str, pd.DataFrame] = {}
        for name in chosen_views(X, self.views, "CategoryEncoder"):
            view = X.view(name)
            coded = _coded(view)
            if coded is None or view.feature_info is None:
                continue
            at = np.flatnonzero(coded)
            kept = ~coded
            kept[at] = np.nan_to_num(view.read(at)).any(axis=0)
            info = view.feature_info
            self.levels_[name] = {
                str(column): info["level"].to_numpy()[rows[kept[rows]]].tolist()
                for column, rows in _groups(info["column"].to_numpy(), at)
            }
            if self.drop == "if_binary":
                for _, rows in _groups(info["column"].to_numpy(), at):
                    seen = rows[kept[rows]]
                    if len(seen) == 2:
                        kept[seen[0]] = False
            if not kept.any():
                raise InputError(
                    f"View {name!r}: every category is missing in all {len(X)} training rows, and "
                    "the view has no other column. Leave the view out."
                )
            self.features_[name] = view.feature_names[kept]
            self._info[name] = info.iloc[np.flatnonzero(kept)].reset_index(drop=True)
        return self

    def transform(self, X: MultiView) -> MultiView:
        """Return `X` with the columns learned in `fit`, in their order."""
        check_is_fitted(self, "features_")
        X = check_multiview(X, "CategoryEncoder")
        columns, filled = {}, {}
        for name, wanted in self.features_.items():
            if name not in X.view_names:
                raise InputError(
                    f"CategoryEncoder: expected the view {name!r} seen in fit, but the views are "
                    f"{X.view_names}."
                )
            view = X.view(name)
            found = pd.Index(view.feature_names).get_indexer(pd.Index(wanted))
            self._check(view, found)
            if (found >= 0).all():
                columns[name] = found
            else:
                filled[name] = self._filled(view, found)
        X = select_columns(X, columns)
        for name, cells in filled.items():
            X = set_view(X, name, cells, self.features_[name], self._info[name])
        return X

    def _check(self, view: View, found: np.ndarray) -> None:
        """Refuse columns of numbers that came or went, and new levels if asked to."""
        info = self._info[view.name]
        categories = self.levels_[view.name]
        known_levels = {
            f"{column}={level}" for column, levels in categories.items() for level in levels
        }
        new_info = view.feature_info
        has = set() if new_info is None or "column" not in new_info else set(new_info["column"])
        has |= set(view.feature_names.tolist())
        gone = sorted({str(c) for c in info["column"].to_numpy()[found < 0]} - has)
        coded = _coded(view)
        coded = np.zeros(view.shape[1], dtype=bool) if coded is None else coded
        names = view.feature_names
        extra = [
            n for n in names[~coded].tolist() if n not in set(self.features_[view.name].tolist())
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
                + ". Read the table with the same columns= and categorical=."
            )
        if self.unknown == "error":
            at = np.flatnonzero(coded & ~np.isin(names, sorted(known_levels)))
            if at.size:
                used = at[np.nan_to_num(view.read(at)).any(axis=0)]
                if used.size:
                    raise InputError(
                        f"View {view.name!r}: {some(names[used].tolist())} did not occur in the "
                        "training rows. Add such rows to the training set, merge rare levels, or "
                        "use unknown='ignore'."
                    )

    def _filled(self, view: View, found: np.ndarray) -> np.ndarray:
        """Return the columns in memory, with zeros for levels this file does not have."""
        info = self._info[view.name]
        cells = np.zeros((view.shape[0], len(found)))
        known = found >= 0
        cells[:, known] = view.read(found[known])
        given = view.feature_info
        for at in np.flatnonzero(~known):
            column = info["column"].to_numpy()[at]
            rows = np.zeros(0, dtype=np.intp)
            if given is not None:
                rows = np.flatnonzero(given["column"].to_numpy() == column)
            # A category no row of this file knows came in as one column of missing cells.
            here = rows if len(rows) else np.flatnonzero(view.feature_names == str(column))
            cells[np.isnan(view.read(here)).all(axis=1), at] = np.nan
        return cells


def _coded(view: View) -> np.ndarray | None:
    """Return which columns are levels of a category, or None where there are none."""
    info = view.feature_info
    if info is None or "column" not in info or "level" not in info:
        return None
    coded = info["level"].notna().to_numpy()
    return coded if coded.any() else None


def _groups(column: np.ndarray, at: np.ndarray) -> list[tuple[Any, np.ndarray]]:
    grouped = pd.Series(at).groupby(column[at], sort=False)
    return [(name, rows.to_numpy()) for name, rows in grouped]
