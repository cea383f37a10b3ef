"""Base classes of the baselines: opening data, preparation, labels, scores and predictions."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_consistent_length
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from baldur.core.parameters import Constraint, check_parameters
from baldur.core.types import Array
from baldur.estimators.base import SaveMixin, check_answer
from baldur.exceptions import BaldurError, InputError
from baldur.preparation import preparation_for
from baldur.views import MultiView
from baldur.views.estimator_input import open_views
from baldur.views.labels import match_labels
from baldur.views.prepared_view import PreparedView


@contextmanager
def predicting(estimator: Any) -> Iterator[None]:
    """Turn what a damaged or forged model runs into while it predicts into an `InputError`."""
    try:
        yield
    except BaldurError:
        raise
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        said = str(error).splitlines()[0][:200] if str(error) else ""
        raise InputError(
            f"{type(estimator).__name__} cannot predict ({type(error).__name__}: {said}). A model "
            "from somebody else may be damaged or forged."
        ) from error


def check_probabilities(p: Array) -> Array:
    """Return probabilities (n, C); refuse those that are not from 0 to 1 or do not sum to 1."""
    p = check_answer(p, "probabilities", (0.0, 1.0))
    # Far above the rounding of float32.
    if (np.abs(p.sum(axis=1) - 1.0) > 1e-3).any():
        raise InputError(
            "The probabilities of the classes do not sum to 1. A model from somebody else may be "
            "damaged or forged."
        )
    return p


@dataclass(frozen=True)
class Block:
    """One standardised view times a constant (the block scaling), read only through products."""

    name: str
    view: PreparedView
    factor: float = 1.0
    columns_of_input: NDArray[np.intp] | None = None
    """Positions of the columns among those of the input; None where these are the same."""
    n_input: int = 0
    """Number of columns of the input."""

    @property
    def width(self) -> int:
        """Number of columns after the preparation."""
        return int(self.view.shape[1])

    def over_input(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of prepared columns (first axis) over all columns of the input."""
        if self.columns_of_input is None:
            return values
        full = np.zeros((self.n_input, *values.shape[1:]), dtype=values.dtype)
        full[self.columns_of_input] = values
        return full

    def take(self, values: NDArray[Any]) -> NDArray[Any]:
        """Return values of the columns of the input (first axis) for the prepared columns."""
        return values if self.columns_of_input is None else values[self.columns_of_input]

    def predict(self, coef: NDArray[Any]) -> Array:
        """Return ``X B`` (n, k) for weights over the columns of the input (D, k)."""
        return self.apply(self.take(coef))

    def mask(self, value: bool) -> NDArray[np.bool_]:
        """Return a mask of the columns of the input: `value` where they are prepared."""
        return self.over_input(np.full(self.width, value))

    @property
    def absent(self) -> NDArray[np.bool_]:
        """Mask of the samples for which the view is missing."""
        return np.asarray(self.view.absent)

    @property
    def rtol(self) -> float | None:
        """Relative rounding of `gram`: views too wide for float64 are multiplied in float32."""
        return 1e-6 if self.view.dtype == np.float32 else None

    def gram(self) -> Array:
        """Return the Gram matrix ``X X'`` (n, n)."""
        return self.factor**2 * np.asarray(self.view.weighted_gram())

    def project(self, A: Array) -> Array:
        """Return the product ``X'A`` (D, k)."""
        return self.factor * np.asarray(self.view.project(A))

    def apply(self, B: Array) -> Array:
        """Return the product ``X B`` (n, k)."""
        return self.factor * np.asarray(self.view.apply(B))

    def columns(self, idx: NDArray[np.intp]) -> Array:
        """Return the columns ``idx`` as a dense array (n, len(idx))."""
        return self.factor * np.asarray(self.view.columns(idx))

    def row_norms(self) -> Array:
        """Return the squared length of each row (n,), a block of columns at a time."""
        total = np.zeros(self.view.shape[0])
        for start in range(0, self.width, 8192):
            part = self.columns(np.arange(start, min(start + 8192, self.width)))
            total += np.einsum("ij,ij->i", part, part)
        return total


