"""The printed model predicts what the estimator does: by three small programs and as ONNX graph."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from baldur.baselines import BASELINES
from baldur.exceptions import InputError
from baldur.model.likelihood import logistic_rates, probit_mixture
from baldur.saving.card import make_card, scorer
from baldur.saving.folder_files import PRINTED as PRINTED_FILES
from baldur.saving.printed_model import onnx_bytes, r_code
from baldur.saving.score import predict
from saving.models import MODELS, N, cohort, fitted, rows_for

PRINTED = list(MODELS)


def people_of(rows):
    """Rows as the scorers take them; a view that a person lacks is None."""
    views = {v: (rows.view(v), rows.view(v).read(), rows.view(v).present) for v in rows.view_names}
    return [
        {
            v: {
                str(name): None if np.isnan(value) else float(value)
                for name, value in zip(view.feature_names, cells[i], strict=True)
            }
            if present[i]
            else None
            for v, (view, cells, present) in views.items()
        }
        for i in range(len(rows))
    ]


def expected(model, rows):
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    return np.stack(model.predict(rows, return_std=True), axis=-1)


@pytest.fixture(scope="module")
def printed(tmp_path_factory):
    """Every model's card and people in a folder."""
    root = tmp_path_factory.mktemp("cards")
    for name in PRINTED:
        fitted(name).card(root / name)
        people = people_of(rows_for(name))
        (root / name / "people.json").write_text(json.dumps(people))
        (root / name / "people.R").write_text(r_code(people))
    return root


