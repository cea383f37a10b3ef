"""Read an untrusted HDF5 or Parquet file first in a separate process, which it may crash.

Both formats do not say beforehand how much they unpack to, and their libraries, written in C, can
be crashed by a damaged file. This file, run as a script, reads all of such a file within the budget
of the reader as a limit of the operating system. Only when it comes to its end is the file read
by the caller. Errors in a file are ignored in the script, because the caller meets them again and
reports them: it finds files that crash, hang or need too much memory.

The limit on memory is that of POSIX systems; Windows has the limit on time alone.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from baldur.core.escape import one_line
from baldur.core.limits import BLOCK_BYTES, MAX_RATIO, seconds_for
from baldur.exceptions import InputError

_PATIENCE = 10
# The limit is one of the processor's time; a busy machine makes it longer by the clock.

_PLAIN_MEMORY = {"MALLOC_ARENA_MAX": "1", "ARROW_DEFAULT_MEMORY_POOL": "system"}
# The limit counts addresses, of which other ways to manage memory reserve far more than they use.

_TOO_LARGE = 3
"""Exit code of the script where it would have needed more memory."""

# Columns of Parquet at a time: one by one, a wide table takes a hundred times longer than at once.
_COLUMNS = 64
# Texts of HDF5 at a time.
_TEXTS = 1 << 12


def first_look(
    path: Path, max_bytes: int, what: str, columns: dict[str, Any] | None = None
) -> None:
    """Read a file in a separate process within the limits; refuse the file if that fails.

    For Parquet, `columns` lists those that the caller reads ``now``, which all have to fit into
    memory, and those that it reads ``later``, a few at a time.
    """
    seconds = seconds_for(path)
    too_slow = InputError(
        f"{path}: its library did not finish reading it as {what} in {seconds:.0f} seconds. The "
        f"file is damaged, or was constructed to be slow to read; write or copy it again."
    )
    arguments = [str(path), str(max_bytes), str(math.ceil(seconds))]
    try:
        process = subprocess.run(
            [sys.executable, "-P", __file__, *arguments],
            env={
                **os.environ,
                **_PLAIN_MEMORY,
                "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),
            },
            input=json.dumps(columns).encode(),
            capture_output=True,
            timeout=_PATIENCE * seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise too_slow from error
    if process.returncode == -getattr(signal, "SIGXCPU", 0):
        raise too_slow
    if process.returncode == _TOO_LARGE:
        raise InputError(
            f"{path}: reading it as {what} takes more memory than the limit max_bytes of "
            f"{max_bytes / 2**30:.3g} GB, though it stores {path.stat().st_size / 2**20:.3g} MB. "
            "Give a larger max_bytes= if you know where it comes from."
        )
    if process.returncode < 0:
        raise InputError(
            f"{path}: its library crashed on it (signal {-process.returncode}). The file is "
            f"damaged or not {what}; write or copy it again."
        )
    if process.returncode != 0:
        # What is wrong with a file the script leaves to the reader; this was the look itself.
        last = process.stderr.decode(errors="replace").strip().rpartition("\n")[2]
        raise InputError(
            f"{path}: the separate process that reads it first did not finish "
            f"({one_line(last)[:300]}), so that it is not read. Give a larger max_bytes=, or close "
            "other programs if the machine is short of memory."
        )


def text_columns(schema: Any) -> list[str]:
    """Return the text columns of an Arrow schema; as dictionaries they hold each text once."""
    from pyarrow import types

    texts = (types.is_string, types.is_large_string, types.is_binary, types.is_large_binary)
    return [field.name for field in schema if any(kind(field.type) for kind in texts)]


# -- in the separate process -----------------------------------------------------------------------


def _limit_process(n_bytes: int, seconds: int) -> None:
    """Let this process take at most so many bytes more than it has now."""
    # Windows has no such limit, and some systems refuse to set it.
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 5))
        with open("/proc/self/statm", encoding="ascii") as numbers:
            # The first number counts the pages of the address space.
            now = int(numbers.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (now + n_bytes, now + n_bytes))


def _read_parquet(file: str, max_bytes: int, seconds: int, columns: dict[str, list[str]]) -> None:
    """Read columns of a Parquet file, to see whether that crashes or takes too much memory."""
    import pyarrow as pa
    from pyarrow import parquet

    batches = [
        (columns[when][start : start + _COLUMNS], when == "now")
        for when in ("now", "later")
        for start in range(0, len(columns[when]), _COLUMNS)
    ]
    # Pages may unpack to more than the footer says. Half: the caller also holds the table made.
    bytes_left = max_bytes // 2
    # Every worker of the library takes address space, which the limit counts.
    pa.set_cpu_count(1)
    pa.set_io_thread_count(1)
    _limit_process(max_bytes, seconds)
    # Arrow's own error for memory derives from MemoryError, which is not ignored.
    with contextlib.suppress(pa.lib.ArrowInvalid, OSError, ValueError, NotImplementedError):
        texts = text_columns(parquet.ParquetFile(file).schema_arrow)
        with parquet.ParquetFile(file, read_dictionary=texts) as opened:
            for group in range(opened.num_row_groups):
                for names, is_held in batches:
                    cells = opened.read_row_group(group, columns=names, use_threads=False)
                    bytes_left -= cells.nbytes if is_held else 0
                    if bytes_left < 0:
                        raise MemoryError


def _read_hdf5(file: str, max_bytes: int, seconds: int) -> None:
    """Read every object of an HDF5 file once, to see whether that crashes or takes too much.

    The library follows pointers in a file without checking all of them, and one stored text may
    stand for any number of cells.
    """
    import h5py

    _limit_process(max_bytes, seconds)
    seen: set[tuple[int, int]] = set()
    # Texts are held as bytes, as text and in an array.
    bytes_left = max_bytes // 3
    with _quietly(), h5py.File(file, "r", locking=False) as opened:
        # Opened one at a time: there may be many.
        members: list[tuple[Any, str]] = [(opened, "")]
        while members:
            group, member = members.pop()
            with _quietly():
                if member and not isinstance(group.get(member, getlink=True), h5py.HardLink):
                    continue
                node = group[member] if member else group
                info = h5py.h5o.get_info(node.id)
                if (info.fileno, info.addr) in seen:
                    continue
                seen.add((info.fileno, info.addr))
                for name in node.attrs:
                    with _quietly():
                        node.attrs[name]
                if isinstance(node, h5py.Dataset):
                    bytes_left -= _read_cells(node, bytes_left)
                    continue
                members += [(node, name) for name in node]


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Ignore errors in a file, except running out of memory."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        # The library has no error of its own for memory.
        if any(word in str(error).lower() for word in ("memory", "alloc")):
            raise MemoryError from error


def _read_cells(node: Any, max_text_bytes: int) -> int:
    """Read a data set of HDF5 in pieces; return the bytes of its texts, or raise MemoryError."""
    if node.external or node.is_virtual:
        return 0
    if node.ndim == 0:
        node[()]
        return 0
    row_bytes = node.dtype.itemsize * math.prod(node.shape[1:])
    # Cells that were never written need no look: the caller refuses them.
    claimed = row_bytes * node.shape[0]
    stored = node.id.get_storage_size()
    if claimed > BLOCK_BYTES and claimed > MAX_RATIO * stored:
        return 0
    text = node.dtype.kind == "O"
    step = max(1, min(BLOCK_BYTES // max(1, row_bytes), _TEXTS if text else sys.maxsize))
    text_bytes = 0
    for start in range(0, node.shape[0], step):
        piece = node[start : start + step]
        if text and node.ndim == 1:
            # 50 bytes are what any Python object of text takes.
            text_bytes += sum(len(cell) + 50 for cell in piece if isinstance(cell, (bytes, str)))
            if text_bytes > max_text_bytes:
                raise MemoryError
    return text_bytes


def main(file: str, max_bytes: str, seconds: str) -> int:
    """Read a file, as Parquet where its columns come on standard input; return the exit code."""
    columns = json.load(sys.stdin)
    try:
        if columns is None:
            _read_hdf5(file, int(max_bytes), int(seconds))
        else:
            _read_parquet(file, int(max_bytes), int(seconds), columns)
    except MemoryError:
        return _TOO_LARGE
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
