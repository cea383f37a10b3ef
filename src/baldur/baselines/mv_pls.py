"""MV-PLS: multiblock partial least squares with view weights, used as a classifier (PLS-DA).

The cited paper's equations could not be found; this is the standard method of that name. With
deflation by the super-score it equals ordinary PLS on the concatenated block-scaled views, so the
view structure acts through the scaling and is read from the shares ``a_v^2``.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.baselines.base import BaselineClassifier, BaselineRegressor, one_against_rest
from baldur.baselines.blocks import Block, total_width
from baldur.core.parameters import integer, optional, parameter
from baldur.core.types import Array

EMPTY = 1e-12
"""Components with ``||X'u||`` below this are not used."""


def fit_pls(K: list[Array], Y: Array, n_components: int) -> tuple[Array, Array, Array]:
    """Multiblock PLS from the views' Gram matrices; no matrix has a side longer than n.

    Return the scores T (n, K), the duals (n, K) with weights ``W = X' duals``, whose column k is
    ``E u_k / ||X' E u_k||``, and the shares ``a_v^2`` of each view in each component (K, V).

    Deflating every view by the scores multiplies it by ``E = I - sum_k t_k t_k'/(t_k't_k)``, so
    ``w_v = X_v'E u`` and ``||X_v'E u||^2 = (Eu)'K_v(Eu)``. For several columns in Y the inner
    iteration u -> w -> t -> c -> u has the dominant eigenvector of ``Y'E K E Y`` as its fixed
    point, which is computed directly. Shapes: each K_v (n, n), Y (n, C).
    """
    residual = Y - Y.mean(axis=0)
    total = np.add.reduce(K)
    T: list[Array] = []
    U: list[Array] = []
    shares: list[Array] = []

    def deflate(a: Array) -> Array:
        # Twice, for the usual loss of orthogonality in one Gram-Schmidt pass.
        for _ in range(2):
            for t in T:
                a = a - np.multiply.outer(t, t @ a / (t @ t))
        return np.asarray(a)

    for _ in range(n_components):
        Ye = deflate(residual)
        _, vectors = np.linalg.eigh(Ye.T @ total @ Ye)
        c = vectors[:, -1]
        # Without this the sign of a component would depend on the version of LAPACK.
        c = c * np.sign(c[np.argmax(np.abs(c))])
        Eu = Ye @ c
        energy = np.array([max(float(Eu @ k @ Eu), 0.0) for k in K])
        size = float(np.sqrt(energy.sum()))
        # Squared lengths taken from a Gram matrix carry its rounding: below it nothing is left.
        noise = 1e2 * np.finfo(np.float64).eps * float(np.trace(total)) * float(Eu @ Eu)
        if size <= EMPTY or size**2 <= noise:
            break
        raw = total @ Eu / size
        t = deflate(raw)
        if t @ t <= 1e-14 * (raw @ raw):  # nothing is left but rounding
            break
        T.append(t)
        U.append(Eu / size)
        shares.append(energy / energy.sum())
        residual = residual - np.outer(t, t @ residual / (t @ t))
    scores, duals = (np.array(rows).reshape(-1, len(Y)).T.copy() for rows in (T, U))
    return scores, duals, np.array(shares).reshape(-1, len(K))


def pls_coefficients(total: Array, Y: Array, scores: Array, duals: Array) -> tuple[Array, Array]:
    """Return dual coefficients A (n, C), with weights ``B = X'A``, and the Y loadings Q (C, K).

    Shapes: total (n, n) is the sum of the Gram matrices, Y (n, C), scores and duals (n, K).
    """
    tt = np.sum(scores**2, axis=0)
    Q = (Y - Y.mean(axis=0)).T @ scores / tt
    PtW = scores.T @ total @ duals / tt[:, None]  # P'W, upper triangular
    return duals @ np.linalg.solve(PtW, Q.T), Q


