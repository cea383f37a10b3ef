"""One function per factor of q: each raises the bound, or for damped steps is accepted if it does.

Sites (h, j) stand for the likelihood. With <v>, <vv^T> the moments of V, factor k sees

    r_nk      = sum_c h_nc <v_ck^2>
    r_nk y_nk = sum_c [ j_nc <v_ck> - h_nc (<b_c><v_ck> + sum_{k' != k} <v_ck v_ck'><f_nk'>) ]

which are its own sites. With one output K = 1 and V = 1: the scale lives in delta.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.model.ard import GammaPosterior, update_delta, update_gamma, update_omega
from baldur.model.posterior import (
    INTERCEPT_VAR,
    FeatureSide,
    SampleSide,
    Side,
    feature_side,
    sample_side,
    weight_moments,
)
from baldur.model.structured.rest import Rest
from baldur.model.structured.state import Data, State

Array = NDArray[np.float64]

LONGEST_LEAP = 10.0
"""Largest factor by which a leap may change a delta."""


def factor_sites(state: State, k: int) -> tuple[Array, Array]:
    """Return r_k and r_k y_k, each (N,): what factor k sees of the sites."""
    h, j = state.sites
    v = state.V[:, k]
    second = state.V_cov[:, k, :] + v[:, None] * state.V  # (C, K), <v_ck v_ck'>
    r = h @ second[:, k]
    linear = (j - h * state.b) @ v
    for other in range(len(state.factors)):
        if other != k and second[:, other].any():
            linear = linear - (h @ second[:, other]) * state.factors[other].mean
    return r, linear


def kernel(data: Data, state: State, k: int) -> Array:
    """Return K_k = sum_m X diag(1/(delta gamma)) X^T (+ intercept), from the Grams of gamma."""
    total = np.zeros((data.n_samples, data.n_samples))
    for m, gram in enumerate(state.grams):
        if state.n_in(m):
            total += gram / state.delta[m].mean[k]
    if not state.learn_intercepts:
        total += INTERCEPT_VAR
    return total


def update_weights(data: Data, state: State, k: int) -> Side:
    """Return q(w_k) given the sites and the other factors."""
    r, linear = factor_sites(state, k)
    if data.X is None:
        return sample_side(kernel(data, state, k), r, linear)
    s = np.concatenate([state.prior_variance(m, k) for m in range(len(data.views))])
    return feature_side(data.X, s, 0.0 if state.learn_intercepts else INTERCEPT_VAR, r, linear)


def gram_part(state: State, m: int) -> tuple[Any, ...]:
    """Return what the Gram of view m depends on."""
    return state.kept[m], state.gamma[m], state.rest[m] if state.rest else None


def refresh_grams(data: Data, state: State) -> None:
    """Recompute X diag(1/gamma) X^T of every view; the only weighted Grams of a sweep.

    Views whose features and precisions are the ones of the last time keep their Gram.
    """
    if data.X is not None:
        return
    old = dict(enumerate(zip(state.gram_parts, state.grams, strict=True)))
    parts, grams = [], []
    for m, view in enumerate(data.views):
        part = gram_part(state, m)
        if m in old and all(a is b for a, b in zip(part, old[m][0], strict=True)):
            gram = old[m][1]
        elif part[0].any():
            gram = view.weighted_gram(np.where(part[0], 1.0 / part[1].mean, 0.0))
            gram = gram if part[2] is None else gram + part[2].weighted_gram
        else:
            gram = np.zeros((data.n_samples, data.n_samples))
            gram = gram if part[2] is None else part[2].weighted_gram
        parts.append(part)
        grams.append(gram)
    state.gram_parts, state.grams = parts, grams


def feature_statistics(data: Data, state: State, m: int) -> tuple[Array, Array]:
    """Return x_d^T alpha_k and x_d^T C_k^-1 x_d for the features of view m, each (K, D_m)."""
    start = sum(data.widths[:m])
    stop = start + data.widths[m]
    alphas = np.stack([factor.alpha for factor in state.factors], axis=1)
    if data.X is not None:
        projected = alphas.T @ data.X[:, start:stop]
        S = [f.S[start:stop] for f in state.factors if isinstance(f, FeatureSide)]
        return projected, np.stack(S)
    matrices = [f.Ci for f in state.factors if isinstance(f, SampleSide)]
    return data.views[m].project_with_quadratics(alphas, matrices)


def refresh_moments(data: Data, state: State) -> None:
    """Recompute <w> and Var w of every view: one pass over the features."""
    state.w, state.w_var = [], []
    for m in range(len(data.views)):
        projected, S = feature_statistics(data, state, m)
        s = np.stack([state.prior_variance(m, k) for k in range(state.n_factors)])
        mean, var = weight_moments(s, projected, S)
        state.w.append(mean)
        state.w_var.append(var)


def view_statistics(data: Data, state: State, m: int) -> tuple[Array, Array]:
    """Return A = sum_d <gamma_d><w_kd>^2 and T, how many weights the data determine, each (K,).

    T = sum_d (1 - <delta_k><gamma_d> Var w_kd). On the sample side neither touches the features:
    with G = X diag(1/gamma) X^T, A = alpha^T G alpha/delta^2 and T = tr(C^-1 G)/delta.
    """
    delta = state.delta[m].mean
    A, T = np.zeros(state.n_factors), np.zeros(state.n_factors)
    start = sum(data.widths[:m])
    keep = slice(1 + start, 1 + start + data.widths[m])
    gamma = np.where(state.kept[m], state.gamma[m].mean, 0.0)
    for k, f in enumerate(state.factors):
        if isinstance(f, SampleSide):
            A[k] = f.alpha @ state.grams[m] @ f.alpha / delta[k] ** 2
            T[k] = np.vdot(f.Ci, state.grams[m]) / delta[k]
        else:
            A[k] = gamma @ f.w[keep] ** 2
            T[k] = state.n_in(m) - delta[k] * (gamma @ f.weight_var[keep])
    return np.maximum(A, 0.0), np.maximum(T, 0.0)


def gamma_second_moments(data: Data, state: State, m: int) -> Array:
    """Return sum_d <gamma_d><w_kd^2> of view m, (K,): A + (D - T)/delta."""
    A, T = view_statistics(data, state, m)
    return np.maximum(A + (state.n_in(m) - T) / state.delta[m].mean, 0.0)


def proposed_view_precisions(data: Data, state: State) -> list[GammaPosterior]:
    """Return q(delta_k^(m)) of every view; a view that is out keeps what it had."""
    return [
        update_delta(data.delta_prior(m), state.n_in(m), gamma_second_moments(data, state, m))
        if state.n_in(m)
        else state.delta[m]
        for m in range(len(state.kept))
    ]


def leaping_view_precisions(data: Data, state: State) -> list[GammaPosterior]:
    """Return where the update of delta would arrive if A and T stayed as they are.

    There (2 a_0 + D)/<delta> = 2 b_0 + A + (D - T)/<delta>, so <delta> = (2 a_0 + T)/(2 b_0 + A).
    The update itself moves by a share T/D of the way, which is nothing where features outnumber
    samples. A leap may overshoot, so it needs a guard.
    """
    proposed = []
    for m, old in enumerate(state.delta):
        if state.n_in(m):
            prior = data.delta_prior(m)
            A, T = view_statistics(data, state, m)
            mean = (2.0 * prior.shape + T) / (2.0 * prior.rate + A)
            mean = np.clip(mean, old.mean / LONGEST_LEAP, old.mean * LONGEST_LEAP)
            shape = prior.shape + 0.5 * state.n_in(m)
            old = GammaPosterior(shape, shape / mean)
        proposed.append(old)
    return proposed


def rescaled(data: Data, state: State, m: int) -> float:
    """Return the factor c that is best when gamma of view m is divided by it, delta multiplied.

    The prior of the weights depends on <delta><gamma> alone and does not change; the Gamma terms
    do, by -(a D - a_0 K) ln c - P/c - B c with P = a shape sum_d 1/r_d and B = b_0 sum_k <delta_k>.
    """
    gamma, kept = state.gamma[m], state.kept[m]
    inverse = float((1.0 / gamma.rate[kept]).sum())
    if state.rest and state.rest[m].count:
        inverse += state.rest[m].inverse_rate / state.rest[m].scale
    a, b = data.priors.gamma
    a0, b0 = data.delta_prior(m)
    P, B = b * gamma.shape * inverse, b0 * float(state.delta[m].mean.sum())
    p = a * state.n_in(m) - a0 * state.n_factors
    root = np.sqrt(p * p + 4.0 * P * B)
    return float(2.0 * P / (p + root) if p > 0 else (root - p) / (2.0 * B))


def update_scales(data: Data, state: State) -> None:
    """Shift scale between gamma and delta of every view; the weights' posterior stays as it is."""
    for m, delta in enumerate(state.delta):
        if not state.n_in(m):
            continue
        c = rescaled(data, state, m)
        state.gamma[m] = GammaPosterior(state.gamma[m].shape, c * state.gamma[m].rate)
        state.delta[m] = GammaPosterior(delta.shape, delta.rate / c)
        if state.rest:
            state.rest[m] = replace(state.rest[m], scale=c * state.rest[m].scale)
        if state.grams:
            state.grams[m] = c * state.grams[m]
            state.gram_parts[m] = gram_part(state, m)


