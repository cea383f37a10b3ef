"""The spike-and-slab prior: each feature is included or not, and the data say how many are.

    w_cd = 0 with probability 1 - pi_m (for all outputs c at once), and otherwise
    w_cd ~ N(+mu, (1 - f) sigma_cm^2) or N(-mu, (1 - f) sigma_cm^2), each with probability 1/2,
           mu^2 = f sigma_cm^2

so that sigma_cm^2 is the variance of the weights of included features. In the terms of the model,
1/delta is sigma^2 and gamma_d is finite (slab) or infinite (spike). It is the end of the family of
priors in which features are selected rather than shrunk, and through pi_m, learned per view, it
reaches from an empty view to a dense one.

f = 0 is the usual normal slab, under which an included feature most probably has a weight near
0, so features of small weight are hardly distinguished from excluded ones. With f > 0 the slab is
*non-local* (Johnson and Rossell, 2010): being in means having an effect.

q(w_c) stays jointly Gaussian, with prior variances s_cd that summarise the spike and slab. From the
leave-one-out (cavity) mean m and variance V of a weight, under prior variance s,

    1/V = S/(1 - s S),   m/V = x^T alpha/(1 - s S),      S = x^T C^-1 x
    ln odds of inclusion = ln(pi/(1 - pi)) + sum_c ln [ p(m | in) / N(m; 0, V) ]
    p(m | in) = ( N(m; mu, V + (1 - f) sigma^2) + N(m; -mu, V + (1 - f) sigma^2) )/2
    rho = posterior inclusion probability

and s is one of two. The first gives the weight its posterior mean, m s/(V + s) = rho <w | in>.
Alone it shrinks too much where many features share the signal: a feature with a small inclusion
probability has next to no variance left, and so never gains probability. The second is the
geometric mean of the first and of the expected prior variance rho sigma^2, which alone shrinks
too little. Each of the two is a member of the ensemble.

`fit_spike_slab` iterates these to their fixed point on the candidate columns, for all folds at
once. Arrays are (F, C, L): folds by outputs by candidate features.
"""

from __future__ import annotations

import time
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.dense_members import (
    OWN_ITER,
    PREDICTOR_SD,
    SITES_ITER,
    SITES_TOLERANCE,
    Member,
    ScalePoint,
)
from baldur.inference.design import ColumnDesign, marked_columns, values_of_owner
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import Likelihood, put_folds, take_folds
from baldur.model.posterior import weighted_gram

MIN_RHO = 1e-10
"""Floor of an inclusion probability, so that its logarithm and its variance stay finite."""
NONLOCAL = 0.844
"""f with which two normal lobes have the mean absolute value and the variance of the product-moment
prior, w^2 N(w; 0, t): (E|w|)^2/E[w^2] = 8/(3 pi)."""
MAX_KEPT, MAX_RATIO = 0.999, 20.0
"""Limits of s/(V + s), and of s over the variance of the weights of included features."""
PRIOR_IN, PRIOR_OUT = 1.0, 1.0
"""Beta prior of each pi_m: uniform."""
SLAB_COUNT = 1.0
"""The slab variance of a view starts at 1, and one feature's worth of that is kept as prior."""
EXPECTED_IN = 5.0
FIRST_LENGTH, LENGTHS = 0.5, (0.05, 0.7)
LONGER, SHORTER = 1.1, 0.6
"""Steps of ln s are parts of the way to its target, longer while they go on in one direction and
shorter where they turn, as with interchangeable features."""
TOLERANCE, SHARED_TOLERANCE = 2e-2, 3e-2
"""Largest change of any inclusion probability that counts as converged; the second where outputs
share their site precisions, and afterwards. Predictions on real sets are as far from those of a
tolerance of 0.001 with 0.01 as with 0.02, which takes three quarters of the iterations."""
MIN_ITER, MIN_WARM_ITER, MIN_OWN_ITER, LEARN_AFTER = 10, 6, 3, 3
"""Least iterations from the uninformed start, from the end of the other member, and from the fit in
which outputs shared their site precisions; and those before the shares and slab variances are
learned."""
SEPARATE_ITER = 10
"""Updates of each output's own variances from the posterior in which outputs shared them."""
NEGLIGIBLE = 1e-2
"""A column is inactive if the data determine less than this part more of its weight than of the
average inactive one. Inactive columns share their mean variance while the others are updated, and
are updated themselves every few iterations. The posterior at the end has every column's own."""
LOOK_EVERY = 4
MANY_COLUMNS, LEFT_OUT = 256, 0.25
"""Where the feature solver is used, all columns are active up to so many: a posterior then costs
less than choosing among them. With more, columns are left out of which the data determine less than
`LEFT_OUT` of one weight in all."""


