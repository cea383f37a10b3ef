"""What classifiers share: labels to outputs going in, moments to probabilities coming out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from baldur.estimators.base import BaldurBase, Training, check_answer, check_level
from baldur.exceptions import InputError
from baldur.inference.intervals import probability_interval
from baldur.inference.predictive import Task, probabilities
from baldur.views.opening import open_views
from baldur.views.products import PreparedView
from baldur.views.validate import check_groups, match_labels, some, validate_labels, without_mask
from baldur.views.weights import positive_weights

Array = NDArray[np.float64]


class ClassificationBase(ClassifierMixin, BaldurBase):
    """Binary, multi-class and multi-label targets as 0/1 outputs; subclasses fit the posterior."""

    class_weight: Any
    _row_noise: Array | None = None
    """Variance of the linear predictor that is each row's own, (C,), where a model has one."""

    def _open_training(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Training:
        """Return the samples that count and their outputs; set `classes_`."""
        mv = open_views(self, X, reset=True)
        y = match_labels(y, mv.sample_ids, X)
        weight = positive_weights(sample_weight, len(mv))
        groups = check_groups(groups, len(mv))
        used = np.flatnonzero(weight)
        labels = self._check_labels(y, len(mv))
        if len(used) < len(mv):
            mv, weight = mv[used], weight[used]
            labels = self._check_labels(labels[used], len(used))
            groups = None if groups is None else groups[used]
        T, self._task = self._outputs(labels)
        by_class = self._class_weights(labels)
        if by_class is not None:
            product = "sample_weight times class_weight" if sample_weight is not None else ""
            weight = positive_weights(weight * by_class, len(mv), product or "class_weight")
        return Training(mv, T, weight, self._task, labels, groups)

    def _check_labels(self, y: Any, n: int) -> NDArray[Any]:
        y = without_mask(y)
        try:
            given = None if y is None else np.asarray(y)
        except ValueError as error:
            raise InputError(
                f"y: expected one label, or one row of labels, per sample, but got rows of unequal "
                f"length ({error})."
            ) from error
        if given is not None and given.ndim == 2 and given.shape[1] != 1:
            labels = given
            if len(labels) != n:
                raise InputError(f"y: expected {n} rows of labels, but got {len(labels)}.")
            if not labels.shape[1]:
                raise InputError("y: expected at least one column of labels, but got none.")
            if type_of_target(labels) != "multilabel-indicator":
                raise InputError(
                    "y: a 2-D target must be a 0/1 matrix, one column per label, but got "
                    f"{type_of_target(labels)}. Give one column of class labels instead."
                )
            return labels
        if given is not None and given.ndim == 2:
            given = column_or_1d(given, warn=True)
        labels = validate_labels(given, n)
        check_classification_targets(labels)
        return labels

    def _outputs(self, labels: NDArray[Any]) -> tuple[Array, Task]:
        """Return T (N, C) of 0 and 1, and the task; set `classes_`."""
        if labels.ndim == 2:
            self.classes_ = np.arange(labels.shape[1])
            self.class_count_ = np.asarray(labels).astype(bool).sum(axis=0)
            flat = np.flatnonzero((labels == labels[0]).all(axis=0))
            if flat.size:
                raise InputError(
                    f"y: every label needs both values, but column {flat[0]} is constant. Leave it "
                    "out."
                )
            return labels.astype(float), "multilabel"
        self.classes_, codes, self.class_count_ = np.unique(
            labels, return_inverse=True, return_counts=True
        )
        if len(self.classes_) < 2:
            raise InputError(
                "y: expected at least two classes among the samples that count, but got one class."
            )
        if len(self.classes_) == 2:
            return codes[:, None].astype(float), "binary"
        return np.eye(len(self.classes_))[codes], "multiclass"

    def _class_weights(self, labels: NDArray[Any]) -> Array | None:
        """Return the weight of each sample's class, None without class weights."""
        if self.class_weight is None:
            return None
        if labels.ndim == 2:
            raise InputError(
                "class_weight: a multi-label target has no classes of samples that could be "
                "weighted. Leave class_weight=None, and give sample_weight to fit if some samples "
                "are to count more."
            )
        try:
            found = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
            by_class = np.asarray(found, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(
                'class_weight must be None, "balanced" or a dictionary from class to number, for '
                f"the classes {some(self.classes_.tolist())}, but got {self.class_weight!r} "
                f"({error})."
            ) from error
        wrong = ~(np.isfinite(by_class) & (by_class > 0))
        if wrong.any():
            raise InputError(
                "class_weight must be positive and finite, but "
                f"{some(self.classes_[wrong].tolist())} has {by_class[wrong][0]}. Leave the "
                "samples of a class out of fit if it is not to count."
            )
        return by_class[np.searchsorted(self.classes_, labels)]

    def _output_probability(self, X: Any) -> Array:
        return self._probability_of(self._open_new(X))

    def _probability_of(self, views: list[PreparedView]) -> Array:
        mean, var = self._predictor.moments(views)
        return check_answer(probabilities(mean, var, self._task), "probabilities", (0.0, 1.0))

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, uncertainty of the weights integrated out.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For multi-label targets, P(label) for each label.
        """
        p = self._output_probability(X)
        return np.column_stack([1.0 - p[:, 0], p[:, 0]]) if self._task == "binary" else p

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each class probability.

        The probability depends on weights that are known only roughly. `predict_proba` is its mean
        over their posterior; the interval is where it lies with probability `level`, as much above
        as below. It says how well the model knows this person's probability, not which outcome
        will come.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        level : float, default=0.95
            Probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            For multi-label targets, of P(label) for each label.
        """
        check_level(level)
        mean, var = self.predictor.moments(self._open_new(X))
        low, high = probability_interval(mean, var, self._task, level, self._row_noise)
        if self._task == "binary":
            return np.hstack([1.0 - high, low]), np.hstack([1.0 - low, high])
        return low, high

    def decision_function(self, X: Any) -> Array:
        """Return the log odds of the predicted probabilities.

        Ranks samples exactly as `predict_proba` does. The linear predictor without its
        uncertainty is ``X @ coef_ + intercept_`` for cells within the clip.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        odds = log_odds(self._output_probability(X))
        return odds[:, 0] if self._task == "binary" else odds

    def _log_odds(self, views: list[PreparedView]) -> Array:
        return log_odds(self._probability_of(views))

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each sample.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) for multi-label targets
        """
        p = self._output_probability(X)
        if self._task == "multilabel":
            return (p > 0.5).astype(int)
        codes = (p[:, 0] > 0.5).astype(int) if self._task == "binary" else p.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = False
        return tags


def log_odds(p: Array) -> Array:
    """Return ln(p/(1 - p)), finite for probabilities that were rounded to 0 or 1."""
    p = np.clip(p, 1e-15, 1.0 - 1e-15)
    return np.asarray(np.log(p) - np.log1p(-p))
