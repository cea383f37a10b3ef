"""Jobs on a Dask cluster, through futures.

The data go to each worker once, large matrices by path where the worker sees their files. Results
come back to the process that asked, which keeps them in its store at once. Dask does again what a
lost worker was doing; everything else is kept.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from uuid import uuid4

from baldur.atomic_io import make_folder
from baldur.evaluation.environment import environment
from baldur.evaluation.handle import DataHandle, forget, has_data, open_handle, receive
from baldur.evaluation.jobs import Job, run_job
from baldur.evaluation.store import JobStore, Outcome
from baldur.exceptions import InputError, MissingExtraError, StudyError

try:
    import distributed
except ImportError as error:
    raise MissingExtraError(
        "Running on a cluster needs Dask, which is not installed. Install the extra: "
        "pip install 'baldur-multiview[dask]'."
    ) from error

__all__ = ["ClusterRunner", "connect"]

# Enough for a cluster that grows with its queue to see that there is work, and few enough that
# the scheduler does not hold the rows of ten thousand jobs at once.
_FEWEST_AHEAD = 100
_AHEAD_PER_THREAD = 4

_RESUME = "The finished jobs are kept; the same command continues."

# Threads of one worker share the warnings machinery and the limits on numerical threads.
_one_at_a_time = threading.Lock()


def connect(address: str, timeout: float = 20.0) -> Any:
    """Connect to a Dask scheduler.

    Parameters
    ----------
    address : str
        Such as "tcp://10.0.0.1:8786".
    timeout : float, default=20.0
        Seconds to wait for an answer.

    Returns
    -------
    distributed.Client
        Close it after use.
    """
    try:
        return distributed.Client(address, timeout=timeout, set_as_default=False)
    except (OSError, ValueError) as error:
        raise StudyError(
            f"No Dask scheduler answers at {address} ({type(error).__name__}); start one, or check "
            "the address."
        ) from error


class ClusterRunner:
    """Jobs on the workers of a Dask client.

    Parameters
    ----------
    client : distributed.Client
        Connected, and not asynchronous.
    """

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
        """Workers at present; each does one job at a time."""
        return max(1, len(self.client.scheduler_info(n_workers=-1)["workers"]))

    def run(
        self,
        jobs: list[Job],
        handle: DataHandle,
        store: JobStore,
        on_done: Callable[[Job, Outcome], None],
    ) -> None:
        """Do the jobs; see `Runner`."""
        if not jobs:
            return
        waiting = iter(jobs)
        by_key = {job.key: job for job in jobs}
        ahead = max(_FEWEST_AHEAD, _AHEAD_PER_THREAD * self.n_jobs)
        with self._reachable(), self._data(handle) as path:

            def submit(job: Job) -> Any:
                return self.client.submit(_on_worker, path, environment(), job, pure=False)

            first = [submit(job) for job in islice(waiting, ahead)]
            done = distributed.as_completed(first, loop=self.client.loop)
            try:
                for future in done:
                    key, outcome = future.result()
                    store.save(key, outcome)
                    on_done(by_key[key], outcome)
                    for job in islice(waiting, 1):
                        done.add(submit(job))
            finally:
                # After an error or Ctrl-C the workers should not go on with what nobody wants.
                if self.client.status == "running":
                    self.client.cancel(list(done.futures), force=True)

    @contextmanager
    def _data(self, handle: DataHandle) -> Iterator[str]:
        """Let every worker have the data, also those that join later."""
        seen = self.client.run(_unseen, handle.files).values() if handle.files else []
        unseen = {file for files in seen for file in files}
        plugin = _Data(handle.path, handle.pickled(unseen), environment())
        self.client.register_plugin(plugin)
        try:
            yield handle.path
        finally:
            if self.client.status == "running":
                self.client.unregister_worker_plugin(plugin.name)

    @contextmanager
    def _reachable(self) -> Iterator[None]:
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


class _Data(distributed.WorkerPlugin):
    """The data of a study, handed to every worker when it starts."""

    def __init__(self, path: str, content: bytes, expected: dict[str, str]) -> None:
        self.name = f"baldur-{path}"
        self.path = path
        self.content = content
        self.expected = expected

    def setup(self, worker: Any) -> None:
        _check_environment(self.expected)
        self.folder = make_folder(Path(worker.local_directory) / f"baldur-{uuid4().hex}")
        receive(self.path, self.content, self.folder)
        views = open_handle(self.path)
        for view in views.view_names:
            try:
                views.view(view).raw(slice(0, 1))
            except OSError as error:
                raise StudyError(
                    f"The worker at {worker.address} cannot read view {view!r} ({error}); put its "
                    "files where every worker sees them under the same path."
                ) from None

    def teardown(self, worker: Any) -> None:
        forget(self.path)
        shutil.rmtree(self.folder, ignore_errors=True)


def _unseen(files: list[str]) -> list[str]:
    return [file for file in files if not Path(file).is_file()]


def _check_environment(expected: dict[str, str]) -> None:
    """The key of a job names the versions it was done with."""
    here = environment()
    for name, wanted in expected.items():
        if here[name] != wanted:
            raise StudyError(
                f"A worker has {name} {here[name]}, but this process has {wanted}; install the "
                "same versions on all machines."
            )


def _on_worker(path: str, expected: dict[str, str], job: Job) -> tuple[str, Outcome]:
    _check_environment(expected)
    if not has_data(path):
        address = distributed.get_worker().address
        raise StudyError(f"The worker at {address} could not take in the data; see its log.")
    with _one_at_a_time:
        return job.key, run_job(path, JobStore(None), job)
