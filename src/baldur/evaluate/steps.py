"""Steps learned on training rows before a model: kept levels, variants or voxels, aligned sites.

The model sees fewer columns than the study has; its masks and weights are given back for all of
them, so that features are counted and named alike in every fold.
"""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from baldur.evaluate.weights import Weights, oriented_coef, weights_of
from baldur.evaluate.wrapped import Outward
from baldur.prepare import SiteHarmoniser
from baldur.views import MultiView

__all__ = ["WithSteps", "fit_with_groups"]


def fit_with_groups(estimator: Any, X: Any, y: Any, groups: Any) -> Any:
    """Fit an estimator, and tell it the groups if it has inner folds that ask for them."""
    if groups is not None and "groups" in inspect.signature(estimator.fit).parameters:
        return estimator.fit(X, y, groups=groups)
    return estimator.fit(X, y)


class WithSteps(Outward):
    """Fit transformers from `MultiView` to `MultiView`, then an estimator on what they leave.

    Parameters
    ----------
    estimator : estimator that accepts a `MultiView`
        Cloned before it is fitted.
    steps : list of transformers
        Each keeps some columns of a view, under their names.

    Attributes
    ----------
    estimator_, steps_
        The fitted ones.
    harmonisation_ : DataFrame or None
        What a step that aligns sites changed on the training rows, see `SiteHarmoniser.report_`.
    view_names_ : list of str
        Views of the estimator.
    feature_names_, feature_info_ : dict of str to array of str, to DataFrame
        Of all columns of the input, for these views.
    places_ : dict of str to int array
        Where the columns that the steps leave stand in the input.
    n_columns_ : dict of str to int
        Columns of the input.
    selected_features_ : dict of str to bool array
        Over all columns of the input; False where a step removed the column.
    coef_, coef_std_, coef_scaled_, inclusion_probability_, view_relevance_ and others
        What the estimator has, over all columns of the input: 0 where a step removed the column.

    Notes
    -----
    What is stored are names, numbers and the parts; attributes of the estimator are widened when
    they are asked for.
    """

    def __init__(self, estimator: Any, steps: Any = ()) -> None:
        self.estimator = estimator
        self.steps = steps

    def fit(self, X: MultiView, y: Any, groups: Any = None) -> WithSteps:
        """Fit the steps and the estimator, all on the rows of `X`."""
        self.steps_ = []
        left = X
        for step in self.steps:
            fitted = clone(step).fit(left, y)
            left = fitted.transform(left)
            self.steps_.append(fitted)
        self.harmonisation_ = next(
            (step.report_ for step in self.steps_ if isinstance(step, SiteHarmoniser)), None
        )
        self.estimator_ = fit_with_groups(clone(self.estimator), left, y, groups)
        masks = getattr(self.estimator_, "selected_features_", None)
        names = [v for v in left.view_names if not isinstance(masks, dict) or v in masks]
        self.view_names_ = names
        self.feature_names_ = {v: X.view(v).feature_names for v in names}
        self.feature_info_ = {v: info for v, info in X.feature_info.items() if v in names}
        self.places_ = {v: _places(X, left, v) for v in names}
        self.n_columns_ = {v: X.n_features[v] for v in names}
        if not isinstance(masks, dict):
            masks = {v: np.ones(left.n_features[v], dtype=bool) for v in names}
        self.selected_features_ = self._outward("selected_features_", masks)
        return self

    def _outward(self, name: str, value: Any) -> Any:
        """Widen a dictionary of one array per view; anything else is passed as it is."""
        if name == "coef_":
            value = oriented_coef(self.estimator_, {v: len(at) for v, at in self.places_.items()})
        if not isinstance(value, dict) or not set(value) <= set(self.places_):
            return value
        arrays = {v: np.asarray(part) for v, part in value.items()}
        if any(a.ndim == 0 or a.shape[-1] != len(self.places_[v]) for v, a in arrays.items()):
            return value
        full = {
            v: np.zeros((*a.shape[:-1], self.n_columns_[v]), dtype=a.dtype)
            for v, a in arrays.items()
        }
        for v, a in arrays.items():
            full[v][..., self.places_[v]] = a
        return full

    def read_weights(self, X: MultiView) -> Weights | None:
        """Return the weights in both units, 0 where a step removed the column."""
        inner = weights_of(self.estimator_, self._open(X))
        if inner is None:
            return None

        def over_all(part: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            full = {v: np.zeros((X.n_features[v], w.shape[1])) for v, w in part.items()}
            for v, w in part.items():
                full[v][self.places_[v]] = w
            return full

        return Weights(over_all(inner.per_sd), over_all(inner.raw), inner.variance)

    def _open(self, X: MultiView) -> MultiView:
        check_is_fitted(self, "estimator_")
        for step in self.steps_:
            X = step.transform(X)
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        return tags


def _places(X: MultiView, left: MultiView, view: str) -> np.ndarray:
    """Where the columns that are left stand in the input."""
    if left.n_features[view] == X.n_features[view]:
        return np.arange(X.n_features[view])
    return pd.Index(X.feature_names[view]).get_indexer(pd.Index(left.feature_names[view]))
