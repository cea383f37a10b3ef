"""CategoryEncoder: levels come from training rows, and test rows cannot change them."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

from baldur import MultiView, Preparation
from baldur.baselines import BASELINES
from baldur.exceptions import InputError
from baldur.io import align, read_table
from baldur.preparation import CategoryEncoder
from baldur.preparation.scaling import Scaling


def write(tmp_path, frame, name="t.csv"):
    frame.to_csv(tmp_path / name, index_label="id")
    return read_table(tmp_path / name)


def cohort(sites, seed=0):
    rng = np.random.default_rng(seed)
    return pd.DataFrame({"age": rng.normal(60, 5, len(sites)).round(1), "site": sites})


def test_levels_of_training_rows_only(tmp_path):
    X = write(tmp_path, cohort(["A", "B", "A", "C", None]))
    encoder = CategoryEncoder(drop=None).fit(X[[0, 1, 2]])
    assert encoder.levels_ == {"t": {"site": ["A", "B"]}}
    made = encoder.transform(X)
    assert made.feature_names["t"].tolist() == ["age", "site=A", "site=B"]
    assert made.feature_info["t"]["level"].tolist() == [None, "A", "B"]
    np.testing.assert_array_equal(
        made.view("t").read()[:, 1:], [[1, 0], [0, 1], [1, 0], [0, 0], [np.nan, np.nan]]
    )


@settings(max_examples=40, deadline=None)
@given(
    sites=st.lists(st.sampled_from("ABCDE"), min_size=6, max_size=20),
    train=st.integers(3, 5),
)
def test_dropping_unseen_levels_changes_no_product(sites, train):
    """A level without training rows is a constant column, which contributes nothing anyway."""
    frame = cohort(sites)
    levels = sorted(set(sites))
    cells = np.column_stack([frame["age"], *[(frame["site"] == one) * 1.0 for one in levels]])
    info = pd.DataFrame({"column": ["age", *["site"] * len(levels)], "level": [None, *levels]})
    X = MultiView({"t": cells}, feature_info={"t": info})
    rows = np.arange(train)
    encoder = CategoryEncoder(drop=None).fit(X[rows])
    kept = encoder.transform(X)
    plain = Scaling().fit(X[rows]).transform(X)["t"]
    fewer = Scaling().fit(kept[rows]).transform(kept)["t"]
    np.testing.assert_allclose(plain.weighted_gram(), fewer.weighted_gram(), atol=1e-9)


def test_new_files_are_matched_by_name(tmp_path):
    old = write(tmp_path, cohort(["A", "B", "C", "B"]))
    new = write(tmp_path, cohort(["C", "Z", None]), "new.csv")
    encoder = CategoryEncoder(drop=None).fit(old)
    new = MultiView(
        {"t": new.view("new").read()},
        feature_names={"t": new.feature_names["new"]},
        feature_info={"t": new.feature_info["new"]},
    )
    made = encoder.transform(new[[2, 1, 0]])
    assert made.feature_names["t"].tolist() == encoder.features_["t"].tolist()
    nan = np.nan
    np.testing.assert_array_equal(
        made.view("t").read()[:, 1:], [[nan, nan, nan], [0, 0, 0], [0, 0, 1]]
    )
    # Without a column of the reference, zeros would mean it: the unknown level is missing.
    np.testing.assert_array_equal(
        CategoryEncoder().fit(old).transform(new[[2, 1, 0]]).view("t").read()[:, 1:],
        [[nan, nan], [nan, nan], [0, 1]],
    )
    with pytest.raises(InputError, match=r"site = 'Z' .*did not occur in training"):
        CategoryEncoder(unknown="error").fit(old).transform(new)


def test_columns_that_came_or_went(tmp_path):
    old = write(tmp_path, cohort(["A", "B"]))
    lacking = write(tmp_path, cohort(["A", "B"]).drop(columns="age"))
    more = write(tmp_path, cohort(["A", "B"]).assign(bmi=1.0))
    encoder = CategoryEncoder().fit(old)
    with pytest.raises(InputError, match="'age' missing"):
        encoder.transform(lacking)
    with pytest.raises(InputError, match="'bmi' new"):
        encoder.transform(more)


def test_mirror_images_are_dropped_when_asked(tmp_path):
    X = write(tmp_path, cohort(["A", "B", "C"]))
    encoder = CategoryEncoder(drop="if_binary").fit(X[[0, 1]])
    assert encoder.features_["t"].tolist() == ["age", "site=B"]
    assert encoder.levels_ == {"t": {"site": ["A", "B"]}}


def test_two_levels_are_one_column_and_more_one_each_but_the_reference(tmp_path):
    frame = cohort(["B", "A", "C", "A", "D", "B"]).assign(sex=["f", "m", "m", "f", "m", "f"])
    X = write(tmp_path, frame)
    encoder = CategoryEncoder()
    made = encoder.fit_transform(X[:5])
    assert made.feature_names["t"].tolist() == ["age", "site=B", "site=C", "site=D", "sex=m"]
    assert encoder.reference_ == {"t": {"site": "A", "sex": "f"}}
    # With an intercept the columns span what one column per level spans, and no more.
    rows = pd.get_dummies(frame[["site", "sex"]].iloc[:5]).to_numpy(float)
    full = np.column_stack([np.ones(5), frame["age"].iloc[:5], rows])
    fewer = np.column_stack([np.ones(5), made.view("t").read()])
    assert np.linalg.matrix_rank(np.hstack([full, fewer])) == np.linalg.matrix_rank(fewer)
    one = CategoryEncoder().fit(X[[0, 5]])
    assert one.features_["t"].tolist() == ["age", "site=B", "sex=f"]
    assert one.reference_ == {"t": {}}


def test_columns_of_a_category_are_one_group(tmp_path):
    frame = cohort(["B", "A", "C", "A"]).assign(sex=["f", "m", "m", "f"], bmi=[1.0, 2, 3, 4])
    made = CategoryEncoder().fit_transform(write(tmp_path, frame))
    assert made.feature_names["t"].tolist() == ["age", "site=B", "site=C", "sex=m", "bmi"]
    assert made.feature_groups["t"].tolist() == [0, 1, 1, 2, 3]
    assert made[1:].view("t").feature_groups.tolist() == [0, 1, 1, 2, 3]
    numbers = MultiView({"a": np.eye(3)})
    assert numbers.feature_groups == {}
    assert numbers.view("a").feature_groups is None


def test_works_in_a_pipeline_and_after_align(tmp_path):
    sites = list("ABCABCABCABC")
    X = write(tmp_path, cohort(sites))
    other = MultiView({"m": np.eye(12)}, sample_ids=[str(i) for i in range(11, -1, -1)])
    both = align([other, X]).data
    y = np.array([one == "A" for one in sites])[::-1].astype(int)
    model = make_pipeline(CategoryEncoder(), clone(BASELINES["Ridge logistic"].make(0)))
    model.fit(both[:9], y[:9])
    assert model.predict(both[9:]).tolist() == y[9:].tolist()


def test_what_is_encoded_stays_as_it_is():
    info = pd.DataFrame({"column": ["s"] * 3, "level": list("abc")})
    X = MultiView({"t": np.eye(3)[[0, 1, 2, 0]]}, feature_info={"t": info})
    once = CategoryEncoder().fit_transform(X)
    assert once.n_features == {"t": 2}
    assert CategoryEncoder().fit_transform(once).n_features == {"t": 2}
    assert Preparation().fit(once).columns_["t"].tolist() == [0, 1]
    assert Preparation().fit(X).columns_["t"].tolist() == [1, 2]
    assert once.feature_groups["t"].tolist() == [0, 0]


def test_what_is_refused():
    with pytest.raises(InputError, match="expects a MultiView"):
        CategoryEncoder().fit(np.eye(2))
    with pytest.raises(InputError, match="drop must be"):
        CategoryEncoder(drop="last").fit(MultiView({"a": np.eye(2)}))
    with pytest.raises(InputError, match="no view 'z'"):
        CategoryEncoder(views="z").fit(MultiView({"a": np.eye(2)}))
