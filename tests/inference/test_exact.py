"""The pooled member against exact posteriors of the same model: widths and probabilities.

The model: t ~ Bernoulli(sigmoid(b + X w)), w ~ N(0, s I), b ~ N(0, 100), and the s.d. that s gives
X w half-normal with scale 5. The sampler itself is compared with a grid (one and two weights) and,
under a Gaussian likelihood, with a closed form at any width.
"""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import expit

from baldur.inference.dense_members import fit_pooled
from baldur.inference.stacking import mixture
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import LogisticLikelihood, logistic_rates
from baldur.model.posterior import INTERCEPT_VAR, with_ones
from inference import exact_sampler as exact
from inference.problems import in_views

pytestmark = pytest.mark.slow

SCALE = 5.0
CASES = {"D1": (30, 1), "D2": (30, 2), "D10": (40, 10), "D40": (30, 40), "D200": (60, 200)}


def problem(case, n_new=200):
    """Return standardised training rows, labels, and new rows."""
    N, D = CASES[case]
    rng = np.random.default_rng(D)
    X = rng.standard_normal((N + n_new, D))
    X = (X - X[:N].mean(axis=0)) / X[:N].std(axis=0)
    w = np.zeros(D)
    w[:5] = rng.choice([-1.0, 1.0], min(D, 5))
    eta = X @ w
    t = (rng.random(len(X)) < expit(2.0 * eta / eta.std())).astype(float)
    return X[:N], t[:N], X[N:]


def pooled_member(X, t, X_new):
    """Return mean and s.d. of the weights (D,) and P(t = 1) of new rows, as fitted."""
    design = in_views(X[None], np.zeros(X.shape[1], dtype=int))
    likelihood = LogisticLikelihood(t[None, None], np.ones((1, 1, len(t))))
    member = fit_pooled(design, likelihood)
    weights, moments = [], []
    for point in member.points:
        q = point.q
        weights.append(design.weights(q.solution, q.s, q.sites.h))
        moments.append(design.predict(q.solution, q.s, with_ones(X_new)[None]))
    shares = member.weights[..., None]
    mean, var = (part[0, 0] for part in mixture(*map(np.stack, zip(*weights, strict=True)), shares))
    pairs = zip(member.weights[:, 0, 0], moments, strict=True)
    p = sum(w * logistic_rates(m[0, 0], v[0, 0])[0] for w, (m, v) in pairs)
    return mean, np.sqrt(var), p


@pytest.mark.parametrize("case", ["D1", "D2"])
def test_sampler_equals_the_grid(case):
    X, t, X_new = problem(case, n_new=10)
    prior = exact.half_normal_predictor(X, SCALE)
    grid = exact.by_grid(X, t, prior, X_new, n_w=31, n_b=51)
    finer = exact.by_grid(X, t, prior, X_new)
    assert_allclose(grid.mean, finer.mean, atol=2e-3)
    assert_allclose(grid.p_new, finer.p_new, atol=2e-3)
    draws = exact.sample(X, exact.bernoulli(t), prior, X_new)
    error = draws.error(draws.w.mean(axis=1))
    assert error.max() < 0.02
    assert_allclose(draws.weights().mean(axis=0), finer.mean, atol=4.5 * error.max())
    assert_allclose(draws.weights().std(axis=0), finer.sd, rtol=0.05)
    assert_allclose(draws.probabilities(), finer.p_new, atol=0.006)


@pytest.mark.parametrize("case", ["D10", "D40", "D200"])
def test_sampler_equals_the_closed_form_of_gaussian_outputs(case):
    X, t, X_new = problem(case)
    prior = exact.half_normal_predictor(X, SCALE)
    y = 3.0 * t + 0.5 * np.random.default_rng(0).standard_normal(len(t))
    wanted = exact.by_formula(X, y, 0.7, prior)
    draws = exact.sample(X, exact.gaussian(y, 0.7), prior, X_new)
    error = draws.error(draws.w.mean(axis=1))
    gap = np.abs(draws.weights().mean(axis=0) - wanted.mean) / error
    assert np.sqrt(np.mean(gap**2)) < 1.5
    assert gap.max() < 5.0
    assert_allclose(draws.weights().std(axis=0), wanted.sd, rtol=0.06)


def test_without_data_the_sampler_draws_the_prior():
    X = np.zeros((4, 3))
    shown = np.random.default_rng(0).standard_normal((50, 3))
    silent = exact.Likelihood(lambda eta: np.zeros(len(eta)), np.zeros_like, 0.0)
    draws = exact.sample(X, silent, exact.half_normal_predictor(shown, SCALE), shown, draws=1500)
    size = (shown**2).sum(axis=1).mean()
    v = size * np.exp(draws.log_s)
    # The s.d. of the predictor is half-normal: its square is SCALE^2 times a chi-square of one.
    assert v.mean() == pytest.approx(SCALE**2, rel=0.05)
    assert np.mean(np.sqrt(v)) == pytest.approx(SCALE * np.sqrt(2 / np.pi), rel=0.03)
    assert draws.b.std() == pytest.approx(10.0, rel=0.03)
    assert draws.weights().std(axis=0) == pytest.approx(
        SCALE / np.sqrt(size) * np.ones(3), rel=0.08
    )