def proposed_feature_precisions(data: Data, state: State) -> list[GammaPosterior]:
    """Return q(gamma_d^(m)), shared by the factors; needs current moments of the weights."""
    return [
        update_gamma(data.priors.gamma, state.n_factors, delta.mean @ (w**2 + w_var))
        for delta, w, w_var in zip(state.delta, state.w, state.w_var, strict=True)
    ]


def proposed_rest(data: Data, state: State) -> list[Rest]:
    """Return the rest of every view with its best common factor, in sample space alone."""
    proposed = []
    for m, rest in enumerate(state.rest):
        if rest.count:
            G, gamma_w2 = rest.weighted_gram, 0.0
            for f, d in zip(state.factors, state.delta[m].mean, strict=True):
                if isinstance(f, SampleSide):
                    gamma_w2 += rest.count + (f.alpha @ G @ f.alpha - np.vdot(f.Ci, G)) / d
            shape = state.gamma[m].shape
            best = rest.best_scale(data.priors.gamma, shape, max(float(gamma_w2), 0.0))
            rest = replace(rest, scale=best)
        proposed.append(rest)
    return proposed


def proposed_loadings(data: Data, state: State) -> tuple[Array, Array]:
    """Return mean and covariance of q(v_c), (C, K) and (C, K, K).

    Sigma_c^-1 = diag(<omega>) + sum_n h_nc <f_n f_n^T>
    <v_c>      = Sigma_c sum_n (j_nc - h_nc <b_c>) <f_n>

    Departure from the paper: <Z^T Z> carries its covariance, and there is an intercept.
    """
    h, j = state.sites
    F, F_var = state.latent()
    V = np.empty_like(state.V)
    cov = np.empty_like(state.V_cov)
    for c in range(V.shape[0]):
        weighted = F * h[:, c, None]
        A = weighted.T @ F
        A[np.diag_indices_from(A)] += h[:, c] @ F_var + state.omega.mean
        cov[c] = np.linalg.inv(A)
        V[c] = cov[c] @ (F.T @ (j[:, c] - h[:, c] * state.b[c]))
    return V, cov


def update_loading_precisions(data: Data, state: State) -> None:
    """q(omega_k): shape a0 + C/2, rate b0 + sum_c <v_ck^2>/2."""
    v2 = (state.V**2).sum(axis=0) + np.einsum("ckk->k", state.V_cov)
    state.omega = update_omega(data.priors.omega, state.V.shape[0], v2)


def proposed_intercepts(state: State) -> tuple[Array, Array]:
    """Return mean and variance of q(b_c): precision 1/s_0 + sum_n h, linear sum_n (j - h <v.f>)."""
    h, j = state.sites
    F, _ = state.latent()
    var = 1.0 / (1.0 / INTERCEPT_VAR + h.sum(axis=0))
    return var * (j - h * (F @ state.V.T)).sum(axis=0), var
