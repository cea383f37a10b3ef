"""Every headline at the boundaries of its condition: intervals decide, never estimates."""

import math
from dataclasses import replace

import numpy as np
import pytest

from baldur.report import sentences
from baldur.report.sentences import (
    CALIBRATION,
    COMPARISON,
    NOT_SHOWN,
    PREDICTION,
    SHOWN,
    TRANSPORT,
    UNKNOWN,
    CalibrationEvidence,
    ComparisonEvidence,
    Interval,
    Prediction,
    Transport,
    case_of,
)

NAN, INF, TINY = math.nan, math.inf, 1e-9
QUESTIONS = {"PREDICTION": PREDICTION, "CALIBRATION": CALIBRATION, "COMPARISON": COMPARISON,
             "TRANSPORT": TRANSPORT}  # fmt: skip
NO_INTERVAL = [(NAN, NAN, NAN), (0.9, NAN, NAN), (0.9, NAN, 0.95), (0.9, -INF, INF), (INF, 0, INF)]


def told(cases, evidence):
    case = case_of(cases, evidence)
    text = case.text(evidence)
    assert text.endswith(".")
    assert "nan" not in text
    assert "∞" not in text
    return case.name, case.outcome


def predicted(low, high, p=None, estimate=0.9):
    value = Interval(estimate, low, high)
    return Prediction(value, 0.5, "AUC", "A for x against y", "on 9 people", p)


@pytest.mark.parametrize(
    ("low", "high", "p", "said"),
    [
        (0.5 + TINY, 0.95, None, ("above chance", SHOWN)),
        (0.5, 0.95, None, ("interval includes chance", NOT_SHOWN)),
        (0.5 - TINY, 0.95, None, ("interval includes chance", NOT_SHOWN)),
        (0.5, 0.5, None, ("interval includes chance", NOT_SHOWN)),
        (0.2, 0.5, None, ("interval includes chance", NOT_SHOWN)),
        (0.2, 0.5 - TINY, None, ("worse than guessing", NOT_SHOWN)),
        (0.6, 0.95, 0.05, ("above chance", SHOWN)),
        (0.6, 0.95, 0.05 + TINY, ("permuted labels do as well", NOT_SHOWN)),
        (0.6, 0.95, NAN, ("permuted labels do as well", NOT_SHOWN)),
        (0.4, 0.95, 0.01, ("interval includes chance", NOT_SHOWN)),
    ],
)
def test_prediction(low, high, p, said):
    if p is None or not math.isnan(p):
        assert told(PREDICTION, predicted(low, high, p)) == said
    # The estimate has no part in it.
    assert case_of(PREDICTION, predicted(low, high, p, estimate=0.1)).outcome == said[1]


def test_a_figure_in_doubt_refers_to_the_check():
    """The headline says yes only together with the codes of the checks."""
    sure, doubted = predicted(0.9, 1.0), replace(predicted(0.9, 1.0), doubts=("B11", "B05"))
    assert told(PREDICTION, sure) == ("above chance", SHOWN)
    assert told(PREDICTION, doubted) == ("above chance with doubts", SHOWN)
    text = case_of(PREDICTION, doubted).text(doubted)
    assert text.startswith("Yes, but see B11 and B05 below first: the AUC")
    # Where nothing is claimed, there is nothing to doubt.
    low = replace(predicted(0.4, 1.0), doubts=("B11",))
    assert told(PREDICTION, low) == ("interval includes chance", NOT_SHOWN)


@pytest.mark.parametrize("value", NO_INTERVAL)
def test_without_an_interval_nothing_is_claimed(value):
    evidence = Prediction(Interval(*value), 0.5, "AUC", "A", "on 9 people")
    assert told(PREDICTION, evidence)[1] == UNKNOWN
    assert (
        told(CALIBRATION, CalibrationEvidence(Interval(*value), Interval(0, -0.1, 0.1)))[1]
        == UNKNOWN
    )
    assert (
        told(CALIBRATION, CalibrationEvidence(Interval(1, 0.9, 1.1), Interval(*value)))[1]
        == UNKNOWN
    )
    assert told(COMPARISON, ComparisonEvidence({"B": Interval(*value)}, "A", "AUC"))[1] == UNKNOWN


ZERO = Interval(0.0, -0.3, 0.3)


@pytest.mark.parametrize(
    ("slope", "intercept", "said"),
    [
        ((0.8, 1.25), ZERO, ("right", SHOWN)),
        ((0.8 - TINY, 1.25), ZERO, ("too wide", UNKNOWN)),
        ((0.8, 1.25 + TINY), ZERO, ("too wide", UNKNOWN)),
        ((0.85, 0.95), ZERO, ("right", SHOWN)),  # close enough, though not 1
        ((0.5, 1.0), ZERO, ("too wide", UNKNOWN)),
        ((0.5, 1.0 - TINY), ZERO, ("too extreme", NOT_SHOWN)),
        ((1.0, 2.0), ZERO, ("too wide", UNKNOWN)),
        ((1.0 + TINY, 2.0), ZERO, ("too cautious", NOT_SHOWN)),
        ((0.9, 1.1), Interval(0.2, 0.0, 0.4), ("right", SHOWN)),
        ((0.9, 1.1), Interval(0.2, TINY, 0.4), ("too low", NOT_SHOWN)),
        ((0.9, 1.1), Interval(-0.2, -0.4, -TINY), ("too high", NOT_SHOWN)),
        ((0.5, 2.0), Interval(0.2, TINY, 0.4), ("too low", NOT_SHOWN)),
    ],
)
def test_calibration(slope, intercept, said):
    for estimate in (1.0, 1.37):
        evidence = CalibrationEvidence(Interval(estimate, *slope), intercept)
        assert told(CALIBRATION, evidence) == said


