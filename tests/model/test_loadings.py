"""Learned loadings: the bound is its literal sum, and every closed form maximises it."""

import numpy as np
import pytest

from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood
from baldur.model.loadings import Loadings, prior_terms, starting_loadings
from baldur.model.posterior import INTERCEPT_VAR
from model import literal_bound as slow
from model.problems import literal_parts, make_small, random_gaussian

CASES = [("multilabel", 2), ("multiclass", 1), ("regression", 1)]


def outputs_term(p, likelihood):
    T, weight = likelihood.T[0].T, likelihood.weight[0].T
    if isinstance(likelihood, GaussianLikelihood):
        psi = (p["psi_shape"], p["psi_rate"])
        return slow.likelihood_term(p, "gaussian", T, weight, psi)
    return slow.likelihood_term(p, "quadrature", T, weight)


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
    f_mean, f_var = (part[0].T for part in q.moments())
    moments = q.noise.loadings.combine(f_mean, f_var)
    np.testing.assert_allclose(moments[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments[1], var, rtol=1e-9, atol=1e-9)
    tolerance = 1e-7 if isinstance(likelihood, LogisticLikelihood) else 1e-9
    value = likelihood.evaluate(*(part.T[None] for part in moments), q.noise.noise)[0].sum()
    assert value == pytest.approx(outputs_term(p, likelihood), rel=tolerance)
    assert q.solution.kl.sum() == pytest.approx(-weights_term(p, q.s[0]), rel=1e-9)
    loadings = slow.loadings_term(p) + slow.intercepts_term(p, INTERCEPT_VAR)
    assert prior_terms(q.noise) == pytest.approx(loadings, rel=1e-9, abs=1e-8)
    bound = q.evaluate()[0]
    assert bound.shape == (1, 1)
    assert bound[0, 0] == pytest.approx(literal(p, q.s[0], likelihood), rel=tolerance)


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
    rows = [part[0].T for part in moments]
    for propose, names in (
        (likelihood.factors, {"V": "additive", "V_cov": "covariance"}),
        (likelihood.intercepts, {"b": "additive", "b_var": "positive"}),
    ):
        sites = likelihood.behind(*moments, q.noise)[1]
        at = propose(*rows, q.noise, sites)(1.0)
        for name, kind in names.items():
            p = literal_parts(q) | {other: getattr(at, other) for other in names}
            assert_maximum(p, q.s[0], likelihood.outputs, name, kind, rng)
    combined = (part.T[None] for part in q.noise.loadings.combine(*rows))
    noise = likelihood.outputs.noise_at(*combined)
    p = literal_parts(q) | {"psi_rate": noise.rate[0], "psi_shape": noise.shape[0, 0]}
    assert_maximum(p, q.s[0], likelihood.outputs, "psi_rate", "positive", rng)
    q.noise = likelihood.learn(*moments, q.noise)
    assert_maximum(literal_parts(q), q.s[0], likelihood.outputs, "omega_rate", "positive", rng)


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
    for at in ((0, 0, 0), (0, 1, 3)):
        step = np.zeros_like(mean)
        step[at] = 1e-5
        up, down = (q.likelihood.evaluate(mean + e, var, q.noise)[0] for e in (step, -step))
        assert (up - down).item() / 2e-5 == pytest.approx(j[at] - h[at] * mean[at], rel=1e-5)


def test_learned_loadings_spread_the_predictions_as_draws_do():
    """Mean and variance of eta = b + v.f for independent Gaussians, against draws."""
    rng = np.random.default_rng(0)
    C, K, n = 3, 2, 4
    A = rng.standard_normal((C, K, K))
    loadings = Loadings(
        rng.standard_normal((C, K)),
        0.2 * A @ A.transpose(0, 2, 1),
        rng.standard_normal(C),
        rng.uniform(0.1, 0.5, C),
    )
    mean, var = rng.standard_normal((n, K)), rng.uniform(0.1, 1, (n, K))
    got_mean, got_var = loadings.combine(mean, var)
    R = 200_000
    f = rng.normal(mean, np.sqrt(var), (R, n, K))
    for c in range(C):
        v = rng.multivariate_normal(loadings.V[c], loadings.V_cov[c], R)
        b = rng.normal(loadings.b[c], np.sqrt(loadings.b_var[c]), R)
        eta = b[:, None] + np.einsum("rnk,rk->rn", f, v)
        np.testing.assert_allclose(got_mean[:, c], eta.mean(axis=0), atol=0.03)
        np.testing.assert_allclose(got_var[:, c], eta.var(axis=0), rtol=0.03)


def test_starting_loadings_span_the_predictors():
    rng = np.random.default_rng(0)
    eta = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 4))
    V = starting_loadings(eta, 2)
    centred = eta - eta.mean(axis=0)
    projected = centred @ V @ np.linalg.pinv(V)
    np.testing.assert_allclose(projected, centred, atol=1e-10)
    assert (V[np.abs(V).argmax(axis=0), [0, 1]] > 0).all()
    np.testing.assert_array_equal(starting_loadings(eta[::-1], 2).shape, (4, 2))
