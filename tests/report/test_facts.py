"""The numbers behind a page, without the page."""

import json
import re
import shutil
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier
from baldur.evaluation.result_files import TABLES
from baldur.evaluation.results import Results
from baldur.exceptions import InputError
from baldur.report.checks import checks_of, judge_model, judge_run
from baldur.report.features import _which
from baldur.report.fitted import FittedModel
from baldur.report.formatting import (
    distinct,
    estimate,
    listed,
    number,
    percent,
    plain,
    probability,
    short,
)
from baldur.report.pages import make_page
from baldur.report.render import explanations
from baldur.report.sentences import other_models
from baldur.report.tables import mean_sd, multiplicity
from baldur.saving import SavedModel

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def run(folder):
    return Results.read(folder)


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
        return Results.read(place)

    return make


def codes(checks):
    return {c.code for c in checks}


def test_a_folder_says_what_the_result_in_memory_says(run, result):
    ours, theirs = make_page(run), make_page(Results(result))
    assert [s.answer for s in ours.answer] == [s.answer for s in theirs.answer]
    assert ours.checks == theirs.checks
    for name in ("models", "features", "participants", "presence"):
        assert ours.tables[name].rows == theirs.tables[name].rows, name
    assert [p.value for p in ours.people] == [p.value for p in theirs.people]


def test_tables_of_a_folder_equal_those_in_memory(result, folder):
    there, here = Results(folder=folder), Results(result)
    assert there.classes == here.classes
    for name in ("predictions", "selection", "weights", "views", "view_shares", "presence"):
        pd.testing.assert_frame_equal(there.table(name), here.table(name), check_dtype=False)
    for name, file in TABLES.items():
        read, made = there.table(name), here.table(name)
        assert (list(read), len(read)) == (list(made), len(made)), name
        assert not len(made) or set(file.columns) <= set(made), name
    assert len(there.table("learning_curve")) == 0
    assert there.table("selection") is there.table("selection")


def test_figures_of_the_models_are_those_of_the_table(run, result):
    table = result.table().set_index("model")
    shown = make_page(run).tables["models"]
    at = [c.name for c in shown.columns].index("AUC")
    for row in shown.rows:
        assert row[at].sort == table.loc[row[0].text, "auc_pooled"]


def test_people_are_counted_and_hidden(run, data):
    X, y = data
    facts = make_page(run)
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
    named = make_page(run, people="named")
    assert {p.name for p in named.people} == set(X.sample_ids)
    assert make_page(run, people="none").people == []
    with pytest.raises(InputError, match="people must be"):
        make_page(run, people="all")


def test_a_person_has_the_prediction_of_every_model(run, result):
    facts = make_page(run, people="named")
    p = result.predictions.set_index(["model", "sample"])["p_patient"]
    for person in facts.people[::20]:
        for model, _, value in person.models:
            assert value == pytest.approx(p[(model, person.name)], abs=1e-12)


def test_weights_and_intervals_come_from_the_fit_on_all_people(run, model):
    facts = make_page(run, FittedModel.of(model))
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
    facts = make_page(run, FittedModel.of(saved))
    heads = [c.name for c in facts.tables["features"].columns]
    assert "Class" not in heads
    rows = [dict(zip(heads, row, strict=True)) for row in facts.tables["features"].rows]
    first = rows[0]
    assert first["Weight per s.d."].small
    assert first["In folds"].text == "100 %"


def test_checks_of_a_sound_study_are_few_and_every_code_is_explained(run):
    found = checks_of(judge_run(run, "BALDUR"))
    assert not {"B01", "B02", "B05", "B09"} & codes(found)
    for one in explanations().values():
        assert one["why"].endswith(".")
        assert one["do"].endswith(".")


def test_chance_level(changed):
    def lower(frame):
        return frame.assign(low=np.where(frame["metric"] == "auc", 0.41, frame["low"]))

    found = checks_of(judge_run(changed(intervals=lower), "BALDUR"))
    assert [c.code for c in found if c.level == "serious"] == ["B01", "B14"]  # and it was edited
    answer = make_page(changed(intervals=lower)).answer
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

    found = checks_of(
        judge_run(changed(presence=few, stability=shaky, calibration=steep), "BALDUR")
    )
    assert {"B02", "B03", "B08"} <= codes(found)
    assert "patient (5 people)" in next(c.text for c in found if c.code == "B02")


