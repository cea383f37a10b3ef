"""Fewer latent factors than outputs: loadings learned on the selected features.

A factor model is one more likelihood (`baldur.model.loadings`) under the prior with one variance
per view. It starts from the leading directions of the ensemble's linear predictors.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import columns_of
from baldur.inference.fitted import Fitted, from_mixture
from baldur.inference.gaussian import Gaussian, mean_squares
from baldur.inference.members import fit_by_view
from baldur.inference.mixture import Implicit, Mixture
from baldur.inference.new_rows import absent_matrix
from baldur.inference.predictive import mixture_moments
from baldur.inference.reference import noise_variance
from baldur.inference.screening import Problem
from baldur.model.loadings import FactorLikelihood, starting_loadings
from baldur.views.reads import passes

Mask = NDArray[np.bool_]


def fit_factors_on_selected(
    problem: Problem, full: Fitted, n_factors: int, *, max_iter: int
) -> Fitted:
    """Return the posterior of `n_factors` factors and their loadings on the selected features.

    Views and factors whose removal raises the bound are left out. Without a selected feature the
    answer is `full` itself.

    Parameters
    ----------
    problem : Problem
    full : Fitted
        The ensemble's answer with one factor per output.
    n_factors : int
        At most so many factors, fewer than outputs.
    max_iter : int
        Most iterations.
    """
    index = [np.flatnonzero(mask) for mask in full.selected]
    if not any(map(len, index)):
        return full
    eta, _ = mixture_moments(full.moments(problem.views), full.weights)
    likelihood = FactorLikelihood(problem.likelihood, starting_loadings(eta, n_factors))
    columns, absent = columns_of(problem.views, index, 0.0), absent_matrix(problem.views)
    member = fit_by_view(columns, absent, likelihood, max_iter=max_iter)
    q, used = without_idle(member.points[0])
    noise = noise_variance(q.noise.noise) * np.ones(problem.likelihood.n_outputs)
    component = Implicit(q.features, q.s, q.sides, index, [], noise, q.signal(), q.lacking())
    widths = [view.shape[1] for view in problem.views]
    loadings = q.noise.loadings
    parts = q.features.parts(q.sides, q.s) @ loadings.V.T
    read = passes(problem.views)
    return from_mixture(
        Mixture([component], np.ones((1, len(q.sides))), widths, loadings),
        loadings.V,
        mean_squares(parts, absent),
        selected=[mask & use for mask, use in zip(full.selected, used, strict=True)],
        spaces=full.spaces,
        sparsity=full.sparsity,
        converged=full.converged and member.converged,
        history=full.history
        + [{"event": "factors", "passes": read, **record} for record in member.history],
        answer=full.answer,
    )


def without_idle(q: Gaussian) -> tuple[Gaussian, Mask]:
    """Leave out views and factors whose removal raises the bound, the weakest first.

    Returns the posterior that is left and the mask of the views in use.
    """
    used = np.ones(q.features.n_views, dtype=bool)
    value = q.bound().sum()
    for m in np.argsort(q.signal().sum(axis=1), kind="stable")[:-1]:
        mask = used.copy()
        mask[m] = False
        trial = q.with_variances(q.s * q.features.spread(mask[None].astype(float)))
        if trial.settle().sum() < value:
            break
        q, used, value = trial, mask, trial.bound().sum()
    while (k := q.weakest_factor()) is not None:
        trial = q.without_factor(k)
        if trial.settle().sum() < value:
            break
        q, value = trial, trial.bound().sum()
    return q, used
