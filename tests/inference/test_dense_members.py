"""Members with one variance per view or for all: one fixed point, integrated over scales."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import halfnorm

from baldur import BaldurClassifier
from baldur.datasets import make_adni_like, make_multiview
from baldur.inference.dense_members import (
    LEAST,
    POOLED_POINTS,
    PREDICTOR_SD,
    SCALE_DROP,
    SCALE_STEP,
    extrapolated,
    fit_per_view,
    fit_pooled,
    fit_screened,
    learn_variances,
    log_scale_prior,
    marginal_associations,
    over_scales,
    parabola,
    share_beyond_chance,
)
from baldur.inference.design import ColumnDesign
from baldur.inference.ensemble import SCREENED, fit_ensemble
from baldur.inference.stacking import mixture
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood, residual, take_folds
from inference.problems import (
    KINDS,
    as_grams,
    gathered,
    in_views,
    make_problem,
    on_all_rows,
    plain_problem,
    two_views,
    unequal_folds,
)

pytestmark = pytest.mark.usefixtures("one_repeat")

FITS = [fit_per_view, fit_pooled]


def point_moments(points, shape):
    """Moments of every point, (G, F, C, n); zero in folds where it does not count."""
    found = np.zeros((2, len(points), *shape))
    for g, point in enumerate(points):
        found[:, g, point.folds] = point.q.moments()
    return found


def moments(member):
    """<eta> and Var eta of the member on its rows, each (F, C, n)."""
    n = member.points[0].q.sites.h.shape[-1]
    found = point_moments(member.points, (*member.weights.shape[1:], n))
    return mixture(*found, member.weights[..., None])


def same(one, other, tolerance=1e-6):
    for got, want in zip(moments(one), moments(other), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("kind", KINDS)
def test_with_one_view_both_find_the_same_posterior(kind):
    """They integrate over the same scale on other points: to what the spacing leaves."""
    X, likelihood = plain_problem(kind)
    design = in_views(X, np.zeros(12, dtype=int))
    one, two = (fit(design, likelihood) for fit in FITS)
    (mean, var), (other, other_var) = moments(one), moments(two)
    np.testing.assert_allclose(mean, other, atol=0.15 * mean.std())
    np.testing.assert_allclose(np.sqrt(var), np.sqrt(other_var), rtol=0.15)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_scale_of_the_pooled_member_matters_little(kind):
    """The same integral from half a step and from two steps away."""
    X, likelihood = plain_problem(kind)
    design = two_views(X)
    mean, var = moments(fit_pooled(design, likelihood))
    for away in (0.5 * SCALE_STEP, 2.0 * SCALE_STEP):
        s = np.full((1, 1, 12), np.exp(away) / design.scales().sum())
        q = WeightPosterior.start(design, likelihood, s)
        points, weights = over_scales(q, most=POOLED_POINTS)
        found = point_moments(points, q.sites.h.shape)
        other, other_var = mixture(*found, weights[..., None])
        np.testing.assert_allclose(mean, other, atol=0.15 * mean.std())
        np.testing.assert_allclose(np.sqrt(var), np.sqrt(other_var), rtol=0.15)


def test_views_mean_nothing_to_the_pooled_member():
    """The same columns, in one view or in three."""
    X, likelihood = plain_problem()
    fits = [
        fit_pooled(in_views(X, owner), likelihood)
        for owner in (np.zeros(12, dtype=int), np.arange(12) % 3)
    ]
    same(*fits, 1e-10)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("task", ["multiclass", "regression"])
def test_columns_and_grams_are_one(task, fit):
    problem, _ = make_problem(task, N=40, sizes=(5, 20), absent=True)
    _data, batch = on_all_rows(problem, by_grams=True)
    fits = [
        fit(design, batch.likelihood())
        for design in (batch.candidate_design(), batch.gram_design())
    ]
    assert [p.step for p in fits[0].points] == [p.step for p in fits[1].points]
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, atol=1e-5)
    same(*fits)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", KINDS)
def test_folds_of_a_batch_are_fitted_as_if_alone(kind, fit):
    X, likelihood = plain_problem(kind, N=36, C=2, F=4)
    design = two_views(X)
    whole = fit(design, likelihood)
    mean, var = moments(whole)
    for f in range(4):
        at = np.array([f])
        alone = fit(take_folds(design, at), take_folds(likelihood, at))
        used = [k for k, w in enumerate(whole.weights[:, f]) if w.any()]
        assert [whole.points[k].step for k in used] == [point.step for point in alone.points]
        np.testing.assert_allclose(whole.weights[used, f], alone.weights[:, 0], atol=1e-8)
        np.testing.assert_allclose(whole.variances[f], alone.variances[0], rtol=1e-8)
        for got, want in zip((mean, var), moments(alone), strict=True):
            np.testing.assert_allclose(got[f], want[0], rtol=1e-8, atol=1e-8)
        assert whole.converged[f] == alone.converged[0]


@pytest.mark.parametrize("kind", KINDS)
def test_variances_are_the_best_under_the_prior_of_the_scale(kind):
    """No other variance of a view has a higher bound - v/50, v the variance it gives eta."""
    X, likelihood = plain_problem(kind, N=80, L=10)
    design = two_views(X, 4)
    member = fit_per_view(design, likelihood)
    assert member.converged.all()
    scales = design.scales()[0]
    start = WeightPosterior.start(design, likelihood, design.spread(member.variances))

    def value(by_view):
        q = start.with_variances(design.spread(by_view))
        q.optimise_sites(max_iter=200, tol=1e-10)
        return (q.evaluate()[0] - 0.5 * (by_view * scales).sum(axis=2) / PREDICTOR_SD**2)[0, 0]

    best = value(member.variances)
    for move in [(1, 0), (0, 1)]:
        for step in (0.3, -0.3, 1.0, -1.0):
            assert value(member.variances * np.exp(step * np.array(move))) < best + 1e-3


def test_a_view_without_signal_has_little_part():
    X, likelihood = plain_problem(N=150, L=20)
    member = fit_per_view(two_views(X, 11), likelihood)  # both effects in the first view
    pairs = zip(member.weights, member.points, strict=True)
    signal = sum(w[0, 0] * point.q.view_signal()[0] for w, point in pairs)
    assert signal[1, 0] < 0.1 * signal[0, 0]


def test_each_output_has_its_own_variances():
    X, likelihood = plain_problem(C=2, N=80)
    T = likelihood.T.copy()
    T[0, 1] = (X[0, :, 11] + 0.2 * np.random.default_rng(0).standard_normal(80)) > 0
    design = two_views(X)
    both = fit_per_view(design, LogisticLikelihood(T, np.ones_like(T)), max_iter=400)
    for c in range(2):
        one = LogisticLikelihood(T[:, [c]], np.ones((1, 1, 80)))
        alone = fit_per_view(design, one, max_iter=400)
        np.testing.assert_allclose(
            moments(both)[0][0, c], moments(alone)[0][0, 0], rtol=0.02, atol=0.02
        )


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", KINDS)
def test_units_of_the_columns_do_not_matter(kind, fit):
    """X times 10: variances are a hundredth, and nothing else changes."""
    X, likelihood = plain_problem(kind)
    fits = [fit(two_views(factor * X), likelihood) for factor in (1.0, 10.0)]
    same(*fits, 1e-7)
    np.testing.assert_allclose(fits[0].variances, 100 * fits[1].variances, rtol=1e-6)
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, atol=1e-8)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", KINDS)
def test_order_of_rows_features_views_and_outputs_does_not_matter(kind, fit):
    X, likelihood = plain_problem(kind, C=2, N=40)
    rng = np.random.default_rng(0)
    rows, cols = rng.permutation(40), rng.permutation(12)
    owner = (np.arange(12) >= 5).astype(int)
    one = fit(in_views(X, owner), likelihood)
    turned = type(likelihood)(likelihood.T[:, ::-1][..., rows], likelihood.weight)
    other = fit(in_views(X[:, rows][..., cols], 1 - owner[cols]), turned)
    for got, want in zip(moments(other), moments(one), strict=True):
        np.testing.assert_allclose(got, want[:, ::-1][..., rows], rtol=1e-6, atol=1e-7)
    np.testing.assert_allclose(other.variances, one.variances[:, ::-1, ::-1], rtol=1e-6)


# -- the scale of the prior ---------------------------------------------------------------------


def test_the_prior_of_the_scale_is_half_normal():
    """ln density of ln v up to a constant, where sqrt(v) is half-normal."""
    v = np.exp(np.linspace(-8, 6, 30))
    sd = np.sqrt(v)
    literal = halfnorm.logpdf(sd, scale=PREDICTOR_SD) + np.log(0.5 * sd)
    gap = log_scale_prior(v) - literal
    np.testing.assert_allclose(gap, gap[0], atol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_points_are_weighted_by_evidence_and_prior(kind):
    X, likelihood = plain_problem(kind, C=2, N=40, F=2)
    design = two_views(X)
    q = WeightPosterior.start(design, likelihood, np.full((2, 2, 12), 0.3))
    points, weights = over_scales(q)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-12)
    assert len(points) == len(weights)
    logs = np.full(weights.shape, -np.inf)
    for g, point in enumerate(points):
        np.testing.assert_allclose(point.q.s, 0.3 * np.exp(point.step * SCALE_STEP), rtol=1e-12)
        v = take_folds(design, point.folds).predictor_variance(point.q.s)
        logs[g, point.folds] = point.q.evidence() + log_scale_prior(v)
    want = np.exp(logs - logs.max(axis=0))
    want[want < np.exp(-SCALE_DROP)] = 0.0
    np.testing.assert_allclose(weights, want / want.sum(axis=0), rtol=1e-6, atol=1e-9)
    assert len({point.step for point in points}) == len(points)


def test_sharp_evidence_leaves_one_point():
    """Many weights, all well determined: their scale is known and one point represents it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1, 300, 60))
    Y = (X[0] @ rng.normal(0, 0.3, 60) + 0.3 * rng.standard_normal(300))[None, None]
    member = fit_per_view(two_views(X), GaussianLikelihood(Y, np.ones_like(Y)))
    assert len(member.points) == 1
    np.testing.assert_array_equal(member.weights, [[[1.0]]])


