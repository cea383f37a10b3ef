"""The headlines of the page: a table of sentences, each with the condition under which it is said.

Every question has cases in a fixed order; the first case whose condition holds gives the sentence.
Conditions look at intervals and tests that are printed in the sentence, never at an estimate alone.
Each case has one of three outcomes: shown, not shown, or cannot be determined.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from baldur.report.formatting import estimate, in_words, listed, number, short

SHOWN, NOT_SHOWN, UNKNOWN = "shown", "not shown", "cannot be determined"
"""The three outcomes of a headline."""

SLOPES = (0.8, 1.25)
"""Calibration slopes that count as right: log odds are off by a fifth or a quarter at most."""
ALPHA = 0.05
"""Level of tests; intervals have 95 %."""


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

    def within(self, low: float, high: float) -> bool:
        """Whether the interval lies inside two bounds, these included."""
        return self.known and low <= self.low and self.high <= high

    def includes(self, value: float) -> bool:
        """Whether the interval includes a value, its ends included."""
        return self.known and self.low <= value <= self.high

    def __str__(self) -> str:
        return estimate(self.estimate, self.low, self.high)


@dataclass(frozen=True)
class Case:
    """One sentence of the table."""

    name: str
    outcome: str  # "not shown", "cannot be determined"}
    when: Callable[[Any], bool]  # The condition
    text: Callable[[Any], str]  # The sentence


@dataclass(frozen=True)
class Sentence:
    """A question, its outcome, and the answer in words."""

    question: str
    answer: str
    outcome: str = ""


SERIOUS, CARE, NOTE = "serious", "care", "note"
"""Levels of a check."""


@dataclass(frozen=True)
class Check:
    """A check that applies to a result, with its evidence."""

    code: str
    level: str  # SERIOUS, CARE or NOTE
    text: str  # What was seen, with its numbers


def answer_to(question: str, cases: Sequence[Case], evidence: Any) -> Sentence:
    """Return the sentence of the first case whose condition holds."""
    case = case_of(cases, evidence)
    return Sentence(question, case.text(evidence), case.outcome)


def case_of(cases: Sequence[Case], evidence: Any) -> Case:
    """Return the first case whose condition holds; the last one has none."""
    return next(case for case in cases if case.when(evidence))


# -- Can the outcome be predicted? ---------------------------------------------------------------


@dataclass(frozen=True)
class Prediction:
    """Evidence on whether the outcome can be predicted."""

    value: Interval  # Of a metric on people the model had not seen
    chance: float  # What guessing gives
    metric: str  # Its name, for example "AUC"
    of: str  # What it is the metric of, for example "BALDUR for PD against control"
    how: str  # On whom, for example "on 215 people (cross-validation with 5 folds)"
    p: float | None = None  # Of a permutation test, adjusted; None without one
    doubts: tuple[str, ...] = ()

    @property
    def figure(self) -> str:
        """The metric with its interval, and on whom it was measured."""
        seen = in_words(self.value.estimate, self.value.low, self.value.high)
        return f"the {self.metric} of {self.of} is {seen}, {self.how}"


PREDICTION = (
    Case(
        "no interval", UNKNOWN, lambda e: not e.value.known,
        lambda e: f"This cannot be determined: the {e.metric} of {e.of} could not be estimated "
        f"with an interval, {e.how}.",
    ),
    Case(
        "worse than guessing", NOT_SHOWN, lambda e: e.value.high < e.chance,
        lambda e: f"No: {e.figure}. The whole interval lies below {number(e.chance, 2)}, which "
        "guessing gives; look for errors in the outcome or in the matching of files.",
    ),
    Case(
        "interval includes chance", NOT_SHOWN, lambda e: e.value.low <= e.chance,
        lambda e: f"This was not shown: {e.figure}. The interval includes "
        f"{number(e.chance, 2)}, which guessing gives.",
    ),
    Case(
        "permuted labels do as well", NOT_SHOWN, lambda e: e.p is not None and not e.p <= ALPHA,
        lambda e: f"This was not shown: {e.figure}, but labels permuted at random do as well "
        f"(p = {number(e.p, 3)}).",
    ),
    Case(
        "above chance with doubts", SHOWN, lambda e: bool(e.doubts),
        lambda e: f"Yes, but see {listed(e.doubts)} below first: {e.figure}. The interval lies "
        f"above {number(e.chance, 2)}, which guessing gives, but the figure may be wrong.",
    ),
    Case(
        "above chance", SHOWN, lambda e: True,
        lambda e: f"Yes: {e.figure}. The interval lies above {number(e.chance, 2)}, which guessing "
        "gives.",
    ),
)  # fmt: skip


# -- Are its probabilities right? ----------------------------------------------------------------


@dataclass(frozen=True)
class CalibrationEvidence:
    """Evidence on calibration."""

    slope: Interval
    intercept: Interval
    what: str = "probabilities"  # "probabilities" or "predictions"
    needs_intercept: bool = True

    @property
    def figure(self) -> str:
        """The calibration slope with its interval, as text."""
        return f"the calibration slope is {self.slope}, where 1 is right"


_TOLERATED = f"{SLOPES[0]:.2f} to {SLOPES[1]:.2f}"

CALIBRATION = (
    Case(
        "right", SHOWN,
        lambda e: e.slope.within(*SLOPES) and (not e.needs_intercept or e.intercept.includes(0.0)),
        lambda e: f"Yes, the {e.what} are well calibrated: {e.figure}, and its interval lies "
        f"within {_TOLERATED}"
        + (f"; the interval of the intercept, {e.intercept}, includes 0." if e.needs_intercept
           else "."),
    ),
    Case(
        "too extreme", NOT_SHOWN,
        lambda e: e.slope.known and e.slope.high < 1 and not e.slope.within(*SLOPES),
        lambda e: f"No, the {e.what} are too extreme: {e.figure}, and its interval lies below 1.",
    ),
    Case(
        "too cautious", NOT_SHOWN,
        lambda e: e.slope.known and e.slope.low > 1 and not e.slope.within(*SLOPES),
        lambda e: f"No, the {e.what} are too cautious: {e.figure}, and its interval lies above 1.",
    ),
    Case(
        "too low", NOT_SHOWN,
        lambda e: e.needs_intercept and e.intercept.known and e.intercept.low > 0,
        lambda e: f"No, the {e.what} are too low as a whole: the calibration intercept is "
        f"{e.intercept}, where 0 is right, and its interval lies above 0.",
    ),
    Case(
        "too high", NOT_SHOWN,
        lambda e: e.needs_intercept and e.intercept.known and e.intercept.high < 0,
        lambda e: f"No, the {e.what} are too high as a whole: the calibration intercept is "
        f"{e.intercept}, where 0 is right, and its interval lies below 0.",
    ),
    Case(
        "no slope", UNKNOWN, lambda e: not e.slope.known,
        lambda e: "This cannot be determined: the calibration slope could not be estimated.",
    ),
    Case(
        "no intercept", UNKNOWN, lambda e: e.needs_intercept and not e.intercept.known,
        lambda e: "This cannot be determined: the calibration intercept could not be estimated; "
        f"{e.figure}.",
    ),
    Case(
        "too wide", UNKNOWN, lambda e: True,
        lambda e: f"This cannot be determined: {e.figure}. The interval includes 1, but it reaches "
        f"beyond {_TOLERATED}, so the {e.what} may be right or not.",
    ),
)  # fmt: skip


# -- Do other models predict better? -------------------------------------------------------------


@dataclass(frozen=True)
class ComparisonEvidence:
    """Evidence on other models."""

    differences: dict[str, Interval]
    main: str
    metric: str
    p_values: dict[str, float] = field(default_factory=dict)

    def which(self, good: Callable[[Interval], bool]) -> list[str]:
        """Return the models whose difference has a property."""
        return [name for name, difference in self.differences.items() if good(difference)]

    @property
    def better(self) -> list[str]:
        """Models that are shown to be better than the main one."""
        return self.which(lambda d: d.known and d.high < 0)

    @property
    def worse(self) -> list[str]:
        """Models that are shown to be worse."""
        return self.which(lambda d: d.known and d.low > 0)

    @property
    def open(self) -> list[str]:
        """Models that are shown to be neither better nor worse."""
        return self.which(lambda d: not d.known or d.low <= 0 <= d.high)

    def named(self, names: Sequence[str]) -> str:
        """Return the names of some models with their differences, as text."""
        parts = []
        for name in names:
            d = self.differences[name]
            seen = estimate(d.estimate, d.low, d.high, sign=True)
            parts.append(f"{short(name)} ({seen if d.known else 'no interval'})")
        return listed(parts, 6)

    @property
    def legend(self) -> str:
        """Explanation of the differences that the sentence lists."""
        many = len(self.differences)
        alone = f", each taken alone (there are {many} comparisons)" if many > 1 else ""
        return (
            f"Numbers are differences in {self.metric} on the same held-out people (positive "
            f"favours {short(self.main)}) with 95 % intervals from the paired bootstrap{alone}."
        )


def _verb(names: Sequence[str], one: str, many: str) -> str:
    return one if len(names) == 1 else many


COMPARISON = (
    Case(
        "no interval", UNKNOWN, lambda e: not any(d.known for d in e.differences.values()),
        lambda e: "This cannot be determined: no difference could be estimated with an interval.",
    ),
    Case(
        "another is better", SHOWN, lambda e: bool(e.better),
        lambda e: f"Yes: {e.named(e.better)} {_verb(e.better, 'predicts', 'predict')} better."
        + (f" No difference was shown for {e.named(e.open)}." if e.open else "")
        + f" {e.legend}",
    ),
    Case(
        "all are worse", NOT_SHOWN, lambda e: not e.open,
        lambda e: f"No: {e.named(e.worse)} {_verb(e.worse, 'predicts', 'predict')} worse. "
        f"{e.legend}",
    ),
    Case(
        "not distinguished", UNKNOWN, lambda e: True,
        lambda e: f"This cannot be determined: no difference was shown for {e.named(e.open)}, "
        f"whose {_verb(e.open, 'interval includes', 'intervals include')} 0."
        + (f" {e.named(e.worse)} {_verb(e.worse, 'predicts', 'predict')} worse." if e.worse else "")
        + f" {e.legend}",
    ),
)  # fmt: skip


# -- Does the model hold in the new cohort? ------------------------------------------------------


@dataclass(frozen=True)
class Transport:
    """Evidence on a model in a new cohort, compared with its development."""

    new: Interval
    old: Interval
    metric: str
    greater_is_better: bool = True

    @property
    def figure(self) -> str:
        """The metric in the new cohort and in the development study."""
        return (
            f"{self.metric} is {self.new} in the new cohort and was {self.old} in the development "
            "study"
        )

    @property
    def loss(self) -> bool:
        """Whether the intervals are apart, the new figure being the worse one."""
        if self.greater_is_better:
            return self.new.high < self.old.low
        return self.new.low > self.old.high

    @property
    def gain(self) -> bool:
        """Whether the intervals are apart, the new figure being the better one."""
        if self.greater_is_better:
            return self.new.low > self.old.high
        return self.new.high < self.old.low


TRANSPORT = (
    Case(
        "no figures", UNKNOWN, lambda e: not (e.new.known and e.old.known),
        lambda e: "This cannot be determined: the figures of the development study are not known "
        f"here. {e.metric} is {e.new} in the new cohort.",
    ),
    Case(
        "worse", SHOWN, lambda e: e.loss,
        lambda e: f"Yes: {e.figure}; the intervals do not overlap.",
    ),
    Case(
        "better", NOT_SHOWN, lambda e: e.gain,
        lambda e: f"No, it does better: {e.figure}; the intervals do not overlap.",
    ),
    Case(
        "overlap", UNKNOWN, lambda e: True,
        lambda e: f"That was not shown: {e.figure}; the intervals overlap.",
    ),
)  # fmt: skip
