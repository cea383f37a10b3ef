"""The jobs of one comparison, in two rounds: every setting, then the chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

from baldur.evaluation.design import Comparison
from baldur.evaluation.environment import environment
from baldur.evaluation.handle import DataHandle, fingerprint
from baldur.evaluation.jobs import Job, LocalRunner, Runner
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model
from baldur.evaluation.permutation import permute_labels
from baldur.evaluation.platt import needs_platt
from baldur.evaluation.progress import Progress
from baldur.evaluation.result import Fit
from baldur.evaluation.shard import Shard
from baldur.evaluation.splits import Fold
from baldur.evaluation.store import JobStore, Outcome, job_key
from baldur.exceptions import InputError, UnfinishedError

__all__ = ["Place", "Rounds", "seed_of", "without_prefix"]


def without_prefix(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting under the names the model itself uses."""
    while any(k.startswith("estimator__") for k in setting):
        setting = {k.removeprefix("estimator__"): v for k, v in setting.items()}
    return dict(setting)


FORM = 2
"""Changes whenever jobs keep something else in the store."""

# Scores that differ by rounding are ties: sums over rows in another order differ by about this.
_TIE_DIGITS = 10


def _rank(score: float, tie: float | None) -> tuple[float, float]:
    """Order settings by score, and equal ones by the smaller log-loss (or error)."""
    return round(score, _TIE_DIGITS), -float("inf") if tie is None else -tie


PlaceKey = tuple[str, int, int, int]


@dataclass(frozen=True)
class Place:
    """One model on one outer fold, with one order of the labels."""

    model: Model
    permutation: int
    y: np.ndarray
    fold: Fold

    @property
    def key(self) -> PlaceKey:
        """Name of the model, permutation, repeat and fold."""
        return (self.model.name, self.permutation, self.fold.repeat, self.fold.number)

    @property
    def searched(self) -> bool:
        """Whether there are settings to choose from."""
        return len(self.model.settings()) > 1


def seed_of(comparison: Comparison, model: Model, permutation: int, fold: Fold) -> int:
    """Return the seed of one model on one outer fold."""
    place = [crc32(model.name.encode()), permutation, fold.repeat, fold.number]
    entropy = [comparison.plan.seed, 4, *place]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])


class _NotInStoreError(Exception):
    """Results are not in the store."""

    def __init__(self, count: int) -> None:
        super().__init__(count)
        self.count = count


