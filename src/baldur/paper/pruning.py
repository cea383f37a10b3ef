"""Pruning: features, factors and views are dropped where the lower bound rises without them.

Dropping a feature or a factor must not cost bound; dropping a view may cost `view_price`. For a
feature the gain in the bound from dropping it alone is known in closed form: with q(W) at its
optimum and P_kd = tau t_d + delta_k gamma_d the diagonal of its precision,

    making w_kd independent with mean zero costs  <w_kd>^2/(2 Var w_kd) + (1/2) ln(P_kd Var w_kd),
    moving gamma_d to its new optimum gains       f(g*) - f(gamma_d),
    f(g) = a ln g - b g - (1/2) sum_k ln(1 + tau t_d/(delta_k g)).

No weight is compared with a threshold, so units and scales do not matter. Several features
together may be worth more than the sum of their parts, hence every drop is tried on a copy of
the state and kept only if the bound, read again, has not fallen; otherwise the half with the
largest gains is tried.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.core.types import Array, IntArray
from baldur.paper.bound import bound, gamma_term
from baldur.paper.state import (
    VAGUE,
    Data,
    GammaPrior,
    State,
    dropped_delta,
    dropped_gamma,
    make_dropped,
)
from baldur.paper.updates import inner_cycle, step_dropped, step_w
from baldur.paper.weights import weight_moments

SCREENED_SHAPE = 1e-3
"""Largest prior shape a at which features outside the screen are dropped from the outset. With a
heavier prior all features share the signal, and none may be left out."""


DETERMINED = 0.02
"""A feature is a candidate once data settle less than this share of its weights' precision.

