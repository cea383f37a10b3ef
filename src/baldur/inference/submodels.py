"""The submodels of one fit as predictors: the base rate, the sizes of the path, whole views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.inference.ensemble import noise_variance, restricted
from baldur.inference.fit_context import FitContext
from baldur.inference.inner_folds import with_their_groups
from baldur.inference.path_search import whole_groups
from baldur.inference.predictor import (
    Calibration,
    KernelGaussian,
    Predictor,
    WeightGaussian,
    mean_squares,
    pool,
    share_factors,
)
from baldur.inference.submodel_path import (
    SIZES,
    STORED,
    Entering,
    SubmodelPath,
    entering_columns,
)
from baldur.inference.submodel_selection import Score
from baldur.inference.weight_posterior import WeightPosterior
from baldur.model.posterior import INTERCEPT_VAR, FeaturePosterior
from baldur.model.predictions import shrinkage

MOST_PAYMENTS = 40
"""Payments whose submodels are scored besides the usual sizes of the path: enough for tests that
are ordered one by one, where each of thousands of features has a cost the usual sizes serve."""


def last_before_payments(paid: Array) -> list[int]:
    """Return the numbers of columns after which something is paid for, and all columns.

    Shapes: paid (K,).
    """
    ends = np.flatnonzero(np.diff(paid) > 0) + 1
    return [*ends[:MOST_PAYMENTS].tolist(), *([len(paid)] if len(paid) else [])]


def cost_records(
    fit: FitContext,
    path: SubmodelPath,
    folds: Sequence[SubmodelPath],
    sizes: Sequence[int],
    base: dict[str, Any],
) -> list[dict[str, Any]]:
    """Return a record for every cost along the path; each fold spends at most as much.

    `base` is the record of the base rate, which costs nothing.
    """
    payments, along = path.payments(0), path.cost(0)
    if payments is None or along is None or not sizes:
        return []
    cost = along[np.array(sizes) - 1]  # of each size
    last = np.append(np.diff(cost) > 0, True)  # the largest submodel at every cost
    columns = [size for size, is_last in zip(sizes, last, strict=True) if is_last]
    cost = cost[last]
    moments = [batch_path.moments(sizes_within(batch_path, cost)) for batch_path in folds]
    owner = path.columns(0)[1]
    n_views = [len(np.unique(owner[:k])) for k in columns]
    enters = entering_columns(path.order[0], columns, fit.index)
    records = fit.records("cost", n_views, columns, fit.score(moments), enters)
    orders = paid_measurements(*payments, columns, records)
    return [
        {"cost": 0.0, "orders": [], **base},
        *(
            {"cost": float(spent), "orders": paid_for, **record}
            for spent, paid_for, record in zip(cost, orders, records, strict=True)
        ),
    ]


def paid_measurements(
    of_views: Array,
    of_features: Array,
    columns: Sequence[int],
    records: Sequence[dict[str, Any]],
) -> list[Entering]:
    """Return the views and features that are paid for at each cost, in the order of the path.

    `columns` are the numbers of columns at the costs. Shapes: of_views, of_features (K,), what is
    paid with each column of the path.
    """
    orders: list[Entering] = []
    for start, record in zip([0, *columns], records, strict=False):
        paid: list[tuple[int, int | None]] = []
        for place, (view, column) in enumerate(record["enters"], start):
            if of_views[place] > 0:
                paid.append((view, None))
            if of_features[place] > 0:
                paid.append((view, column))
        orders.append(paid)
    return orders


def sizes_within(path: SubmodelPath, budgets: Array) -> IntArray:
    """Return how many columns of each fold cost at most each budget, (S, F).

    Shapes: budgets (S,).
    """
    sizes = np.zeros((len(budgets), len(path.ends)), dtype=np.intp)
    for f, ends in enumerate(path.ends):  # sizes that cut no group
        cost = path.cost(f)
        if cost is None or not len(ends):
            continue
        # Costs are sums in another order: equal ones may differ by rounding.
        within = np.searchsorted(cost[ends - 1], budgets * (1.0 + 1e-12), side="right")
        sizes[:, f] = np.concatenate([[0], ends])[within]
    return sizes


EVERY_SIZE = 20
"""Every number of features up to this one is scored, so that it can be asked for."""


@dataclass(frozen=True)
class Submodel:
    """One submodel of a fit, with what an estimator needs to predict with it."""

    n_features: int
    predictor: Predictor
    columns: Index  # Selected columns of each view
    row: int  # Its row in the table of the submodel path
    cost: float = 0.0  # What its features cost

    @property
    def masks(self) -> list[Mask]:
        """The selected columns of each view, (D_m,) bool arrays."""
        masks = [np.zeros(D, dtype=bool) for D in self.predictor.widths]
        for mask, columns in zip(masks, self.columns, strict=True):
            mask[columns] = True
        return masks


@dataclass(frozen=True)
class PathSizes:
    """Sizes at which a submodel path is scored, from small to large."""

    scored: list[int]
    columns: list[int]  # Columns of the path on all rows
    n_features: list[int]  # Features of the path on all rows that count, a category counted once
    automatic: list[int]  # Places of the sizes among which the automatic selection chooses
    shown: list[int]
    total: int  # Features of the selected views that count, on the path or not

    @property
    def complete(self) -> bool:
        """Whether the largest size has all features."""
        return [0, *self.n_features][-1] == self.total


def path_sizes(fit: FitContext, path: SubmodelPath, views: Mask) -> PathSizes:
    """Return the sizes of the submodel path of some views.

    These are `SIZES` (of those that a group makes one, the largest), every number of features up to
    `EVERY_SIZE`, the last one before something is paid for, and all features where the path has
    them all. Features at the beginning of the path that every submodel has do not count.

    Shapes: views (M,).
    """
    width = int(np.array(fit.problem.widths)[views].sum())
    n_features = int(np.array(fit.problem.n_features)[views].sum())
    longest = int(path.length[0])
    always = int(path.columns(0)[3].sum())
    grid = [always + size for size in ((0, *SIZES) if always else SIZES)]
    grid = [size for size in grid if size <= longest and size < width]
    # The size that is scored for each number of columns on all rows.
    by_columns = {whole_groups(path.ends[0], size): size for size in grid}
    automatic = set(by_columns)
    ends = path.ends[0]
    uncounted = int(np.searchsorted(ends, always, side="right"))  # features that do not count
    all_features = ends[-1:] if len(ends) == n_features else ends[:0]
    for size in [*ends[uncounted : uncounted + EVERY_SIZE], *all_features]:
        by_columns.setdefault(int(size), int(size))
    paid = path.cost(0)
    if paid is not None:
        for size in last_before_payments(paid):
            by_columns.setdefault(size, size)
    columns = sorted(by_columns)
    counts = 1 + np.searchsorted(ends, columns) - uncounted
    return PathSizes(
        [by_columns[size] for size in columns],
        columns,
        counts.tolist(),
        [place for place, size in enumerate(columns) if size in automatic],
        [place for place, size in enumerate(columns) if size < width or size in automatic],
        n_features - uncounted,
    )


def largest_within(counts: Sequence[int], n_features: int) -> int:
    """Return the index of the largest of some ascending counts that is at most `n_features`."""
    return int(np.searchsorted(counts, n_features, side="right")) - 1


def make_submodels(
    fit: FitContext, path: SubmodelPath, sizes: PathSizes, scores: Sequence[Score]
) -> list[Submodel]:
    """Return the base rate and the submodel of every size, from small to large."""
    paid = path.cost(0)
    base, widths = fit.full.base_logit[0], fit.problem.widths
    C, zero = len(base), np.zeros((len(widths), len(base)))
    no_columns = [np.zeros(0, dtype=np.intp) for _ in widths]
    # The base rate is an intercept without variance.
    block = WeightGaussian(no_columns, base[None, :, None].copy(), np.zeros((1, C, 1, 1)))
    noise = fit.full.base_variance[0].copy()
    predictor = Predictor([block], np.ones((1, C)), widths, noise, zero, zero, zero)
    submodels = [Submodel(0, predictor, no_columns, 0)]
    for place, (columns, count) in enumerate(zip(sizes.columns, sizes.n_features, strict=True)):
        predictor, index = submodel_predictor(fit, path, columns, scores[place])
        cost = 0.0 if paid is None else float(paid[columns - 1])
        row = 1 + len(fit.view_counts) + place  # after the base rate and the numbers of views
        submodels.append(Submodel(count, predictor, index, row, cost))
    return submodels


def submodel_predictor(
    fit: FitContext, path: SubmodelPath, size: int, score: Score
) -> tuple[Predictor, Index]:
    """Return the ensemble projected onto the first columns of the path, and its columns.

    `score` says how these columns compare with the ensemble.
    """
    chosen = path.order[0, :size]
    place = np.argsort(chosen, kind="stable")  # blocks list columns in rising order
    reorder = np.concatenate([[0], 1 + place])
    mask = np.zeros(sum(map(len, fit.index)), dtype=bool)  # of the candidates of all views
    mask[chosen] = True
    masks = np.split(mask, np.cumsum([len(i) for i in fit.index])[:-1])
    index = [columns[of_view] for columns, of_view in zip(fit.index, masks, strict=True)]
    mean, cov = path.weights(0, size)
    signal, lacking = path.signal(0, size)  # (M, C)
    mean, cov = mean[:, reorder], cov[:, reorder][:, :, reorder]
    # What is left out is noise in regression; for labels it is integrated over.
    shrink, noise, stretch = np.ones(len(mean)), path.noise[0], score.stretch
    if fit.problem.logistic:
        shrink = shrinkage(score.left_out)
    else:
        noise = noise + score.left_out
    block = WeightGaussian(
        index,
        (shrink[:, None] * mean)[None],
        ((shrink**2 * stretch)[:, None, None] * cov)[None],
    )
    if fit.problem.groups is not None:  # a level that the others say has weight 0
        index = with_their_groups(index, fit.problem.groups)
    predictor = Predictor(
        [block],
        np.ones((1, len(mean))),
        fit.problem.widths,
        noise,
        shrink**2 * signal,
        shrink**2 * signal,
        shrink**2 * (signal + stretch * (lacking - signal)),
    )
    return share_factors(predictor, fit.problem.views, fit.n_factors), index


def whole_view_predictor(fit: FitContext, views: Mask, score: Score) -> Predictor:
    """Return the stacked ensemble on all features of some `views`, a mask (1, M).

    `score` says how these views compare with the ensemble.
    """
    left_out, C = score.left_out, fit.problem.T.shape[1]
    regression = not fit.problem.logistic
    weights = fit.full.point_weights(fit.stacking.shares)[:, 0]  # (J, C)
    designs = candidates, _ = fit.full.batch.designs()
    gaussians = []
    # Averages over the Gaussians; `lacking` (M, C) is for rows without a view.
    noise, parts, lacking = np.zeros(C), 0.0, 0.0
    for j, _, q in fit.full.posteriors(weights[:, None], *designs, every=True):
        q = restricted(q, views)
        w = weights[j]
        noise = noise + w * noise_variance(q.noise, (1, C))[0]
        parts = parts + w[:, None] * q.design.parts(q.solution, q.s)[0]
        lacking = lacking + w * q.missing_view_variance()[0]
        gaussians.append((j, q))
    shrink = np.ones(C) if regression else shrinkage(left_out)
    spread = shrink * np.sqrt(score.stretch)
    slope = float(fit.stacking.slope[0])
    calibration = Calibration(
        fit.full.base_logit[0], slope, float(fit.stacking.slope_var[0]), shrink, spread
    )
    signal = (slope * shrink) ** 2 * mean_squares(np.asarray(parts), fit.data.absent)
    blocks, order = _blocks(fit, gaussians, candidates.X1[0, :, 1:])
    weights = weights[order]
    final: Calibration | None = calibration
    if len(blocks) == 1 and isinstance(blocks[0], WeightGaussian):  # one Gaussian in all
        blocks = [pool(blocks[0], weights, calibration)]
        weights, final = np.ones((1, C)), None
    predictor = Predictor(
        blocks,
        weights,
        fit.problem.widths,
        noise + (left_out if regression else 0.0),
        signal,
        signal,
        spread**2 * np.asarray(lacking),
        final,
    )
    return share_factors(predictor, fit.problem.views, fit.n_factors)


def _blocks(
    fit: FitContext, gaussians: list[tuple[int, WeightPosterior]], X: Array
) -> tuple[list[WeightGaussian | KernelGaussian], list[int]]:
    """Return the Gaussians as blocks of one kind each, and their order in the blocks.

    The order is of their numbers among the points. Shapes: X (N, L), training rows of the
    candidates.
    """
    # "weights" of the feature solver; kernels of "columns" or of whole "views" of the other.
    kinds: dict[str, list[tuple[int, WeightPosterior]]] = {}
    for j, q in gaussians:
        by_view = fit.data.grams is not None and not fit.full.points[j].selects
        kind = "views" if by_view else "columns"
        if isinstance(q.solution, FeaturePosterior):
            kind = "weights"
        kinds.setdefault(kind, []).append((j, q))
    blocks: list[WeightGaussian | KernelGaussian] = []
    order: list[int] = []
    for kind, pairs in kinds.items():
        order += [j for j, _ in pairs]
        solutions = [q.solution for _, q in pairs]  # of the one fold, that of all rows
        if kind == "weights":
            half = np.stack([q.half[0] for q in solutions])
            cov = np.matmul(half.swapaxes(-1, -2), half)
            mean = np.stack([q.w[0] for q in solutions])
            blocks.append(WeightGaussian(fit.index, mean, cov))
            continue
        alpha, half = (
            np.stack([getattr(q, name)[0] for q in solutions]) for name in ("alpha", "half")
        )
        s = np.stack([q.s[0] for _, q in pairs])
        if kind == "columns":
            cells = np.ascontiguousarray(X)
            blocks.append(KernelGaussian(alpha, half, s, INTERCEPT_VAR, fit.index, cells, None))
        else:
            train = list(fit.problem.views)
            blocks.append(KernelGaussian(alpha, half, s, INTERCEPT_VAR, None, None, train))
    return blocks, order


class StoredPath:
    """A submodel path on all rows and in every inner fold, cut to its first columns.

    Of every view its first features are taken, in the order of the path, in every fold.
    """

    def __init__(
        self,
        fit: FitContext,
        path: SubmodelPath,
        folds: Sequence[SubmodelPath],
        views: Mask,
        limit: int = STORED,
    ) -> None:
        self.fit, self.views = fit, views  # (M,); views whose features the path may have
        self.path = path.first(limit)
        self.folds = [batch_path.first(limit) for batch_path in folds]
        everything = self.path.length[0] == path.length[0] < max(SIZES)
        self.complete = bool(everything)  # whether nothing was cut off

    def available(self) -> IntArray:
        """Return how many features of each view the path has on all rows, (M,)."""
        return self.path.features_per_view(0)

    def missing(self, most: IntArray) -> IntArray:
        """Return the views that have more features than the path has, although asked for."""
        wanted = np.minimum(most, self.fit.problem.n_features)
        enough = (wanted <= self.available()) | (self.views & self.complete)
        return np.flatnonzero(~enough & (most > 0))

    def submodel(self, most: IntArray, row: int) -> tuple[Submodel, IntArray, dict[str, Any]]:
        """Return the submodel with at most `most` (M,) features of each view, columns and record.

        Columns are numbers of candidates on all rows, in the order of the path. `row` is the row of
        the record in the table of the path.
        """
        fit = self.fit
        folds = [path.first_of_views(most) for path in self.folds]
        scores = fit.score([path.moments(path.length[None]) for path in folds])
        path = self.path.first_of_views(most)
        order, size = path.order[0], int(path.length[0])
        predictor, index = submodel_predictor(fit, path, size, scores[0])
        enters = entering_columns(order, [size], fit.index)
        n_views = len(np.unique(path.columns(0)[1]))
        (record,) = fit.records("per view", [n_views], [size], scores, enters)
        count = int(path.features_per_view(0).sum())
        return Submodel(count, predictor, index, row), order, {**record, "selected": True}
