"""Job: score a setting on the inner folds, or fit on training rows and predict test rows."""

from __future__ import annotations

import errno
import json
import time
import warnings
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from baldur.atomic_io import writing
from baldur.evaluation.clinical.logistic_fit import Platt
from baldur.evaluation.engine.job_store import JobStore, Outcome
from baldur.evaluation.engine.submodel_predictions import predict_submodels
from baldur.evaluation.metrics import METRICS, Predicted, score
from baldur.evaluation.models import fit_with_groups
from baldur.evaluation.selection.fitted_model import by_class, read_selection, weights_of
from baldur.evaluation.threads import one_thread
from baldur.exceptions import NoSignalWarning, StudyError
from baldur.views import MultiView

_LONGEST_REASON = 300
_MOST_WARNINGS = 5
_NO_FAULT_OF_THE_MODEL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Job:
    """A unit of work whose result depends on nothing but what is written here and the data."""

    key: str  # Hash of everything the result depends on
    kind: str
    model: str  # model, repeat, fold, permutation: What it is for
    repeat: int
    fold: int
    permutation: int
    estimator: Any  # With its setting and seed
    y: np.ndarray  # (n_samples,) or (n_samples, n_labels)
    splits: list[tuple[np.ndarray, np.ndarray]]  # (train, test); index arrays
    metric: str  # For "setting"
    n_classes: int  # 0 in regression, 2 for every label of a label matrix
    groups: np.ndarray | None = None  # (n_samples,)
    outcome: int = -1  # Column of a label matrix that it is for, -1 for all or the only one
    inner: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)  # (train, test)
    views: tuple[str, ...] | None = None  # Views that the model gets; None for all

    def fit(self, mv: Any, rows: np.ndarray) -> Any:
        """Fit a new estimator on some rows."""
        groups = None if self.groups is None else self.groups[rows]
        return fit_with_groups(clone(self.estimator), mv[rows], self.y[rows], groups)


def predict_rows(estimator: Any, X: Any, n_classes: int) -> dict[str, np.ndarray]:
    """Return labels and, where the estimator has them, probabilities or else decision scores.

    A class that no training row had gets the probability 0, and the smallest score. A model of a
    label matrix gives labels and the probability of each, both of shape (n_samples, n_labels).
    """
    found = {"label": np.asarray(estimator.predict(X))}
    if n_classes and found["label"].ndim == 2:
        found["proba"] = np.asarray(estimator.predict_proba(X), dtype=float)
        return found
    if n_classes == 0:
        found["label"] = found["label"].astype(float).reshape(-1)
        return found
    seen = np.asarray(getattr(estimator, "classes_", np.arange(n_classes)))
    if hasattr(estimator, "predict_proba"):
        proba = np.asarray(estimator.predict_proba(X), dtype=float)
        found["proba"] = _over_all(proba, seen, n_classes, np.zeros(len(proba)))
    elif hasattr(estimator, "decision_function"):
        margin = np.asarray(estimator.decision_function(X), dtype=float)
        if margin.ndim == 1 and n_classes > 2:
            margin = np.column_stack([-margin / 2, margin / 2])
        lowest = margin.min(axis=1) - 1.0 if margin.ndim == 2 else margin
        found["margin"] = _over_all(margin, seen, n_classes, lowest)
    return found


def _over_all(
    values: np.ndarray, seen: np.ndarray, n_classes: int, absent: np.ndarray
) -> np.ndarray:
    """Return probabilities with a column for every class, also those not seen in training."""
    if values.ndim == 1 or len(seen) == n_classes:
        return values
    full = np.repeat(absent[:, None], n_classes, axis=1)
    full[:, seen.astype(np.intp)] = values
    return full


def one_label(found: dict[str, np.ndarray], column: int) -> dict[str, np.ndarray]:
    """Return the predictions of one label, out of those of a label matrix, as of two classes."""
    p = found["proba"][:, column]
    return {"label": found["label"][:, column], "proba": np.column_stack([1.0 - p, p])}


def _mean_score(metric: str, truth: np.ndarray, found: dict[str, np.ndarray], k: int) -> float:
    """Return a metric; of a label matrix its mean over the labels for which it is defined."""
    if truth.ndim == 1:
        return score(metric, Predicted(truth=truth, n_classes=k, **found))
    values = [
        score(metric, Predicted(truth=truth[:, j], n_classes=k, **one_label(found, j)))
        for j in range(truth.shape[1])
    ]
    known = [v for v in values if np.isfinite(v)]
    return float(np.mean(known)) if known else float("nan")


