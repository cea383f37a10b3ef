"""NestedResult: the tables of a nested cross-validation, with one bootstrap for all intervals."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.threads import one_thread
from baldur.evaluation.clinical.evaluation import Evaluation, evaluate_predictions
from baldur.evaluation.clinical.held_out import Resampled
from baldur.evaluation.design import Comparison
from baldur.evaluation.fitted_model import feature_locations, image_grids, selected_correlations
from baldur.evaluation.formatting import format_table
from baldur.evaluation.job_results import JobResults, OuterFit
from baldur.evaluation.metric_table import (
    build_table,
    compare_pairs,
    fold_scores,
    permutation_tests,
    pooled_intervals,
    prediction_notes,
)
from baldur.evaluation.predictions import (
    few_features_frame,
    few_names_frame,
    participants_frame,
    predictions_frame,
)
from baldur.evaluation.selected_features import (
    Stability,
    selection_frame,
    stability_of,
    view_shares,
    weights_frame,
)
from baldur.evaluation.splits import Fold
from baldur.evaluation.view_additions import AddedValue, added_value_of, check_view_sets
from baldur.preparation.site_effects import COLUMNS


class BaseResult(ABC):
    """Names, folds, tests between models and the page of a comparison.

    `NestedResult` and `MultilabelResult` add the scores: of one outcome, or means over outcomes.
    """

    comparison: Comparison  # What was compared: models, data, folds and metrics
    permuted: dict[str, list[float]]  # Score of every model with each permutation of the labels

    @property
    def models(self) -> list[str]:
        """Names of the models, the rows of the table."""
        return [m.name for m in self.comparison.models]

    @property
    def metrics(self) -> list[str]:
        """Metrics that are columns of the table."""
        return self.comparison.metrics

    @property
    def select_by(self) -> str:
        """Metric that selected settings on the inner folds."""
        return self.comparison.metric

    @cached_property
    def folds(self) -> list[Fold]:
        """The outer folds of the comparison, which all outcomes share."""
        return self.comparison.folds

    @abstractmethod
    def finished(self) -> Collection[str]:
        """Return the models that finished every fold."""

    @abstractmethod
    def fold_values(self, model: str, metric: str) -> np.ndarray:
        """Return a metric of one model on the test rows of every outer fold."""

    @abstractmethod
    def format(self, form: str = "text", figures: str = "intervals") -> str:
        """Return the table as it is printed."""

    def __repr__(self) -> str:
        return self.format("text")

    def compare(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """Compare every pair of models by the corrected resampled t-test, Holm-adjusted.

        Of several outcomes, the mean over outcomes is compared.

        Parameters
        ----------
        metrics : list of str, optional
            Default: the metric settings were selected by. Pairs are adjusted within each, those
            of models with all views apart from the others.

        Returns
        -------
        DataFrame
            metric, model_a, model_b, difference, standard_error, t, df, p, p_holm.
        """
        ratio = float(np.mean([len(f.test) / len(f.train) for f in self.folds]))
        some = self.comparison.with_some_views
        parts = []
        for metric in metrics or [self.select_by]:
            by_model = {model: self.fold_values(model, metric) for model in self.finished()}
            parts.append(compare_pairs(by_model, ratio, metric, some))
        return pd.concat(parts, ignore_index=True)

    def permutation_test(self) -> pd.DataFrame:
        """Return score, mean permuted score and p-value of every model with permutations.

        p is adjusted over the models by Holm's rule in the column p_holm. Of several outcomes, the
        scores are means over outcomes, and the outcomes of a sample are permuted together.
        """
        scores = {model: self.fold_values(model, self.select_by) for model in self.finished()}
        return permutation_tests(scores, self.permuted, self.select_by)

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one page about this comparison: the answer, figures, tables and methods.

        Of several outcomes, the page has the mean over outcomes and a short section for each;
        ``result["stroke"].report`` writes the complete page of one outcome.

        Parameters
        ----------
        path : str or Path
            HTML file to write; it needs no network and no other file.
        **options
            As in `baldur.report.report_result`: model, people, title.

        Returns
        -------
        Path
            The file.
        """
        from baldur.report import report_result

        result: Any = self
        return report_result(result, path, **options)


