"""The bound rises after every single step, in every setting, and is the one reported."""

from dataclasses import replace

import numpy as np
import pytest

from baldur.inference.double_ard import ArdFit, fit_double_ard
from baldur.inference.members import fit_by_view
from baldur.model.likelihood import QuadratureLogistic
from baldur.model.loadings import starting_loadings
from model.problems import make_small, random_fit, start_fit

# name: (task, learned factors or None for V = I)
MODELS = {
    "binary": ("binary", None),
    "multi-class, V = I": ("multiclass", None),
    "multi-class, K < C": ("multiclass", 2),
    "multi-label, V = I": ("multilabel", None),
    "multi-label, K < C": ("multilabel", 1),
    "regression": ("regression", None),
    "regression, K < C": ("regression", 1),
}

CASES = [
    (name, likelihood)
    for name, (task, _) in MODELS.items()
    for likelihood in (["quadrature"] if task == "regression" else ["quadrature", "jaakkola"])
]


def start(problem, shape, K=None, kind="flat", side=None):
    if kind == "random":
        # A point estimate has no entropy, so quadrature, which keeps V a point, starts at one.
        point = isinstance(problem.likelihood, QuadratureLogistic)
        return random_fit(problem, shape, K=K, side=side, seed=5, spread=not point)
    rng = np.random.default_rng(0)
    V = None if K is None else rng.standard_normal((problem.likelihood.n_outputs, K))
    fit = start_fit(problem, shape, V=V, side=side)
    fit.q.extra = 0.5 * fit.q.absent.any(axis=1)[:, None] * np.ones(fit.prior.n_factors)
    return fit


def rising_trace(fit, n_sweeps):
    """Sweep, checking each step; return the names of the steps that gained something."""
    value = fit.bound()
    gained = set()

    def trace(name, after):
        nonlocal value
        assert np.isfinite(after), name
        assert after >= value - 1e-8 * abs(value), (name, after - value)
        assert fit.bound() == pytest.approx(after, rel=1e-8), name
        if after > value + 1e-6:
            gained.add(name)
        value = after

    for _ in range(n_sweeps):
        assert fit.sweep(trace) == value
    return gained


@pytest.mark.parametrize(("kind", "shape"), [("flat", 0.5), ("random", 0.5), ("random", 1e-6)])
@pytest.mark.parametrize("side", ["sample", None])
@pytest.mark.parametrize(("model", "likelihood"), CASES)
def test_every_step_raises_the_bound(model, likelihood, side, shape, kind):
    task, K = MODELS[model]
    problem = make_small(task, likelihood, N=20, sizes=(3, 12), absent=True, weighted=True)
    gained = rising_trace(start(problem, shape, K, kind, side), 3)
    assert gained == {"step_sites", "step_delta", "step_gamma"}


@pytest.mark.parametrize("sizes", [(3, 5), (4, 60)], ids=["narrow", "wide"])
@pytest.mark.parametrize("shape", [1e-6, 0.5])
@pytest.mark.parametrize("likelihood", ["quadrature", "jaakkola"])
def test_separable_data_do_not_break_the_bound(likelihood, shape, sizes):
    """Weights want to grow without end; the prior holds them, and every step still gains."""
    problem = make_small("binary", likelihood, N=40, sizes=sizes, separable=True)
    for kind in ("flat", "random"):
        fit = start(problem, shape, kind=kind)
        rising_trace(fit, 15)
        mean, var = fit.q.moments()
        assert np.isfinite(mean).all()
        assert np.isfinite(var).all()
        assert ((mean > 0) == (problem.likelihood.T > 0.5)).mean() > 0.8


