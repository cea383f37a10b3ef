"""Tables of a result: held-out predictions, participants, models with few features, locations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from baldur.core.types import Array
from baldur.evaluation.clinical.held_out import PLATT, Resampled, long_table, metric_statistic
from baldur.evaluation.metric_table import corrected_t_test
from baldur.evaluation.selected_features import (
    CORRELATION_COLUMNS,
    feature_correlations,
    view_shares,
)
from baldur.evaluation.view_additions import (
    AddedValue,
    FoldTest,
    compare_view_sets,
    view_comparisons,
)
from baldur.exceptions import InputError
from baldur.views.validate import some

if TYPE_CHECKING:
    from baldur.evaluation.design import Comparison
    from baldur.evaluation.jobs import OuterFit
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
    names = np.array([str(c) for c in classes])
    scaled = any(f.scaled for folds in fits.values() for f in folds)
    parts = []
    for model, f in ((model, f) for model, folds in fits.items() for f in folds):
        columns: dict[str, Any] = {
            "model": model,
            "repeat": f.repeat + 1,
            "fold": f.fold + 1,
            "sample": data.sample_ids[f.test].astype(str),
        }
        for name, values in (("group", groups), ("site", sites)):
            if values is not None:
                columns[name] = values[f.test]
        label, predicted = truth[f.test], f.label
        if len(names):
            label, predicted = names[label], names[predicted.astype(int)]
        columns |= {"label": label, "predicted": predicted}
        for c, name in enumerate(names):
            columns[f"p_{name}"] = np.nan if f.proba is None else f.proba[:, c]
        if scaled:
            columns["probability"] = PLATT if f.scaled else "model"
        if f.margin is not None and f.margin.ndim == 1:
            columns["score"] = f.margin
        elif f.margin is not None:
            columns |= {f"score_{name}": f.margin[:, c] for c, name in enumerate(names)}
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
    groups = {EVERYBODY: np.ones(len(data), dtype=bool)}
    groups |= {str(c): np.asarray(label).astype(str) == str(c) for c in classes}
    rows: list[dict[str, Any]] = []
    described = 0
    # Narrow views first: age and sex are seldom in a wide one.
    for name in sorted(data.view_names, key=lambda name: data.n_features[name]):
        view = data.view(name)
        for group, members in groups.items():
            count, size = int(np.sum(view.present & members)), int(members.sum())
            rows.append(
                {"view": name, "feature": EVERYBODY, "level": "", "class": group, "kind": "view",
                 "count": count, "missing": size - count, "share": count / max(size, 1)}
            )  # fmt: skip
        if view.shape[1] > WIDEST or described >= MOST:
            continue
        cells = view.read().astype(float)
        # The level that each column of a category stands for.
        info = view.feature_info
        levels = [""] * view.shape[1]
        if info is not None and "level" in info:
            levels = ["" if pd.isna(level) else str(level) for level in info["level"]]
        for j, feature in enumerate(view.feature_names[: MOST - described].astype(str)):
            for group, members in groups.items():
                place = {"view": name, "feature": feature, "level": levels[j], "class": group}
                rows.append({**place, **_characteristics(cells[:, j], members)})
        described += view.shape[1]
    return pd.DataFrame(rows, columns=COLUMNS)


def _characteristics(values: Array, members: Array) -> dict[str, Any]:
    """Return count and share of a yes/no feature, or mean and s.d. of another, in one group."""
    known = np.isfinite(values)
    values_of_group = values[known & members]
    size = len(values_of_group)
    missing = int(members.sum()) - size
    if known.any() and np.isin(values[known], (0.0, 1.0)).all():
        count = int(np.sum(values_of_group == 1))
        return {"missing": missing, "kind": "share", "count": count, "share": count / max(size, 1)}
    mean = float(values_of_group.mean()) if size else np.nan
    sd = float(values_of_group.std(ddof=1)) if size > 1 else np.nan
    return {"missing": missing, "kind": "number", "count": size, "mean": mean, "sd": sd}


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
    tables = []
    for model, folds in _with_submodels(fits):
        sizes = {AS_SELECTED: [sum(len(s.index) for s in f.selected.values()) for f in folds]}
        rows: dict[str, Sequence[OuterFit]] = {}
        for number in _limits(folds):
            few = [(f, f.few[number]) for f in folds]
            sizes[str(number)] = [len(submodel["columns"]) for _, submodel in few]
            rows[str(number)] = [
                replace(f, label=submodel["label"], proba=submodel.get("proba"), margin=None)
                for f, submodel in few
            ]
        sample = Resampled(predictions({**rows, AS_SELECTED: folds}), list(classes))
        statistics = []
        for limit, held in sample.models.items():
            size = np.array(sizes[limit], dtype=float)
            about = {
                "model": model, "limit": limit, "features_mean": size.mean(),
                "features_min": size.min(), "features_max": size.max(),
            }  # fmt: skip
            for metric in ("auc", "log_loss") if classes else ("r2", "rmse"):
                names = {**about, "metric": metric, "chance": _chance(metric, sample)}
                statistic = metric_statistic(metric, held, **names)
                reference = replace(statistic, held=sample.models[AS_SELECTED])
                statistics.append(replace(statistic, reference=reference))
        tables.append(sample.rows(statistics, FIGURES))
    return long_table(tables, FIGURES)


def _with_submodels(
    fits: Mapping[str, Sequence[OuterFit]],
) -> list[tuple[str, Sequence[OuterFit]]]:
    """Return the models whose every fold has submodels."""
    return [(m, folds) for m, folds in fits.items() if folds and all(f.few for f in folds)]


def _limits(fits: Sequence[OuterFit]) -> list[int]:
    """Return the limits that every fold has."""
    return sorted(set.intersection(*(set(f.few) for f in fits)))


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
    for model, folds in _with_submodels(fits):
        views = list(folds[0].selected)
        edges = np.cumsum([0, *(data.n_features[view] for view in views)])
        for limit in _limits(folds):
            counts = Counter(int(c) for f in folds for c in f.few[limit]["columns"])
            for column, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
                m = int(np.searchsorted(edges, column, side="right")) - 1
                feature = str(data.view(views[m]).feature_names[column - edges[m]])
                rows.append((model, str(limit), views[m], feature, count, count / len(folds)))
    return pd.DataFrame(rows, columns=NAMES)


_HALF = 0.5
_MOST_CORRELATED = 30
"""Features a picture of correlations can show."""


def selected_correlations(selection: pd.DataFrame, data: MultiView) -> pd.DataFrame:
    """Return correlations of the features that each model selects in at least half of the folds.

    At most thirty features of each model are taken, those selected most often. Columns: model,
    view_a, feature_a, view_b, feature_b, correlation.
    """
    parts = []
    often = selection[selection["feature"] != "*"]
    often = often[often["frequency"].astype(float) >= _HALF].drop_duplicates(
        ["model", "view", "feature"]
    )
    for model, part in often.groupby("model", sort=False):
        size = part["mean_weight"].astype(float).abs().fillna(0.0).to_numpy()
        order = np.lexsort((-size, -part["frequency"].to_numpy(dtype=float)))[:_MOST_CORRELATED]
        kept = part.iloc[np.sort(order)]
        pairs = [
            (view, str(feature))
            for view in data.view_names
            for feature in kept.loc[kept["view"] == view, "feature"]
        ]
        parts.append(feature_correlations(data, pairs).assign(model=model))
    return long_table(parts, ["model", *CORRELATION_COLUMNS])


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
    if not parts:
        return pd.DataFrame(columns=["view", "feature"])
    return pd.concat(parts, ignore_index=True)


def image_grids(data: MultiView) -> dict[str, dict[str, Any]]:
    """Return shape, affine and kind of the grid of every view made of images."""
    grids = {}
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
        grids[view] = grid
    return grids


# -- what each view adds -------------------------------------------------------------------------


def added_value_of(
    comparison: Comparison,
    fits: Mapping[str, Sequence[OuterFit]],
    sample: Resampled,
    baseline: Sequence[str],
    *,
    model: str | None = None,
    thresholds: Sequence[float] | None = None,
    prevalence: float | None = None,
) -> AddedValue:
    """Compute what each view adds, from the rows of a comparison with different views."""
    from baldur.evaluation.view_sets import check_views

    data = comparison.data
    base = check_views(baseline, data.view_names, "baseline")
    possible, missing = check_view_sets(comparison, fits, base, model)
    if not possible:
        raise InputError(missing)
    name, rows, _ = _models_by_views(comparison, fits, model)
    place = pd.Index(data.sample_ids.astype(str))
    people = place.get_indexer(pd.Index(next(iter(sample.models.values())).people.astype(str)))
    present = {view: data.view(view).present[people] for view in data.view_names}
    table, reclassification = compare_view_sets(
        sample,
        view_comparisons(rows, base, present),
        thresholds=thresholds,
        prevalence=prevalence,
        fold_test=_fold_test(comparison, fits, people),
    )
    row = rows.get(tuple(data.view_names))
    shares = view_shares({} if row is None else {row: fits[row]})
    mean = shares.groupby("view", sort=False)["variance_share"].mean().reset_index(name="share")
    return AddedValue(table, reclassification, mean.dropna(), base, name)


def check_view_sets(
    comparison: Comparison,
    finished: Collection[str],
    baseline: Sequence[str],
    model: str | None = None,
) -> tuple[bool, str]:
    """Say whether any two view sets of a model can be compared, and what is missing."""
    name, rows, failed = _models_by_views(comparison, finished, model)
    nobody = {view: np.zeros(0, dtype=bool) for view in comparison.data.view_names}
    possible = any(asked["reference"] for asked, _ in view_comparisons(rows, baseline, nobody))
    why = f"because these models failed: {some(failed)}" if failed else ""
    if possible:
        return True, f"Some comparisons of view sets are missing, {why}." if failed else ""
    nothing = f"There are no two view sets of {name!r} to compare"
    if failed:
        return False, f"{nothing}, {why}."
    return False, f"{nothing}; run nested_cv with baseline_views={list(baseline)}."


def _models_by_views(
    comparison: Comparison, finished: Collection[str], name: str | None
) -> tuple[str, dict[tuple[str, ...], str], list[str]]:
    # The models are not needed to read or show tables, and take long to import.
    from baldur.evaluation.view_sets import models_by_views

    whole = None if name is None else comparison.model(name)
    return models_by_views(comparison.models, comparison.data, finished, whole)


def _fold_test(
    comparison: Comparison, fits: Mapping[str, Sequence[OuterFit]], people: np.ndarray
) -> FoldTest:
    """Return the p-value of the corrected resampled t-test over the folds, on some people."""
    y, n_classes = comparison.y, comparison.n_classes
    ratio = float(np.mean([len(f.test) / len(f.train) for f in comparison.folds]))

    def p_value(model: str, reference: str, metric: str, chosen: np.ndarray) -> float:
        rows = np.zeros(len(y), dtype=bool)
        rows[people] = chosen
        value, other = (
            np.array([f.score(metric, y, n_classes, rows) for f in fits[name]], dtype=float)
            for name in (model, reference)
        )
        return corrected_t_test(value - other, ratio)[2]

    return p_value
