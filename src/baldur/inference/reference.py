"""The reference posterior of ``sparsity="auto"`` and the smaller sets that stand for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fixed_prior import solve
from baldur.inference.inclusion import Inclusion, run_inclusion
from baldur.inference.mixture import (
    Index,
    Member,
    Mixture,
    owners,
    view_signals,
)
from baldur.inference.scoring import Task
from baldur.inference.starts import outcome_residual
from baldur.model.likelihood import Likelihood
from baldur.views.products import PreparedView

Array = NDArray[np.float64]

CANDIDATES = 1500
"""Features that enter the reference: the best by marginal score."""
KAPPAS = (1.0, 0.0)
VIEW_SHARE = 0.95
"""Share of the variance of the linear predictor that the kept views must carry."""


@dataclass
class Problem:
    """One fit: views, likelihood and what both need."""

    views: Sequence[PreparedView]
    likelihood: Likelihood
    task: Task

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.views[0].shape[0]


def candidates(scores: Sequence[Array], limit: int = CANDIDATES) -> Index:
    """Return the features of each view that are among the `limit` best of all views."""
    flat = np.concatenate(scores)
    best = np.zeros(flat.size, dtype=bool)
    best[np.argsort(-flat, kind="stable")[:limit]] = True
    edges = np.concatenate([[0], np.cumsum([len(s) for s in scores])])
    return [np.flatnonzero(best[edges[m] : edges[m + 1]]) for m in range(len(scores))]


def fold_scores(problem: Problem, folds: Sequence[NDArray[np.intp]]) -> list[list[Array]]:
    """Return marginal scores for each set of training rows: one pass for all of them."""
    columns = []
    for rows in folds:
        residual = outcome_residual(problem.likelihood.rows(rows))
        residual = residual / np.maximum(np.linalg.norm(residual, axis=0), 1e-12)
        full = np.zeros((problem.n_samples, residual.shape[1]))
        full[rows] = residual
        columns.append(full)
    C = columns[0].shape[1]
    projected = [np.abs(view.project(np.hstack(columns))) for view in problem.views]
    return [[p[:, f * C : (f + 1) * C].max(axis=1) for p in projected] for f in range(len(folds))]


@dataclass
class Reference:
    """Posteriors on the candidates, and how much each candidate contributes.

    Attributes
    ----------
    X : (N, L) array of candidate columns
    index : candidates of each view
    absent : (N, M) array, 1 where a sample lacks a view
    inclusions : posteriors under the in-or-out prior, for each kappa
    dense : posterior with every candidate in, averaged in where that predicts better
    views_in : candidates of the fewest views that carry 95 % of the linear predictor
    order : candidates by falling part in the linear predictor
    carried : share of its variance that the first candidates of `order` carry
    """

    X: Array
    index: Index
    absent: Array
    inclusions: list[Inclusion]
    dense: Inclusion
    views_in: NDArray[np.bool_]
    order: NDArray[np.intp]
    carried: Array

    def smallest(self, share: float) -> NDArray[np.bool_]:
        """Return the mask of the smallest set that carries `share` of the variance.

        A share of 1 stands for all candidates of the views that matter: a wide view whose small
        parts add up to nothing is left out as a whole.
        """
        if share >= 1.0:
            return self.views_in.copy()
        keep = np.zeros(len(self.order), dtype=bool)
        if self.carried.size:
            enough = np.flatnonzero(self.carried >= share)
            size = int(enough[0]) + 1 if enough.size else len(self.order)
            keep[self.order[:size]] = True
        return keep


def fit_reference(
    X: Array,
    index: Index,
    absent: Array,
    n_features: Array,
    likelihood: Likelihood,
    max_iter: int = 200,
) -> Reference:
    """Fit the posteriors on gathered candidates and rank these by their part in <eta>."""
    owner = owners(index)
    lacking = absent if absent.any() else None
    *inclusions, dense = [
        run_inclusion(
            X, owner, n_features, likelihood, kappa=kappa, absent=lacking, max_iter=max_iter
        )
        for kappa in (*KAPPAS, None)
    ]
    w = np.mean([inc.outputs.weights()[0] for inc in inclusions], axis=0)
    order = np.argsort(-(w**2).sum(axis=0), kind="stable")
    views_in = _views_in(X, w, owner)
    return Reference(X, index, absent, inclusions, dense, views_in, order, _carried(X, w, order))


def _views_in(X: Array, w: Array, owner: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Return the candidates of the fewest views that carry `VIEW_SHARE` of the variance of eta."""
    M = int(owner.max()) + 1 if owner.size else 0
    parts = [X[:, owner == m] @ w[:, owner == m].T for m in range(M)]
    parts = [part - part.mean(axis=0) for part in parts]
    eta = np.sum(parts, axis=0)
    total = float((eta**2).sum())
    rank = np.argsort([-(part**2).sum() for part in parts], kind="stable")
    keep = np.zeros(len(owner), dtype=bool)
    left = eta
    for m in rank:
        if total > 0 and (left**2).sum() <= (1.0 - VIEW_SHARE) * total:
            break
        keep |= owner == m
        left = left - parts[m]
    return keep


