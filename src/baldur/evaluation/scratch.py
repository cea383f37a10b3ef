"""Temporary folders that outlive neither their process nor somebody else's mistake."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
import uuid
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path

from baldur.atomic_io import folder_lock, writing

__all__ = ["ScratchFolder", "sweep_left_behind"]

_PREFIX = "baldur-data-"


class ScratchFolder:
    """A temporary folder that others leave alone while its process lives.

    A number of a process says nothing in another container or on another machine, so the owner
    holds a lock on a file in the folder. Locks are certain within one running kernel, which the
    name of the folder therefore tells; folders of other machines are never touched.
    """

    def __init__(self) -> None:
        root = Path(tempfile.gettempdir())
        # It gets the name by which others look for it once the lock is held.
        unborn = root / f"baldur-new-{uuid.uuid4().hex}"
        self.path = root / f"{_PREFIX}{_kernel()}-{uuid.uuid4().hex[:12]}"
        self._lock = ExitStack()
        with writing(root):
            unborn.mkdir(mode=0o700)
            try:
                self._lock.enter_context(folder_lock(unborn))
                os.rename(unborn, self.path)
            except BaseException:
                self._lock.close()
                shutil.rmtree(unborn, ignore_errors=True)
                raise

    def remove(self) -> None:
        """Remove it with all it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        self._lock.close()


@cache
def _kernel() -> str:
    """A name for this running system, the same in all its containers."""
    try:
        seen = Path("/proc/sys/kernel/random/boot_id").read_text()
    except OSError:
        seen = f"{uuid.getnode()}"
    return hashlib.sha256(seen.encode()).hexdigest()[:12]


def sweep_left_behind() -> None:
    """Remove the folders of processes of ours that were killed before they could."""
    if os.name != "posix":
        return
    for folder in Path(tempfile.gettempdir()).glob(f"{_PREFIX}{_kernel()}-*"):
        # Gone meanwhile, or not ours.
        with suppress(OSError):
            if folder.lstat().st_uid != os.getuid():
                continue
            with folder_lock(folder, wait=False) as left:
                if left:
                    shutil.rmtree(folder, ignore_errors=True)
