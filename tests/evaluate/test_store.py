"""Results are found by what they depend on, and a damaged file is as good as none."""

import numpy as np
import pytest
from sklearn.svm import SVC

from baldur.datasets import make_multiview
from baldur.evaluate import handle
from baldur.evaluate.handle import DataHandle, fingerprint, open_handle
from baldur.evaluate.store import JobStore, Outcome, job_key
from baldur.views import MultiView


def test_a_result_comes_back_as_it_was(tmp_path):
    store = JobStore(tmp_path)
    kept = Outcome({"score": 0.1 + 0.2}, {"label": np.arange(3), "proba": np.eye(3) / 3})
    store.save("ab" * 32, kept)
    found = JobStore(tmp_path).load("ab" * 32)
    assert found.facts == kept.facts
    for name, array in kept.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
    assert store.load("cd" * 32) is None


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9])
def test_a_cut_file_counts_as_missing(tmp_path, share):
    store = JobStore(tmp_path)
    store.save("ab" * 32, Outcome({"score": 1.0}, {"label": np.arange(1000)}))
    (file,) = tmp_path.glob("*/*.job")
    content = file.read_bytes()
    file.write_bytes(content[: int(share * len(content))])
    assert store.load("ab" * 32) is None


def test_sweep_removes_leftovers_only(tmp_path):
    store = JobStore(tmp_path)
    store.save("ab" * 32, Outcome({"score": 1.0}))
    (tmp_path / "ab" / ".123.part").write_bytes(b"half")
    store.sweep()
    assert [f.suffix for f in (tmp_path / "ab").iterdir()] == [".job"]


def test_keys_see_parameters_rows_and_order():
    base = {"estimator": SVC(C=1.0), "rows": np.arange(5), "seed": 1}
    key = job_key(**base)
    assert key == job_key(**base)
    assert key != job_key(**{**base, "estimator": SVC(C=2.0)})
    assert key != job_key(**{**base, "rows": np.arange(5)[::-1]})
    assert key != job_key(**{**base, "seed": 2})


def test_the_fingerprint_sees_cells_names_and_presence():
    X = make_multiview(20, {"a": 3}, random_state=0).data.view("a").read()
    base = fingerprint(MultiView({"a": X}))
    other = X.copy()
    other[3, 1] += 1e-9
    present = np.ones(20, bool)
    present[0] = False
    assert base == fingerprint(MultiView({"a": X.copy()}))
    different = {
        base,
        fingerprint(MultiView({"a": other})),
        fingerprint(MultiView({"b": X})),
        fingerprint(MultiView({"a": X}, feature_names={"a": ["x", "y", "z"]})),
        fingerprint(MultiView({"a": X}, present={"a": present})),
        fingerprint(MultiView({"a": X})[np.arange(20)[::-1]]),
        fingerprint(MultiView({"a": X.astype(np.float32)})),
    }
    assert len(different) == 7


def test_other_processes_open_the_same_cells(monkeypatch, tmp_path):
    monkeypatch.setattr(handle, "MAP_BYTES", 1000)
    rng = np.random.default_rng(0)
    wide = np.asfortranarray(rng.normal(size=(30, 40)))
    np.save(tmp_path / "on_disk.npy", wide)
    mapped = np.load(tmp_path / "on_disk.npy", mmap_mode="r")
    present = rng.random(30) < 0.5
    views = {"wide": wide, "small": rng.normal(size=(30, 2)), "disk": mapped, "cut": mapped[:, 3:9]}
    mv = MultiView(views, present={"small": present})[rng.permutation(30)[:20]]
    with DataHandle(mv) as shared:
        here = open_handle(shared.path)
        path = shared.send()
        handle._loaded.clear()
        there = open_handle(path)
        for copy in (here, there):
            assert copy.sample_ids.tolist() == mv.sample_ids.tolist()
            for name in mv.view_names:
                np.testing.assert_array_equal(copy.view(name).read(), mv.view(name).read())
        assert not there.view("wide").source.in_memory
        assert there.view("small").source.in_memory
    handle._loaded.clear()
