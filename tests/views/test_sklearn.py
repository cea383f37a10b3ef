"""The container through scikit-learn's own model selection, in one process and in two."""

import numpy as np
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    StratifiedKFold,
    cross_val_predict,
    cross_validate,
    learning_curve,
    permutation_test_score,
    train_test_split,
)
from sklearn.pipeline import make_pipeline
from sklearn.utils import resample, shuffle

from baldur import MultiView
from views.tiny import Tiny


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.tile(["case", "control"], 30)
    narrow = rng.normal(size=(60, 5)) + 0.8 * (y == "case")[:, None]
    # Large enough (over 1 MB) for joblib to share it between processes as a memory map.
    wide = rng.integers(0, 3, (60, 30_000)).astype(np.int8)
    return MultiView({"narrow": narrow, "wide": wide}), y


def test_cross_validate_in_two_processes_equals_one(data):
    mv, y = data
    cv = StratifiedKFold(3)
    alone = cross_validate(Tiny(), mv, y, cv=cv, return_estimator=True)
    both = cross_validate(Tiny(), mv, y, cv=cv, n_jobs=2, return_estimator=True)
    np.testing.assert_array_equal(alone["test_score"], both["test_score"])
    for (train, _), one, two in zip(
        cv.split(mv, y), alone["estimator"], both["estimator"], strict=True
    ):
        np.testing.assert_array_equal(one.seen_, train)
        np.testing.assert_array_equal(one.coef_, two.coef_)
        assert one.mapped_ == [False, False]
        assert two.mapped_ == [False, True]


def test_nested_search_in_two_processes_equals_one(data):
    mv, y = data
    search = GridSearchCV(Tiny(), {"power": [0.5, 1.0, 2.0]}, cv=3)
    alone = cross_validate(search, mv, y, cv=3)["test_score"]
    both = cross_validate(search, mv, y, cv=3, n_jobs=2)["test_score"]
    np.testing.assert_array_equal(alone, both)
    inner = cross_validate(search.set_params(n_jobs=2), mv, y, cv=3)["test_score"]
    np.testing.assert_array_equal(alone, inner)


def test_cross_val_predict_in_two_processes_equals_one(data):
    mv, y = data
    alone = cross_val_predict(Tiny(), mv, y, cv=3)
    np.testing.assert_array_equal(alone, cross_val_predict(Tiny(), mv, y, cv=3, n_jobs=2))
    assert set(alone) == {"case", "control"}


def test_container_and_matrix_with_views_agree(data):
    mv, y = data
    flat = np.hstack([mv.view("narrow").read(), mv.view("wide").read(slice(0, 50))])
    cut = MultiView({"a": flat[:, :5], "b": flat[:, 5:]})
    views = {"a": slice(0, 5), "b": slice(5, None)}
    np.testing.assert_array_equal(
        cross_val_predict(Tiny(), cut, y), cross_val_predict(Tiny(views=views), flat, y)
    )


def test_other_helpers_keep_rows_together(data):
    mv, y = data
    train, test, y_train, _ = train_test_split(mv, y, test_size=0.25, random_state=0, stratify=y)
    assert (len(train), len(test)) == (45, 15)
    assert not set(train.sample_ids) & set(test.sample_ids)
    np.testing.assert_array_equal(y[train.sample_ids], y_train)
    mixed, y_mixed = shuffle(mv, y, random_state=0)
    np.testing.assert_array_equal(y[mixed.sample_ids], y_mixed)
    again, y_again = resample(mv, y, random_state=0)
    np.testing.assert_array_equal(y[again.sample_ids], y_again)
    groups = np.arange(60) // 4
    for a, b in GroupKFold(3).split(mv, y, groups):
        assert not set(groups[mv[a].sample_ids]) & set(groups[mv[b].sample_ids])


def test_pipelines_curves_and_permutations_run(data):
    mv, y = data
    piped = make_pipeline(Tiny())
    np.testing.assert_array_equal(piped.fit(mv, y).predict(mv), Tiny().fit(mv, y).predict(mv))
    sizes, _, scores = learning_curve(Tiny(), mv, y, cv=3, train_sizes=[0.5, 1.0])
    assert sizes.tolist() == [20, 40]
    assert np.isfinite(scores).all()
    score, permuted, _ = permutation_test_score(
        Tiny(), mv.select("narrow"), y, cv=3, n_permutations=5, random_state=0
    )
    assert score > permuted.mean()
