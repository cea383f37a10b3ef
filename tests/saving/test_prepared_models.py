"""Every step of a preparation, saved with its model and loaded again."""

import json
import shutil
import subprocess
from runpy import run_path

import numpy as np
import pandas as pd
import pytest

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MultiView
from baldur.exceptions import InputError
from baldur.paper import PaperClassifier
from baldur.preparation import (
    CategoryEncoder,
    Preparation,
    SiteHarmoniser,
    Step,
    VariantFilter,
    VoxelMask,
)
from baldur.study import fit_study, load_study, predict_study
from saving.models import manifest_of

pytestmark = pytest.mark.usefixtures("one_repeat")

N = 50


@pytest.fixture(scope="module")
def cohort():
    """A table with a category, genotypes, voxels, sites and covariates."""
    rng = np.random.default_rng(0)
    site = rng.permutation(70) % 3
    blood = rng.normal(size=(70, 12)) + site[:, None]
    blood[::9, 2] = np.nan
    clinic = np.column_stack([rng.normal(size=70), np.eye(3)[rng.integers(0, 3, 70)]])
    snps = rng.integers(0, 3, (70, 6)).astype(np.int8)
    snps[:, 5] = 0
    voxels = np.abs(rng.normal(size=(70, 9))) * np.array([0.01] * 3 + [5.0] * 6)
    info = pd.DataFrame(
        {
            "chromosome": [1] * 6,
            "allele_1": pd.Categorical(list("ACGTAC")),
            "allele_2": pd.Categorical(list("GTACTG")),
        }
    )
    space = pd.DataFrame({"x": range(9)})
    space.attrs["kind"] = "voxels"
    levels = ["Lima", "Oslo", "Rome"]
    X = MultiView(
        {
            "blood": blood,
            "clinic": clinic,
            "snps": snps,
            "images": voxels.astype(np.float32),
        },
        feature_names={
            "clinic": ["age", *(f"site={v}" for v in levels)],
            "snps": [f"rs{i}" for i in range(6)],
        },
        feature_info={
            "clinic": pd.DataFrame({"column": ["age"] + ["site"] * 3, "level": [None, *levels]}),
            "snps": info,
            "images": space,
        },
        samples=pd.DataFrame(
            {
                "site": np.array(levels)[site],
                "age": rng.normal(size=70),
                "sex": np.array(["f", "m"])[rng.integers(0, 2, 70)],
            }
        ),
    )
    y = (blood[:, 0] - site + clinic[:, 0] + rng.normal(size=70) > 0).astype(int)
    return X, y


DENSE = {"members": ("pooled",)}
CASES = {
    "categories": lambda: BaldurClassifier(**DENSE, preparation=Preparation()),
    "variants": lambda: BaldurClassifier(**DENSE, preparation=having(VariantFilter(min_maf=0.05))),
    "voxels": lambda: BaldurClassifier(**DENSE, preparation=having(VoxelMask())),
    "sites": lambda: BaldurClassifier(
        **DENSE, preparation=having(SiteHarmoniser("site", ["blood"], new_sites="own"))
    ),
    "plain sites": lambda: BaldurRegressor(
        members=("pooled",),
        preparation=having(SiteHarmoniser("site", ["blood"], keep=["sex"], estimates="plain")),
    ),
    "covariates": lambda: BaldurClassifier(
        **DENSE, preparation=Preparation("rank", regress_out=["age", "sex"])
    ),
    "covariates of mean field": lambda: PaperClassifier(
        bound="jaakkola", max_iter=5, preparation=Preparation(regress_out=["age", "sex"])
    ),
    "everything": lambda: BaldurClassifier(**DENSE, preparation=everything()),
}


def having(*steps):
    return Preparation(steps=list(steps))


