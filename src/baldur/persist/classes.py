"""The classes a model file may name, and nothing else: loading builds these and no other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from types import MappingProxyType
from typing import Any

from baldur.exceptions import InputError

__all__ = ["CLASSES", "FUNCTIONS", "METHODS", "class_named", "function_named", "name_of"]

CLASSES: Mapping[str, str] = MappingProxyType(
    {
        # estimators
        "BaldurClassifier": "baldur.classifier",
        "BaldurRegressor": "baldur.regressor",
        "MeanFieldClassifier": "baldur.mean_field",
        "MeanFieldRegressor": "baldur.mean_field",
        # what may be round them
        "Deconfounded": "baldur.evaluate.deconfound",
        "SideBySide": "baldur.evaluate.adapters",
        "WithSteps": "baldur.evaluate.steps",
        "CategoryEncoder": "baldur.prepare.categories",
        "SiteHarmoniser": "baldur.prepare.harmonise",
        "VariantFilter": "baldur.prepare.variants",
        "VoxelMask": "baldur.prepare.voxels",
        # what was learned
        "Preparation": "baldur.prepare.preparation",
        "NormalScores": "baldur.views.scores",
        "ConfoundDesign": "baldur.prepare.confounds",
        "Pooled": "baldur.prepare.site_effects",
        "Fitted": "baldur.inference.fitted",
        "Answer": "baldur.inference.auto",
        "Gap": "baldur.inference.choice",
        "StandIns": "baldur.inference.stand_ins",
        "Mixture": "baldur.inference.mixture",
        "Explicit": "baldur.inference.mixture",
        "Implicit": "baldur.inference.mixture",
        "Loadings": "baldur.model.loadings",
        "Pool": "baldur.inference.mixture",
        "Columns": "baldur.inference.features",
        "Grams": "baldur.inference.grams",
        "SampleSide": "baldur.model.posterior",
        "FeatureSide": "baldur.model.posterior",
        "PreparedView": "baldur.views.products",
        "Kept": "baldur.views.standardised",
        "Standardised": "baldur.views.standardised",
        "ArraySource": "baldur.views.source",
        "_Predict": "baldur.inference.fitted_mean_field",
        "_Latent": "baldur.inference.fitted_mean_field",
        "MeanFieldResult": "baldur.model.meanfield.result",
        "WeightSpread": "baldur.model.meanfield.result",
    }
)
"""Name of a class to the module it lives in."""

METHODS: Mapping[str, tuple[str, ...]] = MappingProxyType({"Mixture": ("latent", "moments")})
"""Methods that a fitted posterior refers to, by class."""

FUNCTIONS: Mapping[str, str] = MappingProxyType(
    {
        "predict_meanfield": "baldur.model.meanfield.result",
        "predictor_moments": "baldur.model.meanfield.result",
    }
)
"""Functions that a fitted posterior refers to."""


def name_of(value: Any) -> str | None:
    """Return the name under which the class of an object is known, or None."""
    kind = type(value)
    return kind.__name__ if CLASSES.get(kind.__name__) == kind.__module__ else None


def class_named(name: Any) -> type:
    """Return a class of the list."""
    return _named(name, CLASSES, "class")


def function_named(name: Any) -> Callable[..., Any]:
    """Return a function of the list."""
    return _named(name, FUNCTIONS, "function")


def _named(name: Any, known: Mapping[str, str], what: str) -> Any:
    if not isinstance(name, str) or name not in known:
        raise InputError(f"a {what} {str(name)[:60]!r} that no model has")
    return getattr(import_module(known[name]), name)
