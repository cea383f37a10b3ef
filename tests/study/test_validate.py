"""A frozen model on a new cohort: its figures, what differs, and what recalibration gives."""

import numpy as np
import pandas as pd
import pytest
import tomli_w
from scipy.special import expit, logit
from typer.testing import CliRunner

from baldur.cli import app
from baldur.evaluation.cohort_shift import describe_views, drift_notes, predictor_shift, recalibrate
from baldur.exceptions import StudyError
from baldur.saving import load, save
from baldur.study import evaluate_study, fit_study, load_study, validate_study
from baldur.views import MultiView
from shared_cohorts import load_shared
from study.conftest import QUICK, make_parts, make_tables, write_study

RIDGE = {"name": "Ridge logistic", "grid": {"C": [0.01, 0.1]}}


def write_ad_csf(folder, shared_data, model):
    """Study of the fixed split, study of its training rows, and description of its test rows."""
    cohort = load_shared(shared_data / "ad_csf")
    samples = pd.DataFrame(
        {"sample": cohort.sample_ids, "class": cohort.target, "split": cohort.split}
    )
    for part in ("all", "train", "test"):
        rows = samples if part == "all" else samples[samples["split"] == part]
        rows.to_csv(folder / f"{part}.csv", index=False)
    for view in cohort.data.view_names:
        frame = pd.DataFrame(cohort.data.view(view).read(), columns=cohort.data.feature_names[view])
        frame.insert(0, "sample", cohort.sample_ids)
        frame.to_csv(folder / f"{view}.csv", index=False)
    files = []
    for part in ("all", "train", "test"):
        study = {
            "output": f"results_{part}",
            "samples": {"file": f"{part}.csv", "id": "sample"},
            "outcome": {"column": "class", "positive": "Impaired"},
            "views": {v: {"file": f"{v}.csv"} for v in cohort.data.view_names},
            "folds": {"inner": 3},
            "models": [model],
        }
        if part == "all":
            study["samples"]["split"] = "split"
        if part == "test":
            del study["models"]
        files.append(folder / f"{part}.toml")
        files[-1].write_text(tomli_w.dumps(study))
    return files


