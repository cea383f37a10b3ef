"""An estimator inside another: its predictions and what it found, as both read outside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, MetaEstimatorMixin
from sklearn.utils.metaestimators import available_if

from baldur.save_mixins import SaveMixin
from baldur.summary import Summary, summarise, views_used
from baldur.views import MultiView

__all__ = ["Outward", "Wrapped"]


def _has(method: str) -> Any:
    """Offer a method only where the estimator inside has it."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class Wrapped(SaveMixin, MetaEstimatorMixin, BaseEstimator):
    """Base of wrappers: subclasses fit ``estimator_`` and say in ``_open`` what it is shown."""

    estimator: Any
    estimator_: Any

    def _open(self, X: Any) -> Any:
        """Return `X` in the form the estimator inside was fitted on."""
        raise TypeError(f"{type(self).__name__} does not define _open")

    def predict(self, X: Any, **options: Any) -> Any:
        """Labels or numbers, as the estimator predicts them; it is told the options."""
        return self.estimator_.predict(self._open(X), **options)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Class probabilities (n, C)."""
        return np.asarray(self.estimator_.predict_proba(self._open(X)))

    @_has("predict_interval")
    def predict_interval(self, X: Any, **options: Any) -> tuple[np.ndarray, np.ndarray]:
        """Ends of an interval for each prediction, as the estimator gives them."""
        low, high = self.estimator_.predict_interval(self._open(X), **options)
        return low, high

    @_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Scores of the estimator."""
        return np.asarray(self.estimator_.decision_function(self._open(X)))


class Outward(Wrapped):
    """A wrapper around a model of views, with what that found at the width of its own input.

    Fitted attributes (names that end in "_") are those of ``estimator_``. Subclasses say in
    ``_outward`` how one of them reads outside, and set ``view_names_``, ``feature_names_`` and
    ``feature_info_`` as the estimators have them.
    """

    def _outward(self, name: str, value: Any) -> Any:
        """Return a fitted attribute of the estimator as it reads outside."""
        raise TypeError(f"{type(self).__name__} does not define _outward")

    def __getattr__(self, name: str) -> Any:
        inner = self.__dict__.get("estimator_")
        if inner is not None and name.endswith("_") and not name.startswith("_"):
            return self._outward(name, getattr(inner, name))
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    @_has("summary")
    def summary(self, everything: bool = False) -> Summary:
        """What was found, one row per kept feature and output; see `BaldurClassifier.summary`."""
        return summarise(self, everything=everything)

    def views_used(self, X: MultiView) -> pd.DataFrame:
        """Which views the prediction of each sample rests on, samples by views."""
        return views_used(X, self.selected_features_)

    @_has("explain")
    def explain(self, X: Any, **options: Any) -> pd.DataFrame:
        """What each feature contributes to each prediction; see `BaldurClassifier.explain`."""
        table: pd.DataFrame = self.estimator_.explain(self._open(X), **options)
        return table
