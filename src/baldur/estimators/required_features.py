"""The arguments `always` and `n_features`: what a submodel must have, as prepared columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from baldur.estimators.feature_names import NamedColumns, check_views, did_you_mean
from baldur.exceptions import InputError
from baldur.inference.screening import with_their_groups
from baldur.types import Index, IntArray


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
