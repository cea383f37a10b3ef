"""run_jobs: the jobs of a comparison, and their results gathered by model and fold.

Models are run in the order listed, or together where workers outnumber their folds. The jobs of a
model come in two rounds: the first scores every setting on the inner folds, the second fits the
selected settings. One job of every model is run before all others, so that the time left can be
estimated from the start.

Of a label matrix the models that take one are fitted to all labels at once, and the others to one
label after another, with settings selected for each. Results are those of every label.
"""

from __future__ import annotations

import os
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from itertools import groupby
from multiprocessing import resource_tracker
from typing import Any, Protocol

import joblib
import numpy as np
from joblib.externals.loky.process_executor import TerminatedWorkerError

from baldur.evaluation.clinical.logistic_fit import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.job_results import JobResults, Results, gather_fits
from baldur.evaluation.job_store import Fingerprint, JobStore, Outcome, job_key, libraries
from baldur.evaluation.jobs import (
    ALL,
    Job,
    Shard,
    Split,
    Task,
    fold_tasks,
    run_job,
    seed_of,
    whole_sample,
)
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model
from baldur.evaluation.shared_data import SharedData, exit_with_parent, open_data, share_data
from baldur.evaluation.view_sets import measured_rows, rows_with_views
from baldur.exceptions import InputError, StudyError, UnfinishedError


class Runner(Protocol):
    """Where jobs are run: processes of this machine, or a cluster."""

    @property
    def n_jobs(self) -> int:
        """Number of jobs that run at a time."""
        ...

    def run(
        self,
        jobs: list[Job],
        shared: SharedData,
        store: JobStore,
        on_done: Callable[[Job, Outcome], None],
    ) -> None:
        """Run the jobs in any order, store each result at once, and call `on_done` with it."""
        ...


@dataclass(frozen=True)
class LocalRunner:
    """One job after another in this process, or several at a time in processes of their own."""

    n_jobs: int = 1

    def run(
        self,
        jobs: list[Job],
        shared: SharedData,
        store: JobStore,
        on_done: Callable[[Job, Outcome], None],
    ) -> None:
        """Run the jobs; see `Runner.run`."""
        if self.n_jobs == 1 or len(jobs) <= 1:
            for job in jobs:
                on_done(job, run_job(shared.data, store, job))
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
                for key, outcome in results:
                    on_done(by_key[key], outcome)
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
    # It would start with the first worker, and in doing so deliver signals again (Python 3.11).
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _run_in_worker(parent: int, path: str, store: JobStore, job: Job) -> tuple[str, Outcome]:
    exit_with_parent(parent)
    return job.key, run_job(open_data(path), store, job)


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

    total: int = 0
    n_jobs: int = 1
    inner: int = 5
    done: int = 0
    reused: int = 0
    failed: int = 0
    current: str = ""
    started: float = field(default_factory=time.monotonic)
    _left: Counter[tuple[str, str]] = field(default_factory=Counter)
    _seconds: dict[tuple[str, str], list[float]] = field(default_factory=lambda: defaultdict(list))
    _counted: set[tuple[str, str]] = field(default_factory=set)

    def _expect(self, model: str, kind: str, count: int) -> None:
        """Expect more jobs of a model, or fewer where its settings failed."""
        self.total += count
        self._left[model, kind] += count

    def _count(self, job: Job, outcome: Outcome, *, reused: bool = False) -> bool:
        """Count a job that was run, or found in the store; return False if it was counted before.

        Models with the same estimator and views have the same jobs, which are counted for each.
        """
        model = job.task.model.name
        if (model, job.key) in self._counted:
            return False
        self._counted.add((model, job.key))
        self.done += 1
        self.reused += reused
        self.failed += outcome.failed and not reused
        self.current = f"{model}, fold {job.task.fold.number + 1}"
        self._left[model, job.kind] -= 1
        if "seconds" in outcome.facts:
            self._seconds[model, job.kind].append(float(outcome.facts["seconds"]))
        return True

    def seconds_left(self) -> float | None:
        """Estimate the time left from the mean time of the same kind of job of the same model.

        Returns
        -------
        float or None
            None until a job of every model that has jobs left has been timed.
        """
        # A job of a setting has a fit for each inner fold, on (inner - 1) / inner of the rows.
        fits = max(self.inner - 1, 1)
        total = 0.0
        for (model, kind), count in self._left.items():
            if count <= 0:
                continue
            seconds, factor = self._seconds[model, kind], 1.0
            if not seconds:
                other = "final" if kind == "setting" else "setting"
                factor = fits if kind == "setting" else 1 / fits
                seconds = self._seconds[model, other]
            if not seconds:
                return None
            total += count * factor * sum(seconds) / len(seconds)
        return total / self.n_jobs


