"""q(w) under fixed prior variances: one Gaussian per output, and its sites.

    bound_c = E[ln p(T_c | eta_c)] - KL(q(w_c) || N(0, diag(s_c)))

Outputs share nothing here, so every output has its own bound and takes its own steps; factors
behind common outputs (`baldur.model.loadings`) have one bound together.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Features
from baldur.model.likelihood import Likelihood, Sites
from baldur.model.loadings import FactorLikelihood
from baldur.model.posterior import Side

Array = NDArray[np.float64]

HALVINGS = 8
SLACK = 1e-12
"""Rounding allowed, relative to the bound, when a step is compared with none."""


@dataclass
class Gaussian:
    """q(w) of all outputs.

    Attributes
    ----------
    features : Features, on the training rows
    likelihood : Likelihood
    s : prior variances, (C, L) for columns and (C, M) for Grams
    sites : Sites
    noise : what the likelihood learns, such as q(psi) of Gaussian outputs
    absent : (N, M) array, 1 where a row lacks a view
    extra : (N, C) variance of rows that lack a view
    sides : list of C posteriors
    bounds : history of (C,) bounds, one entry per step of `settle`
    """

    features: Features
    likelihood: Likelihood
    s: Array
    sites: Sites
    noise: Any
    absent: Array
    extra: Array
    sides: list[Side] = field(default_factory=list)
    bounds: list[Array] = field(default_factory=list)

    @classmethod
    def start(cls, features: Features, likelihood: Likelihood, s: Array, absent: Array) -> Gaussian:
        """Sites at the base rate, with unit uncertainty."""
        N, C = len(absent), likelihood.n_outputs
        mean = np.tile(likelihood.base_rate(), (N, 1))
        noise = likelihood.noise_at(mean, np.zeros_like(mean))
        _, sites = likelihood.evaluate(mean, np.ones_like(mean), noise)
        return cls(features, likelihood, s, sites, noise, absent, np.zeros((N, C)))

    def refresh(self) -> None:
        """Recompute q(w) at the present sites."""
        self.sides = self.features.posterior(self.s, self.sites)

    def moments(self) -> tuple[Array, Array]:
        """Return <eta> and Var eta on the training rows, each (N, C)."""
        mean = np.array([side.mean for side in self.sides]).T
        var = np.array([side.var for side in self.sides]).T + self.extra
        return mean, np.maximum(var, 1e-12)

    def evaluate(self) -> tuple[Array, Sites]:
        """Return the bound of every output, (C,), and the sites that are best here."""
        kl = np.array([side.kl for side in self.sides])
        value, sites = self.likelihood.evaluate(*self.moments(), self.noise)
        return value - (kl if len(value) == len(kl) else kl.sum()), sites

    def bound(self) -> Array:
        """Return the bound of every output, (C,)."""
        return self.evaluate()[0]

    def evidence(self) -> Array:
        """Return ln evidence of every output, closer than the bound, (C,); sites must be settled.

        Variances of rows that lack a view are left out: sites know nothing of them.
        """
        mean, var = self.moments()
        kl = np.array([side.kl for side in self.sides])
        own = np.maximum(var - self.extra, 1e-12)
        return self.likelihood.evidence(mean, own, self.sites, self.noise) - kl

    def signal(self) -> Array:
        """Return the mean square of each view's part over the rows that have it, (M, C)."""
        return mean_squares(self.features.parts(self.sides, self.s), self.absent)

    def lacking(self) -> Array:
        """Return how uncertain a view's part of eta is for a row that lacks it, (M, C).

        As much as it varies among the rows that have it, and as its weights are uncertain.
        """
        # Rows that lack the view have no part in the mean over rows.
        scale = len(self.absent) / np.maximum((1.0 - self.absent).sum(axis=0), 1.0)
        spread = self.features.part_variance(self.sides, self.s)
        return self.signal() + scale[:, None] * spread

    def refresh_extra(self) -> None:
        """Give rows that lack a view the variance that its part of eta would have."""
        if self.absent.any():
            self.extra = self.absent @ self.lacking()

    def settle(self, max_iter: int = 50, tol: float = 1e-6) -> Array:
        """Move the sites to their best values; the bound of every output rises at every step.

        Gains shrink by a steady factor, so the sum of those to come is known from the last two;
        when it is below `tol`, the rest is left.
        """
        self.refresh()
        value, target = self.evaluate()
        before = np.zeros_like(value)
        for _ in range(max_iter):
            after, target = self.step(value, target)
            gained, value = after - value, after
            self.bounds.append(value)
            if (still_to_gain(gained, before) <= tol * np.maximum(1.0, np.abs(value))).all():
                break
            before = gained
        return value

    def step(self, value: Array, target: Sites) -> tuple[Array, Sites]:
        """Learn the noise, move the sites to `target`; return the bounds and the next target.

        A full step to the sites that are best at the present q may overshoot; the steps of outputs
        whose bound fell are halved until it does not. `value` and `target` are those of `evaluate`.
        """
        noise = self.likelihood.learn(*self.moments(), self.noise)
        if noise is not None:
            self.noise = noise
            value, target = self.evaluate()
        old, sides, length = self.sites, self.sides, np.ones(len(value))
        for _ in range(HALVINGS):
            self.sites = mixed(old, target, length)
            self.refresh()
            after, best = self.evaluate()
            fell = ~(after >= value - SLACK * np.abs(value))
            if not fell.any():
                break
            length = np.where(fell, 0.5 * length, length)
        if fell.any():  # outputs that rose at no length stay where they were
            self.sites = mixed(old, target, np.where(fell, 0.0, length))
            pairs = zip(sides, self.sides, np.broadcast_to(fell, len(sides)), strict=True)
            self.sides = [was if stay else now for was, now, stay in pairs]
            after, best = self.evaluate()
        return after, best

    def with_variances(self, s: Array) -> Gaussian:
        """Return the same sites under other prior variances, q(w) to be recomputed."""
        return replace(self, s=s, sides=[], bounds=[])

    def weakest_factor(self) -> int | None:
        """Return the learned factor that moves the outputs least; None if none can be left out."""
        if not isinstance(self.likelihood, FactorLikelihood) or len(self.sides) < 2:
            return None
        strength = (self.noise.loadings.V**2).sum(axis=0) * self.moments()[0].var(axis=0)
        return int(strength.argmin())

    def without_factor(self, k: int) -> Gaussian:
        """Return the other factors behind the outputs, q(w) to be recomputed."""
        assert isinstance(self.likelihood, FactorLikelihood)
        return replace(
            self,
            likelihood=self.likelihood.without_factor(k),
            noise=self.noise.without_factor(k),
            s=np.delete(self.s, k, axis=0),
            sites=Sites(*(np.delete(part, k, axis=1) for part in self.sites)),
            extra=np.delete(self.extra, k, axis=1),
            sides=[],
            bounds=[],
        )


def mean_squares(parts: Array, absent: Array) -> Array:
    """Return mean squares of the views' parts (M, N, C) over the rows that have them, (M, C)."""
    has = 1.0 - absent
    total = np.einsum("mnc,nm->mc", parts**2, has)
    return np.asarray(total / np.maximum(has.sum(axis=0), 1.0)[:, None])


def mixed(old: Sites, target: Sites, length: Array) -> Sites:
    """Return sites part of the way to their target, by output."""
    return Sites(old.h + length * (target.h - old.h), old.j + length * (target.j - old.j))


def still_to_gain(gained: Array, before: Array) -> Array:
    """Return what later steps will gain, if their gains shrink by a steady factor, (C,).

    The factor is not trusted below a tenth. Where gains do not shrink, the last one is returned.
    """
    falling = (before > 0) & (gained < 0.5 * before)
    factor = np.maximum(np.divide(gained, before, out=np.ones_like(gained), where=falling), 0.1)
    return np.where(falling, gained * factor / (1.0 - np.minimum(factor, 0.5)), gained)
