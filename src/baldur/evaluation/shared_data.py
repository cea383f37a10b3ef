"""SharedData: the samples of a comparison as every worker process opens them.

Results must not depend on `n_jobs`. Large arrays that joblib maps for other processes would be
worked on in other tiles than arrays in memory. So large arrays are mapped from a file always, also
with one worker, and small ones are sent whole. Each process reads the data once.
"""

from __future__ import annotations

import hashlib
import io
import mmap
import os
import pickle
import shutil
import tempfile
import threading
import time
import uuid
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache, cached_property, lru_cache
from pathlib import Path
from typing import Any, TypeGuard

import numpy as np

from baldur.core.atomic_io import folder_lock, write_atomically, writing
from baldur.views import MultiView
from baldur.views.sources import ArraySource, Source, SubsetSource

MAP_BYTES = 1 << 26
"""Arrays from this size on are mapped from a file instead of sent."""

_PREFIX = "baldur-data-"


@contextmanager
def scratch_folder() -> Iterator[Path]:
    """Make a temporary folder that other processes do not remove while this one lives.

    A process id has no meaning in another container or on another machine. The owner therefore
    holds a lock on a file in the folder. Locks are reliable within one running kernel, so the name
    of the folder says which kernel it belongs to; folders of other machines are never touched.
    """
    root = Path(tempfile.gettempdir())
    # Others look for the final name, which the folder gets once the lock is held.
    unnamed = root / f"baldur-new-{uuid.uuid4().hex}"
    folder = root / f"{_PREFIX}{_kernel()}-{uuid.uuid4().hex[:12]}"
    with writing(root):
        unnamed.mkdir(mode=0o700)
    try:
        with folder_lock(unnamed):
            os.rename(unnamed, folder)
            try:
                yield folder
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    finally:
        shutil.rmtree(unnamed, ignore_errors=True)


@cache
def _kernel() -> str:
    """Return a name of this running system, the same in all its containers."""
    try:
        text = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        text = f"{uuid.getnode()}"
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def remove_orphans() -> None:
    """Remove the folders of processes of this user that were killed."""
    if os.name != "posix":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{_kernel()}-*"):
        # The folder may be gone by now, or belong to another user.
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            # The owner holds this lock as long as it lives.
            with folder_lock(folder, wait=False) as is_orphan:
                if is_orphan:
                    shutil.rmtree(folder, ignore_errors=True)


class SharedData:
    """A `MultiView` whose large arrays are files, for other processes to open."""

    def __init__(self, mv: MultiView, folder: Path) -> None:
        self.folder = folder
        views = map(mv.view, mv.view_names)
        self.data = mv.replace_views(
            replace(view, source=_map_large(view.source, folder / f"view{i}.npy"))
            for i, view in enumerate(views)
        )

    @cached_property
    def path(self) -> str:
        """File with the pickled samples, which is written when it is first needed."""
        file = self.folder / "data.pkl"
        write_atomically(file, self.pickled())
        return str(file)

    @cached_property
    def files(self) -> list[str]:
        """Files of large matrices, which other processes open by path."""
        pickler = _Pickler(io.BytesIO())
        pickler.dump(self.data)
        return sorted(pickler.files)

    def pickled(self, with_content: Collection[str] = ()) -> bytes:
        """Return the pickled samples, with the content of some of the files."""
        buffer = io.BytesIO()
        _Pickler(buffer, with_content).dump(self.data)
        return buffer.getvalue()


@contextmanager
def share_data(mv: MultiView) -> Iterator[SharedData]:
    """Share samples with other processes; their files lie in a temporary folder meanwhile."""
    remove_orphans()
    with scratch_folder() as folder:
        yield SharedData(mv, folder)


# Workers outlive a comparison; a second one takes the place of the first.
@lru_cache(maxsize=1)
def open_data(path: str) -> MultiView:
    """Return the samples in the file `SharedData.path`, read once per process."""
    return unpack_data(Path(path).read_bytes(), Path(path).parent)


def unpack_data(content: bytes, folder: Path) -> MultiView:
    """Return the samples that `SharedData.pickled` gave; write included content to the folder."""
    data: MultiView = _Unpickler(io.BytesIO(content), folder).load()
    return data


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


# -- matrices in files -----------------------------------------------------------------------


def _map_large(source: Source, file: Path) -> Source:
    """Return a source whose array, if large or mapped, is the whole of a file; write it if not."""
    if isinstance(source, SubsetSource) and source.columns is None:
        return SubsetSource(_map_large(source.base, file), source.rows)
    if not isinstance(source, ArraySource) or _is_file(source.array):
        return source
    if source.in_memory and source.array.nbytes < MAP_BYTES:
        return source
    return ArraySource(_save_and_map(source.array, file))


def _is_file(value: Any) -> TypeGuard[np.memmap]:
    """Return whether an object is the map of a whole matrix that can be found by its offset."""
    return (
        isinstance(value, np.memmap)
        and value.mode == "r"
        and value.filename is not None
        # A slice of a map does not know where in the file it begins.
        and isinstance(value.base, mmap.mmap)
        and value.flags.forc
    )


def _save_and_map(array: np.ndarray, file: Path) -> np.memmap:
    with writing(file):
        np.save(file, array)
    return np.load(file, mmap_mode="r")


class _Pickler(pickle.Pickler):
    """Pickle maps of files as the place of their cells, or with the content of some files."""

    def __init__(self, buffer: io.BytesIO, with_content: Collection[str] = ()) -> None:
        super().__init__(buffer, protocol=pickle.HIGHEST_PROTOCOL)
        self.with_content = with_content
        self.files: set[str] = set()

    def persistent_id(self, value: Any) -> Any:
        """Return what stands for a map of a file; None for an object that is pickled as usual."""
        if not _is_file(value):
            return None
        file, order = str(value.filename), "C" if value.flags.c_contiguous else "F"
        self.files.add(file)
        if file in self.with_content:
            return np.array(value, order="K")
        return file, value.dtype, value.shape, value.offset, order


class _Unpickler(pickle.Unpickler):
    """Open maps of files, after writing content that came along to files of their own."""

    def __init__(self, buffer: io.BytesIO, folder: Path) -> None:
        super().__init__(buffer)
        self.folder = folder

    def persistent_load(self, pid: Any) -> np.memmap:
        """Return the map that `_Pickler.persistent_id` gave `pid` for."""
        if isinstance(pid, np.ndarray):
            return _save_and_map(pid, self.folder / f"{uuid.uuid4().hex}.npy")
        file, dtype, shape, offset, order = pid
        return np.memmap(file, dtype=dtype, mode="r", offset=offset, shape=shape, order=order)
