"""PB-MVBoost: AdaBoost when there is one view, and the parts of the C-bound."""

import numpy as np
import pytest
from sklearn.tree import DecisionTreeClassifier

from baldur.baselines import PBMVBoostClassifier
from baldur.baselines.pb_mvboost import SILENT, c_bound_terms, fit_pb_mvboost, optimise_views


@pytest.fixture
def data():
    rng = np.random.default_rng(5)
    y = np.where(rng.random(80) < 0.5, 1.0, -1.0)
    X = [rng.standard_normal((80, d)).astype(np.float32) for d in (6, 8, 5)]
    X[0][:, 0] += 0.8 * y
    X[1][:, 0] += 0.8 * y
    return X, y


def literal_adaboost(X, y, rounds, seeds, depth):
    """Discrete AdaBoost, with weights that multiply by exp(-y alpha h)."""
    w, total = np.full(len(y), 1.0 / len(y)), np.zeros(len(y))
    for _ in range(rounds):
        tree = DecisionTreeClassifier(
            max_depth=depth, splitter="random", random_state=int(seeds.randint(2**31 - 1))
        ).fit(X, y, sample_weight=w)
        h = tree.predict(X)
        error = w[h != y].sum()
        alpha = 0.5 * np.log((1 - error) / error)
        total += alpha * h
        w = w * np.exp(-y * alpha * h)
        w /= w.sum()
    return total, w


def test_one_view_is_discrete_adaboost(data):
    X, y = data
    ours = fit_pb_mvboost(X[:1], y, 12, np.random.RandomState(3), max_depth=2)
    seeds = np.random.RandomState(3)
    seeds.randint(2**31 - 1)  # the fixed seed, drawn first
    total, w = literal_adaboost(X[0], y, 12, seeds, 2)
    np.testing.assert_allclose(ours.vote(X[:1]) * np.abs(ours.Q).sum(), total, atol=1e-9)
    np.testing.assert_allclose(ours.example_weights, w, atol=1e-12)


def literal_pb_mvboost(X, y, rounds, seeds, depth, normalize):
    """Every round grows a tree in every view; a view of weight zero only loses its Q."""
    n, V = len(y), len(X)
    w, rho = np.full(n, 1.0 / n), np.full(V, 1.0 / V)
    seeds.randint(2**31 - 1)  # the fixed seed, drawn first
    Q, P = np.zeros((rounds, V)), np.zeros((V, rounds, n))
    for t in range(rounds):
        for v in range(V):
            tree = DecisionTreeClassifier(
                max_depth=depth, splitter="random", random_state=int(seeds.randint(2**31 - 1))
            ).fit(X[v], y, sample_weight=w)
            P[v, t] = tree.predict(X[v])
            error = w[P[v, t] != y].sum()
            Q[t, v] = 0.5 * np.log((1 - error) / error) if rho[v] > SILENT else 0.0
        if t >= 1:
            q = np.maximum(Q[: t + 1], 0) if normalize else Q[: t + 1]
            q = q / np.maximum(q.sum(axis=0), 1e-300) if normalize else q
            terms = [c_bound_terms(P[v, : t + 1], q[:, v], y, w) for v in range(V)]
            rho = optimise_views(*np.array(terms).T, rho)
        w = w * np.exp(-y * ((rho * Q[t]) @ P[:, t]))
        w /= w.sum()
    return np.einsum("v,tv,vtn->n", rho, Q, P) / np.sum(np.abs(Q) * rho), Q, rho, w


@pytest.mark.parametrize("normalize", [False, True])
def test_voters_of_silent_views_need_no_tree(data, normalize):
    X, y = data
    ours = fit_pb_mvboost(X, y, 15, np.random.RandomState(7), normalize_voters=normalize)
    vote, Q, rho, w = literal_pb_mvboost(X, y, 15, np.random.RandomState(7), 2, normalize)
    grown = np.array([[tree is not None for tree in row] for row in ours.trees])
    assert not grown.all()
    np.testing.assert_array_equal(grown, Q != 0)
    np.testing.assert_allclose(ours.Q, Q, atol=1e-10)
    np.testing.assert_allclose(ours.rho, rho, atol=1e-10)
    np.testing.assert_allclose(ours.example_weights, w, atol=1e-12)
    np.testing.assert_allclose(ours.vote(X), vote, atol=1e-10)


def test_disagreement_equals_the_double_sum():
    rng = np.random.default_rng(0)
    P = np.sign(rng.standard_normal((7, 30)))
    q, w, y = rng.standard_normal(7), rng.dirichlet(np.ones(30)), np.sign(rng.standard_normal(30))
    r, d = c_bound_terms(P, q, y, w)
    literal_r = sum(q[s] * w[P[s] != y].sum() for s in range(7))
    literal_d = sum(q[s] * q[t] * w[P[s] != P[t]].sum() for s in range(7) for t in range(7))
    assert r == pytest.approx(literal_r)
    assert d == pytest.approx(literal_d)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("jacobian", ["ones", "author"])
def test_rho_on_the_simplex_and_weights_sum_to_one(data, normalize, jacobian):
    X, y = data
    ours = fit_pb_mvboost(
        X, y, 25, np.random.RandomState(0), normalize_voters=normalize, jacobian=jacobian
    )
    np.testing.assert_allclose(ours.rho_history.sum(axis=1), 1.0, atol=1e-9)
    assert np.all(ours.rho_history >= 0)
    assert ours.example_weights.sum() == pytest.approx(1.0)
    assert np.all(ours.example_weights > 0)


def test_normalised_voters_give_one_view_everything(data):
    X, y = data
    ours = fit_pb_mvboost(X, y, 15, np.random.RandomState(0), normalize_voters=True)
    assert ours.rho.max() > 1 - 1e-6


def test_bad_terms_give_weights_on_the_simplex():
    last = np.array([0.2, 0.8])
    found = optimise_views(np.array([np.nan, 0.2]), np.array([0.3, 0.3]), last)
    np.testing.assert_array_equal(found, [0.5, 0.5])
    # Denominator exactly zero at the start: still an answer on the simplex.
    found = optimise_views(np.array([0.3, 0.2]), np.array([0.5, 0.5]), last)
    assert found.sum() == pytest.approx(1.0)


def test_perfect_voters_keep_weights_finite():
    X = np.repeat([[0.0], [1.0]], 20, axis=0)
    y = np.repeat(["a", "b"], 20)
    model = PBMVBoostClassifier(30, random_state=0).fit(X, y)
    assert np.array_equal(model.predict(X), y)
    assert np.all(np.isfinite(model.ensembles_[0].Q))


def test_empty_vote_goes_to_the_majority():
    X, y = np.zeros((10, 2)), np.repeat([0, 1], [3, 7])
    model = PBMVBoostClassifier(5, random_state=0).fit(X, y)
    model.ensembles_[0].Q[:] = 0.0
    assert np.all(model.predict(X) == 1)


def test_used_features_are_the_second_figure(data):
    X, y = data
    model = PBMVBoostClassifier(3, 1, random_state=0).fit(X[0], y)
    assert all(m.all() for m in model.selected_features_.values())
    assert 1 <= model.used_features_["X"].sum() <= 3


def test_fixed_seed_repeats_splits(data):
    X, y = data
    fixed = fit_pb_mvboost(X, y, 6, np.random.RandomState(0), fixed_tree_seed=True)
    assert len({t.random_state for r in fixed.trees for t in r if t}) == 1
    fresh = fit_pb_mvboost(X, y, 6, np.random.RandomState(0))
    grown = [t.random_state for r in fresh.trees for t in r if t]
    assert len(set(grown)) == len(grown) > 6
