"""Any scikit-learn estimator on several views: standardise, fill gaps, put side by side, fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from baldur.baselines.shared.checked_answers import check_probabilities, predicting
from baldur.estimators.save_mixins import SaveMixin
from baldur.preparation import preparation_for
from baldur.views import as_multiview
from baldur.views.matrices.prepared_view import PreparedView


def takes_views(estimator: Any) -> bool:
    """Whether an estimator, or one it wraps, accepts a `MultiView`."""
    return any(k == "views" or k.endswith("__views") for k in estimator.get_params(deep=True))


def _has(method: str) -> Any:
    """Make a method available only if the wrapped estimator has it."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class SideBySide(SaveMixin, MetaEstimatorMixin, BaseEstimator):
    """Fit an ordinary estimator on all views put side by side.

    Columns are prepared as for every model, and missing cells stand at the training mean.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Cloned before it is fitted.
    views : dict of str to columns, optional
        Columns of each view when ``X`` is one matrix.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled, as in `BaldurClassifier`.
    preparation : Preparation, optional
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one.
    coef_ : dict of str to ndarray of shape (n_outputs, n_features)
        Where the estimator has linear weights: those on the prepared columns, and 0 for columns
        that a step of the preparation left out.
    selected_features_ : dict of str to bool array
        Columns with a weight, or importance, that is not zero; all where it has neither.

    Examples
    --------
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import SideBySide
    >>> sim = make_multiview(60, {"a": 3, "b": 4}, random_state=0)
    >>> SideBySide(LinearDiscriminantAnalysis()).fit(sim.data, sim.target).predict(sim.data).shape
    (60,)
    """

    coef_on_prepared = True

    def __init__(
        self, estimator: Any, views: Any = None, scale: str = "clipped", preparation: Any = None
    ) -> None:
        self.estimator = estimator
        self.views = views
        self.scale = scale
        self.preparation = preparation

    def fit(self, X: Any, y: Any) -> SideBySide:
        """Learn from `X` (a `MultiView` or a matrix) and `y`."""
        mv = as_multiview(X, self.views, estimator_name="SideBySide")
        self.preparation_ = preparation_for(self.preparation, self.scale)
        prepared = self.preparation_.fit_transform(mv)
        self.view_names_ = list(mv.view_names)
        self.estimator_ = clone(self.estimator).fit(self._matrix(prepared), y)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        cuts = np.cumsum([prepared[v].shape[1] for v in self.view_names_])
        used = np.ones(cuts[-1], dtype=bool)
        coef = getattr(self.estimator_, "coef_", None)
        importance = getattr(self.estimator_, "feature_importances_", None)
        if coef is not None:
            coef = np.atleast_2d(np.asarray(coef))
            used = np.any(coef != 0, axis=0)
            self.coef_ = self._cut(coef, cuts)
        elif importance is not None:
            used = np.asarray(importance) > 0
        self.selected_features_ = self._cut(used, cuts)
        return self

    def _matrix(self, prepared: dict[str, PreparedView]) -> np.ndarray:
        return np.hstack([prepared[v].dense() for v in self.view_names_])

    def _cut(self, values: np.ndarray, cuts: np.ndarray) -> dict[str, np.ndarray]:
        """Return an array over all prepared columns as one per view, over those of the input."""
        parts = np.split(values, cuts[:-1], axis=-1)
        return {
            name: self.preparation_.expand(name, part)
            for name, part in zip(self.view_names_, parts, strict=True)
        }

    def _open(self, X: Any) -> np.ndarray:
        """Return new rows in the form on which the wrapped estimator was fitted."""
        check_is_fitted(self, "estimator_")
        mv = as_multiview(X, self.views, estimator_name="SideBySide")
        return self._matrix(self.preparation_.transform(mv))

    def predict(self, X: Any, **options: Any) -> Any:
        """Return labels or numbers as the estimator predicts them; options are passed on to it."""
        return self.estimator_.predict(self._open(X), **options)

    @_has("predict_proba")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Return class probabilities of shape (n_samples, n_classes)."""
        return self._checked_proba(self._open(X))

    def _checked_proba(self, cells: np.ndarray) -> np.ndarray:
        with predicting(self):
            p = np.asarray(self.estimator_.predict_proba(cells))
        # An estimator of several outcomes gives a list of arrays.
        return check_probabilities(p) if p.ndim == 2 else p

    def predict_prepared(self, prepared: dict[str, PreparedView]) -> Any:
        """Probabilities, labels or numbers of rows that are prepared already."""
        cells = self._matrix(prepared)
        if hasattr(self.estimator_, "predict_proba"):
            return self._checked_proba(cells)
        return self.estimator_.predict(cells)

    @_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision scores of the wrapped estimator."""
        return np.asarray(self.estimator_.decision_function(self._open(X)))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags.allow_nan = True
        return tags
