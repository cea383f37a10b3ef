"""Bayesian classification and regression from several data views.

The parts are imported when they are first asked for, so ``import baldur`` is enough to write
``baldur.io.read_table`` and costs next to nothing by itself.
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
        plots,
        preparation,
        saving,
        study,
        views,
    )
    from baldur.estimators.classifier import BaldurClassifier
    from baldur.estimators.regressor import BaldurRegressor
    from baldur.paper.estimators import PaperClassifier, PaperRegressor
    from baldur.preparation import Preparation
    from baldur.saving import load, save
    from baldur.views.container import MultiView

__version__ = "0.1.0.dev0"

_PARTS = (
    "baselines",
    "datasets",
    "evaluation",
    "exceptions",
    "io",
    "saving",
    "plots",
    "preparation",
    "study",
    "views",
)
_HOMES = {
    "BaldurClassifier": "baldur.estimators.classifier",
    "BaldurRegressor": "baldur.estimators.regressor",
    "PaperClassifier": "baldur.paper.estimators",
    "PaperRegressor": "baldur.paper.estimators",
    "MultiView": "baldur.views.container",
    "Preparation": "baldur.preparation",
    "load": "baldur.saving",
    "save": "baldur.saving",
}

__all__ = [
    "BaldurClassifier",
    "BaldurRegressor",
    "PaperClassifier",
    "PaperRegressor",
    "MultiView",
    "Preparation",
    "__version__",
    "baselines",
    "datasets",
    "evaluation",
    "exceptions",
    "io",
    "load",
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
        # Kept, so that the next look-up is an ordinary one.
        return globals().setdefault(name, getattr(import_module(_HOMES[name]), name))
    raise AttributeError(f"module 'baldur' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
