"""Held-out losses: literal refits of every fold, and weights that never saw what they judge."""

import numpy as np
import pytest
from scipy.stats import norm

from baldur.inference.features import absent_matrix
from baldur.inference.held_out import (
    averaged,
    cross_weights,
    first_views,
    make_path,
    member_densities,
    path_losses,
    view_losses,
    view_order,
)
from baldur.inference.kept import nothing, projected, whole
from baldur.inference.mixture import Explicit, Implicit, Mixture
from baldur.inference.predictive import predictive_density, probabilities
from baldur.inference.reference import NAMES, NEGLIGIBLE, fit_reference, noise_variance
from baldur.inference.screening import Problem
from inference.problems import as_candidates, make_problem

TASKS = ["binary", "multiclass", "regression"]
FITS = {}


def folded(task, by_grams):
    """A problem with a view that some rows lack, its first fold, and the reference there."""
    key = (task, by_grams)
    if key not in FITS:
        problem, T, folds = make_problem(task, N=42, sizes=(4, 8), absent=True)
        rows, _ = folds[0]
        likelihood = problem.likelihood.rows(rows)
        reference = fit_reference(as_candidates(problem, by_grams), rows, likelihood)
        FITS[key] = problem, T, folds, reference
    return FITS[key]


def literal(problem, rows, by_grams):
    """The reference of a problem that never had the other rows."""
    views = [view.take_rows(rows) for view in problem.views]
    small = Problem(views, problem.likelihood.rows(rows), problem.task)
    return small, fit_reference(
        as_candidates(small, by_grams), np.arange(len(rows)), small.likelihood
    )


def density_of(component, weights, views, T, task):
    """Predictive density of outcomes under components and their weights."""
    mixture = Mixture(component, weights, [view.shape[1] for view in views])
    moments = [
        (mean, var + c.noise)
        for (mean, var), c in zip(mixture.moments(views), mixture.components, strict=True)
    ]
    return predictive_density(moments, weights, T, task)


def implicit(q, small):
    noise = noise_variance(q.noise) * np.ones(small.likelihood.n_outputs)
    index = [np.arange(view.shape[1]) for view in small.views]
    return Implicit(q.features, q.s, q.sides, index, small.views, noise, q.signal(), q.lacking())


@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
@pytest.mark.parametrize("task", TASKS)
def test_densities_of_a_fold_are_those_of_a_literal_refit(task, by_grams):
    problem, T, folds, reference = folded(task, by_grams)
    rows, held = folds[0]
    found = member_densities(reference, held, T, task)
    small, refit = literal(problem, rows, by_grams)
    assert refit.names == reference.names == list(NAMES)
    new = [view.take_rows(held) for view in problem.views]
    for k, member in enumerate(refit.members.values()):
        parts = [implicit(q, small) for q in member.points]
        want = density_of(parts, member.weights, new, T[held], task)
        np.testing.assert_allclose(found[:, :, k], want, rtol=1e-5, atol=1e-8)
    if task == "binary":
        rate = T[rows].mean()
        base = np.where(T[held] > 0, rate, 1 - rate)
    elif task == "multiclass":
        base = (T[held] * T[rows].mean(axis=0)).sum(axis=1, keepdims=True)
    else:
        base = norm.pdf(T[held], T[rows].mean(), T[rows].std())
    np.testing.assert_allclose(found[:, :, -1], base, rtol=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_losses_by_views_are_literal(task):
    problem, T, folds, reference = folded(task, False)
    _, held = folds[0]
    stack = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    losses = view_losses(reference, stack, [1, 2], held, T, task)
    assert losses.shape == (3, len(held))
    # All views: the mixture of every member's Gaussians and the base rate.
    points, weights = reference.mixture(stack)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0)
    moments = reference.moments(points, held)
    want = -np.log(predictive_density(moments, weights, T[held], task)).sum(axis=1)
    np.testing.assert_allclose(losses[2], want, rtol=1e-10)
    # The base rate alone.
    mixture, kept = nothing(reference, [4, 8])
    assert not np.concatenate(kept).any()
    new = [view.take_rows(held) for view in problem.views]
    base = density_of(mixture.components, mixture.weights, new, T[held], task)
    np.testing.assert_allclose(-np.log(base).sum(axis=1), losses[0], rtol=1e-10)
    # One view: the other has no part in it.
    first = view_order(reference.parts(points, weights))[0]
    assert first == 0  # where the signal is
    small = reference.restricted(points, first_views(np.array([0, 1]), 1))
    for q in small:
        assert not q.features.parts(q.sides, q.s)[1].any()
    want = predictive_density(reference.moments(small, held), weights, T[held], task)
    np.testing.assert_allclose(losses[1], -np.log(want).sum(axis=1), rtol=1e-10)


