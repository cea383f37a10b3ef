"""Ensemble members with a normal prior on all features, or on those of strongest association.

"per_view" learns one prior variance per view and output (gamma = 1, delta_m learned) and is then
integrated over their common scale; "pooled" has one variance per output, and its scale is all there
is to integrate over. Screened members have the features with the strongest marginal association.

Every fold starts without knowledge of the fit on all rows. Started from there, a view whose
variance is 0 in that fit would stay at 0 in the fold, which would so learn from the rows that it
holds out.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from scipy.stats import chi2

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.design import ColumnDesign, Design, GramDesign
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.likelihood import Likelihood, Sites, take_folds

PREDICTOR_SD = 5.0
"""The s.d. of the linear predictor is half-normal with this scale: weakly informative, from no
signal at all to classes that do not overlap. Without it, variances grow for ever where classes
separate."""
TOLERANCE = 1e-2
"""Largest change of a view's prior variance, as a share of all views', that counts as converged:
the scale is integrated over afterwards, in steps a hundred times as long."""
MIN_ITER, MIN_OWN_ITER = 5, 2
"""Least iterations from the uninformed start, and of each output's own variances."""
OWN_ITER = 6
"""Most iterations with each output's own variances and site precisions, after those that share them
have converged."""
LONGEST_STEP = 8.0

SCALE_STEP = 1.5
"""Distance of the points of ln variance. A Gaussian of s.d. 0.75 or more is integrated to 2 % by
them, and with a narrower one the scale is known well enough for one point."""
SCALE_POINTS = 3
"""Most points on either side of variances that were learned: a factor of 90."""
POOLED_POINTS = 6
"""Most points on either side of a predictor of variance 1: from 1e-4, which nobody can tell from no
signal, to 8,000, which the prior of the scale rules out."""
SITES_ITER, SITES_TOLERANCE = 10, 3e-4
"""Most steps of the sites, and the relative gain of the bound below which they have converged: some
hundredths of a nat."""
SCALE_DROP = 3.0
"""Fall of the log weight at which the points end: below 5 % of the best."""


@dataclass
class ScalePoint:
    """The posterior at one scale of the prior, for the folds in which it counts."""

    step: int  # the scale is exp(step SCALE_STEP)
    folds: IntArray  # (P,); folds of the batch
    q: WeightPosterior
    selects: bool = False  # whether it has the candidates of a prior that selects, or all features
    columns: IntArray | None = None  # (P, K)


@dataclass
class Member:
    """One prior's posterior: Gaussians at a few scales of the prior, weighted by their evidence."""

    points: list[ScalePoint]
    weights: Array  # (G, F, C); sums to one over points
    history: list[dict[str, Any]] = field(default_factory=list)  # one record per iteration
    converged: Any = None  # (F,)
    variances: Array | None = None  # (F, C, M); learned prior variance of every view, or None
    spike_slab: Any = None  # what such a prior learned, or None


def sites_near(member: Member, step: int, likelihood: Likelihood) -> Sites:
    """Return each output's own sites (F, C, n) at the scale of `step`, or the nearest there is."""
    shape = likelihood.weight.shape
    h, j = np.zeros(shape), np.zeros(shape)
    # The nearest scale comes last and stays.
    for point in sorted(member.points, key=lambda point: -abs(point.step - step)):
        h[point.folds], j[point.folds] = point.q.separate_sites()
    return Sites(h, j)


def log_scale_prior(variance: Array) -> Array:
    """Return the log density of ln v, where sqrt(v) is half-normal with scale `PREDICTOR_SD`."""
    return np.asarray(0.5 * (np.log(variance) - variance / PREDICTOR_SD**2))


