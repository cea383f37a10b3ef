"""Arguments of the estimators: what each must be, and which columns their names stand for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from numbers import Integral
from types import MappingProxyType
from typing import Any, TypeGuard

import numpy as np
from sklearn.utils import check_random_state

from baldur.core.parameters import NON_NEGATIVE, Constraint, is_number, is_one_of
from baldur.core.types import Index, IntArray
from baldur.exceptions import InputError
from baldur.inference.ensemble import MEMBERS
from baldur.inference.inner_folds import with_their_groups
from baldur.inference.path_search import EntryCosts


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def is_number_of_features(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number from 0 on."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def are_numbers_of_features(value: Any) -> TypeGuard[Mapping[str, int]]:
    """Return whether a value is a dict of names of views to whole numbers from 0 on."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(view, str) for view in value)
        and all(is_number_of_features(number) for number in value.values())
    )


def _are_costs(value: Any) -> bool:
    if value is None:
        return True
    named = isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    return named and all(NON_NEGATIVE.is_legal(number) for number in value.values())


def _are_names(value: Any) -> bool:
    several = isinstance(value, (list, tuple))
    return value is None or (several and all(isinstance(name, str) for name in value))


def _are_members(value: Any) -> bool:
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    names = list(value) if several else []
    return bool(names) and all(is_one_of(name, MEMBERS) for name in names)


def _is_seed(value: Any) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return True


CONSTRAINTS: Mapping[str, Constraint] = MappingProxyType(
    {
        "n_factors": Constraint(
            lambda v: is_one_of(v, ("auto",)) or _is_count(v), '"auto" or a positive integer'
        ),
        "n_features": Constraint(
            lambda v: (
                is_one_of(v, ("auto",)) or is_number_of_features(v) or are_numbers_of_features(v)
            ),
            '"auto", a whole number from 0 on, or a dict of views to such numbers',
        ),
        "cost": Constraint(
            _are_costs,
            "None, or a dict of names of views or features to finite numbers from 0 on",
        ),
        "always": Constraint(_are_names, "None, or a list or tuple of names of features"),
        "max_iter": Constraint(_is_count, "a positive integer"),
        "members": Constraint(
            _are_members,
            "a tuple or list of one or more of " + ", ".join(f'"{name}"' for name in MEMBERS),
        ),
        "random_state": Constraint(_is_seed, "None, a whole number or a RandomState"),
        "n_jobs": Constraint(
            lambda v: v is None or (isinstance(v, Integral) and v != 0),
            "None or a number of processes (-1 for one per core)",
        ),
        "verbose": Constraint(lambda v: is_number(v, 0), "0, or 1 to print progress"),
        "margin": Constraint(
            lambda v: is_number(v, 0.0, 1.0),
            "a number from 0 (everything, unless less is shown to lose nothing) to 1, the part of "
            "what is gained over the base rate that a smaller model may lose",
        ),
    }
)
"""Argument to constraint. An argument that is not here is checked where it is used."""

# -- names of views and features ------------------------------------------------------------------


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