@pytest.mark.parametrize(
    "model",
    [RIDGE, pytest.param({"name": "BALDUR"}, marks=pytest.mark.slow)],
    ids=["ridge", "BALDUR"],
)
def test_the_fixed_split_of_a_study_is_reproduced_exactly(shared_data, tmp_path, model):
    whole, train, test = write_ad_csf(tmp_path, shared_data, model)
    own = evaluate_study(load_study(whole))
    saved, _ = fit_study(load_study(train))
    if model["name"] == "BALDUR":
        saved = load(save(saved, tmp_path / "model"), study=True)
    done = validate_study(saved, load_study(test, predicting=True))
    pd.testing.assert_frame_equal(done.table("predictions"), own.run.predictions, check_exact=True)
    scores = own.run.scores().drop(columns="features_percent")
    pd.testing.assert_frame_equal(done.table("scores"), scores, check_exact=True)
    for name in ("intervals.csv", "calibration.csv", "decision.csv", "thresholds.csv"):
        assert (done.folder / name).read_bytes() == (own.folder / name).read_bytes()
    # Drawn from the same cohort: near training, and little to correct.
    assert (done.table("shift_views")["mean_shift"] < 0.3).all()
    assert set(done.table("recalibration")["version"]) == {"intercept", "intercept and slope"}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Folder of one fitted model."""
    folder = tmp_path_factory.mktemp("saved")
    file = write_study({**make_parts(), "models": [QUICK]}, make_tables(), folder)
    return save(fit_study(load_study(file))[0], folder / "model")


@pytest.fixture(scope="module")
def fitted(saved):
    return load(saved, study=True)


def cohort_of(parts, tables, write, tmp_path, **change):
    kept = {k: v for k, v in parts.items() if k in ("samples", "views", "outcome")}
    return load_study(write({**kept, **change}, tables, tmp_path / "new"), predicting=True)


def test_differences_from_training_are_measured(parts, tables, write, tmp_path, fitted):
    brain = tables["brain"]
    first, second, third = brain.columns[1:4]
    sd = brain[first].std(ddof=0)
    new = brain.assign(**{first: brain[first] + 3 * sd, second: brain[second] * 4})
    tables["brain"] = new.drop(columns=third)
    tables["blood"] = tables["blood"].iloc[:45]
    with pytest.raises(StudyError, match="does not have 1 of the model's 12 columns"):
        validate_study(fitted, cohort_of(parts, tables, write, tmp_path))
    done = validate_study(fitted, cohort_of(parts, tables, write, tmp_path), missing="impute")
    views = done.table("shift_views").set_index("view")
    assert views.loc["brain", "worst"] == first
    assert views.loc["brain", "worst_shift"] == pytest.approx(3)
    assert views.loc["brain", ["far", "empty"]].tolist() == [2, 1]
    assert views.loc["blood", "absent"] == 0.25
    features = done.table("shift_features").set_index("feature")
    assert features.loc[second, "spread_ratio"] == pytest.approx(4)
    assert features.loc[first, "outside"] > 0.5
    assert features.loc[third, "missing"] == 1
    rest = features.drop(index=[first, second, third]).query("view == 'brain'")
    # Rows in another order, so that the sums differ in rounding.
    np.testing.assert_allclose(rest["shift"], 0, atol=1e-12)
    assert not rest["outside"].any()
    written = (done.folder / "validation.txt").read_text()
    assert f"worst {first}" in written
    assert "take their training means" in written


def test_figures_of_a_feature_are_those_of_numpy():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 4))
    x[3, 1] = x[:, 3] = np.nan
    mv = MultiView({"x": x, "g": rng.integers(0, 3, (30, 5)).astype(np.int8)})
    figures = describe_views(mv)
    np.testing.assert_allclose(figures["x"]["mean"][:3], np.nanmean(x[:, :3], axis=0))
    np.testing.assert_allclose(figures["x"]["sd"][:3], np.nanstd(x[:, :3], axis=0))
    np.testing.assert_allclose(figures["g"]["high"], mv.view("g").read().max(axis=0))
    assert figures["x"]["count"].tolist() == [30, 29, 30, 0]
    views, features = predictor_shift(figures, mv)
    assert views["mean_shift"].tolist() == [0, 0]
    assert not features["far"].any()


def test_features_that_the_model_uses_are_named_first():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    training = describe_views(MultiView({"x": x}))
    new = MultiView({"x": x + np.array([30.0, 20.0, 0.0])})
    used = {"x": np.array([False, True, True])}
    views, features = predictor_shift(training, new)
    assert views["worst"].tolist() == ["x_0"]
    views, features = predictor_shift(training, new, used)
    assert views["worst"].tolist() == ["x_1"]
    assert features["used"].tolist() == [False, True, True]
    (note,) = drift_notes(views, features)
    assert "the most 'x_1', by +" in note
    views, features = predictor_shift(training, new, {"x": np.zeros(3, dtype=bool)})
    assert views["worst"].tolist() == [""]
    assert "which the model does not use" in drift_notes(views, features)[0]


def made_up(n=4000, a=0.0, b=1.0, seed=0):
    rng = np.random.default_rng(seed)
    true = rng.normal(-0.5, 1.2, n)
    label = np.where(rng.random(n) < expit(true), "case", "control")
    p = expit((true - a) / b)
    return pd.DataFrame(
        {"model": "m", "sample": np.arange(n), "label": label, "predicted": label,
         "p_control": 1 - p, "p_case": p}
    )  # fmt: skip


def test_recalibration_finds_what_is_wrong_and_then_nothing():
    frame = made_up(a=0.8, b=0.5)
    parameters, predictions, _ = recalibrate(frame, ["control", "case"])
    both = parameters.set_index("version").loc["intercept and slope"]
    assert both["intercept"] == pytest.approx(0.8, abs=0.15)
    assert both["slope"] == pytest.approx(0.5, abs=0.05)
    # The same, by an independent fit.
    sm = pytest.importorskip("statsmodels.api")
    x = logit(frame["p_case"])
    fit = sm.Logit((frame["label"] == "case").astype(float), sm.add_constant(x)).fit(disp=0)
    np.testing.assert_allclose([both["intercept"], both["slope"]], fit.params, rtol=1e-6)
    # Applied to all rows, nothing is left to correct.
    p = expit(both["intercept"] + both["slope"] * x)
    again, _, _ = recalibrate(frame.assign(p_case=p, p_control=1 - p), ["control", "case"])
    np.testing.assert_allclose(again["intercept"], 0, atol=1e-6)
    np.testing.assert_allclose(again["slope"], 1, atol=1e-6)
    assert predictions["model"].nunique() == 2


def test_recalibrated_figures_are_from_other_rows():
    """A person's label changes the recalibrated probabilities of others, and not of its group."""
    frame = made_up(n=60)
    flipped = frame.copy()
    flipped.loc[7, "label"] = "case" if frame.loc[7, "label"] == "control" else "control"
    groups = np.arange(60) // 6
    one, two = (
        recalibrate(f.assign(group=groups), ["control", "case"])[1]["p_case"][:60]
        for f in (frame, flipped)
    )
    mates = groups == groups[7]
    # Whole groups are left out together, so the group of the changed row sees nothing of it.
    np.testing.assert_array_equal(one[mates], two[mates])
    assert (one != two)[~mates].any()