def test_site_predicts_outcome_and_one_feature_does_it_all(changed):
    def by_site(frame):
        return frame.assign(site=frame["label"])

    def one(frame):
        top = frame["feature"] == "clinic_0"
        return frame.assign(mean_weight=np.where(top, 50.0, frame["mean_weight"]))

    found = checks_of(judge_run(changed(predictions=by_site, selection=one), "BALDUR"))
    assert {"B05", "B06"} <= codes(found)
    assert "clinic_0" in next(c.text for c in found if c.code == "B06")


def test_failed_models_notes_findings_and_missing_views(changed):
    record = {
        "failures": {"Dummy": "out of memory"},
        "notes": {"BALDUR": ["BaldurClassifier did not converge. Raise max_iter."]},
        "findings": ["views.clinic: -999 lies far from the rest"],
        "views": [{"name": "clinic", "features": 8, "people": 60}],
    }
    found = checks_of(judge_run(changed(record), "BALDUR"))
    assert {"B07", "B09", "B10", "B11"} <= codes(found)


def test_findings_in_the_data_are_in_the_headline(changed):
    """A column that repeats the outcome is named beside the AUC of 1 that it gives."""
    leak = "views.clinic: 'score' alone tells 'class' almost without error"
    said = make_page(changed({"findings": [leak]})).answer[0].answer
    assert said.startswith("Yes, but see B11 below first:")
    said = make_page(changed({"findings": [], "notes_on_data": [leak]})).answer[0].answer
    assert said.startswith("Yes: ")


def test_a_page_names_only_the_checks_that_could_be_made(run, model, changed):
    """A model alone says nothing about stability or calibration; without sites, B05 is open."""
    of_model, of_run = make_page(model=FittedModel.of(model)), make_page(run)
    assert {"B01", "B04", "B06", "B07", "B13"} == set(of_model.checks_made)
    assert {"B03", "B08", "B11", "B15"} <= set(of_model.checks_not_made)
    assert {"B03", "B05", "B08", "B14", "B15"} <= set(of_run.checks_made)
    for facts in (of_model, of_run):
        assert not set(facts.checks_made) & set(facts.checks_not_made)
        assert set(facts.checks_made) | set(facts.checks_not_made) <= set(explanations())
    both = make_page(run, FittedModel.of(model))
    assert set(both.checks_made) == {*of_run.checks_made, *of_model.checks_made, "B18"}
    alone = changed(predictions=lambda frame: frame.drop(columns="site"))
    assert "B05" in make_page(alone).checks_not_made


def test_the_headline_has_one_measure_of_calibration(run):
    """The ICI and the binned calibration error differ; the slope with its interval decides."""
    said = next(s.answer for s in make_page(run).answer if "probabilities" in s.question)
    assert "calibration slope" in said
    assert "percentage points" not in said


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
    assert codes(checks_of(judge_model(FittedModel.of(flat)))) == {"B01", "B04", "B06", "B07"}
    assert "B01" not in codes(checks_of(judge_model(FittedModel.of(model))))


def test_tripod_is_filled_where_known_and_blank_elsewhere(run):
    items = {i["number"]: i["answer"] for i in make_page(run).tripod}
    assert len(items) == 52
    assert "nested cross-validation" in items["12a"]
    assert "patient" in items["21"]
    assert items["17"] == items["18a"] == items["3a"] == ""


def test_methods_say_what_was_done(run):
    text = make_page(run).methods
    for part in ("120 people", "clinic (8)", "genes (12)", "3 outer folds", "Ridge logistic"):
        assert part in text


@pytest.mark.parametrize(
    ("left", "absent", "said"),
    [
        (0, 0, "No sample had a missing view."),
        (0, 1, "Samples with a missing view were included."),
        (1, 0, "1 sample with a missing view was left out."),
        (2, 0, "2 samples with a missing view were left out."),
        (2, 1, "2 samples with a missing view were left out; the others with a missing view were "
         "included."),
    ],
)  # fmt: skip
def test_missing_views_are_included_or_left_out_as_the_study_did(changed, left, absent, said):
    """The methods paragraph and TRIPOD item 11 say what happened."""
    views = [{"name": "clinic", "features": 8, "people": 120},
             {"name": "genes", "features": 12, "people": 120 - absent}]  # fmt: skip
    run = changed({"left_out": left, "views": views, "scale": "clipped"})
    facts = make_page(run)
    assert said in facts.methods
    assert said in next(i["answer"] for i in facts.tripod if i["number"] == "11")


