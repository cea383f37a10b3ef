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
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Any

import pandas as pd

from baldur.estimators.summary import few_features_table, split_names, unpaid
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.result_tables import AS_SELECTED
from baldur.evaluation.results import Results
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    ENDS,
    Cell,
    Column,
    Table,
    count,
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
from baldur.report.sentences import NOT_SHOWN, SHOWN, UNKNOWN, Case, Interval, Sentence, answer_to

QUESTION = "How few features are enough?"
ALLOWED = 0.1
"""Part of the gain over the base rate that may be lost, as `margin` of the estimators has it."""


@dataclass(frozen=True)
class Difference:
    """One metric with few features, compared with the model as it was selected."""

    metric: str  # Its heading
    value: Interval
    difference: Interval
    gain: float  # What the model gains over the base rate; above 0 where it is better
    greater_is_better: bool = True

    @property
    def known(self) -> bool:
        """Whether the difference has an interval, and the model is better than the base rate."""
        return self.difference.known and math.isfinite(self.gain) and self.gain > 0

    @property
    def allowed(self) -> float:
        """How much may be lost."""
        return ALLOWED * self.gain

    @property
    def enough(self) -> bool:
        """Whether the loss is shown to be allowed: the worse end of its interval is."""
        d = self.difference
        return self.known and (-d.low if self.greater_is_better else d.high) <= self.allowed

    @property
    def loses(self) -> bool:
        """Whether the whole interval lies on the worse side of 0."""
        d = self.difference
        return d.known and (d.high < 0 if self.greater_is_better else d.low > 0)

    def __str__(self) -> str:
        d = self.difference
        seen = estimate(d.estimate, d.low, d.high, 3, sign=True)
        return f"{self.metric} {number(self.value.estimate, 3)}, a difference of {seen}"


@dataclass(frozen=True)
class FewEvidence:
    """Evidence on few features."""

    differences: dict[int, list[Difference]]
    shown: bool  # Whether the model as selected is shown to be better than guessing
    features: float  # Mean number of features of the model as it was selected

    @property
    def known(self) -> bool:
        """Whether every difference has an interval."""
        every = [d for differences in self.differences.values() for d in differences]
        return bool(every) and all(d.known for d in every)

    @property
    def enough(self) -> list[int]:
        """Numbers that are shown to be enough, in the fixed order from the largest."""
        order = sorted(self.differences, reverse=True)
        return sorted(takewhile(lambda k: all(d.enough for d in self.differences[k]), order))

    @property
    def losing(self) -> list[int]:
        """Numbers that are shown to lose, in the fixed order from the smallest."""
        rest = [k for k in sorted(self.differences) if k not in self.enough]
        return list(takewhile(lambda k: any(d.loses for d in self.differences[k]), rest))

    @property
    def open(self) -> list[int]:
        """Numbers of which neither is shown."""
        return [k for k in self.differences if k not in self.enough and k not in self.losing]

    def figures(self, limit: int) -> str:
        """Return the metrics of a limit with their differences, as text."""
        return "; ".join(map(str, self.differences[limit]))

    @property
    def legend(self) -> str:
        """Explanation of the comparison."""
        first = next(iter(self.differences.values()))
        parts = [f"{number(d.allowed, 3)} in {d.metric}" for d in first]
        return (
            "Differences are those from the model as selected "
            f"({number(self.features, 1).removesuffix('.0')} features on average), on the same "
            "held-out people with 95 % intervals. Enough means that a loss above a tenth of what "
            f"the model gains over the base rate ({listed(parts)}) is excluded in both."
        )

    def rest(self) -> str:
        """Return a sentence on the other numbers of features, empty where there is none."""
        text = ""
        if self.losing:
            text += f" With {_numbers(self.losing)} it is shown to predict worse."
        if self.open:
            text += f" For {_numbers(self.open)} it cannot be determined."
        return text


def _numbers(limits: Sequence[int]) -> str:
    *first, last = map(str, limits)
    numbers = f"{', '.join(first)} or {last}" if first else last
    return f"{numbers} {'feature' if list(limits) == [1] else 'features'}"


FEW_FEATURES = (
    Case(
        "model not shown", UNKNOWN, lambda e: not e.shown,
        lambda e: "This cannot be determined: the model itself was not shown to predict better "
        "than guessing.",
    ),
    Case(
        "no intervals", UNKNOWN, lambda e: not e.known,
        lambda e: "This cannot be determined: a difference could not be estimated with an "
        "interval, or the model gains nothing over the base rate.",
    ),
    Case(
        "enough", SHOWN, lambda e: bool(e.enough),
        lambda e: f"{_numbers(e.enough[:1])} {'is' if e.enough[0] == 1 else 'are'} enough: "
        f"{e.figures(e.enough[0])}.{e.rest()} {e.legend}",
    ),
    Case(
        "all lose", NOT_SHOWN, lambda e: not e.open,
        lambda e: f"More than {_numbers(e.losing[-1:])}: with these, {e.figures(e.losing[-1])}."
        f"{e.rest()} {e.legend}",
    ),
    Case(
        "cannot be determined", UNKNOWN, lambda e: True,
        lambda e: "This cannot be determined: no number up to "
        f"{max(e.differences)} is shown to be enough. With {_numbers([max(e.differences)])}: "
        f"{e.figures(max(e.differences))}.{e.rest()} {e.legend}",
    ),
)  # fmt: skip


