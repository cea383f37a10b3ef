"""The path by projection: literal least squares, literal greedy search, all sizes at once."""

import numpy as np
import pytest
from baldur.inference.features import INTERCEPT_VAR, Columns
from baldur.inference.gaussian import Gaussian
from baldur.inference.grams import Grams
from baldur.inference.projection import (
    COLLINEAR,
    Coordinates,
    constant,
    correlation_noise,
    mean_weights,
    pool,
    predict_path,
    project,
    search,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.inference import projection as projection_module
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from inference.problems import plain_problem, two_views

SHRINKAGE = [0.0, 0.4, 1.0]


def correlated(N, L, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L)) + rng.standard_normal((N, 1)) * rng.uniform(0, 1, L)
    return (X - X.mean(0)) / X.std(0)


def setting(L=8, N=30, C=2, kind=QuadratureLogistic, form="columns"):
    """A settled posterior on columns, row weights, and the literal moments of (b, w)."""
    rng = np.random.default_rng(0)
    X = correlated(N, L)
    _, likelihood = plain_problem(kind, N, L, C)
    s = rng.uniform(0.05, 0.6, (C, 2))
    columns = two_views(X)
    features, prior = columns, columns.spread(s)
    if form == "grams":
        parts = [X[:, columns.owner == m] for m in range(2)]
        features, prior = Grams([part @ part.T for part in parts]), s
    q = Gaussian.start(features, likelihood, prior, np.zeros((N, 2)))
    q.settle()
    H = rng.uniform(0.05, 0.25, (N, C))
    X1 = np.hstack([np.ones((N, 1)), X])
    moments = []
    for c in range(C):
        precision = np.diag(1 / np.array([INTERCEPT_VAR, *columns.spread(s)[c]]))
        cov = np.linalg.inv(precision + (X1.T * q.sites.h[:, c]) @ X1)
        moments.append((cov @ X1.T @ q.sites.j[:, c], cov))
    return q, columns, X, H, moments


def metric(X, h, a):
    """Sigma, the centred columns, and the weighted means."""
    means = h @ X / h.sum()
    centred = X - means
    plain = (centred.T * h) @ centred
    return (1 - a) * plain + a * np.diag(np.diag(plain)), centred, means


def literal_map(X, h, a, S):
    """The matrix that takes (b, w) to the intercept and weights on features S."""
    Sigma, centred, means = metric(X, h, a)
    D = np.diag(np.diag(Sigma))
    u = ((1 - a) * (centred.T * h) @ X + a * D)[S]
    beta = np.linalg.solve(Sigma[np.ix_(S, S)], u)
    level = means - means[S] @ beta
    return np.block([[np.ones((1, 1)), level[None]], [np.zeros((len(S), 1)), beta]])


def literal_order(X, H, eta, w, a, size):
    """The best next feature, again and again, each set solved afresh."""
    C, L = H.shape[1], X.shape[1]
    chosen = []
    for _ in range(size):
        best, gains = None, {}
        for d in range(L):
            if d in chosen:
                continue
            S = [*chosen, d]
            total = 0.0
            for c in range(C):
                Sigma, centred, _ = metric(X, H[:, c], a)
                u = (1 - a) * centred.T @ (H[:, c] * eta[:, c]) + a * np.diag(Sigma) * w[c]
                total += u[S] @ np.linalg.solve(Sigma[np.ix_(S, S)], u[S])
            gains[d] = total
        best = max(gains, key=gains.get)
        chosen.append(best)
    return chosen


def made(q, columns, X, H, size, a, monkeypatch):
    monkeypatch.setattr(projection_module, "correlation_noise", lambda X, H: a)
    at = np.arange(X.shape[1])
    eta, _ = q.moments()
    basis = search(X, H, eta, mean_weights(q, columns, at, X), size)
    assert basis.shrinkage == a
    return basis, project(q, basis, columns, at, X)


def of_size(basis, z, c, k):
    R = basis.R_inverse[c][: k + 1, : k + 1]
    return R @ z.mean[c, : k + 1], R @ z.cov[c, : k + 1, : k + 1] @ R.T


