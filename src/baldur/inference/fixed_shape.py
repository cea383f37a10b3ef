"""Fits under one prior shape Gamma(a, a) of the feature precisions, chosen by the user.

a = inf is the prior with one variance per view; it is the same code as the member of that name in
``sparsity="auto"``. Finite shapes are the double ARD prior of `baldur.inference.double_ard`. Under
either, fewer factors than outputs are one more likelihood (`baldur.model.loadings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.double_ard import ArdFit, Watcher, fit_double_ard
from baldur.inference.entries import Entries
from baldur.inference.features import (
    Columns,
    Features,
    all_features,
    columns_of,
)
from baldur.inference.fitted import Fitted, from_mixture
from baldur.inference.gaussian import Gaussian
from baldur.inference.members import Member, fit_by_view, over_scales
from baldur.inference.mixture import Implicit, Mixture
from baldur.inference.new_rows import Index, absent_matrix
from baldur.inference.predictive import mixture_moments
from baldur.inference.reference import noise_variance
from baldur.inference.screening import Problem
from baldur.inference.streamed import Streamed
from baldur.inference.threads import few_blas_threads
from baldur.model.likelihood import Likelihood
from baldur.model.loadings import FactorLikelihood, starting_loadings
from baldur.model.posterior import INTERCEPT_VAR
from baldur.views.reads import passes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

ROUGH = 10
"""Iterations of the fit with a factor for every output whose predictors the loadings start from."""


def fit_shape(
    problem: Problem,
    *,
    shape: float,
    n_factors: int | None,
    max_iter: int,
    tol: float,
    prune: bool,
    watch: Watcher | None = None,
) -> Fitted:
    """Fit under one prior shape.

    With `n_factors` None there is one factor per output and V = I; otherwise V is learned.
    """
    views, likelihood, intercept_var = problem.views, problem.likelihood, INTERCEPT_VAR
    absent = absent_matrix(views)
    with few_blas_threads(problem.n_samples):
        if n_factors is not None and likelihood.n_outputs > 1:
            rough = fit_by_view(all_features(views), absent, likelihood, max_iter=ROUGH)
            eta, _ = mixture_moments([q.moments() for q in rough.points], rough.weights)
            likelihood = FactorLikelihood(likelihood, starting_loadings(eta, n_factors))
            intercept_var = 0.0  # intercepts live with the loadings
        if np.isinf(shape):
            features = all_features(views, intercept_var)
            member, used = fit_dense(features, absent, likelihood, max_iter=max_iter, prune=prune)
            every = [np.arange(int(D)) for D in problem.widths]
            selected = [np.full(len(i), use) for i, use in zip(every, used, strict=True)]
            return _from_member(problem, member, every, selected)
        entries = Entries.screen(problem, intercept_var)
        begun = ArdFit.start(entries, shape, likelihood, absent, views, watch)
        return _from_ard(problem, fit_double_ard(begun, max_iter=max_iter, tol=tol, prune=prune))


def fit_factors_on_kept(problem: Problem, full: Fitted, n_factors: int, *, max_iter: int) -> Fitted:
    """Learn loadings on the features that ``sparsity="auto"`` kept, one variance per view.

    They start at the leading directions of the linear predictors of the stack.
    """
    index = [np.flatnonzero(mask) for mask in full.selected]
    if not any(map(len, index)):
        return full
    eta, _ = mixture_moments(full.moments(problem.views), full.weights)
    likelihood = FactorLikelihood(problem.likelihood, starting_loadings(eta, n_factors))
    columns, absent = columns_of(problem.views, index, 0.0), absent_matrix(problem.views)
    member, used = fit_dense(columns, absent, likelihood, max_iter=max_iter, prune=True)
    selected = [mask & use for mask, use in zip(full.selected, used, strict=True)]
    found = _from_member(problem, member, index, selected)
    found.spaces, found.sparsity, found.answer = full.spaces, full.sparsity, full.answer
    found.history = full.history + found.history
    return found


def fit_dense(
    features: Features, absent: Array, likelihood: Likelihood, *, max_iter: int, prune: bool
) -> tuple[Member, Mask]:
    """Fit with every feature in and one prior variance per view; return also the views in use."""
    member = fit_by_view(features, absent, likelihood, max_iter=max_iter)
    if prune:
        return without_idle(member)
    return member, np.ones(features.n_views, dtype=bool)


def without_idle(member: Member) -> tuple[Member, Mask]:
    """Leave out views and factors whose removal raises the bound, the weakest first."""
    first = best = member.points[int(member.weights.sum(axis=1).argmax())]
    used = np.ones(best.features.n_views, dtype=bool)
    value = best.bound().sum()
    for m in np.argsort(best.signal().sum(axis=1), kind="stable")[:-1]:
        mask = used.copy()
        mask[m] = False
        trial = best.with_variances(best.s * best.features.spread(mask[None].astype(float)))
        if trial.settle().sum() < value:
            break
        best, used, value = trial, mask, trial.bound().sum()
    while (k := best.weakest_factor()) is not None:
        trial = best.without_factor(k)
        if trial.settle().sum() < value:
            break
        best, value = trial, trial.bound().sum()
    if isinstance(best.likelihood, FactorLikelihood):
        member.points, member.weights = [best], np.ones((1, len(best.sides)))
    elif best is not first:
        member.points, member.weights = over_scales(best)
    return member, used


def _from_member(
    problem: Problem, member: Member, index: Index, selected: Sequence[Mask]
) -> Fitted:
    components = [_component(q, q.features, q.s, index, problem) for q in member.points]
    return _fitted(
        problem,
        member.points[0],
        Mixture(components, member.weights, [view.shape[1] for view in problem.views]),
        selected=list(selected),
        sparsity=np.inf,
        elbo=member.bound(),
        converged=member.converged,
        history=[
            {"event": "step", "passes": passes(problem.views), **one} for one in member.history
        ],
    )


def _from_ard(problem: Problem, fit: ArdFit) -> Fitted:
    """Return the answer in the units of the features, which the fit had scaled by gamma.

    Not integrated over scales, as one variance per view is: these variances have seen the data
    feature by feature, and the evidence would count it again.
    """
    entries, prior, q = fit.entries, fit.prior, fit.q
    widths, index, s = [view.shape[1] for view in problem.views], entries.index, prior.variances
    features: Any
    if entries.rests:
        features = Streamed(problem.views, entries.intercept_var)
        s, index = entries.spread(s), [np.arange(D) for D in widths]
    else:
        features = Columns(entries.X, entries.column_owner, len(widths), entries.intercept_var)
        q.sides = features.posterior(s, q.sites)
    return _fitted(
        problem,
        q,
        Mixture([_component(q, features, s, index, problem)], np.ones((1, len(s))), widths),
        selected=entries.selected(),
        sparsity=prior.a,
        elbo=fit.history[-1]["bound"],
        converged=fit.converged,
        history=fit.history,
    )


def _component(q: Gaussian, features: Any, s: Array, index: Index, problem: Problem) -> Implicit:
    noise = q.noise.noise if isinstance(q.likelihood, FactorLikelihood) else q.noise
    variance = noise_variance(noise) * np.ones(problem.likelihood.n_outputs)
    train = [] if isinstance(features, Columns) else list(problem.views)
    return Implicit(features, s, q.sides, index, train, variance, q.signal(), q.lacking())


def _fitted(problem: Problem, q: Gaussian, mixture: Mixture, **record: Any) -> Fitted:
    V = np.eye(problem.likelihood.n_outputs)
    if isinstance(q.likelihood, FactorLikelihood):
        mixture.loadings = q.noise.loadings
        V = q.noise.loadings.V
    space = "feature" if problem.widths.sum() < problem.n_samples else "sample"
    return from_mixture(mixture, V, spaces=[space] * len(mixture.widths), **record)
