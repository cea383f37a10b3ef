"""Predictions of an estimator inside another, after the outer one has opened the data."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if

from baldur.keeping import Keeping

__all__ = ["Wrapped"]


def _has(method: str) -> Any:
    """Offer a method only where the estimator inside has it."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class Wrapped(Keeping, MetaEstimatorMixin, BaseEstimator):
    """Base of wrappers: subclasses fit ``estimator_`` and say in ``_open`` what it is shown."""

    estimator: Any
    estimator_: Any

    def _open(self, X: Any) -> Any:
        """Return `X` in the form the estimator inside was fitted on."""
        raise TypeError(f"{type(self).__name__} does not define _open")

    def predict(self, X: Any) -> np.ndarray:
        """Labels or numbers, as the estimator predicts them."""
        return np.asarray(self.estimator_.predict(self._open(X)))

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, C)."""
        return np.asarray(self.estimator_.predict_proba(self._open(X)))

    @_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the estimator."""
        return np.asarray(self.estimator_.decision_function(self._open(X)))

    @_has("summary")
    def summary(self, **options: Any) -> Any:
        """What the estimator found, in the names it was shown."""
        return self.estimator_.summary(**options)

    @_has("explain")
    def explain(self, X: Any, **options: Any) -> Any:
        """What each feature contributes to each prediction, as the estimator sees it."""
        return self.estimator_.explain(self._open(X), **options)
