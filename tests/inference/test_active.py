"""Sparse priors over wide views: following a few features ends where following all does."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from baldur.datasets import make_multiview
from baldur.inference import active as active_module
from baldur.inference import shapes as shapes_module
from baldur.inference.active import Active, run_active
from baldur.inference.fitted import from_run
from baldur.inference.rates import best_rates
from baldur.inference.run import Run, best_start, iterate, prune_by_evidence, run_structured
from baldur.inference.screening import best_everywhere
from baldur.inference.shapes import fit_shape, structured_data
from baldur.inference.starts import flat_state
from baldur.inference.sweep import start_factors, sweep
from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from baldur.model.structured.bound import bound, precisions_term, weights_term
from baldur.model.structured.updates import (
    feature_statistics,
    leaping_view_precisions,
    proposed_rest,
    proposed_view_precisions,
    update_scales,
)
from baldur.prepare import Preparation
from model.structured.problems import make_data, random_state


def recovery(case, seed, wide=2000, dtype="float64", n=200, **options):
    """Prepared views and likelihood of the recovery benchmark's cases a, b and c."""
    informative = {"a": {"narrow": 5}, "b": {"wide": 10}, "c": {"narrow": 3, "wide": 5}}[case]
    sim = make_multiview(
        n, {"narrow": 20, "wide": wide}, informative=informative, random_state=seed, **options
    )
    prepared = Preparation(dtype=dtype).fit_transform(sim.data)
    T = np.eye(3)[sim.target] if options.get("n_classes") else sim.target[:, None].astype(float)
    return list(prepared.values()), QuadratureLogistic(T, np.ones_like(T))


def both(views, likelihood, shape, followed_features=400, **options):
    """Coefficients, kept features and runs of following all and following some."""
    answers = []
    for plain in (True, False):
        rows = np.arange(views[0].shape[0])
        data = structured_data(views, likelihood.rows(rows), shape)
        if plain:
            run = run_structured(data, **options)
        else:
            run = run_active(Active.screen(data, followed_features), **options)
        answers.append((from_run(run, shape), run))
    return answers


def check_equal(answers, atol=1e-6, rtol=1e-5):
    (plain, _), (few, _) = answers
    for a, b in zip(plain.selected, few.selected, strict=True):
        np.testing.assert_array_equal(a, b)
    for name in ("coef", "coef_std"):
        for a, b in zip(getattr(plain, name), getattr(few, name), strict=True):
            np.testing.assert_allclose(a, b, atol=atol)
    np.testing.assert_allclose(plain.intercept, few.intercept, atol=atol)
    np.testing.assert_allclose(plain.signal, few.signal, rtol=rtol, atol=atol)
    assert plain.elbo == pytest.approx(few.elbo, rel=rtol)


# -- the same answer --------------------------------------------------------------------------

TIGHT = {"max_iter": 1000, "tol": 1e-9}


@pytest.mark.parametrize(
    ("case", "seed"), [("a", 0), pytest.param("b", 1, marks=pytest.mark.slow), ("c", 2)]
)
def test_following_some_ends_where_following_all_does(case, seed):
    answers = both(*recovery(case, seed), 0.5, **TIGHT)
    check_equal(answers)
    plain, few = (run.history[-1]["passes"] for _, run in answers)
    assert few - plain < 12 < plain


@pytest.mark.slow
@pytest.mark.parametrize("shape", [0.05, 0.2, 0.5, 2.0, 20.0])
def test_following_some_ends_where_following_all_does_at_other_shapes(shape):
    """Nearly always, and always from one start: its sweeps are where the two ways can part."""
    apart = []
    for case in "abc":
        for seed in range(3):
            views, likelihood = recovery(case, seed, wide=4000)
            (plain, _), (few, run) = both(views, likelihood, shape, **TIGHT)
            gap = max(np.abs(x - y).max() for x, y in zip(plain.coef, few.coef, strict=True))
            if gap > 1e-6:
                apart.append((case, seed))
                plain = following_all_from_the_start_of_some(views, likelihood, shape)
                check_equal([(plain, run), (few, run)])
    assert len(apart) <= 2, apart


def following_all_from_the_start_of_some(views, likelihood, shape):
    """Sweep over every feature, from the start chosen while some were followed."""
    data = structured_data(views, likelihood, shape)
    active = Active.screen(data, 400)
    state = best_start(active.data, active.starts(None), None)
    whole = active.as_whole(Run(active.data, state, bound(active.data, state)))
    run = iterate(data, whole.state, **TIGHT)
    return from_run(prune_by_evidence(run, watch=None, **TIGHT), shape)


def test_following_some_of_several_classes():
    check_equal(both(*recovery("c", 0, wide=600, n=100, n_classes=3), 0.5, **TIGHT))


