"""JobStore: results of finished jobs in a folder, one file each, named by what they depend on.

The name of a file is a hash of everything its result depends on: data, rows, labels, estimator,
setting, seed, code and libraries. The same job is therefore found again after a crash or after a
change elsewhere in the study, and a changed job is not. Any number of processes may write to one
folder. Files are written whole or not at all. A file begins with a hash of its name and content; a
damaged file is treated as missing and its job is run again.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import pandas as pd
import scipy
import sklearn

import baldur
from baldur.core.atomic_io import PART, folder_lock, make_folder, write_atomically
from baldur.views import MultiView, View
from baldur.views.sources import SparseSource

_DIGEST_BYTES = hashlib.sha256().digest_size


@dataclass
class JobResult:
    """Result of a job: small facts that JSON can hold, and arrays."""

    facts: dict[str, Any] = field(default_factory=dict)
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Whether the job ended in an error; its message is then the fact "error"."""
        return "error" in self.facts


class JobStore:
    """A folder of job results; without a folder nothing is stored."""

    def __init__(self, folder: str | Path | None) -> None:
        self.folder = None if folder is None else Path(folder)

    def _path(self, key: str) -> Path:
        if self.folder is None:
            raise TypeError("a store without a folder has no files")
        return self.folder / key[:2] / f"{key}.job"

    def load(self, key: str) -> JobResult | None:
        """Return a finished result, or None where there is none or it is damaged."""
        if self.folder is None:
            return None
        try:
            content = self._path(key).read_bytes()
        except OSError:
            # The file is missing or unreadable; the job is run again.
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
        return JobResult(facts, arrays)

    def save(self, key: str, result: JobResult) -> None:
        """Write the result of a job to its file."""
        if self.folder is None:
            return
        facts = np.frombuffer(json.dumps(result.facts, sort_keys=True).encode(), dtype=np.uint8)
        buffer = io.BytesIO()
        # mypy cannot tell the keyword arrays from savez's own options.
        contents: dict[str, Any] = {"facts": facts, **result.arrays}
        np.savez_compressed(buffer, **contents)
        body = buffer.getvalue()
        path = self._path(key)
        make_folder(self.folder)
        # Whoever holds the lock knows that no other process is writing.
        with folder_lock(self.folder):
            make_folder(path.parent)
            # Damage by a power cut is seen by the checksum: no need to wait for the disk.
            write_atomically(path, _digest(key, body) + body, sync=False)

    def sweep(self) -> None:
        """Remove files of interrupted writes, unless another process is writing now."""
        if self.folder is not None and self.folder.is_dir():
            with folder_lock(self.folder, wait=False) as is_locked:
                for part in self.folder.glob(f"*/.*{PART}") if is_locked else ():
                    part.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove the files of all results."""
        if self.folder is not None and self.folder.is_dir():
            with folder_lock(self.folder):
                for file in self.folder.glob("*/*.job"):
                    file.unlink(missing_ok=True)


def _digest(key: str, body: bytes) -> bytes:
    return hashlib.sha256(key.encode() + body).digest()


def _describe(value: Any) -> Any:
    """Describe an estimator or parameter in a form that JSON writes the same way every time."""
    if hasattr(value, "get_params") and not isinstance(value, type):
        kind = type(value)
        params = value.get_params(deep=False)
        return [f"{kind.__module__}.{kind.__qualname__}", {k: _describe(params[k]) for k in params}]
    if isinstance(value, dict):
        return {str(k): _describe(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_describe(v) for v in value]
    if isinstance(value, np.ndarray):
        cells = np.ascontiguousarray(value.astype(str) if value.dtype == object else value)
        return [str(cells.dtype), list(cells.shape), hashlib.sha256(cells.tobytes()).hexdigest()]
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    return repr(value)


def job_key(**parts: Any) -> str:
    """Return the hash of everything that the result of a job depends on."""
    text = json.dumps(_describe(parts), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def libraries() -> dict[str, str]:
    """Return the versions of this package, of the libraries it computes with, and of Python.

    The version of this package has a hash of its source files, so that results of other code are
    computed again. What a class of somebody else runs is not known but for its name and parameters.
    """
    return {
        "baldur": f"{baldur.__version__}+{package_hash(Path(baldur.__file__).parent)}",
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        **{library: _installed(library) for library in ("torch", "gpytorch")},
        "python": platform.python_version(),
    }


def package_hash(package: Path) -> str:
    """Return a hash of the names and contents of all source files below a folder."""
    digest = hashlib.sha256()
    for file in sorted(package.rglob("*.py")):
        content = file.read_bytes()
        digest.update(f"{file.relative_to(package).as_posix()}\0{len(content)}\0".encode())
        digest.update(content)
    return digest.hexdigest()[:16]


def _installed(library: str) -> str:
    """Return the version of an optional library."""
    try:
        return version(library)
    except PackageNotFoundError:
        return "not installed"


def data_hashes(
    mv: MultiView, view_sets: Collection[tuple[str, ...] | None]
) -> dict[tuple[str, ...] | None, str]:
    """Return a hash of the samples with each of some sets of views, of which None has all views.

    Every view is read once; a model that gets some of the views depends on these alone.
    """
    digest = hashlib.sha256("\0".join(str(s) for s in mv.sample_ids).encode())
    if mv.samples is not None:
        digest.update("\0".join(mv.samples.columns).encode())
        table = pd.util.hash_pandas_object(mv.samples.astype(str), index=False)
        digest.update(table.to_numpy().tobytes())
    samples_hash = digest.hexdigest()
    by_view = {name: _view_hash(mv.view(name)) for name in mv.view_names}
    hashes = {}
    for views in view_sets:
        parts = [(name, by_view[name]) for name in (by_view if views is None else views)]
        hashes[views] = hashlib.sha256(json.dumps([samples_hash, *parts]).encode()).hexdigest()
    return hashes


def _view_hash(view: View) -> str:
    """Return a hash of a view: names and table of features, who has it, and cells as stored."""
    digest = hashlib.sha256(f"{view.shape}\1{view.dtype}\1".encode())
    if view.names is not None:
        digest.update("\0".join(view.names.tolist()).encode())
    if view.feature_info is not None:
        cells = pd.util.hash_pandas_object(view.feature_info.astype(str), index=False)
        digest.update(cells.to_numpy().tobytes())
    declared = view.declared_present
    if declared is not None:
        digest.update(np.packbits(declared).tobytes())
    if isinstance(view.source, SparseSource):
        digest.update(joblib.hash(view.source.matrix).encode())
        return digest.hexdigest()
    # Columns that make blocks of 16 MB.
    step = max(1, (1 << 24) // max(1, view.shape[0] * view.dtype.itemsize))
    for start in range(0, view.shape[1], step):
        block = view.raw(slice(start, min(start + step, view.shape[1])))
        digest.update(np.ascontiguousarray(block).tobytes())
    return digest.hexdigest()
