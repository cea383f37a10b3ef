"""The reference posterior of ``sparsity="auto"`` and the smaller sets that stand for it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.all_features import AllFeatures
from baldur.inference.everything import Everything, keep_views, run_everything
from baldur.inference.fixed_prior import Outputs, gram, posterior, solve
from baldur.inference.inclusion import Inclusion, run_inclusion
from baldur.inference.mixture import Index, Member, Mixture, gather, owners, view_signals
from baldur.inference.screening import Problem, positions
from baldur.inference.wide_outputs import DENSE_BYTES, WideOutputs
from baldur.model.likelihood import Likelihood
from baldur.model.structured.state import INTERCEPT_VAR
from baldur.model.structured.weights import SampleSide, sample_side

Array = NDArray[np.float64]

VIEW_SHARE = 0.95
"""Share of the variance of the linear predictor that the kept views must carry."""


@dataclass
class Reference:
    """Posteriors on the candidates and on all features, and how much each candidate contributes.

    Attributes
    ----------
    X : (N, L) array of candidate columns
    index : candidates of each view
    absent : (N, M) array, 1 where a sample lacks a view
    inclusions : two posteriors under the in-or-out prior, on the candidates
    everything : posterior with every feature in, without the views that carry next to nothing
    views_in : (M,) bool, the fewest views that carry 95 % of the linear predictor
    dense_views : (M,) bool, these and those that matter when `everything` counts too
    order : candidates by falling part in the linear predictor
    carried : share of its variance that the first candidates of `order` carry
    """

    X: Array
    index: Index
    absent: Array
    inclusions: list[Inclusion]
    everything: Everything
    views_in: NDArray[np.bool_]
    dense_views: NDArray[np.bool_]
    order: NDArray[np.intp]
    carried: Array

    def smallest(self, share: float) -> NDArray[np.bool_]:
        """Return the mask of the smallest set that carries `share` of the variance.

        A share of 1 stands for all candidates of the views that matter: a wide view whose small
        parts add up to nothing is left out as a whole.
        """
        if share >= 1.0:
            return self.views_in[owners(self.index)]
        keep = np.zeros(len(self.order), dtype=bool)
        if self.carried.size:
            enough = np.flatnonzero(self.carried >= share)
            size = int(enough[0]) + 1 if enough.size else len(self.order)
            keep[self.order[:size]] = True
        return keep


def fit_inclusions(
    X: Array,
    index: Index,
    absent: Array,
    n_features: Array,
    likelihood: Likelihood,
    max_iter: int = 200,
) -> list[Inclusion]:
    """Fit both posteriors under the in-or-out prior on gathered candidates."""
    lacking = absent if absent.any() else None
    return [
        run_inclusion(
            X,
            owners(index),
            n_features,
            likelihood,
            by_mean=by_mean,
            absent=lacking,
            max_iter=max_iter,
        )
        for by_mean in (True, False)
    ]


def make_reference(
    X: Array,
    index: Index,
    absent: Array,
    inclusions: list[Inclusion],
    features: AllFeatures,
    likelihood: Likelihood,
    max_iter: int = 200,
) -> Reference:
    """Add the posterior with everything in, and rank views and candidates by their part in <eta>.

    Parameters
    ----------
    X, index, absent, inclusions : see `Reference`
    features : AllFeatures, on the same rows
    likelihood : Likelihood
    max_iter : int
    """
    everything = run_everything(features, absent, likelihood, max_iter)
    w = np.mean([inc.outputs.weights()[0] for inc in inclusions], axis=0)
    owner = owners(index)
    parts = np.stack([X[:, owner == m] @ w[:, owner == m].T for m in range(len(index))])
    k = len(inclusions)
    views_in = views_that_matter(parts)
    dense_views = views_in | views_that_matter((k * parts + everything.parts()) / (k + 1))
    order = np.argsort(-(w**2).sum(axis=0), kind="stable")
    return Reference(
        X,
        index,
        absent,
        inclusions,
        keep_views(everything, dense_views, likelihood),
        views_in,
        dense_views,
        order,
        _carried(X, w, order),
    )


def views_that_matter(parts: Array) -> NDArray[np.bool_]:
    """Return the fewest views that carry `VIEW_SHARE` of the variance of eta.

    `parts` are the views' parts of <eta>, (M, N, C).
    """
    parts = parts - parts.mean(axis=1, keepdims=True)
    left = parts.sum(axis=0)
    total = float((left**2).sum())
    keep = np.zeros(len(parts), dtype=bool)
    for m in np.argsort(-(parts**2).sum(axis=(1, 2)), kind="stable"):
        if total > 0 and (left**2).sum() <= (1.0 - VIEW_SHARE) * total:
            break
        keep[m] = True
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


def restrict(reference: Reference, keep: NDArray[np.bool_], likelihood: Likelihood) -> Mixture:
    """Return the posterior on the kept candidates, prior variances as in the reference."""
    edges = np.concatenate([[0], np.cumsum([len(i) for i in reference.index])])
    index = [cols[keep[edges[m] : edges[m + 1]]] for m, cols in enumerate(reference.index)]
    owner = owners(index)
    members = []
    for inclusion in reference.inclusions:
        old = inclusion.outputs
        outputs = solve(
            reference.X[:, keep], old.s[:, keep], likelihood, old.extra, sites=old.sites
        )
        signal = view_signals(outputs, owner, reference.absent)
        members.append(Member(outputs, signal, bound=outputs.bounds[-1]))
    return Mixture(index, members)


def widen(reference: Reference, problem: Problem, *, plain: bool = False) -> Mixture:
    """Return the posterior on every feature of the views that matter.

    The two posteriors on the candidates, where other features have prior variance 0, and the one
    with everything in; only the last if `plain`.
    """
    matter = reference.dense_views
    narrow = restrict(reference, matter[owners(reference.index)], problem.likelihood)
    widths = [view.shape[1] for view in problem.views]
    index = [np.arange(D if use else 0) for D, use in zip(widths, matter, strict=True)]
    at = positions(index, narrow.index)
    members = []
    for member in [] if plain else narrow.members:
        old = member.outputs
        if isinstance(old, Outputs):
            s = np.zeros((len(old.s), sum(len(columns) for columns in index)))
            s[:, at] = old.s
            outputs = on_all(problem, index, s, old)
            members.append(Member(outputs, member.signal, bound=member.bound))
    whole = reference.everything
    outputs = on_all(problem, index, whole.slab[:, owners(index)], whole)
    members.append(Member(outputs, whole.signal(), bound=whole.bounds[-1]))
    return Mixture(index, members)


def on_all(
    problem: Problem, index: Index, s: Array, fitted: Outputs | Everything
) -> Outputs | WideOutputs:
    """Return a fitted posterior as one over the columns of `index` with prior variances s (C, L).

    Columns that fit in memory are gathered; otherwise new rows are compared with the training
    rows, as any kernel method does.
    """
    if s.shape[1] * problem.n_samples * 8 <= DENSE_BYTES:
        X = gather(problem.views, index)
        return Outputs(X, s, fitted.sites, posterior(X, s, fitted.sites), fitted.extra)
    sides = []
    for c, side in enumerate(fitted.sides):
        if isinstance(side, SampleSide):
            sides.append(side)
        elif isinstance(fitted, Outputs):
            K = gram(fitted.X, fitted.s[c]) + INTERCEPT_VAR
            sides.append(sample_side(K, fitted.sites.h[:, c], fitted.sites.j[:, c]))
    ends = np.cumsum([len(columns) for columns in index])[:-1]
    parts = []
    for view, part in zip(problem.views, np.split(s, ends, axis=1), strict=True):
        parts.append(part if part.size else np.zeros((len(s), view.shape[1])))
    return WideOutputs(problem.views, parts, sides, INTERCEPT_VAR)


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
    return Mixture(index, [Member(outputs, signal, bound=outputs.bounds[-1])])