def test_the_integral_over_scales_is_close_to_a_fine_one(constants):
    """Mean and variance of eta with points a whole step apart, against steps of a tenth."""
    X, likelihood = plain_problem(N=40)
    q = WeightPosterior.start(two_views(X), likelihood, np.full((1, 1, 12), 0.3))

    def integrated(**options):
        points, weights = over_scales(q, **options)
        return mixture(*point_moments(points, q.sites.h.shape), weights[..., None])

    coarse = integrated()
    constants(SCALE_STEP=0.1, SCALE_DROP=6.0)
    fine = integrated(most=60)
    np.testing.assert_allclose(coarse[0], fine[0], atol=0.1)
    np.testing.assert_allclose(np.sqrt(coarse[1]), np.sqrt(fine[1]), rtol=0.1)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_a_repeated_sample(kind, fit):
    """The repeated rows have the mean squares of all rows, which do not look at weights."""
    X, likelihood = plain_problem(kind, N=40)
    twice, T = np.concatenate([X, X], axis=1), np.concatenate([likelihood.T] * 2, axis=2)
    weight = np.repeat([1.0, 2.0], 40)[None, None]
    found = []
    for rows, weights in ((np.arange(80), weight), (np.append(np.arange(80), np.arange(40)), None)):
        Y = T[..., rows]
        made = kind(Y, np.ones_like(Y) if weights is None else weights)
        member = fit(two_views(twice[:, rows]), made)
        found.append([part[..., :80] for part in moments(member)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("fit", FITS)
def test_rows_that_pad_change_nothing(fit):
    problem, _ = make_problem("multilabel", N=36, sizes=(4, 8), absent=True)
    folds = unequal_folds(36)
    _, batch = gathered(problem, folds)
    mean, var = moments(fit(batch.candidate_design(), batch.likelihood()))
    for f, fold in enumerate(folds):
        _data, one = gathered(problem, [fold])
        alone = fit(one.candidate_design(), one.likelihood())
        n = len(fold[0])
        for got, want in zip((mean, var), moments(alone), strict=True):
            np.testing.assert_allclose(got[f, :, :n], want[0], rtol=1e-8, atol=1e-8)


# -- small parts -------------------------------------------------------------------------------


def test_parabolas_are_continued():
    x = np.array([[0.3, -1.0], [2.0, 0.5]])

    def value(t):
        return x * t**2 - 2.0 * t + 1.0

    np.testing.assert_allclose(parabola(value(2), value(1), value(0)), value(3), rtol=1e-12)


def test_a_steady_approach_is_extrapolated_to_its_end():
    """x_k = end + c r^k: the squared extrapolation is exact, where it is not cut."""
    end, c = np.array([[[1.0, -2.0]], [[0.0, 3.0]]]), np.array([[[0.3, 0.2]], [[-0.1, 0.2]]])
    share = np.full(end.shape, 0.5)
    for r in (0.3, 0.8):
        steps = [end + c * r**k for k in range(3)]
        np.testing.assert_allclose(extrapolated(steps, share), end, atol=1e-9)
    slow = [end + 100.0 * c * 0.95**k for k in range(3)]
    assert np.abs(extrapolated(slow, share) - slow[2]).max() <= 2.0 + 1e-12


def test_a_fit_that_is_stopped_says_so():
    X, likelihood = plain_problem(F=2, N=40)
    _, _, history, converged = learn_variances(two_views(X), likelihood, max_iter=2)
    assert len(history) == 2
    assert converged.tolist() == [False, False]
    assert all(record["n_factors"] == 1 for record in history)


def test_grams_give_the_variances_of_columns():
    X, likelihood = plain_problem(N=40, L=50, F=2)
    design = two_views(X)
    found = [
        learn_variances(each, likelihood, max_iter=200)[1] for each in (design, as_grams(design))
    ]
    np.testing.assert_allclose(*found, rtol=1e-6)
    replaced = replace(design, n_views=3)  # a view without columns
    more = learn_variances(replaced, likelihood, max_iter=200)[1]
    assert np.isfinite(more).all()


# -- Screened members have the strongest marginal associations of the training rows, and no others


N, SIZES = 42, (6, 14)
TASKS = ["binary", "multiclass", "regression"]


def case_of(task, absent=False):
    problem, _ = make_problem(task, N=N, sizes=SIZES, absent=absent)
    folds = unequal_folds(N)
    return problem, folds, *gathered(problem, folds, False)


def fit_strongest(design, likelihood, left, size, smaller=None):
    """Return the member of the strongest columns, fitted until it has converged."""
    order, squares = marginal_associations(design, left)
    share = share_beyond_chance(squares, size, sum(SIZES) * likelihood.n_outputs)
    return fit_screened(design, likelihood, order[:, :size], share, smaller=smaller, max_iter=1000)


@pytest.mark.parametrize("task", TASKS)
def test_columns_are_those_with_the_largest_marginal_association(task):
    problem, folds, data, batch = case_of(task)
    ensemble = fit_ensemble(batch, members=("screened_10",))
    for f, (train, _) in enumerate(folds):
        X = data.columns[train]
        left = problem.T[train] - problem.T[train].mean(axis=0)
        score = np.abs(X.T @ (left / np.linalg.norm(left, axis=0))).max(axis=1)
        want = set(np.argsort(-score)[:10].tolist())
        for point in ensemble.points:
            at = np.flatnonzero(point.folds == f)
            if len(at):
                assert point.q.s[at[0]].all()
                assert set(batch.candidates[f][point.columns[at[0]]].tolist()) == want


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("absent", [False, True])
def test_the_posterior_over_all_candidates_is_that_over_the_chosen_ones(task, absent):
    """Variances of 0 for the other candidates change no moment."""
    _, _, _data, batch = case_of(task, absent)
    ensemble = fit_ensemble(batch, members=("screened_10",))
    for every in (False, True):
        points = list(ensemble.posteriors(ensemble.weights, *batch.designs(), every=every))
        assert len(points) == len(ensemble.points)
        for j, folds, q in points:
            assert q.s.shape[2] == (sum(SIZES) if every else 10)
            q.refresh()
            mean, var = q.moments()
            np.testing.assert_allclose(mean, ensemble.mean[j, folds], rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(var, ensemble.var[j, folds], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("task", TASKS)
def test_the_order_of_columns_changes_nothing(task):
    _, _, _data, batch = case_of(task)
    likelihood = batch.likelihood()
    design = batch.candidate_design()
    left = residual(likelihood.T, likelihood.weight, logistic=task != "regression")
    turned = np.tile(np.arange(sum(SIZES))[::-1], (len(batch), 1))
    found = [fit_strongest(d, likelihood, left, 10) for d in (design, design.reordered(turned))]
    for one, two in zip(*(member.points for member in found), strict=True):
        np.testing.assert_allclose(two.q.s, one.q.s, rtol=1e-6)
        np.testing.assert_array_equal(sum(SIZES) - 1 - two.columns, one.columns)


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("absent", [False, True])
@pytest.mark.parametrize("size", [12, 20])
def test_the_start_changes_nothing(task, absent, size, constants):
    """The fixed point is the same from the smaller member and from the uninformed start."""
    constants(SCREENED_TOLERANCE=1e-8)
    _, _, _data, batch = case_of(task, absent)
    likelihood, design = batch.likelihood(), batch.candidate_design()
    left = residual(likelihood.T, likelihood.weight, logistic=task != "regression")
    given = design, likelihood, left
    smaller = fit_strongest(*given, 5)
    one, two = (fit_strongest(*given, size, start).variances for start in (None, smaller))
    share = one / one.sum(axis=-1, keepdims=True)
    # A tenth of the tolerance that counts as converged.
    np.testing.assert_allclose(share * two, share * one, rtol=1e-2, atol=1e-6)


def test_columns_that_pad_come_last():
    X1 = np.ones((1, 4, 4))
    design = ColumnDesign(X1, np.array([[1, 0, 1]]), np.array([4.0]), 1)
    assert marginal_associations(design, np.ones((1, 1, 4)))[0][0, 0] == 1


@pytest.mark.parametrize(("n_features", "n_outputs"), [(400, 1), (30, 1), (200, 3)])
@pytest.mark.parametrize("size", [10, 30])
def test_associations_of_noise_are_those_of_chance(n_features, n_outputs, size):
    """What is kept of a variance is close to 0 without associations, and close to 1 with strong."""
    rng = np.random.default_rng(0)
    n, F = 150, 40
    X1 = rng.standard_normal((F, n, 1 + n_features))
    owner = np.zeros((F, n_features), dtype=int)
    design = ColumnDesign(X1, owner, np.full(F, float(n)), 1)
    noise = rng.standard_normal((F, n_outputs, n))

    def share():
        _, squares = marginal_associations(design, noise)
        return share_beyond_chance(squares, size, n_features * n_outputs)

    kept = share()
    assert kept.min() >= LEAST
    assert kept.mean() < 0.12
    X1[:, :, 1 : 1 + size] += noise[:, 0, :, None]  # a cause that these columns share
    X1 /= X1.std(axis=1, keepdims=True)
    assert share().min() > 0.8


def test_a_screened_member_alone_has_all_features_where_there_are_few():
    sim = make_multiview(60, {"a": 3, "b": 4}, logit_sd=6, random_state=0)
    model = BaldurClassifier(members=tuple(SCREENED)).fit(sim.data, sim.target)
    assert list(model.stacking_weights_) == ["screened_10"]


def test_people_without_a_view_count_neither_for_nor_against_its_features():
    """The associations of a view are those of the people who have it."""
    rng = np.random.default_rng(0)
    few, n = 15, 40
    X1 = np.ones((1, n, 9))
    X1[0, :, 1:] = rng.standard_normal((n, 8))
    owner = np.repeat([[0, 1]], 4, axis=1)
    absent = np.zeros((1, n, 2))
    absent[0, few:, 1] = 1.0
    X1[0, few:, 1:][:, owner[0] == 1] = 0.0
    design = ColumnDesign(X1, owner, np.array([float(n)]), 2, absent=absent)
    left = rng.standard_normal((1, 2, n))
    whole = marginal_associations(design, left)
    part = ColumnDesign(X1[:, :few], owner, np.array([float(few)]), 2)
    alone = marginal_associations(part, left[:, :, :few])
    for column in np.flatnonzero(owner[0] == 1):
        values = [squares[0, order[0] == column] for order, squares in (whole, alone)]
        np.testing.assert_allclose(values[0], values[1], rtol=1e-12)


def test_inclusion_is_the_weight_of_the_members_that_have_the_feature():
    sim = make_multiview(80, {"a": 4, "b": 30}, logit_sd=6, random_state=0)
    model = BaldurClassifier(members=("screened_10",)).fit(sim.data, sim.target)
    found = np.concatenate(list(model.inclusion_probability_.values()))
    assert sorted(found.tolist()) == [0.0] * 24 + [1.0] * 10
    both = BaldurClassifier(members=("pooled", "screened_10")).fit(sim.data, sim.target)
    found = np.concatenate(list(both.inclusion_probability_.values()))
    assert np.isclose(found, 1.0).sum() == 10
    assert 0.0 < found.min() < 1.0


def test_kernels_without_zero_columns_are_the_literal_ones():
    rng = np.random.default_rng(0)
    X1 = rng.standard_normal((2, 5, 21))
    design = ColumnDesign(X1, np.zeros((2, 20), dtype=int), np.full(2, 5.0), 1)
    for share in (0.2, 0.9):
        s = rng.gamma(1.0, size=(2, 3, 20)) * (rng.random((2, 1, 20)) < share)
        X = X1[:, :, 1:]
        want = np.einsum("fnl,fcl,fml->fcnm", X, s, X) + design.intercept_var
        np.testing.assert_allclose(design.kernel(s), want, rtol=1e-6)


def test_smooth_patches_of_signal_are_averaged():
    """Where one cause changes many correlated voxels, the screened members count for most."""
    sim = make_adni_like(scale=0.004, random_state=0)
    model = BaldurClassifier().fit(sim.data[:400], sim.target[:400])
    weights = model.stacking_weights_
    assert sum(weights[name] for name in SCREENED) > 0.5 * sum(weights.values())
