"""Metrics of held-out predictions, from labels, probabilities or decision scores.

Every score is computed for rows that count several times: `weights` has one line per resample and
one column per row, and the scores of all resamples come at once. A fold's own score is the line of
ones.

With two classes precision, recall and F1 are those of the positive class; with more they are
averaged over classes. A score that the predictions do not allow is NaN: an AUC where the rows have
one class, a log-loss of a model without probabilities, a precision where no row is called positive.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

import numpy as np

from baldur.exceptions import InputError

NO_YES = ["no", "yes"]
"""The classes of every label, the positive one last."""

AVERAGE = "*"
"""The value of the column outcome for the mean over all outcomes."""

PROBABILITY_FLOOR = 1e-15
N_BINS = 10


@dataclass(frozen=True)
class Predicted:
    """Truth and predictions of some rows."""

    truth: np.ndarray  # (n,)
    label: np.ndarray
    proba: np.ndarray | None = None  # (n, C); Class probabilities
    margin: np.ndarray | None = None  # (n,) or (n, C), optional
    n_classes: int = 2  # 0 in regression

    @property
    def has_proba(self) -> bool:
        """Whether there are probabilities, all of them finite."""
        return self.proba is not None and bool(np.isfinite(self.proba).all())

    def take(self, rows: np.ndarray) -> Predicted:
        """Return some of the rows."""
        return Predicted(
            self.truth[rows],
            self.label[rows],
            None if self.proba is None else self.proba[rows],
            None if self.margin is None else self.margin[rows],
            self.n_classes,
        )


@dataclass(frozen=True)
class Metric:
    """A score: its column heading, its task, whether more is better, and how to compute it.

    `compute` takes the predictions and weights of shape (resamples, n), and returns one score per
    resample.
    """

    heading: str
    compute: Callable[[Predicted, np.ndarray], np.ndarray]
    classification: bool = True
    greater_is_better: bool = True
    of_proba: bool = False  # Undefined without probabilities
    scale: str = "logit"  # Of its intervals: where resamples are nearly normal


def _ratio(numerator: np.ndarray, denominator: np.ndarray) -> np.ndarray:
    """Return the ratio, NaN where the denominator is 0."""
    nan = np.full(np.shape(numerator), np.nan)
    return np.divide(numerator, denominator, out=nan, where=denominator > 0)


def _mean(weights: np.ndarray, values: np.ndarray) -> np.ndarray:
    return _ratio(weights @ values.astype(float), weights.sum(axis=1))


def _mean_where(values: Iterable[np.ndarray], present: Iterable[np.ndarray]) -> np.ndarray:
    """Return the mean over the classes present in each resample; both arguments are by class."""
    have = np.array(list(present), dtype=float)
    total = np.where(have > 0, np.array(list(values)), 0.0).sum(axis=0)
    return _ratio(total, have.sum(axis=0))


def accuracy(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Share of rows labelled right."""
    return _mean(weights, p.truth == p.label)


def balanced_accuracy(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Mean over the classes present of the share labelled right."""
    rows = [p.truth == c for c in np.unique(p.truth)]
    counts = [weights @ r.astype(float) for r in rows]
    right = [weights @ (r & (p.label == p.truth)).astype(float) for r in rows]
    shares = [_ratio(a, b) for a, b in zip(right, counts, strict=True)]
    return _mean_where(shares, [c > 0 for c in counts])


def precision_recall_f1(p: Predicted, weights: np.ndarray, which: str) -> np.ndarray:
    """Precision, recall or F1 of the positive class, or the mean over classes present.

    Precision is the share of the predicted positives that are positive, recall the share of the
    positive rows that are predicted positive, and F1 their harmonic mean. NaN where it would be
    zero divided by zero; such a class is left out of the mean over classes.
    """
    classes = [1] if p.n_classes == 2 else np.unique(p.truth).tolist()
    values, present = [], []
    for c in classes:
        predicted, true = p.label == c, p.truth == c
        hits = weights @ (predicted & true).astype(float)
        n_called, n_true = weights @ predicted.astype(float), weights @ true.astype(float)
        denominators = {"precision": n_called, "recall": n_true, "f1": (n_called + n_true) / 2}
        values.append(_ratio(hits, denominators[which]))
        present.append((n_true > 0) & (denominators[which] > 0))
    return values[0] if p.n_classes == 2 else _mean_where(values, present)


def weighted_auc(values: np.ndarray, positive: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Area under the ROC curve of every resample; ties count half.

    Shapes: values (n,), positive (n,), weights (resamples, n); returns (resamples,).
    """
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]])
    sorted_weights = weights[:, order]
    is_positive = positive[order]
    # Weights of cases and controls at each distinct value, (resamples, values).
    cases = np.add.reduceat(sorted_weights * is_positive, starts, axis=1)
    controls = np.add.reduceat(sorted_weights * ~is_positive, starts, axis=1)
    controls_below = np.cumsum(controls, axis=1) - controls / 2
    # Pairs of a case and a control in which the case has the higher value.
    ordered_right = np.einsum("bk,bk->b", cases, controls_below)
    return _ratio(ordered_right, cases.sum(axis=1) * controls.sum(axis=1))


