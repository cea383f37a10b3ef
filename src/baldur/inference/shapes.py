"""Fits under one prior shape Gamma(a, a) of the feature precisions, chosen by the user.

a = inf is the prior with one variance per view; it is the same code as the member of that name in
``sparsity="auto"``. Finite shapes run the sweeps of `baldur.inference.run`, in wide views those of
`baldur.inference.active`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.active import WIDE, Active, run_active
from baldur.inference.features import Columns, absent_matrix, all_features
from baldur.inference.fitted import Fitted, from_mixture, from_run
from baldur.inference.gaussian import Gaussian
from baldur.inference.members import Member, fit_by_view, over_scales
from baldur.inference.mixture import Implicit, Mixture
from baldur.inference.reference import noise_variance
from baldur.inference.run import Run, Watcher, iterate, run_structured
from baldur.inference.starts import flat_state
from baldur.inference.threads import few_blas_threads
from baldur.model.likelihood import Likelihood
from baldur.model.priors import GammaPrior, Priors, sparsity_prior
from baldur.model.structured.state import Data
from baldur.views.products import PreparedView
from baldur.views.reads import passes

Array = NDArray[np.float64]
Views = Sequence[PreparedView]


def fit_shape(
    views: Views,
    likelihood: Likelihood,
    *,
    shape: float,
    n_factors: int | None,
    max_iter: int,
    tol: float,
    prune: bool,
    watch: Watcher | None = None,
) -> Fitted:
    """Fit the structured family under one prior shape.

    With `n_factors` None there is one factor per output and V = I; otherwise V is learned.
    """
    options: dict[str, Any] = {"max_iter": max_iter, "tol": tol, "prune": prune, "watch": watch}
    with few_blas_threads(views[0].shape[0]):
        if np.isinf(shape) and (n_factors is None or likelihood.n_outputs == 1):
            return fit_dense(views, likelihood, max_iter=max_iter, prune=prune)
        return from_run(_run_shape(views, likelihood, shape, n_factors, options), shape)


def fit_dense(views: Views, likelihood: Likelihood, *, max_iter: int, prune: bool) -> Fitted:
    """Fit with every feature in and one prior variance per view, integrated over their scale."""
    features, absent = all_features(views), absent_matrix(views)
    member = fit_by_view(features, absent, likelihood, max_iter=max_iter)
    kept = np.ones(len(views), dtype=bool)
    if prune:
        member, kept = without_idle_views(member)
    C, widths = likelihood.n_outputs, [view.shape[1] for view in views]
    index = [np.arange(D) for D in widths]
    train = list(views)
    components = [
        Implicit(
            q.features,
            q.s,
            q.sides,
            index,
            train,
            noise_variance(q.noise) * np.ones(C),
            q.signal(),
            q.lacking(),
        )
        for q in member.points
    ]
    return from_mixture(
        Mixture(components, member.weights, widths),
        np.eye(C),
        selected=[np.full(D, use) for D, use in zip(widths, kept, strict=True)],
        spaces=["feature" if isinstance(features, Columns) else "sample"] * len(widths),
        sparsity=np.inf,
        elbo=member.bound(),
        converged=member.converged,
        history=[{"event": "step", "passes": passes(views), **one} for one in member.history],
    )


def without_idle_views(member: Member) -> tuple[Member, NDArray[np.bool_]]:
    """Leave out views whose removal raises the bound, the weakest first."""
    q = member.points[int(member.weights.sum(axis=1).argmax())]
    kept = np.ones(q.features.n_views, dtype=bool)
    value = q.bound().sum()
    for m in np.argsort(q.signal().sum(axis=1), kind="stable")[:-1]:
        mask = kept.copy()
        mask[m] = False
        trial: Gaussian = q.with_variances(q.s * q.features.spread(mask[None].astype(float)))
        trial.settle()
        if trial.bound().sum() < value:
            break
        q, kept, value = trial, mask, trial.bound().sum()
    if not kept.all():
        member.points, member.weights = over_scales(q)
    return member, kept


def structured_data(views: Views, likelihood: Likelihood, shape: float) -> Data:
    """Choose the side by size: features if all of them are no more than the samples."""
    N, D = views[0].shape[0], sum(view.shape[1] for view in views)
    X = np.concatenate([view.dense() for view in views], axis=1) if D <= N else None
    priors = Priors(gamma=sparsity_prior(shape), omega=GammaPrior(0.5, 0.5))
    return Data(list(views), likelihood, priors, X)


def starting_loadings(eta: Array, n_factors: int) -> Array:
    """Return V (C, K) spanning the leading directions of the linear predictors (N, C)."""
    eta = eta - eta.mean(axis=0)
    _, values, rows = np.linalg.svd(eta, full_matrices=False)
    K = min(n_factors, len(values))
    V = rows[:K].T * np.sqrt(values[:K] / max(values[0], 1e-12))
    # The sign of a singular vector is arbitrary; fix it so that runs and machines agree.
    largest = np.abs(V).argmax(axis=0)
    return V * np.where(V[largest, np.arange(K)] < 0, -1.0, 1.0)


def _run_shape(
    views: Views,
    likelihood: Likelihood,
    shape: float,
    n_factors: int | None,
    options: dict[str, Any],
) -> Run:
    data = structured_data(views, likelihood, shape)
    active = Active.screen(data) if np.isfinite(shape) and sum(data.widths) > WIDE else None
    V = None
    if n_factors is not None and likelihood.n_outputs > 1:
        part = data if active is None else active.data
        flat = flat_state(data) if active is None else active.starts(None)[0]
        rough = iterate(part, flat, max_iter=10, tol=1e-3)
        V = starting_loadings(rough.state.latent()[0] @ rough.state.V.T, n_factors)
    if active is None:
        return run_structured(data, V=V, **options)
    return run_active(active, V=V, **options)
