"""Likelihoods: expectations against adaptive integration, sites against numerical derivatives."""

import math
from copy import deepcopy
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import quad, trapezoid
from scipy.special import expit, gammaln, log_expit, ndtr, ndtri
from scipy.stats import norm

from baldur.inference.stacking import mixture, pooled_weights
from baldur.model.likelihood import (
    CHUNK,
    VAGUE,
    GaussianLikelihood,
    LogisticLikelihood,
    Precision,
    Sites,
    log_odds_of_rate,
    logistic_moments,
    logistic_rates,
    probit_mixture,
    put_folds,
    residual,
    take_folds,
)
from baldur.model.predictions import (
    integrate_left_out,
    probabilities,
    probability_interval,
    score_and_slopes,
    shrinkage,
    tails,
)
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
    part, fresh = take_folds(likelihood, at), kind(likelihood.T[at], likelihood.weight[at])
    whole, found = likelihood.evaluate(mean, var, None)
    value, some = part.evaluate(mean[at], var[at], None)
    np.testing.assert_allclose(value, whole[at], rtol=1e-12)
    np.testing.assert_array_equal(value, fresh.evaluate(mean[at], var[at], None)[0])
    np.testing.assert_allclose(some.h, take_folds(found, at).h, rtol=1e-12)
    np.testing.assert_allclose(some.j, take_folds(found, at).j, rtol=1e-12)
    np.testing.assert_array_equal(part.base_logit(), likelihood.base_logit()[at])
    noise = likelihood.noise_at(mean, var)
    if noise is not None:
        np.testing.assert_array_equal(
            take_folds(noise, at).mean, part.noise_at(mean[at], var[at]).mean
        )
        part = Precision(noise.shape[at], 2.0 * noise.rate[at])
        back = put_folds(deepcopy(noise), at, part)
        np.testing.assert_array_equal(back.rate[1], noise.rate[1])
        np.testing.assert_array_equal(back.rate[at], part.rate)


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
    a0 = b0 = VAGUE
    psi = Precision(np.array([[7.5]]), np.array([[3.2]]))
    x = np.linspace(np.log(1e-4), np.log(60.0), 400_001)
    p = np.exp(x)
    log_q = gamma_log_density(p, 7.5, 3.2)
    q = np.exp(log_q) * p
    found = trapezoid(q * (gamma_log_density(p, a0, b0) - log_q), x)
    assert psi.negative_divergence()[0, 0] == pytest.approx(found, rel=1e-6)
    assert psi.mean[0, 0] == pytest.approx(trapezoid(q * p, x), rel=1e-6)
    assert psi.mean_log[0, 0] == pytest.approx(trapezoid(q * x, x), rel=1e-6)


def gamma_log_density(p, shape, rate):
    return shape * np.log(rate) - gammaln(shape) + (shape - 1.0) * np.log(p) - rate * p


# -- expectations of logistic functions under a Gaussian: adaptive integration, laws, and limits --


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
        assert (found[0], found[1]) == (moments[0], moments[1])
        want = integral(curve, mean, sd)
        assert float(found[2][0]) == pytest.approx(want, abs=CURVE_TOLERANCE, rel=0)


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
    np.testing.assert_allclose(ndtr(x[:, None] / c) @ p, logistic_rates(x, 0.0)[0], atol=1e-15)


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
        return np.array([soft, rate, slope_, float(logistic_rates(np.array([m]), v)[2][0])])

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
    np.testing.assert_array_equal(shared[0], logistic_moments(mean, np.full(shape, 2.0))[0])


# -- From moments to predictions: normalised classes, densities of known outcomes, pooled weights


MEAN = np.array([[0.3, -1.0], [2.0, 0.1]])
VAR = np.array([[0.5, 1.0], [0.2, 2.0]])
T = np.array([[1.0, 0.0], [0.0, 1.0]])
NODES = norm.ppf((np.arange(20_000) + 0.5) / 20_000)


def rates():
    """P(t = 1) from a fine grid of quantiles."""
    return expit(MEAN[..., None] + np.sqrt(VAR)[..., None] * NODES).mean(axis=-1)