@pytest.mark.parametrize(
    ("slope", "intercept", "said"),
    [
        (Interval(), Interval(0.2, 0.0, 0.4), ("no slope", UNKNOWN)),
        (Interval(), Interval(0.2, TINY, 0.4), ("too low", NOT_SHOWN)),
        (Interval(), Interval(-0.8, -1.2, -TINY), ("too high", NOT_SHOWN)),
        (Interval(0.7, 0.5, 1 - TINY), Interval(), ("too extreme", NOT_SHOWN)),
        (Interval(1.7, 1 + TINY, 3), Interval(), ("too cautious", NOT_SHOWN)),
        (Interval(1, 0.9, 1.1), Interval(), ("no intercept", UNKNOWN)),
        (Interval(1, -np.inf, np.inf), Interval(0, -1, 1), ("no slope", UNKNOWN)),
        (Interval(0.3, -np.inf, 0.5), Interval(0, -1, 1), ("no slope", UNKNOWN)),
    ],
)
def test_what_one_interval_shows_needs_no_other(slope, intercept, said):
    assert told(CALIBRATION, CalibrationEvidence(slope, intercept)) == said


def test_an_end_near_0_shows_its_side():
    differences = {"B": Interval(0.03, -0.0004, 0.06), "C": Interval(0.03, 0.0004, 0.06)}
    evidence = ComparisonEvidence(differences, "A", "AUC")
    text = case_of(COMPARISON, evidence).text(evidence)
    assert "B (+0.0300 [−0.0004, 0.0600]), whose interval includes 0" in text
    assert "C (+0.0300 [0.0004, 0.0600]) predicts worse" in text


def test_the_intercept_of_a_regression_has_no_part():
    evidence = CalibrationEvidence(Interval(1, 0.9, 1.1), Interval(), "predictions", False)
    assert told(CALIBRATION, evidence) == ("right", SHOWN)
    assert "intercept" not in case_of(CALIBRATION, evidence).text(evidence)


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(-0.2, -TINY)], ("another is better", SHOWN)),
        ([(-0.2, 0.0)], ("not distinguished", UNKNOWN)),
        ([(0.0, 0.2)], ("not distinguished", UNKNOWN)),
        ([(TINY, 0.2)], ("all are worse", NOT_SHOWN)),
        ([(TINY, 0.2), (-0.1, 0.2)], ("not distinguished", UNKNOWN)),
        ([(TINY, 0.2), (-0.2, -TINY)], ("another is better", SHOWN)),
        ([(TINY, 0.2), (NAN, NAN)], ("not distinguished", UNKNOWN)),
        ([(NAN, NAN)], ("no interval", UNKNOWN)),
    ],
)
def test_other_models(ends, said):
    found = {f"M{i}": Interval(0.1 if a == a else NAN, a, b) for i, (a, b) in enumerate(ends)}
    evidence = ComparisonEvidence(found, "A", "AUC")
    assert told(COMPARISON, evidence) == said
    text = case_of(COMPARISON, evidence).text(evidence)
    assert text.startswith(
        {SHOWN: "Yes", NOT_SHOWN: "No:", UNKNOWN: "This cannot be determined"}[said[1]]
    )


@pytest.mark.parametrize(
    ("new", "old", "greater", "said"),
    [
        ((0.6, 0.7), (0.7 + TINY, 0.9), True, SHOWN),
        ((0.6, 0.7), (0.7, 0.9), True, UNKNOWN),
        ((0.9 + TINY, 0.95), (0.7, 0.9), True, NOT_SHOWN),
        ((0.6, 0.7), (0.4, 0.6 - TINY), False, SHOWN),
        ((0.6, 0.7), (0.7 + TINY, 0.9), False, NOT_SHOWN),
        ((0.6, 0.7), (NAN, NAN), True, UNKNOWN),
    ],
)
def test_a_model_in_a_new_cohort(new, old, greater, said):
    evidence = Transport(Interval(0.65, *new), Interval(0.8, *old), "AUC", greater)
    assert told(TRANSPORT, evidence)[1] == said


@pytest.mark.parametrize("name", QUESTIONS)
def test_every_question_has_three_outcomes_and_an_answer_for_everything(name):
    cases = QUESTIONS[name]
    assert {case.outcome for case in cases} == {SHOWN, NOT_SHOWN, UNKNOWN}
    assert len({case.name for case in cases}) == len(cases)
    assert cases[-1].when(None)
    assert hasattr(sentences, name)
