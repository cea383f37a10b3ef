"""Double ARD: the bound is its literal sum, and every closed form maximises it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from baldur.model.ard import GammaPosterior, gamma_term
from baldur.model.double_ard import DoubleArd
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic, Sites
from baldur.model.loadings import FactorLikelihood, prior_terms, starting_loadings
from baldur.model.posterior import INTERCEPT_VAR
from model import literal_bound as slow
from model.problems import literal_parts, make_small, random_fit

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

SOME = np.array([True, False, True, False, True, True, True, True])


def outputs(fit):
    """The likelihood of the outputs, and the moments of eta."""
    likelihood = fit.q.likelihood
    if isinstance(likelihood, FactorLikelihood):
        return likelihood.outputs, fit.q.noise.loadings.combine(*fit.q.moments())
    return likelihood, fit.q.moments()


def dropped(fit):
    """The same without two features, everything else as it was."""
    smaller = replace(fit, entries=fit.entries.only(SOME))
    return smaller.under(fit.prior.only(SOME))


@pytest.mark.parametrize("some", [False, True], ids=["all in", "some dropped"])
@pytest.mark.parametrize("shape", [1e-6, 0.5])
@pytest.mark.parametrize(("setting", "bound"), CASES)
def test_every_term_is_its_literal_sum(setting, bound, shape, some):
    task, K = SETTINGS[setting]
    fit = random_fit(make_small(task, bound, N=12, absent=True, weighted=True), shape, K=K)
    fit = dropped(fit) if some else fit
    p = literal_parts(fit)
    mean, var = slow.output_moments(p)
    likelihood, moments = outputs(fit)
    np.testing.assert_allclose(moments[0], mean, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(moments[1], var, rtol=1e-9, atol=1e-9)
    noise = fit.q.noise if K is None else fit.q.noise.noise
    if isinstance(likelihood, GaussianOutputs):
        psi = (noise.shape, noise.rate)
        want = slow.likelihood_term(p, "gaussian", likelihood.Y, likelihood.weight, psi)
    else:
        p["xi"] = np.sqrt(mean**2 + var)
        want = slow.likelihood_term(p, bound, likelihood.T, likelihood.weight)
    tolerance = 1e-6 if isinstance(likelihood, QuadratureLogistic) else 1e-9
    assert likelihood.evaluate(*moments, noise)[0].sum() == pytest.approx(want, rel=tolerance)
    prior = fit.prior.bound() - sum(side.kl for side in fit.q.sides)
    assert prior == pytest.approx(
        slow.weights_term(p) + slow.precisions_term(p), rel=1e-9, abs=1e-8
    )
    total = want + prior
    if K is not None:
        loadings = slow.loadings_term(p) + slow.intercepts_term(p, INTERCEPT_VAR)
        assert prior_terms(fit.q.noise) == pytest.approx(loadings, rel=1e-9, abs=1e-8)
        total += loadings
    assert fit.bound() == pytest.approx(total, rel=tolerance)


# -- each closed-form update maximises the bound over its own parameters --------------------


def literal(p, likelihood):
    """The whole bound, xi explicit under the quadratic bound."""
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


def assert_maximum(p, likelihood, name, index, kind, rng, slack=1e-9):
    """No small move of one block of parameters, in either direction, raises the bound."""
    best = literal(p, likelihood)
    for scale in (1e-3, 0.1):
        for _ in range(4):
            direction = rng.standard_normal(np.shape(p[name] if index is None else p[name][index]))
            if name == "w" and p["intercept_var"] == 0:  # the intercept lives elsewhere
                direction[0] = 0.0
            if name == "cov" and p["intercept_var"] == 0:
                direction[0], direction[:, 0] = 0.0, 0.0
            for sign in (1.0, -1.0):
                step = sign * scale * direction

                def change(old, step=step):
                    if kind == "additive":
                        return old + step
                    if kind == "positive":
                        return old * np.exp(step)
                    A = np.eye(old.shape[-1]) + 0.3 * step  # covariances
                    return A @ old @ np.swapaxes(A, -1, -2)

                value = literal(perturbed(p, name, index, change), likelihood)
                assert value <= best + slack * abs(best), (name, index, scale)


@pytest.mark.parametrize("setting", SETTINGS)
def test_closed_forms_maximise_the_literal_bound(setting):
    task, K = SETTINGS[setting]
    rng = np.random.default_rng(0)
    fit = random_fit(make_small(task, "jaakkola", N=10, absent=True, weighted=True), K=K)
    likelihood, _ = outputs(fit)

    def parts(xi=None):
        """Parts of the fit, at the best xi unless told."""
        p = literal_parts(fit)
        mean, var = slow.output_moments(p)
        return p | {"xi": np.sqrt(mean**2 + var) if xi is None else xi}

    # q(w_k), one factor at a time, from the sites that go with xi
    xi = parts()["xi"]
    fit.q.sites = fit.q.evaluate()[1]
    sides = list(fit.q.sides)
    fit.q.refresh()
    for k, now in enumerate(fit.q.sides):
        fit.q.sides = [now if i == k else was for i, was in enumerate(sides)]
        for name, kind in (("w", "additive"), ("cov", "covariance")):
            assert_maximum(parts(xi), likelihood, name, k, kind, rng)
    fit.q.sides = sides
    # q(gamma) at this q(w)
    p = parts()
    power, used = fit.entries.statistics(fit.q, fit.prior)
    moved = fit.prior.with_gamma(power, used)
    p["gamma_rate"] = [moved.gamma.rate[moved.owner == m] for m in range(2)]
    for m in range(2):
        assert_maximum(p, likelihood, "gamma_rate", m, "positive", rng)
        assert_maximum(p, likelihood, "gamma_shape", m, "positive", rng)
    # q(delta), where its leaps end with q(w) held: <w>^2 and Var w as they are
    p, prior = parts(), fit.prior
    mean2, var = power / prior.variances**-1, (1.0 - used) * prior.variances
    for _ in range(3000):
        s = prior.variances
        by_view = [
            np.stack([values[:, prior.owner == m].sum(axis=1) for m in range(2)], axis=1)
            for values in (mean2 / s, 1.0 - var / s)
        ]
        prior = prior.with_delta(*by_view, 0.2)
    p["delta_rate"] = [np.array(d.rate) for d in prior.delta]
    for m in range(2):
        assert_maximum(p, likelihood, "delta_rate", m, "positive", rng)
        assert_maximum(p, likelihood, "delta_shape", m, "positive", rng)
    if K is not None:
        moments, learned = fit.q.moments(), fit.q.noise
        for propose, names in (
            (fit.q.likelihood.factors, {"V": "additive", "V_cov": "covariance"}),
            (fit.q.likelihood.intercepts, {"b": "additive", "b_var": "positive"}),
        ):
            sites = fit.q.likelihood.behind(*moments, learned)[1]
            at = propose(*moments, learned, sites)(1.0)
            for name, kind in names.items():
                p = parts() | {other: getattr(at, other) for other in names}
                assert_maximum(p, likelihood, name, None, kind, rng)
        after = fit.q.likelihood.learn(*moments, learned)
        fit.q.noise = after
        p = parts()
        assert_maximum(p, likelihood, "omega_rate", None, "positive", rng)
        assert_maximum(p, likelihood, "omega_shape", None, "positive", rng)
    if task == "regression":
        noise = likelihood.noise_at(*outputs(fit)[1])
        p = parts() | {"psi_rate": noise.rate, "psi_shape": noise.shape}
        assert_maximum(p, likelihood, "psi_rate", None, "positive", rng)
        assert_maximum(p, likelihood, "psi_shape", None, "positive", rng)
    else:
        assert_maximum(parts(), likelihood, "xi", None, "positive", rng)


@pytest.mark.parametrize(("task", "bound"), [("multilabel", "quadrature"), ("regression", "")])
def test_learning_loadings_never_lowers_the_value(task, bound):
    for seed in range(5):
        problem = make_small(task, bound or "quadrature", seed=seed)
        fit = random_fit(problem, K=2, seed=seed, spread=task == "regression")
        likelihood, moments = fit.q.likelihood, fit.q.moments()
        value = likelihood.evaluate(*moments, fit.q.noise)[0]
        for _ in range(5):
            fit.q.noise = likelihood.learn(*moments, fit.q.noise)
            after = likelihood.evaluate(*moments, fit.q.noise)[0]
            assert after >= value - 1e-10 * abs(value)
            value = after


def test_sites_of_factors_are_the_slope_of_their_value():
    """Sites of a factor, the others held, have the slope that the value has in its mean."""
    fit = random_fit(make_small("multilabel", "jaakkola", N=10), K=2)
    likelihood, (mean, var) = fit.q.likelihood, fit.q.moments()
    _, (h, j) = likelihood.evaluate(mean, var, fit.q.noise)
    for n, k in ((0, 0), (3, 1)):
        step = np.zeros_like(mean)
        step[n, k] = 1e-5
        up, down = (likelihood.evaluate(mean + e, var, fit.q.noise)[0] for e in (step, -step))
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


# -- the prior alone --------------------------------------------------------------------------


def shared_prior(seed=0):
    """Two views; the last entry stands for 25 features."""
    rng = np.random.default_rng(seed)
    owner, count = np.array([0, 0, 0, 1, 1, 1]), np.array([1.0, 1, 1, 1, 1, 25])
    start = DoubleArd.start(
        0.5, np.exp(rng.standard_normal(6)), owner, count, np.array([3.0, 40]), 2
    )
    delta = [GammaPosterior(d.shape, d.rate * rng.uniform(0.5, 2, 2)) for d in start.delta]
    return replace(start, delta=delta)


def test_a_shared_precision_is_the_best_for_all_that_share_it():
    """<w^2> held: expected log prior of the weights and the Gamma term, against a search."""
    prior = shared_prior()
    rng = np.random.default_rng(1)
    power = rng.uniform(0.1, 3, (2, 6))
    used = rng.uniform(0.1, 0.9, (2, 6))
    second = (power + prior.count - used) / (1 / prior.variances)  # sum of <w^2>
    delta = 1 / prior.by_view[:, prior.owner]
    for d in (0, 5):

        def loss(log_rate, d=d):
            gamma = GammaPosterior(prior.gamma.shape, np.exp([log_rate]))
            fit = prior.count[d] * (gamma.mean_log[0] + gamma_term(gamma, (0.5, 0.5)))
            return -(fit - 0.5 * gamma.mean[0] * (delta[:, d] @ second[:, d]))

        found = minimize_scalar(loss, bracket=(-2, 2), tol=1e-12)
        got = prior.with_gamma(power, used).gamma.rate[d]
        assert got == pytest.approx(np.exp(found.x), rel=1e-5)


def test_features_that_share_count_one_by_one():
    """An entry of 25 features is 25 entries of one precision."""
    prior = shared_prior()
    at = np.array([0, 1, 2, 3, 4, *[5] * 25])
    apart = replace(
        prior,
        gamma=GammaPosterior(prior.gamma.shape, prior.gamma.rate[at]),
        owner=prior.owner[at],
        count=np.ones(30),
    )
    assert prior.bound() == pytest.approx(apart.bound(), rel=1e-12)
    assert prior.idle() == pytest.approx(apart.idle(), rel=1e-12)
    np.testing.assert_array_equal(prior.n_in, apart.n_in)
    one, other = prior.rescaled(), apart.rescaled()
    np.testing.assert_allclose(one.gamma.rate[at], other.gamma.rate, rtol=1e-12)


def test_shifting_scale_raises_the_bound_and_leaves_the_weights():
    for seed in range(5):
        prior = shared_prior(seed)
        moved = prior.rescaled()
        assert moved.bound() > prior.bound()
        np.testing.assert_allclose(moved.variances, prior.variances, rtol=1e-12)
        assert moved.rescaled().bound() == pytest.approx(moved.bound(), rel=1e-12)


@pytest.mark.parametrize(("task", "K"), [("binary", None), ("multilabel", 2), ("multiclass", None)])
def test_both_sides_give_one_state(task, K):
    """Bound, statistics, gains and updates agree to rounding."""
    problem = make_small(task, N=12, absent=True)
    one, two = (dropped(random_fit(problem, K=K, side=side)) for side in ("sample", None))

    def same(a, b):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)

    same(one.bound(), two.bound())
    same(one.q.moments(), two.q.moments())
    same(one.q.signal(), two.q.signal())
    same(one.q.lacking(), two.q.lacking())
    stats = [fit.entries.statistics(fit.q, fit.prior) for fit in (one, two)]
    same(*stats)
    same(one.prior.gains(*stats[0]), two.prior.gains(*stats[1]))
    by_view = [fit.q.features.strengths(fit.q.sides, fit.q.s) for fit in (one, two)]
    same(*by_view)
    power, used = stats[0]
    for m in range(2):
        same(by_view[0][0][:, m], power[:, one.prior.owner == m].sum(axis=1))
        same(by_view[0][1][:, m], used[:, one.prior.owner == m].sum(axis=1))


def test_statistics_are_those_of_the_weights():
    fit = random_fit(make_small("multiclass", N=12, absent=True))
    p, s = literal_parts(fit), fit.prior.variances
    power, used = fit.entries.statistics(fit.q, fit.prior)
    for k in range(3):
        np.testing.assert_allclose(power[k], p["w"][k][1:] ** 2 / s[k], rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(
            used[k], 1 - np.diag(p["cov"][k])[1:] / s[k], rtol=1e-8, atol=1e-12
        )
    sites = Sites(*fit.q.sites)
    w, cov = slow.weights_posterior(
        fit.entries.X, s[0], INTERCEPT_VAR, sites.h[:, 0], sites.j[:, 0]
    )
    np.testing.assert_allclose(p["w"][0], w, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(p["cov"][0], cov, rtol=1e-8, atol=1e-10)
