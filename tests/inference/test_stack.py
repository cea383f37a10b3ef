"""Stacking: the maximum of a concave score on the simplex, whatever the start or the order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import minimize

from baldur.inference.stack import prior_exponents
from baldur.inference.stack import stacking_weights as general_weights


def stacking_weights(density, weight):
    """With the same exponent for every member."""
    return general_weights(density, weight, np.full(density.shape[1], 0.5))


def score(w, density, weight):
    return weight @ np.log(density @ w) + 0.5 * np.log(w).sum()


def densities(n=80, K=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.uniform(0.05, 1.0, (n, K)), rng.uniform(0.5, 2.0, n)


@pytest.mark.parametrize("K", [2, 4, 5])
@pytest.mark.parametrize("seed", range(3))
def test_weights_are_the_best_on_the_simplex(seed, K):
    density, weight = densities(K=K, seed=seed)

    def loss(z):
        w = np.exp(z - z.max())
        return -score(w / w.sum(), density, weight)

    found = minimize(loss, np.zeros(K), method="BFGS", options={"gtol": 1e-8})
    best = np.exp(found.x - found.x.max())
    w = stacking_weights(density, weight)
    assert w.sum() == pytest.approx(1.0, abs=1e-12)
    np.testing.assert_allclose(w, best / best.sum(), atol=1e-3)
    assert score(w, density, weight) == pytest.approx(-found.fun, abs=1e-5)


@settings(max_examples=40, deadline=None)
@given(arrays(float, (12, 3), elements=st.floats(1e-6, 1.0)))
def test_no_other_weights_score_higher(density):
    weight = np.ones(12)
    w = stacking_weights(density, weight)
    assert (w > 0).all()
    best = score(w, density, weight)
    rng = np.random.default_rng(0)
    for other in rng.dirichlet(np.ones(3), 20):
        mixed = 0.99 * w + 0.01 * other
        assert score(mixed, density, weight) <= best + 1e-4


def test_a_perfect_member_gets_nearly_all():
    density, weight = densities(n=500)
    density[:, 2] = 1.0
    density[:, [0, 1, 3]] *= 0.5
    w = stacking_weights(density, weight)
    assert w[2] > 0.98


def test_equal_members_get_equal_weights():
    density, weight = densities()
    same = np.repeat(density[:, :1], 5, axis=1)
    np.testing.assert_allclose(stacking_weights(same, weight), 0.2, atol=1e-12)
    pair = np.column_stack([density[:, 0], density[:, 1], density[:, 1]])
    w = stacking_weights(pair, weight)
    assert w[1] == pytest.approx(w[2], abs=1e-12)


def test_without_rows_the_weights_are_equal():
    w = stacking_weights(np.ones((1, 4)), np.zeros(1))
    np.testing.assert_allclose(w, 0.25, atol=1e-12)


def test_order_and_scale_do_not_matter():
    density, weight = densities()
    w = stacking_weights(density, weight)
    order = np.array([2, 0, 3, 1])
    np.testing.assert_allclose(stacking_weights(density[:, order], weight), w[order], atol=1e-9)
    rows = np.random.default_rng(0).permutation(len(weight))
    np.testing.assert_allclose(stacking_weights(density[rows], weight[rows]), w, atol=1e-9)
    scaled = density * np.random.default_rng(1).uniform(0.1, 10, (len(weight), 1))
    np.testing.assert_allclose(stacking_weights(scaled, weight), w, atol=1e-9)


def test_weight_two_is_a_row_twice():
    density, _ = densities(n=30)
    weight = np.ones(30)
    weight[::4] = 2.0
    twice = np.concatenate([density, density[::4]])
    w = stacking_weights(density, weight)
    np.testing.assert_allclose(stacking_weights(twice, np.ones(len(twice))), w, atol=1e-9)


def test_impossible_outcomes_do_not_break_it():
    density, weight = densities(n=20)
    density[3] = 0.0
    w = stacking_weights(density, weight)
    assert np.isfinite(w).all()
    assert w.sum() == pytest.approx(1.0)


def test_the_weights_of_members_are_the_mean_of_a_dirichlet():
    """Rows that one member alone can explain: counts, whose posterior is a Dirichlet."""
    counts = np.array([5, 11, 2])
    density = np.repeat(np.eye(3), counts, axis=0)
    each = prior_exponents(4)[:3]  # three members; the base rate explains nothing
    w = general_weights(density, np.ones(len(density)), each)
    np.testing.assert_allclose(w, (counts + each) / (counts + each).sum(), rtol=1e-6)
    np.testing.assert_allclose(each, 1.5)


def test_the_base_rate_counts_as_far_as_rows_ask_for_it():
    each = prior_exponents(4)
    np.testing.assert_allclose(each, [1.5, 1.5, 1.5, 0.5])
    density, weight = densities(n=300)
    density[:, -1] *= 0.3
    w = general_weights(density, weight, each)
    assert w[-1] < 0.02


def test_members_that_predict_nearly_alike_have_nearly_equal_weights():
    rng = np.random.default_rng(0)
    density = np.repeat(rng.uniform(0.2, 0.9, (60, 1)), 3, axis=1)
    density[:, 0] *= np.exp(0.01 * rng.standard_normal(60) + 0.005)
    w = general_weights(density, np.ones(60), prior_exponents(3))
    assert abs(w[0] / w[1] - 1.0) < 0.4
