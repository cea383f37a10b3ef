"""ScratchFolder: a temporary folder that is removed after its process, also after a kill."""

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
