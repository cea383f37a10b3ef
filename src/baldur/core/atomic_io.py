"""Write files so that a crash, a full disk or a second process cannot damage them.

======================  =========================================================================
`write_atomically`      one file: the old content or the new one, never a part
`atomic_file`           the same, for content that is written piece by piece
`replace_files`         a set of files: the old set or the new one, never a mixture
`folder_lock`           one process at a time in a folder; a lock ends with its holder
======================  =========================================================================

Errors of the operating system become an `OutputError` of one line.
"""

from __future__ import annotations

import errno
import os
import shutil
import stat
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO
from uuid import uuid4

from filelock import BaseFileLock, FileLock, Timeout

from baldur.exceptions import OutputError

LOCK = ".lock"
PART = ".part"
"""Ending of a file that is being written."""

# A new set of files: being written, complete, and moving to its place.
_STAGE, _READY, _MOVING = ".stage", ".new", ".moving"

# What the system answers where a file system does not support locks.
_NO_LOCKS = {errno.ENOSYS, errno.ENOLCK, errno.EOPNOTSUPP, errno.EINVAL}

_ADVICE = {
    errno.ENOSPC: "free some space, then run the same again",
    errno.EDQUOT: "free some space, then run the same again",
    errno.EFBIG: "raise the limit on file sizes (ulimit -f), then run the same again",
    errno.EROFS: "choose another place",
    errno.EACCES: "allow writing there, or choose another place",
    errno.EPERM: "allow writing there, or choose another place",
}


@contextmanager
def writing(path: str | Path) -> Iterator[None]:
    """Turn errors of the operating system inside the block into an `OutputError` about `path`."""
    try:
        yield
    except OutputError:
        raise
    except OSError as error:
        raise refused(path, error) from error


def refused(what: str | Path, error: OSError) -> OutputError:
    """Return the error that says in one line what could not be written, why, and what to do."""
    # numpy reports a short write without a number; a full disk is why writes are short.
    number = error.errno or errno.ENOSPC
    why = error.strerror or os.strerror(number)
    fix = _ADVICE.get(number, "check the place and the disk, then run the same again")
    return OutputError(f"{what} cannot be written ({why}); {fix}.")


@contextmanager
def atomic_file(path: str | Path, *, sync: bool = True) -> Iterator[IO[bytes]]:
    """Open a file for writing that appears under its name when the block ends without error."""
    path = Path(path)
    part = path.with_name(f".{uuid4().hex}{PART}")
    with writing(path):
        file = open(part, "xb")  # noqa: SIM115 closed below, on every way out
    try:
        try:
            yield file
        except OSError as error:
            # An error with a file name is about another file, which the caller reads.
            if isinstance(error, OutputError) or error.filename is not None:
                raise
            raise refused(path, error) from error
        with writing(path):
            file.flush()
            if sync:
                os.fsync(file.fileno())
            file.close()
            os.replace(part, path)
            if sync:
                sync_folder(path.parent)
    except BaseException:
        # A full disk refuses what is left in the buffer once more.
        with suppress(OSError):
            file.close()
        with suppress(OSError):
            part.unlink(missing_ok=True)
        raise


def write_atomically(path: str | Path, content: bytes, *, sync: bool = True) -> None:
    """Write a file so that a reader sees the old content or the new, and never a part."""
    with atomic_file(path, sync=sync) as file:
        file.write(content)


def make_folder(path: str | Path) -> Path:
    """Make a folder and its parents, unless they exist already."""
    with writing(path):
        Path(path).mkdir(parents=True, exist_ok=True)
    return Path(path)


def check_writable(folder: str | Path) -> None:
    """Write and remove an empty file, to check before long work that results can be written."""
    probe = Path(folder) / f".{uuid4().hex}{PART}"
    with writing(folder):
        open(probe, "xb").close()
        probe.unlink()


def replace_files(
    folder: str | Path, contents: Mapping[str, bytes], known: Collection[str]
) -> None:
    """Replace a set of files as a whole; no file of an older set stays beside the new one.

    `known` are the names that files of any set may have; other files are left alone. The new set
    is written beside the old one first, so that a full disk changes nothing. Old and new files are
    never seen together. If the process is killed while it moves the new files to their place, the
    next call moves the rest first.
    """
    folder = Path(folder)
    unknown = sorted(set(contents) - set(known))
    if unknown:
        raise ValueError(f"expected only known file names, but got {unknown}")
    with folder_lock(folder) as alone, writing(folder):
        _finish_replacing(folder, known)
        if alone:
            for left in folder.glob(f".*{_STAGE}"):
                shutil.rmtree(left, ignore_errors=True)
        stage = folder / f".{uuid4().hex}{_STAGE}"
        try:
            stage.mkdir()
            for name, content in contents.items():
                with open(stage / name, "xb") as file:
                    file.write(content)
                    file.flush()
                    os.fsync(file.fileno())
            sync_folder(stage)
            os.rename(stage, folder / _READY)
        except BaseException:
            shutil.rmtree(stage, ignore_errors=True)
            raise
        sync_folder(folder)
        _finish_replacing(folder, known)


def _finish_replacing(folder: Path, known: Collection[str]) -> None:
    """Move a complete new set to its place; a killed process may have left it at any step."""
    ready, moving = folder / _READY, folder / _MOVING
    for place in (ready, moving):
        # We never make links: one there was put by somebody else, and its target is not ours.
        if place.is_symlink():
            os.unlink(place)
    if ready.is_dir() and not moving.is_dir():
        for name in known:
            (folder / name).unlink(missing_ok=True)
        os.rename(ready, moving)
    if moving.is_dir():
        for name in known:
            # Only what `replace_files` itself can have put there.
            with suppress(FileNotFoundError):
                if stat.S_ISREG(os.lstat(moving / name).st_mode):
                    os.replace(moving / name, folder / name)
        shutil.rmtree(moving)
        sync_folder(folder)


@contextmanager
def folder_lock(folder: str | Path, *, wait: bool = True) -> Iterator[bool]:
    """Hold a lock on a folder; the system releases it when the process ends, however it ends.

    Yields whether it is held: not where the file system has no locks, or `wait` is false and
    another process holds it.
    """
    path = Path(folder) / LOCK
    # A marker file instead of a lock would outlive a killed process, so there is no such fallback.
    # One thread may release what another one acquired.
    lock = FileLock(path, fallback_to_soft=False, thread_local=False)
    try:
        with writing(path):
            # filelock would make a folder that is missing.
            os.stat(Path(folder) / ".")
            held = _acquire(lock, wait)
        yield held
    finally:
        lock.release(force=True)


def _acquire(lock: BaseFileLock, wait: bool) -> bool:
    """Return whether the lock was acquired; raise OSError if its file cannot be opened."""
    try:
        lock.acquire(timeout=-1 if wait else 0)
    except Timeout:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS:
            return False
        raise
    return True


def sync_folder(folder: Path) -> None:
    """Ask the disk to store the new names; where a system cannot, the files are complete anyway."""
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
