"""Genotypes on disk as lazily read matrices: PLINK 1 .bed and PLINK 2 .pgen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.io.formats.files import parsing
from baldur.optional import import_extra
from baldur.views.matrices.source import MISSING_INT8

_BED_MAGIC = b"\x6c\x1b"
# Variants looked at when checking that a file has as many people as its list.
_LOOK = 1000


class BedMatrix:
    """Allele counts of a .bed file as int8, -127 for a missing call; pickles as a path.

    A table with the four calls of every byte decodes a file five times as fast as bed-reader, and a
    fit reads a file several times.
    """

    dtype = np.dtype(np.int8)

    def __init__(self, path: Path, n_people: int, n_variants: int) -> None:
        self.path = path
        self.shape = (n_people, n_variants)
        self._check()

    def _check(self) -> None:
        n, d = self.shape
        with self.path.open("rb") as stream:
            head = stream.read(3)
        if head[:2] != _BED_MAGIC:
            raise InputError(
                f"{self.path}: expected a PLINK .bed file, but its first bytes are "
                f"{head.hex(' ')} and not 6c 1b 01. (BED files of genome intervals are another "
                "format of that name.)"
            )
        if head[2:] != b"\x01":
            raise InputError(
                f"{self.path}: expected genotypes stored variant by variant, but they are stored "
                "person by person. Convert the file: plink --make-bed."
            )
        expected, found = 3 + d * ((n + 3) // 4), self.path.stat().st_size
        if expected != found:
            raise InputError(
                f"{self.path}: expected {expected:,} bytes for {n:,} people (.fam) and {d:,} "
                f"variants (.bim), but the file has {found:,}. The three files do not belong "
                "together, or one was cut short."
            )
        # Two to six bits of each variant are unused, unless people are missing in .fam.
        if n % 4:
            width = (n + 3) // 4
            some = np.fromfile(self.path, np.uint8, min(d, _LOOK) * width, offset=3)
            if (some.reshape(-1, width)[:, -1] >> (2 * (n % 4))).any():
                raise InputError(
                    f"{self.path}: it holds genotypes of more than the {n:,} people in .fam. The "
                    "three files do not belong together."
                )

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        wanted = np.arange(self.shape[1])[cols]
        width = (self.shape[0] + 3) // 4
        packed = np.empty((len(wanted), width), dtype=np.uint8)
        # Variants that follow each other are read at once.
        breaks = np.flatnonzero(np.diff(wanted) != 1) + 1
        with self.path.open("rb") as stream:
            for start, end in zip([0, *breaks], [*breaks, len(wanted)], strict=True):
                part: Any = packed[start:end]
                if part.size:
                    stream.seek(3 + int(wanted[start]) * width)
                    got = stream.readinto(memoryview(part).cast("B"))
                    if got != part.nbytes:
                        raise InputError(
                            f"{self.path}: expected {part.nbytes} bytes at variant "
                            f"{int(wanted[start])}, but the file gave {got}. It changed since it "
                            "was opened; open it again."
                        )
        cells = _FOUR_CALLS[packed].view(np.int8)  # (variants, people), padded to whole bytes
        return np.take(cells, np.arange(self.shape[0]) if rows is None else rows, axis=1).T


def _decode_bytes() -> np.ndarray:
    """Return the four calls of every byte as the four bytes of one number.

    Two bits are one call, the first in the lowest bits: 00 is two copies of allele 1, 01 is not
    called, 10 is one copy and 11 none.
    """
    calls = np.array([2, MISSING_INT8, 1, 0], dtype=np.int8)
    shifts = 2 * np.arange(4)
    return calls[(np.arange(256)[:, None] >> shifts) & 3].view(np.int32)[:, 0]


_FOUR_CALLS = _decode_bytes()


class PgenMatrix:
    """Counts of the alternative allele in a .pgen file as int8; pickles as a path."""

    dtype = np.dtype(np.int8)

    def __init__(self, path: Path, n_people: int, n_variants: int) -> None:
        self.path = path
        self.shape = (n_people, n_variants)
        with self.path.open("rb") as stream:
            head = stream.read(11)
        if head[:2] != _BED_MAGIC or len(head) < 3:
            raise InputError(
                f"{path}: expected a PLINK .pgen file, but its first bytes are {head[:3].hex(' ')} "
                "and not 6c 1b."
            )
        if head[2] not in (0x02, 0x10, 0x11):
            raise InputError(
                f"{path}: storage mode {head[2]:#04x} is not read; convert the file with "
                "plink2 --make-pgen."
            )
        # Bytes 3 to 10 are the counts; the reader would trust the ones it is given.
        variants = int.from_bytes(head[3:7], "little")
        people = int.from_bytes(head[7:11], "little")
        if len(head) < 11 or (people, variants) != self.shape:
            raise InputError(
                f"{path}: its header says {people:,} people and {variants:,} variants, but .psam "
                f"and .pvar list {n_people:,} and {n_variants:,}. The three files do not belong "
                "together, or one was cut short."
            )
        if head[2] == 0x02:
            expected = 12 + n_variants * ((n_people + 3) // 4)
            if path.stat().st_size != expected:
                raise InputError(
                    f"{path}: expected {expected:,} bytes, but the file has "
                    f"{path.stat().st_size:,}. It was cut short; write or copy it again."
                )
        self._reader().close()

    def _reader(self, subset: np.ndarray | None = None) -> Any:
        pgenlib = import_extra("pgenlib", "genetics", "Reading PLINK 2 genotypes")
        with parsing(self.path, "a PLINK .pgen file"):
            return pgenlib.PgenReader(
                str(self.path).encode(),
                raw_sample_ct=self.shape[0],
                variant_ct=self.shape[1],
                sample_subset=subset,
            )

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        wanted = np.arange(self.shape[1])[cols].astype(np.uint32)
        people = None if rows is None else np.unique(rows).astype(np.uint32)
        n = self.shape[0] if people is None else len(people)
        out = np.empty((len(wanted), n), dtype=np.int8)
        if out.size:
            # A reader per call: its file handle survives neither a fork nor a pickle.
            reader = self._reader(people)
            try:
                with parsing(self.path, "a PLINK .pgen file"):
                    if len(wanted) == int(wanted[-1]) - int(wanted[0]) + 1 and (
                        len(wanted) == 1 or (np.diff(wanted.astype(np.int64)) == 1).all()
                    ):
                        reader.read_range(int(wanted[0]), int(wanted[-1]) + 1, out)
                    else:
                        reader.read_list(wanted, out)
            finally:
                reader.close()
            out[out < 0] = MISSING_INT8
        cells = out.T
        if rows is None or people is None:
            return cells
        return cells[np.searchsorted(people, rows)]