def cavity(s: Array, projected: Array, S: Array) -> tuple[Array, Array]:
    """Return the leave-one-out mean m and variance V of each weight, each (F, C, L).

    From the prior variances s, x^T alpha (`projected`) and x^T C^-1 x (`S`).
    """
    left = np.maximum(1.0 - s * S, 1e-10)
    S = np.maximum(S, 1e-8)  # a constant column says nothing: cavity variance 1e8
    return projected / S, left / S


def slab_moments(
    mean: Array, V: Array, slab: Array, lobes: float = NONLOCAL
) -> tuple[Array, Array, Array]:
    """Return ln p(m | in)/p(m | out), <w | in> and <w^2 | in>, each (F, C, L).

    From the cavity and the slab variances, each (F, C, L). `lobes` is f: 0 for a normal slab around
    zero, `NONLOCAL` for two lobes away from it.
    """
    mu, spread = np.sqrt(lobes * slab), (1.0 - lobes) * slab
    m = np.abs(mean)
    wide = V + spread
    # By symmetry, with |m| the lobe on the same side comes first.
    near = -0.5 * (m - mu) ** 2 / wide
    far = -0.5 * (m + mu) ** 2 / wide
    ratio = np.exp(far - near)
    log_ratio = near + np.log1p(ratio) - np.log(2.0)
    log_ratio += 0.5 * (m**2 / V + np.log(V / wide))
    same = 1.0 / (1.0 + ratio)  # probability of the lobe on the same side
    shrunk, shift = m * spread / wide, mu * V / wide
    mean_in = np.copysign(shrunk + (2.0 * same - 1.0) * shift, mean)
    second = same * (shrunk + shift) ** 2 + (1.0 - same) * (shrunk - shift) ** 2
    return log_ratio, mean_in, second + V * spread / wide


def inclusion_probability(log_ratio: Array, prior_log_odds: Array) -> Array:
    """Return rho (F, L) from ln p(m | in)/p(m | out) (F, C, L) and prior log odds (F, L)."""
    return np.maximum(expit(prior_log_odds + log_ratio.sum(axis=-2)), MIN_RHO)


def mean_matched_variance(rho: Array, mean_in: Array, mean: Array, V: Array, slab: Array) -> Array:
    """Return the prior variances s (F, C, L) that give each weight the mean rho <w | in>."""
    if slab.shape[-2] < mean.shape[-2]:  # outputs share one variance: the best for all means
        squares = (mean**2).sum(axis=-2, keepdims=True)
        ratio = (mean * mean_in).sum(axis=-2, keepdims=True) / np.maximum(squares, 1e-24)
    else:
        ratio = mean_in / np.where(np.abs(mean) < 1e-12, 1e-12, mean)
    kept = np.clip(rho[..., None, :] * ratio, 0.0, MAX_KEPT)
    return np.minimum(V * kept / (1.0 - kept), MAX_RATIO * slab)


def wider_variance(matched: Array, rho: Array, slab: Array) -> Array:
    """Return the geometric mean of the mean-matched variance and rho sigma^2, (F, C, L)."""
    return np.sqrt(matched * rho[..., None, :] * slab)


@dataclass
class SpikeSlab:
    """What a spike-and-slab prior has learned."""

    rho: Array  # (F, L); inclusion probability of each candidate
    pi: Array  # (F, M); share of included features, per view
    slab: Array  # (F, C, M); variance of the weights of included features
    s: Array  # (F, C, L); prior variances that summarise the spike and slab


@dataclass
class _State:
    """The variables of the iteration, of the folds that have not converged."""

    design: ColumnDesign
    squares: Array  # (F, L, n); squared cells
    grams: Array  # (F, M, n, n); empty where the feature solver is used
    learned: SpikeSlab
    second: Array  # (F, C, L); <w^2 | in>
    length: Array  # (F, C, L); part of the way to its target that ln s goes
    step: Array  # (F, C, L); the last step of ln s, before it was damped


