"""Per-view stacking: one ridge logistic model per view, combined by non-negative sparse weights."""

from __future__ import annotations

import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from baldur.baselines.base import (
    BaselineClassifier,
    Masks,
    fit_converges,
    inner_folds,
    logistic_proba,
)
from baldur.baselines.blocks import Block, reduce_gram
from baldur.core.parameters import NON_NEGATIVE, parameter
from baldur.core.types import Array
from baldur.exceptions import NotConvergedWarning


def ridge_logistic(F: Array, codes: NDArray[np.intp], C: float) -> tuple[Array, Array]:
    """Return the weights and offsets that minimise ``C sum logloss + 0.5 ||w||^2``.

    Shapes: features F (n, r), codes (n,) of K classes; returns (r, K) and (K,), or one column for
    two classes.
    """
    model = LogisticRegression(C=C, max_iter=2000, tol=1e-6)
    # Where every column is constant, a column of zeros leaves only the offset.
    if not fit_converges(model, F if F.shape[1] else np.zeros((len(F), 1)), codes):
        warnings.warn(
            f"Ridge logistic regression did not converge at C={C:g}; a smaller C converges sooner.",
            NotConvergedWarning,
            stacklevel=3,
        )
    return model.coef_.T[: F.shape[1]], model.intercept_


def _log_proba(linear: Array) -> Array:
    return np.log(np.maximum(logistic_proba(linear), 1e-6))


def out_of_fold(
    F: Array, codes: NDArray[np.intp], C: float, folds: list[Any], absent: NDArray[np.bool_]
) -> Array:
    """Return out-of-fold log-probabilities (n, K) from one view; rows without the view get 0.

    A missing view carries no information about the class, so its log-probabilities are equal.
    """
    K = int(codes.max()) + 1
    out = np.zeros((len(codes), K))
    for train, test in folds:
        train = train[~absent[train]]
        if len(np.unique(codes[train])) < K:
            continue  # these rows keep equal log-probabilities
        w, b = ridge_logistic(F[train], codes[train], C)
        out[test] = _log_proba(F[test] @ w + b)
    out[absent] = 0.0
    return out


def _log_loss(scores: Array, codes: NDArray[np.intp]) -> float:
    return float(-np.mean(np.log(softmax(scores, axis=1)[np.arange(len(codes)), codes] + 1e-300)))


def fit_stack(Z: Array, codes: NDArray[np.intp], penalty: float) -> tuple[Array, Array]:
    """Return non-negative view weights (V,) and class offsets (K,) that combine log-probabilities.

    ``min mean logloss(b_c + sum_v a_v Z_vic) + penalty sum_v a_v`` over ``a >= 0``: on the
    non-negative orthant the l1 penalty is a group lasso over whole views.

    Shapes: log-probabilities Z (V, n, K) of V views, codes (n,) of K classes.
    """
    V, n, K = Z.shape
    Y = np.eye(K)[codes]

    def value(theta: Array) -> tuple[float, Array]:
        """Return the objective and its gradient."""
        a, b = theta[:V], theta[V:]
        P = softmax(np.tensordot(a, Z, axes=1) + b, axis=1)
        loss = -np.mean(np.log(P[np.arange(n), codes] + 1e-300))
        R = (P - Y) / n
        gradient = np.concatenate([np.tensordot(Z, R, axes=2) + penalty, R.sum(axis=0)])
        # A small ridge on b: adding a constant to all offsets changes nothing else.
        gradient[V:] += 1e-3 * b
        return float(loss + penalty * a.sum() + 5e-4 * b @ b), gradient

    start = np.concatenate([np.full(V, 1.0 / V), np.zeros(K)])
    bounds = [(0.0, None)] * V + [(None, None)] * K
    theta = minimize(value, start, jac=True, bounds=bounds, method="L-BFGS-B").x
    return theta[:V], theta[V:]


@dataclass(eq=False, repr=False)
class StackingClassifier(BaselineClassifier):
    """One ridge logistic model per view, stacked.

    Each view's penalty is the one with the best out-of-fold log-loss; the views' out-of-fold
    log-probabilities are combined by non-negative weights with an l1 penalty, which drops views.

    Parameters
    ----------
    Cs : tuple of float
        Inverse penalties tried in each view (views are block-scaled).
    penalty : float
        l1 penalty on the view weights.
    scale, preparation, views
        As in `BaselineEstimator`.
    cv : int
        Folds, at most the size of the smallest class.
    block_scale : bool
        Divide each standardised view by the square root of its width.
    random_state : int, RandomState or None
        Folds.

    Attributes
    ----------
    view_weights_ : dict of float
    C_ : dict of float
        The inverse penalty chosen in each view.

    Examples
    --------
    >>> from baldur.baselines import StackingClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = StackingClassifier(cv=3, random_state=0).fit(X[:40], y[:40])
    >>> {name: round(float(weight), 2) for name, weight in model.view_weights_.items()}
    {'a': 0.94, 'b': 0.0}
    >>> round(model.score(X[40:], y[40:]), 2)
    1.0
    """

    Cs: tuple[float, ...] = (0.1, 1.0, 10.0, 100.0)
    penalty: float = parameter(0.01, NON_NEGATIVE)
    _: KW_ONLY
    cv: int = 5
    block_scale: bool = True
    random_state: Any = None

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> Masks:
        """Fit a ridge logistic model per view, and weigh them by out-of-fold predictions."""
        n, K = len(codes), len(self.classes_)
        # A class of one row cannot be left out: fall back to fitted values.
        every = np.arange(n)
        folds = inner_folds(codes, self.cv, self.random_state) or [(every, every)]
        Z = np.zeros((len(blocks), n, K))
        self.coef_: dict[str, Array] = {}
        self.intercepts_: dict[str, Array] = {}
        self.C_: dict[str, float] = {}
        for v, b in enumerate(blocks):
            features, lift = reduce_gram(b.gram(), rtol=b.rtol)
            held_out = [out_of_fold(features, codes, C, folds, b.view.absent) for C in self.Cs]
            best = int(np.argmin([_log_loss(z, codes) for z in held_out]))
            Z[v] = held_out[best]
            self.C_[b.name] = float(self.Cs[best])
            rows = np.flatnonzero(~b.view.absent)
            if len(np.unique(codes[rows])) == K and features.shape[1]:
                w, offset = ridge_logistic(features[rows], codes[rows], self.C_[b.name])
            else:
                width = 1 if K == 2 else K
                w, offset = np.zeros((features.shape[1], width)), np.zeros(width)
            self.coef_[b.name], self.intercepts_[b.name] = b.weights(lift @ w), offset
        weights, self.offset_ = fit_stack(Z, codes, self.penalty)
        if not np.any(weights > 1e-8):  # no view helps out of fold: use the best one
            weights[int(np.argmin([_log_loss(z, codes) for z in Z]))] = 1e-3
        self.view_weights_ = {b.name: float(a) for b, a in zip(blocks, weights, strict=True)}
        return {b.name: b.mask(self.view_weights_[b.name] > 1e-8) for b in blocks}

    def _scores(self, blocks: list[Block]) -> Array:
        """Return the weighted sum of the views' log-probabilities, (n, K), up to a constant."""
        total = np.tile(self.offset_, (blocks[0].view.shape[0], 1))
        for b in blocks:
            z = _log_proba(b.predict(self.coef_[b.name]) + self.intercepts_[b.name])
            z[b.view.absent] = 0.0
            total += self.view_weights_[b.name] * z
        return total

    def _proba(self, blocks: list[Block]) -> Array:
        return np.asarray(softmax(self._scores(blocks), axis=1))
