"""The page of several outcomes: names from strangers, and folders that are damaged."""

import json
import re

import numpy as np
import pandas as pd
import pytest

from baldur import BaldurClassifier
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError
from baldur.report import report_folder
from pages import write_folder
from report.conftest import NASTY, small_data

pytestmark = pytest.mark.usefixtures("few_resamples")


@pytest.fixture(scope="module")
def result(few_resamples):
    X, y = small_data(60)
    rng = np.random.default_rng(0)
    Y = {name: y ^ (rng.uniform(size=60) < 0.3) for name in NASTY[:2]}
    return nested_cv(["Ridge logistic", "Dummy"], X, pd.DataFrame(Y), outer=2, inner=2)


@pytest.fixture
def folder(result, tmp_path):
    write_folder(result, tmp_path)
    return tmp_path


def test_names_of_outcomes_are_shown_and_never_run(result, tmp_path):
    text = result.report(tmp_path / "page.html").read_text()
    assert "mean AUC over 2 outcomes" in text
    assert "&lt;script&gt;document.title" in text
    scripts = re.findall(r"<script>(.*?)</script>", text, flags=re.DOTALL)
    assert not any("document.title='run'" in script for script in scripts)
    assert "<img src=x" not in text


def test_folders_of_outcomes_have_plain_and_different_names(tmp_path):
    names = [*NASTY, "a/../b", "..", "A_b", "a b", " "]
    Y = np.random.default_rng(0).integers(0, 2, (40, len(names)))
    result = nested_cv(["Dummy"], np.zeros((40, 1)), pd.DataFrame(Y, columns=names), outer=2)
    write_folder(result, tmp_path)
    places = [place.name for place in (tmp_path / "outcomes").iterdir()]
    assert len({place.casefold() for place in places}) == len(names)
    for place in places:
        assert re.fullmatch(r"[A-Za-z0-9_-]{1,70}", place)


@pytest.mark.parametrize("name", ["intervals.csv", "table.csv", "run.json"])
def test_a_folder_without_a_file_of_the_mean_is_refused_in_one_line(folder, name):
    (folder / name).unlink()
    with pytest.raises(InputError) as said:
        report_folder(folder)
    assert name in str(said.value)
    assert "\n" not in str(said.value)


def test_a_folder_without_one_of_its_outcomes_is_refused_in_one_line(folder):
    record = json.loads((folder / "run.json").read_text())
    record["outcomes"].append("../../elsewhere")
    (folder / "run.json").write_text(json.dumps(record))
    with pytest.raises(InputError, match="elsewhere holds no results") as said:
        report_folder(folder)
    assert str(folder / "outcomes" / "elsewhere") in str(said.value)


def test_a_changed_table_of_an_outcome_is_named_on_the_page(folder):
    place = next((folder / "outcomes").iterdir())
    (place / "calibration.csv").unlink()
    text = report_folder(folder).read_text()
    assert "calibration.csv is missing" in text
    assert text.count('<details class="outcome"') == 2


def test_the_page_of_a_model_of_labels_shows_its_people_in_the_latent_space(one_repeat, tmp_path):
    X, y = small_data(60)
    rng = np.random.default_rng(0)
    Y = pd.DataFrame({name: y ^ (rng.uniform(size=60) < 0.2) for name in ("stroke", "fall")})
    model = BaldurClassifier(members=("pooled",), n_factors=2).fit(X, Y.to_numpy())
    text = model.report(tmp_path / "page.html", X, Y).read_text()
    assert "Latent scores of these people" in text
    assert "People are not listed for a model with several outcomes" in text
    counts = re.search(r'id="t-participants".*?</table>', text, flags=re.DOTALL)[0]
    for name in Y:
        assert re.search(rf">{name}</td><td[^>]*>{int(Y[name].sum())}<", counts)
