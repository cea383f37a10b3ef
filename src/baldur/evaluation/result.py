"""NestedResult: predictions, tables, selected features and tests of a nested cross-validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.added_value.study import AddedValue, added_value_of
from baldur.evaluation.clinical.evaluation import Evaluation, evaluate_predictions
from baldur.evaluation.clinical.resampled import Resampled
from baldur.evaluation.design import Comparison
from baldur.evaluation.engine.job_results import JobResults, OuterFit
from baldur.evaluation.selection.feature_locations import (
    feature_locations,
    image_grids,
    selected_correlations,
)
from baldur.evaluation.selection.features import (
    Stability,
    percent_selected,
    selection_frame,
    stability_of,
    view_shares,
    weights_frame,
)
from baldur.evaluation.splits import Fold
from baldur.evaluation.tables.few_features import few_features_frame, few_names_frame
from baldur.evaluation.tables.formatting import format_table
from baldur.evaluation.tables.model_tests import compare_pairs, permutation_tests
from baldur.evaluation.tables.participants import participants_frame
from baldur.evaluation.tables.predictions import predictions_frame
from baldur.evaluation.tables.table import build_table, fold_scores
from baldur.evaluation.threads import one_thread
from baldur.hooks import call_hook
from baldur.preparation.steps.site_report import COLUMNS
from baldur.views import MultiView

__all__ = ["NestedResult"]


@dataclass
class NestedResult:
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

    comparison: Comparison
    jobs: JobResults

    def __post_init__(self) -> None:
        self.predictions = predictions_frame(
            self.finished(), self.data, self.truth, self.classes, self.groups, self.sites
        )
        self.selection = selection_frame(
            self.finished(), self.data, self.n_features, self._readings()
        )
        rows = [
            (model, f.repeat + 1, f.fold + 1, key, value)
            for model, fits in self.fits.items()
            for f in fits
            for key, value in f.setting.items()
        ]
        self.settings = pd.DataFrame(rows, columns=["model", "repeat", "fold", "setting", "value"])

    # -- the comparison --------------------------------------------------------------------

    @property
    def models(self) -> list[str]:
        """Names of the models, the rows of the table."""
        return [m.name for m in self.comparison.models]

    @property
    def classes(self) -> list[Any]:
        """Classes, the positive one last; empty in regression."""
        return self.comparison.classes

    @property
    def truth(self) -> np.ndarray:
        """Class codes or numbers of all samples."""
        return self.comparison.y

    @property
    def data(self) -> MultiView:
        """The samples on which the models were compared."""
        return self.comparison.data

    @property
    def n_features(self) -> dict[str, int]:
        """Features of each view, without the reference levels of categories."""
        return self.comparison.n_features

    @cached_property
    def folds(self) -> list[Fold]:
        """The outer folds of the comparison."""
        return self.comparison.folds

    @property
    def metrics(self) -> list[str]:
        """Metrics that are columns of the table."""
        return self.comparison.metrics

    @property
    def select_by(self) -> str:
        """Metric that selected settings on the inner folds."""
        return self.comparison.metric

    @property
    def groups(self) -> np.ndarray | None:
        """Group of every sample, where groups were given."""
        return self.comparison.plan.groups

    @property
    def sites(self) -> np.ndarray | None:
        """Site of every sample, where sites were given."""
        return self.comparison.plan.sites

    @property
    def fits(self) -> dict[str, list[OuterFit]]:
        """Fits of every model on the outer folds."""
        return self.jobs.fits

    @property
    def failures(self) -> dict[str, str]:
        """Models that failed, with the reason of each."""
        return self.jobs.failures

    @property
    def notes(self) -> dict[str, list[str]]:
        """Warnings and settings that failed, of every model."""
        return self.jobs.notes

    @property
    def permuted(self) -> dict[str, list[float]]:
        """Score of every model with each permutation of the labels."""
        return self.jobs.permuted

    @property
    def no_signal(self) -> dict[str, int]:
        """Folds of a model that showed no evidence of signal on held-out data."""
        return self.jobs.no_signal

    def __repr__(self) -> str:
        return self.format("text")

    def finished(self) -> dict[str, list[OuterFit]]:
        """Return the fits of the models that finished every fold."""
        return {m: self.fits[m] for m in self.models if m not in self.failures}

    # -- tables ----------------------------------------------------------------------------

    def scores(self) -> pd.DataFrame:
        """Return one row per model, repeat and fold, with every metric and features_percent."""
        frame = fold_scores(self.predictions, self.metrics, [str(c) for c in self.classes])
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
            [str(c) for c in self.classes],
            models=self.models,
            failures=self.failures,
            sample=self.resampled if len(self.predictions) else None,
        )

    @cached_property
    def resampled(self) -> Resampled:
        """Predictions with the bootstrap resamples that the table and all intervals use."""
        return Resampled(self.predictions, [str(c) for c in self.classes])

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

    def compare(self, metrics: list[str] | None = None) -> pd.DataFrame:
        """Compare every pair of models by the corrected resampled t-test, Holm-adjusted.

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

    def permutation_test(self) -> pd.DataFrame:
        """Return score, mean permuted score and p-value of every model with permutations.

        p is adjusted over the models by Holm's rule in the column p_holm.
        """
        scores = {model: self.fold_values(model, self.select_by) for model in self.finished()}
        return permutation_tests(scores, self.permuted, self.select_by)

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
                sample = Resampled(self.predictions, [str(c) for c in self.classes], **own)
            return evaluate_predictions(sample, **{"metrics": self.metrics, **keywords})

    def few_features(self) -> pd.DataFrame:
        """Return how well models with few features predict: model, limit, metric, estimate, ...

        One row for 1, 2, 3, 5, 10 and 20 features at most and for the model as it was selected, of
        every model with submodels (BALDUR), with the AUC and log-loss (R2 and RMSE in regression)
        on the outer folds, their 95 % intervals, and paired differences from the last row.
        """
        return self._few_features.copy()

    @cached_property
    def _few_features(self) -> pd.DataFrame:
        def predictions(fits: Mapping[str, Sequence[OuterFit]]) -> pd.DataFrame:
            return predictions_frame(
                fits, self.data, self.truth, self.classes, self.groups, self.sites
            )

        with one_thread():
            return few_features_frame(self.finished(), predictions, [str(c) for c in self.classes])

    def few_names(self) -> pd.DataFrame:
        """Return in how many outer folds each feature is among the first few: model, limit, ..."""
        return few_names_frame(self.finished(), self.data)

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

    def report(self, path: str | Path, **options: Any) -> Path:
        """Write one page about this comparison: the answer, figures, tables and methods.

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
        made: Path = call_hook("report_result", self, path, **options)
        return made

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
        return weights_frame(self.finished(), self.data, self._readings())

    def view_shares(self) -> pd.DataFrame:
        """Return the share of every view in every fold: model, repeat, fold, view, selected, ..."""
        return view_shares(self.finished())

    def presence(self) -> pd.DataFrame:
        """Return which sample has which view: sample, label, and one column of 0 and 1 per view."""
        names = np.array([str(c) for c in self.classes]) if self.classes else None
        label = self.truth if names is None else names[self.truth.astype(int)]
        data = self.data
        has = {f"has_{v}": data.view(v).present.astype(int) for v in data.view_names}
        return pd.DataFrame({"sample": data.sample_ids.astype(str), "label": label, **has})

    def participants(self) -> pd.DataFrame:
        """Return the samples by outcome: view, feature, level, class, kind, count, mean, sd, ..."""
        return participants_frame(self.data, self.presence()["label"].to_numpy(), self.classes)

    def correlations(self) -> pd.DataFrame:
        """Return correlations of the features selected in half of the folds: model, view_a, ..."""
        return selected_correlations(self.selection, self.data)

    def feature_locations(self) -> pd.DataFrame:
        """Return view, feature and ``feature_info`` (position, region) of the selected features."""
        return feature_locations(self.selection, self.data)

    def grids(self) -> dict[str, dict[str, Any]]:
        """Return shape and affine of the grid of every view made of images."""
        return image_grids(self.data)

    def _readings(self) -> list[str]:
        """Return the classes of the weights: the positive of two, each of several, or none."""
        names = [str(c) for c in self.classes]
        return names if len(names) > 2 else names[-1:] or [""]