def fit_converges(model: Any, X: Array, y: NDArray[Any]) -> bool:
    """Fit a scikit-learn model, and return whether it converged in place of its warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    others = [w for w in caught if not issubclass(w.category, ConvergenceWarning)]
    for w in others:
        warnings.warn_explicit(w.message, w.category, w.filename, w.lineno)
    return len(others) == len(caught)


def one_against_rest(codes: NDArray[np.intp], n_classes: int) -> Array:
    """Return targets -1 and +1: of the second of two classes (n, 1), or of each class (n, C)."""
    positive = np.array([1]) if n_classes == 2 else np.arange(n_classes)
    return np.where(codes[:, None] == positive, 1.0, -1.0)


def _has_proba(estimator: Any) -> bool:
    return type(estimator)._proba is not BaselineClassifier._proba


@dataclass(eq=False, repr=False)
class BaselineEstimator(SaveMixin, BaseEstimator):
    """What classifiers and regressors share: checking parameters and opening data.

    The parameters of a baseline are the fields of its class. ``fit`` accepts a `MultiView`, or one
    matrix with ``views`` naming the columns of each view.
    ``preparation_`` is learned from the training rows according to ``preparation`` and ``scale``.
    Missing cells and missing views are replaced by the training mean, and ``block_scale`` divides
    each view by the square root of its prepared width. Fitted attributes refer to all columns of
    the input.

    Parameters
    ----------
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.baselines import BaselineEstimator, MVPLSClassifier
    >>> X = np.random.default_rng(0).normal(size=(20, 5))
    >>> model = MVPLSClassifier(views={"clinic": [0, 1], "scan": [2, 3, 4]})
    >>> model.fit(X, X[:, 0] > 0).view_names_
    ['clinic', 'scan']
    >>> isinstance(model, BaselineEstimator), model.preparation_.scale
    (True, 'clipped')
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {}

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

    def _open_training(self, X: Any, y: Any) -> tuple[MultiView, NDArray[Any]]:
        if y is None:
            raise InputError(
                f"{type(self).__name__} requires y to be passed, but the target y is None"
            )
        check_parameters(self.get_params(deep=False), self._constraints)
        mv = open_views(self, X, reset=True)
        y = match_labels(y, mv.sample_ids, X)
        y = column_or_1d(y, warn=True)
        check_consistent_length(mv, y)
        return mv, y

    def _prepare(self, mv: MultiView) -> list[Block]:
        """Learn the preparation from the training rows, and return these as blocks."""
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
        return {b.name: b.mask(True) for b in blocks}

    def _linear(self, blocks: list[Block]) -> Array:
        """Return ``sum_v X_v B_v + b`` (n, k) for ``coef_`` (D_v, k) and ``intercept_`` (k,)."""
        return np.asarray(sum(b.predict(self.coef_[b.name]) for b in blocks) + self.intercept_)

    def _split(self, values: NDArray[Any], blocks: list[Block]) -> dict[str, NDArray[Any]]:
        """Return an array over all prepared columns (last axis) as one array per input view."""
        cuts = np.cumsum([b.width for b in blocks])[:-1]
        parts = np.split(values, cuts, -1)
        return {
            b.name: np.moveaxis(b.over_input(np.moveaxis(part, -1, 0)), 0, -1)
            for b, part in zip(blocks, parts, strict=True)
        }


class BaselineClassifier(ClassifierMixin, BaselineEstimator):
    """Base of the classifiers: subclasses define ``_fit`` and ``_scores`` or ``_proba``."""

    _min_classes = 2

    # -- defined by subclasses -----------------------------------------------------------------
    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Learn from standardised blocks and labels coded 0..C-1."""
        raise TypeError(f"{type(self).__name__} does not define _fit")

    def _scores(self, blocks: list[Block]) -> Array:
        """Return scores (n, C), the largest of which is predicted, or margins (n, 1)."""
        return self._proba(blocks)

    def _proba(self, blocks: list[Block]) -> Array:
        """Return class probabilities (n, C), where the method has them."""
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
                f"{len(self.classes_)} class ({self.classes_[0]!r}). Add rows of another class."
            )
        self._fit(self._prepare(mv), codes)
        return self

    def predict_prepared(self, prepared: dict[str, PreparedView]) -> Array:
        """Return class scores or probabilities (n, C) of rows that are prepared already."""
        blocks = self._blocks(prepared)
        return self._checked_proba(blocks) if _has_proba(self) else self._checked_scores(blocks)

    def _checked_scores(self, blocks: list[Block]) -> Array:
        with predicting(self):
            scores = np.asarray(self._scores(blocks))
        if scores.ndim == 2 and scores.shape[1] == 1 and len(self.classes_) == 2:  # margins
            scores = np.column_stack([-scores[:, 0] / 2.0, scores[:, 0] / 2.0])
        return check_answer(self._one_column_per_class(scores), "scores")

    def _checked_proba(self, blocks: list[Block]) -> Array:
        with predicting(self):
            p = self._proba(blocks)
        return check_probabilities(self._one_column_per_class(p))

    def _one_column_per_class(self, values: Array) -> Array:
        values = np.asarray(values)
        if values.ndim != 2 or values.shape[1] != len(self.classes_):
            raise InputError(
                f"Expected one score for each of {len(self.classes_)} classes, but got an array of "
                f"shape {values.shape}. A model from somebody else may be damaged or forged."
            )
        return values

    def decision_function(self, X: Any) -> Array:
        """Return the score of the second of two classes (n,), or one column per class (n, C)."""
        scores = self._checked_scores(self._open_new(X))
        return scores[:, 1] - scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the predicted labels, of the type that `fit` was given."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(np.intp) if scores.ndim == 1 else np.argmax(scores, axis=1)
        return np.asarray(self.classes_[codes])

    @available_if(_has_proba)
    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities (n, C)."""
        return self._checked_proba(self._open_new(X))


