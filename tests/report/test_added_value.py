"""Sentences on added value and on trees, at the boundaries of their conditions; their page."""

import math

import numpy as np
import pandas as pd
import pytest

from baldur import MultiView
from baldur.baselines import BASELINES
from baldur.evaluation import Model, make_model, nested_cv
from baldur.evaluation.results import Results
from baldur.evaluation.view_additions import ADDED, ALL_ADDED, BASELINE, BEYOND
from baldur.report import report_folder
from baldur.report.added_value import (
    added_value_answer,
    added_value_section,
    addition_table,
    additions_of,
    reclassification_table,
    view_set_table,
)
from baldur.report.pages import answer_of_run, make_page
from baldur.report.sentences import (
    NOT_SHOWN,
    SHOWN,
    UNKNOWN,
    gains_of_trees,
    linear_sentence,
    other_models,
)
from evaluation import spies
from pages import write_folder

NAN, INF, TINY = math.nan, math.inf, 1e-9

pytestmark = pytest.mark.usefixtures("few_resamples")


def said(sentence):
    assert sentence.answer.endswith(".")
    assert "nan" not in sentence.answer
    return sentence


def addition(low, high, estimate=0.04, **more):
    """Return the sentence of a row of the table of added value."""
    row = {
        "question": ADDED, "metric": "auc", "view": "mri", "difference": estimate, "low": low,
        "high": high, "value": 0.84, "reference_value": 0.8, "people": 147, "of_people": 147,
        "detectable": 0.06, **more,
    }  # fmt: skip
    table = pd.DataFrame([{"question": BASELINE, "view": "clinical"}, row])
    (sentence,) = additions_of(table, True)
    return said(sentence)


@pytest.mark.parametrize(
    ("low", "high", "part", "outcome"),
    [
        (TINY, 0.07, "raised the AUC", SHOWN),
        (0.0, 0.07, "No added value of mri", NOT_SHOWN),
        (-0.01, 0.0, "No added value of mri", NOT_SHOWN),
        (-0.05, -TINY, "lowered the AUC", NOT_SHOWN),
        (0.0, 0.0, "No added value of mri", NOT_SHOWN),
        (NAN, 0.07, "cannot be determined", UNKNOWN),
        (-INF, INF, "cannot be determined", UNKNOWN),
    ],
)
def test_additions(low, high, part, outcome):
    for detectable in (0.06, NAN):
        sentence = addition(low, high, detectable=detectable)
        assert part in sentence.answer
        assert sentence.outcome == outcome


def test_what_the_sentences_say():
    def text(one):
        return one.answer

    assert text(addition(0.01, 0.07)) == (
        "Adding mri to clinical raised the AUC by 0.040 [0.010, 0.070], from 0.800 to 0.840, on "
        "the same 147 people."
    )
    lower = addition(-0.07, -0.01, -0.04)
    assert "lowered the AUC by 0.040 [0.010, 0.070]" in text(lower)
    none = text(addition(-0.02, 0.07))
    assert none.startswith("No added value of mri beyond clinical was shown: the AUC changed by")
    assert none.endswith("With 147 people an increase of 0.060 could have been detected.")
    few = text(addition(-0.2, 0.3, detectable=NAN))
    assert few.endswith("With 147 people no possible increase could have been detected reliably.")
    assert "the same 90 people (of 147) who have mri and clinical" in text(
        addition(0.01, 0.1, people=90)
    )
    several = addition(0.01, 0.1, people=90, view="mri and csf",
                       question=ALL_ADDED)  # fmt: skip
    assert "who have one of these views and clinical" in text(several)
    beyond = addition(0.01, 0.1, people=90, question=BEYOND)
    assert "who have mri and one of the others" in text(beyond)
    # An end that is nearly 0 is not written as 0.
    assert "[0.0001," in text(addition(0.0001, 0.07))