@pytest.mark.parametrize("case", CASES)
def test_pooled_member_has_the_widths_and_probabilities_of_the_exact_posterior(case):
    X, t, X_new = problem(case)
    _, sd, p = pooled_member(X, t, X_new)
    draws = exact.sample(X, exact.bernoulli(t), exact.half_normal_predictor(X, SCALE), X_new)
    low, high = np.quantile(draws.weights(), [0.05, 0.95], axis=0)
    ratio = 2 * 1.645 * sd / (high - low)
    gap = np.abs(p - draws.probabilities())
    print(
        f"\n{case}: widths {ratio.min():.2f} to {ratio.max():.2f} of exact, mean "
        f"{ratio.mean():.2f}; probabilities off by {gap.mean():.4f} on average and "
        f"{gap.max():.4f} at most"
    )
    assert 0.75 < ratio.mean() < 1.33
    assert ((ratio > 0.75) & (ratio < 1.33)).all()
    assert gap.max() < 0.03


# -- The weight posterior against long NUTS chains of the same model ------------------------------
#
# NumPyro and JAX are not installed by the ``test`` extra. To run:
#
#     pip install -e '.[test,mcmc]'
#     pytest -m slow -s tests/inference/test_exact.py


REASON = "NUTS needs NumPyro and JAX; install them with pip install -e '.[mcmc]'"
SIZES = (3, 5)


def eight_features(seed=0, N=60):
    """Sixty rows, views of 3 and 5 features, three of the eight with an effect."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, sum(SIZES)))
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    w = np.zeros(sum(SIZES))
    w[[0, 3, 4]] = 1.0, -1.0, 0.7
    t = (rng.random(N) < expit(X @ w + 0.3)).astype(float)
    return X, t


def nuts(model, *args, warmup=1500, samples=5000, chains=4):
    """Draws of the weights, intercept first, with the largest r-hat printed."""
    jax = pytest.importorskip("jax", reason=REASON)
    infer = pytest.importorskip("numpyro.infer", reason=REASON)
    jax.config.update("jax_enable_x64", True)
    kernel = infer.NUTS(model, target_accept_prob=0.95)
    mcmc = infer.MCMC(
        kernel,
        num_warmup=warmup,
        num_samples=samples,
        num_chains=chains,
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.PRNGKey(0), *args)
    draws = mcmc.get_samples(group_by_chain=True)
    b, w = np.asarray(draws["b"])[..., None], np.asarray(draws["w"])
    found = np.concatenate([b, w], axis=-1)  # chains, samples, weights
    within = found.var(axis=1, ddof=1).mean(axis=0)
    between = found.mean(axis=1).var(axis=0, ddof=1)
    r_hat = np.sqrt(1 + between / within).max()
    print(f"\n  NUTS: {chains} chains of {samples}, largest r-hat {r_hat:.4f}")
    assert r_hat < 1.02
    return found.reshape(-1, found.shape[-1])


def report(label, mean, sd, draws):
    """Print and return the largest gap of means (in posterior s.d.) and of s.d. (relative)."""
    true_mean, true_sd = draws.mean(axis=0), draws.std(axis=0)
    shift = np.abs(mean - true_mean) / true_sd
    ratio = sd / true_sd
    print(
        f"  {label}: means off by {shift[1:].max():.3f} posterior s.d. at most "
        f"({shift[1:].mean():.3f} on average; intercept {shift[0]:.3f}); "
        f"s.d. {100 * (ratio[1:].min() - 1):+.1f} % to {100 * (ratio[1:].max() - 1):+.1f} % "
        f"(intercept {100 * (ratio[0] - 1):+.1f} %)"
    )
    return shift, ratio


def test_fixed_precisions():
    """Prior variances fixed: means within 0.1 posterior s.d., s.d. within 10 %."""
    numpyro = pytest.importorskip("numpyro", reason=REASON)
    X, t = eight_features()
    s = np.repeat([0.5, 0.3], SIZES)

    def model(X, t):
        b = numpyro.sample("b", numpyro.distributions.Normal(0.0, np.sqrt(INTERCEPT_VAR)))
        with numpyro.plate("features", len(s)):
            w = numpyro.sample("w", numpyro.distributions.Normal(0.0, np.sqrt(s)))
        numpyro.sample("t", numpyro.distributions.Bernoulli(logits=b + X @ w), obs=t)

    draws = nuts(model, X, t)
    likelihood = LogisticLikelihood(t[None, None], np.ones((1, 1, 60)))
    design = in_views(X[None], np.repeat([0, 1], SIZES))
    q = WeightPosterior.start(design, likelihood, s[None, None])
    q.optimise_sites(max_iter=500, tol=1e-12)
    solution = q.solution
    shift, ratio = report(
        "variational", solution.w[0, 0], np.sqrt(solution.weight_var[0, 0]), draws
    )
    assert shift.max() < 0.1
    assert np.abs(ratio - 1).max() < 0.1
