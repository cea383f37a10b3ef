"""SharedData: the samples of a comparison as every worker process opens them.

Results must not depend on `n_jobs`. Large arrays that joblib maps for other processes would be
worked on in other tiles than arrays in memory. So large arrays are mapped from a file always, also
with one worker, and small ones are sent whole. Each process reads the data once.
"""

from __future__ import annotations

import hashlib
import mmap
import os
import pickle
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Collection
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, Literal

import numpy as np

from baldur.core.atomic_io import folder_lock, write_atomically, writing
from baldur.views import MultiView
from baldur.views.sources import ArraySource, RowMapSource, Source, as_source

_PREFIX = "baldur-data-"


class ScratchFolder:
    """A temporary folder that other processes do not remove while its process lives.

    A process id has no meaning in another container or on another machine. The owner therefore
    holds a lock on a file in the folder. Locks are reliable within one running kernel, so the name
    of the folder says which kernel it belongs to; folders of other machines are never touched.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        # Others look for the final name, which the folder gets once the lock is held.
        unnamed = root / f"baldur-new-{uuid.uuid4().hex}"
        self.path = root / f"{_PREFIX}{_kernel()}-{uuid.uuid4().hex[:12]}"
        self._lock = ExitStack()
        with writing(root):
            unnamed.mkdir(mode=0o700)
            try:
                self._lock.enter_context(folder_lock(unnamed))
                os.rename(unnamed, self.path)
            except BaseException:
                self._lock.close()
                shutil.rmtree(unnamed, ignore_errors=True)
                raise

    def remove(self) -> None:
        """Remove the folder with its content."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


@cache
def _kernel() -> str:
    """Return a name of this running system, the same in all its containers."""
    try:
        seen = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        seen = f"{uuid.getnode()}"
    return hashlib.sha256(seen.encode()).hexdigest()[:12]


def remove_orphans() -> None:
    """Remove the folders of processes of this user that were killed."""
    if os.name != "posix":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{_kernel()}-*"):
        # The folder may be gone by now, or belong to another user.
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            with folder_lock(folder, wait=False) as left:
                if left:
                    shutil.rmtree(folder, ignore_errors=True)


MAP_BYTES = 1 << 26
"""Arrays from this size on are mapped from a file instead of sent."""


class SharedData:
    """A `MultiView` that other processes open by a path.

    Use it as a context manager; the files lie in a temporary folder until its end.
    """

    def __init__(self, mv: MultiView) -> None:
        remove_orphans()
        self._folder = ScratchFolder()
        folder = self._folder.path
        self.path = str(folder / "data.pkl")
        self._sent = False
        try:
            self._payload: dict[str, Any] = {
                "views": {
                    name: _pack(mv.view(name).source, folder / f"view{i}.npy")
                    for i, name in enumerate(mv.view_names)
                },
                "rows": mv.rows,
                "sample_ids": mv.sample_ids,
                "names": {
                    v: mv.view(v).feature_names for v in mv.view_names if mv.view(v).names_given
                },
                "info": mv.feature_info,
                "present": {
                    v: mv.table(v).present for v in mv.view_names if mv.table(v).present is not None
                },
                "samples": mv.samples,
            }
            self.data = _build(self._payload)
        except BaseException:
            self._folder.remove()
            raise

    def __enter__(self) -> SharedData:
        return self

    def __exit__(self, *details: object) -> None:
        self._folder.remove()

    def send(self) -> str:
        """Write the samples to files for other processes, and return the path to open."""
        if not self._sent:
            write_atomically(self.path, self.pickled())
            self._sent = True
        return self.path

    def pickled(self, with_content: Collection[str] = ()) -> bytes:
        """Return the pickled samples for other processes."""
        views = {v: _include(part, with_content) for v, part in self._payload["views"].items()}
        payload = {**self._payload, "views": views}
        return pickle.dumps(payload, protocol=pickle.HIGHEST_PROTOCOL)

    @property
    def files(self) -> list[str]:
        """Files of large matrices, which other processes open by path."""
        found = {_file_of(part) for part in self._payload["views"].values()}
        return sorted(file for file in found if file is not None)


