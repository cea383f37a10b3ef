"""The fixed point of the spike-and-slab prior: exact on one feature, blind to order and batches."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import trapezoid
from scipy.special import expit
from scipy.stats import multivariate_normal, norm

from baldur.inference import spike_slab_member
from baldur.inference.dense_members import PREDICTOR_SD
from baldur.inference.design import ColumnDesign
from baldur.inference.spike_slab_member import (
    MIN_RHO,
    NONLOCAL,
    PRIOR_IN,
    PRIOR_OUT,
    SLAB_COUNT,
    cavity,
    fit_spike_slab,
    inclusion_probability,
    mean_matched_variance,
    slab_moments,
    wider_variance,
)
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood, Sites, take_folds
from baldur.model.posterior import INTERCEPT_VAR, with_ones
from inference.problems import KINDS, gathered, in_views, make_problem, plain_problem, unequal_folds


def fit(X, likelihood, owner=None, n_features=None, wide=False, **options):
    owner = np.zeros(X.shape[2], dtype=int) if owner is None else owner
    n_features = np.bincount(owner).astype(float) if n_features is None else n_features
    design = in_views(X, owner)
    return fit_spike_slab(design, n_features, likelihood, wide=wide, **options)


def weights(member, X):
    """Mean weights of the member, (F, C, L)."""
    q = member.points[0].q
    return q.s * np.matmul(q.solution.alpha, X)


@pytest.fixture
def patient(constants):
    """Stop at the fixed point itself, not when probabilities change little."""
    constants(TOLERANCE=1e-6)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("wide", [False, True])
def test_the_fixed_point_of_one_feature_is_exact(wide):
    """The whole iteration, with share, slab and noise learned, ends where the formulas do."""
    rng = np.random.default_rng(3)
    N = 40
    x = rng.standard_normal(N)
    y = 0.25 * x + rng.standard_normal(N)
    likelihood = GaussianLikelihood(y[None, None], np.ones((1, 1, N)))
    member = fit(x[None, :, None], likelihood, wide=wide, max_iter=2000)
    assert member.converged.all()
    found = member.spike_slab
    rho, pi, slab = found.rho[0, 0], found.pi[0, 0], found.slab[0, 0, 0]
    noise = np.eye(N) / member.points[0].q.noise.mean[0, 0] + INTERCEPT_VAR
    log_in, _, second = exact_slab_moments(x, y, noise, slab, NONLOCAL)
    gain = log_in - multivariate_normal.logpdf(y, np.zeros(N), noise)
    assert rho == pytest.approx(expit(np.log(pi / (1 - pi)) + gain), abs=5e-3)
    assert pi == pytest.approx((rho + PRIOR_IN) / (1 + PRIOR_IN + PRIOR_OUT), rel=1e-4)
    reach = slab * rho / PREDICTOR_SD**2
    assert slab == pytest.approx((rho * second + SLAB_COUNT) / (rho + SLAB_COUNT + reach), rel=1e-2)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_order_of_features_views_rows_and_outputs_does_not_matter(kind, wide):
    X, likelihood = plain_problem(kind, C=2)
    owner, n_features = np.repeat([0, 1], 6), np.array([6.0, 50.0])
    one = fit(X, likelihood, owner, n_features, wide)
    rng = np.random.default_rng(0)
    cols, rows = rng.permutation(12), rng.permutation(60)
    turned = kind(likelihood.T[:, ::-1][..., rows], likelihood.weight)
    Z = X[:, rows][..., cols]
    other = fit(Z, turned, 1 - owner[cols], n_features[::-1], wide)
    a, b = one.spike_slab, other.spike_slab
    np.testing.assert_allclose(b.rho, a.rho[:, cols], atol=1e-6)
    np.testing.assert_allclose(b.pi, a.pi[:, ::-1], rtol=1e-6)
    np.testing.assert_allclose(b.slab, a.slab[:, ::-1, ::-1], rtol=1e-6)
    np.testing.assert_allclose(weights(other, Z), weights(one, X)[:, ::-1][..., cols], atol=1e-6)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_folds_of_a_batch_are_fitted_as_if_alone(kind, wide):
    X, likelihood = plain_problem(kind, N=40, L=50, C=2, F=4)
    owner = np.repeat([0, 1], 25)
    whole = fit(X, likelihood, owner, wide=wide)
    for f in range(4):
        at = np.array([f])
        alone = fit(X[at], take_folds(likelihood, at), owner, wide=wide)
        for name in ("rho", "pi", "slab"):
            got, want = getattr(whole.spike_slab, name)[f], getattr(alone.spike_slab, name)[0]
            np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-9)
        for got, want in zip(whole.points[0].q.moments(), alone.points[0].q.moments(), strict=True):
            np.testing.assert_allclose(got[f], want[0], rtol=1e-7, atol=1e-8)
        assert whole.converged[f] == alone.converged[0]


def test_rows_and_columns_that_pad_change_nothing():
    """Folds with unequal rows and unequal candidates, and a view that some rows lack."""
    problem, _ = make_problem("multilabel", N=36, sizes=(4, 12), absent=True)
    folds = unequal_folds(36)
    data, batch = gathered(problem, folds)
    candidates = [np.arange(16), np.array([0, 1, 2, 5, 9, 15]), np.arange(0, 16, 2)]
    batch = type(batch).of(data, folds, candidates)

    def fitted(batch):
        return fit_spike_slab(
            batch.candidate_design(),
            np.array(problem.widths),
            batch.likelihood(),
            wide=False,
        )

    whole = fitted(batch)
    for f, fold in enumerate(folds):
        alone = fitted(type(batch).of(data, [fold], candidates[f : f + 1]))
        L, n = len(candidates[f]), len(fold[0])
        rho = whole.spike_slab.rho[f]
        np.testing.assert_allclose(rho[:L], alone.spike_slab.rho[0], rtol=1e-7, atol=1e-9)
        assert not rho[L:].any()
        np.testing.assert_allclose(whole.spike_slab.slab[f], alone.spike_slab.slab[0], rtol=1e-7)
        for got, want in zip(whole.points[0].q.moments(), alone.points[0].q.moments(), strict=True):
            np.testing.assert_allclose(got[f, :, :n], want[0], rtol=1e-7, atol=1e-8)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize(
    ("kind", "noise"),
    [(LogisticLikelihood, None), (GaussianLikelihood, 1.0), (GaussianLikelihood, 0.05)],
)
def test_inactive_columns_change_little(constants, kind, noise, wide):
    """With and without inactive columns the fixed point is the same to the tolerance of fits."""
    X, likelihood = plain_problem(kind, N=60, L=80)
    if noise is not None:
        Y = X[0, :, 0] - X[0, :, 40] + noise * np.random.default_rng(0).standard_normal(60)
        Y = (Y / Y.std())[None, None]
        likelihood = GaussianLikelihood(Y, np.ones_like(Y))
    some = fit(X, likelihood, wide=wide, max_iter=300)
    constants(NEGLIGIBLE=-np.inf)
    every = fit(X, likelihood, wide=wide, max_iter=300)
    np.testing.assert_allclose(some.spike_slab.rho, every.spike_slab.rho, atol=1e-2)
    np.testing.assert_allclose(weights(some, X), weights(every, X), atol=0.02)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_columns_left_out_of_the_feature_solver_change_little(constants, kind, wide):
    """The same where columns are fewer than rows, and some have no part in the posterior at all."""
    X, likelihood = plain_problem(kind, N=90, L=40)
    every = fit(X, likelihood, wide=wide, max_iter=300)
    constants(MANY_COLUMNS=4)
    some = fit(X, likelihood, wide=wide, max_iter=300)
    left_out = some.points[0].q.s == 0
    assert 0 < left_out.sum() < 40
    assert (every.spike_slab.rho[left_out[:, 0]] < 0.05).all()
    np.testing.assert_allclose(some.spike_slab.rho, every.spike_slab.rho, atol=1e-2)
    np.testing.assert_allclose(weights(some, X), weights(every, X), atol=0.02)


@pytest.mark.usefixtures("patient")
@pytest.mark.parametrize("wide", [False, True])
def test_variances_have_an_end_where_classes_separate(wide):
    """The prior of the s.d. of the linear predictor holds them; iterations do not matter."""
    X, likelihood = plain_problem(N=60, L=80, separable=True)
    some, more = (fit(X, likelihood, wide=wide, max_iter=count).spike_slab for count in (300, 600))
    np.testing.assert_allclose(more.slab, some.slab, rtol=0.1)
    np.testing.assert_allclose(more.rho, some.rho, atol=0.02)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_two_copies_share(kind, wide):
    """Two copies of a feature are equally probable, and together carry the weight of one."""
    X, likelihood = plain_problem(kind, N=100, L=12)
    double = np.concatenate([X, X[..., [0]]], axis=2)
    one, two = (fit(A, likelihood, wide=wide, max_iter=500) for A in (X, double))
    rho, w = two.spike_slab.rho[0], weights(two, double)[0, 0]
    assert rho[0] == pytest.approx(rho[12], rel=1e-6)
    assert w[0] == pytest.approx(w[12], rel=1e-6)
    assert w[0] + w[12] == pytest.approx(weights(one, X)[0, 0, 0], rel=0.25)


@pytest.mark.parametrize("kind", KINDS)
def test_features_screened_out_count_as_out(kind):
    """The share in is learned over all features of a view, not over the candidates."""
    X, likelihood = plain_problem(kind)
    found = {}
    for n in (12, 120, 1200):
        learned = fit(X, likelihood, n_features=np.array([float(n)]), max_iter=500).spike_slab
        share = (learned.rho.sum() + PRIOR_IN) / (n + PRIOR_IN + PRIOR_OUT)
        assert learned.pi[0, 0] == pytest.approx(share, rel=0.02)
        found[n] = learned
    noise = np.setdiff1d(np.arange(12), [0, 6])
    assert found[12].pi > found[120].pi > found[1200].pi
    means = [found[n].rho[0, noise].mean() for n in (12, 120, 1200)]
    assert means == sorted(means, reverse=True)
    assert found[12].rho[0, [0, 6]].min() > 0.5


def test_a_constant_column_stays_at_its_prior_and_harms_nothing():
    X, likelihood = plain_problem()
    X[..., 3] = 0.0
    member = fit(X, likelihood)
    learned = member.spike_slab
    assert learned.rho[0, 3] == pytest.approx(learned.pi[0, 0], rel=0.1)
    assert weights(member, X)[0, 0, 3] == 0.0


def test_the_record_of_a_fit():
    X, likelihood = plain_problem(C=2)
    member = fit(X, likelihood, np.repeat([0, 1], 6))
    last = member.history[-1]
    rho = member.spike_slab.rho[0]
    assert last["active_features"] == [int((rho[:6] > 0.5).sum()), int((rho[6:] > 0.5).sum())]
    assert last["expected_features"] == pytest.approx(rho.sum())
    assert last["n_factors"] == 2
    assert last["change"] < spike_slab_member.TOLERANCE
    short = fit(X, likelihood, max_iter=3)
    assert not short.converged.any()
    assert len(short.history) == 3


def test_the_wide_member_starts_where_the_other_ended():
    """It needs fewer iterations than from the uninformed start, and ends close by."""
    X, likelihood = plain_problem(N=60, L=40)
    narrow = fit(X, likelihood)
    near, far = fit(X, likelihood, wide=True, start=narrow), fit(X, likelihood, wide=True)
    assert len(near.history) <= len(far.history)
    assert narrow.spike_slab.rho is not near.spike_slab.rho
    eta = [member.points[0].q.moments()[0].ravel() for member in (near, far)]
    assert np.corrcoef(*eta)[0, 1] > 0.99


# -- The spike-and-slab prior of one weight: literal integrals, and the variances that replace it


rates = st.floats(1e-4, 1.0 - 1e-4)
positive = st.floats(1e-3, 1e2)
some = settings(max_examples=50, deadline=None)
LOBES = [0.0, 0.5, NONLOCAL]


def one(value):
    """One fold, one output, one column."""
    return np.array([[[value]]])


def columns(X):
    """Return a design of one fold and one view."""
    owner = np.zeros((1, X.shape[1]), dtype=int)
    return ColumnDesign(with_ones(X)[None], owner, np.array([float(len(X))]), 1)


def statistics(design, s, sites):
    q = design.posterior(s, sites, design.kernel(s))
    return design.statistics(q, sites.h)


@pytest.mark.parametrize("lobes", LOBES)
@pytest.mark.parametrize("m", [-2.5, -0.3, 0.05, 0.8, 4.0])
@pytest.mark.parametrize("V", [0.02, 0.5, 3.0])
@pytest.mark.parametrize("slab", [0.1, 1.0, 5.0])
def test_slab_moments_are_the_integral_over_spike_and_slab(m, V, slab, lobes):
    """P(in), <w> and <w^2> under a slab of two lobes or a point at zero, seen as m ~ N(w, V)."""
    pi, mu, sd = 0.15, np.sqrt(lobes * slab), np.sqrt((1 - lobes) * slab)
    w = np.linspace(-1, 1, 200_001) * max(12 * np.sqrt(slab), abs(m) + 12 * np.sqrt(V))
    density = 0.5 * (norm.pdf(w, mu, sd) + norm.pdf(w, -mu, sd)) * norm.pdf(m, w, np.sqrt(V))
    mass, first, second = (trapezoid(density * w**k, w) for k in range(3))
    out = norm.pdf(m, 0, np.sqrt(V))
    log_ratio, mean_in, second_in = slab_moments(one(m), one(V), one(slab), lobes)
    assert log_ratio[0, 0, 0] == pytest.approx(np.log(mass / out), rel=1e-8, abs=1e-9)
    assert mean_in[0, 0, 0] == pytest.approx(first / mass, rel=1e-8, abs=1e-10)
    assert second_in[0, 0, 0] == pytest.approx(second / mass, rel=1e-8)
    rho = inclusion_probability(log_ratio, np.array([[np.log(pi / (1 - pi))]]))
    literal = pi * mass / (pi * mass + (1 - pi) * out)
    assert rho[0, 0] == pytest.approx(literal, rel=1e-8)
    # The Gaussian prior of this variance gives the weight the mean of in and out together; two
    # lobes may push it away from zero, which no variance can, so nearly all of m is the most.
    matched = mean_matched_variance(rho, mean_in, one(m), one(V), one(slab))
    s = matched[0, 0, 0]
    mean = np.sign(m) * min(abs(literal * first / mass), 0.999 * abs(m))
    if s < 20 * slab:
        assert m * s / (V + s) == pytest.approx(mean, rel=1e-8, abs=1e-12)
    else:
        assert s == 20 * slab
        assert abs(m * s / (V + s)) <= abs(mean)
    # ... and this one lies half way, in ln s, to the variance of the weight before the data.
    between = wider_variance(matched, rho, one(slab))[0, 0, 0]
    assert between**2 == pytest.approx(s * rho[0, 0] * slab)


def test_two_lobes_have_the_moments_of_the_product_moment_prior():
    """w^2 N(w; 0, t): mean absolute value and variance decide how far apart the lobes are."""
    w = np.linspace(-15, 15, 200_001)
    density = w**2 * norm.pdf(w)
    ratio = trapezoid(density * np.abs(w), w) ** 2 / trapezoid(density * w**2, w)
    ratio /= trapezoid(density, w)
    mu, sd = np.sqrt(NONLOCAL), np.sqrt(1 - NONLOCAL)
    lobes = 0.5 * (norm.pdf(w, mu, sd) + norm.pdf(w, -mu, sd))
    assert trapezoid(lobes * w**2, w) == pytest.approx(1.0, rel=1e-9)
    assert trapezoid(lobes * np.abs(w), w) ** 2 == pytest.approx(ratio, abs=1e-3)


def test_no_lobes_are_the_normal_slab():
    rng = np.random.default_rng(0)
    mean, var = rng.standard_normal((3, 2, 5)), rng.uniform(0.1, 1, (3, 2, 5))
    slab = rng.uniform(0.2, 2, (3, 2, 5))
    kept = slab / (var + slab)
    log_ratio, mean_in, second_in = slab_moments(mean, var, slab, lobes=0.0)
    want = 0.5 * (mean**2 / var * kept + np.log1p(-kept))
    np.testing.assert_allclose(log_ratio, want, rtol=1e-10)
    np.testing.assert_allclose(mean_in, kept * mean, rtol=1e-10)
    np.testing.assert_allclose(second_in, (kept * mean) ** 2 + kept * var, rtol=1e-10)


@some
@given(rates, positive, positive, st.floats(-5, 5))
def test_variances_lie_between_out_and_in(rho, V, slab, m):
    """Under a normal slab: shrinking the mean to rho of it needs less than rho of the variance."""
    mean, var = one(m), one(V)
    _, mean_in, _ = slab_moments(mean, var, one(slab), lobes=0.0)
    by_mean = mean_matched_variance(np.array([[rho]]), mean_in, mean, var, one(slab))
    between = wider_variance(by_mean, np.array([[rho]]), one(slab))[0, 0, 0]
    by_mean = by_mean[0, 0, 0]
    assert 0.0 <= by_mean <= between * (1 + 1e-6)
    assert between <= rho * slab * (1 + 1e-6)


@some
@given(st.floats(-5, 5), positive, positive, st.floats(-12, 12), st.sampled_from(LOBES))
def test_probability_rises_with_evidence_and_prior(m, V, slab, odds, lobes):
    rho = [
        inclusion_probability(slab_moments(one(x), one(V), one(slab), lobes)[0], np.array([[o]]))[
            0, 0
        ]
        for x, o in ((m, odds), (1.5 * m, odds), (m, odds + 1.0))
    ]
    assert MIN_RHO <= rho[0] <= 1.0
    assert rho[1] >= rho[0] - 1e-12
    assert rho[2] >= rho[0] - 1e-12


def test_odds_of_several_outputs_add():
    rng = np.random.default_rng(0)
    shape = (2, 3, 4)  # folds, outputs, columns
    mean, var = rng.standard_normal(shape), rng.uniform(0.1, 1, shape)
    slab, prior = rng.uniform(0.2, 2, shape), rng.standard_normal((2, 4))
    want = prior.copy()
    for c in range(3):
        sd = np.sqrt(var[:, c] + slab[:, c])
        want = want + norm.logpdf(mean[:, c], 0, sd)
        want = want - norm.logpdf(mean[:, c], 0, np.sqrt(var[:, c]))
    found = inclusion_probability(slab_moments(mean, var, slab, lobes=0.0)[0], prior)
    np.testing.assert_allclose(found, expit(want), rtol=1e-10)


@pytest.mark.parametrize("L", [6, 40], ids=["feature solver", "sample solver"])
def test_cavity_is_the_leave_one_out_refit(L):
    rng = np.random.default_rng(0)
    N, C = 15, 2
    X = rng.standard_normal((N, L))
    s = np.exp(rng.normal(-2, 1, (1, C, L)))
    sites = Sites(rng.uniform(0.05, 0.25, (1, C, N)), rng.normal(0, 0.3, (1, C, N)))
    design = columns(X)
    assert design.uses_features == (L == 6)
    cavity_mean, cavity_var = cavity(s, *statistics(design, s, sites))
    for c in range(C):
        h, j = sites.h[0, c], sites.j[0, c]
        y, noise = j / h, np.diag(1 / h)
        for d in range(L):
            rest = np.arange(L) != d
            K = (X[:, rest] * s[0, c, rest]) @ X[:, rest].T + INTERCEPT_VAR + noise
            precision = X[:, d] @ np.linalg.solve(K, X[:, d])
            assert cavity_var[0, c, d] == pytest.approx(1 / precision, rel=1e-6)
            mean = X[:, d] @ np.linalg.solve(K, y) / precision
            assert cavity_mean[0, c, d] == pytest.approx(mean, rel=1e-6, abs=1e-8)


def exact_slab_moments(x, y, noise, slab, lobes):
    """ln p(y | in), <w | in> and <w^2 | in> of one feature, by exact Gaussian algebra per lobe."""
    mu, spread = np.sqrt(lobes * slab), (1 - lobes) * slab
    K = noise + spread * np.outer(x, x)
    Ki = np.linalg.inv(K)
    logs, means = [], []
    for centre in (mu, -mu):
        logs.append(np.log(0.5) + multivariate_normal.logpdf(y, centre * x, K))
        means.append(centre + spread * x @ Ki @ (y - centre * x))
    share = np.exp(logs - np.logaddexp(*logs))
    var = spread - spread**2 * x @ Ki @ x
    return np.logaddexp(*logs), share @ means, share @ np.square(means) + var


@pytest.mark.parametrize("lobes", LOBES)
@pytest.mark.parametrize("seed", range(5))
def test_one_feature_is_the_exact_spike_and_slab_posterior(seed, lobes):
    """Gaussian outputs of known noise: odds and moments have closed forms, wherever s stands."""
    rng = np.random.default_rng(seed)
    N, psi, slab, pi = 15, 1.7, 0.6, 0.2
    x = rng.standard_normal(N)
    y = 0.3 * x + rng.standard_normal(N) / np.sqrt(psi)
    noise = np.eye(N) / psi + INTERCEPT_VAR
    log_in, mean_in, second_in = exact_slab_moments(x, y, noise, slab, lobes)
    gain = log_in - multivariate_normal.logpdf(y, np.zeros(N), noise)
    exact = expit(np.log(pi / (1 - pi)) + gain)
    design = columns(x[:, None])
    sites = Sites(np.full((1, 1, N), psi), psi * y[None, None])
    for s in (0.01, 0.3, 2.0):
        mean, var = cavity(one(s), *statistics(design, one(s), sites))
        log_ratio, found_mean, found_second = slab_moments(mean, var, one(slab), lobes)
        rho = inclusion_probability(log_ratio, np.array([[np.log(pi / (1 - pi))]]))
        assert rho[0, 0] == pytest.approx(exact, rel=1e-6)
        assert found_mean[0, 0, 0] == pytest.approx(mean_in, rel=1e-6)
        assert found_second[0, 0, 0] == pytest.approx(second_in, rel=1e-6)
        by_mean = mean_matched_variance(rho, found_mean, mean, var, one(slab))
        q = design.posterior(by_mean, sites, design.kernel(by_mean))
        w, _ = design.weights(q, by_mean, sites.h)
        assert w[0, 0, 0] == pytest.approx(exact * mean_in, rel=1e-6)