Early in a run, before gamma has had time to act, any single feature out of thousands can be
spared; dropping on evidence alone would then empty the model.
"""


TRIAL_CYCLES = 10
"""Inner cycles a trial state without a factor or a view gets before its bound is read."""


def factor_constant(data: Data, n_factors: int, n_full: int) -> float:
    """Return the constant that makes bounds of `n_factors` and of `n_full` factors comparable.

    A dropped factor is counted as one whose weights and loadings follow their priors and whose
    precisions sit at one. It carries no data term, but vague Gamma priors charge about 14 nats
    for every delta and omega, and every gamma has a smaller shape with fewer factors; without
    this constant a drop would be paid for with those nats, D of them. Per view,

        D (kappa_gamma(n_full) - kappa_gamma(n_factors)) + (n_full - n_factors) kappa_delta,

    plus (n_full - n_factors) kappa_omega, where kappa = E[ln p] - E[ln q] of one precision at
    mean one together with its Gaussian's (size/2)(<ln g> - ln <g>).
    """
    gone = n_full - n_factors
    value = gone * _kappa(VAGUE, data.T.shape[1])
    for view in data.views:
        D = view.shape[1]
        value += gone * _kappa(VAGUE, D)
        value += D * (_kappa(data.gamma_prior, n_full) - _kappa(data.gamma_prior, n_factors))
    return value


def _kappa(prior: GammaPrior, size: int) -> float:
    if np.isinf(prior.shape):
        return 0.0
    q = prior.posterior_of_mean(size, np.ones(1))
    return gamma_term(q, prior) + 0.5 * size * float(q.mean_log[0])


def feature_gains(state: State, data: Data, m: int) -> tuple[Array, Array]:
    """Return the gain in bound from dropping each selected feature of view `m` alone.

    With it, the share of the precision of its weights that comes from the data.

    Shapes: returns gain and share (d,) of d selected features.
    """
    view, prior = state.views[m], data.gamma_prior
    tau, delta = state.mean_tau, view.delta.mean[:, None]
    gamma = view.gamma.mean
    load = tau * data.norms[m][view.selected]  # precision of w_d from the data
    mean, var = weight_moments(data.views[m], view.q)
    var = np.maximum(var, np.finfo(float).tiny)
    precision = load + delta * gamma
    # What it costs to replace q(w_d) by one of mean 0 that depends on no other feature.
    cost = np.sum(mean**2 / (2.0 * var) + 0.5 * np.log(precision * var), axis=0)
    determined = np.mean(1.0 - delta * gamma * var, axis=0)
    if np.isinf(prior.shape):
        return -cost, determined

    def bound_dropped(g: Array) -> Array:
        """Return what depends on <gamma_d> = g in the bound once feature d is dropped."""
        spread = 0.5 * np.log1p(load / (delta * g)).sum(axis=0)
        return prior.shape * np.log(g) - prior.rate * g - spread

    best = dropped_gamma(prior, view.delta.mean, load)
    return bound_dropped(best) - bound_dropped(gamma) - cost, determined


def without_features(state: State, data: Data, m: int, features: IntArray) -> State:
    """Return the state without some features of view `m`, with q(W) of the others refitted."""
    view = state.views[m]
    selected = view.selected.copy()
    selected[features] = False
    kept = selected[view.selected]  # among those selected so far
    gamma = replace(view.gamma, rate=view.gamma.rate[kept])
    dropped = replace(view.dropped, count=data.count_dropped(m, selected))
    view = replace(view, selected=selected, gamma=gamma, dropped=dropped, stale=True)
    return step_w(step_dropped(state.with_view(m, view), data, m), data, m)


def without_view(state: State, data: Data, m: int) -> State:
    """Return the state without any feature of view `m`, its delta and gamma optimised together."""
    view, tau = state.views[m], state.mean_tau
    none = np.zeros_like(view.selected)
    count, delta = data.count_dropped(m, none), view.delta.mean
    for _ in range(8):  # gamma given delta, then delta given gamma
        dropped = make_dropped(data, m, count, delta, tau)
        delta = dropped_delta(0, np.zeros(state.n_factors), dropped, tau)
    view = replace(
        view,
        selected=none,
        delta=VAGUE.posterior_of_mean(none.size, delta),
        gamma=replace(view.gamma, rate=np.zeros(0)),
        stale=True,
        dropped=dropped.at(delta, tau),
    )
    return step_w(state.with_view(m, view), data, m)


def without_factor(state: State, data: Data, k: int) -> State:
    """Return the state without factor `k`.

    Its bound is that of the smaller model; `factor_constant` makes it comparable.
    """
    kept = np.delete(np.arange(state.n_factors), k)
    prior, K = data.gamma_prior, kept.size
    views = []
    for view in state.views:
        gamma = prior.posterior_of_mean(K, view.dropped.gamma.mean)
        dropped = _of_factors(view.dropped, kept, "trace", "w2", "logdet")
        weights = ("coef", "coef_var", "null_var", "H", "trace", "gamma_w2", "logdet")
        view = replace(
            view,
            q=replace(view.q, **_of_factors(view.q, kept, *weights)),
            delta=replace(view.delta, **_of_factors(view.delta, kept, "rate")),
            gamma=prior.posterior_of_mean(K, view.gamma.mean),
            dropped=replace(view.dropped, gamma=gamma, **dropped),
        )
        views.append(view)
    square = np.ix_(kept, kept)
    return replace(
        state,
        **_of_factors(state, kept, "Z", "V"),
        Z_cov=state.Z_cov[square],
        V_cov=state.V_cov[square],
        omega=replace(state.omega, **_of_factors(state.omega, kept, "rate")),
        tau=VAGUE.posterior_of_mean(data.n * K, state.tau.mean),
        views=tuple(views),
    )


def _of_factors(posterior: Any, kept: IntArray, *names: str) -> dict[str, Any]:
    """Return arrays of a posterior, the last axis of which are factors, for the factors `kept`."""
    return {name: getattr(posterior, name)[..., kept] for name in names}


def _try_drop(state: State, trial: State, data: Data, price: float) -> tuple[State, bool]:
    """Optimise a state and a trial with less in it; return the better one, and if it is the trial.

    The trial is better if its bound plus `price` is no lower than that of the state.
    """
    for _ in range(TRIAL_CYCLES):
        trial, state = inner_cycle(trial, data), inner_cycle(state, data)
    better = bound(trial, data) + price >= bound(state, data)
    return (trial if better else state), better


def _prune_one(state: State, data: Data, m: int) -> tuple[State, int]:
    """Drop as many features of view `m` as the bound allows, the least evident first."""
    current = bound(state, data)
    gain, determined = feature_gains(state, data, m)
    candidates = np.flatnonzero((gain > 0) & (determined < DETERMINED))
    candidates = candidates[np.argsort(-gain[candidates], kind="stable")]
    columns = np.flatnonzero(state.views[m].selected)
    # Gains are those of one feature alone; where they do not add up, half as many are tried.
    while candidates.size:
        trial = without_features(state, data, m, columns[candidates])
        if bound(trial, data) >= current:
            return trial, candidates.size
        candidates = candidates[: candidates.size // 2]
    return state, 0


def prune_features(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop features view by view; return the number dropped per view, or [] where none was."""
    counts = [0] * len(state.views)
    if np.isinf(data.gamma_prior.shape):
        return state, []
    for m in data.order:
        if state.views[m].selected.any():
            # q(W) must be at its optimum for the closed form of the gains to hold.
            state = step_w(state, data, m)
            state, counts[m] = _prune_one(state, data, m)
    return state, counts if any(counts) else []


