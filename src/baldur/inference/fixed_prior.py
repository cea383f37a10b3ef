"""Posterior of the weights of every output under fixed prior variances, on either side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from baldur.inference.starts import initial_sites
from baldur.model.likelihood import GaussianOutputs, Likelihood, Sites
from baldur.model.structured.state import INTERCEPT_VAR, Side
from baldur.model.structured.weights import FeatureSide, feature_side, sample_side

Array = NDArray[np.float64]

HALVINGS = 8


@dataclass
class Outputs:
    """q of all outputs: one independent Gaussian per output over the same columns.

    Attributes
    ----------
    X : (N, L) array of standardised columns
    s : (C, L) prior variances
    sites : Sites
    sides : list of C posteriors
    extra : (N, C) variance of rows that lack a view
    bounds : list of float, the bound after each step of `solve`
    intercept_var : float, prior variance of the intercept; 0 for none
    """

    X: Array
    s: Array
    sites: Sites
    sides: list[Side]
    extra: Array
    bounds: list[float] = field(default_factory=list)
    intercept_var: float = INTERCEPT_VAR
    _kernels: list[Array] = field(default_factory=list, repr=False)
    _kernels_of: Array | None = field(default=None, repr=False)

    def moments(self) -> tuple[Array, Array]:
        """Return <eta> and Var eta on the training rows, each (N, C)."""
        mean = np.stack([side.mean for side in self.sides], axis=1)
        var = np.stack([side.var for side in self.sides], axis=1) + self.extra
        return mean, np.maximum(var, 1e-12)

    def refresh(self) -> None:
        """Recompute q(w) at the present sites."""
        if self._kernels_of is not self.s:  # kernels do not depend on the sites
            self._kernels, self._kernels_of = kernels(self.X, self.s), self.s
        self.sides = posterior(self.X, self.s, self.sites, self._kernels)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what can be made again."""
        return {**self.__dict__, "_kernels": [], "_kernels_of": None}

    def weights(self) -> tuple[Array, Array]:
        """Return means and variances of the weights, each (C, L)."""
        projected, S = feature_statistics(self)
        mean, var = self.s * projected, np.maximum(self.s - self.s**2 * S, 0.0)
        for c, side in enumerate(self.sides):
            # Known directly there; x^T alpha loses digits where outputs have little noise.
            if isinstance(side, FeatureSide):
                mean[c], var[c] = side.w[1:], side.weight_var[1:]
        return mean, var

    def intercepts(self) -> Array:
        """Return the mean intercept of every output, (C,)."""
        return np.array(
            [
                side.w[0]
                if isinstance(side, FeatureSide)
                else self.intercept_var * side.alpha.sum()
                for side in self.sides
            ]
        )

    def predict(self, X: Array) -> tuple[Array, Array]:
        """Return <eta> and Var eta of new rows, each (n, C)."""
        mean, var = np.empty((len(X), len(self.sides))), np.empty((len(X), len(self.sides)))
        for c, side in enumerate(self.sides):
            if isinstance(side, FeatureSide):
                X1 = np.hstack([np.ones((len(X), 1)), X])
                mean[:, c] = X1 @ side.w
                var[:, c] = side.spread(X1)
            else:
                K = (X * self.s[c]) @ self.X.T + self.intercept_var
                mean[:, c] = K @ side.alpha
                prior = (X**2) @ self.s[c] + self.intercept_var
                var[:, c] = prior - np.einsum("nm,nm->n", K @ side.Ci, K)
        return mean, np.maximum(var, 1e-12)


def kernels(X: Array, s: Array) -> list[Array]:
    """Return the kernel of every output where the sample side is used, else nothing."""
    if X.shape[1] < len(X):
        return []
    return [gram(X, row) + INTERCEPT_VAR for row in s]


def posterior(X: Array, s: Array, sites: Sites, known: Sequence[Array] | None = None) -> list[Side]:
    """Return q(w_c) of every output: the feature side if it is smaller, else the sample side.

    `known` are the `kernels` of X and s, where they were made before.
    """
    made = kernels(X, s) if known is None else known
    h, j = sites
    if made:
        return [sample_side(K, h[:, c], j[:, c]) for c, K in enumerate(made)]
    return [feature_side(X, row, INTERCEPT_VAR, h[:, c], j[:, c]) for c, row in enumerate(s)]


def gram(X: Array, s: Array) -> Array:
    """Return X diag(s) X^T; an array times its own transpose is half the work for BLAS."""
    scaled = X * np.sqrt(s)
    return scaled @ scaled.T


