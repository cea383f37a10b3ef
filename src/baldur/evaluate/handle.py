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
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import joblib
import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits

from baldur.views import MultiView
from baldur.views.source import ArraySource, RowMapSource, Source, SparseSource, as_source

__all__ = ["DataHandle", "fingerprint", "one_thread"]

MAP_BYTES = 1 << 26
"""Arrays from this size on are mapped from a file instead of sent."""

_PREFIX = "baldur-data-"

_loaded: dict[str, MultiView] = {}
_watched = False


class DataHandle:
    """A `MultiView` that other processes open by a path, once each.

    Use it as a context manager; the files live in a temporary folder until the end.
    """

    def __init__(self, mv: MultiView) -> None:
        _sweep_left_behind()
        self._folder = tempfile.TemporaryDirectory(
            prefix=f"{_PREFIX}{os.getpid()}-", ignore_cleanup_errors=True
        )
        folder = Path(self._folder.name)
        self.path = str(folder / "data.pkl")
        parts = {
            name: _to_send(mv.view(name).source, folder / f"view{i}.npy")
            for i, name in enumerate(mv.view_names)
        }
        self._payload = {
            "views": parts,
            "rows": None if mv._rows is None else np.asarray(mv._rows),
            "sample_ids": mv.sample_ids,
            "names": {v: mv.view(v).feature_names for v in mv.view_names if mv.view(v).names_given},
            "info": mv.feature_info,
            "present": {
                v: mv._tables[v].present for v in mv.view_names if mv._tables[v].present is not None
            },
        }
        self._sent = False

    def __enter__(self) -> DataHandle:
        _loaded[self.path] = _build(self._payload)
        return self

    def __exit__(self, *details: object) -> None:
        _loaded.pop(self.path, None)
        self._folder.cleanup()

    def send(self) -> str:
        """Write what other processes need, and return the path to open."""
        if not self._sent:
            with open(self.path, "wb") as file:
                pickle.dump(self._payload, file, protocol=pickle.HIGHEST_PROTOCOL)
            self._sent = True
        return self.path


def _sweep_left_behind() -> None:
    """Remove the folders of processes of ours that were killed before they could."""
    if os.name != "posix":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        pid = folder.name.removeprefix(_PREFIX).split("-")[0]
        try:
            if not pid.isdigit() or folder.stat().st_uid != os.getuid():
                continue
            os.kill(int(pid), 0)
        except ProcessLookupError:
            shutil.rmtree(folder, ignore_errors=True)
        except OSError:
            # Alive and not ours, or gone meanwhile.
            continue


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
        np.save(file, array)
        array = np.load(file, mmap_mode="r")
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return _Mapped(str(array.filename), array.dtype, array.shape, array.offset, order)


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
