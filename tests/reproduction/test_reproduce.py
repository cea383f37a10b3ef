"""reproduce: from a cohort to the page, interrupted and continued, and with a user's own files."""

import importlib.util
import json
import shutil
from dataclasses import replace
from html import unescape
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import tomli_w
from scipy.stats import spearmanr

from baldur.datasets import make_multiview
from baldur.evaluation.design import open_comparison
from baldur.exceptions import InputError, StudyError
from baldur.paper import PaperClassifier
from baldur.reproduction import reproduce
from baldur.reproduction.page import (
    _rank_correlation,
    difference_table,
    html_of,
    markdown_of,
    page_of,
)
from baldur.reproduction.protocol import (
    DEFAULT,
    MAP,
    PAPER,
    PROTOCOLS,
    START_FACTORS,
    study_of_files,
)
from baldur.reproduction.run import _live_factors
from baldur.study import simulate_study
from baldur.study.data import read_study
from pages import without_figures
from reproduction.changed import changed_result
from reproduction.conftest import only_rows

SCALE = 0.0005
ROWS = ["LSVM-l1", "MV-PLS"]
REQUEST = {"scale": 0.5, "quick": False, "command": "baldur reproduce", "date": "2026-01-01"}


@pytest.fixture(autouse=True)
def quick_study(monkeypatch, few_resamples):
    """Two quick rows, the same date, and few resamples."""
    only_rows(monkeypatch, ROWS)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")


def test_the_page_of_a_run_loads_nothing_and_belongs_to_its_request(tmp_path):
    done = reproduce("biofind", tmp_path / "whole", scale=SCALE)
    text = done.page.read_text(encoding="utf-8")
    assert "<script" not in text
    title = "The paper&#39;s study of BioFIND, run again on simulated data"
    assert title in text
    assert "2023-11-14" in text
    assert done.evidence.n_folds == 5
    with pytest.raises(InputError, match=r"holds a reproduction with seed = 0, and this one has 3"):
        reproduce("biofind", tmp_path / "whole", scale=SCALE, seed=3)


def test_requests_that_cannot_be_met_are_refused_before_anything_is_written(tmp_path):
    with pytest.raises(InputError, match="biofind and adni, but got 'ppmi'"):
        reproduce("ppmi", tmp_path / "a")
    with pytest.raises(InputError, match="scale is for simulated data"):
        reproduce("adni", tmp_path / "a", scale=0.1, data=tmp_path)
    for scale in (0.0, -0.1, 1.5):
        with pytest.raises(InputError, match="a number above 0 and at most 1"):
            reproduce("biofind", tmp_path / "a", scale=scale)
    for seed in (-1, 2**32, 0.5):
        with pytest.raises(InputError, match="seed must be an integer from 0 to"):
            reproduce("biofind", tmp_path / "a", scale=SCALE, seed=seed)
    assert not (tmp_path / "a").exists()
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "letter.txt").write_text("mine")
    with pytest.raises(InputError, match="holds other files"):
        reproduce("biofind", tmp_path / "b", scale=SCALE)