def gains(**trees):
    """Return the sentence for differences between models of trees and linear models."""
    rows = [(tree, m, "AUC", *ends) for tree, own in trees.items() for m, ends in own.items()]
    columns = ["tree", "model", "metric", "estimate", "low", "high"]
    return said(linear_sentence(pd.DataFrame(rows, columns=columns)))


ABOVE, BELOW, AROUND = (0.02, TINY, 0.04), (-0.02, -0.04, -TINY), (0.02, 0.0, 0.04)
UNTOLD = (0.02, NAN, 0.04)


@pytest.mark.parametrize(
    ("sentence", "part", "outcome"),
    [
        (gains(RF={"BALDUR": ABOVE}), "better than every linear model", NOT_SHOWN),
        (
            gains(RF={"BALDUR": ABOVE, "Ridge logistic": ABOVE}),
            "better than every linear model",
            NOT_SHOWN,
        ),
        # Better than one linear model is not better than the linear models.
        (
            gains(RF={"BALDUR": ABOVE, "Ridge logistic": AROUND}),
            "no gain by trees was shown",
            UNKNOWN,
        ),
        (
            gains(RF={"BALDUR": ABOVE, "Ridge logistic": UNTOLD}),
            "no gain by trees was shown",
            UNKNOWN,
        ),
        (gains(RF={"BALDUR": AROUND}), "no gain by trees was shown", UNKNOWN),
        (gains(RF={"BALDUR": (-0.02, -0.04, 0.0)}), "no gain by trees was shown", UNKNOWN),
        (gains(RF={"BALDUR": BELOW}), "worse than a linear model", SHOWN),
        (gains(RF={"BALDUR": BELOW, "Ridge logistic": AROUND}), "worse than a linear model", SHOWN),
        (
            gains(RF={"BALDUR": BELOW}, trees={"BALDUR": AROUND}),
            "no gain by trees was shown",
            UNKNOWN,
        ),
        (
            gains(RF={"BALDUR": BELOW}, trees={"BALDUR": ABOVE}),
            "better than every linear model",
            NOT_SHOWN,
        ),
        (gains(RF={"BALDUR": UNTOLD}), "could be estimated with an interval", UNKNOWN),
    ],
)
def test_trees_against_linear_models(sentence, part, outcome):
    assert part in sentence.answer
    assert sentence.outcome == outcome


def test_the_gain_is_that_over_the_best_linear_model():
    text = gains(RF={"BALDUR": (0.05, 0.01, 0.09), "Ridge logistic": (0.03, 0.01, 0.05)}).answer
    assert "RF (+0.030 [0.010, 0.050] against Ridge logistic) predicts better" in text
    assert "There are 2 comparisons of trees with a linear model, each taken alone" in text
    # An end that is nearly 0 is not written as 0.
    close = gains(RF={"BALDUR": (0.03, 0.0002, 0.05)})
    assert "RF (+0.0300 [0.0002, 0.0500] against BALDUR)" in close.answer


def test_trees_are_called_worse_with_the_difference_that_shows_it():
    # The best linear model by its estimate has a wide interval.
    one = gains(RF={"BALDUR": (-0.06, -0.14, 0.02), "Ridge logistic": (-0.05, -0.08, -0.02)})
    assert "RF (−0.050 [−0.080, −0.020] against Ridge logistic) predicts worse" in one.answer


# -- the page -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def result():
    """A circle, which trees find and a linear model does not, in one of three views."""
    rng = np.random.default_rng(0)
    views = {name: rng.normal(size=(240, 2)) for name in ("clinic", "mri", "genes")}
    y = np.where((views["mri"] ** 2).sum(axis=1) > 1.4, "case", "control")
    forest = BASELINES["RF"].make(0).set_params(n_estimators=30)
    models = [Model("RF", forest), make_model("Ridge logistic", grid={"C": [1.0]})]
    data = MultiView(views, present={"mri": np.arange(240) % 5 > 0})
    return nested_cv(models, data, y, outer=3, positive="case", baseline_views=["clinic"])


