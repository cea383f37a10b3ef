"""Every feature in: both kinds of algebra agree, slices are fits, the variances are the best."""

import numpy as np
import pytest

from baldur.inference.all_features import Columns, Grams, all_features
from baldur.inference.everything import LARGE_VARIANCE, keep_views, run_everything
from baldur.inference.fixed_prior import Outputs, posterior, solve
from baldur.inference.mixture import absent_matrix, gather, owners
from inference.problems import make_problem

TASKS = ["binary", "multiclass", "multilabel", "regression"]


def both(problem):
    """All features as Grams and as columns."""
    index = [np.arange(v.shape[1]) for v in problem.views]
    X = gather(problem.views, index)
    return Grams([v.weighted_gram() for v in problem.views]), Columns(X, owners(index), len(index))


@pytest.mark.parametrize("task", TASKS)
def test_grams_and_columns_give_one_posterior(task):
    found = []
    for kind in range(2):
        problem, _, _ = make_problem(task, absent=True)
        features = both(problem)[kind]
        out = run_everything(features, absent_matrix(problem.views), problem.likelihood)
        held = np.arange(5)
        rest = np.arange(problem.n_samples)
        predicted = features.predict(out.sides, out.slab, rest, held)
        found.append((out.slab, out.parts(), *out.moments(), *predicted, len(out.history)))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6, atol=1e-8)


def test_the_smaller_algebra_is_chosen():
    narrow, _, _ = make_problem(N=48, sizes=(5, 20))
    wide, _, _ = make_problem(N=48, sizes=(5, 60))
    assert isinstance(all_features(narrow.views), Columns)
    assert isinstance(all_features(wide.views), Grams)


@pytest.mark.parametrize("kind", [0, 1], ids=["Grams", "columns"])
def test_a_slice_is_the_fit_of_its_rows(kind):
    """Grams of row subsets are slices of one Gram, and so are predictions for the other rows."""
    problem, _, folds = make_problem(absent=True)
    rows, held = folds[0]
    features, absent = both(problem)[kind], absent_matrix(problem.views)
    likelihood = problem.likelihood.rows(rows)
    out = run_everything(features.within(rows), absent[rows], likelihood)
    index = [np.arange(v.shape[1]) for v in problem.views]
    X = gather(problem.views, index)
    s = out.slab[:, owners(index)]
    alone = Outputs(X[rows], s, out.sites, posterior(X[rows], s, out.sites), out.extra)
    for got, want in zip(
        features.predict(out.sides, out.slab, rows, held), alone.predict(X[held]), strict=True
    ):
        np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("task", ["binary", "regression"])
def test_no_variances_near_the_fixed_point_are_better(task):
    """It maximises the bound plus the log prior of the variances, as far as it was run."""
    problem, _, _ = make_problem(task, sizes=(6, 70))
    features, likelihood = all_features(problem.views), problem.likelihood
    out = run_everything(features, absent_matrix(problem.views), likelihood, max_iter=3000)
    assert out.converged
    index = [np.arange(v.shape[1]) for v in problem.views]
    X, owner = gather(problem.views, index), owners(index)

    def objective(slab):
        bound = solve(X, slab[:, owner], likelihood, tol=1e-10, max_iter=500).bounds[-1]
        return bound - (slab * features.scales()).sum() / (2 * LARGE_VARIANCE)

    best = objective(out.slab)
    for m in range(2):
        for factor in (0.3, 3.0):
            slab = out.slab.copy()
            slab[:, m] *= factor
            assert objective(slab) < best + 0.1


def test_variances_stay_finite_where_classes_can_be_separated():
    problem, T, _ = make_problem(sizes=(2, 60))
    T[:, 0] = problem.views[0].columns([0])[:, 0] > 0
    likelihood = type(problem.likelihood)(T, np.ones_like(T))
    features = all_features(problem.views)
    out = run_everything(features, absent_matrix(problem.views), likelihood)
    assert out.converged
    assert ((out.slab @ features.scales()) < 500).all()


def test_without_a_view_it_is_the_posterior_of_the_others():
    problem, _, _ = make_problem(sizes=(6, 70))
    out = run_everything(
        all_features(problem.views), absent_matrix(problem.views), problem.likelihood
    )
    small = keep_views(out, np.array([True, False]), problem.likelihood)
    X = problem.views[0].dense()
    s = np.repeat(out.slab[:, :1], X.shape[1], axis=1)
    alone = solve(X, s, problem.likelihood, sites=out.sites)
    np.testing.assert_allclose(small.moments()[0], alone.moments()[0], rtol=1e-6, atol=1e-8)
    assert small.bounds[-1] == pytest.approx(alone.bounds[-1], rel=1e-8)
    assert not small.parts()[1].any()
    assert (np.diff(small.bounds) >= -1e-8 * np.abs(small.bounds[-1])).all()
