"""The loop: starts, warm-up, sweeps, pruning, stopping, history."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.paper.meanfield.bound import bound, factor_constant
from baldur.paper.meanfield.inputs import prepare_data
from baldur.paper.meanfield.prune import prune_factors, prune_features, prune_views
from baldur.paper.meanfield.result import MeanFieldResult, collect
from baldur.paper.meanfield.starts import (
    DEFAULT_STARTS,
    initial_state,
    start_loadings,
    start_precisions,
)
from baldur.paper.meanfield.state import Data, State
from baldur.paper.meanfield.updates import (
    MODEL_UPDATES,
    gamma_pass,
    inner_cycle,
    step_delta,
    step_w,
)
from baldur.paper.priors import Priors

N_INNER = 20
"""Cycles in sample space per gamma step; they are cheap, and gamma then sees settled weights."""
WARM_UP = 10
"""Sweeps with V, tau and psi held at their start, so that V cannot shrink before gamma acts."""
PRUNE_EVERY = 5
CALM = 3
"""Sweeps in a row below the tolerance that count as convergence; any drop starts the count anew."""
HELD = frozenset({"tau", "V", "omega", "psi"})


@dataclass
class _Trace:
    """Mutable record of one start."""

    state: State
    alive: list[int]
    history: list[dict[str, Any]]
    converged: bool = False


def run_meanfield(
    X_views: Sequence[Any],
    T: Any,
    *,
    task: str,
    n_factors: int,
    a_gamma: float = 1e-6,
    spaces: str | Sequence[str] = "primal",
    relevance: Any = None,
    starts: Sequence[str] = DEFAULT_STARTS,
    max_iter: int = 300,
    tol: float = 1e-4,
    prune: bool = True,
    sample_weight: Any = None,
    rng: Any = None,
    callback: Callable[[dict[str, Any]], None] | None = None,
    bound_kind: str = "jaakkola",
    priors: Priors | None = None,
) -> MeanFieldResult:
    """Fit the mean-field family from several starts and keep the best bound.

    Parameters
    ----------
    X_views : list of (N, D_m) arrays or PreparedView-like objects
        Standardised on the training rows.
    T : (N, C) array
        0/1 labels for classification, real outputs for regression.
    task : {"classification", "regression"}
    n_factors : int
        K at the start; pruning may lower it.
    a_gamma : float
        Shape of gamma ~ Gamma(a, a); ``inf`` keeps gamma at one.
    spaces : {"primal", "dual"} or one of them per view
        "primal" is the exact posterior, computed on the sample side when D > N; the paper's "dual"
        collapses for D > N.
    relevance : None, int, index array, or a list of these per view
        Relevance vectors of dual views: all rows, that many at random, or the given rows.
    starts : sequence of str
        "flat" and "screen-<q>".
    max_iter : int
        Most sweeps per start, warm-up included.
    tol : float
        A sweep is calm when the bound gains less than ``tol`` nats per row.
    prune : bool
    sample_weight : (N,) array, optional
        A row of weight 2 counts as two equal rows.
    rng : seed or numpy Generator
    callback : callable, optional
        Called with the history record of every sweep.
    bound_kind : {"jaakkola", "quadrature"}
    priors : Priors, optional
        Its ``gamma`` is replaced by Gamma(a_gamma, a_gamma).

    Returns
    -------
    MeanFieldResult
    """
    rng = np.random.default_rng(rng)
    data = prepare_data(
        X_views, T, task, a_gamma, spaces, relevance, sample_weight, rng, bound_kind, priors
    )
    if n_factors < 1:
        raise InputError(f"n_factors must be at least 1, got {n_factors}")
    if not starts:
        raise InputError(f"starts is empty; give one or more of {', '.join(DEFAULT_STARTS)}")
    V = start_loadings(data.T, data.weight, n_factors, rng)
    climbs: list[tuple[float, str, _Trace]] = []
    for start in starts:
        gammas, deltas = start_precisions(data, start)
        state = initial_state(data, gammas, deltas, V)
        trace = _Trace(state, list(range(n_factors)), [])
        _climb(trace, data, start, max_iter, tol, prune, callback)
        climbs.append((_value(trace, data, n_factors), start, trace))
    value, start, trace = _choose(climbs, CALM * tol * data.n)
    return collect(
        trace.state,
        data,
        n_factors,
        trace.alive,
        elbo=value,
        history=trace.history,
        converged=trace.converged,
        start=start,
        spaces=[_space(data, m) for m in range(len(data.views))],
    )


def _choose(climbs: list[tuple[float, str, _Trace]], resolution: float) -> Any:
    """Take the best bound; among bounds the stopping rule cannot tell apart, fewest features."""
    top = max(value for value, _, _ in climbs)
    near = [climb for climb in climbs if climb[0] >= top - resolution]
    return min(near, key=lambda c: (sum(int(v.keep.sum()) for v in c[2].state.views), -c[0]))


def _climb(
    trace: _Trace,
    data: Data,
    start: str,
    max_iter: int,
    tol: float,
    prune: bool,
    callback: Callable[[dict[str, Any]], None] | None,
) -> None:
    """Sweep one start until calm, pruning on the way."""
    last, calm = -np.inf, 0
    n_factors = trace.state.n_factors
    for sweep in range(max_iter):
        began = time.perf_counter()
        warm = sweep < WARM_UP
        for _ in range(N_INNER):
            trace.state = _warm_cycle(trace.state, data) if warm else inner_cycle(trace.state, data)
        trace.state = gamma_pass(trace.state, data)
        dropped: dict[str, Any] = {}
        if prune and not warm and sweep % PRUNE_EVERY == 0:
            trace.state, counts = prune_features(trace.state, data)
            if any(counts):
                dropped["features"] = counts
        value = _value(trace, data, n_factors)
        calm = calm + 1 if not warm and value - last < tol * data.n else 0
        if calm >= CALM and prune:
            _prune_at_rest(trace, data, dropped)
            value = _value(trace, data, n_factors)
        calm = 0 if dropped else calm
        last = value
        record = {
            "start": start,
            "sweep": sweep,
            "bound": value,
            "features": [int(view.keep.sum()) for view in trace.state.views],
            "factors": trace.state.n_factors,
            "dropped": dropped,
            "seconds": time.perf_counter() - began,
        }
        trace.history.append(record)
        if callback is not None:
            callback(record)
        if calm >= CALM:
            trace.converged = True
            return


def _value(trace: _Trace, data: Data, n_full: int) -> float:
    """Return the bound with dropped factors counted, comparable all through a run."""
    state = trace.state
    return bound(state, data) + factor_constant(data, state.n_factors, n_full)


def _prune_at_rest(trace: _Trace, data: Data, dropped: dict[str, Any]) -> None:
    """Judge views and factors, only once the bound is calm: before, the empty model wins."""
    trace.state, counts = prune_features(trace.state, data)
    if any(counts):
        dropped["features"] = counts
    trace.state, fallen = prune_views(trace.state, data)
    if fallen:
        dropped["views"] = fallen
    trace.state, survivors = prune_factors(trace.state, data)
    if len(survivors) < len(trace.alive):
        kept = [trace.alive[k] for k in survivors]
        dropped["factors"] = [k for k in trace.alive if k not in kept]
        trace.alive = kept


def _warm_cycle(state: State, data: Data) -> State:
    """Run an inner cycle that leaves V, omega, tau and psi where they are."""
    for m in data.order:
        state = step_delta(step_w(state, data, m), data, m)
    for name, update in MODEL_UPDATES.items():
        if name not in HELD:
            state = update(state, data)
    return state


def _space(data: Data, m: int) -> str:
    N, D = data.views[m].shape
    if data.spaces[m] == "dual":
        return "dual"
    return "primal-samples" if D > N else "primal"