def over_scales(
    q: WeightPosterior, *, most: int = SCALE_POINTS, start: Member | None = None
) -> tuple[list[ScalePoint], Array]:
    """Return converged posteriors at G scales of the prior variances, and weights (G, F, C).

    ln weight = ln evidence + ln p(ln v), v the variance the prior gives the linear predictor. From
    the given variances outwards in steps of `SCALE_STEP`, each starting at the sites of the one
    before, until the weights are small or about to be, or there are `most` on either side. From a
    `start`, the fit in which outputs shared their site precisions, only the scales that counted
    there are computed.
    """
    v = np.maximum(q.design.predictor_variance(q.s), np.finfo(float).tiny)
    F, C = len(v), q.likelihood.n_outputs
    all_folds = np.arange(F)
    points_at: dict[int, ScalePoint] = {}
    log_weights: dict[int, Array] = {}

    def compute(step: int, folds: IntArray, near: int | None) -> None:
        """Compute posterior and ln weight at one scale, from the sites at the scale `near`."""
        scale = float(np.exp(step * SCALE_STEP))
        scaled = take_folds(q, folds).rescaled(scale)
        if start is not None:
            scaled.sites = take_folds(sites_near(start, step, q.likelihood), folds)
        elif near is not None:
            place = np.searchsorted(points_at[near].folds, folds)
            scaled.sites = take_folds(points_at[near].q.sites, place)
            scaled.noise = take_folds(points_at[near].q.noise, place)
        if q.design.absent is not None:  # sites and variances of missing views, in turn
            scaled.refresh()
            scaled.refresh_extra()
            scaled.optimise_sites(1, SITES_TOLERANCE)
            scaled.refresh_extra()
        scaled.optimise_sites(SITES_ITER if start is None else 1, SITES_TOLERANCE)
        points_at[step] = ScalePoint(step, folds, scaled)
        log_weights[step] = np.full((F, C), -np.inf)
        log_weights[step][folds] = scaled.evidence() + log_scale_prior(v[folds] * scale)

    q.kernel = q.design.kernel(q.s)
    if start is None:
        compute(0, all_folds, None)
    else:
        for point in start.points:
            compute(point.step, point.folds, None)
    for direction in (-1, 1) if start is None else ():
        last, folds = 0, all_folds
        while len(folds) and abs(last + direction) <= most:
            compute(last + direction, folds, last)
            last += direction
            folds = folds[~_ended(log_weights, last, direction, folds)]
    q.kernel = None
    steps = sorted(points_at)
    logs = np.stack([log_weights[step] for step in steps])
    weights = np.exp(logs - logs.max(axis=0))
    weights[weights < np.exp(-SCALE_DROP)] = 0.0
    weights /= weights.sum(axis=0)
    points = []  # without folds in which a point has no weight
    for step, weight in zip(steps, weights, strict=True):
        point = points_at[step]
        used = weight[point.folds].any(axis=1)
        if used.all():
            points.append(point)
        elif used.any():
            at = np.flatnonzero(used)
            points.append(ScalePoint(step, point.folds[at], take_folds(point.q, at)))
    return points, weights[[weight.any() for weight in weights]]


def _ended(log_weights: dict[int, Array], last: int, direction: int, folds: IntArray) -> Mask:
    """Return which folds need no scale beyond the `last`: weights there are negligible."""
    least = np.max([value[folds] for value in log_weights.values()], axis=0) - SCALE_DROP
    here = log_weights[last][folds]
    ended = (here < least).all(axis=1)
    steps_before = (last - direction, last - 2 * direction)
    before = [log_weights[k][folds] for k in steps_before if k in log_weights]
    if len(before) == 2:
        with np.errstate(invalid="ignore"):  # -inf where a fold has no such point
            ended |= (parabola(here, *before) < least).all(axis=1)
    return np.asarray(ended)


def parabola(last: Array, middle: Array, first: Array) -> Array:
    """Return the next value of the parabola through three successive values, the last one first."""
    return 3.0 * last - 3.0 * middle + first


def fit_pooled(design: Design, likelihood: Likelihood) -> Member:
    """Return the member with one prior variance of all features, which is integrated over."""
    began = time.perf_counter()
    scales = design.scales()
    total = np.maximum(scales.sum(axis=1), 1e-12)  # 1/total gives the predictor variance 1
    shape = (len(scales), likelihood.n_precisions, design.n_views)
    variances = np.broadcast_to(1.0 / total[:, None, None], shape)
    q = WeightPosterior.start(design, likelihood, design.spread(variances))
    if design.absent is not None:
        # What a missing view would add is known only when the sites have converged.
        q.optimise_sites(SITES_ITER, SITES_TOLERANCE)
    points, weights = over_scales(q, most=POOLED_POINTS)
    record = {
        "change": 0.0,
        "n_factors": likelihood.n_outputs,
        "seconds": time.perf_counter() - began,
    }
    return Member(points, weights, [record], np.ones(len(scales), dtype=bool), variances)