@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
@pytest.mark.parametrize("task", TASKS)
def test_losses_of_the_path_are_literal(task, by_grams):
    """Weights on the first k features, their covariance, and what is left out, spelled out."""
    _, T, folds, reference = folded(task, by_grams)
    rows, held = folds[0]
    stack = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    path = make_path(reference, stack, 2, 12, task)
    sizes = [1, 3, len(path.basis.order), 100]
    losses = path_losses(path, reference.data, held, sizes, T[held], task)
    np.testing.assert_allclose(losses[3], losses[2], rtol=1e-12)  # no further than its end
    X = reference.data.columns.X
    absent, owner = reference.data.absent, reference.data.columns.owner
    for row, k in enumerate(sizes[:3]):
        S = path.columns[path.basis.order[:k]]
        moments = []
        for z, noise in zip(path.coordinates, path.noise, strict=True):
            w, cov = path.weights_of(z, k)
            X1 = np.hstack([np.ones((len(held), 1)), X[np.ix_(held, S)]])
            var = np.stack([np.einsum("nd,de,ne->n", X1, each, X1) for each in cov], axis=1)
            var = np.maximum(var, 0.0) + z.noise[:, k]
            lacking = np.zeros((2, len(w)))
            for m in range(2):
                own = np.flatnonzero(owner[S] == m)
                has = rows[absent[rows, m] == 0]
                A = X[np.ix_(has, S[own])]
                for c in range(len(w)):
                    part = w[c, 1 + own]
                    second = np.outer(part, part) + cov[c][np.ix_(1 + own, 1 + own)]
                    lacking[m, c] = np.einsum("nd,de,ne->n", A, second, A).mean()
            var = np.maximum(var, 1e-12) + absent[held] @ lacking + noise
            moments.append((X1 @ w.T, var))
        want = predictive_density(moments, path.weights, T[held], task)
        np.testing.assert_allclose(losses[row], -np.log(want).sum(axis=-1), rtol=1e-6)


def test_the_path_of_one_view_uses_its_columns_alone():
    _, _, _, reference = folded("binary", False)
    path = make_path(reference, np.full(5, 0.2), 1, 12, "binary")
    np.testing.assert_array_equal(path.columns, np.arange(4))
    assert set(path.basis.order.tolist()) <= {0, 1, 2, 3}
    assert path.basis.order[0] in (0, 1)


def test_the_kept_step_of_a_path_predicts_as_it_was_scored():
    """The mixture that predicts with the first k features gives the losses of `path_losses`."""
    problem, T, _, _ = folded("binary", False)
    rows = np.arange(len(T))
    full = fit_reference(as_candidates(problem), rows, problem.likelihood)
    path = make_path(full, np.array([0.1, 0.2, 0.3, 0.3, 0.1]), 2, 12, "binary")
    index = [np.arange(view.shape[1]) for view in problem.views]
    for size in (1, 3, 8):
        mixture, kept, chosen = projected(full, path, size, index, [4, 8])
        assert np.concatenate(kept).sum() == len(chosen) == size
        assert np.concatenate(kept)[chosen].all()
        assert all(isinstance(component, Explicit) for component in mixture.components)
        got = density_of(mixture.components, mixture.weights, problem.views, T, "binary")
        want = path_losses(path, full.data, rows, [size], T, "binary")[0]
        np.testing.assert_allclose(-np.log(got).sum(axis=-1), want, rtol=1e-6)


@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
def test_whole_views_predict_as_they_were_scored(by_grams):
    problem, T, _, _ = folded("binary", by_grams)
    rows = np.arange(len(T))
    full = fit_reference(as_candidates(problem, by_grams), rows, problem.likelihood)
    stack = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    points, weights = full.mixture(stack)
    index = [np.arange(view.shape[1]) for view in problem.views]
    scored = view_losses(full, stack, [1, 2], rows, T, "binary")
    for views, want in (([True, False], scored[1]), ([True, True], scored[2])):
        mixture, kept = whole(full, points, weights, np.array(views), index, problem.views)
        assert [mask.all() for mask in kept] == [mask.any() for mask in kept] == views
        got = density_of(mixture.components, mixture.weights, problem.views, T, "binary")
        np.testing.assert_allclose(-np.log(got).sum(axis=-1), want, rtol=1e-8)


