"""Laws of the container: slicing, round trips, pickling, names."""

import pickle
import tracemalloc

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur import MultiView
from baldur.exceptions import InputError
from views.backends import BACKENDS, make


def same(a, b):
    """Two containers hold the same samples, views, names, presence and cells."""
    assert a.view_names == b.view_names
    assert a.shape == b.shape
    np.testing.assert_array_equal(a.sample_ids, b.sample_ids)
    for name in a.view_names:
        np.testing.assert_array_equal(a.view(name).read(), b.view(name).read())
        np.testing.assert_array_equal(a.view(name).present, b.view(name).present)
        np.testing.assert_array_equal(a.feature_names[name], b.feature_names[name])


@st.composite
def containers(draw):
    n = draw(st.integers(1, 12))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    kinds = draw(
        st.lists(
            st.sampled_from([k for k in BACKENDS if "memmap" not in k]), min_size=1, max_size=3
        )
    )
    views = {}
    for j, kind in enumerate(kinds):
        views[f"v{j}"] = make(kind, n, draw(st.integers(1, 6)), rng, missing=0.2)[0]
    ids = [f"s{i}" for i in rng.permutation(n)] if draw(st.booleans()) else None
    present = {"v0": rng.random(n) < 0.7} if draw(st.booleans()) else None
    return MultiView(views, sample_ids=ids, present=present)


def keys(n):
    return st.one_of(
        st.lists(st.integers(-n, n - 1), max_size=2 * n).map(lambda r: np.array(r, dtype=int)),
        st.lists(st.booleans(), min_size=n, max_size=n).map(np.array),
        st.slices(n),
    )


@settings(deadline=None, max_examples=80)
@given(st.data())
def test_slicing_equals_slicing_the_cells_and_composes(data):
    mv = data.draw(containers())
    first = data.draw(keys(len(mv)))
    cut = mv[first]
    np.testing.assert_array_equal(cut.sample_ids, mv.sample_ids[first])
    for name in mv.view_names:
        np.testing.assert_array_equal(cut.view(name).read(), mv.view(name).read()[first])
        np.testing.assert_array_equal(cut.view(name).present, mv.view(name).present[first])
    if len(cut):
        second = data.draw(keys(len(cut)))
        same(cut[second], mv[np.arange(len(mv))[first][second]])
    same(mv[:], mv)
    same(mv[first, ...], cut)


@settings(deadline=None, max_examples=40)
@given(st.data())
def test_pickling_and_frame_round_trip(data):
    mv = data.draw(containers())
    mv = mv[data.draw(keys(len(mv)))]
    same(pickle.loads(pickle.dumps(mv)), mv)
    if len(mv) and len(set(mv.sample_ids)) == len(mv):
        again = MultiView.from_columns(mv.to_frame())
        for name in mv.view_names:
            np.testing.assert_array_equal(again.view(name).read(), mv.view(name).read())
            np.testing.assert_array_equal(again.feature_names[name], mv.feature_names[name])
        np.testing.assert_array_equal(again.sample_ids, mv.sample_ids)


@pytest.mark.parametrize("kind", BACKENDS)
def test_every_storage_reads_the_same_cells(kind, tmp_path):
    rng = np.random.default_rng(3)
    matrix, cells = make(kind, 9, 20, rng, tmp_path, missing=0.2)
    view = MultiView({"v": matrix}).view("v")
    narrow = view.dtype in (np.float32, np.int8)
    assert view.read().dtype == (np.float32 if narrow else np.float64)
    np.testing.assert_array_equal(view.read(), cells)
    np.testing.assert_array_equal(view.read([3, -1]), cells[:, [3, -1]])
    np.testing.assert_array_equal(view.read(slice(4, 11, 2)), cells[:, 4:11:2])
    np.testing.assert_array_equal(view.read(np.arange(20) % 3 == 0), cells[:, ::3])
    assert view.raw(slice(0, 5)).dtype == view.dtype
    for rows in ([5, 1, 1], [2, 3, 4], []):
        cut = MultiView({"v": matrix})[rows].view("v")
        np.testing.assert_array_equal(cut.read(), cells[rows])
    blocks = list(view.iter_blocks(max_bytes=9 * 8 * 3))
    assert len(blocks) > 2
    np.testing.assert_array_equal(np.hstack([b for _, b in blocks]), cells)


def test_slicing_a_genome_wide_view_adds_no_bytes():
    genotypes = np.random.default_rng(0).integers(0, 3, (215, 841_685), dtype=np.int8)
    mv = MultiView({"snps": genotypes})
    rows = np.random.default_rng(1).permutation(215)[:172]
    tracemalloc.start()
    cut = mv[rows][::-1]
    grown = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert cut.view("snps").shape == (172, 841_685)
    assert grown < 50_000
    assert cut.view("snps").source.base.array is genotypes
    block = slice(1000, 1010)
    np.testing.assert_array_equal(cut.view("snps").raw(block), genotypes[rows[::-1], block])


