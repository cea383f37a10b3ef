"""Starts of the mean-field fit: precisions, selected features and loadings.

Random starts end at chance and are not offered. `flat` takes gamma = 1 and delta_m = M D_m, so that
every view explains an equal share. `screen-q` ranks all features by |x_d^T (t - mean t)|, fits a
ridge on the best q, and sets gamma_d = 1/(beta_d^2 + floor) with beta in units of the output
(logits in classification).

With the sparse prior (a up to `SCREENED_SHAPE`) a start selects few features from the outset, and
only these cost time: a screen selects its q features, and the flat start those of narrow views. All
other features start as dropped ones, so the bound is that of the whole model.
"""

from __future__ import annotations

import numpy as np

from baldur.core.types import Array, Mask
from baldur.inference.design import gather
from baldur.inference.inner_folds import best_features
from baldur.paper.pruning import SCREENED_SHAPE
from baldur.paper.state import VAGUE, Data, GammaPosterior, State, ViewState, make_dropped
from baldur.paper.updates import build_spectrum
from baldur.paper.weights import update_weights

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


def screened_ridge(data: Data, n_best: int) -> list[Array]:
    """Return ridge coefficients on the `n_best` features most associated with the outputs.

    They are (D_m, C) per view, zeros elsewhere; outputs are centred. The penalty makes the fit of
    pure noise explain about half its variance: the mean eigenvalue of the Gram matrix of the chosen
    features.
    """
    weight = data.weight
    target = data.T - (weight @ data.T) / data.n
    strength = [np.sqrt(np.sum(score**2, axis=1)) for score in data.scores]
    index = best_features(strength, n_best)
    X = gather([columns.view for columns in data.views], index)
    weighted = weight[:, None] * X
    gram = X.T @ weighted
    penalty = max(float(np.trace(gram)) / max(min(data.n, X.shape[1]), 1.0), np.finfo(float).tiny)
    beta = np.linalg.solve(gram + penalty * np.eye(X.shape[1]), weighted.T @ target)
    coef = [np.zeros_like(score) for score in data.scores]
    by_view = np.split(beta, np.cumsum([len(columns) for columns in index])[:-1])
    for view_coef, columns, values in zip(coef, index, by_view, strict=True):
        view_coef[columns] = values
    return coef


Start = tuple[list[Array], list[float], list[Mask]]
"""<gamma> of the selected features (d_m,), <delta> and mask (D_m,) of the selected of each view."""


def make_start(data: Data, name: str) -> Start:
    """Return precisions to start from: "flat", or "screen-<number of features>" from ridge weights.

    A flat start has gamma = 1 and drops views that are too wide; a screened one drops the features
    outside its screen.
    """
    screened = data.gamma_prior.shape <= SCREENED_SHAPE
    widths = [view.shape[1] for view in data.views]
    if name == "flat":
        limit = max(NARROW, data.views[0].shape[0])
        flat = [not screened or limit >= D for D in widths]
        delta = [max(sum(flat), 1) * D / data.output_scale for D in widths]
        selected = [np.full(D, use) for D, use in zip(widths, flat, strict=True)]
        return [np.ones(mask.sum()) for mask in selected], delta, selected
    slope = LOGIT_SLOPE if data.classification else 1.0
    beta2 = [
        np.mean((slope * beta) ** 2, axis=1)
        for beta in screened_ridge(data, int(name.removeprefix("screen-")))
    ]
    # Keeps gamma finite where a coefficient is near 0.
    floor = 1e-3 * max(float(b.max(initial=0.0)) for b in beta2) + 1e-12
    selected = [(b > 0) | (not screened) for b in beta2]
    gamma = [1.0 / (b[mask] + floor) for b, mask in zip(beta2, selected, strict=True)]
    return gamma, [1.0] * len(widths), selected


def start_loadings(T: Array, weight: Array, n_factors: int, rng: np.random.Generator) -> Array:
    """Choose V, (C, K): the leading directions of the centred outputs, then small noise.

    With K = C = 1 this is V = 1. Factors beyond the number of outputs have no direction of their
    own and start at a tenth of the size.

    Shapes: T (n_samples, C), weight (n_samples,).
    """
    C = T.shape[1]
    centred = np.sqrt(weight)[:, None] * (T - (weight @ T) / weight.sum())
    _, _, rows = np.linalg.svd(centred, full_matrices=False)
    # A fixed sign, so that the factorisation does not depend on the LAPACK in use.
    rows *= np.sign(rows[np.arange(len(rows)), np.argmax(np.abs(rows), axis=1)])[:, None]
    V = 0.1 * rng.standard_normal((C, n_factors))
    n_leading = min(n_factors, rows.shape[0])
    V[:, :n_leading] = rows[:n_leading].T
    return V


def initial_state(data: Data, start: Start, V: Array) -> State:
    """Build the state with the precisions of a start, its latents following the outputs."""
    start_gamma, start_delta, masks = start
    N, C = data.T.shape
    K = V.shape[1]
    mean = (data.weight @ data.T) / data.n
    if data.classification:
        rate = np.clip(mean, 1e-3, 1 - 1e-3)
        b = np.log(rate / (1 - rate))
        Y = b + 4.0 * (data.T - mean)  # the slope of the logistic function at 0 is 1/4
        Y_var = np.ones((N, C))
    else:
        b, Y, Y_var = mean, data.T, np.zeros((N, C))
    Z = (Y - b) @ np.linalg.pinv(V).T
    scale = data.output_scale
    tau_shape = VAGUE.shape + 0.5 * data.n * K
    psi_shape = VAGUE.shape + 0.5 * data.n * C
    views = []
    for m, selected in enumerate(masks):
        delta = VAGUE.posterior_of_mean(selected.size, np.full(K, start_delta[m]))
        gamma = data.gamma_prior.posterior_of_mean(K, start_gamma[m])
        spectrum = build_spectrum(data, m, gamma.mean, selected)
        tau = START_TAU / scale
        # Each view starts with an equal part of Z to explain.
        q = update_weights(spectrum, delta.mean, tau, Z / len(data.views), data.weight)
        count = data.count_dropped(m, selected)
        dropped = make_dropped(data, m, count, delta.mean, tau)
        views.append(ViewState(q, delta, gamma, selected, False, dropped))
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
        omega=VAGUE.posterior_of_mean(C, np.ones(K)),
        views=tuple(views),
    )
