"""Where results go: below the study's folder or where --out says, never through a link."""

import json
import os
import shutil
import stat

import pytest

from baldur.cli import main
from baldur.core.escape import csv_text
from baldur.core.paths import open_to_append
from baldur.evaluation.result_files import FILES, INDEX, RESULT_FILES
from baldur.exceptions import InputError, StudyError
from baldur.study import evaluate_study, load_study
from baldur.study.results_folder import MARK, add_to_log, claim_folder, results_folder


def snapshot(folder):
    """Every file below a folder with its content, links as such."""
    found = {}
    for path in folder.rglob("*"):
        content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
        target = os.readlink(path) if path.is_symlink() else ""
        found[path.relative_to(folder).as_posix()] = (target, content)
    return found


@pytest.fixture
def victim(tmp_path):
    folder = tmp_path / "victim"
    (folder / "jobs" / "ab").mkdir(parents=True)
    (folder / "table.csv").write_text("precious")
    (folder / "log.txt").write_text("precious")
    (folder / "jobs" / "ab" / "x.npz").write_text("precious")
    return folder


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "study"


OUTSIDE = ["../victim", "..", ".", "./", "a/..", "results/../../victim", "{victim}", "/", "link",
           "link/new", "a/../link/x"]  # fmt: skip


@pytest.mark.parametrize("output", OUTSIDE)
@pytest.mark.parametrize("fresh", [False, True])
def test_the_study_cannot_name_a_place_outside(
    output, fresh, parts, tables, write, folder, victim, tmp_path
):
    parts["output"] = output.format(victim=victim)
    file = write(parts, tables, folder)
    (folder / "link").symlink_to(victim)
    before = snapshot(tmp_path)
    with pytest.raises(StudyError, match=r"output: .*(does not lie below|holds the study)"):
        evaluate_study(load_study(file), fresh=fresh)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("output", [".", "..", "{here}"])
def test_even_out_cannot_replace_the_study(output, parts, tables, write, folder, monkeypatch):
    file = write(parts, tables, folder)
    monkeypatch.chdir(folder)
    before = snapshot(folder)
    with pytest.raises(StudyError, match="holds the study itself"):
        evaluate_study(load_study(file), output=output.format(here=folder))
    assert snapshot(folder) == before


def test_a_folder_of_other_things_is_left_alone(parts, tables, write, folder, tmp_path):
    parts["output"] = "mine"
    file = write(parts, tables, folder)
    (folder / "mine").mkdir()
    (folder / "mine" / "views.csv").write_text("precious")
    for output in (None, folder / "mine"):
        with pytest.raises(StudyError, match="other files"):
            evaluate_study(load_study(file), output=output)
    assert (folder / "mine" / "views.csv").read_text() == "precious"


LINKS = ["log.txt", "jobs", "table.csv", "jobs/ab", "jobs/ab/x.npz", "study.toml", "deep/er/link"]


@pytest.mark.parametrize("link", LINKS)
def test_links_among_the_results_are_not_written_through(
    link, parts, tables, write, folder, victim, tmp_path
):
    file = write(parts, tables, folder)
    place = folder / "results" / link
    place.parent.mkdir(parents=True)
    (folder / "results" / "log.txt").touch() if link != "log.txt" else None
    place.symlink_to(victim / link if (victim / link).exists() else victim)
    before = snapshot(tmp_path)
    with pytest.raises(StudyError, match="is a link"):
        evaluate_study(load_study(file), fresh=True)
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["log.txt", ".lock", ".study.json", "jobs/ab"])
def test_pipes_among_the_results_are_not_waited_for(name, parts, tables, write, folder):
    file = write(parts, tables, folder)
    place = folder / "results" / name
    place.parent.mkdir(parents=True)
    os.mkfifo(place)
    (folder / "results" / "log.txt").touch()
    with pytest.raises(StudyError, match="pipe"):
        results_folder(load_study(file))


@pytest.mark.parametrize("content", [b"[" * 200_000, b"\xff", b"[1]", b"sparse"])
def test_a_damaged_mark_is_no_mark(content, parts, tables, write, folder):
    config = load_study(write(parts, tables, folder))
    place = results_folder(config)
    mark = place / MARK
    mark.write_bytes(content)
    if content == b"sparse":
        os.truncate(mark, 200 << 30)
    claim_folder(config, place, ["table.csv"], fresh=False)
    assert b"study.toml" in mark.read_bytes()


def test_the_usual_places_are_fine(parts, tables, write, folder, tmp_path):
    file = write(parts, tables, folder)
    study = load_study(file)
    assert results_folder(study) == (folder / "results").resolve()
    assert results_folder(study, tmp_path / "a" / "b") == (tmp_path / "a" / "b").resolve()
    (tmp_path / "alias").symlink_to(tmp_path / "a")
    # Whoever runs the study may name a link of their own.
    assert results_folder(study, tmp_path / "alias" / "b") == (tmp_path / "a" / "b").resolve()


