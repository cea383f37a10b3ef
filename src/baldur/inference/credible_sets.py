"""Credible sets: features that may have the effect of a selected one, with probabilities.

Each selected feature has a credible set, the features that are interchangeable with it. Take
feature j out and ask of every candidate l how much it would gain in j's place, the others staying
as they are. With Q = x_l^T alpha and S = x_l^T C^-1 x_l of the posterior without j, and the slab
variance sigma^2,

    ln BF_l = sum_c [ Q^2 sigma^2/(1 + sigma^2 S) - ln(1 + sigma^2 S) ]/2,   P(l) ~ pi_l BF_l

The credible set of j is the smallest set of candidates that holds the effect with 95 % probability.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from baldur.core.types import Array, Index, IntArray
from baldur.inference.design import ColumnDesign
from baldur.inference.ensemble import Ensemble
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import triangle_squares

CREDIBLE = 0.95
"""Probability that a credible set is to hold."""


def credible_sets(
    ensemble: Ensemble,
    selected: IntArray,
    candidates: Index,
    credible: float = CREDIBLE,
) -> list[dict[str, Any]]:
    """Return the credible set of every selected feature; none without a spike-and-slab member.

    That is the smallest set of candidates, each of which could take the place of the feature, that
    holds its effect with the probability `credible`. Each record has the selected feature, pairs
    (view, column) of the features of its set and their probabilities, the most probable first, and
    the smallest absolute correlation between two of them.

    Shapes: selected (k,).
    """
    priors = [m.spike_slab for m in ensemble.members.values() if m.spike_slab is not None]
    if not priors or not len(selected):
        return []
    batch = ensemble.batch
    design = batch.candidate_design(held=False)
    X, owner = design.X1[0, :, 1:], design.owner[0]
    slab = np.mean([prior.slab[0] for prior in priors], axis=0)[:, owner]  # (C, L)
    pi = np.mean([prior.pi[0] for prior in priors], axis=0)[owner]
    k = len(selected)
    chosen = design.columns(selected[None], np.ones((1, k)))
    s = np.ascontiguousarray(slab[:, selected])[None]
    q = WeightPosterior.start(chosen, batch.likelihood(), s)  # of the selected features alone
    q.optimise_sites()
    quadratics = _quadratics_of(X[None], chosen, q.sites.h)
    correlation = _correlations(X)
    column = np.concatenate([np.asarray(part) for part in candidates])  # in its view
    out = []
    for position, j in enumerate(selected):
        without = s.copy()
        without[..., position] = 0.0
        solution = chosen.posterior(without, q.sites, chosen.kernel(without))
        # x^T alpha and x^T C^-1 x of every candidate, without the feature.
        Q, S = np.matmul(solution.alpha, X), quadratics(solution)
        # The effect is as large as it is, whoever has it: the slab is that of its own view.
        spread = 1.0 + slab[:, j, None] * np.maximum(S[0], 0.0)
        # ln of prior share times Bayes factor.
        score = np.log(pi) + 0.5 * (Q[0] ** 2 * slab[:, j, None] / spread - np.log(spread)).sum(0)
        # The other selected features have their own place already.
        score[np.delete(selected, position)] = -np.inf
        p = np.exp(score - score.max())
        p /= p.sum()
        order = np.argsort(-p, kind="stable")
        members = order[: int(np.searchsorted(np.cumsum(p[order]), credible)) + 1]
        out.append(
            {
                "feature": (int(owner[j]), int(column[j])),
                "members": list(zip(owner[members], column[members], strict=True)),
                "probability": p[members],
                "min_abs_correlation": float(correlation[np.ix_(members, members)].min()),
            }
        )
    return out


def _quadratics_of(X: Array, chosen: ColumnDesign, h: Array) -> Callable[[Any], Array]:
    """Return a function from a posterior to x_d^T C^-1 x_d of all columns of X, (1, C, L).

    Posteriors are those of the chosen columns at one h, so their products with X are shared.
    Shapes: X (1, n, L), h (1, C, n).
    """
    if not chosen.uses_features:
        return lambda solution: np.asarray(solution.quadratics(X, h))
    cross = np.stack([np.matmul((each[:, None] * chosen.X1[0]).T, X[0]) for each in h[0]])[None]
    diagonal = np.matmul(h, X**2)
    return lambda solution: np.maximum(diagonal - triangle_squares(solution.half, cross), 0.0)


def _correlations(X: Array) -> Array:
    """Return the absolute correlations of the columns of X, (L, L)."""
    centred = X - X.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    correlation = np.abs(centred.T @ centred)
    np.fill_diagonal(correlation, 1.0)
    return correlation
