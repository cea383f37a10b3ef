"""Job: score a setting on the inner folds, or fit on training rows and predict test rows."""

from __future__ import annotations

import errno
import json
import time
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from baldur.core.atomic_io import writing
from baldur.core.limits import one_thread
from baldur.estimators.summary import FEW
from baldur.evaluation.clinical.calibration import Platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.fitted_model import (
    one_label,
    predict_rows,
    predict_submodels,
    read_selection,
    weights_by_class,
    weights_of,
)
from baldur.evaluation.job_store import JobResult, JobStore
from baldur.evaluation.metrics import METRICS, Predicted, score
from baldur.evaluation.models import Model, fit_with_groups
from baldur.evaluation.selected_features import SelectedFeatures
from baldur.evaluation.splits import Fold
from baldur.exceptions import NoSignalWarning, StudyError
from baldur.views import MultiView

_LONGEST_REASON = 300
_MOST_WARNINGS = 5
_NO_FAULT_OF_THE_MODEL = (errno.ENOSPC, errno.EDQUOT)


ALL = -1
"""The outcome of a task that is about all of them."""

Split = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Task:
    """One model on one outer fold, with the true labels or one permutation of them."""

    model: Model
    permutation: int  # 0 for the true labels
    labels: np.ndarray  # (n_samples,) or (n_samples, n_labels)
    fold: Fold
    outcome: int = ALL  # Column of a label matrix, ALL for all of them or the only one

    @property
    def y(self) -> np.ndarray:
        """The labels that the model is fitted to."""
        return self.labels if self.outcome == ALL else self.labels[:, self.outcome]

    @property
    def searched(self) -> bool:
        """Whether there are settings to select from."""
        return len(self.model.settings()) > 1


@dataclass(frozen=True)
class Job:
    """One setting of a task: scored on inner folds, or fitted to predict the test rows.

    The result depends on nothing but what is written here and the data.
    """

    key: str  # Hash of everything the result depends on
    kind: str  # "setting" or "final"
    task: Task
    setting: dict[str, Any]
    seed: int
    splits: list[Split]  # (train, test); index arrays
    metric: str  # For "setting"
    n_classes: int  # 0 in regression, 2 for every label of a label matrix
    groups: np.ndarray | None = None  # (n_samples,)
    inner: list[Split] = field(default_factory=list)  # (train, test); for Platt scaling

    def fit(self, mv: MultiView, rows: np.ndarray) -> Any:
        """Fit a new estimator on some rows."""
        estimator = self.task.model.make(self.setting, self.seed, searching=self.kind == "setting")
        groups = None if self.groups is None else self.groups[rows]
        return fit_with_groups(estimator, mv[rows], self.task.y[rows], groups)


def _mean_score(
    metric: str, truth: np.ndarray, predicted: dict[str, np.ndarray], n_classes: int
) -> float:
    """Return a metric; of a label matrix its mean over the labels for which it is defined."""
    if truth.ndim == 1:
        return score(metric, Predicted(truth=truth, n_classes=n_classes, **predicted))
    values = [
        score(metric, Predicted(truth[:, j], n_classes=n_classes, **one_label(predicted, j)))
        for j in range(truth.shape[1])
    ]
    return _finite_mean(values)


def _finite_mean(values: Sequence[float]) -> float:
    finite = [v for v in values if np.isfinite(v)]
    return float(np.mean(finite)) if finite else float("nan")


def _try_setting(job: Job, mv: MultiView) -> JobResult:
    """Return the mean score of a setting over the inner folds, and the mean of a second metric.

    The second, the fact "tie", ranks settings of equal score.
    """
    y = job.task.y
    scores, ties = [], []
    tie_metric = "log_loss" if job.n_classes else "rmse"
    for train, test in job.splits:
        if job.n_classes and (y[train] == y[train][0]).all(axis=0).any():
            # Leaving a site out may leave training rows of one class; nothing can be learned.
            continue
        fitted = job.fit(mv, train)
        predicted = predict_rows(fitted, mv[test], job.n_classes)
        scores.append(_mean_score(job.metric, y[test], predicted, job.n_classes))
        ties.append(_mean_score(tie_metric, y[test], predicted, job.n_classes))
    mean, tie = _finite_mean(scores), _finite_mean(ties)
    if np.isnan(mean):
        raise StudyError(
            f"{METRICS[job.metric].heading} cannot be computed from this model's predictions on "
            "the inner folds; select by another metric"
        )
    return JobResult({"score": mean, "tie": None if np.isnan(tie) else tie})


