"""How settings are chosen, in which order models run, and folds that lack a class."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.svm import LinearSVC

from baldur import Preparation
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.evaluation import Model, make_model, nested_cv
from baldur.exceptions import InputError
from baldur.views import MultiView

pytestmark = pytest.mark.usefixtures("few_resamples")


class Sharpened(ClassifierMixin, BaseEstimator):
    """Probabilities of one column, raised to a power: the order of the rows does not change."""

    def __init__(self, power=1.0, views=None):
        self.power = power
        self.views = views

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, X):
        p = 1 / (1 + np.exp(-self.power * X.view("a").read()[:, 0]))
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return (self.predict_proba(X)[:, 1] > 0.5).astype(int)


def test_ties_are_broken_by_log_loss():
    rng = np.random.default_rng(0)
    x = rng.normal(size=200)
    y = (rng.random(200) < 1 / (1 + np.exp(-x))).astype(int)
    mv = MultiView({"a": np.column_stack([x, rng.normal(size=200)])})
    for powers in ([0.05, 1.0, 8.0], [8.0, 1.0, 0.05]):
        result = nested_cv({"S": (Sharpened(), {"power": powers})}, mv, y, outer=3, inner=3)
        assert set(result.settings["value"]) == {1.0}
    equal = nested_cv(
        {"Dummy": {"strategy": ["prior", "most_frequent"]}},
        mv,
        y,
        outer=2,
        inner=2,
        select_by="auc",
    )
    assert set(equal.settings["value"]) == {"prior"}


def test_models_run_in_the_order_listed():
    sim = make_multiview(40, {"a": 4, "b": 3}, random_state=1)
    order = ["LSVM-l1", "Dummy", "Ridge logistic"]
    models = {"LSVM-l1": {"c_ratio": [3.0, 10.0]}, "Dummy": None,
              "Ridge logistic": {"C": [0.1, 1.0]}}  # fmt: skip
    seen = []
    nested_cv(
        models, sim.data, sim.target, outer=2, inner=2,
        progress=lambda state: seen.append(state.current.split(",")[0]),
    )  # fmt: skip
    names = [name for name in seen if name]
    # One job of every model comes first, for the estimate of the time left.
    names = names[names.index(order[-1]) + 1 :]
    assert names[0] == order[0]
    assert names == sorted(names, key=order.index)
    # With more workers than folds all are done together, and nothing else changes.
    quick = {"Dummy": None, "Ridge logistic": {"C": [0.1, 1.0]}}
    split = np.where(np.arange(40) % 4 == 0, "test", "train")
    kept = nested_cv(quick, sim.data, sim.target, split=split, inner=2)
    wide = nested_cv(quick, sim.data, sim.target, split=split, inner=2, n_jobs=2)
    pd.testing.assert_frame_equal(kept.predictions, wide.predictions)


@pytest.fixture
def three_sites():
    """Three classes, one of them at one site only."""
    rng = np.random.default_rng(2)
    sites = np.repeat(["lima", "oslo", "rome", "nice"], 15)
    y = np.where(np.arange(60) % 2 == 0, "AD", "CN").astype(object)
    y[sites == "nice"] = np.where(np.arange(15) % 3 == 0, "MCI", y[sites == "nice"])
    shift = pd.Series(y).map({"AD": 2.0, "CN": -2.0, "MCI": 0.0}).to_numpy(float)
    mv = MultiView({"a": rng.normal(size=(60, 3)) + shift[:, None]})
    return mv, y.astype(str), sites


def test_a_class_absent_from_training_has_probability_zero(three_sites):
    mv, y, sites = three_sites
    models = {
        "Ridge logistic": {"C": [0.1, 1.0]},
        "LSVM-l1": {"c_ratio": [3.0]},
        "LDA": LinearDiscriminantAnalysis(),
        "SVC": LinearSVC(),
    }
    result = nested_cv(models, mv, y, sites=sites, inner=3)
    assert result.failures == {}
    left_out = result.predictions[result.predictions["sample"].isin(mv.sample_ids[sites == "nice"]
                                                                    .astype(str))]  # fmt: skip
    for name in ("Ridge logistic", "LDA"):
        mine = left_out[left_out["model"] == name]
        assert (mine["p_MCI"] == 0).all()
        np.testing.assert_allclose(mine[["p_AD", "p_CN", "p_MCI"]].sum(axis=1), 1.0)
    margins = left_out[left_out["model"] == "SVC"]
    assert (margins["score_MCI"] < margins[["score_AD", "score_CN"]].min(axis=1)).all()
    assert np.isfinite(result.table()["accuracy"]).all()
    two = np.where(y == "MCI", "CN", y)
    two[sites != "nice"] = "AD"
    two[sites == "nice"] = np.where(np.arange(15) % 2, "AD", "CN")
    with pytest.raises(InputError, match="one class only"):
        nested_cv(["Dummy"], mv, two, sites=sites)


def test_undefined_precision_and_recall_are_left_out_and_counted():
    sim = make_multiview(45, {"a": 3}, random_state=0)
    y = (np.arange(45) < 12).astype(int)
    models = {"Dummy": None, "Ridge logistic": {"C": [0.01]}}
    result = nested_cv(models, sim.data, y, outer=3, inner=2)
    table = result.table().set_index("model")
    assert np.isnan(table.loc["Dummy", "precision"])
    per_fold = result.scores()
    mine = per_fold[per_fold["model"] == "Ridge logistic"]["precision"]
    assert table.loc["Ridge logistic", "precision"] == pytest.approx(mine.mean(), nan_ok=True)
    known = int(mine.notna().sum())
    if 0 < known < 3:
        assert f"Precision over {known} of 3 folds" in table.loc["Ridge logistic", "note"]


def test_a_first_run_tries_at_most_twelve_settings_and_full_the_rest():
    for name, entry in BASELINES.items():
        classification = entry.classifier is not None
        first = make_model(name, classification=classification)
        full = make_model(name, grid="full", classification=classification)
        assert len(first.settings()) <= 12, name
        assert len(full.settings()) >= len(first.settings())
        for key, values in entry.full_grid.items():
            if key in entry.grid:
                assert set(map(str, entry.grid[key])) <= set(map(str, values)), (name, key)
    assert len(make_model("RF").settings()) == 12
    assert len(make_model("RF", grid="full").settings()) == 108
    with pytest.raises(InputError, match="'full'"):
        make_model("RF", grid="fuller")
    sim = make_multiview(40, {"a": 3}, random_state=0)
    result = nested_cv({"Dummy": "full"}, sim.data, sim.target, outer=2, inner=2)
    assert result.failures == {}


SIZES = []


class Sized(Sharpened):
    """Remembers the size of every fit."""

    def __init__(self, power=1.0, size=9, views=None):
        super().__init__(power, views)
        self.size = size

    def fit(self, X, y):
        SIZES.append(self.size)
        return super().fit(X, y)


def test_settings_of_the_search_do_not_reach_the_fit_that_is_kept():
    row = make_model("RF")
    for model in (row, row.prepared_by(Preparation(regress_out=["age"]))):
        setting = model.settings()[0]
        assert model.make(setting, 0).get_params()["n_estimators"] == 300
        assert model.make(setting, 0, searching=True).get_params()["n_estimators"] == 100
    own = make_model("RF", settings={"n_estimators": 50})
    assert own.make(own.settings()[0], 0, searching=True).get_params()["n_estimators"] == 50
    assert make_model("RF", grid="full").search == {}
    sim = make_multiview(40, {"a": 3}, random_state=0)
    SIZES.clear()
    model = Model("sized", Sized(), {"power": [2, 3]}, {"size": 4})
    nested_cv([model], sim.data, sim.target, outer=2, inner=2)
    assert sorted(SIZES) == [4] * 8 + [9] * 2


def test_a_scale_leaves_the_preparation_of_a_comparison_as_it_is():
    template = Preparation(regress_out=["age"])
    for name in ("BALDUR", "BALDUR (mean-field)"):
        model = make_model(name, settings={"scale": "rank"}).prepared_by(template)
        found = model.estimator.preparation
        assert (found.scale, found.regress_out) == ("rank", ["age"])
    searched = make_model("BALDUR", grid={"scale": ["rank", "standard"]}).prepared_by(template)
    for setting in searched.settings():
        found = searched.make(setting, 0).preparation
        assert (found.scale, found.regress_out) == (setting["preparation"], ["age"])
