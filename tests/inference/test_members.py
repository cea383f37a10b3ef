"""Members with one variance per view or for all: one code, one fixed point, integrated scales."""

import numpy as np
import pytest
from scipy.stats import halfnorm

from baldur.inference import members as members_module
from baldur.inference.features import Columns
from baldur.inference.gaussian import Gaussian
from baldur.inference.members import (
    POOLED_POINTS,
    PREDICTOR_SD,
    SCALE_DROP,
    SCALE_STEP,
    fit_by_view,
    fit_pooled,
    log_scale_prior,
    over_scales,
)
from baldur.inference.predictive import mixture_moments
from baldur.inference.reference import MEMBERS, fit_reference, members_for
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from inference.problems import (
    KINDS,
    as_candidates,
    everything,
    make_problem,
    plain_problem,
    target,
    two_views,
)


def moments(member):
    """<eta> and Var eta of the member on its rows."""
    return mixture_moments([q.moments() for q in member.points], member.weights)


def same(one, other, tolerance=1e-6):
    for got, want in zip(moments(one), moments(other), strict=True):
        np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


def no_absent(features, N):
    return np.zeros((N, features.n_views))


FITS = [fit_by_view, fit_pooled]


@pytest.mark.parametrize("kind", KINDS)
def test_one_view_is_pooled(kind):
    X, likelihood = plain_problem(kind)
    columns = Columns(X, np.zeros(12, dtype=int), 1)
    same(*[fit(columns, no_absent(columns, 60), likelihood) for fit in FITS], 1e-10)


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_scale_of_the_pooled_member_matters_little(kind):
    """The same integral from half a step and from two steps away."""
    X, likelihood = plain_problem(kind)
    columns, absent = two_views(X), np.zeros((60, 2))
    mean, var = moments(fit_pooled(columns, absent, likelihood))
    for away in (0.5 * SCALE_STEP, 2.0 * SCALE_STEP):
        s = np.full((1, 12), np.exp(away) / columns.scales().sum())
        q = Gaussian.start(columns, likelihood, s, absent)
        points, weights = over_scales(q, most=POOLED_POINTS)
        other, other_var = mixture_moments([q.moments() for q in points], weights)
        np.testing.assert_allclose(mean, other, atol=0.15 * mean.std())
        np.testing.assert_allclose(np.sqrt(var), np.sqrt(other_var), rtol=0.15)


def test_views_mean_nothing_to_the_pooled_member():
    """The same columns, in one view or in three."""
    X, likelihood = plain_problem()
    fits = [
        fit_pooled(features, no_absent(features, 60), likelihood)
        for features in (Columns(X, np.zeros(12, dtype=int), 1), Columns(X, np.arange(12) % 3, 3))
    ]
    same(*fits, 1e-10)


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("task", ["multiclass", "regression"])
def test_columns_and_grams_are_one(task, fit):
    problem, _, _ = make_problem(task, N=40, sizes=(5, 20), absent=True)
    absent = as_candidates(problem).absent
    fits = [
        fit(everything(problem, by_grams), absent, problem.likelihood) for by_grams in (False, True)
    ]
    assert len(fits[0].points) == len(fits[1].points)
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, atol=1e-5)
    same(*fits)


@pytest.mark.parametrize("kind", KINDS)
def test_variances_are_the_best_under_the_prior_of_the_scale(kind):
    """No other variance of a view has a higher bound - v/50, v the variance it gives eta."""
    X, likelihood = plain_problem(kind, N=80, L=10)
    columns = two_views(X, 4)
    member = fit_by_view(columns, no_absent(columns, 80), likelihood)
    assert member.converged
    scales = columns.scales()
    # The point at the learned variances themselves is the first of them.
    start = member.points[0]
    slab = np.array([[start.s[0, 0], start.s[0, -1]]])

    def value(by_view):
        q = start.with_variances(columns.spread(by_view))
        q.settle(max_iter=200, tol=1e-10)
        return (q.bound() - 0.5 * (by_view * scales).sum(axis=1) / PREDICTOR_SD**2)[0]

    best = value(slab)
    for move in [(1, 0), (0, 1)]:
        for step in (0.3, -0.3, 1.0, -1.0):
            assert value(slab * np.exp(step * np.array(move))) < best + 1e-3