FORM = 3
"""Part of every key; raised whenever jobs store something else."""

# Scores that differ by rounding are ties: sums over rows in another order differ by about this.
_TIE_DIGITS = 10


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
    with share_data(comparison.data) as shared:
        results = run.both_rounds(tasks if shard is None else shard.part_of(tasks), shared)
    if shard is None:
        return list(results.values())
    try:
        return list(run.both_rounds(tasks, None).values())
    except UnfinishedError as error:
        raise UnfinishedError(
            f"Shard {shard} is done; at least {error.missing} jobs of other shards are not "
            "finished. The last shard to end writes the results; the same command without --shard "
            "runs the jobs that are left.",
            error.missing,
            {name: why for one in results.values() for name, why in one.failures.items()},
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
    run = _Run(comparison, runner, None, on_progress)
    results = run.start()
    run.progress._expect(model.name, "setting", len(settings))
    jobs = run.first_jobs(Task(model, 0, comparison.y, whole_sample(comparison)))
    with share_data(comparison.data) as shared:
        run.do(jobs, shared, results)
    best = run.best_setting(jobs, results)
    if best is None:
        raise InputError(next(iter(results.values())).failures[model.name])
    return best


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
        self.outcomes: dict[str, Outcome] = {}
        self.progress = Progress()
        self._inner: dict[tuple[int, int, int], list[Split]] = {}
        sets = {model.views for model in comparison.models}
        self._measured = {views: rows_with_views(comparison.data, views) for views in sets}

    def start(self) -> Results:
        """Return empty results of every outcome, and count jobs from 0."""
        inner, names = self.comparison.plan.inner, [m.name for m in self.comparison.models]
        self.progress = Progress(n_jobs=self.runner.n_jobs, inner=inner)
        outcomes = range(len(self.comparison.outcomes)) or [ALL]
        return {
            outcome: JobResults(
                fits={n: [] for n in names},
                notes={n: [] for n in names},
                permuted={n: [] for n in names},
            )
            for outcome in outcomes
        }

    def both_rounds(self, tasks: Sequence[Task], shared: SharedData | None) -> Results:
        """Select settings and fit them; without data, take all results from the store."""
        results = self.start()
        for task in tasks:
            if task.searched:
                self.progress._expect(task.model.name, "setting", len(task.model.settings()))
            self.progress._expect(task.model.name, "final", 1)
        parts = [list(part) for _, part in groupby(tasks, key=lambda task: task.model.name)]
        # One job of every model comes first, so that the time left can be estimated.
        ahead = [self.first_jobs(part[0])[0] for part in parts]
        if any(len(part) < self.runner.n_jobs for part in parts):
            parts = [list(tasks)]
        final: list[Job] = []
        for part in parts:
            first = [self.first_jobs(task) for task in part]
            self.do([*ahead, *(job for jobs in first for job in jobs)], shared, results)
            ahead = []
            final += self._second_round(part, first, shared, results)
        gather_fits(self.comparison, final, self.outcomes, results)
        return results

    def _second_round(
        self, tasks: list[Task], first: list[list[Job]], shared: SharedData | None, results: Results
    ) -> list[Job]:
        """Fit the best setting of every task, and return the jobs that predict its test rows."""
        best = [self.best_setting(jobs, results) for jobs in first if jobs[0].kind == "setting"]
        final, settings = [], iter(best)
        for task, jobs in zip(tasks, first, strict=True):
            if not task.searched:
                final.append(jobs[0])
                continue
            name, setting = task.model.name, next(settings)
            if setting is None or any(name in one.failures for one in _concerned(task, results)):
                self.progress._expect(name, "final", -1)
            else:
                final.append(self._final_job(task, setting))
        self.do(final, shared, results)
        return final

    def do(self, jobs: Sequence[Job], shared: SharedData | None, results: Results) -> None:
        """Get the outcome of every job from the store, or by running it."""
        waiting: dict[str, Job] = {}
        for job in jobs:
            if job.key in self.outcomes or job.key in waiting:
                continue
            stored = self.store.load(job.key)
            # A failed job is tried again, except where results are only gathered.
            if stored is None or (stored.failed and shared is not None):
                waiting[job.key] = job
            else:
                self.outcomes[job.key] = stored
                self.progress._count(job, stored, reused=True)
        if shared is None:
            if waiting:
                raise UnfinishedError("Some results are not in the store.", len(waiting))
        else:
            self._tell()

            def on_done(job: Job, outcome: Outcome) -> None:
                self.outcomes[job.key] = outcome
                self.progress._count(job, outcome)
                self._tell()

            self.runner.run(list(waiting.values()), shared, self.store, on_done)
        for job in jobs:
            outcome = self.outcomes[job.key]
            if self.progress._count(job, outcome, reused=True) and shared is not None:
                self._tell()
            for text in outcome.facts.get("warnings", []):
                for one in _concerned(job.task, results):
                    one.note(job.task.model.name, text)

    def best_setting(self, jobs: Sequence[Job], results: Results) -> dict[str, Any] | None:
        """Return the setting with the best score, or None and a failure where every one failed."""
        sign = 1.0 if METRICS[self.comparison.metric].greater_is_better else -1.0
        best: tuple[tuple[float, float], dict[str, Any]] | None = None
        errors = []
        name, concerned = jobs[0].task.model.name, _concerned(jobs[0].task, results)
        for job in jobs:
            facts = self.outcomes[job.key].facts
            if "error" in facts:
                errors.append(facts["error"])
                for one in concerned:
                    one.note(name, f"a setting failed and was passed over: {facts['error']}")
                continue
            tie = -float("inf") if facts.get("tie") is None else -facts["tie"]
            # Equal scores are ordered by the smaller log-loss (or error).
            rank = (round(sign * facts["score"], _TIE_DIGITS), tie)
            # The first of equals wins, so the order of the grid is the order of preference.
            if best is None or rank > best[0]:
                best = (rank, job.setting)
        if best is None:
            for one in concerned:
                one.failures.setdefault(name, f"every setting failed: {errors[0]}")
            return None
        return best[1]

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
        comparison, model, y = self.comparison, task.model, task.y
        groups, n_classes = comparison.plan.inner_groups, comparison.n_classes
        searching = kind == "setting"
        seed = seed_of(comparison, model, task.permutation, task.fold)
        splits = measured_rows(splits, self._measured[model.views], test=searching)
        estimator = model.make(setting, seed, searching=searching)
        inner = [] if searching else self._platt_folds(task, estimator)
        more = {"inner": [[np.asarray(part) for part in pair] for pair in inner]} if inner else {}
        key = job_key(
            libraries=libraries(), form=FORM, kind=kind, seed=seed,
            estimator=estimator,
            data=self.fingerprint.of(model.views),
            splits=[[np.asarray(part) for part in pair] for pair in splits],
            labels=[y[np.concatenate(pair)] for pair in splits],
            n_classes=n_classes,
            metric=comparison.metric if searching else "",
            groups=groups, **more,
        )  # fmt: skip
        return Job(
            key, kind, task, setting, seed, splits, comparison.metric, n_classes, groups, inner
        )

    def _inner_folds(self, task: Task) -> list[Split]:
        """Return the inner folds of a task, made once for all models."""
        at = (task.permutation, task.fold.repeat, task.fold.number)
        if at not in self._inner:
            self._inner[at] = self.comparison.plan.inner_folds(task.labels, task.fold)
        return self._inner[at]

    def _platt_folds(self, task: Task, estimator: Any) -> list[Split]:
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


def _concerned(task: Task, results: Results) -> list[JobResults]:
    """Return the results that a task is for: of one outcome, or of all."""
    return list(results.values()) if task.outcome == ALL else [results[task.outcome]]
