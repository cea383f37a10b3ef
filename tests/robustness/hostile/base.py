"""What a hostile case is: how to make the file, and which reader gets it."""

import struct
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

CANARY = "canary-7f3a"
"""Stands in every file outside, and must not turn up in anything a reader says."""

SMALL = 1 << 28
"""Memory the readers are given here, 256 MB, so that many files can be tried; some cases take the
default."""


@dataclass
class Case:
    """One hostile file.

    Attributes
    ----------
    make : callable
        Called with the folder to write to and the folder outside; returns the file.
    reader : str
        Key of `driver.READERS`.
    options : dict
        For the reader.
    read : bool
        Whether reading it is right, too: it is harmless once the reader is careful.
    """

    make: Callable[[Path, Path], Path]
    reader: str = "table"
    options: dict[str, Any] = field(default_factory=dict)
    read: bool = False


def content(name: str, data: Any) -> Callable[[Path, Path], Path]:
    """Make a file of some bytes or text; large ones are given as a function that makes them."""

    def make(folder: Path, outside: Path) -> Path:
        path = folder / name
        made = data() if callable(data) else data
        path.write_bytes(made if isinstance(made, bytes) else made.encode())
        return path

    return make


def archive(path: Path, members: dict[str, tuple[bytes, bytes, int, bytes]]) -> Path:
    """Write a zip archive of (start, piece, times, end) without compressing the piece each time."""
    out, central = b"", b""
    for name, (start, piece, times, end) in members.items():
        packed = (
            _deflate(start, zlib.Z_FULL_FLUSH)
            + _deflate(piece, zlib.Z_FULL_FLUSH) * times
            + _deflate(end, zlib.Z_FINISH)
        )
        check = zlib.crc32(start)
        for _ in range(times):
            check = zlib.crc32(piece, check)
        check = zlib.crc32(end, check)
        size = len(start) + len(piece) * times + len(end)
        raw = name.encode()
        common = struct.pack("<HHHHHIIIHH", 20, 0, 8, 0, 33, check, len(packed), size, len(raw), 0)
        central += b"PK\x01\x02" + struct.pack("<H", 20) + common
        central += struct.pack("<HHHII", 0, 0, 0, 0, len(out)) + raw
        out += b"PK\x03\x04" + common + raw + packed
    n = len(members)
    end_record = struct.pack("<4sHHHHIIH", b"PK\x05\x06", 0, 0, n, n, len(central), len(out), 0)
    path.write_bytes(out + central + end_record)
    return path


def _deflate(data: bytes, flush: int) -> bytes:
    # A full flush forgets what came before, so that pieces can be put in a row.
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return packer.compress(data) + packer.flush(flush)
