"""The data of a fit: outcomes, candidate features, and inner folds in batches.

Inner folds are repeated, balanced and stratified by label, and groups are held out as a whole. The
candidates of the spike-and-slab prior are screened in every fold, by its training rows alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.exceptions import InputError
from baldur.inference.design import ColumnDesign, Design, GramDesign, gather
from baldur.inference.path_search import EntryCosts
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood, Task, residual
from baldur.model.posterior import INTERCEPT_VAR, with_ones
from baldur.views.prepared_view import PreparedView

N_FOLDS, FEWER_FOLDS = 5, 3
MOST_REPEATS, SMALL, MORE, CHEAP = 8, 100, 3 / 2, 1200
"""How rows fall into folds is chance, and the answer should not depend on it: folds are repeated
eight times, 3/2 as often in samples of up to 100, and less often where repeats times N^2, times the
number of outputs, would exceed 1,200^2: large samples are steadier by themselves, and their fits
are not cheap. Where one repeat of five folds would exceed it, there is one of three."""


def inner_folds(
    labels: NDArray[Any], task: Task, groups: Any, random_state: Any
) -> list[tuple[IntArray, IntArray]]:
    """Return (training rows, held-out rows) of every fold of every repeat.

    Labels are stratified, and rows of one group are held out together, where there are `groups`.
    Shapes: labels (n_samples,), groups (n_samples,).
    """
    n = len(labels)
    stratified = task in ("binary", "multiclass")
    outputs = len(np.unique(labels)) if task == "multiclass" else int(np.prod(np.shape(labels)[1:]))
    cheap = CHEAP**2 // (n**2 * outputs) > 0  # whether one repeat is
    n_folds = min(N_FOLDS if cheap else FEWER_FOLDS, n)
    if stratified:
        n_folds = max(2, min(n_folds, int(np.unique(labels, return_counts=True)[1].min())))
    if groups is not None:
        n_folds = min(n_folds, len(np.unique(groups)))
        if n_folds < 2:
            raise InputError("groups: inner folds need at least two groups, but there is one.")
    random = check_random_state(random_state)
    repeats = n_repeats(n, outputs)
    if groups is None and n_folds in (2, 3, 5):  # primes, as balanced repeats need
        strata = np.unique(labels, return_inverse=True)[1] if stratified else np.zeros(n, dtype=int)
        assigned = balanced_folds(strata, n_folds, repeats, random)
        pairs = [(fold != k, fold == k) for fold in assigned for k in range(n_folds)]
        folds = [(np.flatnonzero(train), np.flatnonzero(held)) for train, held in pairs]
    else:
        if groups is None:
            kind = StratifiedKFold if stratified else KFold
        else:
            kind = StratifiedGroupKFold if stratified else GroupKFold
        folds = []
        for _ in range(repeats):
            splitter = kind(n_folds, shuffle=True, random_state=random.randint(2**31 - 1))
            folds += splitter.split(np.zeros(n), labels if stratified else None, groups)
    return [(rows, held) for rows, held in folds if len(held) and len(rows)]


def n_repeats(n: int, outputs: int = 1) -> int:
    """Return how often the folds of n rows are repeated."""
    most = int(MORE * MOST_REPEATS) if n <= SMALL else MOST_REPEATS
    return int(np.clip(CHEAP**2 // (n**2 * outputs), 1, most))


def balanced_folds(
    strata: IntArray, n_folds: int, repeats: int, random: np.random.RandomState
) -> list[IntArray]:
    """Return the fold of every row in each repeat, such that repeats are orthogonal to each other.

    Folds that are drawn anew for each repeat hold some pairs of rows out together often and others
    never. Here each row has a vector v of digits modulo the prime number p of folds, and repeat r
    holds it out in fold a_r . v modulo p with vectors a_r that are pairwise independent: any fold
    of one repeat has an equal share of the rows of any fold of another one. The first digit of
    a_r is 1, so p rows in a row of one stratum are in p different folds.

    Shapes: strata (n,).
    """
    p, n = n_folds, len(strata)
    digits = 3
    while p**digits < n:
        digits += 1
    folds: list[IntArray] = []
    while len(folds) < repeats:
        v = np.zeros((n, digits), dtype=np.intp)
        for stratum in np.unique(strata):
            rows = random.permutation(np.flatnonzero(strata == stratum))
            places = np.arange(len(rows))
            v[rows] = (places[:, None] // p ** np.arange(digits)) % p
            v[rows] += random.randint(p, size=digits)  # which folds get one row more
        for r in range(min(p * p, repeats - len(folds))):
            b, t = r % p, r // p
            a = np.array([1, b, b * b + t, *(b**k + k * t for k in range(3, digits))])
            folds.append((v @ a) % p)
    return folds


BATCH_BYTES, CACHE_BYTES = 1 << 27, 1 << 21
"""Working memory of one batch of folds, and size of one of its arrays of n x n matrices. Arrays
that stay in the processor's cache are a third faster at 200 samples than those of all folds at
once, and the time spent on calls is negligible from about ten folds on."""


Fold = tuple[IntArray, IntArray]
"""Training rows and held-out rows."""


@dataclass(frozen=True)
class EnsembleData:
    """The problem, and what every fold uses of its features: candidates and Gram matrices."""

    problem: Problem
    columns: Array  # (N, U); features that are a candidate in some fold
    owner: IntArray  # (U,); their views
    groups: IntArray  # (U,); columns with the same number enter a submodel together
    grams: Array | None  # (M, N, N)
    absent: Array | None  # (N, M)
    always: Mask  # (U,); columns that every submodel has
    costs: EntryCosts | None  # of the U columns, or None

    @property
    def n_views(self) -> int:
        """Number of views M."""
        return len(self.problem.views)


@dataclass(frozen=True)
class FoldBatch:
    """Training rows, held-out rows and candidates of F folds, padded to equal number."""

    data: EnsembleData
    rows: IntArray  # (F, n) training rows, and 1 where they are real and not padding
    counted: Array
    held: IntArray  # held, held_counted: (F, p); the same for held-out rows
    held_counted: Array
    candidates: IntArray  # (F, L); places of the candidates among `EnsembleData.columns`
    used: Array  # (F, L); 1 where they are real

    @classmethod
    def of(
        cls, data: EnsembleData, folds: Sequence[Fold], candidates: Sequence[IntArray]
    ) -> FoldBatch:
        """Build the batch from training and held-out rows and the candidates of every fold."""
        return cls(
            data,
            *_pad([train for train, _ in folds]),
            *_pad([held for _, held in folds]),
            *_pad(candidates),
        )

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def count(self) -> Array:
        """Number of training rows of each fold, (F,)."""
        return self.counted.sum(axis=1)

    def without_padding(self, values: Array) -> Array:
        """Return held-out predictions (..., F, C, p) as (..., R, C), without padding."""
        moved = np.moveaxis(values, -2, -1)  # (..., F, p, C)
        return moved[..., self.held_counted > 0, :]

    def owner(self) -> IntArray:
        """Return the view of each candidate, (F, L); the number of views for padding."""
        return np.where(self.used > 0, self.data.owner[self.candidates], self.data.n_views)

    def always(self) -> Mask:
        """Return which candidates every submodel has, (F, L)."""
        return self.data.always[self.candidates] & (self.used > 0)

    def groups(self) -> IntArray:
        """Return the group of each candidate, (F, L); columns that pad stand alone."""
        alone = self.data.groups.max(initial=-1) + 1 + np.arange(self.used.shape[1])
        return np.where(self.used > 0, self.data.groups[self.candidates], alone)

    def costs(self) -> EntryCosts | None:
        """Return what the candidates cost, (F, L), or None."""
        return None if self.data.costs is None else self.data.costs.take(self.candidates)

    def absent(self) -> Array | None:
        """Return 1 where a view of a training row is missing, (F, n, M), or None."""
        if self.data.absent is None:
            return None
        return self.data.absent[self.rows] * self.counted[:, :, None]

    def held_absent(self) -> Array | None:
        """Return 1 where a view of a held-out row is missing, (F, p, M), or None."""
        return None if self.data.absent is None else self.data.absent[self.held]

    def likelihood(self) -> LogisticLikelihood | GaussianLikelihood:
        """Return the likelihood of the training rows."""
        problem = self.data.problem
        kind = LogisticLikelihood if problem.logistic else GaussianLikelihood
        T = np.ascontiguousarray(problem.T[self.rows].swapaxes(1, 2))
        weight = problem.weight[self.rows] * self.counted
        return kind(T, np.repeat(weight[:, None], T.shape[1], axis=1))

    def candidate_cells(self, rows: IntArray, counted: Array) -> Array:
        """Return cells of candidates in rows (F, R), (F, R, L), zero where either is padding."""
        cells = self.data.columns[rows[:, :, None], self.candidates[:, None, :]]
        cells *= self.used[:, None, :]
        cells *= counted[:, :, None]
        return np.asarray(cells)

    def candidate_design(self, held: bool = True) -> ColumnDesign:
        """Return the design with the candidates as columns, without held-out rows if not `held`."""
        X1 = with_ones(self.candidate_cells(self.rows, self.counted))
        X1[:, :, 0] = self.counted  # the intercept, 0 in rows that pad
        new = with_ones(self.candidate_cells(self.held, self.held_counted)) if held else None
        return ColumnDesign(
            X1,
            self.owner(),
            self.count,
            self.data.n_views,
            INTERCEPT_VAR,
            new,
            self.absent(),
            self.held_absent(),
        )

    def designs(self, held: bool = True) -> tuple[ColumnDesign, Design]:
        """Return the candidates, and all features: through Gram matrices where there are such."""
        columns = self.candidate_design(held)
        return columns, columns if self.data.grams is None else self.gram_design()

    def gram_design(self) -> GramDesign:
        """Return all features through the Gram matrices of their views."""
        assert self.data.grams is not None
        at = self.rows
        real = self.counted[:, None, :, None]  # (F, 1, n, 1)
        grams = self.data.grams[:, at[:, :, None], at[:, None, :]].swapaxes(0, 1)
        grams = np.ascontiguousarray(grams) * real * real.swapaxes(2, 3)
        # Held-out by training rows, (F, M, p, n).
        cross = self.data.grams[:, self.held[:, :, None], at[:, None, :]].swapaxes(0, 1)
        lengths = self.data.grams[:, self.held, self.held].swapaxes(0, 1)  # (F, M, p)
        return GramDesign(
            grams,
            self.count,
            INTERCEPT_VAR,
            np.ascontiguousarray(cross) * real.swapaxes(2, 3),
            np.ascontiguousarray(lengths),
            self.absent(),
            self.held_absent(),
        )


def gather_data(
    problem: Problem,
    chosen: Sequence[Index],
    grams: Sequence[Array] | None,
) -> tuple[EnsembleData, list[IntArray]]:
    """Return the data that folds share, and the places of each fold's `chosen` candidates in it."""
    M = len(problem.views)
    always = [np.zeros(0, dtype=np.intp)] * M if problem.always is None else problem.always
    union = [np.unique(np.concatenate([index[m] for index in chosen])) for m in range(M)]
    edges = np.concatenate([[0], np.cumsum([len(columns) for columns in union])])
    places = [  # of the candidates of each fold in the union
        np.concatenate([edges[m] + np.searchsorted(union[m], index[m]) for m in range(M)]).astype(
            np.intp
        )
        for index in chosen
    ]
    starts = np.cumsum([0, *problem.widths[:-1]])
    absent = np.stack([view.absent for view in problem.views], axis=1).astype(float)
    flat = np.concatenate([columns + start for columns, start in zip(union, starts, strict=True)])
    data = EnsembleData(
        problem,
        gather(problem.views, union),
        np.repeat(np.arange(M), [len(columns) for columns in union]),
        problem.group_numbers(union),
        None if grams is None else np.stack(grams),
        absent if absent.any() else None,
        np.concatenate(
            [np.isin(columns, more) for columns, more in zip(union, always, strict=True)]
        ),
        None if problem.costs is None else problem.costs.take(flat),
    )
    return data, places


