"""The in-or-out prior: exact on one feature, leave-one-out on many, and blind to order."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from baldur.inference.fixed_prior import Outputs, feature_statistics, posterior
from baldur.inference.inclusion import PRIOR_IN, PRIOR_OUT, run_inclusion
from baldur.model.likelihood import GaussianOutputs, JaakkolaLogistic, QuadratureLogistic, Sites
from baldur.model.structured.inclusion import (
    LOBES,
    Cavity,
    cavity,
    inclusion_probability,
    variance_by_mean,
    variance_by_prior,
    weight_in,
)

S0 = 100.0


def problem(kind=QuadratureLogistic, N=60, L=12, C=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L))
    X = (X - X.mean(0)) / X.std(0)
    eta = 1.5 * X[:, [0]] - 1.5 * X[:, [L // 2]] + np.zeros((N, C))
    noisy = eta + rng.logistic(size=(N, C))
    T = noisy if kind is GaussianOutputs else (noisy > 0).astype(float)
    return X, kind(T, np.ones_like(T))


def exact_weight_in(x, y, noise, slab, lobes):
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


@pytest.mark.parametrize("lobes", [0.0, 0.5, LOBES])
@pytest.mark.parametrize("seed", range(5))
def test_one_feature_is_the_exact_in_or_out_posterior(seed, lobes):
    """Gaussian outputs of known noise: odds, mean and second moment have closed forms."""
    rng = np.random.default_rng(seed)
    N, psi, slab, pi = 15, 1.7, 0.6, 0.2
    x = rng.standard_normal(N)
    y = 0.3 * x + rng.standard_normal(N) / np.sqrt(psi)
    noise = np.eye(N) / psi + S0
    log_in, mean_in, second_in = exact_weight_in(x, y, noise, slab, lobes)
    exact_odds = np.log(pi / (1 - pi)) + log_in
    exact_odds -= multivariate_normal.logpdf(y, np.zeros(N), noise)
    exact_rho = expit(exact_odds)

    for s in (0.01, 0.3, 2.0):  # the answer may not depend on where the iteration stands
        sites = Sites(np.full((N, 1), psi), psi * y[:, None])
        out = Outputs(x[:, None], np.array([[s]]), sites, [], np.zeros((N, 1)))
        out.sides = posterior(out.X, out.s, sites)
        cav = cavity(out.s, *feature_statistics(out))
        found = weight_in(cav, np.array([[slab]]), lobes)
        rho = inclusion_probability(found, np.array([np.log(pi / (1 - pi))]))
        assert rho[0] == pytest.approx(exact_rho, rel=1e-6)
        assert found.mean[0, 0] == pytest.approx(mean_in, rel=1e-6)
        assert found.second[0, 0] == pytest.approx(second_in, rel=1e-6)
        # The Gaussian with this variance has the exact posterior mean.
        out.s = variance_by_mean(rho, found, cav, np.array([[slab]]))
        out.sides = posterior(out.X, out.s, sites)
        assert out.weights()[0][0, 0] == pytest.approx(exact_rho * mean_in, rel=1e-6)
        assert variance_by_prior(rho, np.array([[slab]]))[0, 0] == rho[0] * slab


def test_the_fixed_point_of_one_feature_is_exact():
    """The whole iteration, with share, slab and noise learned, ends where the formulas do."""
    rng = np.random.default_rng(3)
    N = 40
    x = rng.standard_normal((N, 1))
    y = 0.25 * x + rng.standard_normal((N, 1))
    likelihood = GaussianOutputs(y, np.ones_like(y))
    result = run_inclusion(
        x, np.array([0]), np.array([1.0]), likelihood, by_mean=True, max_iter=500
    )
    assert result.converged
    pi, slab, psi = result.pi[0], result.slab[0, 0], likelihood.psi.mean[0]
    noise = np.eye(N) / psi + S0
    gain, mean_in, _ = exact_weight_in(x[:, 0], y[:, 0], noise, slab, LOBES)
    gain -= multivariate_normal.logpdf(y[:, 0], np.zeros(N), noise)
    assert result.rho[0] == pytest.approx(expit(np.log(pi / (1 - pi)) + gain), abs=0.01)
    assert result.outputs.weights()[0][0, 0] == pytest.approx(result.rho[0] * mean_in, rel=0.05)


@pytest.mark.parametrize("L", [6, 40], ids=["feature side", "sample side"])
def test_cavity_is_the_leave_one_out_refit(L):
    rng = np.random.default_rng(0)
    N, C = 15, 2
    X = rng.standard_normal((N, L))
    s = np.exp(rng.normal(-2, 1, (C, L)))
    sites = Sites(rng.uniform(0.05, 0.25, (N, C)), rng.normal(0, 0.3, (N, C)))
    out = Outputs(X, s, sites, posterior(X, s, sites), np.zeros((N, C)))
    cav = cavity(s, *feature_statistics(out))
    for c in range(C):
        y, noise = sites.j[:, c] / sites.h[:, c], np.diag(1 / sites.h[:, c])
        for d in range(L):
            rest = np.arange(L) != d
            K = (X[:, rest] * s[c, rest]) @ X[:, rest].T + S0 + noise
            precision = X[:, d] @ np.linalg.solve(K, X[:, d])
            assert cav.var[c, d] == pytest.approx(1 / precision, rel=1e-6)
            mean = X[:, d] @ np.linalg.solve(K, y) / precision
            assert cav.mean[c, d] == pytest.approx(mean, rel=1e-6, abs=1e-8)


def test_odds_of_several_outputs_add():
    rng = np.random.default_rng(0)
    cav = Cavity(rng.standard_normal((3, 4)), rng.uniform(0.1, 1, (3, 4)))
    slab, prior = rng.uniform(0.2, 2, (3, 4)), rng.standard_normal(4)
    want = prior.copy()
    for c in range(3):
        mu, sd = np.sqrt(LOBES * slab[c]), np.sqrt(cav.var[c] + (1 - LOBES) * slab[c])
        inside = 0.5 * (norm.pdf(cav.mean[c], mu, sd) + norm.pdf(cav.mean[c], -mu, sd))
        want = want + np.log(inside) - norm.logpdf(cav.mean[c], 0, np.sqrt(cav.var[c]))
    found = inclusion_probability(weight_in(cav, slab), prior)
    np.testing.assert_allclose(found, expit(want), rtol=1e-10)


@pytest.mark.parametrize("by_mean", [True, False])
@pytest.mark.parametrize("kind", [QuadratureLogistic, JaakkolaLogistic, GaussianOutputs])
def test_order_of_features_views_and_rows_does_not_matter(kind, by_mean):
    X, likelihood = problem(kind)
    owner, n_features = np.repeat([0, 1], 6), np.array([6.0, 50.0])
    target = likelihood.Y if kind is GaussianOutputs else likelihood.T
    fit = run_inclusion(X, owner, n_features, likelihood, by_mean=by_mean)
    rng = np.random.default_rng(0)
    cols, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    other = run_inclusion(
        X[rows][:, cols],
        1 - owner[cols],
        n_features[::-1].copy(),
        kind(target[rows], np.ones_like(target)),
        by_mean=by_mean,
    )
    np.testing.assert_allclose(other.rho, fit.rho[cols], atol=1e-6)
    np.testing.assert_allclose(other.pi, fit.pi[::-1], rtol=1e-6)
    np.testing.assert_allclose(other.slab, fit.slab[:, ::-1], rtol=1e-6)
    np.testing.assert_allclose(
        other.outputs.weights()[0], fit.outputs.weights()[0][:, cols], atol=1e-6
    )


@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_features_screened_out_count_as_out(kind):
    """The share in is learned over all features of a view, not over the candidates."""
    X, likelihood = problem(kind)
    owner = np.zeros(12, dtype=int)
    found = {}
    for n in (12, 120, 1200):
        fit = run_inclusion(X, owner, np.array([float(n)]), likelihood, by_mean=True, max_iter=500)
        share = (fit.rho.sum() + PRIOR_IN) / (n + PRIOR_IN + PRIOR_OUT)
        assert fit.pi[0] == pytest.approx(share, rel=0.02)
        found[n] = fit
    noise = np.setdiff1d(np.arange(12), [0, 6])
    assert found[12].pi[0] > found[120].pi[0] > found[1200].pi[0]
    assert found[12].rho[noise].mean() > found[120].rho[noise].mean()
    assert found[120].rho[noise].mean() > found[1200].rho[noise].mean()
    assert found[12].rho[[0, 6]].min() > 0.5


def test_a_constant_column_stays_at_its_prior_and_harms_nothing():
    X, likelihood = problem()
    X[:, 3] = 0.0
    fit = run_inclusion(X, np.zeros(12, dtype=int), np.array([12.0]), likelihood, by_mean=True)
    assert fit.rho[3] == pytest.approx(fit.pi[0], rel=0.1)
    assert fit.outputs.weights()[0][0, 3] == 0.0
