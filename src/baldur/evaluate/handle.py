"""Data that every worker sees in the same form, whatever their number.

Results must not depend on `n_jobs`. Two things could make them: large arrays that joblib maps for
other processes are worked on in other tiles than arrays in memory, and BLAS sums in another order
with more threads. So large arrays are mapped from a file always, also with one worker; small ones
travel whole; and each job runs with one thread.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import sys
import threading
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from baldur.evaluate.scratch import ScratchFolder, sweep_left_behind
from baldur.files import write_atomically, writing
from baldur.views import MultiView
from baldur.views.source import ArraySource, RowMapSource, Source, SparseSource, as_source

__all__ = ["DataHandle", "fingerprint", "one_thread"]

MAP_BYTES = 1 << 26
"""Arrays from this size on are mapped from a file instead of sent."""

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
                name: _to_send(mv.view(name).source, folder / f"view{i}.npy")
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
        parts = {name: _carried(part, carry) for name, part in self._payload["views"].items()}
        payload = {**self._payload, "views": parts}
        return pickle.dumps(payload, protocol=pickle.HIGHEST_PROTOCOL)

    @property
    def files(self) -> list[str]:
        """Files of large matrices, which other processes open by path."""
        parts = list(self._payload["views"].values())
        parts = [part.base if isinstance(part, _RowMapped) else part for part in parts]
        return sorted({part.file for part in parts if isinstance(part, _Mapped)})


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


@dataclass(frozen=True)
class _Mapped:
    """A matrix in a file, found by where it lies."""

    file: str
    dtype: np.dtype
    shape: tuple[int, int]
    offset: int
    order: Literal["C", "F"]

    def open(self) -> np.ndarray:
        return np.memmap(
            self.file, dtype=self.dtype, mode="r", offset=self.offset, shape=self.shape,
            order=self.order,
        )  # fmt: skip


@dataclass(frozen=True)
class _Carried:
    """A matrix of a file that the receiver cannot see; it is given a file there."""

    array: np.ndarray


@dataclass(frozen=True)
class _RowMapped:
    """A matrix whose rows are found through a map."""

    base: Any
    row_map: np.ndarray


def _to_send(source: Source, file: Path) -> Any:
    """What stands for a matrix in the payload: itself, or where to find it."""
    if isinstance(source, RowMapSource):
        return _RowMapped(_to_send(source.base, file), source.row_map)
    if not isinstance(source, ArraySource):
        return source
    array = source.array
    if source.in_memory and array.nbytes < MAP_BYTES:
        return array
    whole = isinstance(array, np.memmap) and array.mode == "r" and array.filename is not None
    # A slice of a map does not know where in the file it begins.
    if not (whole and isinstance(array.base, mmap.mmap) and array.flags.forc):
        array = _map_anew(array, file)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return _Mapped(str(array.filename), array.dtype, array.shape, array.offset, order)


def _map_anew(array: np.ndarray, file: Path) -> np.memmap:
    with writing(file):
        np.save(file, array)
    return np.load(file, mmap_mode="r")


def _carried(part: Any, files: Collection[str]) -> Any:
    """Replace a matrix in one of the files by its content."""
    if isinstance(part, _RowMapped):
        return _RowMapped(_carried(part.base, files), part.row_map)
    if isinstance(part, _Mapped) and part.file in files:
        return _Carried(np.array(part.open(), order=part.order))
    return part


def _landed(part: Any, file: Path) -> Any:
    """Undo `_carried` where it has arrived: large matrices are mapped from a file everywhere."""
    if isinstance(part, _RowMapped):
        return _RowMapped(_landed(part.base, file), part.row_map)
    return _map_anew(part.array, file) if isinstance(part, _Carried) else part


def receive(path: str, content: bytes, folder: str | Path) -> None:
    """Take in what `DataHandle.pickled` gave; `open_handle` finds it under the path.

    Parameters
    ----------
    path : str
        Path of the handle.
    content : bytes
        From a source as trusted as the code itself: it is a pickle.
    folder : str or Path
        For files of matrices that came along.
    """
    payload = pickle.loads(content)
    views = {
        name: _landed(part, Path(folder) / f"baldur-{uuid4().hex}.npy")
        for name, part in payload["views"].items()
    }
    _loaded[path] = _build({**payload, "views": views})


def forget(path: str) -> None:
    """Let go of data that was received."""
    _loaded.pop(path, None)


def has_data(path: str) -> bool:
    """Whether `open_handle` would find the data."""
    return path in _loaded or Path(path).is_file()


def _opened(part: Any) -> Any:
    if isinstance(part, _Mapped):
        return part.open()
    if isinstance(part, _RowMapped):
        return RowMapSource(as_source(_opened(part.base), "view"), part.row_map)
    return part


def open_handle(path: str) -> MultiView:
    """Return the data behind a path, read once per process."""
    if path not in _loaded:
        # Workers outlive a study, and would keep the data of every one.
        _loaded.clear()
        with open(path, "rb") as file:
            _loaded[path] = _build(pickle.load(file))
    return _loaded[path]


def _build(payload: dict[str, Any]) -> MultiView:
    views = {name: _opened(part) for name, part in payload["views"].items()}
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
    if rows is None:
        return made
    made = made[rows]
    made.sample_ids = ids
    return made


def fingerprint(mv: MultiView) -> str:
    """Return a hash of names and cells, so that results are only reused for the same data."""
    digest = hashlib.sha256()
    digest.update("\0".join(str(s) for s in mv.sample_ids).encode())
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
