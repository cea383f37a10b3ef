"""Fixed point of the in-or-out prior on a set of candidate columns."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fixed_prior import Outputs, feature_statistics, posterior
from baldur.inference.mixture import view_signals
from baldur.inference.starts import initial_sites
from baldur.model.likelihood import GaussianOutputs, Likelihood, Sites
from baldur.model.structured.inclusion import (
    cavity,
    effective_variance,
    inclusion_odds,
    inclusion_probability,
    slab_second_moment,
)

Array = NDArray[np.float64]

PRIOR_IN, PRIOR_OUT = 2.0, 2.0
"""Beta prior of each pi_m: two features seen in and two seen out before any data."""
SLAB_COUNT = 4.0
"""The slab variance of a view starts at 1, and four features' worth of that is kept as prior."""
EXPECTED_IN = 5.0
FIRST_DAMPING, LAST_DAMPING, DAMPING_DECAY = 0.5, 0.1, 0.985
CALM = 3e-3
"""Largest change of any probability (or of a log slab variance) that counts as calm."""
MIN_ITER, LEARN_AFTER = 10, 3
SETTLING = 5
"""First iterations, in which the sites get extra steps; afterwards they follow along."""


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
    kappa: float | None,
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
    kappa : float or None
        See `baldur.model.structured.inclusion`; None keeps every candidate in, so that only the
        slab variance of each view is learned.
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
    everything = kappa is None
    pi = np.ones(M) if everything else np.minimum(0.3, EXPECTED_IN / n_features)
    count = np.maximum(np.bincount(owner, minlength=M), 1.0)
    slab = np.tile(1.0 / (M * count), (C, 1)) if everything else np.ones((C, M))
    rho = pi[owner]
    sites = initial_sites(likelihood, N)
    out = Outputs(X, rho * slab[:, owner], sites, [], np.zeros((N, C)))
    result = Inclusion(out, rho, pi, slab)
    damping, started = FIRST_DAMPING, time.perf_counter()
    for iteration in range(max_iter):
        out.sides = posterior(X, out.s, out.sites)
        for _ in range(2 if iteration < SETTLING else 0):
            _follow_sites(out, likelihood)
            out.sides = posterior(X, out.s, out.sites)
        if absent is not None:
            out.extra = absent @ view_signals(out, owner, absent)
        value = likelihood.expected(*out.moments()) - sum(side.kl for side in out.sides)
        projected, S = feature_statistics(out)
        cav = cavity(out.s, projected, S)
        _follow_sites(out, likelihood)
        wide_slab = slab[:, owner]
        if kappa is None:
            new_slab = _everything_in(out, S, owner, M)
            change = float(np.abs(np.log(new_slab / slab)).max())
            slab = new_slab
            out.s = slab[:, owner]
        else:
            second = slab_second_moment(cav, wide_slab)
            odds = inclusion_odds(cav, wide_slab, np.log(pi / (1.0 - pi))[owner])
            new = inclusion_probability(odds)
            change = float(np.abs(new - rho).max())
            rho = new
            target = effective_variance(rho, cav, wide_slab, kappa)
            out.s = out.s ** (1.0 - damping) * np.maximum(target, 1e-14) ** damping
            if iteration > LEARN_AFTER:
                pi, slab = _learn(rho, second, owner, n_features, pi, slab)
        damping = max(LAST_DAMPING, damping * DAMPING_DECAY)
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
    out.sides = posterior(X, out.s, out.sites)
    return result


def _follow_sites(out: Outputs, likelihood: Likelihood) -> None:
    """Half a step of the sites; exact for Gaussian outputs, whose noise is learned first."""
    mean, var = out.moments()
    if isinstance(likelihood, GaussianOutputs):
        likelihood.update_noise(mean, var)
        out.sites = likelihood.sites(mean, var)
        return
    target = likelihood.sites(mean, var)
    out.sites = Sites(0.5 * (out.sites.h + target.h), 0.5 * (out.sites.j + target.j))


def _everything_in(out: Outputs, S: Array, owner: NDArray[np.intp], n_views: int) -> Array:
    """Return slab variances (C, M) when every candidate is in: MacKay's fixed point.

    sigma^2 = sum_d <w_d>^2 / sum_d (1 - Var w_d/sigma^2), the denominator being the number of
    weights the data determine. The expectation step has the same fixed point, but moves by about
    N/D of the way each time and never arrives where features far outnumber samples.
    """
    w, _ = out.weights()
    determined = out.s * S
    found = [
        np.bincount(owner, mean**2, minlength=n_views)
        / np.maximum(np.bincount(owner, used, minlength=n_views), 1e-12)
        for mean, used in zip(w, determined, strict=True)
    ]
    return np.clip(np.array(found), 1e-12, 1e6)


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
