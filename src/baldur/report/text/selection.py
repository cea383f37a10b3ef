"""Sentences about the features of a model: the top five with their uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    count,
    distinct,
    estimate,
    listed,
    number,
    percent,
    probability,
    short,
)
from baldur.report.results import StudyResults

NAMED = 5
"""Features that are always named."""
MOST = 0.5
"""Share of the features above which a model does not select a few of them."""

_NO_SIGNAL = (
    " There is no evidence of signal on held-out data: do not interpret the selected features."
)


def selection_of_folds(
    run: StudyResults, main: str, model: FittedModel | None = None, *, doubtful: bool = False
) -> str:
    """Return which features the model of a comparison uses."""
    text = _in_folds(run, main)
    if model is not None and model.inner is not None:
        text = (
            f"In the folds: {text[0].lower()}{text[1:]} The model fitted on all people: "
            f"{selection_of_model(model, views=False)}"
        )
    return text + (_NO_SIGNAL if doubtful and not text.endswith(_NO_SIGNAL) else "")


def _in_folds(run: StudyResults, main: str) -> str:
    """Return which features the folds select."""
    rows = run.of_model("selection", main)
    if not len(rows):
        return f"It is not known which features {short(main)} uses."
    views, each = rows[rows["feature"] == "*"], rows[rows["feature"] != "*"]
    total = int(views["n_features"].fillna(0).sum())
    counts = _fold_counts(views)
    if not len(counts) or not counts.any():
        return f"None: {short(main)} selected no feature in any fold."
    selected = float(counts.mean())
    whole = counts.min() >= total
    if whole:
        text = f"All {total:,} are used"
        if main.startswith("BALDUR"):
            text += "; no smaller set was shown to have as low a loss"
    else:
        digits = 0 if selected > MOST * total else 1
        text = f"On average {number(selected, digits)} of {count(total, 'feature')}"
    ordered = _ordered(each)
    if len(ordered):
        frequency = ordered["frequency"].to_numpy(dtype=float)
        lead = _lead(min(NAMED, len(ordered))) if whole else _which(frequency, len(counts))
        text += f". {lead} {listed(_named(ordered.head(NAMED), len(counts)), NAMED)}"
    return text + "."


def _which(frequency: np.ndarray, n: int) -> str:
    """Return by what the first features of a list were chosen, from their frequencies."""
    first = min(NAMED, len(frequency))
    if first == 1:
        return "The feature selected most often is"
    equal = int(np.sum(frequency == frequency[0]))
    if equal > first:
        folds = f"{round(float(frequency[0]) * n)} of {n} folds"
        return (
            f"{equal:,} features are selected in {folds}; the {first} of them with the largest "
            "weights are"
        )
    lead = f"The {first} features selected most often"
    tied = len(frequency) > first and frequency[first] == frequency[first - 1]
    return f"{lead}{', of equals those with the largest weights,' if tied else ''} are"


def _fold_counts(whole: pd.DataFrame) -> np.ndarray:
    """Return how many features every fold selects."""
    each = [[int(k) for k in str(c).split(";")] for c in whole["folds"]]
    if not each or len({len(c) for c in each}) != 1:
        return np.zeros(0)
    return np.array(each, dtype=float).sum(axis=0)


def _ordered(each: pd.DataFrame) -> pd.DataFrame:
    """Return each feature once: those that most folds select first, then by size of weight."""
    size = each["mean_weight"].astype(float).abs().fillna(0.0)
    ordered = each.assign(size=size).sort_values(
        ["frequency", "size"], ascending=[False, False], kind="stable"
    )
    return ordered.drop_duplicates(["view", "feature"])


def _named(ordered: pd.DataFrame, n: int) -> list[str]:
    """Return features by name, each with the number of folds that select it."""
    names = distinct(ordered["feature"])
    made = []
    for name, row in zip(names, ordered.to_dict("records"), strict=True):
        folds = round(float(row["frequency"]) * n)
        said = [short(row["view"], 30), f"in {folds} of {n} folds"]
        if np.isfinite(row["sign_agreement"]) and row["sign_agreement"] < 1:
            said.append(f"same sign in {percent(row['sign_agreement'])} of them")
        made.append(f"{name} ({', '.join(said)})")
    return made


def _sure(row: dict[Any, Any]) -> list[str]:
    """Return inclusion probability and weight of a feature in the fit on all people."""
    said = []
    p = row.get("inclusion_probability")
    if p is not None and np.isfinite(p):
        said.append(f"inclusion probability {probability(p)}")
    if np.isfinite(row["lower"]) and np.isfinite(row["upper"]):
        seen = estimate(row["weight_scaled"], row["lower"], row["upper"], sign=True)
        said.append(f"weight {seen}")
    return said


def selection_of_model(model: FittedModel, *, views: bool = True) -> str:
    """Return which features one fitted model uses."""
    inner = model.inner
    masks = inner.selected_features_
    total = sum(model.n_features.values())
    selected = sum(int(np.sum(mask)) for mask in masks.values())
    if not selected:
        return f"None of {count(total, 'feature')}, so everybody gets the base rate."
    summary = model.summary().drop_duplicates(["view", "feature"]).head(NAMED)
    names = distinct(summary["feature"])
    top = [
        f"{name} ({', '.join([short(row['view'], 30), *_sure(row)])})"
        for name, row in zip(names, summary.to_dict("records"), strict=True)
    ]
    if selected == total:
        text = f"All {total:,} are used"
        if hasattr(inner, "sparsity_path_"):
            text += "; no smaller set was shown to have as low a loss"
    else:
        text = f"{selected:,} of {count(total, 'feature')}"
    text += f". {_lead(len(top))} {listed(top, NAMED)}."
    if views:
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
