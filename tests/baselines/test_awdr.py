"""AWDR against its primal twin, its descent, and its neighbours against scikit-learn's."""

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from baldur.baselines import AWDRClassifier
from baldur.baselines.awdr import fit_awdr, neighbour_votes


def literal_awdr(X, Y, g, rounds):
    """The training box word for word on the concatenated columns."""
    V = len(X)
    stacked = np.hstack(X)
    width = [x.shape[1] for x in X]
    Xc = stacked - stacked.mean(axis=0)
    d, R = np.full(V, 1.0 / V), Y

    def ridge(R, d):
        penalty = np.diag(np.repeat(1.0 / d, width)) * g
        W = np.linalg.solve(Xc.T @ Xc + penalty, Xc.T @ R)
        return W, (R - stacked @ W).mean(axis=0)

    W, b = ridge(R, d)
    for _ in range(rounds):
        R = Y + Y * np.maximum(0, Y * (stacked @ W + b - Y))
        norms = np.array([np.linalg.norm(p) for p in np.split(W, np.cumsum(width)[:-1])])
        d = np.maximum(norms / norms.sum(), 1e-12)
        W, b = ridge(R, d)
    return W, b, d


def test_dual_equals_primal(views):
    X, codes = views
    Y = 2 * np.eye(3)[codes] - 1
    W, _, d = literal_awdr(X, Y, 2.0, rounds=5)
    dual, _, weights, _ = fit_awdr([x @ x.T for x in X], Y, 2.0, max_iter=5, tol=0.0)
    ours = np.vstack([dv * x.T @ dual for dv, x in zip(weights, X, strict=True)])
    np.testing.assert_allclose(weights, d, atol=1e-10)
    np.testing.assert_allclose(ours, W, atol=1e-10)


@pytest.mark.parametrize("g", [1e-3, 1.0, 100.0])
def test_objective_never_increases_and_weights_sum_to_one(views, g):
    X, codes = views
    Y = 2 * np.eye(3)[codes] - 1
    _, _, weights, objective = fit_awdr([x @ x.T for x in X], Y, g, max_iter=60, tol=0.0)
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))
    assert weights.sum() == pytest.approx(1.0, abs=1e-12)
    assert np.all(weights > 0)


def test_new_rows_are_projected_like_training_rows(common):
    X, y = common(0, n=80, dims=(10, 40, 10))
    for reduction in (None, "pca", "linear_kernel"):
        model = AWDRClassifier(reduction, decision="argmax").fit(X, y)
        out = model.training_outputs_
        np.testing.assert_allclose(model.decision_function(X), out[:, 1] - out[:, 0], atol=1e-9)


def test_binary_columns_are_negatives(common):
    X, y = common(0, n=80, dims=(10, 40, 10))
    model = AWDRClassifier().fit(X, y)
    for W in model.coef_.values():
        np.testing.assert_allclose(W[:, 0], -W[:, 1], atol=1e-12)


def test_votes_equal_scikit_learn():
    rng = np.random.default_rng(0)
    train, new, codes = (
        rng.standard_normal((40, 3)),
        rng.standard_normal((25, 3)),
        np.arange(40) % 3,
    )
    ours = neighbour_votes(train, codes, new, 5, 3)
    theirs = KNeighborsClassifier(5).fit(train, codes).predict_proba(new)
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


def test_ties_go_to_the_earlier_training_row():
    train = np.zeros((4, 1))
    codes = np.array([1, 0, 0, 0])
    np.testing.assert_array_equal(neighbour_votes(train, codes, np.ones((1, 1)), 1, 2), [[0, 1]])


def test_block_scaling_decides_which_view_wins(common):
    X, y = common(0)
    plain = AWDRClassifier(g=1.0, block_scale=False).fit(X[:140], y[:140])
    scaled = AWDRClassifier().fit(X[:140], y[:140])
    assert plain.view_weights_["b"] > 0.9
    assert scaled.view_weights_["a"] > 0.1
    gain = np.mean(scaled.predict(X[140:]) == y[140:]) - np.mean(plain.predict(X[140:]) == y[140:])
    assert gain > 0.1
    assert sum(m.sum() for m in plain.selected_features_.values()) == 2050
    longer = AWDRClassifier(g=1.0, block_scale=False, tol=1e-14).fit(X[:140], y[:140])
    assert sum(m.sum() for m in longer.surviving_features_.values()) == 2000
