"""MCCD: one robust regression per view onto shared relaxed targets, with a diversity penalty.

Multiview Classification with Cohesion and Diversity (Tao, Hou, Yi and Zhu, IEEE Transactions on
Cybernetics, 2018).

Departures from the authors' code, each with a switch back:

- their stopping rule is signed, so any decrease satisfies it and it always stops at round 7; ours
  looks at the absolute change (``stopping="signed"`` for theirs);
- their diversity term grows with n^2 and soon forbids the views to agree; ours is divided by
  ``(n - 1)^2`` (``normalize_diversity=False``);
- views are block-scaled (``block_scale=False``).
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.special import softmax

from baldur.baselines.base import BaselineClassifier
from baldur.baselines.blocks import COMPONENTS, REDUCTION, Block, reduce_block
from baldur.core.parameters import NON_NEGATIVE, POSITIVE, Constraint, one_of, parameter
from baldur.core.types import Array
from baldur.exceptions import InputError

FLOOR = 1e-8
"""Limits the weight of a perfectly fitted row to 0.5 / 1e-4."""


def _centre(A: Array) -> Array:
    return A - A.mean(axis=0)


def _row_weights(R: Array) -> Array:
    return 0.5 / np.sqrt(np.sum(R**2, axis=1) + FLOOR)


def mccd_objective(
    weights: list[Array], P: list[Array], residuals: list[Array], g1: Array, g2: float
) -> float:
    """Return robust misfit + g1 ||W||^2 + g2 HSIC, each unordered pair of views counted once.

    The misfit is ``sum_v sum_i sqrt(||F_vi W_v + b_v - z_i||^2 + 1e-8)``; the floor inside the root
    is what the row weights of the update majorise, so this and not the unfloored sum never rises.
    Shapes: for each view, weights W (r_v, C), centred outputs P and residuals (n, C).
    """
    total = 0.0
    for v, R in enumerate(residuals):
        total += float(np.sum(np.sqrt(np.sum(R**2, axis=1) + FLOOR)))
        total += float(g1[v] * np.sum(weights[v] ** 2))
        total += sum(g2 * float(np.sum((P[v].T @ P[w]) ** 2)) for w in range(v))
    return total


def update_view(
    f: Array, others: list[Array], u: Array, Z: Array, g1: float, g2: float
) -> tuple[Array, Array]:
    """Return weights and offset of one view, with the outputs of the other views held fixed.

    ``W = (F'(Hu + g2 S)F + g1 I)^-1 F' Hu Z``, ``b = (Z - F W)'u / 1'u`` with
    ``Hu = U - U11'U/(1'u)`` and ``S = H (sum_w P_w P_w') H``. Shapes: F (n, r), others P_w (n, C)
    each and already centred, row weights u (n,), relaxed targets Z (n, C).

    ``F'(Hu + g2 S)F`` is ``A'A`` for the rows ``A`` of F, centred and scaled by the roots of u, and
    ``sqrt(g2) P_w'F`` below them: the product of a matrix with itself takes half of the work.
    """
    if not f.shape[1]:
        return np.zeros((0, Z.shape[1])), u @ Z / u.sum()
    mean_f, mean_z = u @ f / u.sum(), u @ Z / u.sum()
    root = np.sqrt(u)[:, None]
    A = np.vstack([root * (f - mean_f), *(np.sqrt(g2) * (P.T @ f) for P in others)])
    left = A.T @ A
    left[np.diag_indices_from(left)] += g1
    right = A[: len(f)].T @ (root * (Z - mean_z))
    # `left` equals its transpose, which LAPACK can overwrite without a copy.
    factor = cho_factor(left.T, overwrite_a=True, check_finite=False)
    W = cho_solve(factor, right, overwrite_b=True, check_finite=False)
    return W, mean_z - mean_f @ W


def fit_mccd(
    F: list[Array],
    Y: Array,
    g1: float | Array = 0.1,
    g2: float = 0.0,
    *,
    max_iter: int = 50,
    tol: float = 1e-6,
    signed: bool = False,
) -> tuple[list[Array], list[Array], Array, list[float]]:
    """Fit a robust regression of each view to shared relaxed targets, updating all in turn.

    The targets are ``Z = Y + B slack`` with B = 1 for the class of a row and -1 for the others.

    Shapes: features F_v (n, r_v), Y (n, C) of 0 and 1; returns weights (r_v, C) and offsets (C,) of
    each view, the slack (n, C) and the objective per round.
    """
    V, B = len(F), 2.0 * Y - 1.0
    g1 = np.broadcast_to(np.asarray(g1, dtype=np.float64), (V,))
    ones = np.ones(len(Y))
    solved = [update_view(f, [], ones, Y, g1[v], 0.0) for v, f in enumerate(F)]
    weights, offsets = [w for w, _ in solved], [b for _, b in solved]
    slack, Z = np.zeros_like(Y), Y
    outputs = [f @ w for f, w in zip(F, weights, strict=True)]
    P = [_centre(out) for out in outputs]
    residuals = [out + b - Z for out, b in zip(outputs, offsets, strict=True)]
    history = [mccd_objective(weights, P, residuals, g1, g2)]
    for round_ in range(1, max_iter + 1):
        u = [_row_weights(R) for R in residuals]  # with these, squares majorise the robust misfit
        for v, f in enumerate(F):
            others = [P[w] for w in range(V) if w != v] if g2 else []
            weights[v], offsets[v] = update_view(f, others, u[v], Z, g1[v], g2)
            outputs[v] = f @ weights[v]
            P[v] = _centre(outputs[v])
        fits = [out + b for out, b in zip(outputs, offsets, strict=True)]
        # The slack that minimises the weighted misfit of all views.
        pull = sum(uv[:, None] * (B * (fit - Y)) for uv, fit in zip(u, fits, strict=True))
        slack = np.maximum(0.0, pull / np.add.reduce(u)[:, None])
        Z = Y + B * slack
        residuals = [fit - Z for fit in fits]
        history.append(mccd_objective(weights, P, residuals, g1, g2))
        before, now = history[-2:]
        change = (now - before) / max(abs(before), np.finfo(np.float64).tiny)
        if signed and round_ > 6 and change < tol:  # the rule of the authors' code
            break
        if not signed and abs(change) < tol:
            break
    return weights, offsets, slack, history


def _is_one_or_per_view(value: Any) -> bool:
    """Return whether the value is a positive number, or a sequence of such."""
    if isinstance(value, (str, bytes)) or np.ndim(value) != 1:
        return POSITIVE.is_legal(value)
    return all(POSITIVE.is_legal(part) for part in value)


ONE_OR_PER_VIEW = Constraint(
    _is_one_or_per_view, "a finite number above 0, or a sequence of these with one per view"
)


@dataclass(eq=False, repr=False)
class MCCDClassifier(BaselineClassifier):
    """Multiview classification with cohesion and diversity.

    Minimises ``sum_v sum_i ||W_v'x_vi + b_v - z_i|| + g1 sum_v ||W_v||^2 + g2 sum_{v<w} HSIC_vw``
    over weights, offsets and one slack shared by the views that moves the targets z away from the
    decision boundary.

    Parameters
    ----------
    reduction : {None, "pca", "linear_kernel"}
        Front-end per view; None solves the full problem exactly.
    n_components : int, float, "n-1" or None
        Components of the "pca" front-end, or the share of variance they must reach.
    g1, g2 : float
        Ridge and diversity penalties. ``g1`` may be a sequence, one value per view.
    scale, preparation, views
        As in `BaselineEstimator`.
    normalize_diversity : bool
        Divide the diversity term by ``(n - 1)^2``. False is the authors' scale, on which values
        above 1e-3 already force constant predictions.
    stopping : {"absolute", "signed"}
        "signed" reproduces the authors' rule, which stops at round 7.
    block_scale : bool
        Divide each standardised view by the square root of its width.
    max_iter, tol : int, float
        Rounds at most, and the relative change of the objective at which to stop.

    Attributes
    ----------
    coef_ : dict of ndarray (D_v, C)
        Weights on the standardised columns of each view.
    intercepts_ : dict of ndarray (C,)
    objective_ : ndarray
        Objective after each round.

    Examples
    --------
    >>> from baldur.baselines import MCCDClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(60, {"a": 4, "b": 9}, informative=[2, 0], logit_sd=9, random_state=0)
    >>> X, y = sim.data, sim.target
    >>> model = MCCDClassifier().fit(X[:40], y[:40])
    >>> {name: part.shape for name, part in model.coef_.items()}
    {'a': (4, 2), 'b': (9, 2)}
    >>> round(model.score(X[40:], y[40:]), 2)
    0.8
    """

    reduction: str | None = parameter(None, REDUCTION)
    n_components: Any = parameter(0.95, COMPONENTS)
    g1: Any = parameter(0.1, ONE_OR_PER_VIEW)
    g2: float = parameter(0.001, NON_NEGATIVE)
    _: KW_ONLY
    normalize_diversity: bool = True
    stopping: str = parameter("absolute", one_of("absolute", "signed"))
    block_scale: bool = True
    max_iter: int = 50
    tol: float = 1e-6

    def _fit(self, blocks: list[Block], codes: NDArray[np.intp]) -> None:
        """Fit `fit_mccd` on features of each view, and carry its weights over to their columns."""
        if np.ndim(self.g1) == 1 and len(self.g1) != len(blocks):
            raise InputError(
                f"g1 must have one value per view. There are {len(blocks)} views "
                f"({', '.join(b.name for b in blocks)}), but g1 has {len(self.g1)} values."
            )
        n = len(codes)
        Y = np.eye(len(self.classes_))[codes]
        reduced = [reduce_block(b, self.reduction, self.n_components) for b in blocks]
        g2 = self.g2 / (n - 1) ** 2 if self.normalize_diversity else self.g2
        weights, offsets, _, history = fit_mccd(
            [features for features, _ in reduced],
            Y,
            self.g1,
            g2,
            max_iter=self.max_iter,
            tol=self.tol,
            signed=self.stopping == "signed",
        )
        self.coef_, self.intercepts_ = {}, {}
        for b, (_, lift), w, offset in zip(blocks, reduced, weights, offsets, strict=True):
            self.coef_[b.name], self.intercepts_[b.name] = b.weights(lift @ w), offset
        self.objective_ = np.array(history)
        self.n_iter_ = len(history) - 1

    def _scores(self, blocks: list[Block]) -> Array:
        """Return ``-F_c(x)``, F_c the summed distances of the views' outputs to the c-th vertex."""
        vertices = np.eye(len(self.classes_))
        total = 0.0
        for b in blocks:
            out = b.predict(self.coef_[b.name]) + self.intercepts_[b.name]
            total = total - np.linalg.norm(out[:, None, :] - vertices[None, :, :], axis=2)
        return np.asarray(total)

    def _proba(self, blocks: list[Block]) -> Array:
        return np.asarray(softmax(self._scores(blocks), axis=1))
