"""The answer: evidence from the tables of a study, put into the sentences of `sentences`."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pandas as pd

from baldur.core.model_catalog import LINEAR_MODELS, TREE_MODELS
from baldur.estimators.summary import against_base_rate
from baldur.evaluation.metrics import METRICS, NO_YES
from baldur.evaluation.results import Results
from baldur.report.added_value import added_value_answer
from baldur.report.features import selection_of_folds, selection_of_model
from baldur.report.few_features import few_sentence
from baldur.report.fitted import FittedModel
from baldur.report.formatting import count, estimate, listed, short
from baldur.report.sentences import (
    CALIBRATION,
    CARE,
    COMPARISON,
    NOT_SHOWN,
    PREDICTION,
    SERIOUS,
    SHOWN,
    UNKNOWN,
    CalibrationEvidence,
    Case,
    Check,
    ComparisonEvidence,
    Interval,
    Prediction,
    Sentence,
    answer_to,
    case_of,
)


def interval_of(rows: pd.DataFrame, **where: str) -> Interval:
    """Return estimate, low and high of the first row with given values; NaN where there is none."""
    for column, value in where.items():
        if column not in rows:
            return Interval()
        rows = rows[rows[column].astype(str) == value]
    if not len(rows):
        return Interval()
    return Interval(*(float(rows[c].iloc[0]) for c in ("estimate", "low", "high")))


def prediction_of(run: Results, main: str) -> Prediction:
    """Return the evidence on whether the outcome can be predicted."""
    rows = run.of_model("intervals", main)
    classes = run.classes
    if classes:
        what = f"{len(classes)} classes"
        if classes == NO_YES and run.record.get("outcome"):
            what = short(run.record["outcome"])
        elif len(classes) == 2:
            what = f"{short(classes[-1])} against {short(classes[0])}"
        of, metric, chance = f"{short(main)} for {what}", "auc", 0.5
        value = interval_of(rows, metric="auc", site="*")
        if not math.isfinite(value.estimate):  # a model that only predicts labels
            metric, chance = "balanced_accuracy", 1 / len(classes)
            value = interval_of(rows, metric=metric, site="*")
        name = "AUC" if metric == "auc" else "balanced accuracy"
    else:
        outcome = short(run.record.get("outcome") or "the outcome")
        of, name, chance = f"{short(main)} for {outcome}", "R²", 0.0
        value = interval_of(rows, metric="r2", site="*")
    tested = run.of_model("permutation", main)
    p = float(tested["p_holm"].iloc[0]) if "p_holm" in tested and len(tested) else None
    return Prediction(value, chance, name, of, _how(run), p)


def _how(run: Results) -> str:
    people = count(run.record.get("people", 0), "person", "people")
    folds = count(run.record.get("folds", 0), "fold")
    repeats = int(run.record.get("repeats", 1))
    more = f" and {repeats} repeats" if repeats > 1 else ""
    return f"on {people} whom the model had not seen (cross-validation with {folds}{more})"


def calibration_of(
    rows: pd.DataFrame, what: str = "probabilities", needs_intercept: bool = True
) -> CalibrationEvidence:
    """Return the evidence on calibration."""
    slope, intercept = (interval_of(rows, measure=name) for name in ("slope", "intercept"))
    return CalibrationEvidence(slope, intercept, what, needs_intercept)


def comparison_of(run: Results, main: str) -> ComparisonEvidence | None:
    """Return the evidence on other models with all views; None where there is no other."""
    found = differences_between(run, main)
    if found is None:
        return None
    # Rows with some of the views are compared where it is said what a view adds.
    others = run.with_all_views if main in run.with_all_views else run.finished
    whole = {m: d for m, d in found.differences.items() if m in others}
    return replace(found, differences=whole) if whole else None


def differences_between(run: Results, main: str) -> ComparisonEvidence | None:
    """Return the differences between a model and every other; None where there is no other."""
    table = run.table("differences")
    known = set(table["metric"]) & set(METRICS) if "metric" in table else set()
    # The metric that settings were chosen by need not be among those that were asked for.
    wanted = [run.record.get("select_by", ""), *run.record.get("metrics", [])]
    metric = next((m for m in wanted if m in known), "")
    rows = _pairs_with(table, metric, main)
    if not rows:
        return None
    tests = _pairs_with(run.table("comparisons"), metric, main)
    sign = 1.0 if METRICS[metric].greater_is_better else -1.0
    found = {
        name: _difference(row, sign if row["model_a"] == main else -sign)
        for name, row in rows.items()
    }
    p_values = {name: float(row["p_holm"]) for name, row in tests.items() if name in found}
    return ComparisonEvidence(found, main, METRICS[metric].heading, p_values)


def _pairs_with(rows: pd.DataFrame, metric: str, main: str) -> dict[str, Mapping[Any, Any]]:
    """Return the row of every other model that is compared with the main one."""
    if "metric" not in rows:
        return {}
    rows = rows[rows["metric"] == metric]
    rows = rows[(rows["model_a"] == main) | (rows["model_b"] == main)]
    pairs: dict[str, Mapping[Any, Any]] = {
        str(row["model_b"] if row["model_a"] == main else row["model_a"]): row
        for row in rows.to_dict("records")
    }
    pairs.pop(main, None)
    return pairs


def _difference(row: Mapping[Any, Any], sign: float) -> Interval:
    """Return a difference with its interval, above 0 where the main model is better."""
    difference, low, high = (sign * float(row[k]) for k in ("difference", "low", "high"))
    return Interval(difference, min(low, high), max(low, high))


@dataclass(frozen=True)
class LinearEvidence:
    """Evidence on models of trees against linear models."""

    gains: dict[str, dict[str, Interval]]
    metric: str  # Its name

    @property
    def known(self) -> bool:
        """Whether at least one difference has an interval."""
        return any(d.known for own in self.gains.values() for d in own.values())

    @property
    def better(self) -> list[str]:
        """Models of trees that are shown to be better than every linear model."""
        return [
            tree
            for tree, own in self.gains.items()
            if all(d.known and d.low > 0 for d in own.values())
        ]

    @property
    def worse(self) -> list[str]:
        """Models of trees than which at least one linear model is shown to be better."""
        return [
            tree
            for tree, own in self.gains.items()
            if any(d.known and d.high < 0 for d in own.values())
        ]

    def named(self, trees: list[str]) -> str:
        """Return models of trees, each with the difference that is least in its favour."""
        return listed([f"{short(tree)} ({self.figure(tree)})" for tree in trees], 4)

    def figure(self, tree: str) -> str:
        """Return the difference to a linear model that is least in favour of the trees.

        Where trees are worse it is one that shows so, and otherwise that of the smallest estimate.
        """
        own = {name: d for name, d in self.gains[tree].items() if d.known}
        if not own:
            return "no interval"
        by = "high" if tree in self.worse else "estimate"
        name = min(own, key=lambda one: getattr(own[one], by))
        d = own[name]
        return f"{estimate(d.estimate, d.low, d.high, 3, sign=True)} against {short(name)}"

    @property
    def legend(self) -> str:
        """Explanation of the differences."""
        many = sum(len(own) for own in self.gains.values())
        text = (
            f"Numbers are differences in {self.metric} on the same held-out people, with 95 % "
            "intervals from the paired bootstrap."
        )
        if many > 1:
            text += (
                f" There are {many} comparisons of trees with a linear model, each taken alone; of "
                "each model of trees the one that is least in its favour is shown."
            )
        return text


LINEAR = (
    Case(
        "no interval", UNKNOWN, lambda e: not e.known,
        lambda e: "This cannot be determined: no difference between models of trees and linear "
        "models could be estimated with an interval.",
    ),
    Case(
        "trees are better", NOT_SHOWN, lambda e: bool(e.better),
        lambda e: f"No: {e.named(e.better)} "
        f"{'predicts' if len(e.better) == 1 else 'predict'} better than every linear model of the "
        f"study. {e.legend}",
    ),
    Case(
        "trees are worse", SHOWN, lambda e: len(e.worse) == len(e.gains),
        lambda e: f"Yes, nothing was gained by trees: {e.named(e.worse)} "
        f"{'predicts' if len(e.worse) == 1 else 'predict'} worse than a linear model. {e.legend}",
    ),
    Case(
        "not distinguished", UNKNOWN, lambda e: True,
        lambda e: "This cannot be determined: no gain by trees was shown, but none is excluded: "
        f"{e.named(list(e.gains))}. {e.legend}",
    ),
)  # fmt: skip


def linear_evidence(run: Results) -> LinearEvidence | None:
    """Return the evidence on models of trees; None where the study has none, or no linear model."""
    there = run.with_all_views
    trees = [name for name in there if name in TREE_MODELS]
    linear = [name for name in there if name in LINEAR_MODELS]
    gains: dict[str, dict[str, Interval]] = {}
    heading = ""
    for tree in trees:
        found = differences_between(run, tree)
        if found is None:
            continue
        own = {name: d for name, d in found.differences.items() if name in linear}
        if own:
            gains[tree], heading = own, found.metric
    return LinearEvidence(gains, heading) if gains else None


def linear_answer(run: Results) -> Sentence | None:
    """Return whether a linear model is enough; None where there is nothing to compare."""
    evidence = linear_evidence(run)
    if evidence is None:
        return None
    return answer_to(LINEAR_ENOUGH, LINEAR, evidence)


_OWN = "BALDUR"

LINEAR_ENOUGH = "Is a linear model enough?"
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


def doubts_of(checks: Sequence[Check]) -> tuple[str, ...]:
    """Return the codes of checks that may make the main figure wrong."""
    found = [c.code for c in checks if c.level == SERIOUS or (c.code, c.level) == ("B11", CARE)]
    return tuple(dict.fromkeys(found))


def answer_of_run(
    run: Results, main: str | None, checks: list[Check], model: FittedModel | None = None
) -> list[Sentence]:
    """Return the answer of a comparison."""
    if main is None:
        text = "No model finished, so there is no answer. The reasons are listed below."
        return [Sentence(PREDICT, text, UNKNOWN)]
    evidence = replace(prediction_of(run, main), doubts=doubts_of(checks))
    made = [answer_to(PREDICT, PREDICTION, evidence)]
    calibrated = calibration_sentence(run, main)
    if calibrated is not None:
        made.append(calibrated)
    doubtful = any(c.code == "B01" for c in checks)
    made.append(Sentence(FEATURES, selection_of_folds(run, main, model, doubtful=doubtful)))
    few = few_sentence(run, main, made[0].outcome == SHOWN)
    if few is not None:
        made.append(few)
    others = comparison_of(run, main)
    if others is not None:
        made.append(answer_to(OTHERS, COMPARISON, others))
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
    question = CALIBRATED if run.classes else "Are its predictions right on average?"
    return answer_to(question, CALIBRATION, evidence)


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
