"""Read an HDF5 file from end to end in a process of its own, which a damaged file may crash.

The HDF5 library follows pointers in a file without checking all of them, so that a flipped byte can
crash the process, and one stored text may stand for any number of cells. Run as a script:
``python hdf5_first_look.py file max_bytes seconds``. Exceptions are ignored here, because the
caller meets them again and reports them. The script finds files that crash, hang or need too much
memory.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator
from typing import Any

from baldur.core.limited_process import TOO_LARGE, limit_process
from baldur.core.limits import BLOCK_BYTES, MAX_RATIO

_TEXTS = 1 << 12


@contextlib.contextmanager
def _quietly() -> Iterator[None]:
    """Ignore errors in a file, except running out of memory."""
    try:
        yield
    except (OSError, ValueError, TypeError, KeyError, RuntimeError) as error:
        # The library has no error of its own for memory.
        if any(word in str(error).lower() for word in ("memory", "alloc")):
            raise MemoryError from error


class _Look:
    """Reads every object once, and counts the bytes of text."""

    def __init__(self, h5py: Any, max_bytes: int) -> None:
        self.h5py = h5py
        self.left = max_bytes
        self.seen: set[tuple[int, int]] = set()

    def at(self, node: Any) -> None:
        info = self.h5py.h5o.get_info(node.id)
        if (info.fileno, info.addr) in self.seen:
            return
        self.seen.add((info.fileno, info.addr))
        for name in node.attrs:
            with _quietly():
                node.attrs[name]
        if isinstance(node, self.h5py.Dataset):
            with _quietly():
                self.cells(node)
            return
        for name in node:
            with _quietly():
                if isinstance(node.get(name, getlink=True), self.h5py.HardLink):
                    self.at(node[name])

    def cells(self, node: Any) -> None:
        if node.external or node.is_virtual:
            return
        if node.ndim == 0:
            node[()]
            return
        line = node.dtype.itemsize
        for side in node.shape[1:]:
            line *= side
        # Cells that were never written need no look: the caller refuses them.
        claimed, stored = line * node.shape[0], node.id.get_storage_size()
        if claimed > BLOCK_BYTES and claimed > MAX_RATIO * stored:
            return
        text = node.dtype.kind == "O"
        step = max(1, min(BLOCK_BYTES // max(1, line), _TEXTS if text else sys.maxsize))
        for start in range(0, node.shape[0], step):
            piece = node[start : start + step]
            if text and node.ndim == 1:
                self.left -= sum(len(one) + 50 for one in piece if isinstance(one, (bytes, str)))
                if self.left < 0:
                    raise MemoryError


def main(file: str, max_bytes: str, seconds: str) -> int:
    """Read all of a file; return the exit code."""
    import h5py

    limit_process(int(max_bytes), int(seconds))
    try:
        with _quietly(), h5py.File(file, "r", locking=False) as opened:
            # Texts are held as bytes, as text and in an array.
            _Look(h5py, int(max_bytes) // 3).at(opened)
    except MemoryError:
        return TOO_LARGE
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
