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
    FoldTask,
    Job,
    TaskKey,
    one_label,
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
    def from_outcome(cls, job: Job, setting: dict[str, Any], outcome: Outcome) -> OuterFit:
        """Return the fit of a finished job."""
        arrays = outcome.arrays
        return cls(
            repeat=job.repeat,
            fold=job.fold,
            test=job.splits[0][1],
            setting=setting,
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

    def score(self, metric: str, y: np.ndarray, n_classes: int) -> float:
        """Return one metric on the test rows of this fold."""
        predicted = Predicted(y[self.test], self.label, self.proba, self.margin, n_classes)
        return score(metric, predicted)


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


Results = dict[int, JobResults]
"""Of every outcome, by its column; a single outcome has the number `ALL`."""


def gather_fits(
    comparison: Comparison,
    tasks: Sequence[FoldTask],
    jobs: Mapping[TaskKey, Job],
    settings: Mapping[TaskKey, dict[str, Any]],
    outcomes: Mapping[str, Outcome],
    results: Results,
) -> None:
    """Put the fits of every model into the results, and its scores with permuted labels."""
    for column, mine in results.items():
        own = [t for t in tasks if t.outcome in (ALL, column) and t.key in jobs]
        _gather_one(comparison, column, own, jobs, settings, outcomes, mine)
        for name in {task.model.name for task in tasks} & set(mine.no_signal):
            count, folds = mine.no_signal[name], len(mine.fits[name])
            mine.notes[name].append(
                f"no evidence of signal on held-out data in {count} of {folds} folds; do not "
                "interpret the features selected in these folds"
            )


def _gather_one(
    comparison: Comparison,
    column: int,
    tasks: Sequence[FoldTask],
    jobs: Mapping[TaskKey, Job],
    settings: Mapping[TaskKey, dict[str, Any]],
    outcomes: Mapping[str, Outcome],
    results: JobResults,
) -> None:
    """Gather the fits of one outcome, which is a column of the label matrix or `ALL`."""
    scores: dict[tuple[str, int], list[float]] = {}
    for task in tasks:
        job = jobs[task.key]
        outcome = outcomes[job.key]
        if outcome.failed:
            results.failures.setdefault(job.model, outcome.facts["error"])
            continue
        fit = OuterFit.from_outcome(job, without_prefix(settings[task.key]), outcome)
        truth = task.y
        if truth.ndim == 2:
            fit, truth = fit.one_outcome(column), truth[:, column]
        if task.permutation == 0:
            results.fits[job.model].append(fit)
            if outcome.facts.get("no_signal"):
                results.no_signal[job.model] = results.no_signal.get(job.model, 0) + 1
        else:
            at = (job.model, task.permutation)
            value = fit.score(comparison.metric, truth, comparison.n_classes)
            scores.setdefault(at, []).append(value)
    for (name, _), values in sorted(scores.items()):
        results.permuted[name].append(float(np.nanmean(values)))
