"""The submodels of one fit as predictors: the base rate, the sizes of the path, whole views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from baldur.inference.cost_path import cost_along, last_before_payments
from baldur.inference.final_predictor import (
    FittedEnsemble,
    TrainingRows,
    submodel_predictor,
    whole_view_predictor,
)
from baldur.inference.gaussians import WeightGaussian
from baldur.inference.predictor import Predictor
from baldur.inference.screening import Problem
from baldur.inference.selection import Scores
from baldur.inference.shared_factors import share_factors
from baldur.inference.submodel_path import SIZES, SubmodelPath
from baldur.types import Index, Mask

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


def column_masks(submodel: Submodel) -> list[Mask]:
    """Return which columns of each view a submodel has, (D_m,) bool arrays."""
    masks = [np.zeros(D, dtype=bool) for D in submodel.predictor.widths]
    for mask, columns in zip(masks, submodel.columns, strict=True):
        mask[columns] = True
    return masks


def path_sizes(rows: TrainingRows, path: SubmodelPath, views: Mask) -> PathSizes:
    """Return the sizes of the submodel path of some views.

    These are `SIZES` (of those that a group makes one, the largest), every number of features up to
    `EVERY_SIZE`, the last one before something is paid for, and all features where the path has
    them all. Features at the beginning of the path that every submodel has do not count.

    Shapes: views (M,).
    """
    basis = path.basis
    width, n_features = count_columns(rows.problem, views), count_features(rows.problem, views)
    longest = int(basis.length[0])
    necessary = rows.everyone.always(rows.data)
    always = 0 if necessary is None else int(necessary[0, basis.order[0, :longest]].sum())
    grid = [always + size for size in ((0, *SIZES) if always else SIZES)]
    grid = [size for size in grid if size <= longest and size < width]
    by_columns = {basis.whole_groups(0, size): size for size in grid}
    automatic = set(by_columns)
    ends = basis.ends[0]
    free = int(np.searchsorted(ends, always, side="right"))  # features that do not count
    for size in [*ends[free : free + EVERY_SIZE], *(ends[-1:] if len(ends) == n_features else [])]:
        by_columns.setdefault(int(size), int(size))
    paid = cost_along(rows.data, rows.everyone, path, 0)
    if paid is not None:
        for size in last_before_payments(paid):
            by_columns.setdefault(size, size)
    columns = sorted(by_columns)
    counts = 1 + np.searchsorted(ends, columns) - free
    return PathSizes(
        [by_columns[size] for size in columns],
        columns,
        counts.tolist(),
        [place for place, size in enumerate(columns) if size in automatic],
        [place for place, size in enumerate(columns) if size < width or size in automatic],
        n_features - free,
    )


def largest_within(counts: Sequence[int], n_features: int) -> int:
    """Return the index of the largest of some ascending counts that is at most `n_features`."""
    return int(np.searchsorted(counts, n_features, side="right")) - 1


def base_rate_predictor(fit: FittedEnsemble) -> Predictor:
    """Return the predictor without features, which predicts the base rate for every row."""
    base = fit.full.base_logit[0]
    C, M = len(base), len(fit.problem.widths)
    nothing = [np.zeros(0, dtype=np.intp) for _ in range(M)]
    block = WeightGaussian(nothing, base[None, :, None].copy(), np.zeros((1, C, 1, 1)))
    none = np.zeros((M, C))
    noise = fit.full.base_variance[0].copy()
    return Predictor([block], np.ones((1, C)), fit.problem.widths, noise, none, none, none)


def make_submodels(
    fit: FittedEnsemble,
    path: SubmodelPath,
    sizes: PathSizes,
    steps: Scores,
    n_factors: int,
    first_row: int,
) -> list[Submodel]:
    """Return the base rate and the submodel of every size, from small to large."""
    paid = cost_along(fit.data, fit.everyone, path, 0)
    base = base_rate_predictor(fit)
    made = [Submodel(0, base, base.blocks[0].entering(base.widths), 0)]
    for place, (columns, count) in enumerate(zip(sizes.columns, sizes.n_features, strict=True)):
        predictor, index = submodel_predictor(fit, path, columns, steps[place : place + 1])
        predictor = share_factors(predictor, fit.problem.views, n_factors)
        cost = 0.0 if paid is None else float(paid[columns - 1])
        made.append(Submodel(count, predictor, index, first_row + place, cost))
    return made


def whole_views_submodel(
    fit: FittedEnsemble, views: Mask, whole: Scores, n_factors: int, row: int, n_features: int
) -> Submodel:
    """Return the submodel with all features of some views (M,); see `make_submodels`.

    `n_features` is how many of them count.
    """
    problem = fit.problem
    predictor = whole_view_predictor(fit, views[None], whole)
    predictor = share_factors(predictor, problem.views, n_factors)
    columns = [np.arange(D if use else 0) for D, use in zip(problem.widths, views, strict=True)]
    return Submodel(n_features, predictor, columns, row, problem.total_cost())


def count_columns(problem: Problem, views: Mask) -> int:
    """Return the number of columns of some views (M,)."""
    return sum(D for D, use in zip(problem.widths, views, strict=True) if use)


def count_features(problem: Problem, views: Mask) -> int:
    """Return the number of features of some views (M,), a category counted once."""
    return sum(n for n, use in zip(problem.n_features, views, strict=True) if use)
