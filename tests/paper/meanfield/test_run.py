"""Whole runs: pruning, prediction, invariances, weights, and what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from baldur.exceptions import InputError
from baldur.paper.bound import bound
from baldur.paper.pruning import feature_gains, view_price, without_features
from baldur.paper.run import prepare_data, run_meanfield
from baldur.paper.starts import initial_state, make_start
from baldur.paper.state import GammaPosterior, group_norms
from baldur.paper.updates import step_w
from paper.literal_dual import use_literal_dual
from paper.meanfield.problems import as_problem, make_problem, predict, prepared, random_state

FAST = {"starts": ("flat", "screen-5"), "max_iter": 40, "rng": 0}


def simulate(N=150, sizes=(6, 200), seed=0, task="classification", n_test=400, signal=2.0):
    """Two informative features in the narrow view, one in the wide."""
    rng = np.random.default_rng(seed)
    X = [rng.standard_normal((N + n_test, d)) for d in sizes]
    eta = signal * (X[0][:, 0] - X[0][:, 1] + X[1][:, 0])
    if task == "classification":
        T = (rng.uniform(size=eta.size) < 1 / (1 + np.exp(-eta))).astype(float)
    else:
        T = eta + rng.standard_normal(eta.size)
    train = [x[:N] for x in X]
    mean, std = [x.mean(0) for x in train], [x.std(0) for x in train]
    scaled = [(x - m) / s for x, m, s in zip(X, mean, std, strict=True)]
    return [x[:N] for x in scaled], T[:N, None], [x[N:] for x in scaled], T[N:, None]


@pytest.fixture(scope="module")
def fitted():
    X, T, X_test, T_test = simulate()
    return (
        run_meanfield(as_problem(X, T), n_factors=1, **FAST),
        X,
        T,
        X_test,
        T_test,
    )


def test_the_gain_of_a_drop_is_the_change_of_the_bound():
    data = make_problem(N=10, sizes=(4, 18), C=2, a_gamma=0.05)
    state = random_state(data, 2, seed=4)
    for m in (0, 1):
        state = step_w(state, data, m)
        gains, _ = feature_gains(state, data, m)
        before = bound(state, data)
        for d in (0, 3):
            after = bound(without_features(state, data, m, np.array([d])), data)
            assert after - before == pytest.approx(gains[d], abs=1e-7)


def test_signal_is_found_and_history_tells_how(fitted):
    result, _, _, X_test, T_test = fitted
    mean, var = predict(result, prepared(X_test))
    assert np.mean((mean > 0) == T_test) > 0.8
    assert (var > 0).all()
    assert result.features[0][:2].all()
    assert result.features[1][0]
    assert sum(mask.sum() for mask in result.features) < 20
    assert result.spaces == ["primal", "primal"]
    bounds = [record["bound"] for record in result.history]
    assert np.min(np.diff(bounds)) > -1e-8 * abs(bounds[-1])
    assert result.elbo == pytest.approx(bounds[-1])
    last = result.history[-1]
    assert last["features"] == [int(mask.sum()) for mask in result.features]
    for W, std, mask in zip(result.W, result.W_std, result.features, strict=True):
        assert (W[:, ~mask] == 0).all()
        assert (std[:, ~mask] == 0).all()
        assert (std[:, mask] > 0).all()


def test_without_signal_everything_falls_and_the_base_rate_is_predicted():
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((100, 5)), rng.standard_normal((100, 150))]
    T = (rng.uniform(size=(100, 1)) < 0.3).astype(float)
    result = run_meanfield(as_problem(X, T), n_factors=1, **FAST)
    assert not result.views.any()
    mean, var = predict(result, prepared(X))
    probability = 1 / (1 + np.exp(-mean / np.sqrt(1 + np.pi / 8 * var)))
    assert np.ptp(probability) == 0
    assert probability[0, 0] == pytest.approx(T.mean(), abs=0.03)


@pytest.mark.parametrize("space", ["primal", "dual"])
def test_predictive_variance_equals_sampling_the_posterior(space):
    X, T, X_test, _ = simulate(N=20, sizes=(5, 40), seed=3)
    T = np.hstack([T, 1 - T[::-1]])
    result = run_meanfield(
        as_problem(X, T),
        n_factors=2,
        prune=False,
        spaces=space,
        starts=("flat",),
        max_iter=3,
        rng=0,
    )
    rows = [x[:3] for x in X_test]
    mean, var = predict(result, prepared(rows))
    rng, n = np.random.default_rng(0), 100_000
    Z = np.sqrt(1 / result.tau) * rng.standard_normal((n, 3, 2))
    for m, x in enumerate(rows):
        for k in range(2):
            cov = result.spread[m].covariance(k)
            np.testing.assert_allclose(np.sqrt(np.diag(cov)), result.W_std[m][k], rtol=1e-6)
            h_cov = x @ cov @ x.T
            Z[:, :, k] += rng.multivariate_normal(x @ result.W[m][k], h_cov, size=n)
    _, z_var = result.latent_moments(prepared(rows))
    np.testing.assert_allclose(Z.var(axis=0), z_var + 1 / result.tau, rtol=0.03)
    for c in range(2):
        V = rng.multivariate_normal(result.V[c], result.V_cov, size=n)
        y = np.einsum("snk,sk->sn", Z, V) + result.b[c]
        y += np.sqrt(1 / result.psi + result.b_var) * rng.standard_normal((n, 3))
        np.testing.assert_allclose(y.var(axis=0), var[:, c], rtol=0.03)
        np.testing.assert_allclose(y.mean(axis=0), mean[:, c], atol=0.03 * np.sqrt(var.max()))


def test_a_weight_of_two_is_a_row_twice():
    X, T, X_test, _ = simulate(N=40, sizes=(4, 60))
    weight = np.ones(40)
    weight[[3, 7, 20]] = 2
    twice = np.r_[np.arange(40), 3, 7, 20]
    options = {"n_factors": 1, **FAST, "max_iter": 20}
    weighted = run_meanfield(as_problem(X, T, weight=weight), **options)
    repeated = run_meanfield(as_problem([x[twice] for x in X], T[twice]), **options)
    assert weighted.elbo == pytest.approx(repeated.elbo, rel=1e-9)
    np.testing.assert_allclose(
        predict(weighted, prepared(X_test))[0],
        predict(repeated, prepared(X_test))[0],
        atol=1e-5,
    )


def test_permutations_permute_and_runs_repeat_to_the_bit():
    X, T, *_ = simulate(N=50, sizes=(6, 70))
    options = {"n_factors": 1, **FAST, "max_iter": 16}
    result, again = (run_meanfield(as_problem(X, T), **options) for _ in range(2))
    rng = np.random.default_rng(5)
    for one, two in zip(result.W, again.W, strict=True):
        assert (one == two).all()
    rows, columns = rng.permutation(len(T)), [rng.permutation(x.shape[1]) for x in X]
    moved = [x[np.ix_(rows, c)] for x, c in zip(X, columns, strict=True)][::-1]
    other = run_meanfield(as_problem(moved, T[rows]), **options)
    assert other.elbo == pytest.approx(result.elbo, rel=1e-9)
    for m in (0, 1):
        np.testing.assert_allclose(other.W[1 - m], result.W[m][:, columns[m]], atol=1e-6)


@pytest.mark.parametrize("options", [{"a_gamma": np.inf}, {"bound_kind": "quadrature"}])
def test_other_priors_and_bounds_learn_too(options):
    X, T, X_test, T_test = simulate(N=300, sizes=(3, 6))
    options = {"starts": ("flat",), "max_iter": 20, **options}
    result = run_meanfield(as_problem(X, T), n_factors=1, rng=0, **options)
    mean, _ = predict(result, prepared(X_test))
    assert np.mean((mean > 0) == T_test) > 0.8
    if options.get("a_gamma") == np.inf:
        assert (result.gamma[1] == 1).all()


def test_regression_with_a_spare_factor():
    X, T, X_test, T_test = simulate(N=60, sizes=(6, 30), task="regression")
    rng = np.random.default_rng(0)
    T, T_test = (np.hstack([t, 50 - 3 * t]) + rng.standard_normal((len(t), 2)) for t in (T, T_test))
    result = run_meanfield(
        as_problem(X, T, "regression"), n_factors=2, max_iter=120, starts=("flat",), rng=0
    )
    assert result.V.shape == (2, 1)
    drop = next(i for i, r in enumerate(result.history) if "factors" in r["dropped"])
    gain = result.history[drop]["bound"] - result.history[drop - 1]["bound"]
    assert 0 <= gain < 3  # an unused factor is worth nothing, however many features there are
    mean, _ = predict(result, prepared(X_test))
    error = T_test - mean
    assert (1 - error.var(axis=0) / T_test.var(axis=0) > 0.8).all()


def test_intervals_cover_when_nothing_is_selected():
    """With a = inf; pure ARD keeps noise features and its intervals are then too narrow."""
    X, T, X_test, T_test = simulate(N=600, sizes=(6, 20), task="regression", n_test=2000)
    options = {"starts": ("flat",), "max_iter": 30, "rng": 0}
    result = run_meanfield(as_problem(X, T, "regression"), n_factors=1, a_gamma=np.inf, **options)
    mean, var = predict(result, prepared(X_test))
    assert np.mean(np.abs(T_test - mean) < 1.96 * np.sqrt(var)) == pytest.approx(0.95, abs=0.02)


def test_the_literal_dual_has_no_maximum(monkeypatch):
    X, T, _, _ = simulate(N=20, sizes=(60,) * 2)
    for space, valid in (("primal", True), ("dual", True), ("dual", False)):
        if not valid:
            use_literal_dual(monkeypatch)
        data = prepare_data(as_problem(X, T), spaces=space, relevance=np.arange(0, 20, 2))
        state = random_state(data)
        values = []
        for factor in (1e4, 1e5, 1e6):  # towards zero weights
            view = state.views[0]
            delta = GammaPosterior(view.delta.shape, view.delta.rate / factor)
            far = state.with_view(0, replace(view, delta=delta))
            values.append(bound(step_w(far, data, 0), data))
        # (D - rank)/2 nats per unit of ln delta with 60 features and 10 independent rows.
        gain = np.diff(values) / np.log(10)
        assert (gain < 1).all() if valid else (gain > 15).all()


def test_the_dual_with_all_rows_is_the_primal_run():
    X, T, X_test, _ = simulate(N=50, sizes=(6, 150))
    options = {"n_factors": 1, **FAST}
    primal = run_meanfield(as_problem(X, T), **options)
    dual = run_meanfield(as_problem(X, T), spaces="dual", relevance=None, **options)
    assert dual.elbo == pytest.approx(primal.elbo, rel=1e-10)
    np.testing.assert_allclose(
        predict(dual, prepared(X_test))[0],
        predict(primal, prepared(X_test))[0],
        atol=1e-6,
    )
    few = run_meanfield(as_problem(X, T), spaces="dual", relevance=10, **options)
    limits = [6, 10]
    for rows, mask, limit in zip(few.relevance, few.features, limits, strict=True):
        assert len(rows) == (limit if mask.any() else 0)
    assert [len(rows) for rows in primal.relevance] == [0, 0]
    assert few.elbo <= primal.elbo + 1e-6 or few.start != primal.start


def test_a_start_selects_few_features_only_under_the_sparse_prior():
    X, T, *_ = simulate(N=60, sizes=(4, 400))
    data = prepare_data(as_problem(X, T))
    assert sum(mask.sum() for mask in make_start(data, "screen-20")[2]) == 20
    assert [mask.all() for mask in make_start(data, "flat")[2]] == [True, False]
    dense = prepare_data(as_problem(X, T), a_gamma=0.5)
    assert all(mask.all() for mask in make_start(dense, "screen-20")[2])


def test_features_outside_a_start_are_counted_in_the_bound():
    """A start without some features is the start with all of them, after these were dropped."""
    X, T, *_ = simulate(N=60, sizes=(4, 100))
    data = prepare_data(as_problem(X, T))
    start, V = make_start(data, "screen-104"), np.ones((1, 1))
    all_gamma, delta, _ = start
    few = [np.arange(g.size) % 3 == 0 for g in all_gamma]
    gamma = [g[mask] for g, mask in zip(all_gamma, few, strict=True)]
    state = initial_state(data, start, V)
    other = initial_state(data, (gamma, delta, few), V)
    for m, mask in enumerate(few):
        state = without_features(state, data, m, np.flatnonzero(~mask))
    for m in (0, 1, 0, 1, 0, 1, 0, 1):
        other, state = step_w(other, data, m), step_w(state, data, m)
    assert bound(other, data) == pytest.approx(bound(state, data), rel=1e-6)


def test_a_view_stays_only_if_it_adds_more_than_the_best_noise_feature_would():
    rng = np.random.default_rng(1)
    X = [rng.standard_normal((100, 5)), rng.standard_normal((100, 150))]
    T = (rng.uniform(size=(100, 1)) < 0.3).astype(float)
    data = prepare_data(as_problem(X, T))
    assert view_price(data, 1) == pytest.approx(np.log(150))
    assert view_price(prepare_data(as_problem(X, T), a_gamma=0.5), 1) == 0
    history = run_meanfield(as_problem(X, T), n_factors=1, **FAST).history
    falls = [i for i, record in enumerate(history) if "views" in record["dropped"]]
    assert falls
    for i in falls:
        price = sum(view_price(data, m) for m in history[i]["dropped"]["views"])
        assert history[i]["bound"] > history[i - 1]["bound"] - price


def test_equal_norms_are_one_group():
    norms = np.array([10.0, 10.0 * (1 + 1e-14), 0.0, 3.0, 10.0])
    values, member = group_norms(norms)
    assert values.size == 3
    np.testing.assert_allclose(values[member], norms, rtol=1e-10)
    data = replace(make_problem(), groups=[(values, member)])
    count = data.count_dropped(0, np.array([False, True, False, True, False]))
    assert count[member].tolist() == [2, 2, 1, 0, 2]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"spaces": ["dual"]}, "space lists 1 entries for 2 views"),
        ({"relevance": [3]}, "relevance_vectors lists 1 entries for 2 views"),
        ({"relevance": 31}, "relevance vectors must lie"),
        ({"relevance": np.array([0, 40])}, "relevance rows"),
        ({"relevance": "some"}, "relevance must be"),
    ],
)
def test_refusals_say_what_was_expected(change, message):
    X, T, _, _ = simulate(N=30, sizes=(4, 10))
    with pytest.raises(InputError, match=message):
        run_meanfield(as_problem(X, T), n_factors=1, **change)
