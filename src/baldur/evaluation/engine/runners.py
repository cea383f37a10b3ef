"""Runner: where jobs are run. LocalRunner runs them in processes of this machine."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from baldur.evaluation.engine.job import Job, run_job
from baldur.evaluation.engine.job_store import JobStore, Outcome
from baldur.evaluation.engine.shared_data import SharedData, exit_with_parent, open_data
from baldur.exceptions import StudyError

__all__ = ["LocalRunner", "Runner"]


class Runner(Protocol):
    """A way to run jobs: processes of this machine, or a cluster."""

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
        path = shared.send()
        # batch_size=1: a job is long enough, and a finished one must be on disk at once.
        parallel = joblib.Parallel(
            n_jobs=self.n_jobs, batch_size=1, max_nbytes=None, return_as="generator_unordered"
        )
        try:
            calls = (joblib.delayed(_run_in_worker)(os.getpid(), path, store, job) for job in jobs)
            for key, outcome in parallel(calls):
                on_done(by_key[key], outcome)
        except TerminatedWorkerError as error:
            raise StudyError(
                "A worker process was ended by the system, most often because memory ran out. The "
                "finished jobs are stored; run the same command with fewer jobs (--jobs 1)."
            ) from error


def _run_in_worker(parent: int, path: str, store: JobStore, job: Job) -> tuple[str, Outcome]:
    exit_with_parent(parent)
    return job.key, run_job(open_data(path), store, job)
