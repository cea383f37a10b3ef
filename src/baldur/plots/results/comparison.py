"""Models compared: each metric with its interval, and the value that chance gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError
from baldur.plots.drawing.display import Display
from baldur.plots.drawing.names import count, label, number, plain
from baldur.plots.drawing.parts import empty, fit_ticks, intervals, name_rows, row_height
from baldur.plots.drawing.style import Style, style_of
from baldur.plots.results.tables import Results

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

    @classmethod
    def from_result(cls, result: Any, metrics: Sequence[str] | None = None) -> Self:
        """Compare the models of a result.

        Parameters
        ----------
        result : NestedResult or path of a results folder
        metrics : list of str, optional
            Default: AUC, balanced accuracy and Brier score, or R2 and mean absolute error.

        Returns
        -------
        ComparisonDisplay
        """
        found = Results(result)
        table = found.frame("intervals")
        models = found.frame("table")
        known = list(dict.fromkeys(table["metric"])) if len(table) else []
        wanted = [m for m in DEFAULT if m in known] or known[:2]
        if metrics is not None:
            unknown = [m for m in metrics if known and m not in known]
            if unknown:
                raise InputError(f"There is no metric {unknown[0]!r} in the result, only {known}.")
            wanted = list(metrics)
        table = table[table["metric"].isin(wanted)] if len(table) else _no_rows()
        rank = {m: i for i, m in enumerate(wanted)}
        table = table.sort_values("metric", key=lambda c: c.map(rank), kind="stable")
        failures = {}
        if len(models) and "failure" in models:
            bad = models[models["failure"].fillna("").astype(str) != ""]
            failures = dict(zip(bad["model"].astype(str), bad["failure"].astype(str), strict=True))
        return cls(table, failures=failures, n_classes=len(found.classes))

    @property
    def metrics(self) -> list[str]:
        """The metrics shown, in their order."""
        return list(dict.fromkeys(self.table["metric"].astype(str)))

    @property
    def models(self) -> list[str]:
        """The models shown; those that failed come last."""
        return list(dict.fromkeys([*self.table["model"].astype(str), *self.failures]))

    @property
    def alt_text(self) -> str:
        """What is shown, in one sentence with its numbers."""
        if not len(self.table):
            return f"Comparison of models without metrics: {len(self.failures)} failed."
        metric = self.metrics[0]
        part = self.table[self.table["metric"] == metric].dropna(subset=["estimate"])
        up = metric not in METRICS or METRICS[metric].greater_is_better
        part = part.sort_values("estimate", ascending=not up, kind="stable")
        listed = "; ".join(
            f"{plain(r['model'])} {number(r['estimate'])} ({number(r['low'])} to "
            f"{number(r['high'])})"
            for r in part.head(5).to_dict("records")
        )
        more = f", and {len(part) - 5} more" if len(part) > 5 else ""
        failed = f"; {len(self.failures)} failed" if self.failures else ""
        return (
            f"{metric_name(metric)} of {count(len(part), 'model')} with 95 % intervals: "
            f"{listed}{more}{failed}."
        )

    def _plot(self, ax: Any, theme: str | None, width: float | None) -> None:
        """Draw a panel per metric and a row per model."""
        metrics, models = self.metrics, self.models
        height = row_height(len(models), 1.1)
        shares = (1.0,) * max(1, len(metrics))
        # On a phone the panels are drawn below each other.
        below = style_of(theme, width, ax).narrow
        height = height * len(shares) if below else height
        shape = ((1.0,), shares) if below else (shares, (1.0,))
        with self._drawing(ax, theme, width, height, *shape) as (axes, style):
            if not metrics:
                empty(axes[0], "No model has metrics.", style)
                return
            for i, metric in enumerate(metrics):
                self._panel(axes[i], metric, models, style, first=i == 0 or below)

    def _panel(self, ax: Any, metric: str, models: list[str], style: Style, *, first: bool) -> None:
        part = self.table[self.table["metric"] == metric]
        rows = np.array([models.index(str(m)) for m in part["model"]], dtype=float)
        low, middle, high = (part[c].to_numpy(dtype=float) for c in ("low", "estimate", "high"))
        intervals(ax, low, high, rows, style.colour(0))
        ax.plot(middle, rows, linestyle="none", marker="o", color=style.colour(0), markersize=6)
        chance = self._chance(metric)
        if chance is not None:
            ax.axvline(chance, color=style.faint, linestyle="--", linewidth=1.0, zorder=0)
        name_rows(ax, models, style, 0.34)
        if not first:
            ax.tick_params(axis="y", labelleft=False)
        for model in self.failures:
            if first and model in models:
                ax.text(
                    0.02, models.index(model), "failed", transform=ax.get_yaxis_transform(),
                    va="center", color=style.ink, style="italic",
                )  # fmt: skip
        up = metric not in METRICS or METRICS[metric].greater_is_better
        name = label(metric_name(metric))
        if len(self.metrics) > 1 and not style.narrow:
            # The panels are narrow: each word gets a line.
            name = name.replace(" ", "\n")
        ax.set_xlabel(f"{name}\n{'better →' if up else '← better'}", fontsize=style.size - 0.5)
        panels = 1 if style.narrow else len(self.metrics)
        fit_ticks(ax, style, 0.6 / panels)

    def _chance(self, metric: str) -> float | None:
        if metric == "auc" and self.n_classes:
            return 0.5
        if metric == "balanced_accuracy" and self.n_classes:
            return 1.0 / self.n_classes
        return 0.0 if metric in ("r2", "correlation") else None


def metric_name(metric: str) -> str:
    """Return the name of a metric on an axis."""
    names = {"balanced_accuracy": "Balanced accuracy", "brier": "Brier score", "r2": "R²"}
    return names.get(metric) or (METRICS[metric].heading if metric in METRICS else metric)


def _no_rows() -> pd.DataFrame:
    return pd.DataFrame(columns=["model", "metric", "estimate", "low", "high"])
