"""Expectations of logistic functions under a Gaussian: adaptive integration, laws, and limits."""

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad
from scipy.special import expit, ndtri

from baldur.model.quadrature import NARROW, logistic_moments, logistic_rates

MEANS = [-40.0, -6.0, -1.0, 0.0, 0.3, 4.0, 25.0]
SDS = [1e-4, 0.01, 0.3, 1.0, NARROW, 1.8, 2.5, 4.0, 10.0, 33.0, 100.0, 1000.0]
means = st.floats(-50.0, 50.0)
sds = st.floats(1e-4, 1e3)


some = settings(max_examples=50, deadline=None)


def sigmoid(x):
    return 1.0 / (1.0 + math.exp(-x)) if x > -500.0 else 0.0


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

    return sum(quad(weighted, a, b, epsabs=1e-11)[0] for a, b in pairwise(edges))


def at(mean, sd):
    return [float(part[0]) for part in logistic_moments(np.array([mean]), np.array([sd**2]))]


@pytest.mark.parametrize("sd", SDS)
def test_moments_are_the_integrals(sd):
    for mean in MEANS:
        rate, slope, soft = at(mean, sd)
        assert rate == pytest.approx(integral(sigmoid, mean, sd), abs=1e-6)
        assert slope == pytest.approx(
            integral(lambda x: sigmoid(x) * sigmoid(-x), mean, sd), abs=1e-6
        )
        assert soft == pytest.approx(integral(softplus, mean, sd), abs=1e-6, rel=1e-6)


@some
@given(means, sds)
def test_moments_stay_in_range(mean, sd):
    rate, slope, soft = at(mean, sd)
    assert 0.0 <= rate <= 1.0
    assert 0.0 <= slope <= 0.25 + 1e-9
    # Jensen: softplus is convex, and above max(eta, 0).
    assert soft >= softplus(mean) - 1e-6 * max(1.0, abs(mean))
    assert soft >= max(mean, 0.0)


@some
@given(means, sds)
def test_signs_mirror(mean, sd):
    """sigmoid(-x) = 1 - sigmoid(x), and softplus(x) - softplus(-x) = x."""
    rate, slope, soft = at(mean, sd)
    mirrored = at(-mean, sd)
    assert rate + mirrored[0] == pytest.approx(1.0, abs=1e-8)
    assert slope == pytest.approx(mirrored[1], abs=1e-12)
    assert soft - mirrored[2] == pytest.approx(mean, abs=1e-9 * max(1.0, sd))


@some
@given(means, st.floats(1e-3, 30.0), sds)
def test_rate_rises_with_the_mean(mean, step, sd):
    assert at(mean + step, sd)[0] >= at(mean, sd)[0] - 1e-9


@some
@given(st.floats(0.1, 50.0), sds, st.floats(1.01, 10.0))
def test_uncertainty_pulls_the_rate_towards_a_half(mean, sd, factor):
    near, far = at(mean, sd)[0], at(mean, sd * factor)[0]
    assert 0.5 - 1e-9 <= far <= near + 1e-6


@some
@given(means, st.floats(0.5, 500.0))
def test_slope_is_the_derivative_of_the_rate(mean, sd):
    """d E[sigmoid]/d mean = E[sigmoid'], and d E[softplus]/d mean = E[sigmoid]."""
    eps = 1e-3 * sd
    up, down = at(mean + eps, sd), at(mean - eps, sd)
    here = at(mean, sd)
    assert (up[0] - down[0]) / (2 * eps) == pytest.approx(here[1], abs=2e-5)
    assert (up[2] - down[2]) / (2 * eps) == pytest.approx(here[0], abs=2e-5)


@pytest.mark.parametrize("sd", SDS)
def test_rates_have_their_own_curvature(sd):
    """The same rate and slope to the last bit, and E[sigmoid''] beside them."""
    for mean in MEANS:
        found = logistic_rates(np.array([mean]), np.array([sd**2]))
        moments = logistic_moments(np.array([mean]), np.array([sd**2]))
        assert (found.rate, found.slope) == (moments.rate, moments.slope)
        want = integral(lambda x: sigmoid(x) * sigmoid(-x) * (sigmoid(-x) - sigmoid(x)), mean, sd)
        assert float(found.curve[0]) == pytest.approx(want, abs=1e-6)


def test_both_rules_meet_at_their_border():
    mean = np.linspace(-30, 30, 121)
    below = logistic_moments(mean, np.full_like(mean, (NARROW * (1 - 1e-9)) ** 2))
    above = logistic_moments(mean, np.full_like(mean, (NARROW * (1 + 1e-9)) ** 2))
    for a, b in zip(below, above, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


@pytest.mark.parametrize("sd", [1e-4, 0.5, 2.0, 3.0, 10.0, 100.0, 1000.0])
def test_probabilities_are_those_of_draws(sd):
    """Exact to 1e-3 at any standard deviation, against a fine grid of quantiles."""
    nodes = ndtri((np.arange(200_000) + 0.5) / 200_000)
    for mean in (-3.0, 0.0, 0.7, 20.0):
        assert at(mean, sd)[0] == pytest.approx(expit(mean + sd * nodes).mean(), abs=1e-4)


def test_shape_and_mixed_widths():
    rng = np.random.default_rng(0)
    mean, var = rng.normal(0, 3, (4, 5, 2)), rng.uniform(0, 30, (4, 5, 2))
    whole = logistic_moments(mean, var)
    for part in whole:
        assert part.shape == mean.shape
    for index in np.ndindex(mean.shape):
        one = logistic_moments(mean[index][None], var[index][None])
        for a, b in zip(one, whole, strict=True):
            assert a[0] == pytest.approx(b[index], rel=1e-12)
