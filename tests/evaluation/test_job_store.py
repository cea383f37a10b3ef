"""Results are found by what they depend on, and a damaged file is as good as none."""

import numpy as np
import pytest
from sklearn.svm import SVC

from baldur.core.atomic_io import folder_lock
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.job_store import (
    JobResult,
    JobStore,
    _digest,
    data_hashes,
    job_key,
    libraries,
    package_hash,
)
from baldur.views import MultiView


def test_a_result_comes_back_as_it_was(tmp_path):
    store = JobStore(tmp_path)
    kept = JobResult({"score": 0.1 + 0.2}, {"label": np.arange(3), "proba": np.eye(3) / 3})
    store.save("ab" * 32, kept)
    found = JobStore(tmp_path).load("ab" * 32)
    assert found.facts == kept.facts
    for name, array in kept.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
    assert store.load("cd" * 32) is None


def test_five_thousand_flipped_bytes_are_all_seen(tmp_path):
    """Every kind of result; any byte, any change of it."""
    rng = np.random.default_rng(0)
    store = JobStore(tmp_path)
    kept = {
        "ab" * 32: JobResult({"score": 0.25, "folds": 3, "seconds": 0.1, "warnings": ["W: é"]}),
        "cd" * 32: JobResult({"error": "ValueError: no", "seconds": 0.0}),
        "ef" * 32: JobResult(
            {"views": ["a", "b"], "seconds": 1.0},
            {"label": rng.integers(0, 2, 40), "proba": rng.random((40, 2)),
             "index0": np.arange(30), "weight0": rng.normal(size=30)},
        ),
    }  # fmt: skip
    for key, outcome in kept.items():
        store.save(key, outcome)
    files = {key: tmp_path / key[:2] / f"{key}.job" for key in kept}
    whole = {key: file.read_bytes() for key, file in files.items()}
    for i in range(5000):
        key = list(kept)[i % 3]
        content = bytearray(whole[key])
        at = int(rng.integers(len(content)))
        content[at] ^= int(rng.integers(1, 256))
        files[key].write_bytes(content)
        assert store.load(key) is None, (key, at)
    for key, outcome in kept.items():
        files[key].write_bytes(whole[key])
        assert store.load(key).facts == outcome.facts


@pytest.mark.parametrize("share", [0.0, 0.005, 0.3, 0.9])
def test_a_cut_or_longer_or_foreign_file_counts_as_missing(tmp_path, share):
    store = JobStore(tmp_path)
    store.save("ab" * 32, JobResult({"score": 1.0}, {"label": np.arange(1000)}))
    (file,) = tmp_path.glob("*/*.job")
    content = file.read_bytes()
    for damaged in (content[: int(share * len(content))], content + b"\0", b"x" * 99):
        file.write_bytes(damaged)
        assert store.load("ab" * 32) is None
    # A file under the name of another job, or a checked one that holds no result.
    other = tmp_path / "cd" / f"{'cd' * 32}.job"
    other.parent.mkdir()
    other.write_bytes(content)
    assert store.load("cd" * 32) is None
    other.write_bytes(_digest("cd" * 32, b"no archive") + b"no archive")
    assert store.load("cd" * 32) is None


def test_damaged_jobs_are_done_again_and_nothing_else(tmp_path):
    sim = make_multiview(40, {"a": 3}, random_state=0)
    models = {"Ridge logistic": {"C": [0.1, 1.0]}, "Dummy": None}

    def study():
        states = []
        found = nested_cv(models, sim.data, sim.target, outer=2, inner=2, store=tmp_path,
                          progress=lambda s: states.append((s.reused, s.total)))  # fmt: skip
        return found.predictions.to_csv(), states[-1]

    first, (_, total) = study()
    files = sorted(tmp_path.glob("*/*.job"))
    assert len(files) == total
    rng = np.random.default_rng(1)
    for damaged in (files[::2], files, files[:1]):
        for file in damaged:
            content = bytearray(file.read_bytes())
            content[int(rng.integers(len(content)))] ^= 1 << int(rng.integers(8))
            file.write_bytes(content)
        again, (reused, _) = study()
        assert again == first
        assert reused == total - len(damaged)


def test_sweep_leaves_what_another_process_is_writing(tmp_path):
    store = JobStore(tmp_path)
    store.save("ab" * 32, JobResult({"score": 1.0}))
    part = tmp_path / "ab" / ".123.part"
    part.write_bytes(b"half")
    with folder_lock(tmp_path):
        store.sweep()
        assert part.exists()
    store.sweep()
    assert not part.exists()


def test_keys_see_the_libraries(monkeypatch, tmp_path):
    sim = make_multiview(30, {"a": 3}, random_state=0)
    real = libraries()
    assert set(real) >= {"baldur", "scikit-learn", "numpy", "python"}
    counts = []
    for changed in (None, *real):
        here = {**real, changed: "other"} if changed else real
        monkeypatch.setattr("baldur.evaluation.run.libraries", lambda here=here: here)
        nested_cv({"Dummy": None}, sim.data, sim.target, outer=2, store=tmp_path)
        counts.append(len(list(tmp_path.glob("*/*.job"))))
    assert counts == [2 * (i + 1) for i in range(len(real) + 1)]


def test_the_code_is_known_by_its_content(tmp_path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a.py").write_text("x = 1")
    (tmp_path / "notes.txt").write_text("no code")
    first = package_hash(tmp_path)
    (tmp_path / "notes.txt").write_text("changed")
    assert package_hash(tmp_path) == first
    (tmp_path / "sub" / "a.py").write_text("x = 2")
    second = package_hash(tmp_path)
    (tmp_path / "sub" / "a.py").rename(tmp_path / "sub" / "b.py")
    assert len({first, second, package_hash(tmp_path)}) == 3


def test_sweep_removes_leftovers_only(tmp_path):
    store = JobStore(tmp_path)
    store.save("ab" * 32, JobResult({"score": 1.0}))
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
    def fingerprint_of(mv):
        return data_hashes(mv, [None])[None]

    X = make_multiview(20, {"a": 3}, random_state=0).data.view("a").read()
    base = fingerprint_of(MultiView({"a": X}))
    other = X.copy()
    other[3, 1] += 1e-9
    present = np.ones(20, bool)
    present[0] = False
    assert base == fingerprint_of(MultiView({"a": X.copy()}))
    different = {
        base,
        fingerprint_of(MultiView({"a": other})),
        fingerprint_of(MultiView({"b": X})),
        fingerprint_of(MultiView({"a": X}, feature_names={"a": ["x", "y", "z"]})),
        fingerprint_of(MultiView({"a": X}, present={"a": present})),
        fingerprint_of(MultiView({"a": X})[np.arange(20)[::-1]]),
        fingerprint_of(MultiView({"a": X.astype(np.float32)})),
    }
    assert len(different) == 7
