"""The context of a fit: its problem, rows, folds and ensembles, and the scoring of submodels.

Every later step of a fit reads this one object. The ensemble is fitted on all rows and in every
inner fold, and submodels are scored by their predictions for the rows that a fold holds out.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.ensemble import (
    Ensemble,
    first_views,
    fit_ensemble,
    over_candidates,
    view_moments,
)
from baldur.inference.inner_folds import (
    Fold,
    FoldBatch,
    Problem,
    candidates,
    folds_at_once,
    gather_data,
)
from baldur.inference.stacking import HeldOut, Stacking, fit_stacking
from baldur.inference.submodel_path import Entering, SubmodelPath, make_path
from baldur.inference.submodel_selection import (
    CONFIDENT,
    INTERVAL,
    Score,
    accuracy_interval,
    mean_losses,
    paired_gap,
    score_submodels,
    select_smallest,
)
from baldur.model.likelihood import take_folds

Watcher = Callable[[dict[str, Any]], None]

VIEW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of views at which the ensemble is scored, besides all of them."""


class FitContext:
    """The ensemble on all rows and in batches of inner folds, stacked and scored.

    `score_views` is called before all other scores but that of the base rate.

    Shapes: folds (training rows, held-out rows), weight (N,).
    """

    full: Ensemble  # on all rows
    ensembles: list[Ensemble]  # in the folds of each batch
    stacking: Stacking  # learned on all held-out rows
    stackings: list[Stacking]  # for each fold of each batch, learned without its held-out rows
    ensemble_moments: list[tuple[Array, Array]]  # its held-out mean and variance, of each batch
    whole: tuple[Array, Array]  # the same side by side, without padding, (R, C)
    predicted_row: IntArray  # (R,); the row that each held-out prediction is for
    losses: Array  # (N,); held-out losses of the ensemble
    allowed = 0.0  # how much larger the loss of a submodel may be

    def __init__(
        self,
        problem: Problem,
        folds: Sequence[Fold],
        members: Sequence[str],
        max_iter: int,
        n_jobs: int | None = None,
        watch: Watcher | None = None,
    ) -> None:
        rows, nobody = np.arange(problem.n_samples), np.zeros(0, dtype=np.intp)
        chosen, grams = candidates(problem, [*(train for train, _ in folds), rows])
        data, places = gather_data(problem, chosen, grams)
        self.problem, self.data = problem, data
        self.index = chosen[-1]  # the candidates on all rows
        self.n_jobs, self.watch = n_jobs, watch
        self.weight = problem.weight / problem.weight.mean()
        self.n_factors = problem.T.shape[1]  # latent factors behind the outputs
        M = data.n_views
        self.view_counts = [n for n in VIEW_COUNTS if n < M] + [M]
        step = folds_at_once(data, max(len(train) for train, _ in folds), len(places[0]))
        self.batches = [
            FoldBatch.of(data, folds[at : at + step], places[:-1][at : at + step])
            for at in range(0, len(folds), step)
        ]
        self.held_rows = [held for _, held in folds]
        held = [batch.held[batch.held_counted > 0] for batch in self.batches]
        self.predicted_row = np.concatenate(held)
        everyone = FoldBatch.of(data, [(rows, nobody)], places[-1:])
        self._fit_ensembles(everyone, members, max_iter)
        self._stack()

    def each(self, function: Callable[..., Any], *batches: Sequence[Any]) -> list[Any]:
        """Call a function with the entries of `batches` for each batch of folds, in threads."""
        jobs = (delayed(function)(*parts) for parts in zip(*batches, strict=True))
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs))

    def tell(self, event: str, done: float) -> None:
        """Report an event, and which part of the fit is done."""
        if self.watch is not None:
            self.watch({"event": event, "done": done})

    # -- the ensemble and its weights ------------------------------------------------------

    def _fit_ensembles(self, everyone: FoldBatch, members: Sequence[str], max_iter: int) -> None:
        """Fit the members on all rows and in every fold, with at most so many iterations each."""
        self.full = fit_ensemble(everyone, members=members, max_iter=max_iter)
        # Parts of the work, measured from 100 x 220 to 400 x 20,020: all samples take 4 to 16 % of
        # the time, inner folds 50 to 70 %, submodels of fewer views or features 10 to 18 % each.
        self.tell("the ensemble is fitted on all samples", 0.08)
        fitted, total = count(1), len(self.batches)

        def fit(batch: FoldBatch) -> Ensemble:
            ensemble = fit_ensemble(batch, members=members, max_iter=max_iter)
            k = next(fitted)
            self.tell(f"{k} of {total} batches of inner folds are fitted", 0.08 + 0.62 * k / total)
            return ensemble

        self.ensembles = self.each(fit, self.batches)

    def _stack(self) -> None:
        """Learn stacking weights from all held-out rows, and for each fold without its own."""
        moments = []
        for batch, ensemble in zip(self.batches, self.ensembles, strict=True):
            not_padding = batch.held_counted > 0
            mean, var = ensemble.member_moments()
            moments.append((mean[not_padding], var[not_padding]))
        mean, var = (np.concatenate(part) for part in zip(*moments, strict=True))
        T, row = self.problem.T, self.predicted_row
        # However many repeats hold it out, a row counts once.
        weight = self.weight[row] / np.bincount(row, minlength=len(T))[row]
        base, _ = self._base_moments()
        held = HeldOut(mean, var, base, T[row], row, weight, self.problem.task)
        self.stacking, without = fit_stacking(held, self.held_rows)
        ends = np.cumsum([len(batch) for batch in self.batches])
        self.stackings = [
            take_folds(without, slice(end - len(batch), end))
            for end, batch in zip(ends, self.batches, strict=True)
        ]

    def _base_moments(self) -> tuple[Array, Array]:
        """Return mean and variance of the base rate for all held-out rows, each (R, C)."""
        counts = [batch.held_counted.sum(axis=1).astype(int) for batch in self.batches]
        pairs = list(zip(self.ensembles, counts, strict=True))
        mean = np.concatenate([np.repeat(e.base_logit, k, axis=0) for e, k in pairs])
        var = np.concatenate([np.repeat(e.base_variance, k, axis=0) for e, k in pairs])
        return mean, var

    # -- scores on held-out rows -----------------------------------------------------------

    def score_base_rate(self) -> Score:
        """Return the score of the base rate of every fold."""
        mean, var = self._base_moments()
        T, task = self.problem.T, self.problem.task
        losses = mean_losses(mean, var + 1e-12, self.predicted_row, T, task)
        zero = np.zeros(T.shape[1])
        # One value for all rows orders none of them and explains no variance.
        accuracy = 0.5 if self.problem.logistic else 0.0
        return Score(zero + 1.0, zero, losses, accuracy, 0.0)

    def score_views(self) -> list[Score]:
        """Return the scores of the ensemble on its first views, for every number of views.

        Moments and losses on all views are kept: later scores are compared with them.
        """
        moments = self.each(
            partial(view_moments, counts=self.view_counts), self.ensembles, self.stackings
        )
        self.ensemble_moments = [(mean[-1], var[-1]) for mean, var in moments]  # on all views
        mean, var = (np.ascontiguousarray(part[-1]) for part in self.gather(moments))
        self.whole = mean, var
        scores = self.score(moments)
        self.losses = scores[-1].losses
        self.tell("submodels with fewer views are scored", 0.85)
        return scores

    def select(self, scores: Sequence[Score]) -> int:
        """Return the place of the smallest submodel that is about as good as the best."""
        losses = np.stack([score.losses for score in scores])
        return select_smallest(losses, self.losses, self.allowed, self.weight)[0]

    def records(
        self,
        kind: str,
        n_views: Sequence[int],
        n_features: Sequence[int],
        scores: Sequence[Score],
        enters: Sequence[Entering],
    ) -> list[dict[str, Any]]:
        """Return records of loss and accuracy of the submodels of one kind, from small to large."""
        records: list[dict[str, Any]] = []
        largest = len(scores) - 1
        name = "auc" if self.problem.logistic else "r2"
        for place, score in enumerate(scores):
            loss = score.losses
            difference, error = paired_gap(loss, self.losses, self.weight)  # to the ensemble
            upper = difference + CONFIDENT * error
            mean, spread = paired_gap(loss, np.zeros(len(loss)), self.weight)
            low, high = accuracy_interval(score.accuracy, score.accuracy_error, self.problem.task)
            records.append(
                {
                    "step": kind,
                    "n_views": int(n_views[place]),
                    "n_features": int(n_features[place]),
                    "loss": float(loss @ self.weight / self.weight.sum()),
                    "loss_difference": difference,
                    "standard_error": error,
                    "upper": upper,
                    "candidate": kind != "nothing" and (place == largest or upper <= self.allowed),
                    "selected": False,
                    "loss_lower": mean - INTERVAL * spread,
                    "loss_upper": mean + INTERVAL * spread,
                    name: score.accuracy,
                    f"{name}_lower": low,
                    f"{name}_upper": high,
                    "enters": enters[place],
                }
            )
        return records

    def first_views(self, n_views: int) -> Mask:
        """Return the mask (M,) of the first `n_views` views, in their order on all rows."""
        return first_views(self.full.view_order(), n_views)[0]

    def path(self, n_views: int, size: int, most: IntArray | None = None) -> SubmodelPath:
        """Return the submodel path on all rows; `most` (M,) limits the features of each view."""
        return make_path(self.full, self.stacking, n_views, size, most)

    def fold_paths(
        self, n_views: int, size: int, most: IntArray | None = None
    ) -> list[SubmodelPath]:
        """Return the submodel paths of all inner folds, one object per batch."""
        path = partial(make_path, n_views=n_views, size=size, most=most)
        return self.each(path, self.ensembles, self.stackings)

    def gather(self, moments: Sequence[tuple[Array, Array]]) -> tuple[Array, Array]:
        """Return moments (V, F, C, p) of all batches side by side, each (V, R, C)."""
        mean, var = (
            np.concatenate(
                [b.without_padding(part) for b, part in zip(self.batches, parts, strict=True)],
                axis=1,
            )
            for parts in zip(*moments, strict=True)
        )
        return mean, var

    def score(self, moments: Sequence[tuple[Array, Array]]) -> list[Score]:
        """Score V submodels by held-out mean and variance (V, F, C, p) of eta in every batch."""
        return score_submodels(
            *self.gather(moments),
            *self.whole,
            slope=float(self.stacking.slope[0]),
            row=self.predicted_row,
            T=self.problem.T,
            weight=self.weight,
            task=self.problem.task,
        )

    # -- what is known of the features -----------------------------------------------------

    def inclusion(self) -> list[Array]:
        """Return the inclusion probabilities (D_m,) of the features of each view.

        They are averaged over the spike-and-slab members by stacking weight. Without such a member,
        over all: a dense member includes every feature, and a screened one those that it has.
        """
        shares = self.stacking.shares[0]
        members = zip(shares, self.full.members.values(), strict=True)
        learned = [(w, m.spike_slab) for w, m in members if m.spike_slab is not None]
        if learned:
            total = sum(w for w, _ in learned)
            rho = sum(w / total * prior.rho[0] for w, prior in learned)
            return self._in_views(np.asarray(rho))
        included = [np.zeros(D) for D in self.problem.widths]
        for k, weight in enumerate(shares):
            point = self.full.points[int(np.flatnonzero(self.full.member_of == k)[0])]
            included_here = [np.ones(D) for D in self.problem.widths]
            if point.selects:
                s = point.q.s
                if point.columns is not None:
                    s = over_candidates(s, point.columns, sum(map(len, self.index)))
                included_here = self._in_views(s[0].any(axis=0))
            pairs = zip(included, included_here, strict=True)
            included = [full + weight * part for full, part in pairs]
        return [np.minimum(full, 1.0) for full in included]

    def _in_views(self, values: Array) -> list[Array]:
        """Return values of the candidates (L,) as those of all columns of each view, else 0."""
        whole = [np.zeros(D) for D in self.problem.widths]
        parts = np.split(values, np.cumsum([len(columns) for columns in self.index])[:-1])
        for full, columns, part in zip(whole, self.index, parts, strict=True):
            full[columns] = part
        return whole

    def release(self) -> None:
        """Free the ensembles, which submodels of a path that is made do not need."""
        del self.full, self.ensembles, self.ensemble_moments
