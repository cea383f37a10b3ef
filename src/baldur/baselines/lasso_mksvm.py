"""Lasso-MkSVM: Lasso selection in each view, then a multiple-kernel SVM on what is left.

The cited work does not define this row; it is reconstructed from the usual neuroimaging pipeline
(Lasso selection with the multi-kernel SVM of D. Zhang and others, NeuroImage 2011).
"""

from __future__ import annotations

import itertools
import warnings
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.svm import SVC

from baldur.baselines.base import (
    BaselineClassifier,
    Masks,
    inner_folds,
    one_against_rest,
)
from baldur.baselines.blocks import Block, project_all, split_columns
from baldur.baselines.linear import solve_on_working_set
from baldur.core.parameters import POSITIVE, Constraint, is_number, one_of, parameter
from baldur.core.types import Array, Mask

DROPPED = 1e-6
"""A kernel weight at or below this drops its view."""
MKL_TOLERANCE = 1e-4
"""Kernel weights have converged when none changes by as much."""
NORM = Constraint(lambda v: is_number(v, 1.0), "a number of at least 1")


def lasso_support(block: Block, y: Array, fraction: float, rows: Any = None) -> Mask:
    """Return a mask of the columns with a non-zero Lasso weight.

    ``min (1/2n) ||y - X w - b||^2 + a ||w||_1``, ``a = fraction * max_j |x_j'(y - mean y)| / n``;
    y is -1/+1. ``rows`` restricts the fit to some rows. Wide views are solved on a working set.
    """
    rows = np.arange(len(y)) if rows is None else rows
    target = y[rows] - y[rows].mean()
    all_rows = np.zeros((len(y), 1))

    def project(r: Array) -> Array:
        """Return |x_j'r| of every column j, centred on `rows`."""
        all_rows[:] = 0.0
        all_rows[rows, 0] = r - r.mean()  # centring r centres the columns on these rows
        return np.asarray(np.abs(block.project(all_rows)[:, 0]))

    start = project(target)
    top = float(start.max(initial=0.0)) / len(rows)
    if top <= 1e-12:
        return np.zeros(block.width, dtype=bool)
    a = fraction * top

    def solve(active: NDArray[np.intp]) -> Array:
        model = Lasso(alpha=a, max_iter=20000, tol=1e-6)
        with warnings.catch_warnings():
            # Only the support is used, which converges long before the duality gap.
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(block.columns(active)[rows], y[rows])
        return np.asarray(model.coef_)

    def correlations(active: NDArray[np.intp], coef: Array) -> Array:
        residual = y[rows] - block.columns(active)[rows] @ coef
        return project(residual) / (len(rows) * a)

    active, coef, _ = solve_on_working_set(
        block.width, solve, correlations, start, tol=1e-4, name="the Lasso of Lasso-MkSVM"
    )
    mask = np.zeros(block.width, dtype=bool)
    mask[active[coef != 0.0]] = True
    return mask


def best_column(blocks: list[Block], y: Array) -> Masks:
    """Return masks with only the column that is most correlated with y, over all views."""
    strength = np.abs(project_all(blocks, (y - y.mean())[:, None])[:, 0])
    best = np.arange(len(strength)) == np.argmax(strength)
    return {b.name: mask for b, mask in zip(blocks, split_columns(best, blocks), strict=True)}


def svm_dual(K: Array, y: Array, C: float) -> tuple[Array, float]:
    """Return signed dual coefficients (n,) and offset of an SVM on a precomputed kernel."""
    model = SVC(kernel="precomputed", C=C).fit(K, y)
    alpha = np.zeros(len(y))
    alpha[model.support_] = model.dual_coef_[0]
    return alpha, float(model.intercept_[0])


