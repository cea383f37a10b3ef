"""The page of a validation: figures beside those of development, drift, and damaged folders."""

import shutil

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from baldur.cli import app
from baldur.exceptions import InputError
from baldur.report import report_folder
from baldur.report.validation_page import is_validation, open_validation, validation_page
from baldur.saving import save
from baldur.study import evaluate_study, fit_study, load_study
from pages import without_figures
from report.damage import table_damages
from study.conftest import make_parts, make_tables, write_study


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """Folders of a study, of its model, and of a validation made by the command."""
    home = tmp_path_factory.mktemp("development")
    baldur = {"name": "BALDUR", "settings": {"members": ["spike_slab"]}}
    models = [baldur, {"name": "Dummy"}]
    tables = make_tables()
    file = write_study({**make_parts(), "models": models}, tables, home)
    config = load_study(file)
    study = evaluate_study(config).folder
    model = save(fit_study(config)[0], home / "model")
    there = tmp_path_factory.mktemp("cohort")
    parts = {k: v for k, v in make_parts().items() if k in ("title", "samples", "views", "outcome")}
    new = write_study(parts, tables, there)
    arguments = ["validate", str(model), str(new), "--development", str(study)]
    done = CliRunner().invoke(app, [*arguments, "--out", str(there / "validation")])
    assert done.exit_code == 0, done.output
    return study, model, there / "validation", done.output


def test_the_command_prints_the_auc_and_writes_a_page(places):
    study, _, folder, said = places
    auc = pd.read_csv(folder / "intervals.csv").set_index(["site", "metric"]).loc[("*", "auc")]
    before = pd.read_csv(study / "intervals.csv").query("model == 'BALDUR' and site == '*'")
    before = before.set_index("metric").loc["auc"]
    assert f"AUC: {auc['estimate']:.3f} ({auc['low']:.3f} to {auc['high']:.3f})" in said
    assert f"in development {before['estimate']:.3f} ({before['low']:.3f}" in said
    slopes = [pd.read_csv(there / "calibration.csv") for there in (folder, study)]
    slopes = [f.query("model == 'BALDUR' and measure == 'slope'").iloc[0] for f in slopes]
    new, old = (f"{s['estimate']:.3f} ({s['low']:.3f} to {s['high']:.3f})" for s in slopes)
    assert f"slope: {new}; in development {old}" in said
    assert (folder / "report.html").is_file()
    assert is_validation(folder)
    assert not is_validation(study)


def test_the_page_has_both_figures_and_the_headlines(places):
    study, _, folder, _ = places
    facts = validation_page(open_validation(folder), "hidden", None)
    rows = {row[0].text: row for row in facts.tables["figures"].rows}
    new = pd.read_csv(folder / "intervals.csv").query("site == '*'").set_index("metric")
    old = pd.read_csv(study / "intervals.csv").query("model == 'BALDUR' and site == '*'")
    assert rows["AUC"][1].sort == pytest.approx(new.loc["auc", "estimate"])
    before = old.set_index("metric").loc["auc", "estimate"]
    assert rows["AUC"][2].sort == pytest.approx(before)
    assert [s.question for s in facts.answer] == [
        "Does the model predict in the new cohort?",
        "Does it predict worse than in its development?",
        "Are its probabilities right?",
    ]
    assert all(s.outcome for s in facts.answer)
    assert "drift" in facts.tables


def test_the_page_has_the_title_of_the_study_file(places, tmp_path):
    folder = tmp_path / "titled"
    shutil.copytree(places[2], folder)
    text = (folder / "validation.txt").read_text()
    assert text.startswith("Title: Small\n")  # as the study file of the fixture has it
    lines = [line for line in text.splitlines() if not line.startswith("Title: ")]
    for title, said in (("Second cohort", "Second cohort"), ("", "Validation of BALDUR")):
        first = [f"Title: {title}", ""] if title else []
        (folder / "validation.txt").write_text("\n".join([*first, *lines]))
        run = open_validation(folder)
        assert validation_page(run, "hidden", None).title == said
        assert validation_page(run, "hidden", "Mine").title == "Mine"


