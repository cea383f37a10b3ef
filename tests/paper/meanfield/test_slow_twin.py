"""Fast algebra equals the literal slow reference, and both sides of the primal agree."""

import numpy as np
import pytest
from scipy.stats import norm

from baldur.paper import weights as primal
from baldur.paper.bound import bound_terms
from baldur.paper.state import INTERCEPT_PRECISION, VAGUE
from baldur.paper.weights import (
    choose_relevance_vectors,
    spectrum_dual,
    update_weights,
    weight_moments,
)
from paper import slow_reference as slow
from paper.literal_dual import spectrum_literal
from paper.meanfield.problems import cells, columns_of, make_problem, random_state

CLOSE = {"rtol": 1e-8, "atol": 1e-10}


def weights_problem(N, D, K=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, D))
    gamma = np.exp(rng.uniform(-3, 3, D))
    s = rng.uniform(0.2, 2, N)
    return X, gamma, np.array([0.3, 2.0, 40.0])[:K], 1.7, rng.standard_normal((N, K)), s


def check_against(spectrum, view, X, gamma, delta, tau, R, s, mean, cov):
    q = update_weights(spectrum, delta, tau, R, s)
    got_mean, got_var = weight_moments(view, q)
    np.testing.assert_allclose(got_mean, mean, **CLOSE)
    np.testing.assert_allclose(got_var, np.array([np.diag(c) for c in cov]), **CLOSE)
    np.testing.assert_allclose(q.H, X @ mean.T, **CLOSE)
    gram = X.T @ (s[:, None] * X)
    np.testing.assert_allclose(q.trace, [np.trace(gram @ c) for c in cov], **CLOSE)
    second = mean**2 + np.array([np.diag(c) for c in cov])
    np.testing.assert_allclose(q.gamma_w2, second @ gamma, **CLOSE)
    return q


@pytest.mark.parametrize(("N", "D"), [(12, 5), (5, 12), (8, 8), (3, 40)])
@pytest.mark.parametrize("side", [primal.spectrum_features, primal.spectrum_samples])
def test_both_sides_of_the_primal_equal_explicit_inverses(N, D, side):
    X, gamma, delta, tau, R, s = weights_problem(N, D)
    mean, cov = slow.weights_posterior(X, gamma, delta, tau, R, s)
    view = columns_of(X)
    spectrum = side(view, np.arange(D), gamma, s)
    q = check_against(spectrum, view, X, gamma, delta, tau, R, s, mean, cov)
    np.testing.assert_allclose(q.logdet, [np.linalg.slogdet(c)[1] for c in cov], **CLOSE)


def test_zero_and_repeated_columns_do_not_break_either_side():
    X, gamma, delta, tau, R, s = weights_problem(6, 9)
    X[:, 0], X[:, 4] = 0.0, X[:, 3]
    mean, cov = slow.weights_posterior(X, gamma, delta, tau, R, s)
    for side in (primal.spectrum_features, primal.spectrum_samples):
        spectrum = side(columns_of(X), np.arange(9), gamma, s)
        check_against(spectrum, columns_of(X), X, gamma, delta, tau, R, s, mean, cov)


@pytest.mark.parametrize("rows", [np.arange(6), np.array([0, 2, 5])])
def test_literal_dual_equals_explicit_inverses(rows):
    X, gamma, delta, tau, R, s = weights_problem(6, 15)
    mean_a, cov_a = slow.dual_posterior(X, rows, gamma, delta, tau, R, s)
    Xs = X[rows]
    mean = mean_a @ Xs
    cov = np.array([Xs.T @ c @ Xs for c in cov_a])
    view = columns_of(X)
    spectrum = spectrum_literal(view, np.arange(15), gamma, s, rows)
    q = check_against(spectrum, view, X, gamma, delta, tau, R, s, mean, cov)
    np.testing.assert_allclose(q.logdet, [np.linalg.slogdet(c)[1] for c in cov_a], **CLOSE)


def test_literal_dual_of_centred_rows_lives_on_their_range():
    X, gamma, delta, tau, R, s = weights_problem(6, 15)
    X -= X.mean(0)
    spectrum = spectrum_literal(columns_of(X), np.arange(15), gamma, s, np.arange(6))
    assert spectrum.S.size == 5
    assert np.isfinite(update_weights(spectrum, delta, tau, R, s).logdet).all()


@pytest.mark.parametrize("rows", [np.arange(6), np.array([0, 2, 5])])
def test_restored_dual_equals_explicit_inverses(rows):
    X, gamma, delta, tau, R, s = weights_problem(6, 15)
    mean, cov = slow.restored_dual_posterior(X, rows, gamma, delta, tau, R, s)
    view, norms = columns_of(X), s @ X**2
    spectrum = spectrum_dual(view, np.arange(15), gamma, s, rows, norms)
    q = check_against(spectrum, view, X, gamma, delta, tau, R, s, mean, cov)
    np.testing.assert_allclose(q.logdet, [np.linalg.slogdet(c)[1] for c in cov], **CLOSE)