@dataclass(eq=False, repr=False)
class MVPLSClassifier(BaselineClassifier):
    """Multiblock PLS discriminant analysis.

    Component k maximises ``cov(sum_v a_v X_v w_v, Y c)`` over unit ``w_v``, ``a`` and ``c``; views
    and targets are then deflated by its score.

    Parameters
    ----------
    n_components : int or None
        Components, at most n - 1. None: one fewer than there are classes, and at least two.
    scale, preparation, views
        As in `BaselineEstimator`.
    block_scale : bool
        Divide each standardised view by the square root of its width. False gives ordinary PLS on
        the standardised concatenation, the behaviour of other multiblock packages.

    Attributes
    ----------
    coef_ : dict of ndarray (D_v, C or 1)
        Regression coefficients B on the standardised columns.
    x_weights_ : dict of ndarray (D_v, K)
        Unit weights w_v of each component.
    view_shares_ : ndarray (K, V)
        ``a_v^2`` per component, views in the order of ``view_names_``.
    vip_ : dict of ndarray (D_v,)
        Variable importance in projection; its mean square over all columns is 1.

    Examples
    --------
    >>> from baldur.baselines import MVPLSClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = MVPLSClassifier(n_components=2).fit(X[:40], y[:40])
    >>> model.view_shares_.round(2)
    array([[0.74, 0.26],
           [0.58, 0.42]])
    >>> round(model.score(X[40:], y[40:]), 2)
    0.85
    """

    n_components: int | None = parameter(None, optional(integer()))
    _: KW_ONLY
    block_scale: bool = True

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        C = len(self.classes_)
        n_components = max(2, C - 1) if self.n_components is None else self.n_components
        Y = np.eye(C)[codes] if C > 2 else one_against_rest(codes, C)
        _fit_components(self, blocks, Y, int(n_components))

    def _proba(self, blocks: list[Block]) -> Array:
        """Return outputs clipped to [0, 1] and divided by their sum; they are not calibrated."""
        out = self._linear(blocks)
        if out.shape[1] == 1:  # two classes have one output, fitted to -1 and 1
            out = out / 2.0 * np.array([-1.0, 1.0]) + 0.5
        out = np.clip(out, 1e-6, 1.0 - 1e-6)
        return np.asarray(out / out.sum(axis=1, keepdims=True))


@dataclass(eq=False, repr=False)
class MVPLSRegressor(BaselineRegressor):
    """Multiblock PLS regression.

    Parameters
    ----------
    n_components : int
        Components, at most n - 1.
    scale, preparation, views
        As in `BaselineEstimator`.
    block_scale : bool
        Divide each standardised view by the square root of its width.

    Attributes
    ----------
    coef_ : dict of ndarray (D_v, 1)
        Regression coefficients B on the standardised columns.
    x_weights_, view_shares_, vip_
        As in `MVPLSClassifier`.

    Examples
    --------
    >>> from baldur.baselines import MVPLSRegressor
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=2, n_classes=None, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = MVPLSRegressor(n_components=2).fit(X[:40], y[:40])
    >>> model.view_shares_.round(2)
    array([[0.44, 0.56],
           [0.7 , 0.3 ]])
    >>> round(model.score(X[40:], y[40:]), 2)
    0.89
    """

    n_components: int = parameter(2, integer())
    _: KW_ONLY
    block_scale: bool = True

    def _fit(self, blocks: list[Block], y: Array) -> None:
        _fit_components(self, blocks, y[:, None], int(self.n_components))


def _fit_components(
    fitted: MVPLSClassifier | MVPLSRegressor, blocks: list[Block], Y: Array, n_components: int
) -> None:
    """Fit a PLS regression of Y (n, C), and set weights and importances by view.

    Everything is computed from Gram matrices, so weights of features are their projections of dual
    weights (one per sample). `shares` has the squared length of each component in each view.
    """
    grams = [b.gram() for b in blocks]
    scores, duals, shares = fit_pls(grams, Y, min(n_components, len(Y) - 1))
    coef_dual, loadings = pls_coefficients(np.add.reduce(grams), Y, scores, duals)
    fitted.n_components_ = scores.shape[1]
    fitted.intercept_ = Y.mean(axis=0)  # targets are centred: without it the boundary would shift
    fitted.view_shares_ = shares
    # VIP_j^2 = D sum_k s_k w_jk^2 / sum_k s_k, s_k the target variance of component k.
    s = np.sum(loadings**2, axis=0) * np.sum(scores**2, axis=0)
    scale = total_width(blocks) / s.sum() if s.sum() > 0 else 0.0
    norm = np.sqrt(np.maximum(shares, np.finfo(np.float64).tiny))
    fitted.coef_, fitted.vip_, fitted.x_weights_ = {}, {}, {}
    for v, b in enumerate(blocks):
        weights = b.project(duals)  # of prepared columns; `over_input` has those of the input
        fitted.coef_[b.name] = b.weights(coef_dual)
        fitted.vip_[b.name] = b.over_input(np.sqrt(scale * (weights**2 @ s)))
        fitted.x_weights_[b.name] = b.over_input(weights / norm[:, v])
