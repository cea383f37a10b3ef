"""The fixed point of the spike-and-slab prior: exact on one feature, blind to order and batches."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal

from baldur.inference import spike_slab_member
from baldur.inference.dense_members import PREDICTOR_SD
from baldur.inference.spike_slab_member import (
    NONLOCAL,
    PRIOR_IN,
    PRIOR_OUT,
    SLAB_COUNT,
    fit_spike_slab,
)
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood, take_folds
from baldur.model.posterior import INTERCEPT_VAR
from inference.problems import KINDS, gathered, in_views, make_problem, plain_problem, unequal_folds
from inference.test_spike_slab import exact_slab_moments


def fit(X, likelihood, owner=None, n_features=None, wide=False, **options):
    owner = np.zeros(X.shape[2], dtype=int) if owner is None else owner
    n_features = np.bincount(owner).astype(float) if n_features is None else n_features
    design = in_views(X, owner)
    return fit_spike_slab(design, None, n_features, likelihood, wide=wide, **options)


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
            batch.absent(),
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
