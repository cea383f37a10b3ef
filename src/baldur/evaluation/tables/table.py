"""build_table: one row per model, computed from the predictions and the selected features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import PLATT, classes_of, predicted_of
from baldur.evaluation.clinical.metric_intervals import metric_intervals
from baldur.evaluation.clinical.resampled import Resampled
from baldur.evaluation.metrics import METRICS, score
from baldur.evaluation.selection.features import percent_selected
from baldur.evaluation.threads import one_thread
from baldur.safety.spreadsheet import unescape_frame

FEATURES = "features_percent"
PLATT_NOTE = "probabilities by Platt scaling of decision scores, learned from training rows"
POOLED = ("pooled", "low", "high")
"""Endings of the columns of a metric's estimate on pooled predictions and of its interval."""

# A row is marked when it is at chance because nearly all rows get one class.
_CHANCE_MARGIN = 0.02
_ONE_CLASS = 0.9
_NOTHING = (float("nan"),) * 3


def fold_scores(
    predictions: pd.DataFrame, metrics: Sequence[str], classes: Sequence[str]
) -> pd.DataFrame:
    """Score every model, repeat and fold from the predictions."""
    rows = []
    keys = ["model", "repeat", "fold"]
    for where, part in predictions.groupby(keys, sort=False):
        predicted = predicted_of(part, classes)
        rows.append((*where, *(score(m, predicted) for m in metrics)))
    return pd.DataFrame(rows, columns=[*keys, *metrics])


def build_table(
    predictions: pd.DataFrame,
    selection: pd.DataFrame,
    metrics: Sequence[str],
    classes: Sequence[str],
    models: Sequence[str] | None = None,
    failures: Mapping[str, str] | None = None,
    sample: Resampled | None = None,
) -> pd.DataFrame:
    """Build the table of a comparison from predictions and selected features.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation.tables.table import build_table
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(80, {"a": 5, "b": 10}, random_state=0)
    >>> result = nested_cv({"Ridge logistic": {"C": [0.1]}}, sim.data, sim.target, outer=2, inner=2)
    >>> table = build_table(result.predictions, result.selection, ["auc"], ["0", "1"])
    >>> table.columns[:6].tolist()
    ['model', 'auc', 'auc_sd', 'auc_pooled', 'auc_low', 'auc_high']
    """
    failures = failures or {}
    pooled = _pooled(predictions, metrics, classes, sample)
    scores = fold_scores(predictions, metrics, classes)
    percent = percent_selected(selection)
    names = list(models) if models is not None else list(dict.fromkeys(predictions["model"]))
    rows = []
    for name in names:
        mine = scores[scores["model"] == name]
        row: dict[str, object] = {"model": name}
        notes = []
        for metric in metrics:
            values = mine[metric].to_numpy(dtype=float)
            row[metric], row[f"{metric}_sd"], known = _mean_sd(values)
            if 0 < known < len(values):
                heading = METRICS[metric].heading
                notes.append(f"{heading} over {known} of {len(values)} folds")
            for ending, value in zip(POOLED, pooled.get((name, metric), _NOTHING), strict=True):
                row[f"{metric}_{ending}"] = value
        features = percent.loc[percent["model"] == name, FEATURES].to_numpy(dtype=float)
        row[FEATURES], row[f"{FEATURES}_sd"], _ = _mean_sd(features)
        row["folds"] = len(mine)
        if _is_scaled(predictions, name):
            notes.append(PLATT_NOTE)
        if len(mine) and classes and _at_chance(predictions, name, classes):
            notes.insert(0, "chance level")
        row["note"] = "; ".join(notes)
        row["failure"] = failures.get(name, "")
        rows.append(row)
    return pd.DataFrame(rows)


def _pooled(
    predictions: pd.DataFrame,
    metrics: Sequence[str],
    classes: Sequence[str],
    sample: Resampled | None,
) -> dict[tuple[str, str], tuple[float, float, float]]:
    """Return estimate and interval of every model and metric on pooled predictions."""
    if not len(predictions):
        return {}
    with one_thread():
        sample = Resampled(predictions, classes) if sample is None else sample
        found = metric_intervals(sample, metrics=metrics, by_site=False)
    return {
        (model, metric): (estimate, low, high)
        for model, metric, estimate, low, high in found[
            ["model", "metric", "estimate", "low", "high"]
        ].itertuples(index=False)
    }


def _is_scaled(predictions: pd.DataFrame, model: str) -> bool:
    if "probability" not in predictions:
        return False
    return bool((predictions.loc[predictions["model"] == model, "probability"] == PLATT).any())


def _mean_sd(values: np.ndarray) -> tuple[float, float, int]:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else float("nan")
    sd = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return mean, sd, len(known)


def _at_chance(predictions: pd.DataFrame, model: str, classes: Sequence[str]) -> bool:
    part = predictions[predictions["model"] == model]
    right = part["label"].astype(str) == part["predicted"].astype(str)
    balanced = right.groupby(part["label"].astype(str)).mean().mean()
    commonest = part["predicted"].astype(str).value_counts(normalize=True).iloc[0]
    return bool(balanced < 1 / len(classes) + _CHANCE_MARGIN and commonest >= _ONE_CLASS)


def recompute_table(predictions: pd.DataFrame, selection: pd.DataFrame) -> pd.DataFrame:
    """Compute the table again from the contents of the two result files.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> from baldur.evaluation.tables.table import recompute_table
    >>> sim = make_multiview(80, {"a": 5, "b": 10}, random_state=0)
    >>> result = nested_cv({"Ridge logistic": {"C": [0.1]}}, sim.data, sim.target, outer=2, inner=2)
    >>> again = recompute_table(result.predictions, result.selection)
    >>> again["auc_low"].equals(result.table()["auc_low"])
    True
    """
    predictions, selection = unescape_frame(predictions), unescape_frame(selection)
    classes = classes_of(predictions)
    metrics = [m for m, d in METRICS.items() if d.classification == bool(classes)]
    return build_table(predictions, selection, metrics, classes)