def fit_per_view(
    design: Design,
    likelihood: Likelihood,
    *,
    max_iter: int = 200,
    start: Member | None = None,
) -> Member:
    """Return the member with a prior variance for each view, at its fixed point together with q(w).

    sigma^2 = sum_d <w_d>^2 / sum_d (1 - Var w_d/sigma^2), the denominator being the number of
    weights the data determine (MacKay, 1992). The expectation step has the same fixed point, but
    moves by about N/D of the way each time and never arrives where features far outnumber samples.
    Every third step is extrapolated from the two before it.

    With the prior of the s.d. of the linear predictor, the denominator has v/25 added, where v is
    the variance that sigma^2 gives the view's part of eta.
    """
    q, variances, history, converged = learn_variances(
        design, likelihood, max_iter=max_iter, start=start
    )
    points, weights = over_scales(q, start=start)
    return Member(points, weights, history, converged, variances)


def learn_variances(
    design: Design,
    likelihood: Likelihood,
    *,
    max_iter: int,
    tolerance: float = TOLERANCE,
    start: Member | None = None,
    near: tuple[WeightPosterior, Array] | None = None,
) -> tuple[WeightPosterior, Array, list[dict[str, Any]], Array]:
    """Return q(w) at the learned variance of each view, these (F, C, M), record and convergence.

    The iteration is described at `fit_per_view`. It begins at equal variances of all views' parts
    of eta; at the fit in which outputs shared site precisions (`start`); or at a posterior of the
    same folds with other features (`near`): its sites, and the variance (F, C, M) that its prior
    gives each view's part of eta. `tolerance` is the largest change that counts as converged.
    """
    began = time.perf_counter()
    scales = np.maximum(design.scales(), 1e-12)[:, None, :]  # (F, 1, M)
    F, C, M = len(scales), likelihood.n_precisions, design.n_views
    variances = np.broadcast_to(1.0 / (M * scales), (F, C, M)).copy()
    least = MIN_ITER
    if start is not None and start.variances is not None:
        variances[:] = start.variances
        least = MIN_OWN_ITER
    elif near is not None:
        # Views that had hardly any variance begin with a tenth of the uninformed one.
        variances = np.maximum(near[1] / scales, 0.1 * variances)
        least = MIN_OWN_ITER
    # Of all folds; those that have converged are put back into it.
    whole = WeightPosterior.start(design, likelihood, design.spread(variances))
    if start is not None:
        whole.sites = sites_near(start, 0, likelihood)
    elif near is not None:
        whole.sites, whole.noise = near[0].sites, near[0].noise
    q, folds = whole, np.arange(F)  # those that have not converged
    converged = np.zeros(F, dtype=bool)
    history: list[dict[str, Any]] = []
    steps: list[Array] = []  # the last values of ln variance
    for iteration in range(max_iter if start is None else min(OWN_ITER, max_iter)):
        current = variances[folds]
        q = q.with_variances(q.design.spread(current))
        q.refresh()
        q.refresh_extra()
        strength, determined = q.design.strengths(q.solution, q.s, q.sites.h)
        if strength.shape[1] > C:  # outputs share their variances
            strength = strength.mean(axis=1, keepdims=True)
        q.damped_update(iteration)
        by_prior = current * scales[folds] / PREDICTOR_SD**2  # v/25
        new = current * strength / (determined + by_prior + 1e-300)
        new = np.clip(new, 1e-12 / scales[folds], 1e6 / scales[folds])
        share = current * scales[folds] / (current * scales[folds]).sum(axis=2, keepdims=True)
        change = (np.abs(new / current - 1.0) * share).max(axis=(1, 2))
        going = (change >= tolerance) | (iteration < least)
        variances[folds] = new
        if iteration >= least:
            steps = [*steps, np.log(new)]
            if len(steps) == 3:
                further = np.exp(extrapolated(steps, share))
                variances[folds] = np.where((change >= tolerance)[:, None, None], further, new)
                steps = []
        history.append(
            {
                "change": float(change.max()),
                "n_factors": likelihood.n_outputs,
                "seconds": time.perf_counter() - began,
            }
        )
        if going.all():
            continue
        converged[folds[~going]] = True
        whole.put_sites(folds, q)
        keep = np.flatnonzero(going)
        folds = folds[keep]
        if not len(keep):
            break
        q = take_folds(q, keep)
        steps = [step[keep] for step in steps]
    if len(folds):
        whole.put_sites(folds, q)
    if start is not None:
        converged = start.converged
    return whole.with_variances(design.spread(variances)), variances, history, converged


