"""From moments to predictions: mixtures, normalised classes, densities of known outcomes."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from baldur.inference.predictive import mixture_moments, predictive_density, probabilities

MOMENTS = (
    (np.array([[0.3, -1.0], [2.0, 0.1]]), np.array([[0.5, 1.0], [0.2, 2.0]])),
    (np.array([[1.3, -0.5], [1.0, -0.1]]), np.array([[0.1, 0.3], [0.4, 1.0]])),
)
WEIGHTS = np.array([[0.3, 0.8], [0.7, 0.2]])
T = np.array([[1.0, 0.0], [0.0, 1.0]])
NODES = norm.ppf((np.arange(20_000) + 0.5) / 20_000)


def rates():
    """P(t = 1) from a fine grid of quantiles of every Gaussian."""
    p = np.zeros((2, 2))
    for share, (mean, var) in zip(WEIGHTS, MOMENTS, strict=True):
        p += share * expit(mean[..., None] + np.sqrt(var)[..., None] * NODES).mean(axis=-1)
    return p


def test_probabilities_are_averages_over_the_mixture():
    np.testing.assert_allclose(probabilities(MOMENTS, WEIGHTS, "multilabel"), rates(), atol=1e-5)
    q = probabilities(MOMENTS, WEIGHTS, "multiclass")
    p = rates()
    np.testing.assert_allclose(q, p / p.sum(axis=1, keepdims=True), atol=1e-5)


def test_mixture_moments_are_those_of_draws():
    mean, var = mixture_moments(MOMENTS, WEIGHTS)
    for index in np.ndindex(2, 2):
        values = [m[index] + np.sqrt(v[index]) * NODES for m, v in MOMENTS]
        share = WEIGHTS[:, index[1]]
        first = share @ [x.mean() for x in values]
        second = share @ [(x**2).mean() for x in values]
        assert mean[index] == pytest.approx(first, abs=1e-6)
        assert var[index] == pytest.approx(second - first**2, rel=1e-3)


def test_leading_axes_are_kept():
    """A path of models at once is each model alone."""
    deep = [(np.stack([m, 2 * m, -m]), np.stack([v, v, 3 * v])) for m, v in MOMENTS]
    for task in ("multilabel", "multiclass", "regression"):
        together = predictive_density(deep, WEIGHTS, T, task)
        for k in range(3):
            alone = predictive_density([(m[k], v[k]) for m, v in deep], WEIGHTS, T, task)
            np.testing.assert_allclose(together[k], alone, rtol=1e-12)
    mean, var = mixture_moments(deep, WEIGHTS)
    np.testing.assert_allclose(mean[0], mixture_moments(MOMENTS, WEIGHTS)[0])
    np.testing.assert_allclose(var[0], mixture_moments(MOMENTS, WEIGHTS)[1])


def test_densities_of_known_outcomes():
    p = rates()
    labels = predictive_density(MOMENTS, WEIGHTS, T, "multilabel")
    np.testing.assert_allclose(labels, np.where(T > 0, p, 1 - p), atol=1e-5)
    q = p / p.sum(axis=1, keepdims=True)
    classes = predictive_density(MOMENTS, WEIGHTS, T, "multiclass")
    np.testing.assert_allclose(classes, [[q[0, 0]], [q[1, 1]]], atol=1e-5)
    numbers = predictive_density(MOMENTS, WEIGHTS, T, "regression")
    want = sum(w * norm.pdf(T, m, np.sqrt(v)) for w, (m, v) in zip(WEIGHTS, MOMENTS, strict=True))
    np.testing.assert_allclose(numbers, want, rtol=1e-12)


def test_certainty_never_costs_everything():
    sure = [(np.array([[500.0]]), np.array([[1e-12]]))]
    wrong = predictive_density(sure, np.ones((1, 1)), np.zeros((1, 1)), "binary")
    assert 0.0 < wrong[0, 0] <= 1e-11
    far = [(np.array([[1e6]]), np.array([[1.0]]))]
    assert predictive_density(far, np.ones((1, 1)), np.zeros((1, 1)), "regression")[0, 0] > 0.0
