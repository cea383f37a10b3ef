"""The text files beside genotypes: .fam and .psam for people, .bim and .pvar for variants.

bed-reader's own properties are not used: they hold a whole file at once, in arrays of text as wide
as the longest allele (one long insertion takes gigabytes), and do not know .psam and .pvar.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io.formats.files import check_unique, parsing
from baldur.safety.budget import MAX_BYTES, Deadline, check_size, text_array
from baldur.safety.escape import check_names

_FAM = ["family", "sample", "father", "mother", "sex", "phenotype"]
_BIM = ["chromosome", "variant", "centimorgan", "position", "allele_1", "allele_2"]
_PVAR = {"#CHROM": "chromosome", "POS": "position", "ID": "variant", "REF": "ref", "ALT": "alt"}
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


def people_of(table: pd.DataFrame) -> pd.DataFrame:
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
        _check_lines(path)
        lead, header = _header(path, ("#FID", "#IID")) if psam else (0, None)
        _check_fields(path, lead)
        frame = pd.read_csv(
            path,
            sep=r"\s+",
            header=None,
            skiprows=lead,
            dtype=str,
            keep_default_na=False,
            na_filter=False,
            quoting=3,
        )
    if not psam:
        if frame.shape[1] != len(_FAM):
            raise InputError(
                f"{path}: expected {len(_FAM)} columns ({', '.join(_FAM)}), but found "
                f"{frame.shape[1]}. It is not a .fam file, or some fields are empty."
            )
        frame.columns = pd.Index(_FAM)
        return frame
    if header is None:
        header = ["#FID", "#IID", "PAT", "MAT", "SEX", "PHENO1"][: frame.shape[1]]
    if len(header) != frame.shape[1]:
        raise InputError(
            f"{path}: the header names {len(header)} columns, but the lines have {frame.shape[1]}."
        )
    frame.columns = pd.Index([_PSAM.get(name, name) for name in header])
    check_unique(path, frame.columns.tolist())
    for name in _FAM:
        if name not in frame:
            frame[name] = "0" if name in ("family", "father", "mother") else "NA"
    return frame[_FAM]


def read_variants(path: Path, max_bytes: int = MAX_BYTES) -> tuple[np.ndarray, pd.DataFrame]:
    """Return names and a table of chromosome, position and alleles, held in few bytes each."""
    # Held in a few bytes each: about as much as the file.
    check_size(path, path.stat().st_size, max_bytes, "Check that it is a list of variants.")
    deadline = Deadline(path)
    pvar = path.suffix.lower() == ".pvar"
    names: list[np.ndarray] = []
    parts: list[pd.DataFrame] = []
    with parsing(path, "a list of variants"):
        _check_lines(path)
        lead, header = _header(path, ("#CHROM",)) if pvar else (0, None)
        if pvar and header is None:
            header = ["#CHROM", "ID", "CM", "POS", "ALT", "REF"]
        _check_fields(path, lead)
        for chunk in _chunks(path, lead):
            deadline.check()
            table = _named(path, chunk, header)
            names.append(_names(table, path, max_bytes))
            parts.append(_compact(table))
            # Put together, all names are as wide as the longest.
            width = max(part.dtype.itemsize for part in names)
            n_bytes = 2 * width * sum(map(len, names))
            check_size(path, n_bytes, max_bytes, "Shorten the longest name of a variant.")
    if not parts:
        raise InputError(f"{path}: expected a list of variants, but found none.")
    return np.concatenate(names), _concat(parts)


def _check_lines(path: Path) -> None:
    """Refuse what is not text in short lines, before any line is read as a whole."""
    with path.open("rb") as stream:
        while piece := stream.read(_LONGEST_LINE):
            if b"\0" in piece:
                raise InputError(f"{path}: expected text, but it holds zero bytes.")
            if len(piece) == _LONGEST_LINE and b"\n" not in piece:
                raise InputError(
                    f"{path}: expected lines of fields, but one has more than a million characters."
                )


def _check_fields(path: Path, lead: int) -> None:
    """Refuse a first line of data with too many fields, before it is parsed."""
    with path.open("rb") as stream:
        line = next(islice(stream, lead, None), b"")
    if len(line.split()) > _MOST_FIELDS:
        raise InputError(f"{path}: expected a few fields in a line, not {len(line.split()):,}.")


def _header(path: Path, first: tuple[str, ...]) -> tuple[int, list[str] | None]:
    """Return how many lines precede the data, and the column names if they are given."""
    with path.open(encoding="utf-8") as stream:
        for number, line in enumerate(stream):
            if line.startswith(first):
                return number + 1, line.split()
            if not line.startswith("#"):
                return number, None
    raise InputError(f"{path}: expected data after the header lines, but found none.")


def _chunks(path: Path, lead: int) -> Iterator[pd.DataFrame]:
    reader = pd.read_csv(
        path,
        sep=r"\s+",
        header=None,
        skiprows=lead,
        dtype=str,
        na_filter=False,
        quoting=3,
        chunksize=_LINES,
    )
    with reader:
        yield from reader


def _named(path: Path, chunk: pd.DataFrame, header: list[str] | None) -> pd.DataFrame:
    expected = _BIM if header is None else header
    if chunk.shape[1] != len(expected):
        raise InputError(
            f"{path}: expected {len(expected)} columns ({', '.join(expected)}), but found "
            f"{chunk.shape[1]}. It is not a list of variants, or some fields are empty."
        )
    if header is None:
        return chunk.set_axis(_BIM, axis=1)
    table = chunk.set_axis([_PVAR.get(name, name) for name in header], axis=1)
    check_unique(path, table.columns.tolist())
    lacking = [name for name in _PVAR.values() if name not in table]
    if lacking:
        raise InputError(f"{path}: the header has no {', '.join(lacking)}; it has {header}.")
    many = table["alt"].str.contains(",", regex=False)
    if many.any():
        raise InputError(
            f"{path}: expected variants with two alleles, but {table['variant'][many].iloc[0]!r} "
            "has more. Keep only variants with two alleles: plink2 --max-alleles 2 --make-pgen."
        )
    # The count is that of the alternative allele, as allele 1 is counted in a .bed file.
    table = table.rename(columns={"alt": "allele_1", "ref": "allele_2"})
    return table[["chromosome", "variant", "position", "allele_1", "allele_2"]]


def _names(table: pd.DataFrame, path: Path, max_bytes: int) -> np.ndarray:
    """Return variant ids; a variant without id (a dot) is named by position and alleles."""
    names = table["variant"].to_numpy(dtype=object, copy=True)
    dots = np.flatnonzero(names == ".")
    if dots.size:
        place = table.iloc[dots]
        parts = (place[key] for key in ("chromosome", "position", "allele_1", "allele_2"))
        names[dots] = [":".join(four) for four in zip(*parts, strict=True)]
    listed = names.tolist()
    check_names(listed, "name of a variant", str(path))
    return text_array(listed, str(path), max_bytes)


def _compact(table: pd.DataFrame) -> pd.DataFrame:
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
    if len(parts) == 1:
        return parts[0]
    columns: dict[str, Any] = {}
    for name in parts[0].columns:
        pieces = [part[name] for part in parts]
        if isinstance(pieces[0].dtype, pd.CategoricalDtype):
            columns[name] = pd.api.types.union_categoricals(pieces, sort_categories=False)
        else:
            columns[name] = np.concatenate([piece.to_numpy() for piece in pieces])
    return pd.DataFrame(columns)
