"""run_jobs: the jobs of a comparison, and their results by model and fold.

Models are run in the order listed, or together where workers outnumber their folds. The jobs of a
model come in two rounds: the first scores every setting on the inner folds, the second fits the
selected settings. One job of every model is run before all others, so that the time left can be
estimated from the start.

Of a label matrix the models that take one are fitted to all labels at once, and the others to one
label after another, with settings selected for each. Results are those of every label.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import groupby
from multiprocessing import resource_tracker
from typing import Any

import joblib
import numpy as np
from joblib.externals.loky.process_executor import TerminatedWorkerError

from baldur.evaluation.clinical.calibration import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.job_store import JobResult, JobStore, data_hashes, job_key, libraries
from baldur.evaluation.jobs import Job, Split, Task, fold_tasks, run_job, seed_of, whole_sample
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model, rows_with_views
from baldur.evaluation.progress import Progress
from baldur.evaluation.shared_data import SharedData, exit_with_parent, open_data, share_data
from baldur.exceptions import InputError, StudyError, UnfinishedError

Finished = Generator[tuple[Job, JobResult], None, None]
"""Jobs with their results, each as soon as it is done and stored."""


class Runner:
    """Runs jobs one after another in this process, or several at a time in their own processes."""

    def __init__(self, n_jobs: int = 1) -> None:
        self._n_jobs = n_jobs

    @property
    def n_jobs(self) -> int:
        """Number of jobs that run at a time."""
        return self._n_jobs

    def run(self, jobs: list[Job], shared: SharedData, store: JobStore) -> Finished:
        """Run the jobs in any order, and store each result at once."""
        if self.n_jobs == 1 or len(jobs) <= 1:
            for job in jobs:
                yield job, run_job(shared.data, store, job)
            return
        by_key = {job.key: job for job in jobs}
        # batch_size=1: a job is long enough, and a finished one must be on disk at once.
        parallel = joblib.Parallel(
            n_jobs=self.n_jobs, batch_size=1, max_nbytes=None, return_as="generator_unordered"
        )
        call = joblib.delayed(_run_in_worker)
        try:
            # The workers are started by this call, before the first result is asked for.
            with _interrupts_held_back():
                results = parallel(call(os.getpid(), shared.path, store, job) for job in jobs)
            with closing(results):
                for key, result in results:
                    yield by_key[key], result
        except TerminatedWorkerError as error:
            raise StudyError(
                "A worker process was ended by the system, most often because memory ran out. The "
                "finished jobs are stored; run the same command with fewer jobs (--jobs 1)."
            ) from error


@contextmanager
def _interrupts_held_back() -> Iterator[None]:
    """Hold Ctrl-C back from this thread; processes that it starts in the block never receive it.

    The signal is delivered after the block, or at once where another thread takes it.
    The terminal sends the signal to workers too, which print a traceback where it reaches them
    during their imports. Their parent ends them. Windows has no such mask.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # The tracker would start with the first worker and deliver signals again (Python 3.11).
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_in_worker(parent: int, path: str, store: JobStore, job: Job) -> tuple[str, JobResult]:
    exit_with_parent(parent)
    return job.key, run_job(open_data(path), store, job)


# Scores that differ by rounding are ties: sums over rows in another order differ by about this.
_TIE_DIGITS = 10


@dataclass(frozen=True)
class FinishedTask:
    """A task with the results of its settings and of the fit of the selected one."""

    task: Task
    tried: list[JobResult]  # Of every setting; empty where there is only one
    job: Job | None  # The fit; None where every setting failed, on this fold or another
    result: JobResult | None

    @property
    def error(self) -> str:
        """Why the model has no fit on this fold; "" where it has one."""
        if self.tried and all(result.failed for result in self.tried):
            return _every_setting_failed(self.tried)
        return "" if self.result is None else str(self.result.facts.get("error", ""))


def _every_setting_failed(tried: Sequence[JobResult]) -> str:
    return f"every setting failed: {tried[0].facts['error']}"


