"""Plain scikit-learn estimators on all views side by side.

Those with settings of ours are in the table of `baldur.baselines.registry_with_grids`, behind one
class for each task. `SideBySide` takes any estimator as it is.
"""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.utils import check_random_state, get_tags
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from baldur.baselines.base import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
    Masks,
    fit_converges,
    logistic_proba,
)
from baldur.baselines.blocks import (
    Block,
    check_memory,
    dense_concatenation,
    reduce_gram,
    total_width,
)
from baldur.core.parameters import one_of, parameter
from baldur.core.types import Array
from baldur.estimators.base import check_answer
from baldur.exceptions import InputError, NotConvergedWarning
from baldur.preparation import preparation_for
from baldur.views.estimator_input import as_multiview
from baldur.views.prepared_view import PreparedView

WIDE = 8192
"""Number of columns above which "auto" uses few bins: histograms take most of the memory."""


@dataclass(eq=False, repr=False)
class SideBySideBaseline(BaselineEstimator):
    """A scikit-learn estimator on all views side by side.

    The parameters of the estimator are parameters of this one too: ``set_params(max_depth=3)``.

    Parameters
    ----------
    estimator : scikit-learn estimator
        With the settings of the baseline; cloned before it is fitted. ``max_bins`` of boosted trees
        may be "auto": 255, or 32 above 8,192 columns.
    scale, preparation, views
        As in `BaselineEstimator`.
    layout : {"float64", "float32", "scores", "none"}
        How views are put side by side: as one dense matrix of standardised columns of this
        precision; as the principal scores of their sum of Gram matrices, which gives a linear model
        with a ridge penalty the same weights, whatever the number of columns; or not at all, for
        estimators that look at no column.
    selection : {"used", "mean"}
        What counts as selected by trees: importance above 0 (used in a split), or above the mean.
    block_scale : bool
        Divide each standardised view by the square root of its width.
    """

    estimator: Any = None
    _: KW_ONLY
    layout: str = parameter("float64", one_of("float64", "float32", "scores", "none"))
    selection: str = parameter("used", one_of("used", "mean"))
    block_scale: bool = False

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters of this estimator and, if `deep`, of the one that it fits."""
        wrapper = super().get_params(deep=False)
        inner = deep and hasattr(self.estimator, "get_params")
        return {**(self.estimator.get_params() if inner else {}), **wrapper}

    def set_params(self, **params: Any) -> SideBySideBaseline:
        """Set parameters of this estimator, and all others of the one that it fits."""
        own = super().get_params(deep=False)
        super().set_params(**{name: params.pop(name) for name in own if name in params})
        if params:
            self.estimator.set_params(**params)
        return self

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn's checks expect, with some of the estimator that it fits."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        if tags.classifier_tags is not None and inner.classifier_tags is not None:
            tags.classifier_tags.poor_score = inner.classifier_tags.poor_score
        if tags.regressor_tags is not None and inner.regressor_tags is not None:
            tags.regressor_tags.poor_score = inner.regressor_tags.poor_score
        return tags

    def _fit(self, blocks: list[Block], target: NDArray[Any]) -> Masks | None:
        """Fit a clone of the estimator, and read its weights and the selected features."""
        n, D, selected = len(target), total_width(blocks), None
        model = self.estimator_ = clone(self.estimator)
        settings = model.get_params()
        if isinstance(settings.get("class_weight"), dict):  # by label; the estimator sees codes
            labels = enumerate(self.classes_.tolist())
            weight = {code: settings["class_weight"].get(label, 1.0) for code, label in labels}
            model.set_params(class_weight=weight)
        if "max_bins" in settings:
            _limit_histograms(model, n, D)
        if self.layout == "scores":  # a ridge model needs only the Gram matrix of all columns
            rtol = max((b.rtol or 0.0) for b in blocks) or None
            features, lift = reduce_gram(np.add.reduce([b.gram() for b in blocks]), rtol=rtol)
            # Where every column is constant, a column of zeros leaves only the offset.
            self._fit_model(features if features.size else np.zeros((n, 1)), target)
            # The weights on the scores, as weights on the columns.
            dual = lift @ np.atleast_2d(model.coef_).T[: lift.shape[1]]
            self.coef_ = {b.name: b.weights(dual) for b in blocks}
        else:
            self._fit_model(self._matrix(blocks), target)
            selected = self._split(self._read_columns(blocks, D), blocks)
        if hasattr(model, "coef_"):
            self.intercept_ = np.atleast_1d(model.intercept_)
        if getattr(model, "n_iter_", None) is not None:
            self.n_iter_ = int(np.max(model.n_iter_))
        return selected

    def _fit_model(self, X: Array, y: NDArray[Any]) -> None:
        """Fit the estimator, with the errors and warnings of this package in place of its own."""
        name = type(self.estimator_).__name__
        try:
            converged = fit_converges(self.estimator_, X, y)
        except InvalidParameterError as error:
            raise InputError(str(error)) from error
        if not converged:
            warnings.warn(
                f"{name} did not converge; a stronger penalty converges sooner.",
                NotConvergedWarning,
                stacklevel=4,  # the line that calls `fit` of a classifier
            )

    def _read_columns(self, blocks: list[Block], D: int) -> NDArray[np.bool_]:
        """Return a mask of the selected columns, (D,); set weights or importances by view."""
        model = self.estimator_
        if hasattr(model, "coef_"):
            coef = np.atleast_2d(model.coef_)
            self.coef_ = {name: part.T for name, part in self._split(coef, blocks).items()}
            return np.asarray(np.any(coef != 0.0, axis=0))
        if hasattr(model, "feature_importances_"):
            importance = model.feature_importances_
            self.feature_importances_ = self._split(importance, blocks)
            threshold = 0.0 if self.selection == "used" else float(importance.mean())
            return np.asarray(importance > threshold)
        return np.zeros(D, dtype=bool) if self.layout == "none" else _columns_of_splits(model, D)

    def _matrix(self, blocks: list[Block]) -> NDArray[Any]:
        """Return the views as one matrix (n, D), or a column of zeros (n, 1)."""
        if self.layout == "none":
            return np.zeros((blocks[0].view.shape[0], 1))
        return dense_concatenation(blocks, np.dtype(self.layout), type(self.estimator).__name__)


@dataclass(eq=False, repr=False)
class SideBySideClassifier(SideBySideBaseline, BaselineClassifier):
    """A scikit-learn classifier on all views side by side, as `SideBySideBaseline` describes."""

    @property
    def _min_classes(self) -> int:  # type: ignore[override]
        return 1 if self.layout == "none" else 2

    def _scores(self, blocks: list[Block]) -> Array:
        """Return linear predictors, or else probabilities or their logarithms; (n, C)."""
        if hasattr(self.estimator_, "coef_"):
            return self._linear(blocks)
        p = self._proba(blocks)
        # Boosted trees add up on the scale of the logarithm; forests and frequencies do not.
        additive = hasattr(self.estimator_, "decision_function")
        return np.log(np.maximum(p, 1e-300)) if additive else p

    def _proba(self, blocks: list[Block]) -> Array:
        if hasattr(self.estimator_, "coef_"):
            return logistic_proba(self._linear(blocks))
        return np.asarray(self.estimator_.predict_proba(self._matrix(blocks)))


@dataclass(eq=False, repr=False)
class SideBySideRegressor(SideBySideBaseline, BaselineRegressor):
    """A scikit-learn regressor on all views side by side, as `SideBySideBaseline` describes.

    Parameters
    ----------
    unit_target : bool
        Fit the outcome divided by its standard deviation, so that a penalty has no unit.
    """

    unit_target: bool = False

    def _fit(self, blocks: list[Block], target: NDArray[Any]) -> Masks | None:
        """Fit the estimator, with `unit_target` to outcomes divided by their standard deviation."""
        unit = (float(target.std()) or 1.0) if self.unit_target else 1.0
        selected = super()._fit(blocks, target / unit)
        if hasattr(self.estimator_, "coef_"):
            self.coef_ = {name: unit * part for name, part in self.coef_.items()}
            self.intercept_ = unit * self.intercept_
        return selected

    def _predict(self, blocks: list[Block]) -> Array:
        if hasattr(self.estimator_, "coef_"):
            return self._linear(blocks)[:, 0]
        return np.asarray(self.estimator_.predict(self._matrix(blocks)))


def _limit_histograms(model: Any, n: int, D: int) -> None:
    """Set the number of bins and the seed of boosted trees, and check the memory they need."""
    settings, bins = model.get_params(), model.max_bins
    if bins == "auto":
        bins = 32 if D > WIDE else 255
    leaves = min(settings["max_leaf_nodes"], max(2, n // max(1, settings["min_samples_leaf"])))
    # One float64 copy, one binned byte copy, and 20 bytes per bin, column and open leaf.
    needed = float(D) * (9.0 * n + 20.0 * (bins + 1) * (leaves + 1))
    check_memory(needed, (n, D), "Gradient-boosted trees", "Lower max_bins or max_leaf_nodes.")
    seed = check_random_state(settings["random_state"]).randint(np.iinfo(np.int32).max)
    model.set_params(max_bins=int(bins), random_state=int(seed))


def _columns_of_splits(trees: Any, D: int) -> NDArray[np.bool_]:
    """Return a mask of the columns that are used in at least one split."""
    used = np.zeros(D, dtype=bool)
    # scikit-learn offers no public way to ask which columns its histogram trees split on; if a
    # release renames this attribute, every column counts as used rather than none.
    rounds = getattr(trees, "_predictors", None)
    if rounds is None:
        return ~used
    for stage in rounds:
        for tree in stage:
            nodes = tree.nodes
            used[nodes["feature_idx"][nodes["is_leaf"] == 0]] = True
    return used


# -- any estimator as it is ------------------------------------------------------------------------


def takes_views(estimator: Any) -> bool:
    """Whether an estimator, or one it wraps, accepts a `MultiView`."""
    return any(k == "views" or k.endswith("__views") for k in estimator.get_params(deep=True))


def _has(method: str) -> Any:
    """Make a method available only if the wrapped estimator has it."""
    return available_if(lambda self: hasattr(getattr(self, "estimator_", self.estimator), method))


class SideBySide(MetaEstimatorMixin, BaseEstimator):
    """Fit an ordinary estimator on all views put side by side.

    Columns are prepared as for every model, and missing cells stand at the training mean.

    Parameters
    ----------
    estimator : scikit-learn classifier or regressor
        Cloned before it is fitted.
    views : dict of str to columns, optional
        Columns of each view when ``X`` is one matrix.
    preparation : Preparation or {"clipped", "standard", "rank"}, optional
        What is learned about the columns, or how they are scaled, as in `BaldurClassifier`.

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

    def __init__(self, estimator: Any, views: Any = None, preparation: Any = None) -> None:
        self.estimator = estimator
        self.views = views
        self.preparation = preparation

    def fit(self, X: Any, y: Any) -> SideBySide:
        """Learn from `X` (a `MultiView` or a matrix) and `y`."""
        mv = as_multiview(X, self.views, estimator_name="SideBySide")
        self.preparation_ = preparation_for(self.preparation)
        prepared = self.preparation_.fit_transform(mv)
        self.view_names_ = list(mv.view_names)
        self.estimator_ = clone(self.estimator).fit(self._matrix(prepared), y)
        if hasattr(self.estimator_, "classes_"):
            self.classes_ = self.estimator_.classes_
        cuts = np.cumsum([prepared[v].shape[1] for v in self.view_names_])  # where each view ends
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
        p = np.asarray(self.estimator_.predict_proba(self._open(X)))
        # An estimator of several outcomes gives a list of arrays.
        return check_answer(p, "probabilities", (0.0, 1.0)) if p.ndim == 2 else p

    @_has("decision_function")
    def decision_function(self, X: Any) -> np.ndarray:
        """Return the decision scores of the wrapped estimator."""
        return np.asarray(self.estimator_.decision_function(self._open(X)))

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn's checks expect, with some of the estimator that it fits."""
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        tags.classifier_tags = inner.classifier_tags
        tags.regressor_tags = inner.regressor_tags
        tags.input_tags.allow_nan = True
        return tags
