"""NestedResult: the tables of a nested cross-validation, with one bootstrap for all intervals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, wraps
from pathlib import Path
from typing import Any, TypeVar, cast

import numpy as np
import pandas as pd

from baldur.core.limits import one_thread
from baldur.evaluation.clinical.evaluation import Evaluation, evaluate_predictions
from baldur.evaluation.clinical.held_out import PLATT, Resampled
from baldur.evaluation.clinical.metric_intervals import metric_differences
from baldur.evaluation.design import Comparison
from baldur.evaluation.jobs import ALL, OuterFit, outcomes_of
from baldur.evaluation.metric_table import (
    POOLED,
    MeanOverOutcomes,
    build_table,
    fold_scores,
    format_heading,
    format_table,
    mean_scores,
    prediction_notes,
)
from baldur.evaluation.metrics import AVERAGE
from baldur.evaluation.models import Model
from baldur.evaluation.participants import HAS, participants_frame
from baldur.evaluation.run import FinishedTask
from baldur.evaluation.selected_features import (
    Stability,
    feature_locations,
    few_features_frame,
    few_names_frame,
    image_grids,
    selected_correlations,
    selection_frame,
    stability_of,
    view_shares,
    weights_frame,
)
from baldur.evaluation.significance import compare_pairs, corrected_t_test, permutation_tests
from baldur.evaluation.splits import Fold
from baldur.evaluation.view_additions import AddedValue
from baldur.evaluation.view_sets import added_value_of, finished_comparisons
from baldur.exceptions import InputError
from baldur.preparation.site_effects import COLUMNS

ONE_AT_A_TIME = "fitted to one outcome at a time, with settings selected for each"
"""Note of models that cannot be fitted to a label matrix."""

_MOST_NOTES = 10

F = TypeVar("F", bound=Callable[..., Any])


def _by_outcome(method: F) -> F:
    """Let a method for one outcome also answer for several.

    Tables are put below each other, with the column outcome first; other answers are returned in a
    dictionary by outcome.
    """
    name = method.__name__

    @wraps(method)
    def answer(self: NestedResult, *arguments: Any, **options: Any) -> Any:
        if not self.results:
            return method(self, *arguments, **options)
        # The value of a property, or a method to call.
        answers = {outcome: getattr(result, name) for outcome, result in self.results.items()}
        answers = {k: v(*arguments, **options) if callable(v) else v for k, v in answers.items()}
        if not all(isinstance(table, pd.DataFrame) for table in answers.values()):
            return answers
        return pd.concat(
            [table.assign(outcome=k)[["outcome", *table.columns]] for k, table in answers.items()],
            ignore_index=True,
        )

    return cast(F, answer)


class NestedResult:
    """Result of `nested_cv`: predictions, selected features and tables.

    Of several outcomes, ``result["stroke"]`` is the result of the outcome "stroke" (with the
    classes "no" and "yes"), on the same folds and from the same fits as those of the others. Scores
    and tests are then those of the mean over outcomes, and long tables have the rows of every
    outcome, with the column outcome first. What is no table is a dictionary by outcome.

    Attributes
    ----------
    comparison : Comparison
        What was compared: models, data, folds and metrics.
    jobs : list of FinishedTask
        Results of the jobs of every model on every outer fold.
    results : dict of str to NestedResult
        Result of every outcome; empty for a single one.
    fits : dict of str to list
        Fits of every model on the outer folds.
    failures : dict of str to str
        Models that failed (for some outcome), with the reason of each.
    notes : dict of str to list of str
        Warnings and settings that failed, of every model.
    permuted : dict of str to list of float
        Score (mean over outcomes) of every model with each permutation of the labels.
    no_signal : dict of str to int
        Folds of a model that showed no evidence of signal on held-out data; the most over the
        outcomes.
    classes : list
        Classes, the positive one last; empty in regression.
    data : MultiView
        The samples on which the models were compared.
    truth : ndarray of shape (n_samples,) or (n_samples, n_outcomes)
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

    def __init__(
        self, comparison: Comparison, jobs: Sequence[FinishedTask], column: int = ALL
    ) -> None:
        self.comparison, self.jobs = comparison, list(jobs)
        self.classes, self.data, self.truth = comparison.classes, comparison.data, comparison.y
        self.n_features = comparison.n_features
        self.groups, self.sites = comparison.plan.groups, comparison.plan.sites
        self.results = {
            name: NestedResult(comparison.one_outcome(j), jobs, j)
            for j, name in enumerate(comparison.outcomes)
        }
        self.fits: dict[str, list[OuterFit]] = {}
        self.failures: dict[str, str] = {}
        self.notes: dict[str, list[str]] = {}
        self.permuted: dict[str, list[float]] = {}
        self.no_signal: dict[str, int] = {}
        for model in comparison.models:
            if self.results:
                self._merge_outcomes(model)
            else:
                tasks = [f for f in jobs if f.task.model.name == model.name]
                self._add(model.name, [f for f in tasks if f.task.outcome in (ALL, column)], column)

    def _add(self, model: str, finished: Sequence[FinishedTask], column: int) -> None:
        """Add the results of a model for one outcome, a column of the label matrix or `ALL`."""
        notes = [text for f in finished for o in f.tried for text in o.facts.get("warnings", [])]
        errors = [o.facts["error"] for f in finished for o in f.tried if o.failed]
        notes += [f"a setting failed and was passed over: {error}" for error in errors]
        self.fits[model] = []
        permuted = defaultdict(list)  # Scores of the folds by the number of the permutation
        for f in finished:
            if f.error:
                self.failures.setdefault(model, f.error)
            if f.job is None or f.result is None:
                continue
            notes += f.result.facts.get("warnings", [])
            if f.error:
                continue
            fit = OuterFit.from_result(f.job, f.result, column)
            if f.task.permutation:
                labels = f.task.labels
                truth = labels if labels.ndim == 1 else labels[:, column]
                score = fit.score(self.select_by, truth, self.comparison.n_classes)
                permuted[f.task.permutation].append(score)
            else:
                self.fits[model].append(fit)
        self.permuted[model] = [float(np.nanmean(permuted[b])) for b in sorted(permuted)]
        self.notes[model] = list(dict.fromkeys(notes))[:_MOST_NOTES]
        no_signal = sum(fit.no_signal for fit in self.fits[model])
        if no_signal:
            self.no_signal[model] = no_signal
            self.notes[model].append(
                f"no evidence of signal on held-out data in {no_signal} of "
                f"{len(self.fits[model])} folds; do not interpret the features selected in these "
                "folds"
            )

    def _merge_outcomes(self, model: Model) -> None:
        """Add the results of a model for all outcomes; one that failed for any has no mean.

        A fit to the whole label matrix is listed once, as of one outcome.
        """
        name, results = model.name, list(self.results.values())
        failed = [(k, r.failures[name]) for k, r in self.results.items() if name in r.failures]
        fitted = results[: len(outcomes_of(self.comparison, model))]
        self.fits[name] = [fit for r in fitted for fit in r.fits[name]]
        notes = dict.fromkeys(text for r in results for text in r.notes[name])
        self.notes[name] = list(notes)[:_MOST_NOTES]
        no_signal = max(r.no_signal.get(name, 0) for r in results)
        if no_signal:
            self.no_signal[name] = no_signal
        if failed:
            self.failures[name] = ": ".join(failed[0])
        else:
            self.permuted[name] = np.mean([r.permuted[name] for r in results], axis=0).tolist()

    def __getitem__(self, outcome: str) -> NestedResult:
        if outcome not in self.results:
            raise InputError(f"There is no outcome {outcome!r}; there are {self.outcomes}.")
        return self.results[outcome]

    def __repr__(self) -> str:
        return self.format("text")

    @property
    def outcomes(self) -> list[str]:
        """Names of several outcomes, the columns of the label matrix; empty for a single one."""
        return list(self.results)

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

    @property
    def _test_train_ratio(self) -> float:
        """Mean ratio of test to training rows, for the corrected t-test."""
        return float(np.mean([len(f.test) / len(f.train) for f in self.folds]))

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
        """Return the fits of the models that finished every fold (for every outcome)."""
        return {m: self.fits[m] for m in self.models if m not in self.failures}

    @cached_property
    @_by_outcome
    def predictions(self) -> pd.DataFrame:
        """Held-out predictions of every model."""
        return self.predictions_of(self.finished())

    @cached_property
    @_by_outcome
    def selection(self) -> pd.DataFrame:
        """Selected features of every model over its folds."""
        return selection_frame(self.finished(), self.data, self.n_features, self.weight_classes)

    @cached_property
    @_by_outcome
    def settings(self) -> pd.DataFrame:
        """Settings that the inner folds chose."""
        rows = [
            (model, f.repeat + 1, f.fold + 1, key, value)
            for model, fits in self.fits.items()
            for f in fits
            for key, value in f.setting.items()
        ]
        return pd.DataFrame(rows, columns=["model", "repeat", "fold", "setting", "value"])

    def predictions_of(self, fits: Mapping[str, Sequence[OuterFit]]) -> pd.DataFrame:
        """Return the held-out predictions of some fits, by model, in the form of `predictions`."""
        names = np.array(self.class_names)
        scaled = any(f.scaled for folds in fits.values() for f in folds)
        parts = []
        for model, f in ((model, f) for model, folds in fits.items() for f in folds):
            columns: dict[str, Any] = {
                "model": model,
                "repeat": f.repeat + 1,
                "fold": f.fold + 1,
                "sample": self.data.sample_ids[f.test].astype(str),
            }
            for name, values in (("group", self.groups), ("site", self.sites)):
                if values is not None:
                    columns[name] = values[f.test]
            label, predicted = self.truth[f.test], f.label
            if len(names):
                label, predicted = names[label], names[predicted.astype(int)]
            columns |= {"label": label, "predicted": predicted}
            for c, name in enumerate(names):
                columns[f"p_{name}"] = np.nan if f.proba is None else f.proba[:, c]
            if scaled:
                columns["probability"] = PLATT if f.scaled else "model"
            if f.margin is not None and f.margin.ndim == 1:
                columns["score"] = f.margin
            elif f.margin is not None:
                columns |= {f"score_{name}": f.margin[:, c] for c, name in enumerate(names)}
            parts.append(pd.DataFrame(columns))
        if not parts:
            fixed = ["model", "repeat", "fold", "sample", "label", "predicted"]
            return pd.DataFrame(columns=[*fixed, *(f"p_{name}" for name in names)])
        return pd.concat(parts, ignore_index=True)

    def fold_values(self, model: str, metric: str) -> np.ndarray:
        """Return a metric of one model (mean over outcomes) on the test rows of every outer fold.

        Parameters
        ----------
        model : str
            One that finished.
        metric : str

        Returns
        -------
        ndarray of shape (n_folds,)
        """
        if self.results:
            values = [result.fold_values(model, metric) for result in self.results.values()]
            return np.asarray(np.mean(values, axis=0))
        return self._fold_values(model, metric)

    def _fold_values(self, model: str, metric: str, rows: np.ndarray | None = None) -> np.ndarray:
        """Return a metric in every outer fold, on all of its test rows or some of them."""
        fits = self.fits[model]
        return np.array([f.score(metric, self.truth, len(self.classes), rows) for f in fits])

    # -- scores ----------------------------------------------------------------------------

    @_by_outcome
    def scores(self) -> pd.DataFrame:
        """Return one row per model, repeat and fold, with every metric and features_percent."""
        return self._scores.copy()

    @cached_property
    def _scores(self) -> pd.DataFrame:
        if self.results:
            each = [result._scores for result in self.results.values()]
            return mean_scores(each, list(self.finished()), self.metrics)
        return fold_scores(self.predictions, self.metrics, self.class_names, self.selection)

    def table(self) -> pd.DataFrame:
        """Return every metric of every model: over folds, and pooled with its 95 % interval.

        For each metric the mean over outer folds, its s.d. (with n - 1), the estimate on pooled
        held-out predictions (<metric>_pooled) and the ends of its interval (<metric>_low and
        <metric>_high); then features_percent, folds, note and failure. Every number follows from
        `predictions` and `selection`. Of several outcomes, the rows of the mean come first ("*" in
        the column outcome); people are resampled with all their outcomes for its interval.
        """
        if not self.results:
            return self._table.copy()
        tables = {AVERAGE: self._table, **{k: r._table for k, r in self.results.items()}}
        parts = [table.assign(outcome=k)[["outcome", *table]] for k, table in tables.items()]
        return pd.concat(parts, ignore_index=True)

    @cached_property
    def _table(self) -> pd.DataFrame:
        """The table of one outcome, or of the mean."""
        notes = (
            {
                model.name: (ONE_AT_A_TIME, "")
                for model in self.comparison.models
                if outcomes_of(self.comparison, model) != [ALL]
            }
            if self.results
            else prediction_notes(self.predictions, self.class_names)
        )
        return build_table(
            self._scores,
            self.resampled if self.finished() else None,
            self.metrics,
            self.models,
            notes,
            self.failures,
        )

    @cached_property
    def resampled(self) -> Resampled:
        """Predictions with the bootstrap resamples that the table and all intervals use."""
        if self.results:
            each = [result.resampled for result in self.results.values()]
            return MeanOverOutcomes(each, list(self.finished()))
        return Resampled(self.predictions, self.class_names)

    def format(self, form: str = "text", figures: str = "intervals") -> str:
        """Return the table as it is printed; of several outcomes, the mean and each below it.

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
        table = format_table(self._table, self.metrics, form, figures)
        if not self.results:
            return table
        parts = [format_heading(f"Mean over {len(self.results)} outcomes", form), table]
        for outcome, result in self.results.items():
            parts += ["\n", format_heading(outcome, form), result.format(form, figures)]
        return "".join(parts)

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
        with_some_views = [m.name for m in self.comparison.models if m.views is not None]
        parts = []
        for metric in metrics or [self.select_by]:
            by_model = {model: self.fold_values(model, metric) for model in self.finished()}
            parts.append(compare_pairs(by_model, self._test_train_ratio, metric, with_some_views))
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

        return report_result(self, path, **options)

    def evaluation(self, **keywords: Any) -> Evaluation:
        """Intervals, calibration, usefulness and subgroups on the held-out predictions.

        Of several outcomes: the intervals of the mean ("*" in the column outcome) and of every
        outcome, and the differences between models of the mean; other tables are empty.

        Parameters
        ----------
        **keywords
            As in `evaluate_predictions`: thresholds, prevalence, subgroups and more.

        Returns
        -------
        Evaluation
        """
        if self.results:
            return self._evaluation_of_mean(keywords.get("metrics") or self.metrics)
        draws = {
            k: keywords.pop(k) for k in ("resamples", "level", "random_state") if k in keywords
        }
        with one_thread():
            sample = self.resampled
            if draws:
                sample = Resampled(self.predictions, self.class_names, **draws)
            return evaluate_predictions(sample, **{"metrics": self.metrics, **keywords})

    def _evaluation_of_mean(self, metrics: Sequence[str]) -> Evaluation:
        """Return the intervals of the mean and of every outcome, and differences of the mean."""
        # All outcomes have the same people; for some of them every model may have failed.
        result = next((r for r in self.results.values() if r.finished()), self)
        held = next(iter(result.resampled.models.values()))
        people = (int(held.members.sum()), held.n_units)
        rows = [
            (r["outcome"], r["model"], AVERAGE, m, *(r[f"{m}_{e}"] for e in POOLED), *people, "")
            for r in self.table().to_dict("records")
            for m in metrics
            if r["failure"] == ""
        ]
        columns = [
            "outcome", "model", "site", "metric", "estimate", "low", "high", "people", "units",
            "note",
        ]  # fmt: skip
        intervals = pd.DataFrame(rows, columns=columns)
        differences = empty = pd.DataFrame()
        if self.finished():
            with one_thread():
                differences = metric_differences(self.resampled, metrics=metrics)
        return Evaluation(intervals, differences, empty, empty, empty, empty, empty)

    @_by_outcome
    def added_value(self, baseline: Sequence[str] | None = None, **options: Any) -> AddedValue:
        """Return what each view adds to the views that one has anyway.

        Parameters
        ----------
        baseline : list of str, optional
            Views that one has anyway; default the `baseline_views` of the comparison.
        **options
            As in `baldur.evaluation.view_additions`: model, thresholds and prevalence.

        Returns
        -------
        AddedValue
        """
        views = self.comparison.baseline_views if baseline is None else baseline
        name = options.pop("model", None)
        with one_thread():
            added = added_value_of(
                self.comparison.models,
                self.data,
                self.finished(),
                self.resampled,
                views,
                None if name is None else self.comparison.model(name),
                self._fold_p_value,
                **options,
            )
        added.result = self
        return added

    def _fold_p_value(self, model: str, reference: str, metric: str, rows: np.ndarray) -> float:
        """Return the p-value of the corrected resampled t-test over the folds, on some samples."""
        values, others = (self._fold_values(m, metric, rows) for m in (model, reference))
        return corrected_t_test(values - others, self._test_train_ratio)[2]

    @property
    def has_added_value(self) -> bool:
        """Whether baseline views were named, and `added_value` has anything to compare."""
        return not self.results and self._added_value_checked[0]

    @property
    def added_value_missing(self) -> str:
        """Which comparisons with the baseline views cannot be made, and why; "" if none."""
        texts = {name: result.added_value_missing for name, result in self.results.items()}
        if texts:
            return " ".join(f"{outcome}: {text}" for outcome, text in texts.items() if text)
        return self._added_value_checked[1]

    @cached_property
    def _added_value_checked(self) -> tuple[bool, str]:
        """Whether any view sets can be compared, and which cannot."""
        views = self.comparison.baseline_views
        if not views:
            return False, ""
        _, comparisons, missing = finished_comparisons(
            self.comparison.models, self.data, self.finished(), views
        )
        return bool(comparisons), missing

    # -- features --------------------------------------------------------------------------

    @_by_outcome
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

    @_by_outcome
    def weights(self) -> pd.DataFrame:
        """Return the selected features and weights of every fold: model, repeat, fold, view, ..."""
        return weights_frame(self.finished(), self.data, self.weight_classes)

    @_by_outcome
    def view_shares(self) -> pd.DataFrame:
        """Return the share of every view in every fold: model, repeat, fold, view, selected, ..."""
        return view_shares(self.finished())

    @_by_outcome
    def few_features(self) -> pd.DataFrame:
        """Return how well models with few features predict: model, limit, metric, estimate, ...

        One row for 1, 2, 3, 5, 10 and 20 features at most and for the model as it was selected, of
        every model with submodels (BALDUR), with the AUC and log-loss (R2 and RMSE in regression)
        on the outer folds, their 95 % intervals, and paired differences from the last row.
        """
        with one_thread():
            return few_features_frame(self.finished(), self.predictions_of, self.class_names)

    @_by_outcome
    def few_names(self) -> pd.DataFrame:
        """Return in how many outer folds each feature is among the first few: model, limit, ..."""
        return few_names_frame(self.finished(), self.data)

    @_by_outcome
    def correlations(self) -> pd.DataFrame:
        """Return correlations of the features selected in half of the folds: model, view_a, ..."""
        return selected_correlations(self.selection, self.data)

    @_by_outcome
    def feature_locations(self) -> pd.DataFrame:
        """Return view, feature and ``feature_info`` (position, region) of the selected features."""
        return feature_locations(self.selection, self.data)

    def grids(self) -> dict[str, dict[str, Any]]:
        """Return shape and affine of the grid of every view made of images."""
        return image_grids(self.data)

    # -- samples ---------------------------------------------------------------------------

    @_by_outcome
    def presence(self) -> pd.DataFrame:
        """Return which sample has which view: sample, label, and one column of 0 and 1 per view."""
        names = np.array(self.class_names) if self.classes else None
        label = self.truth if names is None else names[self.truth.astype(int)]
        data = self.data
        has = {f"{HAS}{v}": data.view(v).present.astype(int) for v in data.view_names}
        return pd.DataFrame({"sample": data.sample_ids.astype(str), "label": label, **has})

    @_by_outcome
    def participants(self) -> pd.DataFrame:
        """Return the samples by outcome: view, feature, level, class, kind, count, mean, sd, ..."""
        return participants_frame(self.data, self.presence()["label"].to_numpy(), self.classes)

    @_by_outcome
    def harmonisation(self) -> pd.DataFrame:
        """Return what site harmonisation changed in every outer fold: repeat, fold, view, ...

        Empty without a `SiteHarmoniser` among the steps of the preparation, whose `report_` has
        these columns. Sites are harmonised before any model, so the figures hold for every model.
        """
        finished = self.finished()
        # A model with some of the views has the figures of these only.
        with_all_views = [n for n in finished if self.comparison.model(n).views is None]
        fits = finished[(with_all_views or list(finished))[0]] if finished else []
        rows = [
            {"repeat": f.repeat + 1, "fold": f.fold + 1, **row}
            for f in fits
            for row in f.harmonisation
        ]
        return pd.DataFrame(rows, columns=["repeat", "fold", *COLUMNS])
