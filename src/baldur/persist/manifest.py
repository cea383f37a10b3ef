"""The manifest: what a model is, in words that anyone and any program can read."""

from __future__ import annotations

import hashlib
import platform
from typing import Any

import numpy as np
import sklearn

import baldur
from baldur.persist.saved import SavedModel, layers, preparation_of
from baldur.persist.trim import holds_training_rows

__all__ = ["COMPARED", "FORMAT", "SCHEMA", "describe", "plain", "versions"]

SCHEMA = 2
"""Version of the layout; raised when an older package could not read a newer folder."""

FORMAT = "baldur model"

COMPARED = ("estimator", "wrapped_in", "task", "classes", "views", "preparation", "details")
"""What a manifest must say as the loaded model does; the rest may be put otherwise one day."""


def describe(model: SavedModel) -> dict[str, Any]:
    """Return what a manifest says about a model, as JSON has it.

    A loaded model is described again and the two are compared, so a manifest cannot tell another
    story than the model it lies beside.
    """
    chain = list(layers(model.estimator))
    preparation = preparation_of(model.estimator)
    inner = chain[-1]
    return {
        "format": FORMAT,
        "schema": SCHEMA,
        "estimator": _name(inner),
        "wrapped_in": [_name(layer) for layer in chain[:-1]],
        "steps": [
            {"step": _name(step), "settings": plain(step.get_params(deep=False))}
            for step in ([] if preparation is None else preparation.steps_)
        ],
        "task": getattr(inner, "_task", None) or ("classes" if model.classes else "numbers"),
        "classes": plain(model.classes),
        "views": [
            {
                "name": name,
                "features": int(width),
                "names": None if model.features[name] is None else plain(model.features[name]),
            }
            for name, width in model.n_features.items()
        ],
        "preparation": None
        if preparation is None
        else {
            "scale": preparation.scaling_.scale,
            "missing": preparation.impute,
            "covariates_regressed_out": preparation.covariates_ is not None,
            "samples": int(preparation.n_samples_),
            "fingerprint": fingerprint(preparation),
        },
        "training_rows_inside": holds_training_rows(inner),
        "details": plain(model.details),
    }


def versions() -> dict[str, str]:
    """Return what the model was made with."""
    return {
        "baldur": baldur.__version__,
        "numpy": np.__version__,
        "scikit-learn": sklearn.__version__,
        "python": platform.python_version(),
    }


def fingerprint(preparation: Any) -> str:
    """Return a digest of what was learned about every column of the training rows.

    Number of rows, and mean, scale, smallest and largest value of every column: two models with one
    fingerprint saw the same data, or data that agree in all of these to the last digit.
    """
    found = hashlib.sha256(str(preparation.n_samples_).encode())
    parts = (preparation.mean_, preparation.scale_, preparation.minimum_, preparation.maximum_)
    for name, width in preparation.n_features_.items():
        found.update(f"\0{name}\0{width}".encode("utf-8", "surrogatepass"))
        for part in parts:
            found.update(np.ascontiguousarray(part[name], dtype="<f8").tobytes())
    return found.hexdigest()


def plain(value: Any) -> Any:
    """Return a value as JSON has it; what JSON does not know becomes text."""
    if value is None or isinstance(value, (bool, str, int)):
        return value
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, float):
        return value if np.isfinite(value) else repr(value)
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, (set, frozenset)):
        return sorted((plain(v) for v in value), key=str)
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    return type(value).__name__


def _name(part: Any) -> str:
    return f"{type(part).__module__}.{type(part).__qualname__}"
