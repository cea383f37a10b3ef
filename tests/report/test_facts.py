"""The numbers behind a page, without the page."""

import json
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier
from baldur.exceptions import InputError
from baldur.report.checks import checks_of_model, checks_of_run
from baldur.report.facts import gather_facts
from baldur.report.fitted import FittedModel
from baldur.report.formatting import estimate, listed, number, percent
from baldur.report.results import StudyResults
from baldur.report.text.explanations import EXPLANATIONS
from baldur.saving import SavedModel

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def run(folder):
    return StudyResults.from_folder(folder)


@pytest.fixture
def changed(folder, tmp_path):
    """Give a run with some tables or facts changed."""

    def make(record=None, **tables):
        place = tmp_path / "changed"
        shutil.copytree(folder, place, dirs_exist_ok=True)
        if record:
            known = json.loads((place / "run.json").read_text())
            (place / "run.json").write_text(json.dumps({**known, **record}))
        for name, change in tables.items():
            file = place / f"{name}.csv"
            change(pd.read_csv(file)).to_csv(file, index=False)
        return StudyResults.from_folder(place)

    return make


def codes(checks):
    return {c.code for c in checks}


def test_a_folder_says_what_the_result_in_memory_says(run, result):
    ours, theirs = gather_facts(run), gather_facts(StudyResults.from_result(result))
    assert [s.answer for s in ours.answer] == [s.answer for s in theirs.answer]
    assert ours.checks == theirs.checks
    for name in ("models", "features", "participants", "presence"):
        assert ours.tables[name].rows == theirs.tables[name].rows, name
    assert [p.value for p in ours.people] == [p.value for p in theirs.people]


def test_figures_of_the_models_are_those_of_the_table(run, result):
    table = result.table().set_index("model")
    shown = gather_facts(run).tables["models"]
    at = [c.name for c in shown.columns].index("AUC")
    for row in shown.rows:
        assert row[at].sort == table.loc[row[0].text, "auc_pooled"]


def test_people_are_counted_and_hidden(run, data):
    X, y = data
    facts = gather_facts(run)
    counts = [cell.sort for cell in facts.tables["participants"].rows[0][1:]]
    assert counts == [len(y), (y == 0).sum(), (y == 1).sum()]
    lacking = {row[0].text: row[1].sort for row in facts.tables["presence"].rows}
    assert lacking == {
        "none": X.view("genes").present.sum(),
        "genes": (~X.view("genes").present).sum(),
    }
    assert len(facts.people) == len(y)
    assert not any("secret" in p.name for p in facts.people)
    values = [p.value for p in facts.people]
    assert values == sorted(values, reverse=True)
    named = gather_facts(run, people="named")
    assert {p.name for p in named.people} == set(X.sample_ids)
    assert gather_facts(run, people="none").people == []
    with pytest.raises(InputError, match="people must be"):
        gather_facts(run, people="all")


def test_a_person_has_the_prediction_of_every_model(run, result):
    facts = gather_facts(run, people="named")
    p = result.predictions.set_index(["model", "sample"])["p_patient"]
    for person in facts.people[::20]:
        for model, _, value in person.models:
            assert value == pytest.approx(p[(model, person.name)], abs=1e-12)


def test_weights_and_intervals_come_from_the_fit_on_all_people(run, model):
    facts = gather_facts(run, FittedModel.of(model))
    summary = model.summary().set_index(["view", "feature"])
    heads = [c.name for c in facts.tables["features"].columns]
    seen = {}
    for row in facts.tables["features"].rows:
        cells = dict(zip(heads, row, strict=True))
        seen.setdefault((cells["View"].text, cells["Feature"].text), cells)
    for key, row in summary.iterrows():
        assert seen[key]["Weight per s.d."].sort == row["weight_scaled"]
        assert seen[key]["Weight per s.d."].small == (
            f"[{number(row['lower'])}, {number(row['upper'])}]"
        )


def test_a_model_of_a_study_has_the_names_of_its_classes(run, data):
    """It was fitted on numbers; the page joins it with the folds by name."""
    X, y = data
    saved = SavedModel(
        BaldurClassifier(members=("pooled",)).fit(X, y), classes=["control", "patient"],
        details={"model": "BALDUR", "samples": len(y)},
    )  # fmt: skip
    facts = gather_facts(run, FittedModel.of_saved(saved))
    heads = [c.name for c in facts.tables["features"].columns]
    assert "Class" not in heads
    rows = [dict(zip(heads, row, strict=True)) for row in facts.tables["features"].rows]
    first = rows[0]
    assert first["Weight per s.d."].small
    assert first["In folds"].text == "100 %"


def test_checks_of_a_sound_study_are_few_and_every_code_is_explained(run):
    found = checks_of_run(run, "BALDUR")
    assert not {"B01", "B02", "B05", "B09"} & codes(found)
    for code, one in EXPLANATIONS.items():
        assert code == one.code
        assert one.why.endswith(".")
        assert one.do.endswith(".")