def run_jobs(
    comparison: Comparison,
    runner: Runner,
    store: JobStore,
    shard: str | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> list[FinishedTask]:
    """Run the jobs of a comparison that the store does not have, and return the results of all."""
    run = _Run(comparison, runner, store, on_progress)
    tasks = fold_tasks(comparison)
    # All settings of one model on one fold stay together with the fit that needs the best of them,
    # so no shard waits for another. Tasks are ordered by model, so that those of a slow model are
    # spread over the shards.
    with share_data(comparison.data) as shared:
        done = run.run(tasks if shard is None else tasks[tasks_of_shard(shard)], shared)
    if shard is None:
        return done
    try:
        return run.run(tasks, None)
    except UnfinishedError as error:
        raise UnfinishedError(
            f"Shard {shard} is done; at least {error.missing} jobs of other shards are not "
            "finished. The last shard to end writes the results; the same command without --shard "
            "runs the jobs that are left.",
            error.missing,
            {finished.task.model.name: finished.error for finished in done if finished.error},
        ) from None


def tasks_of_shard(text: str) -> slice:
    """Return which tasks belong to a shard that is written like "3/20"."""
    match = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text))
    number, count = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 1 <= number <= count:
        raise InputError(
            "a shard must be written like 3/20, with the number from 1 to the count, but got "
            f"{text!r}; an array job counts from 1 with --array=1-20."
        )
    return slice(number - 1, None, count)


