"""AddedValue: what each view adds, from a result or from data in one call."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.held_out import Resampled
from baldur.evaluation.design import Comparison
from baldur.evaluation.jobs import OuterFit
from baldur.evaluation.metric_table import corrected_t_test
from baldur.evaluation.models import Model
from baldur.evaluation.selected_features import view_shares
from baldur.evaluation.view_differences import ViewComparison, compare_view_sets, view_comparisons
from baldur.evaluation.view_sets import check_views, model_for_added_value, same_model
from baldur.exceptions import InputError
from baldur.views.validate import some


@dataclass
class AddedValue:
    """What each view adds to the views that one has anyway.

    Attributes
    ----------
    table : DataFrame
        One row for each question and metric: question ("baseline", "with", "all", "alone" and
        "without": how well do these views predict; "added": the view added to the baseline; "all
        added": all other views added to it; "beyond the others": the view added to all others),
        view, model and reference (the rows with and without it), metric, threshold (of a net
        benefit), people (on whom), of_people (all), units, value, value_low and value_high (with
        the view), reference_value, difference, low and high (its 95 % interval), standard_error,
        detectable (the increase that would be shown with a probability of 80 %), p and p_holm
        (corrected resampled t-test over the folds), outcome ("better", "worse", "not shown" or
        "not known") and note.
    reclassification : DataFrame
        question, view, model, reference, threshold, class, people, up, down, unchanged (people,
        averaged over repeats), net (share that moves to the right side), low, high.
    shares : DataFrame
        view, share: the mean share of each view in the variance of the linear predictor of the
        model with all views, where it has one. This is what a view contributes, not what it adds.
    baseline : tuple of str
        Views that one has anyway.
    model : str
        Name of the model.
    result : NestedResult
        The comparison that it was computed from.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(80, {"clinical": 3, "genes": 20}, random_state=0)
    >>> result = nested_cv({"Ridge logistic": {"C": [0.1]}}, sim.data, sim.target, outer=2, inner=2,
    ...                    baseline_views=["clinical"])
    >>> added = result.added_value()
    >>> added.baseline, added.table["question"].unique().tolist()
    (('clinical',), ['baseline', 'all', 'alone', 'added', 'beyond the others'])
    """

    table: pd.DataFrame
    reclassification: pd.DataFrame
    shares: pd.DataFrame
    baseline: tuple[str, ...]
    model: str
    result: Any = field(default=None, repr=False)

    def summary(self) -> str:
        """Return one sentence for each comparison, and what the intervals include.

        Returns
        -------
        str
        """
        from baldur.report.added_value import added_value_text

        return added_value_text(self)

    def plot(self, ax: Any = None, **options: Any) -> Any:
        """Draw how well each view set predicts, and what each view adds.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw.
        **options
            As in `baldur.plots.Display.plot`.

        Returns
        -------
        baldur.plots.AddedValueDisplay
        """
        from baldur.plots import AddedValueDisplay

        return AddedValueDisplay(self.table).plot(ax, **options)

    def __str__(self) -> str:
        return self.summary()


def added_value_of(
    comparison: Comparison,
    fits: Mapping[str, Sequence[OuterFit]],
    sample: Resampled,
    baseline: Sequence[str],
    *,
    model: str | None = None,
    thresholds: Sequence[float] | None = None,
    prevalence: float | None = None,
) -> AddedValue:
    """Compute what each view adds, from the rows of a comparison with different views."""
    data = comparison.data
    base = check_views(baseline, data.view_names, "baseline")
    possible, missing = check_view_sets(comparison, fits, base, model)
    if not possible:
        raise InputError(missing)
    whole, rows, _ = _view_set_rows(comparison, fits, model)
    place = pd.Index(data.sample_ids.astype(str))
    people = place.get_indexer(pd.Index(next(iter(sample.models.values())).people.astype(str)))
    present = {view: data.view(view).present[people] for view in data.view_names}
    table, reclassification = compare_view_sets(
        sample,
        view_comparisons(rows, base, present),
        thresholds=thresholds,
        prevalence=prevalence,
        fold_test=_fold_test(comparison, fits, people),
    )
    row = rows.get(tuple(data.view_names))
    shares = view_shares({} if row is None else {row: fits[row]})
    mean = shares.groupby("view", sort=False)["variance_share"].mean().reset_index(name="share")
    return AddedValue(table, reclassification, mean.dropna(), base, whole.name)


def check_view_sets(
    comparison: Comparison,
    finished: Collection[str],
    baseline: Sequence[str],
    model: str | None = None,
) -> tuple[bool, str]:
    """Say whether any two view sets of a model can be compared, and what is missing."""
    whole, rows, failed = _view_set_rows(comparison, finished, model)
    nobody = {view: np.zeros(0, dtype=bool) for view in comparison.data.view_names}
    possible = any(views.reference for views in view_comparisons(rows, baseline, nobody))
    why = f"because these models failed: {some(failed)}" if failed else ""
    if possible:
        return True, f"Some comparisons of view sets are missing, {why}." if failed else ""
    nothing = f"There are no two view sets of {whole.name!r} to compare"
    if failed:
        return False, f"{nothing}, {why}."
    return False, f"{nothing}; run nested_cv with baseline_views={list(baseline)}."


def _view_set_rows(
    comparison: Comparison, finished: Collection[str], name: str | None
) -> tuple[Model, dict[tuple[str, ...], str], list[str]]:
    """Return the model with all views, the row of each of its view sets, and those that failed."""
    models, data = comparison.models, comparison.data
    whole = model_for_added_value(models) if name is None else comparison.model(name)
    alike = [model for model in models if same_model(model, whole, data)]
    rows: dict[tuple[str, ...], str] = {}
    for model in alike:
        if model.name in finished:
            rows.setdefault(model.views or tuple(data.view_names), model.name)
    return whole, rows, [model.name for model in alike if model.name not in finished]


def _fold_test(
    comparison: Comparison, fits: Mapping[str, Sequence[OuterFit]], people: np.ndarray
) -> Callable[[ViewComparison, str], float]:
    """Return the corrected resampled t-test over the folds, on the people of a comparison."""
    y = comparison.y
    ratio = float(np.mean([len(f.test) / len(f.train) for f in comparison.folds]))

    def scores(name: str, metric: str, chosen: np.ndarray) -> np.ndarray:
        n_classes = comparison.n_classes
        return np.array([f.score(metric, y, n_classes, chosen) for f in fits[name]], dtype=float)

    def p_value(views: ViewComparison, metric: str) -> float:
        chosen = np.zeros(len(y), dtype=bool)
        chosen[people] = views.people
        difference = scores(views.model, metric, chosen) - scores(views.reference, metric, chosen)
        return corrected_t_test(difference[~np.isnan(difference)], ratio)[2]

    return p_value
