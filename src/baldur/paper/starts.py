"""Starting states: flat, and supervised screens. Random starts end at chance and are not offered.

`flat` takes gamma = 1 and delta_m = M D_m, so that every view explains an equal share.
`screen-q` ranks all features by |x_d^T (t - mean t)|, fits a ridge on the best q, and sets
gamma_d = 1/(beta_d^2 + floor) with beta in units of the output (logits in classification).

With the sparse prior (a up to `SCREENED_SHAPE`) a start selects few features from the outset, and
only these cost time: a screen selects its q features, and the flat start those of narrow views. All
other features start as dropped ones, so the bound is that of the whole model.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from baldur.core.types import Array, Mask
from baldur.exceptions import InputError
from baldur.paper.priors import GammaPosterior
from baldur.paper.state import SCREENED_SHAPE, Data, State, ViewState, make_dropped
from baldur.paper.updates import build_spectrum
from baldur.paper.weights import choose_relevance_vectors, update_weights

DEFAULT_STARTS = ("flat", "screen-30", "screen-100")
"""Test AUC of the best bound of these three, two seeds each: 5 of 20 narrow features .91, .91; 10
of 2,000 wide features .81, .78; 3 and 5 of both .83, .88; BioFIND shape at .02 .74, .79; ADNI shape
at .05 .87. Without screening, and with a screen of 300 as well, it was .86, .78; .79, .78; .78,
.83; .73, .77; .86, and a fit of the ADNI shape took 85 s instead of 4 s."""
NARROW = 300
"""Views of up to this many features, or as many as samples, take part in the flat start. In wider
ones the flat start collapses (AUC .500 in every run measured)."""
LOGIT_SLOPE = 6.0
"""A least-squares slope on 0/1 labels times this is roughly a slope on the logit."""
START_TAU, START_PSI = 10.0, 4.0
"""Noise precisions held during the warm-up, per unit variance of the outputs: Z and Y stay near
what the weights explain, so that gamma can act before V shrinks."""


@dataclass(frozen=True)
class Start:
    """Where an optimisation begins."""

    gamma: list[Array]  # (d_m,); <gamma> of the selected features
    delta: list[float]  # <delta> of every view, one number for all factors
    selected: list[Mask]  # (D_m,)


def screened_ridge(data: Data, n_best: int) -> list[Array]:
    """Ridge coefficients on the ``n_best`` screened features, (D_m, C) per view, zeros elsewhere.

    Outputs are centred. The penalty makes the fit of pure noise explain about half its
    variance: the mean eigenvalue of the Gram matrix of the chosen features.
    """
    s = data.weight
    target = data.T - (s @ data.T) / data.n
    strength = np.concatenate([np.sqrt(np.sum(score**2, axis=1)) for score in data.scores])
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


def make_start(data: Data, name: str) -> Start:
    """Return the start called `name`: "flat" or "screen-<number of features>"."""
    screened = data.priors.gamma.shape <= SCREENED_SHAPE
    widths = [view.shape[1] for view in data.views]
    if name == "flat":
        limit = max(NARROW, data.views[0].shape[0])
        flat = [not screened or limit >= D for D in widths]
        delta = [max(sum(flat), 1) * D / output_scale(data) for D in widths]
        selected = [np.full(D, use) for D, use in zip(widths, flat, strict=True)]
        return Start([np.ones(mask.sum()) for mask in selected], delta, selected)
    kind, _, number = name.partition("-")
    if kind != "screen" or not number.isdigit() or int(number) < 1:
        raise InputError(
            f"unknown start {name!r}: expected 'flat' or 'screen-<number of features>', "
            f"for example {', '.join(DEFAULT_STARTS)}"
        )
    slope = LOGIT_SLOPE if data.classification else 1.0
    beta2 = [np.mean((slope * beta) ** 2, axis=1) for beta in screened_ridge(data, int(number))]
    floor = 1e-3 * max(float(b.max(initial=0.0)) for b in beta2) + 1e-12
    selected = [(b > 0) | (not screened) for b in beta2]
    gamma = [1.0 / (b[mask] + floor) for b, mask in zip(beta2, selected, strict=True)]
    return Start(gamma, [1.0] * len(widths), selected)


def choose_relevance(data: Data, start: Start, requests: list[Any]) -> Data:
    """Choose relevance vectors by the kernel X Lambda^-1 X^T of each view at the start.

    `requests` has "auto" or a number for views whose rows are to be chosen, see
    `dual.choose_relevance_vectors`. The literal dual takes all rows for "auto".
    """
    relevance = list(data.relevance)
    for m, request in enumerate(requests):
        automatic = isinstance(request, str)
        if request is None or np.ndim(request) > 0 or (automatic and data.spaces[m] != "dual"):
            continue
        variance = np.zeros(data.views[m].shape[1])
        variance[start.selected[m]] = 1.0 / start.gamma[m]
        root = np.sqrt(data.weight)
        kernel = root[:, None] * data.views[m].weighted_gram(variance) * root
        relevance[m] = choose_relevance_vectors(kernel, None if automatic else int(request))
    return replace(data, relevance=relevance)


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


def initial_state(data: Data, start: Start, V: Array) -> State:
    """Build the state with the precisions of a start, its latents following the outputs."""
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
        selected, D = start.selected[m], view.shape[1]
        shape = p.delta.shape + 0.5 * D
        delta = GammaPosterior(shape, np.full(K, shape / start.delta[m]))
        shape = p.gamma.shape + 0.5 * K
        rate = np.ones(start.gamma[m].size) if np.isinf(shape) else shape / start.gamma[m]
        gamma = GammaPosterior(shape, rate)
        spectrum = build_spectrum(data, m, gamma.mean, selected)
        tau, share = START_TAU / scale, Z / len(data.views)
        q = update_weights(spectrum, delta.mean, tau, share, data.weight)
        groups = data.groups[m]
        dropped = make_dropped(p.gamma, groups, groups.count(selected), delta.mean, tau)
        views.append(ViewState(q, delta, gamma, selected, q.gamma_w2, False, dropped))
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
