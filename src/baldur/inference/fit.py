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
   best (`baldur.inference.selection`). If there is none, all features of the selected views are
   used.
5. *Latent factors.* With several outputs, the fewest factors that predict as well
   (`baldur.inference.shared_factors`).

The features that are selected are exactly those that predict.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from baldur.core.threads import few_blas_threads
from baldur.core.types import Array, Index, IntArray, Mask
from baldur.inference.ensemble import MEMBERS
from baldur.inference.fit_context import FitContext, Watcher
from baldur.inference.inner_folds import Fold, Problem, candidates, gather_data
from baldur.inference.predictor import Predictor
from baldur.inference.selection import (
    CredibleSet,
    Gap,
    Scores,
    credible_sets,
    paired_gap,
    select_smallest,
)
from baldur.inference.shared_factors import select_factors
from baldur.inference.submodel_path import (
    SIZES,
    MakeRecords,
    SubmodelPath,
    entering_columns,
    entering_views,
    path_moments,
    path_records,
)
from baldur.inference.submodels import (
    PathSizes,
    StoredPath,
    Submodel,
    column_masks,
    cost_records,
    largest_within,
    make_submodels,
    path_sizes,
    whole_views_submodel,
)
from baldur.views.sources import passes


@dataclass
class FitResult:
    """Result of a fit: the selected submodel, the ensemble and the evidence of signal."""

    chosen: Submodel  # the one that was selected
    submodels: list[Submodel]  # from the base rate to the largest one that is stored
    n_features: int  # features of the selected views, a category counted once
    inclusion: list[Array]  # (D_m,); inclusion probability of each feature
    stacking: dict[str, float]  # weight of each member's linear predictor
    signal: Gap  # what the ensemble gains over the base rate per held-out row
    path: list[dict[str, Any]]  # one per submodel
    stored_path: StoredPath | None  # for numbers of features per view; None in a copy
    cost_path: list[dict[str, Any]]  # one per cost that is paid; empty without costs
    factor_path: list[dict[str, Any]]
    credible_sets: list[CredibleSet]  # one per selected feature; empty where all are used
    history: list[dict[str, Any]]  # the record of the fit on all rows
    converged: bool
    solver: str  # "feature" or "sample"

    @property
    def predictor(self) -> Predictor:
        """The predictor of the selected submodel."""
        return self.chosen.predictor

    @property
    def selected(self) -> list[Mask]:
        """The selected columns of each view, (D_m,) bool arrays."""
        return column_masks(self.chosen)


