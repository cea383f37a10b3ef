"""Genotypes on disk as lazily read matrices: PLINK 1 .bed and PLINK 2 .pgen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import MAX_BYTES, ReadLimits, check_size
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.files import check_unique_columns, parsing
from baldur.views.sources import MISSING_INT8, read_lines
from baldur.views.table_encoding import feature_names

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
        self.shape = n, d = n_people, n_variants
        self.width = (n + 3) // 4  # bytes of a variant
        with path.open("rb") as stream:
            head = stream.read(3)
        if head[:2] != _BED_MAGIC:
            raise InputError(
                f"{path}: expected a PLINK .bed file, but its first bytes are {head.hex(' ')} and "
                "not 6c 1b 01. (BED files of genome intervals are another format of that name.)"
            )
        if head[2:] != b"\x01":
            raise InputError(
                f"{path}: expected genotypes stored variant by variant, but they are stored "
                "person by person. Convert the file: plink --make-bed."
            )
        expected, n_bytes = 3 + d * self.width, path.stat().st_size
        if expected != n_bytes:
            raise InputError(
                f"{path}: expected {expected:,} bytes for {n:,} people (.fam) and {d:,} variants "
                f"(.bim), but the file has {n_bytes:,}. The three files do not belong together, "
                "or one was cut short."
            )
        # Two to six bits of each variant are unused, unless people are missing in .fam.
        if n % 4:
            first = np.fromfile(path, np.uint8, min(d, _LOOK) * self.width, offset=3)
            if (first[self.width - 1 :: self.width] >> (2 * (n % 4))).any():
                raise InputError(
                    f"{path}: it holds genotypes of more than the {n:,} people in .fam. The three "
                    "files do not belong together."
                )

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        wanted = np.arange(self.shape[1])[cols]
        # Shapes: packed (variants, bytes), four people in a byte, after 3 bytes of header.
        packed = read_lines(str(self.path), 3, np.dtype(np.uint8), self.width, wanted, slice(None))
        # Each byte is looked up. Shapes: cells (variants, people), padded to whole bytes.
        cells = _FOUR_CALLS[packed].view(np.int8)
        return np.take(cells, np.arange(self.shape[0]) if rows is None else rows, axis=1).T


# Two bits are one call, the first in the lowest bits: 00 is two copies of allele 1, 01 is not
# called, 10 is one copy and 11 none.
_CALLS = np.array([2, MISSING_INT8, 1, 0], dtype=np.int8)
_FOUR_CALLS = _CALLS[(np.arange(256)[:, None] >> 2 * np.arange(4)) & 3].view(np.int32)[:, 0]
"""The four calls of every byte as the four bytes of one number."""


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
        """Return an open reader of the genotypes of some people (positions; None: all)."""
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
        wanted = np.arange(self.shape[1])[cols]
        # The library wants each person once and in order; `at` undoes this at the end.
        people, at = (None, slice(None)) if rows is None else np.unique(rows, return_inverse=True)
        out = np.empty((len(wanted), self.shape[0] if people is None else len(people)), np.int8)
        if out.size:
            # A reader per call: its file handle survives neither a fork nor a pickle.
            reader = self._reader(None if people is None else people.astype(np.uint32))
            with contextlib.closing(reader), parsing(self.path, "a PLINK .pgen file"):
                if (np.diff(wanted) == 1).all():  # one range of the file, read faster
                    reader.read_range(int(wanted[0]), int(wanted[-1]) + 1, out)
                else:
                    reader.read_list(wanted.astype(np.uint32), out)
            out[out < 0] = MISSING_INT8
        return out.T[at]


_FAM = ["family", "sample", "father", "mother", "sex", "phenotype"]
_BIM = ["chromosome", "variant", "centimorgan", "position", "allele_1", "allele_2"]
# The count is that of the alternative allele, as allele 1 is counted in a .bed file.
_PVAR = {"#CHROM": "chromosome", "POS": "position", "ID": "variant", "REF": "allele_2",
         "ALT": "allele_1"}  # fmt: skip
_PSAM = {"#FID": "family", "#IID": "sample", "IID": "sample", "PAT": "father", "MAT": "mother",
         "SEX": "sex", "PHENO1": "phenotype", "PHENO": "phenotype"}  # fmt: skip
# Variants parsed at once: the text of a few hundred thousand lines is all that is held.
_LINES = 200_000
# What the text of people becomes: six objects for each, from lines of 20 bytes or more.
_PER_BYTE = 25
# Longest line: two alleles of some hundred thousand letters.
_LONGEST_LINE = 1 << 20
# In a line: a .psam file may have a column for each of many phenotypes.
_MOST_FIELDS = 10_000


def decode_people(table: pd.DataFrame) -> pd.DataFrame:
    """Return sex as words and phenotypes as numbers, missing where the codes say so."""
    table = table.copy()
    table["sex"] = table["sex"].map({"1": "male", "2": "female", "M": "male", "F": "female"})
    numbers = pd.to_numeric(table["phenotype"], errors="coerce").astype(float)
    numbers = numbers.where(numbers != -9)
    # In a case-control file (1 and 2) a 0 is missing as well.
    if set(numbers.dropna().unique()) <= {0.0, 1.0, 2.0}:
        numbers = numbers.where(numbers != 0)
    table["phenotype"] = numbers
    return table


def read_people(path: Path) -> pd.DataFrame:
    """Return one row per person: family, sample, father, mother, sex and phenotype, as text."""
    size = _PER_BYTE * path.stat().st_size
    check_size(path, size, MAX_BYTES, "Check that it is a list of people.")
    psam = path.suffix.lower() == ".psam"
    with parsing(path, "a list of people"):
        lead, header = _header(path, ("#FID", "#IID") if psam else ())
        frame = pd.concat(_chunks(path, lead), ignore_index=True)
    if not psam and frame.shape[1] != len(_FAM):
        raise InputError(
            f"{path}: expected {len(_FAM)} columns ({', '.join(_FAM)}), but found "
            f"{frame.shape[1]}. It is not a .fam file, or some fields are empty."
        )
    header = _FAM[: frame.shape[1]] if header is None else header
    if len(header) != frame.shape[1]:
        raise InputError(
            f"{path}: the header names {len(header)} columns, but the lines have {frame.shape[1]}."
        )
    frame = frame.set_axis([_PSAM.get(name, name) for name in header], axis=1)
    check_unique_columns(path, frame.columns.tolist())
    for name in _FAM:
        if name not in frame:
            frame[name] = "0" if name in ("family", "father", "mother") else "NA"
    return frame[_FAM]


def read_variants(path: Path, max_bytes: int = MAX_BYTES) -> tuple[np.ndarray, pd.DataFrame]:
    """Return the names of variants, and a compact table of chromosome, position and alleles."""
    limits = ReadLimits(path, max_bytes)
    # Held in a few bytes each: about as much as the file.
    limits.check_size(path.stat().st_size, "Check that it is a list of variants.")
    pvar = path.suffix.lower() == ".pvar"
    names: list[np.ndarray] = []
    parts: list[pd.DataFrame] = []
    with parsing(path, "a list of variants"):
        lead, header = _header(path, ("#CHROM",) if pvar else ())
        header = header or (["#CHROM", "ID", "CM", "POS", "ALT", "REF"] if pvar else _BIM)
        for chunk in _chunks(path, lead):
            limits.check_time()
            table = _named(path, chunk, header)
            names.append(_names(table, path, max_bytes))
            parts.append(_compact(table))
            # Put together (the parts and the whole), all names are as wide as the longest.
            width = max(part.dtype.itemsize for part in names)
            n_bytes = 2 * width * sum(map(len, names))
            limits.check_size(n_bytes, "Shorten the longest name of a variant.")
    return np.concatenate(names), _concat(parts)


def _header(path: Path, marks: tuple[str, ...]) -> tuple[int, list[str] | None]:
    """Return how many lines precede the data, and the column names if one of these lists them.

    The line of names starts with one of `marks`; other lines before the data start with #.
    What is not text in short lines of a few fields is refused, before any line is read as a whole.
    """
    with path.open("rb") as binary:
        while piece := binary.read(_LONGEST_LINE):
            if b"\0" in piece:
                raise InputError(f"{path}: expected text, but it holds zero bytes.")
            if len(piece) == _LONGEST_LINE and b"\n" not in piece:
                raise InputError(
                    f"{path}: expected lines of fields, but one has more than a million characters."
                )
    names: list[str] | None = None
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream):
            if names is None and line.startswith(marks):
                names = line.split()
            elif names is not None or not marks or not line.startswith("#"):
                fields = len(line.split())
                if fields > _MOST_FIELDS:
                    raise InputError(f"{path}: expected a few fields in a line, not {fields:,}.")
                return number, names
    raise InputError(f"{path}: expected data after the header lines, but found none.")


def _chunks(path: Path, lead: int) -> Iterator[pd.DataFrame]:
    """Yield the fields of some lines at a time as text, after the `lead` lines of the header."""
    with pd.read_csv(
        path,
        sep=r"\s+",
        header=None,
        skiprows=lead,
        dtype=str,
        keep_default_na=False,
        na_filter=False,
        quoting=3,  # quotes are letters like any other
        chunksize=_LINES,
    ) as reader:
        yield from reader


def _named(path: Path, chunk: pd.DataFrame, header: list[str]) -> pd.DataFrame:
    """Return variants under our column names; those of a .bim file have a fixed order instead."""
    if chunk.shape[1] != len(header):
        raise InputError(
            f"{path}: expected {len(header)} columns ({', '.join(header)}), but found "
            f"{chunk.shape[1]}. It is not a list of variants, or some fields are empty."
        )
    if header is _BIM:
        return chunk.set_axis(_BIM, axis=1)
    table = chunk.set_axis([_PVAR.get(name, name) for name in header], axis=1)
    check_unique_columns(path, table.columns.tolist())
    lacking = [name for name in _PVAR if _PVAR[name] not in table]
    if lacking:
        raise InputError(f"{path}: the header has no {', '.join(lacking)}; it has {header}.")
    multiallelic = table["allele_1"].str.contains(",", regex=False)
    if multiallelic.any():
        raise InputError(
            f"{path}: expected variants with two alleles, but "
            f"{table['variant'][multiallelic].iloc[0]!r} has more. Keep only variants with two "
            "alleles: plink2 --max-alleles 2 --make-pgen."
        )
    return table[list(_PVAR.values())]


def _names(table: pd.DataFrame, path: Path, max_bytes: int) -> np.ndarray:
    """Return variant ids; a variant without id (a dot) is named by position and alleles."""
    names = table["variant"].to_numpy(dtype=object, copy=True)
    dots = np.flatnonzero(names == ".")
    if dots.size:
        place = table.iloc[dots]
        parts = (place[key] for key in ("chromosome", "position", "allele_1", "allele_2"))
        names[dots] = [":".join(four) for four in zip(*parts, strict=True)]
    return feature_names(names, path, max_bytes, "name of a variant")


def _compact(table: pd.DataFrame) -> pd.DataFrame:
    """Return positions as numbers, and chromosomes and alleles as categories."""
    position = pd.to_numeric(table["position"]).to_numpy()
    if position.dtype.kind not in "iu":
        raise ValueError("positions must be whole numbers")
    if position.size and np.abs(position).max() < 2**31:
        position = position.astype(np.int32)
    columns: dict[str, Any] = {
        "chromosome": pd.Categorical(table["chromosome"]),
        "position": position,
    }
    if "centimorgan" in table:
        columns["centimorgan"] = pd.to_numeric(table["centimorgan"]).to_numpy(np.float32)
    for allele in ("allele_1", "allele_2"):
        columns[allele] = pd.Categorical(table[allele])
    return pd.DataFrame(columns)


def _concat(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Return tables below one another; categories stay so, though their levels differ."""
    columns: dict[str, Any] = {}
    for name in parts[0].columns:
        pieces = [part[name] for part in parts]
        if isinstance(pieces[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(pieces, sort_categories=False)
        else:
            columns[name] = np.concatenate(pieces)
    return pd.DataFrame(columns)
