"""Learned loadings: the bound is its literal sum, and every closed form maximises it."""

import numpy as np
import pytest

from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from baldur.model.loadings import prior_terms, starting_loadings
from baldur.model.posterior import INTERCEPT_VAR
from model import literal_bound as slow
from model.problems import literal_parts, make_small, random_gaussian

CASES = [("multilabel", 2), ("multiclass", 1), ("regression", 1)]


def outputs_term(p, likelihood):
    if isinstance(likelihood, GaussianOutputs):
        psi = (p["psi_shape"], p["psi_rate"])
        return slow.likelihood_term(p, "gaussian", likelihood.Y, likelihood.weight, psi)
    return slow.likelihood_term(p, "quadrature", likelihood.T, likelihood.weight)


def weights_term(p, s):
    """-KL of the weights; the intercepts have prior variance 0 and live with the loadings."""
    pairs = zip(p["w"], p["cov"], s, strict=True)
    return -sum(slow.gaussian_kl(w, cov, np.concatenate([[0.0], row])) for w, cov, row in pairs)


def literal(p, s, likelihood):
    """The whole bound."""
    total = outputs_term(p, likelihood) + weights_term(p, s)
    return total + slow.loadings_term(p) + slow.intercepts_term(p, INTERCEPT_VAR)


@pytest.mark.parametrize(("task", "K"), CASES)
def test_every_term_is_its_literal_sum(task, K):
    q = random_gaussian(make_small(task, N=12, absent=True, weighted=True), K)
    p, likelihood = literal_parts(q), q.likelihood.outputs
    mean, var = slow.output_moments(p)
    moments = q.noise.loadings.combine(*q.moments())
    np.testing.assert_allclose(moments[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments[1], var, rtol=1e-9, atol=1e-9)
    tolerance = 1e-6 if isinstance(likelihood, QuadratureLogistic) else 1e-9
    value = likelihood.evaluate(*moments, q.noise.noise)[0].sum()
    assert value == pytest.approx(outputs_term(p, likelihood), rel=tolerance)
    assert sum(side.kl for side in q.sides) == pytest.approx(-weights_term(p, q.s), rel=1e-9)
    loadings = slow.loadings_term(p) + slow.intercepts_term(p, INTERCEPT_VAR)
    assert prior_terms(q.noise) == pytest.approx(loadings, rel=1e-9, abs=1e-8)
    assert q.bound().sum() == pytest.approx(literal(p, q.s, likelihood), rel=tolerance)


def assert_maximum(p, s, likelihood, name, kind, rng, slack=1e-9):
    """No small move of one block of parameters, in either direction, raises the bound."""
    best = literal(p, s, likelihood)
    for scale in (1e-3, 0.1):
        for _ in range(4):
            step = scale * rng.standard_normal(np.shape(p[name]))
            for move in (step, -step):
                if kind == "additive":
                    new = p[name] + move
                elif kind == "positive":
                    new = p[name] * np.exp(move)
                else:
                    A = np.eye(p[name].shape[-1]) + 0.3 * move  # covariances
                    new = A @ p[name] @ np.swapaxes(A, -1, -2)
                assert literal(p | {name: new}, s, likelihood) <= best + slack * abs(best), name


def test_closed_forms_maximise_the_literal_bound():
    """With Gaussian outputs, where one step is the maximum over each block."""
    rng = np.random.default_rng(0)
    q = random_gaussian(make_small("regression", N=10, absent=True, weighted=True), 1)
    likelihood, moments = q.likelihood, q.moments()
    for propose, names in (
        (likelihood.factors, {"V": "additive", "V_cov": "covariance"}),
        (likelihood.intercepts, {"b": "additive", "b_var": "positive"}),
    ):
        sites = likelihood.behind(*moments, q.noise)[1]
        at = propose(*moments, q.noise, sites)(1.0)
        for name, kind in names.items():
            p = literal_parts(q) | {other: getattr(at, other) for other in names}
            assert_maximum(p, q.s, likelihood.outputs, name, kind, rng)
    noise = likelihood.outputs.noise_at(*q.noise.loadings.combine(*moments))
    p = literal_parts(q) | {"psi_rate": noise.rate, "psi_shape": noise.shape}
    assert_maximum(p, q.s, likelihood.outputs, "psi_rate", "positive", rng)
    q.noise = likelihood.learn(*moments, q.noise)
    assert_maximum(literal_parts(q), q.s, likelihood.outputs, "omega_rate", "positive", rng)


@pytest.mark.parametrize("task", ["multilabel", "regression"])
def test_learning_loadings_never_lowers_the_value(task):
    for seed in range(5):
        q = random_gaussian(make_small(task, seed=seed), 2, seed=seed, spread=task == "regression")
        value, moments = q.likelihood.evaluate(*q.moments(), q.noise)[0], q.moments()
        for _ in range(5):
            q.noise = q.likelihood.learn(*moments, q.noise)
            after = q.likelihood.evaluate(*moments, q.noise)[0]
            assert after >= value - 1e-10 * abs(value)
            value = after


def test_sites_of_factors_are_the_slope_of_their_value():
    """Sites of a factor, the others held, have the slope that the value has in its mean."""
    q = random_gaussian(make_small("regression", N=10), 2)
    mean, var = q.moments()
    _, (h, j) = q.likelihood.evaluate(mean, var, q.noise)
    for n, k in ((0, 0), (3, 1)):
        step = np.zeros_like(mean)
        step[n, k] = 1e-5
        up, down = (q.likelihood.evaluate(mean + e, var, q.noise)[0] for e in (step, -step))
        assert (up - down) / 2e-5 == pytest.approx(j[n, k] - h[n, k] * mean[n, k], rel=1e-5)


def test_starting_loadings_span_the_predictors():
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 4))
    V = starting_loadings(eta, 2)
    centred = eta - eta.mean(axis=0)
    projected = centred @ V @ np.linalg.pinv(V)
    np.testing.assert_allclose(projected, centred, atol=1e-10)
    assert (V[np.abs(V).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_array_equal(starting_loadings(eta[::-1], 2).shape, (4, 2))
