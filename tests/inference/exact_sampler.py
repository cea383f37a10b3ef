"""Exact posteriors of the pooled member, to compare with: a sampler, a grid, a closed form.

    eta = b + X w,   w ~ N(0, s I),   b ~ N(0, 100),   ln s ~ a given density

The sampler takes any log-concave likelihood of eta. It alternates Hamiltonian steps of (u, b) given
s, where w = sqrt(s) u, and slice sampling of ln s twice: given w, and given u, because each of the
two alone mixes badly where the other mixes well. Many chains run side by side in rows of arrays.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logsumexp

INTERCEPT_VAR = 100.0


@dataclass
class Draws:
    """Draws of a posterior, (chains, draws, ...), and P(t = 1) of new rows by chain."""

    w: np.ndarray
    b: np.ndarray
    log_s: np.ndarray
    p_new: np.ndarray

    def weights(self):
        """All draws of w, (draws of all chains, D)."""
        return self.w.reshape(-1, self.w.shape[-1])

    def probabilities(self):
        """Posterior predictive probabilities of the new rows."""
        return self.p_new.mean(axis=0)

    def error(self, by_chain):
        """Standard error of the mean of a figure, (chains, ...), from chain to chain."""
        return by_chain.std(axis=0, ddof=1) / np.sqrt(len(by_chain))


@dataclass
class Likelihood:
    """ln p(data | eta), its slope in eta (chains, N), and a bound of its curvature."""

    value: Callable[[np.ndarray], np.ndarray]
    slope: Callable[[np.ndarray], np.ndarray]
    curvature: float


def bernoulli(t):
    """Return the likelihood of labels 0 and 1."""
    return Likelihood(
        lambda eta: (t * eta - np.logaddexp(0.0, eta)).sum(axis=1), lambda eta: t - expit(eta), 0.25
    )


def gaussian(y, noise):
    """Return the likelihood of numbers with known noise s.d., up to a constant."""
    return Likelihood(
        lambda eta: -0.5 * (((y - eta) / noise) ** 2).sum(axis=1),
        lambda eta: (y - eta) / noise**2,
        1.0 / noise**2,
    )


def half_normal_predictor(X, scale):
    """Return the ln density of ln s under which the s.d. of X w is half-normal.

    The variance that s gives X w, averaged over rows, is v = s mean_n |x_n|^2; sqrt(v) is
    half-normal with this scale, so that ln p(ln s) = ln(v)/2 - v/(2 scale^2) + const.
    """
    size = (X**2).sum(axis=1).mean()
    return lambda log_s: 0.5 * log_s - 0.5 * size * np.exp(log_s) / scale**2


def sample(
    X: np.ndarray,
    likelihood: Likelihood,
    log_prior: Callable[[np.ndarray], np.ndarray],
    X_new: np.ndarray,
    *,
    chains: int = 64,
    burn: int = 150,
    draws: int = 600,
    thin: int = 2,
    seed: int = 0,
) -> Draws:
    """Sample the posterior of w, b and ln s; `log_prior` is the ln density of ln s."""
    rng = np.random.default_rng(seed)
    D = X.shape[1]
    log_s = rng.normal(-np.log(max((X**2).sum(axis=1).mean(), 1.0)), 1.0, chains)
    u, b = rng.standard_normal((chains, D)), np.zeros(chains)
    largest = float(np.linalg.eigvalsh(X @ X.T)[-1])
    kept_w, kept_b, kept_s = [], [], []
    p_new, n_kept = np.zeros((chains, len(X_new))), 0
    for step in range(burn + draws):
        u, b = _hamiltonian(X, likelihood, largest, log_s, u, b, rng)
        g = u @ X.T

        def given_u(x, b=b, g=g):
            return likelihood.value(b[:, None] + np.exp(0.5 * x)[:, None] * g) + log_prior(x)

        log_s = _slice(given_u, log_s, rng)
        w = np.exp(0.5 * log_s)[:, None] * u
        squares = (w**2).sum(axis=1)

        def given_w(x, squares=squares):
            return -0.5 * (D * x + squares * np.exp(-x)) + log_prior(x)

        log_s = _slice(given_w, log_s, rng)
        u = w * np.exp(-0.5 * log_s)[:, None]
        if step >= burn and step % thin == 0:
            kept_w.append(w)
            kept_b.append(b)
            kept_s.append(log_s)
            p_new += expit(w @ X_new.T + b[:, None])
            n_kept += 1
    stacked = (np.stack(part, axis=1) for part in (kept_w, kept_b, kept_s))
    return Draws(*stacked, p_new / n_kept)


def _hamiltonian(X, likelihood, largest, log_s, u, b, rng):
    """One Hamiltonian step of (u, b) for every chain.

    The step size follows from the largest curvature at this s, so that no tuning is needed: 0.8
    over its root, and up to 24 steps, a number drawn for all chains.
    """
    root = np.exp(0.5 * log_s)[:, None]

    def slopes(u, b):
        pull = likelihood.slope(b[:, None] + root * (u @ X.T))
        return root * (pull @ X) - u, pull.sum(axis=1) - b / INTERCEPT_VAR

    def energy(u, b, pu, pb):
        value = likelihood.value(b[:, None] + root * (u @ X.T))
        prior = 0.5 * ((u**2).sum(axis=1) + b**2 / INTERCEPT_VAR)
        return prior - value + 0.5 * ((pu**2).sum(axis=1) + pb**2)

    curvature = 1.0 + likelihood.curvature * (np.exp(log_s) * largest + len(X))
    step = rng.uniform(0.6, 0.9) / np.sqrt(curvature)
    pu, pb = rng.standard_normal(u.shape), rng.standard_normal(len(b))
    before = energy(u, b, pu, pb)
    new_u, new_b = u, b
    du, db = slopes(u, b)
    for _ in range(rng.integers(4, 25)):
        pu, pb = pu + 0.5 * step[:, None] * du, pb + 0.5 * step * db
        new_u, new_b = new_u + step[:, None] * pu, new_b + step * pb
        du, db = slopes(new_u, new_b)
        pu, pb = pu + 0.5 * step[:, None] * du, pb + 0.5 * step * db
    taken = np.log(rng.random(len(b))) < before - energy(new_u, new_b, pu, pb)
    return np.where(taken[:, None], new_u, u), np.where(taken, new_b, b)


def _slice(log_density, x, rng, width=1.5, most=20):
    """One slice step of a number for every chain, stepping out and shrinking."""
    height = log_density(x) + np.log(rng.random(len(x)))
    low = x - width * rng.random(len(x))
    high = low + width
    for _ in range(most):
        out = log_density(low) > height
        low = np.where(out, low - width, low)
        if not out.any():
            break
    for _ in range(most):
        out = log_density(high) > height
        high = np.where(out, high + width, high)
        if not out.any():
            break
    new = rng.uniform(low, high)
    open_ = log_density(new) < height
    while open_.any():
        low = np.where(open_ & (new < x), new, low)
        high = np.where(open_ & (new >= x), new, high)
        new = np.where(open_, rng.uniform(low, high), new)
        open_ &= log_density(new) < height
    return new


@dataclass
class Moments:
    """Means and s.d. of the weights, (D,), and P(t = 1) of new rows."""

    mean: np.ndarray
    sd: np.ndarray
    p_new: np.ndarray


def by_grid(X, t, log_prior, X_new, *, reach=12.0, n_w=41, n_b=61) -> Moments:
    """Integrate one or two weights, b and ln s on grids; exact for smooth, bell-shaped integrands.

    For every ln s the weights run over 6 s.d. of their prior, or over `reach` if that is less.
    """
    D = X.shape[1]
    b = np.linspace(-reach, reach, n_b)
    logs, firsts, seconds, rates = [], [], [], []
    for log_s in np.arange(-14.0, 8.0, 0.5):
        s = np.exp(log_s)
        side = np.linspace(-1.0, 1.0, n_w) * min(6 * np.sqrt(s), reach)
        w = np.stack([part.ravel() for part in np.meshgrid(*[side] * D)], axis=1)
        w_b = np.repeat(w, n_b, axis=0), np.tile(b, len(w))
        prior = -0.5 * (w_b[0] ** 2).sum(axis=1) / s - 0.5 * D * log_s
        prior += D * np.log(side[1] - side[0]) - 0.5 * w_b[1] ** 2 / INTERCEPT_VAR
        density = bernoulli(t).value(w_b[0] @ X.T + w_b[1][:, None]) + prior + log_prior(log_s)
        top = logsumexp(density)
        weight = np.exp(density - top)
        logs.append(top)
        firsts.append(weight @ w_b[0])
        seconds.append(weight @ w_b[0] ** 2)
        rates.append(weight @ expit(w_b[0] @ X_new.T + w_b[1][:, None]))
    share = np.exp(logs - logsumexp(logs))
    mean = share @ firsts
    return Moments(mean, np.sqrt(share @ seconds - mean**2), share @ rates)


def by_formula(X, y, noise, log_prior) -> Moments:
    """Moments under a Gaussian likelihood: closed form given s, a sum over ln s."""
    N = len(X)
    logs, means, variances = [], [], []
    for log_s in np.arange(-16.0, 8.0, 0.05):
        s = np.exp(log_s)
        C = s * X @ X.T + INTERCEPT_VAR + noise**2 * np.eye(N)
        solved = np.linalg.solve(C, np.column_stack([y, X]))
        value = -0.5 * (y @ solved[:, 0] + np.linalg.slogdet(C)[1])
        logs.append(value + log_prior(log_s))
        means.append(s * X.T @ solved[:, 0])
        variances.append(s - s**2 * np.einsum("nd,nd->d", X, solved[:, 1:]))
    share = np.exp(logs - logsumexp(logs))
    mean = share @ means
    sd = np.sqrt(share @ (np.array(variances) + np.array(means) ** 2) - mean**2)
    return Moments(mean, sd, np.zeros(0))