Select = Callable[[Array], tuple[int, Mask]]
"""`select_smallest` with what all selections of a fit share: `ensemble`, `allowed`, `weight`."""


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

    Shapes: folds (training rows, held-out rows), n_features (M,).
    """
    if isinstance(n_features, np.ndarray) and not n_features.any():
        n_features = 0
    with few_blas_threads(problem.n_samples):
        everyone = np.arange(problem.n_samples)
        chosen, grams = candidates(problem, [*(train for train, _ in folds), everyone])
        if always is not None:
            chosen = [
                [np.union1d(own, more) for own, more in zip(index, always, strict=True)]
                for index in chosen
            ]
        data, places = gather_data(problem, chosen, grams, always)
        fits = FitContext(problem, data, chosen[-1], places, folds, n_jobs, watch)
        fits.fit_ensembles(members, max_iter)
        fits.stack()
        result = _project_and_select(fits, margin, n_factors, n_features)
        fits.release()
        return result


def _project_and_select(
    fits: FitContext, margin: float, n_factors: int | None, n_features: int | IntArray | None
) -> FitResult:
    """Take the steps 2 to 5 of a fit, from its ensembles; see the top of this file."""
    base, by_views = fits.score_base_rate(), fits.score_views()
    ensemble = by_views.losses[-1]
    signal = paired_gap(base.losses[0], ensemble, fits.weight)
    rule: dict[str, Any] = {
        "ensemble": ensemble,
        "allowed": margin * max(signal.mean, 0.0),
        "weight": fits.weight,
    }
    select = partial(select_smallest, **rule)
    make_records = partial(path_records, **rule, task=fits.task)

    n_views, whole = _select_views(fits, by_views, select)
    views = fits.first_views(n_views)
    n_factors, factor_path = _select_factors(fits, n_factors)
    path, folds, sizes, scores = score_path(fits, n_views, whole)
    table = _path_table(fits, make_records, base, by_views, views, path, sizes, scores)
    stored = StoredPath.of(fits, path, folds, views, make_records, n_factors)

    first_row = 1 + len(fits.view_counts)
    submodels = make_submodels(fits, path, sizes, scores, n_factors, first_row)
    on_path = len(submodels)
    whole_views = partial(_whole_views, fits, views, sizes, whole, n_factors, len(table) - 1)
    if isinstance(n_features, np.ndarray):
        chosen, columns, record = _select_per_view(fits, stored, n_features, len(table))
        submodels += whole_views(selected=False)
        table.append(record)
    else:
        place = _select_size(sizes, scores, n_features, select)
        submodels += whole_views(selected=place == on_path)
        # The base rate has no columns, and where all are used there is no selected feature.
        chosen, columns = submodels[place], path.basis.order[0, : [0, *sizes.columns, 0][place]]
    for row, record in enumerate(table):
        record["selected"] = row == chosen.row

    weights = fits.stacking.member_weights[0].tolist()
    members = fits.full.members
    return FitResult(
        chosen=chosen,
        # Where the path has all features, its largest submodel has them.
        submodels=submodels[:on_path] if sizes.complete else submodels,
        n_features=sizes.total,
        inclusion=fits.inclusion(),
        stacking=dict(zip(fits.full.names, weights, strict=True)),
        signal=signal,
        path=table,
        stored_path=stored,
        cost_path=cost_records(fits, path, folds, sizes.columns, make_records, table[0]),
        factor_path=factor_path,
        credible_sets=credible_sets(fits.full, columns, fits.index),
        history=[
            {"event": name, "passes": passes(fits.problem.views), **record}
            for name, member in members.items()
            for record in member.history
        ],
        converged=all(bool(member.converged.all()) for member in members.values()),
        solver="feature" if fits.data.grams is None else "sample",
    )


def _select_views(fits: FitContext, scores: Scores, select: Select) -> tuple[int, Scores]:
    """Return the number of views that are selected, and their scores.

    Held-out losses decide, from the scores of every number of views. All views are selected where
    some features are always in, or where costs say in which order features enter.
    """
    at = len(fits.view_counts) - 1
    if fits.data.always is None and fits.data.costs is None:
        at, _ = select(scores.losses)
    return fits.view_counts[at], scores[at : at + 1]


def score_path(
    fits: FitContext, n_views: int, whole: Scores
) -> tuple[SubmodelPath, list[SubmodelPath], PathSizes, Scores]:
    """Return the submodel path of the first views, its sizes, and their scores.

    The path on all rows comes first, then those of the batches of folds. Scores of all features
    of these views, which are `whole`, follow those of the sizes.
    """
    n_always = 0 if fits.data.always is None else int(fits.data.always.sum())
    path = fits.full_path(n_views, max(SIZES) + n_always)
    sizes = path_sizes(fits, path, fits.first_views(n_views))
    folds = fits.fold_paths(n_views, max(sizes.scored, default=1))
    if not sizes.scored:
        return path, folds, sizes, whole

    def job(b: int) -> tuple[Array, Array]:
        return path_moments(fits.batches[b], folds[b], sizes.scored)

    scores = fits.score(fits.each(job)).followed_by(whole)
    fits.tell("submodels with fewer features are scored", 0.99)
    return path, folds, sizes, scores


def _select_factors(fits: FitContext, n_factors: int | None) -> tuple[int, list[dict[str, Any]]]:
    """Return the number of latent factors, and the held-out losses that decided it.

    A number that is given is taken, up to one factor per output; with a single output there is one.
    """
    C = fits.T.shape[1]
    if n_factors is not None or C == 1:
        return C if n_factors is None else min(n_factors, C), []
    return select_factors(fits)


def _select_size(sizes: PathSizes, scores: Scores, n_features: int | None, select: Select) -> int:
    """Return the place of the selected submodel: the base rate, the sizes, then the whole views.

    A number of features selects the largest submodel that has no more. Without one, held-out losses
    decide among the sizes of the automatic selection and the whole views.
    """
    if n_features is None:
        places = [*sizes.automatic, len(sizes.columns)]
        return 1 + places[select(scores.losses[places])[0]]
    counts = [0, *sizes.n_features]
    return largest_within(counts if sizes.complete else [*counts, sizes.total], n_features)


def _whole_views(
    fits: FitContext,
    views: Mask,
    sizes: PathSizes,
    whole: Scores,
    n_factors: int,
    row: int,
    *,
    selected: bool,
) -> list[Submodel]:
    """Return the submodel with all features of the selected views, or nothing where it is not kept.

    It is kept where it is selected. Otherwise it is kept where the path does not have all features,
    unless training rows would have to be stored for it.
    """
    if not selected and (sizes.complete or fits.data.grams is not None):
        return []
    made = whole_views_submodel(fits, views, whole, n_factors, row, sizes.total)
    return [made] if selected or not made.predictor.holds_training_rows else []


def _select_per_view(
    fits: FitContext, stored: StoredPath, most: IntArray, row: int
) -> tuple[Submodel, IntArray, dict[str, Any]]:
    """Return the submodel with so many features of each view, its columns and its record.

    It has the first features of each view on the path of the fit. Where that has too few of a view,
    it is taken from a path over all views on which none has more features than it may have.
    """
    if len(stored.missing(most)):
        data, widths = fits.data, fits.problem.widths
        n_always = 0 if data.always is None else int(data.always.sum())
        levels = 1 if data.groups is None else int(np.bincount(data.groups).max())
        size = int(np.minimum(most, widths).sum()) * levels + n_always
        stored = StoredPath.of(
            fits,
            *fits.paths_of_size(size, most),
            np.ones(len(widths), dtype=bool),
            stored.make_records,
            stored.n_factors,
            size,
        )
    chosen, record = stored.submodel(most, row)
    return chosen, stored.first_of_views(most), record


def _path_table(
    fits: FitContext,
    make_records: MakeRecords,
    base: Scores,
    by_views: Scores,
    views: Mask,
    path: SubmodelPath,
    sizes: PathSizes,
    scores: Scores,
) -> list[dict[str, Any]]:
    """Return the records of the base rate, of fewer views, of the sizes, and of whole views."""
    widths = np.array(fits.problem.widths)
    counts, order = fits.view_counts, fits.full.view_order()[0]
    by_count = [int(widths[order[:count]].sum()) for count in counts]
    by_size = [sizes.columns[place] for place in sizes.shown]
    enters = [*entering_columns(path.basis.order[0], by_size, fits.index), None]
    by_size.append(int(widths[views].sum()))
    listed = scores[[*sizes.shown, len(sizes.columns)]]
    return [
        *make_records("nothing", [0], [0], base, [[]]),
        *make_records("views", counts, by_count, by_views, entering_views(order, counts)),
        *make_records("features", [int(views.sum())] * len(by_size), by_size, listed, enters),
    ]
