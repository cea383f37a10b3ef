"""How few features are enough: held-out figures of submodels, from the outer folds.

Submodels of every outer fit predict the test rows of its fold, so no row was used to order the
features or to fit the weights that it is predicted with. All limits share the resamples of the
people, so that differences from the model as it was selected are paired.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.metric_intervals import metric_intervals
from baldur.evaluation.clinical.resampled import Resampled
from baldur.evaluation.engine.job_results import OuterFit
from baldur.views import MultiView

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