def test_chance_level(changed):
    def lower(frame):
        return frame.assign(low=np.where(frame["metric"] == "auc", 0.41, frame["low"]))

    found = checks_of_run(changed(intervals=lower), "BALDUR")
    assert [c.code for c in found if c.level == "serious"] == ["B01", "B14"]  # and it was edited
    answer = gather_facts(changed(intervals=lower)).answer
    assert answer[0].outcome == "not shown"
    assert "do not interpret the selected features" in answer[2].answer


def test_small_classes_unstable_selection_and_calibration(changed):
    def few(frame):
        return frame.assign(label=np.where(np.arange(len(frame)) < 5, "patient", "control"))

    def shaky(frame):
        return frame.assign(stability=0.1)

    def steep(frame):
        slope = frame["measure"] == "slope"
        low, high = np.where(slope, 1.2, frame["low"]), np.where(slope, 1.9, frame["high"])
        return frame.assign(low=low, high=high)

    found = checks_of_run(changed(presence=few, stability=shaky, calibration=steep), "BALDUR")
    assert {"B02", "B03", "B08"} <= codes(found)
    assert "patient (5 people)" in next(c.text for c in found if c.code == "B02")


def test_site_predicts_outcome_and_one_feature_does_it_all(changed):
    def by_site(frame):
        return frame.assign(site=frame["label"])

    def one(frame):
        top = frame["feature"] == "clinic_0"
        return frame.assign(mean_weight=np.where(top, 50.0, frame["mean_weight"]))

    found = checks_of_run(changed(predictions=by_site, selection=one), "BALDUR")
    assert {"B05", "B06"} <= codes(found)
    assert "clinic_0" in next(c.text for c in found if c.code == "B06")


def test_failed_models_notes_findings_and_missing_views(changed):
    record = {
        "failures": {"Dummy": "out of memory"},
        "notes": {"BALDUR": ["BaldurClassifier did not converge. Raise max_iter."]},
        "findings": ["views.clinic: -999 lies far from the rest"],
        "views": [{"name": "clinic", "features": 8, "people": 60}],
    }
    found = checks_of_run(changed(record), "BALDUR")
    assert {"B07", "B09", "B10", "B11"} <= codes(found)


def test_checks_of_a_fitted_model(model):
    path = pd.DataFrame(
        {"step": ["nothing", "features", "features"], "n_features": [0, 2, 4],
         "loss": [0.69, 0.50, 0.49], "standard_error": [0.04, 0.03, 0.0],
         "selected": [False, False, True]}
    )  # fmt: skip

    found = pd.DataFrame({"view": ["a", "a"], "feature": ["x", "y"], "weight_scaled": [3.0, 0.1]})
    flat = SimpleNamespace(
        selected_features_={"a": np.array([True, False])}, coef_scaled_={"a": np.ones((1, 2))},
        view_relevance_={"a": 1.0}, sparsity_path_=path, converged_=False, signal_=0.4,
        signal_shown_=False, summary=lambda: found,
    )  # fmt: skip
    assert codes(checks_of_model(FittedModel.of(flat))) == {"B01", "B04", "B06", "B07"}
    assert "B01" not in codes(checks_of_model(FittedModel.of(model)))


def test_tripod_is_filled_where_known_and_blank_elsewhere(run):
    items = {i.number: i.answer for i in gather_facts(run).tripod}
    assert len(items) == 52
    assert "nested cross-validation" in items["12a"]
    assert "patient" in items["21"]
    assert items["17"] == items["18a"] == items["3a"] == ""


def test_methods_say_what_was_done(run):
    text = gather_facts(run).methods
    for part in ("120 people", "clinic (8)", "genes (12)", "3 outer folds", "Ridge logistic"):
        assert part in text


def test_a_folder_that_holds_nothing_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"no table\.csv"):
        StudyResults.from_folder(tmp_path)
    (tmp_path / "table.csv").write_text("model\n")
    with pytest.raises(InputError, match=r"no run\.json"):
        StudyResults.from_folder(tmp_path)
    (tmp_path / "run.json").write_text("[1")
    with pytest.raises(InputError, match="cannot be read"):
        StudyResults.from_folder(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": 99}')
    with pytest.raises(InputError, match="schema"):
        StudyResults.from_folder(tmp_path)


def test_numbers_read_well():
    assert number(0.1234) == "0.12"
    assert number(-0.5) == "−0.50"
    assert number(-0.001) == "0.00"
    assert number(0.0004, small=True) == "0.0004"
    assert number(None) == number(float("nan")) == "–"
    assert number(float("inf")) == "∞"
    assert estimate(0.861, 0.8, 0.9) == "0.86 [0.80, 0.90]"
    assert estimate(0.861, float("nan"), 0.9) == "0.86"
    assert percent(0.123) == "12 %"
    assert percent(0.0001) == "<1 %"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(map(str, range(10)), 2) == "0, 1 and 8 more"
