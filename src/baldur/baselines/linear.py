"""Models with an l1 penalty, whose wide problems are solved on a working set of columns."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.svm import LinearSVC
from sklearn.utils.class_weight import compute_class_weight

from baldur.baselines.base import (
    BaselineClassifier,
    Masks,
    fit_converges,
    logistic_proba,
    one_against_rest,
)
from baldur.baselines.blocks import Block, gather_columns, project_all, total_width
from baldur.core.parameters import POSITIVE, Constraint, is_number, optional, parameter
from baldur.core.types import Array
from baldur.exceptions import NotConvergedWarning

DENSE_LIMIT = 4096
"""Largest number of columns for which the whole problem is solved at once."""
L1_RATIO = Constraint(
    lambda v: is_number(v, 0.0, 1.0) and v > 0.0,
    "a number above 0 and at most 1 (for a ridge penalty use 'Ridge logistic')",
)


def solve_on_working_set(
    n_columns: int,
    solve: Callable[[NDArray[np.intp]], Array],
    correlations: Callable[[NDArray[np.intp], Array], Array],
    start: Array,
    *,
    dense_limit: int = DENSE_LIMIT,
    max_rounds: int = 50,
    tol: float = 1e-3,
    name: str = "this model",
) -> tuple[NDArray[np.intp], Array, int]:
    """Solve an l1-penalised problem on a working set of columns, which grows until none is missing.

    Return the columns of the set, their coefficients (..., columns) and the number of rounds.
    `solve` fits given columns. `correlations` returns, for that solution, the gradient of the loss
    in every column relative to the penalty: above 1, a column at zero has to enter. The first set
    has the largest values of `start`, which orders columns in the same way.

    Shapes: start (n_columns,), and so are correlations.
    """
    if n_columns <= dense_limit:
        active = np.arange(n_columns)
        return active, solve(active), 1
    size = min(n_columns, max(16, dense_limit // 8))
    active = np.sort(np.argpartition(-start, size - 1)[:size])
    for round_ in range(1, max_rounds + 1):
        coef = solve(active)
        strength = correlations(active, coef)
        strength[active] = 0.0
        violators = np.flatnonzero(strength > 1.0 + tol)
        if len(violators) == 0:
            return active, coef, round_
        if len(violators) > size:
            violators = violators[np.argpartition(-strength[violators], size - 1)[:size]]
        # Columns at zero leave, so the set stays near the size of the solution; they come back
        # through the check if they were needed. Cycling is impossible while the objective falls,
        # and after ten rounds no column leaves, which ends changes within the tolerance.
        if round_ <= 10:
            used = np.any(coef.reshape(-1, coef.shape[-1]) != 0.0, axis=0)
            active = active[used]
        active = np.union1d(active, violators)
    warnings.warn(
        f"The working set of {name} still had {len(violators)} of {n_columns} columns to add after "
        f"{max_rounds} rounds; the last solution is used. A stronger penalty converges sooner.",
        NotConvergedWarning,
        stacklevel=2,
    )
    return active, solve(active), max_rounds


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
    """Fit an elastic-net logistic regression; K = 1 output for two classes, else one per class.

    Return weights (D, K), offsets (K,) and the number of iterations. `lam` is the penalty, `ratio`
    its l1 share, `start` the first weights and offsets. The method is proximal gradient with
    momentum that restarts when it points uphill. It stops when no coordinate of the gradient map
    exceeds ``tol`` times the l1 penalty. Shapes: X (n, D), Y (n, K).
    """
    n = len(X)
    X1 = np.hstack([X, np.ones((n, 1))])
    gram = X1 @ X1.T if n <= X1.shape[1] else X1.T @ X1  # largest eigenvalue is equal
    curvature = 0.25 if Y.shape[1] == 1 else 0.5  # largest of the logistic, and of the softmax loss
    step = 1.0 / (curvature * float(np.linalg.eigvalsh(gram)[-1]) / n + lam * (1.0 - ratio))
    shrink = np.full((X1.shape[1], 1), step * lam * ratio)
    shrink[-1] = 0.0  # the offset is not penalised
    ridge = np.full((X1.shape[1], 1), lam * (1.0 - ratio))
    ridge[-1] = 0.0
    now = np.vstack([start[0], start[1][None, :]])
    ahead = now
    momentum = 1.0
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
            next_momentum = 1.0
            ahead = new
        else:
            ahead = new + (momentum - 1.0) / next_momentum * (new - now)
        now, momentum = new, next_momentum
    return now[:-1], now[-1], n_iter


@dataclass(eq=False, repr=False)
class ElasticNetLogisticClassifier(BaselineClassifier):
    """``min mean logloss + lam (r ||w||_1 + (1 - r)/2 ||w||^2)`` on the concatenated views.

    Parameters
    ----------
    fraction : float
        ``lam`` over the smallest value at which the model is empty.
    l1_ratio : float
        Share r of the l1 penalty, in (0, 1].
    scale, preparation, views
        As in `BaselineEstimator`.
    max_iter, tol : int, float
        Iterations at most, and the accuracy relative to the l1 penalty at which to stop.
    block_scale : bool
        Off by default: scaling would change the penalty of each view.

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

    fraction: float = parameter(0.2, POSITIVE)
    l1_ratio: float = parameter(0.5, L1_RATIO)
    _: KW_ONLY
    max_iter: int = 10000
    tol: float = 1e-3
    block_scale: bool = False

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> Masks:
        """Fit at a fraction of the smallest penalty that gives an empty model."""
        n, C, D = len(codes), len(self.classes_), total_width(blocks)
        Y = codes[:, None].astype(np.float64) if C == 2 else np.eye(C)[codes]
        mean = Y.mean(axis=0)
        start = np.max(np.abs(project_all(blocks, Y - mean)), axis=1) / n
        top = float(start.max()) / self.l1_ratio
        lam = self.penalty_ = self.fraction * (top if top > 0 else 1.0)
        offset = np.log(mean) if C > 2 else np.log(mean / (1.0 - mean))
        w = np.zeros((D, Y.shape[1]))
        self.n_iter_ = 0

        def solve(active: NDArray[np.intp]) -> Array:
            nonlocal offset
            X = gather_columns(blocks, active)
            coef, offset, n_iter = fit_elastic_net(
                X, Y, lam, self.l1_ratio, (w[active], offset), max_iter=self.max_iter, tol=self.tol
            )
            w[:] = 0.0
            w[active] = coef
            self.n_iter_ = max(self.n_iter_, n_iter)
            return coef.T

        def correlations(active: NDArray[np.intp], coef: Array) -> Array:
            residual = _mean(gather_columns(blocks, active) @ coef.T + offset) - Y
            gradient = np.max(np.abs(project_all(blocks, residual)), axis=1)
            return np.asarray(gradient / (n * lam * self.l1_ratio))

        _, _, self.n_rounds_ = solve_on_working_set(
            D, solve, correlations, start, tol=10 * self.tol, name="the elastic net"
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
        return {k: np.any(c != 0.0, axis=1) for k, c in self.coef_.items()}

    def _proba(self, blocks: list[Block]) -> Array:
        return logistic_proba(self._linear(blocks))


@dataclass(eq=False, repr=False)
class L1SVMClassifier(BaselineClassifier):
    """``min ||w||_1 + C sum_i max(0, 1 - y_i (w'x_i + b))^2``, one against the rest.

    The penalty is searched as a multiple of the value below which the model is empty. Wide data
    are solved on a working set of columns, with all the others checked through ``X'r``.

    Parameters
    ----------
    c_ratio : float
        C over the smallest useful C. At 1 or below the model is empty.
    C : float or None
        The penalty parameter itself, overriding ``c_ratio``.
    class_weight : None, "balanced" or dict
    scale, preparation, views
        As in `BaselineEstimator`.
    max_iter, tol : int, float
        Of liblinear.
    block_scale : bool
        Off by default: scaling would change the penalty of each view.
    random_state : int, RandomState or None
        Order of liblinear's coordinates.

    Attributes
    ----------
    coef_ : dict of ndarray (1 or C, D_v)
    C_ : float
        The penalty parameter used.

    Examples
    --------
    >>> from baldur.baselines import L1SVMClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = L1SVMClassifier(c_ratio=3.0, random_state=0).fit(X[:40], y[:40])
    >>> {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    {'a': 2, 'b': 2}
    >>> round(model.score(X[40:], y[40:]), 2)
    1.0
    """

    c_ratio: float = parameter(10.0, POSITIVE)
    C: float | None = parameter(None, optional(POSITIVE))
    class_weight: Any = None
    _: KW_ONLY
    max_iter: int = 5000
    tol: float = 1e-4
    block_scale: bool = False
    random_state: Any = None

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> Masks:
        """Fit at `C`, by default a multiple of the smallest one at which a column is used."""
        K = len(self.classes_)
        signs = one_against_rest(codes, K)
        weight = compute_class_weight(
            self.class_weight, classes=self.classes_, y=self.classes_[codes]
        )
        # liblinear weighs a row by its own class in the binary case; one against the rest, the
        # rest has weight 1.
        s = weight[codes][:, None] if K == 2 else np.where(signs > 0, weight[codes][:, None], 1.0)
        start = np.abs(project_all(blocks, s * signs))  # (D, 1 or C)
        # The model is empty below 1 / (2 max_j |x_j'(s * y)|), over the columns and the constant
        # one that liblinear penalises too (`sklearn.svm.l1_min_c`).
        top = max(float(np.max(start, initial=0.0)), float(np.abs(np.sum(s * signs, axis=0)).max()))
        smallest = 0.5 / top if top > 0 else 1.0
        C = self.C_ = float(self.C) if self.C is not None else float(self.c_ratio * smallest)
        converged = True

        def solve(active: NDArray[np.intp]) -> Array:
            nonlocal converged
            model = LinearSVC(
                penalty="l1",
                loss="squared_hinge",
                dual=False,
                C=C,
                class_weight=dict(enumerate(weight)),
                max_iter=self.max_iter,
                tol=self.tol,
                random_state=self.random_state,
            )
            converged = fit_converges(model, gather_columns(blocks, active), codes)
            self.n_iter_ = max(1, int(np.max(model.n_iter_)))
            self.intercept_ = np.atleast_1d(model.intercept_)
            return np.asarray(model.coef_)

        def correlations(active: NDArray[np.intp], coef: Array) -> Array:
            margin = gather_columns(blocks, active) @ coef.T + self.intercept_
            slack = s * signs * np.maximum(0.0, 1.0 - signs * margin)
            return np.asarray(np.max(2.0 * C * np.abs(project_all(blocks, slack)), axis=1))

        D = total_width(blocks)
        active, coef, self.n_rounds_ = solve_on_working_set(
            D, solve, correlations, np.max(start, axis=1), tol=1e-2, name="LSVM-l1"
        )
        if not converged:
            warnings.warn(
                f"LSVM-l1 stopped at max_iter={self.max_iter} with C={C:.3g}; above separability "
                "the solution hardly changes, so lower c_ratio rather than raise max_iter.",
                NotConvergedWarning,
                stacklevel=3,
            )
        full = np.zeros((coef.shape[0], D))
        full[:, active] = coef
        self.coef_ = self._split(full, blocks)
        return {k: np.any(c != 0.0, axis=0) for k, c in self.coef_.items()}

    def _scores(self, blocks: list[Block]) -> Array:
        return np.asarray(sum(b.predict(self.coef_[b.name].T) for b in blocks) + self.intercept_)