def auc(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Area under the ROC curve; with more than two classes the mean of one against the rest.

    Decision scores are used before probabilities: a model has both only where Platt scaling made
    the probabilities, and equal scores should stay equal.
    """
    values = p.margin if p.margin is not None else p.proba
    if values is None or not np.isfinite(values).all():
        return np.full(len(weights), np.nan)
    if p.n_classes == 2:
        column = values if values.ndim == 1 else values[:, 1]
        return weighted_auc(column, p.truth == 1, weights)
    areas = [weighted_auc(values[:, c], p.truth == c, weights) for c in np.unique(p.truth)]
    return _mean_where(areas, [np.isfinite(a) for a in areas])


def log_loss(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Mean of -ln of the probability given to the true class."""
    given = np.asarray(p.proba)[np.arange(len(p.truth)), p.truth]
    return _mean(weights, -np.log(np.clip(given, PROBABILITY_FLOOR, 1.0)))


def brier(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Half the mean squared distance of the probabilities from 0 and 1.

    For two classes this is the mean of (p - y)^2.
    """
    proba = np.asarray(p.proba)
    one_hot = np.zeros_like(proba)
    one_hot[np.arange(len(p.truth)), p.truth] = 1.0
    return _mean(weights, 0.5 * np.sum((proba - one_hot) ** 2, axis=1))


def calibration(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Expected calibration error: distance of predicted from observed, averaged over ten bins.

    Two classes are judged by the probability of the positive class, more by that of the class
    predicted.
    """
    proba = np.asarray(p.proba)
    if proba.shape[1] == 2:
        predicted, observed = proba[:, 1], p.truth == 1
    else:
        predicted, observed = proba.max(axis=1), p.truth == proba.argmax(axis=1)
    bins = np.minimum((predicted * N_BINS).astype(int), N_BINS - 1)
    gaps = (predicted - observed)[:, None] * (bins[:, None] == np.unique(bins))  # (n, bins)
    return _ratio(np.abs(weights @ gaps).sum(axis=1), weights.sum(axis=1))


def r2(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Share of the variance explained, 1 - residual over total sum of squares."""
    total = _covariance(weights, p.truth, p.truth)
    return 1.0 - _ratio(_mean(weights, (p.truth - p.label) ** 2), total)


def rmse(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Root of the mean squared error."""
    return np.sqrt(_mean(weights, (p.truth - p.label) ** 2))


def mae(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Return the mean absolute error of predicted numbers."""
    return _mean(weights, np.abs(p.truth - p.label))


def correlation(p: Predicted, weights: np.ndarray) -> np.ndarray:
    """Pearson's correlation of truth and prediction."""
    if np.ptp(p.label) == 0:
        return np.full(len(weights), np.nan)
    covariance = _covariance(weights, p.truth, p.label)
    variances = [_covariance(weights, v, v) for v in (p.truth, p.label)]
    return _ratio(covariance, np.sqrt(variances[0] * variances[1]))


def _covariance(weights: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Weighted covariance; exactly zero where all values that count are equal."""
    # Centred first, so that a large mean does not swallow the spread.
    a, b = a - a.mean(), b - b.mean()
    covariance = _mean(weights, a * b) - _mean(weights, a) * _mean(weights, b)
    scale = np.sqrt(_mean(weights, a * a) * _mean(weights, b * b))
    # A spread within rounding error counts as none.
    return np.where(np.abs(covariance) <= 1e-14 * scale, 0.0, covariance)


METRICS: dict[str, Metric] = {
    "accuracy": Metric("Accuracy", accuracy),
    "balanced_accuracy": Metric("Balanced accuracy", balanced_accuracy),
    "precision": Metric("Precision", partial(precision_recall_f1, which="precision")),
    "recall": Metric("Recall", partial(precision_recall_f1, which="recall")),
    "f1": Metric("F1", partial(precision_recall_f1, which="f1")),
    "auc": Metric("AUC", auc),
    "log_loss": Metric("Log-loss", log_loss, greater_is_better=False, of_proba=True, scale="log"),
    "brier": Metric("Brier", brier, greater_is_better=False, of_proba=True),
    "calibration": Metric("Calibration error", calibration, greater_is_better=False, of_proba=True),
    "r2": Metric("R2", r2, classification=False, scale="log_distance"),
    "rmse": Metric("RMSE", rmse, classification=False, greater_is_better=False, scale="log"),
    "mae": Metric("MAE", mae, classification=False, greater_is_better=False, scale="log"),
    "correlation": Metric("Correlation", correlation, classification=False, scale="atanh"),
}


def default_metrics(classification: bool) -> list[str]:
    """Return the names of all metrics of a task, in the order of the table."""
    return [name for name, m in METRICS.items() if m.classification == classification]


def metric_of_task(name: str, classification: bool) -> Metric:
    """Return a metric by its name; refuse one of the other task."""
    metric = METRICS.get(name)
    if metric is None or metric.classification != classification:
        legal = default_metrics(classification)
        raise InputError(f"metric {name!r} cannot be used for this task; choose one of {legal}.")
    return metric


def scores(name: str, predicted: Predicted, weights: np.ndarray) -> np.ndarray:
    """Compute one metric by its name for every resample.

    Shapes: weights (resamples, n); returns (resamples,).
    """
    metric = metric_of_task(name, predicted.n_classes > 0)
    if metric.of_proba and not predicted.has_proba:
        return np.full(len(weights), np.nan)
    return metric.compute(predicted, weights)


def score(name: str, predicted: Predicted) -> float:
    """Compute one metric by its name."""
    return float(scores(name, predicted, np.ones((1, len(predicted.truth))))[0])