def fit_spike_slab(
    design: ColumnDesign,
    n_features: Array,
    likelihood: Likelihood,
    *,
    wide: bool,
    start: Member | None = None,
    max_iter: int = 200,
) -> Member:
    """Fit the spike-and-slab member: inclusion probabilities, slab variances and q(w), in turn.

    `wide` takes the wider prior variances (`wider_variance`) instead of those that match means.
    `start` is a fit to go on from: of the other of these two members, or of the same one with
    variances that outputs shared.

    Shapes: n_features (M,), all features of each view; the columns of the design are candidates.
    """
    began = time.perf_counter()
    F, C = len(design.owner), likelihood.n_precisions
    learned = _begin(design, n_features, C, start)
    # The fit with variances that outputs shared, if this one goes on from it.
    shared_fit = start if start is not None and start.spike_slab.slab.shape[1] < C else None
    if shared_fit is not None:
        learned.s = np.repeat(shared_fit.points[0].q.s, C, axis=1)
    s = learned.s
    state = _State(
        design,
        design.X1[:, :, 1:].swapaxes(1, 2) ** 2,
        np.zeros((F, design.n_views, 0, 0)) if design.uses_features else design.grams,
        learned,
        s.copy(),
        np.full_like(s, FIRST_LENGTH),
        np.zeros_like(s),
    )
    if shared_fit is not None:
        _separate(state, shared_fit.points[0].q, n_features, wide)
    whole = WeightPosterior.start(design, likelihood, s)
    if start is not None:
        before = start.points[0].q
        whole.sites = before.sites if shared_fit is None else before.separate_sites()
    final = deepcopy(learned)
    q, folds = whole, np.arange(F)  # those that have not converged
    converged = np.zeros(F, dtype=bool)
    history: list[dict[str, Any]] = []
    least = MIN_ITER if start is None else MIN_WARM_ITER
    if shared_fit is not None:
        least = MIN_OWN_ITER
    sharing = shared_fit is not None or likelihood.n_precisions < likelihood.n_outputs
    tolerance = SHARED_TOLERANCE if sharing else TOLERANCE
    uses_all = design.uses_features and design.owner.shape[1] <= MANY_COLUMNS
    for iteration in range(max_iter if shared_fit is None else min(OWN_ITER, max_iter)):
        # Every few iterations all columns are updated, and the active ones chosen anew.
        all_columns = iteration % LOOK_EVERY == 0 or iteration == 2 or uses_all
        if all_columns:
            chosen, used, inactive_s = _active(state, q.sites.h, uses_all)
            active_design = state.design if uses_all else state.design.columns(chosen, used)
        q = _posterior_of_active(q, state, active_design, chosen, used, inactive_s)
        if all_columns:
            projected, S = state.design.statistics(q.solution, q.sites.h)
            # Prior variances of all columns: those of q(w) where active, else the shared one.
            prior = state.design.spread(inactive_s)
            at = np.broadcast_to(chosen[:, None, :], q.s.shape)
            active = np.where(used[:, None] > 0, q.s, np.take_along_axis(prior, at, axis=2))
            np.put_along_axis(prior, at, active, axis=2)
            change = _update(state, projected, S, prior, wide, *_every(state))
        else:
            projected, S = active_design.statistics(q.solution, q.sites.h)
            change = _update(state, projected, S, q.s, wide, chosen, used)
        q.damped_update(iteration)
        if iteration > LEARN_AFTER or shared_fit is not None:
            _learn(state, n_features)
        history.append(_record(state, likelihood.n_outputs, change, began))
        if not (all_columns and iteration > least):
            continue
        going = change >= tolerance
        if going.all():
            continue
        whole.put_sites(folds, q)
        put_folds(final, folds, state.learned)
        converged[folds[~going]] = True
        keep = np.flatnonzero(going)
        folds = folds[keep]
        if not len(keep):
            break
        q, state = take_folds(q, keep), take_folds(state, keep)
        active_design = take_folds(active_design, keep)
        chosen, used, inactive_s = chosen[keep], used[keep], inactive_s[keep]
    if len(folds):
        whole.put_sites(folds, q)
        put_folds(final, folds, state.learned)
    # Not integrated over scales, as the other members are: these variances have seen the data
    # feature by feature, and the evidence would count it again and prefer them too large.
    if design.uses_features and not uses_all and likelihood.n_outputs == C:
        squares = design.X1[:, :, 1:] ** 2  # columns that are left out get variance 0
        final.s = final.s * _determined(final.s * np.matmul(whole.sites.h, squares))[:, None]
    whole.s, whole.kernel = final.s, None
    if shared_fit is not None:
        whole.refresh(optimise_means=True)
        converged = shared_fit.converged
    else:
        whole.optimise_sites(SITES_ITER, SITES_TOLERANCE)
    point = ScalePoint(0, np.arange(F), whole, selects=True)
    weights = np.ones((1, F, likelihood.n_outputs))
    return Member([point], weights, history, converged, None, final)


