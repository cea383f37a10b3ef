"""The default fit: one reference, a path of smaller models, and an honest choice.

1. *Reference.* The same Gaussian posterior under several priors (`baldur.inference.reference`),
   some of them integrated over the scale of the prior. Repeated inner folds say how much each
   counts, and how far all are believed (`baldur.inference.stack`); a weak signal is shrunk towards
   the base rate.
2. *Is there a signal?* Held-out losses of the reference and of the base rate, row by row, with
   stack weights that the judging rows had no part in. Shown or not, the reference predicts: its
   slope has shrunk what it could not show, so that it costs next to nothing, and weak real signals
   live there. What is not shown is said to be so.
3. *Path.* The reference is projected, not refitted: first onto fewer views, then onto fewer
   features of the views that were kept (`baldur.inference.projection`).
4. *Choice.* Of the models shown to lose little, the smallest that is next to nothing behind the
   best (`baldur.inference.choice`). If there is none, everything the reference uses is kept.

Everything that predicts is kept and everything kept predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from baldur.inference.choice import Gap, paired_gap, smallest_as_good
from baldur.inference.features import all_features, columns_of, positions
from baldur.inference.held_out import (
    SIZES,
    Fold,
    Path,
    base_losses,
    first_views,
    fit_stacks,
    make_path,
    path_moments,
    score,
    view_moments,
    view_order,
)
from baldur.inference.kept import projected, whole
from baldur.inference.mixture import Mixture
from baldur.inference.new_rows import Index, absent_matrix
from baldur.inference.reference import MEMBERS, Candidates, Reference, fit_reference
from baldur.inference.screening import Problem, candidates, with_their_groups
from baldur.inference.stack import Stack
from baldur.inference.stand_ins import StandIns, stand_ins
from baldur.inference.threads import few_blas_threads
from baldur.views.reads import passes

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]
Watcher = Callable[[dict[str, Any]], None]

VIEW_COUNTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
"""Numbers of views at which the reference is scored, besides all of them."""


@dataclass
class Answer:
    """What was settled, and on what grounds.

    Attributes
    ----------
    mixture : Mixture, the posterior that predicts
    selected : list of (D_m,) bool arrays
    inclusion : list of (D_m,) arrays, posterior inclusion probabilities; 1 where no member selects
    share : (M,) learned share of features with an effect; 1 where no member selects
    stack : dict of str to float, weight of each member's linear predictor
    signal : Gap, what the reference gains over the base rate per held-out row
    path : list of dict, one per step
    stand_ins : list of StandIns, one per kept feature; empty where everything was kept or no
        member selects
    history, converged : the record of the fit on all rows
    """

    mixture: Mixture
    selected: list[Mask]
    inclusion: list[Array]
    share: Array
    stack: dict[str, float]
    signal: Gap
    path: list[dict[str, Any]]
    stand_ins: list[StandIns]
    history: list[dict[str, Any]]
    converged: bool


def fit_auto(
    problem: Problem,
    T: Array,
    folds: Sequence[Fold],
    *,
    members: Sequence[str] = MEMBERS,
    margin: float = 0.1,
    n_jobs: int | None = None,
    max_iter: int = 200,
    watch: Watcher | None = None,
) -> Answer:
    """Fit the reference, score its path on held-out rows, and keep one step of it.

    Parameters
    ----------
    problem : Problem
    T : (N, C) array
        Outputs: 0 and 1, or real for regression.
    folds : list of (training rows, held-out rows), of one or several repeats
    members : sequence of str
        Names of `MEMBERS` that form the ensemble.
    margin : float
        Part of the reference's gain over the base rate that a smaller model may lose.
    n_jobs : int, optional
        Fits at the same time.
    max_iter : int
        Most iterations of each member.
    watch : callable, optional
        Called with a record after each fit.
    """
    with few_blas_threads(problem.n_samples):
        references, index = fit_references(problem, folds, n_jobs, max_iter, watch, members)
        return _Scoring(problem, T, folds, references, n_jobs).answer(index, margin)


def fit_references(
    problem: Problem,
    folds: Sequence[Fold],
    n_jobs: int | None,
    max_iter: int,
    watch: Watcher | None,
    members: Sequence[str] = MEMBERS,
) -> tuple[list[Reference], Index]:
    """Return the reference of every fold, that of all rows last, and the candidates of the last.

    Three passes over the views whatever the number of folds: scores, Grams, candidate columns.
    """
    fits = [*(rows for rows, _ in folds), np.arange(problem.n_samples)]
    chosen = candidates(problem, fits)
    everything, absent = all_features(problem.views), absent_matrix(problem.views)
    union = [np.unique(np.concatenate([c[m] for c in chosen])) for m in range(len(chosen[0]))]
    gathered = columns_of(problem.views, union)

    def fit(f: int) -> Reference:
        groups = None if problem.groups is None else problem.group_numbers(chosen[f])
        at = positions(union, chosen[f])
        data = Candidates(gathered, everything, problem.widths, absent, groups, at)
        return fit_reference(data, fits[f], problem.likelihood.rows(fits[f]), max_iter, members)

    jobs = (delayed(fit)(f) for f in range(len(fits)))
    made = []
    for reference in Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs):
        made.append(reference)
        if watch is not None:
            event = f"fit {len(made)} of {len(fits)}"
            watch({"event": event, "passes": passes(problem.views)})
    return made, chosen[-1]


class _Scoring:
    """Held-out losses of the references, and what they say."""

    def __init__(
        self,
        problem: Problem,
        T: Array,
        folds: Sequence[Fold],
        references: Sequence[Reference],
        n_jobs: int | None,
    ) -> None:
        self.problem, self.T, self.folds, self.n_jobs = problem, T, folds, n_jobs
        self.references, self.full = references[:-1], references[-1]
        weight = problem.likelihood.weight.mean(axis=1)
        self.weight = weight / weight.mean()
        self.widths = [view.shape[1] for view in problem.views]

    def each(self, job: Callable[[Reference, int], Any]) -> list[Any]:
        """Return what a job gives for every fold."""
        jobs = (delayed(job)(reference, f) for f, reference in enumerate(self.references))
        return list(Parallel(n_jobs=self.n_jobs, prefer="threads")(jobs))

    def answer(self, index: Index, margin: float) -> Answer:
        """Stack, test for a signal, choose views, then features."""
        task, T, folds, weight = self.problem.task, self.T, self.folds, self.weight
        stack, without = fit_stacks(self.references, folds, T, weight, task)
        M = len(self.widths)
        counts = [count for count in VIEW_COUNTS if count < M] + [M]
        base = base_losses(self.references, folds, T, task)
        found = self.each(lambda ref, f: view_moments(ref, without[f], counts, folds[f][1]))
        whole_moments = [(mean[-1], var[-1]) for mean, var in found]
        by_views = score(found, whole_moments, stack.slope, folds, T, weight, task)
        reference = by_views.losses[-1]
        signal = paired_gap(base, reference, weight)
        allowed = margin * max(signal.mean, 0.0)
        at_view, fit_views = smallest_as_good(by_views.losses, reference, allowed, weight)

        points, weights = self.full.mixture(stack)
        order = view_order(self.full)
        mask = first_views(order, counts[at_view])
        path = make_path(self.full, stack, counts[at_view], max(SIZES), task)
        sizes = self._sizes(path, mask)
        steps = by_views[at_view : at_view + 1]
        if sizes:

            def along(ref: Reference, f: int) -> tuple[Array, Array]:
                path = make_path(ref, without[f], counts[at_view], max(sizes), task)
                return path_moments(path, ref.data, folds[f][1], sizes)

            made = self.each(along)
            smaller = score(made, whole_moments, stack.slope, folds, T, weight, task)
            steps = smaller.and_then(steps)
        at, fit_features = smallest_as_good(steps.losses, reference, allowed, weight)

        sets: list[StandIns] = []
        if at < len(sizes):
            size = path.basis.whole_groups(sizes[at])
            mixture, kept, chosen = projected(
                self.full, path, size, steps[at : at + 1], index, self.widths
            )
            if self._selecting():
                sets = stand_ins(self.full, chosen, index)
            if self.problem.groups is not None:  # a level that the others say has weight 0
                closed = with_their_groups([np.flatnonzero(k) for k in kept], self.problem.groups)
                for of_view, columns in zip(kept, closed, strict=True):
                    of_view[columns] = True
        else:
            mixture, kept = whole(
                self.full,
                points,
                weights,
                stack,
                by_views[at_view : at_view + 1],
                mask,
                index,
                self.problem.views,
            )
        by_count = [self._width(first_views(order, count)) for count in counts]
        describe = _Table(reference, weight)
        describe.add("nothing", [0], [0], base[None], [False], None)
        describe.add("views", counts, by_count, by_views.losses, fit_views, None)
        describe.add(
            "features",
            [counts[at_view]] * len(steps.losses),
            [*map(path.basis.whole_groups, sizes), self._width(mask)],
            steps.losses,
            fit_features,
            at,
        )
        inclusion, share = self._inclusion(stack, index)
        return Answer(
            mixture,
            kept,
            inclusion,
            share,
            dict(zip(self.full.members, (stack.slope * stack.shares).tolist(), strict=True)),
            signal,
            describe.records,
            sets,
            [
                {"event": name, "passes": passes(self.problem.views), **record}
                for name, member in self.full.members.items()
                for record in member.history
            ],
            all(member.converged for member in self.full.members.values()),
        )

    def _width(self, mask: Mask) -> int:
        return int(self.problem.widths[mask].sum())

    def _sizes(self, path: Path, mask: Mask) -> list[int]:
        """Return the sizes that the path has, below that of the views themselves.

        Of those that a group makes one, the largest.
        """
        longest = len(path.basis.order)
        sizes = [size for size in SIZES if size <= longest and size < self._width(mask)]
        return list({path.basis.whole_groups(size): size for size in sizes}.values())

    def _selecting(self) -> bool:
        """Whether any member has inclusion probabilities."""
        return any(member.details is not None for member in self.full.members.values())

    def _inclusion(self, stack: Stack, index: Index) -> tuple[list[Array], Array]:
        """Average inclusion probabilities and shares over the members that select.

        All are 1 if there is no such member.
        """
        if not self._selecting():
            return [np.ones(D) for D in self.widths], np.ones(len(self.widths))
        members = zip(stack.shares, self.full.members.values(), strict=True)
        found = [(w, member.details) for w, member in members if member.details is not None]
        total = sum(w for w, _ in found)
        rho = sum(w / total * details.rho for w, details in found)
        share = sum(w / total * details.pi for w, details in found)
        parts = np.split(np.asarray(rho), np.cumsum([len(i) for i in index])[:-1])
        inclusion = [np.zeros(D) for D in self.widths]
        for full, columns, part in zip(inclusion, index, parts, strict=True):
            full[columns] = part
        return inclusion, np.asarray(share)


class _Table:
    """The steps of the path as records."""

    def __init__(self, reference: Array, weight: Array) -> None:
        self.reference, self.weight = reference, weight
        self.records: list[dict[str, Any]] = []

    def add(
        self,
        kind: str,
        n_views: Sequence[int],
        n_features: Sequence[int],
        losses: Array,
        candidate: Sequence[bool] | Mask,
        kept: int | None,
    ) -> None:
        """Add the steps of one kind, from small to large."""
        for place, loss in enumerate(losses):
            gap = paired_gap(loss, self.reference, self.weight)
            self.records.append(
                {
                    "step": kind,
                    "n_views": int(n_views[place]),
                    "n_features": int(n_features[place]),
                    "loss": float(loss @ self.weight / self.weight.sum()),
                    "above_reference": gap.mean,
                    "standard_error": gap.error,
                    "upper": gap.upper,
                    "candidate": bool(candidate[place]),
                    "kept": place == kept,
                }
            )
