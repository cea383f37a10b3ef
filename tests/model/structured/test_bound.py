"""The bound: every term is its literal sum, and every closed-form update maximises it."""

import numpy as np
import pytest

from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic, Sites
from baldur.model.posterior import INTERCEPT_VAR
from baldur.model.structured import bound as terms
from baldur.model.structured.state import output_moments
from baldur.model.structured.updates import (
    factor_sites,
    gamma_second_moments,
    proposed_feature_precisions,
    proposed_intercepts,
    proposed_loadings,
    proposed_view_precisions,
    refresh_grams,
    refresh_moments,
    update_loading_precisions,
    update_weights,
)
from model.structured import slow_reference as slow
from model.structured.problems import literal_parts, make_data, random_state

SETTINGS = {
    "binary": ("binary", None),
    "multi-class, V = I": ("multiclass", None),
    "multi-label, V learned": ("multilabel", 2),
    "regression": ("regression", None),
    "regression, V learned": ("regression", 1),
}

CASES = [
    (name, bound)
    for name, (task, _) in SETTINGS.items()
    for bound in (["quadrature"] if task == "regression" else ["quadrature", "jaakkola"])
]


def drop_some(data, state):
    """Drop two features, and with them nothing else."""
    state.kept[0] = np.arange(data.widths[0]) != 1
    state.kept[1] = np.arange(data.widths[1]) != 0
    refresh_grams(data, state)
    state.factors = [update_weights(data, state, k) for k in range(state.n_factors)]


