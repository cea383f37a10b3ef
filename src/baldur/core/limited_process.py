"""Read an untrusted file first in a separate process, which it may exhaust or crash.

Some formats do not say beforehand how much they unpack to, and their libraries, written in C, can
be crashed by a damaged file. A small script then reads the file first, with the budget of the
reader as a limit of the operating system. Only when it comes to its end is the file read here.

The limit on memory is that of POSIX systems; Windows has the limit on time alone.
"""

from __future__ import annotations

import contextlib
import errno
import math
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO

from baldur.core.escape import one_line
from baldur.core.limits import seconds_for
from baldur.exceptions import InputError

_PATIENCE = 10
# The limit is one of the processor's time; a busy machine makes it longer by the clock.

_PLAIN_MEMORY = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
# The limit counts addresses, of which other ways to manage memory reserve far more than they use.

TOO_LARGE = 3
"""Exit code of a script that would have needed more memory."""


def first_look(script: Path, path: Path, max_bytes: int, what: str, told: str = "") -> None:
    """Run a script that reads a file, within the limits; refuse the file if the script fails."""
    seconds = seconds_for(path)
    slow = InputError(
        f"{path}: its library did not finish reading it as {what} in {seconds:.0f} seconds. The "
        f"file is damaged, or was constructed to be slow to read; write or copy it again."
    )
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(script), str(path), str(max_bytes), str(math.ceil(seconds))],
            env={
                **os.environ,
                **_PLAIN_MEMORY,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            input=told.encode(),
            capture_output=True,
            timeout=_PATIENCE * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise slow from error
    if done.returncode == -getattr(signal, "SIGXCPU", 0):
        raise slow
    if done.returncode == TOO_LARGE:
        raise InputError(
            f"{path}: reading it as {what} takes more memory than the limit max_bytes of "
            f"{max_bytes / 2**30:.3g} GB, though it stores {path.stat().st_size / 2**20:.3g} MB. "
            "Give a larger max_bytes= if you know where it comes from."
        )
    if done.returncode < 0:
        raise InputError(
            f"{path}: its library crashed on it (signal {-done.returncode}). The file is "
            f"damaged or not {what}; write or copy it again."
        )
    if done.returncode != 0:
        # What is wrong with a file the scripts leave to the reader; this was the look itself.
        last = done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InputError(
            f"{path}: the separate process that reads it first did not finish "
            f"({one_line(last)[:300]}), so that it is not read. Give a larger max_bytes=, or close "
            "other programs if the machine is short of memory."
        )


def limit_process(n_bytes: int, seconds: int) -> None:
    """Let this process take at most so many bytes more than it has now; for the scripts."""
    # Windows has no such limit, and some systems refuse to set it.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        with open("/proc/self/statm", encoding="ascii") as numbers:
            now = int(numbers.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes, now + n_bytes))


def resolve(path: Path) -> Path:
    """Return a path with every symbolic link followed; it need not exist."""
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:
        raise InputError(f"{path}: the path cannot be followed ({error}).") from error


def is_below(path: Path, roots: Sequence[Path], *, strictly: bool = False) -> bool:
    """Return whether a path lies below one of the folders once all links are followed."""
    found = resolve(path)
    tops = [resolve(root) for root in roots]
    return any(top in found.parents or (found == top and not strictly) for top in tops)


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


def open_to_append(path: Path) -> IO[str]:
    """Open a text file to add lines to it, refusing links and files with several names.

    A symbolic link, a second name of another file (a hard link) or a pipe in its place is refused:
    the lines would go somewhere else, or never arrive.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for name in ("O_NOFOLLOW", "O_NONBLOCK", "O_CLOEXEC"):
        flags |= getattr(os, name, 0)
    try:
        number = os.open(path, flags, 0o666)
    except OSError as error:
        # A link, a pipe without a reader, or a folder; other errors are those of the disk.
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.EISDIR):
            raise _not_plain(path) from error
        raise
    state = os.fstat(number)
    if not stat.S_ISREG(state.st_mode) or state.st_nlink > 1:
        os.close(number)
        raise _not_plain(path)
    return os.fdopen(number, "a", encoding="utf-8")


def _not_plain(path: Path) -> InputError:
    return InputError(
        f"{path}: expected a plain file to add lines to, but it is a link or not a regular file. "
        "Remove it, or choose another folder for the results."
    )
