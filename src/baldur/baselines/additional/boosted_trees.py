"""Gradient-boosted trees (scikit-learn's histogram version) on the concatenated views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import check_random_state

from baldur.baselines.shared.base import (
    BaselineClassifier,
    BaselineEstimator,
    BaselineRegressor,
    Block,
)
from baldur.baselines.shared.dense import check_memory, dense_concatenation
from baldur.types import Array

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
