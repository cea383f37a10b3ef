"""Likelihoods: expectations against adaptive integration, sites against numerical derivatives."""

import numpy as np
import pytest
from scipy.integrate import quad, trapezoid
from scipy.special import expit, gammaln, log_expit

from baldur.model.likelihood import (
    GaussianLikelihood,
    LogisticLikelihood,
    Precision,
    Sites,
    log_odds_of_rate,
    residual,
)
from baldur.model.spike_slab import VAGUE
from model.literal_bound import gaussian

KINDS = [LogisticLikelihood, GaussianLikelihood]


def expected(likelihood, mean, var, noise=None):
    """E[ln p] of all folds and outputs; q(psi) at its best unless it is given."""
    return likelihood.evaluate(mean, var, noise)[0].sum()


def sites(likelihood, mean, var, noise=None):
    return likelihood.evaluate(mean, var, noise)[1]


def make(kind, F=2, N=9, C=2, seed=0):
    """Return a likelihood of F folds, and moments (F, C, N)."""
    rng = np.random.default_rng(seed)
    shape = (F, C, N)
    eta = rng.standard_normal(shape)
    T = eta if kind is GaussianLikelihood else (eta > 0).astype(float)
    weight = rng.uniform(0.5, 2.0, (F, 1, N)) * np.ones((C, 1))
    return kind(T, weight), rng.normal(0, 2, shape), rng.uniform(0.1, 2.0, shape)


def gaussian_expectation(f, mean, var):
    sd = np.sqrt(var)
    edges = (mean - 12 * sd, mean + 12 * sd)
    value, _ = quad(
        lambda x: f(x) * gaussian(x, mean, sd), *edges, points=[0.0, mean], limit=400, epsabs=1e-13
    )
    return value


@pytest.mark.parametrize("sd", [0.1, 1.0, 3.0, 8.0])
@pytest.mark.parametrize("mean", [-6.0, -1.0, 0.0, 0.3, 4.0, 20.0])
def test_expectations_are_the_integrals(mean, sd):
    m, v = np.full((1, 1, 1), mean), np.full((1, 1, 1), sd**2)
    for t in (0.0, 1.0):
        likelihood = LogisticLikelihood(np.full((1, 1, 1), t), np.ones((1, 1, 1)))
        sign = 2 * t - 1
        exact = gaussian_expectation(lambda x, s=sign: log_expit(s * x), mean, sd**2)
        assert expected(likelihood, m, v) == pytest.approx(exact, abs=5e-8)
        slope = gaussian_expectation(expit, mean, sd**2)
        curve = gaussian_expectation(lambda x: expit(x) * expit(-x), mean, sd**2)
        h, j = sites(likelihood, m, v)
        assert h[0, 0, 0] == pytest.approx(curve, abs=5e-8)
        assert (j - h * m)[0, 0, 0] == pytest.approx(t - slope, abs=5e-8)


@pytest.mark.parametrize("kind", KINDS)
def test_sites_are_the_derivatives_of_the_expectation(kind):
    """d/d mean = j - h mean and d/d var = -h/2, entry by entry, q(psi) held."""
    likelihood, mean, var = make(kind)
    noise = likelihood.noise_at(mean, 2.0 * var)
    h, j = sites(likelihood, mean, var, noise)

    def expectation(m, v):
        return expected(likelihood, m, v, noise)

    eps = 1e-5
    for at in np.ndindex(mean.shape):
        step = np.zeros_like(mean)
        step[at] = eps
        up, down = expectation(mean + step, var), expectation(mean - step, var)
        assert (up - down) / (2 * eps) == pytest.approx((j - h * mean)[at], abs=1e-6)
        up, down = expectation(mean, var + step), expectation(mean, var - step)
        assert (up - down) / (2 * eps) == pytest.approx(-h[at] / 2, abs=1e-6)


def test_best_noise_maximises_the_expectation():
    likelihood, mean, var = make(GaussianLikelihood)
    psi = likelihood.noise_at(mean, var)
    best = expected(likelihood, mean, var, psi)
    assert expected(likelihood, mean, var) == best
    rng = np.random.default_rng(2)
    for scale in (1e-3, 1e-2, 0.3):
        for _ in range(10):
            rate = psi.rate * np.exp(scale * rng.standard_normal(psi.rate.shape))
            assert expected(likelihood, mean, var, Precision(psi.shape, rate)) < best
            shape = psi.shape * np.exp(scale * rng.standard_normal())
            assert expected(likelihood, mean, var, Precision(shape, psi.rate)) < best


