"""One study with a text column, a site column and a covariate: its saved model works everywhere.

`baldur fit` trains and saves the model. Each case asks the loaded model for one thing and compares
the answer with that of the model before it was saved, or with its class probabilities.
"""

import json
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import tomli_w
from typer.testing import CliRunner

import baldur
from baldur import plots
from baldur.cli import app
from baldur.exceptions import InputError
from baldur.saving import load
from baldur.saving.printed_model import r_code
from baldur.study import fit_study, load_study
from baldur.study.predict import read_new_samples

N_TRAINING, N_NEW = 60, 40
SITES = ["oslo", "rome", "lima"]
MODEL = {"name": "BALDUR", "settings": {"members": ["pooled"]}}


def make_cohort(n, seed, sites=SITES):
    """Return the tables of a cohort whose outcome shows in a text column, numbers and blood."""
    rng = np.random.default_rng(seed)
    ids = [f"s{seed}p{i:02d}" for i in range(n)]
    ill = rng.permutation(np.arange(n) % 2).astype(bool)
    age = rng.integers(40, 80, n)
    site = np.resize(sites, n)
    shift = pd.Series(site).map({"oslo": 0.0, "rome": 2.0, "lima": -1.0}).fillna(0.5).to_numpy()
    clinical = pd.DataFrame(
        {
            "sample": ids,
            "gait": np.where(rng.random(n) < 0.7, np.where(ill, "slow", "normal"), "unsteady"),
            "tremor": rng.normal(size=n) + 1.5 * ill + 0.05 * age,
            "weight": rng.normal(70, 9, n) + 3 * shift,
        }
    )
    cells = rng.normal(size=(n, 12)) + shift[:, None] + 0.03 * age[:, None]
    cells[:, 0] += 1.2 * ill
    cells[rng.random((n, 12)) < 0.02] = np.nan
    blood = pd.DataFrame(cells, columns=[f"protein{j}" for j in range(12)])
    blood.insert(0, "sample", ids)
    samples = pd.DataFrame(
        {
            "sample": ids,
            "diagnosis": np.where(ill, "patient", "control"),
            "age": pd.array(age, dtype="Int64"),
            "site": site,
        }
    )
    return {"samples": samples, "clinical": clinical, "blood": blood}


def write_cohort(folder, tables, **parts):
    """Write tables and a study file about them; returns the study file."""
    folder.mkdir()
    for name, frame in tables.items():
        frame.to_csv(folder / f"{name}.csv", index=False)
    study = {
        "title": "Every role",
        "samples": {"file": "samples.csv", "id": "sample", "site": "site"},
        "outcome": {"column": "diagnosis", "positive": "patient"},
        "views": {name: {"file": f"{name}.csv"} for name in ("clinical", "blood")},
        **parts,
    }
    (folder / "study.toml").write_text(tomli_w.dumps(study))
    return folder / "study.toml"


def run(*words):
    """Run the command line and return what it printed."""
    done = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.output


@pytest.fixture(scope="module")
def case(tmp_path_factory, one_repeat):
    """The model before it was saved and after it was loaded, and a second cohort."""
    folder = tmp_path_factory.mktemp("everywhere")
    training = write_cohort(
        folder / "training",
        make_cohort(N_TRAINING, 1),
        covariates={"regress_out": ["age"]},
        harmonise={"by": "site"},
        models=[MODEL],
    )
    tables = make_cohort(N_NEW, 2, [*SITES, "cairo"])
    # A missing covariate, a missing site, an unknown level, and a person without a view.
    tables["samples"].loc[0, "age"] = None
    tables["samples"].loc[1, "site"] = None
    tables["clinical"].loc[2, "gait"] = "frozen"
    tables["blood"] = tables["blood"].drop(index=3)
    new = write_cohort(folder / "new", tables)
    run("fit", training, "--out", folder / "model", "--quiet")
    before, _ = fit_study(load_study(training))
    saved = load(folder / "model", study=True)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        rows, samples, _ = read_new_samples(saved, load_study(new, predicting=True))
    return SimpleNamespace(
        folder=folder,
        path=folder / "model",
        new=new,
        saved=saved,
        loaded=baldur.load(folder / "model"),
        before=before.estimator,
        rows=rows,
        y=samples["diagnosis"].to_numpy(dtype=str),
    )


