"""Stacking: the best pool of linear predictors, whatever the order, the repeats or the start."""

import numpy as np
import pytest
from baldur.inference.stack import SLOPE_SD, HeldOut, around, attenuation, fit_stack
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime, minimize
from scipy.special import softmax

from baldur.inference import stack as stack_module
from baldur.inference.predictive import pooled, predictive_density, score_and_slopes

TASKS = ["binary", "multiclass", "multilabel", "regression"]
OUTPUTS = {"binary": 1, "multiclass": 3, "multilabel": 2, "regression": 2}


def drawn(task="binary", n=120, K=3, seed=0, truth=1.0):
    """Members of which the first is `truth` times too cautious and the others know less."""
    rng = np.random.default_rng(seed)
    C = OUTPUTS[task]
    eta = 2.0 * rng.standard_normal((n, C))
    mean = np.stack([eta / truth + k * rng.standard_normal((n, C)) for k in range(K)], axis=1)
    var = rng.gamma(2.0, 0.1, (n, K, C)) + 0.01
    p = 1.0 / (1.0 + np.exp(-eta))
    if task == "multiclass":
        p /= p.sum(axis=1, keepdims=True)
        T = np.eye(C)[[rng.choice(C, p=row) for row in p]]
    elif task == "regression":
        T, var = eta + rng.standard_normal((n, C)), var + 1.0
    else:
        T = (rng.random((n, C)) < p).astype(float)
    level = np.full((n, C), 0.1)
    return HeldOut(mean, var, level, T, rng.uniform(0.5, 2.0, n))


def literal_loss(x, held, task, trust):
    """What `fit_stack` minimises, row by row and member by member."""
    slope, q = np.exp(x[0]), softmax(x[1:])
    share = q * trust / (q * trust).sum()
    weights = np.repeat(share[:, None], held.T.shape[1], axis=1)
    value = 0.0
    for n in range(len(held.T)):
        moments = [(held.mean[n, k][None], held.var[n, k][None]) for k in range(len(share))]
        one = pooled(moments, weights, held.level[n], slope)
        density = predictive_density([one], np.ones((1, weights.shape[1])), held.T[n][None], task)
        value += held.weight[n] * np.log(density).sum()
    value += 2.0 / len(q) * np.log(q).sum() - 2.0 * x[0] ** 2
    return -value + 0.5 * stack_module.FLAT * (x[1:] ** 2).sum()


@pytest.mark.parametrize("task", TASKS)
def test_the_stack_is_the_best_one(task):
    held = drawn(task, n=50)
    trust = attenuation(held.var, logistic=task != "regression")
    stack, x = fit_stack(held, task)
    best = minimize(literal_loss, x, (held, task, trust), method="Nelder-Mead")
    assert literal_loss(x, held, task, trust) <= best.fun + 1e-4
    assert stack.shares.sum() == pytest.approx(1.0, abs=1e-12)
    rng = np.random.default_rng(0)
    for _ in range(10):
        other = x + 0.3 * rng.standard_normal(len(x))
        assert literal_loss(other, held, task, trust) > literal_loss(x, held, task, trust)


@pytest.mark.parametrize("task", TASKS)
def test_slopes_of_the_score_are_those_of_its_values(task):
    held = drawn(task, n=6)
    mean, var = held.mean[:, 0], held.var[:, 0] + 0.5
    _, by_mean, by_var = score_and_slopes(mean, var, held.T, task)

    def total(flat):
        m, v = flat.reshape(2, *mean.shape)
        return score_and_slopes(m, v, held.T, task)[0].sum()

    want = approx_fprime(np.concatenate([mean.ravel(), var.ravel()]), total, 1e-6)
    np.testing.assert_allclose(
        np.concatenate([by_mean.ravel(), by_var.ravel()]), want, rtol=1e-3, atol=1e-5
    )


@pytest.mark.parametrize("task", TASKS)
def test_the_score_is_the_predictive_density(task):
    held = drawn(task, n=20)
    mean, var = held.mean[:, 1], held.var[:, 1]
    value, _, _ = score_and_slopes(mean, var, held.T, task)
    density = predictive_density([(mean, var)], np.ones((1, mean.shape[1])), held.T, task)
    np.testing.assert_allclose(value, np.log(density).sum(axis=1), rtol=1e-10)


def test_one_member_that_is_right_is_believed():
    stack, _ = fit_stack(drawn(n=3000), "binary")
    assert stack.shares[0] > 0.85
    assert stack.slope == pytest.approx(1.0, abs=0.15)


@pytest.mark.parametrize("truth", [0.5, 2.0])
def test_the_slope_mends_members_that_are_too_sure_or_too_cautious(truth):
    held = drawn(n=3000, truth=truth)
    held.var *= 0.01
    stack, _ = fit_stack(held, "binary")
    assert stack.slope == pytest.approx(truth, rel=0.15)


