"""Posterior with every feature in: one prior variance per view and output, none per feature."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.all_features import AllFeatures
from baldur.inference.fixed_prior import follow_sites, following_length, settle_sites, site_bound
from baldur.inference.starts import initial_sites
from baldur.model.likelihood import Likelihood, Sites
from baldur.model.structured.state import Side

Array = NDArray[np.float64]

CALM = 1e-3
"""Largest change of a view's prior variance, as a share of all views', that counts as calm."""
MIN_ITER = 5
LARGE_VARIANCE = 25.0
"""A view's part of the linear predictor has, a priori, an exponential variance of mean 50.

Without that, variances grow for ever where the classes can be separated.
"""
LONGEST_STEP = 8.0
SETTLING = 5
"""First iterations, in which the sites get extra steps; afterwards they follow along."""


@dataclass
class Everything:
    """q with every feature in.

    Attributes
    ----------
    features : AllFeatures, on the training rows
    slab : (C, M) prior variances, 0 for a view that is out
    sites : Sites
    sides : list of C posteriors
    extra : (N, C) variance of rows that lack a view
    absent : (N, M) array, 1 where a row lacks a view
    bounds : list of float, the bound after each step at fixed variances
    history : one record per iteration
    converged : bool
    """

    features: AllFeatures
    slab: Array
    sites: Sites
    sides: list[Side]
    extra: Array
    absent: Array
    bounds: list[float] = field(default_factory=list)
    history: list[dict[str, Any]] = field(default_factory=list)
    converged: bool = False

    def refresh(self) -> None:
        """Recompute q(w) at the present sites and variances."""
        self.sides = self.features.posterior(self.slab, self.sites)

    def moments(self) -> tuple[Array, Array]:
        """Return <eta> and Var eta on the training rows, each (N, C)."""
        mean = np.stack([side.mean for side in self.sides], axis=1)
        var = np.stack([side.var for side in self.sides], axis=1) + self.extra
        return mean, np.maximum(var, 1e-12)

    def parts(self) -> Array:
        """Return each view's part of <eta>, (M, N, C)."""
        return self.features.parts(self.sides, self.slab)

    def signal(self) -> Array:
        """Return the mean square of each view's part over the rows that have it, (M, C)."""
        has = 1.0 - self.absent
        total = np.einsum("mnc,nm->mc", self.parts() ** 2, has)
        return total / np.maximum(has.sum(axis=0), 1.0)[:, None]


def run_everything(
    features: AllFeatures, absent: Array, likelihood: Likelihood, max_iter: int = 200
) -> Everything:
    """Iterate q(w) and the prior variance of each view to their common fixed point.

    sigma^2 = sum_d <w_d>^2 / sum_d (1 - Var w_d/sigma^2), the denominator being the number of
    weights the data determine (MacKay). The expectation step has the same fixed point, but moves
    by about N/D of the way each time and never arrives where features far outnumber samples. Every
    third step is extrapolated from the two before it.

    With the prior of each view's variance, the denominator has v/25 added, where v is the variance
    that sigma^2 gives the view's part of eta.

    Parameters
    ----------
    features : AllFeatures
    absent : (N, M) array of 0 and 1
    likelihood : Likelihood
    max_iter : int

    Returns
    -------
    Everything
    """
    N, M = absent.shape
    C = likelihood.n_outputs
    scales = np.maximum(features.scales(), 1e-12)
    slab = np.tile(1.0 / (M * scales), (C, 1))
    sites = initial_sites(likelihood, N)
    out = Everything(features, slab, sites, [], np.zeros((N, C)), absent)
    started = time.perf_counter()
    steps: list[Array] = []
    for iteration in range(max_iter):
        out.refresh()
        for _ in range(2 if iteration < SETTLING else 0):
            follow_sites(out, likelihood)
            out.refresh()
        if absent.any():
            out.extra = absent @ out.signal()
        value = site_bound(out, likelihood)
        power, used = features.strengths(out.sides, out.slab)
        follow_sites(out, likelihood, following_length(iteration))
        new = power / (used + out.slab * scales / LARGE_VARIANCE + 1e-300)
        new = np.clip(new, 1e-12, 1e6)
        share = out.slab * scales / (out.slab * scales).sum(axis=1, keepdims=True)
        change = float((np.abs(new / out.slab - 1.0) * share).max())
        out.slab = new
        if change >= CALM and iteration >= SETTLING:
            steps = [*steps, np.log(new)]
            if len(steps) == 3:
                out.slab = np.clip(np.exp(extrapolated(steps, share)), 1e-12, 1e6)
                steps = []
        out.history.append(
            {
                "bound": value,  # given the prior variances of this iteration; need not rise
                "change": change,
                "n_factors": C,
                "seconds": time.perf_counter() - started,
            }
        )
        if change < CALM and iteration >= MIN_ITER:
            out.converged = True
            break
    out.refresh()
    return out


def extrapolated(steps: Sequence[Array], share: Array) -> Array:
    """Return where three values of ln sigma^2 (C, M) in a row are heading.

    The squared extrapolation of fixed points: with r = x1 - x0 and v = x2 - 2 x1 + x0,
    x = x0 + 2 a r + a^2 v, a = |r|/|v|, lengths weighted by each view's share of the variance.
    """
    first, second, third = steps
    r, v = second - first, third - 2.0 * second + first
    a = np.sqrt((share * r**2).sum() / max((share * v**2).sum(), 1e-300))
    a = min(max(a, 1.0), LONGEST_STEP)
    return np.clip(first + 2.0 * a * r + a**2 * v, third - 2.0, third + 2.0)


def keep_views(out: Everything, kept: NDArray[np.bool_], likelihood: Likelihood) -> Everything:
    """Return the posterior without some views, the variances of the others as they are."""
    smaller = Everything(
        out.features,
        np.where(kept, out.slab, 0.0),
        out.sites,
        [],
        out.extra,
        out.absent,
        history=out.history,
        converged=out.converged,
    )
    settle_sites(smaller, likelihood)
    return smaller
