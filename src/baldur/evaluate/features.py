"""Selected features over the outer folds: how often, how heavy, how stable."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluate.stability import StabilityIndex, nogueira
from baldur.views import MultiView

__all__ = ["Stability", "percent_selected", "selection_frame", "stability_of", "weights_frame"]

WIDEST_LISTED = 10_000
"""A view that a model keeps whole in every fold is listed feature by feature up to this width."""

COLUMNS = [
    "model", "view", "feature", "n_features", "frequency", "mean_weight", "sign_agreement", "folds",
]  # fmt: skip


@dataclass(frozen=True)
class Stability:
    """How far the folds agree.

    Attributes
    ----------
    index : DataFrame
        model, view ("*": all views together), stability, error, low, high: Nogueira's index.
    features : DataFrame
        model, view, feature, frequency, mean_weight, sign_agreement: features selected in at
        least one fold, the most frequent first.
    views : DataFrame
        model, view, frequency (share of folds that use the view), percent_of_view, share (of all
        selected features), weight_share (of the total absolute weight), each a mean over folds.
    """

    index: pd.DataFrame
    features: pd.DataFrame
    views: pd.DataFrame


def _order(fits: Sequence[Any]) -> list[Any]:
    return sorted(fits, key=lambda f: (f.repeat, f.fold))


def _whole(fits: Sequence[Any], view: str, width: int) -> bool:
    return all(len(f.selected[view][0]) == width for f in fits)


def selection_frame(fits: Mapping[str, Sequence[Any]], mv: MultiView) -> pd.DataFrame:
    """Summarise the selections of every model over its folds.

    Each view has one row with feature "*" for all its features together; below it come the
    features selected in at least one fold (left out for a view wider than 10,000 that is kept
    whole in every fold). `folds` holds the number selected in each fold, in the order of repeats
    and folds; `frequency` is their mean over `n_features`. The mean weight is over the folds that
    select the feature; sign agreement is the share of them that have the commoner sign.
    """
    parts = []
    for model, unordered in fits.items():
        ordered = _order(unordered)
        if not ordered:
            continue
        for view in ordered[0].selected:
            width = mv.n_features[view]
            counts = [len(f.selected[view][0]) for f in ordered]
            folds = ";".join(map(str, counts))
            whole = [model, view, "*", width, np.mean(counts) / width, np.nan, np.nan, folds]
            parts.append(pd.DataFrame([whole], columns=COLUMNS))
            if width > WIDEST_LISTED and _whole(ordered, view, width):
                continue
            listed = _listed(ordered, view, mv)
            if len(listed):
                listed.insert(0, "model", model)
                parts.append(listed[COLUMNS])
    if not parts:
        return pd.DataFrame(columns=COLUMNS)
    # Concatenating columns that are all NaN would change their type in later pandas.
    parts = [p.astype({"mean_weight": float, "sign_agreement": float}) for p in parts]
    return pd.concat(parts, ignore_index=True)


def _listed(ordered: Sequence[Any], view: str, mv: MultiView) -> pd.DataFrame:
    used = np.unique(np.concatenate([f.selected[view][0] for f in ordered])).astype(np.intp)
    hits = np.zeros((len(used), len(ordered)), dtype=np.int8)
    weights = np.zeros((len(used), len(ordered)))
    for j, f in enumerate(ordered):
        index, weight = f.selected[view]
        at = np.searchsorted(used, index)
        hits[at, j], weights[at, j] = 1, weight
    count = hits.sum(axis=1)
    plus = np.sum((weights > 0) & (hits == 1), axis=1)
    minus = np.sum((weights < 0) & (hits == 1), axis=1)
    mean = weights.sum(axis=1) / count if len(used) else np.zeros(0)
    agreement = np.where(np.isnan(mean), np.nan, np.maximum(plus, minus) / np.maximum(count, 1))
    frame = pd.DataFrame(
        {
            "view": view,
            "feature": mv.view(view).names_of(used),
            "n_features": 1,
            "frequency": count / len(ordered),
            "mean_weight": mean,
            "sign_agreement": agreement,
            "folds": [";".join(map(str, row)) for row in hits.tolist()],
        }
    )
    weight_order = -np.nan_to_num(np.abs(mean))
    return frame.iloc[np.lexsort((used, weight_order, -count))]


def percent_selected(selection: pd.DataFrame) -> pd.DataFrame:
    """Percentage of all features each model selects, per fold in their order, from `selection`.

    The columns are model, position (of the fold, from 0) and features_percent.
    """
    rows = []
    views = selection[selection["feature"] == "*"]
    for model, part in views.groupby("model", sort=False):
        counts = np.array([[int(k) for k in str(c).split(";")] for c in part["folds"]])
        percent = 100.0 * counts.sum(axis=0) / part["n_features"].astype(int).sum()
        rows += [(model, j, value) for j, value in enumerate(percent.tolist())]
    return pd.DataFrame(rows, columns=["model", "position", "features_percent"])


def weights_frame(fits: Mapping[str, Sequence[Any]], mv: MultiView) -> pd.DataFrame:
    """List the selected features of every fold with their weights.

    Views wider than 10,000 that a model keeps whole are left out.
    """
    parts = []
    for model, unordered in fits.items():
        ordered = _order(unordered)
        for f in ordered:
            for view, (index, weight) in f.selected.items():
                width = mv.n_features[view]
                if not len(index) or (width > WIDEST_LISTED and _whole(ordered, view, width)):
                    continue
                parts.append(
                    pd.DataFrame(
                        {
                            "model": model,
                            "repeat": f.repeat + 1,
                            "fold": f.fold + 1,
                            "view": view,
                            "feature": mv.view(view).names_of(index.astype(np.intp)),
                            "weight": weight,
                        }
                    )
                )
    columns = ["model", "repeat", "fold", "view", "feature", "weight"]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=columns)


def stability_of(
    fits: Mapping[str, Sequence[Any]], mv: MultiView, selection: pd.DataFrame, level: float
) -> Stability:
    """Compute the index per view and over all views, and the share of each view."""
    index_rows, view_rows = [], []
    for model, unordered in fits.items():
        ordered = _order(unordered)
        if not ordered:
            continue
        views = list(ordered[0].selected)
        widths = [mv.n_features[v] for v in views]
        starts = np.cumsum([0, *widths[:-1]])
        joined = [
            np.concatenate([f.selected[v][0] + s for v, s in zip(views, starts, strict=True)])
            for f in ordered
        ]
        for view, sets, width in [
            ("*", joined, sum(widths)),
            *((v, [f.selected[v][0] for f in ordered], mv.n_features[v]) for v in views),
        ]:
            found = _index(sets, width, level)
            index_rows.append((model, view, found.value, found.error, found.low, found.high))
        view_rows += _view_shares(model, ordered, views, widths)
    columns = ["model", "view", "stability", "error", "low", "high"]
    shares = ["model", "view", "frequency", "percent_of_view", "share", "weight_share"]
    features = selection[selection["feature"] != "*"].drop(columns=["n_features", "folds"])
    return Stability(
        index=pd.DataFrame(index_rows, columns=columns),
        features=features.reset_index(drop=True),
        views=pd.DataFrame(view_rows, columns=shares),
    )


def _index(sets: list[np.ndarray], width: int, level: float) -> StabilityIndex:
    if len(sets) < 2:
        nan = float("nan")
        return StabilityIndex(nan, nan, nan, nan)
    return nogueira(sets, width, level)


def _view_shares(
    model: str, ordered: Sequence[Any], views: list[str], widths: list[int]
) -> list[tuple[Any, ...]]:
    counts = np.array([[len(f.selected[v][0]) for v in views] for f in ordered], dtype=float)
    mass = np.array([[np.abs(f.selected[v][1]).sum() for v in views] for f in ordered])
    with np.errstate(invalid="ignore", divide="ignore"):
        share = counts / counts.sum(axis=1, keepdims=True)
        weight = mass / mass.sum(axis=1, keepdims=True)
    # A fold that selects nothing gives no view a share.
    share, weight = np.where(np.isnan(share), 0.0, share), np.where(mass == 0, 0.0, weight)
    return [
        (model, v, float((counts[:, i] > 0).mean()), float(100 * counts[:, i].mean() / widths[i]),
         float(share[:, i].mean()), float(weight[:, i].mean()))
        for i, v in enumerate(views)
    ]  # fmt: skip
