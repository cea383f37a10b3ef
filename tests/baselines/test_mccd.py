"""MCCD against literal twins: primal with D x D matrices, the dual formula, one view alone."""

import numpy as np
import pytest

from baldur.baselines import MCCDClassifier
from baldur.baselines.blocks import reduce_gram
from baldur.baselines.mccd import fit_mccd, update_view
from baldur.datasets import make_multiview
from baldur.exceptions import InputError

FLOOR = 1e-8


def weighted_centring(u):
    return np.diag(u) - np.outer(u, u) / u.sum()


def literal_mccd(X, Y, g1, g2, rounds):
    """The training box word for word, D x D matrices and all."""
    n, V, B = len(Y), len(X), 2 * Y - 1
    H = np.eye(n) - 1.0 / n
    W = [np.linalg.solve(x.T @ H @ x + g1 * np.eye(x.shape[1]), x.T @ H @ Y) for x in X]
    b = [(Y - x @ w).mean(axis=0) for x, w in zip(X, W, strict=True)]
    M, Z = np.zeros_like(Y), Y

    def row_weights(v):
        R = X[v] @ W[v] + b[v] - Z
        return 0.5 / np.sqrt((R**2).sum(axis=1) + FLOOR)

    u = [row_weights(v) for v in range(V)]
    for _ in range(rounds):
        Z = Y + B * M
        for v in range(V):
            S = sum((X[w] @ W[w] @ W[w].T @ X[w].T for w in range(V) if w != v), np.zeros((n, n)))
            Hu = weighted_centring(u[v])
            left = X[v].T @ (Hu + g2 * H @ S @ H) @ X[v] + g1 * np.eye(X[v].shape[1])
            W[v] = np.linalg.solve(left, X[v].T @ Hu @ Z)
            b[v] = (Z - X[v] @ W[v]).T @ u[v] / u[v].sum()
        top = sum(u[v][:, None] * (B * (X[v] @ W[v] + b[v] - Y)) for v in range(V))
        M = np.maximum(0, top / sum(u)[:, None])
        Z = Y + B * M
        u = [row_weights(v) for v in range(V)]
    return W, b, M


@pytest.mark.parametrize("g2", [0.0, 1e-3])
def test_reduced_solution_equals_literal_primal(views, g2):
    X, codes = views
    Y = np.eye(3)[codes]
    W, b, M = literal_mccd(X, Y, 0.5, g2, rounds=6)
    reduced = [reduce_gram(x @ x.T) for x in X]
    weights, offsets, slack, objective = fit_mccd(
        [features for features, _ in reduced], Y, 0.5, g2, max_iter=6, tol=0.0
    )
    assert len(objective) == 7
    np.testing.assert_allclose(slack, M, atol=1e-7)
    for x, (_, lift), w, o, w0, b0 in zip(X, reduced, weights, offsets, W, b, strict=True):
        np.testing.assert_allclose(x.T @ (lift @ w), w0, atol=1e-7)
        np.testing.assert_allclose(o, b0, atol=1e-7)


@pytest.mark.parametrize("others", [0, 2])
def test_update_equals_the_general_solve(views, others):
    X, codes = views
    rng = np.random.default_rng(4)
    n = len(codes)
    Z, u = rng.standard_normal((n, 3)), rng.uniform(1e-3, 5e3, n)
    P = [rng.standard_normal((n, 3)) for _ in range(others)]
    P = [p - p.mean(axis=0) for p in P]
    Hu = weighted_centring(u)
    for x in X:
        left = x.T @ Hu @ x + 0.3 * np.eye(x.shape[1])
        left += 0.01 * sum(x.T @ p @ p.T @ x for p in P)
        W, b = update_view(x, P, u, Z, 0.3, 0.01)
        np.testing.assert_allclose(W, np.linalg.solve(left, x.T @ Hu @ Z), atol=1e-10)
        np.testing.assert_allclose(b, (Z - x @ W).T @ u / u.sum(), atol=1e-10)


