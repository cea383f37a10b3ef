"""Dummy: the class frequencies, or the mean, of the training rows, whatever the features."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.dummy import DummyClassifier

from baldur.baselines.shared.base import BaselineClassifier, BaselineRegressor, Block
from baldur.types import Array


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
