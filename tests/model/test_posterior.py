"""q(w): the sample solver, the feature solver and a literal twin are one posterior."""

import numpy as np
import pytest
from scipy import linalg

from baldur.model.likelihood import put_folds, take_folds
from baldur.model.posterior import (
    INTERCEPT_VAR,
    feature_posterior,
    inverse_cholesky,
    matvec,
    sample_posterior,
    triangle_times,
    weighted_gram,
    with_ones,
)
from model.literal_bound import gaussian_kl, weights_posterior

SIZES = {"narrow": (20, 6), "square": (12, 12), "wide": (10, 40)}
F, C = 3, 2
PADDING = 4


def batch(size, *, seed=0, dropped=False, padded=False, intercept_var=INTERCEPT_VAR):
    """Return X1 (F, n, 1 + D), s1 (F, C, 1 + D) and the sites; the last rows of fold 0 may pad."""
    n, D = SIZES[size]
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((F, n, D))
    s = np.exp(rng.normal(-1, 1.5, (F, C, D)))
    if dropped:
        s[:, :, ::3] = 0.0
        s[1, 0, 1] = 0.0  # of one output alone
    X1, h, j = with_ones(X), rng.uniform(0.01, 0.25, (F, C, n)), rng.normal(0, 0.4, (F, C, n))
    if padded:
        X1[0, -PADDING:] = 0.0
        h[0, :, -PADDING:] = j[0, :, -PADDING:] = 0.0
    s1 = np.concatenate([np.full((F, C, 1), intercept_var), s], axis=2)
    return X1, s1, h, j


def kernel(X1, s1):
    return np.einsum("fnd,fcd,fmd->fcnm", X1, s1, X1)


def close(got, want, tolerance=1e-8):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def both(X1, s1, h, j):
    return sample_posterior(kernel(X1, s1), h, j), feature_posterior(X1, s1, h, j)


def literal(X1, s1, h, j, f, c):
    """Mean and covariance of the weights, and C^-1 = R - R X Sigma X^T R, of one problem."""
    w, cov = weights_posterior(X1[f][:, 1:], s1[f, c, 1:], s1[f, c, 0], h[f, c], j[f, c])
    weighted = h[f, c][:, None] * X1[f]
    return w, cov, np.diag(h[f, c]) - weighted @ cov @ weighted.T


# -- linear algebra -------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 2, 7, 30])
def test_inverse_cholesky_is_the_literal_one(n):
    rng = np.random.default_rng(n)
    B = rng.standard_normal((2, 3, n, n + 2))
    A = B @ B.swapaxes(-1, -2) + np.eye(n)
    half, log_det = inverse_cholesky(A.copy())
    assert half.shape == A.shape
    assert log_det.shape == (2, 3)
    for at in np.ndindex(2, 3):
        close(half[at], np.linalg.inv(np.linalg.cholesky(A[at])), 1e-10)
        close(half[at].T @ half[at], np.linalg.inv(A[at]), 1e-10)
        close(log_det[at], np.linalg.slogdet(A[at])[1], 1e-12)
        assert not np.triu(half[at], 1).any()


def test_a_matrix_that_is_not_positive_definite_is_refused():
    A = np.tile(np.eye(3), (2, 1, 1))
    A[1, 2, 2] = -1.0
    with pytest.raises(linalg.LinAlgError, match="not positive definite"):
        inverse_cholesky(A)


def test_small_products_are_literal():
    rng = np.random.default_rng(0)
    L, X = np.tril(rng.standard_normal((5, 5))), rng.standard_normal((5, 8))
    for form in (L, np.asfortranarray(L)):
        close(triangle_times(form, X), L @ X, 1e-13)
    A, x = rng.standard_normal((2, 3, 4, 5)), rng.standard_normal((2, 3, 5))
    close(matvec(A, x), np.einsum("fcnm,fcm->fcn", A, x), 1e-13)
    X, s = rng.standard_normal((2, 4, 6)), rng.uniform(0, 1, (2, 3, 6))
    close(weighted_gram(X, s), np.einsum("fnd,fcd,fmd->fcnm", X, s, X), 1e-13)
    np.testing.assert_array_equal(with_ones(X)[..., 0], 1.0)
    np.testing.assert_array_equal(with_ones(X)[..., 1:], X)


# -- the posterior --------------------------------------------------------------------------------


