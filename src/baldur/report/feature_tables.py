"""The table of features: weights with intervals, and how far the folds agree on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.summary import BOTH, uncertain_weights
from baldur.evaluation.predictions import EVERYBODY
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    Cell,
    Column,
    Table,
    distinct,
    listed,
    number,
    percent,
    sd_decimals,
    short,
    sort_key,
)
from baldur.report.results import HAS, StudyResults

MOST_FEATURES = 1000
"""Rows of the model that the page is about; 1,000 are 0.5 MB of a page."""
MOST_OF_OTHERS = 100
"""Rows of each other model."""

_KNOWN = {
    "inclusion_probability": ("Inclusion probability", "that the weight is not zero", True),
    "credible_set": ("Credible set", "correlated features that are interchangeable with it", False),
}


def feature_table(run: StudyResults | None, main: str | None, model: FittedModel | None) -> Table:
    """Return the features: weights with intervals, how often selected, and credible sets."""
    folds = _of_folds(run, main)
    fitted = _of_fit(model)
    several = len(set(fitted.get("output", [])) | set(folds.get("class", []))) > 1
    # The first column is the title of a card on a phone.
    columns = [Column("Feature", numeric=False), Column("View", numeric=False)]
    if several:
        columns.append(Column("Class", "that the weight points to", numeric=False))
    if run is not None:
        columns.append(Column("Model", numeric=False))
    columns.append(Column("Weight per s.d.", "of the fit on all people; else mean over folds"))
    known = [c for c in ("inclusion_probability", "credible_set") if c in fitted]
    columns += [Column(*_KNOWN[name]) for name in known]
    if run is not None:
        columns += [
            Column("In folds", "share of the outer folds that select it"),
            Column("Sign agreement", "share of these folds with the more frequent sign"),
        ]
    table = Table("features", "Selected features", columns)
    joined = _joined(folds, fitted, main or "")
    limit = {m: (MOST_FEATURES if m in (main, "") else MOST_OF_OTHERS) for m in joined["model"]}
    left = 0
    for name, part in joined.groupby("model", sort=False):
        shown = part.head(limit[name])
        left += len(part) - len(shown)
        for row in shown.to_dict("records"):
            cells = [Cell.name(row["feature"]), Cell.name(row["view"])]
            if several:
                cells.append(Cell.name(row["class"]))
            if run is not None:
                cells.append(Cell.name(row["model"]))
            if np.isfinite(row["lower"]):
                cells.append(Cell.interval(row["weight"], row["lower"], row["upper"]))
            else:
                cells.append(Cell.of(row["weight"], small=True))
            if "inclusion_probability" in known:
                cells.append(Cell.probability(row["inclusion_probability"]))
            if "credible_set" in known:
                cells.append(Cell.name(row["credible_set"] or ""))
            if run is not None:
                cells.append(Cell.share(row["frequency"]))
                cells.append(Cell.share(row["sign_agreement"]))
            table.add(cells, model=str(row["model"]), view=str(row["view"]))
    notes = []
    if left:
        notes.append(f"{left:,} more rows are not shown; selection.csv has them all.")
    both = uncertain_weights(fitted)
    if both:
        verb = "has" if len(both) == 1 else "have"
        notes.append(
            f"{listed(distinct(both), 5)} {verb} an inclusion probability of at least 0.90 and an "
            f"interval that includes 0. {BOTH}"
        )
    table.note = " ".join(notes)
    return table


def _of_folds(run: StudyResults | None, main: str | None) -> pd.DataFrame:
    if run is None or "feature" not in run.table("selection"):
        return pd.DataFrame(columns=["model", "view", "feature", "class"])
    rows = run.table("selection")
    rows = rows[rows["feature"] != "*"].copy()
    order = {m: i for i, m in enumerate(dict.fromkeys([main, *run.finished]))}
    rows["rank"] = rows["model"].map(order)
    rows["size"] = rows["mean_weight"].astype(float).abs()
    rows = rows.sort_values(
        ["rank", "frequency", "size"], ascending=[True, False, False], kind="stable"
    )
    # Only so many are ever shown, and there may be a million.
    keep = rows.groupby("model", sort=False).cumcount() < 4 * MOST_FEATURES
    return rows[keep]


def _of_fit(model: FittedModel | None) -> pd.DataFrame:
    if model is None:
        return pd.DataFrame()
    summary = model.summary()
    return summary.head(4 * MOST_FEATURES)


def _joined(folds: pd.DataFrame, fitted: pd.DataFrame, main: str) -> pd.DataFrame:
    """Join the tables of folds and of the fitted model; missing values are NaN."""
    left = pd.DataFrame(
        {
            "model": folds["model"],
            "view": folds["view"],
            "feature": folds["feature"],
            "class": folds["class"],
            "mean": folds["mean_weight"].astype(float) if len(folds) else pd.Series(dtype=float),
            "frequency": folds["frequency"].astype(float) if len(folds) else np.nan,
            "sign_agreement": folds["sign_agreement"].astype(float) if len(folds) else np.nan,
        }
    )
    empty = pd.Series(dtype=object)
    right = pd.DataFrame(
        {
            "view": fitted.get("view", empty).astype(str),
            "feature": fitted.get("feature", empty).astype(str),
            "class": fitted.get("output", empty).astype(str),
            "weight": fitted.get("weight_scaled", pd.Series(dtype=float)),
            "lower": fitted.get("lower", pd.Series(dtype=float)),
            "upper": fitted.get("upper", pd.Series(dtype=float)),
            "inclusion_probability": fitted.get("inclusion_probability", pd.Series(dtype=float)),
            "credible_set": fitted.get("credible_set", empty),
        }
    )
    right.insert(0, "model", main)
    right["place"] = np.arange(len(right))
    keys = ["model", "view", "feature", "class"]
    made = left.merge(right, on=keys, how="outer", sort=False)
    made["weight"] = made["weight"].astype(float).fillna(made["mean"].astype(float))
    made["credible_set"] = made["credible_set"].where(made["credible_set"].notna(), "")
    order = {m: i for i, m in enumerate(dict.fromkeys([main, *left["model"]]))}
    made["rank"] = made["model"].map(order)
    made["size"] = made["weight"].abs()
    for name in ("lower", "upper", "inclusion_probability", "frequency", "sign_agreement"):
        made[name] = made[name].astype(float)
    return made.sort_values(
        ["rank", "place", "frequency", "size"], ascending=[True, True, False, False], kind="stable"
    ).reset_index(drop=True)


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
