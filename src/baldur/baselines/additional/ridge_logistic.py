"""Ridge logistic regression on all views, solved exactly in n dimensions whatever the width."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from baldur.baselines.shared.base import (
    BaselineClassifier,
    Block,
    class_scores,
    linear_predictor,
)
from baldur.baselines.shared.reduction import reduce_gram
from baldur.exceptions import NotConvergedWarning
from baldur.parameters import POSITIVE, Constraint
from baldur.types import Array


def ridge_logistic(F: Array, codes: NDArray[np.intp], C: float) -> tuple[Array, Array, int]:
    """Return weights (r, 1 or K), offsets and iterations of ``C sum logloss + 0.5 ||w||^2``."""
    model = LogisticRegression(C=C, max_iter=2000, tol=1e-6)
    if F.shape[1] == 0:  # every column constant: a column of zeros leaves only the offset
        F = np.zeros((len(F), 1))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(F, codes)
    if any(issubclass(w.category, ConvergenceWarning) for w in caught):
        warnings.warn(
            f"Ridge logistic regression did not converge at C={C:g}; a smaller C converges sooner.",
            NotConvergedWarning,
            stacklevel=3,
        )
    return model.coef_.T, model.intercept_, int(np.max(model.n_iter_))


def logistic_proba(linear: Array) -> Array:
    """Return probabilities (n, K) from linear predictors (n, 1) or (n, K)."""
    if linear.shape[1] == 1:
        p = expit(linear[:, 0])
        return np.column_stack([1.0 - p, p])
    return np.asarray(softmax(linear, axis=1))


class RidgeLogisticClassifier(BaselineClassifier):
    """``min C sum_i logloss_i + 0.5 ||w||^2`` on the block-scaled concatenation.

    The loss depends on the columns through ``X X'`` only, so it is solved on the full-rank
    principal scores of the training rows, which gives the same weights.

    Parameters
    ----------
    C : float
        Inverse penalty. With block scaling each view has total variance 1, whatever its width.
    block_scale : bool
        Divide each standardised view by the square root of its width.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.

    Attributes
    ----------
    coef_ : dict of ndarray (D_v, 1 or K)

    Examples
    --------
    >>> from baldur.baselines import RidgeLogisticClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = RidgeLogisticClassifier(C=1.0).fit(X[:40], y[:40])
    >>> model.predict_proba(X[40:42]).round(2)
    array([[0.59, 0.41],
           [0.65, 0.35]])
    >>> round(model.score(X[40:], y[40:]), 2)
    0.85
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "C": POSITIVE,
    }

    def __init__(
        self,
        C: float = 10.0,
        *,
        block_scale: bool = True,
        scale: str = "clipped",
        preparation: Any = None,
        views: Any = None,
    ) -> None:
        self.C = C
        self.block_scale = block_scale
        self.scale = scale
        self.preparation = preparation
        self.views = views

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        rtol = max((b.rtol or 0.0) for b in blocks) or None
        reduced = reduce_gram(np.add.reduce([b.gram() for b in blocks]), rtol=rtol)
        w, self.intercept_, self.n_iter_ = ridge_logistic(reduced.features, codes, self.C)
        dual = reduced.lift @ w if reduced.lift.shape[1] else np.zeros((len(codes), w.shape[1]))
        self.coef_ = {b.name: b.over_input(b.project(dual)) for b in blocks}
        self.selected_features_ = self._all_features(blocks)

    def _scores(self, blocks: list[Block]) -> Array:
        return class_scores(linear_predictor(blocks, self.coef_, self.intercept_))

    def _proba(self, blocks: list[Block]) -> Array:
        return logistic_proba(linear_predictor(blocks, self.coef_, self.intercept_))
