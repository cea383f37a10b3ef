"""Baselines for a numeric outcome: the same names, views and preparation as in classification."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import RandomForestRegressor
from sklearn.utils.estimator_checks import check_estimator

from baldur.baselines import BASELINES, ForestRegressor, MeanRegressor, MVPLSRegressor
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError

ROWS = [name for name, entry in BASELINES.items() if entry.regressor is not None]
SHORT = {"RF": {"n_estimators": 10}, "Boosted trees": {"max_iter": 10}}


@pytest.fixture
def problem():
    sim = make_multiview(90, {"a": 6, "b": 30}, random_state=4)
    rng = np.random.default_rng(4)
    return sim.data, sim.truth.score + 0.3 * rng.normal(size=90)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("row", ROWS)
def test_scikit_learn_checks(row):
    made = BASELINES[row].make(classification=False).set_params(**SHORT.get(row, {}))
    status = [r["status"] for r in check_estimator(made)]
    assert status.count("passed") >= 40
    assert "failed" not in status
    assert "xfail" not in status


def test_the_rows_run_in_a_study_and_beat_the_mean(problem):
    mv, y = problem
    models = {"RF": {}, "Boosted trees": {}, "MV-PLS": {"n_components": [1, 2]}, "Dummy": None}
    result = nested_cv(models, mv, y, task="regression", outer=3, inner=2)
    assert result.failures == {}
    r2 = result.table().set_index("model")["r2"]
    assert r2["Dummy"] <= 0
    assert (r2.drop("Dummy") > 0.1).all()


def test_each_is_the_method_it_names(problem):
    mv, y = problem
    X = np.hstack([mv.view(v).read() for v in mv.view_names])
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    mine = MVPLSRegressor(3, block_scale=False, scale="standard").fit(mv, y).predict(mv)
    theirs = PLSRegression(3, scale=False, tol=1e-12, max_iter=5000).fit(scaled, y).predict(scaled)
    np.testing.assert_allclose(mine, theirs.ravel(), rtol=1e-6, atol=1e-8)
    forest = ForestRegressor(20, scale="standard", random_state=0).fit(mv, y)
    twin = RandomForestRegressor(20, max_features=0.1, random_state=0)
    twin.fit(scaled.astype(np.float32), y)
    np.testing.assert_allclose(forest.predict(mv), twin.predict(scaled.astype(np.float32)))
    np.testing.assert_array_equal(MeanRegressor().fit(mv, y).predict(mv), np.full(90, y.mean()))
    assert not any(m.any() for m in MeanRegressor().fit(mv, y).selected_features_.values())


def test_rows_without_a_counterpart_say_so():
    with pytest.raises(InputError, match="numeric outcome"):
        BASELINES["Stacking"].make(classification=False)
