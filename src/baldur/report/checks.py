"""Checks with codes: what a reader should know before believing a result, and why.

Codes are stable: a code never changes its meaning, and one that is no longer used is not given
away again. `docs/report.md` explains them at more length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from baldur.inference.selection import against_base_rate
from baldur.report.fitted import FittedModel
from baldur.report.source import Run
from baldur.report.words import count, estimate, listed, number, percent, short
from baldur.study.checks.sites import site_predicts

__all__ = ["EXPLANATIONS", "Check", "checks_of_model", "checks_of_run"]

SERIOUS, CARE, NOTE = "serious", "care", "note"

# The worst figure that guessing reaches; for losses there is none without the base rate.
_CHANCE = {"auc": 0.5, "balanced_accuracy": 0.5, "r2": 0.0, "correlation": 0.0}
_FEW = 20
"""People of a class, below which one person moves its figures by more than 5 percentage points."""
_POOR_STABILITY = 0.4
"""Nogueira, Sechidis and Brown (2018) call agreement below this poor."""
_MOST = 0.8
"""Share of the squared weights that counts as doing it all."""
_ALPHA = 0.05
_MANY_LACK = 0.2
"""Share of people without a view that changes who a result is about."""


@dataclass(frozen=True)
class Explanation:
    """What a check looks at, and what to do.

    Attributes
    ----------
    code, name : str
    why, do : str
        Sentences.
    """

    code: str
    name: str
    why: str
    do: str


@dataclass(frozen=True)
class Check:
    """A check that applies.

    Attributes
    ----------
    code : str
    level : {"serious", "care", "note"}
    text : str
        What was seen, with its numbers.
    """

    code: str
    level: str
    text: str

    @property
    def name(self) -> str:
        """What it is called."""
        return EXPLANATIONS[self.code].name


_EXPLAINED = [
    Explanation(
        "B01", "Chance level",
        "The interval of the main figure reaches what guessing would give, or held-out people show "
        "no signal. Features that were kept are then as likely to be noise.",
        "Do not read the features as findings. Look for errors in the outcome or the alignment of "
        "files; otherwise report that nothing was found.",
    ),
    Explanation(
        "B02", "Small classes",
        f"A class has fewer than {_FEW} people. One person more or less then moves its figures by "
        "more than 5 percentage points, and its intervals are wide.",
        "Report the intervals, not the estimates alone. Join classes where that makes sense.",
    ),
    Explanation(
        "B03", "Unstable selection",
        f"Folds agree poorly on the features (Nogueira's index below {_POOR_STABILITY}). Other "
        "people would have given other features, even where predictions are as good.",
        "Name views, or features kept in most folds, and their stand-ins; not the list of one fit.",
    ),
    Explanation(
        "B04", "Path too flat to choose",
        "Half as many features lose less than one standard error of held-out loss. The number of "
        "kept features is then hardly supported by the data.",
        "Do not interpret how many features were kept. A larger margin keeps fewer of them.",
    ),
    Explanation(
        "B05", "Site predicts the outcome",
        "Classes are spread unevenly over sites. A model can then tell sites apart instead of "
        "people, by scanners, laboratories or questionnaires.",
        "Leave one site out, regress the site out, or harmonise, and compare the figures.",
    ),
    Explanation(
        "B06", "One feature does it all",
        f"One feature holds more than {_MOST:.0%} of the squared weights. It may be part of how "
        "the outcome was defined, or be measured because of it.",
        "Ask how and when it was measured. Run the study without it and compare.",
    ),
    Explanation(
        "B07", "Not converged",
        "A fit did not converge. Its weights may still move.",
        "Raise max_iter and run again.",
    ),
    Explanation(
        "B08", "Poor calibration",
        "The interval of the calibration slope does not hold 1, or that of the intercept does not "
        "hold 0: probabilities are too extreme, too timid, or off as a whole.",
        "Use the ranking, and recalibrate on people like those it is meant for before anybody acts "
        "on a probability.",
    ),
    Explanation(
        "B09", "A model failed",
        "A model has no figures, so that the comparison lacks it.",
        "Read its reason, correct its settings and run again; finished jobs are kept.",
    ),
    Explanation(
        "B10", "Many people lack a view",
        f"More than {_MANY_LACK:.0%} of the people lack a view. The model predicts them from the "
        "others; who lacks a view is seldom chance.",
        "Compare those with and without it, and say who was measured.",
    ),
    Explanation(
        "B11", "Data look wrong",
        "The look at the data before the study found something that is often a mistake.",
        "Read the finding, and correct the file or be sure that it is right.",
    ),
    Explanation(
        "B12", "Shown people may be those it learned from",
        "The page was made from a fitted model and people who were handed to it. If it was trained "
        "on them, its predictions for them are too good.",
        "Run baldur evaluate, or hand over people the model has not seen.",
    ),
    Explanation(
        "B13", "No view has weight",
        "Nothing was kept: predictions are the base rate, the same for everybody.",
        "That is an answer. More people, or other measurements, may give another one.",
    ),
]  # fmt: skip

EXPLANATIONS = {e.code: e for e in _EXPLAINED}


def checks_of_run(run: Run, main: str | None) -> list[Check]:
    """Return the checks that apply to a comparison, the serious ones first.

    Parameters
    ----------
    run : Run
    main : str or None
        The model that the page is about.

    Returns
    -------
    list of Check
    """
    found: list[Check | None] = []
    if main is not None:
        found += [
            _chance(run, main),
            _unstable(run, main),
            _one_feature_of_folds(run, main),
            _calibration(run, main),
        ]
    found += [_small_classes(run), _sites(run), _not_converged(run), _lacking(run)]
    found += [
        Check("B09", CARE, f"{short(model)} has no figures: {short(reason, 300)}")
        for model, reason in run.record.get("failures", {}).items()
    ]
    found += [Check("B11", CARE, short(text, 400)) for text in run.record.get("findings", [])]
    return in_order(found)


def checks_of_model(model: FittedModel) -> list[Check]:
    """Return the checks that a fitted model alone tells.

    Parameters
    ----------
    model : FittedModel

    Returns
    -------
    list of Check
    """
    inner, found = model.inner, []
    if inner is None:
        return []
    kept = sum(int(np.sum(mask)) for mask in inner.selected_features_.values())
    if not getattr(inner, "signal_shown_", True):
        text = (
            f"Held-out training rows are {against_base_rate(inner.signal_)}, less than 95 % "
            "confidence needs."
        )
        found.append(Check("B01", SERIOUS, text))
    if not kept:
        found.append(Check("B13", SERIOUS, "No feature was kept."))
    if not getattr(inner, "converged_", True):
        found.append(Check("B07", CARE, "The fit on all people did not converge."))
    found += [c for c in (_flat_path(model.path()), _one_feature(model.summary())) if c]
    return in_order(found)


def in_order(found: Sequence[Check | None]) -> list[Check]:
    """Return the checks that apply, serious ones first, each once."""
    rank = {SERIOUS: 0, CARE: 1, NOTE: 2}
    there = list(dict.fromkeys(c for c in found if c is not None))
    return sorted(there, key=lambda c: (rank[c.level], c.code))


def _chance(run: Run, main: str) -> Check | None:
    rows = run.of_model("intervals", main)
    metric = run.record.get("select_by", "auc")
    if metric not in _CHANCE:
        metric = "auc" if run.classes else "r2"
    if "metric" in rows:
        at = rows[(rows["metric"] == metric) & (rows.get("site", "*") == "*")]
        if len(at) and float(at["low"].iloc[0]) <= _CHANCE[metric]:
            seen = estimate(*at[["estimate", "low", "high"]].iloc[0])
            name = {"auc": "AUC", "r2": "R²"}.get(metric, metric.replace("_", " "))
            text = f"{name} of {short(main)} on held-out people is {seen}; guessing gives "
            return Check("B01", SERIOUS, f"{text}{number(_CHANCE[metric], 1)}.")
    tested = run.of_model("permutation", main)
    if len(tested) and float(tested["p_holm"].iloc[0]) > _ALPHA:
        p = number(tested["p_holm"].iloc[0], 3)
        return Check("B01", SERIOUS, f"Permuted labels do as well as {short(main)} (p = {p}).")
    return None


def _small_classes(run: Run) -> Check | None:
    people = run.people
    if not run.classes or "label" not in people:
        return None
    counts = people["label"].astype(str).value_counts()
    small = {c: int(counts.get(c, 0)) for c in run.classes if counts.get(c, 0) < _FEW}
    if not small:
        return None
    named = listed([f"{short(c)} ({count(n, 'person', 'people')})" for c, n in small.items()])
    return Check("B02", CARE, f"Few people in: {named}.")


def _unstable(run: Run, main: str) -> Check | None:
    rows = run.of_model("stability", main)
    if "view" not in rows:
        return None
    whole = rows[rows["view"] == "*"]
    if not len(whole) or not float(whole["stability"].iloc[0]) < _POOR_STABILITY:
        return None
    seen = estimate(*whole[["stability", "low", "high"]].iloc[0])
    return Check("B03", CARE, f"Nogueira's index of {short(main)} over folds is {seen}.")


def _flat_path(path: pd.DataFrame) -> Check | None:
    if "selected" not in path or not path["selected"].any():
        return None
    kept = path[path["selected"]].iloc[0]
    size = int(kept["n_features"])
    if not size:
        return None
    smaller = path[(path["n_features"] <= size // 2)]
    if not len(smaller):
        return None
    half = smaller.sort_values("n_features").iloc[-1]
    loses = float(half["loss"]) - float(kept["loss"])
    if not loses < float(half["standard_error"]):
        return None
    text = (
        f"{count(half['n_features'], 'feature')} instead of {size:,} would lose "
        f"{number(loses, 3)} of held-out loss, with a standard error of "
        f"{number(half['standard_error'], 3)}."
    )
    return Check("B04", CARE, text)


def _sites(run: Run) -> Check | None:
    people = run.people
    if "site" not in people or not len(people):
        return None
    y = people["label"].astype(str) if run.classes else people["label"].astype(float)
    outcome = str(run.record.get("outcome", "the outcome"))
    scheme = str(run.record.get("scheme") or "")
    made = site_predicts(
        people["site"].astype(str).to_numpy(), y.to_numpy(), outcome, bool(run.classes), scheme
    )
    return Check("B05", SERIOUS, f"{short(made[0].what, 300)}.") if made else None


def _one_feature_of_folds(run: Run, main: str) -> Check | None:
    rows = run.of_model("selection", main)
    if "mean_weight" not in rows:
        return None
    rows = rows[rows["feature"] != "*"]
    weight = rows["mean_weight"].astype(float) * rows["frequency"].astype(float)
    return _dominant(rows["view"], rows["feature"], weight)


def _one_feature(summary: pd.DataFrame) -> Check | None:
    if not len(summary):
        return None
    return _dominant(summary["view"], summary["feature"], summary["weight_scaled"].astype(float))


def _dominant(view: pd.Series, feature: pd.Series, weight: pd.Series) -> Check | None:
    square = pd.DataFrame({"view": view, "feature": feature, "square": weight**2})
    total = square.groupby(["view", "feature"], sort=False)["square"].sum()
    if not len(total) or not total.sum() > 0:
        return None
    share = float(total.max() / total.sum())
    if share <= _MOST:
        return None
    name = total.index[int(np.argmax(total.to_numpy()))]
    text = f"{short(name[1])} ({short(name[0])}) holds {percent(share)} of the squared weights."
    return Check("B06", CARE, text)


def _calibration(run: Run, main: str) -> Check | None:
    rows = run.of_model("calibration", main)
    if "measure" not in rows:
        return None
    right = {"slope": 1.0, "intercept": 0.0}
    seen = []
    for row in rows.to_dict("records"):
        target = right.get(str(row["measure"]))
        if target is None or not (np.isfinite(row["low"]) and np.isfinite(row["high"])):
            continue
        if not row["low"] <= target <= row["high"]:
            which = f" of {short(row['class'])}" if len(run.classes) > 2 else ""
            figure = estimate(row["estimate"], row["low"], row["high"])
            seen.append(f"{row['measure']}{which} {figure}")
    if not seen:
        return None
    return Check("B08", CARE, f"Calibration of {short(main)}: {listed(seen)}.")


def _not_converged(run: Run) -> Check | None:
    bad = [
        model
        for model, notes in run.record.get("notes", {}).items()
        if any("converge" in note for note in notes)
    ]
    return Check("B07", CARE, f"In some folds: {listed(bad)}.") if bad else None


def _lacking(run: Run) -> Check | None:
    people = max(int(run.record.get("people", 0)), 1)
    shares = {v["name"]: 1 - v["people"] / people for v in run.record.get("views", [])}
    many = [f"{short(v)} ({percent(s)})" for v, s in shares.items() if s > _MANY_LACK]
    return Check("B10", CARE, f"People without a view: {listed(many)}.") if many else None
