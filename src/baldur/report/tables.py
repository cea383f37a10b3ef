"""Tables of models, differences, thresholds, subgroups, participants and outcomes.

A table is a list of columns (heading, column of the results, format); `make_table` applies it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.decision import SAME_PEOPLE
from baldur.evaluation.metrics import AVERAGE, METRICS
from baldur.evaluation.participants import EVERYBODY, HAS
from baldur.evaluation.results import Results
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    ENDS,
    Cell,
    Column,
    Table,
    direction,
    distinct,
    ends_of,
    estimate,
    make_table,
    number,
    p_value,
    percent,
    sd_decimals,
    short,
    sort_key,
    spread,
    whole,
)
from baldur.report.sentences import comparison_legend, other_models
from baldur.views.validate import counted

MOST_ROWS = 300
"""Rows of subgroups on the page; the file has them all."""
MOST_SITES = 12
"""Sites listed; more are in presence.csv and predictions.csv."""
MOST_PATTERNS = 50
"""Patterns of missing views listed."""
MOST_CLASSES = 6
"""Classes with a column of their own; the table of more would be too wide to read."""
_MOST_DECIMALS = 6

_SHARE = (
    "mean over folds, % of the features of all views; a category has one feature for each level "
    "without the reference level"
)
_MEANING = {
    "calibration": "mean distance of probabilities from observed frequencies, in bins; ",
}
"""What a column says about a metric whose name does not."""


def model_table(run: Results) -> Table:
    """Return one row per model with every metric and its interval."""
    frame = run.table("table")
    ends = ("pooled", "low", "high")
    columns = [Column("Model", "model")]
    for metric in run.record.get("metrics", []):
        keys = tuple(f"{metric}_{end}" for end in ends)
        if all(key in frame for key in keys):
            meaning = f"{_MEANING.get(metric, '')}{direction(METRICS[metric].greater_is_better)}"
            columns.append(Column(METRICS[metric].heading, keys, estimate, meaning))
    columns.append(Column("Features selected", "features_percent", _percent, _SHARE))
    rows = [{"features_percent": np.nan, **row} for row in frame.to_dict("records")]
    notes = []
    for row in rows:
        failure = row.get("failure")
        text = f"failed: {failure}" if failure else str(row.get("note") or "")
        notes += [f"{short(row['model'])}: {short(text, 400)}."] if text else []
    caption = "Models with 95 % intervals on held-out people"
    return make_table("models", caption, rows, columns, " ".join(notes), tags=["model"])


def _percent(value: Any) -> str:
    return f"{number(value, 1).removesuffix('.0')} %" if np.isfinite(float(value)) else "–"


def difference_table(run: Results, main: str | None) -> Table:
    """Return the differences between the main model and every other, as in the headline."""
    caption = f"Differences between {short(main or '')} and the other models"
    rows = pd.DataFrame() if main is None else other_models(run, main)
    if main is None or not len(rows):
        return Table("differences", caption, [])
    columns = [
        Column("Other model", "model"),
        Column(
            f"Difference in {rows['metric'].iloc[0]}", ENDS, estimate,
            "positive where the main model is better",
        ),
        Column(
            "p", "p", p_value,
            "corrected resampled t-test over the folds, adjusted by Holm's rule",
        ),
    ]  # fmt: skip
    note = (
        f"{comparison_legend(rows, main)} These intervals decide the headline. The p-values are "
        "those of another method, the corrected resampled t-test over the folds, adjusted by "
        "Holm's rule; with few folds it is imprecise."
    )
    return make_table("differences", caption, rows, columns, note)


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


def threshold_table(run: Results) -> Table:
    """Return sensitivity, specificity and others of each model as a test, at each threshold."""
    frame = run.table("thresholds")
    rows = spread(frame, ["model", "threshold", "rule"], "measure")
    for row in rows:
        rule = _RULES.get(str(row["rule"]), f"chosen for {row['rule']}")
        rule += ", optimistic" if SAME_PEOPLE in str(row["note"]) else ""
        row["threshold"] = Cell(number(row["threshold"]), sort_key(row["threshold"]), rule)
    columns = [Column("Model", "model"), Column("Threshold", "threshold", number)]
    columns += [Column(name, ends_of(key), estimate) for key, name in _MEASURES.items()]
    note = ""
    # The other rules choose a threshold on the data.
    if len(frame) and len(chosen := frame[~frame["rule"].isin(_RULES)]):
        optimistic = chosen["note"].astype(str).str.contains(SAME_PEOPLE).any()
        note = _CHOSEN + (
            "; those marked ‘optimistic’ are for the people on whom it was chosen."
            if optimistic
            else "."
        )
    caption = "The models as tests, with 95 % intervals"
    return make_table("thresholds", caption, rows, columns, note, tags=["model"])


_ICI = (
    "ICI, the integrated calibration index, is the mean distance of probabilities from a smooth "
    "curve of observed frequencies; the calibration error of the models is computed in bins, so "
    "the two differ."
)
_SUBGROUPS = [
    Column("Subgroup", "subgroup"),
    Column("Level", "level"),
    Column("People", "people", whole),
    Column("Cases", "cases", whole),
    Column("Measure", "measure"),
    Column("Estimate", ENDS, estimate),
    Column(
        "Difference", ("difference", "difference_low", "difference_high"), estimate,
        "subgroup minus all others",
    ),
    Column("Note", "note"),
]  # fmt: skip


def subgroup_table(run: Results, main: str | None) -> Table:
    """Return the figures of the model in subgroups, and their differences from all others."""
    frame = run.table("subgroups") if main is None else run.of_model("subgroups", main)
    caption = "Figures in subgroups, with 95 % intervals"
    if "measure" not in frame:
        return Table("subgroups", caption, _SUBGROUPS)
    note = multiplicity(frame)
    if "ici" in set(frame["measure"]):
        note += f" {_ICI}"
    if len(frame) > MOST_ROWS:
        note += f" {counted(len(frame) - MOST_ROWS, 'row')} more in subgroups.csv."
    shown = frame.head(MOST_ROWS)
    names = shown["measure"].astype(str)
    headings = {"ici": "ICI"} | {name: metric.heading for name, metric in METRICS.items()}
    shown = shown.assign(measure=names.map(headings).fillna(names.str.replace("_", " ")))
    return make_table("subgroups", caption, shown, _SUBGROUPS, note)


def multiplicity(frame: pd.DataFrame) -> str:
    """Return a sentence on how many intervals exclude 0, and how many would by chance (5 %)."""
    ends = frame[["difference_low", "difference_high"]].to_numpy(dtype=float)
    ends = ends[np.isfinite(ends).all(axis=1)]
    if not len(ends):
        return ""
    n_apart = int(np.sum((ends[:, 0] > 0) | (ends[:, 1] < 0)))
    expected = number(0.05 * len(ends), 1).removesuffix(".0")
    return (
        f"{counted(len(ends), 'difference')} {'is' if len(ends) == 1 else 'are'} compared with 0, "
        f"and {n_apart} of the intervals {'excludes' if n_apart == 1 else 'exclude'} it. The "
        "intervals are not adjusted for their number: about "
        f"{expected} would exclude 0 by chance alone."
    )


def participants_table(run: Results) -> Table:
    """Return the participants by outcome (a "Table 1"): everybody and each class in a column.

    Rows are numbers of people, the outcome of a regression, sites, views and features.
    """
    people, classes = run.people, run.classes
    caption = "Participants by outcome"
    if "label" not in people:
        return Table("participants", caption, [])
    labels = people["label"].astype(str)
    groups = {EVERYBODY: np.ones(len(people), dtype=bool)}
    groups |= {name: (labels == name).to_numpy() for name in classes}
    sizes = {name: int(group.sum()) for name, group in groups.items()}
    total = sizes[EVERYBODY]
    if len(classes) > MOST_CLASSES:
        columns = [
            Column("Outcome", "class"),
            Column("People", "people", whole),
            Column("Share", "share", percent),
        ]
        counts = [{"class": c, "people": sizes[c], "share": sizes[c] / total} for c in classes]
        return make_table("participants", caption, counts, columns)
    heads = ["All", *distinct(classes, 30)]
    columns = [Column("Characteristic", "head")]
    columns += [Column(head, group, number) for head, group in zip(heads, groups, strict=True)]
    shares = {name: "" if n == total else percent(n / max(total, 1)) for name, n in sizes.items()}
    rows: list[dict[str, Any]] = [
        {"head": Cell("People")}
        | {name: Cell(f"{n:,}", float(n), shares[name]) for name, n in sizes.items()}
    ]
    if not classes:
        values = people["label"].astype(float)
        cell = mean_sd(float(values.mean()), float(values.std()))
        outcome = short(run.record.get("outcome") or "Outcome")
        ends = f"{number(values.min())} to {number(values.max())}"
        rows.append(
            {"head": Cell(outcome, small="mean (s.d.), range"), EVERYBODY: Cell(cell, small=ends)}
        )
    if "site" in people:
        sites = people["site"].astype(str)
        names = sorted(sites.unique())[:MOST_SITES]
        for site, short_name in zip(names, distinct(names, 30), strict=True):
            of_site = (sites == site).to_numpy()
            row: dict[str, Any] = {"head": Cell(f"Site {short_name}", small="number (%)")}
            for name, group in groups.items():
                n = int((of_site & group).sum())
                row[name] = _counted(n, n / sizes[name] if sizes[name] else None)
            rows.append(row)
    rows += _feature_rows(run.table("participants"), list(groups))
    return make_table("participants", caption, rows, columns)


def _feature_rows(frame: pd.DataFrame, groups: list[str]) -> list[dict[str, Any]]:
    """Return a row for each view with missing samples, and for each feature of small views.

    `groups` are the classes and `EVERYBODY`, each a key of a row beside "head".
    """
    if "feature" not in frame:
        return []
    several = frame["view"].nunique() > 1
    rows = []
    for (view, feature, level), part in frame.groupby(["view", "feature", "level"], sort=False):
        # Backwards, so that of equal classes the first row counts.
        by_group = {str(row["class"]): row for row in part.to_dict("records")[::-1]}
        if EVERYBODY not in by_group:
            continue
        of_all = by_group[EVERYBODY]
        kind, missing = str(of_all["kind"]), float(of_all["missing"])
        if kind == "view":
            if not missing > 0:
                continue  # every sample has it
            head = Cell(f"Has {short(view)}", small="number (%)")
        else:
            small = "number (%)" if kind == "share" else "mean (s.d.)"
            small = f"{short(view)}, {small}" if several else small
            if missing > 0:
                small += f", {missing:,.0f} missing"
            has_level = not level or str(feature).endswith(str(level))  # in its name
            head = Cell(str(feature) if has_level else f"{feature} = {level}", small=small)
        cells = dict.fromkeys(groups, Cell("–"))
        for group, row in by_group.items():
            cells[group] = (
                Cell(mean_sd(row["mean"], row["sd"]), sort_key(row["mean"]))
                if kind == "number"
                else _counted(row["count"], row["share"])
            )
        rows.append({"head": head, **cells})
    return rows


def _counted(n: Any, share: Any) -> Cell:
    """Return the cell of a number of people and their share, where it is known."""
    text = whole(n) if share is None else f"{whole(n)} ({percent(share)})"
    return Cell(text, sort_key(n))


def mean_sd(mean: float, sd: float) -> str:
    """Return ``67.0 (7.1)``, with so many decimals that the s.d. has two digits.

    Of values that do not vary, the mean has two decimals.
    """
    digits = min(sd_decimals(sd), _MOST_DECIMALS)
    return f"{number(mean, digits)} ({number(sd, digits)})"


def presence_table(run: Results) -> Table:
    """Return which views are missing: one row per pattern, the most frequent first."""
    people = run.people
    indicators = [c for c in people.columns if c.startswith(HAS)]  # 1 for who has the view
    columns = [Column("Missing views", "views"), Column("People", "people", whole)]
    caption = "Samples with missing views"
    if not indicators or people[indicators].fillna(1).astype(bool).all(axis=None):
        return Table("presence", caption, columns)
    patterns = people[indicators].fillna(1).astype(int).value_counts(sort=True)
    rows = []
    for pattern, n in list(patterns.items())[:MOST_PATTERNS]:
        values = pattern if isinstance(pattern, tuple) else (pattern,)
        lacking = [c.removeprefix(HAS) for c, v in zip(indicators, values, strict=True) if not v]
        rows.append({"views": ", ".join(distinct(lacking)) or "none", "people": n})
    rest = len(patterns) - MOST_PATTERNS
    note = f"{rest:,} rarer patterns are not shown; presence.csv has them." if rest > 0 else ""
    return make_table("presence", caption, rows, columns, note)


def label_table(model: FittedModel) -> Table:
    """Return how many of the people passed with a model have each outcome."""
    columns = [Column("Outcome", "outcome"), Column("People", "people", whole)]
    caption = "People passed with the model, by outcome"
    counts: list[int] = []
    if model.y is not None and model.classes and np.ndim(model.y) == 2:
        # Of a label matrix each column is an outcome, and people may have several.
        caption = "People passed with the model who have each outcome"
        counts = np.asarray(model.y).sum(axis=0).tolist()
    elif model.y is not None:
        counts = [sum(str(label) == name for label in model.y) for name in model.classes]
    rows = [{"outcome": c, "people": n} for c, n in zip(model.classes, counts, strict=False)]
    return make_table("participants", caption, rows, columns)


def outcome_counts(run: Results) -> Table:
    """Return how many people have each of several yes/no outcomes."""
    columns = [
        Column("Outcome", "outcome"),
        Column("Yes", "yes", whole),
        Column("No", "no", whole),
        Column("Share", "share", percent),
    ]
    rows = []
    for name, results in run.outcomes.items():
        labels = results.people.get("label", pd.Series(dtype=str)).astype(str)
        yes, total = int((labels == results.classes[-1]).sum()), len(labels)
        if "label" in results.people:
            share = yes / total if total else None
            rows.append({"outcome": name, "yes": yes, "no": total - yes, "share": share})
    return make_table("participants", "People with each outcome", rows, columns)


def outcome_table(run: Results, metric: str) -> Table:
    """Return one metric of every model for the mean and for every outcome."""
    frame = run.table("intervals", every_outcome=True)
    outcomes = frame["outcome"].astype(str)
    frame = frame.assign(outcome=outcomes.where(outcomes != AVERAGE, "Mean over outcomes"))
    models = [m for m in run.record.get("models", []) if m in set(frame["model"])]
    rows = spread(frame[frame["metric"].astype(str) == metric], ["outcome"], "model")
    columns = [Column("Outcome", "outcome")]
    columns += [Column(short(m), ends_of(m), estimate) for m in models]
    heading = METRICS[metric].heading
    note = (
        f"{heading} on pooled held-out predictions. The interval of the mean comes from resamples "
        "of people with all their outcomes."
    )
    caption = f"{heading} of every outcome, with 95 % intervals"
    return make_table("outcomes", caption, rows, columns, note)
