"""Runner: where jobs are run. LocalRunner runs them in processes of this machine."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from multiprocessing import resource_tracker
from typing import Protocol

import joblib
from joblib.externals.loky.process_executor import TerminatedWorkerError

from baldur.evaluation.job_store import JobStore, Outcome
from baldur.evaluation.jobs import Job, run_job
from baldur.evaluation.shared_data import SharedData, exit_with_parent, open_data
from baldur.exceptions import StudyError


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
            # The workers are started by this call, before the first result is asked for.
            with _interrupts_held_back():
                results = parallel(calls)
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
