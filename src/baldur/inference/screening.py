"""Which features a fit looks at: the best by marginal score, and those that come back.

A feature that is screened out is out of the model, not forgotten: once a posterior is known, one
pass over all features shows which of them it would take in, and the fit is repeated with those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fixed_prior import outside_quadratic
from baldur.inference.inclusion import Inclusion
from baldur.inference.mixture import Index, gather, owners
from baldur.inference.scoring import Task
from baldur.inference.starts import outcome_residual
from baldur.model.likelihood import Likelihood
from baldur.model.structured.inclusion import cavity, inclusion_probability, weight_in
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

CANDIDATES = 1500
"""Features that enter the reference: the best by marginal score."""
TRIALS = 200
"""Features outside, those that go best with the residual, whose probability is computed."""
RETURN = 0.5
"""Probability of being in from which a feature comes back: more likely in than out."""


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

    @property
    def widths(self) -> Array:
        """Features per view, (M,)."""
        return np.array([view.shape[1] for view in self.views], dtype=float)


def best_features(scores: Sequence[Array], limit: int) -> Index:
    """Return the features of each view that are among the `limit` best of all views."""
    flat = np.concatenate(scores)
    best = np.zeros(flat.size, dtype=bool)
    best[np.argsort(-flat, kind="stable")[:limit]] = True
    edges = np.concatenate([[0], np.cumsum([len(s) for s in scores])])
    return [np.flatnonzero(best[edges[m] : edges[m + 1]]) for m in range(len(scores))]


def candidates(problem: Problem, fits: Sequence[Rows]) -> list[Index]:
    """Return the candidates of each set of training rows: one pass for all of them."""
    columns = []
    for rows in fits:
        residual = outcome_residual(problem.likelihood.rows(rows))
        residual = residual / np.maximum(np.linalg.norm(residual, axis=0), 1e-12)
        columns.append(spread(residual, rows, problem.n_samples))
    return [best_features(scores, CANDIDATES) for scores in strongest(problem, columns)]


def spread(values: Array, rows: Rows, n_samples: int) -> Array:
    """Return values of some rows (n, C) as those of all, zero elsewhere, (N, C)."""
    full = np.zeros((n_samples, values.shape[1]))
    full[rows] = values
    return full


def strongest(problem: Problem, columns: Sequence[Array]) -> list[list[Array]]:
    """Return max_c |x_d^T a_c| for each (N, C) array of `columns` and every view: one pass."""
    edges = np.concatenate([[0], np.cumsum([part.shape[1] for part in columns])])
    projected = [np.abs(view.project(np.hstack(columns))) for view in problem.views]
    return [
        [p[:, edges[f] : edges[f + 1]].max(axis=1) for p in projected] for f in range(len(columns))
    ]


def returning(
    problem: Problem,
    fits: Sequence[Rows],
    inside: Sequence[Index],
    found: Sequence[list[Inclusion]],
) -> list[Index]:
    """Return, for each fit, the features outside its candidates that its posteriors would take in.

    The features outside with the largest |x_d^T alpha| are tried, each by its exact probability
    of being in; one pass and a gather of few columns for all fits.

    Parameters
    ----------
    problem : Problem
    fits : list of int arrays, the training rows of each fit
    inside : list of Index, the candidates of each fit
    found : list of lists of Inclusion, the posteriors of each fit

    Returns
    -------
    list of Index
    """
    nothing = [np.zeros(0, dtype=np.intp) for _ in problem.views]
    if sum(len(columns) for columns in inside[0]) == problem.widths.sum():
        return [nothing] * len(fits)
    alphas = []
    for rows, runs in zip(fits, found, strict=True):
        parts = [np.stack([side.alpha for side in run.outputs.sides], axis=1) for run in runs]
        alphas.append(spread(np.hstack(parts), rows, problem.n_samples))
    scores = strongest(problem, alphas)
    trials = []
    for f, index in enumerate(inside):
        for m, columns in enumerate(index):
            scores[f][m][columns] = -1.0
        trials.append(best_features(scores[f], TRIALS))
    union = [np.unique(np.concatenate([t[m] for t in trials])) for m in range(len(problem.views))]
    X = gather(problem.views, union)
    back = []
    for f, rows in enumerate(fits):
        place = positions(union, trials[f])
        rho = _outside_probability(X[np.ix_(rows, place)], owners(trials[f]), found[f])
        taken = rho > RETURN
        ends = np.cumsum([len(columns) for columns in trials[f]])[:-1]
        parts = np.split(taken, ends)
        back.append([t[mask] for t, mask in zip(trials[f], parts, strict=True)])
    return back


def _outside_probability(X: Array, owner: NDArray[np.intp], runs: Sequence[Inclusion]) -> Array:
    """Return the probability that each column outside the model is in, averaged over `runs`."""
    rhos = []
    for run in runs:
        alphas = np.stack([side.alpha for side in run.outputs.sides])
        S = np.stack([outside_quadratic(run.outputs, c, X) for c in range(len(alphas))])
        cav = cavity(np.zeros_like(S), alphas @ X, S)
        odds = np.log(run.pi / (1.0 - run.pi))[owner]
        rhos.append(inclusion_probability(weight_in(cav, run.slab[:, owner]), odds))
    return np.asarray(np.mean(rhos, axis=0))


def merged(first: Index, second: Index) -> Index:
    """Return the features of either."""
    return [np.union1d(a, b) for a, b in zip(first, second, strict=True)]


def positions(union: Index, index: Index) -> NDArray[np.intp]:
    """Return where the features of `index` stand among the gathered columns of `union`."""
    edges = np.concatenate([[0], np.cumsum([len(u) for u in union])])
    parts = [edges[m] + np.searchsorted(union[m], index[m]) for m in range(len(union))]
    return np.concatenate(parts)