@pytest.mark.parametrize("task", TASKS)
def test_what_rows_leave_unknown_of_the_slope_is_the_curvature_of_the_score(task):
    held = drawn(task, n=40)
    trust = attenuation(held.var, logistic=task != "regression")
    stack, x = fit_stack(held, task)
    step = np.append(0.05, np.zeros(held.mean.shape[1]))
    low, middle, high = (literal_loss(x + k * step, held, task, trust) for k in (-1, 0, 1))
    assert stack.slope_var == pytest.approx(0.05**2 / (low - 2.0 * middle + high), rel=0.05)


def test_intervals_of_the_slope_hold_it():
    """90 % intervals of the ln slope, over draws from its prior, one member that is right."""
    hits, rng = [], np.random.default_rng(0)
    for seed in range(200):
        truth = np.exp(SLOPE_SD * rng.standard_normal())
        held = drawn(n=120, K=1, truth=truth, seed=seed)
        held.var *= 1e-3
        held.weight[:] = 1.0
        stack, x = fit_stack(held, "binary")
        hits.append(abs(x[0] - np.log(truth)) < 1.645 * np.sqrt(stack.slope_var))
    assert 0.84 < np.mean(hits) < 0.96  # 90 % within three standard errors


def test_without_rows_the_slope_is_as_uncertain_as_its_prior():
    held = drawn()
    held.weight[:] = 0.0
    assert fit_stack(held, "binary")[0].slope_var == pytest.approx(SLOPE_SD**2)


def test_where_members_know_nothing_the_slope_is_small():
    held = drawn(n=400)
    held.T = np.random.default_rng(1).integers(0, 2, held.T.shape).astype(float)
    stack, _ = fit_stack(held, "binary")
    assert stack.slope < 0.35


def test_equal_members_get_equal_shares():
    held = drawn()
    same = HeldOut(
        np.repeat(held.mean[:, :1], 4, axis=1),
        np.repeat(held.var[:, :1], 4, axis=1),
        held.level,
        held.T,
        held.weight,
    )
    np.testing.assert_allclose(fit_stack(same, "binary")[0].shares, 0.25, atol=1e-6)


def test_members_that_stand_behind_little_count_for_little_at_first():
    """Without rows the shares are what is left of each predictor in its probabilities."""
    held = drawn()
    held.weight[:] = 0.0
    held.var[:, 2] = 100.0
    stack, _ = fit_stack(held, "binary")
    trust = attenuation(held.var, logistic=True)
    np.testing.assert_allclose(stack.shares, trust / trust.sum(), rtol=1e-6)
    assert trust[2] < 0.2 < 0.8 < trust[0]
    assert stack.slope == pytest.approx(1.0)


def test_order_does_not_matter():
    held = drawn()
    stack, _ = fit_stack(held, "binary")
    rows = np.random.default_rng(0).permutation(len(held.T))
    again, _ = fit_stack(held.only(rows), "binary")
    np.testing.assert_allclose(again.shares, stack.shares, atol=1e-3)
    order = [2, 0, 1]
    turned = HeldOut(held.mean[:, order], held.var[:, order], held.level, held.T, held.weight)
    other, _ = fit_stack(turned, "binary")
    np.testing.assert_allclose(other.shares, stack.shares[order], atol=1e-3)
    assert other.slope == pytest.approx(stack.slope, rel=1e-3)


def test_weight_two_is_a_row_twice():
    held = drawn(n=40)
    held.weight[:] = 1.0
    twice = held.only(np.concatenate([np.arange(40), np.arange(0, 40, 4)]))
    held.weight[::4] = 2.0
    trust = np.ones(3)
    a, b = fit_stack(held, "binary", trust)[0], fit_stack(twice, "binary", trust)[0]
    np.testing.assert_allclose(a.shares, b.shares, atol=1e-4)
    assert a.slope == pytest.approx(b.slope, rel=1e-4)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 5), st.floats(1e-3, 1e3), st.sampled_from(TASKS))
def test_whatever_members_say_the_stack_is_one(seed, K, scale, task):
    held = drawn(task, n=15, K=K, seed=seed)
    held.mean *= scale
    held.var *= scale
    stack, _ = fit_stack(held, task)
    assert (stack.shares >= 0).all()
    assert stack.shares.sum() == pytest.approx(1.0)
    assert 0.0 < stack.slope < np.exp(10 * SLOPE_SD)
    assert 0.0 < stack.slope_var <= SLOPE_SD**2


@pytest.mark.parametrize("task", TASKS)
def test_another_start_finds_the_same_stack(task):
    """Most of the rows, from the optimum of all and its curvature, or from nothing."""
    held = drawn(task)
    trust = attenuation(held.var, logistic=task != "regression")
    start = around(held, task, trust, fit_stack(held, task, trust)[1])
    most = held.only(np.arange(120) % 5 > 0)
    near, nothing = (fit_stack(most, task, trust, begun)[0] for begun in (start, None))
    np.testing.assert_allclose(near.shares, nothing.shares, atol=2e-3)
    assert near.slope == pytest.approx(nothing.slope, rel=2e-3)
    assert near.slope_var == pytest.approx(nothing.slope_var, rel=2e-3)
