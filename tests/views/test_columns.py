"""Cutting one matrix into views."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from baldur import MultiView

X = np.arange(40.0).reshape(5, 8)
MASK = np.arange(8) >= 6


@pytest.mark.parametrize(
    "given_x",
    [X, np.asfortranarray(X), sparse.csr_array(X), pd.DataFrame(X, columns=list("abcdefgh"))],
    ids=["C", "F", "sparse", "frame"],
)
def test_all_ways_to_name_columns(given_x):
    views = {"run": slice(0, 3), "picked": [5, 3], "mask": MASK, "tail": [-1]}
    mv = MultiView.from_columns(given_x, views)
    assert mv.view_names == list(views)
    for name, cols in views.items():
        np.testing.assert_array_equal(mv.view(name).read(), X[:, cols])
        np.testing.assert_array_equal(mv[[4, 0]].view(name).read(), X[[4, 0]][:, cols])


def test_frame_columns_by_name():
    frame = pd.DataFrame(X, columns=list("abcdefgh"), index=list("vwxyz"))
    mv = MultiView.from_columns(frame, {"named": ["c", "a"], "span": slice("e", "g"), "one": "h"})
    assert mv.feature_names["named"].tolist() == ["c", "a"]
    assert mv.feature_names["span"].tolist() == ["e", "f", "g"]
    assert mv.sample_ids.tolist() == list("vwxyz")
    np.testing.assert_array_equal(mv.view("one").read(), X[:, 7:])


def test_no_views_means_one_view_called_x():
    mv = MultiView.from_columns(X)
    assert mv.view_names == ["X"]
    np.testing.assert_array_equal(mv.view("X").read(), X)


def test_arrays_are_not_copied():
    mv = MultiView.from_columns(X, {"run": slice(2, 5), "picked": [7, 1]})
    assert np.shares_memory(mv.view("run").source.array, X)
    assert np.shares_memory(mv.view("picked").source.base.array, X)


@given(st.permutations(range(8)), st.integers(1, 7))
def test_any_partition_gives_back_its_columns(order, cut):
    mv = MultiView.from_columns(X, {"left": order[:cut], "right": order[cut:]})
    joined = np.hstack([mv.view("left").read(), mv.view("right").read()])
    np.testing.assert_array_equal(joined, X[:, order])
