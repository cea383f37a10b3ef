"""What one fitted model selects: features, weights in two units, and the variance of every view.

A weight per standard deviation can be compared between features and between models. A weight per
unit of the input is multiplied with a measurement as it was given. Estimators store the one or the
other; here both are returned for every model.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.baselines import BaselineEstimator
from baldur.evaluation.selected_features import (
    CORRELATION_COLUMNS,
    concatenated,
    feature_correlations,
)
from baldur.views import MultiView


@dataclass(frozen=True)
class ModelWeights:
    """Weights of every view, features by outputs."""

    per_sd: dict[str, np.ndarray]  # (n_features, n_outputs)
    raw: dict[str, np.ndarray]  # (n_features, n_outputs); For one unit of the input
    variance: dict[str, np.ndarray]  # (n_outputs,)


def weights_of(estimator: Any, mv: MultiView) -> ModelWeights | None:
    """Return the weights of a fitted model, or None for one without."""
    preparation = getattr(estimator, "preparation_", None)
    masks = getattr(estimator, "selected_features_", None)
    names = [v for v in mv.view_names if not isinstance(masks, dict) or v in masks]
    widths = {v: mv.n_features[v] for v in names}
    given = _read_weights(estimator, widths)
    if not given or preparation is None:
        return None
    # The variance of a view needs the cells of its weighted columns: moments of single columns do
    # not give it. `transform` reads nothing itself, and `apply` reads columns with a weight once;
    # both take 1 to 3 ms for 80 rows and 7,020 columns, beside 1 s of a default fit.
    prepared = preparation.transform(mv)
    per_sd, raw, variance = {}, {}, {}
    for name in widths:
        columns = preparation.columns_[name]
        unit = preparation.coef_in_input_units(name, np.ones(len(columns)))[:, None]
        if on_prepared(estimator):
            # Block-scaled views enter the model divided by the root of their width.
            factor = len(columns) ** -0.5 if getattr(estimator, "block_scale", False) else 1.0
            per_sd[name] = factor * given[name]
            raw[name] = per_sd[name] * unit
        else:
            raw[name] = given[name]
            per_sd[name] = np.divide(raw[name], unit, out=np.zeros_like(raw[name]), where=unit != 0)
        part = np.asarray(prepared[name].apply(per_sd[name][columns]))
        variance[name] = np.atleast_1d(part.var(axis=0))
    return ModelWeights(per_sd, raw, variance)


def on_prepared(estimator: Any) -> bool:
    """Whether ``coef_`` belongs to the prepared columns, not to units of the input."""
    return bool(getattr(estimator, "coef_on_prepared", isinstance(estimator, BaselineEstimator)))


def by_class(weights: np.ndarray, n_classes: int, seen: np.ndarray) -> np.ndarray:
    """Return the weights with one output per class that is reported.

    Shapes: weights (n_features, n_outputs); returns (n_features, 1 or n_classes).
    """
    outputs = weights.shape[1]
    if n_classes <= 2:
        # One column for each of two classes.
        return weights[:, 1:2] - weights[:, :1] if outputs == 2 else weights[:, :1]
    full = np.full((len(weights), n_classes), np.nan)
    if outputs == len(seen):
        full[:, seen] = weights
    elif outputs == 1 and len(seen) == 2:
        full[:, seen] = weights * np.array([-0.5, 0.5])
    return full


def read_selection(estimator: Any, mv: MultiView) -> dict[str, np.ndarray]:
    """Return the selected features of every view."""
    masks = getattr(estimator, "selected_features_", None)
    columns = getattr(getattr(estimator, "preparation_", None), "columns_", {})
    found = {}
    for name in mv.view_names:
        if not isinstance(masks, dict):
            every = columns.get(name, np.arange(mv.n_features[name]))
            found[name] = np.asarray(every).astype(np.int32)
        elif name in masks:
            found[name] = np.flatnonzero(np.asarray(masks[name])).astype(np.int32)
    return found


def _read_weights(estimator: Any, widths: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the weights of every view as features by outputs; empty where there are none."""
    coef, kept = getattr(estimator, "coef_", None), getattr(estimator, "lasso_features_", None)
    if not isinstance(coef, dict) or any(v not in coef for v in widths):
        return {}
    arrays = {v: np.asarray(coef[v], dtype=float) for v in widths}
    arrays = {v: a[None, :] if a.ndim == 1 else a for v, a in arrays.items()}
    if any(a.ndim != 2 for a in arrays.values()):
        return {}
    if all(a.shape[1] == widths[v] for v, a in arrays.items()):
        return {v: a.T for v, a in arrays.items()}
    if all(a.shape[0] == widths[v] for v, a in arrays.items()):
        return arrays
    if isinstance(kept, dict) and all(len(a) == np.sum(kept[v]) for v, a in arrays.items()):
        # Weights only for the features a first step kept.
        full = {v: np.zeros((widths[v], a.shape[1])) for v, a in arrays.items()}
        for v, a in arrays.items():
            full[v][np.asarray(kept[v])] = a
        return full
    return {}


HALF = 0.5
MOST = 30
"""Features a picture of correlations can show."""


def selected_correlations(selection: pd.DataFrame, data: MultiView) -> pd.DataFrame:
    """Return correlations of the features that each model selects in at least half of the folds.

    At most thirty features of each model are taken, those selected most often. Columns: model,
    view_a, feature_a, view_b, feature_b, correlation.
    """
    parts = []
    often = selection[selection["feature"] != "*"]
    often = often[often["frequency"].astype(float) >= HALF].drop_duplicates(
        ["model", "view", "feature"]
    )
    for model, part in often.groupby("model", sort=False):
        size = part["mean_weight"].astype(float).abs().fillna(0.0).to_numpy()
        order = np.lexsort((-size, -part["frequency"].to_numpy(dtype=float)))[:MOST]
        kept = part.iloc[np.sort(order)]
        pairs = [
            (view, str(feature))
            for view in data.view_names
            for feature in kept.loc[kept["view"] == view, "feature"]
        ]
        parts.append(feature_correlations(data, pairs).assign(model=model))
    return concatenated(parts, ["model", *CORRELATION_COLUMNS])[["model", *CORRELATION_COLUMNS]]


def feature_locations(selection: pd.DataFrame, data: MultiView) -> pd.DataFrame:
    """Return the ``feature_info`` of every feature that some fold of some model selects."""
    parts = []
    for view in data.view_names:
        info = data.view(view).feature_info
        if info is None:
            continue
        rows = (selection["view"] == view) & (selection["feature"] != "*")
        names = pd.Index(selection.loc[rows, "feature"].astype(str).unique())
        if not len(names):
            continue
        at = pd.Index(data.view(view).feature_names.astype(str)).get_indexer(names)
        part = info.iloc[at[at >= 0]].reset_index(drop=True)
        part = part.drop(columns=[c for c in ("view", "feature") if c in part])
        part.attrs = {}
        part.insert(0, "feature", names[at >= 0])
        part.insert(0, "view", view)
        parts.append(part)
    return concatenated(parts, ["view", "feature"])


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
