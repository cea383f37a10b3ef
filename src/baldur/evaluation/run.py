"""run_jobs: the jobs of a comparison, and their results gathered by model and fold.

Models are run in the order listed. The jobs of a model come in two rounds: the first scores every
setting on the inner folds, the second fits the selected settings. One job of every model is run
before all others, so that the time left can be estimated from the start.

Of a label matrix the models that take one are fitted to all labels at once, and the others to one
label after another, with settings selected for each. Results are those of every label.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from baldur.evaluation.clinical.logistic_fit import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.job_results import JobResults, Results, gather_fits
from baldur.evaluation.job_store import (
    Fingerprint,
    JobStore,
    Outcome,
    job_key,
    libraries,
)
from baldur.evaluation.jobs import (
    ALL,
    FoldTask,
    Job,
    Shard,
    fold_tasks,
    outcomes_of,
    seed_of,
    whole_sample,
)
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model
from baldur.evaluation.runners import LocalRunner, Runner
from baldur.evaluation.shared_data import SharedData
from baldur.evaluation.view_sets import measured_rows, rows_with_views
from baldur.exceptions import InputError, UnfinishedError


@dataclass
class Progress:
    """Counts of jobs, and an estimate of the time left.

    Attributes
    ----------
    total, done : int
        Jobs in all, and finished ones (those found in the store included).
    n_jobs : int
        Jobs that run at a time.
    inner : int
        Number of inner folds, for models of which only one kind of job was timed.
    reused : int
        Jobs found in the store.
    failed : int
        Jobs that ended with an error.
    current : str
        Model and fold of the job that was finished last.
    started : float
        Time of the monotonic clock at the start.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(60, {"a": 5, "b": 10}, random_state=0)
    >>> lines = []
    >>> result = nested_cv(["Dummy"], sim.data, sim.target, outer=3,
    ...                    progress=lambda p: lines.append(f"{p.done} of {p.total}"))
    >>> lines[-1]
    '3 of 3'
    """

    total: int
    n_jobs: int = 1
    inner: int = 5
    done: int = 0
    reused: int = 0
    failed: int = 0
    current: str = ""
    started: float = field(default_factory=time.monotonic)
    _left: dict[tuple[str, str], int] = field(default_factory=dict)
    _seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)

    @classmethod
    def of(cls, counts: Mapping[tuple[str, str], int], inner: int, n_jobs: int) -> Progress:
        """Return the progress at the start of a run, with no job done.

        Parameters
        ----------
        counts : dict of (model, kind) to int
            Jobs of every model, of the kinds "setting" and "final".
        inner : int
            Number of inner folds.
        n_jobs : int
            Jobs that run at a time.

        Returns
        -------
        Progress
        """
        return cls(sum(counts.values()), n_jobs, inner, _left=dict(counts))

    def count(self, job: Job, outcome: Outcome, *, reused: bool = False) -> None:
        """Count a job that was run, or found in the store."""
        self.done += 1
        self.reused += reused
        self.failed += outcome.failed and not reused
        self.current = f"{job.model}, fold {job.fold + 1}"
        kind = (job.model, job.kind)
        self._left[kind] = self._left.get(kind, 0) - 1
        seconds = outcome.facts.get("seconds")
        if seconds is not None:
            self._seconds.setdefault(kind, []).append(float(seconds))

    def leave_out(self, fits: Mapping[str, int]) -> None:
        """Subtract the final fits that models do not have because their settings failed.

        Parameters
        ----------
        fits : dict of str to int
            Number of fits of each model.
        """
        for model, count in fits.items():
            self.total -= count
            self._left[model, "final"] -= count

    def seconds_left(self) -> float | None:
        """Estimate the time left from the mean time of the same kind of job of the same model.

        Returns
        -------
        float or None
            None until a job of every model that has jobs left has been timed.
        """
        total = 0.0
        for (model, kind), count in self._left.items():
            if count <= 0:
                continue
            seconds = self._mean(model, kind)
            if seconds is None:
                return None
            total += count * seconds
        return total / self.n_jobs

    def _mean(self, model: str, kind: str) -> float | None:
        values = self._seconds.get((model, kind))
        if values:
            return sum(values) / len(values)
        other = self._seconds.get((model, "final" if kind == "setting" else "setting"))
        if not other:
            return None
        # A job of a setting has a fit for each inner fold, on (inner - 1) / inner of the rows.
        fits = max(self.inner - 1, 1)
        mean = sum(other) / len(other)
        return mean * fits if kind == "setting" else mean / fits


FORM = 3
"""Part of every key; raised whenever jobs store something else."""

# Scores that differ by rounding are ties: sums over rows in another order differ by about this.
_TIE_DIGITS = 10

Split = tuple[np.ndarray, np.ndarray]


def run_jobs(
    comparison: Comparison,
    runner: Runner | None = None,
    store: JobStore | None = None,
    shard: Shard | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[JobResults]:
    """Run the jobs of a comparison that the store does not have, and gather all results."""
    run = _Run(comparison, runner, store, on_progress)
    tasks = fold_tasks(comparison)
    with SharedData(comparison.data) as shared:
        if shard is None:
            return list(run.both_rounds(tasks, shared).values())
        per_fold = sum(len(outcomes_of(comparison, model)) for model in comparison.models)
        own = run.both_rounds(shard.part_of(tasks, per_fold), shared)
    try:
        return list(run.both_rounds(tasks, None).values())
    except _NotInStoreError as missing:
        raise UnfinishedError(
            f"Shard {shard} is done; at least {missing.count} jobs of other shards are not "
            f"finished. The last "
            "shard to end writes the results; the same command without --shard runs the jobs that "
            "are left.",
            missing.count,
            {name: why for one in own.values() for name, why in one.failures.items()},
        ) from None


def search_on_all_rows(
    comparison: Comparison,
    model: Model,
    runner: Runner | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Return the best setting of one model, on inner folds of all rows."""
    settings = model.settings()
    if len(settings) == 1:
        return settings[0]
    task = FoldTask(model, 0, comparison.y, whole_sample(comparison))
    run = _Run(comparison, runner, None, on_progress)
    results = run.start([task], final=False)
    jobs = run.setting_jobs(task)
    outcomes: dict[str, Outcome] = {}
    with SharedData(comparison.data) as shared:
        run.do([job for job, _ in jobs], shared, outcomes, results)
    best = run.best_setting(task, jobs, outcomes, results)
    if best is None:
        raise InputError(next(iter(results.values())).failures[model.name])
    return best


