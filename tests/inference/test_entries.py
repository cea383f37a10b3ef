"""Wide views under a sparse prior: candidates one by one, and the rest of each view together."""

from dataclasses import replace

import numpy as np
import pytest

from baldur.datasets import make_multiview
from baldur.inference import screening
from baldur.inference.double_ard import fit_double_ard
from baldur.inference.entries import Entries
from baldur.inference.fixed_shape import fit_shape
from baldur.inference.screening import Problem, best_everywhere
from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from baldur.model.posterior import INTERCEPT_VAR
from baldur.preparation import Preparation
from baldur.views.reads import passes
from model.problems import make_small, start_fit

OPTIONS = {"n_factors": None, "max_iter": 200, "tol": 1e-5, "prune": True}


@pytest.fixture
def few_candidates(monkeypatch):
    """Five candidates of all views, and three of each."""
    monkeypatch.setattr(screening, "CANDIDATES", 5)
    monkeypatch.setattr(screening, "PER_VIEW", 3)


def recovery(case, seed, wide=2000, dtype="float64", n=200, **options):
    """The recovery benchmark's cases a, b and c."""
    informative = {"a": {"narrow": 5}, "b": {"wide": 10}, "c": {"narrow": 3, "wide": 5}}[case]
    sim = make_multiview(
        n, {"narrow": 20, "wide": wide}, informative=informative, random_state=seed, **options
    )
    views = list(Preparation(dtype=dtype).fit_transform(sim.data).values())
    T = np.eye(3)[sim.target] if options.get("n_classes") else sim.target[:, None].astype(float)
    return Problem(views, QuadratureLogistic(T, np.ones_like(T)), "binary")


def with_rest(task="multiclass"):
    """A fit after a sweep whose second view has a rest, and the same spelled out.

    There every feature of the rest is an entry of its own, with the precision they share.
    """
    problem = make_small(task, N=20, sizes=(3, 25), absent=True)
    fit = start_fit(problem)
    fit.sweep()
    fit.q.refresh_extra()
    assert [len(rest) for rest in fit.entries.rests] == [28 - len(fit.entries.place)]
    apart = start_fit_of_all(problem)
    rate = fit.entries.spread(fit.prior.gamma.rate[None])[0]
    prior = replace(
        apart.prior, gamma=GammaPosterior(fit.prior.gamma.shape, rate), delta=fit.prior.delta
    )
    apart.q.sites, apart.q.noise, apart.q.extra = fit.q.sites, fit.q.noise, fit.q.extra
    return fit, apart.under(prior)


