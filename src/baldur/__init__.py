"""Bayesian classification and regression from several data views.

In come views of the same samples (files, arrays, DataFrames or a `MultiView`) with an outcome. Out
go fitted estimators, predictions with their uncertainty, comparisons with other models by nested
cross-validation, figures, reports and model folders.

The usual names are here: `BaldurClassifier`, `BaldurRegressor`, `MultiView`, `Preparation`, `save`
and `load`. The parts ``io``, ``views``, ``preparation``, ``datasets``, ``paper``, ``baselines``,
``evaluation``, ``saving``, ``plots`` and ``study`` are imported when they are first used, so
``import baldur`` is enough to write ``baldur.io.read_table`` and takes almost no time by itself.

This module imports no part at first. ``docs/develop/architecture.md`` has the
order of the parts; no part imports a later one.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baldur import (
        baselines,
        datasets,
        evaluation,
        exceptions,
        io,
        paper,
        plots,
        preparation,
        saving,
        study,
        views,
    )
    from baldur.estimators.classifier import BaldurClassifier
    from baldur.estimators.regressor import BaldurRegressor
    from baldur.preparation import Preparation
    from baldur.saving import load, save
    from baldur.views.container import MultiView

__version__ = "0.2.0"

_PARTS = (
    "baselines",
    "datasets",
    "evaluation",
    "exceptions",
    "io",
    "paper",
    "saving",
    "plots",
    "preparation",
    "study",
    "views",
)
_HOMES = {
    "BaldurClassifier": "baldur.estimators.classifier",
    "BaldurRegressor": "baldur.estimators.regressor",
    "MultiView": "baldur.views.container",
    "Preparation": "baldur.preparation",
    "load": "baldur.saving",
    "save": "baldur.saving",
}

__all__ = [
    "BaldurClassifier",
    "BaldurRegressor",
    "MultiView",
    "Preparation",
    "__version__",
    "baselines",
    "datasets",
    "evaluation",
    "exceptions",
    "io",
    "load",
    "paper",
    "saving",
    "plots",
    "preparation",
    "save",
    "study",
    "views",
]


def __getattr__(name: str) -> Any:
    if name in _PARTS:
        return import_module(f"baldur.{name}")
    if name in _HOMES:
        # Stored in the module, so that the next access does not come here.
        return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))
    raise AttributeError(f"module 'baldur' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
