"""Save and load fitted models: a folder with a manifest, the features, and the estimator.

==================  =============================================================================
``manifest.json``   schema number, versions, classes, views, checksums: to be read by anyone
``features.npz``    names of the features of every view and their training figures, plain arrays
``model.joblib``    the fitted estimator, as a pickle
==================  =============================================================================

A pickle can run any code when it is opened. Load model folders only from people you would run a
program from; `load_model` checks the manifest and the checksums before it opens the pickle, which
finds damage and mix-ups but not malice. `read_manifest` never opens it.
"""

from __future__ import annotations

import hashlib
import io
import json
import platform
import shutil
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import joblib
import numpy as np
import sklearn

import baldur
from baldur.exceptions import InputError
from baldur.files import finish_replacing, make_folder, replace_files
from baldur.views import MultiView

__all__ = ["SCHEMA", "SavedModel", "load_model", "read_manifest", "save_model"]

SCHEMA = 1
"""Version of the folder's layout; raised when an older package could not read a newer folder."""

_MANIFEST, _FEATURES, _MODEL = "manifest.json", "features.npz", "model.joblib"
_FILES = (_MANIFEST, _FEATURES, _MODEL)


@dataclass
class SavedModel:
    """A fitted model with what is needed to feed it.

    Attributes
    ----------
    estimator : estimator
        Fitted.
    features : dict of str to array of str, or None for a view with default names
        Names of every view's features, in order.
    n_features : dict of str to int
    classes : list
        Labels behind the codes the estimator predicts, the positive one last; empty for numbers.
    details : dict
        Anything else that JSON holds.
    training : dict of str to dict of str to ndarray
        Figures of every feature over the training rows, see `baldur.evaluate.drift`; may be empty.
    """

    estimator: Any
    features: dict[str, np.ndarray | None]
    n_features: dict[str, int]
    classes: list[Any] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)
    training: dict[str, dict[str, np.ndarray]] = field(default_factory=dict)

    @classmethod
    def of(cls, estimator: Any, X: MultiView, **keywords: Any) -> SavedModel:
        """Build it from an estimator and the container it was fitted on."""
        named = {
            v: X.view(v).feature_names if X.view(v).names_given else None for v in X.view_names
        }
        return cls(estimator, named, dict(X.n_features), **keywords)


def save_model(model: SavedModel, folder: str | Path, *, overwrite: bool = False) -> Path:
    """Write a model folder, whole or not at all.

    Parameters
    ----------
    model : SavedModel
        What to save.
    folder : str or Path
        Where to.
    overwrite : bool, default=False
        Replace a model folder that is there; nothing else is ever replaced.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from baldur.baselines import BASELINES
    >>> from baldur.datasets import make_multiview
    >>> from baldur.persist import SavedModel, load_model, save_model
    >>> sim = make_multiview(50, {"a": 4}, random_state=0)
    >>> fitted = BASELINES["Ridge logistic"].make().fit(sim.data, sim.target)
    >>> with tempfile.TemporaryDirectory() as here:
    ...     folder = save_model(SavedModel.of(fitted, sim.data), pathlib.Path(here) / "model")
    ...     again = load_model(folder).estimator
    >>> bool((again.predict(sim.data) == fitted.predict(sim.data)).all())
    True
    """
    target = Path(folder)
    if target.exists():
        finish_replacing(target, _FILES)
        # A save that was stopped in a new folder leaves hidden files only.
        if not (target / _MANIFEST).is_file() and (
            not target.is_dir() or any(not f.name.startswith(".") for f in target.iterdir())
        ):
            raise InputError(f"{target} exists and is no model folder; choose another place.")
        if not overwrite and (target / _MANIFEST).is_file():
            raise InputError(f"{target} holds a model already; choose another place or overwrite.")
    arrays: dict[str, Any] = {
        f"view{i}": names for i, names in enumerate(model.features.values()) if names is not None
    }
    for i, view in enumerate(model.features):
        for figure, values in model.training.get(view, {}).items():
            arrays[f"training{i}_{figure}"] = values
    features, pickled = io.BytesIO(), io.BytesIO()
    np.savez_compressed(features, **arrays)
    joblib.dump(model.estimator, pickled, compress=3)
    kind = type(model.estimator)
    manifest = {
        "schema": SCHEMA,
        "baldur": baldur.__version__,
        "scikit-learn": sklearn.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "estimator": f"{kind.__module__}.{kind.__qualname__}",
        "classes": model.classes,
        "views": model.n_features,
        "named": [names is not None for names in model.features.values()],
        "details": model.details,
        "sha256": {
            _FEATURES: hashlib.sha256(features.getvalue()).hexdigest(),
            _MODEL: hashlib.sha256(pickled.getvalue()).hexdigest(),
        },
        "trust": "model.joblib is a pickle: load it only from people you trust",
    }
    contents = {
        _FEATURES: features.getvalue(),
        _MODEL: pickled.getvalue(),
        _MANIFEST: (json.dumps(manifest, indent=1, default=_plain) + "\n").encode(),
    }
    new = not target.exists()
    try:
        replace_files(make_folder(target), contents, _FILES)
    except BaseException:
        if new:
            shutil.rmtree(target, ignore_errors=True)
        raise
    return target


