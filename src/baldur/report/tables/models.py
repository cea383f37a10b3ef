"""The table of models: every metric with its interval on held-out people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from baldur.evaluation.metrics import METRICS
from baldur.report.evidence import comparison_of
from baldur.report.formatting import number, p_value, short
from baldur.report.results import StudyResults
from baldur.report.tables.base import Cell, Column, Table

_SHARE = (
    "mean over folds, % of the features of all views; a category has one feature for each level "
    "without the reference level"
)
_MEANING = {
    "calibration": "mean distance of probabilities from observed frequencies, in bins; ",
}
"""What a column says about a metric whose name does not."""


def metric_heading(metric: str) -> str:
    """Return the name of a metric for a heading."""
    return METRICS[metric].heading


def model_table(run: StudyResults) -> Table:
    """Return one row per model with every metric and its interval."""
    frame = run.table("table")
    ends = ("pooled", "low", "high")
    metrics = [
        m for m in run.record.get("metrics", []) if all(f"{m}_{end}" in frame for end in ends)
    ]
    columns = [Column("Model", numeric=False)]
    for m in metrics:
        better = "higher is better" if METRICS[m].greater_is_better else "lower is better"
        columns.append(Column(metric_heading(m), f"{_MEANING.get(m, '')}{better}"))
    columns.append(Column("Features selected", _SHARE))
    table = Table("models", "Models with 95 % intervals on held-out people", columns)
    notes = []
    for row in frame.to_dict("records"):
        cells = [Cell.name(row["model"])]
        cells += [Cell.interval(*(row[f"{m}_{end}"] for end in ends)) for m in metrics]
        share = float(row.get("features_percent", np.nan))
        text = f"{number(share, 1).removesuffix('.0')} %" if np.isfinite(share) else "–"
        cells.append(Cell(text, share if np.isfinite(share) else ""))
        table.add(cells, model=str(row["model"]))
        if note := _note(row):
            notes.append(f"{short(row['model'])}: {short(note, 400)}.")
    table.note = " ".join(notes)
    return table


def _note(row: Mapping[Any, Any]) -> str:
    failure = str(row.get("failure") or "")
    return f"failed: {failure}" if failure else str(row.get("note") or "")


def difference_table(run: StudyResults, main: str | None) -> Table:
    """Return the differences between the main model and every other, as in the headline."""
    found = comparison_of(run, main) if main is not None else None
    metric = found.metric if found is not None else ""
    columns = [
        Column("Other model", numeric=False),
        Column(f"Difference in {metric}", "positive where the main model is better"),
        Column("p", "corrected resampled t-test over the folds, adjusted by Holm's rule"),
    ]
    caption = f"Differences between {short(main or '')} and the other models"
    table = Table("differences", caption, columns)
    if found is None:
        return table
    for name, d in found.differences.items():
        p = found.p_values.get(name, float("nan"))
        cells = [Cell.name(name), Cell.interval(d.estimate, d.low, d.high)]
        table.add([*cells, Cell(p_value(p), p if np.isfinite(p) else "")])
    table.note = (
        f"{found.legend} These intervals decide the headline. The p-values are those of another "
        "method, the corrected resampled t-test over the folds, adjusted by Holm's rule; with few "
        "folds it is imprecise."
    )
    return table
