"""Shared factors: projections of the linear predictors, and how many of them predict best."""

from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.core.state import Sizes, read_state, write_state
from baldur.inference.fit import ranks_to_score, select_rank
from baldur.inference.predictor import (
    Predictor,
    SharedFactors,
    WeightGaussian,
    principal_directions,
    rank_moments,
    share_factors,
)
from model.problems import make_views

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
    assert select_rank(losses, np.ones(200)) == place
    assert select_rank(losses[:, ::-1], np.full(200, 3.0)) == place


def test_moments_of_each_rank_are_those_of_the_projected_predictor():
    rng = np.random.default_rng(1)
    eta, mean = rng.normal(size=(2, C, 30)), rng.normal(size=(2, C, 7))
    var = rng.uniform(0.1, 1.0, size=(2, C, 7))
    centre, directions = principal_directions(eta, np.ones((2, 30)))
    ranks = ranks_to_score(C)
    assert ranks == [1, 2, 3, 4]
    means, variances = rank_moments(centre, directions, mean, var, ranks, noisy=False)
    for v, rank in enumerate(ranks):
        for f in range(2):
            factors = SharedFactors(directions[f, :rank], centre[f])
            want = factors.project(mean[f].T, var[f].T)
            assert_allclose(means[v, f].T, want[0], atol=1e-12)
            assert_allclose(variances[v, f].T, want[1], atol=1e-12)
    assert_allclose(means[-1], mean, atol=1e-12)
    assert_allclose(variances[-1], var, atol=1e-12)
    noisy = rank_moments(centre, directions, mean, var, ranks, noisy=True)[1]
    assert_allclose(noisy, np.stack([var] * 4))


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
