"""Fixed point of the in-or-out prior on a set of candidate columns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fixed_prior import (
    Outputs,
    feature_statistics,
    follow_sites,
    following_length,
    outside_quadratic,
    site_bound,
)
from baldur.inference.mixture import view_signals
from baldur.inference.starts import initial_sites
from baldur.model.likelihood import Likelihood
from baldur.model.structured.inclusion import (
    cavity,
    inclusion_probability,
    variance_by_mean,
    variance_by_prior,
    weight_in,
)

Array = NDArray[np.float64]

PRIOR_IN, PRIOR_OUT = 2.0, 2.0
"""Beta prior of each pi_m: two features seen in and two seen out before any data."""
SLAB_COUNT = 4.0
"""The slab variance of a view starts at 1, and four features' worth of that is kept as prior."""
EXPECTED_IN = 5.0
FIRST_LENGTH, LENGTHS = 0.5, (0.05, 0.7)
LONGER, SHORTER = 1.1, 0.6
"""Steps of ln s are parts of the way to its target, longer while they go on in one direction and
shorter where they turn, as with features that stand for each other."""
CALM = 3e-3
"""Largest change of any probability that counts as calm."""
MIN_ITER, LEARN_AFTER = 10, 3
SETTLING = 5
"""First iterations, in which the sites get extra steps; afterwards they follow along."""
NEGLIGIBLE = 1e-3
"""On the feature side, a column of which the data determine less than this part of a weight rests:
the others are moved without it. The posterior at the end has all columns."""


@dataclass
class Inclusion:
    """Posterior under the in-or-out prior.

    Attributes
    ----------
    outputs : Outputs, posterior over all candidate columns
    rho : (L,) probability that each candidate is in
    pi : (M,) learned share of features that are in, per view
    slab : (C, M) learned variance of the weights that are in
    history : one record per iteration
    converged : bool
    """

    outputs: Outputs
    rho: Array
    pi: Array
    slab: Array
    history: list[dict[str, Any]] = field(default_factory=list)
    converged: bool = False


def run_inclusion(
    X: Array,
    owner: NDArray[np.intp],
    n_features: Array,
    likelihood: Likelihood,
    *,
    by_mean: bool,
    absent: Array | None = None,
    max_iter: int = 200,
) -> Inclusion:
    """Iterate q(w), P(in), the share in and the slab variance to their common fixed point.

    Parameters
    ----------
    X : (N, L) array
        Candidate columns, standardised.
    owner : (L,) array of int
        The view of each candidate.
    n_features : (M,) array
        Features per view, candidates or not: those screened out count as out.
    likelihood : Likelihood
    by_mean : bool
        Which variances stand for the prior: those that give the weights their means, or the
        expected ones; see `baldur.model.structured.inclusion`.
    absent : (N, M) array of 0 and 1, optional
        Rows that lack a view.
    max_iter : int
        Most iterations.

    Returns
    -------
    Inclusion
    """
    C, M = likelihood.n_outputs, len(n_features)
    N = len(X)
    pi = np.minimum(0.3, EXPECTED_IN / n_features)
    slab = np.ones((C, M))
    rho = pi[owner]
    sites = initial_sites(likelihood, N)
    out = Outputs(X, rho * slab[:, owner], sites, [], np.zeros((N, C)))
    result = Inclusion(out, rho, pi, slab)
    power = (X**2).sum(axis=0)
    length, step = np.full_like(out.s, FIRST_LENGTH), np.zeros_like(out.s)
    started = time.perf_counter()
    for iteration in range(max_iter):
        part, inside = _without_negligible(out, power)
        for _ in range(2 if iteration < SETTLING else 0):
            follow_sites(part, likelihood)
            part.refresh()
        if absent is not None:
            part.extra = out.extra = absent @ view_signals(part, owner[inside], absent)
        cav = cavity(out.s, *_statistics(part, inside, X))
        value = site_bound(part, likelihood)
        follow_sites(part, likelihood, following_length(iteration))
        out.sites = part.sites
        wide_slab = slab[:, owner]
        found = weight_in(cav, wide_slab)
        new = inclusion_probability(found, np.log(pi / (1.0 - pi))[owner])
        change = float(np.abs(new - rho).max(initial=0.0))
        rho = new
        if by_mean:
            target = variance_by_mean(rho, found, cav, wide_slab)
        else:
            target = variance_by_prior(rho, wide_slab)
        before, step = step, np.log(np.maximum(target, 1e-14) / out.s)
        length = np.where(step * before >= 0, length * LONGER, length * SHORTER)
        length = np.clip(length, *LENGTHS)
        out.s = out.s * np.exp(length * step)
        if iteration > LEARN_AFTER:
            pi, slab = _learn(rho, found.second, owner, n_features, pi, slab)
        result.history.append(
            {
                "bound": value,  # given the prior variances of this iteration; need not rise
                "active_features": np.bincount(owner, rho > 0.5, minlength=M).astype(int).tolist(),
                "expected_features": float(rho.sum()),
                "n_factors": C,
                "change": change,
                "seconds": time.perf_counter() - started,
            }
        )
        if change < CALM and iteration > MIN_ITER:
            result.converged = True
            break
    result.rho, result.pi, result.slab = rho, pi, slab
    out.refresh()
    return result


def _without_negligible(out: Outputs, power: Array) -> tuple[Outputs, NDArray[np.bool_]]:
    """Return q on the columns that matter, and which these are; all of them on the sample side."""
    narrow = out.X.shape[1] < len(out.X)
    inside = np.asarray((out.s * power > (NEGLIGIBLE if narrow else -1.0)).any(axis=0))
    part = out
    if not inside.all():
        part = Outputs(out.X[:, inside], out.s[:, inside], out.sites, [], out.extra)
    part.refresh()
    return part, inside


def _statistics(part: Outputs, inside: NDArray[np.bool_], X: Array) -> tuple[Array, Array]:
    """Return x_d^T alpha_c and x_d^T C_c^-1 x_d of all columns, each (C, L)."""
    if inside.all():
        return feature_statistics(part)
    alphas = np.stack([side.alpha for side in part.sides])
    S = np.empty((len(alphas), X.shape[1]))
    S[:, inside] = feature_statistics(part)[1]
    rest = X[:, ~inside]
    S[:, ~inside] = [outside_quadratic(part, c, rest) for c in range(len(alphas))]
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
    variance = (total + SLAB_COUNT) / (count + SLAB_COUNT)
    return np.clip(0.5 * (pi + share), 1e-9, 0.95), 0.5 * (slab + variance)
