"""Several outcomes compared: one metric of every model for each outcome, and the mean."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.label_matrix import AVERAGE
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.tables.results_reader import read_result_table
from baldur.exceptions import InputError
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import count, number, plain
from baldur.plots.drawing.parts import empty, intervals, legend_height, name_rows, row_height
from baldur.plots.drawing.style import style_of
from baldur.plots.results.comparison import metric_name

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

    def __init__(self, table: pd.DataFrame, *, metric: str = "auc") -> None:
        table = pd.DataFrame(table)
        if len(table) and metric not in set(table["metric"]):
            known = list(dict.fromkeys(table["metric"]))
            raise InputError(f"There is no metric {metric!r} in the result, only {known}.")
        super().__init__(table[table["metric"] == metric].reset_index(drop=True))
        self.metric = metric

    @classmethod
    def from_result(cls, result: Any, metric: str | None = None) -> Self:
        """Compare the outcomes of a result.

        Parameters
        ----------
        result : MultilabelResult or path of a results folder with several outcomes
        metric : str, optional
            Default: AUC, or else the first metric of the result.

        Returns
        -------
        OutcomesDisplay
        """
        if isinstance(result, MultilabelResult):
            table = result.intervals()
        else:
            table = read_result_table(result, "intervals")
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

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        if not len(self.table):
            return "Metric of every outcome: no model has figures."
        first = self.models[0]
        mine = self.table[self.table["model"] == first]
        listed = "; ".join(
            f"{_called(r['outcome'])} {number(r['estimate'])} ({number(r['low'])} to "
            f"{number(r['high'])})"
            for r in mine.head(9).to_dict("records")
        )
        n = len([o for o in self.outcomes if o != AVERAGE])
        return (
            f"{metric_name(self.metric)} of {count(len(self.models), 'model')} for "
            f"{count(n, 'outcome')} with 95 % intervals; {plain(first)}: {listed}."
        )

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw a row per outcome and a mark per model."""
        models, outcomes = self.models[:MOST_MODELS], self.outcomes
        step = 0.72 / max(len(models), 1)
        height = row_height(round(len(outcomes) * max(1.0, 0.7 * len(models))), 1.0)
        height += legend_height(models, style_of(theme, width))
        with self._drawing(ax, theme, width, height) as (axes, style):
            main = axes[0]
            if not len(self.table):
                empty(main, "No model has metrics.", style)
                return
            handles = []
            for i, model in enumerate(models):
                part = self.table[self.table["model"] == model]
                rows = np.array([outcomes.index(str(o)) for o in part["outcome"]], dtype=float)
                rows += (i - (len(models) - 1) / 2) * step
                low, mid, high = (
                    part[c].to_numpy(dtype=float) for c in ("low", "estimate", "high")
                )
                intervals(main, low, high, rows, style.colour(i))
                handles += main.plot(
                    mid, rows, linestyle="none", marker=style.marker(i), color=style.colour(i),
                    markersize=6,
                )  # fmt: skip
            if self.metric in ("auc", "balanced_accuracy"):
                main.axvline(0.5, color=style.faint, linestyle="--", linewidth=1.0, zorder=0)
            if outcomes[0] == AVERAGE:
                main.axhline(0.5, color=style.faint, linewidth=1.0, zorder=0)
            name_rows(main, [_called(o) for o in outcomes], style, 0.34)
            up = self.metric not in METRICS or METRICS[self.metric].greater_is_better
            main.set_xlabel(f"{metric_name(self.metric)} ({'better →' if up else '← better'})")
            self._legend(handles, models, style)


def _called(outcome: Any) -> str:
    return MEAN if str(outcome) == AVERAGE else str(plain(outcome))
