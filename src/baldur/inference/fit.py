"""The default fit: an ensemble, a path of submodels, and a selection supported by held-out rows.

1. *Ensemble.* The same Gaussian posterior under several priors
   (`baldur.inference.ensemble`). Repeated inner folds give the stacking weights and the
   calibration slope (`baldur.inference.stacking`); a weak signal is shrunk towards the base rate.
2. *Is there a signal?* Held-out losses of the ensemble and of the base rate, row by row, with
   stacking weights that the judging rows had no part in. With or without evidence of a signal the
   ensemble predicts: its slope has shrunk what it could not show. The estimators say which it is.
3. *Submodel path.* The ensemble is projected, not refitted: first onto fewer views, then onto fewer
   features of the selected views (`baldur.inference.submodel_path`).
4. *Selection.* Of the submodels shown to lose little, the smallest that is about as good as the
   best (`baldur.inference.submodel_selection`). If there is none, all features of the selected
   views are used.
5. *Latent factors.* With several outputs, the fewest factors that predict as well
   (`baldur.inference.predictor`).

The features that are selected are exactly those that predict.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.credible_sets import credible_sets
from baldur.inference.ensemble import MEMBERS
from baldur.inference.fit_context import FitContext, Watcher
from baldur.inference.inner_folds import Fold, Problem
from baldur.inference.predictor import Predictor, factor_moments, principal_directions
from baldur.inference.submodel_path import SIZES, SubmodelPath, entering_columns, entering_views
from baldur.inference.submodel_selection import Score, in_errors, mean_losses, paired_gap
from baldur.inference.submodels import (
    PathSizes,
    StoredPath,
    Submodel,
    cost_records,
    largest_within,
    make_submodels,
    path_sizes,
    whole_view_predictor,
)
from baldur.views.prepared_view import passes

MANY_SAMPLES = 500
"""Samples from which BLAS keeps as many threads as it has."""


def few_blas_threads(n_samples: int) -> threadpool_limits:
    """Limit BLAS to one thread for small samples.

    Small matrices gain nothing from threads and lose much when cores are busy. The limit does not
    depend on the number of fits at the same time, because sums depend on the number of threads.
    """
    return threadpool_limits(limits=1 if n_samples < MANY_SAMPLES else None)


@dataclass
class FitResult:
    """Result of a fit: the selected submodel, the ensemble and the evidence of signal."""

    chosen: Submodel  # the one that was selected
    submodels: list[Submodel]  # from the base rate to the largest one that is stored
    n_features: int  # features of the selected views, a category counted once
    inclusion: list[Array]  # (D_m,); inclusion probability of each feature
    stacking: dict[str, float]  # weight of each member's linear predictor
    signal: float  # what the ensemble gains over the base rate, in standard errors
    path: list[dict[str, Any]]  # one per submodel
    stored_path: StoredPath | None  # for numbers of features per view; None in a copy
    cost_path: list[dict[str, Any]]  # one per cost that is paid; empty without costs
    factor_path: list[dict[str, Any]]
    credible_sets: list[dict[str, Any]]  # one per selected feature; empty where all are used
    history: list[dict[str, Any]]  # the record of the fit on all rows
    converged: bool

    @property
    def predictor(self) -> Predictor:
        """The predictor of the selected submodel."""
        return self.chosen.predictor

    @property
    def selected(self) -> list[Mask]:
        """The selected columns of each view, (D_m,) bool arrays."""
        return self.chosen.masks

    @property
    def largest(self) -> int:
        """Number of features of the largest submodel that is stored."""
        return self.submodels[-1].n_features

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without cells of training samples, which only `stored_path` needs."""
        return {**vars(self), "stored_path": None}


def fit_default(
    problem: Problem,
    folds: Sequence[Fold],
    *,
    members: Sequence[str] = MEMBERS,
    margin: float = 0.1,
    n_features: int | IntArray | None = None,
    n_factors: int | None = None,
    n_jobs: int | None = None,
    max_iter: int = 200,
    watch: Watcher | None = None,
) -> FitResult:
    """Fit the ensemble, score its submodels on held-out rows, and select one of them.

    `margin` is the part of the gain over the base rate that a submodel may lose; n_features is one
    number, or (M,) one for each view. Shapes: folds (training rows, held-out rows).
    """
    if isinstance(n_features, np.ndarray) and not n_features.any():
        n_features = 0
    with few_blas_threads(problem.n_samples):
        fit = FitContext(problem, folds, members, max_iter, n_jobs, watch)
        result = _project_and_select(fit, margin, n_factors, n_features)
        fit.release()
        return result


