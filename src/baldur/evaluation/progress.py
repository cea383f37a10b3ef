"""How far a comparison is, and how long it may still take."""

from __future__ import annotations

import time
from collections import Counter
from dataclasses import dataclass, field

from baldur.evaluation.jobs import Job
from baldur.evaluation.store import Outcome

__all__ = ["Progress"]


@dataclass
class Progress:
    """Counts of jobs, and an estimate of the time left.

    Attributes
    ----------
    total, done : int
        Jobs in all, and finished (taken from the store included).
    reused : int
        Jobs taken from the store.
    failed : int
    current : str
        What was finished last.
    """

    total: int
    n_jobs: int = 1
    done: int = 0
    reused: int = 0
    failed: int = 0
    current: str = ""
    started: float = field(default_factory=time.monotonic)
    _seconds: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    _waiting: Counter[tuple[str, str]] = field(default_factory=Counter)

    def expect(self, jobs: list[Job]) -> None:
        """Note the jobs about to be done."""
        self._waiting = Counter((job.model, job.kind) for job in jobs)

    def found(self, job: Job, outcome: Outcome) -> None:
        """Note a job whose result was kept from before."""
        self.reused += 1
        self._count(job, outcome)

    def finished(self, job: Job, outcome: Outcome) -> None:
        """Note a job that has just been done."""
        self._waiting[(job.model, job.kind)] -= 1
        self.failed += "error" in outcome.facts
        self._count(job, outcome)

    def _count(self, job: Job, outcome: Outcome) -> None:
        self.done += 1
        self.current = f"{job.model}, fold {job.fold + 1}"
        seconds = outcome.facts.get("seconds")
        if seconds is not None:
            self._seconds.setdefault((job.model, job.kind), []).append(float(seconds))

    def seconds_left(self) -> float | None:
        """Estimate from the mean time of the same kind of job of the same model, else of all.

        Jobs of a later round are taken to cost what the jobs known so far do on average.
        """
        known = [s for values in self._seconds.values() for s in values]
        if not known:
            return None
        overall = sum(known) / len(known)
        left, counted = 0.0, 0
        for kind, count in self._waiting.items():
            values = self._seconds.get(kind)
            left += count * (sum(values) / len(values) if values else overall)
            counted += count
        left += max(self.total - self.done - counted, 0) * overall
        return left / self.n_jobs
