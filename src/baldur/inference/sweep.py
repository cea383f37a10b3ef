"""One sweep of the structured family: every update in turn, each of which raises the bound.

Under the quadratic bound a full step never overshoots. Under quadrature it can, so every step
is a *guarded move*: tried at shrinking lengths, kept only if the bound does not fall, and taken
back otherwise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import QuadratureLogistic, Sites
from baldur.model.structured.bound import bound
from baldur.model.structured.state import Data, State, output_moments
from baldur.model.structured.updates import (
    leaping_view_precisions,
    proposed_feature_precisions,
    proposed_intercepts,
    proposed_loadings,
    proposed_rest,
    proposed_view_precisions,
    refresh_grams,
    refresh_moments,
    update_loading_precisions,
    update_scales,
    update_weights,
)

Trace = Callable[[str, float], None]

HALVINGS = 6
SLACK = 1e-12
"""Rounding allowed, relative to the bound, when a step is compared with none."""


def refresh_factors(data: Data, state: State) -> None:
    """Recompute q(w_k) of every factor in turn at the present sites and precisions."""
    for k in range(state.n_factors):
        state.factors[k] = update_weights(data, state, k)


def start_factors(data: Data, state: State) -> None:
    """Compute the first Grams and q(W); each factor sees the later ones at zero."""
    refresh_grams(data, state)
    state.factors = []
    for k in range(state.n_factors):
        state.factors.append(update_weights(data, state, k))


def guarded(data: Data, state: State, before: float, move: Callable[[float], None]) -> float:
    """Try ``move(length)`` at 1, 1/2, 1/4, ...; keep the first that does not lower the bound.

    Returns the bound afterwards, which is `before` if every length failed.
    """
    parts = state.snapshot()
    length = 1.0
    for _ in range(HALVINGS):
        move(length)
        after = bound(data, state)
        if after >= before - SLACK * abs(before):
            return after
        state.restore(parts)
        length *= 0.5
    return before


def mixed_rates(old: GammaPosterior, new: GammaPosterior, length: float) -> GammaPosterior:
    """Move Gamma rates part of the way, on the logarithmic scale."""
    if length == 1.0 or np.isinf(new.shape):
        return new
    return GammaPosterior(new.shape, old.rate ** (1.0 - length) * new.rate**length)


def step_sites(data: Data, state: State, before: float) -> float:
    """Move the sites towards their best values and recompute q(W)."""
    _, target = data.likelihood.evaluate(*output_moments(state), state.noise)
    old = state.sites

    def move(length: float) -> None:
        part = length * data.likelihood.damping
        state.sites = Sites(
            (1.0 - part) * old.h + part * target.h, (1.0 - part) * old.j + part * target.j
        )
        refresh_factors(data, state)

    return guarded(data, state, before, move)


def step_noise(data: Data, state: State, before: float) -> float:
    """q(psi) of Gaussian outputs; an exact maximiser, so it needs no guard."""
    if state.noise is None:
        return before
    state.noise = data.likelihood.noise_at(*output_moments(state))
    return bound(data, state)


def step_loadings(data: Data, state: State, before: float) -> float:
    """q(V) (a Gaussian under the quadratic bound, a point under quadrature), then q(omega)."""
    target, cov = proposed_loadings(data, state)
    old = state.V
    if isinstance(data.likelihood, QuadratureLogistic):
        cov = np.zeros_like(cov)

    def move(length: float) -> None:
        state.V = (1.0 - length) * old + length * target
        state.V_cov = cov

    guarded(data, state, before, move)
    update_loading_precisions(data, state)
    return bound(data, state)


def step_intercepts(data: Data, state: State, before: float) -> float:
    """q(b), outside the factors."""
    target, var = proposed_intercepts(state)
    old, old_var = state.b, state.b_var

    def move(length: float) -> None:
        state.b = (1.0 - length) * old + length * target
        state.b_var = (1.0 - length) * old_var + length * var

    return guarded(data, state, before, move)


def step_view_precisions(data: Data, state: State, before: float) -> float:
    """q(delta), then q(W) under the new prior: a leap if the bound allows it, else the update."""
    if np.isfinite(data.priors.gamma.shape):
        after = move_view_precisions(data, state, before, leaping_view_precisions(data, state))
        if after > before:
            return after
    return move_view_precisions(data, state, before, proposed_view_precisions(data, state))


def move_view_precisions(
    data: Data, state: State, before: float, target: list[GammaPosterior]
) -> float:
    """Move q(delta) towards `target` as far as the bound allows."""
    old = list(state.delta)

    def move(length: float) -> None:
        state.delta = [mixed_rates(o, t, length) for o, t in zip(old, target, strict=True)]
        refresh_factors(data, state)

    return guarded(data, state, before, move)


def step_scales(data: Data, state: State, before: float) -> float:
    """Shift scale between gamma and delta, which the updates of each do but slowly; exact."""
    update_scales(data, state)
    return bound(data, state)


def step_feature_precisions(data: Data, state: State, before: float) -> float:
    """q(gamma), then q(W) under the new prior: one pass over the features, and their Grams."""
    refresh_moments(data, state)
    target, old = proposed_feature_precisions(data, state), list(state.gamma)
    rest, old_rest = proposed_rest(data, state), list(state.rest)

    def move(length: float) -> None:
        state.gamma = [mixed_rates(o, t, length) for o, t in zip(old, target, strict=True)]
        state.rest = [
            replace(o, scale=o.scale ** (1.0 - length) * t.scale**length)
            for o, t in zip(old_rest, rest, strict=True)
        ]
        refresh_grams(data, state)
        refresh_factors(data, state)

    return guarded(data, state, before, move)


def sweep(
    data: Data, state: State, before: float, *, inner: int = 3, trace: Trace | None = None
) -> float:
    """Update every factor of q and return the bound.

    Parameters
    ----------
    data : Data
    state : State
        Changed in place; `start_factors` must have run.
    before : float
        The bound now.
    inner : int
        Cycles in sample space for each pass over the features.
    trace : callable, optional
        Called with the name of each update and the bound after it.
    """
    steps = [("sites and weights", step_sites), ("psi", step_noise)]
    if state.learn_intercepts:
        steps.append(("intercepts", step_intercepts))
    if state.learn_loadings:
        steps.append(("loadings", step_loadings))
    steps.append(("delta and weights", step_view_precisions))
    plan = steps * inner
    if np.isfinite(data.priors.gamma.shape):
        plan += [("gamma and weights", step_feature_precisions), ("scales", step_scales)]
    for name, step in plan:
        before = step(data, state, before)
        if trace is not None:
            trace(name, before)
    return before
