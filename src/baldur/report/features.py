"""Features: how many are used and which, their table, and the facts of every view."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.summary import BOTH, uncertain_weights
from baldur.evaluation.results import Results
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    Column,
    Table,
    distinct,
    estimate,
    listed,
    make_table,
    number,
    percent,
    probability,
    short,
)
from baldur.views.validate import counted

MOST_FEATURES = 1000
"""Rows of the model that the page is about; 1,000 are 0.5 MB of a page."""
MOST_OF_OTHERS = 100
"""Rows of each other model."""
LISTED = 8
"""Features named on the card of a view."""

_MOST_JOINED = 4 * MOST_FEATURES
"""Rows of each table before the join; more than are shown, because the tables differ in order."""
_KEYS = ["model", "view", "feature", "class"]
_IN_FOLDS = {"mean_weight": float, "frequency": float, "sign_agreement": float}
_IN_FIT = {"weight": float, "lower": float, "upper": float, "inclusion_probability": float}


def feature_table(run: Results | None, main: str | None, model: FittedModel | None) -> Table:
    """Return the table of selected features: weights with intervals, how often, credible sets.

    `main` is the model that the page is about, and `model` its fit on all people.
    """
    folds = _of_folds(run, main)
    summary = pd.DataFrame() if model is None else model.summary().head(_MOST_JOINED)
    rows = _joined(folds, summary, main or "")
    most = np.where(rows["model"].isin([main, ""]), MOST_FEATURES, MOST_OF_OTHERS)
    shown = rows[rows.groupby("model", sort=False).cumcount() < most]
    compared = run is not None
    several = len({*folds["class"], *summary.get("output", [])}) > 1
    columns = [  # whether it is shown, and the column
        (True, Column("Feature", "feature")),  # the title of a card on a phone
        (True, Column("View", "view")),
        (several, Column("Class", "class", help="that the weight points to")),
        (compared, Column("Model", "model")),
        (True, Column("Weight per s.d.", ("weight", "lower", "upper"), _weight,
                      "of the fit on all people; else mean over folds")),
        ("inclusion_probability" in summary,
         Column("Inclusion probability", "inclusion_probability", probability,
                "that the weight is not zero")),
        ("credible_set" in summary,
         Column("Credible set", "credible_set",
                help="correlated features that are interchangeable with it")),
        (compared, Column("In folds", "frequency", percent,
                          "share of the outer folds that select it")),
        (compared, Column("Sign agreement", "sign_agreement", percent,
                          "share of these folds with the more frequent sign")),
    ]  # fmt: skip
    notes = []
    if n_more := len(rows) - len(shown):
        notes.append(f"{n_more:,} more rows are not shown; selection.csv has them all.")
    if both := uncertain_weights(summary):
        verb = "has" if len(both) == 1 else "have"
        notes.append(
            f"{listed(distinct(both), 5)} {verb} an inclusion probability of at least 0.90 and an "
            f"interval that includes 0. {BOTH}"
        )
    shown_columns = [column for is_shown, column in columns if is_shown]
    caption, note = "Selected features", " ".join(notes)
    return make_table("features", caption, shown, shown_columns, note, ["model", "view"])


def _weight(value: float, low: float, high: float) -> str:
    return estimate(value, low, high) if np.isfinite(low) else number(value, small=True)


def _of_folds(run: Results | None, main: str | None) -> pd.DataFrame:
    """Return the features that folds select, those of the main model first."""
    rows = pd.DataFrame() if run is None else run.table("selection")
    if run is None or "feature" not in rows:
        return pd.DataFrame(columns=[*_KEYS, *_IN_FOLDS]).astype(_IN_FOLDS)
    rows = rows[rows["feature"] != "*"]
    rows = rows.assign(
        rank=rows["model"].map(_ranks([main, *run.finished])),
        size=rows["mean_weight"].astype(float).abs(),
    ).sort_values(["rank", "frequency", "size"], ascending=[True, False, False], kind="stable")
    # There may be a million, and few of them are shown.
    rows = rows[rows.groupby("model", sort=False).cumcount() < _MOST_JOINED]
    return rows[[*_KEYS, *_IN_FOLDS]].astype(_IN_FOLDS)


def _ranks(names: Iterable[Any]) -> dict[Any, int]:
    return {name: i for i, name in enumerate(dict.fromkeys(names))}


def _joined(folds: pd.DataFrame, summary: pd.DataFrame, main: str) -> pd.DataFrame:
    """Join the tables of folds and of the fitted model; missing values are NaN.

    Features of the main model come first, in the order of its fit, then those of the folds alone.
    """
    # The weight per unit of the feature makes way for that per standard deviation.
    fitted = summary.drop(columns="weight", errors="ignore").rename(
        columns={"weight_scaled": "weight", "output": "class"}
    )
    fitted = fitted.reindex(columns=[*_KEYS[1:], *_IN_FIT, "credible_set"])
    fitted = fitted.astype({**dict.fromkeys(_KEYS[1:], str), **_IN_FIT})
    fitted = fitted.assign(model=main, order_in_fit=np.arange(len(fitted)))
    rows = folds.merge(fitted, on=_KEYS, how="outer", sort=False)
    rows["weight"] = rows["weight"].fillna(rows["mean_weight"])
    rows["credible_set"] = rows["credible_set"].astype(object).fillna("")
    rows["rank"] = rows["model"].map(_ranks([main, *folds["model"]]))
    rows["size"] = rows["weight"].abs()
    return rows.sort_values(
        ["rank", "order_in_fit", "frequency", "size"],
        ascending=[True, True, False, False],
        kind="stable",
    )


def view_cards(
    run: Results | None, main: str | None, model: FittedModel | None
) -> list[dict[str, Any]]:
    """Return name, facts (a heading and a value each) and first features of all views."""
    facts: dict[str, list[tuple[str, str]]] = {}
    features: dict[str, list[str]] = {}
    if run is not None:
        n = int(run.record.get("people", 0))
        for view in run.record.get("views", []):
            facts[view["name"]] = [
                ("Features", f"{view['features']:,}"),
                ("People with it", f"{view['people']:,} of {n:,}"),
            ]
    if run is not None and main is not None:
        for name, fact in _facts_of_folds(run, main):
            facts.setdefault(name, []).append(fact)
        rows = run.of_model("selection", main)
        if "feature" in rows:
            rows = rows[rows["feature"] != "*"]
            rows = rows.sort_values("frequency", ascending=False, kind="stable")
            for view, of_view in rows.groupby("view", sort=False):
                features[str(view)] = _first(of_view["feature"])
    if model is not None and model.inner is not None:
        summary = model.summary()
        for name, mask in model.inner.selected_features_.items():
            facts.setdefault(name, [("Features", f"{len(mask):,}")]).extend(
                [
                    ("Selected in the fit on all people", f"{int(np.sum(mask)):,}"),
                    ("Its share there", percent(model.inner.view_relevance_[name])),
                ]
            )
            if not features.get(name) and len(summary):
                features[name] = _first(summary.loc[summary["view"] == name, "feature"])
    return [
        {"name": name, "facts": facts.get(name, []), "features": features.get(name, [])}
        for name in dict.fromkeys([*facts, *features])
    ]


def _first(features: Iterable[Any]) -> list[str]:
    return distinct(list(dict.fromkeys(features))[:LISTED])


def _facts_of_folds(run: Results, main: str) -> list[tuple[str, tuple[str, str]]]:
    """Return what the folds say about each view: its name, and a heading with a value."""
    facts = []
    shares = run.of_model("view_shares", main)
    ranges = {}
    if "variance_share" in shares:
        ends = shares.groupby("view", sort=False)["variance_share"].agg(["min", "max"]).dropna()
        ranges = {v: (percent(low), percent(high)) for v, low, high in ends.itertuples()}
    for row in run.of_model("views", main).to_dict("records"):
        view, share = row["view"], float(row["variance_share"])
        facts.append((view, ("Used in folds", percent(row["frequency"]))))
        selected = percent(float(row["percent_of_view"]) / 100, 1)
        facts.append((view, ("Features selected, mean", selected)))
        if np.isfinite(share):
            facts.append((view, ("Share of the prediction's variance", percent(share))))
            low, high = ranges.get(view, ("", ""))
            if low != high:
                facts.append((view, ("Its range over the folds", f"{low} to {high}")))
    stability = run.of_model("stability", main)
    for row in stability[stability["view"] != "*"].to_dict("records") if len(stability) else []:
        index = float(row["stability"])
        if np.isfinite(index):
            facts.append((row["view"], ("Agreement of folds", number(index))))
    return facts


def factors_of(model: FittedModel) -> str:
    """Return a sentence on the latent factors of a model: how many, of which outputs, and names."""
    loadings = getattr(model.inner, "loadings_", None)
    names = getattr(model.inner, "factor_names_", None)
    if loadings is None or names is None:
        return ""
    outputs, factors = loadings.shape
    if outputs == 1:
        return "The model has one output, and so one latent factor, which is its score."
    if factors == outputs:
        return (
            f"The {outputs} outputs of the model share no latent factors: each has a factor of its "
            "own."
        )
    listing = "; ".join(f"factor{k}: {short(name, 120)}" for k, name in enumerate(names[:8]))
    more = f"; {factors - 8} more" if factors > 8 else ""
    return (
        f"{outputs} outputs of the model share {counted(factors, 'latent factor')}, here with "
        f"their strongest features: {listing}{more}."
    )


NAMED = 5
"""Features that are always named."""
MOST_OF_A_VIEW = 0.5
"""Share of the features above which a model does not select a few of them."""

_NO_SIGNAL = (
    " There is no evidence of signal on held-out data: do not interpret the selected features."
)


def selection_of_folds(
    run: Results, main: str, model: FittedModel | None = None, *, doubtful: bool = False
) -> str:
    """Return in words which features a model uses, in the folds and, if given, in its fit.

    `doubtful` says that there is no evidence of signal, and adds a warning.
    """
    text = _in_folds(run, main)
    if model is not None and model.inner is not None:
        text = (
            f"In the folds: {text[0].lower()}{text[1:]} The model fitted on all people: "
            f"{selection_of_model(model, views=False)}"
        )
    return text + (_NO_SIGNAL if doubtful and not text.endswith(_NO_SIGNAL) else "")


def _in_folds(run: Results, main: str) -> str:
    """Return in words which features the folds select."""
    rows = run.of_model("selection", main)
    if not len(rows):
        return f"It is not known which features {short(main)} uses."
    # A row with feature "*" has the number of features of a view that each fold selects.
    views, features = rows[rows["feature"] == "*"], rows[rows["feature"] != "*"]
    total = int(views["n_features"].fillna(0).sum())
    by_view = [[int(k) for k in str(folds).split(";")] for folds in views["folds"]]
    same_folds = len({len(of_view) for of_view in by_view}) == 1
    counts = np.array(by_view, dtype=float).sum(axis=0) if same_folds else np.zeros(0)
    if not counts.any():
        return f"None: {short(main)} selected no feature in any fold."
    selected = float(counts.mean())
    uses_all = counts.min() >= total
    if uses_all:
        text = f"All {total:,} are used"
        if main.startswith("BALDUR"):
            text += "; no smaller set was shown to have as low a loss"
    else:
        digits = 0 if selected > MOST_OF_A_VIEW * total else 1
        text = f"On average {number(selected, digits)} of {counted(total, 'feature')}"
    ordered = features.assign(size=features["mean_weight"].astype(float).abs().fillna(0.0))
    # Each feature once: those that most folds select first, then by size of weight.
    ordered = ordered.sort_values(["frequency", "size"], ascending=[False, False], kind="stable")
    ordered = ordered.drop_duplicates(["view", "feature"])
    if len(ordered):
        frequency = ordered["frequency"].to_numpy(dtype=float)
        lead = _lead(min(NAMED, len(ordered))) if uses_all else _which(frequency, len(counts))
        text += f". {lead} {_named(ordered.head(NAMED), partial(_fold_facts, n_folds=len(counts)))}"
    return text + "."


def _which(frequency: np.ndarray, n_folds: int) -> str:
    """Return the words before the names of the first features: by what they were chosen.

    Shapes: frequency (F,) of F features, share of the folds that select each, descending.
    """
    n_named = min(NAMED, len(frequency))
    if n_named == 1:
        return "The feature selected most often is"
    equal = int(np.sum(frequency == frequency[0]))
    if equal > n_named:
        folds = f"{round(float(frequency[0]) * n_folds)} of {n_folds} folds"
        return (
            f"{equal:,} features are selected in {folds}; the {n_named} of them with the largest "
            "weights are"
        )
    lead = f"The {n_named} features selected most often"
    tied = len(frequency) > n_named and frequency[n_named] == frequency[n_named - 1]
    return f"{lead}{', of equals those with the largest weights,' if tied else ''} are"


def _named(rows: pd.DataFrame, facts: Callable[[dict[Any, Any]], list[str]]) -> str:
    """Return a list of features in words, each with its view and the `facts` of its row."""
    names = distinct(rows["feature"])
    texts = [
        f"{name} ({', '.join([short(row['view'], 30), *facts(row)])})"
        for name, row in zip(names, rows.to_dict("records"), strict=True)
    ]
    return listed(texts, NAMED)


def _fold_facts(row: dict[Any, Any], n_folds: int) -> list[str]:
    """Return the number of folds that select a feature, and whether they agree on its sign."""
    facts = [f"in {round(float(row['frequency']) * n_folds)} of {n_folds} folds"]
    if np.isfinite(row["sign_agreement"]) and row["sign_agreement"] < 1:
        facts.append(f"same sign in {percent(row['sign_agreement'])} of them")
    return facts


def _fit_facts(row: dict[Any, Any]) -> list[str]:
    """Return inclusion probability and weight of a feature in the fit on all people."""
    facts = []
    p = row.get("inclusion_probability")
    if p is not None and np.isfinite(p):
        facts.append(f"inclusion probability {probability(p)}")
    if np.isfinite(row["lower"]) and np.isfinite(row["upper"]):
        weight = estimate(row["weight_scaled"], row["lower"], row["upper"], sign=True)
        facts.append(f"weight {weight}")
    return facts


def selection_of_model(model: FittedModel, *, views: bool = True) -> str:
    """Return in words which features one fitted model uses; with `views`, also its view shares."""
    inner = model.inner
    masks = inner.selected_features_
    total = sum(model.n_features.values())
    selected = sum(int(np.sum(mask)) for mask in masks.values())
    if not selected:
        return f"None of {counted(total, 'feature')}, so everybody gets the base rate."
    summary = model.summary().drop_duplicates(["view", "feature"]).head(NAMED)
    if selected == total:
        text = f"All {total:,} are used"
        if hasattr(inner, "sparsity_path_"):
            text += "; no smaller set was shown to have as low a loss"
    else:
        text = f"{selected:,} of {counted(total, 'feature')}"
    text += f". {_lead(len(summary))} {_named(summary, _fit_facts)}."
    if views:
        # Shares that are not shown as 0 %.
        shares = {v: float(s) for v, s in inner.view_relevance_.items() if s > 0.005}
        ordered = sorted(shares, key=lambda v: -shares[v])
        text += " Share of the prediction's variance by view: "
        text += listed([f"{short(v)} {percent(shares[v])}" for v in ordered]) + "."
    return text + (_NO_SIGNAL if not getattr(inner, "signal_shown_", True) else "")


def _lead(n: int) -> str:
    return (
        "The feature with the largest weight is"
        if n == 1
        else f"The {n} features with the largest weights are"
    )
