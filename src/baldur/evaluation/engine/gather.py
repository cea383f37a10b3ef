"""gather_fits: outcomes of finished jobs as results by model and fold, for every outcome."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from baldur.evaluation.design import Comparison
from baldur.evaluation.engine.job import Job
from baldur.evaluation.engine.job_results import JobResults, OuterFit
from baldur.evaluation.engine.job_store import Outcome
from baldur.evaluation.engine.tasks import ALL, FoldTask, TaskKey, without_prefix

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
