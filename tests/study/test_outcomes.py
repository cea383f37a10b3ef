"""A study with several yes/no outcomes: files, resuming, fitting, predicting and validating."""

import json

import numpy as np
import pandas as pd
import pytest

from baldur.evaluation import NestedResult, nested_cv
from baldur.exceptions import InputError, StudyError
from baldur.plots import ComparisonDisplay, OutcomesDisplay
from baldur.report import report_folder, report_study
from baldur.saving import load, save
from baldur.study import (
    check_study,
    evaluate_study,
    fit_study,
    load_study,
    predict_study,
    validate_study,
)
from study.conftest import make_parts, make_tables, read_file, write_study

pytestmark = pytest.mark.usefixtures("one_repeat")
NAMES = ["diabetes", "fall / fracture"]


def outcome_tables():
    tables = make_tables()
    rng = np.random.default_rng(1)
    blood = tables["blood"].iloc[:, 1].to_numpy()
    for j, name in enumerate(NAMES):
        yes = blood * (1 - 2 * j) + rng.normal(size=60) > 0
        tables["samples"][name] = np.where(yes, "Yes", "no")
    return tables


def outcome_parts():
    parts = make_parts()
    parts["outcome"] = {"columns": NAMES}
    parts["models"] = [
        {"name": "BALDUR", "settings": {"members": ["pooled"]}},
        {"name": "Ridge logistic", "grid": {"C": [0.1, 1.0]}},
    ]
    return parts


OTHERS = {"log.txt", ".lock", ".study.json"}


def files_of(folder):
    """Return the contents of all files that a run writes, below the folder."""
    found = {}
    for place in sorted(folder.rglob("*")):
        if place.is_file() and "jobs" not in place.parts and place.name not in OTHERS:
            found[str(place.relative_to(folder))] = place.read_bytes()
    return found


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    folder = tmp_path_factory.mktemp("outcomes")
    tables = outcome_tables()
    tables["samples"].loc[3, NAMES[0]] = ""
    tables["samples"].loc[[4, 5], NAMES[1]] = ""
    return write_study(outcome_parts(), tables, folder / "study")


@pytest.fixture(scope="module")
def done(study, one_repeat, quick_intervals):
    made = evaluate_study(load_study(study))
    report_study(made)
    return made


def test_samples_without_one_of_the_outcomes_are_left_out(done):
    assert isinstance(done.run, NestedResult)
    assert len(done.run[NAMES[0]].data) == 57
    assert any("1 sample has no 'diabetes'" in note for note in done.record["notes_on_data"])
    assert any(
        "2 samples have no 'fall / fracture'" in note for note in done.record["notes_on_data"]
    )


def test_the_folder_has_the_mean_on_top_and_a_folder_for_each(done):
    table = pd.read_csv(done.folder / "table.csv")
    assert list(dict.fromkeys(table["outcome"])) == ["*", *NAMES]
    record = json.loads((done.folder / "run.json").read_text())
    assert record["outcomes"] == NAMES
    names = sorted(one.name for one in (done.folder / "outcomes").iterdir())
    assert names == ["diabetes", "fall_fracture"]
    below = done.folder / "outcomes" / "fall_fracture"
    mine = json.loads((below / "run.json").read_text())
    assert (mine["outcome"], mine["classes"]) == (NAMES[1], ["no", "yes"])
    assert set(pd.read_csv(below / "predictions.csv")["label"]) == {"no", "yes"}
    assert "outcomes" in (done.folder / "README.txt").read_text()
    shown = OutcomesDisplay.from_result(done.folder)
    assert shown.outcomes == ["*", *NAMES]
    pd.testing.assert_frame_equal(shown.table, OutcomesDisplay.from_result(done.run).table)
    mean = ComparisonDisplay.from_result(done.folder, ["auc"]).table
    want = table.loc[table["outcome"] == "*", "auc_pooled"]
    np.testing.assert_allclose(mean["estimate"], want)
    with pytest.raises(InputError, match="several outcomes; give that of one"):
        ComparisonDisplay.from_result(done.run)


