"""Likelihoods: expectations against adaptive integration, sites against numerical derivatives."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit

from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from model.literal_bound import gaussian

KINDS = [QuadratureLogistic, GaussianOutputs]


def expected(likelihood, mean, var, noise=None):
    """E[ln p], or its lower bound, of all outputs; q(psi) at its best unless it is given."""
    return likelihood.evaluate(mean, var, noise)[0].sum()


def sites(likelihood, mean, var, noise=None):
    return likelihood.evaluate(mean, var, noise)[1]


def make(kind, N=9, C=2, seed=0):
    rng = np.random.default_rng(seed)
    eta = rng.standard_normal((N, C))
    T = eta if kind is GaussianOutputs else (eta > 0).astype(float)
    weight = rng.uniform(0.5, 2.0, (N, 1)) * np.ones(C)
    return kind(T, weight), rng.normal(0, 2, (N, C)), rng.uniform(0.1, 2.0, (N, C))


def gaussian_expectation(f, mean, var):
    sd = np.sqrt(var)
    edges = (mean - 12 * sd, mean + 12 * sd)
    value, _ = quad(
        lambda x: f(x) * gaussian(x, mean, sd), *edges, points=[0.0, mean], limit=400, epsabs=1e-13
    )
    return value


@pytest.mark.parametrize(("sd", "tolerance"), [(0.1, 1e-12), (1.0, 1e-9), (3.0, 1e-6), (8.0, 1e-6)])
@pytest.mark.parametrize("mean", [-6.0, -1.0, 0.0, 0.3, 4.0, 20.0])
def test_quadrature_is_the_integral(mean, sd, tolerance):
    """To rounding where weights are known about as well as data allow, to 1e-6 everywhere."""
    m, v = np.array([[mean]]), np.array([[sd**2]])
    for t in (0.0, 1.0):
        likelihood = QuadratureLogistic(np.array([[t]]), np.ones((1, 1)))
        sign = 2 * t - 1
        exact = gaussian_expectation(lambda x, s=sign: log_expit(s * x), mean, sd**2)
        assert expected(likelihood, m, v) == pytest.approx(exact, abs=tolerance)
        slope = gaussian_expectation(expit, mean, sd**2)
        curve = gaussian_expectation(lambda x: expit(x) * expit(-x), mean, sd**2)
        h, j = sites(likelihood, m, v)
        assert h[0, 0] == pytest.approx(curve, abs=10 * tolerance)
        assert (j - h * m)[0, 0] == pytest.approx(t - slope, abs=10 * tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_sites_are_the_derivatives_of_the_expectation(kind):
    """d/d mean = j - h mean and d/d var = -h/2, entry by entry, q(psi) held."""
    likelihood, mean, var = make(kind)
    noise = likelihood.noise_at(mean, 2.0 * var)
    h, j = sites(likelihood, mean, var, noise)

    def expectation(m, v):
        return expected(likelihood, m, v, noise)

    eps = 1e-5
    for n in range(len(mean)):
        for c in range(mean.shape[1]):
            step = np.zeros_like(mean)
            step[n, c] = eps
            up, down = expectation(mean + step, var), expectation(mean - step, var)
            assert (up - down) / (2 * eps) == pytest.approx((j - h * mean)[n, c], abs=1e-6)
            up, down = expectation(mean, var + step), expectation(mean, var - step)
            assert (up - down) / (2 * eps) == pytest.approx(-h[n, c] / 2, abs=1e-6)


def test_best_noise_maximises_the_expectation():
    likelihood, mean, var = make(GaussianOutputs)
    psi = likelihood.noise_at(mean, var)
    best = expected(likelihood, mean, var, psi)
    assert expected(likelihood, mean, var) == best
    rng = np.random.default_rng(2)
    for scale in (1e-3, 1e-2, 0.3):
        for _ in range(10):
            rate = psi.rate * np.exp(scale * rng.standard_normal(psi.rate.shape))
            assert expected(likelihood, mean, var, GammaPosterior(psi.shape, rate)) < best
            shape = psi.shape * np.exp(scale * rng.standard_normal())
            assert expected(likelihood, mean, var, GammaPosterior(shape, psi.rate)) < best


@pytest.mark.parametrize("kind", KINDS)
def test_outputs_have_bounds_of_their_own(kind):
    """The bound of one output does not move with the moments, or the noise, of another."""
    likelihood, mean, var = make(kind)
    target = likelihood.Y if kind is GaussianOutputs else likelihood.T
    value, found = likelihood.evaluate(mean, var, None)
    for c in range(mean.shape[1]):
        alone = kind(target[:, [c]], likelihood.weight[:, [c]])
        one, h_j = alone.evaluate(mean[:, [c]], var[:, [c]], None)
        assert one[0] == pytest.approx(value[c], rel=1e-12)
        np.testing.assert_allclose(h_j.h[:, 0], found.h[:, c], rtol=1e-12)
        np.testing.assert_allclose(h_j.j[:, 0], found.j[:, c], rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_the_row_twice(kind):
    likelihood, mean, var = make(kind)
    target = likelihood.Y if kind is GaussianOutputs else likelihood.T
    N = len(mean)
    weight = np.ones_like(mean)
    weight[3] = 2.0
    once = kind(target, weight)
    rows = np.append(np.arange(N), 3)
    twice = kind(target[rows], np.ones((N + 1, mean.shape[1])))
    np.testing.assert_allclose(once.base_rate(), twice.base_rate(), rtol=1e-12)
    if kind is GaussianOutputs:
        one, two = once.noise_at(mean, var), twice.noise_at(mean[rows], var[rows])
        assert one.shape == pytest.approx(two.shape, rel=1e-12)
        np.testing.assert_allclose(one.rate, two.rate, rtol=1e-12)
    assert expected(once, mean, var) == pytest.approx(
        expected(twice, mean[rows], var[rows]), rel=1e-12
    )
    h1, j1 = sites(once, mean, var)
    h2, j2 = sites(twice, mean[rows], var[rows])
    for got, want in ((h1, h2), (j1, j2)):
        summed = want[:N].copy()
        summed[3] += want[N]
        np.testing.assert_allclose(got, summed, rtol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_is_the_likelihood_of_those_rows(kind):
    likelihood, mean, var = make(kind)
    target = likelihood.Y if kind is GaussianOutputs else likelihood.T
    rows = np.array([5, 0, 2, 7])
    part, fresh = likelihood.rows(rows), kind(target[rows], likelihood.weight[rows])
    assert expected(part, mean[rows], var[rows]) == expected(fresh, mean[rows], var[rows])
    np.testing.assert_array_equal(
        sites(part, mean[rows], var[rows]), sites(fresh, mean[rows], var[rows])
    )
    np.testing.assert_array_equal(part.base_rate(), fresh.base_rate())
    if kind is not GaussianOutputs:
        singles = [likelihood.rows(np.array([n])) for n in range(len(mean))]
        parts = [expected(one, mean[[n]], var[[n]]) for n, one in enumerate(singles)]
        assert expected(likelihood, mean, var) == pytest.approx(sum(parts), rel=1e-12)


def test_base_rate_is_the_weighted_log_odds():
    likelihood, _, _ = make(QuadratureLogistic)
    rate = (likelihood.weight * likelihood.T).sum(0) / likelihood.weight.sum(0)
    np.testing.assert_allclose(expit(likelihood.base_rate()), rate, rtol=1e-12)
