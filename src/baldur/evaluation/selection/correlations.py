"""Correlations between chosen features, of one view or of several."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.views.container import MultiView

COLUMNS = ["view_a", "feature_a", "view_b", "feature_b", "correlation"]

LEAST = 3
"""People who have both features; fewer have any correlation."""


def feature_correlations(data: MultiView, features: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Give Pearson's correlation of every pair of features, over the people who have both.

    Shapes: features (view, feature).
    """
    columns = []
    for view in dict.fromkeys(view for view, _ in features):
        if view not in data.view_names:
            raise InputError(f"There is no view {view!r} in the data, only {data.view_names}.")
        names = [feature for v, feature in features if v == view]
        index = pd.Index(data.view(view).feature_names.astype(str))
        at = index.get_indexer(pd.Index(names))
        if (at < 0).any():
            unknown = names[int(np.flatnonzero(at < 0)[0])]
            raise InputError(f"View {view!r} has no feature {unknown!r}.")
        cells = data.view(view).read(at).astype(float)
        columns += list(zip([(view, name) for name in names], cells.T, strict=True))
    values = dict(columns)
    made = pd.DataFrame({i: values[pair] for i, pair in enumerate(features)})
    matrix = made.corr(min_periods=LEAST).to_numpy() if len(features) else np.zeros((0, 0))
    rows = [
        (*a, *b, float(matrix[i, j]))
        for i, a in enumerate(features)
        for j, b in enumerate(features)
    ]
    return pd.DataFrame(rows, columns=COLUMNS)
