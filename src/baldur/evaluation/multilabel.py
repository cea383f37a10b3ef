"""MultilabelResult: the result of every label of a label matrix, and the mean over the labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.threads import one_thread
from baldur.evaluation.clinical.bootstrap import Draws
from baldur.evaluation.clinical.held_out import Resampled, rows_behind, scale_of
from baldur.evaluation.clinical.metric_intervals import metric_differences
from baldur.evaluation.design import Comparison
from baldur.evaluation.formatting import format_heading, format_table
from baldur.evaluation.job_results import JobResults, OuterFit
from baldur.evaluation.jobs import ALL, outcomes_of
from baldur.evaluation.label_matrix import AVERAGE
from baldur.evaluation.metric_table import FEATURES, POOLED, build_table
from baldur.evaluation.result import BaseResult, NestedResult
from baldur.evaluation.view_additions import AddedValue
from baldur.exceptions import InputError

ONE_AT_A_TIME = "fitted to one outcome at a time, with settings selected for each"
"""Note of models that cannot be fitted to a label matrix."""


class MultilabelResult(BaseResult):
    """Result of `nested_cv` for a label matrix: one result per outcome, and their mean.

    ``result["stroke"]`` is the `NestedResult` of the outcome "stroke" (with the classes "no" and
    "yes"), on the same folds and from the same fits as those of the other outcomes.

    Attributes
    ----------
    comparison : Comparison
        What was compared.
    jobs : list of JobResults
        What the jobs gave, of each outcome.
    outcomes : list of str
        Names of the outcomes, the columns of the label matrix.
    results : dict of str to NestedResult
        Result of every outcome.
    failures : dict of str to str
        Models without a mean, because they failed for an outcome, with the reason of each.
    notes : dict of str to list of str
        Warnings and settings that failed, of every model over all outcomes, each once.
    no_signal : dict of str to int
        Folds of a model without evidence of signal, the most over the outcomes.
    permuted : dict of str to list of float
        Mean over outcomes of the score of every finished model with each permutation.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluation import nested_cv
    >>> sim = make_multiview(60, {"a": 5}, random_state=0)
    >>> labels = pd.DataFrame({"stroke": sim.target, "fall": [0, 1] * 30})
    >>> result = nested_cv(["Dummy"], sim.data, labels, outer=2, inner=2)
    >>> result.outcomes, result["stroke"].predictions.shape[0]
    (['stroke', 'fall'], 60)
    """

    def __init__(self, comparison: Comparison, jobs: list[JobResults]) -> None:
        self.comparison, self.jobs = comparison, jobs
        self.outcomes = list(comparison.outcomes)
        self.results = {
            name: NestedResult(comparison.one_outcome(j), jobs[j])
            for j, name in enumerate(self.outcomes)
        }
        self.failures: dict[str, str] = {}
        self.no_signal: dict[str, int] = {}
        merged = JobResults(fits={}, notes={model: [] for model in self.models})
        for outcome, result in self.results.items():
            for model, why in result.failures.items():
                self.failures.setdefault(model, f"{outcome}: {why}")
            for model, notes in result.notes.items():
                for text in notes:
                    merged.note(model, text)
            for model, k in result.no_signal.items():
                self.no_signal[model] = max(k, self.no_signal.get(model, 0))
        self.notes = merged.notes
        self.permuted = {
            model: np.mean([r.permuted[model] for r in self.results.values()], axis=0).tolist()
            for model in self.finished()
        }

    def __getitem__(self, outcome: str) -> NestedResult:
        if outcome not in self.results:
            raise InputError(f"There is no outcome {outcome!r}; there are {self.outcomes}.")
        return self.results[outcome]

    @property
    def fits(self) -> dict[str, list[OuterFit]]:
        """Fits of every model; one to the whole label matrix is listed once, as of one outcome."""
        each = list(self.results.values())
        return {
            model.name: [
                fit
                for result in each[: len(outcomes_of(self.comparison, model))]
                for fit in result.fits[model.name]
            ]
            for model in self.comparison.models
        }

    def finished(self) -> list[str]:
        """Return the models that finished every fold for every outcome."""
        return [m for m in self.models if m not in self.failures]

    @property
    def added_value_missing(self) -> str:
        """As `NestedResult.added_value_missing`, of all outcomes; "" if nothing is missing."""
        texts = {outcome: result.added_value_missing for outcome, result in self.results.items()}
        return " ".join(f"{outcome}: {text}" for outcome, text in texts.items() if text)

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """Held-out predictions of all outcomes, with the column outcome first."""
        return self._over_outcomes(lambda result: result.predictions)

    def _over_outcomes(self, table: Any) -> pd.DataFrame:
        parts = []
        for outcome, result in self.results.items():
            part = table(result).copy()
            part.insert(0, "outcome", outcome)
            parts.append(part)
        return pd.concat(parts, ignore_index=True)

    # -- the mean over outcomes --------------------------------------------------------------

    def table(self) -> pd.DataFrame:
        """Return the table of the mean over outcomes ("*" in the column outcome) and of each.

        The columns are those of `NestedResult.table` after the column outcome. A mean over outcomes
        has the interval of the mean: people are resampled, with all their outcomes.
        """
        average = self.average()
        average.insert(0, "outcome", AVERAGE)
        return pd.concat(
            [average, self._over_outcomes(lambda result: result.table())], ignore_index=True
        )

    def average(self) -> pd.DataFrame:
        """Return the mean of every metric over the outcomes, as `NestedResult.table` has it."""
        return self._average.copy()

    @cached_property
    def _average(self) -> pd.DataFrame:
        each = [result.scores() for result in self.results.values()]
        each = [scores[scores["model"].isin(self.finished())] for scores in each]
        mean = each[0].copy()
        for column in (*self.metrics, FEATURES):
            mean[column] = sum(s[column].to_numpy(dtype=float) for s in each) / len(each)
        return build_table(
            mean,
            {
                (m, metric): self._interval(m, metric)
                for m in self.finished()
                for metric in self.metrics
            },
            self.metrics,
            self.models,
            failures=self.failures,
            notes={
                model.name: (ONE_AT_A_TIME, "")
                for model in self.comparison.models
                if outcomes_of(self.comparison, model) != [ALL]
            },
        )

    @cached_property
    def resampled(self) -> Resampled:
        """Mean over outcomes of every metric, on the resamples that all outcomes share."""
        return _MeanOverOutcomes([r.resampled for r in self.results.values()], self.finished())

    def _interval(self, model: str, metric: str) -> tuple[float, float, float]:
        """Return the mean of a metric over the outcomes, with its interval.

        All resamples of an outcome with an estimate of exactly 0 or 1 agree and say nothing; such
        an outcome widens the interval of the mean by the ends of its own, which is Wilson's.
        """
        with one_thread():
            draws = self.resampled.metric(model, metric)
            estimate = float(draws.estimate)
            low, high = (float(end) for end in draws.interval(scale_of(metric)))
            if scale_of(metric) != "logit":
                return estimate, low, high
            if estimate in (0.0, 1.0):  # so is every outcome, and no resample differs
                low = high = estimate
            below = above = 0.0
            for result in self.results.values():
                draws = result.resampled.metric(model, metric)
                if float(draws.estimate) in (0.0, 1.0):
                    rows = rows_behind(metric, result.resampled.models[model])
                    ends = draws.interval("logit", rows)
                    below += float(draws.estimate) - float(ends[0])
                    above += float(ends[1]) - float(draws.estimate)
            n = len(self.outcomes)
            return estimate, max(low - below / n, 0.0), min(high + above / n, 1.0)

    def intervals(self) -> pd.DataFrame:
        """Return every metric with its interval: outcome ("*": mean), model, metric, ...

        The columns after outcome are those of `metric_intervals`.
        """
        held = next(iter(self[self.outcomes[0]].resampled.models.values()), None)
        people = (0, 0) if held is None else (int(held.members.sum()), held.n_units)
        long = []
        for record in self.table().to_dict("records"):
            for metric in self.metrics if record["failure"] == "" else ():
                ends = [float(record[f"{metric}_{e}"]) for e in POOLED]
                key = (record["outcome"], record["model"], AVERAGE, metric)
                long.append((*key, *ends, *people, ""))
        columns = [
            "outcome", "model", "site", "metric", "estimate", "low", "high", "people", "units",
            "note",
        ]  # fmt: skip
        return pd.DataFrame(long, columns=columns)

    def differences(self, metrics: Sequence[str] | None = None) -> pd.DataFrame:
        """Return differences between models of the mean over outcomes, with their intervals.

        Parameters
        ----------
        metrics : list of str, optional
            Default all of the table.

        Returns
        -------
        DataFrame
            As `metric_differences`.
        """
        if not self.finished():
            columns = ["metric", "model_a", "model_b", "difference", "low", "high", "note"]
            return pd.DataFrame(columns=columns)
        with one_thread():
            return metric_differences(self.resampled, metrics=metrics or self.metrics)

    def fold_values(self, model: str, metric: str) -> np.ndarray:
        """Return the mean over outcomes of a metric of one model, on every outer fold.

        Parameters
        ----------
        model : str
            One that finished for every outcome.
        metric : str

        Returns
        -------
        ndarray of shape (n_folds,)
        """
        each = [result.fold_values(model, metric) for result in self.results.values()]
        return np.asarray(np.mean(each, axis=0))

    def added_value(
        self, baseline: Sequence[str] | None = None, **options: Any
    ) -> dict[str, AddedValue]:
        """Return what each view adds to the views that one has anyway, for every outcome.

        There is no mean over outcomes: a view may add something for one outcome and nothing for
        another. Intervals are not adjusted for the number of outcomes.

        Parameters
        ----------
        baseline : list of str, optional
            Views that one has anyway; default the `baseline_views` of the comparison.
        **options
            As in `NestedResult.added_value`, the same for every outcome.

        Returns
        -------
        dict of str to AddedValue
        """
        return {
            outcome: result.added_value(baseline, **options)
            for outcome, result in self.results.items()
        }

    def format(self, form: str = "text", figures: str = "intervals") -> str:
        """Return the tables as they are printed: the mean over outcomes, then every outcome.

        Parameters
        ----------
        form : {"text", "markdown", "latex"}, default="text"
            For the terminal, a README, or a paper.
        figures : {"intervals", "folds"}, default="intervals"
            As in `NestedResult.format`.

        Returns
        -------
        str
        """
        parts = [
            format_heading(f"Mean over {len(self.outcomes)} outcomes", form),
            format_table(self.average(), self.metrics, form, figures),
        ]
        for outcome, result in self.results.items():
            parts += ["\n", format_heading(outcome, form), result.format(form, figures)]
        return "".join(parts)


class _MeanOverOutcomes(Resampled):
    """Means over outcomes of the metrics, with one seed on the same resamples of people.

    The people of all outcomes are the same in the same order, so that the bootstrap draws the same
    people for each of them.
    """

    def __init__(self, each: Sequence[Resampled], models: Sequence[str]) -> None:
        self.each, self.boot = each, each[0].boot
        self.models = {model: each[0].models[model] for model in models}
        self._draws = {}

    def metric(self, model: str, metric: str) -> Draws:
        """Return the mean over outcomes on the sample and on every resample."""
        if (model, metric) not in self._draws:
            each = [sample.metric(model, metric) for sample in self.each]
            self._draws[model, metric] = Draws(
                np.mean([d.estimate for d in each], axis=0),
                np.mean([d.resampled for d in each], axis=0),
                each[0].units,
                each[0].level,
            )
        return self._draws[model, metric]