def test_views_by_falling_part():
    parts = np.random.default_rng(0).standard_normal((3, 50, 2)) * [[[1.0]], [[3.0]], [[2.0]]]
    np.testing.assert_array_equal(view_order(parts), [1, 2, 0])
    np.testing.assert_array_equal(first_views(np.array([1, 2, 0]), 2), [False, True, True])
    np.testing.assert_array_equal(view_order(parts + 100.0), [1, 2, 0])  # levels do not count


def test_losses_are_averaged_over_repeats():
    folds = [
        (np.array([0, 1]), np.array([2, 3])),
        (np.array([2, 3]), np.array([0, 1])),
        (np.array([0, 3]), np.array([2])),
    ]
    losses = [np.array([[1.0, 2.0]]), np.array([[3.0, 4.0]]), np.array([[5.0]])]
    np.testing.assert_allclose(averaged(losses, folds, 4), [[3.0, 4.0, 3.0, 2.0]])


# -- weights of the stack ----------------------------------------------------------------------


def drawn(seed=0, N=30, U=1, K=4, repeats=2):
    rng = np.random.default_rng(seed)
    folds = []
    for _ in range(repeats):
        order = rng.permutation(N)
        parts = np.array_split(order, 3)
        folds += [(np.setdiff1d(order, part), np.sort(part)) for part in parts]
    densities = [rng.uniform(0.05, 1.0, (len(held), U, K)) for _, held in folds]
    return densities, folds, rng.uniform(0.5, 2.0, N)


@pytest.mark.parametrize("U", [1, 2])
def test_weights_of_a_fold_use_no_prediction_of_its_rows(U):
    """Whatever was predicted for rows that a fold holds out, by any fold, its weights stay."""
    densities, folds, weight = drawn(U=U)
    stack, without = cross_weights(densities, folds, weight)
    rng = np.random.default_rng(1)
    for f, (_, held) in enumerate(folds):
        changed = []
        for density, (_, rows) in zip(densities, folds, strict=True):
            other = density.copy()
            hit = np.isin(rows, held)
            other[hit] = rng.uniform(0.001, 1.0, other[hit].shape)
            changed.append(other)
        other_stack, again = cross_weights(changed, folds, weight)
        np.testing.assert_array_equal(again[f], without[f])
        assert np.abs(other_stack - stack).max() > 1e-3


def test_repeats_do_not_count_as_rows():
    """Every repeat of the same predictions leaves the weights where one has them."""
    densities, folds, weight = drawn(repeats=1)
    stack, without = cross_weights(densities, folds, weight)
    same, again = cross_weights(densities * 3, folds * 3, weight)
    np.testing.assert_allclose(same, stack, atol=1e-6)
    for a, b in zip(again[:3], without, strict=True):
        np.testing.assert_allclose(a, b, atol=1e-6)


def test_probabilities_of_the_stack_are_those_of_its_members():
    """Mixing Gaussians is mixing members' probabilities, but for negligible ones."""
    problem, T, folds, reference = folded("binary", False)
    _, held = folds[0]
    stack = np.array([0.1, 0.2, 0.3, 0.3, 0.1])
    by_member = member_densities(reference, held, T, "binary")[:, 0] @ stack
    points, weights = reference.mixture(stack)
    left_out = sum(len(member.points) for member in reference.members.values()) - len(points)
    p = probabilities(reference.moments(points, held), weights, "binary")
    gap = np.abs(np.where(T[held] > 0, p, 1 - p)[:, 0] - by_member)
    assert gap.max() <= NEGLIGIBLE * left_out + 1e-9
    assert absent_matrix(problem.views)[held].any()


@pytest.mark.parametrize("stack", [[0, 0, 0, 0, 1.0], [1e-3, 1e-3, 1e-3, 1e-3, 0.996]])
def test_a_stack_that_is_nearly_the_base_rate_is_scored_too(stack):
    """On pure noise the members may all be negligible; the reference then is the base rate."""
    _, T, folds, reference = folded("binary", False)
    _, held = folds[0]
    losses = view_losses(reference, np.array(stack), [1, 2], held, T, "binary")
    np.testing.assert_allclose(losses[1:], np.tile(losses[0], (2, 1)), atol=0.02)
    path = make_path(reference, np.array(stack), 2, 12, "binary")
    at_once = path_losses(path, reference.data, held, [1, 2], T[held], "binary")
    np.testing.assert_allclose(at_once, np.tile(losses[0], (2, 1)), atol=0.02)
