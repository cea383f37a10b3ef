"""Members of the reference: the same Gaussian posterior, each under a prior learned its own way.

"per_view" learns one prior variance per view and output and is then integrated over their common
scale; "pooled" has one per output, and its scale is all there is to integrate over. The
spike-and-slab prior is in `baldur.inference.inclusion`.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.features import Features
from baldur.inference.gaussian import Gaussian, mixed
from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import Likelihood
from baldur.model.loadings import FactorLikelihood

Array = NDArray[np.float64]

PREDICTOR_SD = 5.0
"""The s.d. of the linear predictor is half-normal with this scale: weakly informative, from no
signal at all to classes that do not overlap. Without it, variances grow for ever where classes
separate."""
CALM = 1e-2
"""Largest change of a view's prior variance, as a share of all views', that counts as calm: the
scale is integrated over afterwards, in steps a hundred times as long."""
MIN_ITER = 5
LONGEST_STEP = 8.0

SCALE_STEP = 1.5
"""Distance of the points of ln variance. A Gaussian of s.d. 0.75 or more is integrated to 2 % by
them, and with a narrower one the scale is known well enough for one point."""
SCALE_POINTS = 3
"""Most points on either side of variances that were learned: a factor of 90."""
POOLED_POINTS = 6
"""Most points on either side of a predictor of variance 1: from 1e-4, which nobody can tell from no
signal, to 8,000, which the prior of the scale rules out."""
SETTLED = 3e-4
"""Relative gain of the bound below which sites have settled: some hundredths of a nat."""
SCALE_DROP = 3.0
"""Fall of the log weight at which the points end: below 5 % of the best."""


@dataclass
class Member:
    """One prior's posterior: Gaussians at a few scales of the prior, weighted by their evidence.

    Attributes
    ----------
    points : list of G Gaussian
    weights : (G, C) array, columns sum to one
    history : one record per iteration of the fit
    converged : bool
    details : what else the fit learned, such as probabilities of being in
    """

    points: list[Gaussian]
    weights: Array
    history: list[dict[str, Any]] = field(default_factory=list)
    converged: bool = True
    details: Any = None


def log_scale_prior(variance: Array) -> Array:
    """ln density of ln v, where sqrt(v) is half-normal with scale `PREDICTOR_SD`."""
    return np.asarray(0.5 * (np.log(variance) - variance / PREDICTOR_SD**2))


def over_scales(
    q: Gaussian, *, most: int = SCALE_POINTS, drop: float = SCALE_DROP
) -> tuple[list[Gaussian], Array]:
    """Return settled posteriors at a few scales of the prior variances, and weights (G, C).

    ln weight = ln evidence + ln p(ln v), v the variance the prior gives the linear predictor. From
    the given variances outwards in steps of `SCALE_STEP`, each starting at the sites of the one
    before, until the weights are small or about to be, or there are `most` on either side.
    """
    floor = np.finfo(float).tiny
    v = np.maximum(q.features.predictor_variance(q.s), floor)

    def at(scale: float, near: Gaussian) -> tuple[Gaussian, Array]:
        made = near.with_variances(q.s * np.exp(scale))
        if made.absent.any():
            made.refresh()
            made.refresh_extra()
        made.settle(max_iter=10, tol=SETTLED)
        return made, made.evidence() + log_scale_prior(v * np.exp(scale))

    found = {0: at(0.0, q)}
    for direction in (-1, 1):
        for step in range(direction, direction * (most + 1), direction):
            found[step] = at(step * SCALE_STEP, found[step - direction][0])
            least = np.max([value for _, value in found.values()], axis=0) - drop
            last = [
                found[k][1] for k in range(step, step - 3 * direction, -direction) if k in found
            ]
            if (last[0] < least).all() or (len(last) == 3 and (parabola(*last) < least).all()):
                break
    points = [made for made, _ in found.values()]
    values = [value for _, value in found.values()]
    logs = np.array(values)
    weights = np.exp(logs - logs.max(axis=0))
    weights[weights < np.exp(-drop)] = 0.0
    weights /= weights.sum(axis=0)
    used = np.flatnonzero(weights.any(axis=1))
    return [points[g] for g in used], weights[used]


def parabola(last: Array, middle: Array, first: Array) -> Array:
    """Return the next value of a parabola through three in a row, the last one given first."""
    return 3.0 * last - 3.0 * middle + first


def following_length(iteration: int) -> float:
    """Return how far sites follow: half the way at first, and less later.

    The site of a row with an extreme feature can answer so strongly to its own moments that half
    the way overshoots, and it would swing for ever.
    """
    return max(0.1, 0.7 * 0.97**iteration)


def follow(q: Gaussian, length: float) -> None:
    """Move the sites part of the way, without recomputing q(w); exact for Gaussian outputs."""
    mean, var = q.moments()
    noise = q.likelihood.learn(mean, var, q.noise)
    q.noise = noise
    _, target = q.likelihood.evaluate(mean, var, noise)
    part = 1.0 if isinstance(noise, GammaPosterior) else length
    q.sites = mixed(q.sites, target, np.full(target.h.shape[1], part))


def fit_pooled(features: Features, absent: Array, likelihood: Likelihood) -> Member:
    """Integrate over the one prior variance of all features, from a predictor of variance 1 on.

    Parameters
    ----------
    features : Features
    absent : (N, M) array of 0 and 1
    likelihood : Likelihood
    """
    C = likelihood.n_outputs
    total = max(float(features.scales().sum()), 1e-12)
    s = features.spread(np.full((C, features.n_views), 1.0 / total))
    q = Gaussian.start(features, likelihood, s, absent)
    started = time.perf_counter()
    if absent.any():  # what an absent view would add is known only when sites have settled
        q.settle(max_iter=10, tol=SETTLED)
    points, weights = over_scales(q, most=POOLED_POINTS)
    record = {"change": 0.0, "n_factors": C, "seconds": time.perf_counter() - started}
    return Member(points, weights, [record])


def fit_by_view(
    features: Features, absent: Array, likelihood: Likelihood, *, max_iter: int = 200
) -> Member:
    """Iterate q(w) and the prior variance of each view to their common fixed point.

    sigma^2 = sum_d <w_d>^2 / sum_d (1 - Var w_d/sigma^2), the denominator being the number of
    weights the data determine (MacKay). The expectation step has the same fixed point, but moves
    by about N/D of the way each time and never arrives where features far outnumber samples. Every
    third step is extrapolated from the two before it.

    With the prior of the s.d. of the linear predictor, the denominator has v/25 added, where v is
    the variance that sigma^2 gives the view's part of eta.

    With a single view nothing but the scale is left to learn, and this is `fit_pooled`.

    Parameters
    ----------
    features : Features
    absent : (N, M) array of 0 and 1
    likelihood : Likelihood
    max_iter : int
    """
    M, C = features.n_views, likelihood.n_outputs
    factors = isinstance(likelihood, FactorLikelihood)  # one bound, so one scale for all
    if M == 1 and not factors:
        return fit_pooled(features, absent, likelihood)
    scales = np.maximum(features.scales(), 1e-12)
    slab = np.tile(1.0 / (M * scales), (C, 1))
    q = Gaussian.start(features, likelihood, features.spread(slab), absent)
    member = Member([q], np.ones((1, C)), converged=False)
    started = time.perf_counter()
    steps: list[Array] = []
    for iteration in range(max_iter):
        q.refresh()
        q.refresh_extra()
        ratio, used = features.strengths(q.sides, q.s)
        follow(q, following_length(iteration))
        reach = slab * scales / PREDICTOR_SD**2
        new = np.clip(slab * ratio / (used + reach + 1e-300), 1e-12 / scales, 1e6 / scales)
        share = slab * scales / (slab * scales).sum(axis=1, keepdims=True)
        change = float((np.abs(new / slab - 1.0) * share).max())
        slab = new
        if change >= CALM and iteration >= MIN_ITER:
            steps = [*steps, np.log(new)]
            if len(steps) == 3:
                slab = np.exp(extrapolated(steps, share))
                steps = []
        q.s = features.spread(slab)
        member.history.append(
            {"change": change, "n_factors": C, "seconds": time.perf_counter() - started}
        )
        if change < CALM and iteration >= MIN_ITER:
            member.converged = True
            break
    if factors:
        q.settle(max_iter=10, tol=SETTLED)
    else:
        member.points, member.weights = over_scales(q)
    return member


def extrapolated(steps: Sequence[Array], share: Array) -> Array:
    """Return where three values of ln sigma^2 (C, M) in a row are heading.

    The squared extrapolation of fixed points: with r = x1 - x0 and v = x2 - 2 x1 + x0,
    x = x0 + 2 a r + a^2 v, a = |r|/|v| for each output, lengths weighted by each view's share of
    its variance.
    """
    first, second, third = steps
    r, v = second - first, third - 2.0 * second + first
    lengths = [(share * step**2).sum(axis=1, keepdims=True) for step in (r, v)]
    a = np.clip(np.sqrt(lengths[0] / np.maximum(lengths[1], 1e-300)), 1.0, LONGEST_STEP)
    return np.clip(first + 2.0 * a * r + a**2 * v, third - 2.0, third + 2.0)
