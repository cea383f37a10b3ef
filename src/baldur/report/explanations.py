"""What each check of the page looks at, and what to do.

Codes are stable: a code never changes its meaning, and one that is no longer used is not reused.
`docs/howto/report.md` lists them as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.evaluation.results import Results
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

FEW = 20
"""People of a class, below which one person moves its figures by more than 5 percentage points."""
POOR_STABILITY = 0.4
"""Nogueira, Sechidis and Brown (2018) call agreement below this poor."""
MOST = 0.8
"""Share of the squared weights that counts as nearly all."""
MANY_MISSING = 0.2
"""Share of samples with a missing view that changes who a result is about."""
SWING = 0.4
"""Difference of a view's share between folds that can turn a minor view into the main one."""


@dataclass(frozen=True)
class Explanation:
    """What a check looks at, and what to do."""

    code: str
    name: str
    why: str  # why, do: Sentences
    do: str


_EXPLAINED = [
    Explanation(
        "B01", "No evidence of signal",
        "The interval of the main figure includes what guessing gives, permuted labels do as well, "
        "or the fit found no evidence of signal on held-out rows. The selected features are then "
        "as likely to be noise.",
        "Do not interpret the selected features. Look for errors in the outcome or in the matching "
        "of files; otherwise report that nothing was found.",
    ),
    Explanation(
        "B02", "Small classes",
        f"A class has fewer than {FEW} people. One person more or less then moves its figures by "
        "more than 5 percentage points, and its intervals are wide.",
        "Report the intervals, not the estimates alone. Join classes where that makes sense.",
    ),
    Explanation(
        "B03", "Unstable selection",
        f"The folds agree poorly on the features (Nogueira's index below {POOR_STABILITY}). Other "
        "people would have given other features, even where predictions are as good.",
        "Report views, or features selected in most folds together with their interchangeable "
        "features, and not the list of a single fit.",
    ),
    Explanation(
        "B04", "Number of features not determined",
        "Half as many features lose less than one standard error of held-out loss. The data then "
        "hardly determine how many features to select.",
        "Do not interpret how many features were selected. A larger margin selects fewer of them.",
    ),
    Explanation(
        "B05", "Site predicts the outcome",
        "Classes are spread unevenly over sites. A model can then recognise sites instead of "
        "patients, by scanners, laboratories or questionnaires.",
        "Leave one site out at a time, regress the site out, or harmonise, and compare the "
        "figures.",
    ),
    Explanation(
        "B06", "One feature dominates",
        f"One feature holds more than {MOST:.0%} of the squared weights. It may be part of how the "
        "outcome was defined, or be measured because of it.",
        "Ask how and when it was measured. Run the study without it and compare.",
    ),
    Explanation(
        "B07", "Not converged",
        "A fit did not converge, so its weights may still change.",
        "Raise max_iter and run again.",
    ),
    Explanation(
        "B08", "Poor calibration",
        "The interval of the calibration slope does not include 1, or that of the intercept does "
        "not include 0: probabilities are too extreme, too cautious, or off as a whole.",
        "Use the ranking, and recalibrate on people like those it is meant for before anybody acts "
        "on a probability.",
    ),
    Explanation(
        "B09", "A model failed",
        "A model has no figures, so that it is missing from the comparison.",
        "Read the reason, correct the settings and run again; finished jobs are kept.",
    ),
    Explanation(
        "B10", "Many samples with a missing view",
        f"More than {MANY_MISSING:.0%} of the samples have a missing view. The model predicts them "
        "from the other views; whether a view was measured is seldom due to chance.",
        "Compare those with and without the view, and report who was measured.",
    ),
    Explanation(
        "B11", "Data may be wrong",
        "The check of the data before the study found something that is often a mistake.",
        "Read the finding, and correct the file or make sure that it is right.",
    ),
    Explanation(
        "B12", "Predictions may be for training samples",
        "The page was made from a fitted model and people who were passed with it. If the model "
        "was trained on them, its predictions for them are too good.",
        "Run baldur evaluate, or pass people whom the model has not seen.",
    ),
    Explanation(
        "B13", "No feature selected",
        "No feature was selected: predictions are the base rate, the same for everybody.",
        "Report this as the result. More people, or other measurements, may give another one.",
    ),
    Explanation(
        "B14", "Files missing or changed",
        "Files of the results folder are missing, damaged, or not those that the study wrote.",
        "Run the study again, or restore the folder, and make the page again.",
    ),
    Explanation(
        "B15", "View shares differ between folds",
        f"The share of a view in the prediction differs by more than {SWING * 100:.0f} percentage "
        "points between folds. Other people would have given another view the main part.",
        "Do not rank the views. Report their shares with their range over the folds.",
    ),
    Explanation(
        "B16", "No evidence of signal in some folds",
        "In some folds, training data alone gave no evidence of signal. The folds then rest on "
        "different amounts of evidence.",
        "Report this beside the figures. More people would make the folds agree.",
    ),
    Explanation(
        "B17", "Warnings while fitting",
        "Models gave warnings, which are listed at the end of the page.",
        "Read them; a warning about numbers may point to columns on extreme scales.",
    ),
    Explanation(
        "B18", "Model of other data",
        "The model that was added to the page was fitted on other columns than those of the study.",
        "Fit the model again with the same study file (baldur fit).",
    ),
    Explanation(
        "B19", "Predictors differ from training",
        "The new cohort differs from the training data in the values of its predictors.",
        "Check units and coding of the columns that are named. Otherwise the cohort differs, and "
        "figures of the development study need not hold in it.",
    ),
    Explanation(
        "B20", "Notes on the samples",
        "Samples were left out, or something else about them changes whom the result is about.",
        "Read the note, and report how many samples were left out and why.",
    ),
    Explanation(
        "B21", "Values far outside training",
        "Single values of the new cohort lie more than three widths of the training range outside "
        "it, as an age of 540 does. Such values are seldom real.",
        "Check these cells, their units, and codes for missing values such as -999; then validate "
        "again.",
    ),
    Explanation(
        "B22", "Trees predict better",
        "A forest or boosted trees predict better than every linear model of the study: the "
        "interval of each difference lies above 0. Thresholds or interactions of features may "
        "matter, which a linear model does not have.",
        "Report both models. Look for features whose effect is not a straight line, and transform "
        "them or cut them into categories.",
    ),
]  # fmt: skip

EXPLANATIONS = {e.code: e for e in _EXPLAINED}
"""Every explanation by its code."""


def factors_of(model: FittedModel) -> str:
    """Return what the latent factors of a model are: how many, behind which outputs, and names."""
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
        f"{outputs} outputs of the model share {count(factors, 'latent factor')}, here with their "
        f"strongest features: {listing}{more}."
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
    """Return which features the model of a comparison uses."""
    text = _in_folds(run, main)
    if model is not None and model.inner is not None:
        text = (
            f"In the folds: {text[0].lower()}{text[1:]} The model fitted on all people: "
            f"{selection_of_model(model, views=False)}"
        )
    return text + (_NO_SIGNAL if doubtful and not text.endswith(_NO_SIGNAL) else "")


def _in_folds(run: Results, main: str) -> str:
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
        digits = 0 if selected > MOST_OF_A_VIEW * total else 1
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