class BaselineRegressor(RegressorMixin, BaselineEstimator):
    """Base of the regressors: subclasses define ``_fit`` and ``_predict``."""

    def _fit(self, blocks: list[Block], y: Array) -> None:
        """Learn from standardised blocks and numbers."""
        raise TypeError(f"{type(self).__name__} does not define _fit")

    def _predict(self, blocks: list[Block]) -> Array:
        """Return one number per row (n,)."""
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
        """Return the predicted numbers (n,)."""
        return self._checked(self._open_new(X))

    def predict_prepared(self, prepared: dict[str, PreparedView]) -> Array:
        """Return numbers (n,) for rows that are prepared already."""
        return self._checked(self._blocks(prepared))

    def _checked(self, blocks: list[Block]) -> Array:
        with predicting(self):
            numbers = np.asarray(self._predict(blocks))
        return check_answer(numbers, "predictions")


COLUMN_BLOCK = 8192
"""Number of columns that are standardised at a time while a dense copy is filled."""


def available_memory() -> int | None:
    """Return the bytes available without swapping; None where the system does not say."""
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) * 1024
    except OSError:
        pass
    try:
        return int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, ValueError, OSError):
        return None


def check_memory(needed: float, shape: tuple[int, int], method: str, advice: str) -> None:
    """Raise an InputError with the figures where a fit needs more memory than there is."""
    available = available_memory()
    if available is not None and needed > available:
        raise InputError(
            f"{method} on {shape[0]} rows and {shape[1]:,} features needs about "
            f"{needed / 1e9:.1f} GB, and {available / 1e9:.1f} GB are available. {advice}"
        )


def _check_dense(blocks: list[Block], dtype: Any, method: str) -> tuple[int, int]:
    """Return the shape of a dense copy of all views, or refuse one that does not fit."""
    n, D = blocks[0].view.shape[0], sum(b.width for b in blocks)
    check_memory(
        float(n) * D * np.dtype(dtype).itemsize,
        (n, D),
        method,
        "Use fewer features: an l1 baseline, or a filter that is learned from the training rows.",
    )
    return n, D


def _fill(block: Block, out: NDArray[Any]) -> None:
    for start in range(0, block.width, COLUMN_BLOCK):
        idx = np.arange(start, min(start + COLUMN_BLOCK, block.width))
        out[:, idx[0] : idx[-1] + 1] = block.columns(idx)


def dense_views(blocks: list[Block], dtype: Any, method: str) -> list[NDArray[Any]]:
    """Return each view as a dense standardised array (n, D_v) of ``dtype``, columns contiguous."""
    n, _ = _check_dense(blocks, dtype, method)
    views = [np.empty((n, b.width), dtype=dtype, order="F") for b in blocks]
    for b, out in zip(blocks, views, strict=True):
        _fill(b, out)
    return views


def dense_concatenation(blocks: list[Block], dtype: Any, method: str) -> NDArray[Any]:
    """Return all views side by side as one dense standardised array (n, D) of ``dtype``.

    Columns are contiguous: trees read them one at a time, up to twice as fast on wide data.
    """
    n, D = _check_dense(blocks, dtype, method)
    out = np.empty((n, D), dtype=dtype, order="F")
    start = 0
    for b in blocks:
        _fill(b, out[:, start : start + b.width])
        start += b.width
    return out


def gather_columns(blocks: list[Block], idx: NDArray[np.intp]) -> NDArray[np.float64]:
    """Return the columns ``idx`` (sorted, counted over all views) as one dense array."""
    cuts = np.concatenate([[0], np.cumsum([b.width for b in blocks])])
    parts = [
        b.columns(idx[(idx >= lo) & (idx < hi)] - lo)
        for b, lo, hi in zip(blocks, cuts[:-1], cuts[1:], strict=True)
        if np.any((idx >= lo) & (idx < hi))
    ]
    return np.hstack(parts) if parts else np.zeros((blocks[0].view.shape[0], 0))


def project_all(blocks: list[Block], A: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return ``X'A`` over all views, stacked (D, k)."""
    return np.vstack([b.project(A) for b in blocks])
