"""Evidence for the headlines and checks: intervals and tests, taken from the tables of a study."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd

from baldur.evaluation.label_matrix import NO_YES
from baldur.evaluation.metrics import METRICS
from baldur.report.formatting import count, short
from baldur.report.results import StudyResults
from baldur.report.sentences import CalibrationEvidence, ComparisonEvidence, Interval, Prediction


def interval_of(rows: pd.DataFrame, **where: str) -> Interval:
    """Return estimate, low and high of the first row with given values; NaN where there is none."""
    for column, value in where.items():
        if column not in rows:
            return Interval()
        rows = rows[rows[column].astype(str) == value]
    if not len(rows):
        return Interval()
    return Interval(*(float(rows[c].iloc[0]) for c in ("estimate", "low", "high")))


def prediction_of(run: StudyResults, main: str) -> Prediction:
    """Return the evidence on whether the outcome can be predicted."""
    rows = run.of_model("intervals", main)
    classes = run.classes
    if classes:
        what = f"{len(classes)} classes"
        if classes == NO_YES and run.record.get("outcome"):
            what = short(run.record["outcome"])
        elif len(classes) == 2:
            what = f"{short(classes[-1])} against {short(classes[0])}"
        of, metric, chance = f"{short(main)} for {what}", "auc", 0.5
        value = interval_of(rows, metric="auc", site="*")
        if not math.isfinite(value.estimate):  # a model that only predicts labels
            metric, chance = "balanced_accuracy", 1 / len(classes)
            value = interval_of(rows, metric=metric, site="*")
        name = "AUC" if metric == "auc" else "balanced accuracy"
    else:
        outcome = short(run.record.get("outcome") or "the outcome")
        of, name, chance = f"{short(main)} for {outcome}", "R²", 0.0
        value = interval_of(rows, metric="r2", site="*")
    tested = run.of_model("permutation", main)
    p = float(tested["p_holm"].iloc[0]) if "p_holm" in tested and len(tested) else None
    return Prediction(value, chance, name, of, _how(run), p)


def _how(run: StudyResults) -> str:
    people = count(run.record.get("people", 0), "person", "people")
    folds = count(run.record.get("folds", 0), "fold")
    repeats = int(run.record.get("repeats", 1))
    more = f" and {repeats} repeats" if repeats > 1 else ""
    return f"on {people} whom the model had not seen (cross-validation with {folds}{more})"


def calibration_of(
    rows: pd.DataFrame, what: str = "probabilities", needs_intercept: bool = True
) -> CalibrationEvidence:
    """Return the evidence on calibration."""
    slope, intercept = (interval_of(rows, measure=name) for name in ("slope", "intercept"))
    return CalibrationEvidence(slope, intercept, what, needs_intercept)


def comparison_of(run: StudyResults, main: str) -> ComparisonEvidence | None:
    """Return the evidence on other models with all views; None where there is no other."""
    found = differences_between(run, main)
    if found is None:
        return None
    # Rows with some of the views are compared where it is said what a view adds.
    others = run.with_all_views if main in run.with_all_views else run.finished
    whole = {m: d for m, d in found.differences.items() if m in others}
    return replace(found, differences=whole) if whole else None


def differences_between(run: StudyResults, main: str) -> ComparisonEvidence | None:
    """Return the differences between a model and every other; None where there is no other."""
    table = run.table("differences")
    known = set(table["metric"]) & set(METRICS) if "metric" in table else set()
    # The metric that settings were chosen by need not be among those that were asked for.
    wanted = [run.record.get("select_by", ""), *run.record.get("metrics", [])]
    metric = next((m for m in wanted if m in known), "")
    rows = _pairs_with(table, metric, main)
    if not rows:
        return None
    tests = _pairs_with(run.table("comparisons"), metric, main)
    sign = 1.0 if METRICS[metric].greater_is_better else -1.0
    found = {
        name: _difference(row, sign if row["model_a"] == main else -sign)
        for name, row in rows.items()
    }
    p_values = {name: float(row["p_holm"]) for name, row in tests.items() if name in found}
    return ComparisonEvidence(found, main, METRICS[metric].heading, p_values)


def _pairs_with(rows: pd.DataFrame, metric: str, main: str) -> dict[str, Mapping[Any, Any]]:
    """Return the row of every other model that is compared with the main one."""
    if "metric" not in rows:
        return {}
    rows = rows[rows["metric"] == metric]
    rows = rows[(rows["model_a"] == main) | (rows["model_b"] == main)]
    pairs: dict[str, Mapping[Any, Any]] = {
        str(row["model_b"] if row["model_a"] == main else row["model_a"]): row
        for row in rows.to_dict("records")
    }
    pairs.pop(main, None)
    return pairs


def _difference(row: Mapping[Any, Any], sign: float) -> Interval:
    """Return a difference with its interval, above 0 where the main model is better."""
    difference, low, high = (sign * float(row[k]) for k in ("difference", "low", "high"))
    return Interval(difference, min(low, high), max(low, high))
