"""Likelihoods of the outputs: logistic for labels, Gaussian for real outcomes.

Each likelihood answers two questions about a Gaussian q(eta) with given means and variances: what
is E[ln p(t | eta)], and which Gaussian *site* ``exp(j eta - h eta^2 / 2)`` should stand for it in
the next update of the weights. Everything else in the model sees only the sites (h, j), so labels
and continuous outcomes share one algebra.

A likelihood never changes. What it learns, such as q(psi) of Gaussian outputs, is its `noise`:
callers keep it with the rest of their state and hand it back; logistic outputs have none. Arrays
are (F, C, n): folds by outputs by rows. Rows of weight 0 pad a fold: their sites are 0.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numpy as np
from scipy.special import digamma, expit, gammaln, ndtr

from baldur.core.types import Array, IntArray

_WEIGHTS = np.array(
    [
        0.0015206280991473234,
        0.028774082537394347,
        0.13309915812052253,
        0.27519186203967827,
        0.31423277994745646,
        0.1931771893449166,
        0.050812613851935653,
        0.0031916860589487313,
    ]
)
_SCALES = np.array(
    [
        4.185709058046048,
        3.2261469561223994,
        2.5142230921159436,
        1.961472923093729,
        1.5325541887989895,
        1.2011990150918166,
        0.9424295633533045,
        0.7316804534500289,
    ]
)
_SQUARES = _SCALES[:, None] ** 2
_DENSITY = _WEIGHTS / np.sqrt(2.0 * np.pi)

CHUNK = 1024
"""Logits worked on at once, few enough for all eight terms to stay in the processor's cache."""


def logistic_moments(mean: Array, var: Array) -> tuple[Array, Array, Array]:
    """Return E[sigmoid(eta)], E[sigmoid'(eta)] and E[ln(1 + exp eta)] for eta ~ N(mean, var)."""
    return _expectations(mean, var, softplus=True)


def logistic_rates(mean: Array, var: Array) -> tuple[Array, Array, Array]:
    """Return E[sigmoid(eta)] and its first two derivatives by the mean, for eta ~ N(mean, var)."""
    return _expectations(mean, var, softplus=False)


def probit_mixture() -> tuple[Array, Array]:
    """Return the weights p and scales c of the mixture, for programs that evaluate it elsewhere."""
    return _WEIGHTS.copy(), _SCALES.copy()


def _expectations(mean: Array, var: Array, *, softplus: bool) -> tuple[Array, Array, Array]:
    """Return E[sigmoid], E[sigmoid'] and either E[softplus] or E[sigmoid''] for eta ~ N(mean, var).

    The sigmoid is taken as a mixture of eight probit functions, sum_i p_i Phi(eta / c_i), whose
    expectations are known in closed form.
    """
    mean = np.asarray(mean, dtype=float)
    shape = mean.shape
    m = mean.ravel()
    v = np.broadcast_to(var, shape).ravel()
    rate, slope, last = np.empty_like(m), np.empty_like(m), np.empty_like(m)
    for start in range(0, len(m), CHUNK):
        chunk = slice(start, start + CHUNK)
        r2 = v[chunk] + _SQUARES  # (8, CHUNK): var + c_i^2
        r = np.sqrt(r2)
        z = m[chunk] / r
        density = np.exp(-0.5 * z * z)
        rate[chunk] = _WEIGHTS @ ndtr(z)
        slope[chunk] = _DENSITY @ (density / r)
        if softplus:
            last[chunk] = m[chunk] * rate[chunk] + _DENSITY @ (density * r)
        else:
            last[chunk] = -(_DENSITY @ (density * z / r2))
    return rate.reshape(shape), slope.reshape(shape), last.reshape(shape)


LOG_2PI = float(np.log(2.0 * np.pi))

VAGUE = 1e-6
"""Shape a0 and rate b0 of the Gamma prior of a noise precision: it says next to nothing."""
MIN_PRECISION = 1e-10
"""Floor of a site precision: a row the model is certain about keeps a defined covariance."""


Folds = TypeVar("Folds")


def take_folds(values: Folds, at: IntArray | slice) -> Folds:
    """Return the folds `at` of an array, or of every array in a dataclass or a tuple.

    Folds are the first axis. Other values, such as None, are returned as they are, and where all
    folds are taken in order, arrays are not copied.
    """
    whole: Any = values
    if isinstance(whole, np.ndarray):
        if isinstance(at, slice) or not np.array_equal(at, np.arange(len(whole))):
            whole = whole[at]
    elif isinstance(whole, tuple):
        whole = type(whole)(*(take_folds(part, at) for part in whole))
    elif is_dataclass(whole):
        parts = {f.name: take_folds(getattr(whole, f.name), at) for f in fields(whole)}
        whole = replace(cast(Any, whole), **parts)
    return whole