def test_every_outcome_has_a_page_and_the_first_page_has_all(done, tmp_path):
    text = (done.folder / "report.html").read_text()
    for name in NAMES:
        assert f"<h3>{name}</h3>" in text
    assert 'href="outcomes/fall_fracture/report.html"' in text
    assert "Mean over outcomes" in text
    below = (done.folder / "outcomes" / "diabetes" / "report.html").read_text()
    assert "BALDUR for diabetes" in below
    # Made from the folder it is the same page, and elsewhere it has no links.
    again = report_folder(done.folder)
    assert again.read_text() == text
    elsewhere = report_folder(done.folder, tmp_path / "page.html").read_text()
    assert "outcomes/diabetes/report.html" not in elsewhere
    in_memory = done.run.report(tmp_path / "memory.html").read_text()
    assert "mean AUC over 2 outcomes" in in_memory


def test_a_killed_run_gives_the_same_bytes(done, study):
    """Half of the jobs are lost, and all result files."""
    pages = {"report.html", "README.txt"}  # README.txt lists the page
    want = {n: c for n, c in files_of(done.folder).items() if n.rpartition("/")[2] not in pages}
    jobs = sorted((done.folder / "jobs").rglob("*"))
    for place in [one for one in jobs if one.is_file()][::2]:
        place.unlink()
    for name in want:
        (done.folder / name).unlink()
    again = files_of(evaluate_study(load_study(study)).folder)
    assert {name: again[name] for name in want} == want


def test_outcomes_of_an_earlier_run_are_removed(tmp_path):
    parts, tables = outcome_parts(), outcome_tables()
    parts["models"] = ["Dummy"]
    file = write_study(parts, tables, tmp_path / "study")
    folder = evaluate_study(load_study(file)).folder
    mine = folder / "outcomes" / "fall_fracture" / "mine.txt"
    mine.write_text("not a result")
    parts["outcome"] = {"column": NAMES[0]}
    write_study(parts, tables, tmp_path / "study")
    evaluate_study(load_study(file))
    assert not (folder / "outcomes" / "diabetes").exists()
    assert [one.name for one in mine.parent.iterdir()] == ["mine.txt"]
    assert "outcome" not in pd.read_csv(folder / "table.csv")


def test_the_check_counts_cases_and_looks_at_every_outcome(tmp_path):
    tables = outcome_tables()
    tables["blood"]["leak"] = (tables["samples"][NAMES[1]] == "Yes").astype(int)
    config = load_study(write_study(outcome_parts(), tables, tmp_path / "study"))
    check = check_study(config, trial=False)
    cases = int((tables["samples"][NAMES[0]] == "Yes").sum())
    assert f"60 samples, 2 outcomes: {cases} diabetes" in check.lines()[0]
    assert any("leak" in str(f) and NAMES[1] in str(f) for f in check.findings)


# -- one model ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(study, tmp_path_factory, one_repeat):
    saved, _ = fit_study(load_study(study))
    place = tmp_path_factory.mktemp("model") / "model"
    save(saved, place)
    return load(place, study=True)


def test_a_saved_model_predicts_every_outcome(model, study):
    assert model.outcomes == NAMES
    config = load_study(study, predicting=True)
    frame, _ = predict_study(model, config)
    for name in NAMES:
        yes = frame[f"p_{name}"] > 0.5
        assert (frame[f"predicted_{name}"] == np.where(yes, "yes", "no")).all()
        assert (frame[f"p_{name}_lower"] <= frame[f"p_{name}"]).all()
        assert (frame[f"p_{name}"] <= frame[f"p_{name}_upper"]).all()


def test_the_page_of_a_model_shows_its_latent_factors(model, tmp_path):
    save(model, tmp_path / "model")
    text = report_folder(tmp_path / "model").read_text()
    assert "Latent factors: loadings of the outputs" in text
    assert "outputs of the model share" in text


