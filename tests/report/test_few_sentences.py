"""The headline on few features, at the boundaries of its conditions."""

import math

import pytest

from baldur.evaluation.results import Results
from baldur.report.few_features import FEW_FEATURES, Difference, FewEvidence, few_of, few_sentence
from baldur.report.sentences import NOT_SHOWN, SHOWN, UNKNOWN, Interval, case_of

NAN, TINY = math.nan, 1e-9


def auc(low, high, gain=0.4):
    return Difference("AUC", Interval(0.9, 0.8, 0.95), Interval(low, low, high), gain)


def loss(low, high, gain=0.3):
    return Difference("Log-loss", Interval(0.3, 0.2, 0.4), Interval(low, low, high), gain, False)


GOOD = [auc(-0.04, 0.01), loss(-0.01, 0.03)]  # a tenth of the gain is just allowed
LOST = [auc(-0.06, -TINY), loss(-0.01, 0.05)]
OPEN = [auc(-0.05, 0.01), loss(-0.01, 0.02)]


def told(*found, shown=True):
    evidence = FewEvidence(dict(zip((1, 5, 20), found, strict=False)), shown, 30.0)
    case = case_of(FEW_FEATURES, evidence)
    text = case.text(evidence)
    assert text.endswith(".")
    assert "nan" not in text
    return case.name, case.outcome, text


@pytest.mark.parametrize(
    ("found", "name", "outcome"),
    [
        ((GOOD, GOOD, GOOD), "enough", SHOWN),
        ((LOST, GOOD, GOOD), "enough", SHOWN),
        ((LOST, OPEN, GOOD), "enough", SHOWN),
        ((GOOD, GOOD, OPEN), "cannot be determined", UNKNOWN),  # the largest comes first
        ((LOST, LOST, OPEN), "cannot be determined", UNKNOWN),
        ((LOST, LOST, LOST), "all lose", NOT_SHOWN),
        ((OPEN, OPEN, OPEN), "cannot be determined", UNKNOWN),
        ((OPEN, OPEN, [auc(NAN, NAN), loss(0, 0)]), "no intervals", UNKNOWN),
        ((OPEN, OPEN, [auc(0.0, 0.0, gain=0.0), loss(0, 0)]), "no intervals", UNKNOWN),
    ],
)
def test_outcomes(found, name, outcome):
    assert told(*found)[:2] == (name, outcome)


def test_a_model_that_was_not_shown_to_predict_settles_nothing():
    assert told(GOOD, GOOD, GOOD, shown=False)[:2] == ("model not shown", UNKNOWN)


@pytest.mark.parametrize(
    ("difference", "enough", "loses"),
    [
        (auc(-0.04, 0.1), True, False),
        (auc(-0.04 - TINY, 0.1), False, False),
        (auc(-0.3, 0.0), False, False),
        (auc(-0.3, -TINY), False, True),
        (auc(-0.02, -TINY), True, True),  # less, but by little
        (loss(-0.1, 0.03), True, False),
        (loss(-0.1, 0.03 + TINY), False, False),
        (loss(0.0, 0.3), False, False),
        (loss(TINY, 0.3), False, True),
        (auc(NAN, 0.1), False, False),
        (auc(0.0, 0.0, gain=-0.1), False, False),
    ],
)
def test_one_difference(difference, enough, loses):
    assert difference.enough is enough
    assert difference.loses is loses


def test_both_metrics_count():
    assert told([auc(-0.04, 0.0), loss(0.0, 0.04)])[0] == "cannot be determined"
    assert told([auc(-0.05, 0.01), loss(0.001, 0.04)])[0] == "all lose"


def test_the_sentence_names_the_smallest_number_and_the_others():
    _, _, text = told(LOST, GOOD, GOOD)
    assert text.startswith("5 features are enough: AUC 0.900, a difference of −0.040 [−0.040, 0.01")
    assert "With 1 feature it is shown to predict worse." in text
    assert "30 features on average" in text
    assert "0.040 in AUC and 0.030 in Log-loss" in text
    _, _, text = told(LOST, OPEN, GOOD)
    assert "20 features are enough" in text
    assert "For 5 features it cannot be determined." in text
    assert told(GOOD, GOOD, GOOD)[2].startswith("1 feature is enough")


def test_it_is_on_the_page(result, folder, run_page):
    """From memory and from the folder, the same sentence and table."""
    one, other = Results(result), Results.read(folder)
    said = few_sentence(one, "BALDUR", True)
    assert said == few_sentence(other, "BALDUR", True)
    assert few_of(one, "Dummy", True) is None
    assert not other.problems
    page = run_page.read_text()
    assert "How few features are enough?" in page
    assert "Accuracy with few features, on the held-out folds" in page
    assert "Accuracy of BALDUR with few features" in page
