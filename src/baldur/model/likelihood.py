"""Likelihoods of the outputs: logistic under two bounds, and Gaussian.

Each likelihood answers two questions about a Gaussian q(eta) with given means and variances:
what is E[ln p(t | eta)] (or its lower bound), and which Gaussian *site*
``exp(j eta - h eta^2 / 2)`` should stand for it in the next update of the weights. Everything
else in the model sees only the sites (h, j), so both bounds and regression share one algebra.

A likelihood never changes. What it learns, such as q(psi) of Gaussian outputs, is its `noise`:
callers keep it with the rest of their state and hand it back; logistic outputs have none.

All arrays are (N, C): samples by outputs.
"""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from baldur.model.ard import LOG_2PI, GammaPosterior, gamma_terms
from baldur.model.priors import VAGUE
from baldur.model.quadrature import logistic_moments, logistic_rates

Array = NDArray[np.float64]
Noise = GammaPosterior | None
"""q(psi), one precision per output; None for logistic outputs."""

MIN_PRECISION = 1e-10
"""Floor of a site precision: a row the model is certain about keeps a defined covariance."""


class Sites(NamedTuple):
    """Gaussian stand-ins for the likelihood: precision h and linear term j, each (N, C)."""

    h: Array
    j: Array


class Likelihood(Protocol):
    """What inference needs to know about the outputs."""

    n_outputs: int
    weight: Array

    @property
    def conjugate(self) -> bool:
        """Whether ln p, or its bound, is quadratic in eta."""

    def noise_at(self, mean: Array, var: Array) -> Any:
        """Return what is learned beside the weights, from N(mean, var) alone."""

    def learn(self, mean: Array, var: Array, noise: Any) -> Any:
        """Return what is learned beside the weights, no worse at N(mean, var) than `noise`."""

    def evaluate(self, mean: Array, var: Array, noise: Any) -> tuple[Array, Sites]:
        """Return E[ln p] (or its lower bound) under N(mean, var), summed over rows, (C,).

        And the sites that are best there. Outputs that share what is learned have one value.
        """

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Any) -> Array:
        """Return what takes the place of E[ln p] where ln evidence is wanted, (C,).

        `mean` and `var` are moments under sites that have settled.
        """

    def base_rate(self) -> Array:
        """Return the (C,) linear predictor of a model without features."""

    def residual(self) -> Array:
        """Return the (N, C) residual of the outputs from the base rate, weights applied."""

    def rows(self, index: NDArray[np.intp]) -> Likelihood:
        """Return the likelihood of a subset of the samples."""


class _Logistic:
    """Bernoulli outputs T (N, C) of 0 and 1, each row with its weight."""

    def __init__(self, T: Array, weight: Array) -> None:
        self.T = T
        self.weight = weight
        self.n_outputs = T.shape[1]

    def noise_at(self, mean: Array, var: Array) -> Noise:
        """Nothing to learn."""
        return None

    def learn(self, mean: Array, var: Array, noise: Noise) -> Noise:
        """Nothing to learn."""
        return None

    def base_rate(self) -> Array:
        """Return the log odds of each output."""
        rate = (self.weight * self.T).sum(axis=0) / self.weight.sum(axis=0)
        rate = np.clip(rate, 1e-6, 1 - 1e-6)
        return np.log(rate) - np.log1p(-rate)

    def residual(self) -> Array:
        """T less its rate."""
        return self.weight * (self.T - expit(self.base_rate()))


