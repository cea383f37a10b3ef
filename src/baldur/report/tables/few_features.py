"""The table of few features: figures of each number of features, and which features these are."""

from __future__ import annotations

import pandas as pd

from baldur.estimators.few_features import few_features_table, split_names, unpaid
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.tables.few_features import AS_SELECTED
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, distinct, listed, number, percent
from baldur.report.results import StudyResults
from baldur.report.tables.base import Cell, Column, Table

NAMED = 10
"""Features named in a row; ``few_names.csv`` has them all."""


def few_table_of_run(run: StudyResults, main: str | None) -> Table:
    """Return the table of the outer folds, empty for a model without submodels."""
    rows = run.of_model("few_features", main) if main is not None else pd.DataFrame()
    metrics = list(dict.fromkeys(rows["metric"])) if "metric" in rows else []
    metrics = [metric for metric in metrics if metric in METRICS]
    columns = [Column("Features", "at most so many; as selected: without a limit", numeric=False)]
    for metric in metrics:
        heading = METRICS[metric].heading
        columns.append(Column(heading, "95 % interval"))
        inside = heading if heading[1:2].isupper() else heading.lower()
        columns.append(Column(f"Difference in {inside}", "from the model as selected, paired"))
    columns.append(
        Column("Which features", "with the share of folds that have them", numeric=False)
    )
    table = Table("few-features", "Accuracy with few features, on the held-out folds", columns)
    names = run.of_model("few_names", main) if main is not None else pd.DataFrame()
    for limit in dict.fromkeys(rows["limit"]) if metrics else []:
        part = rows[rows["limit"] == limit].drop_duplicates("metric").set_index("metric")
        first = part.iloc[0]
        cells = [_limit_cell(str(limit), first)]
        for metric in metrics:
            if metric not in part.index:
                cells += [Cell("–"), Cell("–")]
                continue
            row = part.loc[metric]
            cells.append(Cell.interval(row["estimate"], row["low"], row["high"]))
            ends = (row["difference"], row["difference_low"], row["difference_high"])
            cells.append(Cell("–") if limit == AS_SELECTED else Cell.interval(*ends, digits=3))
        own = names[names["limit"] == limit] if "limit" in names else names
        cells.append(Cell(_names(own)))
        table.add(cells)
    table.note = (
        "Each outer fold orders the features itself and predicts people that it has not seen. "
        "Intervals are those of the bootstrap over people, differences are paired."
    )
    return table


def _limit_cell(limit: str, row: pd.Series) -> Cell:
    if limit != AS_SELECTED:
        known = limit.isdigit()
        return Cell(count(limit, "feature"), float(limit)) if known else Cell.name(limit)
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
    found = few_features_table(model.inner) if model.inner is not None else pd.DataFrame()
    metric = "r2" if "r2" in found else "auc"
    heading = METRICS[metric].heading
    columns = [
        Column("Features"),
        Column(heading, "95 % interval"),
        Column("Loss", "95 % interval; minus the log of the predictive density or probability"),
        Column("Which features enter", numeric=False),
    ]
    table = Table("few-features", "Accuracy with few features, on the inner folds", columns)
    for row in found.to_dict("records"):
        table.add(
            [
                Cell.whole(row["n_features"]),
                Cell.interval(row[metric], row[f"{metric}_lower"], row[f"{metric}_upper"]),
                Cell.interval(row["loss"], row["loss_lower"], row["loss_upper"]),
                Cell(listed(distinct(row["enters"]), NAMED) or "–"),
            ]
        )
    table.note = (
        "Features are named in the order in which they enter on all training samples. The figures "
        "are those of inner folds, which order the features themselves."
    )
    if len(getattr(model.inner, "cost_path_", ())):
        table.note += " Because costs were given, features enter by gain per cost."
    return table


def cost_table(model: FittedModel) -> Table:
    """Return what a budget buys, empty for a model without costs."""
    found = getattr(model.inner, "cost_path_", pd.DataFrame())
    metric = "r2" if "r2" in found else "auc"
    columns = [
        Column("Cost so far"),
        Column("Ordered", numeric=False),
        Column("Features"),
        Column(METRICS[metric].heading, "95 % interval"),
        Column("Loss", "95 % interval"),
    ]
    table = Table("costs", "Which tests give which accuracy, on the inner folds", columns)
    for row in found.to_dict("records"):
        ordered = split_names(row["orders"], model.inner.view_names_)
        table.add(
            [
                Cell(number(row["cost"], 2).removesuffix(".00"), float(row["cost"])),
                Cell(listed(distinct(ordered), NAMED) or unpaid(row["n_features"])),
                Cell.whole(row["n_features"]),
                Cell.interval(row[metric], row[f"{metric}_lower"], row[f"{metric}_upper"]),
                Cell.interval(row["loss"], row["loss_lower"], row["loss_upper"]),
            ]
        )
    table.note = (
        "The order is greedy: the largest gain in explained loss per unit of cost comes next. The "
        "cost of a view is paid once. Another order may be cheaper for the same accuracy."
    )
    return table