def search_on_all_rows(
    comparison: Comparison,
    model: Model,
    runner: Runner,
    on_progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Return the best setting of one model, on inner folds of all rows."""
    task = Task(model, 0, comparison.y, whole_sample(comparison))
    if not task.searched:
        return model.settings()[0]
    run = _Run(comparison, runner, JobStore(None), on_progress)
    jobs = run.first_jobs(task)
    run.progress._expect(model.name, "setting", len(jobs))
    with share_data(comparison.data) as shared:
        run.do(jobs, shared)
    best = run.best_setting(jobs)
    if best is None:
        raise InputError(_every_setting_failed([run.results[job.key] for job in jobs]))
    return best


class _Run:
    """The jobs of one comparison: how they are made and run."""

    def __init__(
        self,
        comparison: Comparison,
        runner: Runner,
        store: JobStore,
        on_progress: Callable[[Progress], None] | None,
    ) -> None:
        self.comparison, self.runner, self.store = comparison, runner, store
        self.on_progress = on_progress
        self.store.sweep()
        self.results: dict[str, JobResult] = {}
        self.progress = Progress(n_jobs=runner.n_jobs, inner=comparison.plan.inner)
        self._inner: dict[tuple[int, int, int], list[Split]] = {}
        sets = {model.views for model in comparison.models}
        self._hashes = data_hashes(comparison.data, sets)
        self._measured = {views: rows_with_views(comparison.data, views) for views in sets}

    def run(self, tasks: Sequence[Task], shared: SharedData | None) -> list[FinishedTask]:
        """Score settings, and fit the best of each task; without data, take all from the store."""
        self.progress = Progress(n_jobs=self.runner.n_jobs, inner=self.comparison.plan.inner)
        for task in tasks:
            if task.searched:
                self.progress._expect(task.model.name, "setting", len(task.model.settings()))
            self.progress._expect(task.model.name, "final", 1)
        parts = [list(part) for _, part in groupby(tasks, key=lambda task: task.model.name)]
        # One job of every model comes first, so that the time left can be estimated.
        ahead = [self.first_jobs(part[0])[0] for part in parts]
        # Where workers outnumber the tasks of a model, models are run together.
        if any(len(part) < self.runner.n_jobs for part in parts):
            parts = [list(tasks)]
        done: list[FinishedTask] = []
        for part in parts:
            first = [self.first_jobs(task) for task in part]
            self.do([*ahead, *(job for jobs in first for job in jobs)], shared)
            ahead = []
            final = self._final_jobs(part, first)
            self.do([job for job in final if job is not None], shared)
            for task, jobs, job in zip(part, first, final, strict=True):
                tried = [self.results[job.key] for job in jobs if task.searched]
                result = None if job is None else self.results[job.key]
                done.append(FinishedTask(task, tried, job, result))
        return done

    def _final_jobs(self, tasks: list[Task], first: list[list[Job]]) -> list[Job | None]:
        """Return the jobs that predict the test rows with the best setting of every task.

        A model of which every setting failed on one fold has no results, and is not fitted on the
        others.
        """
        best = [
            self.best_setting(jobs) if task.searched else jobs[0].setting
            for task, jobs in zip(tasks, first, strict=True)
        ]
        failed = {
            (task.model.name, task.outcome)
            for task, setting in zip(tasks, best, strict=True)
            if setting is None
        }
        final: list[Job | None] = []
        for task, jobs, setting in zip(tasks, first, best, strict=True):
            if not task.searched:
                final.append(jobs[0])
            elif setting is None or (task.model.name, task.outcome) in failed:
                self.progress._expect(task.model.name, "final", -1)
                final.append(None)
            else:
                final.append(self._final_job(task, setting))
        return final

    def do(self, jobs: Sequence[Job], shared: SharedData | None) -> None:
        """Get the result of every job from the store, or by running it."""
        waiting: dict[str, Job] = {}
        for job in jobs:
            if job.key in self.results or job.key in waiting:
                continue
            stored = self.store.load(job.key)
            # A failed job is tried again, except where results are only gathered.
            if stored is None or (stored.failed and shared is not None):
                waiting[job.key] = job
            else:
                self.results[job.key] = stored
                self.progress._count(job, stored, reused=True)
        if shared is None and waiting:
            raise UnfinishedError("Some results are not in the store.", len(waiting))
        if shared is not None:
            self._tell()
            with closing(self.runner.run(list(waiting.values()), shared, self.store)) as finished:
                for job, result in finished:
                    self.results[job.key] = result
                    self.progress._count(job, result)
                    self._tell()
        # Jobs with one key, of models that are alike, were run once and are counted for each.
        for job in jobs:
            counted = self.progress._count(job, self.results[job.key], reused=True)
            if counted and shared is not None:
                self._tell()

    def best_setting(self, jobs: Sequence[Job]) -> dict[str, Any] | None:
        """Return the setting with the best score, or None where every one failed."""
        sign = 1.0 if METRICS[self.comparison.metric].greater_is_better else -1.0

        def rank(job: Job) -> tuple[float, float]:
            """Return the score; equal ones are ordered by the smaller log-loss (or error)."""
            facts = self.results[job.key].facts
            tie = -float("inf") if facts.get("tie") is None else -facts["tie"]
            return round(sign * facts["score"], _TIE_DIGITS), tie

        scored = [job for job in jobs if not self.results[job.key].failed]
        # The first of equals wins, so the order of the grid is the order of preference.
        return max(scored, key=rank).setting if scored else None

    # -- jobs ------------------------------------------------------------------------------

    def first_jobs(self, task: Task) -> list[Job]:
        """Return a job for every setting of a task, or the only fit of a task with one setting."""
        settings = task.model.settings()
        if not task.searched:
            return [self._final_job(task, settings[0])]
        splits = self._inner_folds(task)
        return [self._job(task, setting, splits, "setting") for setting in settings]

    def _final_job(self, task: Task, setting: dict[str, Any]) -> Job:
        """Return the job that fits the training rows of a task and predicts its test rows."""
        return self._job(task, setting, [(task.fold.train, task.fold.test)], "final")

    def _job(self, task: Task, setting: dict[str, Any], splits: list[Split], kind: str) -> Job:
        """Return a job, whose key is a hash of everything that its result depends on."""
        comparison, model, y = self.comparison, task.model, task.y
        groups, n_classes = comparison.plan.inner_groups, comparison.n_classes
        searching = kind == "setting"
        seed = seed_of(comparison, model, task.permutation, task.fold)
        splits = _measured_rows(splits, self._measured[model.views], test=searching)
        estimator = model.make(setting, seed, searching=searching)
        inner = [] if searching else self._platt_folds(task, estimator)
        key = job_key(
            libraries=libraries(), kind=kind, seed=seed, estimator=estimator,
            data=self._hashes[model.views], splits=splits, inner=inner,
            labels=[y[np.concatenate(pair)] for pair in splits],
            n_classes=n_classes, metric=comparison.metric if searching else "", groups=groups,
        )  # fmt: skip
        return Job(
            key, kind, task, setting, seed, splits, comparison.metric, n_classes, groups, inner
        )

    def _inner_folds(self, task: Task) -> list[Split]:
        """Return the inner folds of a task, made once for all models."""
        key = (task.permutation, task.fold.repeat, task.fold.number)
        if key not in self._inner:
            self._inner[key] = self.comparison.plan.inner_folds(task.labels, task.fold)
        return self._inner[key]

    def _platt_folds(self, task: Task, estimator: Any) -> list[Split]:
        """Return folds of the training rows for Platt scaling, where a model needs it."""
        if not needs_platt(estimator, self.comparison.n_classes) or task.permutation:
            return []
        try:
            measured = self._measured[task.model.views]
            return _measured_rows(self._inner_folds(task), measured, test=True)
        except InputError:
            # Too few rows for inner folds, which this model may not have asked for.
            return []

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.progress)


def _measured_rows(splits: list[Split], measured: np.ndarray | None, *, test: bool) -> list[Split]:
    """Leave samples without any view of a model out of training rows, with `test` of test rows too.

    Shapes: splits of (train, test) row numbers, measured (n_samples,); returns as splits.
    """
    if measured is None or measured.all():
        return splits
    return [
        (train[measured[train]], rows[measured[rows]] if test else rows) for train, rows in splits
    ]