def view_price(data: Data, m: int) -> float:
    """Return how many nats view `m` must add to the bound to stay: ln D_m.

    The best of D pure noise features gains about ln D nats, half the largest of D chi-square
    variables, because the screen has searched all of them. The paper has no such rule, and keeps
    a noise view whenever one of its features fits the labels by chance. Where no feature is
    selected (a = inf, or a heavy-tailed prior) nothing was searched, and the price is 0.
    """
    if data.gamma_prior.shape > SCREENED_SHAPE:
        return 0.0
    return float(np.log(data.views[m].shape[1]))


def selection_price(state: State, data: Data) -> float:
    """Return the price of all views in use; the best start has the highest bound minus price."""
    used = [m for m, view in enumerate(state.views) if view.selected.any()]
    return sum(view_price(data, m) for m in used)


def prune_views(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop each view that adds less than its price to the bound, the weakest first; say which."""
    dropped: list[int] = []
    candidates = [m for m, view in enumerate(state.views) if view.selected.any()]
    effect = {m: float(data.weight @ np.sum(state.views[m].q.H ** 2, axis=1)) for m in candidates}
    for m in sorted(candidates, key=lambda m: (effect[m], data.order.index(m))):
        trial = without_view(state, data, m)
        state, better = _try_drop(state, trial, data, view_price(data, m))
        if better:
            dropped.append(m)
    return state, dropped


def prune_factors(state: State, data: Data) -> tuple[State, int]:
    """Drop factors without which the bound is higher, the weakest first; return how many."""
    strength = np.diag(state.z_moment(data.weight)) * np.diag(state.v_moment)  # <z_k^2><v_k^2>
    alive = list(range(state.n_factors))
    for k in np.argsort(strength, kind="stable"):
        if len(alive) == 1:
            break
        # Factor k has moved up by those before it that were dropped.
        trial = without_factor(state, data, alive.index(int(k)))
        constant = factor_constant(data, trial.n_factors, state.n_factors)
        state, better = _try_drop(state, trial, data, constant)
        if better:
            alive.remove(int(k))
    return state, len(strength) - len(alive)


PRUNERS: dict[str, Callable[[State, Data], tuple[State, Any]]] = {
    "features": prune_features,
    "views": prune_views,
    "factors": prune_factors,
}
"""What can be dropped; each returns the new state, and something true if any was."""
