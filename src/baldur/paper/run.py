"""The fit from several starts: warm-up, sweeps, pruning, stopping, history.

Random starts end at chance and are not offered. `flat` takes gamma = 1 and delta_m = M D_m, so that
every view explains an equal share. `screen-q` ranks all features by |x_d^T (t - mean t)|, fits a
ridge on the best q, and sets gamma_d = 1/(beta_d^2 + floor) with beta in units of the output
(logits in classification).

With the sparse prior (a up to `SCREENED_SHAPE`) a start selects few features from the outset, and
only these cost time: a screen selects its q features, and the flat start those of narrow views. All
other features start as dropped ones, so the bound is that of the whole model.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.core.types import Array, IntArray, Mask
from baldur.exceptions import InputError
from baldur.inference.design import gather
from baldur.inference.inner_folds import Problem, best_features
from baldur.paper.bound import bound
from baldur.paper.predictor import MeanFieldResult, collect
from baldur.paper.pruning import PRUNERS, SCREENED_SHAPE, factor_constant, selection_price
from baldur.paper.state import (
    VAGUE,
    Data,
    GammaPosterior,
    GammaPrior,
    State,
    ViewState,
    group_norms,
    make_dropped,
)
from baldur.paper.updates import build_spectrum, gamma_pass, inner_cycle
from baldur.paper.weights import (
    SelectedColumns,
    choose_relevance_vectors,
    column_statistics,
    update_weights,
)

SPACES = ("primal", "dual")
N_INNER = 20
"""Cycles in sample space per gamma step; they are cheap, and gamma then sees converged weights."""
WARM_UP = 10
"""Sweeps with V, tau and psi held at their start, so that V cannot shrink before gamma acts."""
PRUNE_EVERY = 5
"""Sweeps between two attempts to drop features."""
JUDGE_FACTORS_EVERY = 20
"""Sweeps between two attempts to drop factors. Surplus factors make a fit slow: with four labels of
two factors, the flat start did not converge in 200 sweeps when they were judged only at the end."""
GIVE_UP_AFTER = WARM_UP + 10
"""Sweeps that every start has before it may be given up."""
PATIENCE = 3
"""Sweeps in a row below the tolerance that count as convergence; any drop starts the count anew."""
HELD = ("tau", "V", "omega", "psi")
"""Updates that are left out during the warm-up."""
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


def prepare_data(
    problem: Problem,
    *,
    a_gamma: float = 1e-6,
    spaces: str | Sequence[str] = "primal",
    relevance: Any = None,
    bound_kind: str = "jaakkola",
) -> Data:
    """Return the data of a run, what does not change while it updates its posteriors.

    `choose_relevance` chooses for each start the relevance vectors that are not given.
    """
    T, weight = problem.T, problem.weight
    views = [SelectedColumns(view) for view in problem.views]
    centred = weight[:, None] * (T - weight @ T / weight.sum())
    norms, scores = zip(*(column_statistics(v, weight, centred) for v in views), strict=True)
    strength = [float(np.mean(score**2)) for score in scores]  # association with the outputs
    M = len(views)
    spaces = _for_views(spaces if isinstance(spaces, str) else list(spaces), M, "space")
    requests = _for_views(relevance, M, "relevance_vectors")
    return Data(
        views=views,
        T=T,
        weight=weight,
        classification=problem.logistic,
        quadrature=bound_kind == "quadrature",
        gamma_prior=GammaPrior(a_gamma, a_gamma),
        spaces=spaces,
        relevance=[_relevance_rows(request, m, len(T)) for m, request in enumerate(requests)],
        norms=list(norms),
        groups=[group_norms(norm) for norm in norms],
        scores=list(scores),
        order=sorted(range(M), key=lambda m: (-strength[m], m)),
    )


def _for_views(value: Any, M: int, name: str) -> list[Any]:
    """Return an argument for each of M views, from one for all of them or a list."""
    values = list(value) if isinstance(value, list | tuple) else [value] * M
    if len(values) != M:
        raise InputError(f"{name} lists {len(values)} entries for {M} views")
    return values


def _relevance_rows(request: Any, m: int, N: int) -> str | int | IntArray:
    """Return the rows requested for view `m`, or how they are to be chosen."""
    if request is None:
        return np.arange(N)
    if isinstance(request, str):
        if request != "auto":
            raise InputError(f"view {m}: relevance must be 'auto', rows or a number: {request!r}")
        return request
    if np.ndim(request) == 0:
        if not 1 <= int(request) <= N:
            raise InputError(
                f"view {m}: the number of relevance vectors must lie in 1..{N}, got {request}"
            )
        return int(request)
    rows = np.unique(np.asarray(request))
    if rows.dtype.kind not in "iu" or rows.min() < 0 or rows.max() >= N:
        raise InputError(f"view {m}: relevance rows must be integers in 0..{N - 1}")
    return rows.astype(np.intp)


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


def choose_relevance(data: Data, start: Start) -> Data:
    """Choose relevance vectors that are not given, by the kernel X Lambda^-1 X^T at the start."""
    relevance, (gamma, _, selected) = list(data.relevance), start
    for m, request in enumerate(data.relevance):
        if data.spaces[m] != "dual" or isinstance(request, np.ndarray):
            continue
        variance = np.zeros(data.views[m].shape[1])
        variance[selected[m]] = 1.0 / gamma[m]
        root = np.sqrt(data.weight)
        kernel = root[:, None] * data.views[m].weighted_gram(variance) * root
        most = request if isinstance(request, int) else None
        relevance[m] = choose_relevance_vectors(kernel, most)
    return replace(data, relevance=relevance)


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


def run_meanfield(
    problem: Problem,
    *,
    n_factors: int,
    starts: Sequence[str] = DEFAULT_STARTS,
    max_iter: int = 300,
    tol: float = 1e-4,
    prune: bool = True,
    rng: int = 0,
    callback: Callable[[dict[str, Any]], None] | None = None,
    **options: Any,
) -> MeanFieldResult:
    """Fit the mean-field family from several starts and return the one of the best bound.

    `options` are those of `prepare_data`.
    """
    data = prepare_data(problem, **options)
    V = start_loadings(data.T, data.weight, n_factors, np.random.default_rng(rng))
    ascents: list[dict[str, Any]] = []
    scores: list[float] = []
    # Screens first: the flat start is then given up early where it cannot win.
    for name in sorted(starts, key=lambda name: name == "flat"):
        start = make_start(data, name)
        start_data = choose_relevance(data, start)
        state = initial_state(start_data, start, V)
        to_beat = max(scores, default=-np.inf)
        ascent = _ascend(name, state, start_data, max_iter, tol, prune, callback, to_beat)
        ascents.append(ascent)
        # The best start has the highest bound minus the price of the views in use.
        scores.append(ascent["elbo"] - selection_price(ascent["state"], start_data))
    # Of scores equal within the tolerance, the one of the fewest features.
    least = max(scores) - PATIENCE * tol * data.n
    near = [i for i, score in enumerate(scores) if score >= least]
    best = min(near, key=lambda i: (sum(_count_selected(ascents[i]["state"])), -scores[i]))
    return collect(**ascents[best])


def _count_selected(state: State) -> list[int]:
    """Return the number of selected features per view."""
    return [int(view.selected.sum()) for view in state.views]


def _ascend(
    start: str,
    state: State,
    data: Data,
    max_iter: int,
    tol: float,
    prune: bool,
    callback: Callable[[dict[str, Any]], None] | None,
    to_beat: float,
) -> dict[str, Any]:
    """Sweep until convergence, dropping features, views and factors; return what `collect` takes.

    An ascent that would not reach the bound `to_beat` of another start by `max_iter`, even if it
    went on rising as in its last sweep, is given up. Bounds count dropped factors, so that they are
    comparable over the whole run.
    """
    n_factors = state.n_factors
    history: list[dict[str, Any]] = []
    value = -np.inf
    converged = False
    stalled = 0  # sweeps in a row with a gain below the tolerance
    for sweep in range(max_iter):
        began = time.perf_counter()
        last = value
        warm = sweep < WARM_UP
        for _ in range(N_INNER):
            state = inner_cycle(state, data, HELD if warm else ())
        state = gamma_pass(state, data)
        dropped: dict[str, Any] = {}
        if prune and not warm and sweep % PRUNE_EVERY == 0:
            state = _prune(state, data, dropped, "features")
        if prune and not warm and sweep % JUDGE_FACTORS_EVERY == 0:
            state = _prune(state, data, dropped, "factors")
        value = _comparable_bound(state, data, n_factors)
        gain = value - last
        stalled = stalled + 1 if not warm and gain < tol * data.n else 0
        if stalled >= PATIENCE and prune:
            # Views are judged once the bound has converged, not before.
            state = _prune(state, data, dropped, "features", "views", "factors")
            value = _comparable_bound(state, data, n_factors)
        stalled = 0 if dropped else stalled
        record = {
            "start": start,
            "sweep": sweep,
            "bound": value,
            "features": _count_selected(state),
            "factors": state.n_factors,
            "dropped": dropped,
            "seconds": time.perf_counter() - began,
        }
        history.append(record)
        if callback is not None:
            callback(record)
        converged = stalled >= PATIENCE
        hopeless = value + (max_iter - sweep) * gain < to_beat
        if converged or (sweep >= GIVE_UP_AFTER and hopeless):
            break
    return {
        "state": state,
        "data": data,
        "elbo": value,
        "history": history,
        "converged": converged,
        "start": start,
    }


def _comparable_bound(state: State, data: Data, n_factors: int) -> float:
    return bound(state, data) + factor_constant(data, state.n_factors, n_factors)


def _prune(state: State, data: Data, dropped: dict[str, Any], *kinds: str) -> State:
    """Prune features, views or factors, and write what was dropped into `dropped`."""
    for kind in kinds:
        state, what = PRUNERS[kind](state, data)
        if what:
            dropped[kind] = what
    return state
