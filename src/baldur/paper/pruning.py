"""Decide by evidence which features, views and factors to drop.

Dropping a feature or a factor must not cost bound; dropping a view may cost `view_price`.

For a feature the gain in the bound from dropping it alone is known in closed form: with q(W) at
its optimum and P_kd = tau t_d + delta_k gamma_d the diagonal of its precision,

    making w_kd independent with mean zero costs  <w_kd>^2/(2 Var w_kd) + (1/2) ln(P_kd Var w_kd),
    moving gamma_d to its new optimum gains       f(g*) - f(gamma_d),
    f(g) = a ln g - b g - (1/2) sum_k ln(1 + tau t_d/(delta_k g)).

No weight is compared with a threshold, so units and scales do not matter. Several features
together may be worth more than the sum of their parts, hence every drop is tried on a copy of
the state and kept only if the bound, read again, has not fallen; otherwise the half with the
largest gains is tried.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baldur.core.types import Array, IntArray
from baldur.paper.bound import bound, factor_constant
from baldur.paper.priors import GammaPosterior
from baldur.paper.state import (
    SCREENED_SHAPE,
    Data,
    State,
    dropped_delta,
    dropped_gamma,
    make_dropped,
)
from baldur.paper.updates import inner_cycle, step_dropped, step_w
from baldur.paper.weights import weight_moments

DETERMINED = 0.02
"""A feature is a candidate once data settle less than this share of its weights' precision.

Early in a run, before gamma has had time to act, any single feature out of thousands can be
spared; dropping on evidence alone would then empty the model.
"""
TRIAL_CYCLES = 10
"""Inner cycles a trial state without a factor or a view gets before its bound is read."""


def feature_gains(state: State, data: Data, m: int) -> tuple[Array, Array]:
    """Gain in bound from dropping each selected feature alone, and how far data determine it.

    Shapes: returns gain (d,), determined (d,).
    """
    view, prior = state.views[m], data.priors.gamma
    tau, delta = float(state.tau.mean[0]), view.delta.mean[:, None]
    gamma, load = view.gamma.mean, tau * data.norms[m][view.selected]
    mean, var = weight_moments(data.views[m], view.q)
    var = np.maximum(var, np.finfo(float).tiny)
    precision = load + delta * gamma
    cost = np.sum(mean**2 / (2.0 * var) + 0.5 * np.log(precision * var), axis=0)
    determined = np.mean(1.0 - delta * gamma * var, axis=0)
    if np.isinf(prior.shape):
        return -cost, determined

    def occam(g: Array) -> Array:
        spread = 0.5 * np.log1p(load / (delta * g)).sum(axis=0)
        return prior.shape * np.log(g) - prior.rate * g - spread

    best = dropped_gamma(prior, view.delta.mean, load)
    return occam(best) - occam(gamma) - cost, determined


def without_features(state: State, data: Data, m: int, features: IntArray) -> State:
    """Drop some features of view `m`, then refit q(W) of the rest."""
    view = state.views[m]
    selected = view.selected.copy()
    selected[features] = False
    rest = selected[view.selected]
    gamma = GammaPosterior(view.gamma.shape, view.gamma.rate[rest])
    dropped = replace(view.dropped, count=data.groups[m].count(selected))
    view = replace(view, selected=selected, gamma=gamma, dropped=dropped, stale=True)
    return step_w(step_dropped(state.with_view(m, view), data, m), data, m)


def without_view(state: State, data: Data, m: int) -> State:
    """Drop a whole view: its delta and gamma are optimised together."""
    view, priors, groups = state.views[m], data.priors, data.groups[m]
    none, tau = np.zeros_like(view.selected), float(state.tau.mean[0])
    count, delta = groups.count(none), view.delta.mean
    for _ in range(8):
        dropped = make_dropped(priors.gamma, groups, count, delta, tau)
        delta = dropped_delta(priors.delta, 0, np.zeros(state.n_factors), dropped, tau)
    shape = priors.delta.shape + 0.5 * none.size
    view = replace(
        view,
        selected=none,
        delta=GammaPosterior(shape, shape / delta),
        gamma=GammaPosterior(view.gamma.shape, np.zeros(0)),
        stale=True,
        dropped=dropped.at(delta, tau),
    )
    return step_w(state.with_view(m, view), data, m)


def without_factor(state: State, data: Data, k: int) -> State:
    """Take factor `k` out of the model.

    Its bound is that of the smaller model; `bound.factor_constant` makes it comparable.
    """
    rest = np.delete(np.arange(state.n_factors), k)
    square = np.ix_(rest, rest)
    views = []
    for view in state.views:
        q = replace(
            view.q,
            coef=view.q.coef[:, rest],
            coef_var=view.q.coef_var[:, rest],
            null_var=view.q.null_var[rest],
            H=view.q.H[:, rest],
            trace=view.q.trace[rest],
            gamma_w2=view.q.gamma_w2[rest],
            logdet=view.q.logdet[rest],
        )
        views.append(
            replace(
                view,
                q=q,
                delta=GammaPosterior(view.delta.shape, view.delta.rate[rest]),
                gamma=_same_mean(view.gamma, data.priors.gamma.shape + 0.5 * rest.size),
                gamma_w2=view.gamma_w2[rest],
                dropped=replace(
                    view.dropped.take_factors(rest),
                    gamma=_same_mean(view.dropped.gamma, data.priors.gamma.shape + 0.5 * rest.size),
                ),
            )
        )
    return replace(
        state,
        Z=state.Z[:, rest],
        Z_cov=state.Z_cov[square],
        V=state.V[:, rest],
        V_cov=state.V_cov[square],
        omega=GammaPosterior(state.omega.shape, state.omega.rate[rest]),
        tau=_same_mean(state.tau, data.priors.tau.shape + 0.5 * data.n * rest.size),
        views=tuple(views),
    )


def _same_mean(posterior: GammaPosterior, shape: float) -> GammaPosterior:
    """Return a Gamma posterior of another shape and the same mean."""
    rate = posterior.rate if np.isinf(shape) else shape / posterior.mean
    return GammaPosterior(shape, rate)


def _optimised(state: State, data: Data) -> State:
    for _ in range(TRIAL_CYCLES):
        state = inner_cycle(state, data)
    return state


def _prune_one(state: State, data: Data, m: int) -> tuple[State, int]:
    """Drop as many features of view `m` as the bound allows, the least evident first."""
    current = bound(state, data)
    gain, determined = feature_gains(state, data, m)
    candidates = np.flatnonzero((gain > 0) & (determined < DETERMINED))
    candidates = candidates[np.argsort(-gain[candidates], kind="stable")]
    index = np.flatnonzero(state.views[m].selected)
    while candidates.size:
        trial = without_features(state, data, m, index[candidates])
        if bound(trial, data) >= current:
            return trial, candidates.size
        candidates = candidates[: candidates.size // 2]
    return state, 0


def prune_features(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop features view by view; return the number dropped per view. The bound does not fall."""
    counts = [0] * len(state.views)
    if np.isinf(data.priors.gamma.shape):
        return state, counts
    for m in data.order:
        if state.views[m].selected.any():
            # q(W) must be at its optimum for the closed form of the gains to hold.
            state = step_w(state, data, m)
            state, counts[m] = _prune_one(state, data, m)
    return state, counts


