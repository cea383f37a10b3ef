"""One job: try a setting on the inner folds, or fit on training rows and predict test rows."""

from __future__ import annotations

import errno
import json
import os
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import joblib
import numpy as np
from joblib.externals.loky.process_executor import TerminatedWorkerError
from sklearn.base import clone

from baldur.atomic_io import writing
from baldur.evaluation.handle import DataHandle, leave_with, one_thread, open_handle
from baldur.evaluation.metrics import METRICS, Predicted, score
from baldur.evaluation.models import fit_with_groups
from baldur.evaluation.platt import Platt
from baldur.evaluation.selection import read_selection
from baldur.evaluation.store import JobStore, Outcome
from baldur.evaluation.weights import by_class, weights_of
from baldur.exceptions import StudyError

__all__ = ["Job", "LocalRunner", "Runner", "predict_rows", "run_job"]

_LONGEST_REASON = 300
_NO_FAULT_OF_THE_MODEL = (errno.ENOSPC, errno.EDQUOT)


@dataclass(frozen=True)
class Job:
    """A unit of work whose result depends on nothing but what is written here and the data.

    Attributes
    ----------
    key : str
        Hash of all that matters.
    kind : {"setting", "final"}
        Mean score of a setting over inner splits, or fit and predict over one outer split.
    model, repeat, fold, permutation
        What it is for.
    estimator : estimator
        With its setting and seed.
    y : array of shape (n_samples,)
        Class codes or numbers of all rows.
    splits : list of (train, test) index arrays
    metric : str
        For "setting".
    groups : array of shape (n_samples,), or None
        Told to estimators that make inner folds of their own.
    n_classes : int
    inner : list of (train, test) index arrays
        For "final", of a model with margins alone: folds of the training rows, to make
        probabilities of them; empty for none.
    """

    key: str
    kind: str
    model: str
    repeat: int
    fold: int
    permutation: int
    estimator: Any
    y: np.ndarray
    splits: list[tuple[np.ndarray, np.ndarray]]
    metric: str
    n_classes: int
    groups: np.ndarray | None = None
    inner: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)

    def fit(self, mv: Any, rows: np.ndarray) -> Any:
        """Fit a new estimator on some rows."""
        groups = None if self.groups is None else self.groups[rows]
        return fit_with_groups(clone(self.estimator), mv[rows], self.y[rows], groups)


def predict_rows(estimator: Any, X: Any, n_classes: int) -> dict[str, np.ndarray]:
    """Return labels and, where the estimator has them, probabilities or else margins.

    A class that no training row had gets the probability 0, and the smallest margin.
    """
    found = {"label": np.asarray(estimator.predict(X))}
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
    """Put the columns of the classes seen in training among those of all classes."""
    if values.ndim == 1 or len(seen) == n_classes:
        return values
    full = np.repeat(absent[:, None], n_classes, axis=1)
    full[:, seen.astype(np.intp)] = values
    return full


def _try_setting(job: Job, mv: Any) -> Outcome:
    values, ties = [], []
    # What settings of equal score are told apart by.
    second = "log_loss" if job.n_classes else "rmse"
    for train, test in job.splits:
        if job.n_classes and len(np.unique(job.y[train])) < 2:
            # Sites left out inside may leave one class only, from which nothing can be learned.
            continue
        fitted = job.fit(mv, train)
        found = predict_rows(fitted, mv[test], job.n_classes)
        predicted = Predicted(truth=job.y[test], n_classes=job.n_classes, **found)
        values.append(score(job.metric, predicted))
        ties.append(score(second, predicted))
    known = [v for v in values if np.isfinite(v)]
    if not known:
        raise StudyError(
            f"{METRICS[job.metric].heading} cannot be computed from this model's predictions on "
            "the inner folds; select by another metric"
        )
    told = [t for t in ties if np.isfinite(t)]
    tie = float(np.mean(told)) if told else None
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
    views, variance = [], []
    for i, (view, index) in enumerate(read_selection(fitted, rows).items()):
        views.append(view)
        arrays[f"index{i}"] = index
        variance.append(None if weights is None else weights.variance[view])
        if weights is not None:
            arrays[f"weight{i}"] = by_class(weights.per_sd[view][index], job.n_classes, seen)
            arrays[f"raw{i}"] = by_class(weights.raw[view][index], job.n_classes, seen)
    facts["views"], facts["variance"] = views, variance
    preparation = getattr(fitted, "preparation_", None)
    changed = None if preparation is None else preparation.site_report_
    if changed is not None:
        facts["harmonisation"] = json.loads(changed.to_json(orient="records", double_precision=15))
    return Outcome(facts, arrays)