def feature_statistics(outputs: Outputs) -> tuple[Array, Array]:
    """Return x_d^T alpha_c and x_d^T C_c^-1 x_d, each (C, L)."""
    alphas = np.stack([side.alpha for side in outputs.sides])
    S = np.stack(
        [
            side.S if isinstance(side, FeatureSide) else side.quadratic(outputs.X)
            for side in outputs.sides
        ]
    )
    return alphas @ outputs.X, S


def outside_quadratic(outputs: Outputs, c: int, X: Array) -> Array:
    """Return x_d^T C_c^-1 x_d of columns that are not in the model, (L,)."""
    side = outputs.sides[c]
    if not isinstance(side, FeatureSide):
        return side.quadratic(X)
    h = outputs.sites.h[:, c]
    weighted = h[:, None] * X
    part = outputs.X.T @ weighted
    part = side.half @ np.concatenate([weighted.sum(axis=0)[None], part])
    return h @ X**2 - np.einsum("de,de->e", part, part)


def solve(
    X: Array,
    s: Array,
    likelihood: Likelihood,
    extra: Array | None = None,
    *,
    sites: Sites | None = None,
    max_iter: int = 50,
    tol: float = 1e-6,
) -> Outputs:
    """Fit the likelihood sites under fixed prior variances; the bound rises at every step.

    bound = E[ln p(T | eta)] - sum_c KL(q(w_c) || N(0, diag(s_c)))

    `sites` are where to start from; those of the base rate by default.
    """
    C = likelihood.n_outputs
    extra = np.zeros((len(X), C)) if extra is None else extra
    sites = initial_sites(likelihood, len(X)) if sites is None else sites
    out = Outputs(X, s, sites, [], extra)
    settle_sites(out, likelihood, max_iter=max_iter, tol=tol)
    return out


class FixedPrior(Protocol):
    """A posterior under fixed prior variances whose sites are to be settled."""

    sites: Sites
    sides: list[Side]
    bounds: list[float]

    def refresh(self) -> None:
        """Recompute q(w) at the present sites."""

    def moments(self) -> tuple[Array, Array]:
        """Return <eta> and Var eta on the training rows, each (N, C)."""


def settle_sites(
    out: FixedPrior, likelihood: Likelihood, *, max_iter: int = 50, tol: float = 1e-6
) -> None:
    """Move the sites to their best values, in place; the bound rises at every step."""
    out.refresh()
    value = site_bound(out, likelihood)
    for _ in range(max_iter):
        before = value
        value = _step(out, likelihood, value)
        out.bounds.append(value)
        if value - before <= tol * max(1.0, abs(value)):
            break


def site_bound(out: FixedPrior, likelihood: Likelihood) -> float:
    """Return E[ln p(T | eta)] - sum_c KL(q(w_c) || prior)."""
    return likelihood.expected(*out.moments()) - sum(side.kl for side in out.sides)


def following_length(iteration: int) -> float:
    """Return how far sites follow: half the way at first, and less later.

    The site of a row with an extreme feature can answer so strongly to its own moments that half
    the way overshoots, and it would swing for ever.
    """
    return max(0.1, 0.5 * 0.98**iteration)


def follow_sites(out: FixedPrior, likelihood: Likelihood, length: float = 0.5) -> None:
    """Part of a step of the sites; exact for Gaussian outputs, whose noise is learned first."""
    mean, var = out.moments()
    if isinstance(likelihood, GaussianOutputs):
        likelihood.update_noise(mean, var)
        out.sites = likelihood.sites(mean, var)
        return
    out.sites = mixed_sites(out.sites, likelihood.sites(mean, var), length)


def mixed_sites(old: Sites, target: Sites, length: float) -> Sites:
    """Return sites part of the way to their target."""
    return Sites(
        (1.0 - length) * old.h + length * target.h, (1.0 - length) * old.j + length * target.j
    )


def _step(out: FixedPrior, likelihood: Likelihood, before: float) -> float:
    """Move the sites as far as the bound allows; exact for Gaussian outputs."""
    if isinstance(likelihood, GaussianOutputs):
        likelihood.update_noise(*out.moments())
        before = site_bound(out, likelihood)
    old_sites, old_sides = out.sites, out.sides
    target = likelihood.sites(*out.moments())
    length = likelihood.damping
    for _ in range(HALVINGS):
        out.sites = mixed_sites(old_sites, target, length)
        out.refresh()
        value = site_bound(out, likelihood)
        if value >= before:
            return value
        length *= 0.5
    out.sites, out.sides = old_sites, old_sides
    return before
