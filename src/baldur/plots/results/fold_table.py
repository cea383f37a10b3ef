"""The table of selected features and their weights in each fold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.plots.results.tables import Results, fold_names, one_model

COLUMNS = ["fold", "view", "feature", "weight", "frequency"]


def fold_weights(
    result: Any, model: str | None, output: str | None
) -> tuple[pd.DataFrame, list[str]]:
    """Return the features that each fold selects, and the names of all folds.

    The columns are fold, view, feature, weight (per standard deviation; of several classes that of
    `output`, or else the largest in absolute value) and frequency (share of all folds). Features
    that most folds select come first, then those with the largest weights.
    """
    found = Results(result)
    selection = found.frame("selection")
    name = one_model(selection, model, "selected features")
    folds = found.frame("folds")
    folds = folds[folds["model"] == name]
    names = list(fold_names(folds))
    weights = found.frame("weights")
    weights = weights[weights["model"] == name] if len(weights) else weights
    if not len(weights):
        return pd.DataFrame(columns=COLUMNS), names
    if output is not None:
        weights = weights[weights["class"].astype(str) == output]
    called = dict(zip(zip(folds["repeat"], folds["fold"], strict=True), names, strict=True))
    table = pd.DataFrame(
        {
            "fold": [called[key] for key in zip(weights["repeat"], weights["fold"], strict=True)],
            "view": weights["view"].to_numpy(),
            "feature": weights["feature"].to_numpy(),
            "weight": weights["weight"].to_numpy(dtype=float),
        }
    )
    size = table["weight"].abs().fillna(0.0).to_numpy()
    keys = ["fold", "view", "feature"]
    table = table.iloc[np.argsort(-size, kind="stable")].drop_duplicates(keys)
    by = table.groupby(["view", "feature"], sort=False)
    table["frequency"] = by["fold"].transform("size") / max(1, len(names))
    mean = by["weight"].transform(lambda w: w.abs().mean()).fillna(0.0).to_numpy()
    place = {fold: i for i, fold in enumerate(names)}
    order = np.lexsort((table["fold"].map(place), -mean, -table["frequency"].to_numpy()))
    return table.iloc[order].reset_index(drop=True), names
