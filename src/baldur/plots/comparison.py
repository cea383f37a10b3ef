"""Models compared: each metric with its interval, and the value that chance gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import AVERAGE, METRICS
from baldur.evaluation.view_additions import (
    ADDED,
    ALL,
    ALL_ADDED,
    ALONE,
    BASELINE,
    BEYOND,
    WITH,
    WITHOUT,
    main_metric,
)
from baldur.exceptions import InputError
from baldur.plots.display import Display, results_of
from baldur.plots.style import Style, points, row_height
from baldur.plots.text import label, metric_axis, metric_name, number, plain, with_interval
from baldur.views.validate import counted

# Metrics that are shown unless others are asked for.
DEFAULT = ("auc", "balanced_accuracy", "brier", "r2", "mae")


class ComparisonDisplay(Display):
    """Metrics of every model on pooled held-out predictions, with intervals.

    Parameters
    ----------
    table : DataFrame
        model, metric, estimate, low, high; as ``intervals.csv`` has it.
    failures : dict of str to str, optional
        Models that failed, and why.
    n_classes : int, optional
        Number of classes, which gives the line of chance; 0 in regression.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import ComparisonDisplay
    >>> table = pd.DataFrame({"model": ["ridge", "forest"], "metric": "auc",
    ...                       "estimate": [0.81, 0.84], "low": [0.72, 0.76], "high": [0.9, 0.92]})
    >>> print(ComparisonDisplay(table, n_classes=2).alt_text)
    AUC of 2 models with 95 % intervals: forest 0.84 (0.76 to 0.92); ridge 0.81 (0.72 to 0.9).
    """

    columns = ("model", "metric", "estimate", "low", "high")

    def __init__(
        self,
        table: pd.DataFrame,
        *,
        failures: Mapping[str, str] | None = None,
        n_classes: int | None = None,
    ) -> None:
        table = pd.DataFrame(table)
        if "site" in table:
            table = table[table["site"].astype(str) == "*"]
        super().__init__(table)
        self.failures, self.n_classes = dict(failures or {}), n_classes
        self.nothing = (
            f"Comparison of models without metrics: {len(self.failures)} failed.",
            "No model has metrics.",
        )

    @classmethod
    def from_result(cls, result: Any, metrics: Sequence[str] | None = None) -> Self:
        """Compare the models of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        metrics : list of str, optional
            Default: AUC, balanced accuracy and Brier score, or R2 and mean absolute error.
        """
        results = results_of(result)
        table, models = results.table("intervals"), results.table("table")
        if len(table):
            available = list(dict.fromkeys(table["metric"]))
            default = [m for m in DEFAULT if m in available] or available[:2]
            chosen = default if metrics is None else list(metrics)
            unknown = [m for m in chosen if m not in available]
            if unknown:
                raise InputError(
                    f"There is no metric {unknown[0]!r} in the result, only {available}."
                )
            table = pd.concat(table[table["metric"] == metric] for metric in chosen)
        failures = {}
        if "failure" in models:
            texts = models["failure"].fillna("").astype(str)
            failures = {m: text for m, text in zip(models["model"], texts, strict=True) if text}
        return cls(table, failures=failures, n_classes=len(results.classes))

    @property
    def metrics(self) -> list[str]:
        """The metrics shown, in their order."""
        return list(dict.fromkeys(self.table["metric"].astype(str)))

    @property
    def models(self) -> list[str]:
        """The models shown; those that failed come last."""
        return list(dict.fromkeys([*self.table["model"].astype(str), *self.failures]))

    def _sentence(self) -> str:
        """Return the alternative text: the first metric of the best five models."""
        metric = self.metrics[0]
        part = self.table[self.table["metric"] == metric].dropna(subset=["estimate"])
        up = metric not in METRICS or METRICS[metric].greater_is_better
        part = part.sort_values("estimate", ascending=not up, kind="stable")
        rows = part.head(5).to_dict("records")
        listed = "; ".join(f"{plain(r['model'])} {with_interval(r)}" for r in rows)
        more = f", and {len(part) - 5} more" if len(part) > 5 else ""
        failed = f"; {len(self.failures)} failed" if self.failures else ""
        return (
            f"{metric_name(metric)} of {counted(len(part), 'model')} with 95 % intervals: "
            f"{listed}{more}{failed}."
        )

    def _draw(self, style: Style) -> None:
        """Draw a panel per metric and a row per model."""
        metrics, models = self.metrics, self.models
        axes = self._panels(style, len(metrics), row_height(len(models), 1.1))
        for i, metric in enumerate(metrics):
            self._panel(axes[i], metric, models, style, first=i == 0 or style.narrow)

    def _panel(self, ax: Any, metric: str, models: list[str], style: Style, *, first: bool) -> None:
        """Draw one metric of every model; the first panel has the names of the models."""
        part = self.table[self.table["metric"] == metric]
        rows = np.array([models.index(str(m)) for m in part["model"]], dtype=float)
        points(ax, part, rows, style.colour(0))
        chance = self._chance(metric)
        if chance is not None:
            style.reference_line(ax, chance)
        style.name_rows(ax, models, 0.34)
        if not first:
            ax.tick_params(axis="y", labelleft=False)
        for model in self.failures:
            if first and model in models:
                ax.text(
                    0.02, models.index(model), "failed", transform=ax.get_yaxis_transform(),
                    va="center", color=style.ink, style="italic",
                )  # fmt: skip
        name = label(metric_name(metric))
        if len(self.metrics) > 1 and not style.narrow:
            # The panels are narrow: each word gets a line.
            name = name.replace(" ", "\n")
        ax.set_xlabel(metric_axis(metric, name), fontsize=style.size - 0.5)
        panels = 1 if style.narrow else len(self.metrics)
        style.fit_ticks(ax, 0.6 / panels)

    def _chance(self, metric: str) -> float | None:
        """Return the value of a metric that chance gives; None where it depends on the data."""
        if metric == "auc" and self.n_classes:
            return 0.5
        if metric == "balanced_accuracy" and self.n_classes:
            return 1.0 / self.n_classes
        return 0.0 if metric in ("r2", "correlation") else None


_ALL_VIEWS = "all views"
_LEVELS = (BASELINE, WITH, ALL, ALONE, WITHOUT)


class AddedValueDisplay(Display):
    """How well sets of views predict, and what each view adds, with intervals.

    Parameters
    ----------
    table : DataFrame
        As `baldur.evaluation.AddedValue.table` has it, or ``added_value.csv``.

    Attributes
    ----------
    table : DataFrame
        A row per set of views: views, people, value with its interval, compared_with, difference
        with its interval (of this set minus the one it is compared with), compared_on (people).
        The baseline and the sets that contain it are compared with the baseline, sets without one
        view with all views.
    metric : str
        "auc" or "r2".

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import AddedValueDisplay
    >>> table = pd.DataFrame({
    ...     "question": ["baseline", "all", "added"], "view": ["clinic", "", "genes"],
    ...     "model": ["A", "B", "B"], "metric": "auc", "people": 90, "value": [0.7, 0.78, 0.78],
    ...     "value_low": [0.6, 0.69, 0.69], "value_high": [0.8, 0.87, 0.87],
    ...     "difference": [None, None, 0.08], "low": [None, None, -0.01],
    ...     "high": [None, None, 0.17]})
    >>> print(AddedValueDisplay(table).alt_text)
    AUC of 2 sets of views: clinic (baseline) 0.7; all views 0.78, 0.08 (-0.01 to 0.17) compared
    with clinic.
    """

    columns = (
        "views", "people", "value", "value_low", "value_high", "compared_with", "difference",
        "low", "high", "compared_on",
    )  # fmt: skip

    def __init__(self, table: pd.DataFrame) -> None:
        table = pd.DataFrame(table)
        metrics = set(table["metric"]) if "metric" in table else set()
        is_classification = main_metric(True) in metrics or not metrics
        self.metric = main_metric(is_classification)
        part = table[table["metric"] == self.metric] if len(table) else table
        base = part[part["question"] == BASELINE] if len(part) else part
        self.baseline = plain(base["view"].iloc[0]) if len(base) else "the baseline"
        super().__init__(pd.DataFrame(self._set_rows(part), columns=self.columns))
        self.nothing = (
            f"Sets of views without {metric_name(self.metric)}: there is nothing to compare.",
            "There are no view sets to compare.",
        )

    @classmethod
    def from_result(cls, result: Any) -> Self:
        """Show what the views of a result of a comparison with `baseline_views` add."""
        return cls(results_of(result).table("added_value"))

    def _set_rows(self, part: pd.DataFrame) -> list[tuple[Any, ...]]:
        """Return the rows in order: baseline and what is added, each view alone, all but each."""
        rows = part.to_dict("records") if len(part) else []
        levels = {r["model"]: r for r in rows if r["question"] in _LEVELS}
        added = {r["model"]: r for r in rows[::-1] if r["question"] in (ADDED, ALL_ADDED)}
        left_out = {r["reference"]: r for r in rows if r["question"] == BEYOND}
        nothing: tuple[Any, ...] = ("", np.nan, np.nan, np.nan, np.nan)
        sets = []
        for model, row in levels.items():
            question, view = row["question"], row["view"]
            name = {
                BASELINE: f"{self.baseline} (baseline)", WITH: f"+ {view}", ALL: _ALL_VIEWS,
                ALONE: f"{view} alone", WITHOUT: f"all but {view}",
            }[question]  # fmt: skip
            compared = nothing
            if model in added:
                compared = (self.baseline, *_difference(added[model]))
            elif model in left_out:
                # Stored as all views minus this set; drawn the other way round.
                compared = (_ALL_VIEWS, *_difference(left_out.pop(model), -1.0))
            sets.append((name, row["people"], *_level(row), *compared))
        # A set that is compared with the baseline and with all views has a row for each.
        for model, other in left_out.items():
            compared = (_ALL_VIEWS, *_difference(other, -1.0))
            level = (levels[model]["people"], *_level(levels[model]))
            sets.append((f"all but {other['view']}", *level, *compared))
        return sets

    def _sentence(self) -> str:
        """Return the alternative text: each set of views and its difference."""
        first = self.table.iloc[0]
        parts = [f"{plain(first['views'])} {number(first['value'])}"]
        for row in self.table[self.table["compared_with"] != ""].to_dict("records"):
            change = with_interval(row, ("low", "difference", "high"))
            name = f"{plain(row['views'])} {number(row['value'])}"
            parts.append(f"{name}, {change} compared with {row['compared_with']}")
        heading = metric_name(self.metric)
        return f"{heading} of {len(self.table)} sets of views: {'; '.join(parts)}."

    def _draw(self, style: Style) -> None:
        """Draw a row per set of views: its metric, and the difference beside it."""
        rows = len(self.table)
        references = [r for r in dict.fromkeys(self.table["compared_with"]) if r]
        names = [f"compared with {name}" for name in references]
        axes = self._panels(style, 2, row_height(rows, 1.1), style.legend_height(names))
        levels = ("value_low", "value", "value_high")
        points(axes[0], self.table, np.arange(rows), style.ink, columns=levels)
        handles = []
        for i, reference in enumerate(references):
            compared = (self.table["compared_with"] == reference).to_numpy()
            rows_compared = np.flatnonzero(compared)
            handles += points(
                axes[1], self.table[compared], rows_compared, style.colour(i), "os"[i % 2],
                ("low", "difference", "high"),
            )  # fmt: skip
        heading = metric_name(self.metric)
        for ax, value, name in (
            (axes[0], float(self.table["value"].iloc[0]), heading),
            (axes[1], 0.0, f"Difference in {heading}"),
        ):
            style.reference_line(ax, value)
            style.name_rows(ax, self.table["views"].tolist(), 0.34)
            ax.set_xlabel(metric_axis(self.metric, name), fontsize=style.size - 0.5)
            style.fit_ticks(ax, 0.6 if style.narrow else 0.3)
        if not style.narrow:
            axes[1].tick_params(axis="y", labelleft=False)
        self._legend(handles, names, style)


def _difference(row: dict[Any, Any], sign: float = 1.0) -> tuple[float, ...]:
    """Return a difference with its interval, times a sign, and on how many people."""
    ends = sorted((sign * row["low"], sign * row["high"]))
    return (sign * row["difference"], *ends, row["people"])


def _level(row: dict[Any, Any]) -> tuple[float, float, float]:
    return row["value"], row["value_low"], row["value_high"]


MEAN = "mean"
MOST_MODELS = 4
"""Models that are drawn side by side for each outcome; more are hard to distinguish."""


class OutcomesDisplay(Display):
    """One metric of every model for each of several outcomes, with intervals; the mean first.

    Parameters
    ----------
    table : DataFrame
        outcome ("*" for the mean over outcomes), model, metric, estimate, low, high; as
        ``intervals.csv`` of a study with several outcomes has it.
    metric : str, default="auc"
        The metric that is shown.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import OutcomesDisplay
    >>> table = pd.DataFrame({"outcome": ["*", "stroke", "pain"] * 2, "metric": "auc",
    ...                       "model": ["ridge"] * 3 + ["forest"] * 3,
    ...                       "estimate": [0.75, 0.8, 0.7, 0.74, 0.77, 0.71],
    ...                       "low": [0.69, 0.71, 0.6, 0.67, 0.68, 0.61],
    ...                       "high": [0.81, 0.89, 0.8, 0.81, 0.86, 0.81]})
    >>> print(OutcomesDisplay(table).alt_text)
    AUC of 2 models for 2 outcomes with 95 % intervals; ridge: mean 0.75 (0.69 to 0.81); stroke
    0.8 (0.71 to 0.89); pain 0.7 (0.6 to 0.8).
    """

    nothing = ("Metric of every outcome: no model has figures.", "No model has metrics.")

    def __init__(self, table: pd.DataFrame, *, metric: str = "auc") -> None:
        table = pd.DataFrame(table)
        if len(table) and metric not in set(table["metric"]):
            known = list(dict.fromkeys(table["metric"]))
            raise InputError(f"There is no metric {metric!r} in the result, only {known}.")
        super().__init__(table[table["metric"] == metric])
        self.metric = metric

    @classmethod
    def from_result(cls, result: Any, metric: str | None = None) -> Self:
        """Compare the outcomes of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder with several outcomes
        metric : str, optional
            Default: AUC, or else the first metric of the result.
        """
        table = results_of(result, several=True).table("intervals", every_outcome=True)
        if "outcome" not in table:
            raise InputError("The result has a single outcome; use ComparisonDisplay.")
        known = list(dict.fromkeys(table["metric"]))
        shown = metric or ("auc" if "auc" in known or not known else str(known[0]))
        return cls(table, metric=shown)

    @property
    def outcomes(self) -> list[str]:
        """The outcomes, in their order; the mean over them is first."""
        return list(dict.fromkeys(self.table["outcome"].astype(str)))

    @property
    def models(self) -> list[str]:
        """The models, in their order."""
        return list(dict.fromkeys(self.table["model"].astype(str)))

    def _sentence(self) -> str:
        """Return the alternative text: the metric of the first model for each outcome."""
        first = self.models[0]
        rows = self.table[self.table["model"] == first].head(9).to_dict("records")
        listed = "; ".join(f"{_outcome_name(r['outcome'])} {with_interval(r)}" for r in rows)
        n = len([o for o in self.outcomes if o != AVERAGE])
        return (
            f"{metric_name(self.metric)} of {counted(len(self.models), 'model')} for "
            f"{counted(n, 'outcome')} with 95 % intervals; {plain(first)}: {listed}."
        )

    def _draw(self, style: Style) -> None:
        """Draw a row per outcome and a mark per model."""
        models, outcomes = self.models[:MOST_MODELS], self.outcomes
        step = 0.72 / max(len(models), 1)  # between the marks of a row, which is 1 high
        height = row_height(round(len(outcomes) * max(1.0, 0.7 * len(models))), 1.0)
        height += style.legend_height(models)
        main = self._axes(style, height)[0]
        handles = []
        for i, model in enumerate(models):
            part = self.table[self.table["model"] == model]
            rows = np.array([outcomes.index(str(o)) for o in part["outcome"]], dtype=float)
            rows += (i - (len(models) - 1) / 2) * step
            handles += points(main, part, rows, style.colour(i), style.marker(i))
        if self.metric in ("auc", "balanced_accuracy"):
            style.reference_line(main, 0.5)
        if outcomes[0] == AVERAGE:
            # Separates the mean, in the first row, from the outcomes.
            main.axhline(0.5, color=style.faint, linewidth=1.0, zorder=0)
        style.name_rows(main, [_outcome_name(o) for o in outcomes], 0.34)
        main.set_xlabel(f"{metric_axis(self.metric, between=' (')})")
        self._legend(handles, models, style)


def _outcome_name(outcome: Any) -> str:
    return MEAN if str(outcome) == AVERAGE else str(plain(outcome))
