"""Gradient-boosted trees (scikit-learn's histogram version) on the concatenated views."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.utils import check_random_state

from baldur.baselines.base import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
    Block,
    check_memory,
    dense_concatenation,
)
from baldur.core.parameters import Constraint, one_of
from baldur.core.types import Array

WIDE = 8192
"""Number of columns above which "auto" uses few bins: histograms take most of the memory."""


class _BoostedTrees(BaselineEstimator):
    """Parameters and fit of gradient-boosted trees, for classes and for numbers."""

    def __init__(
        self,
        max_iter: int = 100,
        learning_rate: float = 0.1,
        max_leaf_nodes: int = 15,
        min_samples_leaf: int = 10,
        l2_regularization: float = 1.0,
        max_features: float = 0.3,
        *,
        max_bins: int | str = "auto",
        scale: str = "clipped",
        preparation: Any = None,
        views: Any = None,
        random_state: Any = None,
    ) -> None:
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.max_leaf_nodes = max_leaf_nodes
        self.min_samples_leaf = min_samples_leaf
        self.l2_regularization = l2_regularization
        self.max_features = max_features
        self.max_bins = max_bins
        self.scale = scale
        self.preparation = preparation
        self.views = views
        self.random_state = random_state

    def _boost(self, kind: Any, blocks: list[Block], y: NDArray[Any]) -> None:
        """Fit the trees, and find the columns that they use."""
        n, D = len(y), sum(b.width for b in blocks)
        bins = (32 if D > WIDE else 255) if self.max_bins == "auto" else int(self.max_bins)
        leaves = min(self.max_leaf_nodes, max(2, n // max(1, self.min_samples_leaf)))
        # One float64 copy, one binned byte copy, and 20 bytes per bin, column and open leaf.
        needed = float(D) * (9.0 * n + 20.0 * (bins + 1) * (leaves + 1))
        check_memory(needed, (n, D), "Gradient-boosted trees", "Lower max_bins or max_leaf_nodes.")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        trees = kind(
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            l2_regularization=self.l2_regularization,
            max_features=self.max_features,
            max_bins=bins,
            early_stopping=False,
            random_state=int(seed),
        ).fit(dense_concatenation(blocks, np.float64, "Gradient-boosted trees"), y)
        self.trees_, self.n_iter_ = trees, int(trees.n_iter_)
        self.selected_features_ = self._split(_used(trees, D), blocks)


class BoostedTreesClassifier(_BoostedTrees, BaselineClassifier):
    """Histogram gradient boosting on all views side by side.

    Parameters
    ----------
    max_iter, learning_rate, max_leaf_nodes, min_samples_leaf, l2_regularization, max_features
        As in `sklearn.ensemble.HistGradientBoostingClassifier`.
    max_bins : int or "auto"
        "auto": 255, or 32 above 8,192 columns. Histograms take most of the memory: 172 rows and
        841,732 columns need about 10 GB. A fit with less memory is refused.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None

    Examples
    --------
    >>> from baldur.baselines import BoostedTreesClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = BoostedTreesClassifier(max_iter=20, random_state=0).fit(X[:40], y[:40])
    >>> model.predict_proba(X[40:]).shape
    (20, 2)
    >>> model.classes_
    array([0, 1])
    """

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        self._boost(HistGradientBoostingClassifier, blocks, codes)

    def _scores(self, blocks: list[Block]) -> Array:
        return np.log(np.maximum(self._proba(blocks), 1e-300))

    def _proba(self, blocks: list[Block]) -> Array:
        X = dense_concatenation(blocks, np.float64, "Gradient-boosted trees")
        return np.asarray(self.trees_.predict_proba(X))


class BoostedTreesRegressor(_BoostedTrees, BaselineRegressor):
    """Histogram gradient boosting on all views side by side, for a numeric outcome.

    Parameters
    ----------
    max_iter, learning_rate, max_leaf_nodes, min_samples_leaf, l2_regularization, max_features
        As in `sklearn.ensemble.HistGradientBoostingRegressor`.
    max_bins : int or "auto"
        As in `BoostedTreesClassifier`.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurRegressor`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None

    Examples
    --------
    >>> from baldur.baselines import BoostedTreesRegressor
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=2, n_classes=None, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = BoostedTreesRegressor(max_iter=20, random_state=0).fit(X[:40], y[:40])
    >>> model.predict(X[40:]).shape
    (20,)
    >>> model.selected_features_["a"].shape
    (4,)
    """

    def _fit(self, blocks: list[Block], y: Array) -> None:
        self._boost(HistGradientBoostingRegressor, blocks, y)

    def _predict(self, blocks: list[Block]) -> Array:
        X = dense_concatenation(blocks, np.float64, "Gradient-boosted trees")
        return np.asarray(self.trees_.predict(X))


def _used(trees: Any, D: int) -> NDArray[np.bool_]:
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


class PriorClassifier(BaselineClassifier):
    """Predicts the most frequent class, with the class frequencies as probabilities.

    Parameters
    ----------
    strategy : {"prior", "most_frequent", "stratified", "uniform"}
        As in `sklearn.dummy.DummyClassifier`.
    preparation : Preparation or None
        Columns it leaves out count as features that were not there; predictions do not change.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None
        Used by the strategies that draw.

    Examples
    --------
    >>> from baldur.baselines import PriorClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = PriorClassifier().fit(X[:40], y[:40])
    >>> model.predict_proba(X[40:42]).round(3)
    array([[0.6, 0.4],
           [0.6, 0.4]])
    >>> round(float((y[:40] == 1).mean()), 3)
    0.4
    """

    _min_classes = 1
    # The values of the columns are not used.
    scale = "standard"

    def __init__(
        self,
        strategy: str = "prior",
        *,
        preparation: Any = None,
        views: Any = None,
        random_state: Any = None,
    ) -> None:
        self.strategy = strategy
        self.preparation = preparation
        self.views = views
        self.random_state = random_state

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        self.dummy_ = DummyClassifier(strategy=self.strategy, random_state=self.random_state)
        self.dummy_.fit(np.zeros((len(codes), 1)), codes)
        self.selected_features_ = {
            b.name: b.over_input(np.zeros(b.width, dtype=bool)) for b in blocks
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    def _proba(self, blocks: list[Block]) -> Array:
        return np.asarray(self.dummy_.predict_proba(np.zeros((blocks[0].view.shape[0], 1))))


class MeanRegressor(BaselineRegressor):
    """Predicts the mean of the training rows.

    Parameters
    ----------
    preparation : Preparation or None
        Columns it leaves out count as features that were not there; predictions do not change.
    views : dict or None
        Columns of each view when ``X`` is one matrix.

    Attributes
    ----------
    mean_ : float

    Examples
    --------
    >>> from baldur.baselines import MeanRegressor
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=2, n_classes=None, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = MeanRegressor().fit(X[:40], y[:40])
    >>> model.predict(X[40:42]).round(2), round(model.mean_, 2)
    (array([0.09, 0.09]), 0.09)
    """

    # The values of the columns are not used.
    scale = "standard"

    def __init__(self, *, preparation: Any = None, views: Any = None) -> None:
        self.preparation = preparation
        self.views = views

    def _fit(self, blocks: list[Block], y: Array) -> None:
        self.mean_ = float(y.mean())
        self.selected_features_ = {
            b.name: b.over_input(np.zeros(b.width, dtype=bool)) for b in blocks
        }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.regressor_tags.poor_score = True
        return tags

    def _predict(self, blocks: list[Block]) -> Array:
        return np.full(blocks[0].view.shape[0], self.mean_)
