"""Limits: memory and time for the reading of one file, and threads of numerical libraries.

Every reader keeps to one budget, whatever the file claims or unpacks to:

- memory: `MAX_BYTES` (4 GB) above what Python and its libraries take, or what the caller gives as
  ``max_bytes``. Where a header says how much will be needed, the file is refused before anything
  is allocated; where it does not, a limited process looks at the file first
  (`baldur.io.sandboxed_read`).
- time: `SECONDS` (20) plus one for every 5 MB stored on disk, so that a small file is never worked
  on for more than half a minute, and a large one is given the time its size deserves. The time
  of the processor counts, since a machine that is busy otherwise is not the fault of a file.

What a reader leaves on disk to be read in pieces (``.npy``, PLINK, backed MuData) does not count.
"""

from __future__ import annotations

import functools
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from baldur.exceptions import InputError

MAX_BYTES = 4 << 30
"""Memory for reading one file by default: 4 GB, which a laptop with 8 GB has."""

LAZY_BYTES = 1 << 26
"""Matrices above this size stay on disk where the format can be read in pieces: 64 MB."""

BLOCK_BYTES = 1 << 26
"""Read from disk at a time, where a file is read in pieces: 64 MB, far below the budget."""

SECONDS = 20.0
"""Time for reading any file: real tables of a few megabytes take one or two seconds."""

_BYTES_PER_SECOND = 5e6
# Text tables are parsed at 10 to 50 MB a second; a machine under load has half of that.

NAME_LENGTH = 20_000
"""Longest sample id or feature name: long insertions make names of some thousand letters, and
arrays of text are as wide as their longest entry."""

MAX_RATIO = 4000
"""Largest ratio of cells to bytes stored, above 64 MB: the best compression of measurements gives a
hundred, that of zeros a thousand."""

# Text is copied a few times on its way (checked, stripped, compared).
_TEXT_COPIES = 4

P = ParamSpec("P")
R = TypeVar("R")


def seconds_for(path: Path) -> float:
    """Return the time the reading of a file may take."""
    return SECONDS + path.stat().st_size / _BYTES_PER_SECOND


class ReadLimits:
    """Memory and time for reading one file; readers ask in every loop over its content."""

    def __init__(self, path: Path, max_bytes: int = MAX_BYTES) -> None:
        self.path = path
        self.max_bytes = max_bytes
        self.seconds = seconds_for(path)
        self._end = time.thread_time() + self.seconds

    def check_size(self, n_bytes: float, advice: str) -> None:
        """Refuse what would take more memory than allowed, before taking it."""
        check_size(self.path, n_bytes, self.max_bytes, advice)

    def check_time(self) -> None:
        """Raise an error if the time limit has passed."""
        if time.thread_time() > self._end:
            raise InputError(
                f"{self.path}: it is not read within {self.seconds:.0f} seconds, which is ample "
                "for a file of its size. It unpacks to far more than it stores, or was "
                "constructed to be slow to read; save the data as .npy or Parquet, or ask for "
                "fewer columns."
            )


def check_size(path: Path | str, n_bytes: float, max_bytes: int, advice: str) -> None:
    """Refuse what would take more memory than allowed, before taking it."""
    if n_bytes > max_bytes:
        raise InputError(
            f"{path}: reading it would take {n_bytes / 2**30:.3g} GB of memory, above the limit "
            f"max_bytes of {max_bytes / 2**30:.3g} GB. {advice}"
        )


def check_ratio(path: Path | str, what: str, claimed: float, stored: float) -> None:
    """Refuse a file that claims far more bytes of cells than it can unpack to from those stored."""
    if claimed > LAZY_BYTES and claimed > MAX_RATIO * stored:
        raise InputError(
            f"{path}: {what} claims {claimed / 2**20:,.0f} MB of cells, but stores "
            f"{stored / 2**20:.3g} MB. The file is incomplete, or was constructed to fill the "
            f"memory."
        )


def text_array(values: Iterable[Any], origin: str, max_bytes: int = MAX_BYTES) -> np.ndarray:
    """Return names as an array of text; refuse very long names, which would widen every entry."""
    listed = [str(value) for value in values]
    longest = max(map(len, listed), default=0)
    if longest > NAME_LENGTH:
        raise InputError(
            f"{origin}: expected names of at most {NAME_LENGTH:,} characters, but one has "
            f"{longest:,}. Rename it."
        )
    # An array of text has four bytes for each character of its longest entry.
    check_size(
        origin,
        len(listed) * longest * 4 * _TEXT_COPIES,
        max_bytes,
        f"One of its {len(listed):,} names has {longest:,} characters; shorten it.",
    )
    return np.asarray(listed, dtype=str)


def no_bare_memory_error(reader: Callable[P, R]) -> Callable[P, R]:
    """Make a reader say which file was too large, where the system ran out of memory."""

    @functools.wraps(reader)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return reader(*args, **kwargs)
        except MemoryError as error:
            raise InputError(
                f"{str(args[0])[:200] if args else 'The file'}: there is not enough memory to read "
                "it. Close other programs, ask for fewer columns, or save the data in a form that "
                "is read in pieces (.npy, Parquet)."
            ) from error

    return guarded


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