class NestedResult(BaseResult):
    """Result of `nested_cv`: predictions, selected features and tables.

    Attributes
    ----------
    comparison : Comparison
        What was compared: models, data, folds and metrics.
    jobs : JobResults
        What the jobs gave: fits, failures, notes and scores with permuted labels.
    fits : dict of str to list
        Fits of every model on the outer folds.
    failures : dict of str to str
        Models that failed, with the reason of each.
    notes : dict of str to list of str
        Warnings and settings that failed, of every model.
    permuted : dict of str to list of float
        Score of every model with each permutation of the labels.
    no_signal : dict of str to int
        Folds of a model that showed no evidence of signal on held-out data.
    classes : list
        Classes, the positive one last; empty in regression.
    data : MultiView
        The samples on which the models were compared.
    truth : ndarray of shape (n_samples,)
        Class codes or numbers of all samples.
    n_features : dict of str to int
        Features of each view, without the reference levels of categories.
    groups, sites : ndarray of shape (n_samples,) or None
        Group and site of every sample, where these were given.
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

    def __init__(self, comparison: Comparison, jobs: JobResults) -> None:
        self.comparison, self.jobs = comparison, jobs
        self.fits, self.failures, self.notes = jobs.fits, jobs.failures, jobs.notes
        self.permuted, self.no_signal = jobs.permuted, jobs.no_signal
        self.classes, self.data, self.truth = comparison.classes, comparison.data, comparison.y
        self.n_features = comparison.n_features
        self.groups, self.sites = comparison.plan.groups, comparison.plan.sites
        self.predictions = self.predictions_of(self.finished())
        self.selection = selection_frame(
            self.finished(), self.data, self.n_features, self.weight_classes
        )
        rows = [
            (model, f.repeat + 1, f.fold + 1, key, value)
            for model, fits in self.fits.items()
            for f in fits
            for key, value in f.setting.items()
        ]
        self.settings = pd.DataFrame(rows, columns=["model", "repeat", "fold", "setting", "value"])

    @property
    def class_names(self) -> list[str]:
        """Classes as text, as the columns of the tables name them."""
        return [str(c) for c in self.classes]

    @property
    def weight_classes(self) -> list[str]:
        """Classes that have weights: the positive of two, each of several, or none ("")."""
        names = self.class_names
        return names if len(names) > 2 else names[-1:] or [""]

    def finished(self) -> dict[str, list[OuterFit]]:
        """Return the fits of the models that finished every fold."""
        return {m: self.fits[m] for m in self.models if m not in self.failures}

    def predictions_of(self, fits: Mapping[str, Sequence[OuterFit]]) -> pd.DataFrame:
        """Return the held-out predictions of some fits, by model, in the form of `predictions`."""
        return predictions_frame(fits, self.data, self.truth, self.classes, self.groups, self.sites)

    def fold_values(self, model: str, metric: str) -> np.ndarray:
        """Return a metric of one model on the test rows of every outer fold.

        Parameters
        ----------
        model : str
            One that finished.
        metric : str

        Returns
        -------
        ndarray of shape (n_folds,)
        """
        fits = self.fits[model]
        return np.array([f.score(metric, self.truth, len(self.classes)) for f in fits])

    # -- scores ----------------------------------------------------------------------------

    def scores(self) -> pd.DataFrame:
        """Return one row per model, repeat and fold, with every metric and features_percent."""
        return self._scores.copy()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        return fold_scores(self.predictions, self.metrics, self.class_names, self.selection)

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
            self._scores,
            pooled_intervals(self.resampled, self.metrics) if len(self.predictions) else {},
            self.metrics,
            self.models,
            failures=self.failures,
            notes=prediction_notes(self.predictions, self.class_names),
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
        draws = {
            k: keywords.pop(k) for k in ("resamples", "level", "random_state") if k in keywords
        }
        with one_thread():
            sample = self.resampled
            if draws:
                sample = Resampled(self.predictions, self.class_names, **draws)
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
            added = added_value_of(
                self.comparison, self.finished(), self.resampled, views, **options
            )
        added.result = self
        return added

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
