"""What every baseline shares: views in, labels encoded, preparation, masks and soft outputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from baldur.estimators.save_mixins import SaveMixin
from baldur.exceptions import InputError
from baldur.preparation import preparation_for
from baldur.views import MultiView
from baldur.views.estimator_input import open_views
from baldur.views.prepared_view import PreparedView
from baldur.views.validate import match_labels

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Block:
    """One standardised view times a constant (the block scaling), read only through products."""

    name: str
    view: PreparedView
    factor: float = 1.0
    columns_of_input: NDArray[np.intp] | None = None
    """Where the columns stand among those of the input; None where these are the same."""
    n_input: int = 0
    """Columns of the input."""

    @property
    def width(self) -> int:
        """Number of prepared columns."""
        return int(self.view.shape[1])

    def over_input(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the prepared columns (first axis) for all columns of the input, else 0."""
        if self.columns_of_input is None:
            return values
        full = np.zeros((self.n_input, *values.shape[1:]), dtype=values.dtype)
        full[self.columns_of_input] = values
        return full

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Values of the columns of the input (first axis) for the prepared columns."""
        return values if self.columns_of_input is None else values[self.columns_of_input]

    def predict(self, coef: NDArray[Any]) -> Array:
        """``X B`` (n, k) for weights over the columns of the input (D, k)."""
        return self.apply(self.take(coef))

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Rows whose sample lacks the view."""
        return np.asarray(self.view.absent)

    @property
    def rtol(self) -> float | None:
        """Relative rounding of `gram`: views too wide for float64 are multiplied in float32."""
        return 1e-6 if self.view.dtype == np.float32 else None

    def gram(self) -> Array:
        """``X X'`` (n, n)."""
        return self.factor**2 * np.asarray(self.view.weighted_gram())

    def project(self, A: Array) -> Array:
        """``X'A`` (D, k)."""
        return self.factor * np.asarray(self.view.project(A))

    def apply(self, B: Array) -> Array:
        """``X B`` (n, k)."""
        return self.factor * np.asarray(self.view.apply(B))

    def columns(self, idx: NDArray[np.intp]) -> Array:
        """The columns ``idx``, dense (n, len(idx))."""
        return self.factor * np.asarray(self.view.columns(idx))

    def row_norms(self) -> Array:
        """Squared length of each row (n,), a block of columns at a time."""
        total = np.zeros(self.view.shape[0])
        for start in range(0, self.width, 8192):
            part = self.columns(np.arange(start, min(start + 8192, self.width)))
            total += np.einsum("ij,ij->i", part, part)
        return total


def softmax(scores: Array) -> Array:
    """Rows of ``scores`` to probabilities."""
    e = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def two_columns(margin: Array) -> Array:
    """A binary margin (n,) as class scores (n, 2) whose difference it is."""
    return np.column_stack([-margin / 2.0, margin / 2.0])


def check_choice(name: str, value: Any, legal: Sequence[Any]) -> None:
    """Refuse a parameter that is not one of the legal values."""
    if not any(value is v or (v is not None and value == v) for v in legal):
        raise InputError(f"{name} must be one of {tuple(legal)}, got {value!r}.")


def check_positive(name: str, value: Any, *, allow_zero: bool = False) -> None:
    """Refuse a parameter that is not a positive (or non-negative) number."""
    good = isinstance(value, (int, float, np.number)) and (value >= 0 if allow_zero else value > 0)
    if not good or not np.isfinite(value):
        kind = "non-negative" if allow_zero else "positive"
        raise InputError(f"{name} must be a {kind} number, got {value!r}.")


def _has_proba(estimator: Any) -> bool:
    return type(estimator)._proba is not BaselineClassifier._proba


