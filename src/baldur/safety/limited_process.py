"""Read an untrusted file first in a separate process, which it may exhaust or crash.

Some formats do not say beforehand how much they unpack to, and their libraries, written in C, can
be crashed by a damaged file. A small script then reads the file first, with the budget of the
reader as a limit of the operating system. Only when it comes to its end is the file read here.

The limit on memory is that of POSIX systems; Windows has the limit on time alone.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import sys
from pathlib import Path

from baldur.exceptions import InputError
from baldur.safety.budget import seconds_for
from baldur.safety.escape import one_line

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
