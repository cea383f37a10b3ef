"""A model that `fit_study` saved is read as one fitted in Python, over all columns of the files."""

import numpy as np
import pandas as pd
import pytest
import tomli_w
from typer.testing import CliRunner

from baldur import BaldurClassifier
from baldur.cli import app
from baldur.saving import load, save
from baldur.study import fit_study, load_study, predict_study
from baldur.views import MultiView

N = 60


pytestmark = pytest.mark.usefixtures("one_repeat")


@pytest.fixture
def saved(parts, tables, write, tmp_path):
    """With a category of four levels, covariates taken out, and sites aligned."""
    ill = tables["samples"]["diagnosis"] == "patient"
    rng = np.random.default_rng(0)
    drawn = rng.choice(["left", "none", "right"], N)
    tables["blood"]["side"] = np.where(ill & (rng.random(N) < 0.6), "both", drawn)
    parts["covariates"] = {"regress_out": ["age", "sex"]}
    parts["harmonise"] = {"by": "site", "views": ["brain"]}
    parts["models"] = [{"name": "BALDUR"}]
    study = load_study(write(parts, tables))
    model, _ = fit_study(study)
    return load(save(model, tmp_path / "model"), study=True)


WIDTHS = {"blood": 8, "brain": 12}


def test_attributes_cover_every_column_of_the_files(saved, parts, tables, tmp_path):
    model = saved.estimator
    for name in ("coef_", "coef_std_", "coef_scaled_", "coef_scaled_std_"):
        assert {v: w.shape for v, w in getattr(model, name).items()} == {
            v: (1, width) for v, width in WIDTHS.items()
        }
    for name in ("inclusion_probability_", "selected_features_"):
        assert {v: len(w) for v, w in getattr(model, name).items()} == WIDTHS
    names = model.feature_names_["blood"].tolist()
    levels = [f"side={level}" for level in ("both", "left", "none", "right")]
    assert set(levels) <= set(names)
    kept = model.selected_features_["blood"][[names.index(level) for level in levels]]
    # The reference level has no column; the others are in or out together.
    assert kept.tolist() in ([False] * 4, [False, True, True, True])
    assert set(model.view_relevance_) == set(WIDTHS)

    table = model.summary()
    assert str(table).startswith(f"{len(table)} of 19 features selected.")

    new = tmp_path / "study.toml"
    new.write_text(tomli_w.dumps({k: parts[k] for k in ("samples", "views")}))
    arguments = ["predict", tmp_path / "model", new, "--out", tmp_path / "p.csv"]
    arguments += ["--explain", tmp_path / "why.csv"]
    done = CliRunner().invoke(app, [str(a) for a in arguments])
    assert done.exit_code == 0, done.output
    frame = pd.read_csv(tmp_path / "p.csv")
    assert (frame["p_patient_lower"] < frame["p_patient_upper"]).all()
    why = pd.read_csv(tmp_path / "why.csv")
    sums = why.groupby("sample", sort=False)["contribution"].sum()
    p = frame["p_patient"].to_numpy()
    np.testing.assert_allclose(sums, np.log(p) - np.log1p(-p), rtol=0, atol=1e-10)


def test_without_steps_it_is_the_model_fitted_in_python(parts, tables, write, tmp_path):
    parts["models"] = [{"name": "BALDUR"}]
    study = load_study(write(parts, tables))
    saved, _ = fit_study(study)
    model = load(save(saved, tmp_path / "model"), study=True).estimator
    cells = {view: tables[view].set_index("sample") for view in ("blood", "brain")}
    y = (tables["samples"]["diagnosis"] == "patient").to_numpy().astype(int)
    seed = model.get_params()["random_state"]
    own = BaldurClassifier(random_state=seed).fit(MultiView(cells), y)
    for name in ("coef_", "coef_std_", "coef_scaled_", "inclusion_probability_"):
        for view in cells:
            np.testing.assert_allclose(
                getattr(model, name)[view], getattr(own, name)[view], rtol=1e-9, atol=1e-12
            )
    assert model.view_relevance_ == pytest.approx(own.view_relevance_)
    pd.testing.assert_frame_equal(
        model.summary().drop(columns="output"), own.summary().drop(columns="output")
    )
    frame, _ = predict_study(saved, load_study(write(parts, tables), predicting=True))
    np.testing.assert_allclose(frame["p_patient"], own.predict_proba(MultiView(cells))[:, 1])
    np.testing.assert_allclose(
        frame["p_patient_lower"], own.predict_interval(MultiView(cells))[0][:, 1]
    )
