"""Paths of untrusted files: judged where their links lead to, and never written through a link."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from baldur.exceptions import InputError


def resolve(path: Path) -> Path:
    """Return a path with every symbolic link followed; it need not exist."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: the path cannot be followed ({error}).") from error


def is_below(path: Path, roots: Sequence[Path], *, strictly: bool = False) -> bool:
    """Return whether a path lies below one of the folders once all links are followed."""
    target = resolve(path)
    tops = [resolve(root) for root in roots]
    return any(top in target.parents or (target == top and not strictly) for top in tops)


def find_special(folder: Path) -> Path | None:
    """Return the first path below a folder that is neither a file nor a folder, or None."""
    for here, folders, files in os.walk(folder, followlinks=False):
        for name in (*folders, *files):
            path = Path(here, name)
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:
                continue  # another process has just finished with it
            if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
                return path
    return None


_NOT_PLAIN = (errno.ELOOP, errno.ENXIO, errno.EMLINK, errno.EISDIR)
"""What the system answers for a link, a pipe without the other end, or a folder."""


def open_plain(path: Path, flags: int) -> int:
    """Return the descriptor of a plain file, without following a link or waiting for a pipe.

    Anything else in its place is an InputError; other errors are those of the system.
    """
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):
        flags |= getattr(os, name, 0)
    try:
        if not hasattr(os, "O_NOFOLLOW") and path.is_symlink():
            raise OSError(errno.ELOOP, "a link")
        descriptor = os.open(path, flags, 0o666)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.ELOOP, "not a plain file")
    except OSError as error:
        if error.errno in _NOT_PLAIN:
            raise InputError(f"{path} is a link or not a regular file.") from error
        raise
    return descriptor


def open_to_append(path: Path) -> IO[str]:
    """Open a text file to add lines to it, refusing links and files with several names.

    A symbolic link, a second name of another file (a hard link) or a pipe in its place is refused:
    the lines would go somewhere else, or never arrive.
    """
    try:
        descriptor = open_plain(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    except InputError as error:
        raise _not_plain(path) from error
    if os.fstat(descriptor).st_nlink > 1:
        os.close(descriptor)
        raise _not_plain(path)
    return os.fdopen(descriptor, "a", encoding="utf-8")


def _not_plain(path: Path) -> InputError:
    return InputError(
        f"{path}: expected a plain file to add lines to, but it is a link or not a regular file. "
        "Remove it, or choose another folder for the results."
    )
