"""Decide by evidence which features, views and factors to drop; a drop must not cost bound.

For a feature the gain in the bound from dropping it alone is known in closed form: with q(W) at
its optimum and P_kd = tau t_d + delta_k gamma_d the diagonal of its precision,

    making w_kd independent with mean zero costs  <w_kd>^2/(2 Var w_kd) + (1/2) ln(P_kd Var w_kd),
    moving gamma_d to its new optimum gains       f(g*) - f(gamma_d),
    f(g) = a ln g - b g - (1/2) sum_k ln(1 + tau t_d/(delta_k g)).

No weight is compared with a threshold, so units and scales do not matter. Several features
together may be worth more than the sum of their parts, hence every drop is tried on a copy of
the state and kept only if the bound, read again, has not fallen; otherwise the half with the
smaller evidence is tried.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from baldur.model.ard import GammaPosterior
from baldur.paper.meanfield.bound import bound, factor_constant
from baldur.paper.meanfield.dropped import dropped_delta, dropped_gamma, dropped_sums
from baldur.paper.meanfield.state import Array, Data, Index, State
from baldur.paper.meanfield.updates import inner_cycle, step_dropped, step_w
from baldur.paper.meanfield.weights import weight_moments

DETERMINED = 0.02
"""A feature is a candidate once data settle less than this share of its weights' precision.

Early in a run, before gamma has had time to act, any single feature out of thousands can be
spared; dropping on evidence alone would then empty the model.
"""
SETTLE = 10
"""Inner cycles a trial state without a factor or a view gets before its bound is read."""


def feature_gains(state: State, data: Data, m: int) -> tuple[Array, Array]:
    """Gain in bound from dropping each kept feature alone, and how far data determine it.

    Returns
    -------
    gain : (d,) array
    determined : (d,) array
        Mean over factors of 1 - delta_k gamma_d Var w_kd, between 0 (prior) and 1 (data).
    """
    view, prior = state.views[m], data.priors.gamma
    tau, delta = float(state.tau.mean[0]), view.delta.mean[:, None]
    gamma, load = view.gamma.mean[view.keep], tau * data.norms[m][view.keep]
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


def without_features(state: State, data: Data, m: int, features: Index) -> State:
    """Drop some features of view ``m``, then refit q(W) of the rest."""
    view = state.views[m]
    keep = view.keep.copy()
    keep[features] = False
    state = state.with_view(m, replace(view, keep=keep, stale=True))
    return step_w(step_dropped(state, data, m), data, m)


def without_view(state: State, data: Data, m: int) -> State:
    """Drop a whole view: its delta and gamma settle together."""
    view, priors = state.views[m], data.priors
    norms, tau = data.norms[m], float(state.tau.mean[0])
    load, delta, gamma = tau * norms, view.delta.mean, view.gamma.mean
    for _ in range(8):
        gamma = dropped_gamma(priors.gamma, delta, load)
        delta = dropped_delta(priors.delta, 0, np.zeros(state.n_factors), gamma, load)
    delta_shape = priors.delta.shape + 0.5 * norms.size
    gamma_shape = priors.gamma.shape + 0.5 * state.n_factors
    rate = np.ones(norms.size) if np.isinf(gamma_shape) else gamma_shape / gamma
    trace, w2, logdet = dropped_sums(delta, gamma, norms, tau)
    state = state.with_view(
        m,
        replace(
            view,
            keep=np.zeros(norms.size, dtype=bool),
            delta=GammaPosterior(delta_shape, delta_shape / delta),
            gamma=GammaPosterior(gamma_shape, rate),
            stale=True,
            dropped_trace=trace,
            dropped_w2=w2,
            dropped_logdet=logdet,
        ),
    )
    return step_w(state, data, m)


def without_factor(state: State, data: Data, k: int) -> State:
    """Take factor ``k`` out of the model.

    Its bound is that of the smaller model; ``bound.factor_constant`` makes it comparable.
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
        shape = data.priors.gamma.shape + 0.5 * rest.size
        rate = view.gamma.rate if np.isinf(shape) else shape / view.gamma.mean
        views.append(
            replace(
                view,
                q=q,
                delta=GammaPosterior(view.delta.shape, view.delta.rate[rest]),
                gamma=GammaPosterior(shape, rate),
                gamma_w2=view.gamma_w2[rest],
                dropped_trace=view.dropped_trace[rest],
                dropped_w2=view.dropped_w2[rest],
                dropped_logdet=view.dropped_logdet[rest],
            )
        )
    return replace(
        state,
        Z=state.Z[:, rest],
        Z_cov=state.Z_cov[square],
        V=state.V[:, rest],
        V_cov=state.V_cov[square],
        omega=GammaPosterior(state.omega.shape, state.omega.rate[rest]),
        tau=GammaPosterior(
            data.priors.tau.shape + 0.5 * data.n * rest.size,
            (data.priors.tau.shape + 0.5 * data.n * rest.size) / state.tau.mean,
        ),
        views=tuple(views),
    )


def _settled(state: State, data: Data) -> State:
    for _ in range(SETTLE):
        state = inner_cycle(state, data)
    return state


def _prune_one(state: State, data: Data, m: int) -> tuple[State, int]:
    """Drop as many features of view ``m`` as the bound allows, the least evident first."""
    current = bound(state, data)
    gain, determined = feature_gains(state, data, m)
    candidates = np.flatnonzero((gain > 0) & (determined < DETERMINED))
    candidates = candidates[np.argsort(-gain[candidates], kind="stable")]
    index = np.flatnonzero(state.views[m].keep)
    while candidates.size:
        trial = without_features(state, data, m, index[candidates])
        if bound(trial, data) >= current:
            return trial, candidates.size
        candidates = candidates[: candidates.size // 2]
    return state, 0


def prune_features(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop features view by view; returns how many fell per view. The bound does not fall."""
    counts = [0] * len(state.views)
    if np.isinf(data.priors.gamma.shape):
        return state, counts
    for m in data.order:
        if state.views[m].keep.any():
            # q(W) must be at its optimum for the closed form of the gains to hold.
            state = step_w(state, data, m)
            state, counts[m] = _prune_one(state, data, m)
    return state, counts


def prune_views(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop each view without which the bound is higher, the weakest first."""
    fallen: list[int] = []
    kept = [m for m, view in enumerate(state.views) if view.keep.any()]
    size = {m: float(data.weight @ np.sum(state.views[m].q.H ** 2, axis=1)) for m in kept}
    for m in sorted(kept, key=lambda m: (size[m], data.order.index(m))):
        trial = _settled(without_view(state, data, m), data)
        rival = _settled(state, data)
        if bound(trial, data) >= bound(rival, data):
            state = trial
            fallen.append(m)
        else:
            state = rival
    return state, fallen


def prune_factors(state: State, data: Data) -> tuple[State, list[int]]:
    """Drop each factor without which the bound is higher, the weakest first.

    Returns the surviving factors as positions among the current ones.
    """
    strength = np.diag(state.z_moment(data.weight)) * np.diag(state.v_moment)
    alive = list(range(state.n_factors))
    for k in np.argsort(strength, kind="stable"):
        if len(alive) == 1:
            break
        trial = _settled(without_factor(state, data, alive.index(int(k))), data)
        rival = _settled(state, data)
        constant = factor_constant(data, trial.n_factors, rival.n_factors)
        if bound(trial, data) + constant >= bound(rival, data):
            state = trial
            alive.remove(int(k))
        else:
            state = rival
    return state, alive
