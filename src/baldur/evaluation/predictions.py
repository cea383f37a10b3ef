"""predictions_frame: the held-out predictions of every model as one table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.types import Array
from baldur.evaluation.clinical.held_out import PLATT, Resampled
from baldur.evaluation.clinical.metric_intervals import metric_intervals
from baldur.evaluation.job_results import OuterFit
from baldur.views import MultiView


def predictions_frame(
    fits: Mapping[str, Sequence[OuterFit]],
    data: MultiView,
    truth: np.ndarray,
    classes: Sequence[Any],
    groups: np.ndarray | None = None,
    sites: np.ndarray | None = None,
) -> pd.DataFrame:
    """Return one row for each model, repeat and sample.

    Shapes: truth (n_samples,), groups, sites (n_samples,).
    """
    parts = []
    names = [str(c) for c in classes]
    scaled = any(f.scaled for own in fits.values() for f in own)
    for model, own in fits.items():
        for f in own:
            columns: dict[str, Any] = {
                "model": model,
                "repeat": f.repeat + 1,
                "fold": f.fold + 1,
                "sample": data.sample_ids[f.test].astype(str),
            }
            for name, values in (("group", groups), ("site", sites)):
                if values is not None:
                    columns[name] = values[f.test]
            if not names:
                columns.update(label=truth[f.test], predicted=f.label)
                parts.append(pd.DataFrame(columns))
                continue
            columns["label"] = np.array(names)[truth[f.test]]
            columns["predicted"] = np.array(names)[f.label.astype(int)]
            for c, name in enumerate(names):
                columns[f"p_{name}"] = np.nan if f.proba is None else f.proba[:, c]
            if scaled:
                columns["probability"] = PLATT if f.scaled else "model"
            if f.margin is not None and f.margin.ndim == 1:
                columns["score"] = f.margin
            elif f.margin is not None:
                columns.update({f"score_{n}": f.margin[:, c] for c, n in enumerate(names)})
            parts.append(pd.DataFrame(columns))
    if not parts:
        fixed = ["model", "repeat", "fold", "sample", "label", "predicted"]
        return pd.DataFrame(columns=[*fixed, *(f"p_{name}" for name in names)])
    return pd.concat(parts, ignore_index=True)


COLUMNS = [
    "view", "feature", "level", "class", "kind", "count", "missing", "mean", "sd", "share",
]  # fmt: skip
EVERYBODY = "*"
"""Stands in the column class for all participants, and in the column feature for a whole view."""
WIDEST = 30
"""Features of a view that is described one by one; wider ones are no list of characteristics."""
MOST = 60
"""Features described in all; a table on paper has fewer."""


def participants_frame(data: MultiView, label: Array, classes: Sequence[Any]) -> pd.DataFrame:
    """Describe the participants by outcome.

    Shapes: label (n_samples,).
    """
    parts = [(EVERYBODY, np.ones(len(data), dtype=bool))]
    parts += [(str(c), np.asarray(label).astype(str) == str(c)) for c in classes]
    rows: list[dict[str, Any]] = []
    described = 0
    # Narrow views first: age and sex are seldom in a wide one.
    for name in sorted(data.view_names, key=lambda name: data.n_features[name]):
        view = data.view(name)
        present = view.present
        for group, who in parts:
            count = int(np.sum(present & who))
            rows.append(
                {"view": name, "feature": EVERYBODY, "level": "", "class": group, "kind": "view",
                 "count": count, "missing": int(who.sum()) - count,
                 "share": count / max(int(who.sum()), 1)}
            )  # fmt: skip
        if view.shape[1] > WIDEST or described >= MOST:
            continue
        cells = view.read().astype(float)
        levels = _levels(view.feature_info, view.shape[1])
        for j, feature in enumerate(view.feature_names[: MOST - described].astype(str)):
            level = levels[j]
            for group, who in parts:
                shown = {"view": name, "feature": feature, "level": level, "class": group}
                rows.append({**shown, **_described(cells[:, j], who)})
        described += view.shape[1]
    return pd.DataFrame(rows, columns=COLUMNS)


def _levels(info: pd.DataFrame | None, width: int) -> list[str]:
    """Return the level that each column of a category stands for; "" for other features."""
    if info is None or "level" not in info:
        return [""] * width
    return ["" if pd.isna(level) else str(level) for level in info["level"]]


def _described(values: Array, who: Array) -> dict[str, Any]:
    known = np.isfinite(values)
    binary = bool(known.any()) and bool(np.isin(values[known], (0.0, 1.0)).all())
    mine = values[known & who]
    found: dict[str, Any] = {"missing": int(who.sum()) - len(mine)}
    if binary:
        count = int(np.sum(mine == 1))
        return {**found, "kind": "share", "count": count, "share": count / max(len(mine), 1)}
    return {
        **found,
        "kind": "number",
        "count": len(mine),
        "mean": float(mine.mean()) if len(mine) else np.nan,
        "sd": float(mine.std(ddof=1)) if len(mine) > 1 else np.nan,
    }


AS_SELECTED = "as selected"
"""The limit of the row of the model itself, with the features that it selected."""

FIGURES = ["model", "limit", "features_mean", "features_min", "features_max", "metric", "estimate",
           "low", "high", "difference", "difference_low", "difference_high", "chance"]  # fmt: skip
NAMES = ["model", "limit", "view", "feature", "folds", "share"]


def few_features_frame(
    fits: Mapping[str, Sequence[OuterFit]],
    predictions: Callable[[Mapping[str, Sequence[OuterFit]]], pd.DataFrame],
    classes: Sequence[str],
) -> pd.DataFrame:
    """Return the figures of every limit: model, limit, metric, estimate, low, high, ..."""
    parts = [_of_model(model, own, predictions, classes) for model, own in _with_submodels(fits)]
    return pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=FIGURES)


def _with_submodels(
    fits: Mapping[str, Sequence[OuterFit]],
) -> list[tuple[str, Sequence[OuterFit]]]:
    """Return the models whose every fold has submodels."""
    return [(model, own) for model, own in fits.items() if own and all(f.few for f in own)]


def _limits(fits: Sequence[OuterFit]) -> list[int]:
    """Return the limits that every fold has."""
    return sorted(set.intersection(*(set(f.few) for f in fits)))


def _of_model(
    model: str,
    fits: Sequence[OuterFit],
    predictions: Callable[[Mapping[str, Sequence[OuterFit]]], pd.DataFrame],
    classes: Sequence[str],
) -> pd.DataFrame:
    rows: dict[str, Sequence[OuterFit]] = {}
    counts: dict[str, list[int]] = {}
    for limit in _limits(fits):
        few = [f.few[limit] for f in fits]
        rows[str(limit)] = [
            replace(f, label=one.label, proba=one.proba, margin=None)
            for f, one in zip(fits, few, strict=True)
        ]
        counts[str(limit)] = [len(one.columns) for one in few]
    rows[AS_SELECTED] = fits
    counts[AS_SELECTED] = [sum(len(s.index) for s in f.selected.values()) for f in fits]
    metrics = ["auc", "log_loss"] if classes else ["r2", "rmse"]
    sample = Resampled(predictions(rows), list(classes))
    table = metric_intervals(sample, metrics=metrics, by_site=False).rename(
        columns={"model": "limit"}
    )
    table.insert(0, "model", model)
    for name, reduce in (("mean", np.mean), ("min", np.min), ("max", np.max)):
        table[f"features_{name}"] = [float(reduce(counts[limit])) for limit in table["limit"]]
    differences = []
    for limit, metric in zip(table["limit"], table["metric"], strict=True):
        draws = sample.metric(limit, metric).minus(sample.metric(AS_SELECTED, metric))
        low, high = draws.interval()
        differences.append((float(draws.estimate), float(low), float(high)))
    table[["difference", "difference_low", "difference_high"]] = differences
    chance = {metric: _chance(metric, sample) for metric in metrics}
    table["chance"] = table["metric"].map(chance)
    return table[FIGURES]


def _chance(metric: str, sample: Resampled) -> float:
    """Return what the base rate gives: one prediction for all, the frequencies or the mean."""
    if metric in ("auc", "r2"):
        return 0.5 if metric == "auc" else 0.0
    _, predicted = sample.models[AS_SELECTED].repeats[0]
    if metric == "rmse":
        return float(np.std(predicted.truth))
    share = np.bincount(np.asarray(predicted.truth, dtype=np.intp)) / len(predicted.truth)
    return float(-np.sum(share[share > 0] * np.log(share[share > 0])))


def few_names_frame(fits: Mapping[str, Sequence[OuterFit]], data: MultiView) -> pd.DataFrame:
    """Return in how many folds each feature is within a limit: model, limit, view, feature, ..."""
    rows = []
    for model, own in _with_submodels(fits):
        views = list(own[0].selected)
        edges = np.cumsum([0, *(data.n_features[view] for view in views)])
        for limit in _limits(own):
            counts = Counter(int(c) for f in own for c in f.few[limit].columns)
            for column, folds in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
                m = int(np.searchsorted(edges, column, side="right")) - 1
                feature = str(data.view(views[m]).feature_names[column - edges[m]])
                share = folds / len(own)
                rows.append((model, str(limit), views[m], feature, folds, share))
    return pd.DataFrame(rows, columns=NAMES)
