"""What to drop, by evidence: a feature, factor or view goes if the bound is higher without it.

For one feature the change is known in closed form from its leave-one-out statistics. With prior
variance s and q = x^T alpha, S = x^T C^-1 x,

    S' = S/(1 - s S),  Q' = q/(1 - s S)
    gain = sum_k [ Q'^2 s/(1 + s S') - ln(1 + s S') ]/2  + what its precision gamma_d costs
           + its part of what the precision delta of its view costs

The rule has no threshold and does not depend on units: the prior itself sets the price of a
feature, through the Gamma terms of gamma_d and delta.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from baldur.inference.sweep import start_factors, step_sites, step_view_precisions
from baldur.model.ard import GammaPosterior, gamma_term, shape_gap
from baldur.model.structured.bound import bound
from baldur.model.structured.state import Data, State
from baldur.model.structured.updates import feature_statistics

Array = NDArray[np.float64]

SETTLING_STEPS = 5
"""Steps of the sites and of delta that a trial gets before its bound is compared."""


def feature_gains(data: Data, state: State, m: int) -> Array:
    """Return what each feature of view m adds to the bound, (D_m,); 0 where dropped."""
    projected, S = feature_statistics(data, state, m)
    s = np.stack([state.prior_variance(m, k) for k in range(state.n_factors)])
    left = np.maximum(1.0 - s * S, 1e-12)
    Q1, S1 = projected / left, S / left
    gain = 0.5 * (Q1**2 * s / (1.0 + s * S1) - np.log1p(s * S1)).sum(axis=0)
    gain += precision_costs(data, state, m) + shared_cost(data, state, m)
    return np.where(state.kept[m], gain, 0.0)


def precision_costs(data: Data, state: State, m: int) -> Array:
    """Return the part of the bound that each gamma_d of view m carries, at most 0."""
    gamma, prior = state.gamma[m], data.priors.gamma
    if np.isinf(gamma.shape):
        return np.zeros_like(gamma.rate)
    gap = 0.5 * state.n_factors * shape_gap(gamma.shape)
    # gamma_term sums over features; one call on a unit rate gives the constant part.
    unit = gamma_term(GammaPosterior(gamma.shape, np.ones(1)), prior)
    return gap + unit - prior.shape * np.log(gamma.rate) - prior.rate * (gamma.mean - gamma.shape)


def shared_cost(data: Data, state: State, m: int) -> float:
    """Return what one more feature of view m costs through delta, at most 0.

    The last feature of a view also carries the Gamma term of delta, which goes with it.
    """
    delta = state.delta[m]
    cost = 0.5 * state.n_factors * shape_gap(delta.shape)
    if state.n_in(m) <= 1:
        cost += gamma_term(delta, data.delta_prior(m))
    return cost


def drop_features(data: Data, state: State, before: float) -> tuple[float, int]:
    """Drop features whose gain is negative; return bound and count.

    All of them if the bound then rises, else the worse half, quarter and so on: two features that
    stand for each other can both look useless while both are in.
    """
    if np.isinf(data.priors.gamma.shape):
        return before, 0
    gains = [feature_gains(data, state, m) for m in range(len(data.views))]
    flat = np.concatenate(gains)
    negative = np.flatnonzero(flat < 0.0)
    if not negative.size:
        return before, 0
    worst = negative[np.argsort(flat[negative], kind="stable")]
    edges = np.concatenate([[0], np.cumsum(data.widths)])
    parts = state.snapshot()
    while len(worst):
        out = np.zeros(flat.size, dtype=bool)
        out[worst] = True
        state.kept = [kept & ~out[edges[m] : edges[m + 1]] for m, kept in enumerate(state.kept)]
        after = settle(data, state)
        if after >= before:
            return after, len(worst)
        state.restore(parts)
        worst = worst[: len(worst) // 2]
    return before, 0


def drop_views(data: Data, state: State, before: float) -> tuple[float, list[int]]:
    """Drop views one at a time, that whose loss helps most first; return bound and views."""
    dropped: list[int] = []
    while True:
        parts = state.snapshot()
        trials = []
        for m in range(len(data.views)):
            if state.kept[m].any():
                state.kept[m] = np.zeros_like(state.kept[m])
                trials.append((settle(data, state), m, state.snapshot()))
                state.restore(parts)
        if not trials:
            return before, dropped
        after, m, best = max(trials, key=lambda trial: trial[0])
        if after <= before:
            return before, dropped
        state.restore(best)
        before = after
        dropped.append(m)


def drop_factors(data: Data, state: State, before: float) -> tuple[float, int]:
    """Drop factors of learned loadings while the bound rises; return bound and count."""
    dropped = 0
    while state.learn_loadings and state.n_factors > 1:
        strength = (state.V**2).sum(axis=0) * state.latent()[0].var(axis=0)
        k = int(np.argmin(strength))
        parts = state.snapshot()
        remove_factor(data, state, k)
        after = settle(data, state)
        if after <= before:
            state.restore(parts)
            break
        before, dropped = after, dropped + 1
    return before, dropped


def remove_factor(data: Data, state: State, k: int) -> None:
    """Take factor k out of every posterior, in place."""
    keep = np.arange(state.n_factors) != k
    state.V = state.V[:, keep]
    state.V_cov = state.V_cov[:, keep][:, :, keep]
    state.omega = GammaPosterior(state.omega.shape, state.omega.rate[keep])
    state.delta = [GammaPosterior(d.shape, d.rate[keep]) for d in state.delta]
    state.extra = state.extra[:, keep]
    state.factors = [f for i, f in enumerate(state.factors) if i != k]
    if np.isfinite(data.priors.gamma.shape):
        shape = data.priors.gamma.shape + 0.5 * state.n_factors
        state.gamma = [GammaPosterior(shape, shape / g.mean) for g in state.gamma]


def settle(data: Data, state: State) -> float:
    """Recompute q(W) after a drop, let sites and delta follow, and return the bound."""
    start_factors(data, state)
    value = bound(data, state)
    for _ in range(SETTLING_STEPS):
        value = step_sites(data, state, value)
        value = step_view_precisions(data, state, value)
    return value


def view_factor_signal(data: Data, state: State) -> Array:
    """Return mean_n (x_n^(m) <w_k^(m)>)^2 over the rows that have view m, (M, K)."""
    signal = np.zeros((len(data.views), state.n_factors))
    for m, view in enumerate(data.views):
        if state.n_in(m):
            part = view_part(data, state, m)
            signal[m] = (part[~view.absent] ** 2).mean(axis=0)
    return signal


def view_part(data: Data, state: State, m: int) -> Array:
    """Return x^(m) <w_k^(m)> of the training rows, (N, K)."""
    if data.X is None:
        parts = [
            state.grams[m] @ f.alpha / d
            for f, d in zip(state.factors, state.delta[m].mean, strict=True)
        ]
        return np.stack(parts, axis=1)
    start = sum(data.widths[:m])
    X = data.X[:, start : start + data.widths[m]]
    w = [
        state.prior_variance(m, k) * (X.T @ factor.alpha) for k, factor in enumerate(state.factors)
    ]
    return X @ np.stack(w, axis=1)
