"""Whose results a folder holds, and the page that says what to open first."""

import json
import shutil

import pytest

from baldur.evaluation.result_files import FILES, INDEX, RESULT_FILES
from baldur.exceptions import StudyError
from baldur.study import evaluate_study, load_study


@pytest.fixture
def quick(parts):
    parts["models"] = [{"name": "Dummy"}]
    parts["folds"] = {"outer": 2, "inner": 2}
    return parts


def test_results_of_another_study_are_kept_unless_fresh(quick, tables, write, tmp_path):
    first, second = write(quick, tables, tmp_path / "one"), write(quick, tables, tmp_path / "two")
    out = tmp_path / "out"
    evaluate_study(load_study(first), output=out)
    before = (out / "predictions.csv").read_bytes()
    with pytest.raises(StudyError, match=r"study\.toml: output: .* another study .*--fresh"):
        evaluate_study(load_study(second), output=out)
    assert (out / "predictions.csv").read_bytes() == before
    assert json.loads((out / ".study.json").read_text())["path"] == str(first)
    # The same study goes on, also after a change of its file.
    first.write_text(first.read_text().replace("seed = 3", "seed = 4"))
    evaluate_study(load_study(first), output=out)
    evaluate_study(load_study(second), output=out, fresh=True)
    assert json.loads((out / ".study.json").read_text())["path"] == str(second)


def test_files_of_the_user_are_kept_unless_fresh(quick, tables, write, tmp_path):
    file = write(quick, tables)
    out = tmp_path / "results"
    out.mkdir()
    (out / "log.txt").write_text("my own\n")
    (out / "table.csv").write_text("my own\n")
    with pytest.raises(StudyError, match=r"holds 'table\.csv', which this study has not written"):
        evaluate_study(load_study(file))
    assert (out / "table.csv").read_text() == "my own\n"
    evaluate_study(load_study(file), fresh=True)
    assert (out / "table.csv").read_text() != "my own\n"


def test_a_study_and_its_results_may_move_together(quick, tables, write, tmp_path):
    evaluate_study(load_study(write(quick, tables, tmp_path / "here")))
    shutil.move(tmp_path / "here", tmp_path / "there")
    evaluate_study(load_study(tmp_path / "there" / "study.toml"))


def test_the_index_names_every_file_and_what_to_open_first(quick, tables, write):
    folder = evaluate_study(load_study(write(quick, tables))).folder
    text = (folder / INDEX).read_text()
    assert text.splitlines()[0] == "Small"
    assert text.splitlines()[2:4] == [
        "Open first:",
        f"  {'table.txt':<21}  {next(f.about for f in FILES if f.name == 'table.txt')}",
    ]
    for one in folder.iterdir():
        if one.name != INDEX and not one.name.startswith("."):
            stem = one.name if one.name == "jobs" else one.name.rsplit(".", 1)[0] + "."
            assert stem in text, one.name
    # Nothing that a run may write is missing from the list of what there is.
    plain = {name for name in RESULT_FILES if not name.startswith("table")}
    assert plain - {INDEX} <= {file.name for file in FILES if file.about}
