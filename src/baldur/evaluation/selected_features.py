"""Selected features over the outer folds: frequency, weights, stability, view shares, locations.

Some models have submodels with few features, which are scored on the outer folds as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy.special import ndtri

from baldur.evaluation.clinical.held_out import Resampled, long_table, metric_statistic
from baldur.exceptions import InputError

if TYPE_CHECKING:
    from baldur.views import MultiView


def nogueira(
    selections: Sequence[np.ndarray], n_features: int, level: float = 0.95
) -> tuple[float, float, float, float]:
    """Return Nogueira's stability of selections, its standard error and the ends of its interval.

    It is 1 for equal selections and 0 on average for random ones (Nogueira, Sechidis and Brown,
    JMLR 18, 2018). Figures that are not defined are NaN.

    Shapes: selections (n_selected,) feature numbers of each of m fits.
    """
    m, sizes = len(selections), np.array([len(s) for s in selections], dtype=float)
    if m < 2:
        return math.nan, math.nan, math.nan, math.nan
    used, counts = np.unique(
        np.concatenate([np.asarray(s) for s in selections]), return_counts=True
    )
    # Reference levels of categories may be selected beside the features that are counted.
    d = max(int(n_features), len(used))
    p = counts / m  # Share of the fits that select each used feature
    q = sizes.mean() / d
    chance_variance = q * (1 - q)  # Of a feature's selection, if features were drawn at random
    if chance_variance == 0:
        return math.nan, math.nan, math.nan, math.nan
    value = float(1.0 - m / (m - 1) * np.sum(p * (1 - p)) / d / chance_variance)
    if m == 2:
        return value, math.nan, math.nan, math.nan
    # Each fit's part in the variance of the index: phi in the paper.
    agreement = np.array([p[np.searchsorted(used, s)].sum() for s in selections]) / d
    share = sizes / d
    correction = value / 2 * (2 * share * q - share - q + 1)
    phi = (agreement - share * q + correction) / chance_variance
    error = float(np.sqrt(4 / m**2 * np.sum((phi - phi.mean()) ** 2)))
    half_width = float(ndtri(0.5 + level / 2)) * error
    return value, error, max(value - half_width, -1.0), min(value + half_width, 1.0)


WIDEST_LISTED = 10_000
"""A view of which every feature is selected in every fold is listed up to this width."""

COLUMNS = [
    "model", "view", "feature", "class", "n_features", "frequency", "mean_weight",
    "mean_raw_weight", "sign_agreement", "folds",
]  # fmt: skip
WEIGHT_COLUMNS = ["model", "repeat", "fold", "view", "feature", "class", "weight", "raw_weight"]
SHARE_COLUMNS = ["model", "repeat", "fold", "view", "selected", "share", "variance_share"]


@dataclass(frozen=True)
class SelectedFeatures:
    """The features of one view that one fit selected."""

    index: np.ndarray  # (k,); Their columns
    weight: np.ndarray | None = None  # (k, n_weight_classes)
    raw: np.ndarray | None = None
    variance: float | None = None

    def weights(self, n_weight_classes: int) -> tuple[np.ndarray, np.ndarray]:
        """Return both kinds of weights, (k, n_weight_classes), NaN where the model has none."""
        nan = np.full((len(self.index), n_weight_classes), np.nan)
        return nan if self.weight is None else self.weight, nan if self.raw is None else self.raw


@dataclass(frozen=True)
class Stability:
    """Stability of the selection over the folds.

    Attributes
    ----------
    index : DataFrame
        model, view ("*": all views together), stability, error, low, high: Nogueira's index.
    features : DataFrame
        model, view, feature, class, frequency, mean_weight, mean_raw_weight, sign_agreement:
        features selected in at least one fold, the most frequent first.
    views : DataFrame
        model, view, frequency (share of folds that use the view), percent_of_view, share (of all
        selected features), variance_share (of the variance that views add to the linear
        predictor; missing for models without weights), each a mean over folds.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(80, {"a": 5, "b": 10}, random_state=0)
    >>> result = nested_cv({"LSVM-l1": {"C": [0.1]}}, sim.data, sim.target, outer=3, inner=2)
    >>> stability = result.stability()
    >>> stability.index["view"].tolist()
    ['*', 'a', 'b']
    >>> float(stability.features.loc[0, "frequency"])
    1.0
    """

    index: pd.DataFrame
    features: pd.DataFrame
    views: pd.DataFrame


def _too_wide(fits: Sequence[Any], view: str, width: int) -> bool:
    """Return whether every fit selects all features of a view that is too wide to be listed."""
    return width > WIDEST_LISTED and all(len(f.selected[view].index) == width for f in fits)


def selection_frame(
    fits: Mapping[str, Sequence[Any]],
    mv: MultiView,
    n_features: Mapping[str, int],
    weight_classes: Sequence[str],
) -> pd.DataFrame:
    """Summarise the selections of every model over its folds.

    Each view has one row with feature "*" for all its features together; below it come the
    features selected in at least one fold (left out for a view wider than 10,000 of which every
    fold selects all), one row for each of `weight_classes`. `folds` holds the number selected in
    each fold, in the order of repeats and folds; `frequency` is their mean over `n_features`. Mean
    weights, per standard deviation and per unit of the input, are over the folds that select the
    feature; sign agreement is the share of them that have the commoner sign.
    """
    parts = [
        {"model": model, **_view_selection(folds, view, n_features, mv, weight_classes)}
        for model, folds in fits.items()
        for view in folds[0].selected
    ]
    return long_table(parts, COLUMNS)


def _view_selection(
    folds: Sequence[Any],
    view: str,
    n_features: Mapping[str, int],
    mv: MultiView,
    weight_classes: Sequence[str],
) -> dict[str, Any]:
    """Return the rows of one view as columns: the view as a whole, and features of any fold.

    Inside, axes are (features, folds) and (features, weight classes, folds).
    """
    width = n_features[view]
    counts = [len(f.selected[view].index) for f in folds]
    used = np.unique(np.concatenate([f.selected[view].index for f in folds])).astype(np.intp)
    if _too_wide(folds, view, width):
        used = used[:0]
    shape = (len(used), len(weight_classes), len(folds))
    is_selected = np.zeros((len(used), len(folds)), dtype=np.int8)
    weights, raws = np.zeros(shape), np.zeros(shape)
    for j, f in enumerate(folds if len(used) else ()):
        at = np.searchsorted(used, f.selected[view].index)
        is_selected[at, j] = 1
        weights[at, :, j], raws[at, :, j] = f.selected[view].weights(len(weight_classes))
    count = np.maximum(is_selected.sum(axis=1), 1)
    # A fold whose training rows lack a class has no weights for it.
    defined = np.maximum((np.isfinite(weights) & (is_selected[:, None, :] == 1)).sum(axis=2), 1)
    undefined = np.isnan(weights).sum(axis=2) == is_selected.sum(axis=1)[:, None]
    mean, raw = (
        np.where(undefined, np.nan, np.nansum(part, axis=2) / defined) for part in (weights, raws)
    )
    with np.errstate(invalid="ignore"):
        plus, minus = (weights > 0).sum(axis=2), (weights < 0).sum(axis=2)
    agreement = np.where(undefined, np.nan, np.maximum(plus, minus) / defined)
    # The features selected most often come first, of equals the largest mean weight.
    order = np.lexsort((used, -np.nan_to_num(np.abs(mean)).max(axis=1, initial=0.0), -count))
    each = np.repeat(order, len(weight_classes))  # The feature of every row of the table
    names = mv.view(view).names_of(used)[each]
    by_fold = [";".join(map(str, row)) for row in (counts, *is_selected[each].tolist())]
    return {
        "view": view,
        "feature": np.array(["*", *names], dtype=object),
        "class": np.array(
            ["*", *np.tile(np.asarray(weight_classes, dtype=object), len(used))], object
        ),
        "n_features": np.r_[width, np.ones(len(each), dtype=int)],
        "frequency": np.r_[np.mean(counts) / width, (count / len(folds))[each]],
        "mean_weight": np.r_[np.nan, mean[order].ravel()],
        "mean_raw_weight": np.r_[np.nan, raw[order].ravel()],
        "sign_agreement": np.r_[np.nan, agreement[order].ravel()],
        "folds": np.array(by_fold, dtype=object),
    }


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


def weights_frame(
    fits: Mapping[str, Sequence[Any]], mv: MultiView, weight_classes: Sequence[str]
) -> pd.DataFrame:
    """List the selected features of every fold with their weights, a row for each class.

    `weight` is per standard deviation, `raw_weight` per unit of the input. Views wider than 10,000
    of which a model selects all features are left out.
    """
    parts = []
    for model, folds in fits.items():
        for f in folds:
            for view, selected in f.selected.items():
                if not len(selected.index) or _too_wide(folds, view, mv.n_features[view]):
                    continue
                weight, raw = selected.weights(len(weight_classes))
                names = mv.view(view).names_of(selected.index.astype(np.intp))
                part = {
                    "model": model,
                    "repeat": f.repeat + 1,
                    "fold": f.fold + 1,
                    "view": view,
                    "feature": np.repeat(names, len(weight_classes)),
                    "class": np.tile(np.asarray(weight_classes, dtype=object), len(names)),
                    "weight": weight.ravel(),
                    "raw_weight": raw.ravel(),
                }
                parts.append(part)
    return long_table(parts, WEIGHT_COLUMNS)


def stability_of(
    fits: Mapping[str, Sequence[Any]],
    mv: MultiView,
    n_features: Mapping[str, int],
    selection: pd.DataFrame,
    level: float,
) -> Stability:
    """Return the stability of every model: the index of views, their features and shares."""
    index_rows = []
    for model, folds in fits.items():
        views = list(folds[0].selected)
        # Features of all views are numbered side by side, each view from its start.
        starts = np.cumsum([0, *(mv.n_features[v] for v in views)])
        sets = {v: [f.selected[v].index for f in folds] for v in views}
        joined = [
            np.concatenate([f.selected[v].index + s for v, s in zip(views, starts, strict=False)])
            for f in folds
        ]
        total = sum(n_features[v] for v in views)
        index_rows.append((model, "*", *nogueira(joined, total, level)))
        index_rows += [(model, v, *nogueira(sets[v], n_features[v], level)) for v in views]
    columns = ["model", "view", "stability", "error", "low", "high"]
    features = selection[selection["feature"] != "*"].drop(columns=["n_features", "folds"])
    return Stability(
        index=pd.DataFrame(index_rows, columns=columns),
        features=features.reset_index(drop=True),
        views=_mean_shares(view_shares(fits), n_features),
    )


def view_shares(fits: Mapping[str, Sequence[Any]]) -> pd.DataFrame:
    """Return the share of every view in every fold of every model.

    The columns are model, repeat, fold, view, selected (its features), share (of all selected
    features) and variance_share (of the variance that views add to the linear predictor; missing
    for models without weights). A fold that selects nothing gives no view a share.
    """
    parts = []
    for model, folds in fits.items():
        views = list(folds[0].selected)
        counts = np.array([[len(f.selected[v].index) for v in views] for f in folds], dtype=float)
        known = [[f.selected[v].variance for v in views] for f in folds]
        variance = np.array(known, dtype=float)  # None becomes NaN
        with np.errstate(invalid="ignore", divide="ignore"):
            share = counts / counts.sum(axis=1, keepdims=True)
            explained = variance / variance.sum(axis=1, keepdims=True)
        part = {
            "model": model,
            "repeat": np.repeat([f.repeat + 1 for f in folds], len(views)),
            "fold": np.repeat([f.fold + 1 for f in folds], len(views)),
            "view": np.tile(np.asarray(views, dtype=object), len(folds)),
            "selected": counts.astype(int).ravel(),
            "share": np.where(np.isnan(share), 0.0, share).ravel(),
            "variance_share": np.where(variance == 0, 0.0, explained).ravel(),
        }
        parts.append(part)
    return long_table(parts, SHARE_COLUMNS)


def _mean_shares(each: pd.DataFrame, n_features: Mapping[str, int]) -> pd.DataFrame:
    """Return the means over folds, one row per model and view."""
    columns = ["model", "view", "frequency", "percent_of_view", "share", "variance_share"]
    rows = []
    for (model, view), part in each.groupby(["model", "view"], sort=False):
        selected = part["selected"].to_numpy(dtype=float)
        percent = 100 * selected.mean() / n_features[str(view)]
        # A plain mean: one fold without a figure leaves none.
        means = (float(part[c].to_numpy(dtype=float).mean()) for c in columns[-2:])
        rows.append((model, view, float((selected > 0).mean()), float(percent), *means))
    return pd.DataFrame(rows, columns=columns)


CORRELATION_COLUMNS = ["view_a", "feature_a", "view_b", "feature_b", "correlation"]

LEAST = 3
"""People who have both features; fewer have any correlation."""


def feature_correlations(data: MultiView, features: Sequence[tuple[str, str]]) -> pd.DataFrame:
    """Give Pearson's correlation of every pair of features, over the people who have both.

    Features are given as pairs of the names of a view and of its feature.
    """
    values: dict[tuple[str, str], np.ndarray] = {}
    for view in dict.fromkeys(view for view, _ in features):
        if view not in data.view_names:
            raise InputError(f"There is no view {view!r} in the data, only {data.view_names}.")
        names = [feature for v, feature in features if v == view]
        at = pd.Index(data.view(view).feature_names.astype(str)).get_indexer(pd.Index(names))
        if (at < 0).any():
            unknown = names[int(np.flatnonzero(at < 0)[0])]
            raise InputError(f"View {view!r} has no feature {unknown!r}.")
        cells = data.view(view).read(at).astype(float)
        values |= {(view, name): column for name, column in zip(names, cells.T, strict=True)}
    frame = pd.DataFrame({i: values[pair] for i, pair in enumerate(features)})
    matrix = frame.corr(min_periods=LEAST).to_numpy() if len(features) else np.zeros((0, 0))
    rows = [
        (*a, *b, float(matrix[i, j]))
        for i, a in enumerate(features)
        for j, b in enumerate(features)
    ]
    return pd.DataFrame(rows, columns=CORRELATION_COLUMNS)


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


# -- models with few features ----------------------------------------------------------------------

AS_SELECTED = "as selected"
"""The limit of the row of the model itself, with the features that it selected."""

FEW_COLUMNS = [
    "model", "limit", "features_mean", "features_min", "features_max", "metric", "estimate", "low",
    "high", "difference", "difference_low", "difference_high", "chance",
]  # fmt: skip
FEW_NAMES_COLUMNS = ["model", "limit", "view", "feature", "folds", "share"]


def few_features_frame(
    fits: Mapping[str, Sequence[Any]],
    predictions: Callable[[Mapping[str, Sequence[Any]]], pd.DataFrame],
    classes: Sequence[str],
) -> pd.DataFrame:
    """Score the submodels of every model: model, limit (of features), metric, estimate, ...

    Differences are those from the model as it was selected. `predictions` makes the predictions
    table of some fits, as `NestedResult.predictions_of`.
    """
    tables = []
    for model, folds in _with_submodels(fits):
        sizes = {AS_SELECTED: [sum(len(s.index) for s in f.selected.values()) for f in folds]}
        by_limit: dict[str, Sequence[Any]] = {}
        for number in _limits(folds):
            few = [(f, f.few[number]) for f in folds]
            sizes[str(number)] = [len(submodel["columns"]) for _, submodel in few]
            by_limit[str(number)] = [
                replace(f, label=submodel["label"], proba=submodel.get("proba"), margin=None)
                for f, submodel in few
            ]
        sample = Resampled(predictions({**by_limit, AS_SELECTED: folds}), list(classes))
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
        tables.append(sample.rows(statistics, FEW_COLUMNS))
    return long_table(tables, FEW_COLUMNS)


def _with_submodels(
    fits: Mapping[str, Sequence[Any]],
) -> list[tuple[str, Sequence[Any]]]:
    """Return the models whose every fold has submodels."""
    return [(m, folds) for m, folds in fits.items() if folds and all(f.few for f in folds)]


def _limits(fits: Sequence[Any]) -> list[int]:
    """Return the limits that every fold has."""
    return sorted(set.intersection(*(set(f.few) for f in fits)))


def _chance(metric: str, sample: Resampled) -> float:
    """Return the score of one prediction for all: the frequencies of classes, or the mean."""
    if metric in ("auc", "r2"):
        return 0.5 if metric == "auc" else 0.0
    _, predicted = sample.models[AS_SELECTED].repeats[0]
    if metric == "rmse":
        return float(np.std(predicted.truth))
    share = np.bincount(np.asarray(predicted.truth, dtype=np.intp)) / len(predicted.truth)
    return float(-np.sum(share[share > 0] * np.log(share[share > 0])))


def few_names_frame(fits: Mapping[str, Sequence[Any]], data: MultiView) -> pd.DataFrame:
    """Return in how many folds each feature is within a limit: model, limit, view, feature, ..."""
    rows = []
    for model, folds in _with_submodels(fits):
        views = list(folds[0].selected)
        # Columns are counted over all views side by side; each view begins at its edge.
        edges = np.cumsum([0, *(data.n_features[view] for view in views)])
        for limit in _limits(folds):
            counts = Counter(int(c) for f in folds for c in f.few[limit]["columns"])
            for column, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
                v = int(np.searchsorted(edges, column, side="right")) - 1
                feature = str(data.view(views[v]).feature_names[column - edges[v]])
                rows.append((model, str(limit), views[v], feature, count, count / len(folds)))
    return pd.DataFrame(rows, columns=FEW_NAMES_COLUMNS)
