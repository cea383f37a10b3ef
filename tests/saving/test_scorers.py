"""The printed model, read by three small programs, predicts what the estimator does to 1e-9."""

import json
import shutil
import subprocess
import sys

import numpy as np
import pytest

from baldur.baselines import BASELINES
from baldur.cards import CARD_FILES, make_card, printable
from baldur.cards.r_code import r_code
from baldur.cards.score import predict
from baldur.exceptions import InputError
from saving.models import MODELS, SLOW, N, cohort, fitted, rows_for

PRINTED = [n for n in MODELS if n not in SLOW]


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


def test_wide_and_narrow_uncertainty_use_the_same_rules():
    """Both sides of every rule's limit, where the model itself changes its rule."""
    model = printable(fitted("dense, columns"))
    from baldur.model.quadrature import logistic_moments

    member = {
        "weight": [1.0],
        "mean": [[0.0] * (len(model["features"]) + 1)],
        "lacking": [[0.0], [0.0]],
    }
    for s in (1e-6, 0.3, 0.7499, 0.7501, 1.7499, 1.7501, 3.0, 40.0):
        for m in (-30.0, -2.0, 0.0, 0.5, 9.0):
            member["mean"][0][0] = m
            cov = np.zeros((len(model["features"]) + 1,) * 2)
            cov[0, 0] = s**2
            found = predict({**model, "members": [{**member, "cov": [cov.tolist()]}]}, {})
            want = float(logistic_moments(np.array([m]), np.array([s**2])).rate[0])
            assert abs(found[1] - want) < 1e-12


def test_scorers_are_short(printed):
    for language in ("py", "R", "js"):
        lines = (printed / "auto" / f"score.{language}").read_text().splitlines()
        assert len(lines) < 60


def test_the_card_says_what_matters(tmp_path):
    model = fitted("auto")
    card = model.card(
        tmp_path,
        performance={"auc": (0.81, 0.7, 0.9)},
        intended_use="Triage of *sleep* studies",
        not_for="Children",
        classes=["well", "<b>ill</b>"],
    )
    assert {f.name for f in tmp_path.iterdir()} == set(CARD_FILES)
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
    # The formula of the card is the linear predictor that explain adds up to.
    rows = cohort("two")[0][N : N + 3]
    people = people_of(rows)
    linear = model.explain(rows).drop_duplicates("sample")["linear_predictor"].to_numpy()
    for person, want in zip(people, linear, strict=True):
        total = about["intercept"][0]
        for w in about["weights"]:
            value = (person[w["view"]] or {}).get(w["feature"])
            value = w["mean"] if value is None else value
            if w["lowest_counted"] is not None:
                value = min(max(value, w["lowest_counted"]), w["highest_counted"])
            total += w["weight"][0] * value
        assert abs(total - want) < 1e-9
    assert "Not measured" in model.card().markdown


def test_models_that_cannot_be_printed_say_so(monkeypatch):
    from baldur.cards import members

    monkeypatch.setattr(members, "MOST_NUMBERS", 100)
    card = fitted("dense, Grams").card()
    assert card.model is None
    assert "not printed" in card.markdown
    assert "score.py" not in card.files()
    with pytest.raises(InputError, match="performance: expected a table with metric"):
        fitted("dense, Grams").card(performance={"a": 1}.items())
    dummy = BASELINES["Dummy"].make().fit(*cohort("two"))
    with pytest.raises(InputError, match="has no card"):
        make_card(dummy)
