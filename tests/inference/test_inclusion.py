"""The in-or-out prior: exact on one feature, leave-one-out on many, and blind to order."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from baldur.inference.fixed_prior import Outputs, feature_statistics, posterior, solve
from baldur.inference.inclusion import PRIOR_IN, PRIOR_OUT, run_inclusion
from baldur.model.likelihood import GaussianOutputs, JaakkolaLogistic, QuadratureLogistic, Sites
from baldur.model.structured.inclusion import (
    Cavity,
    cavity,
    effective_variance,
    inclusion_odds,
    inclusion_probability,
    slab_second_moment,
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


@pytest.mark.parametrize("seed", range(5))
def test_one_feature_is_the_exact_spike_and_slab_posterior(seed):
    """Gaussian outputs of known noise: odds, mean and second moment have closed forms."""
    rng = np.random.default_rng(seed)
    N, psi, slab, pi = 15, 1.7, 0.6, 0.2
    x = rng.standard_normal(N)
    y = 0.3 * x + rng.standard_normal(N) / np.sqrt(psi)
    noise = np.eye(N) / psi + S0
    evidence_in = multivariate_normal.logpdf(y, np.zeros(N), noise + slab * np.outer(x, x))
    evidence_out = multivariate_normal.logpdf(y, np.zeros(N), noise)
    exact_odds = np.log(pi / (1 - pi)) + evidence_in - evidence_out
    exact_rho = expit(exact_odds)
    Ci = np.linalg.inv(noise + slab * np.outer(x, x))
    mean_in = slab * x @ Ci @ y
    var_in = slab - slab**2 * x @ Ci @ x

    for s in (0.01, 0.3, 2.0):  # the answer may not depend on where the iteration stands
        sites = Sites(np.full((N, 1), psi), psi * y[:, None])
        out = Outputs(x[:, None], np.array([[s]]), sites, [], np.zeros((N, 1)))
        out.sides = posterior(out.X, out.s, sites)
        cav = cavity(out.s, *feature_statistics(out))
        odds = inclusion_odds(cav, np.array([[slab]]), np.array([np.log(pi / (1 - pi))]))
        assert odds[0] == pytest.approx(exact_odds, abs=1e-6)
        rho = inclusion_probability(odds)
        second = slab_second_moment(cav, np.array([[slab]]))
        assert second[0, 0] == pytest.approx(mean_in**2 + var_in, rel=1e-6)
        # kappa = 1: the Gaussian with the effective variance has the exact posterior mean
        out.s = effective_variance(rho, cav, np.array([[slab]]), 1.0)
        out.sides = posterior(out.X, out.s, sites)
        assert out.weights()[0][0, 0] == pytest.approx(exact_rho * mean_in, rel=1e-6)
        # kappa = 0: the expected prior variance
        assert effective_variance(rho, cav, np.array([[slab]]), 0.0)[0, 0] == rho[0] * slab


def test_the_fixed_point_of_one_feature_is_exact():
    """The whole iteration, with share, slab and noise learned, ends where the formulas do."""
    rng = np.random.default_rng(3)
    N = 40
    x = rng.standard_normal((N, 1))
    y = 0.25 * x + rng.standard_normal((N, 1))
    likelihood = GaussianOutputs(y, np.ones_like(y))
    result = run_inclusion(x, np.array([0]), np.array([1.0]), likelihood, kappa=1.0, max_iter=500)
    assert result.converged
    pi, slab, psi = result.pi[0], result.slab[0, 0], likelihood.psi.mean[0]
    noise = np.eye(N) / psi + S0
    gain = multivariate_normal.logpdf(y[:, 0], np.zeros(N), noise + slab * x @ x.T)
    gain -= multivariate_normal.logpdf(y[:, 0], np.zeros(N), noise)
    assert result.rho[0] == pytest.approx(expit(np.log(pi / (1 - pi)) + gain), abs=0.01)
    mean_in = slab * x[:, 0] @ np.linalg.solve(noise + slab * x @ x.T, y[:, 0])
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
        inside = norm.logpdf(cav.mean[c], 0, np.sqrt(cav.var[c] + slab[c]))
        want = want + inside - norm.logpdf(cav.mean[c], 0, np.sqrt(cav.var[c]))
    np.testing.assert_allclose(inclusion_odds(cav, slab, prior), want, rtol=1e-10)


@pytest.mark.parametrize("kappa", [0.0, 1.0, None])
@pytest.mark.parametrize("kind", [QuadratureLogistic, JaakkolaLogistic, GaussianOutputs])
def test_order_of_features_views_and_rows_does_not_matter(kind, kappa):
    X, likelihood = problem(kind)
    owner, n_features = np.repeat([0, 1], 6), np.array([6.0, 50.0])
    target = likelihood.Y if kind is GaussianOutputs else likelihood.T
    fit = run_inclusion(X, owner, n_features, likelihood, kappa=kappa)
    rng = np.random.default_rng(0)
    cols, rows = rng.permutation(X.shape[1]), rng.permutation(len(X))
    other = run_inclusion(
        X[rows][:, cols],
        1 - owner[cols],
        n_features[::-1].copy(),
        kind(target[rows], np.ones_like(target)),
        kappa=kappa,
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
        fit = run_inclusion(X, owner, np.array([float(n)]), likelihood, kappa=1.0, max_iter=500)
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
    fit = run_inclusion(X, np.zeros(12, dtype=int), np.array([12.0]), likelihood, kappa=1.0)
    assert fit.rho[3] == pytest.approx(fit.pi[0], rel=0.1)
    assert fit.outputs.weights()[0][0, 3] == 0.0


@pytest.mark.parametrize("L", [12, 80], ids=["feature side", "sample side"])
@pytest.mark.parametrize("kind", [QuadratureLogistic, JaakkolaLogistic])
def test_with_everything_in_the_slab_is_the_mean_square_of_its_weights(kind, L):
    """The fixed point of plain shrinkage per view: no variance near it has a higher bound."""
    X, likelihood = problem(kind, L=L)
    owner = np.repeat([0, 1], L // 2)
    fit = run_inclusion(
        X, owner, np.bincount(owner).astype(float), likelihood, kappa=None, max_iter=2000
    )
    assert fit.converged
    assert (fit.rho == 1.0).all()
    w, var = fit.outputs.weights()
    for m in range(2):
        here = owner == m
        want = (w[0, here] ** 2 + var[0, here]).mean()
        assert fit.slab[0, m] == pytest.approx(want, rel=0.05)
    best = solve(X, fit.slab[:, owner], likelihood, tol=1e-10).bounds[-1]
    for m in range(2):
        for factor in (0.3, 3.0):
            slab = fit.slab.copy()
            slab[:, m] *= factor
            assert solve(X, slab[:, owner], likelihood, tol=1e-10).bounds[-1] < best + 0.05
