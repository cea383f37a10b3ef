"""Names of features in the arguments of an estimator, as prepared columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from baldur.exceptions import InputError


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
