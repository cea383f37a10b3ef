"""Progress of a comparison: finished jobs, and the time that is left."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from baldur.evaluation.job_store import JobResult
from baldur.evaluation.jobs import Job


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
        """Add to the jobs that are expected of a model; a negative count takes jobs back."""
        self.total += count
        self._left[model, kind] += count

    def _count(self, job: Job, result: JobResult, *, reused: bool = False) -> bool:
        """Count a job that was run, or found in the store; return False if it was counted before.

        Models with the same estimator and views have the same jobs, which are counted for each.
        """
        model = job.task.model.name
        if (model, job.key) in self._counted:
            return False
        self._counted.add((model, job.key))
        self.done += 1
        self.reused += reused
        self.failed += result.failed and not reused
        self.current = f"{model}, fold {job.task.fold.number + 1}"
        self._left[model, job.kind] -= 1
        if "seconds" in result.facts:
            self._seconds[model, job.kind].append(float(result.facts["seconds"]))
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