@pytest.mark.parametrize(
    ("classes", "change", "said"),
    [
        (["control", "case"], {"p_case": np.nan, "p_control": np.nan}, "no probabilities"),
        (["control", "case"], {"label": "case"}, "two samples or more"),
        (["a", "b", "c"], {}, "two classes"),
        (["control", "case"], {"group": "one"}, "one group"),
    ],
)
def test_where_recalibration_is_not_possible_it_says_why(classes, change, said):
    _, predictions, left_out = recalibrate(made_up(n=40).assign(**change), classes)
    assert predictions.empty
    assert all(said in why for _, why in left_out)
    assert len(left_out) == 2


def test_mistakes_are_named(parts, tables, write, tmp_path, fitted):
    kept = {k: v for k, v in parts.items() if k in ("samples", "views")}
    study = load_study(write(kept, tables, tmp_path / "new"), predicting=True)
    with pytest.raises(StudyError, match="outcome: missing"):
        validate_study(fitted, study)
    samples = tables["samples"]
    for column, said in (
        (["ill"] * 60, "'ill', which is not a class of the model"),
        ([""] * 60, "'diagnosis' has no values"),
    ):
        tables["samples"] = samples.assign(diagnosis=column)
        with pytest.raises(StudyError, match=said):
            validate_study(fitted, cohort_of(parts, tables, write, tmp_path))


def test_a_model_without_probabilities_or_classes(parts, tables, write, tmp_path):
    parts["models"] = [
        {"name": "LSVM-l1", "settings": {"c_ratio": 3.0, "class_weight": "balanced"}}
    ]
    model, _ = fit_study(load_study(write(parts, tables)))
    done = validate_study(model, cohort_of(parts, tables, write, tmp_path))
    assert np.isfinite(done.table("scores")["auc"]).all()
    assert not len(done.table("recalibration"))
    assert "no probabilities" in (done.folder / "validation.txt").read_text()
    parts["outcome"] = {"column": "score", "task": "regression"}
    parts["models"] = [{"name": "ridge", "estimator": "sklearn.linear_model.Ridge"}]
    model, _ = fit_study(load_study(write(parts, tables)))
    done = validate_study(model, cohort_of(parts, tables, write, tmp_path), fresh=True)
    assert done.table("scores").loc[0, "r2"] > 0.8


def test_the_command(parts, tables, write, tmp_path, saved):
    parts["report"] = {"subgroups": ["sex"]}
    tables["samples"].loc[:4, "diagnosis"] = ""
    kept = {k: v for k, v in parts.items() if k in ("samples", "views", "outcome", "report")}
    file = write(kept, tables, tmp_path / "new")
    done = CliRunner().invoke(app, ["validate", str(saved), str(file)])
    assert done.exit_code == 0, done.output
    assert "on 55 new ones" in done.stdout
    assert "Recalibrated on this cohort" in done.stdout
    folder = tmp_path / "new" / "results"
    assert {"predictions.csv", "intervals.csv", "shift_views.csv", "recalibration.csv",
            "recalibrated_intervals.csv"} <= {f.name for f in folder.iterdir()}  # fmt: skip
    # The frozen model's files hold nothing of the recalibrated ones.
    assert set(pd.read_csv(folder / "intervals.csv")["model"]) == {"BALDUR"}
