"""The argument `cost`: what views and features cost, as costs of prepared columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from baldur.core.types import Index, IntArray
from baldur.exceptions import InputError
from baldur.inference.entry_costs import EntryCosts
from baldur.inference.screening import with_their_groups


@dataclass(frozen=True)
class NamedColumns:
    """The prepared columns that a name stands for."""

    columns: dict[str, set[tuple[str, int]]]  # (view, column)
    removed: set[str]  # Names of which the preparation has removed a column

    @classmethod
    def of(cls, feature_names: Mapping[str, Any], preparation: Any) -> NamedColumns:
        """Look up the names of the features of each view after a fitted preparation."""
        levels, columns = preparation.level_columns, preparation.columns_
        known: dict[str, set[tuple[str, int]]] = {}
        removed: set[str] = set()
        for view, names in feature_names.items():
            place = {int(column): d for d, column in enumerate(columns[view])}
            for column, name in enumerate(map(str, names)):
                called = {name, levels.get(view, {}).get(name, name)}
                for text in [*called, *(f"{view}:{one}" for one in called)]:
                    if column in place:
                        known.setdefault(text, set()).add((view, place[column]))
                    else:
                        removed.add(text)
        return cls(known, removed)


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question about the nearest known name, empty where none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def check_views(argument: str, given: Iterable[str], views: list[str]) -> None:
    """Raise an error that names the argument if a name is not that of a view."""
    for name in given:
        if name not in views:
            raise InputError(
                f"{argument}: there is no view {name!r}.{did_you_mean(name, views)} The views are "
                f"{', '.join(views)}."
            )


def entry_costs(
    cost: Mapping[str, float] | None,
    feature_names: Mapping[str, Any],
    preparation: Any,
) -> EntryCosts | None:
    """Return the costs of the views and of their prepared columns; None where nothing costs.

    A feature that the preparation has removed costs nothing, as it is never measured.
    """
    if not cost or not any(cost.values()):
        return None
    views = list(feature_names)
    named = NamedColumns.of(feature_names, preparation)
    of_view = np.zeros(len(views))
    of_column = {view: np.zeros(len(preparation.columns_[view])) for view in views}
    for name, price in cost.items():
        if name in views and name in named.columns:
            raise InputError(
                f"cost: {name!r} is the name of a view and of a feature. Write the feature as "
                f"{_example(named, name)!r}, or rename the view."
            )
        if name in views:
            of_view[views.index(name)] = float(price)
        elif name in named.columns:
            for view, column in named.columns[name]:
                of_column[view][column] = float(price)
        elif name not in named.removed:
            raise InputError(
                f"cost: no view and no feature is called {name!r}."
                f"{did_you_mean(name, [*views, *named.columns])} Give names of views, of features "
                'or categories, or "view:feature".'
            )
    return EntryCosts(of_view, np.concatenate(list(of_column.values())))


def _example(named: NamedColumns, name: str) -> str:
    view, _ = sorted(named.columns[name])[0]
    return f"{view}:{name}"


def features_per_view(n_features: Mapping[str, int], views: list[str]) -> IntArray:
    """Return the largest number of features of every view, 0 for views that are not named."""
    check_views("n_features", n_features, views)
    return np.array([int(n_features.get(view, 0)) for view in views], dtype=np.intp)


def required_columns(
    always: Sequence[str] | None,
    feature_names: Mapping[str, Any],
    preparation: Any,
) -> Index | None:
    """Return the prepared columns of each view that every submodel has; None without any."""
    if not always:
        return None
    named = NamedColumns.of(feature_names, preparation)
    index: dict[str, list[int]] = {view: [] for view in feature_names}
    for name in always:
        if name not in named.columns:
            raise InputError(_unknown(name, named))
        for view, column in named.columns[name]:
            index[view].append(column)
    found = [np.unique(np.array(own, dtype=np.intp)) for own in index.values()]
    groups = preparation.feature_groups
    return found if groups is None else with_their_groups(found, groups)


def _unknown(name: str, named: NamedColumns) -> str:
    """Return the message about a name that no column has."""
    if name in named.removed:
        return (
            f"always: the preparation has removed {name!r}, so no submodel can have it. Leave it "
            "out of always, or change the preparation."
        )
    return (
        f"always: no view has a feature {name!r}.{did_you_mean(name, named.columns)} Give names of "
        'features or categories, or "view:feature".'
    )