def score(mean, var, T, task):
    return score_and_slopes(mean, var, T, task)[0]


def test_probabilities_are_averages_over_the_posterior():
    np.testing.assert_allclose(probabilities(MEAN, VAR, "multilabel"), rates(), atol=1e-5)
    p = rates()
    q = probabilities(MEAN, VAR, "multiclass")
    np.testing.assert_allclose(q, p / p.sum(axis=1, keepdims=True), atol=1e-5)


def test_mixtures_have_the_moments_of_draws():
    means = np.stack([MEAN, MEAN + np.array([[1.0, 0.5], [-1.0, -0.2]])])
    variances = np.stack([VAR, [[0.1, 0.3], [0.4, 1.0]]])
    weights = np.array([[0.3, 0.8], [0.7, 0.2]])[:, None]
    mean, var = mixture(means, variances, weights)
    for at in np.ndindex(2, 2):
        values = [m[at] + np.sqrt(v[at]) * NODES for m, v in zip(means, variances, strict=True)]
        share = weights[:, 0, at[1]]
        first = share @ [x.mean() for x in values]
        second = share @ [(x**2).mean() for x in values]
        assert mean[at] == pytest.approx(first, abs=1e-6)
        assert var[at] == pytest.approx(second - first**2, rel=1e-3)


def test_leading_axes_are_kept():
    """A path of models at once is each model alone."""
    mean, var = np.stack([MEAN, 2 * MEAN, -MEAN]), np.stack([VAR, VAR, 3 * VAR])
    for task in ("multilabel", "multiclass", "regression"):
        together = score_and_slopes(mean, var, T, task)
        for k in range(3):
            alone = score_and_slopes(mean[k], var[k], T, task)
            for got, want in zip(together, alone, strict=True):
                np.testing.assert_allclose(got[k], want, rtol=1e-12)


def test_scores_are_log_densities_of_known_outcomes():
    p = rates()
    labels = np.where(T > 0, p, 1 - p)
    np.testing.assert_allclose(
        score(MEAN, VAR, T, "multilabel"), np.log(labels).sum(axis=1), atol=1e-5
    )
    q = p / p.sum(axis=1, keepdims=True)
    want = np.log([q[0, 0], q[1, 1]])
    np.testing.assert_allclose(score(MEAN, VAR, T, "multiclass"), want, atol=1e-5)
    numbers = norm.logpdf(T, MEAN, np.sqrt(VAR)).sum(axis=1)
    np.testing.assert_allclose(score(MEAN, VAR, T, "regression"), numbers, rtol=1e-12)


def test_certainty_never_costs_everything():
    one = np.ones((1, 1))
    wrong = score(500.0 * one, 1e-12 * one, 0.0 * one, "binary")[0]
    assert np.log(1e-13) < wrong <= np.log(1e-11)
    assert np.isfinite(score(1e6 * one, one, 0.0 * one, "regression")[0])
    shares = np.array([[500.0, -500.0]]), np.full((1, 2), 1e-12)
    assert np.isfinite(score(*shares, np.array([[0.0, 1.0]]), "multiclass")[0])


def test_what_is_left_out_is_averaged_over():
    """Probabilities with the shrunk weights are those with what was left out as random."""
    eta = np.linspace(-4.0, 4.0, 33)[:, None]
    for v in (0.0, 0.5, 2.0, 6.0):
        left = np.array([v])
        mean, var = integrate_left_out(eta, np.ones_like(eta), left, "binary")
        exact = logistic_moments(eta, np.full_like(eta, v))[0]
        np.testing.assert_allclose(expit(mean), exact, atol=0.02)
        np.testing.assert_allclose(mean, shrinkage(left) * eta)
        np.testing.assert_allclose(var, shrinkage(left) ** 2 * np.ones_like(eta))
        mean, var = integrate_left_out(eta, np.ones_like(eta), left, "regression")
        np.testing.assert_array_equal(mean, eta)
        np.testing.assert_allclose(var, 1.0 + v)


