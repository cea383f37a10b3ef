"""Full disks, read-only places and kills: nothing lost, nothing half written, one clear line."""

import resource
import shutil

import numpy as np
import pandas as pd
import pytest

from baldur.exceptions import OutputError
from baldur.report import report_folder
from baldur.saving import load, save
from baldur.study import evaluate_study, fit_study, load_study
from cli.conftest import fitting
from cli.places import copy_of, hidden, jobs_in, results
from faults import StoppedError, stopped_after
from pages import numbered_pages


def one_line(code, err, *words):
    assert code == 2, err
    lines = [line for line in err.strip().splitlines() if line.startswith("Error: ")]
    assert len(lines) == 1, err
    assert "Traceback" not in err
    for word in words:
        assert word in lines[0]


@pytest.fixture(scope="module")
def model(quick):
    """A fitted model of the quick study."""
    return fit_study(load_study(fitting(quick[0])))[0]


# -- evaluate ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kilobytes", [24, 100])
def test_evaluate_on_a_full_disk_keeps_its_jobs_and_continues(call, quick, disk, kilobytes):
    study, whole = quick
    small = disk(f"{kilobytes}k")
    out = small.path / "out"
    code, _, err = call("evaluate", study, "--out", out, "--quiet")
    one_line(code, err, str(out), "No space left on device", "free some space")
    assert hidden(out) == []
    assert results(out) == {}
    before = jobs_in(out)
    assert len(before) == (12 if kilobytes == 100 else len(before))
    small.resize("8m")
    assert call("evaluate", study, "--out", out, "--quiet")[0] == 0
    assert results(out) == whole
    assert before.items() <= jobs_in(out).items()


@pytest.mark.slow
def test_ten_full_disks(call, quick, disk):
    study, whole = quick
    for i, kilobytes in enumerate(np.random.default_rng(0).integers(20, 110, 10)):
        small = disk(f"{kilobytes}k", f"disk{i}")
        out = small.path / "out"
        code, _, err = call("evaluate", study, "--out", out, "--quiet")
        one_line(code, err, "No space left on device")
        assert hidden(out) == []
        assert results(out) == {}
        before = jobs_in(out)
        small.resize("8m")
        assert call("evaluate", study, "--out", out, "--quiet")[0] == 0
        assert results(out) == whole
        assert before.items() <= jobs_in(out).items()
        assert hidden(out) == []
    print("10 full disks: no job lost, same bytes")


def test_older_results_stay_where_newer_ones_find_no_place(call, quick, disk, tmp_path):
    study = copy_of(quick[0], tmp_path / "study")
    small = disk("8m")
    out = small.path / "out"
    assert call("evaluate", study, "--out", out, "--quiet")[0] == 0
    before = results(out)
    study.write_text("seed = 1\n" + study.read_text())
    assert call("evaluate", study, "--out", tmp_path / "free", "--quiet")[0] == 0
    # The new jobs are done; what is left to write are the results.
    shutil.copytree(tmp_path / "free" / "jobs", out / "jobs", dirs_exist_ok=True)
    small.fill(leave=16384)
    code, _, err = call("evaluate", study, "--out", out, "--quiet")
    one_line(code, err, "No space left on device")
    assert results(out) == before
    assert hidden(out) == []


def test_a_read_only_place_is_named_and_left_as_it_is(call, quick, model, disk):
    study, whole = quick
    baldur = fitting(study)
    place = disk("8m")
    out = place.path / "out"
    shutil.copytree(study.parent / "whole", out)
    save(model, place.path / "model")
    (place.path / "p.csv").write_text("old")
    place.read_only()
    for arguments in (
        ("evaluate", study, "--out", out, "--quiet"),
        ("evaluate", study, "--out", place.path / "new", "--quiet"),
        ("fit", baldur, "--out", place.path / "model", "--force"),
        ("fit", baldur, "--out", place.path / "new"),
        ("predict", place.path / "model", study, "--out", place.path / "p.csv", "--quiet"),
        ("validate", place.path / "model", study, "--out", place.path / "new", "--quiet"),
        ("report", out, "--quiet"),
        ("init", place.path / "study.toml"),
        ("simulate", "multiview", "--out", place.path / "sim"),
    ):
        code, _, err = call(*arguments)
        one_line(code, err, str(place.path), "Read-only file system")
    with pytest.raises(OutputError, match="Read-only"):
        save(model, place.path / "model", overwrite=True)
    assert results(out) == whole
    assert load(place.path / "model", study=True).details == model.details
    assert (place.path / "p.csv").read_text() == "old"


def test_stopped_anywhere_in_writing_results_the_next_run_finishes(quick, tmp_path, monkeypatch):
    """Jobs are there; one step of writing the results after another is the last one."""
    study, whole = quick
    loaded = load_study(study)
    for last in range(0, 400, 40):
        out = tmp_path / str(last)
        shutil.copytree(study.parent / "whole" / "jobs", out / "jobs")
        try:
            with stopped_after(monkeypatch, last):
                evaluate_study(loaded, output=out)
        except StoppedError:
            found = results(out)
            assert found.items() <= whole.items()
            evaluate_study(loaded, output=out)
            assert results(out) == whole
            assert hidden(out) == []
        else:
            break
    assert 40 <= last < 360