def test_notes_on_the_samples_are_no_findings(changed):
    """Each has its own code, and TRIPOD item 7 counts them as the first screen shows them."""
    facts = make_page(changed({"findings": ["a", "b"], "notes_on_data": ["1 sample left out"]}))
    assert [c.code for c in facts.checks if c.code in ("B11", "B20")] == ["B11", "B11", "B20"]
    said = next(i["answer"] for i in facts.tripod if i["number"] == "7")
    assert "(B11): 2; notes on the samples (B20): 1." in said
    facts = make_page(changed({"findings": [], "notes_on_data": ["1 sample left out"]}))
    assert [c.code for c in facts.checks if c.code in ("B11", "B20")] == ["B20"]


def test_a_folder_that_holds_nothing_is_refused_in_one_line(tmp_path):
    with pytest.raises(InputError, match=r"no table\.csv"):
        Results.read(tmp_path)
    (tmp_path / "table.csv").write_text("model\n")
    with pytest.raises(InputError, match=r"no run\.json"):
        Results.read(tmp_path)
    (tmp_path / "run.json").write_text("[1")
    with pytest.raises(InputError, match="cannot be read"):
        Results.read(tmp_path)
    (tmp_path / "run.json").write_text('{"schema": 99}')
    with pytest.raises(InputError, match="schema"):
        Results.read(tmp_path)


def test_numbers_read_well():
    assert number(0.1234) == "0.12"
    assert number(-0.5) == "−0.50"
    assert number(-0.001) == "0.00"
    assert number(0.126, sign=True) == "+0.13"
    assert number(-0.126, sign=True) == "−0.13"
    for tiny in (0.0, -0.0, 0.004, -0.004, 1e-300, -1e-300):
        assert number(tiny, sign=True) == number(tiny) == "0.00"
    assert number(0.004, sign=True, small=True) == "+0.004"
    assert number(-0.004, sign=True, small=True) == "−0.004"
    assert number(2e6, sign=True) == "+2e+06"
    # The ends of an interval show on which side of 0 they lie, whatever the estimate.
    assert estimate(0.001, -0.0004, 0.2, sign=True) == "+0.0010 [−0.0004, 0.2000]"
    assert estimate(0.001, -0.1, 0.2, sign=True) == "0.00 [−0.10, 0.20]"
    assert number(0.0004, small=True) == "0.0004"
    assert number(None) == number(float("nan")) == "–"
    assert number(float("inf")) == "∞"
    assert estimate(0.861, 0.8, 0.9) == "0.86 [0.80, 0.90]"
    assert estimate(0.861, float("nan"), 0.9) == "0.86"
    assert percent(0.123) == "12 %"
    assert percent(0.0001) == "<1 %"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(map(str, range(10)), 2) == "0, 1 and 8 more"


def test_numbers_and_names_are_never_misleading():
    assert plain(3.0) == plain("3.0") == "3"
    assert plain(float("nan")) == plain("nan") == plain(None) == "not set"
    assert plain(0.123456) == "0.1235"
    assert plain(True) == "True"
    assert probability(0.9999) == ">0.99"
    assert probability(0.0) == "<0.01"
    long = "measurement_of_the_left_hippocampus_" + "x" * 60
    names = [f"{long}_{i}" for i in range(12)] + [f"{i}_{long}" for i in range(12)]
    assert all(len(short(name)) <= 60 for name in names)
    cut = distinct([*names, f"{long}A{long}", f"{long}B{long}"])
    assert len(set(cut)) == len(cut)


def test_settings_have_no_nan(changed):
    def missing(frame):
        return frame.assign(value=np.nan)

    def whole(frame):
        return frame.assign(value=3.0)

    texts = dict(make_page(changed(settings=missing)).settings).values()
    assert not any("nan" in text.lower() for text in texts)
    texts = dict(make_page(changed(settings=whole)).settings).values()
    assert any(text.startswith("3 (3 of 3 folds)") for text in texts)


