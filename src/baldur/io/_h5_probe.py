"""Read an HDF5 file from end to end in a process of its own, which a damaged file may crash.

The HDF5 library follows pointers in a file without checking all of them; a flipped byte can end
the process. Run as a script: ``python _h5_probe.py file``. Exceptions are no concern here, since
the caller meets them again and turns them into errors. Only a process that dies or hangs is.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any

__all__ = ["main"]

_BLOCK = 1 << 26
_DEPTH = 10
_MEMORY = 8 << 30


def _look(node: Any, h5py: Any, depth: int) -> None:
    with contextlib.suppress(Exception):
        for name in node.attrs:
            with contextlib.suppress(Exception):
                node.attrs[name]
    if isinstance(node, h5py.Dataset):
        if node.external or node.is_virtual:
            return
        if node.ndim == 0:
            node[()]
            return
        line = node.dtype.itemsize
        for side in node.shape[1:]:
            line *= side
        # Cells that were never written take no space in the file and need no look. No filter packs
        # thousands of bytes into one.
        claimed, stored = line * node.shape[0], node.id.get_storage_size()
        if claimed > _BLOCK and claimed > 4000 * stored:
            return
        step = max(1, _BLOCK // max(1, line))
        for start in range(0, node.shape[0], step):
            node[start : start + step]
        return
    if depth < _DEPTH:
        for name in node:
            with contextlib.suppress(Exception):
                if isinstance(node.get(name, getlink=True), h5py.HardLink):
                    _look(node[name], h5py, depth + 1)


def main(file: str) -> None:
    """Read all of a file."""
    import h5py

    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    with contextlib.suppress(Exception), h5py.File(file, "r", locking=False) as opened:
        _look(opened, h5py, 0)


if __name__ == "__main__":
    main(sys.argv[1])
