"""run_jobs: the jobs of a comparison, and their results gathered by model and fold.

Models are run in the order listed. The jobs of a model come in two rounds: the first scores every
setting on the inner folds, the second fits the selected settings. One job of every model is run
before all others, so that the time left can be estimated from the start.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from baldur.evaluation.clinical.logistic_fit import needs_platt
from baldur.evaluation.design import Comparison
from baldur.evaluation.engine.job import Job, OuterFit
from baldur.evaluation.engine.progress import Progress
from baldur.evaluation.engine.runners import LocalRunner, Runner
from baldur.evaluation.engine.shared_data import SharedData
from baldur.evaluation.engine.store import JobStore, Outcome, environment, fingerprint, job_key
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model
from baldur.evaluation.splits import Fold, permute_labels
from baldur.exceptions import InputError, UnfinishedError

__all__ = ["JobResults", "Shard", "run_jobs", "search_on_all_rows", "seed_of", "without_prefix"]

FORM = 3
"""Part of every key; raised whenever jobs store something else."""

# Scores that differ by rounding are ties: sums over rows in another order differ by about this.
_TIE_DIGITS = 10

_MOST_NOTES = 10

Split = tuple[np.ndarray, np.ndarray]
TaskKey = tuple[str, int, int, int]


@dataclass(frozen=True)
class Shard:
    """Part `number` (from 1) of `count` parts of the work, for job arrays that share a folder."""

    number: int
    count: int

    @classmethod
    def of(cls, text: str) -> Shard:
        """Read a shard that is written like "3/20".

        Parameters
        ----------
        text : str
            Number of the part and number of parts.

        Returns
        -------
        Shard

        Examples
        --------
        >>> from baldur.evaluation.engine.run import Shard
        >>> Shard.of("3/20")
        Shard(number=3, count=20)
        """
        found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", str(text))
        number, count = (int(found[1]), int(found[2])) if found else (0, 0)
        if not 1 <= number <= count:
            raise InputError(
                "a shard must be written like 3/20, with the number from 1 to the count, but got "
                f"{text!r}; an array job counts from 1 with --array=1-20."
            )
        return cls(number, count)

    def __str__(self) -> str:
        return f"{self.number}/{self.count}"

    def part_of(self, tasks: Sequence[FoldTask], n_models: int) -> list[FoldTask]:
        """Return the tasks of this part; every task belongs to one part.

        All settings of one model on one fold stay together with the fit that needs the best of
        them, so no part waits for another.

        Parameters
        ----------
        tasks : sequence of FoldTask
            All tasks, with the models of a fold side by side.
        n_models : int
            Number of models.

        Returns
        -------
        list of FoldTask
        """
        folds = len(tasks) // n_models
        # Numbered model by model, so that slow models are spread over the parts.
        return [
            task
            for i, task in enumerate(tasks)
            if ((i % n_models) * folds + i // n_models) % self.count == self.number - 1
        ]


@dataclass(frozen=True)
class FoldTask:
    """One model on one outer fold, with the true labels or one permutation of them."""

    model: Model
    permutation: int
    y: np.ndarray
    fold: Fold

    @property
    def key(self) -> TaskKey:
        """Name of the model, permutation, repeat and fold."""
        return (self.model.name, self.permutation, self.fold.repeat, self.fold.number)

    @property
    def searched(self) -> bool:
        """Whether there are settings to select from."""
        return len(self.model.settings()) > 1


@dataclass
class JobResults:
    """What the jobs of a comparison gave.

    Attributes
    ----------
    fits : dict of str to list of OuterFit
        Fits of every model on the outer folds, with the true labels.
    failures : dict of str to str
        Models without results, and why.
    notes : dict of str to list of str
        Warnings and settings that failed, of every model.
    permuted : dict of str to list of float
        Score of every model with each permutation of the labels.
    no_signal : dict of str to int
        Folds of a model that showed no evidence of signal on held-out data.
    """

    fits: dict[str, list[OuterFit]]
    failures: dict[str, str] = field(default_factory=dict)
    notes: dict[str, list[str]] = field(default_factory=dict)
    permuted: dict[str, list[float]] = field(default_factory=dict)
    no_signal: dict[str, int] = field(default_factory=dict)

    def note(self, model: str, text: str) -> None:
        """Add a note, unless the model has it already or has too many."""
        notes = self.notes[model]
        if text not in notes and len(notes) < _MOST_NOTES:
            notes.append(text)


def run_jobs(
    comparison: Comparison,
    runner: Runner | None = None,
    store: JobStore | None = None,
    shard: Shard | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> JobResults:
    """Run the jobs of a comparison that the store does not have, and gather all results.

    Parameters
    ----------
    comparison : Comparison
        As `open_comparison` returns it.
    runner : Runner, optional
        Where jobs are run; default one after another in this process.
    store : JobStore, optional
        Where results are found and written; default nowhere.
    shard : Shard, optional
        Run this part only. Results are gathered if all other parts are in the store.
    on_progress : callable, optional
        Called with a `Progress` after every job.

    Returns
    -------
    JobResults

    Raises
    ------
    UnfinishedError
        Where the jobs of other shards are not yet in the store.
    """
    run = _Run(comparison, runner, store, on_progress)
    tasks = fold_tasks(comparison)
    with SharedData(comparison.data) as shared:
        if shard is None:
            return run.both_rounds(tasks, shared)
        own = run.both_rounds(shard.part_of(tasks, len(comparison.models)), shared)
    try:
        return run.both_rounds(tasks, None)
    except _NotInStoreError as missing:
        raise UnfinishedError(
            f"Shard {shard} is done; at least {missing.count} jobs of others are not. The last "
            "shard to end writes the results; the same command without --shard runs the jobs that "
            "are left.",
            missing.count,
            own.failures,
        ) from None


def search_on_all_rows(
    comparison: Comparison,
    model: Model,
    runner: Runner | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> dict[str, Any]:
    """Return the best setting of one model, on inner folds of all rows.

    Parameters
    ----------
    comparison : Comparison
        As `open_comparison` returns it.
    model : Model
        One of its models.
    runner, on_progress
        As in `run_jobs`.

    Returns
    -------
    dict
        Setting, under the parameter names of the model's estimator.
    """
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
        raise InputError(results.failures[model.name])
    return best


def whole_sample(comparison: Comparison) -> Fold:
    """Return a fold that trains on all rows and tests on none."""
    rows = np.arange(len(comparison.y))
    return Fold(0, 0, rows, rows[:0])


def fold_tasks(comparison: Comparison) -> list[FoldTask]:
    """Return every model on every outer fold, with the true labels and permuted ones."""
    labels = [comparison.y]
    for b in range(1, comparison.permutations + 1):
        rng = np.random.default_rng([comparison.plan.seed, 3, b])
        labels.append(permute_labels(comparison.y, comparison.plan.groups, rng))
    return [
        FoldTask(model, b, y, fold)
        for b, y in enumerate(labels)
        for fold in comparison.plan.outer_folds(y)
        for model in comparison.models
    ]


def seed_of(comparison: Comparison, model: Model, permutation: int, fold: Fold) -> int:
    """Return the seed of one model on one outer fold."""
    place = [crc32(model.name.encode()), permutation, fold.repeat, fold.number]
    entropy = [comparison.plan.seed, 4, *place]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


def without_prefix(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting under the names that the model itself uses."""
    while any(k.startswith("estimator__") for k in setting):
        setting = {k.removeprefix("estimator__"): v for k, v in setting.items()}
    return dict(setting)


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
        self.data_hash = fingerprint(comparison.data)
        self.progress = Progress(0)
        self._inner: dict[tuple[int, int, int], list[Split]] = {}

    def both_rounds(self, tasks: list[FoldTask], shared: SharedData | None) -> JobResults:
        """Select settings and fit, model after model; without data, from the store alone."""
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
            self.progress.leave_out(results.failures)
            selected = {
                task.key: self._final_job(task, settings[task.key])
                for task in part
                if task.searched and task.model.name not in results.failures
            }
            self.do(list(selected.values()), shared, outcomes, results)
            self._gather(part, final | selected, settings, outcomes, results)
        return results

    def _in_turn(self, tasks: list[FoldTask]) -> list[list[FoldTask]]:
        """Return the tasks model by model, or all together if there are more workers than folds."""
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

    def start(self, tasks: list[FoldTask], final: bool = True) -> JobResults:
        """Return empty results, and count the jobs of the tasks."""
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
        return JobResults(
            fits={n: [] for n in names},
            notes={n: [] for n in names},
            permuted={n: [] for n in names},
        )

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
        results: JobResults,
    ) -> dict[str, Any] | None:
        """Return the setting with the best score, or None and a failure where every one failed."""
        sign = 1.0 if METRICS[self.comparison.metric].greater_is_better else -1.0
        best: tuple[tuple[float, float], dict[str, Any]] | None = None
        error = ""
        for job, setting in jobs:
            facts = outcomes[job.key].facts
            if "error" in facts:
                error = error or facts["error"]
                results.note(job.model, f"a setting failed and was passed over: {facts['error']}")
                continue
            rank = _rank(sign * facts["score"], facts.get("tie"))
            # The first of equals wins, so the order of the grid is the order of preference.
            if best is None or rank > best[0]:
                best = (rank, setting)
        if best is None:
            results.failures.setdefault(task.model.name, f"every setting failed: {error}")
            return None
        return best[1]

    def do(
        self,
        jobs: list[Job],
        shared: SharedData | None,
        outcomes: dict[str, Outcome],
        results: JobResults,
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
                self.progress.count(job, stored, reused=True)
        if shared is None:
            if waiting:
                raise _NotInStoreError(len(waiting))
        else:
            self._tell()

            def on_done(job: Job, outcome: Outcome) -> None:
                outcomes[job.key] = outcome
                self.progress.count(job, outcome)
                self._tell()

            self.runner.run(list(waiting.values()), shared, self.store, on_done)
        for job in jobs:
            for text in outcomes[job.key].facts.get("warnings", []):
                results.note(job.model, text)

    def _gather(
        self,
        tasks: list[FoldTask],
        jobs: dict[TaskKey, Job],
        settings: dict[TaskKey, dict[str, Any]],
        outcomes: dict[str, Outcome],
        results: JobResults,
    ) -> None:
        """Put the fits of every model into the results, and its scores with permuted labels."""
        metric, n_classes = self.comparison.metric, self.comparison.n_classes
        scores: dict[tuple[str, int], list[float]] = {}
        for task in tasks:
            if task.key not in jobs:
                continue
            job = jobs[task.key]
            outcome = outcomes[job.key]
            if outcome.failed:
                results.failures.setdefault(job.model, outcome.facts["error"])
                continue
            fit = OuterFit.from_outcome(job, without_prefix(settings[task.key]), outcome)
            if task.permutation == 0:
                results.fits[job.model].append(fit)
                if outcome.facts.get("no_signal"):
                    results.no_signal[job.model] = results.no_signal.get(job.model, 0) + 1
            else:
                at = (job.model, task.permutation)
                scores.setdefault(at, []).append(fit.score(metric, task.y, n_classes))
        for (name, _), values in sorted(scores.items()):
            results.permuted[name].append(float(np.nanmean(values)))
        for name in {task.model.name for task in tasks} & set(results.no_signal):
            count, folds = results.no_signal[name], len(results.fits[name])
            results.notes[name].append(
                f"no evidence of signal on held-out data in {count} of {folds} folds; do not "
                "interpret the features selected there"
            )

    # -- jobs ------------------------------------------------------------------------------

    def _final_job(self, task: FoldTask, setting: dict[str, Any]) -> Job:
        return self._job(task, setting, [(task.fold.train, task.fold.test)], "final")

    def _job(self, task: FoldTask, setting: dict[str, Any], splits: list[Split], kind: str) -> Job:
        comparison, model, y = self.comparison, task.model, task.y
        groups = comparison.plan.inner_groups
        seed = seed_of(comparison, model, task.permutation, task.fold)
        estimator = model.make(setting, seed, searching=kind == "setting")
        inner = self._platt_folds(task, estimator) if kind == "final" else []
        more = {"inner": [[np.asarray(part) for part in pair] for pair in inner]} if inner else {}
        key = job_key(
            environment=environment(), form=FORM, kind=kind, data=self.data_hash, seed=seed,
            estimator=estimator,
            splits=[[np.asarray(part) for part in pair] for pair in splits],
            labels=[y[np.concatenate(pair)] for pair in splits],
            n_classes=comparison.n_classes,
            metric=comparison.metric if kind == "setting" else "",
            groups=groups, **more,
        )  # fmt: skip
        return Job(
            key=key, kind=kind, model=model.name, repeat=task.fold.repeat, fold=task.fold.number,
            permutation=task.permutation, estimator=estimator, y=y, splits=splits,
            metric=comparison.metric, n_classes=comparison.n_classes, groups=groups, inner=inner,
        )  # fmt: skip

    def _inner_folds(self, task: FoldTask) -> list[Split]:
        """Return the inner folds of a task, made once for all models."""
        at = (task.permutation, task.fold.repeat, task.fold.number)
        if at not in self._inner:
            self._inner[at] = self.comparison.plan.inner_folds(task.y, task.fold)
        return self._inner[at]

    def _platt_folds(self, task: FoldTask, estimator: Any) -> list[Split]:
        """Return folds of the training rows for Platt scaling, where a model needs it."""
        if not needs_platt(estimator, self.comparison.n_classes) or task.permutation:
            return []
        try:
            return self._inner_folds(task)
        except InputError:
            # Too few rows for inner folds, which this model may not have asked for.
            return []

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress(self.progress)


def _rank(score: float, tie: float | None) -> tuple[float, float]:
    """Order settings by score, and equal ones by the smaller log-loss (or error)."""
    return round(score, _TIE_DIGITS), -float("inf") if tie is None else -tie