def put_folds(values: Folds, at: IntArray, part: Folds) -> Folds:
    """Write `part`, which `take_folds` took and which has changed since, back into values.

    Arrays are written in place, dataclasses and tuples are made anew around them. The columns X1
    of a design are left out, because they never change.
    """
    whole: Any = values
    if isinstance(whole, np.ndarray):
        whole[at] = part
    elif isinstance(whole, tuple):
        whole = type(whole)(
            *(put_folds(a, at, b) for a, b in zip(whole, cast(Any, part), strict=True))
        )
    elif is_dataclass(whole):
        names = [f.name for f in fields(whole) if f.name != "X1"]
        parts = {name: put_folds(getattr(whole, name), at, getattr(part, name)) for name in names}
        whole = replace(cast(Any, whole), **parts)
    return whole


class Sites(NamedTuple):
    """Gaussian factors that stand for the likelihood: precision h and linear term j, (F, C, n)."""

    h: Array
    j: Array

    def towards(self, target: Sites, length: Array) -> Sites:
        """Return sites part of the way to their target: at `length` 1, (F, C) or (F, 1), there."""
        share = length[..., None]
        return Sites(self.h + share * (target.h - self.h), self.j + share * (target.j - self.j))


@dataclass(frozen=True)
class Precision:
    """q(psi): independent Gamma distributions of the noise precisions, shape and rate (F, C)."""

    shape: Array
    rate: Array

    @property
    def mean(self) -> Array:
        """Mean precision <psi>, (F, C)."""
        return self.shape / self.rate

    @property
    def mean_log(self) -> Array:
        """Mean logarithm of the precision <ln psi>, (F, C)."""
        return np.asarray(digamma(self.shape) - np.log(self.rate))

    def negative_divergence(self) -> Array:
        """Return -KL(q || p) = E[ln p(psi)] - E[ln q(psi)] from the vague prior, (F, C)."""
        a0 = b0 = VAGUE
        prior = a0 * np.log(b0) - gammaln(a0) + (a0 - 1.0) * self.mean_log - b0 * self.mean
        entropy = self.shape - np.log(self.rate) + gammaln(self.shape)
        return np.asarray(prior + entropy + (1.0 - self.shape) * digamma(self.shape))


Noise = Precision | None
"""q(psi) of Gaussian outputs; None for logistic outputs."""


@dataclass(frozen=True)
class Likelihood:
    """Outputs T and how much each row counts, both (F, C, n); the density is that of a subclass.

    Moments are those of N(mean, var), the linear predictor under q. Values are summed over rows.
    """

    T: Array
    weight: Array
    shared: bool = False  # whether outputs share the precisions of their sites

    @property
    def n_outputs(self) -> int:
        """Number of outputs C."""
        return self.T.shape[1]

    @property
    def n_precisions(self) -> int:
        """Number of outputs with site precisions of their own; 1 where all share them."""
        return 1 if self.shared else self.n_outputs

    def noise_at(self, mean: Array, var: Array) -> Noise:
        """Return the q(psi) that maximises the bound; None for outputs without noise."""
        return None

    def evaluate(self, mean: Array, var: Array, noise: Noise) -> tuple[Array, Sites]:
        """Return E[ln p], (F, C), and the best sites. Outputs with shared sites have (F, 1)."""
        raise NotImplementedError

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Noise) -> Array:
        """Return what takes the place of E[ln p] where the log evidence is wanted, (F, C).

        `mean` and `var` are moments under sites that have converged.
        """
        raise NotImplementedError

    def base_logit(self) -> Array:
        """Return the linear predictor of a model without features, (F, C)."""
        return np.asarray((self.weight * self.T).sum(axis=-1) / self.weight.sum(axis=-1))


