"""The fitted predictor: every form of a Gaussian over weights is the literal one."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.core.state import Sizes, read_state, write_state
from baldur.inference.design import GramDesign, gather
from baldur.inference.fit import factor_counts, select_factor_count
from baldur.inference.predictor import (
    Calibration,
    KernelGaussian,
    Predictor,
    SharedFactors,
    WeightGaussian,
    factor_moments,
    mean_squares,
    pool,
    principal_directions,
    share_factors,
    squared_lengths,
)
from baldur.model.likelihood import Sites
from baldur.model.posterior import INTERCEPT_VAR, sample_posterior, weighted_gram, with_ones
from inference.problems import make_views

N, SIZES, J, K = 20, (4, 9), 3, 2
WIDTHS = list(SIZES)
INDEX = [np.array([0, 2]), np.array([1, 4, 5, 8])]
EVERY = [np.arange(D) for D in SIZES]


def close(got, want, tolerance=1e-8):
    np.testing.assert_allclose(got, want, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def views():
    """Views of 30 rows; the last ten are new, and some of them lack the second view."""
    return make_views(N + 10, SIZES, absent=True)


def train(views):
    return [view.take_rows(np.arange(N)) for view in views]


def new(views):
    return [view.take_rows(np.arange(N, N + 10)) for view in views]


def sites(seed):
    rng = np.random.default_rng(seed)
    return Sites(rng.uniform(0.05, 0.25, (J, K, N)), rng.normal(0, 0.4, (J, K, N)))


def literal(X, s, at):
    """Mean (J, K, 1 + L) and covariance of (b, w) under variances s (J, K, L)."""
    X1 = with_ones(X)
    mean, cov = np.empty((J, K, X1.shape[1])), np.empty((J, K, X1.shape[1], X1.shape[1]))
    for j, k in np.ndindex(J, K):
        prior = np.concatenate([[INTERCEPT_VAR], s[j, k]])
        cov[j, k] = np.linalg.inv(np.diag(1 / prior) + (X1.T * at.h[j, k]) @ X1)
        mean[j, k] = cov[j, k] @ X1.T @ at.j[j, k]
    return mean, cov


def by_columns(views):
    """Gaussians of some columns through the training rows, and the literal ones."""
    rng = np.random.default_rng(0)
    cells, at = gather(train(views), INDEX), sites(1)
    s = rng.uniform(0.05, 0.6, (J, K, cells.shape[1]))
    q = sample_posterior(weighted_gram(np.stack([cells] * J), s) + INTERCEPT_VAR, *at)
    block = KernelGaussian(q.alpha, q.half, s, INTERCEPT_VAR, INDEX, cells, None)
    return block, INDEX, literal(cells, s, at)


def by_views(views):
    """Gaussians of whole views through the training rows, and the literal ones."""
    rng = np.random.default_rng(2)
    at = sites(3)
    s = rng.uniform(0.05, 0.6, (J, K, 2))
    grams = np.stack([view.weighted_gram() for view in train(views)])
    design = GramDesign(np.stack([grams] * J), np.full(J, float(N)))
    q = design.posterior(s, at, None)
    block = KernelGaussian(q.alpha, q.half, s, INTERCEPT_VAR, None, None, train(views))
    return block, EVERY, literal(gather(train(views), EVERY), np.repeat(s, SIZES, axis=2), at)


def by_weights(views):
    """Gaussians known by mean and covariance."""
    _, index, (mean, cov) = by_columns(views)
    return WeightGaussian(index, mean, cov), index, (mean, cov)


FORMS = {"weights": by_weights, "columns": by_columns, "views": by_views}


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_the_literal_gaussian(views, form):
    block, index, (mean, cov) = FORMS[form](views)
    X1 = with_ones(gather(new(views), index))
    got_mean, got_var = block.moments(new(views))
    close(got_mean, mean @ X1.T)
    close(got_var, np.einsum("nd,jkde,ne->jkn", X1, cov, X1), 1e-7)
    entering = block.entering(WIDTHS)
    assert [columns.tolist() for columns in entering] == [columns.tolist() for columns in index]
    for got, want in zip(block.joint(WIDTHS), (mean, cov), strict=True):
        close(got, want, 1e-7)


def predictor(views, forms=tuple(FORMS), calibrated=True, **options):
    """A predictor of several blocks, and all literal Gaussians on all features."""
    rng = np.random.default_rng(5)
    blocks, means, covs = [], [], []
    edges = np.concatenate([[0], np.cumsum(SIZES)])
    D = 1 + sum(SIZES)
    for form in forms:
        block, index, (mean, cov) = FORMS[form](views)
        blocks.append(block)
        at = np.concatenate([[0], *(1 + edges[m] + c for m, c in enumerate(index))]).astype(int)
        whole, spread = np.zeros((J, K, D)), np.zeros((J, K, D, D))
        whole[..., at], spread[..., at[:, None], at] = mean, cov
        means.append(whole)
        covs.append(spread)
    weights = rng.dirichlet(np.ones(J * len(forms)), K).T
    calibration = None
    if calibrated:
        calibration = Calibration(
            rng.standard_normal(K), 1.4, 0.05, np.array([0.9, 0.7]), np.array([1.1, 0.8])
        )
    signal = rng.uniform(0.1, 1.0, (2, K))
    made = Predictor(
        blocks, weights, WIDTHS, np.zeros(K), signal, signal, 1.5 * signal, calibration, **options
    )
    return made, np.concatenate(means), np.concatenate(covs)


def literal_pool(made, means, covs):
    """Mean (K, D) and covariance of the pooled and calibrated weights."""
    out_mean, out_cov = [], []
    for k in range(K):
        w = made.weights[:, k]
        centre = w @ means[:, k]
        away = means[:, k] - centre
        cov = np.einsum("j,jde->de", w, covs[:, k]) + (away.T * w) @ away
        at = made.calibration
        if at is not None:
            base = np.zeros_like(centre)
            base[0] = at.base[k]
            sloped = at.slope * (centre - base)
            cov = at.spread[k] ** 2 * (cov + at.slope_var * np.outer(sloped, sloped))
            centre = at.shrink[k] * (base + sloped)
        out_mean.append(centre)
        out_cov.append(cov)
    return np.array(out_mean), np.array(out_cov)


CASES = [("weights",), ("columns",), ("views",), ("columns", "views"), tuple(FORMS)]


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("forms", CASES, ids=" and ".join)
def test_moments_joint_and_coefficients_are_one_gaussian(views, forms, calibrated):
    made, means, covs = predictor(views, forms, calibrated)
    mean, cov = literal_pool(made, means, covs)
    rows = new(views)
    absent = np.stack([view.absent for view in rows], axis=1)
    assert absent.any()
    X1 = with_ones(gather(rows, EVERY))
    lacking = absent @ made.missing_variance
    got_mean, got_var = made.moments(rows)
    close(got_mean, X1 @ mean.T)
    close(got_var, np.einsum("nd,kde,ne->nk", X1, cov, X1) + lacking, 1e-7)
    # The joint Gaussian predicts the same.
    joint = made.joint()
    assert len(joint.mean) == 1
    assert [c.tolist() for c in joint.index] == [c.tolist() for c in made.joint_index()]
    joint_mean, joint_var = joint.moments(rows)
    close(joint_mean[0].T, got_mean)
    close(joint_var[0].T + lacking, got_var, 1e-7)
    # Coefficients are its means and standard deviations.
    coef, std, b = made.coefficients()
    close(b, mean[:, 0])
    close(np.hstack(coef), mean[:, 1:])
    close(np.hstack(std), np.sqrt(np.einsum("kdd->kd", cov)[:, 1:]), 1e-6)
    at = np.concatenate([np.flatnonzero(np.isin(E, c)) + e for E, c, e in
                         zip(EVERY, joint.index, (0, SIZES[0]), strict=True)])  # fmt: skip
    close(joint.mean[0][:, 1:], np.hstack(coef)[:, at])
    close(np.sqrt(np.einsum("kdd->kd", joint.cov[0])[:, 1:]), np.hstack(std)[:, at], 1e-6)
    outside = np.setdiff1d(np.arange(sum(SIZES)), at)
    assert not np.hstack(coef)[:, outside].any()
    assert not np.hstack(std)[:, outside].any()


def test_a_pool_of_one_block_is_that_block():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((1, K, 5, 8))
    one = WeightGaussian([np.arange(4)], rng.standard_normal((1, K, 5)), A @ A.swapaxes(-1, -2))
    same = pool(one, np.ones((1, K)), None)
    close(same.mean, one.mean)
    close(same.cov, one.cov)


def test_order_of_rows_and_blocks_does_not_matter(views):
    made, _, _ = predictor(views)
    rows = new(views)
    mean, var = made.moments(rows)
    order = np.random.default_rng(0).permutation(10)
    again = made.moments([view.take_rows(order) for view in rows])
    close(again[0], mean[order], 1e-12)
    close(again[1], var[order], 1e-12)
    turned, *_ = predictor(views, tuple(FORMS)[::-1])
    place = np.arange(3 * J).reshape(3, J)[::-1].ravel()
    turned.weights = made.weights[place]
    close(turned.moments(rows)[0], mean, 1e-10)
    close(turned.moments(rows)[1], var, 1e-10)


def test_what_holds_training_rows_says_so(views):
    assert not predictor(views, ("weights",))[0].holds_training_rows
    for forms in (("columns",), ("weights", "views")):
        assert predictor(views, forms)[0].holds_training_rows


def test_predictors_survive_pickling(views):
    made, _, _ = predictor(views)
    copy = pickle.loads(pickle.dumps(made))
    for got, want in zip(copy.moments(new(views)), made.moments(new(views)), strict=True):
        np.testing.assert_array_equal(got, want)


def test_mean_squares_are_those_of_the_rows_that_have_the_view():
    rng = np.random.default_rng(0)
    parts = rng.standard_normal((2, 3, 20))
    close(mean_squares(parts, None), (parts**2).mean(axis=2))
    absent = np.zeros((20, 2))
    absent[::3, 1] = 1.0
    found = mean_squares(parts, absent)
    close(found[0], (parts[0] ** 2).mean(axis=1))
    close(found[1], (parts[1][:, absent[:, 1] == 0] ** 2).mean(axis=1))


def test_squared_lengths_are_literal():
    (view,) = make_views(600, (5,))
    close(squared_lengths(view), (view.dense() ** 2).sum(axis=1))


# -- shared factors: projections of the linear predictors, and how many of them predict best ------


C = 4


def orthonormal(K, seed=0):
    return np.linalg.qr(np.random.default_rng(seed).normal(size=(C, K)))[0].T


def predictor_of(views, seed=0):
    """A Gaussian over the weights of all features, one per output."""
    rng = np.random.default_rng(seed)
    index = [np.arange(view.shape[1]) for view in views]
    L = 1 + sum(map(len, index))
    A = rng.normal(size=(C, L, L))
    block = WeightGaussian(index, rng.normal(size=(1, C, L)), (A @ A.swapaxes(1, 2) / L)[None])
    widths = [view.shape[1] for view in views]
    zeros = np.zeros((len(views), C))
    return Predictor([block], np.ones((1, C)), widths, np.zeros(C), zeros, zeros, zeros)


def test_directions_are_those_of_a_singular_value_decomposition():
    rng = np.random.default_rng(0)
    eta = rng.normal(size=(3, C, 20)) * np.array([3.0, 2.0, 1.0, 0.5])[:, None]
    counted = np.ones((3, 20))
    counted[1, 15:] = 0.0
    centre, directions = principal_directions(eta, counted)
    for f, n in enumerate((20, 15, 20)):
        rows = eta[f, :, :n].T
        assert_allclose(centre[f], rows.mean(axis=0))
        right = np.linalg.svd(rows - rows.mean(axis=0))[2]
        assert_allclose(np.abs(directions[f]), np.abs(right), atol=1e-8)
        largest = np.abs(directions[f]).argmax(axis=1)
        assert (directions[f][np.arange(C), largest] > 0).all()


@pytest.mark.parametrize(
    ("means", "noise", "place"),
    [
        ([1.0, 0.5, 0.5 - 1e-3, 0.6], 0.1, 1),  # within one standard error of the best
        ([1.0, 0.5, 0.3, 0.6], 0.1, 2),  # the third factor is needed
        ([1.0, 0.5, 0.5, 0.5 - 1e-3], 0.1, 3),  # one factor per output predicts best
        ([0.5, 0.5, 0.5, 0.6], 0.1, 0),
    ],
)
def test_the_fewest_factors_within_a_standard_error_are_selected(means, noise, place):
    rng = np.random.default_rng(0)
    wiggle = rng.normal(size=(4, 200))
    wiggle = (wiggle - wiggle.mean(axis=1, keepdims=True)) * noise
    losses = np.array(means)[:, None] + wiggle
    assert select_factor_count(losses, np.ones(200)) == place
    assert select_factor_count(losses[:, ::-1], np.full(200, 3.0)) == place


def test_moments_of_each_number_of_factors_are_those_of_the_projected_predictor():
    rng = np.random.default_rng(1)
    eta, mean = rng.normal(size=(2, C, 30)), rng.normal(size=(2, C, 7))
    var = rng.uniform(0.1, 1.0, size=(2, C, 7))
    centre, directions = principal_directions(eta, np.ones((2, 30)))
    counts = factor_counts(C)
    assert counts == [1, 2, 3, 4]
    means, variances = factor_moments(centre, directions, mean, var, counts, regression=False)
    for v, count in enumerate(counts):
        for f in range(2):
            factors = SharedFactors(directions[f, :count], centre[f])
            want = factors.project(mean[f].T, var[f].T)
            assert_allclose(means[v, f].T, want[0], atol=1e-12)
            assert_allclose(variances[v, f].T, want[1], atol=1e-12)
    assert_allclose(means[-1], mean, atol=1e-12)
    assert_allclose(variances[-1], var, atol=1e-12)
    in_regression = factor_moments(centre, directions, mean, var, counts, regression=True)[1]
    assert_allclose(in_regression, np.stack([var] * 4))


def test_projection_is_that_of_draws_of_the_weights():
    views = make_views(N=12)
    whole = predictor_of(views)
    shared = replace(whole, factors=SharedFactors(orthonormal(2), np.arange(float(C))))
    block = whole.blocks[0]
    rng = np.random.default_rng(2)
    draws = np.stack(
        [rng.multivariate_normal(block.mean[0, c], block.cov[0, c], size=40_000) for c in range(C)],
        axis=1,
    )
    X1 = np.column_stack([np.ones(12), *(view.columns(np.arange(view.shape[1])) for view in views)])
    eta = draws @ X1.T  # (R, C, n)
    centre, R = shared.factors.centre, shared.factors.R
    f = np.einsum("kc,rcn->rkn", R, eta - centre[:, None])
    back = centre[:, None] + np.einsum("kc,rkn->rcn", R, f)
    for got, want in ((shared.latent(views), f), (shared.moments(views), back)):
        assert_allclose(got[0], want.mean(axis=0).T, atol=0.06)
        assert_allclose(got[1], want.var(axis=0).T, rtol=0.06)
    # Weights, their spread and the joint Gaussian say the same.
    coefs, stds, b = shared.coefficients()
    assert_allclose(X1 @ np.concatenate([b[:, None], *coefs], axis=1).T, shared.moments(views)[0])
    joint = shared.joint()
    assert_allclose(joint.mean[0], np.concatenate([b[:, None], *coefs], axis=1), atol=1e-12)
    diagonal = np.sqrt(np.einsum("cll->cl", joint.cov[0]))[:, 1:]
    assert_allclose(diagonal, np.concatenate(stds, axis=1), rtol=1e-9)


def test_sharing_leaves_a_rank_and_parts_that_add_up():
    views = make_views(N=40, absent=True)
    whole = predictor_of(views)
    made = share_factors(whole, views, 2)
    eta = made.moments(views)[0]
    assert np.linalg.matrix_rank(eta - eta.mean(axis=0), tol=1e-8) == 2
    Z = made.latent(views)[0]
    assert_allclose(made.factors.centre + Z @ made.V.T, eta, atol=1e-10)
    coefs, _, _ = made.coefficients()
    for m, (view, coef) in enumerate(zip(views, coefs, strict=True)):
        part = view.columns(np.arange(view.shape[1]))[~view.absent] @ coef.T
        assert_allclose(made.output_signal[m], (part**2).mean(axis=0), rtol=1e-9)
        assert_allclose(made.signal[m], ((part @ made.V) ** 2).mean(axis=0), rtol=1e-9)


def test_as_many_factors_as_outputs_change_nothing():
    views = make_views(N=20)
    whole = predictor_of(views)
    assert share_factors(whole, views, C) is whole
    flat = predictor_of(views)
    flat.blocks[0].mean[..., 1:] = 0.0
    assert share_factors(flat, views, 1) is flat


def test_state_comes_back_and_forged_directions_are_refused():
    factors = SharedFactors(orthonormal(2), np.zeros(C))
    again = read_state(write_state(factors), SharedFactors, sizes=Sizes(C=C, K=2))
    assert_allclose(again.R, factors.R)
    forged = {**write_state(factors), "R": 2.0 * factors.R}
    with pytest.raises(Exception, match="orthonormal"):
        read_state(forged, SharedFactors, sizes=Sizes(C=C, K=2))


def simulate(seed, n_outputs, n_factors, n=260, noise=0.0):
    """Outputs driven by a few factors, each of three features; or by one factor each."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 14))
    W = np.zeros((14, n_factors))
    for k in range(n_factors):
        W[rng.choice(14, 3, replace=False), k] = rng.choice([-1.0, 1.0], 3)
    f = X @ W
    if n_factors < n_outputs:
        V = rng.normal(size=(n_outputs, n_factors))
        V /= np.linalg.norm(V, axis=1, keepdims=True)
    else:
        V = np.eye(n_outputs)
    eta = 1.5 * f @ V.T
    return MultiView({"a": X[:, :4], "b": X[:, 4:]}), f, eta + noise * rng.normal(size=eta.shape)