def fit_mkl(kernels: Array, y: Array, C: float, p: float, *, max_iter: int = 100) -> Array:
    """Return kernel weights beta (V,) with ``||beta||_p = 1``, by lp-norm multiple kernel learning.

    Alternates an SVM with ``beta_v = ||w_v||^{2/(p+1)} / (sum_u ||w_u||^{2p/(p+1)})^{1/p}`` where
    ``||w_v||^2 = beta_v^2 alpha'K_v alpha``; starts uniform because a zero weight stays zero.

    Shapes: kernels (V, n, n) of V views, y (n,) in {-1, +1}.
    """
    V = len(kernels)
    beta = np.full(V, (1.0 / V) ** (1.0 / p))
    for _ in range(max_iter):
        alpha, _ = svm_dual(np.tensordot(beta, kernels, axes=1), y, C)
        norms = beta * np.sqrt([max(float(alpha @ k @ alpha), 0.0) for k in kernels])
        if norms.sum() <= 0.0:
            break
        new = norms ** (2.0 / (p + 1.0))
        new = new / np.sum(norms ** (2.0 * p / (p + 1.0))) ** (1.0 / p)
        change = float(np.max(np.abs(new - beta)))
        beta = new
        if change < MKL_TOLERANCE:
            break
    return beta


def simplex_grid(V: int, step: float) -> Array:
    """Return all weight vectors on the simplex whose entries are multiples of ``step``."""
    m = round(1.0 / step)
    # A vector is m steps shared out among V entries: V - 1 bars among m + V - 1 places.
    cuts = itertools.combinations(range(m + V - 1), V - 1)
    rows = [np.diff([-1, *cut, m + V - 1]) - 1 for cut in cuts]
    return np.array(rows, dtype=np.float64) / m


