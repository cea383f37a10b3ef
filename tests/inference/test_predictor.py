"""The fitted predictor: every form of a Gaussian over weights is the literal one."""

import pickle

import numpy as np
import pytest

from baldur.inference.design import GramDesign, gather
from baldur.inference.predictor import (
    Calibration,
    KernelGaussian,
    Predictor,
    WeightGaussian,
    mean_squares,
    pool,
    squared_lengths,
)
from baldur.model.likelihood import Sites
from baldur.model.posterior import INTERCEPT_VAR, sample_posterior, weighted_gram, with_ones
from model.problems import make_views

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
    index, size = made.count_joint()
    assert [c.tolist() for c in joint.index] == [c.tolist() for c in index]
    assert size == len(made.weights) * K * joint.mean.shape[-1] ** 2
    joint_mean, joint_var = joint.moments(rows)
    close(joint_mean[0].T, got_mean)
    close(joint_var[0].T + lacking, got_var, 1e-7)
    # Coefficients are its means and standard deviations.
    coef, std, b = made.coefficients()
    close(b, mean[:, 0])
    close(np.hstack(coef), mean[:, 1:])
    close(np.hstack(std), np.sqrt(np.einsum("kdd->kd", cov)[:, 1:]), 1e-6)
    at = np.concatenate([np.flatnonzero(np.isin(E, c)) + e for E, c, e in
                         zip(EVERY, index, (0, SIZES[0]), strict=True)])  # fmt: skip
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
