"""The loop: starts, warm-up, sweeps, pruning, stopping, history."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from baldur.core.types import IntArray
from baldur.exceptions import InputError
from baldur.paper.bound import bound, factor_constant
from baldur.paper.priors import Priors, sparsity_prior
from baldur.paper.pruning import prune_factors, prune_features, prune_views, selection_price
from baldur.paper.result import MeanFieldResult, collect
from baldur.paper.starts import (
    DEFAULT_STARTS,
    choose_relevance,
    initial_state,
    make_start,
    start_loadings,
)
from baldur.paper.state import Data, NormGroups, State
from baldur.paper.updates import MODEL_UPDATES, gamma_pass, inner_cycle, step_delta, step_w
from baldur.paper.weights import (
    DenseView,
    SelectedColumns,
    ViewProducts,
    as_products,
    column_statistics,
)

SPACES = ("primal", "dual")


def prepare_data(
    X_views: Sequence[Any],
    T: Any,
    task: str,
    a_gamma: float = 1e-6,
    spaces: str | Sequence[str] = "primal",
    relevance: Any = None,
    sample_weight: Any = None,
    bound_kind: str = "jaakkola",
    priors: Priors | None = None,
) -> Data:
    """Check the inputs of `run_meanfield` and gather them; see there for the parameters.

    Relevance vectors that are to be chosen (None or a number) start as all rows;
    `starts.choose_relevance` makes the choice for each start.
    """
    if task not in ("classification", "regression"):
        raise InputError(f"task must be 'classification' or 'regression', got {task!r}")
    if bound_kind not in ("jaakkola", "quadrature"):
        raise InputError(f"bound_kind must be 'jaakkola' or 'quadrature', got {bound_kind!r}")
    T = np.asarray(T, dtype=np.float64)
    if T.ndim != 2:
        raise InputError(f"T must have shape (rows, outputs), got {T.shape}")
    if not np.isfinite(T).all():
        raise InputError("T holds NaN or infinite values")
    if task == "classification" and not np.isin(T, (0.0, 1.0)).all():
        raise InputError("classification needs labels 0 and 1 in T, one column per output")
    views: list[ViewProducts] = [as_products(X) for X in X_views]
    if not views:
        raise InputError("at least one view is needed, got none")
    N = T.shape[0]
    for m, view in enumerate(views):
        if len(view.shape) != 2 or view.shape[0] != N:
            raise InputError(f"view {m} has shape {view.shape}, expected {N} rows as in T")
    weight = np.ones(N) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (N,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise InputError(f"sample_weight must be {N} finite, non-negative numbers")
    if not weight.any():
        raise InputError("every sample weight is zero; nothing is left to fit")
    views = [v if isinstance(v, DenseView) else SelectedColumns(v) for v in views]
    centred = weight[:, None] * (T - weight @ T / weight.sum())
    norms, scores = zip(*(column_statistics(v, weight, centred) for v in views), strict=True)
    for m, norm in enumerate(norms):
        if not np.isfinite(norm).all():
            raise InputError(f"view {m} holds NaN or infinite values; prepare the views first")
    strength = [float(np.mean(score**2)) for score in scores]
    return Data(
        views=views,
        T=T,
        weight=weight,
        classification=task == "classification",
        quadrature=bound_kind == "quadrature",
        priors=replace(priors or Priors(), gamma=sparsity_prior(a_gamma)),
        spaces=_resolve_spaces(spaces, len(views)),
        relevance=_resolve_relevance(relevance, len(views), N),
        norms=list(norms),
        groups=[NormGroups.of(norm) for norm in norms],
        scores=list(scores),
        order=sorted(range(len(views)), key=lambda m: (-strength[m], m)),
    )


def _resolve_spaces(spaces: str | Sequence[str], M: int) -> list[str]:
    asked = [spaces] * M if isinstance(spaces, str) else list(spaces)
    if len(asked) != M or not set(asked) <= set(SPACES):
        raise InputError(
            f"spaces must be one of {SPACES}, once or for each of {M} views, got {spaces!r}"
        )
    return asked


def relevance_requests(relevance: Any, M: int) -> list[Any]:
    """Return the request for the relevance vectors of each view: "auto", None, number or rows."""
    per_view = list(relevance) if isinstance(relevance, list | tuple) else [relevance] * M
    if len(per_view) != M:
        raise InputError(f"relevance lists {len(per_view)} entries for {M} views")
    return per_view


def _resolve_relevance(relevance: Any, M: int, N: int) -> list[IntArray]:
    out: list[IntArray] = []
    for m, rows in enumerate(relevance_requests(relevance, M)):
        index = np.arange(N)
        if isinstance(rows, str):
            if rows != "auto":
                raise InputError(f"view {m}: relevance must be 'auto', rows or a number: {rows!r}")
        elif rows is not None and np.ndim(rows) == 0:
            if not 1 <= int(rows) <= N:
                raise InputError(
                    f"view {m}: the number of relevance vectors must lie in 1..{N}, got {rows}"
                )
        elif rows is not None:
            index = np.unique(np.asarray(rows))
            if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= N:
                raise InputError(f"view {m}: relevance rows must be integers in 0..{N - 1}")
        out.append(index.astype(np.intp))
    return out


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
HELD = frozenset({"tau", "V", "omega", "psi"})


@dataclass
class _Ascent:
    """The optimisation from one start: its current state and its history."""

    start: str
    data: Data
    state: State
    n_factors: int
    history: list[dict[str, Any]]
    converged: bool = False

    @property
    def value(self) -> float:
        """The bound with dropped factors counted, comparable over the whole run."""
        constant = factor_constant(self.data, self.state.n_factors, self.n_factors)
        return bound(self.state, self.data) + constant

    @property
    def score(self) -> float:
        """Score that selects the best start: the bound minus the price of the views in use."""
        return self.value - selection_price(self.state, self.data)

    @property
    def n_selected(self) -> list[int]:
        """Number of selected features per view."""
        return [int(view.selected.sum()) for view in self.state.views]


def run_meanfield(
    X_views: Sequence[Any],
    T: Any,
    *,
    task: str,
    n_factors: int,
    a_gamma: float = 1e-6,
    spaces: str | Sequence[str] = "primal",
    relevance: Any = "auto",
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
    """Fit the mean-field family from several starts and return the one of the best bound.

    Shapes: X_views (N, D_m), T (N, C), sample_weight (N,).
    """
    data = prepare_data(
        X_views, T, task, a_gamma, spaces, relevance, sample_weight, bound_kind, priors
    )
    if n_factors < 1:
        raise InputError(f"n_factors must be at least 1, got {n_factors}")
    if not starts:
        raise InputError(f"starts is empty; give one or more of {', '.join(DEFAULT_STARTS)}")
    V = start_loadings(data.T, data.weight, n_factors, np.random.default_rng(rng))
    requests = relevance_requests(relevance, len(data.views))
    ascents: list[_Ascent] = []
    to_beat = -np.inf
    # Screens first: the flat start is then given up early where it cannot win.
    for name in sorted(starts, key=lambda name: name == "flat"):
        start = make_start(data, name)
        here = choose_relevance(data, start, requests)
        ascent = _Ascent(name, here, initial_state(here, start, V), n_factors, [])
        _optimise(ascent, max_iter, tol, prune, callback, to_beat)
        to_beat = max(to_beat, ascent.score)
        ascents.append(ascent)
    best = _choose(ascents, PATIENCE * tol * data.n)
    return collect(
        best.state,
        best.data,
        elbo=best.value,
        history=best.history,
        converged=best.converged,
        start=best.start,
    )


def _choose(ascents: list[_Ascent], resolution: float) -> _Ascent:
    """Return the run with the best score; of scores equal within the tolerance, the smallest."""
    values = [ascent.score for ascent in ascents]
    near = [i for i, value in enumerate(values) if value >= max(values) - resolution]
    return ascents[min(near, key=lambda i: (sum(ascents[i].n_selected), -values[i]))]


def _optimise(
    ascent: _Ascent,
    max_iter: int,
    tol: float,
    prune: bool,
    callback: Callable[[dict[str, Any]], None] | None,
    to_beat: float,
) -> None:
    """Sweep until convergence, dropping features, views and factors on the way.

    An ascent that would not reach the bound `to_beat` of another start by `max_iter`, even if it
    went on rising as in its last sweep, is given up.
    """
    data = ascent.data
    last, still = -np.inf, 0
    for sweep in range(max_iter):
        began = time.perf_counter()
        warm = sweep < WARM_UP
        for _ in range(N_INNER):
            ascent.state = (_warm_cycle if warm else inner_cycle)(ascent.state, data)
        ascent.state = gamma_pass(ascent.state, data)
        dropped: dict[str, Any] = {}
        if prune and not warm and sweep % PRUNE_EVERY == 0:
            ascent.state, counts = prune_features(ascent.state, data)
            if any(counts):
                dropped["features"] = counts
        if prune and not warm and sweep % JUDGE_FACTORS_EVERY == 0:
            dropped |= _prune_factors(ascent)
        value = ascent.value
        gain = value - last
        still = still + 1 if not warm and gain < tol * data.n else 0
        if still >= PATIENCE and prune:
            dropped |= _prune_at_convergence(ascent)
            value = ascent.value
        still = 0 if dropped else still
        last = value
        record = {
            "start": ascent.start,
            "sweep": sweep,
            "bound": value,
            "features": ascent.n_selected,
            "factors": ascent.state.n_factors,
            "dropped": dropped,
            "seconds": time.perf_counter() - began,
        }
        ascent.history.append(record)
        if callback is not None:
            callback(record)
        if still >= PATIENCE:
            ascent.converged = True
            return
        if sweep >= GIVE_UP_AFTER and value + (max_iter - sweep) * gain < to_beat:
            return


def _prune_at_convergence(ascent: _Ascent) -> dict[str, Any]:
    """Prune views and factors once the bound has converged, not before."""
    dropped: dict[str, Any] = {}
    data = ascent.data
    ascent.state, counts = prune_features(ascent.state, data)
    if any(counts):
        dropped["features"] = counts
    ascent.state, views = prune_views(ascent.state, data)
    if views:
        dropped["views"] = views
    return dropped | _prune_factors(ascent)


def _prune_factors(ascent: _Ascent) -> dict[str, Any]:
    """Drop surplus factors, and return how many were dropped."""
    before = ascent.state.n_factors
    ascent.state = prune_factors(ascent.state, ascent.data)
    gone = before - ascent.state.n_factors
    return {"factors": gone} if gone else {}


def _warm_cycle(state: State, data: Data) -> State:
    """Run an inner cycle that leaves V, omega, tau and psi where they are."""
    for m in data.order:
        state = step_delta(step_w(state, data, m), data, m)
    for name, update in MODEL_UPDATES.items():
        if name not in HELD:
            state = update(state, data)
    return state