class _NotInStoreError(Exception):
    """Results that are looked for are not in the store."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


class _Run:
    """The jobs of one comparison: how they are made, run, and turned into results."""

    def __init__(
        self,
        comparison: Comparison,
        runner: Runner | None,
        store: JobStore | None,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.comparison = comparison
        self.runner = LocalRunner() if runner is None else runner
        self.store = JobStore(None) if store is None else store
        self.on_progress = on_progress
        self.store.sweep()
        self.fingerprint = Fingerprint(comparison.data)
        self.progress = Progress(0)
        self._inner: dict[tuple[int, int, int], list[Split]] = {}
        self._counted: set[tuple[str, str]] = set()
        sets = {model.views for model in comparison.models}
        self._measured = {views: rows_with_views(comparison.data, views) for views in sets}

    def _results_of(self, outcome: int, results: Results) -> list[JobResults]:
        """Return the results that a task or job is for: of one outcome, or of all."""
        return list(results.values()) if outcome == ALL else [results[outcome]]

    def both_rounds(self, tasks: list[FoldTask], shared: SharedData | None) -> Results:
        """Select settings and fit, model after model; without data, from the store only."""
        results = self.start(tasks)
        outcomes: dict[str, Outcome] = {}
        first = self._first_jobs(tasks)
        for part in self._in_turn(tasks):
            searches = {task.key: self.setting_jobs(task) for task in part if task.searched}
            settings = {t.key: t.model.settings()[0] for t in part if not t.searched}
            final = {t.key: self._final_job(t, settings[t.key]) for t in part if not t.searched}
            jobs = [job for one in searches.values() for job, _ in one]
            self.do([*first, *jobs, *final.values()], shared, outcomes, results)
            first = []
            for task in part:
                if task.searched:
                    best = self.best_setting(task, searches[task.key], outcomes, results)
                    settings |= {} if best is None else {task.key: best}
            searched = [task for task in part if task.searched]
            fitted = [task for task in searched if not self._has_failed(task, results)]
            counts = Counter(task.model.name for task in searched)
            self.progress.leave_out(counts - Counter(task.model.name for task in fitted))
            selected = {task.key: self._final_job(task, settings[task.key]) for task in fitted}
            self.do(list(selected.values()), shared, outcomes, results)
            gather_fits(self.comparison, part, final | selected, settings, outcomes, results)
        return results

    def _has_failed(self, task: FoldTask, results: Results) -> bool:
        return any(
            task.model.name in one.failures for one in self._results_of(task.outcome, results)
        )

    def _in_turn(self, tasks: list[FoldTask]) -> list[list[FoldTask]]:
        """Return one list of tasks per model, or a single list if workers outnumber folds."""
        names = [m.name for m in self.comparison.models]
        parts = [[t for t in tasks if t.model.name == name] for name in names]
        if any(len(part) < self.runner.n_jobs for part in parts):
            return [[task for part in parts for task in part]]
        return parts

    def _first_jobs(self, tasks: list[FoldTask]) -> list[Job]:
        """Return one job of every model, to be run first: they give the time that is left."""
        found: dict[str, Job] = {}
        for task in tasks:
            if task.model.name in found:
                continue
            if task.searched:
                found[task.model.name] = self.setting_jobs(task)[0][0]
            else:
                found[task.model.name] = self._final_job(task, task.model.settings()[0])
        return list(found.values())

    def start(self, tasks: list[FoldTask], final: bool = True) -> Results:
        """Return empty results of every outcome, and count the jobs of the tasks."""
        counts: dict[tuple[str, str], int] = {}
        for task in tasks:
            name = task.model.name
            if task.searched:
                key = (name, "setting")
                counts[key] = counts.get(key, 0) + len(task.model.settings())
            if final:
                counts[name, "final"] = counts.get((name, "final"), 0) + 1
        self.progress = Progress.of(counts, self.comparison.plan.inner, self.runner.n_jobs)
        names = [m.name for m in self.comparison.models]
        return {
            outcome: JobResults(
                fits={n: [] for n in names},
                notes={n: [] for n in names},
                permuted={n: [] for n in names},
            )
            for outcome in (range(len(self.comparison.outcomes)) or [ALL])
        }

    def setting_jobs(self, task: FoldTask) -> list[tuple[Job, dict[str, Any]]]:
        """Return a job for every setting of a task, with the setting."""
        splits = self._inner_folds(task)
        return [
            (self._job(task, setting, splits, "setting"), setting)
            for setting in task.model.settings()
        ]

    def best_setting(
        self,
        task: FoldTask,
        jobs: list[tuple[Job, dict[str, Any]]],
        outcomes: dict[str, Outcome],
        results: Results,
    ) -> dict[str, Any] | None:
        """Return the setting with the best score, or None and a failure where every one failed."""
        sign = 1.0 if METRICS[self.comparison.metric].greater_is_better else -1.0
        best: tuple[tuple[float, float], dict[str, Any]] | None = None
        error = ""
        concerned = self._results_of(task.outcome, results)
        for job, setting in jobs:
            facts = outcomes[job.key].facts
            if "error" in facts:
                error = error or facts["error"]
                for one in concerned:
                    one.note(job.model, f"a setting failed and was passed over: {facts['error']}")
                continue
            rank = _rank(sign * facts["score"], facts.get("tie"))
            # The first of equals wins, so the order of the grid is the order of preference.
            if best is None or rank > best[0]:
                best = (rank, setting)
        if best is None:
            for one in concerned:
                one.failures.setdefault(task.model.name, f"every setting failed: {error}")
            return None
        return best[1]

    def do(
        self,
        jobs: list[Job],
        shared: SharedData | None,
        outcomes: dict[str, Outcome],
        results: Results,
    ) -> None:
        """Add the outcome of every job to `outcomes`, from the store or by running it."""
        waiting: dict[str, Job] = {}
        for job in jobs:
            if job.key in outcomes or job.key in waiting:
                continue
            stored = self.store.load(job.key)
            # A failed job is tried again, except where results are only gathered.
            if stored is None or (stored.failed and shared is not None):
                waiting[job.key] = job
            else:
                outcomes[job.key] = stored
                self._count(job, stored, reused=True)
        if shared is None:
            if waiting:
                raise _NotInStoreError(len(waiting))
        else:
            self._tell()

            def on_done(job: Job, outcome: Outcome) -> None:
                outcomes[job.key] = outcome
                self._count(job, outcome)
                self._tell()

            self.runner.run(list(waiting.values()), shared, self.store, on_done)
        for job in jobs:
            # Rows with the same model and views share their jobs.
            if self._count(job, outcomes[job.key], reused=True):
                self._tell()
            for text in outcomes[job.key].facts.get("warnings", []):
                for one in self._results_of(job.outcome, results):
                    one.note(job.model, text)

    def _count(self, job: Job, outcome: Outcome, *, reused: bool = False) -> bool:
        """Count a job of a model as done; return False if it was counted before."""
        if (job.model, job.key) in self._counted:
            return False
        self._counted.add((job.model, job.key))
        self.progress.count(job, outcome, reused=reused)
        return True

    # -- jobs ------------------------------------------------------------------------------

    def _final_job(self, task: FoldTask, setting: dict[str, Any]) -> Job:
        return self._job(task, setting, [(task.fold.train, task.fold.test)], "final")

    def _job(self, task: FoldTask, setting: dict[str, Any], splits: list[Split], kind: str) -> Job:
        comparison, model, y = self.comparison, task.model, task.y
        groups = comparison.plan.inner_groups
        seed = seed_of(comparison, model, task.permutation, task.fold)
        splits = measured_rows(splits, self._measured[model.views], test=kind == "setting")
        estimator = model.make(setting, seed, searching=kind == "setting")
        inner = self._platt_folds(task, estimator) if kind == "final" else []
        more = {"inner": [[np.asarray(part) for part in pair] for pair in inner]} if inner else {}
        key = job_key(
            libraries=libraries(), form=FORM, kind=kind, seed=seed,
            estimator=estimator,
            data=self.fingerprint.of(model.views),
            splits=[[np.asarray(part) for part in pair] for pair in splits],
            labels=[y[np.concatenate(pair)] for pair in splits],
            n_classes=comparison.n_classes,
            metric=comparison.metric if kind == "setting" else "",
            groups=groups, **more,
        )  # fmt: skip
        return Job(
            key=key, kind=kind, model=model.name, repeat=task.fold.repeat, fold=task.fold.number,
            permutation=task.permutation, estimator=estimator, y=y, splits=splits,
            metric=comparison.metric, n_classes=comparison.n_classes, groups=groups,
            outcome=task.outcome, inner=inner, views=model.views,
        )  # fmt: skip

    def _inner_folds(self, task: FoldTask) -> list[Split]:
        """Return the inner folds of a task, made once for all models."""
        at = (task.permutation, task.fold.repeat, task.fold.number)
        if at not in self._inner:
            self._inner[at] = self.comparison.plan.inner_folds(task.labels, task.fold)
        return self._inner[at]

    def _platt_folds(self, task: FoldTask, estimator: Any) -> list[Split]:
        """Return folds of the training rows for Platt scaling, where a model needs it."""
        if not needs_platt(estimator, self.comparison.n_classes) or task.permutation:
            return []
        try:
            has = self._measured[task.model.views]
            return measured_rows(self._inner_folds(task), has, test=True)
        except InputError:
            # Too few rows for inner folds, which this model may not have asked for.
            return []

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.progress)


def _rank(score: float, tie: float | None) -> tuple[float, float]:
    """Order settings by score, and equal ones by the smaller log-loss (or error)."""
    return round(score, _TIE_DIGITS), -float("inf") if tie is None else -tie
