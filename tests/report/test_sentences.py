"""Every headline at the boundaries of its condition: intervals decide, never estimates."""

import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from baldur.report.sentences import (
    NOT_SHOWN,
    SHOWN,
    UNKNOWN,
    Interval,
    Prediction,
    calibration_answer,
    comparison_sentence,
    prediction_sentence,
    transport_sentence,
)

NAN, INF, TINY = math.nan, math.inf, 1e-9
NO_INTERVAL = [(NAN, NAN, NAN), (0.9, NAN, NAN), (0.9, NAN, 0.95), (0.9, -INF, INF), (INF, 0, INF)]

ABOVE = ("Yes: the AUC of A for x against y is", SHOWN)
CHANCE = ("includes 0.50, which guessing gives", NOT_SHOWN)
BELOW = ("lies below 0.50", NOT_SHOWN)
PERMUTED = ("labels permuted at random do as well", NOT_SHOWN)

RIGHT = ("Yes, the probabilities are well calibrated", SHOWN)
EXTREME = ("are too extreme", NOT_SHOWN)
CAUTIOUS = ("are too cautious", NOT_SHOWN)
LOW = ("are too low as a whole", NOT_SHOWN)
HIGH = ("are too high as a whole", NOT_SHOWN)
WIDE = ("may be right or not", UNKNOWN)
NO_SLOPE = ("the calibration slope could not be estimated", UNKNOWN)
NO_INTERCEPT = ("the calibration intercept could not be estimated", UNKNOWN)

BETTER = ("Yes: M", SHOWN)
WORSE = ("No: M", NOT_SHOWN)
OPEN = ("This cannot be determined: no difference was shown for M", UNKNOWN)
NONE = ("no difference could be estimated with an interval", UNKNOWN)


def check(sentence, said):
    text, outcome = said
    assert text in sentence.answer
    assert sentence.outcome == outcome
    assert sentence.answer.endswith(".")
    assert "nan" not in sentence.answer
    assert "∞" not in sentence.answer


def predicted(low, high, p=None, estimate=0.9):
    value = Interval(estimate, low, high)
    return Prediction(value, 0.5, "AUC", "A for x against y", "on 9 people", p)


def compared(**others):
    ends = pd.DataFrame(others.values(), columns=["estimate", "low", "high"])
    return comparison_sentence(ends.assign(model=list(others), metric="AUC"), "A")


@pytest.mark.parametrize(
    ("low", "high", "p", "said"),
    [
        (0.5 + TINY, 0.95, None, ABOVE),
        (0.5, 0.95, None, CHANCE),
        (0.5 - TINY, 0.95, None, CHANCE),
        (0.5, 0.5, None, CHANCE),
        (0.2, 0.5, None, CHANCE),
        (0.2, 0.5 - TINY, None, BELOW),
        (0.6, 0.95, 0.05, ABOVE),
        (0.6, 0.95, 0.05 + TINY, PERMUTED),
        (0.6, 0.95, NAN, PERMUTED),
        (0.4, 0.95, 0.01, CHANCE),
    ],
)
def test_prediction(low, high, p, said):
    if p is None or not math.isnan(p):
        check(prediction_sentence(predicted(low, high, p)), said)
    # The estimate has no part in it.
    assert prediction_sentence(predicted(low, high, p, estimate=0.1)).outcome == said[1]


def test_a_figure_in_doubt_refers_to_the_check():
    """The headline says yes only together with the codes of the checks."""
    check(prediction_sentence(predicted(0.9, 1.0)), ABOVE)
    doubted = prediction_sentence(predicted(0.9, 1.0), ["B11", "B05"])
    check(doubted, ("Yes, but see B11 and B05 below first: the AUC", SHOWN))
    assert doubted.answer.endswith("guessing gives, but the figure may be wrong.")
    # Where nothing is claimed, there is nothing to doubt.
    check(prediction_sentence(predicted(0.4, 1.0), ["B11"]), CHANCE)


@pytest.mark.parametrize("value", NO_INTERVAL)
def test_without_an_interval_nothing_is_claimed(value):
    found = replace(predicted(0, 1), value=Interval(*value))
    check(prediction_sentence(found), ("could not be estimated with an interval", UNKNOWN))
    check(calibration_answer(Interval(*value), Interval(0, -0.1, 0.1)), NO_SLOPE)
    check(calibration_answer(Interval(1, 0.9, 1.1), Interval(*value)), NO_INTERCEPT)
    check(compared(M=value), NONE)


ZERO = Interval(0.0, -0.3, 0.3)