@pytest.mark.parametrize("a", SHRINKAGE)
@pytest.mark.parametrize(
    ("form", "L"),
    [("columns", 8), ("columns", 45), ("grams", 45)],
    ids=["feature", "sample", "Gram"],
)
def test_weights_of_every_size_are_the_literal_projection(monkeypatch, form, L, a):
    q, columns, X, H, moments = setting(L, form=form)
    basis, z = made(q, columns, X, H, 7, a, monkeypatch)
    assert len(basis.order) == 7
    for k in range(8):
        S = basis.order[:k]
        for c, (w, cov) in enumerate(moments):
            A = literal_map(X, H[:, c], a, S)
            mean, spread = of_size(basis, z, c, k)
            np.testing.assert_allclose(mean, A @ w, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(spread, A @ cov @ A.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("L", [8, 45])
def test_without_shrinkage_it_is_weighted_least_squares(monkeypatch, L):
    """beta = (X_S^T H X_S)^-1 X_S^T H eta, of the mean and of the covariance of eta."""
    q, columns, X, H, moments = setting(L)
    basis, z = made(q, columns, X, H, 5, 0.0, monkeypatch)
    X1 = np.hstack([np.ones((len(X), 1)), X])
    for c, (w, cov) in enumerate(moments):
        A = np.hstack([np.ones((len(X), 1)), X[:, basis.order]])
        P = np.linalg.solve((A.T * H[:, c]) @ A, A.T * H[:, c])
        mean, spread = of_size(basis, z, c, 5)
        np.testing.assert_allclose(mean, P @ X1 @ w, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(spread, P @ X1 @ cov @ X1.T @ P.T, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("a", SHRINKAGE)
def test_search_is_the_literal_greedy_one(monkeypatch, a):
    q, columns, X, H, _ = setting(14)
    basis, _ = made(q, columns, X, H, 6, a, monkeypatch)
    eta, _ = q.moments()
    w = mean_weights(q, columns, np.arange(14), X)
    assert basis.order.tolist() == literal_order(X, H, eta, w, a, 6)


@pytest.mark.parametrize("a", [0.0, 0.4])
def test_all_features_reproduce_the_reference(monkeypatch, a):
    q, columns, X, H, moments = setting(8)
    basis, z = made(q, columns, X, H, 8, a, monkeypatch)
    assert sorted(basis.order) == list(range(8))
    new = correlated(9, 8, seed=1)
    mean, var = predict_path(basis.rows(new), z, [8])
    want = q.features.predict(q.sides, q.s, new)
    np.testing.assert_allclose(mean[0], want[0], rtol=1e-7, atol=1e-8)
    if a == 0.0:
        np.testing.assert_allclose(var[0], want[1], rtol=1e-6, atol=1e-8)
    for c, (w, cov) in enumerate(moments):
        got, spread = of_size(basis, z, c, 8)
        place = np.concatenate([[0], 1 + basis.order])
        np.testing.assert_allclose(got, w[place], rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(spread, cov[np.ix_(place, place)], rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("a", SHRINKAGE)
@pytest.mark.parametrize("L", [8, 45])
def test_predictions_of_every_size_are_literal(monkeypatch, L, a):
    """x beta and x^T Cov x."""
    q, columns, X, H, moments = setting(L)
    basis, z = made(q, columns, X, H, 6, a, monkeypatch)
    new = correlated(7, L, seed=2)
    sizes = [0, 1, 3, 6]
    mean, var = predict_path(basis.rows(new), z, sizes)
    assert mean.shape == var.shape == (4, 7, 2)
    for row, k in enumerate(sizes):
        S = basis.order[:k]
        A1 = np.hstack([np.ones((7, 1)), new[:, S]])
        for c, (w, cov) in enumerate(moments):
            A = literal_map(X, H[:, c], a, S)
            spread = np.einsum("nd,de,ne->n", A1, A @ cov @ A.T, A1)
            np.testing.assert_allclose(mean[row, :, c], A1 @ A @ w, rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(var[row, :, c], spread, rtol=1e-6, atol=1e-8)


def test_several_gaussians_are_pooled_to_one():
    """Means around the base rate, stretched; covariances within and between."""
    rng = np.random.default_rng(0)
    found = [
        Coordinates(
            rng.standard_normal((2, 3)), np.stack([np.cov(rng.standard_normal((3, 9)))] * 2)
        )
        for _ in range(3)
    ]
    weights = rng.dirichlet(np.ones(3), 2).T
    level = rng.standard_normal((2, 3))
    got = pool(found, weights, level, 1.7)
    for c in range(2):
        mean = sum(w[c] * z.mean[c] for w, z in zip(weights, found, strict=True))
        cov = sum(
            w[c] * (z.cov[c] + np.outer(z.mean[c] - mean, z.mean[c] - mean))
            for w, z in zip(weights, found, strict=True)
        )
        np.testing.assert_allclose(got.mean[c], level[c] + 1.7 * (mean - level[c]))
        np.testing.assert_allclose(got.cov[c], cov)


def test_a_column_that_says_what_others_say_is_left_out(monkeypatch):
    q, _, X, H, _ = setting(8)
    double = np.hstack([X, X[:, [0]] + 1e-6 * X[:, [1]], np.zeros((len(X), 1))])
    columns = Columns(double, np.zeros(10, dtype=int), 1)
    q = Gaussian.start(columns, q.likelihood, np.full((2, 10), 0.2), np.zeros((len(X), 1)))
    q.settle()
    basis, z = made(q, columns, double, H, 10, 0.0, monkeypatch)
    assert len(basis.order) == 8
    assert 9 not in basis.order
    assert len({0, 8} & set(basis.order.tolist())) == 1
    assert np.isfinite(z.mean).all()
    assert COLLINEAR < 0.01


def test_the_base_rate_is_projected_onto_itself(monkeypatch):
    q, columns, X, H, _ = setting(8)
    basis, _ = made(q, columns, X, H, 4, 0.2, monkeypatch)
    level = np.array([0.7, -1.1])
    z = Coordinates(constant(level, basis), np.zeros((2, 5, 5)))
    mean, _ = predict_path(basis.rows(X), z, [0, 2, 4])
    np.testing.assert_allclose(mean, np.broadcast_to(level, mean.shape), atol=1e-12)


def test_order_of_columns_does_not_matter(monkeypatch):
    q, columns, X, H, _ = setting(8)
    basis, z = made(q, columns, X, H, 5, 0.3, monkeypatch)
    order = np.random.default_rng(0).permutation(8)
    mixed = Columns(X[:, order], columns.owner[order], 2)
    other = Gaussian(mixed, q.likelihood, q.s[:, order], q.sites, q.noise, q.absent, q.extra)
    other.refresh()
    again, z_again = made(other, mixed, X[:, order], H, 5, 0.3, monkeypatch)
    np.testing.assert_array_equal(order[again.order], basis.order)
    np.testing.assert_allclose(z_again.mean, z.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(z_again.cov, z.cov, rtol=1e-6, atol=1e-9)


def test_fewer_features_than_rows_can_tell(monkeypatch):
    q, columns, X, H, _ = setting(45, N=10, kind=GaussianOutputs)
    basis, _ = made(q, columns, X, H, 40, 0.0, monkeypatch)
    assert len(basis.order) <= 8


# -- correlations that are sampling noise -------------------------------------------------------


def literal_noise(X, H):
    p = H / H.sum()
    Z = (X - p @ X) / np.sqrt(p @ (X - p @ X) ** 2)
    noise = found = 0.0
    for i in range(X.shape[1]):
        for j in range(X.shape[1]):
            if i != j:
                r = (p * Z[:, i] * Z[:, j]).sum()
                noise += (p**2 * Z[:, i] ** 2 * Z[:, j] ** 2).sum() - (p**2).sum() * r**2
                found += r**2
    return min(max(noise / found, 0.0), 1.0)


def test_correlation_noise_is_its_literal_twin():
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = correlated(25, 9, seed)
        H = rng.uniform(0.02, 0.25, 25)
        assert correlation_noise(X, H) == pytest.approx(literal_noise(X, H), rel=1e-9)


def test_with_equal_weights_it_is_the_variance_of_the_correlations():
    """Var r = sum_n (z_i z_j - r)^2/N^2, as for any mean of N values."""
    X = correlated(40, 6)
    Z = (X - X.mean(0)) / X.std(0)
    noise = found = 0.0
    for i in range(6):
        for j in range(6):
            if i != j:
                product = Z[:, i] * Z[:, j]
                noise += product.var() / 40
                found += product.mean() ** 2
    assert correlation_noise(X, np.ones(40)) == pytest.approx(noise / found, rel=1e-9)


def test_independent_columns_are_noise_and_correlated_ones_are_not():
    rng = np.random.default_rng(0)
    independent = rng.standard_normal((30, 400))
    assert correlation_noise(independent, np.ones(30)) > 0.9
    shared = rng.standard_normal((400, 1)) + 0.3 * rng.standard_normal((400, 20))
    assert correlation_noise(shared, np.ones(400)) < 0.01
    few, many = (correlation_noise(correlated(N, 20), np.ones(N)) for N in (20, 2000))
    assert many < few


def test_one_column_or_constants_have_no_correlations():
    X = correlated(20, 3)
    assert correlation_noise(X[:, :1], np.ones(20)) == 0.0
    assert correlation_noise(X[:, :0], np.ones(20)) == 0.0
    constant_too = np.hstack([X, np.ones((20, 1))])
    assert correlation_noise(constant_too, np.ones(20)) == pytest.approx(
        correlation_noise(X, np.ones(20)), rel=1e-9
    )


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10_000), st.integers(3, 40), st.integers(1, 30), st.floats(0.0, 3.0))
def test_correlation_noise_is_a_share(seed, N, L, common):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L)) + common * rng.standard_normal((N, 1))
    H = rng.uniform(1e-3, 1.0, N)
    a = correlation_noise(X, H)
    assert 0.0 <= a <= 1.0
    # Units, places and signs of the columns do not matter.
    b = correlation_noise(X * rng.choice([-7.0, 0.1], L) + rng.normal(0, 3, L), 5.0 * H)
    assert b == pytest.approx(a, abs=1e-6)
