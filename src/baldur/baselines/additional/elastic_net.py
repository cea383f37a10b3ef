"""Elastic-net logistic regression by accelerated proximal gradient on a working set."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from baldur.baselines.additional.ridge_logistic import logistic_proba
from baldur.baselines.shared.base import (
    BaselineClassifier,
    Block,
    class_scores,
    linear_predictor,
)
from baldur.baselines.shared.dense import gather_columns, project_all
from baldur.baselines.shared.working_set import solve_on_working_set
from baldur.exceptions import NotConvergedWarning
from baldur.parameters import POSITIVE, Constraint, is_number
from baldur.types import Array


def _mean(linear: Array) -> Array:
    return np.asarray(expit(linear) if linear.shape[1] == 1 else softmax(linear, axis=1))


def fit_elastic_net(
    X: Array,
    Y: Array,
    lam: float,
    ratio: float,
    start: tuple[Array, Array],
    *,
    max_iter: int = 5000,
    tol: float = 1e-4,
) -> tuple[Array, Array, int]:
    """Return weights (D, K), offsets (K,) and the number of iterations.

    Proximal gradient with momentum that restarts when it points uphill. Stops when no coordinate of
    the gradient map exceeds ``tol`` times the l1 penalty. Shapes: X (n, D), Y (n, K).
    """
    n = len(X)
    X1 = np.hstack([X, np.ones((n, 1))])
    small = X1 @ X1.T if n <= X1.shape[1] else X1.T @ X1
    curvature = 0.25 if Y.shape[1] == 1 else 0.5
    step = 1.0 / (curvature * float(np.linalg.eigvalsh(small)[-1]) / n + lam * (1.0 - ratio))
    shrink = np.full((X1.shape[1], 1), step * lam * ratio)
    shrink[-1] = 0.0
    ridge = np.full((X1.shape[1], 1), lam * (1.0 - ratio))
    ridge[-1] = 0.0
    now = np.vstack([start[0], start[1][None, :]])
    ahead, momentum = now, 1.0
    n_iter = 0
    while n_iter < max_iter:
        n_iter += 1
        gradient = X1.T @ (_mean(X1 @ ahead) - Y) / n + ridge * ahead
        moved = ahead - step * gradient
        new = np.sign(moved) * np.maximum(np.abs(moved) - shrink, 0.0)
        if np.max(np.abs(new - ahead)) <= tol * step * max(lam * ratio, 1e-12):
            now = new
            break
        next_momentum = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        if np.sum((ahead - new) * (new - now)) > 0.0:
            next_momentum, ahead = 1.0, new
        else:
            ahead = new + (momentum - 1.0) / next_momentum * (new - now)
        now, momentum = new, next_momentum
    return now[:-1], now[-1], n_iter


class ElasticNetLogisticClassifier(BaselineClassifier):
    """``min mean logloss + lam (r ||w||_1 + (1 - r)/2 ||w||^2)`` on the concatenated views.

    Parameters
    ----------
    fraction : float
        ``lam`` over the smallest value at which the model is empty.
    l1_ratio : float
        Share r of the l1 penalty, in (0, 1].
    max_iter, tol : int, float
        Iterations at most, and the accuracy relative to the l1 penalty at which to stop.
    block_scale : bool
        Off by default: scaling would change the penalty of each view.
    scale : {"clipped", "standard", "rank"}
        How columns are scaled before the method sees them, as in `BaldurClassifier`.
    preparation : Preparation or None
        What is learned about the columns beyond scaling, as in `BaldurClassifier`.
    views : dict or None
        Columns of each view when ``X`` is one matrix.

    Attributes
    ----------
    coef_ : dict of ndarray (D_v, 1 or K)
    penalty_ : float
        The ``lam`` used.

    Examples
    --------
    >>> from baldur.baselines import ElasticNetLogisticClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = ElasticNetLogisticClassifier(fraction=0.4).fit(X[:40], y[:40])
    >>> {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    {'a': 2, 'b': 1}
    >>> round(model.score(X[40:], y[40:]), 2)
    0.8
    """

    _constraints: ClassVar[Mapping[str, Constraint]] = {
        "fraction": POSITIVE,
        "l1_ratio": Constraint(
            lambda v: is_number(v, 0.0, 1.0) and v > 0.0,
            "a number above 0 and at most 1 (for a ridge penalty use RidgeLogisticClassifier)",
        ),
    }

    def __init__(
        self,
        fraction: float = 0.2,
        l1_ratio: float = 0.5,
        *,
        max_iter: int = 10000,
        tol: float = 1e-3,
        block_scale: bool = False,
        scale: str = "clipped",
        preparation: Any = None,
        views: Any = None,
    ) -> None:
        self.fraction = fraction
        self.l1_ratio = l1_ratio
        self.max_iter = max_iter
        self.tol = tol
        self.block_scale = block_scale
        self.scale = scale
        self.preparation = preparation
        self.views = views

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        n, C, D = len(codes), len(self.classes_), sum(b.width for b in blocks)
        Y = codes[:, None].astype(np.float64) if C == 2 else np.eye(C)[codes]
        mean = Y.mean(axis=0)
        first = np.max(np.abs(project_all(blocks, Y - mean)), axis=1) / n
        top = float(first.max()) / self.l1_ratio
        lam = self.penalty_ = self.fraction * (top if top > 0 else 1.0)
        offset = np.log(mean) if C > 2 else np.log(mean / (1.0 - mean))
        w = np.zeros((D, Y.shape[1]))
        self.n_iter_ = 0

        def solve(active: NDArray[np.intp]) -> Array:
            nonlocal offset
            X = gather_columns(blocks, active)
            found, offset, n_iter = fit_elastic_net(
                X, Y, lam, self.l1_ratio, (w[active], offset), max_iter=self.max_iter, tol=self.tol
            )
            w[:] = 0.0
            w[active] = found
            self.n_iter_ = max(self.n_iter_, n_iter)
            return found.T

        def correlations(active: NDArray[np.intp], coef: Array) -> Array:
            residual = _mean(gather_columns(blocks, active) @ coef.T + offset) - Y
            gap = np.max(np.abs(project_all(blocks, residual)), axis=1)
            return np.asarray(gap / (n * lam * self.l1_ratio))

        _, _, self.n_rounds_ = solve_on_working_set(
            D, solve, correlations, first, tol=10 * self.tol, name="the elastic net"
        )
        if self.n_iter_ >= self.max_iter:
            warnings.warn(
                f"The elastic net stopped at max_iter={self.max_iter}; a larger fraction (now "
                f"{self.fraction:g}) converges sooner.",
                NotConvergedWarning,
                stacklevel=3,
            )
        self.intercept_ = offset
        self.coef_ = {k: c.T for k, c in self._split(w.T, blocks).items()}
        self.selected_features_ = {k: np.any(c != 0.0, axis=1) for k, c in self.coef_.items()}

    def _scores(self, blocks: list[Block]) -> Array:
        return class_scores(linear_predictor(blocks, self.coef_, self.intercept_))

    def _proba(self, blocks: list[Block]) -> Array:
        return logistic_proba(linear_predictor(blocks, self.coef_, self.intercept_))