def _fit_and_predict(job: Job, mv: MultiView) -> JobResult:
    """Fit the training rows; return predictions of the test rows, selected features and weights.

    Of the i-th view of the fact "views" the arrays are index<i>, weight<i> and raw<i>.
    """
    train, test = job.splits[0]
    y = job.task.y
    fitted = job.fit(mv, train)
    arrays = predict_rows(fitted, mv[test], job.n_classes)
    for name in ("label", "proba", "margin"):
        if name in arrays and not np.isfinite(arrays[name]).all():
            raise StudyError(f"the model predicts NaN or infinite values ({name})")
    facts: dict[str, Any] = {}
    if job.inner and "proba" not in arrays and "margin" in arrays:
        platt = _learn_platt(job, mv)
        if platt is not None:
            arrays["proba"] = platt.proba(arrays["margin"])
            facts["platt"] = True
    rows = mv[train]
    weights = weights_of(fitted, rows)
    seen = np.unique(y[train]).astype(np.intp) if job.n_classes else np.zeros(0, dtype=np.intp)
    joint = y.ndim == 2  # Fitted to all columns of a label matrix at once
    views: list[str] = []
    variance: list[float | list[float] | None] = []
    for i, (view, index) in enumerate(read_selection(fitted, rows).items()):
        views.append(view)
        arrays[f"index{i}"] = index
        if weights is None:
            variance.append(None)
            continue
        explained = weights.variance[view]
        # Of several labels each has weights and a variance of its own.
        variance.append(explained.tolist() if joint else float(explained.sum()))
        for name, of_view in (("weight", weights.per_sd[view]), ("raw", weights.raw[view])):
            selected = of_view[index]
            arrays[f"{name}{i}"] = (
                selected if joint else weights_by_class(selected, job.n_classes, seen)
            )
    facts["views"], facts["variance"] = views, variance
    if not job.task.permutation:
        arrays |= predict_submodels(fitted, rows, mv[test], job.n_classes)
    preparation = getattr(fitted, "preparation_", None)
    changed = None if preparation is None else preparation.site_report_
    if changed is not None:
        facts["harmonisation"] = json.loads(changed.to_json(orient="records", double_precision=15))
    return JobResult(facts, arrays)


def _learn_platt(job: Job, mv: MultiView) -> Platt | None:
    """Fit Platt scaling to held-out scores of the training rows; None where a fit fails."""
    margins, truths = [], []
    try:
        for train, test in job.inner:
            margins.append(np.asarray(job.fit(mv, train).decision_function(mv[test]), dtype=float))
            truths.append(job.task.y[test] == 1)
    except Exception as error:  # the model itself was fitted; only probabilities are missing
        warnings.warn(
            f"No probabilities by Platt scaling, because a fit on an inner fold "
            f"failed ({_reason(error)})",
            stacklevel=2,
        )
        return None
    return Platt.learn(np.concatenate(margins), np.concatenate(truths))


def run_job(data: MultiView, store: JobStore, job: Job) -> JobResult:
    """Run one job and store its result; an error of the model is stored as its result."""
    stored = store.load(job.key)
    if stored is not None and not stored.failed:
        # Another process with the same folder has run it meanwhile.
        return stored
    model, started = job.task.model, time.perf_counter()
    with warnings.catch_warnings(record=True) as caught, one_thread():
        warnings.simplefilter("always")
        try:
            work = _try_setting if job.kind == "setting" else _fit_and_predict
            result = work(job, data if model.views is None else data.select(model.views))
        except Exception as error:  # any model may fail in its own way; the others continue
            if isinstance(error, OSError) and error.errno in _NO_FAULT_OF_THE_MODEL:
                with writing(f"A temporary file of {model.name}"):
                    raise
            result = JobResult({"error": _reason(error)})
    result.facts["seconds"] = time.perf_counter() - started
    # Fits without evidence of signal are counted over the folds, and reported once.
    signal = [w for w in caught if issubclass(w.category, NoSignalWarning)]
    other = [w for w in caught if not issubclass(w.category, NoSignalWarning)]
    texts = sorted({f"{w.category.__name__}: {_first_line(str(w.message))}" for w in other})
    result.facts["warnings"] = texts[:_MOST_WARNINGS]
    result.facts["no_signal"] = bool(signal)
    store.save(job.key, result)
    return result


def _reason(error: Exception) -> str:
    text = _first_line(str(error)) or "no message"
    kind = type(error).__name__
    return text if isinstance(error, StudyError) else f"{kind}: {text}"


def _first_line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else line[: _LONGEST_REASON - 3] + "..."


