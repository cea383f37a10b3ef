"""Sentences about the features of a model: the top five with their uncertainty."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, distinct, listed, number, percent, probability, short
from baldur.report.results import StudyResults

__all__ = ["selection_of_folds", "selection_of_model"]

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
    """Return which features the model of a comparison uses.

    Parameters
    ----------
    run : StudyResults
    main : str
        The model that the page is about.
    model : FittedModel, optional
        The same model fitted on all people; adds inclusion probabilities and intervals.
    doubtful : bool
        Whether there is no evidence of signal.

    Returns
    -------
    str
    """
    rows = run.of_model("selection", main)
    if not len(rows):
        return f"{short(main)} does not report which features it uses."
    whole, each = rows[rows["feature"] == "*"], rows[rows["feature"] != "*"]
    total = int(whole["n_features"].fillna(0).sum())
    counts = _fold_counts(whole)
    if not len(counts) or not counts.any():
        return f"None: {short(main)} selected no feature in any fold."
    selected = float(counts.mean())
    if counts.min() >= total:
        text = f"All {total:,} are used"
        if main.startswith("BALDUR"):
            text += "; no smaller set was shown to predict as well"
        lead = "with the largest weights are"
    elif selected > MOST * total:
        text = f"On average {number(selected, 0)} of {count(total, 'feature')}"
        lead = "selected most often are"
    else:
        text = f"On average {number(selected, 1)} of {count(total, 'feature')}"
        lead = "selected most often are"
    named = _top(each, _extra(model), len(counts))
    if named:
        text += f". The {count(len(named), 'feature')} {lead} {listed(named, NAMED)}"
        if len(named) == 1:
            text = text.replace("The 1 feature", "The feature").replace(" are ", " is ")
    return text + "." + (_NO_SIGNAL if doubtful else "")


def _fold_counts(whole: pd.DataFrame) -> np.ndarray:
    """Return how many features every fold selects."""
    each = [[int(k) for k in str(c).split(";")] for c in whole["folds"]]
    if not each or len({len(c) for c in each}) != 1:
        return np.zeros(0)
    return np.array(each, dtype=float).sum(axis=0)


def _extra(model: FittedModel | None) -> dict[tuple[str, str], dict[Any, Any]]:
    """Return the row of each feature in the fit on all people, the strongest output's."""
    if model is None:
        return {}
    found: dict[tuple[str, str], dict[Any, Any]] = {}
    for row in model.summary().to_dict("records"):
        found.setdefault((str(row["view"]), str(row["feature"])), row)
    return found


def _top(each: pd.DataFrame, extra: dict[tuple[str, str], dict[Any, Any]], n: int) -> list[str]:
    """Return the top features as text, each with its inclusion probability and weight."""
    if not len(each):
        return []
    size = each["mean_weight"].astype(float).abs().fillna(0.0)
    ordered = each.assign(size=size).sort_values(
        ["frequency", "size"], ascending=[False, False], kind="stable"
    )
    ordered = ordered.drop_duplicates(["view", "feature"]).head(NAMED)
    names = distinct(ordered["feature"])
    made = []
    for name, row in zip(names, ordered.to_dict("records"), strict=True):
        folds = round(float(row["frequency"]) * n)
        said = [short(row["view"], 30), f"in {folds} of {n} folds"]
        if np.isfinite(row["sign_agreement"]) and row["sign_agreement"] < 1:
            said.append(f"same sign in {percent(row['sign_agreement'])} of them")
        said += _sure(extra.get((str(row["view"]), str(row["feature"]))))
        made.append(f"{name} ({', '.join(said)})")
    return made


def _sure(row: dict[Any, Any] | None) -> list[str]:
    """Return inclusion probability and weight of a feature in the fit on all people."""
    if row is None:
        return []
    said = []
    p = row.get("inclusion_probability")
    if p is not None and np.isfinite(p):
        said.append(f"inclusion probability {probability(p)}")
    if np.isfinite(row["lower"]) and np.isfinite(row["upper"]):
        ends = f"[{number(row['lower'])}, {number(row['upper'])}]"
        said.append(f"weight {number(row['weight_scaled'], sign=True)} {ends}")
    return said


def selection_of_model(model: FittedModel) -> str:
    """Return which features one fitted model uses.

    Parameters
    ----------
    model : FittedModel

    Returns
    -------
    str
    """
    inner = model.inner
    masks = inner.selected_features_
    total = sum(len(mask) for mask in masks.values())
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
            text += "; no smaller set was shown to predict as well"
    else:
        text = f"{selected:,} of {count(total, 'feature')}"
    text += f". {_lead(len(top))} {listed(top, NAMED)}."
    shares = {v: float(s) for v, s in inner.view_relevance_.items() if s > 0.005}
    ordered = sorted(shares, key=lambda v: -shares[v])
    text += " Share of the prediction's variance by view: "
    text += listed([f"{short(v)} {percent(shares[v])}" for v in ordered]) + "."
    return text + (_NO_SIGNAL if not getattr(inner, "signal_shown_", True) else "")


def _lead(n: int) -> str:
    return (
        "The feature with the largest weight is"
        if n == 1
        else f"The {n} with the largest weights are"
    )