def view_price(data: Data, m: int) -> float:
    """Return how many nats view `m` must add to the bound to stay: ln D_m.

    The best of D pure noise features gains about ln D nats, half the largest of D chi-square
    variables, because the screen has searched all of them. The paper has no such rule, and keeps
    a noise view whenever one of its features fits the labels by chance. Where no feature is
    selected (a = inf, or a heavy-tailed prior) nothing was searched, and the price is 0.
    """
    if data.priors.gamma.shape > SCREENED_SHAPE:
        return 0.0
    return float(np.log(data.views[m].shape[1]))


def selection_price(state: State, data: Data) -> float:
    """Return the price of all views in use; the best start has the highest bound minus price."""
    used = [m for m, view in enumerate(state.views) if view.selected.any()]
    return sum(view_price(data, m) for m in used)


def prune_views(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop each view that adds less than its price to the bound, the weakest first."""
    fallen: list[int] = []
    candidates = [m for m, view in enumerate(state.views) if view.selected.any()]
    size = {m: float(data.weight @ np.sum(state.views[m].q.H ** 2, axis=1)) for m in candidates}
    for m in sorted(candidates, key=lambda m: (size[m], data.order.index(m))):
        trial = _optimised(without_view(state, data, m), data)
        rival = _optimised(state, data)
        if bound(trial, data) >= bound(rival, data) - view_price(data, m):
            state = trial
            fallen.append(m)
        else:
            state = rival
    return state, fallen


def prune_factors(state: State, data: Data) -> State:
    """Drop each factor without which the bound is higher, the weakest first; one remains."""
    strength = np.diag(state.z_moment(data.weight)) * np.diag(state.v_moment)
    alive = list(range(state.n_factors))
    for k in np.argsort(strength, kind="stable"):
        if len(alive) == 1:
            break
        trial = _optimised(without_factor(state, data, alive.index(int(k))), data)
        rival = _optimised(state, data)
        constant = factor_constant(data, trial.n_factors, rival.n_factors)
        if bound(trial, data) + constant >= bound(rival, data):
            state = trial
            alive.remove(int(k))
        else:
            state = rival
    return state