def everything():
    steps = [CategoryEncoder(), VariantFilter(), VoxelMask(), SiteHarmoniser("site", ["blood"])]
    return Preparation(steps=steps, regress_out=["age", "sex"])


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_model_is_the_same_after_loading(cohort, name, tmp_path):
    X, y = cohort
    model = CASES[name]().fit(X[:N], y[:N])
    again = baldur.load(model.save(tmp_path / "model"))
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            found, want = getattr(again, method)(X[N:]), getattr(model, method)(X[N:])
            np.testing.assert_array_equal(found, want)
    if hasattr(model, "explain"):
        pd.testing.assert_frame_equal(
            again.explain(X[N : N + 3]), model.explain(X[N : N + 3]), check_exact=True
        )
    masks = model.selected_features_
    assert all((again.selected_features_[v] == masks[v]).all() for v in masks)
    assert type(again) is type(model)
    assert again.get_params().keys() == model.get_params().keys()
    manifest = manifest_of(tmp_path / "model")
    steps = manifest["steps"]
    assert steps == [type(step).__name__ for step in model.preparation_.steps_]
    assert str(again.get_params()) == str(model.get_params())
    card = tmp_path / "model" / "card.json"
    if not hasattr(model, "explain"):
        assert not card.exists()
        return
    printed = json.loads(card.read_text())["model"]
    if name == "sites":
        # A new site is aligned by all of its people, whom a scorer does not see.
        assert printed is None
        assert "new\\_sites='own'" in (tmp_path / "model" / "card.md").read_text()
        with pytest.raises(InputError, match=r"cannot be exported to ONNX\. No scorer .*predict"):
            again.to_onnx()
        return
    people, want = people_of(X[N:]), answers(model, X[N:])
    predict = run_path(tmp_path / "model" / "score.py")["predict"]
    found = np.array([predict(printed, person) for person in people])
    np.testing.assert_allclose(found.reshape(want.shape), want, rtol=0, atol=1e-9)
    if shutil.which("node"):
        (tmp_path / "people.json").write_text(json.dumps(people))
        command = ["node", "model/score.js", "model/card.json", "people.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        found = np.array(json.loads(done.stdout))
        np.testing.assert_allclose(found.reshape(want.shape), want, rtol=0, atol=1e-9)


def answers(model, rows):
    """Return what the scorers answer: probabilities, or mean and s.d. of an outcome."""
    if hasattr(model, "predict_proba"):
        return model.predict_proba(rows)
    return np.stack(model.predict(rows, return_std=True), axis=-1)


def people_of(rows):
    """Return rows as the scorers take them, with sites and covariates as ``samples``."""
    cells = {v: rows.view(v).read().astype(float) for v in rows.view_names}
    names = {v: [str(n) for n in rows.view(v).feature_names] for v in rows.view_names}
    about = rows.samples.astype(object).where(rows.samples.notna(), None).to_dict("records")
    return [
        {
            **{v: dict(zip(names[v], _known(cells[v][i]), strict=True)) for v in cells},
            "samples": about[i],
        }
        for i in range(len(rows))
    ]


def _known(cells):
    return [None if np.isnan(value) else float(value) for value in cells]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("site", [1, 1.0, "1", " 1 ", 7, None])
def test_sites_and_levels_written_as_numbers(cohort, site, tmp_path):
    X, y = cohort
    coded = X.samples["site"].map({"Lima": 1, "Oslo": 2, "Rome": 3})
    X = X.select(["blood"]).with_samples(X.samples.assign(site=coded, sex=X.samples["sex"]))
    preparation = Preparation(steps=[SiteHarmoniser("site", keep=["age", "sex"])])
    model = BaldurClassifier(**DENSE, preparation=preparation).fit(X[:N], y[:N])
    rows = X[N : N + 4]
    table = rows.samples.assign(
        site=pd.Series([site] * 4, dtype=object),
        sex=pd.Series(["f", "m", "other", None], dtype=object),
        age=[0.3, np.nan, 2.0, -1.0],
    )
    rows = rows.with_samples(table)
    people, want = people_of(rows), model.predict_proba(rows)
    model.card(tmp_path)
    printed = json.loads((tmp_path / "card.json").read_text())["model"]
    predict = run_path(tmp_path / "score.py")["predict"]
    found = [predict(printed, person) for person in people]
    np.testing.assert_allclose(found, want, rtol=0, atol=1e-9)
    if shutil.which("node"):
        (tmp_path / "people.json").write_text(json.dumps(people))
        command = ["node", "score.js", "card.json", "people.json"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
        np.testing.assert_allclose(json.loads(done.stdout), want, rtol=0, atol=1e-9)


@pytest.mark.filterwarnings("ignore")
def test_no_scorer_where_it_could_not_tell_a_view_from_the_covariates(cohort):
    X, y = cohort
    X = MultiView({"samples": X.view("blood").read()}, samples=X.samples)
    model = BaldurClassifier(**DENSE, preparation=Preparation(regress_out=["age"])).fit(X, y)
    card = model.card()
    assert card.model is None
    assert card.reason.startswith("No scorer is printed: scorers read sites and covariates under")
    assert "\n" not in card.reason


class Doubled(Step):
    """A step of a user, which model folders and scorers do not know."""

    changes_cells = True

    def _check_options(self):
        pass

    def _fit(self, X):
        self.fitted_ = True

    def _transform(self, X):
        return MultiView({"blood": 2 * X.view("blood").read()}, samples=X.samples)


@pytest.mark.filterwarnings("ignore")
def test_no_scorer_of_a_step_that_scorers_do_not_know(cohort):
    X, y = cohort
    model = BaldurClassifier(**DENSE, preparation=having(Doubled())).fit(X.select("blood"), y)
    card = model.card()
    assert card.model is None
    assert "a scorer cannot do what Doubled does" in card.reason


def test_the_scorer_of_a_filtered_model_takes_the_columns_of_the_study(cohort, tmp_path):
    X, y = cohort
    X = X.select(["clinic", "snps"])
    model = BaldurClassifier(**DENSE, preparation=having(VariantFilter())).fit(X[:N], y[:N])
    printed = model.card(tmp_path).model
    predict = run_path(tmp_path / "score.py")["predict"]
    rows = X[N:]
    names = {v: [str(n) for n in rows.view(v).feature_names] for v in rows.view_names}
    cells = {v: rows.view(v).read().astype(float) for v in rows.view_names}
    found = [
        predict(printed, {v: dict(zip(names[v], cells[v][i], strict=True)) for v in names})
        for i in range(len(rows))
    ]
    np.testing.assert_allclose(found, model.predict_proba(rows), rtol=0, atol=1e-9)


def test_a_study_that_is_fitted_saved_loaded_and_told_what_differs(tmp_path):
    rng = np.random.default_rng(0)
    ids = [f"p{i:02d}" for i in range(60)]
    blood = pd.DataFrame(rng.normal(5.0, 1.0, (60, 3)), columns=list("abc"))
    blood.insert(0, "sample", ids)
    label = np.where(blood["a"] + rng.normal(size=60) > 5, "ill", "well")
    pd.DataFrame({"sample": ids, "state": label}).to_csv(tmp_path / "samples.csv", index=False)
    blood.to_csv(tmp_path / "blood.csv", index=False)
    (tmp_path / "study.toml").write_text(
        '[samples]\nfile = "samples.csv"\nid = "sample"\n[outcome]\ncolumn = "state"\n'
        'positive = "ill"\n[views.blood]\nfile = "blood.csv"\n[[models]]\nname = "BALDUR"\n'
        "settings = { members = ['pooled'] }\n"
    )
    saved, _ = fit_study(load_study(tmp_path / "study.toml"))
    folder = baldur.save(saved, tmp_path / "model")
    study = load_study(tmp_path / "study.toml", predicting=True)
    want, _ = predict_study(saved, study)
    found, _ = predict_study(baldur.saving.load(folder, study=True), study)
    pd.testing.assert_frame_equal(found, want, check_exact=True)
    about = json.loads((folder / "card.json").read_text())["about"]
    assert about["classes"] == ["well", "ill"]
    assert about["prevalence"]["ill"] == (label == "ill").mean()
    blood[list("abc")] *= 100
    blood.to_csv(tmp_path / "blood.csv", index=False)
    drift = tmp_path / "drift.csv"
    code, out = _command("predict", folder, tmp_path / "study.toml", "--out", "-", "--drift", drift)
    assert code == 0
    assert "View 'blood': 'a'" in out
    assert "Check the units" in out
    assert "view 'blood': 3 of 3 columns differ from training" in out
    assert set(pd.read_csv(drift)["feature"]) == set("abc")


def _command(*arguments):
    from typer.testing import CliRunner

    from baldur.cli import app

    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return done.exit_code, done.output
