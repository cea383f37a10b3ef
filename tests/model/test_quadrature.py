"""Expectations of logistic functions under a Gaussian: adaptive integration, laws, and limits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, ndtr, ndtri

from baldur.model.likelihood import CHUNK, logistic_moments, logistic_rates, probit_mixture

MEANS = [-40.0, -12.0, -6.0, -2.5, -1.0, 0.0, 0.3, 4.0, 25.0]
SDS = [1e-6, 1e-4, 0.01, 0.3, 1.0, 1.5, 1.8, 2.5, 4.0, 10.0, 33.0, 100.0, 1000.0]
TOLERANCE = 2e-8
"""What `baldur.model.likelihood` promises of rate, slope and softplus."""
CURVE_TOLERANCE = 1e-7
"""Each derivative of the mixture is less exact: 2e-9, 1e-8, and 8e-8 for the second."""
means = st.floats(-50.0, 50.0)
sds = st.floats(1e-4, 1e3)
some = settings(max_examples=50, deadline=None)


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x > -500.0 else 0.0


def slope(x):
    return sigmoid(x) * sigmoid(-x)


def curve(x):
    return slope(x) * (sigmoid(-x) - sigmoid(x))


def softplus(x):
    return max(x, 0.0) + math.log1p(math.exp(-abs(x)))


def integral(f, mean, sd):
    """E[f] by adaptive integration, cut where f or the density bends."""
    low, high = mean - 10 * sd, mean + 10 * sd
    edges = {low, high, mean, mean - sd, mean + sd, -40.0, -8.0, 0.0, 8.0, 40.0}
    edges = sorted(x for x in edges if low <= x <= high)
    scale = 1.0 / (sd * math.sqrt(2 * math.pi))

    def weighted(x):
        return f(x) * scale * math.exp(-0.5 * ((x - mean) / sd) ** 2)

    return sum(quad(weighted, a, b, epsabs=1e-12, epsrel=1e-12)[0] for a, b in pairwise(edges))


def at(mean, sd):
    return [float(part[0]) for part in logistic_moments(np.array([mean]), np.array([sd**2]))]


@pytest.mark.parametrize("sd", SDS)
def test_moments_are_the_integrals(sd):
    for mean in MEANS:
        rate, slope_, soft = at(mean, sd)
        assert rate == pytest.approx(integral(sigmoid, mean, sd), abs=TOLERANCE, rel=0)
        assert slope_ == pytest.approx(integral(slope, mean, sd), abs=TOLERANCE, rel=0)
        # The expectation itself is as large as the standard deviation.
        assert soft == pytest.approx(integral(softplus, mean, sd), abs=TOLERANCE, rel=1e-9)


@pytest.mark.parametrize("sd", SDS)
def test_rates_have_their_own_curvature(sd):
    """The same rate and slope to the last bit, and E[sigmoid''] beside them."""
    for mean in MEANS:
        found = logistic_rates(np.array([mean]), np.array([sd**2]))
        moments = logistic_moments(np.array([mean]), np.array([sd**2]))
        assert (found.rate, found.slope) == (moments.rate, moments.slope)
        want = integral(curve, mean, sd)
        assert float(found.curve[0]) == pytest.approx(want, abs=CURVE_TOLERANCE, rel=0)


def test_without_variance_they_are_the_functions_themselves():
    x = np.linspace(-45, 45, 2001)
    zero = np.zeros_like(x)
    rate, slope_, soft = logistic_moments(x, zero)
    np.testing.assert_allclose(rate, expit(x), atol=TOLERANCE)
    np.testing.assert_allclose(slope_, expit(x) * expit(-x), atol=TOLERANCE)
    np.testing.assert_allclose(soft, np.logaddexp(0.0, x), atol=TOLERANCE)


def test_the_mixture_is_a_distribution_function():
    """Weights sum to one, so that rates reach 0 and 1, and the function is odd about a half."""
    p, c = probit_mixture()
    assert p.sum() == pytest.approx(1.0, abs=1e-12)
    assert (p > 0).all()
    assert (c > 0).all()
    x = np.linspace(-30, 30, 301)
    np.testing.assert_allclose(ndtr(x[:, None] / c) @ p, logistic_rates(x, 0.0).rate, atol=1e-15)


@some
@given(means, sds)
def test_moments_stay_in_range(mean, sd):
    rate, slope_, soft = at(mean, sd)
    assert 0.0 <= rate <= 1.0 + 1e-12
    assert 0.0 <= slope_ <= 0.25 + TOLERANCE
    # Jensen: softplus is convex, and above max(eta, 0).
    assert soft >= softplus(mean) - 5e-8
    assert soft >= max(mean, 0.0) - 1e-9


@some
@given(means, sds)
def test_signs_mirror(mean, sd):
    """sigmoid(-x) = 1 - sigmoid(x), and softplus(x) - softplus(-x) = x."""
    rate, slope_, soft = at(mean, sd)
    mirrored = at(-mean, sd)
    assert rate + mirrored[0] == pytest.approx(1.0, abs=1e-12)
    assert slope_ == pytest.approx(mirrored[1], abs=1e-14)
    assert soft - mirrored[2] == pytest.approx(mean, abs=1e-12 * max(1.0, sd, abs(mean)))


@some
@given(means, st.floats(1e-3, 30.0), sds)
def test_rate_rises_with_the_mean(mean, step, sd):
    assert at(mean + step, sd)[0] >= at(mean, sd)[0]


@some
@given(st.floats(0.1, 50.0), sds, st.floats(1.01, 10.0))
def test_uncertainty_pulls_the_rate_towards_a_half(mean, sd, factor):
    near, far = at(mean, sd)[0], at(mean, sd * factor)[0]
    assert 0.5 <= far <= near + 1e-12


@some
@given(means, st.floats(1e-4, 500.0))
def test_each_is_the_derivative_of_the_other(mean, sd):
    """By the mean: softplus -> rate -> slope -> curve. By the variance: half the second one."""
    eps = 1e-4 * max(sd, 1.0)
    v = np.array([sd**2])

    def both(m, v):
        rate, slope_, soft = (float(part[0]) for part in logistic_moments(np.array([m]), v))
        return np.array([soft, rate, slope_, float(logistic_rates(np.array([m]), v).curve[0])])

    here = both(mean, v)
    by_mean = (both(mean + eps, v) - both(mean - eps, v)) / (2 * eps)
    np.testing.assert_allclose(by_mean[:3], here[1:], atol=1e-7)
    step = 1e-4 * (sd**2 + 1.0)
    if sd**2 > step:
        by_var = (both(mean, v + step) - both(mean, v - step)) / (2 * step)
        np.testing.assert_allclose(by_var[:2], 0.5 * here[2:], atol=1e-7)


@pytest.mark.parametrize("sd", [1e-4, 0.5, 2.0, 3.0, 10.0, 100.0, 1000.0])
def test_probabilities_are_those_of_draws(sd):
    """Against a fine grid of quantiles."""
    nodes = ndtri((np.arange(200_000) + 0.5) / 200_000)
    for mean in (-3.0, 0.0, 0.7, 20.0):
        assert at(mean, sd)[0] == pytest.approx(expit(mean + sd * nodes).mean(), abs=1e-5)


def test_shape_chunks_and_mixed_widths():
    rng = np.random.default_rng(0)
    shape = (3, CHUNK // 2 + 7, 2)
    mean, var = rng.normal(0, 3, shape), rng.uniform(0, 30, shape)
    whole = logistic_moments(mean, var)
    for part in whole:
        assert part.shape == shape
    for index in [(0, 0, 0), (1, 5, 1), (2, CHUNK // 2 + 6, 1)]:
        one = logistic_moments(mean[index][None], var[index][None])
        for a, b in zip(one, whole, strict=True):
            assert a[0] == pytest.approx(b[index], rel=1e-12)
    shared = logistic_moments(mean, np.array(2.0))
    np.testing.assert_array_equal(shared.rate, logistic_moments(mean, np.full(shape, 2.0)).rate)
