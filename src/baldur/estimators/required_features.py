"""The argument `always`: names of features that every submodel has, as prepared columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.inference.screening import with_their_groups
from baldur.types import Index

__all__ = ["required_columns"]


def required_columns(
    always: Sequence[str] | None,
    feature_names: Mapping[str, Any],
    preparation: Any,
) -> Index | None:
    """Return the prepared columns of each view that every submodel has; None without any.

    Parameters
    ----------
    always : sequence of str, or None
        Names of features or categories, alone or as "view:feature".
    feature_names : dict of str to names
        Names of the features of each view, in the order of the views.
    preparation : Preparation
        Fitted on the training samples.
    """
    if not always:
        return None
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
    index: dict[str, list[int]] = {view: [] for view in feature_names}
    for name in always:
        if name not in known:
            raise InputError(_unknown(name, known, removed))
        for view, column in known[name]:
            index[view].append(column)
    found = [np.unique(np.array(own, dtype=np.intp)) for own in index.values()]
    groups = preparation.feature_groups
    return found if groups is None else with_their_groups(found, groups)


def _unknown(name: str, known: Mapping[str, Any], removed: set[str]) -> str:
    """Return the message about a name that no column has."""
    if name in removed:
        return (
            f"always: the preparation has removed {name!r}, so no submodel can have it. Leave it "
            "out of always, or change the preparation."
        )
    near = get_close_matches(name, list(known), n=1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"always: no view has a feature {name!r}.{hint} Give names of features or categories, or "
        '"view:feature".'
    )
