"""What each view adds: sentences that are decided by intervals, and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.evaluation.results import Results
from baldur.evaluation.view_additions import (
    ADDED,
    ALL,
    ALL_ADDED,
    ALONE,
    BASELINE,
    BEYOND,
    NET_BENEFIT,
    WITH,
    WITHOUT,
    main_metric,
)
from baldur.report.formatting import (
    Column,
    Table,
    direction,
    ends_of,
    estimate,
    listed,
    make_table,
    number,
    p_value,
    percent,
    short,
    spread,
    whole,
)
from baldur.report.sentences import NOT_SHOWN, SHOWN, UNKNOWN, Sentence
from baldur.views.validate import counted

if TYPE_CHECKING:
    from baldur.evaluation.view_additions import AddedValue

_COMPARED = (ADDED, ALL_ADDED, BEYOND)
_MOST_SENTENCES = 6
"""Views whose sentence is in the answer; the section has them all."""


def additions_of(table: pd.DataFrame, classification: bool) -> list[Sentence]:
    """Return a sentence for every comparison of a table, by the main metric.

    Its question is that of the table: `ADDED`, `ALL_ADDED` or `BEYOND`.
    """
    if "question" not in table:
        return []
    metric, base = main_metric(classification), baseline_of(table)
    rows = table[(table["metric"] == metric) & table["question"].isin(_COMPARED)]
    return [_addition(row, base, _heading(metric)) for row in rows.to_dict("records")]


def _addition(row: Mapping[Any, Any], base: str, metric: str) -> Sentence:
    """Return what a view adds to others, by the interval of the paired difference."""
    question, view = str(row["question"]), short(row["view"])
    if question == ALL_ADDED:
        view = f"all other views ({view})"
    others = "all other views" if question == BEYOND else base
    people = counted(_count(row["people"]), "person", "people")
    change, low, high = (float(row[end]) for end in _GAIN_ENDS)
    values = number(row["reference_value"], 3), number(row["value"], 3)
    from_to = f"from {values[0]} to {values[1]}, {_who(row, view, others)}"
    if not all(map(math.isfinite, (change, low, high))):
        outcome = UNKNOWN
        text = (
            f"What {view} adds to {others} cannot be determined: the difference in {metric} could "
            "not be estimated with an interval."
        )
    elif low > 0:
        outcome, increase = SHOWN, _with_ends(change, low, high)
        text = f"Adding {view} to {others} raised the {metric} by {increase}, {from_to}."
    elif high < 0:
        outcome, decrease = NOT_SHOWN, _with_ends(-change, -high, -low)
        text = f"Adding {view} to {others} lowered the {metric} by {decrease}, {from_to}."
    else:
        outcome = NOT_SHOWN
        text = (
            f"No added value of {view} beyond {others} was shown: the {metric} changed by "
            f"{_with_ends(change, low, high)}, {from_to}. With {people} "
        )
        detectable = float(row["detectable"])
        text += (
            "no possible increase could have been detected reliably."
            if math.isnan(detectable)
            else f"an increase of {_number(detectable)} could have been detected."
        )
    return Sentence(question, text, outcome)


def _who(row: Mapping[Any, Any], view: str, others: str) -> str:
    """Return the people on whom a view was compared with others: those who have both sides."""
    people, of_people = _count(row["people"]), _count(row["of_people"])
    who = f"on the same {counted(people, 'person', 'people')}"
    if people < of_people:
        # A comparison needs one view of each side; see `view_comparisons`.
        these = "one of these views" if row["question"] == ALL_ADDED else view
        rest = "one of the others" if row["question"] == BEYOND else others
        who += f" (of {of_people:,}) who have {these} and {rest}"
    return who


def _number(value: float) -> str:
    return number(value, 3, small=True)


def _with_ends(estimate: float, low: float, high: float) -> str:
    return f"{_number(estimate)} [{_number(low)}, {_number(high)}]"


def _count(value: float) -> int:
    """Return a number of people; 0 where a file that was changed has none."""
    return int(value) if math.isfinite(value) else 0


def _heading(metric: str) -> str:
    return _HEADINGS.get(metric, METRICS[metric].heading)


def baseline_of(table: pd.DataFrame) -> str:
    """Return the views that one has anyway, as text."""
    rows = table[table["question"] == BASELINE] if "question" in table else table
    return short(rows["view"].iloc[0]) if len(rows) else "the baseline"


def _legend(many: int, metric: str, model: str) -> str:
    """Return what the differences are, and how many there are."""
    text = (
        f"Numbers are differences in {metric} of {short(model)} on the same held-out people, with "
        "95 % intervals from the paired bootstrap; models are not fitted again, so the variation "
        "between models of other training people is not included. An increase could have been "
        "detected if its interval would lie above 0 with a probability of 80 %."
    )
    if many > 1:
        text += (
            f" There are {many} comparisons, and each interval is taken alone: where no view adds "
            "anything, up to one in 40 comparisons shows an increase by chance."
        )
    return text


def added_value_text(added: AddedValue) -> str:
    """Return the summary of an `AddedValue`: a line for each comparison, and the notes."""
    classification = bool((added.table["metric"] == main_metric(True)).any())
    shares = dict(zip(added.shares["view"], added.shares["share"], strict=True))
    return "\n".join(_lines(added.table, classification, added.model, shares))


def added_value_answer(run: Results) -> Sentence | None:
    """Return the answer to what each view adds to the baseline; None where it was not asked.

    Where it was asked and models that it needs failed, the answer says so.
    """
    table = run.table("added_value")
    asked = [a for a in additions_of(table, bool(run.classes)) if a.question == ADDED]
    if not asked:
        text, base = missing_text(run), list(map(short, run.record.get("baseline_views", [])))
        question = f"What do other views add to {listed(base)}?"
        return Sentence(question, f"Not estimated. {text}", UNKNOWN) if text else None
    outcomes = {addition.outcome for addition in asked}
    n_below = len(asked) - _MOST_SENTENCES
    remarks = f" {counted(n_below, 'more view')} below." if n_below > 0 else ""
    if len(asked) > 1:
        remarks += f" Each interval is taken alone (there are {len(asked)} views)."
    return Sentence(
        f"What do other views add to {baseline_of(table)}?",
        " ".join(a.answer for a in asked[:_MOST_SENTENCES]) + f"{remarks} Differences are on "
        "held-out people, with 95 % intervals from the paired bootstrap.",
        # Shown if it is for one of the views.
        next(o for o in (SHOWN, NOT_SHOWN, UNKNOWN) if o in outcomes),
    )


def added_value_section(run: Results) -> list[str]:
    """Return the sentences of every comparison and the notes on them, for the page."""
    table = run.table("added_value")
    missing = [text] if (text := missing_text(run)) else []
    if "question" not in table or not len(table):
        return missing
    # The model with all views, or else that of the last row.
    all_views = table[table["question"] == ALL]
    model = str((all_views if len(all_views) else table.iloc[::-1])["model"].iloc[0])
    rows = run.of_model("views", model)
    known = rows.dropna(subset="variance_share") if "variance_share" in rows else rows.iloc[:0]
    shares = {str(r["view"]): float(r["variance_share"]) for r in known.to_dict("records")}
    return [*missing, *_lines(table, bool(run.classes), model, shares)]


def missing_text(run: Results) -> str:
    """Return which comparisons with the baseline views are missing and why; "" if none."""
    return short(str(run.record.get("added_value_missing") or ""), 400)


def _lines(
    table: pd.DataFrame, classification: bool, model: str, shares: Mapping[str, float]
) -> list[str]:
    """Return a sentence for each comparison, and notes on them; nothing without comparisons.

    `shares` are the shares of views in the predictions of `model`, which has all views.
    """
    lines = [addition.answer for addition in additions_of(table, classification)]
    if not lines:
        return []
    lines.append(_legend(len(lines), _heading(main_metric(classification)), model))
    if shares:
        of_views = listed([f"{short(v)} {percent(s)}" for v, s in shares.items()], 12)
        lines.append(
            f"Shares in the predictions of {short(model)} with all views: {of_views}. A share is "
            "what a view contributes to the joint model, not what it adds: views that hold the "
            "same information divide it between them, so a view with a large share may add "
            "nothing to the others."
        )
    return lines


_HEADINGS = {"r2": "R²", "log_loss": "Log-loss", "brier": "Brier score", "rmse": "RMSE"}


def comparison_name(question: str, view: str, base: str) -> str:
    """Return what a row of the table is about: views, or views added to others (`base`)."""
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


def _metrics(rows: pd.DataFrame) -> dict[str, tuple[str, bool]]:
    """Return the heading of every metric and whether greater is better.

    Keys are metric and threshold, as in the rows of `_rows`.
    """
    metrics = {}
    for metric, threshold in rows[["metric", "threshold"]].drop_duplicates().to_numpy():
        if metric == NET_BENEFIT:
            metrics[f"{metric} {threshold}"] = f"Net benefit at {number(threshold)}", True
        elif metric in METRICS:
            metrics[f"{metric} {threshold}"] = _heading(metric), METRICS[metric].greater_is_better
    return metrics


def _rows(run: Results, questions: Sequence[str], ends: Sequence[str]) -> list[dict[Any, Any]]:
    """Return a row for each comparison with one of some questions, as `spread` makes them.

    `ends` are the columns of an estimate and of the ends of its interval.
    """
    table = _asked(run, questions)
    table = table.assign(key=[f"{m} {t}" for m, t in table[["metric", "threshold"]].to_numpy()])
    base = baseline_of(run.table("added_value"))
    return [
        {**row, "name": comparison_name(str(row["question"]), str(row["view"]), base)}
        for row in spread(table, ["question", "view"], "key", ends)
    ]


def _asked(run: Results, questions: Sequence[str]) -> pd.DataFrame:
    """Return the rows of the table of added value with one of some questions."""
    table = run.table("added_value")
    if "question" not in table:
        return pd.DataFrame(columns=["question", "view", "metric", "threshold"])
    return table[table["question"].isin(questions)]


_interval = partial(estimate, digits=3)
_SETS, _SET_ENDS = (BASELINE, WITH, ALL, ALONE, WITHOUT), ("value", "value_low", "value_high")
_GAIN_ENDS = ("difference", "low", "high")


def view_set_table(run: Results) -> Table:
    """Return how well each view set predicts, with intervals."""
    columns = [
        Column("Views", "name"),
        Column("People", "people", whole, "who have one of these views"),
    ]
    for key, (heading, greater_is_better) in _metrics(_asked(run, _SETS)).items():
        better = direction(greater_is_better)
        columns.append(Column(heading, ends_of(key, _SET_ENDS), _interval, better))
    caption = "Views and how well they predict, with 95 % intervals"
    return make_table("view_sets", caption, _rows(run, _SETS, _SET_ENDS), columns)


def addition_table(run: Results) -> Table:
    """Return what each view adds, with intervals, tests and the detectable increase."""
    metrics = _metrics(_asked(run, _COMPARED))
    columns = [
        Column("Comparison", "name"),
        Column("People", "people", whole, "who have the view"),
    ]
    for key, (heading, greater_is_better) in metrics.items():
        sign = "positive" if greater_is_better else "negative"
        # Names of metrics within a sentence, apart from abbreviations and names of people.
        inside = heading.replace("Log-loss", "log-loss").replace("Net", "net")
        ends, meaning = ends_of(key, _GAIN_ENDS), f"{sign} where the view helps"
        columns.append(Column(f"Difference in {inside}", ends, _interval, meaning))
    tested = next(iter(metrics.values()))[0] if metrics else ""  # the first metric
    columns += [
        Column(
            "p", "p_holm", p_value,
            f"of {tested}; corrected resampled t-test over the folds, by Holm's rule",
        ),
        Column(
            "Detectable", "detectable", partial(number, digits=3),
            f"increase of {tested} that would be shown with a probability of 80 %",
        ),
    ]  # fmt: skip
    caption = "What each view adds, on the same held-out people"
    return make_table("added_value", caption, _rows(run, _COMPARED, _GAIN_ENDS), columns)


def _people(value: float) -> str:
    return number(value, 0 if float(value).is_integer() else 1)


_MOVES = [
    Column("Comparison", "name"),
    Column("Threshold", "threshold", number),
    Column("Class", "class"),
    Column("People", "people", _people),
    Column("Up", "up", _people, "test positive with the view, and not without it"),
    Column("Down", "down", _people, "test positive without the view, and not with it"),
    Column("Unchanged", "unchanged", _people),
    Column(
        "Net", ("net", "low", "high"), _interval,
        "share that moves to the right side less the share that moves to the wrong",
    ),
]  # fmt: skip


def reclassification_table(run: Results) -> Table:
    """Return who moves across the thresholds when a view is added."""
    base = baseline_of(run.table("added_value"))
    rows = [
        {**row, "name": comparison_name(row["question"], row["view"], base)}
        for row in run.table("reclassification").to_dict("records")
    ]
    repeated = int(run.record.get("repeats", 1)) > 1
    note = "Numbers of people are means over the repeats." if rows and repeated else ""
    return make_table("reclassification", "Who moves across the thresholds", rows, _MOVES, note)