def _learn_platt(job: Job, mv: Any) -> Platt | None:
    """Learn probabilities on held-out margins of the training rows; None where a fit fails."""
    margins, truths = [], []
    try:
        for train, test in job.inner:
            margins.append(np.asarray(job.fit(mv, train).decision_function(mv[test]), dtype=float))
            truths.append(job.y[test] == 1)
    except Exception as error:  # the model itself was fitted; it lacks probabilities only
        warnings.warn(f"No probabilities: an inner fit failed ({_reason(error)})", stacklevel=2)
        return None
    return Platt.learn(np.concatenate(margins), np.concatenate(truths))


def run_job(path: str, store: JobStore, job: Job) -> Outcome:
    """Do one job and keep its result; an error of the model becomes a fact of the outcome."""
    kept = store.load(job.key)
    if kept is not None and not kept.failed:
        # Another process on the same folder was quicker.
        return kept
    started = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        try:
            work = _try_setting if job.kind == "setting" else _fit_and_predict
            outcome = work(job, open_handle(path))
        except Exception as error:  # any model may fail in its own way; the others go on
            if isinstance(error, OSError) and error.errno in _NO_FAULT_OF_THE_MODEL:
                with writing(f"A temporary file of {job.model}"):
                    raise
            outcome = Outcome({"error": _reason(error)})
    outcome.facts["seconds"] = time.perf_counter() - started
    said = sorted({f"{w.category.__name__}: {_first_line(str(w.message))}" for w in caught})
    outcome.facts["warnings"] = said[:5]
    store.save(job.key, outcome)
    return outcome


def _run_elsewhere(parent: int, path: str, store: JobStore, job: Job) -> tuple[str, Outcome]:
    leave_with(parent)
    return job.key, run_job(path, store, job)


def _reason(error: Exception) -> str:
    text = _first_line(str(error)) or "no message"
    kind = type(error).__name__
    return text if isinstance(error, StudyError) else f"{kind}: {text}"


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 3] + "..."


class Runner(Protocol):
    """A way to get jobs done: processes of this machine, or a cluster."""

    @property
    def n_jobs(self) -> int:
        """How many are done at a time."""
        ...

    def run(
        self,
        jobs: list[Job],
        handle: DataHandle,
        store: JobStore,
        on_done: Callable[[Job, Outcome], None],
    ) -> None:
        """Do the jobs in any order, keep each result at once, and tell `on_done` of each."""
        ...


@dataclass(frozen=True)
class LocalRunner:
    """One job after another in this process, or several at a time in processes of their own."""

    n_jobs: int = 1

    def run(
        self,
        jobs: list[Job],
        handle: DataHandle,
        store: JobStore,
        on_done: Callable[[Job, Outcome], None],
    ) -> None:
        """Do the jobs; see `Runner`."""
        if self.n_jobs == 1 or len(jobs) <= 1:
            for job in jobs:
                on_done(job, run_job(handle.path, store, job))
            return
        by_key = {job.key: job for job in jobs}
        path = handle.send()
        # batch_size: a job is long enough, and a finished one must be on disk at once.
        parallel = joblib.Parallel(
            n_jobs=self.n_jobs, batch_size=1, max_nbytes=None, return_as="generator_unordered"
        )
        try:
            calls = (joblib.delayed(_run_elsewhere)(os.getpid(), path, store, job) for job in jobs)
            for key, outcome in parallel(calls):
                on_done(by_key[key], outcome)
        except TerminatedWorkerError as error:
            raise StudyError(
                "A worker process was ended by the system, most often because memory ran out. The "
                "finished jobs are kept; run the same command with fewer jobs (--jobs 1)."
            ) from error
