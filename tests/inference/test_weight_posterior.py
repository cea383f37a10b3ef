"""Optimising the sites: the bound of every fold and output rises at every step, from any start."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from baldur.inference.weight_posterior import WeightPosterior, still_to_gain
from baldur.model.likelihood import (
    GaussianLikelihood,
    LogisticLikelihood,
    Precision,
    Sites,
    logistic_moments,
    take_folds,
)
from baldur.model.posterior import INTERCEPT_VAR
from inference.problems import KINDS, as_grams, in_views, plain_problem, two_views

F = 2


def posterior(
    kind, C=2, L=12, N=40, F=F, scale=1.0, absent=False, separable=False, by_grams=False, seed=0
):
    X, likelihood = plain_problem(kind, N, L, C, separable=separable, F=F, seed=seed)
    design = two_views(X)
    if absent:
        lacking = np.zeros((F, N, 2))
        lacking[:, ::5, 1] = 1.0
        X[:, ::5, L // 2 :] = 0.0
        design = replace(two_views(X), absent=lacking)
    s = np.full((F, C, L), scale)
    if by_grams:
        design, s = as_grams(design), np.full((F, C, 2), scale)
    return WeightPosterior.start(design, likelihood, s)


def bound(q):
    return q.evaluate()[0]


def hard_start(q, seed):
    """Sites far from any that a posterior would ask for."""
    rng = np.random.default_rng(seed)
    shape = q.sites.h.shape
    q.sites = Sites(np.exp(rng.normal(-2, 3, shape)), rng.normal(0, 10, shape))
    if q.noise is not None:
        rate = q.noise.rate * np.exp(rng.normal(0, 3, q.noise.rate.shape))
        q.noise = Precision(q.noise.shape, rate)


@pytest.mark.parametrize("start", ["base rate", "hard"])
@pytest.mark.parametrize("separable", [False, True])
@pytest.mark.parametrize("L", [12, 60], ids=["feature solver", "sample solver"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bound_of_every_fold_and_output_rises(kind, L, separable, start):
    for seed, scale in enumerate((0.01, 1.0, 30.0)):
        q = posterior(kind, L=L, scale=scale, absent=True, separable=separable)
        if start == "hard":
            hard_start(q, seed)
        q.refresh()
        value, target = q.evaluate()
        values = [value]
        for _ in range(20):
            value, target = q.step(value, target)
            values.append(value)
        values = np.array(values)
        assert np.isfinite(values).all()
        slack = 1e-9 * np.maximum(1.0, np.abs(values[:-1]))
        assert (np.diff(values, axis=0) >= -slack).all()
        np.testing.assert_allclose(bound(q), value, rtol=1e-10)


@pytest.mark.parametrize("start", ["base rate", "hard"])
@pytest.mark.parametrize("kind", KINDS)
def test_optimising_returns_the_bound_where_it_ends(kind, start):
    q = posterior(kind, absent=True, F=3)
    if start == "hard":
        hard_start(q, 1)
    q.refresh()
    first = bound(q)
    last = q.optimise_sites(max_iter=60)
    np.testing.assert_allclose(bound(q), last, rtol=1e-10)
    assert (last >= first - 1e-9 * np.abs(first)).all()
    # What is stored is the posterior at the stored sites.
    mean, kl = q.solution.mean.copy(), q.solution.kl.copy()
    q.refresh()
    np.testing.assert_allclose(q.solution.mean, mean, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(q.solution.kl, kl, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_start_ends_at_one_posterior(kind):
    ends = []
    for seed in range(3):
        q = posterior(kind, F=1)
        if seed:
            hard_start(q, seed)
        q.optimise_sites(max_iter=500, tol=1e-13)
        ends.append((bound(q), *q.moments()))
    for end in ends[1:]:
        for got, want in zip(end, ends[0], strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("start", ["base rate", "hard"])
@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
@pytest.mark.parametrize("kind", KINDS)
def test_folds_and_outputs_of_a_batch_are_fitted_as_if_alone(kind, start, by_grams):
    """Folds exactly so, because each stops by itself; outputs of a fold stop together."""
    q = posterior(kind, absent=True, F=3, by_grams=by_grams)
    if start == "hard":
        hard_start(q, 1)
    folds = [take_folds(q, np.array([f])) for f in range(3)]
    outputs = []
    for f, c in np.ndindex(3, 2):
        likelihood = kind(q.likelihood.T[[f]][:, [c]], q.likelihood.weight[[f]][:, [c]])
        at = np.array([f])
        one = WeightPosterior.start(take_folds(q.design, at), likelihood, q.s[[f]][:, [c]])
        one.sites = Sites(q.sites.h[[f]][:, [c]], q.sites.j[[f]][:, [c]])
        if q.noise is not None:
            one.noise = Precision(q.noise.shape[[f]][:, [c]], q.noise.rate[[f]][:, [c]])
        one.optimise_sites(max_iter=300, tol=1e-12)
        outputs.append((f, c, one))
    for f, one in enumerate(folds):
        # Also where folds stop at different iterations, or at the last one allowed.
        for max_iter, tol in ((3, 1e-6), (10, 3e-4)):
            whole, alone = take_folds(q, np.arange(3)), take_folds(one, np.array([0]))
            whole.optimise_sites(max_iter, tol)
            alone.optimise_sites(max_iter, tol)
            for got, want in zip(whole.moments(), alone.moments(), strict=True):
                np.testing.assert_allclose(got[f], want[0], rtol=1e-8, atol=1e-9)
            for got, want in zip(whole.sites, alone.sites, strict=True):
                np.testing.assert_allclose(got[f], want[0], rtol=1e-8, atol=1e-9)
    q.optimise_sites(max_iter=300, tol=1e-12)
    for f, c, one in outputs:
        assert bound(q)[f, c] == pytest.approx(bound(one)[0, 0], rel=1e-8)
        for got, want in zip(q.moments(), one.moments(), strict=True):
            np.testing.assert_allclose(got[f, c], want[0, 0], rtol=1e-5, atol=1e-6)


def test_grams_and_columns_end_alike():
    for kind in KINDS:
        ends = [posterior(kind, L=60, absent=True, by_grams=by_grams) for by_grams in (False, True)]
        for q in ends:
            q.refresh()
            q.refresh_extra()
            q.optimise_sites(max_iter=100, tol=1e-12)
        np.testing.assert_allclose(bound(ends[0]), bound(ends[1]), rtol=1e-8)
        for got, want in zip(ends[0].moments(), ends[1].moments(), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-5, atol=1e-7)


def test_the_end_is_the_best_gaussian():
    """The bound over means and covariances of q(w), maximised numerically: nothing is above it."""
    q = posterior(LogisticLikelihood, C=1, L=2, N=20, F=1)
    value = q.optimise_sites(max_iter=500, tol=1e-14)[0, 0]
    X1 = q.design.X1[0]
    prior = np.array([INTERCEPT_VAR, 1.0, 1.0])

    def loss(z):
        m, L = z[:3], np.zeros((3, 3))
        L[np.tril_indices(3)] = z[3:]
        L[np.diag_indices(3)] = np.exp(np.diag(L))
        S = L @ L.T
        mean, var = X1 @ m, np.einsum("nd,de,ne->n", X1, S, X1)
        fit, _ = q.likelihood.evaluate(mean[None, None], var[None, None], None)
        kl = (np.diag(S) + m**2) / prior - 1 + np.log(prior)
        return -(fit[0, 0] - 0.5 * (kl.sum() - 2 * np.log(np.diag(L)).sum()))

    best = minimize(loss, np.zeros(9), method="BFGS", options={"gtol": 1e-7, "maxiter": 500})
    assert value == pytest.approx(-best.fun, abs=1e-5)
    np.testing.assert_allclose(q.solution.w[0, 0], best.x[:3], atol=2e-3)


def test_gaussian_outputs_end_at_the_exact_posterior_of_their_noise():
    X, likelihood = plain_problem(GaussianLikelihood, 40, 5)
    design = in_views(X, np.zeros(5, dtype=int))
    q = WeightPosterior.start(design, likelihood, np.full((1, 1, 5), 0.5))
    q.optimise_sites(max_iter=200, tol=1e-14)
    psi = q.noise.mean[0, 0]
    X1 = design.X1[0]
    cov = np.linalg.inv(np.diag(1 / np.array([INTERCEPT_VAR, *[0.5] * 5])) + psi * X1.T @ X1)
    w = psi * cov @ X1.T @ likelihood.T[0, 0]
    np.testing.assert_allclose(q.solution.w[0, 0], w, rtol=1e-6)
    half = q.solution.half[0, 0]
    np.testing.assert_allclose(half.T @ half, cov, rtol=1e-6, atol=1e-10)
    assert likelihood.noise_at(*q.moments()).mean[0, 0] == pytest.approx(psi, rel=1e-5)


@pytest.mark.parametrize("L", [12, 60], ids=["feature solver", "sample solver"])
def test_rows_with_a_missing_view_are_uncertain_by_its_part(L):
    """By what it varies among the rows that have it, and by its weights: E[(x w)^2] over both."""
    q = posterior(LogisticLikelihood, L=L, absent=True)
    q.optimise_sites()
    assert not np.any(q.extra)
    q.refresh_extra()
    has, own = q.design.absent[0, :, 1] == 0, np.arange(L) >= L // 2
    parts = q.design.parts(q.solution, q.s)[:, 1]
    np.testing.assert_allclose(q.view_signal()[:, 1], (parts[..., has] ** 2).mean(axis=-1))
    for f, c in np.ndindex(F, 2):
        X1 = q.design.X1[f]
        prior = np.concatenate([[INTERCEPT_VAR], q.s[f, c]])
        cov = np.linalg.inv(np.diag(1 / prior) + (X1.T * q.sites.h[f, c]) @ X1)[1:, 1:]
        X = X1[:, 1:][:, own]
        spread = np.einsum("nd,de,ne->n", X, cov[np.ix_(own, own)], X)
        want = (parts[f, c, has] ** 2 + spread[has]).mean()
        np.testing.assert_allclose(q.extra[f, c, ~has], want, rtol=1e-6)
        np.testing.assert_allclose(q.missing_view_variance()[f, 1, c], want, rtol=1e-6)
        assert not q.extra[f, c, has].any()
    without = posterior(LogisticLikelihood, L=L)
    without.optimise_sites()
    without.refresh_extra()
    assert without.extra == 0.0


def test_other_variances_start_at_the_same_sites():
    q = posterior(LogisticLikelihood)
    q.optimise_sites()
    other = q.with_variances(0.5 * q.s)
    assert other.sites is q.sites
    assert other.solution is None
    sites = [part.copy() for part in q.sites]
    other.optimise_sites()
    np.testing.assert_array_equal(q.s, 2 * other.s)
    for got, want in zip(q.sites, sites, strict=True):  # the first is not touched
        np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("by_grams", [False, True], ids=["columns", "Grams"])
@pytest.mark.parametrize("factor", [0.3, 7.0])
def test_a_multiple_of_the_variances_is_fresh_variances(factor, by_grams):
    q = posterior(LogisticLikelihood, L=60, by_grams=by_grams)
    q.optimise_sites(5)
    scaled, fresh = q.rescaled(factor), q.with_variances(factor * q.s)
    kernel = q.kernel.copy()
    assert scaled.kernel is not None
    for one in (scaled, fresh):
        one.refresh()
    np.testing.assert_allclose(scaled.kernel, fresh.kernel, rtol=1e-10, atol=1e-10)
    np.testing.assert_allclose(scaled.solution.mean, fresh.solution.mean, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(q.kernel, kernel)


def test_some_folds_are_taken_and_put_back():
    q = posterior(GaussianLikelihood, F=3, absent=True)
    q.refresh()
    q.refresh_extra()
    at = np.array([2, 0])
    part = take_folds(q, at)
    for name in ("mean", "var", "kl"):
        np.testing.assert_array_equal(getattr(part.solution, name), getattr(q.solution, name)[at])
    np.testing.assert_array_equal(part.extra, q.extra[at])
    middle = [p[1].copy() for p in (*q.moments(), *q.sites, q.noise.rate)]
    part.optimise_sites(3)
    q.put(at, part)
    for got, want in zip((*q.moments(), *q.sites, q.noise.rate), middle, strict=True):
        np.testing.assert_array_equal(got[1], want)
    np.testing.assert_array_equal(q.solution.mean[at], part.solution.mean)
    np.testing.assert_array_equal(q.noise.rate[at], part.noise.rate)
    before = bound(q)
    q.refresh()
    np.testing.assert_allclose(bound(q), before, rtol=1e-10)


def test_the_evidence_of_one_row_is_exact():
    """With one row the cavity is the prior, so ln evidence = ln E[p(t)] whatever the site."""
    for x, t in ((0.7, 1.0), (2.0, 0.0), (-1.3, 1.0)):
        design = in_views(np.full((1, 1, 1), x), np.zeros(1, dtype=int), intercept_var=0.5)
        likelihood = LogisticLikelihood(np.full((1, 1, 1), t), np.ones((1, 1, 1)))
        q = WeightPosterior.start(design, likelihood, np.full((1, 1, 1), 1.7))
        q.optimise_sites()
        rate = logistic_moments(np.zeros(1), np.array([1.7 * x**2 + 0.5]))[0][0]
        exact = np.log(rate if t else 1.0 - rate)
        assert q.evidence()[0, 0] == pytest.approx(exact, abs=1e-8)
        assert bound(q)[0, 0] < q.evidence()[0, 0]


def test_a_row_of_weight_three_is_three_rows_in_the_evidence():
    X = np.random.default_rng(0).standard_normal((1, 12, 2))
    T = (np.arange(12) % 2 == 0).astype(float)[None, None]
    owner = np.zeros(2, dtype=int)
    found = []
    for times, weight in ((1, 3.0), (3, 1.0)):
        labels = np.repeat(T, times, axis=2)
        likelihood = LogisticLikelihood(labels, np.full(labels.shape, weight))
        design = in_views(np.repeat(X, times, axis=1), owner)
        q = WeightPosterior.start(design, likelihood, np.ones((1, 1, 2)))
        q.optimise_sites(tol=1e-12)
        found.append(q.evidence())
    np.testing.assert_allclose(*found, rtol=1e-8)


def test_the_evidence_is_closer_than_the_bound():
    """To the integral over two weights on a grid."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(25)
    t = (x + rng.logistic(size=25) > 0).astype(float)
    design = in_views(x[None, :, None], np.zeros(1, dtype=int), intercept_var=1.0)
    likelihood = LogisticLikelihood(t[None, None], np.ones((1, 1, 25)))
    q = WeightPosterior.start(design, likelihood, np.full((1, 1, 1), 4.0))
    q.optimise_sites(tol=1e-12)
    grid = np.linspace(-8, 8, 401)
    w, b = (part.ravel() for part in np.meshgrid(2.0 * grid, grid))
    eta = b[:, None] + w[:, None] * x
    logs = (t * eta - np.logaddexp(0, eta)).sum(axis=1) - 0.5 * (w**2 / 4.0 + b**2)
    area = 2.0 * (grid[1] - grid[0]) ** 2
    exact = np.log(np.exp(logs - logs.max()).sum() * area / (2 * np.pi * 2.0)) + logs.max()
    gaps = np.abs([q.evidence()[0, 0] - exact, bound(q)[0, 0] - exact])
    assert gaps[0] < 0.02
    assert gaps[0] < gaps[1]


