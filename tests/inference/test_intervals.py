"""Intervals of predicted probabilities are the quantiles of draws."""

import numpy as np
import pytest
from scipy.special import expit

from baldur.inference.predictive import probabilities, probability_interval, tails


def random_moments(n=4, C=1, seed=0):
    rng = np.random.default_rng(seed)
    return 2.0 * rng.standard_normal((n, C)), rng.gamma(2.0, 0.5, (n, C))


def drawn(mean, var, size=200_000):
    """Return draws of the linear predictors, (size, n, C)."""
    z = np.random.default_rng(1).standard_normal((size, 1, mean.shape[1]))
    return mean + np.sqrt(var) * z


def test_tails_leave_the_level_inside():
    assert tails(0.95) == pytest.approx((0.025, 0.975))


def test_two_classes_have_the_quantiles_of_a_gaussian():
    mean, var = random_moments()
    low, high = probability_interval(mean, var, "binary", 0.95)
    np.testing.assert_allclose(low, expit(mean - 1.959964 * np.sqrt(var)), atol=1e-6)
    np.testing.assert_allclose(high, expit(mean + 1.959964 * np.sqrt(var)), atol=1e-6)
    expected = np.quantile(expit(drawn(mean, var)), [0.025, 0.975], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.01)


def test_several_classes_have_the_quantiles_of_draws_of_their_shares():
    mean, var = random_moments(C=3)
    low, high = probability_interval(mean, var, "multiclass", 0.95)
    rate = expit(drawn(mean, var))
    shares = rate / rate.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose([low, high], np.quantile(shares, tails(0.95), axis=0), atol=0.015)
    assert (low < high).all()


def test_rows_do_not_depend_on_each_other(monkeypatch):
    mean, var = random_moments(n=7, C=3)
    whole = probability_interval(mean, var, "multiclass", 0.9)
    monkeypatch.setattr("baldur.inference.predictive.CHUNK", 1)
    for got, want in zip(probability_interval(mean, var, "multiclass", 0.9), whole, strict=True):
        np.testing.assert_array_equal(got, want)
    one = probability_interval(mean[3:4], var[3:4], "multiclass", 0.9)
    np.testing.assert_array_equal(one[0], whole[0][3:4])


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multilabel", 2), ("multiclass", 3)])
def test_what_is_known_exactly_has_no_interval(task, C):
    mean, _ = random_moments(C=C)
    var = np.full((4, C), 1e-12)
    p = probabilities(mean, var, task)
    for end in probability_interval(mean, var, task, 0.95):
        np.testing.assert_allclose(end, p, atol=1e-5)


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multiclass", 3)])
def test_noise_of_a_row_is_part_of_its_probability_and_not_of_the_interval(task, C):
    mean, _ = random_moments(C=C)
    var = np.full((4, C), 2.0 + 1e-9)
    p = probabilities(mean, var, task)
    for end in probability_interval(mean, var, task, 0.95, np.full(C, 2.0)):
        np.testing.assert_allclose(end, p, atol=1e-4)
