"""Submodels on the outer folds: predictions of the same fit, without a second one."""

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, r2_score

from baldur import BaldurClassifier, BaldurRegressor
from baldur.datasets import make_multiview
from baldur.evaluation import Model, nested_cv
from constants import constants
from evaluation import spies

pytestmark = [
    pytest.mark.usefixtures("few_resamples"),
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NoSignalWarning"),
]
AS_SELECTED = "as selected"
OPTIONS = {"members": ("spike_slab",)}


def study(task, **more):
    classes = {"binary": 2, "three classes": 3, "regression": None}[task]
    noise = {"noise": 1.0} if classes is None else {}
    sim = make_multiview(90, {"clinic": 6, "genes": 20}, informative={"clinic": 2, "genes": 2},
                         n_classes=classes, random_state=1, **noise)  # fmt: skip
    kind = BaldurRegressor if classes is None else BaldurClassifier
    models = [Model("BALDUR", kind(**OPTIONS))]
    options = {"task": "regression"} if classes is None else {}
    with constants(MOST_REPEATS=1):
        return sim, kind, nested_cv(models, sim.data, sim.target, outer=3, inner=3, **options,
                                    **more)  # fmt: skip


@pytest.fixture(scope="module", params=["binary", "three classes", "regression"])
def made(request):
    return study(request.param)


def test_it_is_the_submodel_of_every_outer_fit(made):
    """A literal twin: fit on a fold, take submodels, predict."""
    sim, kind, result = made
    table = result.few_features()
    assert list(table.columns) == [
        "model", "limit", "features_mean", "features_min", "features_max", "metric", "estimate",
        "low", "high", "difference", "difference_low", "difference_high", "chance",
    ]  # fmt: skip
    assert list(dict.fromkeys(table["limit"])) == ["1", "2", "3", "5", "10", "20", AS_SELECTED]
    fit, fold = result.fits["BALDUR"][1], result.folds[1]
    seed = spies.seeds_seen("BALDUR", sim.data, outer=3, inner=3)[1]
    with constants(MOST_REPEATS=1):
        model = kind(**OPTIONS, random_state=seed)
        model.fit(sim.data[fold.train], result.truth[fold.train])
    for limit, few in fit.few.items():
        small = model.submodel(limit)
        columns = np.flatnonzero(np.concatenate(list(small.selected_features_.values())))
        np.testing.assert_array_equal(few["columns"], columns)
        assert len(columns) == limit
        assert_allclose(few["label"], small.predict(sim.data[fold.test]))
        if kind is BaldurClassifier:
            assert_allclose(few["proba"], small.predict_proba(sim.data[fold.test]))


def test_figures_follow_from_the_stored_predictions(made):
    _, kind, result = made
    table = result.few_features().set_index(["limit", "metric"])
    for limit in ("1", "5"):
        few = [f.few[int(limit)] for f in result.fits["BALDUR"]]
        truth = np.concatenate([result.truth[f.test] for f in result.fits["BALDUR"]])
        if kind is BaldurRegressor:
            got = np.concatenate([one["label"] for one in few])
            assert_allclose(table.loc[(limit, "r2"), "estimate"], r2_score(truth, got))
            assert_allclose(table.loc[(limit, "rmse"), "chance"], truth.std())
        else:
            got = np.concatenate([one["proba"] for one in few])
            assert_allclose(table.loc[(limit, "log_loss"), "estimate"], log_loss(truth, got))
            share = np.bincount(truth) / len(truth)
            chance = table.loc[(limit, "log_loss"), "chance"]
            assert_allclose(chance, -(share * np.log(share)).sum())


def test_differences_are_those_from_the_model(made):
    _, _, result = made
    table = result.few_features()
    own = table[table["limit"] == AS_SELECTED].set_index("metric")
    main = result.evaluation().intervals.query("site == '*'").set_index("metric")
    for metric, row in own.iterrows():
        assert row["difference"] == row["difference_low"] == row["difference_high"] == 0
        assert_allclose(row["estimate"], main.loc[metric, "estimate"])
        assert_allclose([row["low"], row["high"]], main.loc[metric, ["low", "high"]].tolist())
    for row in table.to_dict("records"):
        assert_allclose(row["difference"], row["estimate"] - own.loc[row["metric"], "estimate"])
        assert row["difference_low"] <= row["difference"] <= row["difference_high"]
        if row["limit"] != AS_SELECTED:
            assert row["features_min"] == row["features_max"] == int(row["limit"])


def test_names_and_shares(made):
    _, _, result = made
    names = result.few_names()
    for limit, part in names.groupby("limit"):
        assert part["folds"].sum() == 3 * int(limit)
        assert part["folds"].is_monotonic_decreasing
        assert_allclose(part["share"], part["folds"] / 3)
    fit = result.fits["BALDUR"][0]
    column = int(fit.few[1]["columns"][0])
    view, place = ("clinic", column) if column < 6 else ("genes", column - 6)
    first = names[(names["limit"] == "1") & (names["view"] == view)]
    assert result.data.view(view).feature_names[place] in set(first["feature"])


def test_resumed_and_in_parts_it_is_the_same(tmp_path):
    once = study("binary", store=tmp_path / "jobs")[2]
    again = study("binary", store=tmp_path / "jobs", n_jobs=2)[2]
    for one, other in (
        (once.few_features(), again.few_features()),
        (once.few_names(), again.few_names()),
    ):
        pd.testing.assert_frame_equal(one, other)
        assert len(one)


def test_a_model_without_submodels_has_no_rows():
    sim = make_multiview(60, {"a": 5}, random_state=0)
    result = nested_cv(["Dummy"], sim.data, sim.target, outer=3)
    assert not len(result.few_features())
    assert not len(result.few_names())


def test_several_labels_have_a_table_each():
    sim = make_multiview(60, {"a": 8}, informative={"a": 2}, random_state=0)
    rng = np.random.default_rng(0)
    Y = sim.data.view("a").read()[:, :2] + rng.logistic(size=(60, 2)) > 0
    with constants(MOST_REPEATS=1):
        models = [Model("BALDUR", BaldurClassifier(**OPTIONS))]
        result = nested_cv(models, sim.data, Y.astype(int), outer=2, inner=2)
    used = []
    for column, one in enumerate(result.results.values()):
        table = one.few_features().set_index(["limit", "metric"])
        fits = one.fits["BALDUR"]
        truth = np.concatenate([Y[f.test, column] for f in fits])
        p = np.concatenate([f.few[2]["proba"][:, 1] for f in fits])
        assert_allclose(table.loc[("2", "log_loss"), "estimate"], log_loss(truth, p))
        used.append(np.concatenate([f.few[2]["columns"] for f in fits]))
    np.testing.assert_array_equal(*used)  # one joint fit has the same features for all labels
