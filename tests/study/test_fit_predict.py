"""Fit, save, load, predict: the same scores, and clear words where new files differ."""

import json
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from baldur.baselines import BASELINES
from baldur.cli import app
from baldur.exceptions import InputError, ShiftWarning, StudyError
from baldur.report import report_folder
from baldur.saving import SavedModel, load, save
from baldur.study import fit_study, load_study, predict_study, validate_study
from study.conftest import QUICK, make_parts, make_tables, write_study

pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of one fitted model."""
    folder = tmp_path_factory.mktemp("saved")
    covariates = {"regress_out": ["age"], "include": ["sex"]}
    parts = {**make_parts(), "covariates": covariates, "models": [QUICK]}
    file = write_study(parts, make_tables(), folder)
    model, _ = fit_study(load_study(file))
    return save(model, folder / "model")


@pytest.fixture
def fitted(saved, tmp_path):
    """It, loaded from a copy in the folder of the test."""
    return load(shutil.copytree(saved, tmp_path / "model"), study=True)


def new_study(parts, tables, write, tmp_path, **change):
    kept = {k: v for k, v in parts.items() if k in ("samples", "views")}
    return load_study(write({**kept, **change}, tables, tmp_path / "new"), predicting=True)


def test_the_saved_model_predicts_what_the_fitted_one_does(parts, tables, write, tmp_path, fitted):
    del tables["samples"]["diagnosis"]
    frame, notes = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    assert notes == []
    assert frame["sample"].tolist() == tables["samples"]["sample"].tolist()
    assert list(frame.columns) == [
        "sample",
        "predicted",
        *("p_control", "p_control_lower", "p_control_upper"),
        *("p_patient", "p_patient_lower", "p_patient_upper"),
        "views_used",
        "flags",
    ]
    assert set(frame["views_used"]) == {"blood; brain; covariates"}
    np.testing.assert_allclose(frame["p_control"] + frame["p_patient"], 1)
    assert (frame["predicted"] == np.where(frame["p_patient"] > 0.5, "patient", "control")).all()
    again, _ = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    pd.testing.assert_frame_equal(frame, again)


def test_order_of_rows_and_columns_does_not_matter(parts, tables, write, tmp_path, fitted):
    expected, _ = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    brain = tables["brain"]
    tables["brain"] = brain[["sample", *brain.columns[:0:-1]]].iloc[::-1]
    tables["brain"]["more"] = 1.0
    found, notes = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    pd.testing.assert_frame_equal(found, expected)
    assert notes == ["view 'brain': columns that the model does not know are left out: 'more'"]


def test_missing_views_are_allowed(parts, tables, write, tmp_path, fitted):
    del parts["views"]["brain"]
    frame, notes = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    assert "view 'brain' is absent for every sample" in notes
    assert len(frame) == 60
    assert frame["p_patient"].between(0, 1).all()
    assert not frame["views_used"].str.contains("brain").any()


def test_a_missing_column_is_an_error_or_the_training_mean(parts, tables, write, tmp_path, fitted):
    name = tables["brain"].columns[3]
    whole = tables["brain"].copy()
    tables["brain"] = whole.drop(columns=name)
    study = new_study(parts, tables, write, tmp_path)
    with pytest.raises(
        StudyError, match=rf"views.brain: does not have 1 .* '{name}'; .*--missing impute"
    ):
        predict_study(fitted, study)
    found, notes = predict_study(fitted, study, missing="impute")
    assert any("take their training means" in n for n in notes)
    tables["brain"] = whole.assign(**{name: np.nan})
    expected, _ = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    np.testing.assert_allclose(found["p_patient"], expected["p_patient"])


def test_levels_a_new_file_lacks_are_zeros(parts, tables, write, tmp_path):
    tables["blood"]["hand"] = ["left", "right"] * 30
    model, _ = fit_study(load_study(write(parts, tables)))
    assert "hand=left" in model.features["blood"].tolist()
    tables["blood"]["hand"] = "right"
    frame, notes = predict_study(model, new_study(parts, tables, write, tmp_path))
    assert notes == []
    assert len(frame) == 60


def test_new_files_that_do_not_fit_are_explained(parts, tables, write, tmp_path, fitted):
    study = new_study(parts, {**tables, "samples": tables["samples"].drop(columns="age")}, write,
                      tmp_path)  # fmt: skip
    with pytest.raises(StudyError, match=r"samples\.file: has no column 'age'"):
        predict_study(fitted, study)
    views = {"other": {"file": "brain.csv"}}
    with pytest.raises(
        StudyError,
        match="views: no view of the file is a view of the model, which are blood, brain",
    ):
        predict_study(fitted, new_study(parts, tables, write, tmp_path, views=views))
    parts["models"] = [{"name": "Dummy"}]
    with pytest.raises(StudyError, match="no model 'RF'"):
        fit_study(load_study(write(parts, tables)), "RF")


def test_a_model_that_fails_says_why(parts, tables, write):
    parts["models"] = [{"name": "LSVM-l1", "grid": {"c_ratio": [-1.0, -2.0]}}]
    with pytest.raises(StudyError, match="LSVM-l1: every setting failed"):
        fit_study(load_study(write(parts, tables)))


def test_a_study_without_probabilities_or_classes(parts, tables, write, tmp_path):
    parts["models"] = [
        {"name": "LSVM-l1", "settings": {"c_ratio": 3.0, "class_weight": "balanced"}}
    ]
    model, _ = fit_study(load_study(write(parts, tables)))
    frame, _ = predict_study(model, new_study(parts, tables, write, tmp_path))
    assert list(frame.columns) == ["sample", "predicted", "score", "views_used", "flags"]
    parts["outcome"] = {"column": "score", "task": "regression"}
    parts["models"] = [{"name": "ridge", "estimator": "sklearn.linear_model.Ridge"}]
    model, _ = fit_study(load_study(write(parts, tables)))
    frame, _ = predict_study(model, new_study(parts, tables, write, tmp_path))
    assert np.corrcoef(frame["predicted"], tables["samples"]["score"])[0, 1] > 0.9


def test_baldur_tells_the_spread_of_numbers(parts, tables, write, tmp_path):
    parts["outcome"] = {"column": "score", "task": "regression"}
    parts["models"] = [{"name": "BALDUR", "settings": {"members": ["pooled"]}}]
    tables["brain"] = tables["brain"].iloc[5:]
    model, _ = fit_study(load_study(write(parts, tables)))
    frame, _ = predict_study(model, new_study(parts, tables, write, tmp_path))
    assert list(frame.columns) == [
        "sample",
        "predicted",
        "sd",
        "lower",
        "upper",
        "views_used",
        "flags",
    ]
    assert ((frame["lower"] < frame["predicted"]) & (frame["predicted"] < frame["upper"])).all()
    assert frame["views_used"].tolist() == ["blood"] * 5 + ["blood; brain"] * 55


# -- the folder ------------------------------------------------------------------------------


def test_the_manifest_says_what_the_model_is(fitted, tmp_path):
    manifest = json.loads((tmp_path / "model" / "manifest.json").read_text())
    assert manifest["schema"] == 4
    assert manifest["classes"] == ["control", "patient"]
    assert manifest["details"]["model"] == "BALDUR"
    assert [view["name"] for view in manifest["views"]][:2] == ["blood", "brain"]
    assert manifest["model"] == "baldur classifier"
    assert manifest["class"] == "BaldurClassifier"
    assert manifest["regress_out"]


@pytest.mark.parametrize("name", ["arrays.safetensors", "state.json"])
def test_damage_is_found_before_anything_is_opened(fitted, tmp_path, name):
    file = tmp_path / "model" / name
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(InputError, match="not what the manifest says"):
        load(tmp_path / "model", study=True)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"schema": 99}, "newer baldur"),
        ({"schema": None}, "not one that baldur wrote"),
        ({"views": ...}, "changed after"),
        ({"classes": ["patient", "control"]}, "changed after"),
    ],
)
def test_manifests_of_other_kinds_are_refused(fitted, tmp_path, change, said):
    file = tmp_path / "model" / "manifest.json"
    manifest = json.loads(file.read_text())
    for key, value in change.items():
        manifest.pop(key) if value is ... else manifest.update({key: value})
    file.write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=said):
        load(tmp_path / "model", study=True)


def test_nothing_but_a_model_folder_is_replaced(fitted, tmp_path):
    with pytest.raises(InputError, match="holds a model"):
        save(fitted, tmp_path / "model")
    save(fitted, tmp_path / "model", overwrite=True)
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.jpg").write_bytes(b"cat")
    with pytest.raises(InputError, match="is not a model folder"):
        save(fitted, tmp_path / "photos", overwrite=True)
    with pytest.raises(InputError, match="is not a model folder"):
        load(tmp_path / "photos", study=True)
    assert sorted(f.name for f in tmp_path.iterdir() if f.name.startswith(".")) == []


def test_a_failed_save_leaves_the_old_model(fitted, tmp_path, monkeypatch):
    before = (tmp_path / "model" / "manifest.json").read_bytes()
    broken = SavedModel(BASELINES["Ridge logistic"].make())
    with pytest.raises(InputError, match="cannot be saved"):
        save(broken, tmp_path / "model", overwrite=True)
    assert (tmp_path / "model" / "manifest.json").read_bytes() == before


def test_a_level_that_the_model_does_not_know_is_missing(parts, tables, write, tmp_path):
    """Neither zeros (which would mean the reference level) nor an error."""
    tables["blood"]["smoker"] = np.repeat(["never", "now", "past"], 20)
    parts["covariates"] = {"include": ["sex"], "regress_out": ["site"]}
    parts["models"] = [QUICK]
    saved, _ = fit_study(load_study(write(parts, tables)))
    new = {name: frame.copy() for name, frame in tables.items()}
    samples = new["samples"].astype({"sex": object, "site": object})
    samples.loc[0, "sex"], samples.loc[1, "sex"] = "x", ""
    samples.loc[2, "site"], samples.loc[3, "site"] = "bonn", ""
    new["samples"] = samples
    new["blood"] = new["blood"].astype({"smoker": object})
    new["blood"].loc[4, "smoker"], new["blood"].loc[5, "smoker"] = "sometimes", ""
    got, _ = predict_study(saved, load_study(write(parts, new, tmp_path / "new"), predicting=True))
    missing = {name: frame.copy() for name, frame in new.items()}
    missing["samples"].loc[0, "sex"], missing["samples"].loc[2, "site"] = "", ""
    missing["blood"].loc[4, "smoker"] = ""
    expected, _ = predict_study(
        saved, load_study(write(parts, missing, tmp_path / "missing"), predicting=True)
    )
    same = [column for column in got.columns if column != "flags"]
    pd.testing.assert_frame_equal(got[same], expected[same])
    assert "unknown category: blood: smoker = 'sometimes'" in got["flags"][4]
    assert expected["flags"][4] == "imputed: blood: smoker"
    folder = save(saved, tmp_path / "model")
    study = tmp_path / "new" / "study.toml"
    done = CliRunner().invoke(app, ["predict", str(folder), str(study), "--out", "-"])
    about = [line for line in done.stderr.splitlines() if "sometimes" in line]
    assert len(about) == 1  # said once, with the sample and the known levels
    assert "View 'blood': smoker = 'sometimes' (known levels: 'never', 'now', 'past')" in about[0]
    assert "Samples: 'p04'" in about[0]
    plain, _ = predict_study(saved, load_study(write(parts, tables, tmp_path / "same")))
    assert (got["p_patient"].iloc[6:] == plain["p_patient"].iloc[6:]).all()
    assert (got["p_patient"].iloc[:6] != plain["p_patient"].iloc[:6]).all()


def test_a_level_of_people_without_an_outcome_only_is_missing(parts, tables, write, tmp_path):
    """The file of fit has the level, and no training row does."""
    tables["blood"]["smoker"] = np.repeat(["never", "now", "past"], 20).astype(object)
    tables["blood"].loc[4, "smoker"] = "sometimes"
    tables["samples"].loc[4, "diagnosis"] = ""
    parts["models"] = [{"name": "Ridge logistic", "grid": {}}]
    saved, _ = fit_study(load_study(write(parts, tables)))
    got, _ = predict_study(saved, load_study(write(parts, tables, tmp_path / "a"), predicting=True))
    tables["blood"].loc[4, "smoker"] = ""
    file = write(parts, tables, tmp_path / "b")
    expected, _ = predict_study(saved, load_study(file, predicting=True))
    assert got["p_patient"].tolist() == expected["p_patient"].tolist()
    assert "unknown category: blood: smoker = 'sometimes'" in got["flags"][4]


def test_flags_and_notes_name_samples_that_differ_from_training(parts, tables, write, tmp_path):
    rng = np.random.default_rng(0)
    blood = tables["blood"]
    blood["ward"] = rng.choice(["east", "north", "west"], len(blood))
    blood["age"] = rng.uniform(40, 80, len(blood)).round()
    parts["models"] = [
        {"name": "BALDUR", "settings": {"members": ["pooled"], "margin": 0.0}},
    ]
    model, _ = fit_study(load_study(write(parts, tables)))
    changed = blood.astype({"age": float})
    ids = changed["sample"].tolist()
    changed.loc[0, "age"] = 540.0
    changed.loc[1, "ward"] = "South"
    changed.loc[2, "age"] = np.nan
    tables["blood"] = changed
    tables["brain"] = tables["brain"].drop(index=3)
    with pytest.warns(ShiftWarning) as caught:
        frame, _ = predict_study(model, new_study(parts, tables, write, tmp_path))
    flags = frame.set_index("sample")["flags"]
    low, high = blood["age"].min(), blood["age"].max()
    outside = f"blood: age = 540 (training: {low:g} to {high:g})"
    assert flags[str(ids[0])] == f"outside the training range: {outside}"
    unknown = "ward = 'South' (known levels: 'east', 'north', 'west')"
    assert flags[str(ids[1])] == f"unknown category: blood: {unknown}"
    assert flags[str(ids[2])] == "imputed: blood: age"
    assert flags[str(ids[3])] == "missing view: brain"
    assert (flags.iloc[4:] == "").all()
    told = " ".join(str(w.message) for w in caught)
    assert f"sample {str(ids[0])!r} has age = 540" in told
    assert f"{unknown} did not occur in training and counts as missing. Samples: " in told
    tables["blood"] = blood.rename(columns={"age": "Age"})
    with pytest.raises(StudyError, match=r"does not have 1 .*Did you mean 'age' by 'Age'\?"):
        predict_study(model, new_study(parts, tables, write, tmp_path))


def test_columns_that_were_renamed_are_named_on_both_sides(parts, tables, write, tmp_path):
    blood = tables["blood"]
    blood["smoker"] = np.tile(["yes", "no"], 30)
    parts["models"] = parts["models"][:1]
    model, _ = fit_study(load_study(write(parts, tables)))
    tables["blood"] = blood.rename(columns={"blood_0": "iron", "smoker": "habit"})
    new = new_study(parts, tables, write, tmp_path)
    with pytest.raises(StudyError) as caught:
        predict_study(model, new)
    text = str(caught.value)
    assert "does not have 2 of the model's 5 columns: 'blood_0', 'smoker'; " in text
    assert "columns of the file that the model does not know: 'habit', 'iron'; " in text
    assert "or give --missing impute" in text
    assert "predict with" not in text
    _, notes = predict_study(model, new, missing="impute")
    assert notes == [
        "view 'blood': columns that the file does not have take their training means: "
        "'blood_0', 'smoker'",
        "view 'blood': columns that the model does not know are left out: 'habit', 'iron'",
    ]


def test_an_absurd_value_is_one_note(parts, tables, write, tmp_path):
    parts["models"] = [QUICK]
    fitted, _ = fit_study(load_study(write(parts, tables)))
    folder = save(fitted, tmp_path / "model")
    tables["blood"]["blood_0"] = tables["blood"]["blood_0"].astype(float)
    tables["blood"].loc[3, "blood_0"] = 540.0
    kept = {k: v for k, v in parts.items() if k in ("samples", "views", "outcome", "output")}
    file = write(kept, tables, tmp_path / "new")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        why = ["--explain", str(tmp_path / "why.csv")]
        arguments = ["predict", str(folder), str(file), "--out", str(tmp_path / "p.csv"), *why]
        shown = CliRunner().invoke(app, arguments, catch_exceptions=False)
        done = validate_study(load(folder, study=True), load_study(file, predicting=True))
    assert shown.output.count("sample 'p03' has blood_0 = 540") == 1
    assert ".." not in shown.output
    for name in ("validation.txt", "log.txt"):
        written = (done.folder / name).read_text()
        assert written.count("sample 'p03' has blood_0 = 540") == 1
        assert "samples.." not in written


def test_columns_that_the_model_never_had_may_hold_anything(parts, tables, write, tmp_path):
    parts["models"] = parts["models"][:1]
    parts["views"]["blood"]["exclude"] = ["admission", "remark"]
    days = pd.date_range("2024-01-31", periods=60).strftime("%Y-%m-%d")
    tables["blood"] = tables["blood"].assign(admission=days, remark=[f"r{k}" for k in range(60)])
    model, _ = fit_study(load_study(write(parts, tables)))
    expected, _ = predict_study(model, new_study(parts, tables, write, tmp_path))
    del parts["views"]["blood"]["exclude"]
    frame, notes = predict_study(model, new_study(parts, tables, write, tmp_path))
    pd.testing.assert_frame_equal(frame, expected)
    unknown = "columns that the model does not know are left out: 'admission', 'remark'"
    assert notes == [f"view 'blood': {unknown}"]
    # A column of the model that cannot be read is still an error.
    tables["blood"]["blood_0"] = days
    with pytest.raises(StudyError, match="'blood_0' holds dates"):
        predict_study(model, new_study(parts, tables, write, tmp_path))


def test_costs_of_a_study(parts, tables, write, tmp_path):
    """Costs are settings of a model; the page of the fitted model says what to order."""
    settings = {"cost": {"brain": 800, "blood": 20}, "n_features": {"blood": 2, "brain": 1}}
    parts["models"] = [{"name": "BALDUR", "settings": settings}]
    model, _ = fit_study(load_study(write(parts, tables, tmp_path)))
    saved = load(save(model, tmp_path / "model"), study=True)
    inner = saved.estimator
    assert inner.cost == settings["cost"]
    assert set(", ".join(inner.cost_path_["orders"]).split(", ")) - {""} == {"blood", "brain"}
    counts = {view: int(mask.sum()) for view, mask in inner.selected_features_.items()}
    assert counts == {"blood": 2, "brain": 1}
    page = report_folder(tmp_path / "model")
    assert "Which tests give which accuracy" in page.read_text()


@pytest.mark.parametrize("name", ["Ridge logistic", "BALDUR"])
def test_a_model_whose_samples_lack_a_class_keeps_the_names_of_the_others(name, write, tmp_path):
    rng = np.random.default_rng(0)
    label = np.repeat(["low", "mid", "high"], 20)
    ids = [f"p{i:02d}" for i in range(60)]
    signal = np.where(label == "high", 3.0, -3.0)
    blood = pd.DataFrame(
        {"sample": ids, "a": signal + rng.normal(size=60), "b": rng.normal(size=60)}
    )
    tables = {
        "samples": pd.DataFrame({"sample": ids, "group": label}),
        "blood": blood[label != "low"],
        "brain": pd.DataFrame({"sample": ids, "c": rng.normal(size=60)}),
    }
    model = (
        {**QUICK, "views": ["blood"]}
        if name == "BALDUR"
        else {"name": name, "views": ["blood"], "grid": {"C": [1.0]}}
    )
    parts = {
        "align": "union",
        "samples": {"file": "samples.csv", "id": "sample"},
        "outcome": {"column": "group"},
        "views": {"blood": {"file": "blood.csv"}, "brain": {"file": "brain.csv"}},
        "folds": {"outer": 2, "inner": 2},
        "models": [model],
    }
    fitted, notes = fit_study(load_study(write(parts, tables)))
    (note,) = [n for n in notes if "cannot predict" in n]
    assert "is of class low" in note
    assert fitted.classes == ["high", "mid"]
    frame, _ = predict_study(fitted, new_study(parts, tables, write, tmp_path))
    truth = dict(zip(ids, label, strict=True))
    seen = frame[frame["sample"].map(truth) != "low"]
    assert (seen["predicted"] == seen["sample"].map(truth)).mean() > 0.9
