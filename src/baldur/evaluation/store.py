"""Results of finished jobs: one file each, written whole or not at all, found by content.

The name of a file is a hash of everything its result depends on: data, rows, labels, estimator,
setting, seed, code and libraries. The same job is therefore found again after a crash or after a
change elsewhere in the study, and a changed one is not. Any number of processes may add to one
folder. A file begins with a hash of its own name and content, so that a damaged one is as good as
none.
"""

from __future__ import annotations

import hashlib
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from baldur.atomic_io import PART, folder_lock, make_folder, write_atomically

__all__ = ["JobStore", "Outcome", "describe", "job_key"]

_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass
class Outcome:
    """What a job gave: small facts that JSON can hold, and arrays."""

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the job ended in an error, which is then a fact."""
        return "error" in self.facts


class JobStore:
    """A folder of job results; with no folder nothing is kept."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)

    def _path(self, key: str) -> Path:
        if self.folder is None:
            raise TypeError("a store without a folder has no files")
        return self.folder / key[:2] / f"{key}.job"

    def load(self, key: str) -> Outcome | None:
        """Return a finished result, or None where there is none or it is damaged."""
        if self.folder is None:
            return None
        try:
            content = self._path(key).read_bytes()
        except OSError:
            # Not there; or the disk does not give it back, and the job is simply done again.
            return None
        body = content[_DIGEST_BYTES:]
        if content[:_DIGEST_BYTES] != _digest(key, body):
            return None
        try:
            with np.load(io.BytesIO(body), allow_pickle=False) as archive:
                arrays = {name: archive[name] for name in archive.files}
            facts = json.loads(bytes(arrays.pop("facts")).decode())
        except Exception:  # only a file that something else wrote gets here
            return None
        return Outcome(facts, arrays)

    def save(self, key: str, outcome: Outcome) -> None:
        """Keep a result."""
        if self.folder is None:
            return
        facts = np.frombuffer(json.dumps(outcome.facts, sort_keys=True).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        # mypy cannot tell the keyword arrays from savez's own options.
        contents: dict[str, Any] = {"facts": facts, **outcome.arrays}
        np.savez_compressed(buffer, **contents)
        body = buffer.getvalue()
        path = self._path(key)
        make_folder(self.folder)
        # Whoever holds the lock knows that no other process is writing.
        with folder_lock(self.folder):
            make_folder(path.parent)
            # What a power cut damages is seen by its checksum and done again; no need to wait.
            write_atomically(path, _digest(key, body) + body, sync=False)

    def sweep(self) -> None:
        """Remove what an interrupted write left behind, unless somebody is writing now."""
        if self.folder is not None and self.folder.is_dir():
            with folder_lock(self.folder, wait=False) as alone:
                for part in self.folder.glob(f"*/.*{PART}") if alone else ():
                    part.unlink(missing_ok=True)

    def clear(self) -> None:
        """Forget every result."""
        if self.folder is not None and self.folder.is_dir():
            with folder_lock(self.folder):
                for file in self.folder.glob("*/*.job"):
                    file.unlink(missing_ok=True)


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


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