def _begin(design: ColumnDesign, n_features: Array, C: int, start: Member | None) -> SpikeSlab:
    """Return the uninformed prior of C outputs, or what the fit `start` has learned."""
    F, M = len(design.owner), design.n_views
    if start is None:
        pi = np.tile(np.minimum(0.3, EXPECTED_IN / n_features), (F, 1))
        rho, slab = values_of_owner(pi, design.owner), np.ones((F, C, M))
    else:
        before = start.spike_slab
        pi, rho = before.pi.copy(), before.rho.copy()
        slab = np.repeat(before.slab, C // before.slab.shape[1], axis=1)
    return SpikeSlab(rho, pi, slab, rho[:, None] * design.spread(slab))


def _posterior_of_active(
    q: WeightPosterior,
    state: _State,
    active_design: ColumnDesign,
    chosen: IntArray,
    used: Array,
    inactive_s: Array,
) -> WeightPosterior:
    """Return q(w) with a prior variance of its own for each active column; others share theirs.

    Shapes: chosen, used (F, K), the active columns and 1 where they are real; inactive_s (F, C, M),
    the prior variance of the others of each view.
    """
    s = np.take_along_axis(state.learned.s, chosen[:, None, :], axis=2) * used[:, None]
    common = active_design.spread(inactive_s)
    s = np.maximum(s, common)
    q = q.with_variances(s, active_design)
    if inactive_s.any() or not active_design.uses_features:
        # The kernel of all columns at the common variance, and what active columns have beyond it.
        F, C, M = inactive_s.shape
        n = state.grams.shape[-1]
        K = np.matmul(inactive_s, state.grams.reshape(F, M, n * n)).reshape(F, C, n, n)
        K += weighted_gram(active_design.X1[:, :, 1:], s - common)
        K += active_design.intercept_var
        q.kernel = K
    q.refresh()
    q.refresh_extra()
    return q


def _separate(state: _State, q: WeightPosterior, n_features: Array, wide: bool) -> None:
    """Give every output its own variances in `state`, from a posterior in which they were shared.

    What the other weights say of a weight does not depend on its own variance, so inclusion
    probabilities, slabs and variances are updated several times from the same posterior.
    """
    projected, S = state.design.statistics(q.solution, q.sites.h)
    prior = np.broadcast_to(q.s, state.learned.s.shape)
    for _ in range(SEPARATE_ITER):
        _update(state, projected, S, prior, wide, *_every(state))
        _learn(state, n_features)
    state.length[:], state.step[:] = FIRST_LENGTH, 0.0


def _every(state: _State) -> tuple[IntArray, Array]:
    """Return all columns of each fold, (F, L), and 1 where they are real."""
    F, L = state.design.owner.shape
    every = np.tile(np.arange(L), (F, 1))
    return every, (state.design.owner < state.design.n_views).astype(float)


def _active(state: _State, h: Array, uses_all: bool) -> tuple[IntArray, Array, Array]:
    """Return the active columns of each fold, 1 where they are real, and the variance of the rest.

    Active columns have prior variances of their own in q(w). The last is (F, C, M): the mean
    variance of the inactive columns of each view, or zero where all together are negligible.
    """
    design, s = state.design, state.learned.s
    M = design.n_views
    zero = np.zeros((*s.shape[:2], M))
    if uses_all:
        return *_every(state), zero
    determined = np.matmul(h, state.squares.swapaxes(1, 2))  # (F, C, L)
    if design.uses_features:  # columns that share a variance would cost as much as active ones
        return *marked_columns(_determined(s * determined) & (design.owner < M)), zero
    inactive = np.ones(design.owner.shape, dtype=bool)
    shared = _mean_variances(design, s, inactive)
    for _ in range(2):
        above = s - design.spread(shared)
        inactive &= ~((above * determined > NEGLIGIBLE).any(axis=1))
        shared = _mean_variances(design, s, inactive)
    total = design.by_view(inactive[:, None, :] * s).sum(axis=(1, 2))
    shared[total < NEGLIGIBLE] = 0.0
    chosen, used = marked_columns(~inactive & (design.owner < M))
    return chosen, used, shared


def _determined(parts: Array) -> Mask:
    """Return which columns (F, L) cannot be left out: all but those negligible together.

    `parts` (F, C, L) are s_d x_d^T R x_d: about the part of each weight that the data determine.
    """
    most = parts.max(axis=1)
    order = np.argsort(most, axis=1)
    total = np.cumsum(np.take_along_axis(most, order, axis=1), axis=1)
    needed = np.zeros(most.shape, dtype=bool)
    np.put_along_axis(needed, order, total > LEFT_OUT, axis=1)
    return needed


def _mean_variances(design: ColumnDesign, s: Array, among: Array) -> Array:
    """Return the mean variance of some columns (F, L) of each view, (F, C, M)."""
    weight = among[:, None, :] * np.ones_like(s)
    return design.by_view(weight * s) / np.maximum(design.by_view(weight), 1.0)


def _update(
    state: _State, projected: Array, S: Array, prior: Array, wide: bool, chosen: Any, used: Any
) -> Array:
    """Update inclusion probabilities and prior variances of the chosen columns (F, K) of each fold.

    `prior` (F, C, K) are the variances of the posterior that the statistics come from, those of
    inactive columns shared; `used` (F, K) is 0 for padding. Return the largest change of any
    inclusion probability of each fold, (F,).
    """
    at, M = chosen[:, None, :], state.design.n_views
    s, length, step = (
        np.take_along_axis(part, at, axis=2) for part in (state.learned.s, state.length, state.step)
    )
    owner = np.take_along_axis(state.design.owner, chosen, axis=1)
    pi = state.learned.pi
    log_odds = values_of_owner(np.log(pi / (1.0 - pi)), owner)
    slab = values_of_owner(state.learned.slab, owner, padding=1.0)
    mean, V = cavity(prior, projected, S)
    log_ratio, mean_in, second = slab_moments(mean, V, slab)
    rho = inclusion_probability(log_ratio, log_odds)
    target = mean_matched_variance(rho, mean_in, mean, V, slab)
    if wide:
        target = wider_variance(target, rho, slab)
    with np.errstate(divide="ignore", invalid="ignore"):
        full_step = np.log(np.maximum(target, 1e-14) / s)
    full_step = np.where(s > 0, full_step, 0.0)
    length = np.clip(length * np.where(full_step * step >= 0, LONGER, SHORTER), *LENGTHS)
    if s.shape[1] < second.shape[1]:  # outputs share prior variances
        second = second.mean(axis=1, keepdims=True)
    keep = (used > 0) & (owner < M)
    before = np.take_along_axis(state.learned.rho, chosen, axis=1)
    np.put_along_axis(state.learned.rho, chosen, np.where(keep, rho, before), axis=1)
    for whole, new in (
        (state.second, second),
        (state.learned.s, s * np.exp(length * full_step)),
        (state.length, length),
        (state.step, full_step),
    ):
        kept = np.where(keep[:, None, :], new, np.take_along_axis(whole, at, axis=2))
        np.put_along_axis(whole, at, kept, axis=2)
    return np.asarray((np.abs(rho - before) * keep).max(axis=1, initial=0.0))


def _learn(state: _State, n_features: Array) -> None:
    """Move inclusion shares and slab variances half way to their expectations."""
    learned, design = state.learned, state.design
    count = np.einsum("fl,flm->fm", learned.rho, design.membership)  # expected included features
    share = (count + PRIOR_IN) / (n_features + PRIOR_IN + PRIOR_OUT)
    total = design.by_view(learned.rho[:, None] * state.second)
    # The prior of the s.d. of the linear predictor, whose variance has slab * count of each view.
    by_prior = learned.slab * count[:, None] / PREDICTOR_SD**2
    variance = (total + SLAB_COUNT) / (count[:, None] + SLAB_COUNT + by_prior)
    learned.pi = np.clip(0.5 * (learned.pi + share), 1e-9, 0.95)
    learned.slab = 0.5 * (learned.slab + variance)


def _record(state: _State, C: int, change: Array, began: float) -> dict[str, Any]:
    """Return the entry of the history for one iteration, with numbers of the first fold."""
    rho = state.learned.rho[0]
    counted = np.einsum("l,lm->m", rho > 0.5, state.design.membership[0])
    return {
        "active_features": counted.astype(int).tolist(),
        "expected_features": float(rho.sum()),
        "n_factors": C,
        "change": float(change.max()),
        "seconds": time.perf_counter() - began,
    }
