"""The table of models: every metric with its interval on held-out people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.thresholds import SAME_PEOPLE
from baldur.evaluation.metrics import METRICS
from baldur.report.evidence import comparison_of
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    Cell,
    Column,
    Table,
    count,
    distinct,
    number,
    p_value,
    percent,
    short,
)
from baldur.report.results import StudyResults

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


MOST_ROWS = 300
"""Rows of subgroups on the page; the file has them all."""

_MEASURES = {
    "sensitivity": "Sensitivity", "specificity": "Specificity", "ppv": "Positive predictive value",
    "npv": "Negative predictive value", "lr_positive": "Likelihood ratio, positive",
    "lr_negative": "Likelihood ratio, negative", "number_needed_to_test": "Number needed to test",
    "number_needed_to_evaluate": "Number needed to evaluate",
}  # fmt: skip
_RULES = {"stated": "", "prevalence": "prevalence"}
_CHOSEN = (
    "A threshold that was chosen for a sensitivity or specificity is the one chosen on all people. "
    "Its figures are for the people of each fold with the threshold chosen on the other folds"
)


def threshold_table(run: StudyResults) -> Table:
    """Return what the models would do as tests at stated thresholds."""
    frame = run.table("thresholds")
    columns = [Column("Model", numeric=False), Column("Threshold")]
    columns += [Column(name) for name in _MEASURES.values()]
    table = Table("thresholds", "The models as tests, with 95 % intervals", columns)
    if "measure" not in frame:
        return table
    for (model, threshold, rule), part in frame.groupby(["model", "threshold", "rule"], sort=False):
        by = part.drop_duplicates("measure").set_index("measure")
        at = _RULES.get(str(rule), f"chosen for {rule}")
        if SAME_PEOPLE in str(part["note"].iloc[0]):
            at += ", optimistic"
        cells = [Cell.name(model), Cell(number(threshold), float(str(threshold)), at)]
        for key in _MEASURES:
            if key in by.index:
                row = by.loc[key]
                cells.append(Cell.interval(row["estimate"], row["low"], row["high"]))
            else:
                cells.append(Cell("–"))
        table.add(cells, model=str(model))
    chosen = frame[~frame["rule"].isin(_RULES)]
    same = chosen["note"].astype(str).str.contains(SAME_PEOPLE)
    if len(chosen):
        table.note = (
            f"{_CHOSEN}."
            if not same.any()
            else f"{_CHOSEN}; those marked ‘optimistic’ are for the people on whom it was chosen."
        )
    return table


_ICI = (
    "ICI, the integrated calibration index, is the mean distance of probabilities from a smooth "
    "curve of observed frequencies; the calibration error of the models is computed in bins, so "
    "the two differ."
)


def subgroup_table(run: StudyResults, main: str | None) -> Table:
    """Return the figures of the model in subgroups, and their differences from all others."""
    frame = run.table("subgroups") if main is None else run.of_model("subgroups", main)
    columns = [
        Column("Subgroup", numeric=False), Column("Level", numeric=False), Column("People"),
        Column("Cases"), Column("Measure", numeric=False), Column("Estimate"),
        Column("Difference", "subgroup minus all others"), Column("Note", numeric=False),
    ]  # fmt: skip
    table = Table("subgroups", "Figures in subgroups, with 95 % intervals", columns)
    if "measure" not in frame:
        return table
    for row in frame.head(MOST_ROWS).to_dict("records"):
        measure = str(row["measure"])
        name = METRICS[measure].heading if measure in METRICS else measure.replace("_", " ")
        table.add(
            [
                Cell.name(row["subgroup"]), Cell.name(row["level"]), Cell.whole(row["people"]),
                Cell.whole(row["cases"]), Cell.name("ICI" if name == "ici" else name),
                Cell.interval(row["estimate"], row["low"], row["high"]),
                Cell.interval(row["difference"], row["difference_low"], row["difference_high"]),
                Cell.name(row["note"]),
            ]
        )  # fmt: skip
    table.note = multiplicity(frame)
    if "ici" in set(frame["measure"]):
        table.note += f" {_ICI}"
    if len(frame) > MOST_ROWS:
        table.note += f" {count(len(frame) - MOST_ROWS, 'row')} more in subgroups.csv."
    return table


def multiplicity(frame: pd.DataFrame) -> str:
    """Return how many differences are shown, and how many would exclude 0 by chance."""
    ends = frame[["difference_low", "difference_high"]].to_numpy(dtype=float)
    ends = ends[np.isfinite(ends).all(axis=1)]
    if not len(ends):
        return ""
    apart = int(np.sum((ends[:, 0] > 0) | (ends[:, 1] < 0)))
    expected = number(0.05 * len(ends), 1).removesuffix(".0")
    return (
        f"{count(len(ends), 'difference')} {'is' if len(ends) == 1 else 'are'} compared with 0, "
        f"and {apart} of the intervals {'excludes' if apart == 1 else 'exclude'} it. The intervals "
        f"are not adjusted for their number: about {expected} would exclude 0 by chance alone."
    )


LISTED = 8
"""Features named on a card."""


class ViewCard:
    """What the page says about one view.

    Shapes: facts (str, str).
    """

    def __init__(self, name: str, facts: list[tuple[str, str]], features: list[str]) -> None:
        self.name = name
        self.facts = facts
        self.features = features


def view_cards(
    run: StudyResults | None, main: str | None, model: FittedModel | None
) -> list[ViewCard]:
    """Return the cards of all views, in their order."""
    widths: dict[str, int] = {}
    facts: dict[str, list[tuple[str, str]]] = {}
    features: dict[str, list[str]] = {}
    if run is not None:
        n = int(run.record.get("people", 0))
        for view in run.record.get("views", []):
            name = view["name"]
            widths[name] = int(view["features"])
            facts[name] = [
                ("Features", f"{view['features']:,}"),
                ("People with it", f"{view['people']:,} of {n:,}"),
            ]
        if main is not None:
            _cards_of_folds(run, main, facts, features)
    inner = None if model is None else model.inner
    if inner is not None:
        for name, mask in inner.selected_features_.items():
            made = facts.setdefault(name, [("Features", f"{len(mask):,}")])
            made.append(("Selected in the fit on all people", f"{int(np.sum(mask)):,}"))
            made.append(("Its share there", percent(inner.view_relevance_[name])))
            if not features.get(name):
                summary = model.summary() if model is not None else pd.DataFrame()
                own = summary[summary["view"] == name] if len(summary) else summary
                features[name] = distinct(list(dict.fromkeys(own.get("feature", [])))[:LISTED])
    return [ViewCard(name, made, features.get(name, [])) for name, made in facts.items()]


def _cards_of_folds(
    run: StudyResults,
    main: str,
    facts: dict[str, list[tuple[str, str]]],
    features: dict[str, list[str]],
) -> None:
    ranges = _ranges(run, main)
    for row in run.of_model("views", main).to_dict("records"):
        made = facts.setdefault(row["view"], [])
        made.append(("Used in folds", percent(row["frequency"])))
        made.append(("Features selected, mean", percent(float(row["percent_of_view"]) / 100, 1)))
        if np.isfinite(float(row["variance_share"])):
            made.append(("Share of the prediction's variance", percent(row["variance_share"])))
            if row["view"] in ranges:
                made.append(("Its range over the folds", ranges[row["view"]]))
    index = run.of_model("stability", main)
    for row in index[index["view"] != "*"].to_dict("records") if len(index) else []:
        if np.isfinite(float(row["stability"])):
            facts.setdefault(row["view"], []).append(
                ("Agreement of folds", number(row["stability"]))
            )
    rows = run.of_model("selection", main)
    if "feature" not in rows:
        return
    rows = rows[rows["feature"] != "*"]
    for view, part in rows.groupby("view", sort=False):
        ordered = part.sort_values("frequency", ascending=False, kind="stable")
        features[str(view)] = distinct(list(dict.fromkeys(ordered["feature"]))[:LISTED])


def _ranges(run: StudyResults, main: str) -> dict[str, str]:
    """Return the range of every view's share over the folds, as text."""
    rows = run.of_model("view_shares", main)
    if "variance_share" not in rows:
        return {}
    ends = rows.groupby("view", sort=False)["variance_share"].agg(["min", "max"]).dropna()
    return {
        str(view): f"{percent(row['min'])} to {percent(row['max'])}"
        for view, row in ends.iterrows()
        if percent(row["min"]) != percent(row["max"])
    }
