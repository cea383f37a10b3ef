"""Features that stand for each other: for each kept feature, who could be in its place.

Take kept feature j out and ask of every candidate l how much it would gain in j's place, the others
staying as they are. With Q = x_l^T alpha and S = x_l^T C^-1 x_l of the posterior without j, and the
variance sigma^2 of weights that are in,

    ln BF_l = sum_c [ Q^2 sigma^2/(1 + sigma^2 S) - ln(1 + sigma^2 S) ]/2,   P(l) ~ pi_l exp(ln
    BF_l)

The credible set of j is the smallest set of candidates that holds the effect with 95 % probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from baldur.inference.gaussian import Gaussian
from baldur.inference.inclusion import Inclusion
from baldur.inference.new_rows import Index
from baldur.inference.reference import Reference

Array = NDArray[np.float64]

CREDIBLE = 0.95


@dataclass(frozen=True)
class StandIns:
    """The credible set of one kept feature.

    Attributes
    ----------
    view, feature : int, the kept feature
    views, features : (n,) int arrays, who could be in its place, most probable first
    probability : (n,) array
    min_abs_correlation : float, smallest |correlation| between two of them
    """

    view: int
    feature: int
    views: NDArray[np.intp]
    features: NDArray[np.intp]
    probability: Array
    min_abs_correlation: float


def stand_ins(
    reference: Reference,
    kept: NDArray[np.intp],
    index: Index,
    credible: float = CREDIBLE,
) -> list[StandIns]:
    """Return the credible set of every kept feature.

    Parameters
    ----------
    reference : Reference, on all rows
    kept : (k,) kept features, counted among the candidates
    index : candidates of each view
    credible : float
        Probability that each set is to hold.
    """
    columns = reference.data.columns
    X, owner = columns.X[reference.rows], columns.owner
    found = [m.details for m in reference.members.values() if isinstance(m.details, Inclusion)]
    slab = np.mean([f.slab for f in found], axis=0)[:, owner]  # (C, L)
    pi = np.mean([f.pi for f in found], axis=0)[owner]
    C = len(slab)
    q = Gaussian.start(
        columns.within(reference.rows).only(kept),
        reference.likelihood,
        np.ascontiguousarray(slab[:, kept]),
        reference.data.absent[reference.rows],
    )
    q.settle()
    place = np.concatenate([np.asarray(part) for part in index])
    out = []
    for position, j in enumerate(kept):
        s = q.s.copy()
        s[:, position] = 0.0
        sides = q.features.posterior(s, q.sites)
        score = np.log(pi)
        for c in range(C):
            Q = sides[c].alpha @ X
            S = sides[c].outside_quadratic(X, q.sites.h[:, c])
            # The effect is as large as it is, whoever has it: the slab is that of its own view.
            spread = 1.0 + slab[c, j] * np.maximum(S, 0.0)
            score = score + 0.5 * (Q**2 * slab[c, j] / spread - np.log(spread))
        # The other kept features have their own place already.
        score[np.delete(kept, position)] = -np.inf
        p = np.exp(score - score.max())
        p /= p.sum()
        order = np.argsort(-p, kind="stable")
        members = order[: int(np.searchsorted(np.cumsum(p[order]), credible)) + 1]
        out.append(
            StandIns(
                int(owner[j]),
                int(place[j]),
                owner[members],
                place[members],
                p[members],
                _smallest_correlation(X[:, members]),
            )
        )
    return out


def _smallest_correlation(X: Array) -> float:
    if X.shape[1] < 2:
        return 1.0
    centred = X - X.mean(axis=0)
    centred /= np.maximum(np.linalg.norm(centred, axis=0), 1e-300)
    return float(np.abs(centred.T @ centred).min())