@pytest.mark.parametrize("padded", [False, True], ids=["whole", "padded"])
@pytest.mark.parametrize("dropped", [False, True], ids=["all in", "zero variances"])
@pytest.mark.parametrize("intercept_var", [0.0, 100.0])
@pytest.mark.parametrize("size", SIZES)
def test_both_solvers_are_the_literal_posterior(size, intercept_var, dropped, padded):
    X1, s1, h, j = batch(size, dropped=dropped, padded=padded, intercept_var=intercept_var)
    by_sample, by_feature = both(X1, s1, h, j)
    new = np.random.default_rng(1).standard_normal((F, X1.shape[1], 5))
    for f, c in np.ndindex(F, C):
        w, cov, inverse = literal(X1, s1, h, j, f, c)
        kl = gaussian_kl(w, cov, s1[f, c])
        close(by_feature.w[f, c], w)
        close(by_feature.half[f, c].T @ by_feature.half[f, c], cov)
        close(by_feature.weight_var[f, c], np.diag(cov))
        if by_feature.gram is not None:  # columns without variance are left out
            close(by_feature.gram[f, c], (X1[f].T * h[f, c]) @ X1[f])
        close(by_feature.column_quadratics(h)[f, c], np.diag(X1[f].T @ inverse @ X1[f]))
        close(by_sample.inverse[f, c], inverse)
        real = h[f, c] > 0
        for q in (by_sample, by_feature):
            close(q.mean[f, c], X1[f] @ w)
            close(q.var[f, c][real], np.diag(X1[f] @ cov @ X1[f].T)[real])
            close(q.alpha[f, c], j[f, c] - h[f, c] * (X1[f] @ w))
            close(q.kl[f, c], kl)
            close(q.quadratics(new, h)[f, c], np.diag(new[f].T @ inverse @ new[f]))
            close(q.quadratics(X1, h)[f, c], np.diag(X1[f].T @ inverse @ X1[f]))
            # Weights and their variances, through the samples.
            close(s1[f, c] * (q.alpha[f, c] @ X1[f]), w)
            S = q.quadratics(X1, h)[f, c]
            close(s1[f, c] - s1[f, c] ** 2 * S, np.diag(cov))


@pytest.mark.parametrize("size", SIZES)
def test_rows_that_pad_change_nothing(size):
    """A fold with padding is the fold without it; variances of padding are finite."""
    X1, s1, h, j = batch(size, padded=True)
    short = (X1[:1, :-PADDING], s1[:1], h[:1, :, :-PADDING], j[:1, :, :-PADDING])
    for whole, alone in zip(both(X1, s1, h, j), both(*short), strict=True):
        close(whole.mean[0, :, :-PADDING], alone.mean[0], 1e-10)
        close(whole.var[0, :, :-PADDING], alone.var[0], 1e-10)
        close(whole.alpha[0, :, :-PADDING], alone.alpha[0], 1e-10)
        assert not whole.alpha[0, :, -PADDING:].any()
        close(whole.kl[0], alone.kl[0], 1e-10)
        assert np.isfinite(whole.var).all()
    # A kernel that has the intercept also in the rows that pad gives the same.
    K = np.einsum("fnd,fcd,fmd->fcnm", X1[:, :, 1:], s1[..., 1:], X1[:, :, 1:]) + INTERCEPT_VAR
    q = sample_posterior(K, h, j)
    want = sample_posterior(kernel(X1, s1), h, j)
    close(q.mean[0, :, :-PADDING], want.mean[0, :, :-PADDING], 1e-10)
    close(q.kl, want.kl, 1e-10)


@pytest.mark.parametrize("size", SIZES)
def test_a_batch_is_its_problems_one_by_one(size):
    X1, s1, h, j = batch(size, dropped=True)
    for at, q in enumerate(both(X1, s1, h, j)):
        for f, c in np.ndindex(F, C):
            one = both(*(part[[f]][:, [c]] if part.ndim == 3 and part is not X1 else part[[f]]
                         for part in (X1, s1, h, j)))[at]  # fmt: skip
            for name in ("mean", "var", "alpha", "half", "kl"):
                close(getattr(q, name)[f, c], getattr(one, name)[0, 0], 1e-11)


