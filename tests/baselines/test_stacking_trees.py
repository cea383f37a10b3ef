"""Stacking, forests, boosted trees and the dummy row."""

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from baldur.baselines import BASELINES, StackingClassifier
from baldur.baselines.stacking import fit_stack, out_of_fold


def test_stacking_gives_noise_no_weight_and_drops_the_view(common):
    mv, y = common(0, n=200, dims=(20, 50, 30))
    model = StackingClassifier(penalty=0.03, random_state=0).fit(mv, y)
    assert model.view_weights_["c"] == pytest.approx(0.0, abs=1e-8)
    assert not model.selected_features_["c"].any()
    assert model.selected_features_["a"].all()


def test_stack_weights_minimise_their_objective():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 3, 100)
    Z = rng.standard_normal((4, 100, 3))
    Z[0, np.arange(100), codes] += 2.0

    def value(a, b):
        s = np.tensordot(a, Z, axes=1) + b
        p = np.exp(s) / np.exp(s).sum(axis=1, keepdims=True)
        return -np.log(p[np.arange(100), codes]).mean() + 0.02 * a.sum() + 5e-4 * b @ b

    a, b = fit_stack(Z, codes, 0.02)
    assert np.all(a >= 0)
    assert a[0] > 0.5
    best = value(a, b)
    for _ in range(50):
        step = 1e-2 * rng.standard_normal(7)
        assert value(np.maximum(a + step[:4], 0), b + step[4:]) >= best - 1e-6


def test_out_of_fold_rows_do_not_see_their_label():
    rng = np.random.default_rng(0)
    F, codes = rng.standard_normal((60, 40)), np.arange(60) % 2
    folds = [(np.setdiff1d(np.arange(60), t), t) for t in np.array_split(np.arange(60), 5)]
    absent = np.zeros(60, dtype=bool)
    absent[3] = True
    base = out_of_fold(F, codes, 1.0, folds, absent)
    flipped = codes.copy()
    flipped[folds[0][1]] ^= 1
    again = out_of_fold(F, flipped, 1.0, folds, absent)
    np.testing.assert_array_equal(base[folds[0][1]], again[folds[0][1]])
    assert not base[3].any()


def test_forest_equals_scikit_learn_and_reads_importances(common):
    mv, y = common(0, n=100, dims=(10, 40, 10))
    model = BASELINES["RF"].make(0).set_params(n_estimators=30).fit(mv, y)
    X = np.hstack([mv.view(v).read() for v in mv.view_names])
    Z = ((X - X.mean(axis=0)) / X.std(axis=0)).astype(np.float32)
    oracle = RandomForestClassifier(30, max_features=0.1, random_state=0).fit(Z, y)
    np.testing.assert_allclose(model.predict_proba(mv), oracle.predict_proba(Z))
    mask = np.concatenate(list(model.selected_features_.values()))
    np.testing.assert_array_equal(mask, oracle.feature_importances_ > 0)
    fewer = BASELINES["RF"].make(0).set_params(n_estimators=30, selection="mean").fit(mv, y)
    assert sum(m.sum() for m in fewer.selected_features_.values()) < mask.sum()


def test_boosted_trees_mark_the_columns_they_split_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, 6))
    y = X[:, 2] > 0
    X[:, 5] = 1.0
    model = BASELINES["Boosted trees"].make()
    model.set_params(max_iter=1, max_leaf_nodes=2, max_features=1.0).fit(X, y)
    np.testing.assert_array_equal(np.flatnonzero(model.selected_features_["X"]), [2])


def test_dummy_uses_nothing():
    X, y = np.zeros((10, 3)), np.repeat(["a", "b"], [3, 7])
    model = BASELINES["Dummy"].make().fit(X, y)
    assert set(model.predict(X)) == {"b"}
    np.testing.assert_allclose(model.predict_proba(X)[0], [0.3, 0.7])
    assert not model.selected_features_["X"].any()
