"""Credible sets: for each selected feature, the features that are interchangeable with it.

Take selected feature j out and ask of every candidate l how much it would gain in j's place, the
others staying as they are. With Q = x_l^T alpha and S = x_l^T C^-1 x_l of the posterior without j,
and the slab variance sigma^2,

    ln BF_l = sum_c [ Q^2 sigma^2/(1 + sigma^2 S) - ln(1 + sigma^2 S) ]/2,   P(l) ~ pi_l BF_l

The credible set of j is the smallest set of candidates that holds the effect with 95 % probability.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.core.types import Array, Index, IntArray
from baldur.inference.design import ColumnDesign
from baldur.inference.ensemble_members import Ensemble
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import triangle_squares

CREDIBLE = 0.95
"""Probability that a credible set is to hold."""


@dataclass(frozen=True)
class CredibleSet:
    """The credible set of one selected feature."""

    view: int  # view, feature: the selected feature
    feature: int
    views: IntArray  # views, features: (n,); the features of the set, most probable first
    features: IntArray
    probability: Array  # (n,)
    min_abs_correlation: float  # smallest |correlation| between two of them


def credible_sets(
    ensemble: Ensemble,
    selected: IntArray,
    candidates: Index,
    credible: float = CREDIBLE,
) -> list[CredibleSet]:
    """Return the credible set of every selected feature; none without a spike-and-slab member.

    Shapes: selected (k,).
    """
    found = [m.spike_slab for m in ensemble.members.values() if m.spike_slab is not None]
    if not found or not len(selected):
        return []
    batch = ensemble.batch
    design = batch.candidate_design(held=False)
    X, owner = design.X1[0, :, 1:], design.owner[0]
    slab = np.mean([f.slab[0] for f in found], axis=0)[:, owner]  # (C, L)
    pi = np.mean([f.pi[0] for f in found], axis=0)[owner]
    k = len(selected)
    chosen = design.columns(selected[None], np.ones((1, k)))
    s = np.ascontiguousarray(slab[:, selected])[None]
    q = WeightPosterior.start(chosen, batch.likelihood(), s, batch.absent())
    q.optimise_sites()
    quadratics = _quadratics_of(X[None], chosen, q.sites.h)
    correlation = _correlations(X)
    place = np.concatenate([np.asarray(part) for part in candidates])
    out = []
    for position, j in enumerate(selected):
        without = s.copy()
        without[..., position] = 0.0
        solution = chosen.posterior(without, q.sites, chosen.kernel(without))
        Q, S = np.matmul(solution.alpha, X), quadratics(solution)
        # The effect is as large as it is, whoever has it: the slab is that of its own view.
        spread = 1.0 + slab[:, j, None] * np.maximum(S[0], 0.0)
        score = np.log(pi) + 0.5 * (Q[0] ** 2 * slab[:, j, None] / spread - np.log(spread)).sum(0)
        # The other selected features have their own place already.
        score[np.delete(selected, position)] = -np.inf
        p = np.exp(score - score.max())
        p /= p.sum()
        order = np.argsort(-p, kind="stable")
        members = order[: int(np.searchsorted(np.cumsum(p[order]), credible)) + 1]
        out.append(
            CredibleSet(
                int(owner[j]),
                int(place[j]),
                owner[members],
                place[members],
                p[members],
                float(correlation[np.ix_(members, members)].min()),
            )
        )
    return out


def _quadratics_of(X: Array, chosen: ColumnDesign, h: Array) -> Callable[[Any], Array]:
    """Return the function that gives x_d^T C^-1 x_d of all columns (1, n, L) under a posterior.

    Posteriors are those of the chosen columns at one h, so their products with X are shared.
    """
    if not chosen.uses_features:
        return lambda solution: np.asarray(solution.quadratics(X, h))
    cross = np.stack([np.matmul((each[:, None] * chosen.X1[0]).T, X[0]) for each in h[0]])[None]
    own = np.matmul(h, X**2)
    return lambda solution: np.maximum(own - triangle_squares(solution.half, cross), 0.0)


def _correlations(X: Array) -> Array:
    """Return the absolute correlations of the columns of X, (L, L)."""
    centred = X - X.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    found = np.abs(centred.T @ centred)
    np.fill_diagonal(found, 1.0)
    return found