def test_present_joins_declared_and_empty_rows():
    x = np.ones((4, 40))
    x[1] = np.nan
    x[2, :30] = np.nan
    g = np.ones((4, 3), dtype=np.int8)
    g[3] = -127
    mv = MultiView({"x": x, "g": g}, present={"x": np.array([False, True, True, True])})
    assert mv.view("x").present.tolist() == [False, False, True, True]
    assert mv.view("g").present.tolist() == [True, True, True, False]
    assert np.isnan(mv.view("x").read()[0]).all()
    assert mv[[3, 0]].present["x"].tolist() == [True, False]


def test_names_info_and_select():
    info = pd.DataFrame({"chromosome": [1, 2]})
    mv = MultiView(
        {"a": np.eye(3), "b": np.ones((3, 2))},
        feature_names={"a": ["p", "q", "r"]},
        feature_info={"b": info},
    )
    assert mv.feature_names["a"].tolist() == ["p", "q", "r"]
    assert mv.feature_names["b"].tolist() == ["b_0", "b_1"]
    assert dict(mv.n_features) == {"a": 3, "b": 2}
    assert mv.feature_info["b"] is info
    assert mv.dtype == np.float64
    assert (mv.ndim, mv.shape, len(mv)) == (2, (3, 5), 3)
    assert mv.select(["b", "a"]).view_names == ["b", "a"]
    assert mv[[2]].select("b").shape == (1, 2)
    for wrong in (["c"], [], ["a", "a"]):
        with pytest.raises(InputError, match="out of"):
            mv.select(wrong)


def test_repr_shows_what_a_reader_wants(tmp_path):
    np.save(tmp_path / "m.npy", np.ones((5, 3)))
    mv = MultiView(
        {
            "sleep": np.ones((5, 18)),
            "snps": np.zeros((5, 12_345), dtype=np.int8),
            "disk": np.load(tmp_path / "m.npy", mmap_mode="r"),
        },
        present={"sleep": np.array([True, False, True, True, False])},
    )
    assert repr(mv).splitlines() == [
        "MultiView: 5 samples, 12,366 features in 3 views",
        "  sleep      18  float64, absent for 2",
        "  snps   12,345  int8",
        "  disk        3  float64, memory-mapped",
    ]


def test_frames_give_names_and_samples():
    a = pd.DataFrame({"u": [1.0, 2], "w": [3, 4]}, index=["s1", "s2"])
    b = pd.DataFrame({"k": pd.array([1, None], dtype="Int64")}, index=["s1", "s2"])
    mv = MultiView({"a": a, "b": b})
    assert mv.sample_ids.tolist() == ["s1", "s2"]
    assert mv.feature_names["a"].tolist() == ["u", "w"]
    np.testing.assert_array_equal(mv.view("b").read(), [[1], [np.nan]])


def test_masked_arrays_lose_masked_cells():
    array = np.ma.MaskedArray([[1, 2], [3, 4]], mask=[[0, 1], [0, 0]])
    np.testing.assert_array_equal(MultiView({"a": array}).view("a").read(), [[1, np.nan], [3, 4]])


def test_from_mudata_marks_samples_a_modality_lacks():
    mudata = pytest.importorskip("mudata")
    anndata = pytest.importorskip("anndata")
    x = anndata.AnnData(
        np.arange(6, dtype=np.float32).reshape(3, 2),
        obs=pd.DataFrame(index=["a", "b", "c"]),
        var=pd.DataFrame({"site": ["l", "r"]}, index=["f", "g"]),
    )
    z = anndata.AnnData(
        np.array([[7.0], [9.0]], dtype=np.float32),
        obs=pd.DataFrame(index=["c", "a"]),
        var=pd.DataFrame(index=["h"]),
    )
    mv = MultiView.from_mudata(mudata.MuData({"x": x, "z": z}))
    order = mv.sample_ids.tolist()
    assert sorted(order) == ["a", "b", "c"]
    want = {"a": 9.0, "b": np.nan, "c": 7.0}
    np.testing.assert_array_equal(mv.view("z").read()[:, 0], [want[i] for i in order])
    assert mv.view("z").present.tolist() == [i != "b" for i in order]
    assert mv.feature_names["x"].tolist() == ["f", "g"]
    assert mv.feature_info["x"]["site"].tolist() == ["l", "r"]
    np.testing.assert_array_equal(mv[::-1].view("z").read(), mv.view("z").read()[::-1])
    with pytest.raises(InputError, match="from_dict"):
        MultiView.from_mudata({"x": np.eye(2)})
