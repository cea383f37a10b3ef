"""Dropping by evidence: what a feature is worth, comparable bounds, and emptied views."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from baldur.inference.double_ard import fit_double_ard
from baldur.inference.features import all_features
from baldur.inference.fixed_shape import fit_dense, fit_shape
from baldur.inference.new_rows import absent_matrix
from baldur.inference.screening import Problem
from baldur.model.likelihood import QuadratureLogistic
from baldur.model.loadings import FactorLikelihood
from model.problems import LIKELIHOODS, as_view, make_small, make_views, random_fit, start_fit

CASES = [("binary", None), ("multiclass", None), ("regression", None), ("multilabel", 2)]
OPTIONS = {"n_factors": None, "max_iter": 100, "tol": 1e-5, "prune": True}


def site_bound(fit):
    """The bound with Gaussian sites in place of the likelihood, up to a constant."""
    h, j = fit.q.sites
    mean = np.stack([side.mean for side in fit.q.sides], axis=1)
    var = np.stack([side.var for side in fit.q.sides], axis=1)
    value = float((j * mean - 0.5 * h * (mean**2 + var)).sum())
    return value - sum(side.kl for side in fit.q.sides) + fit.prior.bound()


def without(fit, entries):
    """The same without some entries, everything but q(w) as it is."""
    keep = ~np.isin(np.arange(len(fit.prior.owner)), entries)
    return replace(fit, entries=fit.entries.only(keep)).under(fit.prior.only(keep))


def gains(fit):
    return fit.prior.gains(*fit.entries.statistics(fit.q, fit.prior))


def with_labels(problem, T):
    """The same views with other labels."""
    T = np.asarray(T, dtype=float)[:, None]
    return Problem(problem.views, QuadratureLogistic(T, np.ones_like(T)), "binary")


@pytest.mark.parametrize("shape", [1e-6, 0.5, 20.0])
@pytest.mark.parametrize("side", ["sample", None])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_gain_is_the_loss_of_bound_with_sites_held(task, side, shape):
    """Sites and precisions held, q(w) recomputed, V = I."""
    fit = random_fit(make_small(task, N=25, sizes=(3, 12), absent=True), shape, side=side)
    full, found = site_bound(fit), gains(fit)
    for d in range(15):
        assert found[d] == pytest.approx(full - site_bound(without(fit, d)), rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("side", ["sample", None])
def test_the_last_feature_of_a_view_takes_its_delta_along(side):
    fit = without(random_fit(make_small("multiclass", N=25, sizes=(3, 12)), side=side), [0, 2])
    change = site_bound(fit) - site_bound(without(fit, 0))
    assert gains(fit)[0] == pytest.approx(change, rel=1e-6, abs=1e-6)


def test_gain_of_learned_factors_is_one_factor_at_a_time():
    """With V learned the factors meet in the likelihood; each is refitted at its own sites."""
    fit = random_fit(make_small("multilabel", "jaakkola", N=15), K=2)
    h, j = fit.q.sites

    def refitted(fit, k):
        side = fit.q.sides[k]
        fit_k = j[:, k] * side.mean - 0.5 * h[:, k] * (side.mean**2 + side.var)
        return float(fit_k.sum()) - side.kl

    for d in range(8):
        smaller = without(fit, d)
        change = sum(refitted(fit, k) - refitted(smaller, k) for k in range(2))
        change += fit.prior.bound() - smaller.prior.bound()
        assert gains(fit)[d] == pytest.approx(change, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("side", ["sample", None])
def test_a_dropped_feature_is_a_feature_that_was_never_there(side):
    """Bounds across a drop compare: an emptied view leaves the bound of the other alone."""
    problem = make_small("binary", N=20, sizes=(6, 6))
    fit = without(random_fit(problem, side=side), np.arange(6, 12))
    alone = random_fit(replace(problem, views=problem.views[:1]), side=side)
    prior = replace(alone.prior, gamma=fit.prior.gamma, delta=fit.prior.delta[:1])
    alone.q.sites = fit.q.sites
    assert fit.bound() == pytest.approx(alone.under(prior).bound(), rel=1e-10)


@pytest.mark.parametrize(("task", "K"), CASES)
def test_pruning_never_lowers_the_bound(task, K):
    problem = make_small(task, N=40, sizes=(4, 12))
    C = problem.likelihood.n_outputs
    V = None if K is None else np.random.default_rng(0).standard_normal((C, K))
    loose = fit_double_ard(start_fit(problem, 0.05, V=V), max_iter=60, prune=False)
    fit = fit_double_ard(start_fit(problem, 0.05, V=V), max_iter=60)
    assert fit.bound() >= loose.bound() - 1e-8 * abs(loose.bound())
    values = np.array([r["bound"] for r in fit.history])
    assert (np.diff(values) >= -1e-8 * np.abs(values[1:])).all()
    active = np.array([sum(r["active_features"]) for r in fit.history])
    assert (np.diff(active) <= 0).all()
    assert active[-1] < 16
    assert any("dropped" in r["event"] for r in fit.history)


@pytest.mark.parametrize("shape", [0.05, 0.5])
@pytest.mark.parametrize("likelihood", ["quadrature", "jaakkola"])
def test_history_falls_only_where_missing_views_are_declared(likelihood, shape):
    """With learned loadings too, whose factors depend on each other."""
    for seed in range(2):
        problem = make_small("multiclass", likelihood, N=40, sizes=(4, 12), seed=seed, absent=True)
        V = np.random.default_rng(seed).standard_normal((3, 2))
        fit = fit_double_ard(start_fit(problem, shape, V=V), max_iter=8)
        for before, after in pairwise(fit.history):
            if after["event"] != "missing views":
                assert after["bound"] >= before["bound"] - 1e-8 * abs(before["bound"]), after


def test_rows_that_lack_an_emptied_view_lack_nothing():
    problem = make_small("binary", N=60, sizes=(3, 6), absent=True)
    x = problem.views[0].columns([0])[:, 0]
    problem = with_labels(problem, 2 * x + np.random.default_rng(0).logistic(size=60) > 0)
    fit = fit_double_ard(start_fit(problem, 0.5), max_iter=60)
    assert fit.prior.n_in[1] == 0
    assert not fit.q.extra.any()


def test_nothing_left_to_drop_after_pruning():
    fit = fit_double_ard(start_fit(make_small("binary", N=60, sizes=(4, 12)), 0.05), max_iter=100)
    assert (gains(fit) > -0.5).all()
    assert all(0 in index for index in fit.entries.index)


def noise_problem(seed=0, rate=0.3, N=60):
    T = np.random.default_rng(seed).permutation(np.arange(N) < rate * N)
    return with_labels(make_small("binary", N=N, seed=seed), T)


def test_everything_dropped_predicts_the_base_rate():
    problem = noise_problem()
    fit = without(start_fit(problem, 0.05), np.arange(8))
    fit.iterate(50, 1e-10)
    mean, var = fit.q.moments()
    np.testing.assert_allclose(mean, mean[0, 0])
    assert expit(mean[0, 0]) == pytest.approx(0.3, abs=0.01)
    assert (var < 0.2).all()
    # the prior's own terms are gone: the bound is that of the intercept alone
    assert fit.prior.bound() == 0.0
    fitted = fit_shape(problem, shape=0.05, **OPTIONS)
    assert not any(mask.any() for mask in fitted.selected)
    assert not any(w.any() for w in fitted.coef + fitted.coef_std)
    assert not fitted.signal.any()
    np.testing.assert_allclose(fitted.moments(problem.views)[0][0], mean, atol=1e-4)
    assert fitted.elbo == pytest.approx(fit.bound(), rel=1e-6)


@pytest.mark.parametrize("shape", [0.05, np.inf])
@pytest.mark.parametrize("side", ["sample", None])
def test_a_view_of_noise_is_emptied(side, shape):
    """Signal in the first view alone: the second goes as a whole, the first stays."""
    emptied, stayed = 0, 0
    for seed in range(4):
        problem = make_small("binary", N=80, sizes=(3, 6), seed=seed)
        x = problem.views[0].columns([0, 1])
        noise = np.random.default_rng(seed).logistic(size=80)
        problem = with_labels(problem, x.sum(axis=1) * 2 + noise > 0)
        if np.isfinite(shape):
            selected = fit_double_ard(start_fit(problem, shape, side=side)).entries.selected()
        else:
            features = start_fit(problem, side=side).q.features
            absent = absent_matrix(problem.views)
            likelihood = problem.likelihood
            _, used = fit_dense(features, absent, likelihood, max_iter=100, prune=True)
            selected = [np.full(3, used[0]), np.full(6, used[1])]
        emptied += not selected[1].any()
        stayed += selected[0][:2].all()
    assert stayed == 4
    assert emptied >= 3


def test_drop_views_takes_the_best_first_and_stops():
    fit = start_fit(noise_problem(), 5.0)
    fit.iterate(30, 1e-6)
    before = fit.bound()
    dropped = fit.drop_views()
    assert fit.bound() >= before
    assert dropped == (fit.prior.n_in == 0).sum() > 0
    after = fit.bound()
    assert fit.drop_views() == 0
    assert fit.bound() == after


def test_no_features_are_dropped_under_a_flat_prior():
    fitted = fit_shape(make_small("binary", N=40), shape=np.inf, **OPTIONS)
    assert all(mask.all() or not mask.any() for mask in fitted.selected)


@pytest.mark.parametrize("side", ["sample", None])
def test_view_parts_add_up_to_the_predictor(side):
    fit = random_fit(make_small("multiclass", N=15, sizes=(3, 8), absent=True), side=side)
    q = fit.q
    parts = q.features.parts(q.sides, q.s)
    has = ~fit.views[1].absent
    np.testing.assert_allclose(q.signal()[1], (parts[1][has] ** 2).mean(axis=0), rtol=1e-10)
    intercepts = np.array([100.0 * side.alpha.sum() for side in q.sides])
    np.testing.assert_allclose(parts.sum(axis=0) + intercepts, q.moments()[0], rtol=1e-7, atol=1e-9)


def test_removing_a_factor_leaves_a_consistent_state():
    fit = random_fit(make_small("multilabel", "jaakkola", N=20), K=3)
    V = fit.q.noise.loadings.V[:, [0, 2]]
    trial = replace(fit, q=fit.q.without_factor(1)).under(fit.prior.without_factor(1))
    np.testing.assert_array_equal(trial.q.noise.loadings.V, V)
    assert trial.prior.n_factors == len(trial.q.sides) == trial.q.likelihood.n_outputs == 2
    assert trial.q.noise.loadings.V_cov.shape == (3, 2, 2)
    assert trial.q.sites.h.shape == trial.q.extra.shape == (20, 2)
    assert trial.prior.gamma.shape == 0.5 + 1.0
    np.testing.assert_allclose(trial.prior.gamma.mean, fit.prior.gamma.mean)
    assert np.isfinite(trial.settled().bound())


@pytest.mark.parametrize("likelihood", ["quadrature", "jaakkola"])
def test_a_factor_without_use_is_dropped(likelihood):
    """Two outputs that are one direction need one factor, under either prior."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    f = 2 * X[:, 0]
    T = np.column_stack([f + rng.logistic(size=80) > 0, f + rng.logistic(size=80) > 0])
    outputs = LIKELIHOODS[likelihood](T.astype(float), np.ones((80, 2)))
    problem = Problem([as_view(X)], outputs, "multilabel")
    V = np.array([[1.0, 0.3], [1.0, -0.3]])
    fit = fit_double_ard(start_fit(problem, 0.5, V=V), max_iter=100)
    assert fit.prior.n_factors == 1
    features, absent = all_features(problem.views, 0.0), absent_matrix(problem.views)
    member, used = fit_dense(
        features, absent, FactorLikelihood(outputs, V), max_iter=100, prune=True
    )
    assert used.all()
    assert len(member.points[0].sides) == 1


def test_no_factor_is_dropped_where_outputs_are_the_factors():
    views = make_views(20)
    fit = start_fit(Problem(views, make_small("multilabel", N=20).likelihood, "multilabel"))
    assert fit.q.weakest_factor() is None
    assert fit.drop_factors() == 0