@dataclass
class OuterFit:
    """One model on one outer fold: its setting, predictions and selected features.

    With `scaled` the probabilities come from decision scores by Platt scaling. `few` has label,
    proba and columns (counted over all views side by side) of the submodels by their largest number
    of features.
    """

    repeat: int
    fold: int
    test: np.ndarray
    setting: dict[str, Any]
    seconds: float
    label: np.ndarray
    proba: np.ndarray | None = None
    margin: np.ndarray | None = None
    scaled: bool = False
    no_signal: bool = False  # Whether the model found no evidence of signal on held-out data
    selected: dict[str, SelectedFeatures] = field(default_factory=dict)
    harmonisation: list[dict[str, Any]] = field(default_factory=list)
    few: dict[int, dict[str, np.ndarray]] = field(default_factory=dict)

    @classmethod
    def from_result(cls, job: Job, result: JobResult, column: int = ALL) -> OuterFit:
        """Return the fit of a finished job; of a fit to a label matrix, that of one label."""
        arrays, facts = result.arrays, result.facts
        joint = job.task.y.ndim == 2
        few = {
            limit: {
                name.removeprefix(f"few{limit}_"): array
                for name, array in arrays.items()
                if name.startswith(f"few{limit}_")
            }
            for limit in FEW
            if f"few{limit}_label" in arrays
        }
        predicted: dict[str, Any] = {
            k: arrays[k] for k in ("label", "proba", "margin") if k in arrays
        }
        if joint:
            predicted = one_label(predicted, column)
            few = {limit: {**small, **one_label(small, column)} for limit, small in few.items()}
        selected = {}
        for i, (view, variance) in enumerate(zip(facts["views"], facts["variance"], strict=True)):
            weight, raw = arrays.get(f"weight{i}"), arrays.get(f"raw{i}")
            if joint and weight is not None and raw is not None:
                weight, raw, variance = weight[:, [column]], raw[:, [column]], variance[column]
            selected[view] = SelectedFeatures(arrays[f"index{i}"], weight, raw, variance)
        return cls(
            repeat=job.task.fold.repeat,
            fold=job.task.fold.number,
            test=job.splits[0][1],
            setting=without_prefix(job.setting),
            seconds=float(facts["seconds"]),
            **predicted,
            scaled=bool(facts.get("platt", False)),
            no_signal=bool(facts.get("no_signal", False)),
            selected=selected,
            harmonisation=facts.get("harmonisation", []),
            few=few,
        )

    def score(
        self, metric: str, y: np.ndarray, n_classes: int, chosen: np.ndarray | None = None
    ) -> float:
        """Return one metric on the test rows of this fold, or on the chosen ones among them."""
        predicted = Predicted(y[self.test], self.label, self.proba, self.margin, n_classes)
        if chosen is not None:
            predicted = predicted.take(chosen[self.test])
        return score(metric, predicted) if len(predicted.truth) else np.nan


def permute_labels(
    y: np.ndarray, groups: np.ndarray | None, rng: np.random.Generator
) -> np.ndarray:
    """Return permuted labels, exchangeable under the hypothesis of no association.

    With groups they are permuted within each; where every group has one label, the labels of whole
    groups are permuted among groups of equal size.

    Shapes: y (n_samples,) or (n_samples, n_labels), groups (n_samples,); returns that of y.
    """
    permuted = y.copy()
    if groups is None:
        return rng.permutation(permuted)
    names, member = np.unique(groups, return_inverse=True)
    rows = [np.flatnonzero(member == g) for g in range(len(names))]
    if any((y[r] != y[r[0]]).any() for r in rows):
        for r in rows:
            permuted[r] = rng.permutation(y[r])
        return permuted
    sizes = np.array([len(r) for r in rows])
    for size in np.unique(sizes):
        of_size = np.flatnonzero(sizes == size)
        for target, source in zip(of_size, rng.permutation(of_size), strict=True):
            permuted[rows[target]] = y[rows[source][0]]
    return permuted


def whole_sample(comparison: Comparison) -> Fold:
    """Return a fold that trains on all rows and tests on none."""
    rows = np.arange(len(comparison.y))
    return Fold(0, 0, rows, rows[:0])


def fold_tasks(comparison: Comparison) -> list[Task]:
    """Return every model on every outer fold, with the true labels and permuted ones."""
    labels = [comparison.y]
    for b in range(1, comparison.permutations + 1):
        # The 3 keeps these random numbers apart from those of folds and models.
        rng = np.random.default_rng([comparison.plan.seed, 3, b])
        labels.append(permute_labels(comparison.y, comparison.plan.groups, rng))
    folds = [comparison.plan.outer_folds(y) for y in labels]
    return [
        Task(model, b, labels[b], fold, outcome)
        for model in comparison.models
        for outcome in outcomes_of(comparison, model)
        for b in range(len(labels))
        for fold in folds[b]
    ]


def outcomes_of(comparison: Comparison, model: Model) -> list[int]:
    """Return the columns of a label matrix that a model is fitted to one after another."""
    apart = bool(comparison.outcomes) and not model.joint
    return list(range(len(comparison.outcomes))) if apart else [ALL]


def seed_of(comparison: Comparison, model: Model, permutation: int, fold: Fold) -> int:
    """Return the seed of one model on one outer fold, the same for all its settings."""
    # The 4 keeps these random numbers apart from those of folds and permutations.
    entropy = [
        comparison.plan.seed, 4, crc32(model.seed_name.encode()), permutation, fold.repeat,
        fold.number,
    ]  # fmt: skip
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def without_prefix(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting with the parameter names of the model, without prefix."""
    while any(k.startswith("estimator__") for k in setting):
        setting = {k.removeprefix("estimator__"): v for k, v in setting.items()}
    return dict(setting)