def _project_and_select(
    fit: FitContext, margin: float, n_factors: int | None, n_features: int | IntArray | None
) -> FitResult:
    """Select views, number of factors and features by held-out losses; return the whole result."""
    base, by_views = fit.score_base_rate(), fit.score_views()
    gained, error = paired_gap(base.losses, fit.losses, fit.weight)
    fit.allowed = margin * max(gained, 0.0)

    place = len(fit.view_counts) - 1
    # No view is left out where features are always in, or enter in the order of their costs.
    if not fit.data.always.any() and fit.data.costs is None:
        place = fit.select(by_views)
    n_views, whole = fit.view_counts[place], by_views[place]
    views = fit.first_views(n_views)
    factor_path: list[dict[str, Any]] = []
    if n_factors is not None:
        fit.n_factors = min(n_factors, fit.n_factors)
    elif fit.n_factors > 1:
        fit.n_factors, factor_path = select_factors(fit)
    path, folds, sizes, scores = score_path(fit, n_views, whole)
    table = _path_table(fit, base, by_views, views, path, sizes, scores)
    stored = StoredPath(fit, path, folds, views)

    submodels = make_submodels(fit, path, sizes, scores)
    on_path = len(submodels)
    place = -1  # not used where a number for each view is given
    if not isinstance(n_features, np.ndarray):
        place = _select_size(fit, sizes, scores, n_features)
    # All features of the views, where the path does not have them. If they were not selected, they
    # are not kept if training rows would have to be stored for it.
    if place == on_path or not (sizes.complete or fit.data.grams is not None):
        predictor = whole_view_predictor(fit, views[None], whole)
        if place == on_path or not predictor.holds_training_rows:
            widths = np.where(views, fit.problem.widths, 0)
            every, cost = [np.arange(D) for D in widths], fit.problem.total_cost()
            submodels.append(Submodel(sizes.total, predictor, every, len(table) - 1, cost))
    # `columns` are the candidates that are selected, in the order of the path.
    if isinstance(n_features, np.ndarray):
        chosen, columns, record = _select_per_view(fit, stored, n_features, len(table))
        table.append(record)
    else:
        # The base rate has no columns, and where all are used there is no selected feature.
        chosen, columns = submodels[place], path.order[0, : [0, *sizes.columns, 0][place]]
    for row, record in enumerate(table):
        record["selected"] = row == chosen.row

    weights = fit.stacking.member_weights[0].tolist()
    members = fit.full.members
    return FitResult(
        chosen=chosen,
        # Where the path has all features, its largest submodel has them.
        submodels=submodels[:on_path] if sizes.complete else submodels,
        n_features=sizes.total,
        inclusion=fit.inclusion(),
        stacking=dict(zip(members, weights, strict=True)),
        signal=in_errors(gained, error),
        path=table,
        stored_path=stored,
        cost_path=cost_records(fit, path, folds, sizes.columns, table[0]),
        factor_path=factor_path,
        credible_sets=credible_sets(fit.full, columns, fit.index),
        history=[
            {"event": name, "passes": passes(fit.problem.views), **record}
            for name, member in members.items()
            for record in member.history
        ],
        converged=all(bool(member.converged.all()) for member in members.values()),
    )


def score_path(
    fit: FitContext, n_views: int, whole: Score
) -> tuple[SubmodelPath, list[SubmodelPath], PathSizes, list[Score]]:
    """Return the submodel path of the first views, its sizes, and their scores.

    The path on all rows comes first, then those of the batches of folds. Scores of all features
    of these views, which are `whole`, follow those of the sizes.
    """
    path = fit.path(n_views, max(SIZES) + int(fit.data.always.sum()))
    sizes = path_sizes(fit, path, fit.first_views(n_views))
    folds = fit.fold_paths(n_views, max(sizes.scored, default=1))
    if not sizes.scored:
        return path, folds, sizes, [whole]
    scores = fit.score(fit.each(lambda batch: batch.moments_of_sizes(sizes.scored), folds))
    fit.tell("submodels with fewer features are scored", 0.99)
    return path, folds, sizes, [*scores, whole]


def _select_size(
    fit: FitContext, sizes: PathSizes, scores: Sequence[Score], n_features: int | None
) -> int:
    """Return the place of the selected submodel: the base rate, the sizes, then the whole views.

    A number of features selects the largest submodel that has no more. Without one, held-out losses
    decide among the sizes of the automatic selection and the whole views.
    """
    if n_features is None:
        places = [*sizes.automatic, len(sizes.columns)]
        return 1 + places[fit.select([scores[place] for place in places])]
    counts = [0, *sizes.n_features]
    return largest_within(counts if sizes.complete else [*counts, sizes.total], n_features)


