"""MV-PLS against scikit-learn's PLS on the concatenation and a literal multiblock loop."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression

from baldur.baselines import MVPLSClassifier
from baldur.baselines.mv_pls import fit_pls, pls_coefficients
from baldur.views import MultiView


def literal_multiblock(X, Y, K):
    """The training box: deflate every view and Y by the super-score."""
    X, Y = [x.copy() for x in X], Y - Y.mean(axis=0)
    scores, shares = [], []
    for _ in range(K):
        u = Y[:, 0]
        for _ in range(500):
            w = [x.T @ u for x in X]
            a = np.array([np.linalg.norm(p) for p in w])
            t = sum(x @ p for x, p in zip(X, w, strict=True)) / np.linalg.norm(a)
            c = Y.T @ t / np.linalg.norm(Y.T @ t)
            u = Y @ c
        scores.append(t)
        shares.append(a**2 / np.sum(a**2))
        X = [x - np.outer(t, x.T @ t / (t @ t)) for x in X]
        Y = Y - np.outer(t, Y.T @ t / (t @ t))
    return np.column_stack(scores), np.array(shares)


@pytest.mark.parametrize("targets", [1, 3])
def test_scores_and_coefficients_equal_pls_on_the_concatenation(views, targets):
    X, codes = views
    Y = np.eye(3)[codes][:, :targets]
    stacked = np.hstack(X)
    oracle = PLSRegression(4, scale=False, max_iter=20000, tol=1e-15).fit(stacked, Y)
    scores, duals, _ = fit_pls([x @ x.T for x in X], Y, 4)
    np.testing.assert_allclose(np.abs(scores), np.abs(oracle.x_scores_), atol=1e-6)
    coef_dual, _ = pls_coefficients(stacked @ stacked.T, Y, scores, duals)
    coef = np.vstack([x.T @ coef_dual for x in X])
    np.testing.assert_allclose(coef, oracle.coef_.T, atol=1e-6)


def test_shares_and_scores_equal_the_literal_loop(views):
    X, codes = views
    Y = np.eye(3)[codes]
    scores, shares = literal_multiblock(X, Y, 3)
    our_scores, _, our_shares = fit_pls([x @ x.T for x in X], Y, 3)
    np.testing.assert_allclose(np.abs(our_scores), np.abs(scores), atol=1e-7)
    np.testing.assert_allclose(our_shares, shares, atol=1e-7)


def test_stops_when_nothing_is_left(views):
    X, codes = views
    K, Y = X[0] @ X[0].T, np.eye(3)[codes]
    scores, duals, _ = fit_pls([K], Y, 20)  # four columns: four components
    assert scores.shape[1] == 4
    assert np.all(np.isfinite(pls_coefficients(K, Y, scores, duals)[0]))
    nothing, duals, shares = fit_pls([np.zeros_like(K)], Y, 3)
    assert (nothing.shape, shares.shape) == ((len(Y), 0), (0, 1))
    assert not pls_coefficients(K, Y, nothing, duals)[0].any()


def test_weights_are_unit_and_vip_averages_to_one(common):
    X, y = common(0, n=80, dims=(10, 40, 10))
    model = MVPLSClassifier(3).fit(X, y)
    for w in model.x_weights_.values():
        np.testing.assert_allclose(np.linalg.norm(w, axis=0), 1.0, atol=1e-9)
    vip = np.concatenate(list(model.vip_.values()))
    assert np.mean(vip**2) == pytest.approx(1.0)
    assert set(np.argsort(model.vip_["a"])[-3:]) == {0, 1, 2}


def test_unbalanced_classes_get_their_mean_back():
    """Pure noise with 80 % positives: nearly everything must be called positive."""
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((100, 5)), np.repeat([0, 1], [20, 80])
    new = rng.standard_normal((200, 5))
    assert np.mean(MVPLSClassifier(1).fit(X, y).predict(new)) > 0.9


def test_without_block_scaling_views_do_not_matter(views):
    X, codes = views
    y = codes > 0
    split = MVPLSClassifier(2, block_scale=False).fit(MultiView({"p": X[0], "q": X[1]}), y)
    joined = MVPLSClassifier(2, block_scale=False).fit(np.hstack(X[:2]), y)
    np.testing.assert_allclose(
        split.decision_function(MultiView({"p": X[0], "q": X[1]})),
        joined.decision_function(np.hstack(X[:2])),
        atol=1e-9,
    )


def test_default_components_can_tell_all_classes_apart():
    rng = np.random.default_rng(0)
    codes = np.arange(120) % 6
    X = np.hstack([4.0 * np.eye(6)[codes], rng.standard_normal((120, 10))])
    X[:, :6] += rng.standard_normal((120, 6))
    model = MVPLSClassifier().fit(X, codes)
    assert model.n_components_ == 5
    assert np.mean(model.predict(X) == codes) > 0.9