@pytest.mark.parametrize("task", ["multilabel", "multiclass", "regression"])
@pytest.mark.parametrize("N", [60, 300])
def test_good_loadings_are_still_learned(task, N):
    """From a start so good that only the spread of V is left to find, V has its posterior."""
    problem = make_small(task, "jaakkola", N=N)
    plain = start_fit(problem, 5.0)
    rough = fit_by_view(plain.q.features, plain.q.absent, problem.likelihood, max_iter=10)
    V = starting_loadings(rough.points[0].moments()[0], problem.likelihood.n_outputs - 1)
    fit = start_fit(problem, 5.0, V=V)
    fit.iterate(30, 1e-8)
    at = fit.q.noise.loadings
    assert np.abs(at.V - V).max() > 1e-3
    here = (*fit.q.moments(), fit.q.noise)
    best = fit.q.likelihood.factors(*here, fit.q.likelihood.behind(*here)[1])(1.0)
    np.testing.assert_allclose(at.V_cov, best.V_cov, rtol=0.1)
    np.testing.assert_allclose(at.V, best.V, atol=0.05)


def test_a_refused_move_leaves_everything_as_it_was():
    fit = start(make_small("binary"), 0.5)
    before, prior, q = fit.bound(), fit.prior, fit.q
    worse = replace(prior, delta=[replace(d, rate=d.rate * 1e9) for d in prior.delta])
    assert fit.move(lambda length: worse) == before
    assert fit.prior is prior
    assert fit.q is q
    assert fit.bound() == before


def test_two_runs_give_the_same_bits():
    results = []
    for _ in range(2):
        fit = start(make_small("multiclass", sizes=(4, 60)), 0.5)
        fit.iterate(8, 0.0)
        results.append((fit.bound(), fit.q.sides[0].alpha.tobytes()))
    assert results[0] == results[1]


def test_both_sides_reach_the_same_posterior():
    fits = []
    for side in ("sample", None):
        fit = start(make_small("multiclass", sizes=(4, 20), absent=True), 0.5, side=side)
        fit.iterate(20, 0.0)
        fits.append(fit)
    one, two = fits
    assert one.bound() == pytest.approx(two.bound(), rel=1e-8)
    np.testing.assert_allclose(one.q.moments()[0], two.q.moments()[0], atol=1e-6)


@pytest.mark.parametrize("side", ["sample", None])
def test_steps_of_delta_end_where_its_update_is_at_rest(side):
    """There the rate is b_0 + sum_d <gamma_d><w_d^2>/2, as the paper's table has it."""
    fit = start_fit(make_small("binary", N=60, sizes=(3, 12)), 0.5, side=side)
    fit.iterate(2000, 1e-15)
    power, used = fit.entries.statistics(fit.q, fit.prior)
    for m, delta in enumerate(fit.prior.delta):
        own = fit.prior.owner == m
        second = (power + 1.0 - used)[:, own].sum(axis=1) / delta.mean
        assert delta.shape == 0.5 + 0.5 * own.sum()
        np.testing.assert_allclose(delta.rate, 0.5 / own.sum() + 0.5 * second, rtol=1e-4)


def test_a_large_shape_is_one_precision_per_view():
    """Gamma(a, a) with a large is 1: gamma stays there, and its own terms vanish."""
    fit = start_fit(make_small("binary", N=40), 1e9)
    fit.iterate(50, 1e-8)
    np.testing.assert_allclose(fit.prior.gamma.mean, 1.0, rtol=1e-6)
    alone = replace(
        fit.prior, gamma=replace(fit.prior.gamma, rate=np.full(8, fit.prior.gamma.shape))
    )
    assert alone.bound() == pytest.approx(fit.prior.bound(), abs=1e-4)


@pytest.mark.parametrize("prune", [True, False])
def test_history_is_the_record_of_the_bound(prune):
    seen = []
    problem = make_small("multiclass", N=40, sizes=(4, 12))
    fit = fit_double_ard(start_fit(problem, 0.1, watch=seen.append), prune=prune)
    assert isinstance(fit, ArdFit)
    assert fit.converged
    assert seen == fit.history
    assert fit.history[-1]["bound"] == pytest.approx(fit.bound(), rel=1e-12)
    assert fit.history[-1]["active_features"] == fit.prior.n_in.tolist()
    assert {"event", "bound", "active_features", "n_factors", "passes", "seconds"} == set(seen[0])
    assert prune == any("dropped" in record["event"] for record in seen)
