"""Settling the sites: every output's bound rises at every step, whatever the start."""

import numpy as np
import pytest
from scipy.optimize import minimize

from baldur.inference.features import INTERCEPT_VAR, Columns
from baldur.inference.gaussian import Gaussian, mixed
from baldur.inference.grams import Grams
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic, Sites
from baldur.model.quadrature import logistic_moments
from inference.problems import KINDS, plain_problem, target, two_views


def gaussian(kind, C=2, L=12, N=40, scale=1.0, absent=False, separable=False, by_grams=False):
    X, likelihood = plain_problem(kind, N, L, C, separable=separable)
    lacking = np.zeros((N, 2))
    features = two_views(X)
    if absent:
        lacking[::5, 1] = 1.0
        features.X[::5, L // 2 :] = 0.0
    if by_grams:
        parts = [features.X[:, features.owner == m] for m in range(2)]
        features = Grams([part @ part.T for part in parts])
        return Gaussian.start(features, likelihood, np.full((C, 2), scale), lacking)
    return Gaussian.start(features, likelihood, np.full((C, L), scale), lacking)


def hard_start(q, seed):
    """Sites far from any that a posterior would ask for."""
    rng = np.random.default_rng(seed)
    shape = q.sites.h.shape
    q.sites = Sites(np.exp(rng.normal(-2, 3, shape)), rng.normal(0, 10, shape))
    if q.noise is not None:
        q.noise = type(q.noise)(q.noise.shape, q.noise.rate * np.exp(rng.normal(0, 3, 2)))


def assert_rises(q, first):
    values = np.array([first, *q.bounds])
    assert np.isfinite(values).all()
    slack = 1e-9 * np.maximum(1.0, np.abs(values[:-1]))
    assert (np.diff(values, axis=0) >= -slack).all()


@pytest.mark.parametrize("start", ["base rate", "hard"])
@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("L", [12, 60], ids=["feature side", "sample side"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_every_output_rises(kind, L, separable, start):
    for seed, scale in enumerate((0.01, 1.0, 30.0)):
        q = gaussian(kind, L=L, scale=scale, absent=True, separable=separable)
        if start == "hard":
            hard_start(q, seed)
        q.refresh()
        first = q.bound()
        last = q.settle(max_iter=60)
        assert_rises(q, first)
        np.testing.assert_allclose(q.bound(), last, rtol=1e-10)
        assert (last >= first - 1e-9 * np.abs(first)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_every_start_settles_at_one_posterior(kind):
    ends = []
    for seed in range(3):
        q = gaussian(kind)
        if seed:
            hard_start(q, seed)
        q.settle(max_iter=500, tol=1e-13)
        ends.append((q.bound(), *q.moments()))
    for end in ends[1:]:
        for got, want in zip(end, ends[0], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("start", ["base rate", "hard"])
@pytest.mark.parametrize("kind", KINDS)
def test_outputs_are_independent(kind, start):
    """Two outputs fitted together are each fitted alone."""
    q = gaussian(kind, C=2, absent=True)
    if start == "hard":
        hard_start(q, 1)
    T = target(q.likelihood)
    alone = []
    for c in range(2):
        likelihood = kind(T[:, [c]], q.likelihood.weight[:, [c]])
        one = Gaussian.start(q.features, likelihood, q.s[[c]], q.absent)
        one.sites = Sites(q.sites.h[:, [c]], q.sites.j[:, [c]])
        if q.noise is not None:
            one.noise = type(q.noise)(q.noise.shape, q.noise.rate[[c]])
        one.settle(max_iter=300, tol=1e-12)
        alone.append(one)
    q.settle(max_iter=300, tol=1e-12)
    for c, one in enumerate(alone):
        assert q.bound()[c] == pytest.approx(one.bound()[0], rel=1e-8)
        for got, want in zip(q.moments(), one.moments(), strict=True):
            np.testing.assert_allclose(got[:, c], want[:, 0], rtol=1e-5, atol=1e-6)


def test_grams_and_columns_settle_alike():
    for kind in KINDS:
        ends = [gaussian(kind, L=60, by_grams=by_grams) for by_grams in (False, True)]
        for q in ends:
            q.settle(max_iter=100, tol=1e-12)
        np.testing.assert_allclose(ends[0].bound(), ends[1].bound(), rtol=1e-8)
        for got, want in zip(ends[0].moments(), ends[1].moments(), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_settled_is_the_best_gaussian():
    """The bound over means and covariances of q(w), maximised numerically: nothing is above it."""
    q = gaussian(QuadratureLogistic, C=1, L=2, N=20)
    value = q.settle(max_iter=500, tol=1e-14)[0]
    X1 = np.hstack([np.ones((20, 1)), q.features.X])
    prior = np.array([INTERCEPT_VAR, 1.0, 1.0])

    def loss(z):
        m, L = z[:3], np.zeros((3, 3))
        L[np.tril_indices(3)] = z[3:]
        L[np.diag_indices(3)] = np.exp(np.diag(L))
        S = L @ L.T
        mean, var = X1 @ m, np.einsum("nd,de,ne->n", X1, S, X1)
        fit, _ = q.likelihood.evaluate(mean[:, None], var[:, None], None)
        kl = (np.diag(S) + m**2) / prior - 1 + np.log(prior)
        return -(fit[0] - 0.5 * (kl.sum() - 2 * np.log(np.diag(L)).sum()))

    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-7, "maxiter": 500})
    assert value == pytest.approx(-best.fun, abs=1e-5)
    np.testing.assert_allclose(q.sides[0].w, best.x[:3], atol=2e-3)


def test_gaussian_outputs_settle_at_the_exact_posterior_of_their_noise():
    X, likelihood = plain_problem(GaussianOutputs, 40, 5, 1)
    q = Gaussian.start(
        Columns(X, np.zeros(5, int), 1), likelihood, np.full((1, 5), 0.5), np.zeros((40, 1))
    )
    q.settle(max_iter=200, tol=1e-14)
    psi = q.noise.mean[0]
    X1 = np.hstack([np.ones((40, 1)), X])
    cov = np.linalg.inv(np.diag(1 / np.array([INTERCEPT_VAR, *[0.5] * 5])) + psi * X1.T @ X1)
    np.testing.assert_allclose(q.sides[0].w, psi * cov @ X1.T @ likelihood.Y[:, 0], rtol=1e-6)
    np.testing.assert_allclose(q.sides[0].cov, cov, rtol=1e-6, atol=1e-10)
    again = likelihood.noise_at(*q.moments())
    assert again.mean[0] == pytest.approx(psi, rel=1e-5)


@pytest.mark.parametrize("L", [12, 60], ids=["feature side", "sample side"])
def test_rows_that_lack_a_view_are_uncertain_by_its_part(L):
    """By what it varies among the rows that have it, and by its weights: E[(x w)^2] over both."""
    q = gaussian(QuadratureLogistic, L=L, absent=True)
    q.settle()
    assert not q.extra.any()
    X, sites, s = q.features.X, q.sites, q.s
    has, own = q.absent[:, 1] == 0, q.features.owner == 1
    q.refresh_extra()
    part = q.features.parts(q.sides, s)[1]
    np.testing.assert_allclose(q.signal()[1], (part[has] ** 2).mean(axis=0))
    X1 = np.hstack([np.ones((len(X), 1)), X])
    for c in range(2):
        prior = np.concatenate([[INTERCEPT_VAR], s[c]])
        cov = np.linalg.inv(np.diag(1 / prior) + (X1.T * sites.h[:, c]) @ X1)[1:, 1:]
        spread = np.einsum("nd,de,ne->n", X[:, own], cov[np.ix_(own, own)], X[:, own])
        want = (part[has, c] ** 2 + spread[has]).mean()
        np.testing.assert_allclose(q.extra[~has, c], want, rtol=1e-6)
    assert not q.extra[has].any()


def test_other_variances_start_at_the_same_sites():
    q = gaussian(QuadratureLogistic)
    q.settle()
    other = q.with_variances(0.5 * q.s)
    assert other.sites is q.sites
    assert other.sides == []
    other.settle()
    assert q.bounds is not other.bounds
    np.testing.assert_array_equal(q.s, 2 * other.s)


def test_sites_move_by_output():
    rng = np.random.default_rng(0)
    old, new = (Sites(*rng.random((2, 5, 3))) for _ in range(2))
    moved = mixed(old, new, np.array([0.0, 0.5, 1.0]))
    for got, a, b in zip(moved, old, new, strict=True):
        np.testing.assert_array_equal(got[:, 0], a[:, 0])
        np.testing.assert_allclose(got[:, 1], 0.5 * (a + b)[:, 1])
        np.testing.assert_allclose(got[:, 2], b[:, 2])


def test_the_evidence_of_one_row_is_exact():
    """With one row the cavity is the prior, so ln evidence = ln E[p(t)] whatever the site."""
    for x, t in ((0.7, 1.0), (2.0, 0.0), (-1.3, 1.0)):
        columns = Columns(np.array([[x]]), np.zeros(1, dtype=np.intp), 1, intercept_var=0.5)
        likelihood = QuadratureLogistic(np.array([[t]]), np.ones((1, 1)))
        q = Gaussian.start(columns, likelihood, np.array([[1.7]]), np.zeros((1, 1)))
        q.settle()
        rate = logistic_moments(np.zeros(1), np.array([1.7 * x**2 + 0.5])).rate[0]
        assert q.evidence()[0] == pytest.approx(np.log(rate if t else 1.0 - rate), abs=1e-8)
        assert q.bound()[0] < q.evidence()[0]


def test_a_row_of_weight_three_is_three_rows_in_the_evidence():
    X = np.random.default_rng(0).standard_normal((12, 2))
    T = (np.arange(12) % 2 == 0).astype(float)[:, None]
    owner = np.zeros(2, dtype=np.intp)
    once = Gaussian.start(
        Columns(X, owner, 1),
        QuadratureLogistic(T, np.full((12, 1), 3.0)),
        np.ones((1, 2)),
        np.zeros((12, 1)),
    )
    thrice = Gaussian.start(
        Columns(np.repeat(X, 3, axis=0), owner, 1),
        QuadratureLogistic(np.repeat(T, 3, axis=0), np.ones((36, 1))),
        np.ones((1, 2)),
        np.zeros((36, 1)),
    )
    for q in (once, thrice):
        q.settle(tol=1e-12)
    np.testing.assert_allclose(once.evidence(), thrice.evidence(), rtol=1e-8)