@pytest.fixture(scope="module")
def folder(result, tmp_path_factory):
    place = tmp_path_factory.mktemp("added")
    write_folder(result, place)
    return place


def test_the_page_says_what_a_view_adds(result, folder):
    run = Results.read(folder)
    assert run.with_all_views == ["RF", "Ridge logistic"]
    answer = {s.question: s for s in answer_of_run(run, "RF", [])}
    added = answer["What do other views add to clinic?"]
    assert added.outcome == SHOWN
    assert added.answer.startswith("Adding mri to clinic raised the AUC by")
    assert "192 people (of 240) who have mri" in added.answer
    linear = answer["Is a linear model enough?"]
    assert linear.outcome == NOT_SHOWN
    assert "RF (+" in linear.answer
    # Rows with some of the views are no other models.
    assert set(other_models(run, "RF")["model"]) == {"Ridge logistic"}
    memory = Results(result)
    assert added_value_section(memory) == added_value_section(run)
    assert added_value_answer(memory) == added_value_answer(run)
    facts = make_page(run)
    assert {"added_value", "view_sets", "reclassification"} <= set(facts.tables)
    assert [c.text for c in facts.checks if c.code == "B22"]
    page = report_folder(folder).read_text(encoding="utf-8")
    assert 'id="added"' in page
    assert "Sets of views: how well" in page


def test_a_study_that_does_not_ask_has_none_of_it(result):
    models = [make_model("Ridge logistic", grid={"C": [1.0]}), "Dummy"]
    plain = Results(nested_cv(models, result.data, result.truth, outer=2, inner=2))
    assert added_value_section(plain) == []
    assert added_value_answer(plain) is None
    assert gains_of_trees(plain).empty
    assert "Is a linear model enough?" not in {s.question for s in make_page(plain).answer}
    assert "B22" not in make_page(plain).checks_made


def test_a_page_without_the_models_that_it_needs(result):
    """The row with all views fails, so that nothing can be compared."""
    model = Model("RF", spies.Fails(), views=None)
    failed = nested_cv([model], result.data, result.truth, outer=2, baseline_views=["clinic"])
    assert len(failed.failures) == 7
    facts = make_page(Results(failed))
    assert facts.added == [failed.added_value_missing]
    assert "There are no two view sets of 'RF' to compare, because" in facts.added[0]
    assert "What a view adds was estimated" not in facts.methods
    assert "added_value" not in facts.tables


def test_a_view_set_that_fails_is_named(result, tmp_path):
    """Models with one view fail: the baseline is missing, other comparisons are not."""
    model = Model("RF", spies.NeedsTwoViews(), views=None)
    some = nested_cv([model], result.data, result.truth, outer=2, baseline_views=["clinic"])
    assert set(some.failures) == {"RF (clinic)", "RF (mri)", "RF (genes)"}
    write_folder(some, tmp_path)
    for run in (Results(some), Results.read(tmp_path)):
        section = added_value_section(run)
        assert section[0] == some.added_value_missing
        assert "missing, because these models failed: 'RF (clinic)'" in section[0]
        assert set(run.table("added_value")["question"]) == {"all", "with", "without", BEYOND}
        answer = added_value_answer(run)
        assert answer.question == "What do other views add to clinic?"
        assert answer.answer == f"Not estimated. {section[0]}"
        assert answer.outcome == UNKNOWN
    assert result.added_value_missing == ""


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_forged_numbers_are_no_traceback(result, value):
    run = Results(result)
    tables = {name: run.table(name) for name in ("added_value", "reclassification", "views")}
    for name, table in tables.items():
        for column in table.select_dtypes("number"):
            forged = {**tables, name: table.assign(**{column: value})}
            changed = Results(tables=forged, record=run.record)
            assert added_value_section(changed)
            assert view_set_table(changed).rows
            assert addition_table(changed).rows
            assert reclassification_table(changed).rows