class QuadratureLogistic(_Logistic):
    """Bernoulli outputs; E[ln sigmoid] by quadrature, see `baldur.model.quadrature`.

    site precision  h = E[sigmoid(eta)(1 - sigmoid(eta))]
    site linear     j = E[t - sigmoid(eta)] + h <eta>

    Departure from the paper: it bounds ln sigmoid by a quadratic, which is loose for confident
    rows and makes delta shrink too much. Under q each eta is Gaussian, so the integral is
    one-dimensional and needs no bound. A full step to the new sites may overshoot; callers damp
    it and accept only steps that raise the bound.
    """

    conjugate = False

    def evaluate(self, mean: Array, var: Array, noise: Noise) -> tuple[Array, Sites]:
        """sum_n weight E[t eta - ln(1 + exp eta)], and the moment-matched sites."""
        rate, slope, soft = logistic_moments(mean, var)
        h = np.maximum(self.weight * slope, MIN_PRECISION)
        sites = Sites(h, self.weight * (self.T - rate) + h * mean)
        return np.asarray((self.weight * (self.T * mean - soft)).sum(axis=0)), sites

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Noise) -> Array:
        """The evidence of expectation propagation at the sites at hand.

        The bound gets looser as the prior gets wider, so scales of the prior must not be weighed
        by it. With the cavity N(cm, cv), 1/cv = 1/v - h, cm/cv = m/v - j, each row adds

            j m - h (m^2 + v)/2 + ln E[p(t | eta)] - g,
            g = -ln(1 + h cv)/2 + (j^2 cv + 2 j cm - h cm^2)/(2 (1 + h cv)),

        E under the cavity. A row of weight w is w rows, each with its part of the site. Where the
        cavity has no variance, a row adds its part of the bound.
        """
        h, j = sites.h / self.weight, sites.j / self.weight
        left = 1.0 / var - h
        exact = left * var > 1e-6
        cv = 1.0 / np.where(exact, left, 1.0)
        cm = (mean / var - j) * cv
        rate = logistic_rates(cm, cv).rate
        z = np.where(self.T > 0.5, rate, 1.0 - rate)
        spread = 1.0 + h * cv
        g = (j**2 * cv + 2.0 * j * cm - h * cm**2) / spread - np.log(spread)
        each = j * mean - 0.5 * h * (mean**2 + var) + np.log(np.maximum(z, 1e-300)) - 0.5 * g
        if not exact.all():
            each = np.where(exact, each, self.T * mean - logistic_moments(mean, var).softplus)
        return np.asarray((self.weight * each).sum(axis=0))

    def rows(self, index: NDArray[np.intp]) -> QuadratureLogistic:
        """Return the likelihood of a subset of the samples."""
        return QuadratureLogistic(self.T[index], self.weight[index])


class GaussianOutputs:
    """Observed real outputs y ~ N(eta, 1/psi) with psi_c ~ Gamma, one per output.

    E[ln p] = (w/2)(<ln psi> - ln 2pi) - (w/2) <psi> ((y - <eta>)^2 + Var eta). The Gamma term of
    q(psi) is part of `expected`, so callers treat this likelihood like the others.

    Departure from the paper: one psi per output instead of one for all, because outputs have
    their own units and noise.
    """

    conjugate = True

    def __init__(self, Y: Array, weight: Array) -> None:
        self.Y = Y
        self.weight = weight
        self.n_outputs = Y.shape[1]

    def noise_at(self, mean: Array, var: Array) -> GammaPosterior:
        """q(psi): shape a0 + N/2, rate_c = b0 + (1/2) sum_n <(y - eta)^2>."""
        spread = (self.weight * ((self.Y - mean) ** 2 + var)).sum(axis=0)
        shape = VAGUE.shape + 0.5 * float(self.weight.sum(axis=0).mean())
        return GammaPosterior(shape, VAGUE.rate + 0.5 * np.maximum(spread, 1e-12))

    def learn(self, mean: Array, var: Array, noise: Noise) -> GammaPosterior:
        """The best q(psi)."""
        return self.noise_at(mean, var)

    def evaluate(self, mean: Array, var: Array, noise: Noise) -> tuple[Array, Sites]:
        """E[ln p(Y | eta, psi)] plus the Gamma term of q(psi); h = w <psi>, j = w <psi> y."""
        psi = self.noise_at(mean, var) if noise is None else noise
        fit = (self.weight * ((self.Y - mean) ** 2 + var)).sum(axis=0)
        count = self.weight.sum(axis=0)
        value = 0.5 * (count * (psi.mean_log - LOG_2PI) - psi.mean * fit)
        h = np.maximum(self.weight * psi.mean, MIN_PRECISION)
        return np.asarray(value + gamma_terms(psi, VAGUE)), Sites(h, h * self.Y)

    def base_rate(self) -> Array:
        """Return the mean of each output."""
        return np.asarray((self.weight * self.Y).sum(axis=0) / self.weight.sum(axis=0))

    def residual(self) -> Array:
        """Y less its mean."""
        return self.weight * (self.Y - self.base_rate())

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Noise) -> Array:
        """The bound, which is tight but for q(psi)."""
        return self.evaluate(mean, var, noise)[0]

    def rows(self, index: NDArray[np.intp]) -> GaussianOutputs:
        """Return the likelihood of a subset of the samples."""
        return GaussianOutputs(self.Y[index], self.weight[index])
