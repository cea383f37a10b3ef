"""Starting states: flat, and supervised screens. Random starts end at chance and are not offered.

``flat`` takes gamma = 1 and delta_m = M D_m, so that every view explains an equal share.
``screen-q`` ranks all features by |x_d^T (t - mean t)|, fits a ridge on the best q, and sets
gamma_d = 1/(beta_d^2 + floor) with beta in units of the output (logits in classification).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from baldur.exceptions import InputError
from baldur.model.ard import GammaPosterior
from baldur.paper.meanfield.products import project
from baldur.paper.meanfield.state import Array, Data, State, ViewState
from baldur.paper.meanfield.updates import build_spectrum
from baldur.paper.meanfield.weights import update_weights

DEFAULT_STARTS = ("flat", "screen-30", "screen-100", "screen-300")
LOGIT_SLOPE = 6.0
"""A least-squares slope on 0/1 labels times this is roughly a slope on the logit."""
START_TAU, START_PSI = 10.0, 4.0
"""Noise precisions held during the warm-up, per unit variance of the outputs: Z and Y stay near
what the weights explain, so that gamma can act before V shrinks."""


def screened_ridge(data: Data, n_best: int) -> list[Array]:
    """Ridge coefficients on the ``n_best`` screened features, (D_m, C) per view, zeros elsewhere.

    Outputs are centred. The penalty makes the fit of pure noise explain about half its
    variance: the mean eigenvalue of the Gram matrix of the chosen features.
    """
    s = data.weight
    target = data.T - (s @ data.T) / data.n
    scores = [project(view, s[:, None] * target) for view in data.views]
    strength = np.concatenate([np.sqrt(np.sum(score**2, axis=1)) for score in scores])
    # A stable sort, so ties fall to the earlier feature and one input has one answer.
    best = np.sort(np.argsort(-strength, kind="stable")[:n_best])
    edges = np.cumsum([0] + [view.shape[1] for view in data.views])
    chosen = [best[(best >= lo) & (best < hi)] - lo for lo, hi in pairwise(edges)]
    X = np.hstack([view.columns(idx) for view, idx in zip(data.views, chosen, strict=True)])
    weighted = s[:, None] * X
    gram = X.T @ weighted
    penalty = max(float(np.trace(gram)) / max(min(data.n, X.shape[1]), 1.0), np.finfo(float).tiny)
    beta = np.linalg.solve(gram + penalty * np.eye(X.shape[1]), weighted.T @ target)
    out, at = [], 0
    for view, idx in zip(data.views, chosen, strict=True):
        full = np.zeros((view.shape[1], data.T.shape[1]))
        full[idx] = beta[at : at + idx.size]
        at += idx.size
        out.append(full)
    return out


def output_scale(data: Data) -> float:
    """Variance of the outputs that precisions are measured against: 1 on the logit scale."""
    if data.classification:
        return 1.0
    centred = data.T - (data.weight @ data.T) / data.n
    return max(float(np.mean(data.weight @ centred**2)) / data.n, np.finfo(float).tiny)


def start_precisions(data: Data, start: str) -> tuple[list[Array], list[float]]:
    """Choose <gamma>, (D_m,), and <delta>, one number for all factors, per view."""
    M = len(data.views)
    if start == "flat":
        gammas = [np.ones(view.shape[1]) for view in data.views]
        scale = output_scale(data)
        return gammas, [M * view.shape[1] / scale for view in data.views]
    kind, _, number = start.partition("-")
    if kind != "screen" or not number.isdigit() or int(number) < 1:
        raise InputError(
            f"unknown start {start!r}: expected 'flat' or 'screen-<number of features>', "
            f"for example {', '.join(DEFAULT_STARTS)}"
        )
    slope = LOGIT_SLOPE if data.classification else 1.0
    beta2 = [np.mean((slope * beta) ** 2, axis=1) for beta in screened_ridge(data, int(number))]
    floor = 1e-3 * max(float(b.max(initial=0.0)) for b in beta2) + 1e-12
    return [1.0 / (b + floor) for b in beta2], [1.0] * M


def start_loadings(T: Array, weight: Array, n_factors: int, rng: np.random.Generator) -> Array:
    """Choose V, (C, K): the leading directions of the centred outputs, then small noise.

    With K = C = 1 this is V = 1; columns beyond the rank of the outputs carry no target of their
    own and start at a tenth of the size.
    """
    C = T.shape[1]
    centred = np.sqrt(weight)[:, None] * (T - (weight @ T) / weight.sum())
    _, _, rows = np.linalg.svd(centred, full_matrices=False)
    # A fixed sign, so that the factorisation does not depend on the LAPACK in use.
    rows *= np.sign(rows[np.arange(len(rows)), np.argmax(np.abs(rows), axis=1)])[:, None]
    V = 0.1 * rng.standard_normal((C, n_factors))
    led = min(n_factors, rows.shape[0])
    V[:, :led] = rows[:led].T
    return V


def initial_state(data: Data, gammas: list[Array], deltas: list[float], V: Array) -> State:
    """Build the state with the given precisions, its latents following the outputs."""
    N, C = data.T.shape
    K = V.shape[1]
    p = data.priors
    mean = (data.weight @ data.T) / data.n
    if data.classification:
        rate = np.clip(mean, 1e-3, 1 - 1e-3)
        b = np.log(rate / (1 - rate))
        Y = b + 4.0 * (data.T - mean)
        Y_var = np.ones((N, C))
    else:
        b, Y, Y_var = mean, data.T, np.zeros((N, C))
    Z = (Y - b) @ np.linalg.pinv(V).T
    scale = output_scale(data)
    tau_shape = p.tau.shape + 0.5 * data.n * K
    psi_shape = p.psi.shape + 0.5 * data.n * C
    omega_shape = p.omega.shape + 0.5 * C
    views = []
    for m, view in enumerate(data.views):
        D = view.shape[1]
        kept = np.ones(D, dtype=bool)
        shape = p.delta.shape + 0.5 * D
        delta = GammaPosterior(shape, np.full(K, shape / deltas[m]))
        g_shape = p.gamma.shape + 0.5 * K
        gamma = GammaPosterior(g_shape, g_shape / gammas[m])
        if np.isinf(g_shape):
            gamma = GammaPosterior(np.inf, np.ones(D))
        spectrum = build_spectrum(data, m, gamma.mean, kept)
        share = Z / len(data.views)
        q = update_weights(spectrum, delta.mean, START_TAU / scale, share, data.weight)
        zero = np.zeros(K)
        views.append(ViewState(q, delta, gamma, kept, q.gamma_w2, False, zero, zero, zero))
    return State(
        Z=Z,
        Z_cov=0.1 * scale * np.eye(K),
        V=V,
        V_cov=0.01 * np.eye(K),
        b=b,
        b_var=scale / data.n,
        Y=Y,
        Y_var=Y_var,
        xi=np.sqrt(Y**2 + Y_var),
        tau=GammaPosterior(tau_shape, np.array([tau_shape * scale / START_TAU])),
        psi=GammaPosterior(psi_shape, np.array([psi_shape * scale / START_PSI])),
        omega=GammaPosterior(omega_shape, np.full(K, omega_shape)),
        views=tuple(views),
    )
