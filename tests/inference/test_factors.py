"""Learned factors on selected features: the bound rises, and what has no use is left out."""

import numpy as np
import pytest
from baldur.inference.features import columns_of
from baldur.inference.gaussian import Gaussian
from baldur.inference.members import fit_by_view
from baldur.inference.new_rows import absent_matrix

from baldur.inference.factors import without_idle
from baldur.inference.screening import Problem
from baldur.model.likelihood import QuadratureLogistic
from baldur.model.loadings import FactorLikelihood
from model.problems import as_view, make_small, random_gaussian


def fitted(problem, V):
    """The posterior of factors on every feature, from loadings V (C, K)."""
    columns = columns_of(problem.views, [np.arange(int(D)) for D in problem.widths], 0.0)
    likelihood = FactorLikelihood(problem.likelihood, V)
    return fit_by_view(columns, absent_matrix(problem.views), likelihood, max_iter=100).points[0]


@pytest.mark.parametrize("task", ["multiclass", "multilabel", "regression"])
def test_the_bound_rises_at_every_step(task):
    for seed in range(2):
        problem = make_small(task, N=40, sizes=(4, 12), seed=seed, absent=True)
        spread = task == "regression"  # under quadrature the loadings are a point
        q = random_gaussian(problem, 2, seed=seed, spread=spread)
        value = q.settle(max_iter=30)
        values = np.array(q.bounds)[:, 0]
        assert (np.diff(values) >= -1e-8 * np.abs(values[1:])).all()
        np.testing.assert_allclose(value, q.bound(), rtol=1e-10)


def test_removing_a_factor_leaves_a_consistent_state():
    q = random_gaussian(make_small("multilabel", N=20), 3)
    V = q.noise.loadings.V[:, [0, 2]]
    trial = q.without_factor(1)
    trial.refresh()
    np.testing.assert_array_equal(trial.noise.loadings.V, V)
    assert len(trial.sides) == trial.likelihood.n_outputs == len(trial.s) == 2
    assert trial.noise.loadings.V_cov.shape == (3, 2, 2)
    assert trial.sites.h.shape == trial.extra.shape == (20, 2)
    assert np.isfinite(trial.settle()).all()


def test_a_factor_without_use_is_dropped():
    """Two outputs that are one direction need one factor."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((80, 4))
    f = 2 * X[:, 0]
    T = np.column_stack([f + rng.logistic(size=80) > 0, f + rng.logistic(size=80) > 0])
    outputs = QuadratureLogistic(T.astype(float), np.ones((80, 2)))
    q = fitted(Problem([as_view(X)], outputs, "multilabel"), np.array([[1.0, 0.3], [1.0, -0.3]]))
    best, used = without_idle(q)
    assert used.all()
    assert len(best.sides) == 1
    assert best.bound().sum() >= q.bound().sum()


def test_a_view_of_noise_is_left_out():
    """Signal in the first view alone: the second goes as a whole, the first stays."""
    emptied = 0
    for seed in range(4):
        problem = make_small("multilabel", N=80, sizes=(3, 6), seed=seed)
        x = problem.views[0].columns([0, 1]).sum(axis=1)[:, None]
        noise = np.random.default_rng(seed).logistic(size=(80, 2))
        T = (2 * x + noise > 0).astype(float)
        problem = Problem(problem.views, QuadratureLogistic(T, np.ones_like(T)), "multilabel")
        q = fitted(problem, np.ones((2, 1)))
        best, used = without_idle(q)
        assert used[0]
        assert best.bound().sum() >= q.bound().sum()
        emptied += not used[1]
    assert emptied >= 3


def test_no_factor_is_dropped_where_outputs_are_the_factors():
    problem = make_small("multilabel", N=20)
    columns = columns_of(problem.views, [np.arange(int(D)) for D in problem.widths])
    q = Gaussian.start(columns, problem.likelihood, np.ones((3, 8)), absent_matrix(problem.views))
    q.refresh()
    assert q.weakest_factor() is None


def test_view_parts_add_up_to_the_predictor():
    problem = make_small("multiclass", N=15, sizes=(3, 8), absent=True)
    columns = columns_of(problem.views, [np.arange(int(D)) for D in problem.widths])
    q = Gaussian.start(columns, problem.likelihood, np.ones((3, 11)), absent_matrix(problem.views))
    q.settle()
    parts = q.features.parts(q.sides, q.s)
    has = ~problem.views[1].absent
    np.testing.assert_allclose(q.signal()[1], (parts[1][has] ** 2).mean(axis=0), rtol=1e-10)
    intercepts = np.array([side.w[0] for side in q.sides])
    np.testing.assert_allclose(parts.sum(axis=0) + intercepts, q.moments()[0], rtol=1e-7, atol=1e-9)
