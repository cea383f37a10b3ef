"""Quantiles of mixtures, and intervals of the probabilities they give."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from baldur.inference.intervals import mixture_quantile, probability_interval, tails
from baldur.inference.predictive import probabilities


def random_mixture(J=3, n=4, C=1, seed=0):
    rng = np.random.default_rng(seed)
    moments = [(2.0 * rng.standard_normal((n, C)), rng.gamma(2.0, 0.5, (n, C))) for _ in range(J)]
    weights = rng.dirichlet(np.ones(J), C).T
    return moments, weights


def drawn(moments, weights, size=200_000):
    """Return draws of the linear predictors, (size, n, C)."""
    rng = np.random.default_rng(1)
    mean, std = (np.stack(part) for part in zip(*moments, strict=True))
    std = np.sqrt(std)
    out = np.empty((size, *mean.shape[1:]))
    for c, w in enumerate(weights.T):
        which = rng.choice(len(w), size, p=w)
        z = rng.standard_normal(size)[:, None]
        out[..., c] = mean[which, :, c] + std[which, :, c] * z
    return out


@pytest.mark.parametrize("p", [0.001, 0.025, 0.5, 0.975])
def test_as_much_of_the_mixture_as_asked_for_lies_below(p):
    moments, weights = random_mixture(C=2)
    q = mixture_quantile(moments, weights, p)
    below = sum(
        w * norm.cdf(q, mean, np.sqrt(var)) for w, (mean, var) in zip(weights, moments, strict=True)
    )
    np.testing.assert_allclose(below, p, atol=1e-12)


def test_one_gaussian_has_the_quantiles_of_a_gaussian():
    moments, _ = random_mixture(J=1)
    (mean, var), low = moments[0], tails(0.95)[0]
    found = mixture_quantile(moments, np.ones((1, 1)), low)
    np.testing.assert_allclose(found, mean - 1.959964 * np.sqrt(var), atol=1e-5)


def test_components_that_do_not_count_do_not_matter():
    moments, weights = random_mixture()
    more = [*moments, (np.full((4, 1), 1e6), np.ones((4, 1)))]
    with_none = np.vstack([weights, np.zeros((1, 1))])
    np.testing.assert_allclose(
        mixture_quantile(more, with_none, 0.3), mixture_quantile(moments, weights, 0.3), atol=1e-12
    )


def test_two_classes_have_the_quantiles_of_draws():
    moments, weights = random_mixture()
    low, high = probability_interval(moments, weights, "binary", 0.9)
    expected = np.quantile(expit(drawn(moments, weights)), [0.05, 0.95], axis=0)
    np.testing.assert_allclose([low, high], expected, atol=0.01)


def test_several_classes_have_the_quantiles_of_draws_of_their_shares():
    moments, weights = random_mixture(C=3)
    low, high = probability_interval(moments, weights, "multiclass", 0.95)
    rate = expit(drawn(moments, weights))
    shares = rate / rate.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose([low, high], np.quantile(shares, tails(0.95), axis=0), atol=0.015)
    assert (low < high).all()


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multilabel", 2), ("multiclass", 3)])
def test_what_is_known_exactly_has_no_interval(task, C):
    moments, weights = random_mixture(J=1, C=C)
    sharp = [(moments[0][0], np.full((4, C), 1e-12))]
    p = probabilities(sharp, weights, task)
    for end in probability_interval(sharp, weights, task, 0.95):
        np.testing.assert_allclose(end, p, atol=1e-5)


@pytest.mark.parametrize(("task", "C"), [("binary", 1), ("multiclass", 3)])
def test_noise_of_a_row_is_part_of_its_probability_and_not_of_the_interval(task, C):
    moments, weights = random_mixture(J=1, C=C)
    noise = np.full(C, 2.0)
    noisy = [(moments[0][0], np.full((4, C), 2.0 + 1e-9))]
    p = probabilities(noisy, weights, task)
    for end in probability_interval(noisy, weights, task, 0.95, noise):
        np.testing.assert_allclose(end, p, atol=1e-4)