@dataclass(frozen=True)
class LogisticLikelihood(Likelihood):
    """Bernoulli outputs of 0 and 1.

    site precision  h = E[sigmoid(eta)(1 - sigmoid(eta))]
    site linear     j = E[t - sigmoid(eta)] + h <eta>

    Departure from the paper: it bounds ln sigmoid by a quadratic, which is loose for confident
    rows and makes delta shrink too much. Under q each eta is Gaussian, so the integral is
    one-dimensional and needs no bound. A full step to the new sites may overshoot; callers damp
    it and accept only steps that raise the bound.

    Several outputs may be given one site precision per row, the mean of their own (`shared`). It is
    the precision of the best posteriors with one covariance for all outputs: the sum of their
    bounds is largest there. Means have their optimum where alpha = t - E[sigmoid], whatever the
    precision is. So sharing it approximates variances alone, and saves all factorisations but one.
    """

    def base_logit(self) -> Array:
        """Return the log odds of each output, (F, C)."""
        return log_odds_of_rate(super().base_logit())

    def evaluate(self, mean: Array, var: Array, noise: Noise) -> tuple[Array, Sites]:
        """Return sum_n weight E[t eta - ln(1 + exp eta)], and the moment-matched sites."""
        rate, slope, softplus = logistic_moments(mean, var)
        h = np.where(self.weight > 0, np.maximum(self.weight * slope, MIN_PRECISION), 0.0)
        j = self.weight * (self.T - rate) + h * mean
        value = np.asarray((self.weight * (self.T * mean - softplus)).sum(axis=-1))
        if not self.shared:
            return value, Sites(h, j)
        common = h.mean(axis=1, keepdims=True)
        # alpha = j - h <eta> stays what it is, and with it the optimum of the means.
        return value.sum(axis=1, keepdims=True), Sites(common, j + (common - h) * mean)

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Noise) -> Array:
        """Return the evidence of expectation propagation at the current sites.

        The bound gets looser as the prior gets wider, so scales of the prior must not be weighed
        by it. With the cavity N(cm, cv), 1/cv = 1/v - h, cm/cv = m/v - j, each row adds

            j m - h (m^2 + v)/2 + ln E[p(t | eta)] - g,
            g = -ln(1 + h cv)/2 + (j^2 cv + 2 j cm - h cm^2)/(2 (1 + h cv)),

        E under the cavity. A row of weight w is w rows, each with its part of the site. Where the
        cavity has no positive variance, a row adds its part of the bound.
        """
        weight = np.where(self.weight > 0, self.weight, 1.0)
        h, j = sites.h / weight, sites.j / weight
        cavity_precision = 1.0 / var - h
        proper = cavity_precision * var > 1e-6
        cv = 1.0 / np.where(proper, cavity_precision, 1.0)
        cm = (mean / var - j) * cv
        rate, _, _ = logistic_rates(cm, cv)
        z = np.where(self.T > 0.5, rate, 1.0 - rate)  # E[p(t | eta)]
        spread = 1.0 + h * cv
        twice_g = (j**2 * cv + 2.0 * j * cm - h * cm**2) / spread - np.log(spread)
        by_row = j * mean - 0.5 * h * (mean**2 + var) + np.log(np.maximum(z, 1e-300))
        by_row = by_row - 0.5 * twice_g
        if not proper.all():
            _, _, softplus = logistic_moments(mean, var)
            by_row = np.where(proper, by_row, self.T * mean - softplus)
        return np.asarray((self.weight * by_row).sum(axis=-1))


@dataclass(frozen=True)
class GaussianLikelihood(Likelihood):
    """Observed real outputs y ~ N(eta, 1/psi), psi ~ Gamma, one per output.

    E[ln p] = (w/2)(<ln psi> - ln 2pi) - (w/2) <psi> ((y - <eta>)^2 + Var eta). The Gamma term of
    q(psi) is part of the value, so callers treat this likelihood like the other.

    Departure from the paper: one psi per output instead of one for all, because outputs have
    their own units and noise.
    """

    def noise_at(self, mean: Array, var: Array) -> Precision:
        """Return q(psi): shape a0 + n/2, rate b0 + (1/2) sum_n <(y - eta)^2>."""
        squares = (self.weight * ((self.T - mean) ** 2 + var)).sum(axis=-1)
        shape = VAGUE + 0.5 * self.weight.sum(axis=-1)
        return Precision(shape, VAGUE + 0.5 * np.maximum(squares, 1e-12))

    def evaluate(self, mean: Array, var: Array, noise: Noise) -> tuple[Array, Sites]:
        """Return E[ln p(Y | eta, psi)] plus the Gamma term; sites h = w <psi>, j = w <psi> y."""
        psi = self.noise_at(mean, var) if noise is None else noise
        squares = (self.weight * ((self.T - mean) ** 2 + var)).sum(axis=-1)
        count = self.weight.sum(axis=-1)
        value = 0.5 * (count * (psi.mean_log - LOG_2PI) - psi.mean * squares)
        precision = np.maximum(self.weight * psi.mean[..., None], MIN_PRECISION)
        h = np.where(self.weight > 0, precision, 0.0)
        return np.asarray(value + psi.negative_divergence()), Sites(h, h * self.T)

    def evidence(self, mean: Array, var: Array, sites: Sites, noise: Noise) -> Array:
        """Return the bound, which is exact except for the approximation q(psi)."""
        return self.evaluate(mean, var, noise)[0]


def log_odds_of_rate(rate: Array) -> Array:
    """Return the log odds of a share of ones, held within 1e-6 and 1 - 1e-6."""
    rate = np.clip(rate, 1e-6, 1.0 - 1e-6)
    return np.asarray(np.log(rate) - np.log1p(-rate))


def residual(T: Array, weight: Array, *, logistic: bool) -> Array:
    """Return the weighted outputs minus their mean under a model without features.

    Features are screened by their association with it. Shapes: T, weight (..., n) of n rows.
    """
    mean = (weight * T).sum(axis=-1, keepdims=True) / weight.sum(axis=-1, keepdims=True)
    if logistic:  # the rate held off 0 and 1
        mean = expit(log_odds_of_rate(mean))
    return np.asarray(weight * (T - mean))


# -- predictions ----------------------------------------------------------------------------------

Task = Literal["binary", "multiclass", "multilabel", "regression"]