def test_a_model_is_validated_for_one_outcome(model, done, tmp_path):
    parts, tables = outcome_parts(), outcome_tables()
    parts["outcome"] = {"column": NAMES[1]}
    config = load_study(write_study(parts, tables, tmp_path / "new"), predicting=True)
    with pytest.raises(InputError, match="results of several outcomes"):
        validate_study(model, config, development=done.folder)
    below = done.folder / "outcomes" / "fall_fracture"
    done = validate_study(model, config, development=below)
    assert len(done.table("development"))
    assert set(done.table("predictions")["label"]) == {"no", "yes"}
    direct, _ = predict_study(model, config)
    np.testing.assert_allclose(done.table("predictions")["p_yes"], direct[f"p_{NAMES[1]}"])
    assert report_folder(done.folder).is_file()


@pytest.mark.parametrize(
    ("outcome", "says"),
    [
        ({"columns": NAMES}, "a validation is about one outcome"),
        ({"column": "diagnosis"}, "the model does not predict 'diagnosis'"),
    ],
)
def test_a_validation_of_other_outcomes_is_refused(model, tmp_path, outcome, says):
    parts = {**outcome_parts(), "outcome": outcome}
    config = load_study(write_study(parts, outcome_tables(), tmp_path / "new"), predicting=True)
    with pytest.raises(StudyError, match=says):
        validate_study(model, config)


# -- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"columns": NAMES, "column": "diagnosis"}, "both column and columns"),
        ({"columns": NAMES[:1]}, "one column only"),
        ({"columns": NAMES, "task": "regression"}, "several numeric outcomes"),
        ({"columns": [*NAMES, "death"]}, "no column 'death'"),
        ({"columns": [*NAMES, "site"]}, "must have two values"),
        ({"columns": [*NAMES, "diagnosis"]}, "means yes is not known"),
        ({"columns": [*NAMES, "diagnosis"], "positive": "patient"}, "no value 'patient'"),
        ({}, "outcome.column: missing"),
    ],
)
def test_outcomes_that_cannot_be_evaluated_are_refused(tmp_path, change, says):
    parts = {**outcome_parts(), "outcome": change}
    file = write_study(parts, outcome_tables(), tmp_path / "study")
    with pytest.raises(StudyError, match=says):
        read_file(file)


@pytest.mark.parametrize("column", ["seen by Dr. Smith", "v. 1.5; visit 2", "a.b"])
def test_names_with_full_stops_stay_whole_in_messages(tmp_path, column):
    """The text of the refusal is that of the label matrix, after the file and the key."""
    tables = outcome_tables()
    tables["samples"][column] = ["1.5", "2. 5", "3"] * (len(tables["samples"]) // 3)
    cells = tables["samples"][[*NAMES, column]]
    with pytest.raises(InputError, match="must have two values") as refused:
        nested_cv(["Dummy"], np.zeros((len(cells), 1)), cells)
    parts = {**outcome_parts(), "outcome": {"columns": [*NAMES, column]}}
    file = write_study(parts, tables, tmp_path / "study")
    with pytest.raises(StudyError) as error:
        read_file(file)
    assert str(error.value) == f"{file.name}: outcome.columns: {refused.value}"
    assert repr(column) in str(error.value)


def test_a_third_value_is_not_taken_for_no(tmp_path):
    tables = outcome_tables()
    tables["samples"].loc[:3, NAMES[1]] = "unknown"
    parts = {**outcome_parts(), "outcome": {"columns": NAMES, "positive": "Yes"}}
    file = write_study(parts, tables, tmp_path / "study")
    with pytest.raises(StudyError, match=f"{NAMES[1]!r} must have two values, .* has 3"):
        read_file(file)


def test_what_needs_one_outcome_is_refused(study, tmp_path):
    parts = outcome_parts()
    parts["report"] = {"learning_curve": [0.5]}
    with pytest.raises(StudyError, match="a learning curve is drawn for one outcome"):
        load_study(write_study(parts, outcome_tables(), tmp_path / "study"))
    with pytest.raises(StudyError, match="fitted to one outcome at a time"):
        fit_study(load_study(study), "Ridge logistic")
    parts = outcome_parts()
    parts["covariates"] = {"regress_out": [NAMES[0]]}
    with pytest.raises(StudyError, match="is the outcome"):
        load_study(write_study(parts, outcome_tables(), tmp_path / "study"))
