"""The jobs of one comparison, in two rounds: every setting, then the chosen ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from zlib import crc32

import numpy as np

import baldur
from baldur.evaluate.handle import DataHandle, fingerprint
from baldur.evaluate.jobs import Job, run_jobs
from baldur.evaluate.metrics import METRICS
from baldur.evaluate.models import Model
from baldur.evaluate.permutation import permute_labels
from baldur.evaluate.progress import Progress
from baldur.evaluate.result import Fit
from baldur.evaluate.splits import Fold, Plan
from baldur.evaluate.store import JobStore, Outcome, job_key
from baldur.views import MultiView

__all__ = ["Rounds", "without_prefix"]


def without_prefix(setting: Mapping[str, Any]) -> dict[str, Any]:
    """Return a setting under the names the model itself uses."""
    while any(k.startswith("estimator__") for k in setting):
        setting = {k.removeprefix("estimator__"): v for k, v in setting.items()}
    return dict(setting)


@dataclass
class Rounds:
    """The jobs of one comparison, in two rounds: all settings, then all chosen ones."""

    models: list[Model]
    mv: MultiView
    y: np.ndarray
    n_classes: int
    plan: Plan
    metric: str
    seed: int
    n_jobs: int
    store: JobStore = field(default_factory=lambda: JobStore(None))
    permutations: int = 0
    progress: Callable[[Progress], None] | None = None

    def begin(self) -> None:
        """Look at the data once, and forget what went wrong before."""
        self.failures: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {m.name: [] for m in self.models}
        self.store.sweep()
        self.data = fingerprint(self.mv)

    def run(self) -> tuple[dict[str, list[Fit]], dict[str, str], dict[str, list[str]]]:
        """Do what is not done, and gather everything."""
        self.begin()
        labels = [self.y]
        for b in range(1, self.permutations + 1):
            rng = np.random.default_rng([self.seed, 3, b])
            labels.append(permute_labels(self.y, self.plan.groups, rng))
        splits = [(b, y, fold) for b, y in enumerate(labels) for fold in self.plan.outer_folds(y)]
        searched = [m for m in self.models if len(m.settings()) > 1]
        first = [
            (m, b, y, fold, self.plan.inner_folds(y, fold))
            for b, y, fold in splits
            for m in searched
        ]
        total = sum(len(m.settings()) for m, *_ in first) + len(splits) * len(self.models)
        self.state = Progress(total=total, n_jobs=self.n_jobs)
        with DataHandle(self.mv) as handle:
            best = self.choose(first, handle)
            return self._fit(splits, best, handle), self.failures, self.notes

    def choose(self, first: list[Any], handle: DataHandle) -> dict[tuple[str, int, int, int], Any]:
        """Round one: the best setting of each model and outer fold."""
        jobs, places = [], []
        for model, b, y, fold, inner in first:
            for setting in model.settings():
                jobs.append(self._job(model, setting, b, y, fold, inner, "setting"))
                places.append(((model.name, b, fold.repeat, fold.number), setting))
        outcomes = self._do(jobs, handle)
        sign = 1.0 if METRICS[self.metric].greater_is_better else -1.0
        best: dict[tuple[str, int, int, int], Any] = {}
        errors: dict[tuple[str, int, int, int], str] = {}
        for job, (place, setting) in zip(jobs, places, strict=True):
            facts = outcomes[job.key].facts
            if "error" in facts:
                errors.setdefault(place, facts["error"])
                self._note(job.model, f"a setting failed and was passed over: {facts['error']}")
                continue
            # The first of equals wins, so the order of the grid is the order of preference.
            if place not in best or sign * facts["score"] > best[place][0]:
                best[place] = (sign * facts["score"], setting)
        for place, reason in errors.items():
            if place not in best:
                self.failures.setdefault(place[0], f"every setting failed: {reason}")
        return best

    def _fit(
        self, splits: list[Any], best: dict[Any, Any], handle: DataHandle
    ) -> dict[str, list[Fit]]:
        """Round two: fit on training rows, predict test rows."""
        jobs, settings = [], []
        for b, y, fold in splits:
            for model in self.models:
                if model.name in self.failures:
                    self.state.total -= 1
                    continue
                place = (model.name, b, fold.repeat, fold.number)
                setting = best[place][1] if place in best else model.settings()[0]
                rows = [(fold.train, fold.test)]
                jobs.append(self._job(model, setting, b, y, fold, rows, "final"))
                settings.append(setting)
        outcomes = self._do(jobs, handle)
        fits: dict[str, list[Fit]] = {m.name: [] for m in self.models}
        self.permuted_scores: dict[str, list[float]] = {m.name: [] for m in self.models}
        by_permutation: dict[tuple[str, int], list[float]] = {}
        for job, setting in zip(jobs, settings, strict=True):
            outcome = outcomes[job.key]
            if "error" in outcome.facts:
                self.failures.setdefault(job.model, outcome.facts["error"])
                continue
            made = Fit.from_outcome(job, without_prefix(setting), outcome)
            if job.permutation == 0:
                fits[job.model].append(made)
            else:
                at = (job.model, job.permutation)
                by_permutation.setdefault(at, []).append(
                    made.score(self.metric, job.y, self.n_classes)
                )
        for (name, _), values in sorted(by_permutation.items()):
            self.permuted_scores[name].append(float(np.nanmean(values)))
        return fits

    def seed_of(self, model: Model, b: int, fold: Fold) -> int:
        """Return the seed of one model on one outer fold."""
        entropy = [self.seed, 4, crc32(model.name.encode()), b, fold.repeat, fold.number]
        return int(np.random.SeedSequence(entropy).generate_state(1)[0])

    def _job(
        self, model: Model, setting: dict[str, Any], b: int, y: np.ndarray, fold: Fold,
        splits: list[tuple[np.ndarray, np.ndarray]], kind: str,
    ) -> Job:  # fmt: skip
        seed = self.seed_of(model, b, fold)
        estimator = model.make(setting, seed)
        key = job_key(
            version=baldur.__version__, kind=kind, data=self.data, estimator=estimator, seed=seed,
            splits=[[np.asarray(part) for part in pair] for pair in splits],
            labels=[y[np.concatenate(pair)] for pair in splits],
            n_classes=self.n_classes, metric=self.metric if kind == "setting" else "",
            groups=self.plan.inner_groups,
        )  # fmt: skip
        return Job(
            key=key, kind=kind, model=model.name, repeat=fold.repeat, fold=fold.number,
            permutation=b, estimator=estimator, y=y, splits=splits, metric=self.metric,
            n_classes=self.n_classes, groups=self.plan.inner_groups,
        )  # fmt: skip

    def _do(self, jobs: list[Job], handle: DataHandle) -> dict[str, Outcome]:
        outcomes: dict[str, Outcome] = {}
        waiting = []
        for job in jobs:
            kept = self.store.load(job.key)
            if kept is None:
                waiting.append(job)
            else:
                outcomes[job.key] = kept
                self.state.found(job, kept)
        self.state.expect(waiting)
        self._tell()

        def on_done(job: Job, outcome: Outcome) -> None:
            outcomes[job.key] = outcome
            self.state.finished(job, outcome)
            self._tell()

        run_jobs(waiting, handle, self.store, self.n_jobs, on_done)
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