def _carried(X: Array, w: Array, order: NDArray[np.intp]) -> Array:
    """Return 1 - |eta - eta_k|^2/|eta|^2 for the first k features of `order`, k = 1..L."""
    eta = X @ w.T
    eta = eta - eta.mean(axis=0)
    total = (eta**2).sum()
    left = np.zeros(len(order))
    if total <= 0:
        return np.ones(len(order))
    Xc = X - X.mean(axis=0)
    for c in range(len(w)):
        parts = np.cumsum(Xc[:, order] * w[c, order], axis=1)
        left += ((parts - eta[:, c, None]) ** 2).sum(axis=0)
    return 1.0 - left / total


def restrict(
    reference: Reference,
    keep: NDArray[np.bool_],
    likelihood: Likelihood,
    *,
    with_dense: bool = False,
) -> Mixture:
    """Return the posterior on the kept candidates, prior variances as in the reference."""
    edges = np.concatenate([[0], np.cumsum([len(i) for i in reference.index])])
    index = [cols[keep[edges[m] : edges[m + 1]]] for m, cols in enumerate(reference.index)]
    owner = owners(index)
    members = []
    used = [*reference.inclusions, reference.dense] if with_dense else reference.inclusions
    for inclusion in used:
        old = inclusion.outputs
        outputs = solve(
            reference.X[:, keep], old.s[:, keep], likelihood, old.extra, sites=old.sites
        )
        members.append(Member(outputs, view_signals(outputs, owner, reference.absent)))
    return Mixture(index, members)


def redundancy(reference: Reference, keep: NDArray[np.bool_]) -> float:
    """Return how far the kept features stand for the dropped ones: an adjusted R^2.

    The R^2 of each dropped feature on the kept ones, averaged with the prior variances of the
    dropped ones, less what independent features would show. About 0 for independent features.
    """
    X, k = reference.X, int(keep.sum())
    N = len(X)
    if not 0 < k < min(N, len(keep)):
        return 1.0 if k else 0.0
    basis, _ = np.linalg.qr(X[:, keep])
    rest = X[:, ~keep]
    explained = ((basis.T @ rest) ** 2).sum(axis=0) / np.maximum((rest**2).sum(axis=0), 1e-12)
    s = np.mean([inc.outputs.s.mean(axis=0) for inc in reference.inclusions], axis=0)[~keep]
    return float((s @ explained / s.sum() - k / N) / (1.0 - k / N))


def empty_mixture(problem: Problem) -> Mixture:
    """Return the posterior that predicts the base rate: an intercept per output."""
    index = [np.zeros(0, dtype=np.intp) for _ in problem.views]
    outputs = solve(
        np.zeros((problem.n_samples, 0)),
        np.zeros((problem.likelihood.n_outputs, 0)),
        problem.likelihood,
    )
    signal = np.zeros((len(index), problem.likelihood.n_outputs))
    return Mixture(index, [Member(outputs, signal)])
