"""Making the page: where it goes, the same bytes, and what is said without its libraries."""

import subprocess
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from baldur.cli import app
from baldur.evaluation.clinical.held_out import Resampled
from baldur.exceptions import InputError, MissingExtraError
from baldur.report import report_folder, report_result
from baldur.saving import save
from pages import write_folder


def test_the_command_writes_the_page_and_says_where(folder, model, tmp_path):
    kept = save(model, tmp_path / "model")
    out = tmp_path / "page.html"
    said = CliRunner().invoke(app, ["report", str(kept), "--out", str(out), "--title", "My title"])
    assert said.exit_code == 0, said.output
    assert str(out) in said.output
    text = out.read_text(encoding="utf-8")
    assert "<title>My title</title>" in text
    assert "secret-" not in text


def test_the_same_model_gives_the_same_bytes_and_no_address(model, model_page, data, tmp_path):
    X, y = data
    first = model.report(tmp_path / "a.html", X, np.array(["control", "patient"])[y]).read_bytes()
    assert model_page.read_bytes() == first
    # Names of XML languages are no addresses: nothing is asked for by them.
    rest = first.replace(b"http://www.w3.org/", b"")
    assert b"http://" not in rest
    assert b"https://" not in rest
    assert b"secret-" not in first


def test_the_page_of_results_is_what_to_open_first(run_page, folder, tmp_path):
    page = run_page
    assert page == folder / "report.html"
    assert "secret-" not in page.read_text(encoding="utf-8")
    lines = (folder / "README.txt").read_text().splitlines()
    assert lines[lines.index("Open first:") + 1].split()[0] == "report.html"
    assert page.read_bytes() == report_folder(folder, tmp_path / "again.html").read_bytes()


def test_without_the_extra_one_line_says_what_to_install(model, folder, tmp_path, monkeypatch):
    for module in ("jinja2", "matplotlib"):
        with monkeypatch.context() as patch:
            patch.setitem(__import__("sys").modules, module, None)
            with pytest.raises(MissingExtraError, match=r"baldur-multiview\[report\]") as said:
                model.report(tmp_path / "page.html")
            assert module in str(said.value)
            assert "\n" not in str(said.value)
    assert not (tmp_path / "page.html").exists()


def test_wrong_places_are_refused(model, folder, tmp_path):
    with pytest.raises(InputError, match="is not a folder"):
        report_folder(tmp_path / "nothing")
    kept = save(model, tmp_path / "model")
    with pytest.raises(InputError, match="--model can be combined with a folder of results"):
        report_folder(kept, model=kept)


def test_memory_and_folder_give_the_same_page(result, tmp_path):
    """A study writes its page from the tables in memory; reading them back changes nothing."""
    results = write_folder(result, tmp_path)
    memory = report_result(results, tmp_path / "memory.html").read_bytes()
    assert memory == report_folder(tmp_path, tmp_path / "folder.html").read_bytes()


def test_a_page_uses_the_resamples_of_the_results(result, tmp_path, monkeypatch):
    """In memory nothing is drawn anew; from a folder the bands of two figures share one draw."""
    results, draws, draw = write_folder(result, tmp_path), [], Resampled.__init__

    def counted(self, *arguments, **options):
        draws.append(arguments)
        draw(self, *arguments, **options)

    monkeypatch.setattr(Resampled, "__init__", counted)
    report_result(results, tmp_path / "memory.html")
    assert len(draws) == 0
    report_folder(tmp_path, tmp_path / "folder.html")
    assert len(draws) == 1


def test_a_page_of_results_needs_no_estimators(folder, tmp_path):
    """What fits and judges models is slow to import, and a finished study does not need it."""
    arguments = ["report", str(folder), "--out", str(tmp_path / "page.html")]
    code = (
        "import sys; from baldur.cli import app; app(sys.argv[1:], standalone_mode=False); "
        "print(sorted({'sklearn', 'baldur.baselines', 'baldur.inference'} & {*sys.modules}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
