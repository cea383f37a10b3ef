"""Fewer latent factors than outputs: loadings learned on the selected features.

A factor model is one more likelihood (`baldur.model.loadings`) under the prior with one variance
per view. It starts from the leading directions of the ensemble's linear predictors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from baldur.inference.dense_members import SITES_ITER, SITES_TOLERANCE, learn_variances
from baldur.inference.design import ColumnDesign
from baldur.inference.ensemble import noise_variance
from baldur.inference.fit import FitResult
from baldur.inference.gaussians import KernelGaussian, WeightGaussian, gather
from baldur.inference.predictor import Predictor, mean_squares
from baldur.inference.screening import Problem
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood, Sites
from baldur.model.loadings import FactorLikelihood, starting_loadings
from baldur.model.posterior import FeaturePosterior, with_ones
from baldur.types import Array, Index, Mask
from baldur.views.read_counter import passes


def fit_factors_on_selected(
    problem: Problem, full: FitResult, n_factors: int, *, max_iter: int
) -> FitResult:
    """Return the posterior of `n_factors` factors and their loadings on the selected features.

    Views and factors whose removal raises the bound are left out. Without a selected feature the
    answer is `full` itself.

    Parameters
    ----------
    problem : Problem
    full : FitResult
        The ensemble's answer with one factor per output.
    n_factors : int
        At most so many factors, fewer than outputs.
    max_iter : int
        Most iterations.
    """
    index = [np.flatnonzero(mask) for mask in full.selected]
    if not any(map(len, index)):
        return full
    eta, _ = full.predictor.moments(problem.views)
    kind = LogisticLikelihood if problem.task != "regression" else GaussianLikelihood
    T = np.ascontiguousarray(problem.T.T)[None]
    outputs = kind(T, np.broadcast_to(problem.weight, T.shape))
    likelihood = FactorLikelihood(outputs, starting_loadings(eta, n_factors))
    absent = np.stack([view.absent for view in problem.views], axis=1).astype(float)
    cells = gather(problem.views, index)
    owner = np.repeat(np.arange(len(index)), [len(columns) for columns in index])
    count = np.array([float(problem.n_samples)])
    # Intercepts live with the loadings.
    design = ColumnDesign(with_ones(cells)[None], owner[None], count, len(index), 0.0)
    q, _, history, converged = learn_variances(
        design, absent[None] if absent.any() else None, likelihood, max_iter=max_iter
    )
    q.optimise_sites(SITES_ITER, SITES_TOLERANCE)
    q, used = without_idle(q)
    selected = [mask & use for mask, use in zip(full.selected, used, strict=True)]
    read = passes(problem.views)
    return replace(
        full,
        predictor=_predictor(problem, q, index, absent),
        selected=selected,
        converged=full.converged and bool(converged.all()),
        history=full.history
        + [{"event": "factors", "passes": read, **record} for record in history],
    )


def _predictor(problem: Problem, q: WeightPosterior, index: Index, absent: Array) -> Predictor:
    """Return the predictor of factors behind outputs."""
    loadings = q.noise.loadings
    C, K = loadings.V.shape
    parts = q.design.parts(q.solution, q.s)[0]  # (M, K, n)
    return Predictor(
        [_weights(q, index)],
        np.ones((1, K)),
        problem.widths,
        noise_variance(q.noise.noise, (1, C))[0],
        mean_squares(parts, absent),
        mean_squares(np.einsum("ck,mkn->mcn", loadings.V, parts), absent),
        q.missing_view_variance()[0],
        None,
        loadings,
    )


def _weights(q: WeightPosterior, index: Index) -> WeightGaussian:
    """Return mean and covariance of the weights of the factors, whichever solver was used."""
    solution: Any = q.solution
    assert isinstance(q.design, ColumnDesign)
    if isinstance(solution, FeaturePosterior):
        cov = np.matmul(solution.half.swapaxes(-1, -2), solution.half)
        return WeightGaussian(index, solution.w, cov)
    cells = q.design.X1[0, :, 1:]
    through = KernelGaussian(solution.alpha, solution.half, q.s, 0.0, index, cells)
    return WeightGaussian(index, *through.joint([]))


def without_idle(q: WeightPosterior) -> tuple[WeightPosterior, Mask]:
    """Leave out views and factors whose removal raises the bound, the weakest first.

    Returns the posterior that is left and the mask of the views in use.
    """
    used = np.ones(q.design.n_views, dtype=bool)
    value = q.evaluate()[0].sum()
    for m in np.argsort(q.view_signal()[0].sum(axis=1), kind="stable")[:-1]:
        mask = used.copy()
        mask[m] = False
        keep = np.broadcast_to(mask.astype(float), (1, q.s.shape[1], len(mask)))
        trial = q.with_variances(q.s * q.design.spread(keep))
        if trial.optimise_sites().sum() < value:
            break
        q, used, value = trial, mask, trial.evaluate()[0].sum()
    while (k := weakest_factor(q)) is not None:
        trial = without_factor(q, k)
        if trial.optimise_sites().sum() < value:
            break
        q, value = trial, trial.evaluate()[0].sum()
    return q, used


def weakest_factor(q: WeightPosterior) -> int | None:
    """Return the factor that moves the outputs least; None where there is one factor alone."""
    if q.s.shape[1] < 2:
        return None
    strength = (q.noise.loadings.V**2).sum(axis=0) * q.moments()[0][0].var(axis=1)
    return int(strength.argmin())


def without_factor(q: WeightPosterior, k: int) -> WeightPosterior:
    """Return the other factors behind the outputs, q(w) to be recomputed."""
    assert isinstance(q.likelihood, FactorLikelihood)
    return replace(
        q,
        likelihood=q.likelihood.without_factor(k),
        noise=q.noise.without_factor(k),
        s=np.delete(q.s, k, axis=1),
        sites=Sites(*(np.delete(part, k, axis=1) for part in q.sites)),
        extra=q.extra if np.ndim(q.extra) == 0 else np.delete(q.extra, k, axis=1),
        kernel=None,
        solution=None,
    )
