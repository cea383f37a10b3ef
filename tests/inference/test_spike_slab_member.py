"""The fixed point of the in-or-out prior: exact on one feature, blind to order, fair to doubles."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from baldur.inference import inclusion as inclusion_module
from baldur.inference.features import INTERCEPT_VAR, Columns
from baldur.inference.inclusion import (
    PRIOR_IN,
    PRIOR_OUT,
    SLAB_COUNT,
    fit_inclusion,
)
from baldur.inference.members import PREDICTOR_SD
from baldur.model.inclusion import NONLOCAL
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic, Sites
from inference.problems import KINDS, plain_problem, target
from model.test_inclusion import exact_weight_in


def fit(X, likelihood, owner=None, n_features=None, by_mean=True, **options):
    owner = np.zeros(X.shape[1], dtype=int) if owner is None else owner
    M = int(owner.max()) + 1
    n_features = np.bincount(owner).astype(float) if n_features is None else n_features
    columns = Columns(X, owner, M)
    absent = np.zeros((len(X), M))
    return fit_inclusion(columns, absent, n_features, likelihood, by_mean=by_mean, **options)


def weights(member):
    """Mean weights of the member, (C, L)."""
    return sum(
        share[:, None] * q.features.weights(q.sides, q.s)[0]
        for share, q in zip(member.weights, member.points, strict=True)
    )


@pytest.fixture
def patient(monkeypatch):
    """Stop at the fixed point itself, not when probabilities are calm."""
    monkeypatch.setattr(inclusion_module, "CALM", 1e-6)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("by_mean", [True, False])
def test_the_fixed_point_of_one_feature_is_exact(by_mean):
    """The whole iteration, with share, slab and noise learned, ends where the formulas do."""
    rng = np.random.default_rng(3)
    N = 40
    x = rng.standard_normal((N, 1))
    y = 0.25 * x + rng.standard_normal((N, 1))
    member = fit(x, GaussianOutputs(y, np.ones_like(y)), by_mean=by_mean, max_iter=2000)
    assert member.converged
    found = member.details
    pi, slab = found.pi[0], found.slab[0, 0]
    noise = np.eye(N) / member.points[0].noise.mean[0] + INTERCEPT_VAR
    log_in, _, second = exact_weight_in(x[:, 0], y[:, 0], noise, slab, NONLOCAL)
    gain = log_in - multivariate_normal.logpdf(y[:, 0], np.zeros(N), noise)
    assert found.rho[0] == pytest.approx(expit(np.log(pi / (1 - pi)) + gain), abs=5e-3)
    assert pi == pytest.approx((found.rho[0] + PRIOR_IN) / (1 + PRIOR_IN + PRIOR_OUT), rel=1e-4)
    reach = slab * found.rho[0] / PREDICTOR_SD**2
    want = (found.rho[0] * second + SLAB_COUNT) / (found.rho[0] + SLAB_COUNT + reach)
    assert slab == pytest.approx(want, rel=1e-2)


@pytest.mark.parametrize("by_mean", [True, False])
@pytest.mark.parametrize("kind", KINDS)
def test_order_of_features_views_and_rows_does_not_matter(kind, by_mean):
    X, likelihood = plain_problem(kind)
    owner, n_features = np.repeat([0, 1], 6), np.array([6.0, 50.0])
    one = fit(X, likelihood, owner, n_features, by_mean)
    rng = np.random.default_rng(0)
    cols, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    T = target(likelihood)
    other = fit(
        X[rows][:, cols], kind(T[rows], np.ones_like(T)), 1 - owner[cols], n_features[::-1], by_mean
    )
    np.testing.assert_allclose(other.details.rho, one.details.rho[cols], atol=1e-6)
    np.testing.assert_allclose(other.details.pi, one.details.pi[::-1], rtol=1e-6)
    np.testing.assert_allclose(other.details.slab, one.details.slab[:, ::-1], rtol=1e-6)
    np.testing.assert_allclose(weights(other), weights(one)[:, cols], atol=1e-6)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("by_mean", [True, False])
@pytest.mark.parametrize(
    ("kind", "noise"), [(QuadratureLogistic, None), (GaussianOutputs, 1.0), (GaussianOutputs, 0.05)]
)
def test_columns_that_rest_change_nothing(monkeypatch, kind, noise, by_mean):
    """With and without rests, probabilities agree to 1e-3 after as many iterations."""
    X, likelihood = plain_problem(kind, N=60, L=80)
    if noise is not None:
        Y = X[:, [0]] - X[:, [40]] + noise * np.random.default_rng(0).standard_normal((60, 1))
        likelihood = GaussianOutputs(Y / Y.std(), np.ones_like(Y))
    resting = fit(X, likelihood, by_mean=by_mean, max_iter=120)
    monkeypatch.setattr(inclusion_module, "NEGLIGIBLE", -1.0)
    awake = fit(X, likelihood, by_mean=by_mean, max_iter=120)
    np.testing.assert_allclose(resting.details.rho, awake.details.rho, atol=1e-3)
    np.testing.assert_allclose(weights(resting), weights(awake), atol=0.02)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("by_mean", [True, False])
def test_variances_have_an_end_where_classes_separate(by_mean):
    """The prior of the s.d. of the linear predictor holds them; iterations do not matter."""
    X, likelihood = plain_problem(N=60, L=80, separable=True)
    some, more = (
        fit(X, likelihood, by_mean=by_mean, max_iter=count).details for count in (300, 600)
    )
    np.testing.assert_allclose(more.slab, some.slab, rtol=0.1)
    np.testing.assert_allclose(more.rho, some.rho, atol=0.02)


@pytest.mark.parametrize("by_mean", [True, False])
@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_doubles_share(kind, by_mean):
    """Two copies of a feature are equally probable, and together carry the weight of one."""
    X, likelihood = plain_problem(kind, N=100, L=12)
    double = np.hstack([X, X[:, [0]]])
    one, two = (fit(A, likelihood, by_mean=by_mean, max_iter=500) for A in (X, double))
    rho, w = two.details.rho, weights(two)[0]
    assert rho[0] == pytest.approx(rho[12], rel=1e-6)
    assert w[0] == pytest.approx(w[12], rel=1e-6)
    assert w[0] + w[12] == pytest.approx(weights(one)[0, 0], rel=0.25)


@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_features_screened_out_count_as_out(kind):
    """The share in is learned over all features of a view, not over the candidates."""
    X, likelihood = plain_problem(kind)
    found = {}
    for n in (12, 120, 1200):
        details = fit(X, likelihood, n_features=np.array([float(n)]), max_iter=500).details
        share = (details.rho.sum() + PRIOR_IN) / (n + PRIOR_IN + PRIOR_OUT)
        assert details.pi[0] == pytest.approx(share, rel=0.02)
        found[n] = details
    noise = np.setdiff1d(np.arange(12), [0, 6])
    assert found[12].pi[0] > found[120].pi[0] > found[1200].pi[0]
    assert found[12].rho[noise].mean() > found[120].rho[noise].mean()
    assert found[120].rho[noise].mean() > found[1200].rho[noise].mean()
    assert found[12].rho[[0, 6]].min() > 0.5


def test_a_constant_column_stays_at_its_prior_and_harms_nothing():
    X, likelihood = plain_problem()
    X[:, 3] = 0.0
    member = fit(X, likelihood)
    assert member.details.rho[3] == pytest.approx(member.details.pi[0], rel=0.1)
    assert weights(member)[0, 3] == 0.0


def test_the_record_of_a_fit():
    X, likelihood = plain_problem(C=2)
    member = fit(X, likelihood, np.repeat([0, 1], 6))
    last = member.history[-1]
    rho = member.details.rho
    assert last["active_features"] == [int((rho[:6] > 0.5).sum()), int((rho[6:] > 0.5).sum())]
    assert last["expected_features"] == pytest.approx(rho.sum())
    assert last["n_factors"] == 2
    assert last["change"] < inclusion_module.CALM
    short = fit(X, likelihood, max_iter=3)
    assert not short.converged
    assert len(short.history) == 3


@pytest.mark.parametrize("L", [12, 80], ids=["feature side", "sample side"])
def test_outside_quadratic_is_literal(L):
    rng = np.random.default_rng(0)
    N = 40
    X, new = rng.standard_normal((N, L)), rng.standard_normal((N, 7))
    s = np.exp(rng.normal(-2, 1, (1, L)))
    sites = Sites(rng.uniform(0.05, 0.25, (N, 1)), rng.normal(0, 0.3, (N, 1)))
    side = Columns(X, np.zeros(L, dtype=int), 1).posterior(s, sites)[0]
    K = (X * s[0]) @ X.T + INTERCEPT_VAR + np.diag(1 / sites.h[:, 0])
    want = np.einsum("nd,nm,md->d", new, np.linalg.inv(K), new)
    np.testing.assert_allclose(side.outside_quadratic(new, sites.h[:, 0]), want, rtol=1e-8)