def test_several_gaussians_are_pooled_to_one():
    """Means around the base rate, stretched; covariances within, between and of the slope."""
    rng = np.random.default_rng(0)
    J, C, k = 3, 2, 4
    means = rng.standard_normal((J, C, k))
    covs = np.stack([[np.cov(rng.standard_normal((k, 9))) for _ in range(C)] for _ in range(J)])
    weights = rng.dirichlet(np.ones(J), C).T
    base = rng.standard_normal((C, k))
    slope, slope_var = np.array([1.7, 0.4]), np.array([0.1, 0.0])
    mean, cov = pooled_weights(means, covs, weights, base, slope, slope_var)
    averaged = np.einsum("jc,jckl->ckl", weights, covs)[None]
    again = pooled_weights(means, averaged, weights, base, slope, slope_var)
    for c in range(C):
        centre = weights[:, c] @ means[:, c]
        literal = sum(
            w * (S + np.outer(m - centre, m - centre))
            for w, m, S in zip(weights[:, c], means[:, c], covs[:, c], strict=True)
        )
        away = slope[c] * (centre - base[c])
        np.testing.assert_allclose(mean[c], base[c] + away)
        np.testing.assert_allclose(cov[c], literal + slope_var[c] * np.outer(away, away))
    np.testing.assert_allclose(again[0], mean)
    np.testing.assert_allclose(again[1], cov)


# -- intervals of predicted probabilities are the quantiles of draws ------------------------------


def random_moments(n=4, C=1, seed=0):
    rng = np.random.default_rng(seed)
    return 2.0 * rng.standard_normal((n, C)), rng.gamma(2.0, 0.5, (n, C))


def drawn(mean, var, size=200_000):
    """Return draws of the linear predictors, (size, n, C)."""
    z = np.random.default_rng(1).standard_normal((size, 1, mean.shape[1]))
    return mean + np.sqrt(var) * z


def test_tails_leave_the_level_inside():
    assert tails(0.95) == pytest.approx((0.025, 0.975))


def test_two_classes_have_the_quantiles_of_a_gaussian():
    mean, var = random_moments()
    low, high = probability_interval(mean, var, "binary", 0.95)
    np.testing.assert_allclose(low, expit(mean - 1.959964 * np.sqrt(var)), atol=1e-6)
    np.testing.assert_allclose(high, expit(mean + 1.959964 * np.sqrt(var)), atol=1e-6)
    expected = np.quantile(expit(drawn(mean, var)), [0.025, 0.975], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.01)


def test_several_classes_have_the_quantiles_of_draws_of_their_shares():
    mean, var = random_moments(C=3)
    low, high = probability_interval(mean, var, "multiclass", 0.95)
    rate = expit(drawn(mean, var))
    shares = rate / rate.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose([low, high], np.quantile(shares, tails(0.95), axis=0), atol=0.015)
    assert (low < high).all()


def test_rows_do_not_depend_on_each_other(constants):
    mean, var = random_moments(n=7, C=3)
    whole = probability_interval(mean, var, "multiclass", 0.9)
    constants(DRAWN=1)
    for got, want in zip(probability_interval(mean, var, "multiclass", 0.9), whole, strict=True):
        np.testing.assert_array_equal(got, want)
    one = probability_interval(mean[3:4], var[3:4], "multiclass", 0.9)
    np.testing.assert_array_equal(one[0], whole[0][3:4])


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multilabel", 2), ("multiclass", 3)])
def test_what_is_known_exactly_has_no_interval(task, C):
    mean, _ = random_moments(C=C)
    var = np.full((4, C), 1e-12)
    p = probabilities(mean, var, task)
    for end in probability_interval(mean, var, task, 0.95):
        np.testing.assert_allclose(end, p, atol=1e-5)


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multiclass", 3)])
def test_noise_of_a_row_is_part_of_its_probability_and_not_of_the_interval(task, C):
    mean, _ = random_moments(C=C)
    var = np.full((4, C), 2.0 + 1e-9)
    p = probabilities(mean, var, task)
    for end in probability_interval(mean, var, task, 0.95, np.full(C, 2.0)):
        np.testing.assert_allclose(end, p, atol=1e-4)
