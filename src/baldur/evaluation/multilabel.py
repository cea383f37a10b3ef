"""MultilabelResult: the result of every label of a label matrix, and the mean over the labels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.threads import one_thread
from baldur.evaluation.added_value import AddedValue
from baldur.evaluation.clinical.bootstrap import Draws
from baldur.evaluation.clinical.held_out import rows_behind, scale_of
from baldur.evaluation.design import Comparison
from baldur.evaluation.formatting import format_heading, format_table
from baldur.evaluation.job_results import JobResults, OuterFit
from baldur.evaluation.jobs import ALL, outcomes_of
from baldur.evaluation.label_matrix import AVERAGE
from baldur.evaluation.metric_table import FEATURES, POOLED
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.result import BaseResult, NestedResult
from baldur.exceptions import InputError

ONE_AT_A_TIME = "fitted to one outcome at a time, with settings selected for each"
"""Note of models that cannot be fitted to a label matrix."""


@dataclass(repr=False)
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
    results : dict of str to NestedResult
        Result of every outcome.

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

    comparison: Comparison
    jobs: list[JobResults]

    def __post_init__(self) -> None:
        self.results = {
            name: NestedResult(self.comparison.one_outcome(j), found)
            for j, (name, found) in enumerate(zip(self.outcomes, self.jobs, strict=True))
        }

    def __getitem__(self, outcome: str) -> NestedResult:
        if outcome not in self.results:
            raise InputError(f"There is no outcome {outcome!r}; there are {self.outcomes}.")
        return self.results[outcome]

    @property
    def outcomes(self) -> list[str]:
        """Names of the outcomes, the columns of the label matrix."""
        return list(self.comparison.outcomes)

    @property
    def fits(self) -> dict[str, list[OuterFit]]:
        """Fits of every model; one to the whole label matrix is listed once, as of one outcome."""
        return {
            model.name: [
                fit
                for result in list(self.results.values())[
                    : len(outcomes_of(self.comparison, model))
                ]
                for fit in result.fits[model.name]
            ]
            for model in self.comparison.models
        }

    @property
    def failures(self) -> dict[str, str]:
        """Models without a mean, because they failed for an outcome, with the reason of each."""
        found: dict[str, str] = {}
        for outcome, result in self.results.items():
            for model, why in result.failures.items():
                found.setdefault(model, f"{outcome}: {why}")
        return found

    @property
    def notes(self) -> dict[str, list[str]]:
        """Warnings and settings that failed, of every model over all outcomes, each once."""
        merged = JobResults(fits={}, notes={model: [] for model in self.models})
        for result in self.results.values():
            for model, notes in result.notes.items():
                for text in notes:
                    merged.note(model, text)
        return merged.notes

    @property
    def no_signal(self) -> dict[str, int]:
        """Folds of a model without evidence of signal, the most over the outcomes."""
        found: dict[str, int] = {}
        for result in self.results.values():
            for model, k in result.no_signal.items():
                found[model] = max(k, found.get(model, 0))
        return found

    @property
    def permuted(self) -> dict[str, list[float]]:
        """Mean over outcomes of the score of every finished model with each permutation."""
        return {
            model: np.mean([r.permuted[model] for r in self.results.values()], axis=0).tolist()
            for model in self.finished()
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
        scores = {name: result.scores() for name, result in self.results.items()}
        rows: list[dict[str, Any]] = []
        for model in self.comparison.models:
            row: dict[str, Any] = {"model": model.name}
            done = model.name not in self.failures
            mine = [s[s["model"] == model.name] for s in scores.values()] if done else []
            notes = [] if outcomes_of(self.comparison, model) == [ALL] else [ONE_AT_A_TIME]
            for metric in (*self.metrics, FEATURES):
                values = sum(s[metric].to_numpy(dtype=float) for s in mine) / len(scores)
                known = np.atleast_1d(values)[np.isfinite(values)] if done else np.zeros(0)
                row[metric] = float(known.mean()) if len(known) else np.nan
                row[f"{metric}_sd"] = float(known.std(ddof=1)) if len(known) > 1 else np.nan
                if metric == FEATURES:
                    continue
                if done and 0 < len(known) < len(mine[0]):
                    heading = METRICS[metric].heading
                    notes.append(f"{heading} over {len(known)} of {len(mine[0])} folds")
                pooled = self._interval(model.name, metric) if done else (np.nan,) * 3
                row |= {f"{metric}_{e}": v for e, v in zip(POOLED, pooled, strict=True)}
            row |= {"folds": len(mine[0]) if done else 0, "note": "; ".join(notes)}
            rows.append({**row, "failure": self.failures.get(model.name, "")})
        return pd.DataFrame(rows)

    def _interval(self, model: str, metric: str) -> tuple[float, float, float]:
        with one_thread():
            draws = self._draws(model, metric)
            estimate = float(draws.estimate)
            low, high = (float(end) for end in draws.interval(scale_of(metric)))
            if scale_of(metric) == "logit":
                below, above = self._beyond(model, metric)
                if estimate in (0.0, 1.0):  # so is every outcome, and no resample differs
                    low = high = estimate
                low, high = max(low - below, 0.0), min(high + above, 1.0)
        return estimate, low, high

    def _beyond(self, model: str, metric: str) -> tuple[float, float]:
        """Return how far outcomes with an estimate of exactly 0 or 1 widen the interval of a mean.

        All resamples of such an outcome agree and say nothing; it counts with the ends of its own
        interval, which is Wilson's.
        """
        below = above = 0.0
        for result in self.results.values():
            draws = result.resampled.metric(model, metric)
            if float(draws.estimate) in (0.0, 1.0):
                held = result.resampled.models[model]
                low, high = draws.interval("logit", rows_behind(metric, held))
                below += float(draws.estimate) - float(low)
                above += float(high) - float(draws.estimate)
        return below / len(self.outcomes), above / len(self.outcomes)

    def _draws(self, model: str, metric: str) -> Draws:
        """Return the mean over outcomes on the sample and on every resample.

        The people of all outcomes are the same in the same order, so that the bootstrap, with one
        seed, draws the same people for each of them.
        """
        each = [result.resampled.metric(model, metric) for result in self.results.values()]
        first = each[0]
        return Draws(
            np.mean([d.estimate for d in each], axis=0),
            np.mean([d.resampled for d in each], axis=0),
            first.units,
            first.level,
        )

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
        rows = []
        with one_thread():
            for metric in metrics or self.metrics:
                for a, b in combinations(self.finished(), 2):
                    draws = self._draws(a, metric).minus(self._draws(b, metric))
                    low, high = draws.interval()
                    known = np.isfinite(draws.estimate)
                    note = "" if known else f"{METRICS[metric].heading} is not defined for one"
                    ends = (float(draws.estimate), float(low), float(high))
                    rows.append((metric, a, b, *ends, note))
        columns = ["metric", "model_a", "model_b", "difference", "low", "high", "note"]
        return pd.DataFrame(rows, columns=columns)

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
