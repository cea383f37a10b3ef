"""RF: a random forest on the concatenated views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from baldur.baselines.shared.base import BaselineClassifier, BaselineRegressor, Block
from baldur.baselines.shared.dense import dense_concatenation
from baldur.parameters import Constraint, one_of
from baldur.types import Array


class ForestClassifier(BaselineClassifier):
    """Random forest on all views side by side, in float32.

    Parameters
    ----------
    n_estimators, max_features, max_depth, min_samples_leaf, class_weight, min_weight_fraction_leaf
        As in `sklearn.ensemble.RandomForestClassifier`. ``max_features`` is 0.1 here: with "sqrt" a
        small informative view is almost never drawn beside a wide one.
    selection : {"used", "mean"}
        What counts as selected: importance above 0 (used in a split), or above the mean importance.
    n_jobs : int or None
        Workers; the result does not depend on it.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None

    Attributes
    ----------
    feature_importances_ : dict of ndarray (D_v,)
        Impurity importances, which favour columns with many distinct values.

    Examples
    --------
    >>> from baldur.baselines import ForestClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = ForestClassifier(n_estimators=20, random_state=0).fit(X[:40], y[:40])
    >>> {name: part.shape for name, part in model.feature_importances_.items()}
    {'a': (4,), 'b': (9,)}
    >>> model.predict(X[40:]).shape
    (20,)
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {"selection": one_of("used", "mean")}

    def __init__(
        self,
        n_estimators: int = 300,
        max_features: Any = 0.1,
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        class_weight: Any = None,
        *,
        min_weight_fraction_leaf: float = 0.0,
        selection: str = "used",
        n_jobs: int | None = None,
        scale: str = "clipped",
        preparation: Any = None,
        views: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.class_weight = class_weight
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.selection = selection
        self.n_jobs = n_jobs
        self.scale = scale
        self.preparation = preparation
        self.views = views
        self.random_state = random_state

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        weight = self.class_weight
        if isinstance(weight, dict):  # keys are the user's labels, the forest sees codes
            weight = {c: weight.get(label, 1.0) for c, label in enumerate(self.classes_.tolist())}
        self.forest_ = RandomForestClassifier(
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            class_weight=weight,
            min_weight_fraction_leaf=self.min_weight_fraction_leaf,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(dense_concatenation(blocks, np.float32, "RF"), codes)
        self.feature_importances_, self.selected_features_ = _importance(self, blocks)

    def _proba(self, blocks: list[Block]) -> Array:
        X = dense_concatenation(blocks, np.float32, "RF")
        return np.asarray(self.forest_.predict_proba(X))


class ForestRegressor(BaselineRegressor):
    """Random forest on all views side by side, in float32, for a numeric outcome.

    Parameters
    ----------
    n_estimators, max_features, max_depth, min_samples_leaf
        As in `sklearn.ensemble.RandomForestRegressor`, with the defaults of `ForestClassifier`.
    selection : {"used", "mean"}
        What counts as selected: importance above 0 (used in a split), or above the mean importance.
    n_jobs : int or None
        Workers; the result does not depend on it.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurRegressor`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None

    Attributes
    ----------
    feature_importances_ : dict of ndarray (D_v,)
        Impurity importances, which favour columns with many distinct values.

    Examples
    --------
    >>> from baldur.baselines import ForestRegressor
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=2, n_classes=None, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = ForestRegressor(n_estimators=20, random_state=0).fit(X[:40], y[:40])
    >>> {name: part.shape for name, part in model.feature_importances_.items()}
    {'a': (4,), 'b': (9,)}
    >>> model.predict(X[40:]).shape
    (20,)
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {"selection": one_of("used", "mean")}

    def __init__(
        self,
        n_estimators: int = 300,
        max_features: Any = 0.1,
        max_depth: int | None = None,
        min_samples_leaf: int = 1,
        *,
        selection: str = "used",
        n_jobs: int | None = None,
        scale: str = "clipped",
        preparation: Any = None,
        views: Any = None,
        random_state: Any = None,
    ) -> None:
        self.n_estimators = n_estimators
        self.max_features = max_features
        self.max_depth = max_depth
        self.min_samples_leaf = min_samples_leaf
        self.selection = selection
        self.n_jobs = n_jobs
        self.scale = scale
        self.preparation = preparation
        self.views = views
        self.random_state = random_state

    def _fit(self, blocks: list[Block], y: Array) -> None:
        self.forest_ = RandomForestRegressor(
            n_estimators=self.n_estimators,
            max_features=self.max_features,
            max_depth=self.max_depth,
            min_samples_leaf=self.min_samples_leaf,
            n_jobs=self.n_jobs,
            random_state=self.random_state,
        ).fit(dense_concatenation(blocks, np.float32, "RF"), y)
        self.feature_importances_, self.selected_features_ = _importance(self, blocks)

    def _predict(self, blocks: list[Block]) -> Array:
        return np.asarray(self.forest_.predict(dense_concatenation(blocks, np.float32, "RF")))


def _importance(
    fitted: ForestClassifier | ForestRegressor, blocks: list[Block]
) -> tuple[dict[str, Array], dict[str, NDArray[np.bool_]]]:
    """Return the importances of each view, and masks of the selected features."""
    importance = fitted.forest_.feature_importances_
    bar = 0.0 if fitted.selection == "used" else float(importance.mean())
    return fitted._split(importance, blocks), fitted._split(importance > bar, blocks)
