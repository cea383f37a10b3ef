"""Checks of files before they are parsed: existence, kind, ending and size."""

from __future__ import annotations

import os
import re
import stat
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import check_names, has_control, one_line
from baldur.core.limits import MAX_BYTES, Deadline, text_array
from baldur.exceptions import BaldurError, InputError
from baldur.views.validate import some

_DOUBLE = (".nii.gz", ".csv.gz", ".tsv.gz", ".tab.gz", ".txt.gz")


def suffix_of(path: Path) -> str:
    """Return the lower-case ending of a file name, both parts of '.nii.gz' and the like."""
    name = path.name.lower()
    for double in _DOUBLE:
        if name.endswith(double):
            return double
    return path.suffix.lower()


def as_path(file: Any) -> Path:
    """Turn text or a path into a Path; refuse addresses and anything else."""
    if not isinstance(file, (str, os.PathLike)):
        raise InputError(f"Expected the path of a file, but got {type(file).__name__}: {file!r}.")
    text = os.fspath(file)
    if isinstance(text, bytes):
        text = os.fsdecode(text)
    if has_control(text) or not text.strip():
        raise InputError(f"Expected the path of a file, but got {text!a}.")
    if "://" in text:
        raise InputError(
            f"{text}: files are read from disk, and nothing is fetched from an address. Download "
            "the file and give its path."
        )
    return Path(text)


def find_file(file: Any, what: str, suffixes: Sequence[str] = ()) -> Path:
    """Return the path of a regular, non-empty file with one of the endings, or raise an error.

    Devices and pipes are refused: reading one may never end.
    """
    path = as_path(file)
    if suffixes and suffix_of(path) not in suffixes:
        raise InputError(
            f"{path}: expected {what} ({', '.join(suffixes)}), but the name ends in "
            f"{suffix_of(path) or 'nothing'!r}. Convert the file, or rename it if only its name is "
            "wrong."
        )
    try:
        state = path.stat()
    except (OSError, ValueError) as error:
        raise InputError(f"{path}: expected {what}, but {_why(path, error)}.") from error
    if not stat.S_ISREG(state.st_mode):
        kind = "a folder" if stat.S_ISDIR(state.st_mode) else "not a regular file"
        raise InputError(f"{path}: expected {what}, but the path is {kind}.")
    if state.st_size == 0:
        raise InputError(f"{path}: expected {what}, but the file is empty. Write or copy it again.")
    return path


def _why(path: Path, error: Exception) -> str:
    if isinstance(error, FileNotFoundError):
        # Going up as far as something exists tells a typing mistake from a missing disk.
        known = path.absolute()
        while not known.exists() and known != known.parent:
            known = known.parent
        return f"there is no such file; the path exists up to {known}"
    if isinstance(error, PermissionError):
        return "reading it is not permitted"
    return str(error)


def check_unique(path: Path | str, names: Sequence[str]) -> None:
    """Refuse column names that occur twice."""
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise InputError(
            f"{path}: column names must be unique, but {some(sorted(twice))} "
            f"{'occurs' if len(twice) == 1 else 'occur'} more than once. Rename these columns."
        )


@contextmanager
def parsing(path: Path | str, what: str) -> Iterator[None]:
    """Turn any exception of a parser into an error that names the file."""
    try:
        yield
    except (BaldurError, KeyboardInterrupt, SystemExit, GeneratorExit):
        raise
    except MemoryError as error:
        raise InputError(
            f"{path}: there is not enough memory to read it as {what}; the file is too large, or "
            "damaged so that it claims to be."
        ) from error
    # Parsers written in other languages raise outside Exception as well (a panic in Rust).
    except BaseException as error:
        # What a parser says may quote the file.
        reason = one_line(str(error)[:1000])[:300] or type(error).__name__
        raise InputError(
            f"{path}: cannot be read as {what}: {reason}. The file is damaged, cut short, or of "
            "another kind than its name says; write or copy it again."
        ) from error


def _is_whole(value: Any) -> bool:
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def check_ids(
    ids: Any,
    n: int,
    origin: str,
    max_bytes: int = MAX_BYTES,
    deadline: Deadline | None = None,
) -> np.ndarray:
    """Return sample ids as text (whole numbers stay numbers), or explain what is wrong."""
    # There may be millions: the time is looked at between any two passes over them.
    in_time = (lambda: None) if deadline is None else deadline.check
    # Not an array of text yet, which would be as wide as its longest entry.
    array = ids if isinstance(ids, np.ndarray) else np.asarray(ids, dtype=object)
    if array.shape != (n,):
        raise InputError(
            f"{origin}: expected {n} sample ids, one per row, but got "
            f"{len(array) if array.ndim else 'one value'}."
        )
    if array.dtype == object and all(_is_whole(one) for one in ids):
        array = np.asarray(ids)
    if array.dtype.kind in "iu":
        text = array
    else:
        in_time()
        texts = [str(v).strip() for v in ids]
        absent = pd.isna(array).tolist()
        lacking = [i for i in range(n) if absent[i] or not texts[i]]
        if lacking:
            raise InputError(
                f"{origin}: every row needs a sample id, but {len(lacking)} of {n} have none "
                f"(first at row {lacking[0] + 1}). Fill them in, or name another column."
            )
        in_time()
        text = text_array(texts, origin, max_bytes)
        in_time()
        check_names(texts, "sample id", origin)
    in_time()
    index = pd.Index(text)
    if index.has_duplicates:
        in_time()
        twice = index[index.duplicated()].unique().tolist()
        rows = (np.flatnonzero(index == twice[0]) + 1).tolist()
        raise InputError(
            f"{origin}: sample ids must be unique, but {some(twice)} "
            f"{'occurs' if len(twice) == 1 else 'occur'} more than once ({twice[0]!r} in rows "
            f"{some(rows)}). Remove or rename the repeated rows, or name the column that tells "
            "them apart."
        )
    return text


_PREFIX = re.compile(r"^(?:participant|subject|patient|sample|subj|sub|ppt|pat|pid|iid|id)(?=\d|$)")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_MARKS = re.compile(r"[\W_]+")


def simplify_id(sample_id: object) -> str:
    """Return an id in lower case, without punctuation, common prefixes and leading zeros.

    Examples
    --------
    >>> from baldur.io.files import simplify_id
    >>> [simplify_id(one) for one in ("sub-01", "SUB_001", "01", 1, "NA19916")]
    ['1', '1', '1', '1', 'na19916']
    """
    text = str(sample_id).strip().casefold()
    # Zeros first, while punctuation still separates one number from the next.
    plain = _MARKS.sub("", _ZEROS.sub("", text))
    return _PREFIX.sub("", plain) or plain or text


def near_misses(ids: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Return pairs of different ids that look alike, across and within views.

    Pairs of ids that both occur in every view they could be matched in are left out: they are
    different people.
    """
    groups: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for view, listed in ids.items():
        for one in listed:
            groups[simplify_id(one)][str(one)].append(view)
    rows = []
    for written in groups.values():
        forms = list(written)
        for i, one in enumerate(forms):
            for other in forms[i + 1 :]:
                if set(written[one]) == set(written[other]) == set(ids) and len(ids) > 1:
                    continue
                rows.append((written[one][0], one, written[other][0], other))
    return pd.DataFrame(rows, columns=["view", "id", "other_view", "other_id"])
