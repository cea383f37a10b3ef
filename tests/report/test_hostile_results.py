"""Tables and records of strangers: refused by one line, before memory or time is spent on them."""

import json
import shutil
import tracemalloc

import pytest

from baldur.evaluation.results_reader import changed_files, read_grids, read_result_table
from baldur.exceptions import InputError
from baldur.report import report_folder
from pages import without_figures

SELECTION = (
    "model,view,feature,class,n_features,folds,frequency,mean_weight,mean_raw_weight,sign_agreement"
)


def refused(folder, name):
    """Return the line that a table is refused with."""
    with pytest.raises(InputError) as caught:
        read_result_table(folder, name)
    line = str(caught.value)
    assert "\n" not in line
    assert f"{name}.csv" in line
    return line


@pytest.mark.parametrize("name", ["predictions", "table", "weights"])
def test_tables_of_200_gb_are_refused_before_they_are_read(name, tmp_path):
    file = tmp_path / f"{name}.csv"
    with file.open("wb") as stream:
        stream.truncate(200 << 30)
        stream.seek(-1, 2)
        stream.write(b"\n")
    tracemalloc.start()
    try:
        assert "larger than" in refused(tmp_path, name)
        assert changed_files(tmp_path, {"files": {file.name: "0" * 64}}) == {file.name: "changed"}
        assert tracemalloc.get_traced_memory()[1] < 1 << 22
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "heading",
    [
        b"model,repeat,fold" + b"," * 10_000,
        b'"' + b"\n" * (1 << 20) + b'"',
        b'"\n",' * (1 << 18),
    ],
)
def test_headings_of_many_columns_or_lines_are_refused(heading, tmp_path):
    (tmp_path / "folds.csv").write_bytes(heading + b"\n")
    assert "heading" in refused(tmp_path, "folds")


def test_a_line_end_within_a_column_name_is_read(tmp_path):
    (tmp_path / "folds.csv").write_text('model,repeat,fold,"a\nb"\nm,0,0,1\n')
    assert list(read_result_table(tmp_path, "folds").columns)[-1] == "a\nb"


@pytest.mark.parametrize("cell", ["True", "inf", "-inf", "nan", "", "1.5", "-1"])
def test_frequencies_are_numbers_from_0_to_1(cell, tmp_path):
    rows = f"m,v,f,,1,1;1,{cell},0.1,0.1,1\n" * 2
    (tmp_path / "selection.csv").write_text(f"{SELECTION}\n{rows}")
    assert "'frequency'" in refused(tmp_path, "selection")


def test_truth_values_are_no_numbers(tmp_path):
    (tmp_path / "decision.csv").write_text(
        "model,threshold,net_benefit,low,high\n" + "m,True,1,1,1\n" * 3
    )
    assert "'threshold' should hold a number" in refused(tmp_path, "decision")


@pytest.mark.parametrize("number", [10**400, -(10**400), float("inf"), float("nan"), True, "1"])
def test_numbers_beyond_a_float_are_no_numbers(number, tmp_path):
    grid = {"shape": [number, 1, 1], "affine": [[1, 0, 0, 0]] * 4}
    (tmp_path / "grids.json").write_text(json.dumps({"v": grid}))
    with pytest.raises(InputError, match="grids"):
        read_grids(tmp_path)


def test_a_page_is_not_written_into_a_folder_behind_a_link(folder, tmp_path):
    place = shutil.copytree(folder, tmp_path / "results")
    (tmp_path / "outside").mkdir()
    (place / "report.html").unlink(missing_ok=True)
    (place / "report.html").symlink_to(tmp_path / "outside")
    with without_figures():
        page = report_folder(place)
    assert not list((tmp_path / "outside").iterdir())
    assert page == place / "report.html"
    assert page.is_file()
    assert not page.is_symlink()
