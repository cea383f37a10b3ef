"""Likelihoods of the outputs: logistic under two bounds, and Gaussian.

Each likelihood answers two questions about a Gaussian q(eta) with given means and variances:
what is E[ln p(t | eta)] (or its lower bound), and which Gaussian *site*
``exp(j eta - h eta^2 / 2)`` should stand for it in the next update of the weights. Everything
else in the model sees only the sites (h, j), so both bounds and regression share one algebra.

All arrays are (N, C): samples by outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_expit

from baldur.model.ard import LOG_2PI, GammaPosterior, gamma_term
from baldur.model.priors import VAGUE

Array = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(32)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()

MIN_PRECISION = 1e-10
"""Floor of a site precision: a row the model is certain about keeps a defined covariance."""


class Sites(NamedTuple):
    """Gaussian stand-ins for the likelihood: precision h and linear term j, each (N, C)."""

    h: Array
    j: Array


class Likelihood(Protocol):
    """What inference needs to know about the outputs."""

    damping: float
    n_outputs: int
    weight: Array

    def expected(self, mean: Array, var: Array) -> float:
        """Return sum of E[ln p] (or of its lower bound) under N(mean, var)."""

    def sites(self, mean: Array, var: Array) -> Sites:
        """Return the sites that are best at N(mean, var)."""

    def base_rate(self) -> Array:
        """Return the (C,) linear predictor of a model without features."""

    def rows(self, index: NDArray[np.intp]) -> Likelihood:
        """Return the likelihood of a subset of the samples."""


def _log_odds(T: Array, weight: Array) -> Array:
    rate = (weight * T).sum(axis=0) / weight.sum(axis=0)
    rate = np.clip(rate, 1e-6, 1 - 1e-6)
    return np.log(rate) - np.log1p(-rate)


def gaussian_nodes(mean: Array, sd: Array) -> Iterator[tuple[float, Array]]:
    """Yield (weight, mean + node * sd) of the 32-point Gauss-Hermite rule."""
    for node, weight in zip(_NODES, _WEIGHTS, strict=True):
        yield weight, mean + node * sd


class QuadratureLogistic:
    """Bernoulli outputs; E[ln sigmoid] by 32-point Gauss-Hermite.

    Its error is below 1e-7 up to a standard deviation of 2, 5e-4 at 5 and 1e-2 at 10.

    site precision  h = E[sigmoid(eta)(1 - sigmoid(eta))]
    site linear     j = E[t - sigmoid(eta)] + h <eta>

    Departure from the paper: it bounds ln sigmoid by a quadratic, which is loose for confident
    rows and makes delta shrink too much. Under q each eta is Gaussian, so the integral is
    one-dimensional and needs no bound. A full step to the new sites may overshoot; callers damp
    it and accept only steps that raise the bound.
    """

    damping = 0.7

    def __init__(self, T: Array, weight: Array) -> None:
        self.T = T
        self.weight = weight
        self.n_outputs = T.shape[1]

    def expected(self, mean: Array, var: Array) -> float:
        """Return sum_nc weight E[t eta - ln(1 + exp eta)]."""
        sign = 1.0 - 2.0 * self.T
        total = np.zeros_like(mean)
        for weight, eta in gaussian_nodes(mean, np.sqrt(var)):
            total += weight * log_expit(-sign * eta)
        return float((self.weight * total).sum())

    def sites(self, mean: Array, var: Array) -> Sites:
        """Return the moment-matched sites at N(mean, var)."""
        slope = np.zeros_like(mean)
        curve = np.zeros_like(mean)
        for weight, eta in gaussian_nodes(mean, np.sqrt(var)):
            sigma = expit(eta)
            slope += weight * sigma
            curve += weight * sigma * (1.0 - sigma)
        h = np.maximum(self.weight * curve, MIN_PRECISION)
        return Sites(h, self.weight * (self.T - slope) + h * mean)

    def base_rate(self) -> Array:
        """Return the log odds of each output."""
        return _log_odds(self.T, self.weight)

    def rows(self, index: NDArray[np.intp]) -> QuadratureLogistic:
        """Return the likelihood of a subset of the samples."""
        return QuadratureLogistic(self.T[index], self.weight[index])


class JaakkolaLogistic:
    """Bernoulli outputs under the paper's quadratic bound.

    ln p(t|eta) >= ln sigmoid(xi) + eta t - (eta + xi)/2 - lambda(xi)(eta^2 - xi^2),
    lambda(xi) = tanh(xi/2)/(4 xi), best at xi^2 = <eta^2>; so h = 2 lambda(xi), j = t - 1/2.

    Departure from the paper: its q(Y) row prints diag(xi) where diag(lambda(xi)) belongs.
    """

    damping = 1.0

    def __init__(self, T: Array, weight: Array) -> None:
        self.T = T
        self.weight = weight
        self.n_outputs = T.shape[1]

    def expected(self, mean: Array, var: Array) -> float:
        """Return the bound at its best xi, where the quadratic term vanishes."""
        xi = np.sqrt(mean**2 + var)
        return float((self.weight * (log_expit(xi) - 0.5 * xi + (self.T - 0.5) * mean)).sum())

    def sites(self, mean: Array, var: Array) -> Sites:
        """Return the sites at the best xi."""
        xi = np.maximum(np.sqrt(mean**2 + var), 1e-8)
        h = np.maximum(self.weight * np.tanh(0.5 * xi) / (2.0 * xi), MIN_PRECISION)
        return Sites(h, self.weight * (self.T - 0.5))

    def base_rate(self) -> Array:
        """Return the log odds of each output."""
        return _log_odds(self.T, self.weight)

    def rows(self, index: NDArray[np.intp]) -> JaakkolaLogistic:
        """Return the likelihood of a subset of the samples."""
        return JaakkolaLogistic(self.T[index], self.weight[index])


class GaussianOutputs:
    """Observed real outputs y ~ N(eta, 1/psi) with psi_c ~ Gamma, one per output.

    E[ln p] = (w/2)(<ln psi> - ln 2pi) - (w/2) <psi> ((y - <eta>)^2 + Var eta). The Gamma term of
    q(psi) is part of `expected`, so callers treat this likelihood like the others.

    Departure from the paper: one psi per output instead of one for all, because outputs have
    their own units and noise.
    """

    damping = 1.0

    def __init__(self, Y: Array, weight: Array) -> None:
        self.Y = Y
        self.weight = weight
        self.n_outputs = Y.shape[1]
        self._prior = VAGUE
        shape = VAGUE.shape + 0.5 * float(weight.sum(axis=0).mean())
        mean = self.base_rate()
        spread = (weight * (Y - mean) ** 2).sum(axis=0)
        self.psi = GammaPosterior(shape, VAGUE.rate + 0.5 * np.maximum(spread, 1e-12))

    def update_noise(self, mean: Array, var: Array) -> None:
        """q(psi): shape a0 + N/2, rate_c = b0 + (1/2) sum_n <(y - eta)^2>."""
        spread = (self.weight * ((self.Y - mean) ** 2 + var)).sum(axis=0)
        self.psi = GammaPosterior(self.psi.shape, self._prior.rate + 0.5 * spread)

    def expected(self, mean: Array, var: Array) -> float:
        """Return E[ln p(Y | eta, psi)] plus the Gamma term of q(psi)."""
        fit = (self.weight * ((self.Y - mean) ** 2 + var)).sum(axis=0)
        count = self.weight.sum(axis=0)
        value = 0.5 * (count * (self.psi.mean_log - LOG_2PI) - self.psi.mean * fit).sum()
        return float(value) + gamma_term(self.psi, self._prior)

    def sites(self, mean: Array, var: Array) -> Sites:
        """Return h = w <psi>, j = w <psi> y; they do not depend on q(eta)."""
        h = np.maximum(self.weight * self.psi.mean, MIN_PRECISION)
        return Sites(h, h * self.Y)

    def base_rate(self) -> Array:
        """Return the mean of each output."""
        return (self.weight * self.Y).sum(axis=0) / self.weight.sum(axis=0)

    def rows(self, index: NDArray[np.intp]) -> GaussianOutputs:
        """Return the likelihood of a subset of the samples."""
        return GaussianOutputs(self.Y[index], self.weight[index])


def class_probability(mean: Array, var: Array) -> Array:
    """Return E[sigmoid(eta)] under N(mean, var), by quadrature."""
    total = np.zeros_like(mean)
    for weight, eta in gaussian_nodes(mean, np.sqrt(var)):
        total += weight * expit(eta)
    return total
