"""Gradient-boosted trees (scikit-learn's histogram version) on the concatenated views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor
from sklearn.utils import check_random_state

from baldur.baselines.shared.base import BaselineClassifier, BaselineRegressor, Block
from baldur.baselines.shared.dense import check_memory, dense_concatenation

Array = NDArray[np.float64]

WIDE = 8192
"""Above this many columns "auto" bins are few: histograms, one per open leaf, rule the memory."""


class BoostedTreesClassifier(BaselineClassifier):
    """Histogram gradient boosting on all views side by side.

    Parameters
    ----------
    max_iter, learning_rate, max_leaf_nodes, min_samples_leaf, l2_regularization, max_features
        As in `sklearn.ensemble.HistGradientBoostingClassifier`.
    max_bins : int or "auto"
        "auto": 255, or 32 above 8,192 columns. Histograms rule the memory: 172 rows and 841,732
        columns need about 10 GB, and a fit that has less is refused with the figure.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.
    random_state : int, RandomState or None
    """

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

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        self.trees_, self.selected_features_ = _boost(
            HistGradientBoostingClassifier, self, blocks, codes
        )
        self.n_iter_ = int(self.trees_.n_iter_)

    def _scores(self, blocks: list[Block]) -> Array:
        return np.log(np.maximum(self._proba(blocks), 1e-300))

    def _proba(self, blocks: list[Block]) -> Array:
        X = dense_concatenation(blocks, np.float64, "Gradient-boosted trees")
        return np.asarray(self.trees_.predict_proba(X))


class BoostedTreesRegressor(BaselineRegressor):
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
    """

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

    def _fit(self, blocks: list[Block], y: Array) -> None:
        self.trees_, self.selected_features_ = _boost(
            HistGradientBoostingRegressor, self, blocks, y
        )
        self.n_iter_ = int(self.trees_.n_iter_)

    def _predict(self, blocks: list[Block]) -> Array:
        X = dense_concatenation(blocks, np.float64, "Gradient-boosted trees")
        return np.asarray(self.trees_.predict(X))


def _boost(
    kind: Any,
    settings: BoostedTreesClassifier | BoostedTreesRegressor,
    blocks: list[Block],
    y: NDArray[Any],
) -> tuple[Any, dict[str, NDArray[np.bool_]]]:
    """Fit trees with the settings of a row; also return the columns they use."""
    n, D = len(y), sum(b.width for b in blocks)
    bins = (32 if D > WIDE else 255) if settings.max_bins == "auto" else int(settings.max_bins)
    leaves = min(settings.max_leaf_nodes, max(2, n // max(1, settings.min_samples_leaf)))
    # One float64 copy, one binned byte copy, and 20 bytes per bin, column and open leaf.
    needed = float(D) * (9.0 * n + 20.0 * (bins + 1) * (leaves + 1))
    check_memory(needed, (n, D), "Gradient-boosted trees", "Lower max_bins or max_leaf_nodes.")
    seed = check_random_state(settings.random_state).randint(np.iinfo(np.int32).max)
    trees = kind(
        max_iter=settings.max_iter,
        learning_rate=settings.learning_rate,
        max_leaf_nodes=settings.max_leaf_nodes,
        min_samples_leaf=settings.min_samples_leaf,
        l2_regularization=settings.l2_regularization,
        max_features=settings.max_features,
        max_bins=bins,
        early_stopping=False,
        random_state=int(seed),
    ).fit(dense_concatenation(blocks, np.float64, "Gradient-boosted trees"), y)
    return trees, settings._split(_used(trees, D), blocks)


def _used(trees: Any, D: int) -> NDArray[np.bool_]:
    """Columns in at least one split."""
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
