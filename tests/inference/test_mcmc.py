"""The structured posterior against long NUTS chains of the same model.

NumPyro and JAX are not installed by the ``test`` extra. To run:

    pip install -e '.[test,mcmc]'
    pytest -m slow -s tests/inference/test_mcmc.py
"""

import numpy as np
import pytest
from baldur.inference.features import Columns
from baldur.inference.gaussian import Gaussian
from scipy.special import expit

from baldur.model.likelihood import QuadratureLogistic
from baldur.model.posterior import INTERCEPT_VAR

pytestmark = pytest.mark.slow

REASON = "NUTS needs NumPyro and JAX; install them with pip install -e '.[mcmc]'"
SIZES = (3, 5)


def problem(seed=0, N=60):
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
    X, t = problem()
    s = np.repeat([0.5, 0.3], SIZES)

    def model(X, t):
        b = numpyro.sample("b", numpyro.distributions.Normal(0.0, np.sqrt(INTERCEPT_VAR)))
        with numpyro.plate("features", len(s)):
            w = numpyro.sample("w", numpyro.distributions.Normal(0.0, np.sqrt(s)))
        numpyro.sample("t", numpyro.distributions.Bernoulli(logits=b + X @ w), obs=t)

    draws = nuts(model, X, t)
    likelihood = QuadratureLogistic(t[:, None], np.ones((60, 1)))
    columns = Columns(X, np.repeat([0, 1], SIZES), 2)
    q = Gaussian.start(columns, likelihood, s[None], np.zeros((60, 2)))
    q.settle(max_iter=500, tol=1e-12)
    side = q.sides[0]
    shift, ratio = report("quadrature", side.w, np.sqrt(np.diag(side.cov)), draws)
    assert shift.max() < 0.1
    assert np.abs(ratio - 1).max() < 0.1