@pytest.mark.parametrize("dropped", [False, True], ids=["all kept", "some dropped"])
@pytest.mark.parametrize("shape", [1e-6, 0.5, np.inf])
@pytest.mark.parametrize(("setting", "bound"), CASES)
def test_every_term_is_its_literal_sum(setting, bound, shape, dropped):
    task, K = SETTINGS[setting]
    data = make_data(task, "feature", shape, bound, N=12, absent=True, weighted=True)
    state = random_state(data, K)
    if dropped:
        drop_some(data, state)
    p = literal_parts(data, state)
    mean, var = slow.output_moments(p)
    np.testing.assert_allclose(output_moments(state)[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(output_moments(state)[1], var, rtol=1e-9, atol=1e-9)
    likelihood = data.likelihood
    if isinstance(likelihood, GaussianOutputs):
        psi = (state.noise.shape, state.noise.rate)
        want = slow.likelihood_term(p, "gaussian", likelihood.Y, likelihood.weight, psi)
    else:
        p["xi"] = np.sqrt(mean**2 + var)
        want = slow.likelihood_term(p, bound, likelihood.T, likelihood.weight)
    tolerance = 1e-6 if isinstance(likelihood, QuadratureLogistic) else 1e-9
    literal = {
        terms.likelihood_term: want,
        terms.weights_term: slow.weights_term(p),
        terms.precisions_term: slow.precisions_term(p),
        terms.loadings_term: 0.0 if K is None else slow.loadings_term(p),
        terms.intercepts_term: 0.0 if K is None else slow.intercepts_term(p, INTERCEPT_VAR),
    }
    assert set(literal) == set(terms.TERMS)
    for term, value in literal.items():
        limit = tolerance if term is terms.likelihood_term else 1e-9
        assert term(data, state) == pytest.approx(value, rel=limit, abs=1e-8), term.__name__
    assert terms.bound(data, state) == sum(term(data, state) for term in terms.TERMS)


# -- each closed-form update maximises the bound over its own parameters --------------------


def literal_bound(p, data):
    """The whole bound, xi explicit under the quadratic bound."""
    likelihood = data.likelihood
    if isinstance(likelihood, GaussianOutputs):
        psi = (p["psi_shape"], p["psi_rate"])
        total = slow.likelihood_term(p, "gaussian", likelihood.Y, likelihood.weight, psi)
    else:
        total = slow.likelihood_term(p, "jaakkola", likelihood.T, likelihood.weight)
    total += slow.weights_term(p) + slow.precisions_term(p)
    if p["intercept_var"] == 0:
        total += slow.loadings_term(p) + slow.intercepts_term(p, INTERCEPT_VAR)
    return total


def perturbed(p, name, index, change):
    """A copy of the parts with one entry replaced by `change` of it."""
    new = dict(p)
    if index is None:
        new[name] = change(p[name])
    else:
        new[name] = list(p[name])
        new[name][index] = change(p[name][index])
    return new


def assert_maximum(p, data, name, index, kind, rng):
    """No small move of one block of parameters, in either direction, raises the bound."""
    best = literal_bound(p, data)
    for scale in (1e-3, 0.1):
        for _ in range(4):
            direction = rng.standard_normal(np.shape(p[name] if index is None else p[name][index]))
            for sign in (1.0, -1.0):
                step = sign * scale * direction

                def change(old, step=step):
                    if kind == "additive":
                        return old + step
                    if kind == "positive":
                        return old * np.exp(step)
                    A = np.eye(old.shape[-1]) + 0.3 * step  # covariances
                    return A @ old @ np.swapaxes(A, -1, -2)

                value = literal_bound(perturbed(p, name, index, change), data)
                assert value <= best + 1e-9 * abs(best), (name, index, scale)


def at_random(task, K, shape):
    """A state off its optimum everywhere, with sites at an arbitrary xi."""
    data = make_data(task, "feature", shape, "jaakkola", N=10, absent=True, weighted=True)
    state = random_state(data, K)
    xi = np.random.default_rng(3).uniform(0.2, 3.0, state.sites.h.shape)
    if isinstance(data.likelihood, GaussianOutputs):
        state.sites = data.likelihood.evaluate(*output_moments(state), state.noise)[1]
    else:
        weight = data.likelihood.weight
        h = weight * np.tanh(xi / 2) / (2 * xi)
        state.sites = Sites(h, weight * (data.likelihood.T - 0.5))
    return data, state, xi


@pytest.mark.parametrize("shape", [0.5, np.inf])
@pytest.mark.parametrize("setting", SETTINGS)
def test_closed_forms_maximise_the_literal_bound(setting, shape):
    task, K = SETTINGS[setting]
    rng = np.random.default_rng(0)
    data, state, xi = at_random(task, K, shape)

    def parts():
        noise = {} if state.noise is None else vars(state.noise)
        psi = {f"psi_{name}": value for name, value in noise.items()}
        return literal_parts(data, state) | {"xi": xi} | psi

    for k in range(state.n_factors):
        state.factors[k] = update_weights(data, state, k)
        if K is None:
            assert_maximum(parts(), data, "w", k, "additive", rng)
            assert_maximum(parts(), data, "cov", k, "covariance", rng)
        else:  # the intercept is outside: its weight in the factor has no prior
            for name, kind in (("w", "additive"), ("cov", "covariance")):
                p = parts()
                best = literal_bound(p, data)
                for sign in (0.1, -0.1, 1e-3, -1e-3):
                    D = data.X.shape[1] + 1
                    A = np.zeros((D, D))
                    A[1:, 1:] = sign * rng.standard_normal((D - 1, D - 1)) / 3
                    A += np.eye(D)

                    def change(old, kind=kind, A=A):
                        if kind == "covariance":
                            return A @ old @ A.T
                        return old + (A - np.eye(len(old))).sum(axis=0)

                    assert literal_bound(perturbed(p, name, k, change), data) <= best
    refresh_moments(data, state)
    if np.isfinite(shape):
        state.gamma = proposed_feature_precisions(data, state)
        for m in range(len(data.views)):
            assert_maximum(parts(), data, "gamma_rate", m, "positive", rng)
            assert_maximum(parts(), data, "gamma_shape", m, "positive", rng)
    # q(delta) is computed from q(W) and q(gamma), so q(W) must be the one of this gamma.
    for k in range(state.n_factors):
        state.factors[k] = update_weights(data, state, k)
    state.delta = proposed_view_precisions(data, state)
    for m in range(len(data.views)):
        assert_maximum(parts(), data, "delta_rate", m, "positive", rng)
        assert_maximum(parts(), data, "delta_shape", m, "positive", rng)
    if K is not None:
        state.V, state.V_cov = proposed_loadings(data, state)
        assert_maximum(parts(), data, "V", None, "additive", rng)
        assert_maximum(parts(), data, "V_cov", None, "covariance", rng)
        update_loading_precisions(data, state)
        assert_maximum(parts(), data, "omega_rate", None, "positive", rng)
        assert_maximum(parts(), data, "omega_shape", None, "positive", rng)
        state.b, state.b_var = proposed_intercepts(state)
        assert_maximum(parts(), data, "b", None, "additive", rng)
        assert_maximum(parts(), data, "b_var", None, "positive", rng)
    mean, var = output_moments(state)
    if isinstance(data.likelihood, GaussianOutputs):
        state.noise = data.likelihood.noise_at(mean, var)
        assert_maximum(parts(), data, "psi_rate", None, "positive", rng)
        assert_maximum(parts(), data, "psi_shape", None, "positive", rng)
    else:
        xi = np.sqrt(mean**2 + var)
        assert_maximum(parts(), data, "xi", None, "positive", rng)
        h = data.likelihood.evaluate(mean, var, None)[1].h
        np.testing.assert_allclose(h, data.likelihood.weight * np.tanh(xi / 2) / (2 * xi))


@pytest.mark.parametrize(("task", "K"), [("binary", None), ("multilabel", 2), ("multiclass", None)])
def test_both_sides_give_one_state(task, K):
    """Bound, sites seen by a factor, moments and updates agree on a wide problem to rounding."""
    pair = []
    for side in ("sample", "feature"):
        data = make_data(task, side, 0.5, "quadrature", N=12, sizes=(4, 20), absent=True)
        state = random_state(data, K)
        drop_some(data, state)
        refresh_moments(data, state)
        pair.append((data, state))
    (d1, s1), (d2, s2) = pair

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)

    same(terms.bound(d1, s1), terms.bound(d2, s2))
    for k in range(s1.n_factors):
        same(factor_sites(s1, k), factor_sites(s2, k))
    for m in range(2):
        same(s1.w[m], s2.w[m])
        same(s1.w_var[m], s2.w_var[m])
        same(gamma_second_moments(d1, s1, m), gamma_second_moments(d2, s2, m))
        literal = (s1.gamma[m].mean * s1.kept[m] * (s1.w[m] ** 2 + s1.w_var[m])).sum(axis=1)
        same(gamma_second_moments(d1, s1, m), literal)
        same(proposed_view_precisions(d1, s1)[m].rate, proposed_view_precisions(d2, s2)[m].rate)
    same(output_moments(s1), output_moments(s2))
    same(proposed_loadings(d1, s1)[0], proposed_loadings(d2, s2)[0])
