"""One card per view: its size, its share of the prediction, and its most selected features."""

from __future__ import annotations

import numpy as np
import pandas as pd

from baldur.report.fitted import FittedModel
from baldur.report.formatting import distinct, number, percent
from baldur.report.results import StudyResults

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