def extrapolated(steps: Sequence[Array], share: Array) -> Array:
    """Return the limit extrapolated from three successive values of ln sigma^2 (F, C, M).

    The squared extrapolation of fixed points (Varadhan and Roland, 2008): with r = x1 - x0 and
    v = x2 - 2 x1 + x0, x = x0 + 2 a r + a^2 v, a = |r|/|v| for each fold and output, lengths
    weighted by each view's share of its variance.
    """
    first, second, third = steps
    r, v = second - first, third - 2.0 * second + first
    lengths = [(share * step**2).sum(axis=-1, keepdims=True) for step in (r, v)]
    a = np.clip(np.sqrt(lengths[0] / np.maximum(lengths[1], 1e-300)), 1.0, LONGEST_STEP)
    # Not further than e^2 from the last value.
    return np.clip(first + 2.0 * a * r + a**2 * v, third - 2.0, third + 2.0)


SCREENED_TOLERANCE = 0.1
"""Largest change of a view's prior variance, as a share of all views', that counts as converged:
the share that chance does not explain, by which variances are multiplied, is known no better."""


LEAST = 1e-3
"""Least share of a variance that is kept: what is left predicts the base rate, and variances of 0
would leave the posterior undefined."""


def share_beyond_chance(squares: Array, size: int, n_tests: int) -> Array:
    """Return the share of the strongest associations that chance does not explain, (F,).

    `squares` (F, L) are z^2, falling; `n_tests` features times outputs could have been chosen.
    """
    # The mean of the `size` largest of so many z^2 that chance alone would give.
    ranks = np.arange(1, size + 1) - 0.5
    by_chance = float(chi2.isf(ranks / max(n_tests, size), 1).mean())
    mean = squares[:, :size].mean(axis=1)
    return np.maximum(1.0 - by_chance / np.maximum(mean, 1e-12), LEAST)


def marginal_associations(design: ColumnDesign, residuals: Array) -> tuple[IntArray, Array]:
    """Return all candidate columns by falling association z_d = x_d^T r, and z^2, each (F, L).

    r has length 1 over the rows that have the view of the column; cells of other rows are 0. Of
    several outputs the largest absolute value counts. Columns that pad come last.

    Shapes: residuals (F, C, n).
    """
    F, _, n = residuals.shape
    absent = design.absent
    present = np.ones((F, n, design.n_views)) if absent is None else 1.0 - absent
    power = np.matmul(residuals**2, present)  # (F, C, M); squared length over rows with the view
    z2 = np.square(np.matmul(residuals, design.X1[:, :, 1:]))
    z2 /= np.maximum(design.spread(power), 1e-12)
    z2 = z2.max(axis=1)
    z2[design.owner == design.n_views] = -1.0
    order = np.argsort(-z2, axis=1, kind="stable")
    return order, np.take_along_axis(z2, order, axis=1)


def fit_screened(
    design: ColumnDesign,
    likelihood: Likelihood,
    columns: IntArray,
    share: Array,
    *,
    smaller: Member | None = None,
    max_iter: int = 200,
) -> Member:
    """Learn q(w) of the strongest columns, with one prior variance per view.

    The variances are multiplied by the share that chance does not explain. They are not integrated
    over: their evidence would use the outcome twice, because it chose the columns. The iteration
    begins at `smaller`, the member with fewer columns, if there is one.

    Shapes: columns (F, K), share (F,).
    """
    part = design.reordered(columns)
    # Variances of views need no columns, only the Gram matrices of these.
    views: Design = part
    if not part.uses_features:
        views = GramDesign(part.grams, part.count, part.intercept_var, absent=part.absent)
    near = None
    if smaller is not None and smaller.variances is not None:
        q = smaller.points[0].q
        near = q, smaller.variances * q.design.scales()[:, None]
    q, variances, history, converged = learn_variances(
        views, likelihood, max_iter=max_iter, tolerance=SCREENED_TOLERANCE, near=near
    )
    shrunk = share[:, None, None] * variances
    points, weights = over_scales(q.with_variances(part.spread(shrunk), part), most=0)
    points = [replace(p, selects=True, columns=columns[p.folds]) for p in points]
    return Member(points, weights, history, converged, variances)
