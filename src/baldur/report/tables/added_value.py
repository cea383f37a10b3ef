"""Tables of the added value: view sets, what each view adds, and reclassification."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from baldur.evaluation.added_value.comparisons import (
    ADDED,
    ALL,
    ALL_ADDED,
    ALONE,
    BASELINE,
    BEYOND,
    WITH,
    WITHOUT,
)
from baldur.evaluation.added_value.differences import NET_BENEFIT
from baldur.evaluation.metrics import METRICS
from baldur.report.added_value import baseline_of
from baldur.report.formatting import number, p_value, short
from baldur.report.results import StudyResults
from baldur.report.tables.base import Cell, Column, Table, sort_key

_HEADINGS = {"r2": "R²", "log_loss": "Log-loss", "brier": "Brier score", "rmse": "RMSE"}


def comparison_name(question: str, view: str, base: str) -> str:
    """Return what a row of the table is about, in words."""
    return {
        BASELINE: f"{base} (baseline)",
        WITH: f"{base} + {short(view)}",
        ALONE: f"{short(view)} alone",
        WITHOUT: f"all but {short(view)}",
        ALL: "all views",
        ADDED: f"{short(view)} added to {base}",
        ALL_ADDED: f"all others added to {base}",
        BEYOND: f"{short(view)} added to all others",
    }.get(question, short(question))


def _metrics(rows: pd.DataFrame) -> list[tuple[str, float, str, bool]]:
    """Return metric, threshold, heading, and whether greater is better, of every column."""
    found = []
    for metric, threshold in (
        rows[["metric", "threshold"]].drop_duplicates().itertuples(index=False)
    ):
        if metric == NET_BENEFIT:
            found.append((metric, threshold, f"Net benefit at {number(threshold)}", True))
        elif metric in METRICS:
            heading = _HEADINGS.get(metric, METRICS[metric].heading)
            found.append((metric, threshold, heading, METRICS[metric].greater_is_better))
    return found


def _cell_of(part: pd.DataFrame, metric: str, threshold: float, columns: Sequence[str]) -> Cell:
    same = part["threshold"].isna() if np.isnan(threshold) else part["threshold"] == threshold
    row = part[(part["metric"] == metric) & same]
    if not len(row):
        return Cell("–")
    value, low, high = (float(row[c].iloc[0]) for c in columns)
    return Cell.interval(value, low, high, 3)


def _rows(run: StudyResults, questions: Sequence[str]) -> pd.DataFrame:
    table = run.table("added_value")
    if "question" not in table:
        return pd.DataFrame(columns=["question", "view", "metric", "threshold"])
    return table[table["question"].isin(questions)]


def view_set_table(run: StudyResults) -> Table:
    """Return how well each view set predicts, with intervals."""
    rows = _rows(run, (BASELINE, WITH, ALL, ALONE, WITHOUT))
    metrics = _metrics(rows)
    columns = [Column("Views", numeric=False), Column("People", "who have one of these views")]
    for _, _, heading, up in metrics:
        columns.append(Column(heading, "higher is better" if up else "lower is better"))
    table = Table("view_sets", "Views and how well they predict, with 95 % intervals", columns)
    base = baseline_of(run.table("added_value"))
    for (question, view), part in rows.groupby(["question", "view"], sort=False):
        name = comparison_name(str(question), str(view), base)
        cells = [Cell.name(name), Cell.whole(part["people"].iloc[0])]
        ends = ("value", "value_low", "value_high")
        table.add([*cells, *(_cell_of(part, m, t, ends) for m, t, _, _ in metrics)])
    return table


def addition_table(run: StudyResults) -> Table:
    """Return what each view adds, with intervals, tests and the detectable increase."""
    rows = _rows(run, (ADDED, ALL_ADDED, BEYOND))
    metrics = _metrics(rows)
    columns = [Column("Comparison", numeric=False), Column("People", "who have the view")]
    for _, _, heading, up in metrics:
        sign = "positive" if up else "negative"
        # Names of metrics within a sentence, apart from abbreviations and names of people.
        inside = heading.replace("Log-loss", "log-loss").replace("Net", "net")
        columns.append(Column(f"Difference in {inside}", f"{sign} where the view helps"))
    main = metrics[0][2] if metrics else ""
    columns += [
        Column("p", f"of {main}; corrected resampled t-test over the folds, by Holm's rule"),
        Column("Detectable", f"increase of {main} that would be shown with a probability of 80 %"),
    ]
    table = Table("added_value", "What each view adds, on the same held-out people", columns)
    base = baseline_of(run.table("added_value"))
    for (question, view), part in rows.groupby(["question", "view"], sort=False):
        cells = [
            Cell.name(comparison_name(str(question), str(view), base)),
            Cell.whole(part["people"].iloc[0]),
        ]
        cells += [_cell_of(part, m, t, ("difference", "low", "high")) for m, t, _, _ in metrics]
        first = part.iloc[0]
        p = float(first["p_holm"])
        cells.append(Cell(p_value(p), sort_key(p)))
        table.add([*cells, Cell.of(first["detectable"], 3)])
    return table


def reclassification_table(run: StudyResults) -> Table:
    """Return who moves across the thresholds when a view is added."""
    columns = [
        Column("Comparison", numeric=False), Column("Threshold"), Column("Class", numeric=False),
        Column("People"), Column("Up", "test positive with the view, and not without it"),
        Column("Down", "test positive without the view, and not with it"), Column("Unchanged"),
        Column("Net", "share that moves to the right side less the share that moves to the wrong"),
    ]  # fmt: skip
    table = Table("reclassification", "Who moves across the thresholds", columns)
    rows = run.table("reclassification")
    base = baseline_of(run.table("added_value"))
    for row in rows.to_dict("records") if "question" in rows else []:
        whole = [
            Cell.of(row[c], 0 if float(row[c]).is_integer() else 1)
            for c in ("people", "up", "down", "unchanged")
        ]
        table.add(
            [
                Cell.name(comparison_name(row["question"], row["view"], base)),
                Cell.of(row["threshold"]),
                Cell.name(row["class"]),
                *whole,
                Cell.interval(row["net"], row["low"], row["high"], 3),
            ]
        )
    if table and int(run.record.get("repeats", 1)) > 1:
        table.note = "Numbers of people are means over the repeats."
    return table