def _try_setting(job: Job, mv: Any) -> Outcome:
    values, ties = [], []
    # Settings of equal score are ranked by this metric.
    second = "log_loss" if job.n_classes else "rmse"
    for train, test in job.splits:
        if job.n_classes and (job.y[train] == job.y[train][0]).all(axis=0).any():
            # Leaving a site out may leave training rows of one class; nothing can be learned.
            continue
        fitted = job.fit(mv, train)
        found = predict_rows(fitted, mv[test], job.n_classes)
        values.append(_mean_score(job.metric, job.y[test], found, job.n_classes))
        ties.append(_mean_score(second, job.y[test], found, job.n_classes))
    known = [v for v in values if np.isfinite(v)]
    if not known:
        raise StudyError(
            f"{METRICS[job.metric].heading} cannot be computed from this model's predictions on "
            "the inner folds; select by another metric"
        )
    known_ties = [t for t in ties if np.isfinite(t)]
    tie = float(np.mean(known_ties)) if known_ties else None
    return Outcome({"score": float(np.mean(known)), "folds": len(known), "tie": tie})


def _fit_and_predict(job: Job, mv: Any) -> Outcome:
    (train, test) = job.splits[0]
    fitted = job.fit(mv, train)
    arrays = predict_rows(fitted, mv[test], job.n_classes)
    for name in ("label", "proba", "margin"):
        if name in arrays and not np.isfinite(arrays[name]).all():
            raise StudyError(f"the model predicts NaN or infinite values ({name})")
    facts: dict[str, Any] = {}
    if job.inner and "proba" not in arrays and "margin" in arrays:
        curve = _learn_platt(job, mv)
        if curve is not None:
            arrays["proba"] = curve.proba(arrays["margin"])
            facts["platt"] = True
    rows = mv[train]
    weights = weights_of(fitted, rows)
    seen = np.unique(job.y[train]).astype(np.intp) if job.n_classes else np.zeros(0, dtype=np.intp)
    joint = job.y.ndim == 2
    views: list[str] = []
    variance: list[float | list[float] | None] = []
    for i, (view, index) in enumerate(read_selection(fitted, rows).items()):
        views.append(view)
        arrays[f"index{i}"] = index
        if weights is None:
            variance.append(None)
            continue
        mine = weights.variance[view]
        # Of several labels each has weights and a variance of its own.
        variance.append(mine.tolist() if joint else float(mine.sum()))
        for name, part in (("weight", weights.per_sd[view]), ("raw", weights.raw[view])):
            given = part[index]
            arrays[f"{name}{i}"] = given if joint else by_class(given, job.n_classes, seen)
    facts["views"], facts["variance"] = views, variance
    if not job.permutation:
        predict = partial(predict_rows, n_classes=job.n_classes)
        arrays |= predict_submodels(fitted, rows, mv[test], predict)
    preparation = getattr(fitted, "preparation_", None)
    changed = None if preparation is None else preparation.site_report_
    if changed is not None:
        facts["harmonisation"] = json.loads(changed.to_json(orient="records", double_precision=15))
    return Outcome(facts, arrays)


def _learn_platt(job: Job, mv: Any) -> Platt | None:
    """Fit Platt scaling to held-out scores of the training rows; None where a fit fails."""
    margins, truths = [], []
    try:
        for train, test in job.inner:
            margins.append(np.asarray(job.fit(mv, train).decision_function(mv[test]), dtype=float))
            truths.append(job.y[test] == 1)
    except Exception as error:  # the model itself was fitted; only probabilities are missing
        warnings.warn(
            f"No probabilities by Platt scaling, because a fit on an inner fold "
            f"failed ({_reason(error)})",
            stacklevel=2,
        )
        return None
    return Platt.learn(np.concatenate(margins), np.concatenate(truths))


def run_job(data: MultiView, store: JobStore, job: Job) -> Outcome:
    """Run one job and store its result; an error of the model is stored in the outcome."""
    stored = store.load(job.key)
    if stored is not None and not stored.failed:
        # Another process with the same folder has run it meanwhile.
        return stored
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        try:
            work = _try_setting if job.kind == "setting" else _fit_and_predict
            outcome = work(job, data if job.views is None else data.select(job.views))
        except Exception as error:  # any model may fail in its own way; the others continue
            if isinstance(error, OSError) and error.errno in _NO_FAULT_OF_THE_MODEL:
                with writing(f"A temporary file of {job.model}"):
                    raise
            outcome = Outcome({"error": _reason(error)})
    outcome.facts["seconds"] = time.perf_counter() - started
    # Fits without evidence of signal are counted over the folds, and reported once.
    signal = [w for w in caught if issubclass(w.category, NoSignalWarning)]
    other = [w for w in caught if not issubclass(w.category, NoSignalWarning)]
    texts = sorted({f"{w.category.__name__}: {_first_line(str(w.message))}" for w in other})
    outcome.facts["warnings"] = texts[:_MOST_WARNINGS]
    outcome.facts["no_signal"] = bool(signal)
    store.save(job.key, outcome)
    return outcome


def _reason(error: Exception) -> str:
    text = _first_line(str(error)) or "no message"
    kind = type(error).__name__
    return text if isinstance(error, StudyError) else f"{kind}: {text}"


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 3] + "..."