@pytest.fixture(autouse=True)
def quiet():
    """New people are few and some of their values are new; no case is about the warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def test_the_study_uses_every_role(case):
    preparation = case.loaded.preparation_
    steps = {type(step).__name__ for step in preparation.steps_}
    assert {"CategoryEncoder", "SiteHarmoniser"} <= steps
    assert preparation.sample_columns == ["site", "age"]
    assert preparation.level_columns["clinical"]["gait=slow"] == "gait"
    # The model depends on each of them, so that no case compares constants.
    p = case.loaded.predict_proba(case.rows)[:, 1]
    table = case.rows.samples
    for column, value in (("age", 90), ("site", "oslo")):
        other = case.rows.with_samples(table.assign(**{column: value}))
        assert np.abs(case.loaded.predict_proba(other)[:, 1] - p).max() > 1e-3


def test_labels_that_look_like_codes_keep_their_order(tmp_path, one_repeat):
    tables = make_cohort(N_TRAINING, 1)
    coded = tables["samples"]["diagnosis"].map({"patient": "0", "control": "1"})
    tables["samples"]["diagnosis"] = coded
    outcome = {"column": "diagnosis", "positive": "0"}
    study = write_cohort(tmp_path / "coded", tables, outcome=outcome, models=[MODEL])
    run("fit", study, "--out", tmp_path / "model", "--quiet")
    run("predict", tmp_path / "model", study, "--out", tmp_path / "p.csv", "--quiet")
    frame = pd.read_csv(tmp_path / "p.csv", dtype={"predicted": str})
    assert (frame["predicted"] == np.where(frame["p_0"] > 0.5, "0", "1")).all()
    assert (frame["predicted"] == coded).mean() > 0.7
    assert set(pd.read_csv(tmp_path / "model" / "features.csv")["output"]) == {0}


ANSWERS = {
    "predict": lambda model, X: model.predict(X),
    "predict_proba": lambda model, X: model.predict_proba(X),
    "decision_function": lambda model, X: model.decision_function(X),
    "predict_interval": lambda model, X: np.stack(model.predict_interval(X)),
    "transform": lambda model, X: np.stack(model.transform(X, return_std=True)),
    "explain": lambda model, X: model.explain(X),
    "views_used": lambda model, X: model.views_used(X),
    "summary": lambda model, X: pd.DataFrame(model.summary()),
    "covariate_coef_": lambda model, X: model.covariate_coef_,
    "coef_": lambda model, X: pd.concat({v: pd.DataFrame(w) for v, w in model.coef_.items()}),
}


def same(found, expected):
    """Check that two answers are equal to the last digits."""
    if isinstance(expected, pd.DataFrame):
        assert len(expected)
        pd.testing.assert_frame_equal(found, expected, rtol=1e-12, atol=1e-12)
    elif np.asarray(expected).dtype.kind == "U":
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ANSWERS)
def test_the_loaded_model_answers_as_before(case, name):
    same(ANSWERS[name](case.loaded, case.rows), ANSWERS[name](case.before, case.rows))


def test_it_predicts_the_labels_of_the_study(case):
    assert case.loaded.classes_.tolist() == ["control", "patient"]
    p = case.loaded.predict_proba(case.rows)[:, 1]
    want = np.where(p > 0.5, "patient", "control")
    np.testing.assert_array_equal(case.loaded.predict(case.rows), want)
    assert set(case.loaded.summary()["output"]) == {"patient"}


@pytest.mark.parametrize("name", ANSWERS)
def test_it_can_be_saved_again(case, name, tmp_path):
    again = baldur.load(baldur.save(case.loaded, tmp_path / "again"))
    same(ANSWERS[name](again, case.rows), ANSWERS[name](case.before, case.rows))


# -- the command line ----------------------------------------------------------------------


def check_predict(case, folder):
    run("predict", case.path, case.new, "--out", folder / "p.csv", "--explain", folder / "why.csv")
    frame = pd.read_csv(folder / "p.csv", float_precision="round_trip")
    assert frame["sample"].tolist() == case.rows.sample_ids.tolist()
    want = case.before.predict_proba(case.rows)
    np.testing.assert_allclose(frame[["p_control", "p_patient"]], want, rtol=0, atol=1e-12)
    assert set(frame["predicted"]) == {"control", "patient"}
    why = pd.read_csv(folder / "why.csv", float_precision="round_trip")
    total = why.groupby("sample", sort=False)["contribution"].sum()
    np.testing.assert_allclose(total, np.log(want[:, 1] / want[:, 0]), rtol=0, atol=1e-9)


def check_validate(case, folder):
    run("validate", case.path, case.new, "--out", folder / "validation", "--quiet")
    frame = pd.read_csv(folder / "validation" / "predictions.csv", float_precision="round_trip")
    want = case.before.predict_proba(case.rows)[:, 1]
    np.testing.assert_allclose(frame["p_patient"], want, rtol=0, atol=1e-12)


def check_report_command(case, folder):
    run("report", case.path, "--out", folder / "page.html", "--quiet")
    check_page(case, folder / "page.html")


def check_report_method(case, folder):
    check_page(case, case.loaded.report(folder / "page.html", case.rows, case.y))


def check_page(case, page):
    text = Path(page).read_text()
    assert text.lstrip().lower().startswith("<!doctype html>")
    for name in ("gait=slow", "tremor", "protein0"):
        assert name in text


USES = {
    "baldur predict": check_predict,
    "baldur validate": check_validate,
    "baldur report": check_report_command,
    "report": check_report_method,
}


@pytest.mark.parametrize("name", USES)
def test_commands_and_pages(case, name, tmp_path):
    USES[name](case, tmp_path)


# -- scorers -------------------------------------------------------------------------------


def people_of(rows):
    """Return rows as the scorers take them: cells by view and feature, and what is known of each.

    A view that a person lacks is None.
    """
    people = []
    views = {v: (rows.view(v), rows.view(v).read(), rows.view(v).present) for v in rows.view_names}
    for i in range(len(rows)):
        person = {"samples": {"site": rows.samples["site"][i]}}
        age = rows.samples["age"][i]
        person["samples"]["age"] = None if age is None else float(age)
        for name, (view, cells, present) in views.items():
            named = zip(view.feature_names, cells[i], strict=True)
            known = {str(f): None if np.isnan(v) else float(v) for f, v in named}
            person[name] = known if present[i] else None
        people.append(person)
    return people


PROGRAMS = {
    "score.py": ([sys.executable, "-I", "score.py", "card.json", "people.json"], json.loads),
    "score.js": (["node", "score.js", "card.json", "people.json"], json.loads),
    "score.R": (
        ["Rscript", "--vanilla", "score.R", "card.R", "people.R"],
        lambda text: [[float(cell) for cell in line.split()] for line in text.splitlines()],
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_scorers_agree_with_predict_proba(case, name, tmp_path):
    command, read = PROGRAMS[name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"{command[0]} is not installed")
    for file in ("card.json", "card.R", name):
        shutil.copy(case.path / file, tmp_path)
    people = people_of(case.rows)
    (tmp_path / "people.json").write_text(json.dumps(people))
    (tmp_path / "people.R").write_text(r_code(people))
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    want = case.before.predict_proba(case.rows)
    np.testing.assert_allclose(read(done.stdout), want, rtol=0, atol=1e-9)


def test_onnx_is_refused_in_one_line(case):
    with pytest.raises(InputError) as said:
        case.loaded.to_onnx()
    assert "\n" not in str(said.value)
    assert str(said.value).startswith("This model cannot be exported to ONNX")
    assert "baldur predict" in str(said.value)


# -- figures -------------------------------------------------------------------------------

FIGURES = {
    "ForestDisplay": lambda m, X, y: plots.ForestDisplay.from_estimator(m),
    "PathDisplay": lambda m, X, y: plots.PathDisplay.from_estimator(m),
    "ViewShareDisplay": lambda m, X, y: plots.ViewShareDisplay.from_estimator(m),
    "ContributionsDisplay": lambda m, X, y: plots.ContributionsDisplay.from_estimator(m, X[:1]),
    "CorrelationDisplay": lambda m, X, y: plots.CorrelationDisplay.from_estimator(m, X),
    "LatentDisplay": lambda m, X, y: plots.LatentDisplay.from_estimator(m, X, y),
    "LoadingsDisplay": lambda m, X, y: plots.LoadingsDisplay.from_estimator(m),
    "FewFeaturesDisplay": lambda m, X, y: plots.FewFeaturesDisplay.from_estimator(m),
    "HistoryDisplay": lambda m, X, y: plots.HistoryDisplay.from_estimator(m),
    "ManhattanDisplay": lambda m, X, y: plots.ManhattanDisplay.from_estimator(m, "blood"),
}
"""Figures of a fitted model."""
OF_OTHERS = {"BrainDisplay", "CostDisplay"}
"""Figures that need a view of images, or costs, which this study does not have."""


def test_every_figure_of_a_model_is_drawn_here():
    named = {name for name in plots.__all__ if hasattr(getattr(plots, name), "from_estimator")}
    assert named == set(FIGURES) | OF_OTHERS


@pytest.mark.parametrize("name", FIGURES)
def test_figures(case, name):
    pytest.importorskip("matplotlib")
    found = FIGURES[name](case.loaded, case.rows, case.y)
    same(found.table, FIGURES[name](case.before, case.rows, case.y).table)
    assert "<svg" in found.svg()
    assert found.alt_text.endswith(".")


@pytest.mark.parametrize("name", sorted(OF_OTHERS))
def test_figures_of_what_is_not_there_are_refused_in_one_line(case, name):
    with pytest.raises(InputError) as said:
        getattr(plots, name).from_estimator(case.loaded)
    assert "\n" not in str(said.value)
