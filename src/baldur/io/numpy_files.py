""".npy and .npz: headers are checked before any cell is read, and pickles are never opened."""

from __future__ import annotations

import io
import math
import struct
import zipfile
from pathlib import Path
from typing import IO, Literal, NamedTuple

import numpy as np
from numpy.lib import format as npy

from baldur.core.limits import LAZY_BYTES, NAME_LENGTH, ReadLimits
from baldur.exceptions import InputError
from baldur.io.files import parsing
from baldur.views.table_encoding import feature_names
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


class _Header(NamedTuple):
    """What the header of an array says, and its length in bytes."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: np.dtype
    length: int

    @property
    def n_bytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


def read_npy(path: Path, limits: ReadLimits) -> np.ndarray:
    """Return the matrix of a .npy file, mapped when it is large."""
    with parsing(path, "a .npy file"), path.open("rb") as stream:
        head = _read_header(stream, path.stat().st_size, path, "the array")
        _check_matrix(head, path, "the array")
        if head.n_bytes > LAZY_BYTES:
            return _map(path, head, head.length)
        limits.check_size(head.n_bytes, _ADVICE)
        return np.asarray(np.load(path, allow_pickle=False))


def read_npz(
    path: Path, array: str | None, limits: ReadLimits
) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
    """Return matrix, feature names and sample ids (None where the file has none)."""
    with parsing(path, "an .npz file"), zipfile.ZipFile(path) as archive:
        entries = {e.filename.removesuffix(".npy"): e for e in archive.infolist()}
        if len(entries) > _MAX_MEMBERS:
            raise InputError(f"{path}: expected a few arrays, but it holds {len(entries)} members.")
        heads = {}
        for name, entry in entries.items():
            with archive.open(entry) as stream:
                what = f"the array {name!r}"
                heads[name] = _read_header(stream, entry.file_size, path, what)
        matrix = _matrix_name(path, heads, array)
        _check_matrix(heads[matrix], path, f"the array {matrix!r}")
        X = _read_member(archive, path, entries[matrix], heads[matrix], limits)
        names: dict[str, np.ndarray] = {}
        for what, n, keys in (
            ("column", X.shape[1], ("features", "feature_names")),
            ("row", X.shape[0], ("samples", "sample_ids", "ids")),
        ):
            key = next((k for k in keys if k in heads and len(heads[k].shape) == 1), None)
            if key is None:
                continue
            if heads[key].shape != (n,):
                raise InputError(
                    f"{path}: the matrix has {n} {what}s, but there are {heads[key].shape[0]} "
                    f"names of {what}s in {key!r}."
                )
            names[what] = _read_names(archive, path, entries[key], heads[key], limits)
    return X, names.get("column"), names.get("row")


def _matrix_name(path: Path, heads: dict[str, _Header], array: str | None) -> str:
    """Return which array of an archive is the matrix."""
    if array is not None and array not in heads:
        raise InputError(f"{path}: there is no array {array!r}; it holds {some(list(heads))}.")
    if array is not None or "X" in heads:
        return array or "X"
    flat = [name for name, head in heads.items() if len(head.shape) == 2]
    if len(flat) != 1:
        raise InputError(
            f"{path}: expected an array called 'X' or just one 2-D array, but it holds "
            f"{some(list(heads))}. Say which with array=."
        )
    return flat[0]


def _read_header(stream: IO[bytes], stored: int, path: Path, what: str) -> _Header:
    """Return the header of an array; header and cells together must take `stored` bytes."""
    # A header may claim a length of 4 GB: no more than this is read of it.
    start = io.BytesIO(stream.read(_MAX_HEADER))
    version = npy.read_magic(start)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise InputError(f"{path}: {what} is in version {version} of the format, not 1.0 or 2.0.")
    shape, fortran, dtype = read(start)
    if dtype.hasobject:
        raise InputError(
            f"{path}: {what} holds pickled objects, which could run code when opened, and is not "
            "read. Save numbers, and names as text (np.asarray(names, dtype=str))."
        )
    if any(side < 0 for side in shape):
        raise InputError(f"{path}: {what} claims the impossible shape {shape}.")
    head = _Header(shape, fortran, dtype, start.tell())
    if head.n_bytes + head.length != stored:
        raise InputError(
            f"{path}: {what} claims {head.n_bytes:,} bytes, but the file stores "
            f"{stored - head.length:,}. It was cut short; write or copy it again."
        )
    return head


def _check_matrix(head: _Header, path: Path, what: str) -> None:
    if len(head.shape) != 2 or head.dtype.kind not in "biuf" or 0 in head.shape:
        raise InputError(
            f"{path}: expected {what} to be a 2-D matrix of numbers (samples by features), but it "
            f"is of shape {head.shape} and dtype {head.dtype}."
        )


def _map(path: Path, head: _Header, offset: int) -> np.memmap:
    order: Literal["C", "F"] = "F" if head.fortran else "C"
    return np.memmap(path, head.dtype, "r", offset, head.shape, order)


def _read_member(
    archive: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo, head: _Header, limits: ReadLimits
) -> np.ndarray:
    """Return a matrix of an archive, mapped where it is large and not compressed."""
    if entry.compress_type == zipfile.ZIP_STORED and head.n_bytes > LAZY_BYTES:
        # The header of a zip entry ends with the lengths of its name and its extra field.
        with path.open("rb") as stream:
            stream.seek(entry.header_offset + _SHORT_HEADER - 4)
            name_length, extra_length = struct.unpack("<HH", stream.read(4))
        start = entry.header_offset + _SHORT_HEADER + name_length + extra_length + head.length
        return _map(path, head, start)
    limits.check_size(head.n_bytes, _ADVICE)
    with archive.open(entry) as stream:
        return np.asarray(npy.read_array(stream, allow_pickle=False))


def _read_names(
    archive: zipfile.ZipFile, path: Path, entry: zipfile.ZipInfo, head: _Header, limits: ReadLimits
) -> np.ndarray:
    """Return names of features or samples of an archive."""
    kind = head.dtype.kind
    if kind not in "iuUS":
        raise InputError(f"{path}: expected names as text, but their dtype is {head.dtype}.")
    width = head.dtype.itemsize // (4 if kind == "U" else 1)  # in characters
    if kind in "US" and width > NAME_LENGTH:
        raise InputError(
            f"{path}: expected names of at most {NAME_LENGTH:,} characters, but their dtype is "
            f"{head.dtype}."
        )
    # As text each character takes four bytes.
    n_bytes = head.n_bytes * (4 if kind == "S" else 1)
    limits.check_size(n_bytes * _NAME_COPIES, "Shorten the longest of its names.")
    with archive.open(entry) as stream:
        names = np.asarray(npy.read_array(stream, allow_pickle=False))
    if kind in "iu":
        return names
    return feature_names((np.char.decode(names, "utf-8") if kind == "S" else names).tolist(), path)