def few_of(run: Results, main: str, shown: bool) -> FewEvidence | None:
    """Return the evidence on few features; None for a model without submodels."""
    rows = run.of_model("few_features", main)
    if "limit" not in rows:
        return None
    own = rows[rows["limit"] == AS_SELECTED]
    few = rows[rows["limit"].str.isdigit() & rows["metric"].isin(list(METRICS))]
    if not len(own) or not len(few):
        return None
    model = {str(row["metric"]): row for row in own.to_dict("records")}
    limits = sorted(few["limit"].astype(int).unique().tolist())
    differences: dict[int, list[Difference]] = {limit: [] for limit in limits}
    for row in few.to_dict("records"):
        if row["metric"] in model:
            differences[int(row["limit"])].append(_difference(row, model[row["metric"]]))
    return FewEvidence(differences, shown, float(own["features_mean"].iloc[0]))


def _difference(row: Mapping[Any, Any], own: Mapping[Any, Any]) -> Difference:
    metric = str(row["metric"])
    up = METRICS[metric].greater_is_better
    gain = float(own["estimate"]) - float(own["chance"])
    return Difference(
        METRICS[metric].heading,
        Interval(*(float(row[name]) for name in ("estimate", "low", "high"))),
        Interval(*(float(row[f"difference{end}"]) for end in ("", "_low", "_high"))),
        gain if up else -gain,
        up,
    )


def few_sentence(run: Results, main: str, shown: bool) -> Sentence | None:
    """Return the headline on few features; None for a model without submodels."""
    evidence = few_of(run, main, shown)
    if evidence is None:
        return None
    return answer_to(QUESTION, FEW_FEATURES, evidence)


NAMED = 10
"""Features named in a row; ``few_names.csv`` has them all."""
_DIFFERENCE = ("difference", "difference_low", "difference_high")
_LOSS = ("loss", "loss_lower", "loss_upper")


def few_table_of_run(run: Results, main: str | None) -> Table:
    """Return the table of the outer folds, empty for a model without submodels."""
    rows = run.of_model("few_features", main) if main is not None else pd.DataFrame()
    names = run.of_model("few_names", main) if main is not None else pd.DataFrame()
    metrics = [m for m in dict.fromkeys(rows.get("metric", ())) if m in METRICS]
    columns = [Column("Features", "limit", help="at most so many; as selected: without a limit")]
    for metric in metrics:
        heading = METRICS[metric].heading
        inside = heading if heading[1:2].isupper() else heading.lower()
        columns += [
            Column(heading, ends_of(metric), estimate, "95 % interval"),
            Column(
                f"Difference in {inside}", ends_of(metric, _DIFFERENCE),
                partial(estimate, digits=3), "from the model as selected, paired",
            ),
        ]  # fmt: skip
    columns.append(Column("Which features", "names", help="with the share of folds that have them"))
    few = spread(rows, ["limit"], "metric", (*ENDS, *_DIFFERENCE)) if metrics else []
    for row in few:
        limit = str(row["limit"])
        if limit == AS_SELECTED:  # its difference from itself
            row |= dict.fromkeys(f"{m} {end}" for m in metrics for end in _DIFFERENCE)
        row["names"] = Cell(_names(names[names["limit"] == limit] if len(names) else names))
        row["limit"] = _limit_cell(limit, row)
    note = (
        "Each outer fold orders the features itself and predicts people that it has not seen. "
        "Intervals are those of the bootstrap over people, differences are paired."
    )
    caption = "Accuracy with few features, on the held-out folds"
    return make_table("few-features", caption, few, columns, note)


def _limit_cell(limit: str, row: Mapping[Any, Any]) -> Cell:
    if limit != AS_SELECTED:
        return Cell(count(limit, "feature"), float(limit)) if limit.isdigit() else Cell(limit)
    low, high = float(row["features_min"]), float(row["features_max"])
    counts = f"{low:,.0f}" if low == high else f"{low:,.0f} to {high:,.0f}"
    return Cell("as selected", float("1e9"), counts)


def _names(rows: pd.DataFrame) -> str:
    if not len(rows):
        return "–"
    shown = distinct(rows["feature"])
    texts = [f"{name} ({percent(share)})" for name, share in zip(shown, rows["share"], strict=True)]
    return listed(texts, NAMED)


def few_table_of_model(model: FittedModel) -> Table:
    """Return the table of the inner folds of one fit, empty for a model without submodels."""
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
    """Return what a budget buys, empty for a model without costs."""
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
