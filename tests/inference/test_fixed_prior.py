"""Posterior under fixed prior variances: rising bound, exact Gaussian case, new rows."""

import numpy as np
import pytest

from baldur.inference.fixed_prior import posterior, solve
from baldur.model.likelihood import GaussianOutputs, JaakkolaLogistic, QuadratureLogistic
from model.structured.slow_reference import weights_posterior

KINDS = [QuadratureLogistic, JaakkolaLogistic, GaussianOutputs]


def problem(kind, N=30, L=6, C=2, seed=0, separable=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L))
    eta = X[:, :C] * 2 + (0 if separable else 1) * rng.standard_normal((N, C))
    T = eta if kind is GaussianOutputs else (eta > 0).astype(float)
    return X, np.exp(rng.normal(0, 1, (C, L))), kind(T, rng.uniform(0.5, 2, (N, 1)) * np.ones(C))


@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("L", [6, 50], ids=["feature side", "sample side"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_rises_at_every_step(kind, L, separable):
    for seed in range(4):
        X, s, likelihood = problem(kind, L=L, seed=seed, separable=separable)
        for scale in (1e-3, 1.0, 100.0):
            out = solve(X, scale * s, likelihood, max_iter=40, tol=0.0)
            rises = np.diff(out.bounds)
            assert (rises >= -1e-8 * np.abs(out.bounds[1:])).all()
            assert np.isfinite(out.bounds).all()


@pytest.mark.parametrize("L", [6, 50], ids=["feature side", "sample side"])
@pytest.mark.parametrize("kind", KINDS)
def test_at_the_end_the_sites_are_at_their_best(kind, L):
    X, s, likelihood = problem(kind, L=L)
    s = s / L  # a prior wide enough to interpolate would leave Gaussian outputs no noise
    out = solve(X, s, likelihood, max_iter=500, tol=1e-14)
    h, j = likelihood.sites(*out.moments())
    np.testing.assert_allclose(out.sites.h, h, atol=1e-4)
    np.testing.assert_allclose(out.sites.j, j, atol=1e-4)
    for c in range(2):
        w, cov = weights_posterior(X, s[c], 100.0, out.sites.h[:, c], out.sites.j[:, c])
        np.testing.assert_allclose(out.weights()[0][c], w[1:], atol=1e-8)
        np.testing.assert_allclose(out.weights()[1][c], np.diag(cov)[1:], atol=1e-8)
        assert out.intercepts()[c] == pytest.approx(w[0], abs=1e-7)
        new = np.random.default_rng(1).standard_normal((7, L))
        new1 = np.column_stack([np.ones(7), new])
        mean, var = out.predict(new)
        np.testing.assert_allclose(mean[:, c], new1 @ w, atol=1e-7)
        np.testing.assert_allclose(var[:, c], np.diag(new1 @ cov @ new1.T), atol=1e-7)


@pytest.mark.parametrize("L", [6, 50])
def test_training_rows_predict_as_they_were_fitted(L):
    X, s, likelihood = problem(QuadratureLogistic, L=L)
    out = solve(X, s, likelihood)
    for got, want in zip(out.predict(X), out.moments(), strict=True):
        np.testing.assert_allclose(got, want, atol=1e-7)


def test_both_sides_agree():
    """L just below and just above N are computed on different sides of one posterior."""
    X, s, likelihood = problem(QuadratureLogistic, N=30, L=29)
    out = solve(X, s, likelihood)
    padded, wide = np.hstack([X, np.zeros((30, 3))]), np.hstack([s, np.ones((2, 3))])
    other = solve(padded, wide, likelihood)
    assert type(out.sides[0]) is not type(other.sides[0])
    np.testing.assert_allclose(other.weights()[0][:, :29], out.weights()[0], atol=1e-6)
    np.testing.assert_allclose(other.weights()[1][:, 29:], 1.0)
    assert out.bounds[-1] == pytest.approx(other.bounds[-1], rel=1e-8)


def test_no_columns_give_an_intercept():
    X, _, likelihood = problem(QuadratureLogistic)
    out = solve(X[:, :0], np.zeros((2, 0)), likelihood)
    mean, _ = out.predict(np.zeros((3, 0)))
    np.testing.assert_allclose(mean, np.tile(likelihood.base_rate(), (3, 1)), atol=0.1)


def test_extra_variance_enters_the_likelihood_alone():
    X, s, likelihood = problem(QuadratureLogistic)
    extra = np.zeros((30, 2))
    extra[::4] = 3.0
    plain, out = solve(X, s, likelihood), solve(X, s, likelihood, extra)
    np.testing.assert_allclose(
        out.moments()[1] - extra, np.stack([side.var for side in out.sides], axis=1), atol=1e-12
    )
    assert out.bounds[-1] < plain.bounds[-1]
    again = posterior(X, s, out.sites)
    np.testing.assert_allclose(again[0].mean, out.moments()[0][:, 0], atol=1e-10)
