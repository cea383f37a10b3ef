"""Scores of one fold's predictions, from labels, probabilities or margins.

With two classes precision, recall and F1 are those of the positive class; with more they are
averaged over classes. A score that the predictions do not allow is NaN: an AUC where the fold has
one class, a log-loss of a model without probabilities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics import (
    precision_recall_fscore_support,
    roc_auc_score,
)

from baldur.exceptions import InputError

__all__ = ["METRICS", "Metric", "Predicted", "calibration_bins", "default_metrics", "score"]

PROBABILITY_FLOOR = 1e-15
N_BINS = 10


@dataclass(frozen=True)
class Predicted:
    """Truth and predictions of some rows.

    Attributes
    ----------
    truth, label : array of shape (n,)
        Class codes 0..C-1 with the positive class last, or numbers.
    proba : array of shape (n, C), optional
        Class probabilities.
    margin : array of shape (n,) or (n, C), optional
        Scores without the meaning of a probability; larger means the positive (or that) class.
    n_classes : int
        0 in regression.
    """

    truth: np.ndarray
    label: np.ndarray
    proba: np.ndarray | None = None
    margin: np.ndarray | None = None
    n_classes: int = 2


@dataclass(frozen=True)
class Metric:
    """A score: its column heading, its task, whether more is better, and how to compute it."""

    heading: str
    compute: Callable[[Predicted], float]
    classification: bool = True
    greater_is_better: bool = True


def accuracy(p: Predicted) -> float:
    """Share of rows labelled right."""
    return float(np.mean(p.truth == p.label))


def balanced_accuracy(p: Predicted) -> float:
    """Mean over the classes present of the share labelled right."""
    return float(np.mean([np.mean(p.label[p.truth == c] == c) for c in np.unique(p.truth)]))


def _prf(p: Predicted, which: int) -> float:
    if p.n_classes == 2:
        found = precision_recall_fscore_support(
            p.truth, p.label, labels=[1], average=None, zero_division=0.0
        )
        return float(found[which][0])
    found = precision_recall_fscore_support(
        p.truth, p.label, labels=np.unique(p.truth), average="macro", zero_division=0.0
    )
    return float(found[which])


def precision(p: Predicted) -> float:
    """Share of the rows called positive that are."""
    return _prf(p, 0)


def recall(p: Predicted) -> float:
    """Share of the positive rows that are called so."""
    return _prf(p, 1)


def f1(p: Predicted) -> float:
    """Harmonic mean of precision and recall."""
    return _prf(p, 2)


def auc(p: Predicted) -> float:
    """Area under the ROC curve; with more than two classes the mean of one against the rest."""
    scores = p.proba if p.proba is not None else p.margin
    if scores is None or not np.isfinite(scores).all():
        return float("nan")
    if p.n_classes == 2:
        column = scores if scores.ndim == 1 else scores[:, 1]
        if len(np.unique(p.truth)) < 2:
            return float("nan")
        return float(roc_auc_score(p.truth == 1, column))
    present = [c for c in np.unique(p.truth) if (p.truth != c).any()]
    if not present:
        return float("nan")
    return float(np.mean([roc_auc_score(p.truth == c, scores[:, c]) for c in present]))


def log_loss(p: Predicted) -> float:
    """Mean of -ln of the probability given to the true class."""
    if p.proba is None or not np.isfinite(p.proba).all():
        return float("nan")
    given = p.proba[np.arange(len(p.truth)), p.truth]
    return float(-np.mean(np.log(np.clip(given, PROBABILITY_FLOOR, 1.0))))


def brier(p: Predicted) -> float:
    """Half the mean squared distance of the probabilities from 0 and 1.

    For two classes this is the mean of (p - y)^2.
    """
    if p.proba is None or not np.isfinite(p.proba).all():
        return float("nan")
    hit = np.zeros_like(p.proba)
    hit[np.arange(len(p.truth)), p.truth] = 1.0
    return float(0.5 * np.mean(np.sum((p.proba - hit) ** 2, axis=1)))


def calibration_bins(
    proba: np.ndarray, truth: np.ndarray, n_bins: int = N_BINS
) -> list[tuple[float, float, int]]:
    """Mean probability, share of hits and number of rows in equally wide bins that have rows.

    Parameters
    ----------
    proba : array of shape (n, C)
        Probabilities. Two classes are judged by that of the positive class, more by that of the
        class predicted.
    truth : array of shape (n,)
        Class codes.
    n_bins : int, default=10
        Bins between 0 and 1.

    Returns
    -------
    list of (float, float, int)
    """
    if proba.shape[1] == 2:
        said, hit = proba[:, 1], truth == 1
    else:
        said, hit = proba.max(axis=1), truth == proba.argmax(axis=1)
    bins = np.minimum((said * n_bins).astype(int), n_bins - 1)
    return [
        (float(said[bins == b].mean()), float(hit[bins == b].mean()), int((bins == b).sum()))
        for b in np.unique(bins)
    ]


def calibration(p: Predicted) -> float:
    """Expected calibration error: distance of said from observed, averaged over ten bins."""
    if p.proba is None or not np.isfinite(p.proba).all():
        return float("nan")
    bins = calibration_bins(p.proba, p.truth)
    return float(sum(k * abs(said - seen) for said, seen, k in bins) / len(p.truth))


def r2(p: Predicted) -> float:
    """Share of the variance explained, 1 - residual over total sum of squares."""
    total = np.sum((p.truth - p.truth.mean()) ** 2)
    if total == 0:
        return float("nan")
    return float(1.0 - np.sum((p.truth - p.label) ** 2) / total)


def rmse(p: Predicted) -> float:
    """Root of the mean squared error."""
    return float(np.sqrt(np.mean((p.truth - p.label) ** 2)))


def mae(p: Predicted) -> float:
    """Mean absolute error."""
    return float(np.mean(np.abs(p.truth - p.label)))


def correlation(p: Predicted) -> float:
    """Pearson's correlation of truth and prediction."""
    if np.ptp(p.truth) == 0 or np.ptp(p.label) == 0:
        return float("nan")
    return float(np.corrcoef(p.truth, p.label)[0, 1])