@pytest.mark.parametrize("prune", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_following_some_where_rows_lack_a_view(prune):
    """The variance of what is missing is set once, where the sweeps have come to by then."""
    views, likelihood = recovery("c", 1, wide=500, n=100, missing_views={"narrow": 0.3})
    check_equal(both(views, likelihood, 0.5, 300, prune=prune, **TIGHT), 1e-3, 1e-2)


def test_following_some_for_real_outputs():
    views, _ = recovery("c", 2, wide=500)
    Y = views[1].columns([0, 1]).sum(axis=1, keepdims=True) + views[0].columns([0])
    Y = Y + np.random.default_rng(0).standard_normal(Y.shape)
    check_equal(both(views, GaussianOutputs(Y, np.ones_like(Y)), 2.0, 300, **TIGHT))


@pytest.mark.slow
def test_learned_loadings_at_width(monkeypatch):
    views, likelihood = recovery("c", 0, wide=600, n=100, n_classes=3)
    options = {"shape": 0.5, "n_factors": 2, "max_iter": 200, "tol": 1e-6, "prune": True}
    wide = []
    for limit in (10_000, 500):
        monkeypatch.setattr(shapes_module, "WIDE", limit)
        wide.append(fit_shape(views, likelihood, **options))
    for a, b in zip(wide[0].selected, wide[1].selected, strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(wide[0].coef, wide[1].coef, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-2)


def test_what_does_not_fit_is_pruned_over_the_whole(monkeypatch):
    views, likelihood = recovery("c", 0, wide=500)
    monkeypatch.setattr(active_module, "KEPT_BYTES", -1)
    answers = both(views, likelihood, 0.5, 300, **TIGHT)
    check_equal(answers)
    assert answers[1][1].data.whole is None


@pytest.mark.parametrize("case", [*(pytest.param(c, marks=pytest.mark.slow) for c in "ab"), "c"])
def test_float32_keeps_what_float64_keeps(case):
    kept = []
    for dtype in ("float64", "float32"):
        views, likelihood = recovery(case, 0, wide=2000, dtype=dtype)
        assert views[1].dtype == dtype
        found = fit_shape(
            views, likelihood, shape=0.5, n_factors=None, max_iter=200, tol=1e-5, prune=True
        )
        kept.append(np.concatenate(found.selected))
    np.testing.assert_array_equal(*kept)
    assert kept[0].any()


# -- history ----------------------------------------------------------------------------------


def test_history_rises_counts_passes_and_says_when_looks_ran_out(monkeypatch):
    views, likelihood = recovery("b", 0, wide=1500)
    run = run_active(Active.screen(structured_data(views, likelihood, 0.5), 300))
    for before, after in pairwise(run.history):
        assert after["bound"] >= before["bound"] - 1e-8 * abs(before["bound"]), after
        assert after["passes"] >= before["passes"]
        assert sum(after["active_features"]) <= sum(before["active_features"])
    assert run.converged
    assert not any("stopped" in r["event"] for r in run.history)
    monkeypatch.setattr(active_module, "LOOKS", 1)
    views, likelihood = recovery("b", 0, wide=1500)
    short = run_active(Active.screen(structured_data(views, likelihood, 0.5), 300), tol=1e-9)
    assert "stopped after 1 looks" in [r["event"] for r in short.history]


def test_fit_shape_follows_some_only_beyond_its_limit(monkeypatch):
    views, likelihood = recovery("a", 0, wide=400)
    asked = []
    screen = Active.screen
    monkeypatch.setattr(Active, "screen", lambda data: asked.append(1) or screen(data))
    options = {"n_factors": None, "max_iter": 20, "tol": 1e-3, "prune": True}
    fit_shape(views, likelihood, shape=0.5, **options)
    monkeypatch.setattr(shapes_module, "WIDE", 400)
    fit_shape(views, likelihood, shape=np.inf, **options)
    assert not asked
    fit_shape(views, likelihood, shape=0.5, **options)
    assert asked


def test_followed_has_the_best_of_all_and_of_each_view():
    scores = [np.array([0.1, 0.3, 0.2]), np.array([0.9, 0.8, 0.7, 0.0, 0.6])]
    index = best_everywhere(scores, 3, 1)
    assert [i.tolist() for i in index] == [[1], [0, 1, 2]]


# -- the parts --------------------------------------------------------------------------------


def small_active(task="multiclass", shape=0.5, seed=0):
    """A problem of which seven features are followed, and the state of some sweeps."""
    data = make_data(task, "sample", shape, N=20, sizes=(3, 25), seed=seed)
    active = Active.screen(data, 7, 2)
    active = replace(active, data=active_module.chosen_columns(data, [np.arange(3), np.arange(5)]))
    active.rates = [np.ones(3), np.random.default_rng(seed).uniform(0.5, 2.0, 25)]
    gammas = GammaPosterior(shape + 0.5 * data.likelihood.n_outputs, np.ones(1))
    rest = [active.rest_of(m, gammas.shape) for m in range(2)]
    state = flat_state(active.data, None, None, rest)
    start_factors(active.data, state)
    sweep(active.data, state, bound(active.data, state))
    return active, state


def test_the_rest_is_part_of_the_model():
    """A state with a rest and the same state spelled out have one bound and one delta."""
    active, state = small_active()
    run = active.as_whole(iterate(active.data, state, max_iter=1, tol=0.0))
    full = run.state
    start_factors(run.data, replace(full))
    fresh = replace(full, grams=[], gram_parts=[])
    start_factors(run.data, fresh)
    assert bound(run.data, fresh) == pytest.approx(bound(active.data, state), rel=1e-10)
    assert bound(run.data, full) == pytest.approx(bound(active.data, state), rel=1e-10)
    assert [full.n_in(m) for m in range(2)] == [state.n_in(m) for m in range(2)] == [3, 25]
    for a, b in zip(
        proposed_view_precisions(run.data, full),
        proposed_view_precisions(active.data, state),
        strict=True,
    ):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.rate, b.rate, rtol=1e-9)


def test_the_common_factor_of_the_rest_is_the_best_one():
    """q(W) held: expected log prior of the weights and the Gamma term, against a search."""
    active, state = small_active()
    shape, rest = state.gamma[1].shape, state.rest[1]
    a = active.whole.priors.gamma.shape
    G = rest.weighted_gram
    gamma_w2 = sum(
        rest.count + (f.alpha @ G @ f.alpha - np.vdot(f.Ci, G)) / d
        for f, d in zip(state.factors, state.delta[1].mean, strict=True)
    )
    K = state.n_factors

    def loss(log_c):
        other = replace(rest, scale=float(np.exp(log_c)))
        log_gamma = -rest.count * log_c  # <ln gamma> up to a constant
        fit = 0.5 * K * log_gamma - 0.5 * gamma_w2 * rest.scale / other.scale
        return -(fit + other.gamma_term(active.whole.priors.gamma, shape))

    found = minimize_scalar(loss, bracket=(-1, 1), tol=1e-12)
    assert proposed_rest(active.data, state)[1].scale == pytest.approx(np.exp(found.x), rel=1e-5)
    assert a == 0.5


def site_bound(data, state):
    h, j = state.sites
    mean = np.stack([f.mean for f in state.factors], axis=1)
    var = np.stack([f.var for f in state.factors], axis=1)
    value = float((j * mean - 0.5 * h * (mean**2 + var)).sum())
    return value + weights_term(data, state) + precisions_term(data, state)


@pytest.mark.parametrize("shape", [0.05, 0.5, 4.0])
def test_best_rate_of_a_feature_is_a_maximum_of_the_bound(shape):
    """Sites held, one gamma moved at a time, q(W) recomputed."""
    data = make_data("multiclass", "sample", shape, N=15, sizes=(3, 12))
    state = random_state(data)
    before = site_bound(data, state)
    gamma = state.gamma[1]
    projected, S = feature_statistics(data, state, 1)
    best = best_rates(projected, S, gamma.rate, state.delta[1].mean, gamma.shape, shape)
    parts = state.snapshot()
    for d in range(12):
        values = []
        for factor in (1.0, 1.01, 0.99):
            rate = gamma.rate.copy()
            rate[d] = best.rate[d] * factor
            state.gamma = [state.gamma[0], GammaPosterior(gamma.shape, rate)]
            start_factors(data, state)
            values.append(site_bound(data, state))
            state.restore(parts)
        assert values[0] - before == pytest.approx(best.rise[d], rel=1e-6, abs=1e-8)
        assert values[0] >= max(values[1:]) - 1e-12


@pytest.mark.parametrize("side", ["sample", "feature"])
def test_leaps_of_delta_end_where_its_updates_end(side):
    data = make_data("binary", side, 0.5, N=60, sizes=(3, 12))
    run = iterate(data, flat_state(data), max_iter=2000, tol=1e-15)
    slow = proposed_view_precisions(data, run.state)
    leaps = leaping_view_precisions(data, run.state)
    for a, b, now in zip(slow, leaps, run.state.delta, strict=True):
        np.testing.assert_allclose(a.mean, now.mean, rtol=1e-4)
        np.testing.assert_allclose(b.mean, now.mean, rtol=1e-3)
        assert a.shape == b.shape == now.shape


@pytest.mark.parametrize("with_rest", [True, False])
def test_shifting_scale_raises_the_bound_and_leaves_the_weights(with_rest):
    if with_rest:
        active, state = small_active()
        data = active.data
    else:
        data = make_data("multiclass", "sample", 0.5, N=15, sizes=(3, 12))
        state = random_state(data)
    before = bound(data, state)
    prior = [state.prior_variance(m, 0) for m in range(2)]
    update_scales(data, state)
    after = bound(data, state)
    if with_rest:  # a sweep has just shifted it
        assert after == pytest.approx(before, rel=1e-12)
    else:
        assert after > before
    for m in range(2):
        np.testing.assert_allclose(state.prior_variance(m, 0), prior[m], rtol=1e-12)
    fresh = replace(state, grams=[], gram_parts=[])
    start_factors(data, fresh)
    assert bound(data, fresh) == pytest.approx(after, rel=1e-9)
    update_scales(data, state)
    assert bound(data, state) == pytest.approx(after, rel=1e-10)  # it was the best