@pytest.mark.parametrize(
    ("slope", "intercept", "said"),
    [
        ((0.8, 1.25), ZERO, RIGHT),
        ((0.8 - TINY, 1.25), ZERO, WIDE),
        ((0.8, 1.25 + TINY), ZERO, WIDE),
        ((0.85, 0.95), ZERO, RIGHT),  # close enough, though not 1
        ((0.5, 1.0), ZERO, WIDE),
        ((0.5, 1.0 - TINY), ZERO, EXTREME),
        ((1.0, 2.0), ZERO, WIDE),
        ((1.0 + TINY, 2.0), ZERO, CAUTIOUS),
        ((0.9, 1.1), Interval(0.2, 0.0, 0.4), RIGHT),
        ((0.9, 1.1), Interval(0.2, TINY, 0.4), LOW),
        ((0.9, 1.1), Interval(-0.2, -0.4, -TINY), HIGH),
        ((0.5, 2.0), Interval(0.2, TINY, 0.4), LOW),
    ],
)
def test_calibration(slope, intercept, said):
    for estimate in (1.0, 1.37):
        check(calibration_answer(Interval(estimate, *slope), intercept), said)


@pytest.mark.parametrize(
    ("slope", "intercept", "said"),
    [
        (Interval(), Interval(0.2, 0.0, 0.4), NO_SLOPE),
        (Interval(), Interval(0.2, TINY, 0.4), LOW),
        (Interval(), Interval(-0.8, -1.2, -TINY), HIGH),
        (Interval(0.7, 0.5, 1 - TINY), Interval(), EXTREME),
        (Interval(1.7, 1 + TINY, 3), Interval(), CAUTIOUS),
        (Interval(1, 0.9, 1.1), Interval(), NO_INTERCEPT),
        (Interval(1, -np.inf, np.inf), Interval(0, -1, 1), NO_SLOPE),
        (Interval(0.3, -np.inf, 0.5), Interval(0, -1, 1), NO_SLOPE),
    ],
)
def test_what_one_interval_shows_needs_no_other(slope, intercept, said):
    check(calibration_answer(slope, intercept), said)


def test_an_end_near_0_shows_its_side():
    text = compared(B=(0.03, -0.0004, 0.06), C=(0.03, 0.0004, 0.06)).answer
    assert "B (+0.0300 [−0.0004, 0.0600]), whose interval includes 0" in text
    assert "C (+0.0300 [0.0004, 0.0600]) predicts worse" in text


def test_only_an_interval_is_said_to_include_0():
    at_0, above, none = (0.1, -0.1, 0.3), (0.1, 0.05, 0.3), (NAN, NAN, NAN)
    reason = "This cannot be determined: no difference could be estimated with an interval for C. "
    assert compared(B=above, C=none).answer.startswith(f"{reason}B (+0.10 [0.05, 0.30]) predicts")
    text = compared(B=at_0, C=none).answer
    assert "for B (+0.10 [−0.10, 0.30]), whose interval includes 0; no difference could" in text


def test_the_intercept_of_a_regression_has_no_part():
    said = calibration_answer(Interval(1, 0.9, 1.1), None, "predictions")
    check(said, ("Yes, the predictions are well calibrated", SHOWN))
    assert "intercept" not in said.answer


@pytest.mark.parametrize(
    ("ends", "said"),
    [
        ([(-0.2, -TINY)], BETTER),
        ([(-0.2, 0.0)], OPEN),
        ([(0.0, 0.2)], OPEN),
        ([(TINY, 0.2)], WORSE),
        ([(TINY, 0.2), (-0.1, 0.2)], OPEN),
        ([(TINY, 0.2), (-0.2, -TINY)], BETTER),
        ([(TINY, 0.2), (NAN, NAN)], NONE),
        ([(NAN, NAN)], NONE),
    ],
)
def test_other_models(ends, said):
    found = {f"M{i}": (0.1 if a == a else NAN, a, b) for i, (a, b) in enumerate(ends)}
    check(compared(**found), said)


@pytest.mark.parametrize(
    ("new", "old", "metric", "outcome"),
    [
        ((0.6, 0.7), (0.7 + TINY, 0.9), "auc", SHOWN),
        ((0.6, 0.7), (0.7, 0.9), "auc", UNKNOWN),
        ((0.9 + TINY, 0.95), (0.7, 0.9), "auc", NOT_SHOWN),
        ((0.6, 0.7), (0.4, 0.6 - TINY), "log_loss", SHOWN),
        ((0.6, 0.7), (0.7 + TINY, 0.9), "log_loss", NOT_SHOWN),
        ((0.6, 0.7), (NAN, NAN), "auc", UNKNOWN),
    ],
)
def test_a_model_in_a_new_cohort(new, old, metric, outcome):
    said = transport_sentence(Interval(0.65, *new), Interval(0.8, *old), metric)
    check(said, ({SHOWN: "Yes: ", NOT_SHOWN: "No, it does better: "}.get(outcome, "Th"), outcome))