def test_a_view_without_signal_has_little_part():
    X, likelihood = plain_problem(N=150, L=20)
    columns = two_views(X, 11)  # both features with an effect are in the first view
    member = fit_by_view(columns, no_absent(columns, 150), likelihood)
    signal = sum(w * q.signal() for w, q in zip(member.weights, member.points, strict=True))
    assert signal[1, 0] < 0.1 * signal[0, 0]


def test_each_output_has_its_own_variances():
    X, likelihood = plain_problem(C=2, N=80)
    T = likelihood.T.copy()
    T[:, 1] = (X[:, 11] + 0.2 * np.random.default_rng(0).standard_normal(80)) > 0
    likelihood = QuadratureLogistic(T, np.ones_like(T))
    columns = two_views(X)
    both = fit_by_view(columns, no_absent(columns, 80), likelihood, max_iter=400)
    for c in range(2):
        one = QuadratureLogistic(T[:, [c]], np.ones((80, 1)))
        alone = fit_by_view(columns, no_absent(columns, 80), one, max_iter=400)
        np.testing.assert_allclose(
            moments(both)[0][:, c], moments(alone)[0][:, 0], rtol=0.02, atol=0.02
        )


@pytest.mark.parametrize("fit", FITS)
@pytest.mark.parametrize("kind", [QuadratureLogistic, GaussianOutputs])
def test_units_of_the_columns_do_not_matter(kind, fit):
    """X times 10: variances are a hundredth, and nothing else changes."""
    X, likelihood = plain_problem(kind)
    one, ten = two_views(X), two_views(10.0 * X)
    absent = no_absent(one, 60)
    fits = [fit(features, absent, likelihood) for features in (one, ten)]
    same(*fits, 1e-7)
    np.testing.assert_allclose(fits[0].points[0].s, 100 * fits[1].points[0].s, rtol=1e-6)
    np.testing.assert_allclose(fits[0].weights, fits[1].weights, atol=1e-8)
    s = np.full((1, 12), 0.2)
    settled = [
        over_scales(Gaussian.start(features, likelihood, s / factor, absent))
        for features, factor in ((one, 1.0), (ten, 100.0))
    ]
    np.testing.assert_allclose(settled[0][1], settled[1][1], atol=1e-8)


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
    X, likelihood = plain_problem(kind, C=2, N=40)
    columns = two_views(X)
    q = Gaussian.start(columns, likelihood, np.full((2, 12), 0.3), no_absent(columns, 40))
    points, weights = over_scales(q)
    np.testing.assert_allclose(weights.sum(axis=0), 1.0, rtol=1e-12)
    assert len(points) == len(weights)
    logs = np.array(
        [p.evidence() + log_scale_prior(columns.predictor_variance(p.s)) for p in points]
    )
    want = np.exp(logs - logs.max(axis=0))
    want[want < np.exp(-SCALE_DROP)] = 0.0
    np.testing.assert_allclose(weights, want / want.sum(axis=0), rtol=1e-6, atol=1e-9)
    ratios = {round(float(np.log(p.s[0, 0] / 0.3)), 6) for p in points}
    assert len(ratios) == len(points)
    steps = np.array(sorted(ratios)) / SCALE_STEP
    np.testing.assert_allclose(steps, np.round(steps), atol=1e-6)  # whole steps of ln variance