@dataclass(eq=False, repr=False)
class LassoMkSVMClassifier(BaselineClassifier):
    """Lasso selection per view, then an SVM on a weighted sum of the views' linear kernels.

    Parameters
    ----------
    fraction : float
        Lasso penalty over the largest useful one, the same for all views.
    C : float
        SVM penalty.
    p : float
        Norm of the kernel weights; 1 is sparse over views.
    scale, preparation, views
        As in `BaselineEstimator`.
    weights : {"mkl", "grid", "uniform"}
        How kernel weights are chosen. "grid" tries all weights on the simplex in steps of
        ``grid_step`` by inner cross-validation, and selects features in each fold again.
    grid_step : float
        0.1 means 1001 points for five views, 0.2 means 126.
    cv : int
        Folds of "grid".
    block_scale : bool
        Off: kernels are divided by their mean diagonal instead.
    random_state : int, RandomState or None
        Folds of "grid".

    Attributes
    ----------
    lasso_features_ : dict of ndarray of bool
        Features that the Lasso selects; `selected_features_` has no view of weight below 1e-6.
    n_lasso_features_ : int
        Raw sum of the supports.
    view_weights_ : ndarray (1 or C, V)
    coef_ : dict of ndarray (D_v, 1 or C)

    Examples
    --------
    >>> from baldur.baselines import LassoMkSVMClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = LassoMkSVMClassifier(fraction=0.6).fit(X[:40], y[:40])
    >>> model.view_weights_.round(2)
    array([[0.75, 0.25]])
    >>> {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    {'a': 2, 'b': 4}
    >>> round(model.score(X[40:], y[40:]), 2)
    0.95
    """

    fraction: float = parameter(0.4, POSITIVE)
    C: float = parameter(1.0, POSITIVE)
    p: float = parameter(1.0, NORM)
    _: KW_ONLY
    weights: str = parameter("mkl", one_of("mkl", "grid", "uniform"))
    grid_step: float = parameter(0.2, POSITIVE)
    cv: int = 5
    block_scale: bool = False
    random_state: Any = None

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> Masks:
        """Select columns, then fit an SVM with weighted kernels of the views for each class."""
        signs = one_against_rest(codes, len(self.classes_))
        masks = self._select(blocks, signs)
        self.lasso_features_ = {b.name: b.over_input(masks[b.name]) for b in blocks}
        self.n_lasso_features_ = int(sum(m.sum() for m in masks.values()))
        in_use = [b for b in blocks if masks[b.name].any()]
        columns = [b.columns(np.flatnonzero(masks[b.name])) for b in in_use]
        kernels, units = _unit_kernels(columns)
        outputs = signs.shape[1]
        weights, self.intercept_ = np.zeros((outputs, len(in_use))), np.zeros(outputs)
        self.coef_ = {b.name: np.zeros((masks[b.name].sum(), outputs)) for b in blocks}
        for c, y in enumerate(signs.T):
            weights[c] = self._weights(in_use, kernels, y)
            alpha, self.intercept_[c] = svm_dual(
                np.tensordot(weights[c], kernels, axes=1), y, self.C
            )
            for b, X, unit, weight in zip(in_use, columns, units, weights[c], strict=True):
                self.coef_[b.name][:, c] = weight * (X.T @ alpha) / unit
        self.view_weights_ = np.zeros((outputs, len(blocks)))
        self.view_weights_[:, [masks[b.name].any() for b in blocks]] = weights
        used = self.view_weights_.max(axis=0) > DROPPED
        return {b.name: self.lasso_features_[b.name] & u for b, u in zip(blocks, used, strict=True)}

    def _select(self, blocks: list[Block], signs: Array, rows: Any = None) -> Masks:
        """Return the columns that the Lasso selects for any class, or else the best one."""
        masks = {
            b.name: np.any([lasso_support(b, y, self.fraction, rows) for y in signs.T], axis=0)
            for b in blocks
        }
        if not any(m.any() for m in masks.values()):
            return best_column(blocks, signs[:, 0])
        return masks

    def _weights(self, in_use: list[Block], kernels: Array, y: Array) -> Array:
        """Return the weight of the kernel of each view that has selected columns."""
        V = len(in_use)
        if self.weights == "mkl":
            return fit_mkl(kernels, y, self.C, self.p)
        if self.weights == "uniform" or V == 1:
            return np.full(V, (1.0 / V) ** (1.0 / self.p))
        return self._grid_search(in_use, y)

    def _grid_search(self, in_use: list[Block], y: Array) -> Array:
        """Return the kernel weights with the best inner accuracy; folds select their features."""
        grid = simplex_grid(len(in_use), self.grid_step)
        folds = inner_folds(y, self.cv, self.random_state)
        if not folds:
            return np.full(len(in_use), 1.0 / len(in_use))
        n_correct = np.zeros(len(grid))
        for train, test in folds:
            masks = self._select(in_use, y[:, None], train)
            columns = [b.columns(np.flatnonzero(masks[b.name])) for b in in_use]
            kernels, _ = _unit_kernels(columns, train)
            for g, beta in enumerate(grid):
                K = np.tensordot(beta, kernels, axes=1)
                alpha, offset = svm_dual(K[np.ix_(train, train)], y[train], self.C)
                f = K[np.ix_(test, train)] @ alpha + offset
                n_correct[g] += np.sum((f > 0) == (y[test] > 0))
        best = np.flatnonzero(n_correct == n_correct.max())
        # Several points are usually equally good; the most even of them is the least arbitrary.
        return np.asarray(grid[best[np.argmin(np.sum(grid[best] ** 2, axis=1))]])

    def _scores(self, blocks: list[Block]) -> Array:
        """Return the decision values (n, 1 or C), from the columns that the Lasso selected."""
        total = np.zeros((blocks[0].view.shape[0], len(self.intercept_))) + self.intercept_
        for b in blocks:
            selected = np.flatnonzero(b.take(self.lasso_features_[b.name]))
            total += b.columns(selected) @ self.coef_[b.name]
        return total


def _unit_kernels(columns: list[Array], rows: Any = slice(None)) -> tuple[Array, list[float]]:
    """Return linear kernels (V, n, n) divided by their mean diagonal on ``rows``, and those means.

    A kernel of zeros is divided by 1.
    """
    kernels = [X @ X.T for X in columns]
    units = [float(np.mean(np.diag(K)[rows])) or 1.0 for K in kernels]
    return np.array([K / unit for K, unit in zip(kernels, units, strict=True)]), units