def test_a_request_that_cannot_be_met_leaves_the_folder_free(files, tmp_path):
    """The same folder takes the corrected request."""
    with pytest.raises(InputError, match=r"at least 136 are needed"):
        reproduce("adni", tmp_path / "a", scale=0.001)
    with pytest.raises(InputError, match="is not a folder"):
        reproduce("biofind", tmp_path / "a", data=tmp_path / "nowhere")
    assert [file.name for file in (tmp_path / "a").iterdir() if file.name != ".lock"] == []
    given = renamed(files, tmp_path / "data")
    given["samples"]["id"] = "ID"
    (tmp_path / "data" / MAP).write_text(tomli_w.dumps(given))
    with pytest.raises(StudyError, match="no column 'ID'"):
        reproduce("biofind", tmp_path / "a", data=tmp_path / "data", quick=True)
    given["samples"]["id"] = "PATNO"
    (tmp_path / "data" / MAP).write_text(tomli_w.dumps(given))
    done = reproduce("biofind", tmp_path / "a", data=tmp_path / "data", quick=True)
    assert done.study.run.classes == ["Healthy", "Case"]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with files of the form that the documentation describes."""
    folder = tmp_path_factory.mktemp("cohort")
    simulate_study("biofind", folder, scale=SCALE)
    (folder / "study.toml").unlink()
    return folder


def test_a_users_files_are_found_by_their_names(files, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".0123.part").write_bytes(b"{")  # of a run that was killed
    done = reproduce("biofind", tmp_path / "out", data=files, quick=True)
    assert len(done.study.run.data) == 215
    assert done.study.run.data.n_features["sleep"] == 19
    assert done.study.run.classes == ["control", "PD"]
    text = done.markdown.read_text(encoding="utf-8")
    assert "The data are a user's own." in text
    assert "simulated" not in text
    request = json.loads((tmp_path / "out" / "reproduction.json").read_text())
    assert request["data"] == str(files.resolve())
    assert request["command"] == f"baldur reproduce biofind --quick --data {files.name}"
    for page in (text, done.page.read_text(encoding="utf-8")):
        assert files.name in page
        assert str(files.parent) not in page
    assert list((tmp_path / "out").rglob("*.part")) == []


def renamed(files, folder):
    """Copy the files under other names, with other columns, and a map that says which."""
    shutil.copytree(files, folder)
    samples = pd.read_csv(folder / "samples.csv")
    samples = samples.rename(columns={"sample": "PATNO", "diagnosis": "COHORT"})
    samples["COHORT"] = samples["COHORT"].map({"PD": "Case", "control": "Healthy"})
    samples.to_csv(folder / "Status.csv", index=False)
    (folder / "samples.csv").unlink()
    sleep = pd.read_csv(folder / "sleep.csv").rename(columns={"sample": "PATNO"})
    sleep.insert(0, "VISIT", "BL")
    sleep.to_csv(folder / "REM.csv", index=False)
    (folder / "sleep.csv").unlink()
    views = {v: {"file": f"{v}.csv"} for v in PROTOCOLS["biofind"].views}
    views["sleep"] = {"file": "REM.csv", "id_column": "PATNO", "exclude": ["VISIT"]}
    given = {
        "samples": {"file": "Status.csv", "id": "PATNO"},
        "outcome": {"column": "COHORT", "positive": "Case"},
        "views": views,
    }
    (folder / MAP).write_text(tomli_w.dumps(given))
    return given


def test_a_map_of_columns_gives_the_same_data(files, tmp_path):
    given = renamed(files, tmp_path / "data")
    biofind = PROTOCOLS["biofind"]
    plain = read_study(study_of_files(biofind, tmp_path / "a", files, 0, True))
    mapped = read_study(study_of_files(biofind, tmp_path / "b", tmp_path / "data", 0, True))
    assert mapped.positive == "Case"
    for view in biofind.views:
        np.testing.assert_array_equal(mapped.data.view(view).read(), plain.data.view(view).read())
    del given["views"]["sleep"]
    (tmp_path / "data" / MAP).write_text(tomli_w.dumps(given))
    with pytest.raises(InputError, match="the views must be neuropsychological, sleep"):
        study_of_files(biofind, tmp_path / "c", tmp_path / "data", 0, True)
    (tmp_path / "data" / MAP).write_text("seed = 3\n")
    with pytest.raises(InputError, match="must have the sections samples, outcome, views"):
        study_of_files(biofind, tmp_path / "c", tmp_path / "data", 0, True)


@pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning")
def test_live_factors_are_counted_from_several():
    """The row itself starts with one factor, so that its one live factor would show nothing."""
    sim = make_multiview(80, {"a": 5, "b": 10}, informative={"a": 3}, random_state=0)
    comparison = open_comparison([PAPER], sim.data, sim.target)
    starts = []

    class Watched(PaperClassifier):
        def fit(self, X, y, **options):
            starts.append(self.n_factors)
            return super().fit(X, y, **options)

    watched = replace(comparison.models[0], estimator=Watched(bound="jaakkola", max_iter=5))
    assert _live_factors(replace(comparison, models=[watched])) <= START_FACTORS
    assert starts == [START_FACTORS]
    assert watched.estimator.n_factors == "auto"


@pytest.mark.parametrize(
    ("section", "value", "said"),
    [
        ("samples", 1, r"samples must be a section, \[samples\], but got 1"),
        ("samples", {"id": "PATNO"}, "samples needs the name of its file.* but has nothing"),
        ("outcome", "COHORT", "outcome must be a section"),
        ("outcome", {"column": "COHORT"}, "outcome must have column, and positive"),
        ("views", [], "views must be a section"),
        ("views", {}, "but got none"),
        ("sleep", "REM.csv", r"views\.sleep must be a section"),
        ("sleep", {"id_column": "PATNO"}, r"views\.sleep needs the name of its file"),
        ("sleep", {"file": [1, 2]}, r"views\.sleep needs .* but has \[1, 2\]"),
    ],
)
def test_a_map_of_columns_in_another_form_is_refused(files, tmp_path, section, value, said):
    given = renamed(files, tmp_path / "data")
    (given["views"] if section == "sleep" else given)[section] = value
    (tmp_path / "data" / MAP).write_text(tomli_w.dumps(given))
    with pytest.raises(InputError, match=said):
        study_of_files(PROTOCOLS["biofind"], tmp_path / "a", tmp_path / "data", 0, True)
    assert not (tmp_path / "a").exists()


def test_a_file_that_is_not_there_is_named(files, tmp_path):
    shutil.copytree(files, tmp_path / "data")
    (tmp_path / "data" / "demographical.csv").unlink()
    with pytest.raises(InputError, match=r"has no file demographical with .*columns\.toml"):
        study_of_files(PROTOCOLS["biofind"], tmp_path / "a", tmp_path / "data", 0, True)
    with pytest.raises(InputError, match="is not a folder"):
        study_of_files(PROTOCOLS["biofind"], tmp_path / "a", tmp_path / "nowhere", 0, True)


def test_images_of_a_user_are_found_with_their_mask(tmp_path):
    folder = tmp_path / "data"
    for view in ("t1_intensity", "grey_matter"):
        (folder / view).mkdir(parents=True)
        (folder / view / "p1.nii.gz").write_bytes(b"")
    (folder / "t1_intensity_mask.nii.gz").write_bytes(b"")
    tables = ("samples", "grey_matter_volume", "white_matter_volume", "csf_volume")
    for name in tables:
        (folder / f"{name}.csv").write_text("sample\n")
    config = study_of_files(PROTOCOLS["adni"], tmp_path / "out", folder, 0, False)
    assert Path(config.views["t1_intensity"].mask).name == "t1_intensity_mask.nii.gz"
    assert config.views["grey_matter"].mask is None
    assert config.views["grey_matter"].id_pattern == "{id}.nii.gz"
    assert (config.folds.outer, config.folds.inner) == (10, 10)


def test_the_page_says_all_of_it(evidence, tmp_path, monkeypatch):
    only_rows(monkeypatch, [*ROWS, "SGP+ARD", PAPER, DEFAULT])
    (tmp_path / "figures").mkdir()
    page = page_of(evidence, REQUEST, tmp_path)
    markdown, html = markdown_of(page), html_of(page)
    for text in (markdown, unescape(html).replace("\u00a0", " ")):
        assert "SGP+ARD: not run: too wide." in text
        assert "with 50 % of the paper's" in text
        assert "This run is not complete: 2 of 5 models have no figures" in text
        assert "This is a quick run" not in text
    assert "Command: `baldur reproduce`, started on 2026-01-01." in markdown
    assert "Command: <code>baldur reproduce</code>, started on 2026-01-01." in html
    assert "settings are selected by AUC" in markdown
    quick = markdown_of(page_of(evidence, {**REQUEST, "quick": True}, tmp_path))
    assert "This is a quick run" in quick
    assert "settings are selected by AUC" not in quick
    assert "No settings were searched" in quick
    sizes = "The paper gives the number of voxels of the T1 intensities alone"
    assert (sizes in markdown) == (evidence.protocol.name == "adni")
    assert ("## Brain maps" in markdown) == (evidence.protocol.name == "adni")
    for file in sorted((tmp_path / "figures").iterdir()):
        assert f"(figures/{file.name})" in markdown
    counts = 2 if evidence.protocol.name == "biofind" else 4
    assert len(list((tmp_path / "figures").iterdir())) == counts


def test_a_page_is_copied_into_the_documentation_as_it_is(tmp_path):
    file = Path(__file__).resolve().parents[2] / "docs" / "copy_reproduction.py"
    spec = importlib.util.spec_from_file_location("copy_reproduction", file)
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    folder, pages = tmp_path / "run", tmp_path / "docs"
    for name, content in {
        "run/reproduction.json": json.dumps({"study": "adni"}),
        "run/reproduction.md": "new",
        "run/figures/adni-brain-paper.png": "new",
        "docs/adni.md": "old",
        "docs/figures/adni-old.png": "old",
        "docs/figures/biofind-features-paper.png": "other",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    script.copy_page(folder, pages)
    found = {str(f.relative_to(pages)): f.read_text() for f in pages.rglob("*.*")}
    assert found == {
        "adni.md": "new",
        "figures/adni-brain-paper.png": "new",
        "figures/biofind-features-paper.png": "other",
    }
    with pytest.raises(SystemExit, match="is missing: run baldur reproduce"):
        script.copy_page(tmp_path / "nothing", pages)


# -- Tables of the page: orders of rows, and rows that were not run -------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_the_correlation_is_spearmans_and_its_p_value_that_of_all_orders(seed):
    """With five rows, the last two tied in the paper, all 120 orders can be listed."""
    ours = np.random.default_rng(seed).normal(size=5)
    printed = [0.5, 0.6, 0.7, 0.8, 0.8]
    rho, p = _rank_correlation(printed, ours)
    assert rho == pytest.approx(spearmanr(printed, ours).statistic)
    every = [spearmanr(printed, order).statistic for order in permutations(ours)]
    assert p == pytest.approx(np.mean(np.abs(every) >= abs(rho) - 1e-9), abs=0.02)


def test_rows_that_are_all_tied_have_no_order():
    assert np.isnan(_rank_correlation([1.0, 1.0, 1.0, 1.0], [1.0, 2.0, 3.0, 4.0])).all()


def without(evidence, *models):
    """Return the evidence without the rows of some models."""
    table = evidence.result.table()
    return changed_result(evidence, table=lambda: table[~table["model"].isin(models)])


def test_a_row_without_results_is_not_said_to_have_some(evidence, tmp_path):
    request = {"scale": 1, "quick": False, "command": "baldur reproduce", "date": "2026-01-01"}

    def text(*models):
        with without_figures():
            return markdown_of(page_of(without(evidence, *models), request, tmp_path))

    table = difference_table(without(evidence, DEFAULT))
    assert not any("our default" in column.name for column in table.columns)
    assert difference_table(without(evidence, PAPER, DEFAULT)) is None
    assert difference_table(without(evidence, *evidence.baselines)) is None
    assert "The rows that would be compared were not run." in text(PAPER, DEFAULT)
    assert "`BaldurClassifier`, has no results in this run" in text(DEFAULT)
    assert "`BaldurClassifier`, was run on the same folds" in text()
