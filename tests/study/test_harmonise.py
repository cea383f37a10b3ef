"""Harmonised sites in nested cross-validation, in study files, and in models for new samples."""

import numpy as np
import pandas as pd
import pytest

from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError, StudyError
from baldur.preparation import Preparation, SiteHarmoniser
from baldur.saving import load, save
from baldur.study import evaluate_study, fit_study, load_study, predict_study
from study.conftest import QUICK

SITES = np.array(["lima", "oslo", "rome"])
ALIGN = Preparation(steps=[SiteHarmoniser("site")])


@pytest.fixture
def spoiled():
    """Simulated views, the same with strong site effects, labels and sites."""
    sim = make_multiview(150, {"a": 12, "b": 40}, random_state=0)
    rng = np.random.default_rng(1)
    site = rng.permutation(np.arange(150) % 3)
    views = {
        v: sim.data.view(v).read() * np.exp(rng.normal(0, 0.4, (3, k)))[site]
        + rng.normal(0, 2, (3, k))[site]
        for v, k in sim.data.n_features.items()
    }
    return sim, views, SITES[site]


def test_every_model_sees_harmonised_views_and_the_result_says_what_changed(spoiled):
    sim, views, site = spoiled
    models = {"Ridge logistic": {"C": [0.1, 1.0]}, "RF": {"n_estimators": [30]}}
    plain, aligned, clean = (
        nested_cv(models, X, sim.target, views=None, outer=3, inner=3, preparation=p)
        for X, p in (
            (type(sim.data)(views), None),
            (type(sim.data)(views, samples=pd.DataFrame({"site": site})), ALIGN),
            (sim.data, None),
        )
    )
    assert aligned.failures == {}
    auc = [r.table().set_index("model")["auc"]["Ridge logistic"] for r in (plain, aligned, clean)]
    assert auc[0] < auc[1] - 0.02
    assert abs(auc[1] - auc[2]) < 0.03
    changed = aligned.harmonisation()
    assert len(changed) == 6
    assert (changed["before"] > 0.4).all()
    assert (changed["after"] < changed["chance"]).all()
    assert plain.harmonisation().empty
    # The sites travel with the rows and are no feature of any model.
    assert set(aligned.selection["view"]) <= {"a", "b"}
    assert set(aligned.settings["setting"]) == {"C", "n_estimators"}


def test_labels_and_cells_of_test_rows_change_nothing_in_training(spoiled):
    sim, views, site = spoiled
    split = np.where(np.arange(150) < 100, "train", "test")
    other = {v: np.where((split == "test")[:, None], x * -9, x) for v, x in views.items()}
    seen = [
        nested_cv(
            {"Dummy": {}},
            type(sim.data)(x, samples=pd.DataFrame({"site": site})),
            sim.target,
            split=split,
            preparation=ALIGN,
        ).harmonisation()
        for x in (views, other)
    ]
    pd.testing.assert_frame_equal(*seen)


@pytest.fixture
def study(parts, tables, write):
    parts["harmonise"] = {"by": "site", "keep": ["age", "sex"]}
    parts["models"] = [{"name": "Ridge logistic", "grid": {"C": [1.0]}}]
    tables["brain"].iloc[::3, 1:] += 5.0
    return parts, tables, write


def test_a_study_file_harmonises(study, tmp_path):
    parts, tables, write = study
    done = evaluate_study(load_study(write(parts, tables)))
    found = pd.read_csv(done.folder / "harmonisation.csv")
    brain = found[found["view"] == "brain"]
    assert len(brain) == 3
    assert (brain["before"] > 0.5).all()
    assert (brain["after"] < 0.05).all()
    again = load_study(done.folder / "study.toml", roots=[tmp_path])
    assert again.harmonise.model_dump() == {
        "by": "site", "keep": ["age", "sex"], "views": None, "new_sites": "pooled",
        "estimates": "shrunk",
    }  # fmt: skip


def test_new_samples_are_harmonised_as_the_model_learned(study, tmp_path):
    parts, tables, write = study
    parts["models"] = [QUICK]
    model, _ = fit_study(load_study(write(parts, tables)))
    model = load(save(model, tmp_path / "model"), study=True)
    kept = {k: v for k, v in parts.items() if k in ("samples", "views")}

    def predict(**change):
        samples = tables["samples"].drop(columns="diagnosis").assign(**change)
        file = write(kept, {**tables, "samples": samples.dropna(axis=1)}, tmp_path / "new")
        return predict_study(model, load_study(file, predicting=True))

    known, notes = predict()
    assert notes == []
    half, _ = predict(site=np.where(np.arange(60) < 30, tables["samples"]["site"], "bern"))
    pd.testing.assert_frame_equal(half[:30], known[:30])
    assert (half["p_patient"] != known["p_patient"])[30:].any()
    elsewhere, notes = predict(site="bern")
    assert notes == ["1 site is new to the model (bern)"]
    unknown, notes = predict(site=np.nan)
    assert "no column 'site'" in notes[0]
    pd.testing.assert_frame_equal(unknown, elsewhere)


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ({"by": "center"}, "harmonise.by: .* no column 'center'"),
        ({"by": "diagnosis"}, "harmonise.by: 'diagnosis' is the outcome"),
        ({"by": "site", "keep": ["diagnosis"]}, "harmonise.keep: 'diagnosis' is the outcome"),
        ({"by": "site", "keep": ["site"]}, "is the column of sites itself"),
        ({}, "there is no column of sites"),
        ({"by": "site", "views": ["brian"]}, "'brian' is not a view; did you mean 'brain'"),
        ({"by": "site", "new_sites": "drop"}, "'drop' is not known"),
    ],
)
def test_mistakes_are_named(parts, tables, write, section, said):
    parts["harmonise"] = section
    file = write(parts, tables)
    text = file.read_text()
    if not section:
        file.write_text(text + "\n[harmonise]\n" if "[harmonise]" not in text else text)
    with pytest.raises(StudyError, match=said):
        evaluate_study(load_study(file))


def test_rows_must_have_their_sites(spoiled):
    sim, _, site = spoiled
    with pytest.raises(InputError, match=r"per sample \(150\)"):
        sim.data.with_samples(pd.DataFrame({"site": site[:9]}))
    with pytest.raises(InputError, match="preparation needs the column 'site'"):
        nested_cv({"Dummy": {}}, sim.data, sim.target, preparation=ALIGN)
