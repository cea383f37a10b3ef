"""The default fit: an ensemble, a path of submodels, and a selection supported by held-out rows.

1. *Ensemble.* The same Gaussian posterior under several priors
   (`baldur.inference.ensemble_members`). Repeated inner folds give the stacking weights and the
   calibration slope (`baldur.inference.stacking`); a weak signal is shrunk towards the base rate.
2. *Is there a signal?* Held-out losses of the ensemble and of the base rate, row by row, with
   stacking weights that the judging rows had no part in. With or without evidence of a signal the
   ensemble predicts: its slope has shrunk what it could not show. The estimators say which it is.
3. *Submodel path.* The ensemble is projected, not refitted: first onto fewer views, then onto fewer
   features of the selected views (`baldur.inference.submodel_path`).
4. *Selection.* Of the submodels shown to lose little, the smallest that is about as good as the
   best (`baldur.inference.selection`). If there is none, all features of the selected views are
   used.
5. *Latent factors.* With several outputs, the fewest factors that predict as well
   (`baldur.inference.shared_factors`).

The features that are selected are exactly those that predict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from baldur.inference.cost_path import cost_along, cost_records
from baldur.inference.credible_sets import CredibleSet, credible_sets
from baldur.inference.ensemble_members import MEMBERS, Ensemble, fit_ensemble
from baldur.inference.fewer_views import first_views, view_moments
from baldur.inference.final_predictor import FittedEnsemble, TrainingRows
from baldur.inference.fit_result import FitResult
from baldur.inference.fold_batch import EnsembleData, FoldBatch, folds_at_once, gather_data
from baldur.inference.held_out_scorer import HeldOutScorer, without_padding
from baldur.inference.path_table import entering_columns, entering_views, path_records
from baldur.inference.per_view import STORED, StoredPath, first_columns
from baldur.inference.predictive import Task
from baldur.inference.screening import Problem, candidates
from baldur.inference.selection import (
    Scores,
    mean_losses,
    paired_gap,
    select_smallest,
)
from baldur.inference.shared_factors import select_factors
from baldur.inference.stacking import HeldOut, Stacking, fit_stacking
from baldur.inference.submodel_path import (
    SIZES,
    SubmodelPath,
    make_path,
    path_moments,
)
from baldur.inference.submodels import (
    PathSizes,
    count_features,
    largest_within,
    make_submodels,
    path_sizes,
    whole_views_submodel,
)
from baldur.inference.threads import few_blas_threads
from baldur.types import Array, Index, IntArray, Mask
from baldur.views.matrices.read_counter import passes

Fold = tuple[IntArray, IntArray]
Watcher = Callable[[dict[str, Any]], None]

VIEW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of views at which the ensemble is scored, besides all of them."""


def fit_default(
    problem: Problem,
    folds: Sequence[Fold],
    *,
    members: Sequence[str] = MEMBERS,
    margin: float = 0.1,
    n_features: int | IntArray | None = None,
    always: Index | None = None,
    n_factors: int | None = None,
    n_jobs: int | None = None,
    max_iter: int = 200,
    watch: Watcher | None = None,
) -> FitResult:
    """Fit the ensemble, score its submodels on held-out rows, and select one of them.

    Parameters
    ----------
    problem : Problem
        With costs, features enter the path by gain per cost, and no view is left out before.
    folds : list of (training rows, held-out rows), of one or several repeats
    members : names out of `MEMBERS`
    margin : float
        Part of the ensemble's gain over the base rate that a submodel may lose.
    n_features : int or (M,) int array, optional
        Select the largest submodel with at most so many features, or with at most so many of each
        view, a category counted once. None selects the number by `margin`.
    always : Index, optional
        Columns of each view that every submodel has, whole categories. They do not count in
        `n_features`, and no view is left out before features are selected.
    n_factors : int, optional
        Number of latent factors behind several outputs; None selects it on held-out rows.
    n_jobs : int, optional
        Batches of folds fitted at the same time.
    max_iter : int
        Most iterations of each member.
    watch : callable, optional
        Called with a record after each step.
    """
    with few_blas_threads(problem.n_samples):
        everyone = np.arange(problem.n_samples)
        chosen, grams = candidates(problem, [*(train for train, _ in folds), everyone])
        if always is not None:
            chosen = [
                [np.union1d(own, more) for own, more in zip(index, always, strict=True)]
                for index in chosen
            ]
        data, places = gather_data(problem, chosen, grams, always)
        fit = _Fit(problem, data, chosen[-1], places, folds, members, max_iter, n_jobs, watch)
        return fit.run(margin, n_factors, n_features)


