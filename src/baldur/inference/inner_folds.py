"""Inner folds: repeated, balanced, stratified by label, whole groups held out together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GroupKFold, KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.exceptions import InputError
from baldur.inference.design import ColumnDesign, GramDesign
from baldur.inference.entry_costs import EntryCosts
from baldur.inference.gaussians import gather
from baldur.inference.predictive import Task
from baldur.inference.screening import Problem
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood
from baldur.model.posterior import INTERCEPT_VAR, with_ones

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

    Shapes: labels (n_samples,), groups (n_samples,).
    """
    n = len(labels)
    stratified = task in ("binary", "multiclass")
    outputs = len(np.unique(labels)) if task == "multiclass" else int(np.prod(np.shape(labels)[1:]))
    repeats = CHEAP**2 // (n**2 * outputs)
    n_folds = min(N_FOLDS if repeats else FEWER_FOLDS, n)
    if stratified:
        n_folds = max(2, min(n_folds, int(np.unique(labels, return_counts=True)[1].min())))
    if groups is not None:
        groups = np.asarray(groups)
        if groups.shape != (n,):
            raise InputError(f"groups must have {n} entries, but has shape {groups.shape}.")
        n_folds = min(n_folds, len(np.unique(groups)))
        if n_folds < 2:
            raise InputError("groups: inner folds need at least two groups, but there is one.")
    random = check_random_state(random_state)
    repeats = n_repeats(n, outputs)
    if groups is None and n_folds in (2, 3, 5):
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
    found: list[IntArray] = []
    while len(found) < repeats:
        v = np.zeros((n, digits), dtype=np.intp)
        for stratum in np.unique(strata):
            rows = random.permutation(np.flatnonzero(strata == stratum))
            places = np.arange(len(rows))
            v[rows] = (places[:, None] // p ** np.arange(digits)) % p
            v[rows] += random.randint(p, size=digits)  # which folds get one row more
        for r in range(min(p * p, repeats - len(found))):
            b, t = r % p, r // p
            a = np.array([1, b, b * b + t, *(b**k + k * t for k in range(3, digits))])
            found.append((v @ a) % p)
    return found


BATCH_BYTES, CACHE_BYTES = 1 << 27, 1 << 21
"""Working memory of one batch of folds, and size of one of its arrays of n x n matrices. Arrays
that stay in the processor's cache are a third faster at 200 samples than those of all folds at
once, and the time spent on calls is negligible from about ten folds on."""


Fold = tuple[IntArray, IntArray]
"""Training rows and held-out rows."""


@dataclass(frozen=True)
class EnsembleData:
    """Data of all rows that every fold uses: outcomes, candidates and Gram matrices."""

    columns: Array  # (N, U); features that are a candidate in some fold
    owner: IntArray  # (U,); their views
    groups: IntArray | None  # (U,); columns with the same number enter a submodel together, or None
    grams: Array | None  # (M, N, N)
    n_features: Array  # (M,); features per view, candidates or not
    absent: Array | None  # (N, M)
    T: Array  # T, weight: (C, N); outputs and how much each row counts
    weight: Array
    logistic: bool  # whether outputs are labels
    always: Mask | None = None  # (U,); columns that every submodel has, or None
    costs: EntryCosts | None = None  # of the U columns, or None

    @property
    def n_views(self) -> int:
        """Return the number of views M of the data."""
        return len(self.n_features)


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

    def always(self) -> Mask | None:
        """Return which candidates every submodel has, (F, L), or None."""
        return (
            None
            if self.data.always is None
            else self.data.always[self.candidates] & (self.used > 0)
        )

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
        kind = LogisticLikelihood if self.data.logistic else GaussianLikelihood
        T, weight = (part[:, self.rows].swapaxes(0, 1) for part in (self.data.T, self.data.weight))
        return kind(np.ascontiguousarray(T), weight * self.counted[:, None])

    def candidate_cells(self, rows: IntArray, counted: Array) -> Array:
        """Return cells of the candidates, (F, rows, L), zero where either is padding."""
        cells = self.data.columns[rows[:, :, None], self.candidates[:, None, :]]
        cells *= self.used[:, None, :]
        cells *= counted[:, :, None]
        return np.asarray(cells)

    def candidate_design(self, held: bool = True) -> ColumnDesign:
        """Return the candidates as columns."""
        X1 = with_ones(self.candidate_cells(self.rows, self.counted))
        X1[:, :, 0] = self.counted
        new = with_ones(self.candidate_cells(self.held, self.held_counted)) if held else None
        return ColumnDesign(X1, self.owner(), self.count, self.data.n_views, INTERCEPT_VAR, new)

    def gram_design(self) -> GramDesign:
        """Return all features through the Gram matrices of their views."""
        assert self.data.grams is not None
        at, real = self.rows, self.counted[:, None, :, None]
        grams = self.data.grams[:, at[:, :, None], at[:, None, :]].swapaxes(0, 1)
        grams = np.ascontiguousarray(grams) * real * real.swapaxes(2, 3)
        cross = self.data.grams[:, self.held[:, :, None], at[:, None, :]].swapaxes(0, 1)
        own = self.data.grams[:, self.held, self.held].swapaxes(0, 1)
        return GramDesign(
            grams,
            self.count,
            INTERCEPT_VAR,
            np.ascontiguousarray(cross) * real.swapaxes(2, 3),
            np.ascontiguousarray(own),
        )


def gather_data(
    problem: Problem,
    chosen: Sequence[Index],
    grams: Sequence[Array] | None,
    always: Index | None = None,
) -> tuple[EnsembleData, list[IntArray]]:
    """Return the data that all folds share, and the indices of each fold's candidates in it."""
    M = len(problem.views)
    union = [np.unique(np.concatenate([index[m] for index in chosen])) for m in range(M)]
    edges = np.concatenate([[0], np.cumsum([len(columns) for columns in union])])
    places = [
        np.concatenate([edges[m] + np.searchsorted(union[m], index[m]) for m in range(M)]).astype(
            np.intp
        )
        for index in chosen
    ]
    starts = np.cumsum([0, *problem.widths[:-1]])
    absent = np.stack([view.absent for view in problem.views], axis=1).astype(float)
    weight = np.repeat(problem.weight[None], problem.T.shape[1], axis=0)
    data = EnsembleData(
        gather(problem.views, union),
        np.repeat(np.arange(M), [len(columns) for columns in union]),
        problem.group_numbers(union),
        None if grams is None else np.stack(grams),
        np.array(problem.widths, dtype=float),
        absent if absent.any() else None,
        np.ascontiguousarray(problem.T.T),
        weight,
        problem.task != "regression",
        None
        if always is None
        else np.concatenate([np.isin(own, more) for own, more in zip(union, always, strict=True)]),
        None
        if problem.costs is None
        else problem.costs.take(
            np.concatenate([own + start for own, start in zip(union, starts, strict=True)])
        ),
    )
    return data, places


def folds_at_once(data: EnsembleData, n: int, L: int) -> int:
    """Return how many folds of n rows and L candidates are fitted in one batch."""
    C, M = len(data.T), 0 if data.grams is None else data.n_views
    side = n if data.grams is not None else min(n, L + 1)
    square = 8 * C * side * side
    per_fold = 4 * square + 8 * (M * n * n + (3 + C) * n * L)
    return max(1, min(BATCH_BYTES // per_fold, CACHE_BYTES // square))


def _pad(parts: Sequence[IntArray]) -> tuple[IntArray, Array]:
    longest = max(map(len, parts))
    out = np.zeros((len(parts), longest), dtype=np.intp)
    real = np.zeros((len(parts), longest))
    for at, part in enumerate(parts):
        out[at, : len(part)], real[at, : len(part)] = part, 1.0
    return out, real