def _plain(value: Any) -> Any:
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return value.tolist()
    raise TypeError(f"a manifest cannot hold {type(value).__name__}")


def read_manifest(folder: str | Path) -> dict[str, Any]:
    """Read and check the manifest; safe for any folder, as no pickle is opened.

    Parameters
    ----------
    folder : str or Path
        A model folder.

    Returns
    -------
    dict
    """
    finish_replacing(folder, _FILES)
    file = Path(folder) / _MANIFEST
    if not file.is_file():
        raise InputError(f"{folder} is no model folder: it has no {_MANIFEST}. Make one with fit.")
    try:
        manifest = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}); save the model again.") from None
    schema = manifest.get("schema") if isinstance(manifest, dict) else None
    if not isinstance(schema, int) or isinstance(schema, bool) or schema < 1:
        raise InputError(f"{file} has no schema number; this is no model folder of baldur.")
    if schema > SCHEMA:
        raise InputError(
            f"{folder} was saved by baldur {manifest.get('baldur')} in schema {schema}, and this "
            f"version reads up to {SCHEMA}. Install a newer baldur."
        )
    lacking = [k for k in ("sha256", "views", "named", "classes", "details") if k not in manifest]
    if lacking:
        raise InputError(f"{file} lacks {lacking}; save the model again.")
    return dict(manifest)


def load_model(folder: str | Path) -> SavedModel:
    """Load a model folder. It holds a pickle: load only folders you trust.

    Parameters
    ----------
    folder : str or Path
        As `save_model` wrote it.

    Returns
    -------
    SavedModel
    """
    manifest = read_manifest(folder)
    contents = {}
    for name in (_FEATURES, _MODEL):
        file = Path(folder) / name
        try:
            contents[name] = file.read_bytes()
        except OSError as error:
            raise InputError(f"{file} cannot be read ({error.strerror}).") from None
        if hashlib.sha256(contents[name]).hexdigest() != manifest["sha256"].get(name):
            raise InputError(f"{file} is not what the manifest says; copy the folder again.")
    try:
        with np.load(io.BytesIO(contents[_FEATURES]), allow_pickle=False) as archive:
            arrays = {name: archive[name] for name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{folder}/{_FEATURES} cannot be read ({error}).") from None
    features = {
        view: arrays[f"view{i}"] if named else None
        for i, (view, named) in enumerate(zip(manifest["views"], manifest["named"], strict=True))
    }
    training = {
        view: {name.removeprefix(head): arrays[name] for name in arrays if name.startswith(head)}
        for view, head in ((v, f"training{i}_") for i, v in enumerate(features))
    }
    try:
        estimator = joblib.load(io.BytesIO(contents[_MODEL]))
    except Exception as error:  # a pickle of other library versions fails in any way it likes
        raise InputError(
            f"{folder}/{_MODEL} cannot be opened here ({type(error).__name__}: {error}). It was "
            f"saved with baldur {manifest['baldur']}, scikit-learn {manifest['scikit-learn']} and "
            f"Python {manifest['python']}; use these, or fit again."
        ) from error
    return SavedModel(
        estimator, features, manifest["views"], manifest["classes"], manifest["details"],
        {view: figures for view, figures in training.items() if figures},
    )  # fmt: skip
