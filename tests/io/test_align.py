"""align: the same cells for the same people, whatever the order of the files."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur import MultiView
from baldur.exceptions import InputError
from baldur.io import align
from baldur.preparation import Preparation

people = st.lists(st.sampled_from([f"p{i}" for i in range(8)]), min_size=1, max_size=8, unique=True)


def part(name, ids, width=2):
    """Cells tell whose they are and in which view."""
    cells = np.array([[hash_of(name, one, j) for j in range(width)] for one in ids])
    return MultiView(
        {name: cells}, sample_ids=ids, feature_names={name: [f"{name}{j}" for j in range(width)]}
    )


def hash_of(name, one, j):
    return float(sum(map(ord, f"{name}{one}")) * 10 + j)


@settings(max_examples=80, deadline=None)
@given(
    lists=st.lists(people, min_size=1, max_size=4), how=st.sampled_from(["intersection", "union"])
)
def test_cells_follow_their_people(lists, how):
    parts = [part(f"v{k}", ids) for k, ids in enumerate(lists)]
    shared = set.intersection(*map(set, lists))
    everyone = set.union(*map(set, lists))
    wanted = shared if how == "intersection" else everyone
    if not wanted:
        with pytest.raises(InputError, match="No person is left: no person has every view"):
            align(parts, how=how)
        return
    data, labels, report = align(parts, how=how)
    assert labels is None
    assert set(data.sample_ids) == wanted
    assert report.n_kept == len(wanted)
    for k, ids in enumerate(lists):
        view = data.view(f"v{k}")
        np.testing.assert_array_equal(view.present, np.isin(data.sample_ids, ids))
        for row, one in zip(view.read(), data.sample_ids, strict=True):
            expected = [hash_of(f"v{k}", one, j) for j in range(2)]
            assert row.tolist() == expected if one in ids else np.isnan(row).all()
        assert view.feature_names.tolist() == [f"v{k}0", f"v{k}1"]
    # The report counts each person once, in the right combination.
    assert report.combinations["people"].sum() == len(everyone) == len(report.where)
    for one, row in report.where.iterrows():
        assert row.tolist() == [one in ids for ids in lists]


def test_order_and_cut_parts():
    first = part("a", ["x", "y", "z"])[[2, 0]]
    data = align([first, part("b", ["x", "z", "w"])]).data
    assert data.sample_ids.tolist() == ["z", "x"]
    np.testing.assert_array_equal(
        data.view("a").read()[:, 0], [hash_of("a", "z", 0), hash_of("a", "x", 0)]
    )
    again = align([data, part("c", ["x"])], how="union").data
    np.testing.assert_array_equal(
        again.view("a").read()[:, 0], [hash_of("a", "z", 0), hash_of("a", "x", 0)]
    )
    assert again.view("c").present.tolist() == [False, True]


def test_declared_absences_stay():
    held = MultiView({"a": np.ones((2, 1)), "b": np.ones((2, 1))}, present={"a": [True, False]})
    both = align([held, MultiView({"c": np.eye(2)})], how="union").data
    assert both.view("a").present.tolist() == [True, False]
    assert align([held, MultiView({"c": np.eye(2)})]).data.sample_ids.tolist() == [0]


def test_numbers_and_text_are_the_same_id():
    data = align([MultiView({"a": np.eye(2)}), part("b", ["1", "0"])]).data
    assert data.sample_ids.tolist() == [0, 1]


def test_labels_choose_people():
    labels = pd.Series(["k", None, "m"], index=["x", "y", "q"], name="group")
    data, kept, report = align([part("a", ["y", "x"])], labels=labels)
    assert data.sample_ids.tolist() == ["x"]
    assert kept.to_dict() == {"x": "k"}
    assert kept.name == "group"
    assert report.where["labels"].tolist() == [False, True]
    with pytest.raises(InputError, match="pandas Series"):
        align([part("a", ["y", "x"])], labels=["k", "m"])


def test_near_misses_are_pointed_out():
    report = align([part("a", ["sub-01", "b"]), part("c", ["01", "b"])], how="union").report
    assert report.near_misses.to_numpy().tolist() == [["a", "sub-01", "c", "01"]]
    assert "match='simplified'" in str(report)
    data, _, report = align(
        [part("a", ["sub-01", "b"]), part("c", ["01", "b"])], match="simplified"
    )
    assert data.sample_ids.tolist() == ["sub-01", "b"]
    assert len(report.near_misses) == 0
    assert (
        align([part("a", ["x1"]), part("c", ["y1"])], match=lambda one: one[1:]).report.n_kept == 1
    )


def test_alike_within_one_file():
    report = align([part("a", ["01", "1", "2"])]).report
    assert report.near_misses[["id", "other_id"]].to_numpy().tolist() == [["01", "1"]]
    with pytest.raises(InputError, match="'01', '1' are the same person"):
        align([part("a", ["01", "1"])], match="simplified")


@pytest.mark.parametrize(
    ("written", "simple"),
    [
        ("sub-01", "1"),
        (" Subject_007 ", "7"),
        ("0", "0"),
        ("000", "0"),
        ("NA19916", "na19916"),
        ("site2-sub010", "site2sub10"),
        ("sub", "sub"),
        ("--", "--"),
    ],
)
def test_simplified_forms(written, simple):
    found = align([part("a", [written]), part("c", [simple])], match="simplified")
    assert found.report.n_kept == 1
    other = align([part("a", [f"{simple}1"]), part("c", [simple])], match="simplified", how="union")
    assert other.report.n_kept == 2


def test_products_of_a_union_leave_the_absent_out():
    rng = np.random.default_rng(0)
    ids = [f"s{i}" for i in range(12)]
    a = MultiView({"a": rng.normal(size=(12, 5))}, sample_ids=ids)
    b = MultiView({"b": rng.integers(0, 3, (8, 4)).astype(np.int8)}, sample_ids=ids[4:])
    union = align([a, b], how="union").data
    prepared = Preparation().fit_transform(union)["b"]
    alone = Preparation().fit_transform(b)["b"]
    np.testing.assert_allclose(prepared.dense()[4:], alone.dense(), atol=1e-12)
    assert not prepared.dense()[:4].any()


def test_what_is_refused():
    with pytest.raises(InputError, match="View names must differ"):
        align([part("a", ["x"]), part("a", ["x"])])
    with pytest.raises(InputError, match="how must be"):
        align([part("a", ["x"])], how="outer")
    with pytest.raises(InputError, match=r"expects one or more MultiViews, .* but got ndarray"):
        align([np.eye(2)])
    with pytest.raises(InputError, match="match must be"):
        align([part("a", ["x"])], match="fuzzy")
