"""Fixed point of the spike-and-slab prior on a set of candidate columns."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Columns
from baldur.inference.gaussian import Gaussian
from baldur.inference.members import (
    PREDICTOR_SD,
    SETTLED,
    Member,
    follow,
    following_length,
)
from baldur.model.inclusion import (
    NONLOCAL,
    cavity,
    inclusion_probability,
    variance_between,
    variance_by_mean,
    weight_in,
)
from baldur.model.likelihood import Likelihood
from baldur.model.posterior import Side

Array = NDArray[np.float64]

PRIOR_IN, PRIOR_OUT = 1.0, 1.0
"""Beta prior of each pi_m: uniform."""
SLAB_COUNT = 1.0
"""The slab variance of a view starts at 1, and one feature's worth of that is kept as prior."""
EXPECTED_IN = 5.0
FIRST_LENGTH, LENGTHS = 0.5, (0.05, 0.7)
LONGER, SHORTER = 1.1, 0.6
"""Steps of ln s are parts of the way to its target, longer while they go on in one direction and
shorter where they turn, as with features that stand for each other."""
CALM = 1e-2
"""Largest change of any probability that counts as calm."""
MIN_ITER, LEARN_AFTER = 10, 3
NEGLIGIBLE = 1e-3
"""A column of which the data determine less than this part of a weight rests: the others are moved
without it, and it is looked at again every few iterations. The posterior at the end has all."""
LOOK_EVERY = 4


@dataclass
class Inclusion:
    """What the spike-and-slab prior learned.

    Attributes
    ----------
    rho : (L,) probability that each candidate is in
    pi : (M,) share of features that are in, per view
    slab : (C, M) variance of the weights that are in
    """

    rho: Array
    pi: Array
    slab: Array


def fit_inclusion(
    columns: Columns,
    absent: Array,
    n_features: Array,
    likelihood: Likelihood,
    *,
    by_mean: bool,
    start: Member | None = None,
    max_iter: int = 200,
) -> Member:
    """Iterate q(w), P(in), the share in and the slab variance to their common fixed point.

    Parameters
    ----------
    columns : Columns
        Candidate columns, standardised.
    absent : (N, M) array of 0 and 1
        Rows that lack a view.
    n_features : (M,) array
        Features per view, candidates or not: those screened out count as out.
    likelihood : Likelihood
    by_mean : bool
        Which variances stand for the prior: those that give the weights their means, or wider
        ones; see `baldur.model.inclusion`.
    start : Member, optional
        A fit to the same columns and rows, to begin where it ended: the fixed points of the two
        kinds of variances lie close to each other.
    max_iter : int
        Most iterations.

    Returns
    -------
    Member
        Its `details` are an `Inclusion`.
    """
    C, M = likelihood.n_outputs, len(n_features)
    owner, X = columns.owner, columns.X
    pi = np.minimum(0.3, EXPECTED_IN / n_features)
    slab = np.ones((C, M))
    rho = pi[owner]
    if start is not None:
        pi, slab, rho = start.details.pi, start.details.slab, start.details.rho.copy()
    s = rho * slab[:, owner]
    second = s.copy()
    squares = X**2
    length, step = np.full_like(s, FIRST_LENGTH), np.zeros_like(s)
    q = Gaussian.start(columns, likelihood, s, absent)
    if start is not None:
        q.sites = start.points[int(start.weights.sum(axis=1).argmax())].sites
    member = Member([q], np.ones((1, C)), converged=False)
    variances = variance_by_mean if by_mean else variance_between
    active = np.ones(len(owner), dtype=bool)
    part = columns
    started = time.perf_counter()
    for iteration in range(max_iter):
        look = iteration % LOOK_EVERY == 0
        if look:
            now = np.asarray((s * (q.sites.h.T @ squares) > NEGLIGIBLE).any(axis=0))
            if (now != active).any():
                active, part = now, columns.only(now)
        q.features, q.s = part, np.ascontiguousarray(s[:, active])
        q.refresh()
        q.refresh_extra()
        at = np.arange(len(owner)) if look else np.flatnonzero(active)
        projected, S = (
            _statistics(q.sides, part, active, X, q.sites.h) if look else part.statistics(q.sides)
        )
        follow(q, following_length(iteration))
        cav = cavity(s[:, at], projected, S)
        wide_slab = slab[:, owner[at]]
        found = weight_in(cav, wide_slab, NONLOCAL)
        new = inclusion_probability(found, np.log(pi / (1.0 - pi))[owner[at]])
        change = float(np.abs(new - rho[at]).max(initial=0.0))
        rho[at], second[:, at] = new, found.second
        target = variances(new, found, cav, wide_slab)
        before, now_step = step[:, at], np.log(np.maximum(target, 1e-14) / s[:, at])
        grown = np.where(now_step * before >= 0, length[:, at] * LONGER, length[:, at] * SHORTER)
        length[:, at] = np.clip(grown, *LENGTHS)
        step[:, at] = now_step
        s[:, at] *= np.exp(length[:, at] * now_step)
        if iteration > LEARN_AFTER:
            pi, slab = _learn(rho, second, owner, n_features, pi, slab)
        member.history.append(_record(rho, owner, M, C, change, started))
        if look and change < CALM and iteration > MIN_ITER:
            member.converged = True
            break
    member.details = Inclusion(rho, pi, slab)
    # Not integrated over scales, as the other members are: these variances have seen the data
    # feature by feature, and the evidence would count it again and prefer them too large.
    q.features, q.s = columns, s
    q.settle(max_iter=10, tol=SETTLED)
    return member


def _record(
    rho: Array, owner: NDArray[np.intp], M: int, C: int, change: float, started: float
) -> dict[str, Any]:
    return {
        "active_features": np.bincount(owner, rho > 0.5, minlength=M).astype(int).tolist(),
        "expected_features": float(rho.sum()),
        "n_factors": C,
        "change": change,
        "seconds": time.perf_counter() - started,
    }


def _statistics(
    sides: list[Side], part: Columns, active: NDArray[np.bool_], X: Array, h: Array
) -> tuple[Array, Array]:
    """Return x_d^T alpha_c and x_d^T C_c^-1 x_d of all columns, each (C, L)."""
    if active.all():
        return part.statistics(sides)
    alphas = np.stack([side.alpha for side in sides])
    S = np.empty((len(alphas), X.shape[1]))
    S[:, active] = part.statistics(sides)[1]
    rest = X[:, ~active]
    S[:, ~active] = [side.outside_quadratic(rest, h[:, c]) for c, side in enumerate(sides)]
    return alphas @ X, S


def _learn(
    rho: Array,
    second: Array,
    owner: NDArray[np.intp],
    n_features: Array,
    pi: Array,
    slab: Array,
) -> tuple[Array, Array]:
    """Move the share in and the slab variances half way to their expectations."""
    M = len(n_features)
    count = np.bincount(owner, rho, minlength=M)
    share = (count + PRIOR_IN) / (n_features + PRIOR_IN + PRIOR_OUT)
    total = np.stack([np.bincount(owner, rho * row, minlength=M) for row in second])
    # The prior of the s.d. of the linear predictor, whose variance has slab * count of each view.
    reach = slab * count / PREDICTOR_SD**2
    variance = (total + SLAB_COUNT) / (count + SLAB_COUNT + reach)
    return np.clip(0.5 * (pi + share), 1e-9, 0.95), 0.5 * (slab + variance)
