"""FoldFits: the ensemble on all rows and in every inner fold, and scores on held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from baldur.core.types import Array, Index, IntArray, Mask
from baldur.inference.ensemble_members import Ensemble, fit_ensemble
from baldur.inference.final_predictor import FittedEnsemble, TrainingRows
from baldur.inference.inner_folds import EnsembleData, FoldBatch, folds_at_once
from baldur.inference.path_search import first_views, view_moments
from baldur.inference.predictive import Task
from baldur.inference.screening import Problem
from baldur.inference.selection import HeldOutScorer, Scores, mean_losses, without_padding
from baldur.inference.stacking import HeldOut, Stacking, fit_stacking
from baldur.inference.submodel_path import SIZES, SubmodelPath, make_path, path_moments
from baldur.inference.submodels import PathSizes, path_sizes

Fold = tuple[IntArray, IntArray]
Watcher = Callable[[dict[str, Any]], None]

VIEW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of views at which the ensemble is scored, besides all of them."""


class FoldFits:
    """The ensemble on all rows and in batches of inner folds, stacked and scored.

    `fit_ensembles`, `stack` and `score_views` are called once, in this order; each sets what the
    next ones need.

    Shapes: folds (training rows, held-out rows), weight (N,), held_whole (mean, var).
    """

    def __init__(
        self,
        problem: Problem,
        data: EnsembleData,
        index: Index,
        places: list[IntArray],
        folds: Sequence[Fold],
        n_jobs: int | None = None,
        watch: Watcher | None = None,
    ) -> None:
        self.problem, self.data, self.index = problem, data, index
        self.n_jobs, self.watch = n_jobs, watch
        self.task: Task = problem.task
        self.T = problem.T
        self.weight = problem.weight / problem.weight.mean()
        M = len(problem.views)
        self.view_counts = [n for n in VIEW_COUNTS if n < M] + [M]
        nobody = np.zeros(0, dtype=np.intp)
        self.everyone = FoldBatch.of([(np.arange(problem.n_samples), nobody)], places[-1:])
        step = folds_at_once(data, max(len(train) for train, _ in folds), len(places[0]))
        self.starts = list(range(0, len(folds), step))
        self.batches = [
            FoldBatch.of(folds[at : at + step], places[:-1][at : at + step]) for at in self.starts
        ]
        self.held_rows = [held for _, held in folds]
        self.row = np.concatenate([batch.held[batch.held_counted > 0] for batch in self.batches])

    @property
    def rows(self) -> TrainingRows:
        """All training rows, without the ensemble."""
        return TrainingRows(self.problem, self.data, self.index, self.everyone)

    @property
    def fitted(self) -> FittedEnsemble:
        """The stacked ensemble on all rows."""
        return FittedEnsemble(
            self.problem, self.data, self.index, self.everyone, self.full, self.stacking
        )

    def stacking_of(self, b: int) -> Stacking:
        """Return the stacking weights of the folds of a batch, each without its held-out rows."""
        start = self.starts[b]
        return self.without.take(slice(start, start + len(self.batches[b])))

    def _each(self, job: Callable[[int], Any]) -> list[Any]:
        """Return the results of a function for every batch of folds, in order."""
        jobs = (delayed(job)(b) for b in range(len(self.batches)))
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs))

    def _tell(self, event: str, done: float) -> None:
        if self.watch is not None:
            self.watch({"event": event, "done": done})

    # -- the ensemble and its weights ------------------------------------------------------

    def fit_ensembles(self, members: Sequence[str], max_iter: int) -> None:
        """Fit the members on all rows and in every fold, with at most so many iterations each."""
        settings: dict[str, Any] = {"members": members, "max_iter": max_iter}
        self.full = fit_ensemble(self.data, self.everyone, **settings)
        # Parts of the work, measured from 100 x 220 to 400 x 20,020: all samples take 4 to 16 % of
        # the time, inner folds 50 to 70 %, submodels of fewer views or features 10 to 18 % each.
        self._tell("the ensemble is fitted on all samples", 0.08)
        fitted, total = count(1), len(self.batches)

        def job(b: int) -> Ensemble:
            found = fit_ensemble(self.data, self.batches[b], **settings)
            k = next(fitted)
            self._tell(f"{k} of {total} batches of inner folds are fitted", 0.08 + 0.62 * k / total)
            return found

        self.ensembles = self._each(job)

    def stack(self) -> None:
        """Learn the stacking weights, with and without the held-out rows of each fold."""
        moments = []
        for batch, ensemble in zip(self.batches, self.ensembles, strict=True):
            real = batch.held_counted > 0
            mean, var = ensemble.member_moments()
            moments.append((mean[real], var[real]))
        mean, var = (np.concatenate(part) for part in zip(*moments, strict=True))
        repeats = np.bincount(self.row, minlength=len(self.T))
        weight = self.weight[self.row] / repeats[self.row]
        base, _ = self._base_moments()
        held = HeldOut(mean, var, base, self.T[self.row], self.row, weight)
        self.stacking, self.without = fit_stacking(held, self.held_rows, self.task)

    def _base_moments(self) -> tuple[Array, Array]:
        """Return mean and variance of the base rate for all held-out rows, each (R, C)."""
        counts = [batch.held_counted.sum(axis=1).astype(int) for batch in self.batches]
        pairs = list(zip(self.ensembles, counts, strict=True))
        mean = np.concatenate([np.repeat(e.base_logit, k, axis=0) for e, k in pairs])
        var = np.concatenate([np.repeat(e.base_variance, k, axis=0) for e, k in pairs])
        return mean, var

    # -- scores on held-out rows -----------------------------------------------------------

    def score_base_rate(self) -> Scores:
        """Return the scores of the base rate of every fold."""
        mean, var = self._base_moments()
        losses = mean_losses(mean, var + 1e-12, self.row, self.T, self.task)
        nothing = np.zeros((1, self.T.shape[1]))
        # One value for all rows orders none of them and explains no variance.
        known = np.array([0.0 if self.task == "regression" else 0.5])
        return Scores(nothing + 1.0, nothing, losses[None], known, np.zeros(1))

    def score_views(self) -> Scores:
        """Return the scores of the ensemble on its first views, for every number of views."""
        found = self._each(
            lambda b: view_moments(
                self.data, self.ensembles[b], self.stacking_of(b), self.view_counts
            )
        )
        self.held_whole = [(mean[-1], var[-1]) for mean, var in found]
        whole_mean, whole_var = (
            np.concatenate(
                [without_padding(b, part) for b, part in zip(self.batches, parts, strict=True)]
            )
            for parts in zip(*self.held_whole, strict=True)
        )
        slope = float(self.stacking.slope[0])
        self.scorer = HeldOutScorer(
            self.batches,
            whole_mean,
            whole_var,
            slope,
            self.row,
            self.T,
            self.weight,
            self.task,
        )
        scores = self.scorer.score(found)
        self._tell("submodels with fewer views are scored", 0.85)
        return scores

    def first_views(self, n_views: int) -> Mask:
        """Return which views the first ones on all rows are, (M,)."""
        return first_views(self.full.view_order(), n_views)[0]

    def score_path(
        self, n_views: int, whole: Scores
    ) -> tuple[SubmodelPath, list[SubmodelPath], PathSizes, Scores]:
        """Return the submodel path of the first views, its sizes, and their scores.

        The path on all rows comes first, then those of the batches of folds. Scores of all features
        of these views, which are `whole`, follow those of the sizes.
        """
        n_always = 0 if self.data.always is None else int(self.data.always.sum())
        path = self._full_path(n_views, max(SIZES) + n_always)
        sizes = path_sizes(self.rows, path, self.first_views(n_views))
        folds = self._fold_paths(n_views, max(sizes.scored, default=1))
        if not sizes.scored:
            return path, folds, sizes, whole

        def job(b: int) -> tuple[Array, Array]:
            return path_moments(self.data, self.batches[b], folds[b], sizes.scored)

        scores = self.scorer.score(self._each(job)).followed_by(whole)
        self._tell("submodels with fewer features are scored", 0.99)
        return path, folds, sizes, scores

    def paths_of_size(self, size: int, most: IntArray) -> tuple[SubmodelPath, list[SubmodelPath]]:
        """Return paths of so many columns over all views, on all rows and in every batch of folds.

        `most` (M,) is the largest number of features of each view.
        """
        M = len(self.problem.views)
        return self._full_path(M, size, most), self._fold_paths(M, size, most)

    def _full_path(self, n_views: int, size: int, most: IntArray | None = None) -> SubmodelPath:
        """Return the submodel path on all rows."""
        return make_path(self.data, self.full, self.stacking, n_views, size, self.task, most)

    def _fold_paths(
        self, n_views: int, size: int, most: IntArray | None = None
    ) -> list[SubmodelPath]:
        """Return the submodel paths of all inner folds, one object per batch."""

        def job(b: int) -> SubmodelPath:
            ensemble, stacking = self.ensembles[b], self.stacking_of(b)
            return make_path(self.data, ensemble, stacking, n_views, size, self.task, most)

        return self._each(job)
