"""read_mudata: one view per modality, in memory or left in the file, dense or sparse."""

import pickle
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy import sparse

from baldur import MultiView
from baldur.exceptions import InputError, MissingExtraError
from baldur.io import read_mudata, read_obs
from baldur.preparation import Preparation
from mudata_versions import without_pulling

anndata = pytest.importorskip("anndata")
mudata = pytest.importorskip("mudata")
h5py = pytest.importorskip("h5py")

pytestmark = pytest.mark.filterwarnings("ignore:::mudata", "ignore:::anndata")

STORAGE = {
    "dense": np.asarray,
    "csr": sparse.csr_matrix,
    "csc": sparse.csc_matrix,
}


def modality(cells, obs, storage="dense", prefix="f"):
    var = pd.DataFrame(index=[f"{prefix}{j}" for j in range(cells.shape[1])])
    made = anndata.AnnData(STORAGE[storage](cells), obs=pd.DataFrame(index=list(obs)), var=var)
    made.var["chromosome"] = [f"chr{j % 3}" for j in range(cells.shape[1])]
    return made


def write(path, parts):
    with without_pulling():
        mudata.MuData(parts).write_h5mu(path)
    return path


@settings(max_examples=25, deadline=None)
@given(
    cells=hnp.arrays(
        np.float32,
        st.tuples(st.integers(1, 7), st.integers(1, 6)),
        elements=st.one_of(st.just(0.0), st.floats(-100, 100, width=32)),
    ),
    storage=st.sampled_from(sorted(STORAGE)),
    backed=st.booleans(),
    data=st.data(),
)
def test_what_is_written_is_read(cells, storage, backed, data):
    obs = [f"s{i}" for i in range(len(cells))]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "one.h5ad"
        modality(cells, obs, storage).write_h5ad(path)
        X = pickle.loads(pickle.dumps(read_mudata(path, backed=backed, trusted=True)))
        view = X.view("one")
        assert view.source.in_memory != backed or storage != "dense"
        np.testing.assert_array_equal(view.read(), cells)
        assert X.sample_ids.tolist() == obs
        assert view.feature_names.tolist() == [f"f{j}" for j in range(cells.shape[1])]
        rows = data.draw(st.lists(st.integers(0, len(cells) - 1), min_size=1, max_size=5))
        cols = data.draw(st.lists(st.integers(0, cells.shape[1] - 1), min_size=1, max_size=5))
        np.testing.assert_array_equal(X[rows].view("one").read(cols), cells[np.ix_(rows, cols)])


@pytest.mark.parametrize("backed", [False, True])
@pytest.mark.parametrize("storage", sorted(STORAGE))
def test_modalities_over_different_people(tmp_path, storage, backed):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(4, 3)), rng.poisson(1.0, (3, 5)).astype(np.float32)
    parts = {
        "rna": modality(a, ["s1", "s2", "s3", "s4"], storage, "g"),
        "prot": modality(b, ["s3", "s1", "s9"], storage, "p"),
    }
    path = write(tmp_path / "m.h5mu", parts)
    X = read_mudata(path, backed=backed, trusted=True)
    assert X.view_names == ["rna", "prot"]
    known = {"rna": (a, ["s1", "s2", "s3", "s4"]), "prot": (b, ["s3", "s1", "s9"])}
    for name, (cells, obs) in known.items():
        view = X.view(name)
        np.testing.assert_array_equal(view.present, np.isin(X.sample_ids, obs))
        for row, one in zip(view.read(), X.sample_ids, strict=True):
            if one in obs:
                np.testing.assert_array_equal(row, cells[obs.index(one)])
            else:
                assert np.isnan(row).all()
        assert X.feature_info[name]["chromosome"].astype(str).tolist()[:2] == ["chr0", "chr1"]
    # The container built from the object in memory is the same.
    with without_pulling():
        held = MultiView.from_mudata(mudata.MuData(parts))
    for name in ("rna", "prot"):
        rows = [held.sample_ids.tolist().index(one) for one in X.sample_ids]
        np.testing.assert_array_equal(held[rows].view(name).read(), X.view(name).read())
    prepared = Preparation(all_missing="zero").fit_transform(X)["prot"]
    assert np.isfinite(prepared.weighted_gram()).all()
    assert read_mudata(path, modalities="prot", trusted=True).view_names == ["prot"]
    assert read_mudata(path, modalities="prot", name="p", trusted=True).view_names == ["p"]
    assert read_mudata(path, name="x", trusted=True).view_names == ["x:rna", "x:prot"]
    with pytest.raises(InputError, match="no modality 'dna'"):
        read_mudata(path, modalities=["dna"], trusted=True)


def test_layers(tmp_path):
    made = modality(np.eye(3), "abc")
    made.layers["counts"] = np.arange(9).reshape(3, 3)
    made.write_h5ad(tmp_path / "l.h5ad")
    X = read_mudata(tmp_path / "l.h5ad", layers="counts", trusted=True)
    np.testing.assert_array_equal(X.view("l").read(), np.arange(9).reshape(3, 3))
    with pytest.raises(InputError, match="no layer 'logs'; it has 'counts'"):
        read_mudata(tmp_path / "l.h5ad", layers="logs", trusted=True)
    path = write(tmp_path / "m.h5mu", {"a": made, "b": modality(np.ones((3, 2)), "abc")})
    X = read_mudata(path, layers={"a": "counts"}, trusted=True)
    assert X.view("a").read()[2, 2] == 8
    assert X.view("b").read()[0, 0] == 1


