"""Starting states of a structured run: flat, and screened by the labels.

Random starts are useless here: from them the bound falls into the empty model.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import QuadratureLogistic
from baldur.model.structured.rest import Rest
from baldur.model.structured.state import Data, State

Array = NDArray[np.float64]


def flat_state(
    data: Data,
    V: Array | None = None,
    gamma: list[Array] | None = None,
    rest: list[Rest] | None = None,
) -> State:
    """Return the start in which every view explains an equal share: gamma = 1, delta_m = M D_m.

    Parameters
    ----------
    data : Data
    V : (C, K) array, optional
        Loadings; the identity by default. Given loadings are learned, and the intercepts then
        live outside the factors, because K factors cannot span C of them.
    gamma : list of (D_m,) arrays, optional
        Feature precisions to start from instead of 1.
    rest : list of Rest, optional
        Features beside those of `data`, with equal rates.
    """
    C, N, M = data.likelihood.n_outputs, data.n_samples, len(data.views)
    learned = V is not None
    loadings = np.eye(C) if V is None else np.array(V, dtype=float)
    K = loadings.shape[1]
    shape = data.priors.gamma.shape + 0.5 * K
    means = [np.ones(D) for D in data.widths] if gamma is None else gamma
    gammas = [
        GammaPosterior(np.inf, np.ones(len(g)))
        if np.isinf(data.priors.gamma.shape)
        else GammaPosterior(shape, shape / g)
        for g in means
    ]
    deltas = []
    for m, g in enumerate(gammas):
        # sum_d 1/(delta gamma_d) = 1/M: the prior variance of a view's part of the logit.
        target, count = (1.0 / g.mean).sum(), len(g.rate)
        if rest is not None:
            target, count = target + rest[m].count * rest[m].scale / shape, count + rest[m].count
        target, a = M * target, data.delta_prior(m).shape + 0.5 * count
        deltas.append(GammaPosterior(a, np.full(K, a / target)))
    omega_shape = data.priors.omega.shape + 0.5 * C
    level = np.tile(data.likelihood.base_rate(), (N, 1))
    noise = data.likelihood.noise_at(level, np.zeros_like(level))
    # Quadrature keeps V a point. Elsewhere q(V) is Gaussian from the start: the bound of a point
    # has no entropy, so the first Gaussian step could look like a loss and be refused for ever.
    spread = 1e-2 if learned and not isinstance(data.likelihood, QuadratureLogistic) else 0.0
    return State(
        kept=[np.ones(D, dtype=bool) for D in data.widths],
        gamma=gammas,
        delta=deltas,
        V=loadings,
        V_cov=np.tile(spread * np.eye(K), (C, 1, 1)),
        omega=GammaPosterior(omega_shape, np.full(K, omega_shape)),
        b=data.likelihood.base_rate() if learned else np.zeros(C),
        b_var=np.full(C, 1e-2) if learned else np.zeros(C),
        learn_loadings=learned,
        learn_intercepts=learned,
        sites=data.likelihood.evaluate(level, np.ones_like(level), noise)[1],
        noise=noise,
        extra=np.zeros((N, K)),
        rest=[] if rest is None else list(rest),
    )


def marginal_scores(data: Data) -> list[Array]:
    """Return max_c |x_d^T residual_c| for every feature of every view: one pass."""
    residual = data.likelihood.residual()
    residual = residual / np.maximum(np.linalg.norm(residual, axis=0), 1e-12)
    return [np.abs(view.project(residual)).max(axis=1) for view in data.views]


def screened_gamma(data: Data, n_best: int, scores: list[Array] | None = None) -> list[Array]:
    """Return gamma_d = 1/(beta_d^2 + floor) from a ridge on the best features by marginal score.

    beta is a ridge regression of the first residual direction on the `n_best` features; the
    result is scaled so that the best features have gamma about 1. All others have one common
    gamma, the largest.
    """
    scores = marginal_scores(data) if scores is None else scores
    widths = data.widths
    flat = np.concatenate(scores)
    best = np.sort(np.argsort(-flat, kind="stable")[: min(n_best, flat.size)])
    owner = np.repeat(np.arange(len(widths)), widths)
    offset = np.concatenate([[0], np.cumsum(widths)])
    X = np.concatenate(
        [v.columns(best[owner[best] == m] - offset[m]) for m, v in enumerate(data.views)], axis=1
    )
    residual = data.likelihood.residual()
    residual = residual / np.maximum(np.abs(residual).mean(axis=0), 1e-12)
    ridge = X @ X.T + len(best) * np.eye(len(X))
    beta = X.T @ linalg.solve(ridge, residual, assume_a="pos")
    power = np.zeros(flat.size)
    power[best] = (beta**2).mean(axis=1)
    gamma = 1.0 / (power + 1e-3 * max(float(power.max()), 1e-12))
    gamma = gamma / np.exp(np.log(gamma[best]).mean())
    return [gamma[offset[m] : offset[m + 1]] for m in range(len(widths))]
