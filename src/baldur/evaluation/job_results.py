"""JobResults: what the jobs of a comparison gave, by model and outer fold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from baldur.evaluation.design import Comparison
from baldur.evaluation.job_store import Outcome
from baldur.evaluation.jobs import (
    ALL,
    FewFeatures,
    Job,
    one_label,
    outcomes_of,
    read_submodels,
    without_prefix,
)
from baldur.evaluation.metrics import Predicted, score
from baldur.evaluation.selected_features import SelectedFeatures

_MOST_NOTES = 10


@dataclass
class OuterFit:
    """One model on one outer fold: its setting, predictions and selected features.

    With `scaled` the probabilities come from decision scores by Platt scaling. `few` has the
    submodels by their largest number of features. The arrays of a fit to a label matrix have a
    column for each label, and `one_outcome` gives the fit of one of them.
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
    selected: dict[str, SelectedFeatures] = field(default_factory=dict)
    harmonisation: list[dict[str, Any]] = field(default_factory=list)
    few: dict[int, FewFeatures] = field(default_factory=dict)

    @classmethod
    def from_outcome(cls, job: Job, outcome: Outcome) -> OuterFit:
        """Return the fit of a finished job."""
        arrays = outcome.arrays
        return cls(
            repeat=job.task.fold.repeat,
            fold=job.task.fold.number,
            test=job.splits[0][1],
            setting=without_prefix(job.setting),
            seconds=float(outcome.facts["seconds"]),
            label=arrays["label"],
            proba=arrays.get("proba"),
            margin=arrays.get("margin"),
            scaled=bool(outcome.facts.get("platt", False)),
            selected={
                view: SelectedFeatures(
                    arrays[f"index{i}"],
                    arrays.get(f"weight{i}"),
                    arrays.get(f"raw{i}"),
                    outcome.facts["variance"][i],
                )
                for i, view in enumerate(outcome.facts["views"])
            },
            harmonisation=outcome.facts.get("harmonisation", []),
            few=read_submodels(arrays),
        )

    def one_outcome(self, column: int) -> OuterFit:
        """Return the fit of one label, out of that of a label matrix."""
        found = one_label({"label": self.label, "proba": np.asarray(self.proba)}, column)
        selected = {view: chosen.one_output(column) for view, chosen in self.selected.items()}
        few = {
            limit: replace(
                one, **one_label({"label": one.label, "proba": np.asarray(one.proba)}, column)
            )
            for limit, one in self.few.items()
        }
        return replace(self, label=found["label"], proba=found["proba"], selected=selected, few=few)

    def score(
        self, metric: str, y: np.ndarray, n_classes: int, chosen: np.ndarray | None = None
    ) -> float:
        """Return one metric on the test rows of this fold, or on the chosen ones among them."""
        predicted = Predicted(y[self.test], self.label, self.proba, self.margin, n_classes)
        if chosen is not None:
            predicted = predicted.take(chosen[self.test])
        return score(metric, predicted) if len(predicted.truth) else np.nan


@dataclass
class JobResults:
    """Results of the jobs of a comparison, by model and outer fold."""

    fits: dict[str, list[OuterFit]]
    failures: dict[str, str] = field(default_factory=dict)  # Models without results, and why
    notes: dict[str, list[str]] = field(default_factory=dict)
    permuted: dict[str, list[float]] = field(default_factory=dict)
    no_signal: dict[str, int] = field(default_factory=dict)

    def note(self, model: str, text: str) -> None:
        """Add a note, unless the model has it already or has too many."""
        notes = self.notes[model]
        if text not in notes and len(notes) < _MOST_NOTES:
            notes.append(text)


def merge_outcomes(comparison: Comparison, each: Sequence[JobResults]) -> JobResults:
    """Return the results of all outcomes: a model that failed for one of them has no mean.

    A fit to the whole label matrix is listed once, as of one outcome. Of the folds without evidence
    of signal it has the most over the outcomes, and of permuted scores the means.
    """
    merged = JobResults(fits={}, notes={model.name: [] for model in comparison.models})
    for outcome, one in zip(comparison.outcomes, each, strict=True):
        for model, why in one.failures.items():
            merged.failures.setdefault(model, f"{outcome}: {why}")
        for model, notes in one.notes.items():
            for text in notes:
                merged.note(model, text)
        for model, k in one.no_signal.items():
            merged.no_signal[model] = max(k, merged.no_signal.get(model, 0))
    for compared in comparison.models:
        parts, name = each[: len(outcomes_of(comparison, compared))], compared.name
        merged.fits[name] = [fit for one in parts for fit in one.fits[name]]
        if name not in merged.failures:
            merged.permuted[name] = np.mean([one.permuted[name] for one in each], axis=0).tolist()
    return merged


Results = dict[int, JobResults]
"""Of every outcome, by its column; a single outcome has the number `ALL`."""


def gather_fits(
    comparison: Comparison, jobs: Sequence[Job], outcomes: Mapping[str, Outcome], results: Results
) -> None:
    """Put the fits of every model into the results, and its scores with permuted labels."""
    for column, one in results.items():
        concerned = [job for job in jobs if job.task.outcome in (ALL, column)]
        _gather_one(comparison, column, concerned, outcomes, one)
        names = [model.name for model in comparison.models]
        one.failures = {name: one.failures[name] for name in names if name in one.failures}
        for name, count in one.no_signal.items():
            one.notes[name].append(
                f"no evidence of signal on held-out data in {count} of {len(one.fits[name])} "
                "folds; do not interpret the features selected in these folds"
            )


def _gather_one(
    comparison: Comparison,
    column: int,
    jobs: Sequence[Job],
    outcomes: Mapping[str, Outcome],
    results: JobResults,
) -> None:
    """Gather the fits of one outcome, which is a column of the label matrix or `ALL`."""
    scores: dict[tuple[str, int], list[float]] = {}
    for job in jobs:
        outcome, name, truth = outcomes[job.key], job.task.model.name, job.task.y
        if outcome.failed:
            results.failures.setdefault(name, outcome.facts["error"])
            continue
        fit = OuterFit.from_outcome(job, outcome)
        if truth.ndim == 2:
            fit, truth = fit.one_outcome(column), truth[:, column]
        if job.task.permutation == 0:
            results.fits[name].append(fit)
            if outcome.facts.get("no_signal"):
                results.no_signal[name] = results.no_signal.get(name, 0) + 1
        else:
            value = fit.score(comparison.metric, truth, comparison.n_classes)
            scores.setdefault((name, job.task.permutation), []).append(value)
    for (name, _), values in sorted(scores.items()):
        results.permuted[name].append(float(np.nanmean(values)))
