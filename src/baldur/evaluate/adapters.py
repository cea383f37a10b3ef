"""Any scikit-learn estimator on several views: standardise, fill gaps, put side by side, fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from baldur.evaluate.wrapped import Wrapped
from baldur.prepare import Preparation
from baldur.views import MultiView, as_multiview

__all__ = ["SideBySide", "takes_views"]


def takes_views(estimator: Any) -> bool:
    """Whether an estimator, or one it wraps, accepts a `MultiView`."""
    return any(k == "views" or k.endswith("__views") for k in estimator.get_params(deep=True))


class SideBySide(Wrapped):
    """Fit an ordinary estimator on all views put side by side.

    Columns are scaled on the training rows, and missing cells stand at the training mean.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Cloned before it is fitted.
    views : dict of str to columns, optional
        Columns of each view when ``X`` is one matrix.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled, as in `BaldurClassifier`.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one.
    coef_ : dict of str to ndarray of shape (n_outputs, n_features)
        Where the estimator has linear weights.
    selected_features_ : dict of str to bool array
        Columns with a weight, or importance, that is not zero; all where it has neither.

    Examples
    --------
    >>> from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluate import SideBySide
    >>> sim = make_multiview(60, {"a": 3, "b": 4}, random_state=0)
    >>> SideBySide(LinearDiscriminantAnalysis()).fit(sim.data, sim.target).predict(sim.data).shape
    (60,)
    """

    coef_on_prepared = True

    def __init__(self, estimator: Any, views: Any = None, scale: str = "clipped") -> None:
        self.estimator = estimator
        self.views = views
        self.scale = scale

    def fit(self, X: Any, y: Any) -> SideBySide:
        """Learn from `X` (a `MultiView` or a matrix) and `y`."""
        mv = as_multiview(X, self.views, estimator_name="SideBySide")
        self.preparation_ = Preparation(self.scale, all_missing="zero").fit(mv)
        self.view_names_ = list(mv.view_names)
        self.estimator_ = clone(self.estimator).fit(self._matrix(mv), y)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        cuts = np.cumsum([self.preparation_.n_features_[v] for v in self.view_names_])
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

    def _matrix(self, mv: MultiView) -> np.ndarray:
        prepared = self.preparation_.transform(mv)
        return np.hstack([prepared[v].dense() for v in self.view_names_])

    def _cut(self, values: np.ndarray, cuts: np.ndarray) -> dict[str, np.ndarray]:
        return dict(zip(self.view_names_, np.split(values, cuts[:-1], axis=-1), strict=True))

    def _open(self, X: Any) -> np.ndarray:
        check_is_fitted(self, "estimator_")
        return self._matrix(as_multiview(X, self.views, estimator_name="SideBySide"))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags.allow_nan = True
        return tags
