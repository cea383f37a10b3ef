"""The answer in plain words: can it be told, how sure, and from which measurements."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from baldur.evaluation.metrics import METRICS
from baldur.inference.selection import against_base_rate
from baldur.report.checks import Check
from baldur.report.fitted import FittedModel
from baldur.report.source import Run
from baldur.report.words import count, estimate, in_words, listed, number, percent, short

__all__ = ["Sentence", "answer_of_model", "answer_of_run", "main_model"]

_OWN = "BALDUR"
_OFTEN = 0.8
"""Share of folds from which a feature is named in the answer."""


@dataclass(frozen=True)
class Sentence:
    """A question, and its answer."""

    question: str
    answer: str


def main_model(run: Run) -> str | None:
    """Return the model that the page is about: BALDUR, or else the best by the chosen metric.

    Parameters
    ----------
    run : Run

    Returns
    -------
    str or None
        None where every model failed.
    """
    there = run.finished
    own = [m for m in there if m.startswith(_OWN)]
    if own:
        return own[0]
    metric = run.record.get("select_by", "")
    table = run.table("table")
    if not there or f"{metric}_pooled" not in table:
        return there[0] if there else None
    values = table.set_index("model")[f"{metric}_pooled"].reindex(there).astype(float)
    if values.isna().all():
        return there[0]
    return str(values.idxmax() if METRICS[metric].greater_is_better else values.idxmin())


def answer_of_run(run: Run, main: str | None, checks: list[Check]) -> list[Sentence]:
    """Return the answer of a comparison.

    Parameters
    ----------
    run : Run
    main : str or None
        The model that the page is about.
    checks : list of Check
        That apply.

    Returns
    -------
    list of Sentence
    """
    if main is None:
        text = "No model finished, so there is no answer. The reasons are listed below."
        return [Sentence("Can the outcome be predicted?", text)]
    doubtful = {c.code for c in checks if c.level == "serious"}
    made = [Sentence("Can the outcome be predicted?", _how_well(run, main, "B01" in doubtful))]
    sure = _how_sure(run, main)
    if sure:
        made.append(Sentence("How sure are its probabilities?", sure))
    made.append(Sentence("Which measurements decide it?", _which(run, main, "B01" in doubtful)))
    others = _against(run, main)
    if others:
        made.append(Sentence("Do other models do better?", others))
    return made


def answer_of_model(model: FittedModel) -> list[Sentence]:
    """Return the answer of one fitted model.

    Parameters
    ----------
    model : FittedModel

    Returns
    -------
    list of Sentence
    """
    inner = model.inner
    if inner is None:
        text = f"{short(model.name)} does not tell which features it uses, or how much."
        return [Sentence("Which measurements decide it?", text)]
    made = []
    if hasattr(inner, "signal_shown_"):
        gain = against_base_rate(inner.signal_)
        text = (
            f"Yes: on held-out training rows the model is {gain}."
            if inner.signal_shown_
            else f"That was not shown: on held-out training rows the model is {gain}."
        )
        made.append(Sentence("Can the outcome be predicted?", text))
    summary = model.summary()
    total = sum(len(mask) for mask in inner.selected_features_.values())
    kept = sum(int(np.sum(mask)) for mask in inner.selected_features_.values())
    text = f"{kept:,} of {count(total, 'feature')} were kept"
    if kept:
        names = list(dict.fromkeys(summary["feature"]))
        views = {v: s for v, s in inner.view_relevance_.items() if s > 0.005}
        ordered = sorted(views, key=lambda v: -views[v])
        text += f": {listed(names)}. Share of the prediction's variance: "
        text += listed([f"{short(v)} {percent(views[v])}" for v in ordered]) + "."
    else:
        text += ", so everybody gets the base rate."
    made.append(Sentence("Which measurements decide it?", text))
    return made


def _value(run: Run, model: str, metric: str) -> str:
    rows = run.of_model("intervals", model)
    if "metric" not in rows:
        return "–"
    at = rows[(rows["metric"] == metric) & (rows["site"] == "*")]
    return "–" if not len(at) else in_words(*at[["estimate", "low", "high"]].iloc[0])


def _how_well(run: Run, main: str, doubtful: bool) -> str:
    classes = run.classes
    people = count(run.record.get("people", 0), "person", "people")
    if classes:
        metric, name = "auc", "AUC"
        what = (
            f"{short(classes[-1])} from {short(classes[0])}"
            if len(classes) == 2
            else f"{len(classes)} classes"
        )
        seen = f"{short(main)} told {what} with an {name} of {_value(run, main, metric)}"
    else:
        metric, name = "r2", "R²"
        outcome = short(run.record.get("outcome", "the outcome"))
        seen = f"{short(main)} predicted {outcome} with an {name} of {_value(run, main, metric)}"
    start = "That was not shown: " if doubtful else "Yes: "
    folds = count(run.record.get("folds", 0), "fold")
    more = f" and {run.record['repeats']} repeats" if run.record.get("repeats", 1) > 1 else ""
    return (
        f"{start}{seen}, on {people} that the model had not seen when it predicted "
        f"them (cross-validation with {folds}{more})."
    )


def _how_sure(run: Run, main: str) -> str:
    rows = run.of_model("calibration", main)
    if "measure" not in rows or len(run.classes) > 2:
        return ""
    by = rows.set_index("measure")
    if "slope" not in by.index or not np.isfinite(float(by["estimate"]["slope"])):
        return ""
    slope = by.loc["slope"]
    seen = estimate(slope["estimate"], slope["low"], slope["high"])
    if not run.classes:
        return f"The line of truth on prediction has a slope of {seen}; 1 is right."
    right = slope["low"] <= 1 <= slope["high"]
    text = "They mean what they say" if right else (
        "They are too extreme" if slope["estimate"] < 1 else "They are too timid"
    )  # fmt: skip
    text += f": the calibration slope is {seen}; 1 is right."
    if "ici" in by.index:
        points = number(100 * float(by["estimate"]["ici"]), 1)
        text += f" On average a probability is off by {points} percentage points."
    return text


def _which(run: Run, main: str, doubtful: bool) -> str:
    rows = run.of_model("selection", main)
    if not len(rows):
        return f"{short(main)} does not select features."
    whole, each = rows[rows["feature"] == "*"], rows[rows["feature"] != "*"]
    total = int(whole["n_features"].astype(int).sum())
    kept = _mean_kept(whole)
    if kept == 0:
        return f"None: {short(main)} kept no feature in any fold."
    if kept > 0.5 * total:
        used = f"{number(kept, 0)} of {count(total, 'feature')}"
        return f"{short(main)} uses {used}, and names no few."
    text = f"On average {number(kept, 1)} of {count(total, 'feature')}. "
    often = each[each["frequency"].astype(float) >= _OFTEN]
    names = list(dict.fromkeys(zip(often["view"], often["feature"], strict=True)))
    if names:
        views = listed(dict.fromkeys(v for v, _ in names))
        named = listed([f for _, f in names])
        text += f"In at least {percent(_OFTEN)} of the folds: {named} (from {views})."
    else:
        text += f"No feature is in {percent(_OFTEN)} of the folds."
    if doubtful:
        text += " As no signal was shown, these are not to be read as findings."
    return text


def _mean_kept(whole: pd.DataFrame) -> float:
    counts = [[int(k) for k in str(c).split(";")] for c in whole["folds"]]
    return float(np.array(counts).sum(axis=0).mean()) if counts else 0.0


def _against(run: Run, main: str) -> str:
    rows = run.table("differences")
    if "metric" not in rows:
        return ""
    metric = run.record.get("select_by", "auc")
    rows = rows[rows["metric"] == metric]
    greater = METRICS[metric].greater_is_better if metric in METRICS else True
    better: list[str] = []
    worse: list[str] = []
    alike: list[str] = []
    for row in rows.to_dict("records"):
        if main not in (row["model_a"], row["model_b"]):
            continue
        sign = 1.0 if row["model_a"] == main else -1.0
        ends = sorted([sign * float(row["low"]), sign * float(row["high"])])
        other = row["model_b"] if sign > 0 else row["model_a"]
        if not greater:
            ends = [-ends[1], -ends[0]]
        (worse if ends[0] > 0 else better if ends[1] < 0 else alike).append(other)
    parts = []
    if better:
        parts.append(f"{listed(better)} {'does' if len(better) == 1 else 'do'} better")
    if alike:
        parts.append(f"{listed(alike)} cannot be told apart from it")
    if worse:
        parts.append(f"{listed(worse)} {'does' if len(worse) == 1 else 'do'} worse")
    if not parts:
        return ""
    name = METRICS[metric].heading if metric in METRICS else metric
    text = f"By {name}, on the same people, compared with {short(main)}: {'; '.join(parts)}."
    return text if better else f"No. {text}" if worse or alike else text
