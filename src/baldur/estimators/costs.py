"""The argument `cost`: what views and features cost, as costs of prepared columns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from baldur.estimators.feature_names import NamedColumns, did_you_mean
from baldur.exceptions import InputError
from baldur.inference.entry_costs import EntryCosts


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
