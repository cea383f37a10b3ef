"""Baselines for a numeric outcome: the same names, views and preparation as in classification."""

import numpy as np
import pytest
from sklearn.cross_decomposition import PLSRegression
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import ElasticNet, Ridge
from sklearn.utils.estimator_checks import check_estimator

from baldur.baselines import BASELINES, MVPLSRegressor
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.exceptions import InputError, NotConvergedWarning

ROWS = [name for name, entry in BASELINES.items() if entry.regressor is not None]
SHORT = {"RF": {"n_estimators": 10}, "Boosted trees": {"max_iter": 10}}


@pytest.fixture
def problem():
    sim = make_multiview(90, {"a": 6, "b": 30}, random_state=4)
    rng = np.random.default_rng(4)
    return sim.data, sim.truth.score + 0.3 * rng.normal(size=90)


def make(row, **settings):
    return BASELINES[row].make(0, classification=False).set_params(**settings)


def standardised(mv):
    X = np.hstack([mv.view(v).read() for v in mv.view_names])
    return (X - X.mean(axis=0)) / X.std(axis=0)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.parametrize("row", ROWS)
def test_scikit_learn_checks(row):
    status = [r["status"] for r in check_estimator(make(row, **SHORT.get(row, {})))]
    assert status.count("passed") >= 40
    assert "failed" not in status
    assert "xfail" not in status


def test_the_rows_run_in_a_study_and_beat_the_mean(problem):
    mv, y = problem
    models = {
        "RF": {"n_estimators": [30]},
        "Boosted trees": {"max_iter": [30]},
        "MV-PLS": {"n_components": [1, 2]},
        "Ridge": None,
        "Elastic net": None,
        "Dummy": None,
    }
    result = nested_cv(models, mv, y, task="regression", outer=3, inner=2)
    assert result.failures == {}
    r2 = result.table().set_index("model")["r2"]
    assert r2["Dummy"] <= 0
    assert (r2.drop("Dummy") > 0.1).all()


def test_each_is_the_method_it_names(problem):
    mv, y = problem
    scaled = standardised(mv)
    mine = MVPLSRegressor(3, block_scale=False, scale="standard").fit(mv, y).predict(mv)
    theirs = PLSRegression(3, scale=False, tol=1e-12, max_iter=5000).fit(scaled, y).predict(scaled)
    np.testing.assert_allclose(mine, theirs.ravel(), rtol=1e-6, atol=1e-8)
    forest = make("RF", n_estimators=20, scale="standard").fit(mv, y)
    twin = RandomForestRegressor(20, max_features=0.1, random_state=0)
    twin.fit(scaled.astype(np.float32), y)
    np.testing.assert_allclose(forest.predict(mv), twin.predict(scaled.astype(np.float32)))
    dummy = make("Dummy").fit(mv, y)
    np.testing.assert_array_equal(dummy.predict(mv), np.full(90, y.mean()))
    assert not any(m.any() for m in dummy.selected_features_.values())


def coefficients(model):
    return np.concatenate([model.coef_[v][:, 0] for v in model.view_names_])


@pytest.mark.parametrize("alpha", [0.1, 100.0])
def test_ridge_equals_scikit_learn(problem, alpha):
    mv, y = problem
    scaled = standardised(mv)
    model = make("Ridge", alpha=alpha, block_scale=False, scale="standard").fit(mv, y)
    twin = Ridge(alpha=alpha, solver="svd").fit(scaled, y)
    np.testing.assert_allclose(model.predict(mv), twin.predict(scaled), atol=1e-9)
    np.testing.assert_allclose(coefficients(model), twin.coef_, atol=1e-9)
    blocks = [scaled[:, :6] / 6**0.5, scaled[:, 6:] / 30**0.5]
    model = make("Ridge", alpha=alpha, scale="standard").fit(mv, y)
    twin = Ridge(alpha=alpha, solver="svd").fit(np.hstack(blocks), y)
    np.testing.assert_allclose(model.predict(mv), twin.predict(np.hstack(blocks)), atol=1e-9)
    assert all(mask.all() for mask in model.selected_features_.values())


def test_elastic_net_equals_scikit_learn_whatever_the_unit_of_the_outcome(problem):
    mv, y = problem
    scaled = standardised(mv)
    settings = {"alpha": 0.2, "l1_ratio": 0.7, "scale": "standard", "tol": 1e-10}
    model = make("Elastic net", **settings).fit(mv, y)
    twin = ElasticNet(alpha=0.2, l1_ratio=0.7, tol=1e-10).fit(scaled, y / y.std())
    np.testing.assert_allclose(model.predict(mv), y.std() * twin.predict(scaled), atol=1e-8)
    np.testing.assert_allclose(coefficients(model), y.std() * twin.coef_, atol=1e-8)
    mask = np.concatenate(list(model.selected_features_.values()))
    np.testing.assert_array_equal(mask, twin.coef_ != 0)
    assert 0 < mask.sum() < mask.size
    other = make("Elastic net", **settings).fit(mv, 40.0 + 1000.0 * y)
    np.testing.assert_allclose(other.predict(mv), 40.0 + 1000.0 * model.predict(mv), rtol=1e-8)


def test_linear_rows_say_what_to_do_and_refuse_illegal_penalties(problem):
    mv, y = problem
    with pytest.warns(NotConvergedWarning, match="stronger penalty"):
        make("Elastic net", alpha=1e-4, max_iter=2).fit(mv, y)
    with pytest.raises(InputError, match="alpha"):
        make("Ridge", alpha=-1.0).fit(mv, y)
    with pytest.raises(InputError, match="Ridge has no counterpart for classes"):
        BASELINES["Ridge"].make()


def test_rows_without_a_counterpart_say_so():
    with pytest.raises(InputError, match="numeric outcome"):
        BASELINES["Stacking"].make(classification=False)
