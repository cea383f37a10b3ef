"""q(w): the sample side, the feature side and a literal twin are one posterior."""

import numpy as np
import pytest

from baldur.model.posterior import Own, feature_side, sample_side, weight_moments, with_ones
from model.literal_bound import gaussian_kl, weights_posterior

SIZES = {"narrow": (20, 6), "square": (12, 12), "wide": (10, 40)}


def problem(size, seed=0, dropped=False):
    N, D = SIZES[size]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    s = np.exp(rng.normal(-1, 1.5, D))
    if dropped:
        s[::3] = 0.0
    return X, s, rng.uniform(0.01, 0.25, N), rng.normal(0, 0.4, N)


def close(got, want, tolerance=1e-8):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dropped", [False, True])
@pytest.mark.parametrize("intercept_var", [0.0, 100.0])
@pytest.mark.parametrize("size", SIZES)
def test_both_sides_are_the_literal_posterior(size, intercept_var, dropped):
    for seed in range(5):
        X, s, h, j = problem(size, seed, dropped)
        w, cov = weights_posterior(X, s, intercept_var, h, j)
        X1 = np.column_stack([np.ones(len(X)), X])
        kl = gaussian_kl(w, cov, np.concatenate([[intercept_var], s]))
        by_sample = sample_side((X * s) @ X.T + intercept_var, h, j)
        by_feature = feature_side(X, s, intercept_var, h, j)
        close(by_feature.w, w)
        close(by_feature.cov, cov)
        C = (X * s) @ X.T + intercept_var + np.diag(1 / h)
        quadratic = [X[:, d] @ np.linalg.inv(C) @ X[:, d] for d in range(X.shape[1])]
        close(by_feature.S, quadratic)
        close(by_sample.Ci, np.linalg.inv(C))
        for q in (by_sample, by_feature):
            close(q.mean, X1 @ w)
            close(q.var, np.diag(X1 @ cov @ X1.T))
            close(q.alpha, np.linalg.inv(C) @ (j / h))
            close(q.kl, kl)
            S = np.einsum("nd,nm,md->d", X, by_sample.Ci, X)
            mean, var = weight_moments(s, X.T @ q.alpha, S)
            close(mean, w[1:])
            close(var, np.diag(cov)[1:])
            close(intercept_var * q.alpha.sum(), w[0])


@pytest.mark.parametrize("size", SIZES)
def test_both_sides_give_the_literal_moments_of_any_linear_function(size):
    """Of all weights together, and of F^T f with e w of some columns added."""
    X, s, h, j = problem(size)
    w, cov = weights_posterior(X, s, 100.0, h, j)
    X1, rng = with_ones(X), np.random.default_rng(1)
    K = (X * s) @ X.T + 100.0
    at = np.array([4, 0, 2])
    F, e = rng.standard_normal((len(X), 4)), rng.uniform(0.5, 2.0, 3)
    linear = X1.T @ F
    linear[1 + at, 1 + np.arange(3)] += e
    new = rng.standard_normal((len(X), 5))
    C = K + np.diag(1 / h)
    for q in (sample_side(K, h, j), feature_side(X, s, 100.0, h, j)):
        mean, spread = q.joint(X, s, 100.0)
        close(mean, w)
        close(spread, cov)
        mean, spread = q.functional(F, e, Own(at, X[:, at], s[at]), lambda: K)
        close(mean, linear.T @ w)
        close(spread, linear.T @ cov @ linear)
        close(q.outside_quadratic(new, h), np.diag(new.T @ np.linalg.inv(C) @ new))


@pytest.mark.parametrize("size", SIZES)
def test_zero_variance_is_an_exact_drop(size):
    """A weight of prior variance 0 is exactly 0, the rest as if its column were not there."""
    X, s, h, j = problem(size, dropped=True)
    keep = s > 0
    q, small = feature_side(X, s, 100.0, h, j), feature_side(X[:, keep], s[keep], 100.0, h, j)
    out = np.concatenate([[False], ~keep])
    assert not q.w[out].any()
    assert not q.cov[out].any()
    close(q.w[~out], small.w, 1e-12)
    close(q.cov[np.ix_(~out, ~out)], small.cov, 1e-12)
    close([q.kl, *q.mean, *q.var], [small.kl, *small.mean, *small.var], 1e-10)
    mean, var = weight_moments(s, X.T @ q.alpha, q.S)
    assert not mean[~keep].any()
    assert not var[~keep].any()


def test_no_information_returns_the_prior():
    X, s, h, _ = problem("wide")
    tiny = np.full_like(h, 1e-10)
    for q in (
        sample_side((X * s) @ X.T + 100.0, tiny, 0 * h),
        feature_side(X, s, 100.0, tiny, 0 * h),
    ):
        close(q.mean, 0 * h)
        close(q.var, (X**2) @ s + 100.0, 1e-5)
        assert abs(q.kl) < 1e-5


def test_kl_is_not_negative_and_zero_only_at_the_prior():
    for seed in range(20):
        X, s, h, j = problem("narrow", seed)
        assert feature_side(X, s, 100.0, h, j).kl > 0
