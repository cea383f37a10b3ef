"""The fit from several starts: warm-up, sweeps, pruning, stopping, history."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.core.types import IntArray
from baldur.exceptions import InputError
from baldur.inference.inner_folds import Problem
from baldur.paper.bound import bound
from baldur.paper.predictor import MeanFieldResult, collect
from baldur.paper.pruning import PRUNERS, factor_constant, selection_price
from baldur.paper.starts import DEFAULT_STARTS, Start, initial_state, make_start, start_loadings
from baldur.paper.state import Data, GammaPrior, State, group_norms
from baldur.paper.updates import gamma_pass, inner_cycle
from baldur.paper.weights import SelectedColumns, choose_relevance_vectors, column_statistics

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