def start_fit_of_all(problem):
    limit = screening.CANDIDATES
    screening.CANDIDATES = 10_000
    try:
        return start_fit(problem)
    finally:
        screening.CANDIDATES = limit


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("task", ["multiclass", "regression"])
def test_the_rest_is_part_of_the_model(task):
    """Features that share a precision, and the same features spelled out, are one posterior."""
    fit, apart = with_rest(task)
    assert fit.bound() == pytest.approx(apart.bound(), rel=1e-10)
    np.testing.assert_allclose(fit.q.moments(), apart.q.moments(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fit.q.signal(), apart.q.signal(), rtol=1e-7)
    np.testing.assert_allclose(fit.q.lacking(), apart.q.lacking(), rtol=1e-7)
    assert fit.prior.n_in.tolist() == apart.prior.n_in.tolist() == [3, 25]
    strengths = [f.q.features.strengths(f.q.sides, f.q.s) for f in (fit, apart)]
    np.testing.assert_allclose(*strengths, rtol=1e-7, atol=1e-10)
    each = apart.entries.statistics(apart.q, apart.prior)
    place = np.concatenate([[0, 3][m] + i for m, i in enumerate(fit.entries.index)])
    together = fit.entries.statistics(fit.q, fit.prior)
    for one, sums in zip(each, together, strict=True):
        np.testing.assert_allclose(sums[:, :-1], one[:, place], rtol=1e-6, atol=1e-10)
        np.testing.assert_allclose(
            sums[:, -1], np.delete(one, place, axis=1).sum(axis=1), rtol=1e-6, atol=1e-10
        )


@pytest.mark.usefixtures("few_candidates")
def test_every_step_raises_the_bound_with_a_rest():
    fit, _ = with_rest()
    value = fit.bound()

    def trace(name, after):
        nonlocal value
        assert after >= value - 1e-8 * abs(value), name
        value = after

    for _ in range(5):
        fit.sweep(trace)


@pytest.mark.usefixtures("few_candidates")
def test_what_is_in_is_known_by_its_place():
    fit, _ = with_rest()
    entries = fit.entries
    assert all(mask.all() for mask in entries.selected())
    counted = entries.spread(np.arange(1.0, 1 + len(entries.owner))[None])[0]
    np.testing.assert_array_equal(
        np.sort(counted[counted <= len(entries.place)]), 1 + np.arange(len(entries.place))
    )
    assert (counted > 0).all()
    keep = np.ones(len(entries.owner), dtype=bool)
    keep[[0, -1]] = False
    small = entries.only(keep)
    assert not small.rests
    assert sum(mask.sum() for mask in small.selected()) == len(entries.place) - 1
    assert not small.selected()[0][entries.place[0]]
    for m, (index, mask) in enumerate(zip(small.index, small.selected(), strict=True)):
        np.testing.assert_array_equal(index, np.flatnonzero(mask))
        np.testing.assert_array_equal(
            small.X[:, small.column_owner == m], fit.views[m].columns(index)
        )


@pytest.mark.usefixtures("few_candidates")
@pytest.mark.parametrize("n_factors", [None, 2])
def test_without_pruning_the_rest_predicts_too(n_factors):
    """Read block by block, weights and predictions of all features say the same thing."""
    problem = make_small("multiclass", N=20, sizes=(3, 25), absent=True)
    fitted = fit_shape(problem, shape=0.5, n_factors=n_factors, max_iter=20, tol=1e-4, prune=False)
    assert all(mask.all() for mask in fitted.selected)
    component = fitted.moments.__self__.components[0]
    assert type(component.features).__name__ == "Streamed"
    (mean, var) = fitted.moments(problem.views)[0]
    eta = sum(v.apply(w.T) for v, w in zip(problem.views, fitted.coef, strict=True))
    np.testing.assert_allclose(mean, eta + fitted.intercept, atol=1e-6)
    assert (var > 0).all()
    assert all((std > 0).all() for std in fitted.coef_std)


def test_the_views_are_read_three_times():
    problem = recovery("b", 0, wide=3000)
    before = passes(problem.views)
    entries = Entries.screen(problem, INTERCEPT_VAR)
    assert passes(problem.views) - before < 3.01
    assert len(entries.index[0]) == 20
    assert 1000 <= len(entries.place) <= 1020
    fit = start_fit(problem)
    before = passes(problem.views)
    fit_double_ard(fit)
    assert passes(problem.views) == before
    for record, after in zip(fit.history, fit.history[1:], strict=False):
        assert after["bound"] >= record["bound"] - 1e-8 * abs(record["bound"]), after
        assert sum(after["active_features"]) <= sum(record["active_features"])
    assert fit.converged
    assert not fit.entries.rests


def test_narrow_views_are_looked_at_whole():
    problem = recovery("a", 0, wide=900)
    entries = Entries.screen(problem, INTERCEPT_VAR)
    assert [len(i) for i in entries.index] == [20, 900]
    assert not entries.rests


def test_candidates_are_the_best_of_all_and_of_each_view():
    scores = [np.array([0.1, 0.3, 0.2]), np.array([0.9, 0.8, 0.7, 0.0, 0.6])]
    index = best_everywhere(scores, 3, 1)
    assert [i.tolist() for i in index] == [[1], [0, 1, 2]]


def test_true_features_are_found_at_width():
    """All five of case a among 6,020 features, for binary labels and for real outputs."""
    problem = recovery("a", 0, wide=6000)
    fitted = fit_shape(problem, shape=0.5, **OPTIONS)
    assert 5 <= sum(mask.sum() for mask in fitted.selected) <= 9
    Y = problem.views[1].columns([0, 1]).sum(axis=1, keepdims=True) + problem.views[0].columns([0])
    Y = Y + np.random.default_rng(0).standard_normal(Y.shape)
    problem = replace(problem, likelihood=GaussianOutputs(Y, np.ones_like(Y)))
    fitted = fit_shape(problem, shape=2.0, **OPTIONS)
    assert fitted.selected[0][0]
    assert fitted.selected[1][:2].all()


@pytest.mark.parametrize("case", [*(pytest.param(c, marks=pytest.mark.slow) for c in "ab"), "c"])
def test_float32_keeps_what_float64_keeps(case):
    kept = []
    for dtype in ("float64", "float32"):
        problem = recovery(case, 0, wide=2000, dtype=dtype)
        assert problem.views[1].dtype == dtype
        kept.append(np.concatenate(fit_shape(problem, shape=0.5, **OPTIONS).selected))
    np.testing.assert_array_equal(*kept)
    assert kept[0].any()
