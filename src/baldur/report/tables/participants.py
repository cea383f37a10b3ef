"""Who was studied: characteristics of the participants by outcome, and who has which view."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.tables.participants import EVERYBODY
from baldur.report.formatting import distinct, number, percent, sd_decimals, short
from baldur.report.results import HAS, StudyResults
from baldur.report.tables.base import Cell, Column, Table, sort_key

MOST_SITES = 12
"""Sites listed; more are in presence.csv and predictions.csv."""
MOST_PATTERNS = 50
"""Patterns of missing views listed."""
_MOST_DECIMALS = 6
MOST_CLASSES = 6
"""Classes with a column of their own; the table of more would be too wide to read."""


def participants_table(run: StudyResults) -> Table:
    """Return the participants by outcome (a "Table 1")."""
    people, classes = run.people, run.classes
    if len(classes) > MOST_CLASSES:
        return _classes_in_rows(people, classes)
    columns = [Column("Characteristic", numeric=False), Column("All")]
    columns += [Column(name) for name in distinct(classes, 30)]
    table = Table("participants", "Participants by outcome", columns)
    if "label" not in people:
        return table
    labels = people["label"].astype(str).to_numpy()
    groups = [np.ones(len(people), dtype=bool), *(labels == c for c in classes)]
    sizes = [int(group.sum()) for group in groups]
    table.add(
        [Cell("People"), *(Cell(f"{n:,}", float(n), _of_all(n, sizes[0])) for n in sizes)],
        part="people",
    )
    if not classes:
        values = people["label"].astype(float)
        seen = mean_sd(float(values.mean()), float(values.std()))
        outcome = short(run.record.get("outcome") or "Outcome")
        ends = f"{number(values.min())} to {number(values.max())}"
        table.add([Cell(outcome, small="mean (s.d.), range"), Cell(seen, small=ends)])
    if "site" in people:
        sites = people["site"].astype(str)
        names = sorted(sites.unique())[:MOST_SITES]
        for site, shown in zip(names, distinct(names, 30), strict=True):
            here = (sites == site).to_numpy()
            counts = [int((here & group).sum()) for group in groups]
            table.add([Cell(f"Site {shown}", small="number (%)"), *_shares(counts, sizes)])
    _add_features(table, run.table("participants"), [EVERYBODY, *classes])
    return table


def _classes_in_rows(people: pd.DataFrame, classes: list[str]) -> Table:
    columns = [Column("Outcome", numeric=False), Column("People"), Column("Share")]
    table = Table("participants", "Participants by outcome", columns)
    if "label" not in people:
        return table
    labels = people["label"].astype(str)
    for name in classes:
        n = int((labels == name).sum())
        table.add([Cell.name(name), Cell.whole(n), Cell.share(n / max(len(people), 1))])
    return table


def _of_all(n: int, total: int) -> str:
    return "" if n == total else percent(n / max(total, 1))


def _shares(counts: list[int], sizes: list[int]) -> list[Cell]:
    return [
        Cell(f"{k:,} ({percent(k / n)})" if n else "0", float(k))
        for k, n in zip(counts, sizes, strict=True)
    ]


def _add_features(table: Table, frame: pd.DataFrame, groups: list[str]) -> None:
    """Add a row for each view with missing samples, and for each feature of small views."""
    if "feature" not in frame:
        return
    several = frame["view"].nunique() > 1
    for (view, feature, level), part in frame.groupby(["view", "feature", "level"], sort=False):
        by = {str(row["class"]): row for row in part.to_dict("records")[::-1]}
        if EVERYBODY not in by:
            continue
        kind, missing = str(by[EVERYBODY]["kind"]), float(by[EVERYBODY]["missing"])
        if kind == "view":
            if not missing > 0:
                continue  # every sample has it
            head = Cell(f"Has {short(view)}", small="number (%)")
        else:
            small = "number (%)" if kind == "share" else "mean (s.d.)"
            small = f"{short(view)}, {small}" if several else small
            if missing > 0:
                small += f", {missing:,.0f} missing"
            coded = not level or str(feature).endswith(str(level))
            head = Cell(str(feature) if coded else f"{feature} = {level}", small=small)
        cells = [_described(by[g], kind) if g in by else Cell("–") for g in groups]
        table.add([head, *cells])


def _described(row: Mapping[Any, Any], kind: str) -> Cell:
    if kind == "number":
        return Cell(mean_sd(row["mean"], row["sd"]), sort_key(row["mean"]))
    counted = Cell.whole(row["count"])
    return Cell(f"{counted.text} ({percent(row['share'])})", counted.sort)


def mean_sd(mean: float, sd: float) -> str:
    """Return ``67.0 (7.1)``, with so many decimals that the s.d. has two digits.

    Of values that do not vary, the mean has two decimals.
    """
    digits = min(sd_decimals(sd), _MOST_DECIMALS)
    return f"{number(mean, digits)} ({number(sd, digits)})"


def presence_table(run: StudyResults) -> Table:
    """Return which views are missing: one row per pattern, the most frequent first."""
    people = run.people
    has = [c for c in people.columns if c.startswith(HAS)]
    columns = [Column("Missing views", numeric=False), Column("People")]
    table = Table("presence", "Samples with missing views", columns)
    if not has or people[has].fillna(1).astype(bool).all(axis=None):
        return table
    patterns = people[has].fillna(1).astype(int).value_counts(sort=True)
    for pattern, n in list(patterns.items())[:MOST_PATTERNS]:
        values = pattern if isinstance(pattern, tuple) else (pattern,)
        lacking = [c.removeprefix(HAS) for c, v in zip(has, values, strict=True) if not v]
        table.add([Cell.name(", ".join(distinct(lacking)) or "none"), Cell.whole(n)])
    if len(patterns) > MOST_PATTERNS:
        rest = len(patterns) - MOST_PATTERNS
        table.note = f"{rest:,} rarer patterns are not shown; presence.csv has them."
    return table
