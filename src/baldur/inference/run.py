"""The loop of the structured family: sweeps, pruning, stopping rule and history."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.prune import drop_factors, drop_features, drop_views, view_factor_signal
from baldur.inference.starts import flat_state, marginal_scores, screened_gamma
from baldur.inference.sweep import Trace, start_factors, sweep
from baldur.model.structured.bound import bound, idle_term
from baldur.model.structured.state import Data, State

Array = NDArray[np.float64]
Record = dict[str, Any]
Watcher = Callable[[Record], None]

CALM_SWEEPS = 3
"""Sweeps in a row that must change little: with ARD one quiet sweep is not convergence."""
START_SWEEPS = 15
SCREEN_SIZES = (30, 100, 300)


@dataclass
class Run:
    """What a run leaves: its last state, the bound, and one record per sweep."""

    data: Data
    state: State
    elbo: float
    history: list[Record] = field(default_factory=list)
    converged: bool = False


def record(data: Data, state: State, value: float, started: float, event: str) -> Record:
    """Return one line of history."""
    return {
        "event": event,
        "bound": value,
        "active_features": [state.n_in(m) for m in range(len(state.kept))],
        "n_factors": state.n_factors,
        "passes": data.passes(),
        "seconds": time.perf_counter() - started,
    }


def iterate(
    data: Data,
    state: State,
    *,
    max_iter: int,
    tol: float,
    watch: Watcher | None = None,
    trace: Trace | None = None,
) -> Run:
    """Sweep until the bound has changed by less than `tol` of itself three times in a row.

    Itself without the constant cost of idle features, which grows with the width of the views.
    """
    started = time.perf_counter()
    if not state.factors:
        start_factors(data, state)
    run = Run(data, state, bound(data, state))
    calm = 0
    for _ in range(max_iter):
        before = run.elbo
        run.elbo = sweep(data, state, before, trace=trace)
        run.history.append(record(data, state, run.elbo, started, "sweep"))
        if watch is not None:
            watch(run.history[-1])
        calm = calm + 1 if abs(run.elbo - before) <= tol * magnitude(run) else 0
        if calm >= CALM_SWEEPS:
            run.converged = True
            break
    return run


def magnitude(run: Run) -> float:
    """Return the size of the bound against which its changes are judged."""
    return max(1.0, abs(run.elbo - idle_term(run.data, run.state)))


def starts(data: Data, V: Array | None) -> list[State]:
    """Return the states to start from.

    Under a flat prior (a = inf) there is one. Otherwise: gamma = 1, and gamma from ridge
    regressions on the best 30, 100 and 300 features.
    """
    states = [flat_state(data, V)]
    if np.isfinite(data.priors.gamma.shape):
        total = sum(data.widths)
        scores = marginal_scores(data)
        sizes = [size for size in SCREEN_SIZES if size < total]
        states += [flat_state(data, V, screened_gamma(data, size, scores)) for size in sizes]
    return states


def best_start(data: Data, states: list[State], watch: Watcher | None) -> State:
    """Return the start whose bound is highest after a few sweeps."""
    if len(states) == 1:
        return states[0]
    runs = [iterate(data, state, max_iter=START_SWEEPS, tol=1e-4, watch=watch) for state in states]
    return max(runs, key=lambda run: run.elbo).state


def run_structured(
    data: Data,
    *,
    V: Array | None = None,
    max_iter: int = 200,
    tol: float = 1e-5,
    prune: bool = True,
    watch: Watcher | None = None,
) -> Run:
    """Fit the structured posterior under one prior shape.

    Parameters
    ----------
    data : Data
    V : (C, K) array, optional
        Loadings to start from and to learn; without them V = I.
    max_iter, tol : int, float
        Most sweeps, and the relative change of the bound that counts as calm.
    prune : bool
        Drop features, views and factors whose removal raises the bound.
    watch : callable, optional
        Called with each history record.

    Returns
    -------
    Run
    """
    state = best_start(data, starts(data, V), watch)
    run = iterate(data, state, max_iter=max_iter, tol=tol, watch=watch)
    if any(view.absent.any() for view in data.views):
        run = proceed(run, set_missing_variance(run), max_iter, tol, watch)
    if prune:
        run = prune_by_evidence(run, max_iter=max_iter, tol=tol, watch=watch)
    return run


def set_missing_variance(run: Run) -> str:
    """Give rows that lack a view the variance its part of f has among the other rows.

    The row's contribution is the training mean, 0, and what it might have been is uncertain by
    as much as that part varies. Held fixed while the bound is maximised.
    """
    signal = view_factor_signal(run.data, run.state)
    absent = np.stack([view.absent for view in run.data.views], axis=1).astype(float)
    run.state.extra = absent @ signal
    return "missing views"


def prune_by_evidence(run: Run, *, max_iter: int, tol: float, watch: Watcher | None) -> Run:
    """Alternate drops and sweeps until nothing more can be dropped."""
    data, state = run.data, run.state
    for _ in range(50):
        run.elbo, n_features = drop_features(data, state, run.elbo)
        if not n_features:
            break
        run = proceed(run, f"dropped {n_features} features", min(10, max_iter), tol, watch)
    run.elbo, views = drop_views(data, state, run.elbo)
    run.elbo, n_factors = drop_factors(data, state, run.elbo)
    # The few sweeps between drops may have stopped short of calm.
    if views or n_factors or not run.converged:
        event = f"dropped {len(views)} views and {n_factors} factors"
        run = proceed(run, event, max_iter, tol, watch)
    # Rows that lack a view which is now empty lack nothing any more.
    if any(v.absent.any() and not k.any() for v, k in zip(data.views, state.kept, strict=True)):
        run = proceed(run, set_missing_variance(run), max_iter, tol, watch)
    return run


def proceed(run: Run, event: str, max_iter: int, tol: float, watch: Watcher | None) -> Run:
    """Sweep on after a declared change, keeping the history."""
    started = time.perf_counter()
    value = bound(run.data, run.state)
    run.history.append(record(run.data, run.state, value, started, event))
    more = iterate(run.data, run.state, max_iter=max_iter, tol=tol, watch=watch)
    more.history = run.history + more.history
    return more
