"""Side by side, and with covariates taken out: right, and nothing learned from test rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from baldur import Preparation
from baldur.baselines import BASELINES
from baldur.core.model_catalog import CLASSIFICATION_MODELS, MODELS, REGRESSION_MODELS
from baldur.datasets import make_multiview
from baldur.evaluation import SideBySide, make_model
from baldur.evaluation.models import known_models, make_models
from baldur.exceptions import InputError
from baldur.views import MultiView


@pytest.fixture
def sim():
    return make_multiview(80, {"a": 4, "b": 6}, random_state=0)


def test_side_by_side_is_scaling_and_the_estimator(sim):
    X = np.hstack([sim.data.view(v).read() for v in "ab"])
    expected = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, sim.target)
    found = SideBySide(LogisticRegression(), preparation="standard").fit(sim.data, sim.target)
    np.testing.assert_allclose(found.predict_proba(sim.data), expected.predict_proba(X), atol=1e-6)
    assert {v: c.shape for v, c in found.coef_.items()} == {"a": (1, 4), "b": (1, 6)}
    assert found.selected_features_["a"].all()


def test_side_by_side_has_what_the_estimator_has(sim):
    forest = SideBySide(RandomForestClassifier(5, max_depth=1, random_state=0))
    forest.fit(sim.data, sim.target)
    assert 0 < sum(m.sum() for m in forest.selected_features_.values()) <= 5
    assert hasattr(forest, "predict_proba")
    assert not hasattr(SideBySide(Ridge()), "predict_proba")
    assert SideBySide(Ridge()).fit(sim.data, sim.truth.score).predict(sim.data).shape == (80,)


def with_covariates(views, C):
    names = [f"c{j}" for j in range(C.shape[1])]
    return MultiView(views, samples=pd.DataFrame(C, columns=names))


def taking_out(estimator, q, scale=None):
    covariates = [f"c{j}" for j in range(q)]
    return estimator.set_params(preparation=Preparation(scale, regress_out=covariates))


def test_what_covariates_explain_is_gone():
    rng = np.random.default_rng(0)
    C = rng.normal(size=(60, 2))
    X = C @ rng.normal(size=(2, 5)) + 0.1 * rng.normal(size=(60, 5))
    y = (C[:, 0] > 0).astype(int)
    mv = with_covariates({"a": X}, C)
    model = taking_out(SideBySide(LogisticRegression()), 2).fit(mv, y)
    left = model.preparation_.transform(mv)["a"].dense()
    design = np.column_stack([np.ones(60), C])
    np.testing.assert_allclose(design.T @ left, 0, atol=1e-8)
    raw = SideBySide(LogisticRegression()).fit(mv.select("a"), y)
    assert np.mean(raw.predict(mv.select("a")) == y) > 0.9
    assert abs(np.corrcoef(model.decision_function(mv), C[:, 0])[0, 1]) < 0.2


def test_test_rows_teach_nothing():
    rng = np.random.default_rng(1)
    X, C = rng.normal(size=(50, 4)), rng.normal(size=(50, 1))
    C[3, 0] = np.nan
    y = np.arange(50) % 2
    train, test = np.arange(30), np.arange(30, 50)
    model = taking_out(BASELINES["Ridge logistic"].make(), 1)
    one = model.fit(with_covariates({"a": X}, C)[train], y[train])
    expected = one.predict_proba(with_covariates({"a": X}, C)[test])
    X2, C2 = X.copy(), C.copy()
    X2[test], C2[test] = 1e3, -1e3
    other = taking_out(BASELINES["Ridge logistic"].make(), 1)
    other.fit(with_covariates({"a": X2}, C2)[train], y[train])
    np.testing.assert_array_equal(other.predict_proba(with_covariates({"a": X}, C)[test]), expected)
    assert set(other.coef_) == {"a"}
    assert set(other.selected_features_) == {"a"}


def test_wide_views_are_read_in_blocks_and_give_the_same():
    rng = np.random.default_rng(2)
    G = rng.integers(0, 3, (40, 300)).astype(np.int8)
    G[rng.random(G.shape) < 0.05] = -127
    mv = with_covariates({"g": G}, rng.normal(size=(40, 2)))
    y = np.arange(40) % 2
    found = [
        BASELINES["Ridge logistic"]
        .make()
        .set_params(preparation=Preparation(regress_out=["c0", "c1"], max_bytes=size))
        .fit(mv, y)
        .predict_proba(mv)
        for size in (1 << 26, 1000)
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-8)


def test_rows_without_their_covariates_are_explained(sim):
    model = taking_out(BASELINES["Dummy"].make(), 1)
    with pytest.raises(InputError, match=r"'c0'.*no table about its samples"):
        model.fit(sim.data, sim.target)
    model.fit(sim.data.with_samples(pd.DataFrame({"c0": np.arange(80.0)})), sim.target)
    with pytest.raises(InputError, match=r"'c0'.*in prediction"):
        model.predict(sim.data)


def test_models_may_be_written_in_several_ways():
    made = make_models(
        {
            "Ridge logistic": None,
            "RF": {"n_estimators": [5, 10]},
            "mine": LinearDiscriminantAnalysis(),
            "tuned": (LogisticRegression(), {"C": [0.1, 1.0]}),
            "entry": BASELINES["Dummy"],
        }
    )
    assert [len(m.settings()) for m in made] == [12, 2, 1, 2, 1]
    assert isinstance(made[2].estimator, SideBySide)
    assert made[3].make({"estimator__C": 0.1}, 3).estimator.C == 0.1
    assert made[1].make({"n_estimators": 5}, 3).get_params()["random_state"] == 3


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: make_model("LSVM"), "did you mean 'LSVM-l1'"),
        (lambda: make_model("RF", grid={"n_trees": [1]}), "no setting 'n_trees'"),
        (lambda: make_model("RF", grid={"n_estimators": []}), "empty"),
        (lambda: make_models(["RF", "RF"]), "different names"),
        (lambda: make_models({"x": 3}), "expected an estimator"),
        (lambda: make_models(7), "must be names"),
        (lambda: make_model("LSVM-l1", classification=False), "no model 'LSVM-l1' for this task"),
    ],
)
def test_wrong_models_are_explained(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_one_scale_for_every_model():
    for name in ("BALDUR", "LSVM-l1", "RF"):
        assert scaling(make_model(name)) in (None, "clipped")
        assert scaling(make_model(name, settings={"scale": "rank"})) == "rank"
    mine = make_model("mine", estimator=LogisticRegression(), settings={"scale": "rank"})
    assert scaling(mine) == "rank"
    found = mine.prepared_by(Preparation(regress_out=["age"])).estimator.preparation
    assert (found.scale, found.regress_out) == ("rank", ["age"])


def scaling(model):
    return getattr(model.estimator, "scale", model.estimator.preparation)


def test_genotypes_and_two_values_are_not_clipped_behind_covariates():
    rng = np.random.default_rng(2)
    x = np.column_stack([np.arange(60) == 7, rng.normal(size=60)]).astype(float)
    x[5, 1] = 50.0
    C = rng.normal(size=(60, 1))
    mv = with_covariates({"a": x}, C)
    model = taking_out(SideBySide(LogisticRegression()), 1).fit(mv, np.arange(60) % 2)
    seen = model._open(mv)
    assert np.abs(seen[:, 0]).max() > 6
    assert model.preparation_.upper_["a"][1] < 50
    plain = taking_out(SideBySide(LogisticRegression()), 1, "standard")
    assert np.isinf(plain.fit(mv, np.arange(60) % 2).preparation_.upper_["a"]).all()


def test_every_row_is_described_and_regression_rows_are_named():
    assert set(MODELS) == {*known_models(True), *known_models(False)}
    assert set(CLASSIFICATION_MODELS) == set(known_models(True))
    assert set(REGRESSION_MODELS) == set(known_models(False))
