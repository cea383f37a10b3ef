"""The ensemble of a batch of folds: each fold as if alone, and nothing from held-out rows."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from baldur.inference.ensemble import (
    MEMBERS,
    NEGLIGIBLE,
    first_views,
    fit_ensemble,
    held_moments,
    moments_by_views,
    restricted,
    view_moments,
)
from baldur.inference.inner_folds import FoldBatch, Problem
from baldur.inference.stacking import Stacking, calibrated_moments, mixture
from baldur.inference.submodel_selection import mean_losses
from baldur.model.posterior import leading_squares, triangle_squares
from baldur.model.predictions import shrinkage
from inference.problems import gathered, make_problem, on_all_rows, unequal_folds

N, SIZES = 42, (4, 8)
TASKS = ["binary", "multiclass", "regression"]
CASES = [(task, absent, False) for task in TASKS for absent in (False, True)]
CASES += [("binary", True, True), ("regression", False, True)]
IDS = [
    f"{task}{', missing view' if absent else ''}{', Grams' if by_grams else ''}"
    for task, absent, by_grams in CASES
]
FITS = {}


def stacking(F, slope=1.4, slope_var=0.04, shares=(0.2, 0.1, 0.2, 0.3, 0.2)):
    return Stacking(np.tile(shares, (F, 1)), np.full(F, slope), np.full(F, slope_var))


def case_of(task="binary", absent=True, by_grams=False):
    """A problem, unequal folds, and both as the ensemble takes them."""
    problem, _ = make_problem(task, N=N, sizes=SIZES, absent=absent)
    folds = unequal_folds(N)
    return problem, folds, *gathered(problem, folds, by_grams)


def fitted(task="binary", absent=True, by_grams=False):
    """The same with the ensemble of these folds, fitted once; not for tests that patch the fit."""
    key = (task, absent, by_grams)
    if key not in FITS:
        made = case_of(*key)
        FITS[key] = *made, fit_ensemble(made[3])
    return FITS[key]


def pooled(ensemble, shares=None):
    """Moments of the members on the training rows, each (K, F, C, n)."""
    found = []
    for k in range(len(ensemble.names)):
        own = ensemble.member_of == k
        weights = ensemble.weights[own][..., None]
        found.append(mixture(ensemble.mean[own], ensemble.var[own], weights))
    return [np.stack(part) for part in zip(*found, strict=True)]


def assert_same_fold(whole, f, alone, tolerance):
    """Fold f of an ensemble is the one fold of another."""
    n, p = alone.batch.rows.shape[1], alone.batch.held.shape[1]
    assert whole.names == alone.names
    for got, want in zip(pooled(whole), pooled(alone), strict=True):
        np.testing.assert_allclose(got[:, f, :, :n], want[:, 0], rtol=tolerance, atol=tolerance)
    for got, want in zip(whole.member_moments(), alone.member_moments(), strict=True):
        np.testing.assert_allclose(got[f, :p], want[0], rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(whole.base_logit[f], alone.base_logit[0], rtol=1e-12)
    np.testing.assert_allclose(whole.base_variance[f], alone.base_variance[0], rtol=1e-12)
    np.testing.assert_allclose(whole.confidence()[f], alone.confidence()[0], rtol=tolerance)
    np.testing.assert_array_equal(whole.view_order()[f], alone.view_order()[0])
    for name, member in whole.members.items():
        assert member.converged[f] == alone.members[name].converged[0]


@pytest.mark.parametrize(("task", "absent", "by_grams"), CASES, ids=IDS)
def test_folds_of_a_batch_are_fitted_as_if_alone(task, absent, by_grams):
    problem, folds, _data, _, whole = fitted(task, absent, by_grams)
    for f, fold in enumerate(folds):
        _, one = gathered(problem, [fold], by_grams)
        assert_same_fold(whole, f, fit_ensemble(one), 1e-8)


@pytest.mark.parametrize(("task", "absent", "by_grams"), CASES, ids=IDS)
def test_a_fold_is_a_literal_refit_without_the_other_rows(task, absent, by_grams):
    problem, folds, _, batch, whole = fitted(task, absent, by_grams)
    for f, (train, held) in enumerate(folds):
        views = [view.take_rows(train) for view in problem.views]
        small = Problem(views, problem.T[train], problem.weight[train], task)
        refit = fit_ensemble(on_all_rows(small, by_grams)[1])
        n = len(train)
        for got, want in zip(pooled(whole), pooled(refit), strict=True):
            np.testing.assert_allclose(got[:, f, :, :n], want[:, 0], rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(whole.base_logit[f], refit.base_logit[0], rtol=1e-12)
        assert batch.held_counted[f].sum() == len(held)


def test_nothing_is_learned_from_held_out_rows():
    """Other outcomes of the rows that a fold holds out leave its fit and its predictions."""
    problem, folds, data, batch, whole = fitted("multiclass")
    for f, (_, held) in enumerate(folds):
        T = problem.T.copy()
        T[held] = 1.0 - T[held]
        changed = fit_ensemble(replace(batch, data=replace(data, problem=replace(problem, T=T))))
        for got, want in zip(changed.member_moments(), whole.member_moments(), strict=True):
            np.testing.assert_allclose(got[f], want[f], rtol=1e-9, atol=1e-10)
            assert np.abs(got - want).max() > 0.1  # other folds had these rows


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_order_of_rows_features_views_and_outputs_does_not_matter(task):
    problem, _ = make_problem(task, N=N, sizes=SIZES, absent=True)
    folds = unequal_folds(N)
    data, batch = gathered(problem, folds)
    one = fit_ensemble(batch)
    rng = np.random.default_rng(1)
    rows, cols = rng.permutation(N), rng.permutation(sum(SIZES))
    place = np.argsort(rows)
    outputs = np.arange(problem.T.shape[1])[::-1]
    other = replace(
        data,
        problem=replace(problem, views=problem.views[::-1], T=problem.T[rows][:, outputs]),
        columns=data.columns[rows][:, cols],
        owner=1 - data.owner[cols],
        absent=data.absent[rows][:, ::-1],
    )
    turned = FoldBatch.of(other, [(place[a], place[b]) for a, b in folds], [np.arange(12)] * 3)
    two = fit_ensemble(turned)
    real = batch.held_counted > 0
    for got, want in zip(two.member_moments(), one.member_moments(), strict=True):
        np.testing.assert_allclose(got[real], want[real][..., outputs], rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(two.view_order(), 1 - one.view_order())
    np.testing.assert_allclose(two.confidence(), one.confidence(), rtol=1e-5)


# -- which members are fitted -------------------------------------------------------------------


@pytest.mark.parametrize(
    "chosen", [("pooled",), ("per_view", "spike_slab"), ("screened_10",), MEMBERS[::-1]]
)
def test_a_chosen_member_is_the_same_as_among_all(chosen):
    _, _, _data, batch, every = fitted()
    some = fit_ensemble(batch, members=chosen)
    assert every.names == list(MEMBERS[:5])  # there are 12 features
    assert some.names == [name for name in every.names if name in chosen]
    for got, want in zip(some.member_moments(), every.member_moments(), strict=True):
        for k, name in enumerate(some.names):
            np.testing.assert_array_equal(got[:, :, k], want[:, :, MEMBERS.index(name)])


def test_the_wide_spike_and_slab_alone_ends_close_to_where_it_does_among_all():
    """It starts from the narrower one, which is then fitted but not a member."""
    _, _, _data, batch, every = fitted()
    alone = fit_ensemble(batch, members=["spike_slab_wide"])
    assert alone.names == ["spike_slab_wide"]
    k = every.names.index("spike_slab_wide")
    np.testing.assert_array_equal(
        alone.member_moments()[0][:, :, 0], every.member_moments()[0][:, :, k]
    )


def test_with_one_view_per_view_is_pooled():
    problem, folds = make_problem(N=36, sizes=(8,))
    _data, batch = gathered(problem, folds)
    assert fit_ensemble(batch).names == ["spike_slab", "spike_slab_wide", "pooled"]
    made = [fit_ensemble(batch, members=[name]) for name in ("per_view", "pooled")]
    assert [each.names for each in made] == [["per_view"], ["pooled"]]
    np.testing.assert_array_equal(made[0].held_mean, made[1].held_mean)


# -- moments and weights -----------------------------------------------------------------------


@pytest.mark.parametrize("task", TASKS)
def test_the_base_rate_is_literal(task):
    problem, folds, _, _, ensemble = fitted(task)
    for f, (train, held) in enumerate(folds):
        T, p = problem.T, len(held)
        if task == "binary":
            rate = T[train].mean()
            base = np.where(T[held] > 0, rate, 1 - rate)
        elif task == "multiclass":
            base = (T[held] * T[train].mean(axis=0)).sum(axis=1, keepdims=True)
        else:
            base = norm.pdf(T[held], T[train].mean(), T[train].std())
        mean = np.repeat(ensemble.base_logit[[f]], p, axis=0)
        var = np.repeat(ensemble.base_variance[[f]], p, axis=0) + 1e-12
        losses = mean_losses(mean, var, np.arange(p), T[held], task)
        np.testing.assert_allclose(losses, -np.log(base).sum(axis=1), rtol=1e-4)


@pytest.mark.parametrize(("task", "absent", "by_grams"), CASES, ids=IDS)
def test_posteriors_computed_again_are_those_that_were_fitted(task, absent, by_grams):
    """From prior variances and sites alone, in all folds or in some of them."""
    _, _, _data, batch, ensemble = fitted(task, absent, by_grams)
    real = batch.counted[:, None]
    assert all(point.q.solution is None for point in ensemble.points)
    for some in (np.arange(3), [2]):
        weights = np.zeros_like(ensemble.weights)
        weights[:, some] = ensemble.weights[:, some]
        for j, folds, q in ensemble.posteriors(weights, *batch.designs()):
            assert set(folds) <= set(some)
            q.refresh()
            mean, var = q.moments()
            np.testing.assert_allclose(
                mean * real[folds], ensemble.mean[j, folds] * real[folds], rtol=1e-7, atol=1e-8
            )
            np.testing.assert_allclose(
                var * real[folds], ensemble.var[j, folds] * real[folds], rtol=1e-7, atol=1e-8
            )


def test_parts_add_up_to_the_mean():
    _, _, _, batch, ensemble = fitted("regression", absent=False)
    away = ensemble.mean - ensemble.parts.sum(axis=2)  # the intercept
    for j, point in enumerate(ensemble.points):
        for f in point.folds:
            n = int(batch.count[f])
            np.testing.assert_allclose(np.ptp(away[j, f, :, :n], axis=-1), 0.0, atol=1e-8)


def test_point_weights_are_shares_of_members_less_what_is_negligible():
    _, _, _, _, ensemble = fitted("multiclass")
    shares = stacking(3).shares
    weights = ensemble.point_weights(shares)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-12)
    literal = shares.T[ensemble.member_of][:, :, None] * ensemble.weights
    for j, f in np.ndindex(*weights.shape[:2]):
        if literal[j, f].max() < NEGLIGIBLE:
            assert not weights[j, f].any()
        else:
            assert (weights[j, f] >= literal[j, f] - 1e-12).all()
    for j, folds, _ in ensemble.posteriors(weights, *ensemble.batch.designs()):
        assert weights[j, folds].any(axis=1).all()


def test_the_stacked_ensemble_is_made_of_its_members():
    """Pooling all Gaussians is pooling members, but for negligible ones."""
    _, _, _, _, ensemble = fitted()
    mean, _ = ensemble.member_moments()
    weights = ensemble.point_weights(stacking(3).shares)
    left_out = (weights == 0).all(axis=2).sum(axis=0).max()
    got, _ = mixture(ensemble.held_mean, ensemble.held_var, weights[..., None])
    want = np.einsum("fpkc,k->fcp", mean, stacking(1).shares[0])
    assert np.abs(got - want).max() <= NEGLIGIBLE * left_out * np.abs(mean).max() + 1e-9


@pytest.mark.parametrize("task", TASKS)
def test_moments_by_views_are_literal(task):
    _, _, _data, batch, ensemble = fitted(task)
    given = stacking(3)
    mean, var = view_moments(ensemble, given, [1, 2])
    # All views: means pooled around the base rate, variances within and between the Gaussians.
    weights = ensemble.point_weights(given.shares)
    centre = (weights[..., None] * ensemble.held_mean).sum(axis=0)
    spread = weights[..., None] * (ensemble.held_var + (ensemble.held_mean - centre) ** 2)
    base = ensemble.base_logit[..., None]
    want = base + 1.4 * (centre - base)
    np.testing.assert_allclose(mean[1], want, rtol=1e-10)
    np.testing.assert_allclose(var[1], spread.sum(axis=0) + 0.04 * (want - base) ** 2, rtol=1e-10)
    # One view: that of posteriors without the other.
    assert (ensemble.view_order()[:, 0] == 0).all()  # where the signal is
    means, variances = [], []
    views = np.tile([True, False], (3, 1))
    for _, folds, q in ensemble.posteriors(ensemble.weights, *batch.designs()):
        q = restricted(q, views[folds])
        found = np.zeros((2, 3, *mean.shape[2:]))
        found[:, folds] = held_moments(q)
        means.append(found[0])
        variances.append(found[1])
    one = mixture(np.stack(means), np.stack(variances), weights[..., None])
    wanted = calibrated_moments(
        *one, base, given.slope[:, None, None], given.slope_var[:, None, None]
    )
    for got, want in zip((mean[0], var[0]), wanted, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_restricted_to_some_views_has_no_part_of_the_others():
    _, _, _data, batch, ensemble = fitted()
    views = np.array([[True, False], [True, True], [False, True]])
    for _, folds, q in ensemble.posteriors(ensemble.weights, *batch.designs()):
        q = restricted(q, views[folds])
        parts = q.design.parts(q.solution, q.s)
        assert (np.abs(parts).max(axis=(2, 3)) > 0).tolist() == views[folds].tolist()


def test_views_by_falling_variance_of_their_part():
    _, _, _, _, ensemble = fitted("binary")
    rng = np.random.default_rng(0)
    J, F, _, C, n = ensemble.parts.shape
    parts = rng.standard_normal((J, F, 3, C, n)) * np.array([1.0, 9.0, 4.0])[:, None, None]
    parts *= ensemble.batch.counted[:, None, None]
    made = replace(ensemble, parts=parts)
    np.testing.assert_array_equal(made.view_order(), np.tile([1, 2, 0], (F, 1)))
    shifted = replace(ensemble, parts=parts + 100.0 * ensemble.batch.counted[:, None, None])
    np.testing.assert_array_equal(shifted.view_order(), made.view_order())  # not by their mean
    mask = first_views(np.array([[1, 2, 0], [0, 1, 2]]), 2)
    assert mask.tolist() == [[False, True, True], [True, True, False]]


def test_confidence_is_what_is_left_of_the_predictor():
    _, folds, _, _, ensemble = fitted("multiclass")
    _, var = pooled(ensemble)
    for f, (train, _) in enumerate(folds):
        want = shrinkage(var[:, f, :, : len(train)]).mean(axis=(1, 2))
        np.testing.assert_allclose(ensemble.confidence()[f], want, rtol=1e-12)
    np.testing.assert_array_equal(fitted("regression")[-1].confidence(), 1.0)
    first = ensemble.first_weights()
    shares = ensemble.confidence()
    shares /= shares.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(first, ensemble.point_weights(shares), rtol=1e-12)


def test_a_stack_that_is_nearly_the_base_rate_is_the_base_rate():
    """On pure noise the slope may be next to nothing."""
    _, _, _data, _, ensemble = fitted("binary")
    mean, _ = view_moments(ensemble, stacking(3, 1e-4, 0.0), [1, 2])
    base = np.broadcast_to(ensemble.base_logit[..., None], mean[0].shape)
    np.testing.assert_allclose(mean, np.broadcast_to(base, mean.shape), atol=5e-3)
    moved, var = calibrated_moments(base + 1.0, np.ones_like(base), base, 2.0, 0.1)
    np.testing.assert_allclose(moved, base + 2.0)
    np.testing.assert_allclose(var, 1.0 + 0.1 * 4.0)


def test_batches_pad_to_the_longest():
    batch = FoldBatch.of(
        None,
        [(np.array([3, 1]), np.array([0])), (np.array([2]), np.array([4, 5]))],
        [np.array([7]), np.array([8, 9, 6])],
    )
    assert batch.rows.tolist() == [[3, 1], [2, 0]]
    assert batch.counted.tolist() == [[1, 1], [1, 0]]
    assert batch.held_counted.tolist() == [[1, 0], [1, 1]]
    assert batch.candidates.tolist() == [[7, 0, 0], [8, 9, 6]]
    assert batch.used.tolist() == [[1, 0, 0], [1, 1, 1]]
    assert batch.count.tolist() == [2, 1]
    assert len(batch) == 2


# -- the ensemble on fewer views: one factorisation gives what a posterior of each number gives ---


@pytest.mark.parametrize("task", ["binary", "multiclass"])
def test_one_factorisation_serves_all_numbers_of_views(task):
    """Folds of unequal size, whose views come in different orders and have different widths."""
    problem, _ = make_problem(task, N=60, sizes=(4, 2, 7))
    _data, batch = gathered(problem, unequal_folds(60))
    ensemble = fit_ensemble(batch)
    order = np.array([[0, 1, 2], [2, 0, 1], [1, 2, 0]])
    for _, folds, q in ensemble.posteriors(ensemble.weights, *batch.designs()):
        found = list(moments_by_views(q, order[folds], [1, 2]))
        for count, moments in zip((1, 2), found, strict=True):
            part = restricted(q, first_views(order[folds], count))
            assert part.design.uses_features
            for got, want in zip(moments, held_moments(part), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-10)


def test_leading_squares_are_those_of_leading_triangles():
    rng = np.random.default_rng(0)
    half = np.tril(rng.standard_normal((2, 3, 6, 6)))
    X = rng.standard_normal((2, 6, 5))
    ends = np.array([[2, 1], [4, 6]])
    found = leading_squares(half, X, ends)
    for v, f in np.ndindex(2, 2):
        end = ends[v, f]
        want = triangle_squares(half[f : f + 1, :, :end, :end], X[f : f + 1, :end])
        np.testing.assert_allclose(found[v, f], want[0], rtol=1e-12)
