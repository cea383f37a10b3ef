"""The sentences of the first screen, each decided by intervals that it prints.

A sentence is said if the conditions before it do not hold. Conditions look at intervals and tests
that are printed in the sentence, never at an estimate alone. Each sentence has one of three
outcomes: shown, not shown, or cannot be determined.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from baldur.core.model_catalog import LINEAR_MODELS, TREE_MODELS
from baldur.evaluation.metrics import METRICS, NO_YES
from baldur.evaluation.results import Results
from baldur.report.formatting import ENDS, estimate, in_words, listed, number, short
from baldur.views.validate import counted

SHOWN, NOT_SHOWN, UNKNOWN = "shown", "not shown", "cannot be determined"
"""The three outcomes of a sentence."""

SLOPES = (0.8, 1.25)
"""Calibration slopes that count as right: log odds are off by a fifth or a quarter at most."""
ALPHA = 0.05
"""Level of tests; intervals have 95 %."""

PREDICT = "Can the outcome be predicted?"
CALIBRATED = "Are its probabilities right?"
FEATURES = "Which features does it use?"
OTHERS = "Do other models predict better?"
LINEAR_ENOUGH = "Is a linear model enough?"


@dataclass(frozen=True)
class Sentence:
    """A question, the answer in words, and its outcome."""

    question: str
    answer: str
    outcome: str = ""


@dataclass(frozen=True)
class Interval:
    """An estimate with the ends of its 95 % interval, NaN where they are not known."""

    estimate: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        """Whether estimate and both ends are finite numbers."""
        return all(map(math.isfinite, (self.estimate, self.low, self.high)))

    def __str__(self) -> str:
        return estimate(self.estimate, self.low, self.high)


def interval_of(rows: pd.DataFrame, **where: str) -> Interval:
    """Return estimate, low and high of the first row with given values; NaN where there is none."""
    for column, value in where.items():
        if column not in rows:
            return Interval()
        rows = rows[rows[column].astype(str) == value]
    if not len(rows):
        return Interval()
    return Interval(*(float(rows[c].iloc[0]) for c in ENDS))


def side_of_zero(rows: pd.DataFrame) -> pd.Series:
    """Return 1 for an interval above 0, -1 for one below, 0 for others, NaN without an interval."""
    ends = rows[[*ENDS]].astype(float)
    side = (ends["low"] > 0).astype(float) - (ends["high"] < 0)
    known = pd.DataFrame(np.isfinite(ends)).all(axis=1)
    return side.where(known)


# -- Can the outcome be predicted? ---------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """How well a model predicts people it had not seen, and what guessing gives."""

    value: Interval
    chance: float
    metric: str  # Its name, for example "AUC"
    of: str  # What it is the metric of, for example "BALDUR for PD against control"
    how: str  # On whom, for example "on 215 people (cross-validation with 5 folds)"
    p: float | None = None  # Of a permutation test, adjusted; None without one


def prediction_of(run: Results, main: str) -> Prediction:
    """Return the main metric of a model, which decides whether the outcome can be predicted.

    It is the AUC, the balanced accuracy of a model that only predicts labels, or R².
    """
    rows = run.of_model("intervals", main)  # site "*": of all sites together
    classes = run.classes
    if classes:
        what = f"{len(classes)} classes"
        if classes == NO_YES and run.record.get("outcome"):
            what = short(run.record["outcome"])
        elif len(classes) == 2:
            what = f"{short(classes[-1])} against {short(classes[0])}"
        name, chance = "AUC", 0.5
        value = interval_of(rows, metric="auc", site="*")
        if not math.isfinite(value.estimate):  # a model that only predicts labels
            name, chance = "balanced accuracy", 1 / len(classes)
            value = interval_of(rows, metric="balanced_accuracy", site="*")
    else:
        what = short(run.record.get("outcome") or "the outcome")
        name, chance = "R²", 0.0
        value = interval_of(rows, metric="r2", site="*")
    tested = run.of_model("permutation", main)
    p = float(tested["p_holm"].iloc[0]) if "p_holm" in tested and len(tested) else None
    return Prediction(value, chance, name, f"{short(main)} for {what}", _how(run), p)


def _how(run: Results) -> str:
    """Return on whom the model was tested, as the end of a sentence."""
    people = counted(run.record.get("people", 0), "person", "people")
    folds = counted(run.record.get("folds", 0), "fold")
    repeats = int(run.record.get("repeats", 1))
    repeated = f" and {repeats} repeats" if repeats > 1 else ""
    return f"on {people} whom the model had not seen (cross-validation with {folds}{repeated})"


def prediction_sentence(
    prediction: Prediction, doubts: Sequence[str] = (), question: str = PREDICT
) -> Sentence:
    """Return whether the outcome can be predicted; `doubts` are codes of checks to see first."""
    value, outcome = prediction.value, NOT_SHOWN
    metric = f"the {prediction.metric} of {prediction.of}"
    figure = f"{metric} is {in_words(value.estimate, value.low, value.high)}, {prediction.how}"
    chance = number(prediction.chance)
    if not value.known:
        outcome = UNKNOWN
        text = (
            f"This cannot be determined: {metric} could not be estimated with an interval, "
            f"{prediction.how}."
        )
    elif value.high < prediction.chance:
        text = (
            f"No: {figure}. The whole interval lies below {chance}, which guessing gives; look for "
            "errors in the outcome or in the matching of files."
        )
    elif value.low <= prediction.chance:
        text = (
            f"This was not shown: {figure}. The interval includes {chance}, which guessing gives."
        )
    elif prediction.p is not None and not prediction.p <= ALPHA:
        text = (
            f"This was not shown: {figure}, but labels permuted at random do as well "
            f"(p = {number(prediction.p, 3)})."
        )
    else:
        outcome = SHOWN
        but = f", but see {listed(doubts)} below first" if doubts else ""
        text = f"Yes{but}: {figure}. The interval lies above {chance}, which guessing gives"
        text += ", but the figure may be wrong." if doubts else "."
    return Sentence(question, text, outcome)


# -- Are its probabilities right? ----------------------------------------------------------------

_MISCALIBRATED = ("too extreme", "too cautious", "too low", "too high")
_TOLERATED = f"{SLOPES[0]:.2f} to {SLOPES[1]:.2f}"


def calibration_case(slope: Interval, intercept: Interval | None) -> str:
    """Return how predictions are calibrated, as a key of the texts of `calibration_answer`.

    A regression has no `intercept`: it is None.
    """
    slope_right = slope.known and SLOPES[0] <= slope.low and slope.high <= SLOPES[1]
    has_intercept = intercept is not None and intercept.known
    intercept_right = intercept is None or (has_intercept and intercept.low <= 0 <= intercept.high)
    if slope_right and intercept_right:
        return "right"
    if slope.known and not slope_right and slope.high < 1:
        return "too extreme"
    if slope.known and not slope_right and slope.low > 1:
        return "too cautious"
    if intercept is not None and has_intercept and intercept.low > 0:
        return "too low"  # than what was observed
    if intercept is not None and has_intercept and intercept.high < 0:
        return "too high"
    if not slope.known:
        return "no slope"
    return "too wide" if intercept is None or has_intercept else "no intercept"


def _calibration_outcome(case: str) -> str:
    return SHOWN if case == "right" else NOT_SHOWN if case in _MISCALIBRATED else UNKNOWN


def calibration_sentence(run: Results, main: str) -> Sentence | None:
    """Return whether probabilities are right; None for a model that has none."""
    rows = run.of_model("calibration", main)
    if "measure" not in rows or not len(rows):
        return None
    if len(run.classes) > 2:
        return _calibration_of_classes(rows, run.classes)
    slope, intercept = (interval_of(rows, measure=m) for m in ("slope", "intercept"))
    if run.classes:
        return calibration_answer(slope, intercept)
    return calibration_answer(slope, None, "predictions", "Are its predictions right on average?")


def calibration_answer(
    slope: Interval,
    intercept: Interval | None,
    what: str = "probabilities",
    question: str = CALIBRATED,
) -> Sentence:
    """Return whether predictions are calibrated, by the intervals of slope and intercept."""
    case = calibration_case(slope, intercept)
    figure = f"the calibration slope is {slope}, where 1 is right"
    as_a_whole = (
        f"No, the {what} are {case} as a whole: the calibration intercept is {intercept}, where 0 "
        "is right, and its interval lies"
    )
    of_intercept = f"; the interval of the intercept, {intercept}, includes 0."
    text = {
        "right": f"Yes, the {what} are well calibrated: {figure}, and its interval lies within "
        f"{_TOLERATED}{'.' if intercept is None else of_intercept}",
        "too extreme": f"No, the {what} are too extreme: {figure}, and its interval lies below 1.",
        "too cautious": f"No, the {what} are too cautious: {figure}, and its interval lies above "
        "1.",
        "too low": f"{as_a_whole} above 0.",
        "too high": f"{as_a_whole} below 0.",
        "no slope": "This cannot be determined: the calibration slope could not be estimated.",
        "no intercept": "This cannot be determined: the calibration intercept could not be "
        f"estimated; {figure}.",
        "too wide": f"This cannot be determined: {figure}. The interval includes 1, but it reaches "
        f"beyond {_TOLERATED}, so the {what} may be right or not.",
    }[case]
    return Sentence(question, text, _calibration_outcome(case))


def _calibration_of_classes(rows: pd.DataFrame, classes: list[str]) -> Sentence:
    """Return one sentence for several classes, each judged by its own intervals."""
    wrong, wide, inestimable = [], [], 0
    for name in classes:
        of_class = rows[rows["class"].astype(str) == name]
        slope, intercept = (interval_of(of_class, measure=m) for m in ("slope", "intercept"))
        case = calibration_case(slope, intercept)
        if case in _MISCALIBRATED:
            by_intercept = case in ("too low", "too high")
            figure = f"intercept {intercept}" if by_intercept else f"slope {slope}"
            wrong.append(f"{short(name)} ({case}, {figure})")
        elif case == "too wide":
            wide.append(f"{short(name)} {slope}")
        elif case != "right":
            inestimable += 1
    unknown = len(wide) + inestimable
    if wrong:
        text = f"No, not for {listed(wrong, 5)}."
        if unknown:
            others = counted(unknown, "other class", "other classes")
            text += f" For {others} it cannot be determined."
        return Sentence(CALIBRATED, f"{text} The intervals are in calibration.csv.", NOT_SHOWN)
    if not unknown:
        text = (
            "Yes, for every class the interval of the calibration slope lies within 0.80 to 1.25 "
            "and that of the intercept includes 0."
        )
        return Sentence(CALIBRATED, text, SHOWN)
    reasons = []
    if inestimable:
        number_of = counted(inestimable, "class", "classes")
        reasons.append(f"the calibration slope or intercept of {number_of} could not be estimated")
    if wide:
        interval, reaches = _verb(wide, "interval", "intervals"), _verb(wide, "reaches", "reach")
        reasons.append(
            f"the {interval} of the calibration slope of {counted(len(wide), 'class', 'classes')} "
            f"{reaches} beyond {_TOLERATED} ({listed(wide, 3)})"
        )
    text = f"This cannot be determined for {unknown} of {len(classes)} classes: "
    return Sentence(CALIBRATED, f"{text}{', and '.join(reasons)}; see calibration.csv.", UNKNOWN)


# -- Do other models predict better? -------------------------------------------------------------


def differences_of(run: Results, main: str, others: Collection[str]) -> pd.DataFrame:
    """Return the differences between a model and others, above 0 where the model is better.

    Columns: model (the other one), metric (its heading), estimate, low, high and p.
    """
    table = run.table("differences")
    compared = set(table["metric"]) & set(METRICS) if "metric" in table else set()
    # The metric that settings were chosen by need not be among those that were asked for.
    wanted = [run.record.get("select_by", ""), *run.record.get("metrics", [])]
    metric = next((m for m in wanted if m in compared), "")
    rows = pairs_with(table, metric, main)
    rows = rows[rows["model"].isin([*others])]
    if not len(rows):
        return pd.DataFrame(columns=["model", "metric", *ENDS, "p"])
    tests = pairs_with(run.table("comparisons"), metric, main)
    p_values = dict(zip(tests["model"], tests["p_holm"], strict=True)) if len(tests) else {}
    sign = rows["sign"] * (1.0 if METRICS[metric].greater_is_better else -1.0)
    ends = rows[["low", "high"]].astype(float).mul(sign, axis=0)
    return pd.DataFrame(
        {
            "model": rows["model"],
            "metric": METRICS[metric].heading,
            "estimate": sign * rows["difference"].astype(float),
            # A negative sign exchanges the ends.
            "low": ends.min(axis=1, skipna=False),
            "high": ends.max(axis=1, skipna=False),
            "p": rows["model"].map(p_values).astype(float),
        }
    )


def pairs_with(table: pd.DataFrame, metric: str, main: str) -> pd.DataFrame:
    """Return the rows of a table of pairs that compare a model with another, by one metric.

    Added columns: model (the other one), and sign: what turns a difference between model_a and
    model_b into the main model minus the other.
    """
    if "metric" not in table:
        return pd.DataFrame(columns=["model", "sign"])
    rows = table[table["metric"] == metric]
    rows = rows[(rows["model_a"] == main) | (rows["model_b"] == main)]
    first = rows["model_a"] == main
    other = rows["model_b"].where(first, rows["model_a"]).astype(str)
    rows = rows.assign(model=other, sign=np.where(first, 1.0, -1.0))
    return rows[rows["model"] != main].drop_duplicates("model", keep="last")


def other_models(run: Results, main: str) -> pd.DataFrame:
    """Return the differences between a model and others that get all views."""
    # Rows with some of the views are compared where it is said what a view adds.
    others = run.with_all_views if main in run.with_all_views else run.finished
    return differences_of(run, main, others)


def comparison_legend(rows: pd.DataFrame, main: str) -> str:
    """Return what is said below differences: of which metric, on whom, and how intervals were made.

    Its sign is that of `differences_of`.
    """
    n = len(rows)
    alone = f", each taken alone (there are {n} comparisons)" if n > 1 else ""
    return (
        f"Numbers are differences in {rows['metric'].iloc[0]} on the same held-out people "
        f"(positive favours {short(main)}) with 95 % intervals from the paired bootstrap{alone}."
    )


def comparison_sentence(rows: pd.DataFrame, main: str) -> Sentence:
    """Return whether other models predict better than the main one, by their differences."""
    side = side_of_zero(rows)  # of the main model minus the other: below 0, the other is better
    better, worse = rows[side < 0], rows[side > 0]
    including_0, without_interval = rows[side == 0], rows[side.isna()]
    undecided = rows[(side == 0) | side.isna()]
    legend = comparison_legend(rows, main)
    worse_text = ""
    if len(worse):
        worse_text = f"{_named(worse)} {_verb(worse, 'predicts', 'predict')} worse. "
    if side.isna().all():
        outcome = UNKNOWN
        text = "This cannot be determined: no difference could be estimated with an interval."
    elif len(better):
        outcome = SHOWN
        text = f"Yes: {_named(better)} {_verb(better, 'predicts', 'predict')} better."
        text += f" No difference was shown for {_named(undecided)}." if len(undecided) else ""
        text += f" {legend}"
    elif not len(undecided):
        outcome, text = NOT_SHOWN, f"No: {worse_text}{legend}"
    else:
        outcome, reasons = UNKNOWN, []
        if len(including_0):
            includes = _verb(including_0, "interval includes", "intervals include")
            reasons.append(f"no difference was shown for {_named(including_0)}, whose {includes} 0")
        if len(without_interval):
            reasons.append(
                "no difference could be estimated with an interval for "
                f"{listed(map(short, without_interval['model']), 6)}"
            )
        text = f"This cannot be determined: {'; '.join(reasons)}. {worse_text}{legend}"
    return Sentence(OTHERS, text, outcome)


def _named(rows: pd.DataFrame) -> str:
    """Return models with their differences, as a list in a sentence."""
    has_interval = side_of_zero(rows).notna()
    texts = [
        f"{short(model)} ({estimate(*ends, sign=True) if known else 'no interval'})"
        for model, known, *ends in zip(
            rows["model"], has_interval, *(rows[end] for end in ENDS), strict=True
        )
    ]
    return listed(texts, 6)


def _verb(names: Sequence[str] | pd.DataFrame, singular: str, plural: str) -> str:
    return singular if len(names) == 1 else plural


# -- Is a linear model enough? -------------------------------------------------------------------


def gains_of_trees(run: Results) -> pd.DataFrame:
    """Return the differences between each model of trees and each linear model of a study.

    Columns: those of `differences_of`, and tree; above 0 where the trees are better.
    """
    linear = [name for name in run.with_all_views if name in LINEAR_MODELS]
    trees = [name for name in run.with_all_views if name in TREE_MODELS]
    gains = [differences_of(run, tree, linear).assign(tree=tree) for tree in trees]
    known = [gain for gain in gains if len(gain)]
    return pd.concat(known, ignore_index=True) if known else pd.DataFrame()


def better_trees(gains: pd.DataFrame) -> list[str]:
    """Return the models of trees that are shown to be better than every linear model."""
    better = (side_of_zero(gains) > 0).groupby(gains["tree"], sort=False).all()
    return better.index[better].astype(str).tolist()


def _worse_trees(gains: pd.DataFrame) -> list[str]:
    """Return the models of trees than which at least one linear model is shown to be better."""
    return gains.loc[side_of_zero(gains) < 0, "tree"].astype(str).unique().tolist()


def named_trees(gains: pd.DataFrame, trees: Sequence[str]) -> str:
    """Return models of trees, each with the difference that is least in its favour.

    Where trees are worse it is one that shows so, and otherwise that of the smallest estimate.
    """
    worse = _worse_trees(gains)
    texts = []
    for tree in trees:
        rows = gains[(gains["tree"] == tree) & side_of_zero(gains).notna()]
        difference = "no interval"
        if len(rows):
            least = rows.sort_values("high" if tree in worse else "estimate", kind="stable").iloc[0]
            value, low, high = least[[*ENDS]]
            difference = estimate(value, low, high, 3, sign=True)
            difference += f" against {short(least['model'])}"
        texts.append(f"{short(tree)} ({difference})")
    return listed(texts, 4)


def trees_legend(gains: pd.DataFrame) -> str:
    """Return what the differences between trees and linear models are."""
    text = (
        f"Numbers are differences in {gains['metric'].iloc[0]} on the same held-out people, with "
        "95 % intervals from the paired bootstrap."
    )
    if len(gains) > 1:
        text += (
            f" There are {len(gains)} comparisons of trees with a linear model, each taken alone; "
            "of each model of trees the one that is least in its favour is shown."
        )
    return text


def linear_sentence(gains: pd.DataFrame) -> Sentence:
    """Return whether a linear model is enough, by the gains of trees over linear models."""
    trees = list(dict.fromkeys(gains["tree"]))
    better, worse = better_trees(gains), _worse_trees(gains)
    legend = trees_legend(gains)
    if side_of_zero(gains).isna().all():
        outcome = UNKNOWN
        text = (
            "This cannot be determined: no difference between models of trees and linear models "
            "could be estimated with an interval."
        )
    elif better:
        outcome = NOT_SHOWN
        text = (
            f"No: {named_trees(gains, better)} {_verb(better, 'predicts', 'predict')} better than "
            f"every linear model of the study. {legend}"
        )
    elif worse == trees:
        outcome = SHOWN
        text = (
            f"Yes, nothing was gained by trees: {named_trees(gains, worse)} "
            f"{_verb(worse, 'predicts', 'predict')} worse than a linear model. {legend}"
        )
    else:
        outcome = UNKNOWN
        text = (
            "This cannot be determined: no gain by trees was shown, but none is excluded: "
            f"{named_trees(gains, trees)}. {legend}"
        )
    return Sentence(LINEAR_ENOUGH, text, outcome)


# -- Does the model hold in the new cohort? ------------------------------------------------------


def transport_sentence(new: Interval, old: Interval, metric: str) -> Sentence:
    """Return whether a model predicts worse in a new cohort than in its development."""
    heading, greater_is_better = METRICS[metric].heading, METRICS[metric].greater_is_better
    figure = f"{heading} is {new} in the new cohort and was {old} in the development study"
    below, above = new.high < old.low, new.low > old.high
    if not (new.known and old.known):
        outcome = UNKNOWN
        text = (
            "This cannot be determined: the figures of the development study are not known here. "
            f"{heading} is {new} in the new cohort."
        )
    elif below if greater_is_better else above:
        outcome, text = SHOWN, f"Yes: {figure}; the intervals do not overlap."
    elif above if greater_is_better else below:
        outcome, text = NOT_SHOWN, f"No, it does better: {figure}; the intervals do not overlap."
    else:
        outcome, text = UNKNOWN, f"That was not shown: {figure}; the intervals overlap."
    return Sentence("Does it predict worse than in its development?", text, outcome)
