"""Selected features in the data: their locations, image grids and correlations."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.selection.correlations import COLUMNS, feature_correlations
from baldur.views import MultiView

HALF = 0.5
MOST = 30
"""Features a picture of correlations can show."""


def _listed(selection: pd.DataFrame) -> pd.DataFrame:
    return selection[selection["feature"] != "*"]


def selected_correlations(selection: pd.DataFrame, data: MultiView) -> pd.DataFrame:
    """Return correlations of the features that each model selects in at least half of the folds.

    At most thirty features of each model are taken, those selected most often. Columns: model,
    view_a, feature_a, view_b, feature_b, correlation.
    """
    parts = []
    often = _listed(selection)
    often = often[often["frequency"].astype(float) >= HALF].drop_duplicates(
        ["model", "view", "feature"]
    )
    for model, mine in often.groupby("model", sort=False):
        size = mine["mean_weight"].astype(float).abs().fillna(0.0).to_numpy()
        order = np.lexsort((-size, -mine["frequency"].to_numpy(dtype=float)))[:MOST]
        kept = mine.iloc[np.sort(order)]
        pairs = [
            (view, str(feature))
            for view in data.view_names
            for feature in kept.loc[kept["view"] == view, "feature"]
        ]
        made = feature_correlations(data, pairs)
        made.insert(0, "model", model)
        parts.append(made)
    return (
        pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["model", *COLUMNS])
    )


def feature_locations(selection: pd.DataFrame, data: MultiView) -> pd.DataFrame:
    """Return the ``feature_info`` of every feature that some fold of some model selects."""
    parts = []
    for view in data.view_names:
        info = data.view(view).feature_info
        if info is None:
            continue
        wanted = _listed(selection)
        names = pd.Index(wanted.loc[wanted["view"] == view, "feature"].astype(str).unique())
        if not len(names):
            continue
        at = pd.Index(data.view(view).feature_names.astype(str)).get_indexer(names)
        part = info.iloc[at[at >= 0]].reset_index(drop=True)
        part = part.drop(columns=[c for c in ("view", "feature") if c in part])
        part.attrs = {}
        part.insert(0, "feature", names[at >= 0])
        part.insert(0, "view", view)
        parts.append(part)
    if not parts:
        return pd.DataFrame(columns=["view", "feature"])
    return pd.concat(parts, ignore_index=True)


def image_grids(data: MultiView) -> dict[str, dict[str, Any]]:
    """Return shape, affine and kind of the grid of every view made of images."""
    found = {}
    for view in data.view_names:
        info = data.view(view).feature_info
        if info is None or not {"shape", "affine"} <= set(info.attrs):
            continue
        grid: dict[str, Any] = {
            "shape": [int(n) for n in info.attrs["shape"]],
            "affine": np.asarray(info.attrs["affine"], dtype=float).tolist(),
        }
        # An atlas that was given as an image, not as a file, cannot be named.
        named = {k: info.attrs.get(k) for k in ("kind", "atlas")}
        grid |= {k: str(v) for k, v in named.items() if isinstance(v, (str, Path))}
        found[view] = grid
    return found