def test_dual_equals_primal_update(views):
    X, codes = views
    rng = np.random.default_rng(3)
    n = len(codes)
    Z, u = rng.standard_normal((n, 3)), rng.uniform(0.5, 2.0, n)
    H = np.eye(n) - 1.0 / n
    P = [H @ rng.standard_normal((n, 3)) for _ in range(2)]
    S = sum(p @ p.T for p in P)
    Hu = weighted_centring(u)
    for x in X:
        W, _ = update_view(x, P, u, Z, 0.3, 0.01)
        A = np.linalg.solve((Hu + 0.01 * S) @ (x @ x.T) + 0.3 * np.eye(n), Hu @ Z)
        np.testing.assert_allclose(W, x.T @ A, atol=1e-9)


@pytest.mark.parametrize("g1", [1e-3, 1.0])
@pytest.mark.parametrize("g2", [0.0, 1e-3, 1.0])
def test_objective_never_increases(views, g1, g2):
    X, codes = views
    _, _, _, objective = fit_mccd(X, np.eye(3)[codes], g1, g2, tol=0.0)
    assert np.all(np.diff(objective) <= 1e-9 * np.abs(objective[:-1]))
    assert objective[-1] < objective[0]


def test_one_view_is_robust_discriminative_least_squares(views):
    """V = 1, g2 = 0: iteratively reweighted ridge onto targets that may only move outwards."""
    X, codes = views[0][2], views[1]
    Y = np.eye(3)[codes]
    B, R = 2 * Y - 1, Y
    X1 = np.column_stack([X, np.ones(len(X))])
    ridge = np.diag([0.2] * X.shape[1] + [0.0])
    theta = np.linalg.solve(X1.T @ X1 + ridge, X1.T @ Y)
    u = 0.5 / np.sqrt(((X1 @ theta - Y) ** 2).sum(axis=1) + FLOOR)
    for _ in range(8):
        theta = np.linalg.solve(X1.T @ (u[:, None] * X1) + ridge, X1.T @ (u[:, None] * R))
        R = Y + B * np.maximum(0, B * (X1 @ theta - Y))
        u = 0.5 / np.sqrt(((X1 @ theta - R) ** 2).sum(axis=1) + FLOOR)
    weights, offsets, _, _ = fit_mccd([X], Y, 0.2, 0.0, max_iter=8, tol=0.0)
    np.testing.assert_allclose(weights[0], theta[:-1], atol=1e-8)
    np.testing.assert_allclose(offsets[0], theta[-1], atol=1e-8)


def test_author_stopping_rule_stops_at_round_seven(common):
    X, y = common(0, n=100, dims=(20, 60, 30))
    assert MCCDClassifier(stopping="signed").fit(X, y).n_iter_ == 7
    assert MCCDClassifier().fit(X, y).n_iter_ > 7


def test_author_diversity_scale_collapses_and_ours_does_not(common):
    X, y = common(0)
    share = {}
    for normalize in (True, False):
        model = MCCDClassifier(g1=0.01, g2=1.0, normalize_diversity=normalize)
        model.fit(X[:140], y[:140])
        share[normalize] = np.mean(model.predict(X[140:]) == y[140:])
    assert share[True] >= 0.70
    assert share[False] <= share[True] - 0.1


def test_penalty_per_view(views):
    X, codes = views
    Y = np.eye(3)[codes]
    weights, *_ = fit_mccd(X, Y, np.array([0.1, 1e6, 0.1]), 0.0, max_iter=3)
    assert np.abs(weights[1]).max() < 1e-3 < np.abs(weights[0]).max()


@pytest.mark.parametrize("g1", [-1.0, 0.0, float("nan"), "a", [0.1, -0.1], [[0.1], [0.1]]])
def test_penalties_that_are_not_positive_are_refused(g1):
    sim = make_multiview(30, {"a": 3, "b": 4}, random_state=0)
    with pytest.raises(InputError, match="g1 must be a finite number above 0, or a sequence"):
        MCCDClassifier(g1=g1).fit(sim.data, sim.target)


def test_a_penalty_is_asked_for_every_view():
    sim = make_multiview(30, {"a": 3, "b": 4}, random_state=0)
    with pytest.raises(InputError, match=r"There are 2 views \(a, b\), but g1 has 3 values"):
        MCCDClassifier(g1=[0.1, 0.1, 0.1]).fit(sim.data, sim.target)
    one, each = (
        MCCDClassifier(g1=g1).fit(sim.data, sim.target).predict_proba(sim.data)
        for g1 in (0.1, [0.1, 0.1])
    )
    np.testing.assert_array_equal(one, each)
