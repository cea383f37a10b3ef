"""The spike-and-slab prior of one weight: literal integrals, and the variances that replace it."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from baldur.inference.design import ColumnDesign
from baldur.inference.spike_slab_member import (
    MIN_RHO,
    NONLOCAL,
    cavity,
    inclusion_probability,
    mean_matched_variance,
    slab_moments,
    wider_variance,
)
from baldur.model.likelihood import Sites
from baldur.model.posterior import INTERCEPT_VAR, with_ones

rates = st.floats(1e-4, 1.0 - 1e-4)
positive = st.floats(1e-3, 1e2)
some = settings(max_examples=50, deadline=None)
LOBES = [0.0, 0.5, NONLOCAL]


def one(value):
    """One fold, one output, one column."""
    return np.array([[[value]]])


def columns(X):
    """Return a design of one fold and one view."""
    owner = np.zeros((1, X.shape[1]), dtype=int)
    return ColumnDesign(with_ones(X)[None], owner, np.array([float(len(X))]), 1)


def statistics(design, s, sites):
    q = design.posterior(s, sites, design.kernel(s))
    return design.statistics(q, sites.h)


@pytest.mark.parametrize("lobes", LOBES)
@pytest.mark.parametrize("m", [-2.5, -0.3, 0.05, 0.8, 4.0])
@pytest.mark.parametrize("V", [0.02, 0.5, 3.0])
@pytest.mark.parametrize("slab", [0.1, 1.0, 5.0])
def test_slab_moments_are_the_integral_over_spike_and_slab(m, V, slab, lobes):
    """P(in), <w> and <w^2> under a slab of two lobes or a point at zero, seen as m ~ N(w, V)."""
    pi, mu, sd = 0.15, np.sqrt(lobes * slab), np.sqrt((1 - lobes) * slab)
    w = np.linspace(-1, 1, 200_001) * max(12 * np.sqrt(slab), abs(m) + 12 * np.sqrt(V))
    density = 0.5 * (norm.pdf(w, mu, sd) + norm.pdf(w, -mu, sd)) * norm.pdf(m, w, np.sqrt(V))
    mass, first, second = (trapezoid(density * w**k, w) for k in range(3))
    out = norm.pdf(m, 0, np.sqrt(V))
    log_ratio, mean_in, second_in = slab_moments(one(m), one(V), one(slab), lobes)
    assert log_ratio[0, 0, 0] == pytest.approx(np.log(mass / out), rel=1e-8, abs=1e-9)
    assert mean_in[0, 0, 0] == pytest.approx(first / mass, rel=1e-8, abs=1e-10)
    assert second_in[0, 0, 0] == pytest.approx(second / mass, rel=1e-8)
    rho = inclusion_probability(log_ratio, np.array([[np.log(pi / (1 - pi))]]))
    literal = pi * mass / (pi * mass + (1 - pi) * out)
    assert rho[0, 0] == pytest.approx(literal, rel=1e-8)
    # The Gaussian prior of this variance gives the weight the mean of in and out together; two
    # lobes may push it away from zero, which no variance can, so nearly all of m is the most.
    matched = mean_matched_variance(rho, mean_in, one(m), one(V), one(slab))
    s = matched[0, 0, 0]
    mean = np.sign(m) * min(abs(literal * first / mass), 0.999 * abs(m))
    if s < 20 * slab:
        assert m * s / (V + s) == pytest.approx(mean, rel=1e-8, abs=1e-12)
    else:
        assert s == 20 * slab
        assert abs(m * s / (V + s)) <= abs(mean)
    # ... and this one lies half way, in ln s, to the variance of the weight before the data.
    between = wider_variance(matched, rho, one(slab))[0, 0, 0]
    assert between**2 == pytest.approx(s * rho[0, 0] * slab)


def test_two_lobes_have_the_moments_of_the_product_moment_prior():
    """w^2 N(w; 0, t): mean absolute value and variance decide how far apart the lobes are."""
    w = np.linspace(-15, 15, 200_001)
    density = w**2 * norm.pdf(w)
    ratio = trapezoid(density * np.abs(w), w) ** 2 / trapezoid(density * w**2, w)
    ratio /= trapezoid(density, w)
    mu, sd = np.sqrt(NONLOCAL), np.sqrt(1 - NONLOCAL)
    lobes = 0.5 * (norm.pdf(w, mu, sd) + norm.pdf(w, -mu, sd))
    assert trapezoid(lobes * w**2, w) == pytest.approx(1.0, rel=1e-9)
    assert trapezoid(lobes * np.abs(w), w) ** 2 == pytest.approx(ratio, abs=1e-3)


def test_no_lobes_are_the_normal_slab():
    rng = np.random.default_rng(0)
    mean, var = rng.standard_normal((3, 2, 5)), rng.uniform(0.1, 1, (3, 2, 5))
    slab = rng.uniform(0.2, 2, (3, 2, 5))
    kept = slab / (var + slab)
    log_ratio, mean_in, second_in = slab_moments(mean, var, slab, lobes=0.0)
    want = 0.5 * (mean**2 / var * kept + np.log1p(-kept))
    np.testing.assert_allclose(log_ratio, want, rtol=1e-10)
    np.testing.assert_allclose(mean_in, kept * mean, rtol=1e-10)
    np.testing.assert_allclose(second_in, (kept * mean) ** 2 + kept * var, rtol=1e-10)


@some
@given(rates, positive, positive, st.floats(-5, 5))
def test_variances_lie_between_out_and_in(rho, V, slab, m):
    """Under a normal slab: shrinking the mean to rho of it needs less than rho of the variance."""
    mean, var = one(m), one(V)
    _, mean_in, _ = slab_moments(mean, var, one(slab), lobes=0.0)
    by_mean = mean_matched_variance(np.array([[rho]]), mean_in, mean, var, one(slab))
    between = wider_variance(by_mean, np.array([[rho]]), one(slab))[0, 0, 0]
    by_mean = by_mean[0, 0, 0]
    assert 0.0 <= by_mean <= between * (1 + 1e-6)
    assert between <= rho * slab * (1 + 1e-6)


@some
@given(st.floats(-5, 5), positive, positive, st.floats(-12, 12), st.sampled_from(LOBES))
def test_probability_rises_with_evidence_and_prior(m, V, slab, odds, lobes):
    rho = [
        inclusion_probability(slab_moments(one(x), one(V), one(slab), lobes)[0], np.array([[o]]))[
            0, 0
        ]
        for x, o in ((m, odds), (1.5 * m, odds), (m, odds + 1.0))
    ]
    assert MIN_RHO <= rho[0] <= 1.0
    assert rho[1] >= rho[0] - 1e-12
    assert rho[2] >= rho[0] - 1e-12


def test_odds_of_several_outputs_add():
    rng = np.random.default_rng(0)
    shape = (2, 3, 4)  # folds, outputs, columns
    mean, var = rng.standard_normal(shape), rng.uniform(0.1, 1, shape)
    slab, prior = rng.uniform(0.2, 2, shape), rng.standard_normal((2, 4))
    want = prior.copy()
    for c in range(3):
        sd = np.sqrt(var[:, c] + slab[:, c])
        want = want + norm.logpdf(mean[:, c], 0, sd)
        want = want - norm.logpdf(mean[:, c], 0, np.sqrt(var[:, c]))
    found = inclusion_probability(slab_moments(mean, var, slab, lobes=0.0)[0], prior)
    np.testing.assert_allclose(found, expit(want), rtol=1e-10)


@pytest.mark.parametrize("L", [6, 40], ids=["feature solver", "sample solver"])
def test_cavity_is_the_leave_one_out_refit(L):
    rng = np.random.default_rng(0)
    N, C = 15, 2
    X = rng.standard_normal((N, L))
    s = np.exp(rng.normal(-2, 1, (1, C, L)))
    sites = Sites(rng.uniform(0.05, 0.25, (1, C, N)), rng.normal(0, 0.3, (1, C, N)))
    design = columns(X)
    assert design.uses_features == (L == 6)
    cavity_mean, cavity_var = cavity(s, *statistics(design, s, sites))
    for c in range(C):
        h, j = sites.h[0, c], sites.j[0, c]
        y, noise = j / h, np.diag(1 / h)
        for d in range(L):
            rest = np.arange(L) != d
            K = (X[:, rest] * s[0, c, rest]) @ X[:, rest].T + INTERCEPT_VAR + noise
            precision = X[:, d] @ np.linalg.solve(K, X[:, d])
            assert cavity_var[0, c, d] == pytest.approx(1 / precision, rel=1e-6)
            mean = X[:, d] @ np.linalg.solve(K, y) / precision
            assert cavity_mean[0, c, d] == pytest.approx(mean, rel=1e-6, abs=1e-8)


def exact_slab_moments(x, y, noise, slab, lobes):
    """ln p(y | in), <w | in> and <w^2 | in> of one feature, by exact Gaussian algebra per lobe."""
    mu, spread = np.sqrt(lobes * slab), (1 - lobes) * slab
    K = noise + spread * np.outer(x, x)
    Ki = np.linalg.inv(K)
    logs, means = [], []
    for centre in (mu, -mu):
        logs.append(np.log(0.5) + multivariate_normal.logpdf(y, centre * x, K))
        means.append(centre + spread * x @ Ki @ (y - centre * x))
    share = np.exp(logs - np.logaddexp(*logs))
    var = spread - spread**2 * x @ Ki @ x
    return np.logaddexp(*logs), share @ means, share @ np.square(means) + var


@pytest.mark.parametrize("lobes", LOBES)
@pytest.mark.parametrize("seed", range(5))
def test_one_feature_is_the_exact_spike_and_slab_posterior(seed, lobes):
    """Gaussian outputs of known noise: odds and moments have closed forms, wherever s stands."""
    rng = np.random.default_rng(seed)
    N, psi, slab, pi = 15, 1.7, 0.6, 0.2
    x = rng.standard_normal(N)
    y = 0.3 * x + rng.standard_normal(N) / np.sqrt(psi)
    noise = np.eye(N) / psi + INTERCEPT_VAR
    log_in, mean_in, second_in = exact_slab_moments(x, y, noise, slab, lobes)
    gain = log_in - multivariate_normal.logpdf(y, np.zeros(N), noise)
    exact = expit(np.log(pi / (1 - pi)) + gain)
    design = columns(x[:, None])
    sites = Sites(np.full((1, 1, N), psi), psi * y[None, None])
    for s in (0.01, 0.3, 2.0):
        mean, var = cavity(one(s), *statistics(design, one(s), sites))
        log_ratio, found_mean, found_second = slab_moments(mean, var, one(slab), lobes)
        rho = inclusion_probability(log_ratio, np.array([[np.log(pi / (1 - pi))]]))
        assert rho[0, 0] == pytest.approx(exact, rel=1e-6)
        assert found_mean[0, 0, 0] == pytest.approx(mean_in, rel=1e-6)
        assert found_second[0, 0, 0] == pytest.approx(second_in, rel=1e-6)
        by_mean = mean_matched_variance(rho, found_mean, mean, var, one(slab))
        q = design.posterior(by_mean, sites, design.kernel(by_mean))
        w, _ = design.weights(q, by_mean, sites.h)
        assert w[0, 0, 0] == pytest.approx(exact * mean_in, rel=1e-6)
