""".npy and .npz: headers are checked before any cell is read, and pickles are never opened."""

from __future__ import annotations

import io
import struct
import zipfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from baldur.core.limits import LAZY_BYTES, NAME_LENGTH, check_size
from baldur.exceptions import InputError
from baldur.io.files import parsing
from baldur.views.encode import feature_names
from baldur.views.validate import some

_SHORT_HEADER = 30  # bytes of a zip entry's header before its name
# Members looked at: a data set has a handful.
_MAX_MEMBERS = 1000
# Longest header, all of which is read at once: numpy's own are 128 bytes.
_MAX_HEADER = 10_000
# Names go through text, lists and checks: this many times their size on the way.
_NAME_COPIES = 8
_ADVICE = (
    "Give a larger max_bytes=, or save it with numpy.save or numpy.savez (not compressed), which "
    "is read piece by piece."
)


@dataclass(frozen=True)
class _Header:
    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    length: int

    @property
    def n_bytes(self) -> int:
        n = self.dtype.itemsize
        for side in self.shape:
            n *= side
        return n


def read_npy(path: Path, max_bytes: int) -> np.ndarray:
    """Return the matrix of a .npy file, mapped when it is large."""
    with parsing(path, "a .npy file"), path.open("rb") as stream:
        head = _read_header(stream, path, "the array")
    if head.n_bytes + head.length != path.stat().st_size:
        raise InputError(
            f"{path}: expected {head.n_bytes + head.length} bytes by its header, but the file has "
            f"{path.stat().st_size}. It was cut short; write or copy it again."
        )
    _check_matrix(head, path, "the array")
    with parsing(path, "a .npy file"):
        if head.n_bytes > LAZY_BYTES:
            return _map(path, head, head.length)
        check_size(path, head.n_bytes, max_bytes, _ADVICE)
        return np.load(path, allow_pickle=False)


def read_npz(
    path: Path, array: str | None, max_bytes: int
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return matrix, feature names and sample ids (None where the file has none)."""
    with parsing(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        entries = {e.filename.removesuffix(".npy"): e for e in archive.infolist()}
        if len(entries) > _MAX_MEMBERS:
            raise InputError(f"{path}: expected a few arrays, but it holds {len(entries)} members.")
        heads = {}
        for name, entry in entries.items():
            with archive.open(entry) as stream:
                heads[name] = _read_header(stream, path, f"the array {name!r}")
            if heads[name].n_bytes + heads[name].length != entry.file_size:
                raise InputError(
                    f"{path}: the array {name!r} claims {heads[name].n_bytes} bytes, but the file "
                    f"stores {entry.file_size - heads[name].length}. It is damaged; write it again."
                )
        matrix = _matrix_name(path, heads, array)
        _check_matrix(heads[matrix], path, f"the array {matrix!r}")
        X = _read_member(archive, path, entries[matrix], heads[matrix], max_bytes)
        found: list[np.ndarray | None] = []
        for what, n, keys in (
            ("column", X.shape[1], ("features", "feature_names")),
            ("row", X.shape[0], ("samples", "sample_ids", "ids")),
        ):
            key = _first(heads, keys)
            if key is None:
                found.append(None)
                continue
            if heads[key].shape != (n,):
                raise InputError(
                    f"{path}: the matrix has {n} {what}s, but there are {heads[key].shape[0]} "
                    f"names of {what}s in {key!r}."
                )
            found.append(_text(archive, path, entries[key], heads[key], max_bytes))
    return X, found[0], found[1]


def _first(heads: dict[str, _Header], keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in heads and len(heads[key].shape) == 1), None)


def _matrix_name(path: Path, heads: dict[str, _Header], array: str | None) -> str:
    flat = [name for name, head in heads.items() if len(head.shape) == 2]
    if array is not None:
        if array not in heads:
            raise InputError(f"{path}: there is no array {array!r}; it holds {some(list(heads))}.")
        return array
    if "X" in heads:
        return "X"
    if len(flat) != 1:
        raise InputError(
            f"{path}: expected an array called 'X' or just one 2-D array, but it holds "
            f"{some(list(heads))}. Say which with array=."
        )
    return flat[0]


def _read_header(stream: IO[bytes], path: Path, what: str) -> _Header:
    version = npy.read_magic(stream)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise InputError(f"{path}: {what} is in version {version} of the format, not 1.0 or 2.0.")
    # The length of the header comes first, and may claim 4 GB.
    size = stream.read(2 if version == (1, 0) else 4)
    length = int.from_bytes(size, "little")
    if length > _MAX_HEADER:
        raise InputError(f"{path}: {what} claims a header of {length:,} bytes. It is damaged.")
    header = stream.read(length)
    shape, fortran, dtype = read(io.BytesIO(size + header))
    if dtype.hasobject:
        raise InputError(
            f"{path}: {what} holds pickled objects, which could run code when opened, and is not "
            "read. Save numbers, and names as text (np.asarray(names, dtype=str))."
        )
    if any(side < 0 for side in shape):
        raise InputError(f"{path}: {what} claims the impossible shape {shape}.")
    return _Header(shape, fortran, dtype, npy.MAGIC_LEN + len(size) + length)


def _check_matrix(head: _Header, path: Path, what: str) -> None:
    if len(head.shape) != 2 or head.dtype.kind not in "biuf" or 0 in head.shape:
        raise InputError(
            f"{path}: expected {what} to be a 2-D matrix of numbers (samples by features), but it "
            f"is of shape {head.shape} and dtype {head.dtype}."
        )


def _map(path: Path, head: _Header, offset: int) -> np.memmap:
    if head.fortran:
        return np.memmap(path, head.dtype, "r", offset, head.shape, "F")
    return np.memmap(path, head.dtype, "r", offset, head.shape, "C")


def _read_member(
    archive: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo, head: _Header, max_bytes: int
) -> np.ndarray:
    if entry.compress_type == zipfile.ZIP_STORED and head.n_bytes > LAZY_BYTES:
        with path.open("rb") as stream:
            stream.seek(entry.header_offset + _SHORT_HEADER - 4)
            name, extra = struct.unpack("<HH", stream.read(4))
        start = entry.header_offset + _SHORT_HEADER + name + extra + head.length
        return _map(path, head, start)
    check_size(path, head.n_bytes, max_bytes, _ADVICE)
    with archive.open(entry) as stream:
        return np.asarray(npy.read_array(stream, allow_pickle=False))


def _text(
    archive: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo, head: _Header, max_bytes: int
) -> np.ndarray:
    if head.dtype.kind not in "iuUS":
        raise InputError(f"{path}: expected names as text, but their dtype is {head.dtype}.")
    width = head.dtype.itemsize // (4 if head.dtype.kind == "U" else 1)
    if head.dtype.kind in "US" and width > NAME_LENGTH:
        raise InputError(
            f"{path}: expected names of at most {NAME_LENGTH:,} characters, but their dtype is "
            f"{head.dtype}."
        )
    # As text each character takes four bytes.
    n_bytes = head.n_bytes * (4 if head.dtype.kind == "S" else 1)
    check_size(path, n_bytes * _NAME_COPIES, max_bytes, "Shorten the longest of its names.")
    with archive.open(entry) as stream:
        found = npy.read_array(stream, allow_pickle=False)
    if found.dtype.kind in "iu":
        return found
    return feature_names(
        (np.char.decode(found, "utf-8") if found.dtype.kind == "S" else found).tolist(), path
    )
