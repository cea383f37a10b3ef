"""DaskRunner: jobs on a Dask cluster, through futures.

Each worker gets the data once. Large matrices are opened by path where the worker can read their
files, and sent otherwise. Results come back to the process that asked, which stores them at once.
Dask repeats the job of a worker that is lost; finished jobs are not repeated.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from baldur.core.atomic_io import make_folder
from baldur.evaluation.job_store import JobResult, JobStore, libraries
from baldur.evaluation.jobs import Job, run_job
from baldur.evaluation.run import Finished, Runner
from baldur.evaluation.shared_data import SharedData, unpack_data
from baldur.exceptions import InputError, MissingExtraError, StudyError
from baldur.views import MultiView

try:
    import distributed
except ImportError as error:
    raise MissingExtraError(
        "Running on a cluster needs Dask, which is not installed. Install the extra: "
        "pip install 'baldur-multiview[dask]'."
    ) from error

# Enough for a cluster that grows with its queue to see that there is work, and few enough that
# the scheduler does not hold the rows of ten thousand jobs at once.
_FEWEST_AHEAD = 100


_AHEAD_PER_THREAD = 4


_RESUME = "The finished jobs are stored; the same command continues."


# Threads of one worker share the warnings machinery and the limits on numerical threads.
_one_at_a_time = threading.Lock()


def connect(address: str, timeout: float = 20.0) -> Any:
    """Connect to a Dask scheduler."""
    try:
        return distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"No Dask scheduler answers at {address} ({type(error).__name__}); start one, or check "
            "the address."
        ) from error


class DaskRunner(Runner):
    """Jobs on the workers of a Dask client."""

    def __init__(self, client: Any) -> None:
        if not isinstance(client, distributed.Client):
            raise InputError(
                f"client must be a distributed.Client, but got {type(client).__name__}."
            )
        if client.asynchronous or client.status != "running":
            raise InputError(
                f"client must be connected and not asynchronous, but it is {client.status}"
                f"{' and asynchronous' if client.asynchronous else ''}; make a new one."
            )
        self.client = client
        self.address = str(client.scheduler_info()["address"])

    @property
    def n_jobs(self) -> int:
        """Number of workers at present; each runs one job at a time."""
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def run(self, jobs: list[Job], shared: SharedData, store: JobStore) -> Finished:
        """Run the jobs in any order, a part of them submitted at a time, and store each result."""
        if not jobs:
            return
        waiting = iter(jobs)
        by_key = {job.key: job for job in jobs}
        at_a_time = max(_FEWEST_AHEAD, _AHEAD_PER_THREAD * self.n_jobs)
        with self._reachable(), self._data(shared) as plugin:

            def submit(job: Job) -> Any:
                return self.client.submit(_on_worker, plugin, libraries(), job, pure=False)

            first = [submit(job) for job in islice(waiting, at_a_time)]
            done = distributed.as_completed(first, loop=self.client.loop)
            try:
                for future in done:
                    key, result = future.result()
                    store.save(key, result)
                    yield by_key[key], result
                    for job in islice(waiting, 1):  # One more for each that is done
                        done.add(submit(job))
            finally:
                # After an error or Ctrl-C the jobs that are left are cancelled.
                if self.client.status == "running":
                    self.client.cancel(list(done.futures), force=True)

    @contextmanager
    def _data(self, shared: SharedData) -> Iterator[str]:
        """Send the data to every worker, also to those that join later; yield the plugin's name."""
        answers = self.client.run(_unreadable, shared.files).values() if shared.files else []
        unreadable = {file for files in answers for file in files}
        plugin = _DataPlugin(shared.folder.name, shared.pickled(unreadable), libraries())
        try:
            self.client.register_plugin(plugin)
        except (StudyError, distributed.comm.CommClosedError, TimeoutError):
            raise
        except OSError as error:
            raise StudyError(
                f"A worker could not open the data ({error}); see its log, and free its disk or "
                "put the files where every worker can read them."
            ) from error
        try:
            yield plugin.name
        finally:
            if self.client.status == "running":
                self.client.unregister_worker_plugin(plugin.name)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
        """Turn Dask's errors on lost workers and schedulers into a `StudyError` with advice."""
        try:
            yield
        except distributed.KilledWorker as error:
            raise StudyError(
                "One job ended several workers, most often because memory ran out. Give the "
                f"workers more memory. {_RESUME}"
            ) from error
        except (CancelledError, distributed.comm.CommClosedError, TimeoutError) as error:
            raise StudyError(
                f"The Dask scheduler at {self.address} is gone, or gave up the jobs. {_RESUME}"
            ) from error


class _DataPlugin(distributed.WorkerPlugin):
    """The samples of a comparison, which every worker opens when it joins."""

    def __init__(self, name: str, content: bytes, expected: dict[str, str]) -> None:
        self.name = name
        self.content = content
        self.expected = expected
        self.data: MultiView | None = None

    def setup(self, worker: Any) -> None:
        _check_environment(self.expected)
        self.folder = make_folder(Path(worker.local_directory) / f"baldur-{uuid4().hex}")
        data = unpack_data(self.content, self.folder)
        # Files may be missing on this worker: one column of each view is read now.
        for view in data.view_names:
            try:
                data.view(view).raw(slice(0, 1))
            except OSError as error:
                raise StudyError(
                    f"The worker at {worker.address} cannot read view {view!r} ({error}); put its "
                    "files where every worker sees them under the same path."
                ) from None
        self.data = data

    def teardown(self, worker: Any) -> None:
        self.data = None
        shutil.rmtree(self.folder, ignore_errors=True)


def _unreadable(files: list[str]) -> list[str]:
    return [file for file in files if not Path(file).is_file()]


def _check_environment(expected: dict[str, str]) -> None:
    """Refuse a worker whose library versions differ from those of this process."""
    here = libraries()
    for name, wanted in expected.items():
        if here[name] != wanted:
            raise StudyError(
                f"A worker has {name} {here[name]}, but this process has {wanted}; install the "
                "same versions on all machines."
            )


def _on_worker(plugin: str, expected: dict[str, str], job: Job) -> tuple[str, JobResult]:
    """Run a job on a Dask worker, with the data that its plugin opened; return key and result."""
    _check_environment(expected)
    worker = distributed.get_worker()
    data = getattr(worker.plugins.get(plugin), "data", None)
    if data is None:
        raise StudyError(f"The worker at {worker.address} could not open the data; see its log.")
    with _one_at_a_time:
        return job.key, run_job(data, JobStore(None), job)