def test_participants_are_described_by_outcome(run, data):
    X, y = data
    table = make_page(run).tables["participants"]
    assert [c.name for c in table.columns] == ["Characteristic", "All", "control", "patient"]
    rows = {row[0].text: row for row in table.rows}
    assert [cell.text for cell in rows["People"][1:]] == [
        str(n) for n in (len(y), (y == 0).sum(), (y == 1).sum())
    ]
    assert rows["Site oslo"][1].sort == 40
    assert rows["Has genes"][1].sort == X.view("genes").present.sum()
    cells = X.view("clinic").read()[:, 0]
    name = X.feature_names["clinic"][0]
    assert rows[name][2].sort == pytest.approx(np.nanmean(cells[y == 0]))
    assert f"{np.isnan(cells).sum()} missing" in rows[name][0].small


def test_everything_selected_still_names_five_features(changed):
    def whole(frame):
        star = frame["feature"] == "*"
        every = [";".join([str(n)] * 3) for n in frame["n_features"]]
        return frame.assign(folds=np.where(star, every, frame["folds"]))

    sentence = make_page(changed(selection=whole)).answer[2].answer
    assert sentence.startswith("All 20 are used; no smaller set was shown to have as low a loss.")
    assert "The 5 features with the largest weights are" in sentence
    assert sentence.count("of 3 folds") == 5


@pytest.mark.parametrize(
    ("frequencies", "said"),
    [
        ([1, 1, 1, 1, 1, 1, 0.5], "6 features are selected in 4 of 4 folds; the 5 of them with"),
        ([1, 1, 1, 0.5, 0.5, 0.25], "The 5 features selected most often are"),
        ([1, 1, 1, 0.5, 0.5, 0.5], "most often, of equals those with the largest weights, are"),
        ([0.75, 0.75], "The 2 features selected most often are"),
        ([1], "The feature selected most often is"),
    ],
)
def test_equally_frequent_features_are_told_apart_by_their_weights(frequencies, said):
    assert said in _which(np.array(frequencies, dtype=float), 4)


@pytest.mark.parametrize(
    ("mean", "sd", "text"),
    [
        (67.04, 7.13, "67.0 (7.1)"),
        (0.98762, 0.00312, "0.9876 (0.0031)"),
        (5.78, 0.56, "5.78 (0.56)"),
        (1234.5, 320.4, "1234 (320)"),
        (3.0, 0.0, "3.00 (0.00)"),
    ],
)
def test_means_have_as_many_decimals_as_their_spread_allows(mean, sd, text):
    assert mean_sd(mean, sd) == text


def test_the_top_features_say_how_sure_they_are(run, model):
    sentence = make_page(run, FittedModel.of(model)).answer[2].answer
    assert "in 3 of 3 folds" in sentence
    assert "inclusion probability 0.90" in sentence
    assert re.search(r"weight [+−]\d\.\d\d \[", sentence)


def test_features_of_the_folds_and_of_the_model_are_told_apart(run, model):
    """The model fitted on all people may use other features than the folds, and says so itself."""
    sentence = make_page(run, FittedModel.of(model)).answer[2].answer
    folds, fitted = sentence.split(" The model fitted on all people: ")
    assert folds.startswith("In the folds: on average ")
    assert "folds)" in folds
    assert "inclusion probability" not in folds
    selected = sum(int(mask.sum()) for mask in model.selected_features_.values())
    assert fitted.startswith(f"{selected} of 20 features.")
    assert "folds" not in fitted
    assert "In the folds" not in make_page(run).answer[2].answer


def test_view_shares_that_swing_raise_a_check(changed):
    def swing(size):
        def change(frame):
            first = (frame["fold"] == 1) & (frame["view"] == "clinic")
            rest = (frame["fold"] != 1) & (frame["view"] == "clinic")
            share = np.where(first, 0.2, np.where(rest, 0.2 + size, frame["variance_share"]))
            return frame.assign(variance_share=share)

        return change

    found = checks_of(judge_run(changed(view_shares=swing(0.41)), "BALDUR"))
    assert "20 % to 61 %" in next(c.text for c in found if c.code == "B15")
    assert "clinic" not in "".join(
        c.text
        for c in checks_of(judge_run(changed(view_shares=swing(0.39)), "BALDUR"))
        if c.code == "B15"
    )