# Workers outlive a comparison; a second one takes the place of the first.
@lru_cache(maxsize=1)
def open_data(path: str) -> MultiView:
    """Return the samples that `SharedData.send` wrote, read once per process."""
    with open(path, "rb") as file:
        return _build(pickle.load(file))


def unpack_data(content: bytes, folder: Path) -> MultiView:
    """Return the samples that `SharedData.pickled` gave."""
    payload = pickle.loads(content)
    views = {
        name: _write_content(part, folder / f"view{i}.npy")
        for i, (name, part) in enumerate(payload["views"].items())
    }
    return _build({**payload, "views": views})


@cache
def exit_with_parent(parent: int) -> None:
    """Let a worker process end when the process that started it is gone.

    A worker of a killed study would otherwise wait for minutes for work that never comes. Further
    calls change nothing.
    """
    if os.name != "posix" or os.getpid() == parent:
        return

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _build(payload: dict[str, Any]) -> MultiView:
    views = {name: _open(part) for name, part in payload["views"].items()}
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


# -- one matrix ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _MatrixFile:
    """A matrix in a file, found by its offset."""

    file: str
    dtype: np.dtype
    shape: tuple[int, int]
    offset: int
    order: Literal["C", "F"]

    def open(self) -> np.ndarray:
        """Return the matrix as a map of the file."""
        return np.memmap(
            self.file, dtype=self.dtype, mode="r", offset=self.offset, shape=self.shape,
            order=self.order,
        )  # fmt: skip


@dataclass(frozen=True)
class _Content:
    """The content of a file that the receiver cannot read, and writes to a file of its own."""

    array: np.ndarray


@dataclass(frozen=True)
class _RowMapped:
    """A packed matrix whose rows are found through a map."""

    base: Any
    row_map: np.ndarray


def _pack(source: Source, file: Path) -> Any:
    """Return the form of a matrix in the payload: the matrix itself, or where its file is."""
    if isinstance(source, RowMapSource):
        return _RowMapped(_pack(source.base, file), source.row_map)
    if not isinstance(source, ArraySource):
        return source
    array = source.array
    if source.in_memory and array.nbytes < MAP_BYTES:
        return array
    whole = isinstance(array, np.memmap) and array.mode == "r" and array.filename is not None
    # A slice of a map does not know where in the file it begins.
    if not (whole and isinstance(array.base, mmap.mmap) and array.flags.forc):
        array = _save_and_map(array, file)
    order: Literal["C", "F"] = "C" if array.flags.c_contiguous else "F"
    return _MatrixFile(str(array.filename), array.dtype, array.shape, array.offset, order)


def _open(part: Any) -> Any:
    """Return the matrix of a view, opened in the process that uses it."""
    if isinstance(part, _MatrixFile):
        return part.open()
    if isinstance(part, _RowMapped):
        return RowMapSource(as_source(_open(part.base), "view"), part.row_map)
    return part


def _save_and_map(array: np.ndarray, file: Path) -> np.memmap:
    with writing(file):
        np.save(file, array)
    return np.load(file, mmap_mode="r")


def _include(part: Any, files: Collection[str]) -> Any:
    """Replace a matrix in one of the files by its content."""
    if isinstance(part, _RowMapped):
        return _RowMapped(_include(part.base, files), part.row_map)
    if isinstance(part, _MatrixFile) and part.file in files:
        return _Content(np.array(part.open(), order=part.order))
    return part


def _write_content(part: Any, file: Path) -> Any:
    """Write included content to a file and map it; leave other parts as they are."""
    if isinstance(part, _RowMapped):
        return _RowMapped(_write_content(part.base, file), part.row_map)
    return _save_and_map(part.array, file) if isinstance(part, _Content) else part


def _file_of(part: Any) -> str | None:
    """Return the file of a matrix, or None where it is sent whole."""
    if isinstance(part, _RowMapped):
        return _file_of(part.base)
    return part.file if isinstance(part, _MatrixFile) else None