@pytest.mark.parametrize("size", SIZES)
def test_zero_variance_is_an_exact_drop(size):
    """A weight of prior variance 0 is exactly 0, the rest as if its column were not there."""
    X1, s1, h, j = batch(size, dropped=True)
    f, c = 1, 0
    keep = s1[f, c] > 0
    q = feature_posterior(X1, s1, h, j)
    small = feature_posterior(
        X1[[f]][:, :, keep], s1[[f]][:, [c]][..., keep], h[[f]][:, [c]], j[[f]][:, [c]]
    )
    cov = q.half[f, c].T @ q.half[f, c]
    assert not q.w[f, c][~keep].any()
    assert not cov[~keep].any()
    close(q.w[f, c][keep], small.w[0, 0], 1e-12)
    close(cov[np.ix_(keep, keep)], small.half[0, 0].T @ small.half[0, 0], 1e-12)
    close(q.kl[f, c], small.kl[0, 0], 1e-10)
    close(q.mean[f, c], small.mean[0, 0], 1e-10)
    close(q.var[f, c], small.var[0, 0], 1e-10)


def test_rows_of_little_precision_have_their_variance():
    """Where (1 - (B^-1)_nn)/h would lose digits, and on the border of the two formulas."""
    X1, s1, h, j = batch("narrow")
    h[:, :, :8] = np.array([1e-14, 1e-12, 1e-10, 1e-8, 1e-5, 9.99e-4, 1.001e-3, 2e-3])
    by_sample, by_feature = both(X1, s1, h, j)
    close(by_sample.var, by_feature.var, 1e-7)
    for f, c in np.ndindex(F, C):
        _, cov, _ = literal(X1, s1, h, j, f, c)
        close(by_sample.var[f, c], np.diag(X1[f] @ cov @ X1[f].T), 1e-7)


def test_no_information_returns_the_prior():
    X1, s1, h, _ = batch("wide")
    tiny = np.full_like(h, 1e-10)
    for q in both(X1, s1, tiny, 0 * h):
        close(q.mean, 0 * h)
        close(q.var, np.einsum("fnd,fcd->fcn", X1**2, s1), 1e-5)
        assert (np.abs(q.kl) < 1e-5).all()


def test_kl_is_not_negative():
    for seed in range(10):
        for q in both(*batch("narrow", seed=seed)):
            assert (q.kl > 0).all()


def test_some_folds_are_taken_and_put():
    X1, s1, h, j = batch("narrow")
    other = batch("narrow", seed=5)
    at = np.array([2, 0])
    fields = {0: ("mean", "var", "alpha", "half", "kl"), 1: ("mean", "var", "w", "gram", "kl")}
    for kind, names in fields.items():
        whole, part = both(X1, s1, h, j)[kind], both(*other)[kind]
        some = take_folds(whole, at)
        for name in names:
            np.testing.assert_array_equal(getattr(some, name), getattr(whole, name)[at])
        before = both(X1, s1, h, j)[kind]
        after = put_folds(whole, at, take_folds(part, at))
        for name in names:
            np.testing.assert_array_equal(getattr(after, name)[at], getattr(part, name)[at])
            np.testing.assert_array_equal(getattr(after, name)[1], getattr(before, name)[1])


# -- outputs that share precisions and variances --------------------------------------------------


@pytest.mark.parametrize("size", SIZES)
def test_shared_precisions_give_the_posterior_of_each_output(size):
    X1, s1, h, j = batch(size, padded=True)
    s1, h = s1[:, :1], h[:, :1]
    whole = np.repeat(s1, C, axis=1), np.repeat(h, C, axis=1)
    for shared, each in zip(both(X1, s1, h, j), both(X1, *whole, j), strict=True):
        assert shared.half.shape[1] == 1
        for name in ("alpha", "mean", "kl"):
            close(getattr(shared, name), getattr(each, name))
        close(np.repeat(shared.var, C, axis=1), each.var)
        K = kernel(X1, s1)
        close(shared.smooth(j, K), each.smooth(j, np.repeat(K, C, axis=1)))
        moved = shared.with_linear(h, 2.0 * j, 2.0 * shared.mean)
        close(moved.alpha, 2.0 * shared.alpha)
        # alpha^T K alpha is the only part of the divergence that depends on j.
        close(moved.kl - shared.kl, 1.5 * (shared.alpha * shared.mean).sum(axis=-1))


def test_single_precision_is_close_to_double(constants):
    X1, s1, h, j = batch("narrow")
    want = feature_posterior(X1, s1, h, j)
    constants(SINGLE_FROM=0)
    single = feature_posterior(X1, s1, h, j)
    assert not np.array_equal(single.var, want.var)
    for name in ("w", "half", "mean", "var", "kl"):
        close(getattr(single, name), getattr(want, name), 1e-4)
    constants(MOST_SINGLE=0.0)
    np.testing.assert_array_equal(feature_posterior(X1, s1, h, j).w, want.w)