METRICS: dict[str, Metric] = {
    "accuracy": Metric("Accuracy", accuracy),
    "balanced_accuracy": Metric("bal Accuracy", balanced_accuracy),
    "precision": Metric("Precision", precision),
    "recall": Metric("Recall", recall),
    "f1": Metric("F1", f1),
    "auc": Metric("AUC", auc),
    "log_loss": Metric("Log-loss", log_loss, greater_is_better=False),
    "brier": Metric("Brier", brier, greater_is_better=False),
    "calibration": Metric("Calibration error", calibration, greater_is_better=False),
    "r2": Metric("R2", r2, classification=False),
    "rmse": Metric("RMSE", rmse, classification=False, greater_is_better=False),
    "mae": Metric("MAE", mae, classification=False, greater_is_better=False),
    "correlation": Metric("Correlation", correlation, classification=False),
}


def default_metrics(classification: bool) -> list[str]:
    """Return the names of all metrics of a task, in the order of the table."""
    return [name for name, m in METRICS.items() if m.classification == classification]


def score(name: str, predicted: Predicted) -> float:
    """Compute one metric by its name.

    Parameters
    ----------
    name : str
        A key of `METRICS`.
    predicted : Predicted
        Truth and predictions of the rows.

    Returns
    -------
    float
        NaN where the predictions do not allow the metric.
    """
    metric = METRICS.get(name)
    fits = metric is not None and metric.classification == (predicted.n_classes > 0)
    if metric is None or not fits:
        legal = default_metrics(predicted.n_classes > 0)
        raise InputError(f"metric {name!r} is not one of this task's: {legal}.")
    return metric.compute(predicted)
