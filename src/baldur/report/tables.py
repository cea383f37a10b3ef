"""The tables of the page: models, features, views, who was studied, tests at thresholds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.report.fitted import FittedModel
from baldur.report.source import HAS, Run
from baldur.report.words import Cell, Column, Table, count, number, percent, short

__all__ = [
    "ViewCard",
    "feature_table",
    "model_table",
    "people_table",
    "presence_table",
    "subgroup_table",
    "threshold_table",
    "view_cards",
]

MOST_FEATURES = 1000
"""Rows of the model that the page is about; 1,000 are 0.5 MB of a page."""
MOST_OF_OTHERS = 100


_KNOWN = {
    "inclusion_probability": ("Inclusion probability", "", True),
    "credible_set": ("Credible set", "interchangeable features", False),
}


def model_table(run: Run) -> Table:
    """Return one row per model with every metric and its interval.

    Parameters
    ----------
    run : Run

    Returns
    -------
    Table
    """
    frame = run.table("table")
    metrics = [m for m in run.record.get("metrics", []) if f"{m}_pooled" in frame]
    columns = [Column("Model", numeric=False)]
    for m in metrics:
        better = "more" if METRICS[m].greater_is_better else "less"
        columns.append(Column(_heading(m), f"{better} is better"))
    columns.append(Column("Features kept", "mean over folds, % of all"))
    columns.append(Column("Note", numeric=False))
    table = Table("models", "Models with 95 % intervals on held-out people", columns)
    for row in frame.to_dict("records"):
        cells = [Cell.name(row["model"])]
        cells += [
            Cell.interval(row[f"{m}_pooled"], row[f"{m}_low"], row[f"{m}_high"]) for m in metrics
        ]
        kept = row.get("features_percent")
        cells.append(Cell(*_percent_cell(kept)))
        failure = str(row.get("failure") or "")
        note = f"failed: {failure}" if failure else str(row.get("note") or "")
        cells.append(Cell.name("" if note == "nan" else note))
        table.add(cells, model=str(row["model"]))
    return table


def _heading(metric: str) -> str:
    return "Balanced accuracy" if metric == "balanced_accuracy" else METRICS[metric].heading


def _percent_cell(value: Any) -> tuple[str, float | str]:
    x = float(value) if value is not None else float("nan")
    return (f"{number(x)} %", x) if np.isfinite(x) else ("–", "")


def feature_table(run: Run | None, main: str | None, model: FittedModel | None) -> Table:
    """Return the features: weights with intervals, how often kept, and who could stand in.

    Parameters
    ----------
    run : Run or None
        Gives frequency and agreement over folds.
    main : str or None
        The model that the page is about, listed first.
    model : FittedModel or None
        Gives intervals, probabilities and stand-ins, of the fit on all people.

    Returns
    -------
    Table
    """
    folds = _of_folds(run, main)
    fitted = _of_fit(model)
    several = len(set(fitted.get("output", [])) | set(folds.get("class", []))) > 1
    columns = [Column("Model", numeric=False)] if run is not None else []
    columns += [Column("View", numeric=False), Column("Feature", numeric=False)]
    if several:
        columns.append(Column("Class", "that the weight points to", numeric=False))
    columns.append(Column("Weight per s.d.", "of the fit on all people; else mean over folds"))
    known = [c for c in ("inclusion_probability", "credible_set") if c in fitted]
    columns += [Column(*_KNOWN[name]) for name in known]
    if run is not None:
        columns += [
            Column("In folds", "share of outer folds that keep it"),
            Column("Sign agreement", "share of these folds with the commoner sign"),
        ]
    table = Table("features", "Features that were kept", columns)
    joined = _joined(folds, fitted, main or "")
    limit = {m: (MOST_FEATURES if m in (main, "") else MOST_OF_OTHERS) for m in joined["model"]}
    left = 0
    for name, part in joined.groupby("model", sort=False):
        shown = part.head(limit[name])
        left += len(part) - len(shown)
        for row in shown.to_dict("records"):
            cells = [Cell.name(row["model"])] if run is not None else []
            cells += [Cell.name(row["view"]), Cell.name(row["feature"])]
            if several:
                cells.append(Cell.name(row["class"]))
            if np.isfinite(row["lower"]):
                cells.append(Cell.interval(row["weight"], row["lower"], row["upper"]))
            else:
                cells.append(Cell.of(row["weight"], small=True))
            if "inclusion_probability" in known:
                cells.append(Cell.of(row["inclusion_probability"]))
            if "credible_set" in known:
                cells.append(Cell.name(row["credible_set"] or ""))
            if run is not None:
                cells.append(Cell(*_share_cell(row["frequency"])))
                cells.append(Cell(*_share_cell(row["sign_agreement"])))
            table.add(cells, model=str(row["model"]), view=str(row["view"]))
    if left:
        table.note = f"{left:,} rows more are not shown; selection.csv has them all."
    return table


def _share_cell(value: Any) -> tuple[str, float | str]:
    x = float(value)
    return (percent(x), x) if np.isfinite(x) else ("–", "")


def _of_folds(run: Run | None, main: str | None) -> pd.DataFrame:
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
    """Join both by view, feature and class; what one of them lacks is NaN."""
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


class ViewCard:
    """What the page says about one view.

    Attributes
    ----------
    name : str
    facts : list of (str, str)
    features : list of str
        Kept most often.
    """

    def __init__(self, name: str, facts: list[tuple[str, str]], features: list[str]) -> None:
        self.name = name
        self.facts = facts
        self.features = features


def view_cards(run: Run | None, main: str | None, model: FittedModel | None) -> list[ViewCard]:
    """Return one card per view.

    Parameters
    ----------
    run, main, model
        As in `feature_table`.

    Returns
    -------
    list of ViewCard
    """
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
            made.append(("Kept in the fit on all people", f"{int(np.sum(mask)):,}"))
            made.append(("Its share of the variance", percent(inner.view_relevance_[name])))
            if not features.get(name):
                summary = model.summary() if model is not None else pd.DataFrame()
                own = summary[summary["view"] == name] if len(summary) else summary
                features[name] = [short(f) for f in dict.fromkeys(own.get("feature", []))][:8]
    return [ViewCard(name, made, features.get(name, [])) for name, made in facts.items()]


def _cards_of_folds(
    run: Run, main: str, facts: dict[str, list[tuple[str, str]]], features: dict[str, list[str]]
) -> None:
    for row in run.of_model("views", main).to_dict("records"):
        made = facts.setdefault(row["view"], [])
        made.append(("Used in folds", percent(row["frequency"])))
        made.append(("Features kept, mean", f"{number(row['percent_of_view'])} %"))
        if np.isfinite(float(row["variance_share"])):
            made.append(("Share of the prediction's variance", percent(row["variance_share"])))
    index = run.of_model("stability", main)
    for row in index[index["view"] != "*"].to_dict("records") if len(index) else []:
        if np.isfinite(float(row["stability"])):
            facts.setdefault(row["view"], []).append(
                ("Agreement of folds", f"{float(row['stability']):.2f}")
            )
    rows = run.of_model("selection", main)
    if "feature" not in rows:
        return
    rows = rows[rows["feature"] != "*"]
    for view, part in rows.groupby("view", sort=False):
        ordered = part.sort_values("frequency", ascending=False, kind="stable")
        features[str(view)] = [short(f) for f in dict.fromkeys(ordered["feature"])][:8]


def people_table(run: Run) -> Table:
    """Return how many people have each outcome, over sites where there are some.

    Parameters
    ----------
    run : Run

    Returns
    -------
    Table
    """
    people = run.people
    sites = "site" in people
    columns = [Column("Outcome", numeric=False), Column("People"), Column("Share")]
    names = sorted(people["site"].astype(str).unique()) if sites else []
    names = names[:12]
    columns += [Column(short(f"Site {s}", 30)) for s in names]
    table = Table("people-counts", "People by outcome", columns)
    if "label" not in people:
        return table
    n = max(len(people), 1)
    if not run.classes:
        values = people["label"].astype(float)
        for name, value in (
            ("mean", values.mean()), ("s.d.", values.std()), ("least", values.min()),
            ("most", values.max()),
        ):  # fmt: skip
            cells = [Cell.name(name), Cell.of(value), Cell("")]
            table.add([*cells, *(Cell("") for _ in names)])
        return table
    labels = people["label"].astype(str)
    for name in run.classes:
        here = labels == name
        cells = [Cell.name(name), Cell(f"{here.sum():,}", float(here.sum()))]
        cells.append(Cell(percent(here.mean()), float(here.sum() / n)))
        for site in names:
            k = int((here & (people["site"].astype(str) == site)).sum())
            cells.append(Cell(f"{k:,}", float(k)))
        table.add(cells)
    return table


def presence_table(run: Run) -> Table:
    """Return who lacks which views: one row per pattern, the commonest first.

    Parameters
    ----------
    run : Run

    Returns
    -------
    Table
    """
    people = run.people
    has = [c for c in people.columns if c.startswith(HAS)]
    columns = [Column("Views that these people lack", numeric=False), Column("People")]
    table = Table("presence", "Who lacks which views", columns)
    if not has:
        return table
    patterns = people[has].astype(int).value_counts(sort=True)
    for pattern, n in list(patterns.items())[:50]:
        values = pattern if isinstance(pattern, tuple) else (pattern,)
        lacking = [c.removeprefix(HAS) for c, v in zip(has, values, strict=True) if not v]
        table.add([Cell.name(", ".join(map(short, lacking)) or "none"), Cell(f"{n:,}", float(n))])
    if len(patterns) > 50:
        table.note = f"{len(patterns) - 50:,} rarer patterns are not shown; presence.csv has them."
    return table


_MEASURES = {
    "sensitivity": "Sensitivity", "specificity": "Specificity", "ppv": "Positive predictive value",
    "npv": "Negative predictive value", "lr_positive": "Likelihood ratio, positive",
    "lr_negative": "Likelihood ratio, negative", "number_needed_to_test": "Number needed to test",
    "number_needed_to_evaluate": "Number needed to evaluate",
}  # fmt: skip


def threshold_table(run: Run) -> Table:
    """Return what the models would do as tests at stated thresholds.

    Parameters
    ----------
    run : Run

    Returns
    -------
    Table
    """
    frame = run.table("thresholds")
    columns = [Column("Model", numeric=False), Column("Threshold")]
    columns += [Column(name) for name in _MEASURES.values()]
    table = Table("thresholds", "The models as tests, with 95 % intervals", columns)
    if "measure" not in frame:
        return table
    for (model, threshold), part in frame.groupby(["model", "threshold"], sort=False):
        by = part.set_index("measure")
        cells = [Cell.name(model), Cell.of(threshold)]
        for key in _MEASURES:
            if key in by.index:
                row = by.loc[key]
                cells.append(Cell.interval(row["estimate"], row["low"], row["high"]))
            else:
                cells.append(Cell("–"))
        table.add(cells, model=str(model))
    return table


def subgroup_table(run: Run, main: str | None) -> Table:
    """Return the figures of the model in parts of the people.

    Parameters
    ----------
    run : Run
    main : str or None

    Returns
    -------
    Table
    """
    frame = run.table("subgroups")
    if main is not None and "model" in frame:
        frame = run.of_model("subgroups", main)
    shown = [c for c in frame.columns if c != "model"]
    columns = [Column(c.replace("_", " "), numeric=_numeric(frame[c])) for c in shown]
    table = Table("subgroups", "Figures in parts of the people", columns)
    for row in frame.head(300).to_dict("records"):
        table.add(
            [
                Cell.of(row[c]) if _numeric(frame[c]) else Cell.name(_text(row[c]))
                for c in shown
            ]
        )  # fmt: skip
    if len(frame) > 300:
        table.note = f"{count(len(frame) - 300, 'row')} more in subgroups.csv."
    return table


def _numeric(column: pd.Series) -> bool:
    return bool(pd.api.types.is_numeric_dtype(column))


def _text(value: Any) -> str:
    return "" if value is None or (isinstance(value, float) and np.isnan(value)) else str(value)