@dataclass
class Rounds:
    """The jobs of one comparison, in two rounds: all settings, then all chosen ones."""

    comparison: Comparison
    runner: Runner = field(default_factory=LocalRunner)
    store: JobStore = field(default_factory=lambda: JobStore(None))
    shard: Shard | None = None
    progress: Callable[[Progress], None] | None = None

    def begin(self) -> None:
        """Look at the data once, and forget what went wrong before."""
        self.failures: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {m.name: [] for m in self.comparison.models}
        self.store.sweep()
        self.data = fingerprint(self.comparison.data)

    def run(self) -> tuple[dict[str, list[Fit]], dict[str, str], dict[str, list[str]]]:
        """Do what is not done, and gather everything.

        With a shard only its part is done; everything is gathered if the others are done too.
        """
        self.begin()
        places = self._places()
        with DataHandle(self.comparison.data) as handle:
            if self.shard is None:
                return self._both_rounds(places, handle)
            self._both_rounds(self.shard.part_of(places, self.comparison.models), handle)
        own = self.failures
        self.failures = {}
        try:
            return self._both_rounds(places, None)
        except _NotInStoreError as missing:
            raise UnfinishedError(
                f"Shard {self.shard} is done; at least {missing.count} jobs of others are not. The "
                "last shard to end writes the results; the same command without --shard does what "
                "is left.",
                missing.count,
                own,
            ) from None

    def choose_on_all_rows(self, place: Place) -> dict[str, Any]:
        """Return the best setting of one model, on inner folds of all rows."""
        self.begin()
        self.state = Progress(total=len(place.model.settings()), n_jobs=self.runner.n_jobs)
        with DataHandle(self.comparison.data) as handle:
            best = self.choose([place], handle)
        if self.failures:
            raise InputError(self.failures[place.model.name])
        chosen: dict[str, Any] = best[place.key][1]
        return chosen

    def _places(self) -> list[Place]:
        """Every model on every outer fold, with the labels as they are and permuted."""
        labels = [self.comparison.y]
        for b in range(1, self.comparison.permutations + 1):
            rng = np.random.default_rng([self.comparison.plan.seed, 3, b])
            labels.append(permute_labels(self.comparison.y, self.comparison.plan.groups, rng))
        return [
            Place(model, b, y, fold)
            for b, y in enumerate(labels)
            for fold in self.comparison.plan.outer_folds(y)
            for model in self.comparison.models
        ]

    def _both_rounds(
        self, places: list[Place], handle: DataHandle | None
    ) -> tuple[dict[str, list[Fit]], dict[str, str], dict[str, list[str]]]:
        """Choose and fit; without data, from what is in the store alone."""
        total = sum(len(p.model.settings()) for p in places if p.searched) + len(places)
        self.state = Progress(total=total, n_jobs=self.runner.n_jobs)
        self.fits: dict[str, list[Fit]] = {m.name: [] for m in self.comparison.models}
        self.permuted_scores: dict[str, list[float]] = {m.name: [] for m in self.comparison.models}
        for part in self._in_turn(places):
            searched = [p for p in part if p.searched]
            self._fit(part, self.choose(searched, handle) if searched else {}, handle)
        return self.fits, self.failures, self.notes

    def _in_turn(self, places: list[Place]) -> list[list[Place]]:
        """Model after model, as listed; all at once where there are more workers than folds."""
        by_model = [[p for p in places if p.model.name == m.name] for m in self.comparison.models]
        if any(len(part) < self.runner.n_jobs for part in by_model):
            return [[p for part in by_model for p in part]]
        return by_model

    def choose(self, places: list[Place], handle: DataHandle | None) -> dict[PlaceKey, Any]:
        """Round one: the best setting of each model and outer fold."""
        jobs, tried = [], []
        for place in places:
            inner = self.comparison.plan.inner_folds(place.y, place.fold)
            for setting in place.model.settings():
                jobs.append(self._job(place, setting, inner, "setting"))
                tried.append((place.key, setting))
        outcomes = self._do(jobs, handle)
        sign = 1.0 if METRICS[self.comparison.metric].greater_is_better else -1.0
        best: dict[PlaceKey, Any] = {}
        errors: dict[PlaceKey, str] = {}
        for job, (key, setting) in zip(jobs, tried, strict=True):
            facts = outcomes[job.key].facts
            if "error" in facts:
                errors.setdefault(key, facts["error"])
                self._note(job.model, f"a setting failed and was passed over: {facts['error']}")
                continue
            rank = _rank(sign * facts["score"], facts.get("tie"))
            # The first of equals wins, so the order of the grid is the order of preference.
            if key not in best or rank > best[key][0]:
                best[key] = (rank, setting)
        for key, reason in errors.items():
            if key not in best:
                self.failures.setdefault(key[0], f"every setting failed: {reason}")
        return best

    def _fit(
        self, places: list[Place], best: dict[PlaceKey, Any], handle: DataHandle | None
    ) -> None:
        """Round two: fit on training rows, predict test rows."""
        jobs, settings = [], []
        for place in places:
            if place.model.name in self.failures:
                self.state.total -= 1
                continue
            setting = best[place.key][1] if place.key in best else place.model.settings()[0]
            rows = [(place.fold.train, place.fold.test)]
            jobs.append(self._job(place, setting, rows, "final"))
            settings.append(setting)
        outcomes = self._do(jobs, handle)
        by_permutation: dict[tuple[str, int], list[float]] = {}
        for job, setting in zip(jobs, settings, strict=True):
            outcome = outcomes[job.key]
            if outcome.failed:
                self.failures.setdefault(job.model, outcome.facts["error"])
                continue
            made = Fit.from_outcome(job, without_prefix(setting), outcome)
            if job.permutation == 0:
                self.fits[job.model].append(made)
            else:
                at = (job.model, job.permutation)
                by_permutation.setdefault(at, []).append(
                    made.score(self.comparison.metric, job.y, self.comparison.n_classes)
                )
        for (name, _), values in sorted(by_permutation.items()):
            self.permuted_scores[name].append(float(np.nanmean(values)))

    def _job(
        self, place: Place, setting: dict[str, Any],
        splits: list[tuple[np.ndarray, np.ndarray]], kind: str,
    ) -> Job:  # fmt: skip
        model, b, y, fold = place.model, place.permutation, place.y, place.fold
        seed = seed_of(self.comparison, model, b, fold)
        estimator = model.make(setting, seed, searching=kind == "setting")
        inner = self._platt_folds(place, estimator) if kind == "final" else []
        more = {"inner": [[np.asarray(part) for part in pair] for pair in inner]} if inner else {}
        key = job_key(
            environment=environment(), form=FORM, kind=kind, data=self.data, seed=seed,
            estimator=estimator,
            splits=[[np.asarray(part) for part in pair] for pair in splits],
            labels=[y[np.concatenate(pair)] for pair in splits],
            n_classes=self.comparison.n_classes,
            metric=self.comparison.metric if kind == "setting" else "",
            groups=self.comparison.plan.inner_groups, **more,
        )  # fmt: skip
        return Job(
            key=key, kind=kind, model=model.name, repeat=fold.repeat, fold=fold.number,
            permutation=b, estimator=estimator, y=y, splits=splits, metric=self.comparison.metric,
            n_classes=self.comparison.n_classes, groups=self.comparison.plan.inner_groups,
            inner=inner,
        )  # fmt: skip

    def _platt_folds(self, place: Place, estimator: Any) -> list[tuple[np.ndarray, np.ndarray]]:
        """Folds of the training rows that make probabilities of margins, where there are none."""
        if not needs_platt(estimator, self.comparison.n_classes) or place.permutation:
            return []
        try:
            return self.comparison.plan.inner_folds(place.y, place.fold)
        except InputError:
            # Too few rows for inner folds, which this model may not have asked for.
            return []

    def _do(self, jobs: list[Job], handle: DataHandle | None) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        waiting = []
        for job in jobs:
            kept = self.store.load(job.key)
            # What failed is tried again, except by one who only looks.
            if kept is None or (kept.failed and handle is not None):
                waiting.append(job)
            else:
                outcomes[job.key] = kept
                self.state.found(job, kept)
        if handle is None:
            if waiting:
                raise _NotInStoreError(len(waiting))
        else:
            self.state.expect(waiting)
            self._tell()

            def on_done(job: Job, outcome: Outcome) -> None:
                outcomes[job.key] = outcome
                self.state.finished(job, outcome)
                self._tell()

            self.runner.run(waiting, handle, self.store, on_done)
        for job in jobs:
            for text in outcomes[job.key].facts.get("warnings", []):
                self._note(job.model, text)
        return outcomes

    def _note(self, model: str, text: str) -> None:
        if text not in self.notes[model] and len(self.notes[model]) < 10:
            self.notes[model].append(text)

    def _tell(self) -> None:
        if self.progress is not None:
            self.progress(self.state)