# -- fit, save and predict -----------------------------------------------------------------------


def test_fit_on_a_full_disk_leaves_the_old_model_or_none(call, quick, model, disk):
    study = fitting(quick[0])
    small = disk("1m")
    kept = save(model, small.path / "model")
    before = {f.name: f.read_bytes() for f in kept.iterdir()}
    small.fill()
    for arguments in (("--out", kept, "--force"), ("--out", small.path / "new")):
        code, _, err = call("fit", study, *arguments)
        one_line(code, err, "No space left on device")
    assert {f.name: f.read_bytes() for f in kept.iterdir()} == before
    assert not (small.path / "new").exists()


def test_a_save_stopped_at_any_step_leaves_the_old_model_or_the_new(model, tmp_path, monkeypatch):
    other = type(model)(model.estimator, model.classes, details={"is": "new"})
    for last in range(100):
        folder = tmp_path / f"old{last}"
        save(model, folder)
        try:
            with stopped_after(monkeypatch, last):
                save(other, folder, overwrite=True)
        except StoppedError:
            assert load(folder, study=True).details in (model.details, other.details)
            save(other, folder, overwrite=True)
        else:
            break
        assert load(folder, study=True).details == other.details
        assert [f.name for f in hidden(folder)] == []
        # In a new place: the whole model or nothing that stands in the way of the next one.
        new = tmp_path / f"new{last}"
        try:
            with stopped_after(monkeypatch, last):
                save(model, new)
        except StoppedError:
            save(model, new, overwrite=True)
        assert load(new, study=True).details == model.details
    assert 10 < last < 99


def test_predict_on_a_full_disk_leaves_the_old_file(call, quick, model, disk, tmp_path):
    study, _ = quick
    save(model, tmp_path / "model")
    small = disk("64k")
    out = small.path / "p.csv"
    assert call("predict", tmp_path / "model", study, "--out", out, "--quiet")[0] == 0
    before = out.read_bytes()
    assert len(pd.read_csv(out)) == 40
    small.fill()
    code, _, err = call("predict", tmp_path / "model", study, "--out", out, "--quiet")
    one_line(code, err, str(out), "No space left on device")
    assert out.read_bytes() == before
    assert sorted(f.name for f in small.path.iterdir()) == ["filler", "p.csv"]


# -- report --------------------------------------------------------------------------------------


@pytest.fixture
def quickly():
    with numbered_pages():
        yield


def test_report_on_a_full_disk_leaves_the_old_page(call, quick, quickly, disk):
    small = disk("1m")
    out = small.path / "out"
    shutil.copytree(quick[0].parent / "whole", out, ignore=shutil.ignore_patterns("jobs"))
    assert call("report", out, "--quiet")[0] == 0
    before = {f.name: f.read_bytes() for f in out.iterdir()}
    small.fill()
    code, _, err = call("report", out, "--quiet")
    one_line(code, err, "report.html", "No space left on device")
    assert {f.name: f.read_bytes() for f in out.iterdir()} == before
    assert before["report.html"].startswith(b"page 0")


def test_a_report_stopped_at_any_step_leaves_a_whole_page(quick, quickly, tmp_path, monkeypatch):
    out = tmp_path / "out"
    shutil.copytree(quick[0].parent / "whole", out, ignore=shutil.ignore_patterns("jobs"))
    report_folder(out)
    before = results(out)
    for last in range(99):
        try:
            with stopped_after(monkeypatch, last):
                report_folder(out)
        except StoppedError:
            found = results(out)
            page = found["report.html"]
            assert page.startswith(b"page ")
            assert len(page) - len(before["report.html"]) in (0, 1)
            assert {**found, "report.html": before["report.html"]} == before
        else:
            break
    assert 2 < last < 99
    # Parts that were never finished; the next evaluation removes them.
    assert {file.suffix for file in hidden(out)} <= {".part"}


# -- other limits --------------------------------------------------------------------------------


def test_a_full_temporary_folder_is_named(call, quick, disk, monkeypatch, tmp_path):
    small = disk("16k")
    monkeypatch.setattr("tempfile.tempdir", str(small.path))
    small.fill()
    code, _, err = call("evaluate", quick[0], "--out", tmp_path / "out", "--quiet", "--jobs", 2)
    one_line(code, err, str(small.path), "No space left on device")
    small.read_only()
    code, _, err = call("evaluate", quick[0], "--out", tmp_path / "out", "--quiet", "--jobs", 2)
    one_line(code, err, "Read-only")


def test_a_limit_on_file_sizes_is_named(call, quick, tmp_path):
    out = tmp_path / "out"
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
    try:
        code, _, err = call("evaluate", quick[0], "--out", out, "--quiet")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    one_line(code, err, "File too large", "ulimit -f")
    assert hidden(out) == []
    evaluate_study(load_study(quick[0]), output=out)
    assert results(out) == quick[1]


def test_output_to_a_full_disk_is_one_line(run, quick, model, tmp_path):
    save(model, tmp_path / "model")
    with open("/dev/full", "wb") as full:
        done = run("predict", tmp_path / "model", quick[0], "--out", "-", "--quiet", stdout=full)
    one_line(done.returncode, done.stderr, "No space left on device")
