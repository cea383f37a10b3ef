"""Results of finished jobs: one file each, written whole or not at all, found by content.

The name of a file is a hash of everything its result depends on: data, rows, labels, estimator,
setting, seed and version of the package. The same job is therefore found again after a crash or
after a change elsewhere in the study, and a changed one is not.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

__all__ = ["JobStore", "Outcome", "describe", "job_key", "write_atomically"]


@dataclass
class Outcome:
    """What a job gave: small facts that JSON can hold, and arrays."""

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that a reader sees the old content or the new, and never a part.

    Parameters
    ----------
    path : Path
        Where to; the folder must exist.
    content : bytes
        What to write.
    """
    part = path.with_name(f".{path.name}.{uuid4().hex}.part")
    try:
        with open(part, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


class JobStore:
    """A folder of job results; with no folder nothing is kept."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)

    def _path(self, key: str) -> Path:
        if self.folder is None:
            raise TypeError("a store without a folder has no files")
        return self.folder / key[:2] / f"{key}.npz"

    def load(self, key: str) -> Outcome | None:
        """Return a finished result, or None."""
        if self.folder is None or not self._path(key).is_file():
            return None
        try:
            with np.load(self._path(key), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
        except (OSError, ValueError, EOFError, zipfile.BadZipFile):
            # A disk may lose what it acknowledged; the job is then simply done again.
            return None
        facts = arrays.pop("facts", None)
        if facts is None:
            return None
        return Outcome(json.loads(bytes(facts).decode()), arrays)

    def save(self, key: str, outcome: Outcome) -> None:
        """Keep a result."""
        if self.folder is None:
            return
        path = self._path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = np.frombuffer(json.dumps(outcome.facts, sort_keys=True).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        # mypy cannot tell the keyword arrays from savez's own options.
        contents: dict[str, Any] = {"facts": facts, **outcome.arrays}
        np.savez_compressed(buffer, **contents)
        write_atomically(path, buffer.getvalue())

    def sweep(self) -> None:
        """Remove what an interrupted write left behind."""
        if self.folder is not None:
            for part in self.folder.glob("*/.*.part"):
                part.unlink(missing_ok=True)


def describe(value: Any) -> Any:
    """Say what an estimator or parameter is, in a form JSON writes the same way every time."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = type(value)
        params = value.get_params(deep=False)
        return [f"{kind.__module__}.{kind.__qualname__}", {k: describe(params[k]) for k in params}]
    if isinstance(value, dict):
        return {str(k): describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [describe(v) for v in value]
    if isinstance(value, np.ndarray):
        cells = np.ascontiguousarray(value.astype(str) if value.dtype == object else value)
        return [str(cells.dtype), list(cells.shape), hashlib.sha256(cells.tobytes()).hexdigest()]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)


def job_key(**parts: Any) -> str:
    """Return the hash of a job's description.

    Parameters
    ----------
    **parts
        Everything the result depends on.

    Returns
    -------
    str
    """
    text = json.dumps(describe(parts), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()