class _Fit:
    """The steps of one fit; see the top of this file."""

    def __init__(
        self,
        problem: Problem,
        data: EnsembleData,
        index: Index,
        places: list[IntArray],
        folds: Sequence[Fold],
        members: Sequence[str],
        max_iter: int,
        n_jobs: int | None,
        watch: Watcher | None,
    ) -> None:
        self.problem, self.data, self.index = problem, data, index
        self.members, self.max_iter = members, max_iter
        self.n_jobs, self.watch = n_jobs, watch
        self.task: Task = problem.task
        self.T = problem.T
        self.weight = problem.weight / problem.weight.mean()
        nobody = np.zeros(0, dtype=np.intp)
        self.everyone = FoldBatch.of([(np.arange(problem.n_samples), nobody)], places[-1:])
        step = folds_at_once(data, max(len(train) for train, _ in folds), len(places[0]))
        self.starts = list(range(0, len(folds), step))
        self.batches = [
            FoldBatch.of(folds[at : at + step], places[:-1][at : at + step]) for at in self.starts
        ]
        self.held_rows = [held for _, held in folds]

    def run(
        self,
        margin: float,
        n_factors: int | None = None,
        n_features: int | IntArray | None = None,
    ) -> FitResult:
        """Fit, stack, test for a signal, select views, then features."""
        if isinstance(n_features, np.ndarray) and not n_features.any():
            n_features = 0
        self._fit_ensembles()
        self._stack()
        base, by_views, counts = self._score_views()
        ensemble_loss = by_views.losses[-1]
        signal = paired_gap(base.losses[0], ensemble_loss, self.weight)
        allowed = margin * max(signal.mean, 0.0)
        at_view = select_smallest(by_views.losses, ensemble_loss, allowed, self.weight)[0]
        if self.data.always is not None or self.data.costs is not None:
            at_view = len(counts) - 1
        n_views, whole = counts[at_view], by_views[at_view : at_view + 1]
        views = first_views(self.full.view_order(), n_views)
        path, sizes, steps = self._score_path(n_views, views[0], whole)
        folds = self.fold_paths
        C = self.T.shape[1]
        factor_path: list[dict[str, Any]] = []
        if n_factors is None and C > 1:
            stackings = [self._stacking_of(b) for b in range(len(self.batches))]
            n_factors, factor_path = select_factors(
                self.scorer, self.ensembles, stackings, self.held_whole
            )
        n_factors = C if n_factors is None else min(n_factors, C)
        first_row = 1 + len(counts)
        submodels = make_submodels(
            self.fitted,
            path,
            sizes,
            steps,
            n_factors,
            first_row,
            cost_along(self.data, self.everyone, path, 0),
        )
        last = len(submodels)
        # Where the path has all features, its last submodel has them too.
        total = count_features(self.problem, views[0]) - self._n_always(path)[1]
        complete = submodels[-1].n_features == total
        shown = [*sizes.shown, len(sizes.columns)]
        last_row = first_row + len(sizes.shown)
        if isinstance(n_features, np.ndarray):
            at = 0  # replaced below by a submodel that is not on the path
        elif n_features is None:
            places = [*sizes.automatic, len(sizes.columns)]
            losses = steps.losses[places]
            at = 1 + places[select_smallest(losses, ensemble_loss, allowed, self.weight)[0]]
        else:
            features = [one.n_features for one in submodels]
            at = largest_within(features if complete else [*features, total], n_features)
        if at == last or (self.data.grams is None and not complete):
            all_features = whole_views_submodel(
                self.fitted, views, whole, n_factors, last_row, total
            )
            all_features = replace(all_features, cost=self.problem.total_cost())
            # Training rows are stored only where the selected submodel needs them.
            kept = at == last or not all_features.predictor.holds_training_rows
            if kept and not complete:
                submodels.append(all_features)
        chosen = submodels[at] if at < last else all_features
        sets: list[CredibleSet] = []
        if 0 < at < last:
            first = path.basis.order[0, : sizes.columns[at - 1]]
            sets = credible_sets(self.data, self.full, first, self.index)
        order = self.full.view_order()
        by_count = [self._width(first_views(order, count)[0]) for count in counts]
        add = partial(
            path_records,
            ensemble=ensemble_loss,
            weight=self.weight,
            allowed=allowed,
            task=self.task,
        )
        table = add("nothing", [0], [0], base, [[]])
        table += add("views", counts, by_count, by_views, entering_views(order[0], counts))
        by_size = [sizes.columns[place] for place in sizes.shown]
        enters = [*entering_columns(path.basis.order[0], by_size, self.index), None]
        by_size.append(self._width(views[0]))
        table += add("features", [n_views] * len(by_size), by_size, steps[shown], enters)
        stored = self._stored_path(path, folds, views[0], n_factors, ensemble_loss, allowed)
        if isinstance(n_features, np.ndarray):
            asked = stored
            if len(stored.missing(n_features)):
                asked = self._path_per_view(n_features, n_factors, ensemble_loss, allowed)
            chosen, record = asked.submodel(n_features, len(table))
            table.append(record)
            first = asked.first_of_views(n_features)
            sets = credible_sets(self.data, self.full, first, self.index) if len(first) else []
        for row, record in enumerate(table):
            record["selected"] = row == chosen.row
        by_cost = cost_records(self.fitted, path, folds, sizes.columns, self.scorer, add)
        if by_cost:
            by_cost.insert(0, {"cost": 0.0, "orders": [], **table[0]})
        inclusion, share = self.fitted.inclusion()
        weights = self.stacking.member_weights[0].tolist()
        return FitResult(
            chosen=chosen,
            submodels=submodels,
            n_features=total,
            inclusion=inclusion,
            share=share,
            stacking=dict(zip(self.full.names, weights, strict=True)),
            signal=signal,
            path=table,
            stored_path=stored,
            cost_path=by_cost,
            factor_path=factor_path,
            credible_sets=sets,
            history=[
                {"event": name, "passes": passes(self.problem.views), **record}
                for name, member in self.full.members.items()
                for record in member.history
            ],
            converged=all(bool(member.converged.all()) for member in self.full.members.values()),
            solver="feature" if self.data.grams is None else "sample",
        )

    @property
    def fitted(self) -> FittedEnsemble:
        """The stacked ensemble on all rows."""
        return FittedEnsemble(
            self.problem, self.data, self.index, self.everyone, self.full, self.stacking
        )

    # -- the ensemble and its weights ------------------------------------------------------

    def _each(self, job: Callable[[int], Any]) -> list[Any]:
        """Return the results of a function for every batch of folds, in order."""
        jobs = (delayed(job)(b) for b in range(len(self.batches)))
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs))

    def _tell(self, event: str, done: float) -> None:
        if self.watch is not None:
            self.watch({"event": event, "done": done})

    def _fit_ensembles(self) -> None:
        settings: dict[str, Any] = {"members": self.members, "max_iter": self.max_iter}
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

    def _stack(self) -> None:
        """Learn the stacking weights, with and without the held-out rows of each fold."""
        held = [batch.held[batch.held_counted > 0] for batch in self.batches]
        self.row = np.concatenate(held)
        repeats = np.bincount(self.row, minlength=len(self.T))
        moments = []
        for batch, ensemble in zip(self.batches, self.ensembles, strict=True):
            real = batch.held_counted > 0
            mean, var = ensemble.member_moments()
            moments.append((mean[real], var[real]))
        mean, var = (np.concatenate(part) for part in zip(*moments, strict=True))
        counts = [batch.held_counted.sum(axis=1).astype(int) for batch in self.batches]
        pairs = list(zip(self.ensembles, counts, strict=True))
        self.base_mean = np.concatenate([np.repeat(e.base_logit, k, axis=0) for e, k in pairs])
        self.base_var = np.concatenate([np.repeat(e.base_variance, k, axis=0) for e, k in pairs])
        weight = self.weight[self.row] / repeats[self.row]
        every = HeldOut(mean, var, self.base_mean, self.T[self.row], self.row, weight)
        self.stacking, self.without = fit_stacking(every, self.held_rows, self.task)

    def _stacking_of(self, b: int) -> Stacking:
        start = self.starts[b]
        return self.without.take(slice(start, start + len(self.batches[b])))

    # -- held-out losses -------------------------------------------------------------------

    def _score_views(self) -> tuple[Scores, Scores, list[int]]:
        """Return scores of the base rate and of fewer views, and the numbers of views."""
        M = len(self.problem.views)
        counts = [count for count in VIEW_COUNTS if count < M] + [M]
        found = self._each(
            lambda b: view_moments(self.data, self.ensembles[b], self._stacking_of(b), counts)
        )
        self.held_whole = [(mean[-1], var[-1]) for mean, var in found]
        whole_mean, whole_var = (
            np.concatenate(
                [without_padding(b, part[-1]) for b, part in zip(self.batches, parts, strict=True)]
            )
            for parts in zip(*found, strict=True)
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
        base = mean_losses(self.base_mean, self.base_var + 1e-12, self.row, self.T, self.task)
        nothing = np.zeros((1, self.T.shape[1]))
        known = np.array([0.0 if self.task == "regression" else 0.5])
        scores = self.scorer.score(found)
        self._tell("submodels with fewer views are scored", 0.85)
        # One value for all rows orders none of them and explains no variance.
        return Scores(nothing + 1.0, nothing, base[None], known, np.zeros(1)), scores, counts

    def _score_path(
        self, n_views: int, views: Mask, whole: Scores
    ) -> tuple[SubmodelPath, PathSizes, Scores]:
        """Return the path on all rows, its sizes, and scores of these and of the whole views."""
        size = max(SIZES) + (0 if self.data.always is None else int(self.data.always.sum()))
        path = make_path(self.data, self.full, self.stacking, n_views, size, self.task)
        total = count_features(self.problem, views)
        paid = cost_along(self.data, self.everyone, path, 0)
        sizes = path_sizes(path.basis, self._width(views), total, self._n_always(path)[0], paid)
        self.fold_paths = self._fold_paths(n_views, max(sizes.scored, default=1))
        if not sizes.scored:
            return path, sizes, whole

        def job(b: int) -> tuple[Array, Array]:
            return path_moments(self.data, self.batches[b], self.fold_paths[b], sizes.scored)

        scores = self.scorer.score(self._each(job)).followed_by(whole)
        self._tell("submodels with fewer features are scored", 0.99)
        return path, sizes, scores

    def _fold_paths(
        self, n_views: int, size: int, most: IntArray | None = None
    ) -> list[SubmodelPath]:
        """Return the submodel paths of all inner folds, one object per batch."""

        def job(b: int) -> SubmodelPath:
            ensemble, stacking = self.ensembles[b], self._stacking_of(b)
            return make_path(self.data, ensemble, stacking, n_views, size, self.task, most)

        return self._each(job)

    def _stored_path(
        self,
        path: SubmodelPath,
        folds: list[SubmodelPath],
        views: Mask,
        n_factors: int,
        ensemble_loss: Array,
        allowed: float,
        limit: int = STORED,
    ) -> StoredPath:
        """Return what is kept of a path for submodels with a number of features per view."""
        cut = first_columns(path, limit)
        M = len(self.problem.widths)
        widths = [count_features(self.problem, np.arange(M) == m) for m in range(M)]
        return StoredPath(
            TrainingRows(self.problem, self.data, self.index, self.everyone),
            cut,
            [(b, first_columns(own, limit)) for b, own in zip(self.batches, folds, strict=True)],
            views,
            bool(cut.basis.length[0] == path.basis.length[0] < max(SIZES)),
            np.array(widths),
            self.scorer,
            ensemble_loss,
            allowed,
            n_factors,
        )

    def _path_per_view(
        self, most: IntArray, n_factors: int, ensemble_loss: Array, allowed: float
    ) -> StoredPath:
        """Return a path over all views on which none has more features than it may have."""
        M = len(self.problem.widths)
        n_always = 0 if self.data.always is None else int(self.data.always.sum())
        groups = self.data.groups
        levels = 1 if groups is None else int(np.bincount(groups).max())
        size = int(np.minimum(most, self.problem.widths).sum()) * levels + n_always
        path = make_path(self.data, self.full, self.stacking, M, size, self.task, most)
        folds = self._fold_paths(M, size, most)
        every = np.ones(M, dtype=bool)
        return self._stored_path(path, folds, every, n_factors, ensemble_loss, allowed, size)

    def _n_always(self, path: SubmodelPath) -> tuple[int, int]:
        """Return how many columns and features of the path every submodel has."""
        always = self.everyone.always(self.data)
        if always is None:
            return 0, 0
        columns = int(always[0, path.basis.order[0, : path.basis.length[0]]].sum())
        return columns, int(np.searchsorted(path.basis.ends[0], columns, side="right"))

    def _width(self, views: Mask) -> int:
        return int(np.array(self.problem.widths)[views].sum())
