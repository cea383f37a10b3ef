"""Learned factors on selected features: the bound rises, and what has no use is left out."""

from dataclasses import replace

import numpy as np
import pytest

from baldur.inference.dense_members import learn_variances
from baldur.inference.factors import (
    fit_factors_on_selected,
    weakest_factor,
    without_factor,
    without_idle,
)
from baldur.inference.fit import fit_default
from baldur.inference.screening import Problem
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.loadings import FactorLikelihood
from inference.problems import make_problem
from model.problems import (
    absent_of,
    as_view,
    design_of,
    likelihood_of,
    make_small,
    random_gaussian,
)


def bound(q):
    return q.evaluate()[0].sum()


def fitted(problem, V):
    """The posterior of factors on every feature, from loadings V (C, K)."""
    likelihood = FactorLikelihood(likelihood_of(problem), V)
    q, *_ = learn_variances(design_of(problem, 0.0), None, likelihood, max_iter=100)
    q.optimise_sites()
    return q


@pytest.mark.parametrize("task", ["multiclass", "multilabel", "regression"])
def test_the_bound_rises_at_every_step(task):
    for seed in range(2):
        problem = make_small(task, N=40, sizes=(4, 12), seed=seed, absent=True)
        spread = task == "regression"  # for labels the loadings are a point
        q = random_gaussian(problem, 2, seed=seed, spread=spread)
        value, target = q.evaluate()
        values = [value.item()]
        for _ in range(30):
            value, target = q.step(value, target)
            values.append(value.item())
        values = np.array(values)
        assert (np.diff(values) >= -1e-8 * np.abs(values[1:])).all()
        np.testing.assert_allclose(values[-1], bound(q), rtol=1e-10)


def test_removing_a_factor_leaves_a_consistent_state():
    q = random_gaussian(make_small("multilabel", N=20), 3)
    V = q.noise.loadings.V[:, [0, 2]]
    trial = without_factor(q, 1)
    trial.refresh()
    np.testing.assert_array_equal(trial.noise.loadings.V, V)
    assert trial.likelihood.n_outputs == trial.s.shape[1] == trial.solution.w.shape[1] == 2
    assert trial.noise.loadings.V_cov.shape == (3, 2, 2)
    assert trial.sites.h.shape == trial.extra.shape == (1, 2, 20)
    assert np.isfinite(trial.optimise_sites()).all()


def test_a_factor_without_use_is_dropped():
    """Two outputs that are one direction need one factor."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    f = 2 * X[:, 0]
    T = np.column_stack([f + rng.logistic(size=80) > 0, f + rng.logistic(size=80) > 0])
    problem = Problem([as_view(X)], T.astype(float), np.ones(80), "multilabel")
    q = fitted(problem, np.array([[1.0, 0.3], [1.0, -0.3]]))
    best, used = without_idle(q)
    assert used.all()
    assert best.s.shape[1] == 1
    assert bound(best) >= bound(q)


def test_a_view_of_noise_is_left_out():
    """Signal in the first view alone: the second goes as a whole, the first stays."""
    emptied = 0
    for seed in range(4):
        problem = make_small("multilabel", N=80, sizes=(3, 6), seed=seed)
        x = problem.views[0].columns([0, 1]).sum(axis=1)[:, None]
        noise = np.random.default_rng(seed).logistic(size=(80, 2))
        problem.T = (2 * x + noise > 0).astype(float)
        q = fitted(problem, np.ones((2, 1)))
        best, used = without_idle(q)
        assert used[0]
        assert bound(best) >= bound(q)
        emptied += not used[1]
    assert emptied >= 3


def test_no_factor_is_dropped_where_there_is_one_alone():
    q = random_gaussian(make_small("multilabel", N=20), 1)
    assert weakest_factor(q) is None
    more = random_gaussian(make_small("multilabel", N=20), 3)
    assert weakest_factor(more) in (0, 1, 2)


def test_view_parts_add_up_to_the_predictor():
    problem = make_small("multiclass", N=15, sizes=(3, 8), absent=True)
    absent = absent_of(problem)
    s = np.ones((1, 3, 11))
    q = WeightPosterior.start(design_of(problem), likelihood_of(problem), s, absent)
    q.optimise_sites()
    parts = q.design.parts(q.solution, q.s)[0]
    has = ~problem.views[1].absent
    np.testing.assert_allclose(
        q.view_signal()[0, 1], (parts[1][:, has] ** 2).mean(axis=1), rtol=1e-10
    )
    total = parts.sum(axis=0) + q.solution.w[0, :, :1]
    np.testing.assert_allclose(total, q.moments()[0][0], rtol=1e-7, atol=1e-9)


# -- after the default fit -----------------------------------------------------------------------


@pytest.mark.parametrize("task", ["multiclass", "multilabel"])
def test_fewer_factors_on_selected_features(task):
    problem, folds = make_problem(task, absent=True)
    full = fit_default(problem, folds, max_iter=40)
    small = fit_factors_on_selected(problem, full, 1, max_iter=30)
    predictor, views = small.predictor, problem.views
    C = problem.T.shape[1]
    assert predictor.V.shape == (C, 1)
    coef, std, b = predictor.coefficients()
    eta = sum(view.apply(w.T) for view, w in zip(views, coef, strict=True)) + b
    mean, var = predictor.moments(views)
    np.testing.assert_allclose(mean, eta, atol=1e-6)
    assert (var > 0).all()
    for few, many, w, sd in zip(small.selected, full.selected, coef, std, strict=True):
        assert not (few & ~many).any()
        assert not w[:, ~few].any()
        assert not sd[:, ~few].any()
    latent, _ = predictor.latent(views)
    level = mean - latent @ predictor.V.T
    np.testing.assert_allclose(level, np.tile(level[0], (len(mean), 1)), atol=1e-6)
    assert small.stacking == full.stacking
    assert len(small.history) > len(full.history)


def test_nothing_selected_leaves_nothing_to_factorise():
    problem, folds = make_problem("multilabel", N=30, sizes=(4, 6))
    full = fit_default(problem, folds, max_iter=20)
    nothing = replace(full, selected=[np.zeros_like(mask) for mask in full.selected])
    assert fit_factors_on_selected(problem, nothing, 1, max_iter=5) is nothing