def test_notes_name_samples_only_where_people_are_named(places, tmp_path):
    folder = tmp_path / "noted"
    shutil.copytree(places[2], folder)
    with (folder / "validation.txt").open("a") as file:
        file.write("Note: sample 'id-7' has Age = 540, sample \"o'hara\" has Age = 530.\n")
        file.write("Note: 'vaping' counts as missing. Samples: 'id-8', 'id-9'. Check it.\n")
    run = open_validation(folder)
    far, unknown = validation_page(run, "hidden", None).notes[-2:]
    assert far == "a sample has Age = 540, a sample has Age = 530."
    assert unknown == "'vaping' counts as missing. Samples: not named here. Check it."
    assert "id-7" in validation_page(run, "named", None).notes[-2]


def test_a_value_far_outside_training_is_on_the_page(places, tmp_path):
    """An age of 540 is named; three widths of the training range are the boundary."""
    folder = tmp_path / "far"
    shutil.copytree(places[2], folder)
    frame = pd.read_csv(folder / "shift_features.csv")
    frame.loc[0, ["view", "feature"]] = ["clinical", "Age"]
    frame.loc[0, ["low_training", "high_training", "low_new"]] = [40.0, 80.0, 41.0]
    for value, said in ((540.0, True), (200.5, True), (200.0, False), (79.0, False)):
        frame.loc[0, "high_new"] = value
        frame.to_csv(folder / "shift_features.csv", index=False)
        facts = validation_page(open_validation(folder), "hidden", None)
        found = [c.text for c in facts.checks if c.code == "B21"]
        wanted = f"Age in clinical = {value:g} (training: 40 to 80)"
        assert any(wanted in text for text in found) == said
        assert "B21" in facts.checks_made


def test_serious_checks_are_in_the_headline_of_a_validation(places, tmp_path):
    folder = tmp_path / "shifted"
    shutil.copytree(places[2], folder)
    frame = pd.read_csv(folder / "shift_views.csv")
    frame.loc[0, ["far", "worst_shift"]] = [1, -23.3]
    frame.to_csv(folder / "shift_views.csv", index=False)
    facts = validation_page(open_validation(folder), "hidden", None)
    assert facts.answer[0].answer.startswith("Yes, but see B19 below first:")
    (folder / "shift_views.csv").unlink()
    facts = validation_page(open_validation(folder), "hidden", None)
    assert {"B19", "B21"} <= set(facts.checks_not_made)


def test_without_the_development_study_nothing_is_compared(places, tmp_path):
    folder = tmp_path / "alone"
    shutil.copytree(places[2], folder)
    (folder / "development.csv").unlink()
    facts = validation_page(open_validation(folder), "hidden", None)
    assert facts.answer[1].outcome == "cannot be determined"
    assert [c.name for c in facts.tables["figures"].columns] == ["Measure", "New cohort"]


def test_another_folder_is_no_development_study(places, tmp_path):
    _, model, folder, _ = places
    study = next(folder.parent.glob("*.toml"))
    arguments = ["validate", str(model), str(study), "--out", str(tmp_path / "out")]
    done = CliRunner().invoke(app, [*arguments, "--development", str(tmp_path)])
    assert done.exit_code == 1
    assert "has no intervals of a model 'BALDUR'" in str(done.exception)
    with pytest.raises(InputError, match="can be combined with a folder of results"):
        report_folder(folder, tmp_path / "page.html", model=model)


def test_damaged_validations_are_refused_in_one_line_or_have_a_page(places, tmp_path):
    folder, place = places[2], tmp_path / "damaged"
    rng = np.random.default_rng(0)
    every = list(table_damages(folder, rng))
    refused = 0
    for at in rng.permutation(len(every))[:60]:
        name, damage = every[at]
        shutil.copytree(folder, place)
        damage(place)
        try:
            with without_figures():
                report_folder(place, tmp_path / "page.html")
        except InputError as error:
            if "\n" in str(error):
                pytest.fail(f"{name}: {error}")
            refused += 1
        except Exception as error:
            pytest.fail(f"{name}: {type(error).__name__}: {error}")
        shutil.rmtree(place)
    assert 0 < refused < 60
    assert is_validation(folder)
