"""Progress: how many jobs of a comparison are done, and an estimate of the time left."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

from baldur.evaluation.engine.job import Job
from baldur.evaluation.engine.job_store import Outcome


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
