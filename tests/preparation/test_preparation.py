"""Preparation: training rows only, constants, missing cells, units, checks."""

import pickle

import numpy as np
import pandas as pd
import pytest

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.preparation import Preparation


@pytest.fixture
def mv():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 6)) * 4 + 10
    x[rng.random((30, 6)) < 0.2] = np.nan
    g = rng.integers(0, 3, (30, 50)).astype(np.int8)
    g[rng.random((30, 50)) < 0.1] = -127
    return MultiView({"x": x, "g": g})


def test_test_rows_do_not_reach_the_statistics(mv):
    train = np.arange(20)
    learned = Preparation().fit(mv[train])
    changed = {v: mv.view(v).raw().copy() for v in mv.view_names}
    changed["x"][20:] = 1e6
    changed["g"][20:] = 100
    again = Preparation().fit(MultiView(changed)[train])
    for v in mv.view_names:
        np.testing.assert_array_equal(learned.mean_[v], again.mean_[v])
        np.testing.assert_array_equal(learned.scale_[v], again.scale_[v])
        cells = mv[train].view(v).read().astype(float)
        np.testing.assert_allclose(learned.mean_[v], np.nanmean(cells, axis=0), rtol=1e-12)
        np.testing.assert_allclose(learned.scale_[v], np.nanstd(cells, axis=0), rtol=1e-12)


def test_a_row_is_prepared_alike_alone_or_in_company(mv):
    learned = Preparation().fit(mv[:20])
    together = learned.transform(mv)
    for v in mv.view_names:
        alone = learned.transform(mv[[25]])[v].dense()
        np.testing.assert_array_equal(alone, together[v].dense()[[25]])


def test_constant_columns_are_named_and_stay_zero():
    x = np.random.default_rng(0).normal(size=(8, 4))
    x[:6, 1] = 0.1
    x[:6, 3] = 1e9 + 1 / 3
    g = np.full((8, 2), 2, dtype=np.int8)
    g[:, 0] = np.arange(8)
    mv = MultiView({"x": x, "g": g}, feature_names={"x": ["a", "b", "c", "d"]})
    learned = Preparation().fit(mv[:6])
    assert learned.constant_["x"].tolist() == [False, True, False, True]
    assert learned.constant_features_["x"].tolist() == ["b", "d"]
    assert learned.constant_features_["g"].tolist() == ["g_1"]
    assert learned.scale_["x"][[1, 3]].tolist() == [1, 1]
    assert not learned.transform(mv)["x"].dense()[:, [1, 3]].any()
    assert not learned.transform(mv)["g"].dense()[:, 1].any()


def test_a_sample_without_the_view_counts_nowhere():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(10, 3))
    gone = np.arange(10) == 4
    declared = MultiView({"x": x}, present={"x": ~gone})
    emptied = x.copy()
    emptied[4] = np.nan
    implied = MultiView({"x": emptied})
    kept = Preparation().fit(MultiView({"x": x[~gone]}))
    for mv in (declared, implied):
        learned = Preparation().fit(mv)
        np.testing.assert_allclose(learned.mean_["x"], kept.mean_["x"], rtol=1e-13)
        np.testing.assert_allclose(learned.scale_["x"], kept.scale_["x"], rtol=1e-13)
        view = learned.transform(mv)["x"]
        assert view.absent.tolist() == gone.tolist()
        assert not view.dense()[4].any()


def test_weights_return_to_input_units(mv):
    learned = Preparation().fit(mv[:20])
    rng = np.random.default_rng(3)
    for v in mv.view_names:
        coef = rng.normal(size=(2, mv.n_features[v]))
        cells = mv.view(v).read().astype(float)
        filled = np.where(np.isnan(cells), learned.mean_[v], cells)
        own = filled @ learned.coef_in_input_units(v, coef).T + learned.intercept_shift(v, coef)
        np.testing.assert_allclose(own, learned.transform(mv)[v].apply(coef.T), atol=1e-10)
    with pytest.raises(InputError, match="'x': expected 6 weights"):
        learned.coef_in_input_units("x", np.ones(5))
    with pytest.raises(InputError, match="no view 'q'"):
        learned.intercept_shift("q", np.ones(5))


def test_it_pickles(mv):
    learned = pickle.loads(pickle.dumps(Preparation().fit(mv[:20])))
    same = Preparation().fit(mv[:20]).transform(mv)
    for v, view in learned.transform(mv).items():
        np.testing.assert_array_equal(view.dense(), same[v].dense())
        assert pickle.loads(pickle.dumps(view)).shape == view.shape


X = np.random.default_rng(0).normal(size=(6, 3))


def spoiled(value, at):
    x = X.copy()
    x[at] = value
    return x


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: Preparation(all_missing="error").fit(
                MultiView({"v": spoiled(np.nan, np.s_[:, 1])})
            ),
            ["'v'", "at least one value", "1 of 3", "'v_1'", "all_missing='zero'"],
        ),
        (
            lambda: Preparation().fit(MultiView({"v": spoiled(-np.inf, (2, 2))})),
            ["'v'", "finite", "infinities in 'v_2'", "NaN"],
        ),
        (
            lambda: Preparation().fit(MultiView({"v": spoiled(1e308, (2, 2))})),
            ["'v'", "too large", "Rescale"],
        ),
        (
            lambda: Preparation().fit(MultiView({"v": spoiled(np.nan, np.s_[:])})),
            ["'v'", "all 6 have none", "select"],
        ),
        (
            lambda: Preparation(impute="error").fit(MultiView({"v": spoiled(np.nan, (0, 1))})),
            ["'v'", "no missing cells", "'v_1'", "impute='mean'"],
        ),
        (lambda: Preparation(scale=True).fit(MultiView({"v": X})), ["scale", "'clipped'", "True"]),
        (lambda: Preparation(impute="knn").fit(MultiView({"v": X})), ["impute", "'knn'"]),
        (lambda: Preparation(dtype="int8").fit(MultiView({"v": X})), ["dtype", "'int8'"]),
        (lambda: Preparation().transform(MultiView({"v": X})), ["fit"]),
        (
            lambda: Preparation().fit(MultiView({"v": X})).transform(MultiView({"w": X})),
            ["['v']", "'v' missing", "'w' unknown"],
        ),
        (
            lambda: Preparation().fit(MultiView({"v": X})).transform(MultiView({"v": X[:, :2]})),
            ["'v'", "2 features", "expecting 3 features"],
        ),
        (
            lambda: (
                Preparation()
                .fit(MultiView({"v": pd.DataFrame(X, columns=list("abc"))}))
                .transform(MultiView({"v": pd.DataFrame(X, columns=list("acb"))}))
            ),
            ["'v'", "2 of 3 differ", "column 1", "'b'", "'c'", "Reorder"],
        ),
    ],
)
def test_one_clear_error(call, words):
    with pytest.raises(InputError) as caught:
        call()
    for word in words:
        assert word in str(caught.value)


def test_empty_columns_can_be_given_no_weight():
    mv = MultiView({"v": spoiled(np.nan, np.s_[:, 1])})
    learned = Preparation().fit(mv)
    assert learned.constant_features_["v"].tolist() == ["v_1"]
    assert not learned.transform(MultiView({"v": X}))["v"].dense()[:, 1].any()
