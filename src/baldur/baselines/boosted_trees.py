"""Gradient-boosted trees (scikit-learn's histogram version) on the concatenated views."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.utils import check_random_state

from baldur.baselines._base import BaselineClassifier, Block
from baldur.baselines.dense import check_memory, dense_concatenation

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
        self.views = views
        self.random_state = random_state

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        n, D = len(codes), sum(b.width for b in blocks)
        bins = (32 if D > WIDE else 255) if self.max_bins == "auto" else int(self.max_bins)
        leaves = min(self.max_leaf_nodes, max(2, n // max(1, self.min_samples_leaf)))
        # One float64 copy, one binned byte copy, and 20 bytes per bin, column and open leaf.
        needed = float(D) * (9.0 * n + 20.0 * (bins + 1) * (leaves + 1))
        check_memory(needed, (n, D), "Gradient-boosted trees", "Lower max_bins or max_leaf_nodes.")
        seed = check_random_state(self.random_state).randint(np.iinfo(np.int32).max)
        self.trees_ = HistGradientBoostingClassifier(
            max_iter=self.max_iter,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.max_leaf_nodes,
            min_samples_leaf=self.min_samples_leaf,
            l2_regularization=self.l2_regularization,
            max_features=self.max_features,
            max_bins=bins,
            early_stopping=False,
            random_state=int(seed),
        ).fit(dense_concatenation(blocks, np.float64, "Gradient-boosted trees"), codes)
        self.n_iter_ = int(self.trees_.n_iter_)
        self.selected_features_ = self._split(self._used(D), blocks)

    def _used(self, D: int) -> NDArray[np.bool_]:
        """Columns in at least one split."""
        used = np.zeros(D, dtype=bool)
        # scikit-learn offers no public way to ask which columns its histogram trees split on; if a
        # release renames this attribute, every column counts as used rather than none.
        rounds = getattr(self.trees_, "_predictors", None)
        if rounds is None:
            return ~used
        for trees in rounds:
            for tree in trees:
                nodes = tree.nodes
                used[nodes["feature_idx"][nodes["is_leaf"] == 0]] = True
        return used

    def _scores(self, blocks: list[Block]) -> Array:
        return np.log(np.maximum(self._proba(blocks), 1e-300))

    def _proba(self, blocks: list[Block]) -> Array:
        X = dense_concatenation(blocks, np.float64, "Gradient-boosted trees")
        return np.asarray(self.trees_.predict_proba(X))
