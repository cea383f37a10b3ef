"""The answer: evidence from tables and models, put into the sentences of `sentences`."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd

from baldur.estimators.summary import against_base_rate
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.results import Results
from baldur.report.added_value import added_value_answer
from baldur.report.checks import Check, doubts_of
from baldur.report.evidence import calibration_of, comparison_of, linear_answer, prediction_of
from baldur.report.explanations import selection_of_folds, selection_of_model
from baldur.report.few_features import few_sentence
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, listed, short
from baldur.report.sentences import (
    CALIBRATION,
    COMPARISON,
    NOT_SHOWN,
    PREDICTION,
    SHOWN,
    UNKNOWN,
    CalibrationEvidence,
    Case,
    Sentence,
    case_of,
)

_OWN = "BALDUR"

PREDICT = "Can the outcome be predicted?"
CALIBRATED = "Are its probabilities right?"
FEATURES = "Which features does it use?"
OTHERS = "Do other models predict better?"


def main_model(run: Results) -> str | None:
    """Return the model that the page is about: BALDUR, or else the best by the chosen metric."""
    there = run.with_all_views or run.finished
    own = [m for m in there if m.startswith(_OWN)]
    if own:
        return own[0]
    metric = run.record.get("select_by", "")
    table = run.table("table")
    if not there or f"{metric}_pooled" not in table:
        return there[0] if there else None
    values = table.drop_duplicates("model").set_index("model")[f"{metric}_pooled"]
    values = values.reindex(there).astype(float)
    if values.isna().all():
        return there[0]
    return str(values.idxmax() if METRICS[metric].greater_is_better else values.idxmin())


def answer_of_run(
    run: Results, main: str | None, checks: list[Check], model: FittedModel | None = None
) -> list[Sentence]:
    """Return the answer of a comparison."""
    if main is None:
        text = "No model finished, so there is no answer. The reasons are listed below."
        return [Sentence(PREDICT, text, UNKNOWN)]
    evidence = replace(prediction_of(run, main), doubts=doubts_of(checks))
    case = case_of(PREDICTION, evidence)
    made = [Sentence(PREDICT, case.text(evidence), case.outcome)]
    calibrated = calibration_sentence(run, main)
    if calibrated is not None:
        made.append(calibrated)
    doubtful = any(c.code == "B01" for c in checks)
    made.append(Sentence(FEATURES, selection_of_folds(run, main, model, doubtful=doubtful)))
    few = few_sentence(run, main, case.outcome == SHOWN)
    if few is not None:
        made.append(few)
    others = comparison_of(run, main)
    if others is not None:
        case = case_of(COMPARISON, others)
        made.append(Sentence(OTHERS, case.text(others), case.outcome))
    more = (linear_answer(run), added_value_answer(run))
    return made + [sentence for sentence in more if sentence is not None]


def answer_of_model(model: FittedModel) -> list[Sentence]:
    """Return the answer of one fitted model."""
    inner = model.inner
    if inner is None:
        text = f"{short(model.name)} does not report which features it uses, or how much."
        return [Sentence(FEATURES, text, UNKNOWN)]
    made = []
    if hasattr(inner, "signal_shown_"):
        gain = against_base_rate(inner.signal_)
        shown = bool(inner.signal_shown_)
        text = (
            f"Yes: on held-out training rows the model is {gain}."
            if shown
            else f"This was not shown: on held-out training rows the model is {gain}, less than "
            "95 % confidence needs."
        )
        made.append(Sentence(PREDICT, text, SHOWN if shown else NOT_SHOWN))
    made.append(Sentence(FEATURES, selection_of_model(model)))
    return made


def calibration_sentence(run: Results, main: str) -> Sentence | None:
    """Return whether probabilities are right; None for a model that has none."""
    rows = run.of_model("calibration", main)
    if "measure" not in rows or not len(rows):
        return None
    if len(run.classes) > 2:
        return _calibration_of_classes(rows, run.classes)
    what = "probabilities" if run.classes else "predictions"
    evidence = calibration_of(rows, what, bool(run.classes))
    case = case_of(CALIBRATION, evidence)
    question = CALIBRATED if run.classes else "Are its predictions right on average?"
    return Sentence(question, case.text(evidence), case.outcome)


def _calibration_of_classes(rows: pd.DataFrame, classes: list[str]) -> Sentence:
    """Return one sentence for several classes, each judged by its own intervals."""
    evidence = {n: calibration_of(rows[rows["class"].astype(str) == n]) for n in classes}
    cases = {name: case_of(CALIBRATION, one) for name, one in evidence.items()}
    wrong, unknown = (
        [name for name, case in cases.items() if case.outcome == outcome]
        for outcome in (NOT_SHOWN, UNKNOWN)
    )
    if wrong:
        seen = [f"{short(n)} ({_wrong(cases[n], evidence[n])})" for n in wrong]
        text = f"No, not for {listed(seen, 5)}."
        if unknown:
            others = count(len(unknown), "other class", "other classes")
            text += f" For {others} it cannot be determined."
        return Sentence(CALIBRATED, f"{text} The intervals are in calibration.csv.", NOT_SHOWN)
    if unknown:
        text = f"This cannot be determined for {len(unknown)} of {len(classes)} classes: "
        return Sentence(CALIBRATED, f"{text}{_unknown(cases, evidence)}.", UNKNOWN)
    text = (
        "Yes, for every class the interval of the calibration slope lies within 0.80 to 1.25 and "
        "that of the intercept includes 0."
    )
    return Sentence(CALIBRATED, text, SHOWN)


def _wrong(case: Case, evidence: CalibrationEvidence) -> str:
    """Return why the probabilities of a class are wrong, with the interval that shows it."""
    by_intercept = case.name in ("too low", "too high")
    figure = f"intercept {evidence.intercept}" if by_intercept else f"slope {evidence.slope}"
    return f"{case.name}, {figure}"


def _unknown(cases: dict[str, Case], evidence: dict[str, CalibrationEvidence]) -> str:
    """Return why it cannot be determined whether the probabilities of some classes are right."""
    missing = sum(case.name in ("no slope", "no intercept") for case in cases.values())
    wide = [f"{short(n)} {evidence[n].slope}" for n, c in cases.items() if c.name == "too wide"]
    parts = []
    if missing:
        of = count(missing, "class", "classes")
        parts.append(f"the calibration slope or intercept of {of} could not be estimated")
    if wide:
        parts.append(
            f"the {'interval' if len(wide) == 1 else 'intervals'} of the calibration slope of "
            f"{count(len(wide), 'class', 'classes')} {'reaches' if len(wide) == 1 else 'reach'} "
            f"beyond 0.80 to 1.25 ({listed(wide, 3)})"
        )
    return f"{', and '.join(parts)}; see calibration.csv"
