"""AWDR: one regression on all views onto relaxed targets, with view weights in closed form.

Adaptive-Weighting Discriminative Regression (Yang, Deng and Nie, Pattern Recognition 88, 2019).
The authors do not scale views by width (``block_scale=False``); without it the widest view takes
all the weight, because it fits any target with tiny coefficients.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.special import softmax

from baldur.baselines.base import BaselineClassifier
from baldur.baselines.blocks import COMPONENTS, REDUCTION, Block, reduce_block
from baldur.core.parameters import POSITIVE, integer, one_of, parameter
from baldur.core.types import Array

FLOOR = 1e-12
"""Smallest view weight, because the objective divides by the weights."""


def _centre_gram(K: Array) -> Array:
    m = K.mean(axis=0)
    return K - m - m[:, None] + m.mean()


def fit_awdr(
    K: list[Array], Y: Array, g: float = 1.0, *, max_iter: int = 200, tol: float = 5e-3
) -> tuple[Array, Array, Array, list[float]]:
    """Fit one ridge regression on weighted views to relaxed targets R, updating these in turn.

    ``K = sum_v d_v K_v``, ``A = (K + g I)^-1 (R - mean R)``, weights ``W~_v = d_v X_v'A``; only
    n x n matrices appear. Return A (n, C), the offset b (C,), the view weights d (V,) and the
    objective per round, ``||fit - R||^2 + g (sum_v ||W~_v||)^2`` with the view weights minimised
    out. Stops when the squared change of (W~, b, d) is below ``tol``; the change of W~ is measured
    in the dual as well: ``||W~_v - W~'_v||^2 = tr(E'K_v E)`` with ``E = d_v A - d'_v A'``.

    Shapes: each K_v (n, n), Y (n, C) with entries -1 and +1.
    """
    K = [_centre_gram(k) for k in K]
    V, n = len(K), len(Y)
    d = np.full(V, 1.0 / V)
    R = Y

    def ridge(R: Array, d: Array) -> tuple[Array, Array, Array]:
        total = sum(dv * k for dv, k in zip(d, K, strict=True))
        b = R.mean(axis=0)
        left = total.copy()
        left[np.diag_indices(n)] += g
        # `left` equals its transpose, which LAPACK can overwrite without a copy.
        factor = cho_factor(left.T, overwrite_a=True, check_finite=False)
        A = cho_solve(factor, R - b, check_finite=False)
        return A, b, total @ A + b

    def view_norms(A: Array, d: Array) -> Array:
        # ||W~_v||_F = d_v sqrt(tr(A'K_v A))
        inner = np.array([max(float(np.sum(A * (k @ A))), 0.0) for k in K])
        return np.asarray(d * np.sqrt(inner))

    def objective(fit: Array, R: Array, norms: Array) -> float:
        return float(np.sum((fit - R) ** 2) + g * np.sum(norms) ** 2)

    A, b, fit = ridge(R, d)
    norms = view_norms(A, d)
    history = [objective(fit, R, norms)]
    for _ in range(max_iter):
        # A target moves along with an output that lies beyond it, on the side of its class.
        R = Y + Y * np.maximum(0.0, Y * (fit - Y))
        total = norms.sum()
        new_d = np.maximum(norms / total, FLOOR) if total > 0 else d
        new_d = new_d / new_d.sum()
        new_A, new_b, fit = ridge(R, new_d)
        change = float(np.sum((new_b - b) ** 2) + np.sum((new_d - d) ** 2))
        for k, now, before in zip(K, new_d, d, strict=True):
            E = now * new_A - before * A
            change += float(np.sum(E * (k @ E)))
        A, b, d = new_A, new_b, new_d
        norms = view_norms(A, d)
        history.append(objective(fit, R, norms))
        if change < tol:
            break
    return A, b, d, history


def neighbour_votes(train: Array, codes: NDArray[np.intp], new: Array, k: int, C: int) -> Array:
    """Return the share of the k nearest training rows in each class (n_new, C).

    Distances are rounded at 1e-9 of the training spread and equal ones are taken in training
    order: on a line, duplicates are common and the rule must not depend on rounding.

    Shapes: train (n, q) and new (n_new, q) outputs, codes (n,) of the training rows in 0..C-1.
    """
    k = min(k, len(train))
    dist = cdist(new, train, "sqeuclidean")
    unit = 1e-9 * max(float(np.mean(np.var(train, axis=0))), np.finfo(np.float64).tiny)
    with np.errstate(over="ignore"):
        ranked = np.argsort(np.round(dist / unit), axis=1, kind="stable")[:, :k]
    votes = np.zeros((len(new), C))
    np.add.at(votes, (np.repeat(np.arange(len(new)), k), codes[ranked].ravel()), 1.0 / k)
    return votes


@dataclass(eq=False, repr=False)
class AWDRClassifier(BaselineClassifier):
    """Adaptive-weighting discriminative regression, then k nearest neighbours on its outputs.

    Minimises ``||sum_v X_v W~_v + 1b' - R||^2 + g sum_v ||W~_v||^2 / d_v`` over weights, view
    weights d on the simplex, and targets R that may move away from the boundary.

    Parameters
    ----------
    reduction : {None, "pca", "linear_kernel"}
        Front-end per view; None solves the full problem exactly in its dual.
    n_components : int, float, "n-1" or None
        Components of the "pca" front-end, or the share of variance they must reach.
    g : float
        Ridge penalty.
    n_neighbors : int
        Neighbours that vote.
    scale, preparation, views
        As in `BaselineEstimator`.
    decision : {"knn", "argmax"}
        "knn" is the authors' rule. Its score is the share of votes, and rows with equal votes are
        ordered by the projection, so the AUC is smooth and labels agree with the score.
    block_scale : bool
        Divide each standardised view by the square root of its width; False is the authors' way.
    max_iter, tol : int, float
        Rounds at most, and the squared change at which to stop.

    Attributes
    ----------
    view_weights_ : dict of float
        d_v; they sum to 1.
    surviving_features_ : dict of ndarray of bool
        Features of views with weight above 1e-6, an extra figure beside `selected_features_`.
    coef_ : dict of ndarray (D_v, C)
    objective_ : ndarray

    Examples
    --------
    >>> from baldur.baselines import AWDRClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = AWDRClassifier(g=0.1).fit(X[:40], y[:40])
    >>> {name: round(float(weight), 2) for name, weight in model.view_weights_.items()}
    {'a': 0.72, 'b': 0.28}
    >>> round(model.score(X[40:], y[40:]), 2)
    0.9
    """

    reduction: str | None = parameter(None, REDUCTION)
    n_components: Any = parameter(0.95, COMPONENTS)
    g: float = parameter(1.0, POSITIVE)
    n_neighbors: int = parameter(9, integer())
    _: KW_ONLY
    decision: str = parameter("knn", one_of("knn", "argmax"))
    block_scale: bool = True
    max_iter: int = 200
    tol: float = 5e-3

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Fit `fit_awdr` on features of each view, and carry its weights over to their columns."""
        Y = 2.0 * np.eye(len(self.classes_))[codes] - 1.0
        reduced = [reduce_block(b, self.reduction, self.n_components) for b in blocks]
        K = [features @ features.T for features, _ in reduced]
        dual, offset, weights, history = fit_awdr(
            K, Y, self.g, max_iter=self.max_iter, tol=self.tol
        )
        self.coef_ = {}
        out = np.tile(offset, (len(codes), 1))
        for b, (features, lift), d in zip(blocks, reduced, weights, strict=True):
            on_features = d * (features.T @ dual)
            self.coef_[b.name] = b.weights(lift @ on_features)
            out = out + features @ on_features
        # The dual is solved on centred Gram matrices; this puts the means back into the offset.
        self.intercept_ = 2.0 * offset - out.mean(axis=0)
        self.training_outputs_ = out + (self.intercept_ - offset)
        self.training_codes_ = codes
        self.view_weights_ = {b.name: float(d) for b, d in zip(blocks, weights, strict=True)}
        self.objective_ = np.array(history)
        self.n_iter_ = len(history) - 1
        self.surviving_features_ = {
            b.name: b.mask(self.view_weights_[b.name] > 1e-6) for b in blocks
        }

    def _scores(self, blocks: list[Block]) -> Array:
        """Return the outputs, or the votes of the nearest training outputs; (n, C)."""
        out = self._linear(blocks)
        if self.decision == "argmax":
            return out
        C = len(self.classes_)
        votes = neighbour_votes(
            self.training_outputs_, self.training_codes_, out, int(self.n_neighbors), C
        )
        # One vote is worth 1/k; half of that, spread by the projection, can only order ties.
        return votes + softmax(out, axis=1) / (2.0 * self.n_neighbors)
