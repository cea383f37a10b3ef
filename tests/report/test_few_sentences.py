"""The headline on few features, at the boundaries of its conditions."""

import math

import pandas as pd
import pytest

from baldur.evaluation.results import Results
from baldur.report.few_features import few_of, few_sentence
from baldur.report.sentences import NOT_SHOWN, SHOWN, UNKNOWN

NAN, TINY = math.nan, 1e-9
NONE = "could not be estimated with an interval, or the model gains nothing over the base rate"


def auc(low, high, gain=0.4):
    """Return the row of a number of features and that of the model as it was selected."""
    ends = {"difference": low, "difference_low": low, "difference_high": high}
    return {"metric": "auc", "estimate": 0.9, **ends}, {"estimate": 0.5 + gain, "chance": 0.5}


def loss(low, high, gain=0.3):
    ends = {"difference": low, "difference_low": low, "difference_high": high}
    return {"metric": "log_loss", "estimate": 0.3, **ends}, {"estimate": 0.4 - gain, "chance": 0.4}


GOOD = [auc(-0.04, 0.01), loss(-0.01, 0.03)]  # a tenth of the gain is just allowed
LOST = [auc(-0.06, -TINY), loss(-0.01, 0.05)]
OPEN = [auc(-0.05, 0.01), loss(-0.01, 0.02)]


def few(*found):
    """Return the rows of `few_of` for 1, 5 and 20 features."""
    rows = []
    for limit, metrics in zip((1, 5, 20), found, strict=False):
        for row, own in metrics:
            rows.append({"limit": str(limit), **row})
            rows.append({"limit": "as selected", "metric": row["metric"], **own})
    table = pd.DataFrame(rows).assign(model="A", features_mean=30.0)
    return few_of(Results(tables={"few_features": table}, record={}), "A")


def told(*found, shown=True):
    sentence = few_sentence(few(*found), shown)
    assert sentence.answer.endswith(".")
    assert "nan" not in sentence.answer
    return sentence.answer, sentence.outcome


@pytest.mark.parametrize(
    ("found", "part", "outcome"),
    [
        ((GOOD, GOOD, GOOD), "enough: AUC 0.900", SHOWN),
        ((LOST, GOOD, GOOD), "enough: AUC 0.900", SHOWN),
        ((LOST, OPEN, GOOD), "enough: AUC 0.900", SHOWN),
        (
            (GOOD, GOOD, OPEN),
            "This cannot be determined: no number up to 20",
            UNKNOWN,
        ),  # the largest comes first
        ((LOST, LOST, OPEN), "This cannot be determined: no number up to 20", UNKNOWN),
        ((LOST, LOST, LOST), "More than 20 features: with these, AUC", NOT_SHOWN),
        ((OPEN, OPEN, OPEN), "This cannot be determined: no number up to 20", UNKNOWN),
        ((OPEN, OPEN, [auc(NAN, NAN), loss(0, 0)]), NONE, UNKNOWN),
        ((OPEN, OPEN, [auc(0.0, 0.0, gain=0.0), loss(0, 0)]), NONE, UNKNOWN),
    ],
)
def test_outcomes(found, part, outcome):
    text, said = told(*found)
    assert part in text
    assert said == outcome


def test_a_model_that_was_not_shown_to_predict_settles_nothing():
    text, outcome = told(GOOD, GOOD, GOOD, shown=False)
    assert "the model itself was not shown to predict better than guessing" in text
    assert outcome == UNKNOWN


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
    row = few([difference]).iloc[0]
    assert bool(row["enough"]) is enough
    assert bool(row["loses"]) is loses


def test_both_metrics_count():
    assert "no number up to 1 is" in told([auc(-0.04, 0.0), loss(0.0, 0.04)])[0]
    assert "More than 1 feature:" in told([auc(-0.05, 0.01), loss(0.001, 0.04)])[0]


def test_the_sentence_names_the_smallest_number_and_the_others():
    text, _ = told(LOST, GOOD, GOOD)
    assert text.startswith("5 features are enough: AUC 0.900, a difference of −0.040 [−0.040, 0.01")
    assert "With 1 feature it is shown to predict worse." in text
    assert "30 features on average" in text
    assert "0.040 in AUC and 0.030 in Log-loss" in text
    text, _ = told(LOST, OPEN, GOOD)
    assert "20 features are enough" in text
    assert "For 5 features it cannot be determined." in text
    assert told(GOOD, GOOD, GOOD)[0].startswith("1 feature is enough")


def test_it_is_on_the_page(result, folder, run_page):
    """From memory and from the folder, the same sentence and table."""
    one, other = Results(result), Results.read(folder)
    said = few_sentence(few_of(one, "BALDUR"), True)
    assert said == few_sentence(few_of(other, "BALDUR"), True)
    assert few_of(one, "Dummy").empty
    assert not other.problems
    page = run_page.read_text()
    assert "How few features are enough?" in page
    assert "Accuracy with few features, on the held-out folds" in page
    assert "Accuracy of BALDUR with few features" in page