class BaselineEstimator(SaveMixin, BaseEstimator):
    """What classifiers and regressors share: opening the data and cutting arrays into views.

    ``fit`` accepts a `MultiView`, or one matrix with ``views`` naming the columns of each view.
    ``preparation_`` is learned on the training rows as ``preparation`` and ``scale`` say; missing
    cells and absent views stand at the training mean, and ``block_scale`` divides each view by the
    square root of its prepared width. Fitted attributes tell about all columns of the input.
    """

    views: Any
    scale: str
    preparation: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "selected_features_")

    def _open_training(self, X: Any, y: Any) -> tuple[MultiView, NDArray[Any]]:
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        mv = open_views(self, X, reset=True)
        y = match_labels(y, mv.sample_ids, X)
        y = column_or_1d(y, warn=True)
        check_consistent_length(mv, y)
        return mv, y

    def _prepare(self, mv: MultiView) -> list[Block]:
        """Learn the scaling from training rows, and return them as blocks."""
        self.preparation_ = preparation_for(self.preparation, self.scale)
        prepared = self.preparation_.fit_transform(mv)
        self.view_names_ = list(mv.view_names)
        return self._blocks(prepared)

    def _open_new(self, X: Any) -> list[Block]:
        check_is_fitted(self)
        return self._blocks(self.preparation_.transform(open_views(self, X, reset=False)))

    def _blocks(self, prepared: dict[str, PreparedView]) -> list[Block]:
        scaled = getattr(self, "block_scale", False)
        widths = self.preparation_.n_features_
        blocks = []
        for name in self.view_names_:
            view = prepared[name]
            narrower = view.shape[1] < widths[name]
            columns = self.preparation_.columns_[name] if narrower else None
            factor = float(view.shape[1]) ** -0.5 if scaled else 1.0
            blocks.append(Block(name, view, factor, columns, widths[name]))
        return blocks

    def _all_features(self, blocks: list[Block]) -> dict[str, NDArray[np.bool_]]:
        return {b.name: b.over_input(np.ones(b.width, dtype=bool)) for b in blocks}

    def _split(self, values: NDArray[Any], blocks: list[Block]) -> dict[str, NDArray[Any]]:
        """An array over all prepared columns (last axis) as one array per view of the input."""
        cuts = np.cumsum([b.width for b in blocks])[:-1]
        parts = np.split(values, cuts, -1)
        return {
            b.name: np.moveaxis(b.over_input(np.moveaxis(part, -1, 0)), 0, -1)
            for b, part in zip(blocks, parts, strict=True)
        }


class BaselineClassifier(ClassifierMixin, BaselineEstimator):
    """Base of the classifiers: subclasses supply ``_fit`` and ``_scores`` and/or ``_proba``."""

    _min_classes = 2

    # -- to be supplied ------------------------------------------------------------------------
    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Learn from standardised blocks and labels coded 0..C-1."""
        raise TypeError(f"{type(self).__name__} does not define _fit")

    def _scores(self, blocks: list[Block]) -> Array:
        """Class scores (n, C); the largest wins."""
        return self._proba(blocks)

    def _proba(self, blocks: list[Block]) -> Array:
        """Class probabilities (n, C), where the method has them."""
        raise TypeError(f"{type(self).__name__} has no probabilities")

    # -- scikit-learn --------------------------------------------------------------------------
    def fit(self, X: Any, y: Any) -> BaselineClassifier:
        """Learn from ``X`` (a `MultiView` or a matrix) and labels ``y``."""
        mv, y = self._open_training(X, y)
        check_classification_targets(y)
        self.classes_, codes = np.unique(y, return_inverse=True)
        if len(self.classes_) < self._min_classes:
            raise InputError(
                f"{type(self).__name__} needs at least {self._min_classes} classes in y, got "
                f"{len(self.classes_)} class ({self.classes_[0]!r}). Give rows of another class."
            )
        self._fit(self._prepare(mv), codes)
        return self

    def decision_function(self, X: Any) -> Array:
        """Score of the second class (n,) when there are two classes, else one column per class."""
        scores = self._scores(self._open_new(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Labels, as they were given to `fit`."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[codes])

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, C)."""
        return self._proba(self._open_new(X))


class BaselineRegressor(RegressorMixin, BaselineEstimator):
    """Base of the regressors: subclasses supply ``_fit`` and ``_predict``."""

    def _fit(self, blocks: list[Block], y: Array) -> None:
        """Learn from standardised blocks and numbers."""
        raise TypeError(f"{type(self).__name__} does not define _fit")

    def _predict(self, blocks: list[Block]) -> Array:
        """One number per row (n,)."""
        raise TypeError(f"{type(self).__name__} does not define _predict")

    def fit(self, X: Any, y: Any) -> BaselineRegressor:
        """Learn from ``X`` (a `MultiView` or a matrix) and numbers ``y``."""
        mv, y = self._open_training(X, y)
        numbers = check_array(
            y, ensure_2d=False, dtype=np.float64, input_name="y", ensure_min_samples=2
        )
        self._fit(self._prepare(mv), numbers)
        return self

    def predict(self, X: Any) -> Array:
        """Numbers (n,)."""
        return np.asarray(self._predict(self._open_new(X)))