def folds_at_once(data: EnsembleData, n: int, L: int) -> int:
    """Return how many folds of n rows and L candidates memory and cache have room for at once."""
    C, M = data.problem.T.shape[1], 0 if data.grams is None else data.n_views
    side = n if data.grams is not None else min(n, L + 1)
    square = 8 * C * side * side  # bytes of one matrix per output
    per_fold = 4 * square + 8 * (M * n * n + (3 + C) * n * L)
    return max(1, min(BATCH_BYTES // per_fold, CACHE_BYTES // square))


def _pad(parts: Sequence[IntArray]) -> tuple[IntArray, Array]:
    """Return F arrays as one, (F, longest), padded with 0, and 1 where it is not padding."""
    longest = max(map(len, parts))
    out = np.zeros((len(parts), longest), dtype=np.intp)
    real = np.zeros((len(parts), longest))
    for at, part in enumerate(parts):
        out[at, : len(part)], real[at, : len(part)] = part, 1.0
    return out, real


CANDIDATES = 1000
"""Features that the spike-and-slab prior looks at, where features outnumber samples: the best by
marginal score, an order of magnitude more than a sample of some hundreds can tell apart."""


PER_VIEW = 100
"""At least so many of each view, so that a narrow view is looked at whole beside a wide one."""


@dataclass
class Problem:
    """The data of one fit: views, outcomes, weights and groups."""

    views: Sequence[PreparedView]
    T: Array  # (N, C); outputs: 0 and 1, or real for regression
    weight: Array  # (N,); how much each row counts
    task: Task
    groups: Sequence[IntArray] | None = None  # (D_m,)
    costs: EntryCosts | None = None  # of the columns of all views side by side
    always: Index | None = None  # columns of each view that every submodel has

    @property
    def n_samples(self) -> int:
        """Number of samples in the fit."""
        return self.views[0].shape[0]

    @property
    def logistic(self) -> bool:
        """Whether outputs are labels."""
        return self.task != "regression"

    @property
    def widths(self) -> list[int]:
        """Number of features of each view."""
        return [view.shape[1] for view in self.views]

    @cached_property
    def n_features(self) -> list[int]:
        """Number of features of each view, a category counted once."""
        if self.groups is None:
            return self.widths
        return [len(np.unique(group)) for group in self.groups]

    def total_cost(self) -> float:
        """Return what all features of all views cost together."""
        if self.costs is None:
            return 0.0
        owner = np.repeat(np.arange(len(self.widths)), self.widths)
        numbers = self.group_numbers([np.arange(D) for D in self.widths])
        payments = self.costs.payments(np.arange(len(owner)), owner, numbers)
        return float(np.cumsum(sum(payments))[-1])

    def group_numbers(self, index: Index) -> IntArray:
        """Return one number for each of some columns, those of all views side by side, (L,).

        Columns of one group share it.
        """
        if self.groups is None:
            return np.arange(sum(map(len, index)))
        starts = np.cumsum([0, *(group.max(initial=-1) + 1 for group in self.groups)])
        parts = [g[i] + start for g, i, start in zip(self.groups, index, starts, strict=False)]
        return np.concatenate(parts).astype(np.intp)


def best_features(scores: Sequence[Array], limit: int) -> Index:
    """Return the features of each view that are among the `limit` best of all views."""
    flat = np.concatenate(scores)
    best = np.zeros(flat.size, dtype=bool)
    best[np.argsort(-flat, kind="stable")[:limit]] = True
    edges = np.concatenate([[0], np.cumsum([len(s) for s in scores])])
    return [np.flatnonzero(best[edges[m] : edges[m + 1]]) for m in range(len(scores))]


def candidates(
    problem: Problem, fits: Sequence[IntArray]
) -> tuple[list[Index], list[Array] | None]:
    """Return the candidates of each set of training rows (`fits`) and the Gram matrix of each view.

    One pass over the views gives both. Candidates have the strongest association with the residuals
    of the base rate. They are all features, and there are no Gram matrices, where features are
    fewer than the samples; and all features, where they are fewer than `CANDIDATES`.
    """
    if sum(problem.widths) <= max(CANDIDATES, problem.n_samples):
        every = [[np.arange(D) for D in problem.widths] for _ in fits]
        if sum(problem.widths) < problem.n_samples:
            return every, None
        return every, [view.weighted_gram() for view in problem.views]
    residuals = []  # of each fit, (N, C), of unit length, 0 in rows that it does not have
    for rows in fits:
        left = residual(problem.T[rows].T, problem.weight[rows], logistic=problem.logistic).T
        full: Array = np.zeros(np.shape(problem.T))
        full[rows] = left / np.maximum(np.linalg.norm(left, axis=0), 1e-12)
        residuals.append(full)
    first = np.cumsum([0, *(part.shape[1] for part in residuals[:-1])])
    A = np.hstack(residuals)
    grams = [np.zeros((problem.n_samples, problem.n_samples)) for _ in problem.views]
    most = max(CANDIDATES, PER_VIEW)
    best = [
        strongest(view, A, first, most, gram)
        for view, gram in zip(problem.views, grams, strict=True)
    ]
    chosen = []
    for f in range(len(fits)):
        index = best_everywhere([scores[:, f] for _, scores in best], CANDIDATES, PER_VIEW)
        chosen.append([places[i, f] for i, (places, _) in zip(index, best, strict=True)])
    if problem.groups is not None:
        chosen = [with_their_groups(index, problem.groups) for index in chosen]
    if problem.always is not None:
        chosen = [
            [np.union1d(*columns) for columns in zip(index, problem.always, strict=True)]
            for index in chosen
        ]
    return chosen, grams


def strongest(
    view: PreparedView, A: Array, first: IntArray, count: int, gram: Array | None = None
) -> tuple[IntArray, Array]:
    """Return the features with the largest |x_d^T a| of every fit, and the values, (K, fits).

    In one pass, without holding the projections of all features; the Gram matrix of the view is
    added to `gram`. Features are in rising order.

    Shapes: A (N, P) of vectors a, first (fits,) the column of A where each fit begins, gram (N, N).
    """
    places = np.empty((0, len(first)), dtype=np.intp)
    scores = np.empty((0, len(first)))
    for columns, projections in view.project_blocks(A, gram):
        # The largest over the vectors of each fit.
        block = np.maximum.reduceat(np.abs(projections), first, axis=1).astype(float)
        at = np.arange(view.shape[1])[columns]
        places = np.concatenate([places, np.tile(at[:, None], len(first))])
        scores = np.concatenate([scores, block])
        if len(scores) > 4 * count:
            places, scores = _largest(places, scores, count)
    if len(scores) > count:
        places, scores = _largest(places, scores, count)
    order = np.argsort(places, axis=0)
    return np.take_along_axis(places, order, axis=0), np.take_along_axis(scores, order, axis=0)


def _largest(places: IntArray, scores: Array, count: int) -> tuple[IntArray, Array]:
    """Return places and values of the `count` largest scores of every column, in no order."""
    at = np.argpartition(-scores, count - 1, axis=0)[:count]
    return np.take_along_axis(places, at, axis=0), np.take_along_axis(scores, at, axis=0)


def best_everywhere(scores: Sequence[Array], count: int, per_view: int) -> Index:
    """Return the best features of all views together, and the best of each view."""
    overall = best_features(scores, count)
    by_view = [np.argsort(-s, kind="stable")[:per_view] for s in scores]
    return [np.union1d(a, b) for a, b in zip(overall, by_view, strict=True)]


def with_their_groups(index: Index, groups: Sequence[IntArray]) -> Index:
    """Return the features of each view, and all others of their groups."""
    return [
        np.flatnonzero(np.isin(group, group[columns]))
        for columns, group in zip(index, groups, strict=True)
    ]
