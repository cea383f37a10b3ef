"""Every encoder, filter and wrapper of a study, saved round a model and loaded again."""

import json

import numpy as np
import pandas as pd
import pytest
from baldur.persist import read_manifest

import baldur
from baldur import BaldurClassifier, BaldurRegressor, MeanFieldClassifier, MultiView
from baldur.baselines import BASELINES
from baldur.evaluate import Deconfounded, SideBySide
from baldur.evaluate.deconfound import CONFOUNDS
from baldur.evaluate.steps import WithSteps
from baldur.prepare import CategoryEncoder, SiteHarmoniser, VariantFilter, VoxelMask
from baldur.prepare.harmonise import SITES
from baldur.study import fit_study, load_study, predict_study

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
            SITES: site[:, None].astype(float),
            CONFOUNDS: rng.normal(size=(70, 2)),
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
    )
    y = (blood[:, 0] - site + clinic[:, 0] + rng.normal(size=70) > 0).astype(int)
    return X, y


DENSE = {"members": ("pooled",)}
CASES = {
    "categories": (lambda: WithSteps(BaldurClassifier(**DENSE), [CategoryEncoder()]), ()),
    "variants": (lambda: WithSteps(BaldurClassifier(**DENSE), [VariantFilter(min_maf=0.05)]), ()),
    "voxels": (lambda: WithSteps(BaldurClassifier(**DENSE), [VoxelMask()]), ()),
    "sites": (
        lambda: WithSteps(BaldurClassifier(**DENSE), [SiteHarmoniser(["blood"], "own")]), (SITES,)
    ),
    "plain sites": (
        lambda: WithSteps(
            BaldurRegressor(**DENSE), [SiteHarmoniser(["blood"], estimates="plain")]
        ),
        (SITES,),
    ),
    "confounds": (lambda: Deconfounded(BaldurClassifier(scale="rank", **DENSE)), (CONFOUNDS,)),
    "confounds of mean field": (
        lambda: Deconfounded(MeanFieldClassifier(bound="jaakkola", max_iter=5)), (CONFOUNDS,)
    ),
    "everything": (
        lambda: WithSteps(
            Deconfounded(BaldurClassifier(**DENSE)),
            [CategoryEncoder(), VariantFilter(), VoxelMask(), SiteHarmoniser(["blood"])],
        ),
        (SITES, CONFOUNDS),
    ),
    "everything round a baseline": (
        lambda: WithSteps(
            Deconfounded(BASELINES["Ridge logistic"].make()),
            [CategoryEncoder(), VariantFilter(), SiteHarmoniser(["blood"])],
        ),
        (SITES, CONFOUNDS),
    ),
    "everything round scikit-learn": (
        lambda: WithSteps(SideBySide(_neighbours(), scale="rank"), [CategoryEncoder()]), ()
    ),
}  # fmt: skip


def _neighbours():
    from sklearn.neighbors import KNeighborsClassifier

    return KNeighborsClassifier(3)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", CASES)
def test_a_wrapped_model_is_the_same_after_loading(cohort, name, tmp_path):
    X, y = cohort
    make, with_views = CASES[name]
    X = X.select(["blood", "clinic", "snps", "images", *with_views])
    model = make().fit(X[:N], y[:N])
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
    manifest = read_manifest(tmp_path / "model")
    assert manifest["wrapped_in"][0].endswith(type(model).__name__)
    steps = [step["step"].rsplit(".")[-1] for step in manifest["steps"]]
    assert steps == [type(step).__name__ for step in getattr(model, "steps", [])]
    card = tmp_path / "model" / "card.json"
    if not hasattr(model, "explain"):
        assert not card.exists()
        return
    # Scorers are printed where only columns are chosen, and not where values are changed.
    changed = set(steps) & {"SiteHarmoniser"} or hasattr(model, "covariate_mean_")
    assert (json.loads(card.read_text())["model"] is None) == bool(changed or name == "everything")


def test_the_scorer_of_a_filtered_model_takes_the_columns_of_the_study(cohort):
    from baldur.cards import make_card
    from baldur.cards.score import predict

    X, y = cohort
    X = X.select(["clinic", "snps"])
    steps = [CategoryEncoder(), VariantFilter()]
    model = WithSteps(BaldurClassifier(**DENSE), steps).fit(X[:N], y[:N])
    printed = make_card(model).model
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
    found, _ = predict_study(baldur.persist.load_model(folder), study)
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

    from baldur.cli.app import app

    done = CliRunner().invoke(app, [str(a) for a in arguments])
    return done.exit_code, done.output
