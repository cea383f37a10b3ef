"""Results are found by what they depend on, and a damaged file is as good as none."""

import shutil
import subprocess
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.svm import SVC

from baldur import BaldurClassifier
from baldur.atomic_io import folder_lock
from baldur.baselines import CPMNetsClassifier, RidgeLogisticClassifier, SGPARDClassifier
from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.engine import code_hash as code_hash_module
from baldur.evaluation.engine import shared_data
from baldur.evaluation.engine.code_hash import PACKAGE, code_hash, imported_modules, package_hash
from baldur.evaluation.engine.job_store import (
    JobStore,
    Outcome,
    _digest,
    fingerprint,
    job_key,
    libraries,
)
from baldur.evaluation.engine.shared_data import SharedData, open_data
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


def test_five_thousand_flipped_bytes_are_all_seen(tmp_path):
    """Every kind of result; any byte, any change of it."""
    rng = np.random.default_rng(0)
    store = JobStore(tmp_path)
    kept = {
        "ab" * 32: Outcome({"score": 0.25, "folds": 3, "seconds": 0.1, "warnings": ["W: é"]}),
        "cd" * 32: Outcome({"error": "ValueError: no", "seconds": 0.0}),
        "ef" * 32: Outcome(
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
    store.save("ab" * 32, Outcome({"score": 1.0}, {"label": np.arange(1000)}))
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
    store.save("ab" * 32, Outcome({"score": 1.0}))
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
        monkeypatch.setattr("baldur.evaluation.engine.run.libraries", lambda here=here: here)
        nested_cv({"Dummy": None}, sim.data, sim.target, outer=2, store=tmp_path)
        counts.append(len(list(tmp_path.glob("*/*.job"))))
    assert counts == [2 * (i + 1) for i in range(len(real) + 1)]


@pytest.fixture
def package(monkeypatch, tmp_path):
    """Return a copy of the sources that the hash of code is computed from."""
    copy = tmp_path / "baldur"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.setattr("baldur.evaluation.engine.code_hash.PACKAGE", copy)
    forget_code()
    yield copy
    forget_code()


def forget_code():
    for name in ("_hash_of", "_imports", "_extras", "_file_of"):
        getattr(code_hash_module, name).cache_clear()


def test_versions_of_optional_libraries_concern_the_models_that_import_them(monkeypatch):
    models = SGPARDClassifier(), CPMNetsClassifier(), RidgeLogisticClassifier(), BaldurClassifier()
    before = [code_hash(model) for model in models]
    monkeypatch.setattr(code_hash_module, "version", lambda library: f"another {library}")
    forget_code()
    after = [code_hash(model) for model in models]
    forget_code()
    assert [a != b for a, b in zip(after, before, strict=True)] == [True, True, False, False]
    assert "another gpytorch" in after[0]
    assert "another torch" in after[1]


@pytest.mark.parametrize(
    ("changed", "baseline", "default"),
    [
        ("report/page.py", False, False),
        ("baselines/paper/mv_pls.py", False, False),
        ("baselines/additional/ridge_logistic.py", True, False),
        ("baselines/shared/base.py", True, False),
        ("inference/stacking.py", False, True),
        ("model/posterior.py", False, True),
        ("evaluation/engine/job.py", True, True),
        ("evaluation/metrics.py", True, True),
        ("preparation/scaling.py", True, True),
        ("views/container.py", True, True),
    ],
)
def test_a_change_of_code_concerns_the_models_that_run_it(package, changed, baseline, default):
    models = RidgeLogisticClassifier(), BaldurClassifier()
    before = [code_hash(model) for model in models]
    file = package / changed
    file.write_text(file.read_text(encoding="utf-8") + "# changed\n", encoding="utf-8")
    forget_code()
    assert [code_hash(m) != old for m, old in zip(models, before, strict=True)] == [
        baseline,
        default,
    ]


def test_the_code_of_a_model_within_another_counts(package):
    inner, alone = make_pipeline(BaldurClassifier()), BaldurClassifier()
    before = code_hash(inner)
    file = package / "inference" / "stacking.py"
    file.write_text("# changed\n", encoding="utf-8")
    forget_code()
    assert code_hash(inner) != before
    assert code_hash(alone) == code_hash(inner)


class Mine(BaldurClassifier):
    """A user's own class."""


def test_classes_of_others_count_as_running_the_whole_package(package):
    models = Mine(), make_pipeline(Mine())
    before = [code_hash(model) for model in models]
    file = package / "inference" / "stacking.py"
    file.write_text("# changed\n", encoding="utf-8")
    forget_code()
    assert all(code_hash(m) != old for m, old in zip(models, before, strict=True))


@pytest.mark.parametrize(
    "model",
    ["estimators.classifier.BaldurClassifier", "paper.estimators.PaperClassifier",
     "baselines.paper.mv_pls.MVPLSClassifier"],
)  # fmt: skip
def test_every_module_that_a_fit_imports_counts(model):
    """All modules that a process loads to fit and predict are among those that the hash reads.

    Packages are left out: their ``__init__`` is loaded with any of their modules.
    """
    module, name = f"baldur.{model}".rsplit(".", 1)
    program = (
        "import sys, numpy as np, pandas as pd\n"
        f"from {module} import {name} as Model\n"
        "X = pd.DataFrame(np.random.default_rng(0).normal(size=(30, 3)), columns=list('abc'))\n"
        "y = (X['a'] > 0).to_numpy().astype(int)\n"
        "Model().fit(X, y).predict(X)\n"
        "loaded = [m for m in sys.modules.items() if m[0].startswith('baldur.')]\n"
        "print(*(n for n, m in loaded if not hasattr(m, '__path__')))"
    )
    command = [sys.executable, "-W", "ignore", "-c", program]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    missed = set(done.stdout.split()) - imported_modules([module])
    # Other baselines, which the package of baselines imports, and what they alone need.
    others = ("baldur.hooks", "baldur.optional", "baldur.views.matrices.gram")
    assert all(m in others or m.startswith("baldur.baselines.") for m in missed), missed


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
    monkeypatch.setattr(shared_data, "MAP_BYTES", 1000)
    rng = np.random.default_rng(0)
    wide = np.asfortranarray(rng.normal(size=(30, 40)))
    np.save(tmp_path / "on_disk.npy", wide)
    mapped = np.load(tmp_path / "on_disk.npy", mmap_mode="r")
    present = rng.random(30) < 0.5
    views = {"wide": wide, "small": rng.normal(size=(30, 2)), "disk": mapped, "cut": mapped[:, 3:9]}
    mv = MultiView(views, present={"small": present})[rng.permutation(30)[:20]]
    with SharedData(mv) as shared:
        here = shared.data
        there = open_data(shared.send())
        for copy in (here, there):
            assert copy.sample_ids.tolist() == mv.sample_ids.tolist()
            for name in mv.view_names:
                np.testing.assert_array_equal(copy.view(name).read(), mv.view(name).read())
        assert not there.view("wide").source.in_memory
        assert there.view("small").source.in_memory
    open_data.cache_clear()