def test_sharp_evidence_leaves_one_point():
    """Many weights, all well determined: their scale is known and one point stands for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 60))
    Y = X @ rng.normal(0, 0.3, (60, 1)) + 0.3 * rng.standard_normal((300, 1))
    columns = two_views(X)
    member = fit_by_view(columns, no_absent(columns, 300), GaussianOutputs(Y, np.ones_like(Y)))
    assert len(member.points) == 1
    np.testing.assert_array_equal(member.weights, [[1.0]])


def test_the_integral_over_scales_is_close_to_a_fine_one(monkeypatch):
    """Mean and variance of eta with points a whole step apart, against steps of a tenth."""
    X, likelihood = plain_problem(N=40)
    columns = two_views(X)
    q = Gaussian.start(columns, likelihood, np.full((1, 12), 0.3), no_absent(columns, 40))
    coarse = mixture_moments(*zip_moments(over_scales(q)))
    monkeypatch.setattr(members_module, "SCALE_STEP", 0.1)
    fine = mixture_moments(*zip_moments(over_scales(q, most=60, drop=6.0)))
    np.testing.assert_allclose(coarse[0], fine[0], atol=0.1)
    np.testing.assert_allclose(np.sqrt(coarse[1]), np.sqrt(fine[1]), rtol=0.1)


def zip_moments(found):
    points, weights = found
    return [q.moments() for q in points], weights


@pytest.mark.parametrize("fit", [fit_pooled, fit_by_view])
@pytest.mark.parametrize("kind", KINDS)
def test_weight_two_is_a_repeated_sample(kind, fit):
    """The repeated rows have the mean squares of all rows, which do not look at weights."""
    X, likelihood = plain_problem(kind, N=40)
    T, twice = target(likelihood), np.concatenate([X, X])
    weight = np.repeat([1.0, 2.0], 40)[:, None]
    found = []
    for rows, weights in ((np.arange(80), weight), (np.append(np.arange(80), np.arange(40)), None)):
        Y = np.concatenate([T, T])[rows]
        made = kind(Y, np.ones_like(Y) if weights is None else weights)
        columns = two_views(twice[rows])
        member = fit(columns, no_absent(columns, len(rows)), made)
        found.append([part[:80] for part in moments(member)])
    np.testing.assert_allclose(found[0], found[1], rtol=1e-6, atol=1e-8)


# -- which members are fitted -------------------------------------------------------------------


@pytest.mark.parametrize("chosen", [("pooled",), ("per_view", "spike_slab"), MEMBERS[::-1]])
def test_a_chosen_member_is_the_same_as_among_all(chosen):
    problem, _, _ = make_problem(N=40, sizes=(4, 10))
    rows, data = np.arange(40), as_candidates(problem)
    every = fit_reference(data, rows, problem.likelihood)
    some = fit_reference(data, rows, problem.likelihood, chosen=chosen)
    assert list(every.members) == list(MEMBERS)
    assert list(some.members) == [name for name in MEMBERS if name in chosen]
    for name, member in some.members.items():
        np.testing.assert_allclose(moments(member), moments(every.members[name]), rtol=1e-10)


def test_the_wider_spike_and_slab_alone_ends_close_to_where_it_does_among_all():
    """Without the narrower one it has no start, and finds nearly the same fixed point."""
    problem, _, _ = make_problem(N=40, sizes=(4, 10))
    rows, data, name = np.arange(40), as_candidates(problem), "spike_slab_wide"
    every = fit_reference(data, rows, problem.likelihood).members[name]
    alone = fit_reference(data, rows, problem.likelihood, chosen=[name]).members[name]
    assert np.corrcoef(moments(alone)[0][:, 0], moments(every)[0][:, 0])[0, 1] > 0.99


def test_with_one_view_per_view_is_pooled():
    assert members_for(MEMBERS, 1) == ["spike_slab", "spike_slab_wide", "pooled"]
    assert members_for(("pooled", "per_view"), 2) == ["per_view", "pooled"]
    assert members_for(("per_view",), 1) == ["per_view"]
    problem, _, _ = make_problem(N=40, sizes=(12,))
    made = [
        fit_reference(as_candidates(problem), np.arange(40), problem.likelihood, chosen=[name])
        for name in ("per_view", "pooled")
    ]
    one, two = (next(iter(reference.members.values())) for reference in made)
    np.testing.assert_array_equal(moments(one), moments(two))
