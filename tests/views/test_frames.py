"""DataFrames as people have them: text, categories, truth values, nullable columns; named views."""

import re

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.compose import make_column_selector
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from baldur import BaldurClassifier, BaldurRegressor, MultiView, Preparation
from baldur.baselines import BASELINES
from baldur.evaluation import SideBySide, nested_cv
from baldur.exceptions import InputError
from baldur.io import read_table

N = 90
DENSE = {"members": ("pooled",)}

pytestmark = pytest.mark.usefixtures("one_repeat")


def cohort(seed=0):
    """A table with every kind of column, and outcomes that follow it."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "gene_a": rng.normal(size=N),
            "gene_b": rng.normal(size=N),
            "town": rng.permutation(["Bonn", "Lima", "Oslo"] * (N // 3)),
            "stage": pd.Categorical(rng.permutation(["I", "II", "III"] * (N // 3))),
            "smokes": rng.random(N) < 0.5,
            "visits": pd.array(rng.integers(0, 9, N), dtype="Int64"),
            "treated": pd.array(rng.random(N) < 0.5, dtype="boolean"),
            "age": rng.uniform(40, 80, N),
        }
    )
    frame.loc[3, ["town", "gene_a"]] = None
    frame.loc[4, "visits"] = pd.NA
    frame.loc[5, ["treated", "stage"]] = pd.NA
    logit = 2 * frame["gene_b"] + 2 * (frame["town"] == "Oslo") + frame["smokes"] - 1
    return frame, (logit + rng.logistic(size=N) > 0).astype(int).to_numpy()


def test_a_frame_is_encoded_as_its_file_would_be(tmp_path):
    frame, _ = cohort()
    frame.index = [f"p{i}" for i in range(N)]
    frame.to_csv(tmp_path / "t.csv", index_label="id")
    file = read_table(tmp_path / "t.csv")
    mv = MultiView({"t": frame})
    assert mv.feature_names["t"].tolist() == file.feature_names["t"].tolist()
    assert mv.feature_names["t"].tolist()[2:5] == ["town=Bonn", "town=Lima", "town=Oslo"]
    np.testing.assert_allclose(mv.view("t").read(), file.view("t").read())
    pd.testing.assert_frame_equal(mv.feature_info["t"], file.feature_info["t"])
    assert mv.sample_ids.tolist() == file.sample_ids.tolist()


@pytest.mark.parametrize(
    "model",
    [
        BaldurClassifier(**DENSE),
        BaldurRegressor(**DENSE),
        BASELINES["Ridge logistic"].make(),
        SideBySide(LogisticRegression()),
    ],
    ids=["classifier", "regressor", "competitor", "scikit-learn"],
)
def test_models_take_frames_and_match_new_ones_by_name(model, tmp_path):
    frame, y = cohort()
    made = clone(model).fit(frame[:70], y[:70])
    same = clone(model).fit(MultiView({"X": frame})[:70], y[:70])
    new = frame[70:].copy()
    want = same.predict(MultiView({"X": frame})[70:])
    np.testing.assert_allclose(made.predict(new), want, atol=1e-12)
    # One at a time, so that no file has all levels; and with a level training did not have.
    alone = np.concatenate([made.predict(new.iloc[[i]]) for i in range(len(new))])
    np.testing.assert_allclose(alone, want, atol=1e-9)
    unknown, missing = new.assign(town="Kyiv"), new.assign(town=None)
    np.testing.assert_allclose(made.predict(unknown), made.predict(missing), atol=1e-12)
    assert made.feature_names_["X"].tolist() == same.feature_names_["X"].tolist() if hasattr(
        made, "feature_names_") else True  # fmt: skip
    assert np.isfinite(cross_val_predict(clone(model), frame, y, cv=3)).all()


def test_levels_that_are_numbers_are_found_in_numbers():
    rng = np.random.default_rng(1)
    ward = rng.integers(1, 4, 60)
    y = (ward == 2).astype(int)
    frame = pd.DataFrame({"ward": pd.Categorical(ward), "x": rng.normal(size=60)})
    model = BaldurClassifier(**DENSE).fit(frame, y)
    numbers = frame.assign(ward=ward.astype(float))
    np.testing.assert_allclose(model.predict_proba(numbers), model.predict_proba(frame))
    missing, unknown = frame.assign(ward=np.nan), frame.assign(ward=7.0)
    np.testing.assert_allclose(model.predict_proba(missing), model.predict_proba(unknown))


def test_levels_of_test_rows_are_not_learned():
    frame, y = cohort()
    frame.loc[80:, "town"] = "Kyiv"
    model = BaldurClassifier(**DENSE).fit(frame[:80], y[:80])
    assert "town=Kyiv" not in model.feature_names_["X"]
    result = nested_cv({"Ridge logistic": {"C": [1.0]}}, frame, y, outer=3, inner=3)
    assert result.failures == {}


def test_the_summary_names_levels():
    frame, y = cohort()
    model = BaldurClassifier(**DENSE).fit(frame, y)
    table = model.summary(everything=True).set_index("feature")
    assert table.loc["town=Oslo", ["column", "level"]].tolist() == ["town", "Oslo"]
    assert table.loc["town=Bonn", "weight"] == 0  # the reference
    assert not model.selected_features_["X"][list(model.feature_names_["X"]).index("town=Bonn")]
    assert model.n_features_in_ == frame.shape[1]
    assert model.feature_names_in_.tolist() == frame.columns.tolist()


VIEWS = {
    "names": {"genes": ["gene_a", "gene_b"], "clinic": ["town", "smokes"]},
    "star": {"genes": "gene_*", "clinic": ["town", "smo*"]},
    "expression": {"genes": re.compile("^gene_"), "clinic": re.compile("town|smokes")},
    "selector": {
        "genes": make_column_selector("^gene_"),
        "clinic": make_column_selector("^(town|smokes)$"),
    },
    "numbers": {"genes": [0, 1], "clinic": [2, 4]},
}


@pytest.mark.parametrize("form", VIEWS)
def test_views_by_name_pattern_and_function(form):
    frame, y = cohort()
    mv = MultiView.from_columns(frame, VIEWS[form])
    assert {v: [str(n).split("=")[0] for n in names] for v, names in mv.feature_names.items()} == {
        "genes": ["gene_a", "gene_b"], "clinic": ["town"] * 3 + ["smokes"],
    }  # fmt: skip
    assert mv.samples.columns.tolist() == ["stage", "visits", "treated", "age"]
    model = clone(BaldurClassifier(VIEWS[form], **DENSE)).fit(frame, y)
    want = BaldurClassifier(VIEWS["names"], **DENSE).fit(frame, y)
    np.testing.assert_array_equal(model.predict_proba(frame), want.predict_proba(frame))


def test_columns_that_no_view_names_may_be_regressed_out():
    frame, y = cohort()
    views = {"genes": "gene_*"}
    template = Preparation(regress_out=["age", "stage"])
    model = BaldurClassifier(views, preparation=template, **DENSE).fit(frame[:60], y[:60])
    samples = frame[["age", "stage"]]
    mv = MultiView({"genes": frame[["gene_a", "gene_b"]]}, samples=samples)
    want = BaldurClassifier(preparation=template, **DENSE).fit(mv[:60], y[:60])
    np.testing.assert_allclose(
        model.predict_proba(frame[60:]), want.predict_proba(mv[60:]), atol=1e-12
    )
    with pytest.raises(InputError, match=r"missing:\n- age"):
        model.predict_proba(frame.drop(columns="age"))


@pytest.mark.parametrize(
    ("views", "words"),
    [
        ({"g": "protein_*"}, ["'g'", "no column", "protein_", "gene_a"]),
        ({"g": "gene_"}, ["'g'", "no column 'gene_'", "write 'gene_*'"]),
        ({"g": re.compile("^x")}, ["'g'", "no column of X fits '^x'"]),
        ({"g": make_column_selector("^x")}, ["'g'", "chooses none of the 8 columns"]),
        ({"g": ["gene_a", "gene_*"]}, ["'g'", "listed more than once"]),
    ],
)
def test_one_clear_error(views, words):
    frame, _ = cohort()
    with pytest.raises(InputError) as caught:
        MultiView.from_columns(frame, views)
    for word in words:
        assert word in str(caught.value)


@pytest.mark.parametrize("form", ["names", "star", "expression", "selector"])
def test_behind_transformers_names_are_kept_or_asked_for(form):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(N, 4)), columns=["gene_a", "gene_b", "town", "smokes"])
    y = (frame["gene_a"] > 0).astype(int)
    views = VIEWS[form]
    model = BaldurClassifier(views, **DENSE)
    pipeline = make_pipeline(StandardScaler(), model)
    with pytest.raises(InputError, match=r'set_output\(transform="pandas"\)'):
        pipeline.fit(frame, y)
    named = clone(pipeline).set_output(transform="pandas").fit(frame, y)
    numbered = make_pipeline(
        StandardScaler(), BaldurClassifier({"genes": [0, 1], "clinic": [2, 3]}, **DENSE)
    ).fit(frame, y)
    np.testing.assert_allclose(named.predict_proba(frame), numbered.predict_proba(frame))
    # Fitted with names, an array has them from the fit, and scikit-learn warns.
    alone = clone(model).fit(frame, y)
    with pytest.warns(UserWarning, match="valid feature names"):
        found = alone.predict_proba(frame.to_numpy())
    np.testing.assert_array_equal(found, alone.predict_proba(frame))
