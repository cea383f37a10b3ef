"""The headline on few features: which number of features is shown to be enough.

A number of features is enough if it is shown, in both metrics of the table, to lose at most a tenth
of what the model gains over the base rate: the worse end of the 95 % interval of the paired
difference lies within that. It loses if the whole interval of one of the differences lies on the
worse side of 0. Numbers are tested in a fixed order, the largest first for "enough" and the
smallest first for "loses", up to the first that is not shown. So the probability that any number is
called enough wrongly is at most 2.5 %. That of "loses" is at most 5 %, as either metric can show
it. The gain over the base rate is taken as estimated; its own error is not included.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import takewhile
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.summary import few_features_table, split_names, unpaid
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.results import Results
from baldur.evaluation.selected_features import AS_SELECTED
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    ENDS,
    Cell,
    Column,
    Table,
    distinct,
    ends_of,
    estimate,
    listed,
    make_table,
    number,
    percent,
    spread,
    whole,
)
from baldur.report.sentences import NOT_SHOWN, SHOWN, UNKNOWN, Sentence
from baldur.views.validate import counted

QUESTION = "How few features are enough?"
ALLOWED = 0.1
"""Part of the gain over the base rate that may be lost, as `margin` of the estimators has it."""


def few_of(run: Results, main: str) -> pd.DataFrame:
    """Return how each metric of the small submodels compares with that of the model as selected.

    Columns: limit, known (an interval, and a model that gains over the base rate), enough, loses,
    text, allowed (the loss that is, in words) and features (mean number as selected). No rows for
    a model without submodels.
    """
    rows = run.of_model("few_features", main)
    if "limit" not in rows:
        return pd.DataFrame()
    selected = {row["metric"]: row for row in rows[rows["limit"] == AS_SELECTED].to_dict("records")}
    few = rows[rows["limit"].str.isdigit() & rows["metric"].isin([*METRICS])]
    return pd.DataFrame(
        [
            _compared(row, selected[row["metric"]])
            for row in few.to_dict("records")
            if row["metric"] in selected
        ]
    )


def _compared(row: Mapping[Any, Any], selected: Mapping[Any, Any]) -> dict[str, Any]:
    """Return a row of `few_of`: a submodel (`row`) and the model as selected, in one metric."""
    metric = METRICS[row["metric"]]
    difference, low, high = (float(row[name]) for name in _DIFFERENCE)
    gain = float(selected["estimate"]) - float(selected["chance"])
    # Differences are submodel minus model as selected; as losses, positive is worse.
    worst, best = (-low, -high) if metric.greater_is_better else (high, low)
    allowed = ALLOWED * (gain if metric.greater_is_better else -gain)
    has_interval = bool(np.isfinite([difference, low, high]).all())
    known = has_interval and math.isfinite(allowed) and allowed > 0
    difference_text = estimate(difference, low, high, 3, sign=True)
    return {
        "limit": int(row["limit"]),
        "known": known,
        "enough": known and worst <= allowed,
        "loses": has_interval and best > 0,
        "text": f"{metric.heading} {number(row['estimate'], 3)}, a difference of {difference_text}",
        "allowed": f"{number(allowed, 3)} in {metric.heading}",
        "features": float(selected["features_mean"]),
    }


def few_sentence(few: pd.DataFrame, shown: bool) -> Sentence:
    """Return how few features are enough, where the model is `shown` to beat guessing or not."""
    limits = sorted(set(few["limit"]))
    enough_at = few.groupby("limit")["enough"].all()
    loses_at = few.groupby("limit")["loses"].any()
    # In the fixed orders: "enough" from the largest number, "loses" from the smallest.
    enough = sorted(takewhile(lambda k: enough_at[k], reversed(limits)))
    losing = list(takewhile(lambda k: k not in enough and loses_at[k], limits))
    undecided = [k for k in limits if k not in enough and k not in losing]
    others = f" With {_numbers(losing)} it is shown to predict worse." if losing else ""
    others += f" For {_numbers(undecided)} it cannot be determined." if undecided else ""
    others += f" {_legend(few)}"
    outcome = UNKNOWN
    if not shown:
        text = (
            "This cannot be determined: the model itself was not shown to predict better than "
            "guessing."
        )
    elif not few["known"].all():
        text = (
            "This cannot be determined: a difference could not be estimated with an interval, or "
            "the model gains nothing over the base rate."
        )
    elif enough:
        outcome, verb = SHOWN, "is" if enough[0] == 1 else "are"
        text = f"{_numbers(enough[:1])} {verb} enough: {_figures(few, enough[0])}.{others}"
    elif not undecided:
        outcome, largest = NOT_SHOWN, losing[-1]
        text = f"More than {_numbers([largest])}: with these, {_figures(few, largest)}.{others}"
    else:
        text = (
            f"This cannot be determined: no number up to {limits[-1]} is shown to be enough. With "
            f"{_numbers(limits[-1:])}: {_figures(few, limits[-1])}.{others}"
        )
    return Sentence(QUESTION, text, outcome)


def _figures(few: pd.DataFrame, limit: int) -> str:
    return "; ".join(few.loc[few["limit"] == limit, "text"])


def _legend(few: pd.DataFrame) -> str:
    """Return what the differences are, and how much may be lost."""
    allowed = few.loc[few["limit"] == few["limit"].iloc[0], "allowed"]
    return (
        "Differences are those from the model as selected "
        f"({number(few['features'].iloc[0], 1).removesuffix('.0')} features on average), on the "
        "same held-out people with 95 % intervals. Enough means that a loss above a tenth of what "
        f"the model gains over the base rate ({listed(allowed)}) is excluded in both."
    )


def _numbers(limits: Sequence[int]) -> str:
    """Return numbers of features in words, such as ``5 or 10 features``."""
    *first, last = map(str, limits)
    numbers = f"{', '.join(first)} or {last}" if first else last
    return f"{numbers} {'feature' if list(limits) == [1] else 'features'}"


NAMED = 10
"""Features named in a row; ``few_names.csv`` has them all."""
_DIFFERENCE = ("difference", "difference_low", "difference_high")
_LOSS = ("loss", "loss_lower", "loss_upper")


def few_table_of_run(run: Results, main: str | None) -> Table:
    """Return the table of accuracy with few features on the outer folds; empty if not known."""
    rows = run.of_model("few_features", main) if main is not None else pd.DataFrame()
    names = run.of_model("few_names", main) if main is not None else pd.DataFrame()
    metrics = [m for m in dict.fromkeys(rows.get("metric", ())) if m in METRICS]
    columns = [Column("Features", "limit", help="at most so many; as selected: without a limit")]
    for metric in metrics:
        heading = METRICS[metric].heading
        inside = heading if heading[1:2].isupper() else heading.lower()  # AUC stays in capitals
        columns += [
            Column(heading, ends_of(metric), estimate, "95 % interval"),
            Column(
                f"Difference in {inside}", ends_of(metric, _DIFFERENCE),
                partial(estimate, digits=3), "from the model as selected, paired",
            ),
        ]  # fmt: skip
    columns.append(Column("Which features", "names", help="with the share of folds that have them"))
    by_limit = spread(rows, ["limit"], "metric", (*ENDS, *_DIFFERENCE)) if metrics else []
    for row in by_limit:
        limit = str(row["limit"])
        if limit == AS_SELECTED:  # it has no difference from itself
            row |= dict.fromkeys(f"{m} {end}" for m in metrics for end in _DIFFERENCE)
        row["names"] = Cell(_names(names[names["limit"] == limit] if len(names) else names))
        row["limit"] = _limit_cell(limit, row)
    note = (
        "Each outer fold orders the features itself and predicts people that it has not seen. "
        "Intervals are those of the bootstrap over people, differences are paired."
    )
    caption = "Accuracy with few features, on the held-out folds"
    return make_table("few-features", caption, by_limit, columns, note)


def _limit_cell(limit: str, row: Mapping[Any, Any]) -> Cell:
    """Return the cell of a limit; for the model as selected, with its number of features."""
    if limit != AS_SELECTED:
        return Cell(counted(limit, "feature"), float(limit)) if limit.isdigit() else Cell(limit)
    low, high = float(row["features_min"]), float(row["features_max"])
    counts = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
    return Cell("as selected", float("1e9"), counts)  # sorted after every limit


def _names(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "–"
    names = zip(distinct(rows["feature"]), rows["share"], strict=True)
    return listed([f"{name} ({percent(share)})" for name, share in names], NAMED)


def few_table_of_model(model: FittedModel) -> Table:
    """Return the table of accuracy with few features on the inner folds of a fit; may be empty."""
    path = few_features_table(model.inner) if model.inner is not None else pd.DataFrame()
    columns = [
        Column("Features", "n_features", whole),
        _score_column(path),
        Column(
            "Loss", _LOSS, estimate,
            "95 % interval; minus the log of the predictive density or probability",
        ),
        Column("Which features enter", "enters"),
    ]  # fmt: skip
    rows = [
        {**row, "enters": Cell(listed(distinct(row["enters"]), NAMED) or "–")}
        for row in path.to_dict("records")
    ]
    note = (
        "Features are named in the order in which they enter on all training samples. The figures "
        "are those of inner folds, which order the features themselves."
    )
    if len(getattr(model.inner, "cost_path_", ())):
        note += " Because costs were given, features enter by gain per cost."
    caption = "Accuracy with few features, on the inner folds"
    return make_table("few-features", caption, rows, columns, note)


def cost_table(model: FittedModel) -> Table:
    """Return what a budget buys: tests in the order to take them, with the accuracy after each.

    Empty for a model without costs.
    """
    path = getattr(model.inner, "cost_path_", pd.DataFrame())
    columns = [
        Column("Cost so far", "cost", _cost),
        Column("Ordered", "ordered"),
        Column("Features", "n_features", whole),
        _score_column(path),
        Column("Loss", _LOSS, estimate, "95 % interval"),
    ]
    rows = []
    for row in path.to_dict("records"):
        ordered = listed(distinct(split_names(row["orders"], model.inner.view_names_)), NAMED)
        rows.append({**row, "ordered": Cell(ordered or unpaid(row["n_features"]))})
    note = (
        "The order is greedy: the largest gain in explained loss per unit of cost comes next. The "
        "cost of a view is paid once. Another order may be cheaper for the same accuracy."
    )
    caption = "Which tests give which accuracy, on the inner folds"
    return make_table("costs", caption, rows, columns, note)


def _score_column(path: pd.DataFrame) -> Column:
    """Return the column of the score that a path has: R² of numbers, AUC of classes."""
    metric = "r2" if "r2" in path else "auc"
    ends = (metric, f"{metric}_lower", f"{metric}_upper")
    return Column(METRICS[metric].heading, ends, estimate, "95 % interval")


def _cost(value: Any) -> str:
    return number(value).removesuffix(".00")