def test_with_all_rows_the_restored_dual_is_the_exact_posterior():
    X, gamma, delta, tau, R, s = weights_problem(6, 15)
    mean, cov = slow.weights_posterior(X, gamma, delta, tau, R, s)
    spectrum = spectrum_dual(columns_of(X), np.arange(15), gamma, s, np.arange(6), s @ X**2)
    check_against(spectrum, columns_of(X), X, gamma, delta, tau, R, s, mean, cov)
    assert spectrum.outside == pytest.approx(0, abs=1e-8)


def test_relevance_vectors_span_the_kernel():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 5)) @ rng.standard_normal((5, 200))
    X[3] = 0.0
    kernel = X @ X.T
    rows = choose_relevance_vectors(kernel)
    assert rows.size <= 5
    rows = choose_relevance_vectors(kernel, 30)
    assert rows.size == 5  # the rank
    assert 3 not in rows
    left = kernel - kernel[:, rows] @ np.linalg.solve(kernel[np.ix_(rows, rows)], kernel[rows])
    assert np.abs(left).max() < 1e-8 * np.abs(kernel).max()
    assert choose_relevance_vectors(kernel, 2).size == 2
    assert choose_relevance_vectors(np.zeros((4, 4))).size == 0


@pytest.mark.parametrize("task", ["classification", "regression"])
def test_every_bound_term_equals_its_literal_sum(task):
    weight = np.linspace(0.5, 2, 10)
    data = make_problem(task, N=10, sizes=(3, 15), C=2, weight=weight)
    state = random_state(data, K=2, seed=3)
    terms = bound_terms(state, data)
    means, covs = [], []
    for m, (view, products) in enumerate(zip(state.views, data.views, strict=True)):
        mean, _ = weight_moments(products, view.q)
        spec, B = view.q.spectrum, view.q.spectrum.full_basis(products)
        rest = np.diag(spec.null_scale) - B @ B.T if spec.n_null else np.zeros((B.shape[0],) * 2)
        cov = [
            B @ np.diag(view.q.coef_var[:, k]) @ B.T + view.q.null_var[k] * rest for k in range(2)
        ]
        means.append(mean)
        covs.append(np.array(cov))
        literal = slow.weights_bound(
            mean, covs[-1], view.delta.shape, view.delta.rate, view.gamma.shape, view.gamma.rate
        )
        assert terms[f"weights_{m}"] == pytest.approx(literal, rel=1e-8)
        literal = slow.gamma_minus_kl(view.delta.shape, view.delta.rate, *VAGUE)
        literal += slow.gamma_minus_kl(view.gamma.shape, view.gamma.rate, *data.gamma_prior)
        assert terms[f"ard_{m}"] == pytest.approx(literal, rel=1e-10)
    Xs = [cells(v) for v in data.views]
    tau, psi, s = state.tau, state.psi, data.weight
    literal = slow.latent_bound(Xs, means, covs, state.Z, state.Z_cov, tau.shape, tau.rate[0], s)
    assert terms["latent"] == pytest.approx(literal, rel=1e-8)
    literal = slow.outputs_bound(
        state.Y,
        state.Y_var,
        state.Z,
        state.Z_cov,
        state.V,
        state.V_cov,
        state.b,
        state.b_var,
        psi.shape,
        psi.rate[0],
        s,
        observed=task == "regression",
    )
    assert terms["outputs"] == pytest.approx(literal, rel=1e-8)
    literal = slow.gamma_minus_kl(tau.shape, tau.rate, *VAGUE)
    literal += slow.gamma_minus_kl(psi.shape, psi.rate, *VAGUE)
    literal += slow.gamma_minus_kl(state.omega.shape, state.omega.rate, *VAGUE)
    assert terms["precisions"] == pytest.approx(literal, rel=1e-10)
    prior = norm(0, INTERCEPT_PRECISION**-0.5)
    literal = sum(
        norm(mean, state.b_var**0.5).expect(prior.logpdf) + norm(mean, state.b_var**0.5).entropy()
        for mean in state.b
    )
    assert terms["intercept"] == pytest.approx(literal, rel=1e-8)
    literal = slow.loadings_bound(state.V, state.V_cov, state.omega.shape, state.omega.rate)
    assert terms["loadings"] == pytest.approx(literal, rel=1e-8)
    if task == "classification":
        literal = slow.labels_bound(data.T, state.Y, state.Y_var, state.xi, s)
        assert terms["labels"] == pytest.approx(literal, rel=1e-8)
    else:
        assert terms["labels"] == 0