def agrees(found, name):
    want = expected(fitted(name), rows_for(name))
    np.testing.assert_allclose(np.asarray(found).reshape(want.shape), want, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", PRINTED)
def test_python(printed, name):
    model = json.loads((printed / name / "card.json").read_text())["model"]
    agrees([predict(model, person) for person in people_of(rows_for(name))], name)


def test_python_as_a_program(printed):
    folder = printed / "three classes"
    command = [sys.executable, "-I", "score.py", "card.json", "people.json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    agrees(json.loads(done.stdout), "three classes")
    source = (folder / "score.py").read_text()
    assert "import baldur" not in source
    assert "scipy" not in source


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_javascript(printed):
    code = """
      const fs = require("fs"), out = {};
      for (const name of process.argv.slice(2)) {
        const { predict } = require(`${name}/score.js`);
        const read = (file) => JSON.parse(fs.readFileSync(`${name}/${file}`));
        const model = read("card.json").model;
        out[name] = read("people.json").map((person) => predict(model, person));
      }
      console.log(JSON.stringify(out));
    """
    (printed / "all.js").write_text(code)
    folders = [str(printed / name) for name in PRINTED]
    done = subprocess.run(
        ["node", str(printed / "all.js"), *folders], capture_output=True, text=True, check=True
    )
    found = json.loads(done.stdout)
    for name, folder in zip(PRINTED, folders, strict=True):
        agrees(found[folder], name)


@pytest.mark.skipif(shutil.which("Rscript") is None, reason="R is not installed")
def test_r(printed):
    code = """
      for (name in commandArgs(trailingOnly = TRUE)) {
        source(file.path(name, "score.R"), local = new.env() -> here)
        model <- dget(file.path(name, "card.R"))
        for (person in dget(file.path(name, "people.R"))) {
          cat(sprintf("%.17g", t(here$predict_baldur(model, person))), "")
        }
        cat("\\n")
      }
    """
    (printed / "all.R").write_text(code)
    folders = [str(printed / name) for name in PRINTED]
    command = ["Rscript", "--vanilla", str(printed / "all.R"), *folders]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    for name, line in zip(PRINTED, done.stdout.strip().splitlines(), strict=True):
        agrees([float(cell) for cell in line.split()], name)


def one_gaussian(m, v):
    """A printed model without features, whose linear predictor is N(m, v)."""
    model = fitted("dense, columns").card().model
    return {**model, "features": [], "mean": [[m]], "cov": [[[v]]]}


MEANS = (-60.0, -30.0, -2.0, -1e-9, 0.0, 0.5, 9.0, 60.0)
VARIANCES = (0.0, 1e-12, 0.09, 1.0, 9.0, 1600.0)


def test_probabilities_of_any_mean_and_variance():
    grid = [(m, v) for m in MEANS for v in VARIANCES]
    want = logistic_rates(*np.array(grid).T)[0]
    present = {"a": {}, "b": {}}
    found = [predict(one_gaussian(m, v), present)[1] for m, v in grid]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-14)


@pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
def test_probabilities_of_any_mean_and_variance_in_javascript(tmp_path):
    weights, scales = probit_mixture()
    grid = [(m, v) for m in MEANS for v in VARIANCES]
    (tmp_path / "score.js").write_bytes(scorer("js"))
    (tmp_path / "run.js").write_text(
        'const { expectedSigmoid } = require("./score.js");'
        "const [probit, grid] = JSON.parse(process.argv[2]);"
        "console.log(JSON.stringify(grid.map(([m, v]) => expectedSigmoid(probit, m, v))));"
    )
    given = json.dumps([{"weights": weights.tolist(), "scales": scales.tolist()}, grid])
    command = ["node", str(tmp_path / "run.js"), given]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    want = logistic_rates(*np.array(grid).T)[0]
    np.testing.assert_allclose(json.loads(done.stdout), want, rtol=0, atol=1e-14)


def test_the_printed_model_is_one_gaussian():
    model = fitted("factors").card().model
    C, L = 3, 1 + len(model["features"])
    assert model["schema"] == 3
    assert np.shape(model["mean"]) == (C, L)
    assert np.shape(model["cov"]) == (C, L, L)
    assert np.shape(model["missing_variance"]) == (2, C)
    assert model["loadings"] is None
    assert np.shape(model["noise_variance"]) == (C,)


def test_scorers_are_short(printed):
    for language in ("py", "R", "js"):
        lines = (printed / "auto" / f"score.{language}").read_text().splitlines()
        assert len(lines) < 100


def test_the_card_says_what_matters(tmp_path):
    model = fitted("auto")
    card = model.card(
        tmp_path,
        performance={"auc": (0.81, 0.7, 0.9)},
        intended_use="Triage of *sleep* studies",
        not_for="Children",
        classes=["well", "<b>ill</b>"],
    )
    assert {f.name for f in tmp_path.iterdir()} == set(PRINTED_FILES)
    text = (tmp_path / "card.md").read_text()
    assert str(card) == text
    for said in ("| auc | 0.81 | 0.7 to 0.9 |", "Children", "must not be used", "(intercept)",
                 "training mean", "held-out"):  # fmt: skip
        assert said in text, said
    assert "<b>" not in text
    assert "*sleep*" not in text
    about = json.loads((tmp_path / "card.json").read_text())["about"]
    assert about["samples"] == N
    y = cohort("two")[1][:N]
    assert about["prevalence"]["<b>ill</b>"] == y.mean()
    kept = sum(int(mask.sum()) for mask in model.selected_features_.values())
    assert len(about["weights"]) == kept
    row = about["weights"][0]
    column = list(model.feature_names_[row["view"]]).index(row["feature"])
    assert row["weight"] == model.coef_[row["view"]][:, column].tolist()
    # The formula of the card is the linear predictor that explain decomposes.
    rows = cohort("two")[0][N : N + 3]
    people = people_of(rows)
    linear = model.explain(rows).drop_duplicates("sample")["linear_predictor"].to_numpy()
    for person, want in zip(people, linear, strict=True):
        total = about["intercept"][0]
        for w in about["weights"]:
            value = (person[w["view"]] or {}).get(w["feature"])
            value = w["mean"] if value is None else value
            if w["lower_limit"] is not None:
                value = min(max(value, w["lower_limit"]), w["upper_limit"])
            total += w["weight"][0] * value
        assert abs(total - want) < 1e-9
    assert "Not measured" in model.card().markdown


def test_models_that_cannot_be_printed_say_so(constants):
    constants(MAX_NUMBERS=100)
    card = fitted("dense, Grams").card()
    assert card.model is None
    assert "not printed" in card.markdown
    assert "score.py" not in card.files()
    with pytest.raises(InputError, match="performance: expected a table with metric"):
        fitted("dense, Grams").card(performance={"a": 1}.items())
    dummy = BASELINES["Dummy"].make().fit(*cohort("two"))
    with pytest.raises(InputError, match="has no card"):
        make_card(dummy)


# -- The ONNX graph predicts what the estimator does, in float64 ----------------------------------


def open_session(content):
    """Return a runtime that has read an ONNX file."""
    onnxruntime = pytest.importorskip("onnxruntime")
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(content, options, providers=["CPUExecutionProvider"])


def answer(content, rows):
    """Return what a runtime predicts for the rows of a container."""
    session = open_session(content)
    notes = session.get_modelmeta().custom_metadata_map
    features, views = json.loads(notes["features"]), json.loads(notes["views"])
    cells = {v: rows.view(v).read().astype(float) for v in views}
    at = {v: {str(n): i for i, n in enumerate(rows.view(v).feature_names)} for v in views}
    x = np.empty((len(rows), len(features)))
    for j, (view, name) in enumerate(features):
        x[:, j] = cells[view][:, at[view][name]]
    absent = np.column_stack([~rows.view(v).present for v in views]).astype(float)
    return session.run(None, {"x": x, "absent": absent})


@pytest.mark.parametrize("name", MODELS)
def test_the_graph_agrees_with_the_estimator(name):
    model, rows = fitted(name), rows_for(name)
    found = answer(model.to_onnx(), rows)
    if hasattr(model, "predict_proba"):
        np.testing.assert_allclose(found[0], model.predict_proba(rows), rtol=0, atol=1e-9)
        return
    mean, std = model.predict(rows, return_std=True)
    np.testing.assert_allclose(found[0][:, 0], mean, rtol=0, atol=1e-9)
    np.testing.assert_allclose(found[1][:, 0], std, rtol=0, atol=1e-9)


def test_it_is_written_where_told_and_refused_where_it_is_too_large(tmp_path, constants):
    model = fitted("dense, Grams")
    path = model.to_onnx(tmp_path / "model.onnx")
    assert path == tmp_path / "model.onnx"
    assert path.read_bytes() == model.to_onnx()
    constants(MAX_NUMBERS=100)
    with pytest.raises(InputError, match=r"cannot be exported to ONNX\. A model of 93 features"):
        model.to_onnx()


def test_probabilities_of_any_mean_and_variance_in_onnx():
    """The normal distribution function of the graph is exact to 1e-12 over its whole range."""
    printed = fitted("dense, columns").card().model
    column = {**printed["features"][0], "mean": 0.0, "factor": 1.0, "lower": None, "upper": None}
    model = {**printed, "features": [column], "mean": [[0.0, 1.0]]}
    mean = np.linspace(-60.0, 60.0, 2001)
    for var in (0.0, 1.0, 1600.0):
        session = open_session(onnx_bytes({**model, "cov": [[[var, 0.0], [0.0, 0.0]]]}))
        given = {"x": mean[:, None], "absent": np.zeros((len(mean), 2))}
        found = session.run(None, given)[0][:, 1]
        np.testing.assert_allclose(found, logistic_rates(mean, var)[0], rtol=0, atol=1e-12)
