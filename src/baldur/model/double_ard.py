"""The paper's prior of the weights: a precision per view and factor, and one per feature.

    w_kd ~ N(0, 1/(delta_k^(m) gamma_d)),
    gamma_d ~ Gamma(a, a),   delta_k^(m) ~ Gamma(1/2, 1/(2 D_m))

Given gamma it is one variance per view, 1/delta, on features multiplied by gamma^-1/2; that is how
the fit uses it. Everything here needs two statistics of q(w) only, each (K, L):

    power = <w>^2/s,    used = 1 - Var w/s,    s = 1/(<delta><gamma>)

An entry is one feature, or several that share one precision (`count`); its statistics are then
sums over them. Features that are out keep their joint prior, which costs nothing, so bounds before
and after a drop can be compared.

Departure from the paper: its Gamma(1e-6, 1e-6) of delta is so vague that every view and factor
costs 14 nats to have at all, and evidence would drop them for that alone. With mean D_m a view's
part of the linear predictor has variance about 1, give or take orders of magnitude.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from baldur.model.ard import GammaPosterior, gamma_term, gamma_terms, shape_gap
from baldur.model.priors import GammaPrior

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

LONGEST_LEAP = 10.0
"""Largest factor by which one step may change a delta."""
DELTA_SHAPE = 0.5


@dataclass(frozen=True)
class DoubleArd:
    """q(gamma) and q(delta) of all views.

    Attributes
    ----------
    a : float, shape of the prior of gamma
    gamma : GammaPosterior of L entries
    delta : list of M GammaPosterior over K factors
    owner : (L,) view of each entry
    count : (L,) features that each entry stands for
    widths : (M,) features of each view, in or out
    """

    a: float
    gamma: GammaPosterior
    delta: list[GammaPosterior]
    owner: NDArray[np.intp]
    count: Array
    widths: Array

    @classmethod
    def start(
        cls,
        a: float,
        gamma: Array,
        owner: NDArray[np.intp],
        count: Array,
        widths: Array,
        n_factors: int,
    ) -> DoubleArd:
        """Begin at means gamma (L,); each view gives every factor the same prior variance, 1/M."""
        M, shape = len(widths), a + 0.5 * n_factors
        sums = np.bincount(owner, count / gamma, minlength=M)
        n_in = np.bincount(owner, count, minlength=M)
        delta = []
        for total, n in zip(sums, n_in, strict=True):
            own = DELTA_SHAPE + 0.5 * n
            delta.append(GammaPosterior(own, np.full(n_factors, own / max(M * total, 1e-300))))
        return cls(a, GammaPosterior(shape, shape / gamma), delta, owner, count, widths)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return len(self.delta[0].rate)

    @property
    def n_in(self) -> Array:
        """Features of each view that are in, (M,)."""
        return np.bincount(self.owner, self.count, minlength=len(self.widths)).astype(float)

    @property
    def by_view(self) -> Array:
        """Prior variances 1/<delta> of the scaled features, (K, M)."""
        return np.stack([1.0 / delta.mean for delta in self.delta], axis=1)

    @property
    def variances(self) -> Array:
        """Prior variances 1/(<delta><gamma>) of the entries, (K, L)."""
        return np.asarray(self.by_view[:, self.owner] / self.gamma.mean)

    def delta_prior(self, m: int) -> GammaPrior:
        """Return the prior of delta of view m."""
        return GammaPrior(DELTA_SHAPE, DELTA_SHAPE / self.widths[m])

    def bound(self) -> float:
        """E[ln p] - E[ln q] of gamma and delta, and what their spread costs the weights.

        KL(q(w) || N(0, s)) takes 1/s at its mean; E[ln 1/s] lies below the logarithm of that.
        """
        each = 0.5 * self.n_factors * shape_gap(self.gamma.shape)
        total = self.count @ (each + gamma_terms(self.gamma, GammaPrior(self.a, self.a)))
        for m, n in enumerate(self.n_in):
            if n:
                total += 0.5 * n * self.n_factors * shape_gap(self.delta[m].shape)
                total += gamma_term(self.delta[m], self.delta_prior(m))
        return float(total)

    def idle(self) -> float:
        """Return the bound of the entries at gamma = 1.

        A constant over the same features, large for wide views; changes of the bound are judged
        against what is left without it.
        """
        shape = self.gamma.shape
        one = gamma_term(GammaPosterior(shape, np.full(1, shape)), GammaPrior(self.a, self.a))
        return float(self.count.sum() * (one + 0.5 * self.n_factors * shape_gap(shape)))

    def with_delta(self, power: Array, used: Array, length: float = 1.0) -> DoubleArd:
        """Move q(delta) to where its update would arrive if <w> and `used` stayed as they are.

        There (2 a_0 + D)/<delta> = 2 b_0 + A + (D - T)/<delta>, A = sum_d <gamma_d><w_d>^2 and
        T = sum_d used_d, so <delta> = (2 a_0 + T)/(2 b_0 + A). The update itself goes a share T/D
        of the way, which is nothing where features outnumber samples. It may overshoot, so it
        needs a guard.

        Parameters
        ----------
        power, used : (K, M) arrays, sums over the views
        length : float, part of the way, on the logarithmic scale
        """
        moved = []
        for m, (old, n) in enumerate(zip(self.delta, self.n_in, strict=True)):
            if n:
                a0, b0 = self.delta_prior(m)
                mean = (2.0 * a0 + used[:, m]) / (2.0 * b0 + power[:, m] / old.mean)
                factor = np.clip(mean / old.mean, 1.0 / LONGEST_LEAP, LONGEST_LEAP) ** length
                shape = a0 + 0.5 * n
                old = GammaPosterior(shape, shape / (old.mean * factor))
            moved.append(old)
        return replace(self, delta=moved)

    def with_gamma(self, power: Array, used: Array, length: float = 1.0) -> DoubleArd:
        """Update q(gamma): shape a + K/2, rate a + sum_k <delta_k><w_kd^2>/2.

        Parameters
        ----------
        power, used : (K, L) arrays
        length : float, part of the way, on the logarithmic scale
        """
        second = (power + self.count - used).sum(axis=0) / self.count
        rate = self.a + 0.5 * second / self.gamma.mean
        old = self.gamma.rate
        return replace(
            self, gamma=GammaPosterior(self.gamma.shape, old ** (1.0 - length) * rate**length)
        )

    def rescaled(self) -> DoubleArd:
        """Shift scale between gamma and delta of every view, which their updates do but slowly.

        The prior of the weights does not change. With gamma divided and delta multiplied by c,
        the Gamma terms change by -(a D - a_0 K) ln c - P/c - B c, where P = a shape sum_d 1/r_d
        and B = b_0 sum_k <delta_k>; c is the best.
        """
        shape, rate = self.gamma.shape, self.gamma.rate
        inverse = np.bincount(self.owner, self.count / rate, minlength=len(self.widths))
        scale, delta = np.ones(len(self.widths)), list(self.delta)
        for m, n in enumerate(self.n_in):
            if n:
                a0, b0 = self.delta_prior(m)
                P, B = self.a * shape * inverse[m], b0 * float(delta[m].mean.sum())
                p = self.a * n - a0 * self.n_factors
                root = np.sqrt(p * p + 4.0 * P * B)
                scale[m] = 2.0 * P / (p + root) if p > 0 else (root - p) / (2.0 * B)
                delta[m] = GammaPosterior(delta[m].shape, delta[m].rate / scale[m])
        return replace(self, gamma=GammaPosterior(shape, rate * scale[self.owner]), delta=delta)

    def gains(self, power: Array, used: Array) -> Array:
        """Return what each entry of one feature adds to the bound, sites held, (L,).

        From its leave-one-out statistics: sum_k [power/(1 - used) + ln(1 - used)]/2, with what its
        gamma costs and its part of what the delta of its view costs; the last feature of a view
        takes that delta along. There is no threshold: the prior sets the price of a feature.
        """
        left = np.maximum(1.0 - used, 1e-12)
        gain = 0.5 * (power / left + np.log(left)).sum(axis=0)
        gain += gamma_terms(self.gamma, GammaPrior(self.a, self.a))
        gain += 0.5 * self.n_factors * shape_gap(self.gamma.shape)
        n_in = self.n_in
        shared = np.zeros(len(n_in))
        for m in np.flatnonzero(n_in):
            shared[m] = 0.5 * self.n_factors * shape_gap(self.delta[m].shape)
            if n_in[m] == 1:
                shared[m] += gamma_term(self.delta[m], self.delta_prior(int(m)))
        return np.asarray(gain + shared[self.owner])

    def only(self, keep: Mask) -> DoubleArd:
        """Return the prior of some of the entries."""
        gamma = GammaPosterior(self.gamma.shape, self.gamma.rate[keep])
        return replace(self, gamma=gamma, owner=self.owner[keep], count=self.count[keep])

    def without_factor(self, k: int) -> DoubleArd:
        """Return the prior of the other factors."""
        shape = self.a + 0.5 * (self.n_factors - 1)
        return replace(
            self,
            gamma=GammaPosterior(shape, shape / self.gamma.mean),
            delta=[GammaPosterior(d.shape, np.delete(d.rate, k)) for d in self.delta],
        )
