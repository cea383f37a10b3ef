"""Recalibrated versions of the predictions of a frozen model, reported beside it.

Two versions of log odds l for two classes, fitted by maximum likelihood on the new cohort: a + l,
which corrects the overall level (the cohort has another prevalence), and a + b l, which also
corrects probabilities that are too extreme or not extreme enough. Figures for them are unbiased
only on rows that the correction was not learned from, so predictions are made by cross-validation.
The parameters to be used later are learned on all rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import expit
from sklearn.model_selection import GroupKFold, StratifiedKFold

from baldur.evaluation.clinical.logistic_fit import fit_intercept, fit_line, log_odds

VERSIONS = ("intercept", "intercept and slope")
"""Names of the two versions."""

# One or two parameters are learned well from nine tenths of the rows; with fewer rows of a class,
# as many folds as it has rows.
_FOLDS = 10


@dataclass(frozen=True)
class Recalibrated:
    """Recalibrated versions of one model's predictions."""

    parameters: pd.DataFrame  # version, intercept, slope, rows, learned from all rows
    predictions: pd.DataFrame
    left_out: list[tuple[str, str]]  # (version, reason)


def recalibrate(
    predictions: pd.DataFrame, classes: Sequence[str], random_state: int = 0
) -> Recalibrated:
    """Recalibrate the probabilities of two classes on the rows they were made for."""
    columns = ["version", "intercept", "slope", "rows"]
    nothing = pd.DataFrame(columns=columns), predictions.iloc[:0]
    why = _unusable(predictions, classes)
    if why:
        return Recalibrated(*nothing, [(version, why) for version in VERSIONS])
    negative, positive = (f"p_{c}" for c in classes)
    x = log_odds(predictions[positive].to_numpy(dtype=float))
    y = (predictions["label"].astype(str) == classes[1]).to_numpy(dtype=float)
    groups = predictions["group"].to_numpy() if "group" in predictions else None
    rows, parts, left_out = [], [], []
    for version in VERSIONS:
        a, b = _fit(x, y, version)
        made = _out_of_fold(x, y, groups, version, random_state)
        if not np.isfinite([a, b]).all() or not np.isfinite(made).all():
            left_out.append((version, "the probabilities separate the classes, or are all equal"))
            continue
        rows.append((version, a, b, len(x)))
        one = predictions.copy()
        one[positive], one[negative] = made, 1 - made
        one["predicted"] = np.asarray(classes)[(made > 0.5).astype(int)]
        one["model"] = one["model"] + f" (recalibrated: {version})"
        parts.append(one)
    frame = pd.concat(parts, ignore_index=True) if parts else nothing[1]
    return Recalibrated(pd.DataFrame(rows, columns=columns), frame, left_out)


def _unusable(predictions: pd.DataFrame, classes: Sequence[str]) -> str:
    if len(classes) != 2:
        return "recalibration is made for two classes"
    if predictions[[f"p_{c}" for c in classes]].isna().to_numpy().any():
        return "the model has no probabilities"
    counts = [int((predictions["label"].astype(str) == c).sum()) for c in classes]
    if min(counts) < 2:
        return f"each class needs two samples or more, but there are {counts[0]} and {counts[1]}"
    if "group" in predictions and predictions["group"].nunique() < 2:
        return "all samples belong to one group"
    return ""


def _fit(x: np.ndarray, y: np.ndarray, version: str) -> tuple[float, float]:
    once = np.ones((1, len(x)))
    if version == "intercept":
        return float(fit_intercept(x, y, once)[0]), 1.0
    a, b = fit_line(x, y, once)
    return float(a[0]), float(b[0])


def _out_of_fold(
    x: np.ndarray, y: np.ndarray, groups: np.ndarray | None, version: str, seed: int
) -> np.ndarray:
    made = np.full(len(x), np.nan)
    if groups is None:
        folds = int(min(_FOLDS, y.sum(), len(y) - y.sum()))
        cut = StratifiedKFold(folds, shuffle=True, random_state=seed).split(x, y)
    else:
        cut = GroupKFold(min(_FOLDS, len(np.unique(groups)))).split(x, y, groups)
    for train, test in cut:
        a, b = _fit(x[train], y[train], version)
        made[test] = expit(a + b * x[test])
    return made
