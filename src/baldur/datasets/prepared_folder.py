"""load_shared: a folder with ``view_*.npz``, ``labels.csv`` and ``meta.json``."""

import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import Bunch

from baldur.exceptions import InputError
from baldur.views import MultiView


def load_shared(path: str | os.PathLike[str], *, labels_only: bool = False) -> Bunch:
    """Load one prepared data set.

    The folder holds ``meta.json`` (with ``views``: name to ``{"file": ...}``), ``labels.csv``
    (columns ``sample`` and ``label`` in row order of every view; optionally ``split`` and
    ``group``) and one ``.npz`` per view with the arrays ``X`` (samples by features) and
    ``features`` (names).

    Examples
    --------
    >>> from baldur.datasets.prepared_folder import load_shared
    >>> cohort = load_shared("../shared/data/ad_csf")  # doctest: +SKIP
    >>> train = cohort.split == "train"  # doctest: +SKIP
    """
    folder = Path(path)
    meta = _read_meta(folder)
    labels = _read_labels(folder / "labels.csv")
    data = None if labels_only else _read_views(folder, meta, labels["sample"].to_numpy(str))
    target = labels["label"].to_numpy(str)
    return Bunch(
        data=data,
        target=target,
        classes=np.unique(target),
        sample_ids=labels["sample"].to_numpy(str),
        split=labels["split"].to_numpy(str) if "split" in labels else None,
        groups=labels["group"].to_numpy(str) if "group" in labels else None,
        meta=meta,
    )


def _read_meta(folder: Path) -> dict[str, Any]:
    """Read meta.json, and help where the folder is not that of one data set."""
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; give the folder of one data set")
    file = folder / "meta.json"
    if not file.is_file():
        inside = sorted(f.parent.name for f in folder.glob("*/meta.json"))
        hint = f"; give one of the data sets in it: {', '.join(inside)}" if inside else ""
        raise InputError(f"{folder} has no meta.json{hint}")
    try:
        meta = json.loads(file.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{file} is not valid JSON: {error}") from error
    views = meta.get("views") if isinstance(meta, dict) else None
    if not isinstance(views, dict) or not views:
        raise InputError(f'{file} must have an object "views" with at least one view')
    for name, entry in views.items():
        if not isinstance(entry, dict) or not isinstance(entry.get("file"), str):
            raise InputError(f'{file}: view {name!r} must have the name of its "file"')
    return meta


def _read_labels(file: Path) -> pd.DataFrame:
    """Return the table of labels.csv, all columns as text."""
    if not file.is_file():
        raise InputError(f"{file} is missing; it must have the columns sample and label")
    try:
        labels = pd.read_csv(file, dtype=str, keep_default_na=False)
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise InputError(f"{file} cannot be read as a table: {error}") from error
    absent = [c for c in ("sample", "label") if c not in labels]
    if absent:
        raise InputError(
            f"{file} has no column(s) {absent}; it has {list(labels.columns)} and needs "
            "sample and label"
        )
    empty = np.flatnonzero((labels["label"].str.strip() == "").to_numpy())
    if len(empty):
        raise InputError(
            f"{file} has {len(empty)} rows without a label, the first for sample "
            f"{labels['sample'].iloc[empty[0]]!r}; fill them in or remove the rows from all files"
        )
    repeated = labels["sample"][labels["sample"].duplicated()].tolist()
    if repeated:
        raise InputError(f"{file} names samples more than once: {repeated[:5]}")
    return labels


def _read_views(folder: Path, meta: dict[str, Any], sample_ids: NDArray[np.str_]) -> MultiView:
    """Read every view and put them into a container."""
    views: dict[str, NDArray[Any]] = {}
    names: dict[str, list[str]] = {}
    for view, entry in meta["views"].items():
        file = folder / entry["file"]
        if file.suffix in {".bed", ".bim", ".fam", ".pgen"}:
            raise InputError(
                f"view {view!r} of {folder} is stored as PLINK files ({file.name}); read it with "
                "baldur.io.read_plink, and the labels with load_shared(path, labels_only=True)"
            )
        views[view], names[view] = _read_npz(file, view)
        if len(views[view]) != len(sample_ids):
            raise InputError(
                f"view {view!r} ({file}) has {len(views[view])} rows and labels.csv has "
                f"{len(sample_ids)}; both must list the same samples in the same order"
            )
    return MultiView(views, sample_ids=sample_ids, feature_names=names)


def _read_npz(file: Path, view: str) -> tuple[NDArray[Any], list[str]]:
    """Read matrix and feature names of one view; never runs code stored in the file."""
    if not file.is_file():
        raise InputError(f"the file of view {view!r} is missing: {file}")
    try:
        with np.load(file, allow_pickle=False) as archive:
            X, features = archive["X"], archive["features"]
    except KeyError as error:
        raise InputError(f"{file} (view {view!r}) must hold the arrays X and features") from error
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(
            f"{file} (view {view!r}) cannot be read as plain .npz arrays: {error}"
        ) from error
    if X.ndim != 2 or features.shape != (X.shape[1],):
        raise InputError(
            f"{file} (view {view!r}): X must be samples by features with one name per feature, "
            f"got X of shape {X.shape} and features of shape {features.shape}"
        )
    return X, features.astype(str).tolist()