def _select_per_view(
    fit: FitContext, stored: StoredPath, most: IntArray, row: int
) -> tuple[Submodel, IntArray, dict[str, Any]]:
    """Return the submodel with at most so many features of each view, its columns and its record.

    The submodel has the first features of each view on the path of the fit. Where that has too few
    of a view, it is taken from a path over all views on which none has more features than it may
    have. `row` is the row of its record in the table of the path.
    """
    if len(stored.missing(most)):
        data, widths = fit.data, fit.problem.widths
        levels = np.bincount(data.groups).max(initial=1)  # columns of the largest category
        size = int(np.minimum(most, widths).sum() * levels) + int(data.always.sum())
        every = np.ones(len(widths), dtype=bool)
        limits = len(widths), size, most
        stored = StoredPath(fit, fit.path(*limits), fit.fold_paths(*limits), every, size)
    return stored.submodel(most, row)


def _path_table(
    fit: FitContext,
    base: Score,
    by_views: Sequence[Score],
    views: Mask,
    path: SubmodelPath,
    sizes: PathSizes,
    scores: Sequence[Score],
) -> list[dict[str, Any]]:
    """Return one record per submodel: base rate, fewer views, sizes of the path, whole views."""
    widths = np.array(fit.problem.widths)
    counts, order = fit.view_counts, fit.full.view_order()[0]
    by_count = [int(widths[order[:count]].sum()) for count in counts]
    by_size = [sizes.columns[place] for place in sizes.shown]
    enters = [*entering_columns(path.order[0], by_size, fit.index), None]
    by_size.append(int(widths[views].sum()))  # all columns of the views
    listed = [scores[place] for place in [*sizes.shown, len(sizes.columns)]]
    return [
        *fit.records("nothing", [0], [0], [base], [[]]),
        *fit.records("views", counts, by_count, by_views, entering_views(order, counts)),
        *fit.records("features", [int(views.sum())] * len(by_size), by_size, listed, enters),
    ]


FACTOR_COUNTS = (*range(1, 17), 20, 24, 32, 48, 64, 96, 128)
"""Numbers of factors that are scored, besides one per output."""


def factor_counts(C: int) -> list[int]:
    """Return the numbers of factors to score for C outputs, the last one C."""
    return [count for count in FACTOR_COUNTS if count < C] + [C]


def select_factor_count(losses: Array, weight: Array) -> int:
    """Return the place of the fewest factors within one standard error of the smallest loss.

    One factor per output, the last place, has no such margin: if it is best, it is selected.
    Shapes: losses (V, N) of V numbers of factors and N samples, weight (N,).
    """
    best = int((losses @ weight).argmin())
    if best == len(losses) - 1:
        return best
    for place in range(best):
        excess, error = paired_gap(losses[place], losses[best], weight)
        if excess <= error:
            return place
    return best


def select_factors(fit: FitContext) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of latent factors, and one record for each number that was scored.

    In every fold the ensemble is projected onto the first principal directions of its linear
    predictors, and scored. Axes: j Gaussians of the ensemble, f folds, c outputs, n training rows.
    """
    problem, weight = fit.problem, fit.weight
    counts = factor_counts(problem.T.shape[1])
    moments = []  # held-out means and variances of each batch, for every number of factors
    for ensemble, stacking, (held_mean, held_var) in zip(
        fit.ensembles, fit.stackings, fit.ensemble_moments, strict=True
    ):
        weights = ensemble.point_weights(stacking.shares)
        pooled = np.einsum("jfc,jfcn->fcn", weights, ensemble.mean)
        base = ensemble.base_logit[..., None]
        eta = base + stacking.slope[:, None, None] * (pooled - base)  # calibrated
        centre, directions = principal_directions(eta, ensemble.batch.counted)
        regression = not problem.logistic
        moments.append(
            factor_moments(centre, directions, held_mean, held_var, counts, regression=regression)
        )
    losses = mean_losses(*fit.gather(moments), fit.predicted_row, problem.T, problem.task)
    total = losses @ weight
    selected = select_factor_count(losses, weight)
    records = []
    for place, (count, loss) in enumerate(zip(counts, losses, strict=True)):
        difference, error = paired_gap(loss, losses[-1], weight)  # to one factor per output
        records.append(
            {
                "n_factors": count,
                "loss": float(total[place] / weight.sum()),
                "loss_difference": difference,
                "standard_error": error,
                "selected": place == selected,
            }
        )
    return counts[selected], records