@pytest.mark.parametrize(("n_outputs", "n_factors"), [(4, 2), (3, 3)])
def test_the_number_of_factors_is_found(one_repeat, n_outputs, n_factors):
    X, f, eta = simulate(0, n_outputs, n_factors)
    y = (eta + np.random.default_rng(9).logistic(size=eta.shape) > 0).astype(int)
    model = BaldurClassifier(members=("pooled",)).fit(X, y)
    assert model.n_factors_ == n_factors
    path = model.factor_path_
    assert path["n_factors"].tolist() == list(range(1, n_outputs + 1))
    assert path["loss"].idxmin() == path["selected"].idxmax() == n_factors - 1
    assert path["loss_difference"].iloc[-1] == 0.0
    Z = model.transform(X)
    assert Z.shape == (len(y), n_factors)
    canonical = np.linalg.svd(
        np.linalg.qr(Z - Z.mean(axis=0))[0].T @ np.linalg.qr(f - f.mean(axis=0))[0]
    )[1]
    assert canonical.min() > 0.9
    assert model.loadings_.shape == (n_outputs, n_factors)
    assert len(model.factor_relevance_) == n_factors
    if n_factors == n_outputs:
        assert_allclose(model.loadings_, np.eye(n_outputs))


def test_several_targets_share_factors(one_repeat):
    X, _, y = simulate(1, 4, 2, noise=1.0)
    model = BaldurRegressor(members=("pooled",)).fit(X, y)
    assert model.n_factors_ == 2
    fixed = BaldurRegressor(members=("pooled",), n_factors=2).fit(X, y)
    assert_allclose(fixed.predict(X), model.predict(X))
    assert not len(fixed.factor_path_)


def test_one_output_has_one_factor_which_is_the_score(one_repeat):
    X, _, eta = simulate(2, 1, 1)
    model = BaldurClassifier(members=("pooled",)).fit(X, (eta[:, 0] > 0).astype(int))
    assert model.n_factors_ == 1
    assert not len(model.factor_path_)
    assert_allclose(model.loadings_, [[1.0]])
