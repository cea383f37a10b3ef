"""Data that every worker sees in the same form, whatever their number.

Results must not depend on `n_jobs`. Two things could make them: large arrays that joblib maps for
other processes are worked on in other tiles than arrays in memory, and BLAS sums in another order
with more threads. So large arrays are mapped from a file always, also with one worker; small ones
travel whole; and each job runs with one thread.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from baldur.atomic_io import write_atomically
from baldur.evaluation.scratch import ScratchFolder, sweep_left_behind
from baldur.evaluation.sending import carried, file_of, landed, opened, to_send
from baldur.views import MultiView
from baldur.views.source import SparseSource

__all__ = ["DataHandle", "fingerprint", "one_thread"]

_loaded: dict[str, MultiView] = {}
_watched = False


class DataHandle:
    """A `MultiView` that other processes open by a path, once each.

    Use it as a context manager; the files live in a temporary folder until the end.
    """

    def __init__(self, mv: MultiView) -> None:
        sweep_left_behind()
        self._folder = ScratchFolder()
        folder = self._folder.path
        self.path = str(folder / "data.pkl")
        try:
            parts = {
                name: to_send(mv.view(name).source, folder / f"view{i}.npy")
                for i, name in enumerate(mv.view_names)
            }
        except BaseException:
            self._folder.remove()
            raise
        self._payload: dict[str, Any] = {
            "views": parts,
            "rows": mv.rows,
            "sample_ids": mv.sample_ids,
            "names": {v: mv.view(v).feature_names for v in mv.view_names if mv.view(v).names_given},
            "info": mv.feature_info,
            "present": {
                v: mv.table(v).present for v in mv.view_names if mv.table(v).present is not None
            },
            "samples": mv.samples,
        }
        self._sent = False

    def __enter__(self) -> DataHandle:
        _loaded[self.path] = _build(self._payload)
        return self

    def __exit__(self, *details: object) -> None:
        _loaded.pop(self.path, None)
        self._folder.remove()

    def send(self) -> str:
        """Write what other processes need, and return the path to open."""
        if not self._sent:
            write_atomically(self.path, self.pickled())
            self._sent = True
        return self.path

    def pickled(self, carry: Collection[str] = ()) -> bytes:
        """Return what other processes need.

        Parameters
        ----------
        carry : collection of str
            Files out of `files` that they cannot see, and whose content must come along.

        Returns
        -------
        bytes
        """
        parts = {name: carried(part, carry) for name, part in self._payload["views"].items()}
        payload = {**self._payload, "views": parts}
        return pickle.dumps(payload, protocol=pickle.HIGHEST_PROTOCOL)

    @property
    def files(self) -> list[str]:
        """Files of large matrices, which other processes open by path."""
        found = {file_of(part) for part in self._payload["views"].values()}
        return sorted(file for file in found if file is not None)


def leave_with(parent: int) -> None:
    """Let a worker process end when the process that started it is gone.

    A worker of a killed study would otherwise wait for minutes for work that never comes. Further
    calls change nothing.
    """
    global _watched
    if os.name != "posix" or os.getpid() == parent or _watched:
        return
    _watched = True

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def receive(path: str, content: bytes, folder: Path) -> None:
    """Take in what `DataHandle.pickled` gave; `open_handle` finds it under the path.

    Parameters
    ----------
    path : str
        Path of the handle.
    content : bytes
        From a source as trusted as the code itself: it is a pickle.
    folder : Path
        For files of matrices that came along.
    """
    payload = pickle.loads(content)
    views = {
        name: landed(part, folder / f"view{i}.npy")
        for i, (name, part) in enumerate(payload["views"].items())
    }
    _loaded[path] = _build({**payload, "views": views})


def forget(path: str) -> None:
    """Let go of data that was received."""
    _loaded.pop(path, None)


def has_data(path: str) -> bool:
    """Whether `open_handle` would find the data."""
    return path in _loaded or Path(path).is_file()


def open_handle(path: str) -> MultiView:
    """Return the data behind a path, read once per process."""
    if path not in _loaded:
        # Workers outlive a study, and would keep the data of every one.
        _loaded.clear()
        with open(path, "rb") as file:
            _loaded[path] = _build(pickle.load(file))
    return _loaded[path]


def _build(payload: dict[str, Any]) -> MultiView:
    views = {name: opened(part) for name, part in payload["views"].items()}
    n = next(iter(views.values())).shape[0]
    rows = payload["rows"]
    ids = payload["sample_ids"]
    made = MultiView(
        views,
        sample_ids=ids if rows is None else np.arange(n),
        feature_names=payload["names"],
        feature_info=payload["info"],
        present=payload["present"],
    )
    if rows is not None:
        made = made[rows]
        made.sample_ids = ids
    return made.with_samples(payload["samples"])


def fingerprint(mv: MultiView) -> str:
    """Return a hash of names and cells, so that results are only reused for the same data."""
    digest = hashlib.sha256()
    digest.update("\0".join(str(s) for s in mv.sample_ids).encode())
    if mv.samples is not None:
        digest.update("\0".join(mv.samples.columns).encode())
        table = pd.util.hash_pandas_object(mv.samples.astype(str), index=False)
        digest.update(table.to_numpy().tobytes())
    for name in mv.view_names:
        view = mv.view(name)
        digest.update(f"\1{name}\1{view.shape}\1{view.dtype}\1".encode())
        if view.names_given:
            digest.update("\0".join(view.feature_names.tolist()).encode())
        if view.feature_info is not None:
            cells = pd.util.hash_pandas_object(view.feature_info.astype(str), index=False)
            digest.update(cells.to_numpy().tobytes())
        declared = view.declared_present
        if declared is not None:
            digest.update(np.packbits(declared).tobytes())
        if isinstance(view.source, SparseSource) and view.rows is None:
            digest.update(joblib.hash(view.source.matrix).encode())
            continue
        step = max(1, (1 << 24) // max(1, view.shape[0] * view.dtype.itemsize))
        for start in range(0, view.shape[1], step):
            block = view.raw(slice(start, min(start + step, view.shape[1])))
            digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()


@contextmanager
def one_thread() -> Iterator[None]:
    """Run numerical libraries with one thread, torch included where it has been imported."""
    torch = sys.modules.get("torch")
    before = torch.get_num_threads() if torch is not None else None
    with threadpool_limits(limits=1):
        if torch is not None:
            torch.set_num_threads(1)
        try:
            yield
        finally:
            if torch is not None:
                torch.set_num_threads(before)