def test_every_warning_of_a_model_raises_a_check(changed):
    notes = {
        "BALDUR": ["NoSignalWarning: No evidence of signal on held-out data in 1 of 3 folds."],
        "Dummy": ["RuntimeWarning: overflow"],
    }
    found = codes(checks_of(judge_run(changed({"notes": notes}), "BALDUR")))
    assert {"B16", "B17"} <= found
    assert "B17" in codes(checks_of(judge_run(changed({"notes": {"Dummy": ["odd"]}}), "BALDUR")))
    assert not {"B16", "B17"} & codes(checks_of(judge_run(changed({"notes": {}}), "BALDUR")))


def test_subgroup_differences_carry_a_note_on_their_number(changed, run):
    ends = pd.DataFrame(
        {"difference_low": [0.1, -0.2, -0.3, np.nan], "difference_high": [0.3, 0.2, -0.1, np.nan]}
    )
    said = multiplicity(ends)
    assert said.startswith("3 differences are compared with 0, and 2 of the intervals exclude it.")
    assert "by chance" in said
    assert multiplicity(ends.iloc[3:]) == ""


def test_differences_of_headline_table_and_file_are_the_same(run, result):
    """The headline, the table below the models and differences.csv have one definition."""
    found = other_models(run, "BALDUR").set_index("model")
    table = result.evaluation().differences
    facts = make_page(run)
    said = next(s.answer for s in facts.answer if s.question.startswith("Do other models"))
    rows = {row[0].text: row for row in facts.tables["differences"].rows}
    assert set(found.index) == set(rows) == {"Ridge logistic", "Dummy"}
    pooled = result.table().set_index("model")["auc_pooled"]
    for other, shown in found.iterrows():
        row = table.query("metric == 'auc' and model_a == 'BALDUR' and model_b == @other").iloc[0]
        assert shown.estimate == pytest.approx(row["difference"])
        assert (shown.low, shown.high) == pytest.approx((row["low"], row["high"]))
        assert shown.estimate == pytest.approx(pooled["BALDUR"] - pooled[other])
        ends = f"[{number(shown.low)}, {number(shown.high)}]"
        assert f"{other} ({number(shown.estimate, sign=True)} {ends})" in said
        assert (rows[other][1].text, rows[other][1].small) == (number(shown.estimate), ends)
    tests = result.compare().set_index(["model_a", "model_b"])["p_holm"]
    assert found.loc["Dummy", "p"] == pytest.approx(tests["BALDUR", "Dummy"])


def test_a_difference_in_a_loss_favours_the_lower(changed):
    """Intervals change ends with the sign, and the direction of the pair has no part."""
    row = {"metric": "log_loss", "model_a": "Dummy", "model_b": "BALDUR", "difference": 0.2,
           "low": 0.1, "high": 0.3, "note": ""}  # fmt: skip
    run = changed({"select_by": "log_loss"}, differences=lambda frame: pd.DataFrame([row]))
    d = other_models(run, "BALDUR").set_index("model").loc["Dummy"]
    assert (d.estimate, d.low, d.high) == (0.2, 0.1, 0.3)
    row |= {"model_a": "BALDUR", "model_b": "Dummy"}
    run = changed({"select_by": "log_loss"}, differences=lambda frame: pd.DataFrame([row]))
    d = other_models(run, "BALDUR").set_index("model").loc["Dummy"]
    assert (d.estimate, d.low, d.high) == (-0.2, -0.3, -0.1)


def test_a_model_of_other_columns_is_named(run, model):
    other = FittedModel.of(model)
    other.n_features = {"clinic": 8, "genes": 11}
    found = make_page(run, other).checks
    assert "genes (11 features in the model, 12 in the study)" in next(
        c.text for c in found if c.code == "B18"
    )
    assert "B18" not in codes(make_page(run, FittedModel.of(model)).checks)


def test_a_model_with_as_many_columns_of_other_names_is_named(changed, model):
    def renamed(frame):
        return frame.assign(feature=frame["feature"].replace("clinic_0", "Age"))

    found = make_page(changed(selection=renamed), FittedModel.of(model)).checks
    assert "clinic (the model does not have Age)" in next(c.text for c in found if c.code == "B18")


def test_thresholds_are_one_half_and_the_prevalence(run, data):
    rows = [r for r in make_page(run).tables["thresholds"].rows if r[0].text == "BALDUR"]
    assert [(row[1].text, row[1].small) for row in rows] == [
        ("0.50", ""),
        (number(data[1].mean()), "prevalence"),
    ]