@settings(max_examples=50, deadline=None)
@given(st.floats(1e-6, 1e3), st.floats(0.1, 0.499))
def test_gains_that_shrink_steadily_have_a_known_sum(gain, factor):
    left = still_to_gain(np.array([gain * factor]), np.array([gain]))[0]
    assert left == pytest.approx(gain * factor**2 / (1 - factor), rel=1e-9)


def test_gains_that_do_not_shrink_are_expected_again():
    gained, before = np.array([1.0, 0.5, 0.3]), np.array([1.0, 0.9, 0.0])
    np.testing.assert_array_equal(still_to_gain(gained, before), gained)


# -- outputs that share their site precisions -----------------------------------------------------


def shared(L, by_grams=False):
    q = posterior(LogisticLikelihood, C=3, L=L, by_grams=by_grams)
    likelihood = replace(q.likelihood, shared=True)
    return WeightPosterior.start(q.design, likelihood, q.s[:, :1])


@pytest.mark.parametrize(("L", "by_grams"), [(12, False), (60, False), (60, True)])
def test_means_of_shared_precisions_are_at_the_optimum_of_each_output(L, by_grams, constants):
    """There alpha = t - E[sigmoid], whatever the precision is."""
    constants(MEAN_STEPS=200, MEAN_TOLERANCE=1e-16)
    q = shared(L, by_grams)
    q.refresh()
    mean, var = q.moments()
    outputs = q.likelihood
    gradient = outputs.weight * (outputs.T - logistic_moments(mean, var)[0])
    X1 = shared(L).design.X1  # what is orthogonal to all columns moves no mean
    found, want = (np.matmul(part, X1) for part in (q.solution.alpha, gradient))
    np.testing.assert_allclose(found, want, atol=1e-5)
    assert q.solution.half.shape[1] == q.sites.h.shape[1] == 1


@pytest.mark.parametrize("L", [12, 60])
def test_own_precisions_keep_the_means_and_have_own_variances(L):
    q = shared(L)
    q.optimise_sites(max_iter=100, tol=1e-10)
    own = q.with_separate_precisions()
    assert own.with_separate_precisions() is own
    sd = np.sqrt(own.solution.var)
    assert (np.abs(own.solution.mean - q.solution.mean) / sd).max() < 0.1
    own.optimise_sites(max_iter=100, tol=1e-10)
    alone = WeightPosterior.start(own.design, own.likelihood, np.array(own.s))
    alone.optimise_sites(max_iter=100, tol=1e-10)
    np.testing.assert_allclose(own.solution.mean, alone.solution.mean, atol=1e-2)
    np.testing.assert_allclose(own.solution.var, alone.solution.var, rtol=1e-2)


def test_the_bound_of_all_outputs_rises_where_they_share_precisions():
    q = shared(12)
    q.refresh()
    value, target = q.evaluate()
    assert value.shape == (F, 1)
    for _ in range(10):
        after, target = q.step(value, target)
        assert (after >= value - 1e-9 * np.abs(value)).all()
        value = after
