"""Base classes of the baselines: opening data, preparation, labels, scores and predictions."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from baldur.baselines.blocks import Block, split_columns
from baldur.core.parameters import check_parameters
from baldur.core.types import Array, IntArray
from baldur.estimators.base import check_answer
from baldur.exceptions import InputError
from baldur.preparation import preparation_for
from baldur.views.estimator_input import open_views
from baldur.views.prepared_view import PreparedView
from baldur.views.validate import match_labels

Masks = dict[str, NDArray[np.bool_]]


def fit_converges(model: Any, X: Array, y: NDArray[Any]) -> bool:
    """Fit a scikit-learn model; return False instead of warning that it did not converge."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    for w in others:
        warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return len(others) == len(caught)


def inner_folds(y: NDArray[Any], cv: int, random_state: Any) -> list[tuple[IntArray, IntArray]]:
    """Return at most cv stratified folds, rows to train and test; none if a class has one row."""
    smallest = int(np.unique(y, return_counts=True)[1].min())
    if smallest < 2:
        return []
    splitter = StratifiedKFold(min(cv, smallest), shuffle=True, random_state=random_state)
    return list(splitter.split(np.zeros((len(y), 1)), y))


def one_against_rest(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Return targets -1 and +1: of the second of two classes (n, 1), or of each class (n, C)."""
    positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == positive, 1.0, -1.0)


def logistic_proba(linear: Array) -> Array:
    """Return probabilities (n, K) from linear predictors (n, K), or (n, 1) for two classes."""
    if linear.shape[1] == 1:
        p = expit(linear[:, 0])
        return np.column_stack([1.0 - p, p])
    return np.asarray(softmax(linear, axis=1))


@dataclass(eq=False, repr=False)
class BaselineEstimator(BaseEstimator):
    """What classifiers and regressors share: checking parameters and opening data.

    The parameters of a baseline are the fields of its class. ``fit`` accepts a `MultiView`, or one
    matrix with ``views`` naming the columns of each view. ``preparation_`` is learned from the
    training rows according to ``preparation`` and ``scale``, as in `BaldurClassifier`. Missing
    cells and missing views are replaced by the training mean, and ``block_scale`` divides each view
    by the square root of its prepared width. Fitted attributes refer to all columns of the input;
    all of them are selected unless the method selects.
    """

    _: KW_ONLY
    scale: str = "clipped"
    preparation: Any = None
    views: Any = None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "selected_features_")

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return codes of classes, or numbers; refuse what cannot be a target of the task."""
        raise NotImplementedError

    def _fit(self, blocks: list[Block], target: NDArray[Any]) -> Masks | None:
        """Learn from standardised blocks, and labels coded 0..C-1 or numbers.

        Return the selected columns of the input by view, or None where all are.
        """
        raise NotImplementedError

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from ``X`` (a `MultiView` or a matrix) and labels or numbers ``y``."""
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        check_parameters(self)
        mv = open_views(self, X, reset=True)
        y = column_or_1d(match_labels(y, mv.sample_ids, X), warn=True)
        check_consistent_length(mv, y)
        target = self._encode(y)
        self.preparation_ = preparation_for(self.preparation, self.scale)
        prepared = self.preparation_.fit_transform(mv)
        self.view_names_ = list(mv.view_names)
        blocks = self._blocks(prepared)
        selected = self._fit(blocks, target)
        self.selected_features_ = selected or {b.name: b.mask(True) for b in blocks}
        return self

    def _open_new(self, X: Any) -> list[Block]:
        check_is_fitted(self)
        return self._blocks(self.preparation_.transform(open_views(self, X, reset=False)))

    def _blocks(self, prepared: dict[str, PreparedView]) -> list[Block]:
        """Return the prepared views, divided by the root of their widths with `block_scale`."""
        scaled = getattr(self, "block_scale", False)
        return [
            Block(view, self.preparation_, float(view.shape[1]) ** -0.5 if scaled else 1.0)
            for view in (prepared[name] for name in self.view_names_)
        ]

    def _linear(self, blocks: list[Block]) -> Array:
        """Return ``sum_v X_v B_v + b`` (n, k) for ``coef_`` (D_v, k) and ``intercept_`` (k,)."""
        return np.asarray(sum(b.predict(self.coef_[b.name]) for b in blocks) + self.intercept_)

    def _split(self, values: NDArray[Any], blocks: list[Block]) -> dict[str, NDArray[Any]]:
        """Return an array over all prepared columns (last axis) as one array per input view."""
        parts = zip(blocks, split_columns(values, blocks), strict=True)
        return {b.name: self.preparation_.expand(b.name, part) for b, part in parts}


def _has_proba(estimator: Any) -> bool:
    return type(estimator)._proba is not BaselineClassifier._proba


class BaselineClassifier(ClassifierMixin, BaselineEstimator):
    """Base of the classifiers: subclasses define ``_fit``, and ``_scores`` if not linear."""

    _min_classes = 2

    def _scores(self, blocks: list[Block]) -> Array:
        """Return scores (n, C), the largest of which is predicted, or margins (n, 1)."""
        return self._linear(blocks)

    def _proba(self, blocks: list[Block]) -> Array:
        """Return class probabilities (n, C), where the method has them."""
        raise NotImplementedError

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        """Return codes 0..C-1 of the labels; set `classes_`."""
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < self._min_classes:
            raise InputError(
                f"{type(self).__name__} needs at least {self._min_classes} classes in y, got "
                f"{len(self.classes_)} class ({self.classes_[0]!r}). Add rows of another class."
            )
        return codes

    def decision_function(self, X: Any) -> Array:
        """Return the score of the second of two classes (n,), or one column per class (n, C)."""
        scores = check_answer(self._scores(self._open_new(X)), "scores")
        if len(self.classes_) != 2:
            return scores
        return scores[:, 0] if scores.shape[1] == 1 else scores[:, 1] - scores[:, 0]

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels, of the type that `fit` was given."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[codes])

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (n, C)."""
        return check_answer(self._proba(self._open_new(X)), "probabilities", (0.0, 1.0))


class BaselineRegressor(RegressorMixin, BaselineEstimator):
    """Base of the regressors: subclasses define ``_fit``, and ``_predict`` if not linear."""

    def _predict(self, blocks: list[Block]) -> Array:
        """Return one number per row (n,)."""
        return self._linear(blocks)[:, 0]

    def _encode(self, y: NDArray[Any]) -> NDArray[Any]:
        return check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=2
        )

    def predict(self, X: Any) -> Array:
        """Return the predicted numbers (n,)."""
        return check_answer(self._predict(self._open_new(X)), "predictions")
