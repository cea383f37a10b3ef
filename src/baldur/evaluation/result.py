"""NestedResult: the tables of a nested cross-validation, with one bootstrap for all intervals."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.added_value.study import AddedValue, added_value_of, check_view_sets
from baldur.evaluation.clinical.evaluation import Evaluation, evaluate_predictions
from baldur.evaluation.clinical.resampled import Resampled
from baldur.evaluation.nested_fits import NestedFits
from baldur.evaluation.selection.feature_locations import (
    feature_locations,
    image_grids,
    selected_correlations,
)
from baldur.evaluation.selection.features import (
    Stability,
    percent_selected,
    stability_of,
    view_shares,
    weights_frame,
)
from baldur.evaluation.tables.few_features import few_features_frame, few_names_frame
from baldur.evaluation.tables.formatting import format_table
from baldur.evaluation.tables.participants import participants_frame
from baldur.evaluation.tables.table import build_table, fold_scores
from baldur.evaluation.threads import one_thread
from baldur.preparation.steps.site_report import COLUMNS


class NestedResult(NestedFits):
    """Result of `nested_cv`: predictions, selected features and tables.

    Attributes
    ----------
    comparison : Comparison
        What was compared: models, data, folds and metrics.
    jobs : JobResults
        What the jobs gave: fits, failures, notes and scores with permuted labels.
    predictions : DataFrame
        model, repeat, fold, sample, group and site where given, label, predicted; in classification
        one column p_<class> per class, and decision scores (score, or score_<class>) where a model
        has no probabilities; "platt" in the column probability marks those from Platt scaling.
    selection : DataFrame
        model, view, feature, class, n_features, frequency, mean_weight (per standard deviation),
        mean_raw_weight (per unit of the input), sign_agreement, folds. The row
        of a view with feature "*" stands for all its features.
    settings : DataFrame
        model, repeat, fold, setting, value: what the inner folds chose.

    Examples
    --------
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(80, {"a": 5, "b": 10}, random_state=0)
    >>> result = nested_cv({"Ridge logistic": {"C": [0.1]}}, sim.data, sim.target, outer=2, inner=2)
    >>> result.table()[["model", "folds"]]
                model  folds
    0  Ridge logistic      2
    >>> result.predictions.columns.tolist()
    ['model', 'repeat', 'fold', 'sample', 'label', 'predicted', 'p_0', 'p_1']
    """

    # -- scores ----------------------------------------------------------------------------

    def scores(self) -> pd.DataFrame:
        """Return one row per model, repeat and fold, with every metric and features_percent."""
        frame = fold_scores(self.predictions, self.metrics, self.class_names)
        percent = percent_selected(self.selection)
        frame["position"] = frame.groupby("model", sort=False).cumcount()
        frame = frame.merge(percent, on=["model", "position"], how="left", sort=False)
        return frame.drop(columns="position")

    def table(self) -> pd.DataFrame:
        """Return every metric of every model: over folds, and pooled with its 95 % interval.

        For each metric the mean over outer folds, its s.d. (with n - 1), the estimate on pooled
        held-out predictions (<metric>_pooled) and the ends of its interval (<metric>_low and
        <metric>_high); then features_percent, folds, note and failure. Every number follows from
        `predictions` and `selection`.
        """
        return self._table.copy()

    @cached_property
    def _table(self) -> pd.DataFrame:
        return build_table(
            self.predictions,
            self.selection,
            self.metrics,
            self.class_names,
            models=self.models,
            failures=self.failures,
            sample=self.resampled if len(self.predictions) else None,
        )

    @cached_property
    def resampled(self) -> Resampled:
        """Predictions with the bootstrap resamples that the table and all intervals use."""
        return Resampled(self.predictions, self.class_names)

    def format(self, form: str = "text", figures: str = "intervals") -> str:
        """Return the table as it is printed.

        Parameters
        ----------
        form : {"text", "markdown", "latex"}, default="text"
            For the terminal, a README, or a paper.
        figures : {"intervals", "folds"}, default="intervals"
            Estimates on pooled predictions with their 95 % intervals, or mean and s.d. over folds.

        Returns
        -------
        str
        """
        return format_table(self.table(), self.metrics, form, figures)

    def evaluation(self, **keywords: Any) -> Evaluation:
        """Intervals, calibration, usefulness and subgroups on the held-out predictions.

        Parameters
        ----------
        **keywords
            As in `evaluate_predictions`: thresholds, prevalence, subgroups and more.

        Returns
        -------
        Evaluation
        """
        own = {k: keywords.pop(k) for k in ("resamples", "level", "random_state") if k in keywords}
        with one_thread():
            sample = self.resampled
            if own:
                sample = Resampled(self.predictions, self.class_names, **own)
            return evaluate_predictions(sample, **{"metrics": self.metrics, **keywords})

    def added_value(self, baseline: Sequence[str] | None = None, **options: Any) -> AddedValue:
        """Return what each view adds to the views that one has anyway.

        Parameters
        ----------
        baseline : list of str, optional
            Views that one has anyway; default the `baseline_views` of the comparison.
        **options
            As in `baldur.evaluation.added_value`: model, thresholds and prevalence.

        Returns
        -------
        AddedValue
        """
        views = self.comparison.baseline_views if baseline is None else baseline
        with one_thread():
            found = added_value_of(
                self.comparison, self.finished(), self.resampled, views, **options
            )
        found.result = self
        return found

    @property
    def has_added_value(self) -> bool:
        """Whether baseline views were named, and `added_value` has anything to compare."""
        return self._checked_view_sets[0]

    @property
    def added_value_missing(self) -> str:
        """Which comparisons with the baseline views cannot be made, and why; "" if none."""
        return self._checked_view_sets[1]

    @cached_property
    def _checked_view_sets(self) -> tuple[bool, str]:
        views = self.comparison.baseline_views
        return check_view_sets(self.comparison, self.finished(), views) if views else (False, "")

    # -- features --------------------------------------------------------------------------

    def stability(self, level: float = 0.95) -> Stability:
        """Return Nogueira's stability of the selected features over the folds.

        Parameters
        ----------
        level : float, default=0.95
            Coverage of the interval of Nogueira's index.

        Returns
        -------
        Stability
        """
        return stability_of(self.finished(), self.data, self.n_features, self.selection, level)

    def weights(self) -> pd.DataFrame:
        """Return the selected features and weights of every fold: model, repeat, fold, view, ..."""
        return weights_frame(self.finished(), self.data, self.weight_classes)

    def view_shares(self) -> pd.DataFrame:
        """Return the share of every view in every fold: model, repeat, fold, view, selected, ..."""
        return view_shares(self.finished())

    def few_features(self) -> pd.DataFrame:
        """Return how well models with few features predict: model, limit, metric, estimate, ...

        One row for 1, 2, 3, 5, 10 and 20 features at most and for the model as it was selected, of
        every model with submodels (BALDUR), with the AUC and log-loss (R2 and RMSE in regression)
        on the outer folds, their 95 % intervals, and paired differences from the last row.
        """
        return self._few_features.copy()

    @cached_property
    def _few_features(self) -> pd.DataFrame:
        with one_thread():
            return few_features_frame(self.finished(), self.predictions_of, self.class_names)

    def few_names(self) -> pd.DataFrame:
        """Return in how many outer folds each feature is among the first few: model, limit, ..."""
        return few_names_frame(self.finished(), self.data)

    def correlations(self) -> pd.DataFrame:
        """Return correlations of the features selected in half of the folds: model, view_a, ..."""
        return selected_correlations(self.selection, self.data)

    def feature_locations(self) -> pd.DataFrame:
        """Return view, feature and ``feature_info`` (position, region) of the selected features."""
        return feature_locations(self.selection, self.data)

    def grids(self) -> dict[str, dict[str, Any]]:
        """Return shape and affine of the grid of every view made of images."""
        return image_grids(self.data)

    # -- samples ---------------------------------------------------------------------------

    def presence(self) -> pd.DataFrame:
        """Return which sample has which view: sample, label, and one column of 0 and 1 per view."""
        names = np.array(self.class_names) if self.classes else None
        label = self.truth if names is None else names[self.truth.astype(int)]
        data = self.data
        has = {f"has_{v}": data.view(v).present.astype(int) for v in data.view_names}
        return pd.DataFrame({"sample": data.sample_ids.astype(str), "label": label, **has})

    def participants(self) -> pd.DataFrame:
        """Return the samples by outcome: view, feature, level, class, kind, count, mean, sd, ..."""
        return participants_frame(self.data, self.presence()["label"].to_numpy(), self.classes)

    def harmonisation(self) -> pd.DataFrame:
        """Return what site harmonisation changed in every outer fold: repeat, fold, view, ...

        Empty without a `SiteHarmoniser` among the steps of the preparation, whose `report_` has
        these columns. Sites are harmonised before any model, so the figures hold for every model.
        """
        finished = self.finished()
        # A model with some of the views has the figures of these only.
        whole = [n for n in finished if self.comparison.model(n).views is None]
        fits = finished[(whole or list(finished))[0]] if finished else []
        rows = [
            {"repeat": f.repeat + 1, "fold": f.fold + 1, **row}
            for f in fits
            for row in f.harmonisation
        ]
        return pd.DataFrame(rows, columns=["repeat", "fold", *COLUMNS])
