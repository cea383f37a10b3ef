"""Folders of schema 1, which hold a pickle: opened only where the caller says so."""

from __future__ import annotations

import hashlib
import io
import zipfile
from pathlib import Path
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.persist.saved import SavedModel

__all__ = ["OLD_FILES", "load_pickled", "old_manifest"]

OLD_FILES = ("features.npz", "model.joblib")
_FEATURES, _MODEL = OLD_FILES


def old_manifest(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """Check a manifest of schema 1."""
    kinds = {"sha256": dict, "views": dict, "named": list, "classes": list, "details": dict}
    lacking = [k for k, kind in kinds.items() if not isinstance(manifest.get(k), kind)]
    if lacking or len(manifest["named"]) != len(manifest["views"]):
        raise InputError(f"{folder}/manifest.json lacks {lacking or ['named']}; save it again.")
    return manifest


def load_pickled(folder: Path, manifest: dict[str, Any], trust: bool) -> SavedModel:
    """Load a folder of schema 1.

    Parameters
    ----------
    folder : Path
        The folder.
    manifest : dict
        Its manifest.
    trust : bool
        Whether the caller takes the risk.

    Returns
    -------
    SavedModel
    """
    if not trust:
        raise InputError(
            f"{folder} is of schema 1 and holds a pickle, which can run any code when it is "
            "opened. If you would run a program from those who made it, load it with trust=True "
            "(--trust on the command line) and save it again."
        )
    contents = {}
    for name in OLD_FILES:
        file = folder / name
        try:
            contents[name] = file.read_bytes()
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}).") from None
        if hashlib.sha256(contents[name]).hexdigest() != manifest["sha256"].get(name):
            raise InputError(f"{file} is not what the manifest says; copy the folder again.")
    try:
        with np.load(io.BytesIO(contents[_FEATURES]), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
        features = {
            view: arrays[f"view{i}"] if named else None
            for i, (view, named) in enumerate(
                zip(manifest["views"], manifest["named"], strict=True)
            )
        }
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise InputError(f"{folder}/{_FEATURES} cannot be read ({error}).") from None
    training = {
        view: {name.removeprefix(head): arrays[name] for name in arrays if name.startswith(head)}
        for view, head in ((v, f"training{i}_") for i, v in enumerate(features))
    }
    import joblib

    try:
        estimator = joblib.load(io.BytesIO(contents[_MODEL]))
    except Exception as error:  # a pickle of other library versions fails in any way it likes
        raise InputError(
            f"{folder}/{_MODEL} cannot be opened here ({type(error).__name__}: {error}). It was "
            f"saved with baldur {manifest.get('baldur')}, scikit-learn "
            f"{manifest.get('scikit-learn')} and Python {manifest.get('python')}; use these, or "
            "fit again."
        ) from error
    return SavedModel(
        estimator, features, manifest["views"], manifest["classes"], manifest["details"],
        {view: figures for view, figures in training.items() if figures},
    )  # fmt: skip
