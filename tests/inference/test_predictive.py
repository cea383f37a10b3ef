"""From moments to predictions: normalised classes, densities of known outcomes, pooled weights."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import norm

from baldur.inference.stacking import mixture, pooled_weights
from baldur.model.likelihood import (
    integrate_left_out,
    logistic_moments,
    probabilities,
    probability_interval,
    score_and_slopes,
    shrinkage,
    tails,
)

MEAN = np.array([[0.3, -1.0], [2.0, 0.1]])
VAR = np.array([[0.5, 1.0], [0.2, 2.0]])
T = np.array([[1.0, 0.0], [0.0, 1.0]])
NODES = norm.ppf((np.arange(20_000) + 0.5) / 20_000)


def rates():
    """P(t = 1) from a fine grid of quantiles."""
    return expit(MEAN[..., None] + np.sqrt(VAR)[..., None] * NODES).mean(axis=-1)


def score(mean, var, T, task):
    return score_and_slopes(mean, var, T, task)[0]


def test_probabilities_are_averages_over_the_posterior():
    np.testing.assert_allclose(probabilities(MEAN, VAR, "multilabel"), rates(), atol=1e-5)
    p = rates()
    q = probabilities(MEAN, VAR, "multiclass")
    np.testing.assert_allclose(q, p / p.sum(axis=1, keepdims=True), atol=1e-5)


def test_mixtures_have_the_moments_of_draws():
    means = np.stack([MEAN, MEAN + np.array([[1.0, 0.5], [-1.0, -0.2]])])
    variances = np.stack([VAR, [[0.1, 0.3], [0.4, 1.0]]])
    weights = np.array([[0.3, 0.8], [0.7, 0.2]])[:, None]
    mean, var = mixture(means, variances, weights)
    for at in np.ndindex(2, 2):
        values = [m[at] + np.sqrt(v[at]) * NODES for m, v in zip(means, variances, strict=True)]
        share = weights[:, 0, at[1]]
        first = share @ [x.mean() for x in values]
        second = share @ [(x**2).mean() for x in values]
        assert mean[at] == pytest.approx(first, abs=1e-6)
        assert var[at] == pytest.approx(second - first**2, rel=1e-3)


def test_leading_axes_are_kept():
    """A path of models at once is each model alone."""
    mean, var = np.stack([MEAN, 2 * MEAN, -MEAN]), np.stack([VAR, VAR, 3 * VAR])
    for task in ("multilabel", "multiclass", "regression"):
        together = score_and_slopes(mean, var, T, task)
        for k in range(3):
            alone = score_and_slopes(mean[k], var[k], T, task)
            for got, want in zip(together, alone, strict=True):
                np.testing.assert_allclose(got[k], want, rtol=1e-12)


def test_scores_are_log_densities_of_known_outcomes():
    p = rates()
    labels = np.where(T > 0, p, 1 - p)
    np.testing.assert_allclose(
        score(MEAN, VAR, T, "multilabel"), np.log(labels).sum(axis=1), atol=1e-5
    )
    q = p / p.sum(axis=1, keepdims=True)
    want = np.log([q[0, 0], q[1, 1]])
    np.testing.assert_allclose(score(MEAN, VAR, T, "multiclass"), want, atol=1e-5)
    numbers = norm.logpdf(T, MEAN, np.sqrt(VAR)).sum(axis=1)
    np.testing.assert_allclose(score(MEAN, VAR, T, "regression"), numbers, rtol=1e-12)


def test_certainty_never_costs_everything():
    one = np.ones((1, 1))
    wrong = score(500.0 * one, 1e-12 * one, 0.0 * one, "binary")[0]
    assert np.log(1e-13) < wrong <= np.log(1e-11)
    assert np.isfinite(score(1e6 * one, one, 0.0 * one, "regression")[0])
    shares = np.array([[500.0, -500.0]]), np.full((1, 2), 1e-12)
    assert np.isfinite(score(*shares, np.array([[0.0, 1.0]]), "multiclass")[0])


def test_what_is_left_out_is_averaged_over():
    """Probabilities with the shrunk weights are those with what was left out as random."""
    eta = np.linspace(-4.0, 4.0, 33)[:, None]
    for v in (0.0, 0.5, 2.0, 6.0):
        left = np.array([v])
        mean, var = integrate_left_out(eta, np.ones_like(eta), left, "binary")
        exact = logistic_moments(eta, np.full_like(eta, v))[0]
        np.testing.assert_allclose(expit(mean), exact, atol=0.02)
        np.testing.assert_allclose(mean, shrinkage(left) * eta)
        np.testing.assert_allclose(var, shrinkage(left) ** 2 * np.ones_like(eta))
        mean, var = integrate_left_out(eta, np.ones_like(eta), left, "regression")
        np.testing.assert_array_equal(mean, eta)
        np.testing.assert_allclose(var, 1.0 + v)


def test_several_gaussians_are_pooled_to_one():
    """Means around the base rate, stretched; covariances within, between and of the slope."""
    rng = np.random.default_rng(0)
    J, C, k = 3, 2, 4
    means = rng.standard_normal((J, C, k))
    covs = np.stack([[np.cov(rng.standard_normal((k, 9))) for _ in range(C)] for _ in range(J)])
    weights = rng.dirichlet(np.ones(J), C).T
    base = rng.standard_normal((C, k))
    slope, slope_var = np.array([1.7, 0.4]), np.array([0.1, 0.0])
    mean, cov = pooled_weights(means, covs, weights, base, slope, slope_var)
    averaged = np.einsum("jc,jckl->ckl", weights, covs)[None]
    again = pooled_weights(means, averaged, weights, base, slope, slope_var)
    for c in range(C):
        centre = weights[:, c] @ means[:, c]
        literal = sum(
            w * (S + np.outer(m - centre, m - centre))
            for w, m, S in zip(weights[:, c], means[:, c], covs[:, c], strict=True)
        )
        away = slope[c] * (centre - base[c])
        np.testing.assert_allclose(mean[c], base[c] + away)
        np.testing.assert_allclose(cov[c], literal + slope_var[c] * np.outer(away, away))
    np.testing.assert_allclose(again[0], mean)
    np.testing.assert_allclose(again[1], cov)


# -- intervals of predicted probabilities are the quantiles of draws ------------------------------


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


def test_rows_do_not_depend_on_each_other(constants):
    mean, var = random_moments(n=7, C=3)
    whole = probability_interval(mean, var, "multiclass", 0.9)
    constants(DRAWN=1)
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
