"""record_of: facts about a comparison that its tables do not hold, as JSON can store them."""

from __future__ import annotations

import platform
from typing import Any

import numpy as np
import pandas as pd
import scipy
import sklearn

import baldur
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.result import NestedResult

SCHEMA = 2
"""Of ``run.json``; raised when an older package could not read a newer file."""


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "baldur": baldur.__version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "scikit-learn": sklearn.__version__,
        "pandas": pd.__version__,
    }


def record_of(result: NestedResult | MultilabelResult) -> dict[str, Any]:
    """Return samples, classes, folds and models as JSON values, without times."""
    if isinstance(result, MultilabelResult):
        notes = {model: notes for model, notes in result.notes.items() if notes}
        mean = {
            "failures": result.failures,
            "notes": notes,
            "outcomes": result.outcomes,
            "added_value_missing": result.added_value_missing,
        }
        return {**record_of(result[result.outcomes[0]]), **mean}
    names = [str(c) for c in result.classes]
    repeats = 1 + max((f.repeat for f in result.folds), default=0)
    return {
        "schema": SCHEMA,
        "task": "classification" if names else "regression",
        "people": len(result.data),
        "classes": names,
        "views": [
            {
                "name": view,
                "features": int(width),
                "people": int(np.sum(result.data.view(view).present)),
            }
            for view, width in result.n_features.items()
        ],
        "models": list(result.models),
        "view_sets": {
            model.name: list(model.views)
            for model in result.comparison.models
            if model.views is not None
        },
        "baseline_views": list(result.comparison.baseline_views),
        "added_value_missing": result.added_value_missing,
        "failures": dict(result.failures),
        "notes": {model: list(notes) for model, notes in result.notes.items() if notes},
        "metrics": list(result.metrics),
        "select_by": result.select_by,
        "folds": len(result.folds) // repeats,
        "repeats": repeats,
        "groups": None if result.groups is None else len(np.unique(result.groups)),
        "sites": None if result.sites is None else len(np.unique(result.sites)),
        "versions": versions(),
    }
