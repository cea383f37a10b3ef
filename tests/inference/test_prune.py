"""Dropping by evidence: what a feature is worth, comparable bounds, and emptied views."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.special import expit

from baldur.inference.fitted import from_run
from baldur.inference.prune import (
    drop_features,
    drop_views,
    feature_gains,
    precision_costs,
    remove_factor,
    shared_cost,
    view_factor_signal,
    view_part,
)
from baldur.inference.run import iterate, run_structured
from baldur.inference.starts import flat_state
from baldur.inference.sweep import start_factors
from baldur.model.ard import GammaPosterior, gamma_term
from baldur.model.structured.bound import bound, precisions_term, weights_term
from baldur.model.structured.updates import (
    factor_sites,
    feature_statistics,
    refresh_grams,
    refresh_moments,
    update_weights,
)
from model.structured.problems import as_view, make_data, random_state

CASES = [("binary", None), ("multiclass", None), ("regression", None), ("multilabel", 2)]


def site_bound(data, state):
    """The bound with Gaussian sites in place of the likelihood, up to a constant."""
    h, j = state.sites
    mean = np.stack([f.mean for f in state.factors], axis=1)
    var = np.stack([f.var for f in state.factors], axis=1)
    value = float((j * mean - 0.5 * h * (mean**2 + var)).sum())
    return value + weights_term(data, state) + precisions_term(data, state)


def without(data, state, m, d):
    """Drop one feature, everything but q(W) as it is; return the state to put back."""
    parts = state.snapshot()
    kept = state.kept[m].copy()
    kept[d] = False
    state.kept[m] = kept
    refresh_grams(data, state)
    for k in range(state.n_factors):
        state.factors[k] = update_weights(data, state, k)
    return parts


@pytest.mark.parametrize("shape", [1e-6, 0.5, np.inf])
@pytest.mark.parametrize("side", ["sample", "feature"])
@pytest.mark.parametrize("task", ["binary", "multiclass", "regression"])
def test_gain_is_the_loss_of_bound_with_sites_held(task, side, shape):
    """Sites and precisions held, q(W) recomputed, V = I."""
    data = make_data(task, side, shape, N=15, sizes=(3, 12), absent=True)
    state = random_state(data)
    full = site_bound(data, state)
    for m, D in enumerate(data.widths):
        gains = feature_gains(data, state, m)
        for d in range(D):
            parts = without(data, state, m, d)
            change = full - site_bound(data, state)
            state.restore(parts)
            assert gains[d] == pytest.approx(change, rel=1e-6, abs=1e-6)


@pytest.mark.parametrize("side", ["sample", "feature"])
def test_the_last_feature_of_a_view_takes_its_delta_along(side):
    data = make_data("multiclass", side, 0.5, N=15, sizes=(3, 12))
    state = random_state(data)
    state.kept[0] = np.array([False, True, False])
    start_factors(data, state)
    full = site_bound(data, state)
    gains = feature_gains(data, state, 0)
    without(data, state, 0, 1)
    assert gains[1] == pytest.approx(full - site_bound(data, state), rel=1e-6, abs=1e-6)
    assert not gains[[0, 2]].any()


def factor_gains(data, state, m, k):
    """The part of `feature_gains` that factor k contributes, from its definition."""
    q, S = feature_statistics(data, state, m)
    s = state.prior_variance(m, k)
    left = 1 - s * S[k]
    return 0.5 * ((q[k] / left) ** 2 * s / (1 + s * S[k] / left) - np.log1p(s * S[k] / left))


def test_gain_of_learned_factors_is_one_factor_at_a_time():
    """With V learned the factors meet in the likelihood; each is refitted, the others held."""
    data = make_data("multilabel", "feature", 0.5, "jaakkola", N=15)
    state = random_state(data, K=2)

    def refitted(k):
        r, linear = factor_sites(state, k)
        f = update_weights(data, state, k)
        return float((linear * f.mean - 0.5 * r * (f.mean**2 + f.var)).sum()) - f.kl

    for k in range(2):
        state.factors[k] = update_weights(data, state, k)
        before = refitted(k)
        for m, D in enumerate(data.widths):
            kept, gains = state.kept[m], factor_gains(data, state, m, k)
            for d in range(D):
                state.kept[m] = np.arange(D) != d
                assert gains[d] == pytest.approx(before - refitted(k), rel=1e-6, abs=1e-6)
            state.kept[m] = kept
    for m in range(len(data.views)):
        parts = sum(factor_gains(data, state, m, k) for k in range(2))
        costs = precision_costs(data, state, m) + shared_cost(data, state, m)
        np.testing.assert_allclose(feature_gains(data, state, m), parts + costs, rtol=1e-10)


@pytest.mark.parametrize("shape", [1e-6, 0.5, 4.0])
def test_precision_cost_is_its_gamma_term(shape):
    data = make_data("multiclass", "feature", shape)
    state = random_state(data)
    for m, D in enumerate(data.widths):
        gamma, costs = state.gamma[m], precision_costs(data, state, m)
        for d in range(D):
            one = GammaPosterior(gamma.shape, gamma.rate[[d]])
            gap = 0.5 * state.n_factors * float(one.mean_log[0] - np.log(one.mean[0]))
            assert costs[d] == pytest.approx(gamma_term(one, data.priors.gamma) + gap, rel=1e-9)
        assert (costs <= 0).all()


@pytest.mark.parametrize("side", ["sample", "feature"])
def test_a_dropped_feature_is_a_feature_that_was_never_there(side):
    """Bounds across a drop compare: an emptied view leaves the bound of the other alone."""
    data = make_data("binary", side, 0.5, N=20, sizes=(6, 6))
    state = random_state(data)
    state.kept[1] = np.zeros(6, dtype=bool)
    start_factors(data, state)
    small = type(data)(
        data.views[:1], data.likelihood, data.priors, None if data.X is None else data.X[:, :6]
    )
    alone = random_state(small)
    alone.gamma, alone.delta, alone.sites = state.gamma[:1], state.delta[:1], state.sites
    start_factors(small, alone)
    assert bound(data, state) == pytest.approx(bound(small, alone), rel=1e-10)


@pytest.mark.parametrize(("task", "K"), CASES)
def test_pruning_never_lowers_the_bound(task, K):
    data = make_data(task, "feature", 0.05, N=40, sizes=(4, 12))
    rng = np.random.default_rng(0)
    V = None if K is None else rng.standard_normal((data.likelihood.n_outputs, K))
    loose = run_structured(data, V=V, max_iter=60, prune=False)
    data = make_data(task, "feature", 0.05, N=40, sizes=(4, 12))
    run = run_structured(data, V=V, max_iter=60, prune=True)
    assert run.elbo >= loose.elbo - 1e-8 * abs(loose.elbo)
    values = np.array([r["bound"] for r in run.history])
    assert (np.diff(values) >= -1e-8 * np.abs(values[1:])).all()
    assert run.elbo == pytest.approx(bound(run.data, run.state), rel=1e-10)
    active = np.array([sum(r["active_features"]) for r in run.history])
    assert (np.diff(active) <= 0).all()
    assert active[-1] < 16
    assert any("dropped" in r["event"] for r in run.history)


@pytest.mark.parametrize("shape", [0.05, 0.5, np.inf])
@pytest.mark.parametrize("likelihood", ["quadrature", "jaakkola"])
def test_history_falls_only_where_missing_views_are_declared(likelihood, shape):
    """With learned loadings too, whose factors depend on each other."""
    for seed in range(2):
        data = make_data(
            "multiclass", "feature", shape, likelihood, N=40, sizes=(4, 12), seed=seed, absent=True
        )
        V = np.random.default_rng(seed).standard_normal((3, 2))
        run = run_structured(data, V=V, max_iter=15)
        for before, after in pairwise(run.history):
            if after["event"] != "missing views":
                assert after["bound"] >= before["bound"] - 1e-8 * abs(before["bound"]), after


def test_rows_that_lack_an_emptied_view_lack_nothing():
    data = make_data("binary", "feature", np.inf, N=60, sizes=(3, 6), absent=True)
    x = data.views[0].columns([0])[:, 0]
    T = (2 * x + np.random.default_rng(0).logistic(size=60) > 0).astype(float)[:, None]
    data = type(data)(data.views, type(data.likelihood)(T, np.ones_like(T)), data.priors, data.X)
    run = run_structured(data, max_iter=60)
    assert not run.state.kept[1].any()
    assert not run.state.extra.any()


def test_nothing_left_to_drop_after_pruning():
    data = make_data("binary", "feature", 0.05, N=60, sizes=(4, 12))
    run = run_structured(data, max_iter=100)
    for m, kept in enumerate(run.state.kept):
        assert (feature_gains(data, run.state, m)[kept] > -0.5).all()
    assert run.state.kept[0][0]
    assert run.state.kept[1][0]


def noise_problem(shape, seed=0, rate=0.3, N=60):
    data = make_data("binary", "feature", shape, N=N, seed=seed)
    T = (np.arange(N) < rate * N).astype(float)[:, None]
    T = T[np.random.default_rng(seed).permutation(N)]
    likelihood = type(data.likelihood)(T, np.ones_like(T))
    return type(data)(data.views, likelihood, data.priors, data.X)


@pytest.mark.parametrize("shape", [0.05, np.inf])
def test_everything_dropped_predicts_the_base_rate(shape):
    data = noise_problem(shape)
    state = flat_state(data)
    run = iterate(data, state, max_iter=20, tol=1e-6)
    state.kept = [np.zeros(D, dtype=bool) for D in data.widths]
    start_factors(data, state)
    run = iterate(data, state, max_iter=50, tol=1e-10)
    fitted = from_run(run, shape)
    mean, var = fitted.moments(data.views)[0]
    np.testing.assert_allclose(mean, mean[0, 0])
    assert expit(mean[0, 0]) == pytest.approx(0.3, abs=0.01)
    assert (var < 0.2).all()
    assert not any(mask.any() for mask in fitted.selected)
    assert not any(w.any() for w in fitted.coef + fitted.coef_std)
    assert not view_factor_signal(data, state).any()
    # delta and gamma are back at their priors: the bound is that of the intercept alone
    assert run.elbo == pytest.approx(
        data.likelihood.evaluate(*state.latent(), None)[0].sum() - state.factors[0].kl, rel=1e-10
    )


@pytest.mark.parametrize("shape", [0.05, np.inf])
@pytest.mark.parametrize("side", ["sample", "feature"])
def test_a_view_of_noise_is_emptied(side, shape):
    """Signal in the first view alone: the second goes as a whole, the first stays."""
    emptied, stayed = 0, 0
    for seed in range(4):
        data = make_data("binary", side, shape, N=80, sizes=(3, 6), seed=seed)
        x = data.views[0].columns([0, 1])
        rng = np.random.default_rng(seed)
        T = (x.sum(axis=1) * 2 + rng.logistic(size=80) > 0).astype(float)[:, None]
        data = type(data)(
            data.views, type(data.likelihood)(T, np.ones_like(T)), data.priors, data.X
        )
        run = run_structured(data, max_iter=100)
        emptied += not run.state.kept[1].any()
        stayed += run.state.kept[0][:2].all()
    assert stayed == 4
    assert emptied >= 3


def test_drop_views_takes_the_best_first_and_stops():
    data = noise_problem(np.inf)
    run = iterate(data, flat_state(data), max_iter=30, tol=1e-6)
    before = run.elbo
    after, views = drop_views(data, run.state, before)
    assert after >= before
    assert after == pytest.approx(bound(data, run.state), rel=1e-10)
    assert sorted(views) == [m for m, kept in enumerate(run.state.kept) if not kept.any()]
    again, none = drop_views(data, run.state, after)
    assert none == []
    assert again == after


def test_no_features_are_dropped_under_a_flat_prior():
    data = make_data("binary", "feature", np.inf)
    run = iterate(data, flat_state(data), max_iter=5, tol=1e-6)
    assert drop_features(data, run.state, run.elbo) == (run.elbo, 0)


@pytest.mark.parametrize("side", ["sample", "feature"])
def test_view_parts_add_up_to_the_factor(side):
    data = make_data("multiclass", side, 0.5, N=15, sizes=(3, 12), absent=True)
    state = random_state(data)
    refresh_moments(data, state)
    for m, view in enumerate(data.views):
        np.testing.assert_allclose(
            view_part(data, state, m), view.apply(state.w[m].T), rtol=1e-8, atol=1e-10
        )
    signal = view_factor_signal(data, state)
    part = view_part(data, state, 1)[~data.views[1].absent]
    np.testing.assert_allclose(signal[1], (part**2).mean(axis=0), rtol=1e-10)
    intercepts = np.array([100.0 * f.alpha.sum() for f in state.factors])
    total = sum(view_part(data, state, m) for m in range(2)) + intercepts
    np.testing.assert_allclose(total, state.latent()[0], rtol=1e-7, atol=1e-9)


def test_removing_a_factor_leaves_a_consistent_state():
    data = make_data("multilabel", "feature", 0.5, "jaakkola", N=20)
    state = random_state(data, K=3)
    kept_V = state.V[:, [0, 2]]
    remove_factor(data, state, 1)
    start_factors(data, state)
    np.testing.assert_array_equal(state.V, kept_V)
    assert state.n_factors == len(state.factors) == 2
    assert state.V_cov.shape == (3, 2, 2)
    assert all(len(d.rate) == 2 for d in state.delta)
    assert all(g.shape == 0.5 + 1.0 for g in state.gamma)
    assert np.isfinite(bound(data, state))


def test_a_factor_without_use_is_dropped():
    """Two outputs that are one direction need one factor."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    f = 2 * X[:, 0]
    T = np.column_stack([f + rng.logistic(size=80) > 0, f + rng.logistic(size=80) > 0])
    base = make_data("multilabel", "feature", np.inf, "jaakkola", N=80)
    likelihood = type(base.likelihood)(T.astype(float), np.ones((80, 2)))
    data = type(base)([as_view(X)], likelihood, base.priors, X)
    V = np.array([[1.0, 0.3], [1.0, -0.3]])
    run = run_structured(data, V=V, max_iter=100)
    assert run.state.n_factors == 1
