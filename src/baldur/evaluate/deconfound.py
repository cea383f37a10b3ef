"""Deconfounded: regress covariates out of every view before an estimator sees it.

The covariates travel with the rows, as one more view of ``X``. Cutting ``X`` into folds cuts them
too, and what they explain is learned in `fit`, from training rows only, whatever loop calls it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags
from sklearn.utils.validation import check_is_fitted

from baldur.evaluate.steps import fit_with_groups
from baldur.evaluate.weights import Weights, on_prepared, oriented_coef, weights_of
from baldur.evaluate.wrapped import Outward
from baldur.exceptions import InputError
from baldur.prepare import SCALES, Preparation
from baldur.views import MultiView
from baldur.views.products import PreparedView

__all__ = ["CONFOUNDS", "Deconfounded"]

CONFOUNDS = "covariates (regressed out)"
"""Name of the view that holds the covariates."""

# Residuals up to this size are kept as an array, wider views are read through their products.
_KEEP_BYTES = 1 << 28


class _Residuals:
    """The cells of a prepared view as a lazily read matrix."""

    def __init__(self, prepared: PreparedView) -> None:
        self.prepared = prepared
        self.shape = prepared.shape
        self.dtype = np.dtype(np.float64)

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        part = self.prepared if rows is None else self.prepared.take_rows(rows)
        return part.columns(np.arange(self.shape[1])[cols])


class Deconfounded(Outward):
    """Fit an estimator on what covariates leave unexplained in every view.

    Columns are scaled as the estimator's `scale` says before covariates are taken out; what is
    left is only standardised, so that columns of two values and genotypes are never clipped.

    Parameters
    ----------
    estimator : estimator that accepts a `MultiView`
        Cloned before it is fitted.
    view : str
        The view of ``X`` that holds the covariates. A missing covariate takes its training mean.

    Attributes
    ----------
    estimator_ : estimator
        The fitted one.
    preparation_ : Preparation
        What was learned about the views and the covariates, on the training rows.
    view_names_, feature_names_, feature_info_
        Of the views without the covariates.
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Those of `estimator_`, where it has them, per unit of the input.
    intercept_ : ndarray of shape (n_outputs,)
        That goes with `coef_` and `covariate_coef_`.
    covariate_coef_ : ndarray of shape (n_outputs, q)
        Weight that each covariate gets, in its own units, from being taken out of the views: with
        `coef_` and `intercept_` it gives the linear predictor of rows within the clip.
    coef_scaled_, selected_features_, view_relevance_ and others
        Those of `estimator_`; a standard deviation is that of what covariates leave.
    """

    def __init__(self, estimator: Any, view: str = CONFOUNDS) -> None:
        self.estimator = estimator
        self.view = view

    def fit(self, X: MultiView, y: Any, groups: Any = None) -> Deconfounded:
        """Learn what the covariates explain, then fit the estimator on the rest."""
        covariates = self._covariates(X)
        with np.errstate(invalid="ignore"):
            known = np.isfinite(covariates)
            count = np.maximum(known.sum(axis=0), 1)
            self.covariate_mean_ = np.where(known, covariates, 0.0).sum(axis=0) / count
        self.view_names_ = [v for v in X.view_names if v != self.view]
        views = X.select(self.view_names_)
        inner = clone(self.estimator)
        scale = inner.get_params(deep=False).get("scale")
        if scale in SCALES:
            inner.set_params(scale="standard")
        self.preparation_ = Preparation(
            scale if scale in SCALES else "clipped", all_missing="zero"
        ).fit(views, self._fill(covariates))
        left = self._residuals(X)
        self.feature_names_ = {v: left.view(v).feature_names for v in self.view_names_}
        self.feature_info_ = left.feature_info
        self.estimator_ = fit_with_groups(inner, left, y, groups)
        return self

    def _outward(self, name: str, value: Any) -> Any:
        """Turn weights on what is left into weights per unit of the input."""
        prep = self.preparation_
        if name == "coef_":
            value = oriented_coef(self.estimator_, prep.n_features_)
        if on_prepared(self.estimator_):
            return value
        if name in ("coef_", "coef_std_"):
            return {v: prep.coef_in_input_units(v, w) for v, w in value.items()}
        if name == "intercept_":
            coef = self.estimator_.coef_.items()
            return value + np.sum([prep.intercept_shift(v, w) for v, w in coef], axis=0)
        return value

    @property
    def covariate_coef_(self) -> np.ndarray:
        """Weight of each covariate in the linear predictor, in its own units."""
        check_is_fitted(self, "estimator_")
        coef = oriented_coef(self.estimator_, self.preparation_.n_features_)
        parts = [self.preparation_.confound_weights(v, w) for v, w in coef.items()]
        return np.asarray(np.sum(parts, axis=0))

    def _covariates(self, X: Any) -> np.ndarray:
        if not isinstance(X, MultiView) or self.view not in X.view_names or len(X.view_names) < 2:
            have = X.view_names if isinstance(X, MultiView) else type(X).__name__
            raise InputError(
                f"Deconfounded expects a MultiView with a view {self.view!r} and at least one "
                f"other, but got {have}."
            )
        return np.asarray(X.view(self.view).read(), dtype=np.float64)

    def _fill(self, covariates: np.ndarray) -> np.ndarray:
        return np.where(np.isfinite(covariates), covariates, self.covariate_mean_)

    def _residuals(self, X: MultiView) -> MultiView:
        views = X.select(self.view_names_)
        prepared = self.preparation_.transform(views, self._fill(self._covariates(X)))
        matrices: dict[str, Any] = {}
        for name, part in prepared.items():
            small = part.shape[0] * part.shape[1] * 8 <= _KEEP_BYTES
            matrices[name] = part.dense() if small else _Residuals(part)
        named = [v for v in self.view_names_ if views.view(v).names_given]
        return MultiView(
            matrices,
            sample_ids=X.sample_ids,
            feature_names={v: views.view(v).feature_names for v in named},
            feature_info=views.feature_info,
            present={name: ~part.absent for name, part in prepared.items()},
        )

    def read_weights(self, X: MultiView) -> Weights | None:
        """Return the weights in both units; a standard deviation is that of what is left."""
        inner = weights_of(self.estimator_, self._residuals(X))
        if inner is None:
            return None
        raw = {v: self.preparation_.coef_in_input_units(v, w.T).T for v, w in inner.raw.items()}
        return Weights(inner.per_sd, raw, inner.variance)

    def _open(self, X: Any) -> MultiView:
        check_is_fitted(self, "estimator_")
        return self._residuals(X)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        return tags
