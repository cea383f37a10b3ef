"""Posterior with every feature in: one prior variance per view and output, none per feature.

It needs the features only through the Gram matrix of each view, one pass for any number of
columns; Grams of a subset of the rows are slices. Where all views together have fewer features
than there are samples, the columns themselves are smaller and are used instead.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from baldur.inference.fixed_prior import follow_sites, following_length, settle_sites, site_bound
from baldur.inference.starts import initial_sites
from baldur.model.likelihood import Likelihood, Sites
from baldur.model.structured.state import INTERCEPT_VAR, Side
from baldur.model.structured.weights import FeatureSide, SampleSide, feature_side, sample_side
from baldur.views.products import PreparedView

Array = NDArray[np.float64]
Rows = NDArray[np.intp]

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


class AllFeatures(Protocol):
    """All features of all views on some rows; both kinds give the same posterior."""

    n_views: int

    def within(self, rows: Rows) -> AllFeatures:
        """Return the same features on a subset of the rows."""

    def scales(self) -> Array:
        """Return tr(X_m X_m^T)/N of every view, (M,)."""

    def posterior(self, slab: Array, sites: Sites) -> list[Side]:
        """Return q(w_c) of every output under prior variances slab (C, M)."""

    def strengths(self, sides: Sequence[Side], slab: Array) -> tuple[Array, Array]:
        """Return sum_d <w_d>^2 and sum_d (1 - Var w_d/slab), each (C, M)."""

    def parts(self, sides: Sequence[Side], slab: Array) -> Array:
        """Return each view's part of <eta>, (M, N, C)."""

    def predict(
        self, sides: Sequence[Side], slab: Array, rows: Rows, held: Rows
    ) -> tuple[Array, Array]:
        """Return <eta> and Var eta of the rows `held`, each (n, C), from a fit on `rows`."""


class Grams:
    """All features through the Gram matrix X_m X_m^T of each view.

    Attributes
    ----------
    grams : list of M (N, N) arrays
    """

    def __init__(self, grams: Sequence[Array]) -> None:
        self.grams = list(grams)
        self.n_views = len(self.grams)

    def within(self, rows: Rows) -> Grams:
        """Slice: a Gram of fewer rows is part of the Gram of all."""
        return Grams([gram[np.ix_(rows, rows)] for gram in self.grams])

    def scales(self) -> Array:
        """Return tr(X_m X_m^T)/N."""
        return np.array([np.trace(gram) / len(gram) for gram in self.grams])

    def kernel(self, slab: Array, rows: Rows | None = None, columns: Rows | None = None) -> Array:
        """Return sum_m slab_m X_m X_m^T + s_0 from the variances (M,) of one output."""
        place = ... if rows is None or columns is None else np.ix_(rows, columns)
        total = INTERCEPT_VAR + slab[0] * self.grams[0][place]
        for variance, gram in zip(slab[1:], self.grams[1:], strict=True):
            if variance > 0:
                total += variance * gram[place]
        return np.asarray(total)

    def posterior(self, slab: Array, sites: Sites) -> list[Side]:
        """On the sample side."""
        return [
            sample_side(self.kernel(row), sites.h[:, c], sites.j[:, c])
            for c, row in enumerate(slab)
        ]

    def strengths(self, sides: Sequence[Side], slab: Array) -> tuple[Array, Array]:
        """slab^2 alpha^T G alpha and slab tr(C^-1 G)."""
        power, used = np.zeros_like(slab), np.zeros_like(slab)
        for c, side in enumerate(sides):
            if not isinstance(side, SampleSide):
                continue
            for m, gram in enumerate(self.grams):
                power[c, m] = slab[c, m] ** 2 * (side.alpha @ gram @ side.alpha)
                used[c, m] = slab[c, m] * np.vdot(side.Ci, gram)
        return power, used

    def parts(self, sides: Sequence[Side], slab: Array) -> Array:
        """slab G alpha."""
        alphas = np.stack([side.alpha for side in sides], axis=1)
        return np.stack([(gram @ alphas) * slab[:, m] for m, gram in enumerate(self.grams)])

    def predict(
        self, sides: Sequence[Side], slab: Array, rows: Rows, held: Rows
    ) -> tuple[Array, Array]:
        """K alpha and the prior variance less k^T C^-1 k."""
        mean, var = np.empty((len(held), len(sides))), np.empty((len(held), len(sides)))
        for c, side in enumerate(sides):
            if isinstance(side, SampleSide):
                K = self.kernel(slab[c], held, rows)
                own = sum(v * np.diag(G)[held] for v, G in zip(slab[c], self.grams, strict=True))
                part = side.half @ K.T
                mean[:, c] = K @ side.alpha
                var[:, c] = INTERCEPT_VAR + own - np.einsum("mn,mn->n", part, part)
        return mean, np.maximum(var, 1e-12)


class Columns:
    """All features as columns, for fewer features than samples.

    Attributes
    ----------
    X : (N, D) array
    owner : (D,) view of each column
    """

    def __init__(self, X: Array, owner: NDArray[np.intp], n_views: int) -> None:
        self.X = X
        self.owner = owner
        self.n_views = n_views

    def within(self, rows: Rows) -> Columns:
        """Rows of the columns."""
        return Columns(self.X[rows], self.owner, self.n_views)

    def _by_view(self, values: Array) -> Array:
        return np.bincount(self.owner, values, minlength=self.n_views).astype(float)

    def scales(self) -> Array:
        """Return the sum of the mean squares of the columns of each view."""
        return self._by_view((self.X**2).mean(axis=0))

    def posterior(self, slab: Array, sites: Sites) -> list[Side]:
        """On the feature side."""
        return [
            feature_side(self.X, row[self.owner], INTERCEPT_VAR, sites.h[:, c], sites.j[:, c])
            for c, row in enumerate(slab)
        ]

    def strengths(self, sides: Sequence[Side], slab: Array) -> tuple[Array, Array]:
        """Sums of <w>^2 and of slab x^T C^-1 x."""
        fitted = [side for side in sides if isinstance(side, FeatureSide)]
        power = np.stack([self._by_view(side.w[1:] ** 2) for side in fitted])
        return power, slab * np.stack([self._by_view(side.S) for side in fitted])

    def parts(self, sides: Sequence[Side], slab: Array) -> Array:
        """X_m <w_m>."""
        w = np.stack([side.w[1:] for side in sides if isinstance(side, FeatureSide)], axis=1)
        own = [self.owner == m for m in range(self.n_views)]
        return np.stack([self.X[:, here] @ w[here] for here in own])

    def predict(
        self, sides: Sequence[Side], slab: Array, rows: Rows, held: Rows
    ) -> tuple[Array, Array]:
        """X <w> and the spread of w."""
        X1 = np.hstack([np.ones((len(held), 1)), self.X[held]])
        fitted = [side for side in sides if isinstance(side, FeatureSide)]
        mean = np.stack([X1 @ side.w for side in fitted], axis=1)
        var = np.stack([side.spread(X1) for side in fitted], axis=1)
        return mean, np.maximum(var, 1e-12)


def all_features(views: Sequence[PreparedView]) -> AllFeatures:
    """Choose by size, and make the Grams or gather the columns: one pass over the views."""
    widths = [view.shape[1] for view in views]
    if sum(widths) < views[0].shape[0]:
        X = np.concatenate([view.dense() for view in views], axis=1)
        return Columns(X, np.repeat(np.arange(len(views)), widths), len(views))
    return Grams([view.weighted_gram() for view in views])


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