@pytest.mark.parametrize("kind", KINDS)
def test_folds_and_outputs_have_bounds_of_their_own(kind):
    """The bound of one does not move with the moments, or the noise, of another."""
    likelihood, mean, var = make(kind)
    value, found = likelihood.evaluate(mean, var, None)
    for f, c in np.ndindex(value.shape):
        alone = kind(likelihood.T[f, c][None, None], likelihood.weight[f, c][None, None])
        one, h_j = alone.evaluate(mean[f, c][None, None], var[f, c][None, None], None)
        assert one[0, 0] == pytest.approx(value[f, c], rel=1e-12)
        np.testing.assert_allclose(h_j.h[0, 0], found.h[f, c], rtol=1e-12)
        np.testing.assert_allclose(h_j.j[0, 0], found.j[f, c], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_the_row_twice(kind):
    likelihood, mean, var = make(kind)
    T, N = likelihood.T, mean.shape[-1]
    weight = np.ones_like(mean)
    weight[..., 3] = 2.0
    once = kind(T, weight)
    rows = np.append(np.arange(N), 3)
    twice = kind(T[..., rows], np.ones((*mean.shape[:2], N + 1)))
    np.testing.assert_allclose(once.base_logit(), twice.base_logit(), rtol=1e-12)
    if kind is GaussianLikelihood:
        one, two = once.noise_at(mean, var), twice.noise_at(mean[..., rows], var[..., rows])
        np.testing.assert_allclose(one.shape, two.shape, rtol=1e-12)
        np.testing.assert_allclose(one.rate, two.rate, rtol=1e-12)
    assert expected(once, mean, var) == pytest.approx(
        expected(twice, mean[..., rows], var[..., rows]), rel=1e-12
    )
    for got, want in zip(
        sites(once, mean, var), sites(twice, mean[..., rows], var[..., rows]), strict=True
    ):
        summed = want[..., :N].copy()
        summed[..., 3] += want[..., N]
        np.testing.assert_allclose(got, summed, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_of_weight_zero_are_not_there(kind):
    """Padding: no site, no part in the bound, the base rate or the evidence."""
    likelihood, mean, var = make(kind)
    weight = likelihood.weight.copy()
    weight[..., -3:] = 0.0
    padded = kind(likelihood.T, weight)
    short = kind(likelihood.T[..., :-3], weight[..., :-3])
    m, v = mean[..., :-3], var[..., :-3]
    np.testing.assert_allclose(padded.base_logit(), short.base_logit(), rtol=1e-12)
    value, found = padded.evaluate(mean, var, None)
    want, some = short.evaluate(m, v, None)
    np.testing.assert_allclose(value, want, rtol=1e-12)
    for got, part in zip(found, some, strict=True):
        np.testing.assert_allclose(got[..., :-3], part, rtol=1e-12)
        assert not got[..., -3:].any()
    noise = padded.noise_at(mean, var)
    if noise is not None:
        np.testing.assert_allclose(noise.mean, short.noise_at(m, v).mean, rtol=1e-12)
    evidence = padded.evidence(mean, var, found, noise)
    np.testing.assert_allclose(evidence, short.evidence(m, v, some, noise), rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_some_folds_are_taken(kind):
    likelihood, mean, var = make(kind, F=3)
    at = np.array([2, 0])
    part, fresh = likelihood.take(at), kind(likelihood.T[at], likelihood.weight[at])
    whole, found = likelihood.evaluate(mean, var, None)
    value, some = part.evaluate(mean[at], var[at], None)
    np.testing.assert_allclose(value, whole[at], rtol=1e-12)
    np.testing.assert_array_equal(value, fresh.evaluate(mean[at], var[at], None)[0])
    np.testing.assert_allclose(some.h, found.take(at).h, rtol=1e-12)
    np.testing.assert_allclose(some.j, found.take(at).j, rtol=1e-12)
    np.testing.assert_array_equal(part.base_logit(), likelihood.base_logit()[at])
    noise = likelihood.noise_at(mean, var)
    if noise is not None:
        np.testing.assert_array_equal(noise.take(at).mean, part.noise_at(mean[at], var[at]).mean)
        back = noise.put(at, Precision(noise.shape[at], 2.0 * noise.rate[at]))
        np.testing.assert_array_equal(back.rate[1], noise.rate[1])
        np.testing.assert_array_equal(back.rate[at], 2.0 * noise.rate[at])


def test_sites_move_by_fold_and_output():
    rng = np.random.default_rng(0)
    old, new = (Sites(*rng.random((2, 1, 3, 5))) for _ in range(2))
    moved = old.towards(new, np.array([[0.0, 0.5, 1.0]]))
    for got, a, b in zip(moved, old, new, strict=True):
        np.testing.assert_array_equal(got[:, 0], a[:, 0])
        np.testing.assert_allclose(got[:, 1], 0.5 * (a + b)[:, 1])
        np.testing.assert_allclose(got[:, 2], b[:, 2])


def test_base_logit_is_the_weighted_log_odds():
    likelihood, _, _ = make(LogisticLikelihood)
    rate = (likelihood.weight * likelihood.T).sum(-1) / likelihood.weight.sum(-1)
    np.testing.assert_allclose(expit(likelihood.base_logit()), rate, rtol=1e-12)
    np.testing.assert_allclose(expit(log_odds_of_rate(np.array([0.0, 1.0]))), [1e-6, 1 - 1e-6])


@pytest.mark.parametrize("logistic", [True, False])
def test_residuals_are_outputs_less_their_weighted_mean(logistic):
    rng = np.random.default_rng(0)
    T = rng.integers(0, 2, (3, 20)).astype(float)
    weight = rng.uniform(0.5, 2.0, 20)
    want = [weight * (t - weight @ t / weight.sum()) for t in T]
    np.testing.assert_allclose(residual(T, weight, logistic=logistic), want, atol=1e-12)


def test_the_noise_term_is_the_divergence_of_the_gamma_distributions():
    """E[ln p(psi)] - E[ln q(psi)], by integration over ln psi."""
    a0, b0 = VAGUE
    psi = Precision(np.array([[7.5]]), np.array([[3.2]]))
    x = np.linspace(np.log(1e-4), np.log(60.0), 400_001)
    p = np.exp(x)
    log_q = gamma_log_density(p, 7.5, 3.2)
    q = np.exp(log_q) * p
    found = trapezoid(q * (gamma_log_density(p, a0, b0) - log_q), x)
    assert psi.divergence()[0, 0] == pytest.approx(found, rel=1e-6)
    assert psi.mean[0, 0] == pytest.approx(trapezoid(q * p, x), rel=1e-6)
    assert psi.mean_log[0, 0] == pytest.approx(trapezoid(q * x, x), rel=1e-6)


def gamma_log_density(p, shape, rate):
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * np.log(p) - rate * p