def test_obs(tmp_path):
    made = modality(np.eye(2), ["x", "y"])
    made.obs["age"] = [60, 70]
    made.write_h5ad(tmp_path / "o.h5ad")
    assert read_obs(tmp_path / "o.h5ad")["age"].to_dict() == {"x": 60, "y": 70}


@pytest.mark.parametrize("storage", sorted(STORAGE))
def test_blocks_are_pieced_together(tmp_path, constants, storage):
    constants(BLOCK_BYTES=200)
    cells = np.random.default_rng(0).poisson(0.5, (30, 40)).astype(np.float32)
    modality(cells, [f"s{i}" for i in range(30)], storage).write_h5ad(tmp_path / "b.h5ad")
    X = read_mudata(tmp_path / "b.h5ad", backed=True, trusted=True)
    np.testing.assert_array_equal(X.view("b").read(), cells)
    np.testing.assert_array_equal(
        X[[29, 0, 7]].view("b").read([39, 2]), cells[[29, 0, 7]][:, [39, 2]]
    )
    held = read_mudata(tmp_path / "b.h5ad", backed=False, trusted=True)
    np.testing.assert_array_equal(held.view("b").read(), cells)
    both = [Preparation().fit_transform(one)["b"].weighted_gram() for one in (X, held)]
    np.testing.assert_allclose(both[0], both[1], rtol=1e-6)


def test_too_large_for_memory_is_left_in_the_file(tmp_path):
    modality(np.eye(50), [f"s{i}" for i in range(50)]).write_h5ad(tmp_path / "d.h5ad")
    with pytest.raises(InputError, match="backed=True"):
        read_mudata(tmp_path / "d.h5ad", backed=False, trusted=True, max_bytes=19_000)


def edit(path, change):
    modality(
        np.eye(3), "abc", "csr" if change.__name__.startswith("sparse") else "dense"
    ).write_h5ad(path)
    with h5py.File(path, "a") as file:
        change(file)
    return path


def external_link(file):
    del file["X"]
    file["X"] = h5py.ExternalLink("/etc/hostname", "/")


def external_link_in_table(file):
    file["var"]["extra"] = h5py.ExternalLink("/etc/hostname", "/")


def soft_link(file):
    file["obs"]["loop"] = h5py.SoftLink("/obs")


def external_storage(file):
    del file["X"]
    file.create_dataset("X", (3, 3), "f8", external=[("/etc/hostname", 0, 72)])


def virtual_data(file):
    del file["X"]
    layout = h5py.VirtualLayout((3, 3), "f8")
    layout[:] = h5py.VirtualSource("/etc/hostname", "X", shape=(3, 3))
    file.create_virtual_dataset("X", layout)


def huge_index(file):
    name = file["obs"].attrs["_index"]
    del file["obs"][name]
    file["obs"].create_dataset(name, (10**12,), "S8", chunks=(1024,))


def huge_matrix(file):
    del file["X"]
    file.create_dataset("X", (10**7, 10**7), "f8", chunks=(128, 128))


def text_matrix(file):
    del file["X"]
    file["X"] = np.array([[b"x"] * 3] * 3)


def no_matrix(file):
    del file["X"]


def sparse_wild_indices(file):
    file["X/indices"][0] = 10**6


def sparse_falling_pointers(file):
    file["X/indptr"][1] = 3
    file["X/indptr"][2] = 1


def sparse_other_shape(file):
    file["X"].attrs["shape"] = [10**9, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (external_link, "link to somewhere else"),
        (external_link_in_table, "link to somewhere else"),
        (soft_link, "link to somewhere else"),
        (external_storage, "another file"),
        (virtual_data, "another file"),
        (huge_index, "file is incomplete"),
        (huge_matrix, "file is incomplete"),
        (text_matrix, "expected numbers of shape"),
        (no_matrix, "has no 'X'"),
        (sparse_wild_indices, "indices are too large"),
        (sparse_falling_pointers, "pointers are not in increasing order"),
        (sparse_other_shape, "of shape"),
    ],
)
def test_files_that_reach_out_or_lie(tmp_path, change, message):
    with pytest.raises(InputError, match=message):
        read_mudata(edit(tmp_path / "x.h5ad", change), trusted=True)


def test_sizes_that_lie_do_not_hold_up_the_first_pass(tmp_path):
    for change in (huge_index, huge_matrix):
        with pytest.raises(InputError):
            read_mudata(edit(tmp_path / f"{change.__name__}.h5ad", change))


@pytest.mark.parametrize(
    ("end", "message"),
    [
        (lambda *a, **k: subprocess.CompletedProcess(a, -11), "crashed on it .signal 11."),
        (lambda *a, **k: raise_timeout(), "did not finish reading it"),
        (
            lambda *a, **k: subprocess.CompletedProcess(a, 1, stderr=b"Traceback\nNo threads"),
            "did not finish .No threads.",
        ),
    ],
)
def test_a_crash_of_the_library_is_an_error(tmp_path, monkeypatch, end, message):
    modality(np.eye(3), "abc").write_h5ad(tmp_path / "x.h5ad")
    monkeypatch.setattr("baldur.io.sandboxed_read.subprocess.run", end)
    for reader in (read_mudata, read_obs):
        with pytest.raises(InputError, match=message):
            reader(tmp_path / "x.h5ad")


def raise_timeout():
    raise subprocess.TimeoutExpired("probe", 1)


def test_the_extra_is_named(tmp_path, monkeypatch):
    modality(np.eye(3), "abc").write_h5ad(tmp_path / "x.h5ad")
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'baldur-multiview\[mudata\]'"):
        read_mudata(tmp_path / "x.h5ad")
