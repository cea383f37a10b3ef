"""The manifest: a description of a saved model that people and programs can read."""

from __future__ import annotations

import hashlib
import platform
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

import baldur
from baldur.saving.estimator_state import kind_of
from baldur.saving.layout import FORMAT, SCHEMA
from baldur.saving.saved_model import SavedModel

COMPARED = ("model", "task", "classes", "views", "samples", "steps", "regress_out",
            "training_rows_inside", "fingerprint")  # fmt: skip
"""What a manifest must say as the loaded model does; the rest may be put otherwise one day."""


def describe(model: SavedModel) -> dict[str, Any]:
    """Return what a manifest says about a model, as JSON has it.

    A loaded model is described again and the two are compared, so a manifest cannot describe
    another model than the one beside it.
    """
    estimator = model.estimator
    preparation = estimator.preparation_
    task = getattr(estimator, "_task", None)
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "model": kind_of(estimator),
        "class": type(estimator).__name__,
        "task": task or ("classification" if model.classes else "regression"),
        "classes": [_plain(label) for label in model.classes],
        "views": [
            {"name": name, "features": int(width)} for name, width in model.n_features.items()
        ],
        "samples": int(preparation.n_samples_),
        "steps": [type(step).__name__ for step in preparation.steps_],
        "regress_out": [] if preparation.covariates_ is None else preparation.covariates_.names,
        # None for baselines, of which some have support vectors or kernels.
        "training_rows_inside": (
            estimator.predictor.holds_training_rows if hasattr(estimator, "predictor") else None
        ),
        "fingerprint": fingerprint(preparation),
        "details": _plain(model.details),
    }


def versions() -> dict[str, str]:
    """Return the versions of Python and of the libraries used for the fit."""
    found = {"baldur": baldur.__version__, "python": platform.python_version()}
    for name in ("numpy", "scikit-learn"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:  # installed without its metadata
            found[name] = "unknown"
    return found


def fingerprint(preparation: Any) -> str:
    """Return a checksum of what was learned about every column of the training rows.

    Number of rows, and mean, scale, smallest and largest value of every column: two models with one
    fingerprint saw the same data, or data that agree in all of these to the last digit.
    """
    found = hashlib.sha256(str(preparation.n_samples_).encode())
    for name, width in preparation.n_features_.items():
        found.update(f"\0{name}\0{width}".encode("utf-8", "surrogatepass"))
        for part in (
            preparation.mean_, preparation.scale_, preparation.minimum_, preparation.maximum_,
        ):  # fmt: skip
            found.update(np.ascontiguousarray(part[name], dtype="<f8").tobytes())
    return found.hexdigest()


def _plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON does not know becomes text."""
    if value is None or type(value) in (bool, str, int):
        return value
    if isinstance(value, np.generic):
        return _plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one) for key, one in value.items()}
    return type(value).__name__