def make_link(path, target):
    path.symlink_to(target)


def make_hard_link(path, target):
    path.hardlink_to(target)


def make_pipe(path, target):
    os.mkfifo(path)


def make_folder(path, target):
    path.mkdir()


@pytest.mark.skipif(os.name != "posix", reason="links and pipes")
@pytest.mark.parametrize("make", [make_link, make_hard_link, make_pipe, make_folder])
def test_the_log_is_a_plain_file_or_not_written(make, tmp_path):
    target = tmp_path / "precious"
    target.write_text("precious")
    make(tmp_path / "log.txt", target)
    with pytest.raises(InputError, match="plain file"):
        open_to_append(tmp_path / "log.txt")
    assert target.read_text() == "precious"


def test_a_line_of_the_log_is_one_line(tmp_path):
    add_to_log(tmp_path, "model: first\n2026-01-01 00:00:00 finished \x1b[2J")
    add_to_log(tmp_path, "second")
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert len(lines) == 2
    assert "\x1b" not in lines[0]
    assert stat.S_ISREG((tmp_path / "log.txt").stat().st_mode)


CONTROL = {
    "model": lambda parts: parts["models"].append(
        {"name": "x\n2026 fake", "estimator": "sklearn.svm.SVC"}
    ),
    "view": lambda parts: parts["views"].update({"a\x1b[2J": {"file": "blood.csv"}}),
    "title": lambda parts: parts.update(title="\x1b]0;owned\x07"),
    "output": lambda parts: parts.update(output="re\nsults"),
    "column": lambda parts: parts["outcome"].update(column="a\rb"),
    "view option": lambda parts: parts["views"]["blood"].update(name="x\ny"),
    "class": lambda parts: parts["outcome"].update(positive="pa\u202etient"),
}


@pytest.mark.parametrize("case", CONTROL)
def test_control_characters_in_names_of_the_study(case, parts, tables, write, monkeypatch, capsys):
    CONTROL[case](parts)
    file = write(parts, tables)
    monkeypatch.setattr("sys.argv", ["baldur", "evaluate", str(file)])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 2
    said = capsys.readouterr().err
    assert "control characters" in said
    assert "\x1b" not in said
    assert len(said.strip().splitlines()) == 1


def test_a_tabulator_may_separate(parts, tables, write, tmp_path):
    parts["views"]["blood"] = {"file": "blood.txt", "separator": "\t"}
    file = write(parts, tables)
    tables["blood"].to_csv(tmp_path / "blood.txt", sep="\t", index=False)
    assert load_study(file).views["blood"].separator == "\t"


SLOW_TOML = {
    "long key": ".".join("a" * 400_000) + " = 1",
    "spaced key": " . ".join("a" * 300_000) + " = 1",
    "quoted key": ".".join(['"a"'] * 200_000) + " = 1",
    "inline key": "b = {" + ".".join("a" * 300_000) + " = 1}",
    "deep list": "a = " + "[" * 200_000,
    "deep table": "a = " + "{a = " * 100_000,
    "large": "# " + "x" * (1 << 21),
}


@pytest.mark.parametrize("case", SLOW_TOML)
def test_study_files_made_to_be_slow(case, tmp_path):
    (tmp_path / "s.toml").write_text(SLOW_TOML[case])
    with pytest.raises(StudyError):
        load_study(tmp_path / "s.toml")


def test_devices_are_no_study_files(tmp_path):
    (tmp_path / "s.toml").symlink_to("/dev/zero")
    with pytest.raises(StudyError, match="regular"):
        load_study(tmp_path / "s.toml")


def test_results_of_formula_ids_are_no_formulas(parts, tables, write):
    """Ids, classes and features that look like formulas, from the files to the results."""
    change = {"p00": "=cmd|' /C calc'!A0", "p01": "@x", "p02": "-1+1", "p03": "'=y"}
    for name, frame in tables.items():
        frame["sample"] = frame["sample"].replace(change)
        tables[name] = frame.rename(columns={"f0": "=f0", "blood_0": "=blood_0"})
    parts["models"] = ["Dummy"]
    study_file = write(parts, tables)
    for name, frame in tables.items():
        # As our own commands write tables: read back without loss.
        (study_file.parent / f"{name}.csv").write_text(csv_text(frame))
    done = evaluate_study(load_study(study_file))
    for file in done.folder.glob("*.csv"):
        for line in file.read_text().splitlines():
            for cell in line.split(","):
                cell = cell.strip('"')
                assert not cell.startswith(("=", "@", "+", "-")) or float(cell) is not None, cell
    assert set(change.values()) <= set(done.run.predictions["sample"])


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
