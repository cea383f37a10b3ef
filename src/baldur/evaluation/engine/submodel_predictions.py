"""Predictions of submodels with few features, made in the job that fitted the model."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.estimators.few_features import FEW
from baldur.evaluation.selection.fitted_model import read_selection
from baldur.exceptions import InputError
from baldur.views import MultiView


@dataclass(frozen=True)
class FewFeatures:
    """Predictions of a submodel for the test rows of one fold."""

    label: np.ndarray  # label, proba: As in `OuterFit`
    proba: np.ndarray | None
    columns: np.ndarray  # Its features, counted over all views side by side


def predict_submodels(
    estimator: Any,
    training: MultiView,
    test: MultiView,
    predict: Callable[[Any, MultiView], dict[str, np.ndarray]],
) -> dict[str, np.ndarray]:
    """Return the arrays of a job result that hold submodels of a fitted model.

    No second fit is made. Empty for a model without submodels.
    """
    if not hasattr(estimator, "submodel"):
        return {}
    starts = dict(zip(training.n_features, _starts(training), strict=True))
    arrays: dict[str, np.ndarray] = {}
    for limit in FEW:
        if limit >= sum(training.n_features.values()):
            break
        small = _submodel(estimator, limit)
        found = predict(small, test)
        arrays[f"few{limit}_label"] = found["label"]
        if "proba" in found:
            arrays[f"few{limit}_proba"] = found["proba"]
        parts = [index + starts[view] for view, index in read_selection(small, training).items()]
        arrays[f"few{limit}_columns"] = np.concatenate(parts).astype(np.int64)
    return arrays


def _starts(mv: MultiView) -> np.ndarray:
    return np.cumsum([0, *mv.n_features.values()])[:-1]


def _submodel(estimator: Any, limit: int) -> Any:
    try:
        return estimator.submodel(limit)
    except InputError:
        # All features of wide views need the training rows; the largest submodel has fewer.
        return estimator.submodel(max(one.n_features for one in estimator._submodels))


def read_submodels(arrays: dict[str, np.ndarray]) -> dict[int, FewFeatures]:
    """Return the submodels of a job result by their largest number of features."""
    return {
        limit: FewFeatures(
            arrays[f"few{limit}_label"],
            arrays.get(f"few{limit}_proba"),
            arrays[f"few{limit}_columns"],
        )
        for limit in FEW
        if f"few{limit}_label" in arrays
    }
