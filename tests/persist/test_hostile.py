"""Model folders from strangers: nothing is executed, no shape is trusted, any change is found."""

import json
import os
import pickle
import shutil

import joblib
import numpy as np
import pytest

import baldur
from baldur.exceptions import InputError
from baldur.persist import SavedModel, load_model, read_manifest, save_model
from baldur.persist.arrays import pack_arrays, unpack_arrays
from baldur.persist.decode import Decoder
from baldur.persist.plain import digest, write_json
from persist.fuzz import contents_of, run, small_models
from persist.models import fitted, rows_for

NAME = "dense, columns"


@pytest.fixture
def folder(tmp_path):
    return fitted(NAME).save(tmp_path / "model")


def edit(folder, change, file="manifest.json"):
    value = json.loads((folder / file).read_text())
    change(value)
    (folder / file).write_text(json.dumps(value))


# -- an edited manifest ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "change",
    [
        lambda m: m["classes"].reverse(),
        lambda m: m["views"].reverse(),
        lambda m: m["views"][0]["names"].reverse(),
        lambda m: m.update(task="regression"),
        lambda m: m["preparation"].update(samples=4000),
        lambda m: m["versions"].update(baldur="9.9"),
        lambda m: m.update(extra=1),
    ],
)
def test_an_edited_manifest_is_refused(folder, change):
    edit(folder, change)
    with pytest.raises(InputError, match="was changed after the model was saved"):
        baldur.load(folder)
    with pytest.raises(InputError, match="was changed after"):
        read_manifest(folder)


def test_a_manifest_that_tells_another_story_is_refused_even_with_right_checksums(folder):
    """Whoever can compute checksums can still not have a manifest say what the model is not."""
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["classes"].reverse()
    del manifest["arrays"]
    arrays, _ = unpack_arrays((folder / "arrays.safetensors").read_bytes())
    content = pack_arrays(arrays, {"manifest": digest(manifest)})
    (folder / "arrays.safetensors").write_bytes(content)
    manifest["arrays"] = digest(content)
    (folder / "manifest.json").write_bytes(write_json(manifest))
    with pytest.raises(InputError, match="describes another model than the one beside it"):
        baldur.load(folder)


def test_formatting_of_the_manifest_is_free(folder):
    edit(folder, lambda m: None)
    baldur.load(folder)
    (folder / "card.md").write_text("My own words.")
    (folder / "score.R").unlink()
    baldur.load(folder)
    (folder / "score.js").write_text("console.log('p = 1')")
    with pytest.raises(InputError, match=r"score\.js is not what the manifest says"):
        baldur.load(folder)


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("manifest.json", b"", "is no JSON"),
        ("manifest.json", b"[" * 200_000, "is no JSON"),
        ("manifest.json", b'{"schema": 2, "schema": 2}', "comes twice"),
        ("manifest.json", b'{"schema": NaN}', "no number of JSON"),
        ("manifest.json", b'{"schema": 3, "versions": {"baldur": "2.0"}}', "Install a newer"),
        ("manifest.json", b'{"schema": 2}', "not one that baldur wrote"),
        ("manifest.json", b'{"schema": true}', "no schema number"),
        ("structure.json", b"{}", "not what the manifest says"),
        ("arrays.safetensors", b"\xff" * 64, "not what the manifest says"),
    ],
)
def test_files_of_other_kinds_are_refused(folder, file, content, said):
    (folder / file).write_bytes(content)
    with pytest.raises(InputError, match=said):
        baldur.load(folder)


def test_names_lead_nowhere_else(folder, tmp_path):
    secret = tmp_path / "secret"
    secret.write_bytes(b"secret")
    edit(folder, lambda m: m["files"].update({"../secret": digest(b"secret")}))
    with pytest.raises(InputError, match="not one that baldur wrote"):
        baldur.load(folder)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_does_not_keep_us_waiting(folder):
    for name in ("arrays.safetensors", "structure.json", "score.py"):
        broken = shutil.copytree(folder, folder.with_name(f"pipe {name}"))
        (broken / name).unlink()
        os.mkfifo(broken / name)
        with pytest.raises(InputError, match="no plain file"):
            baldur.load(broken)


# -- array files --------------------------------------------------------------------------------


def header(content, change):
    """The bytes of an array file with a changed header."""
    size = int.from_bytes(content[:8], "little")
    about = json.loads(content[8 : 8 + size])
    change(about)
    raw = json.dumps(about).encode()
    return len(raw).to_bytes(8, "little") + raw + content[8 + size :]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda h: h["a"].update(shape=[1 << 40, 1 << 40]), "size of 'a'"),
        (lambda h: h["a"].update(shape=[-1]), "size of 'a'"),
        (lambda h: h["a"].update(data_offsets=[0, 1 << 60]), "size of 'a'"),
        (lambda h: h["a"].update(dtype="PICKLE"), "does not describe 'a'"),
        (lambda h: h["a"].pop("shape"), "does not describe 'a'"),
        (lambda h: h["b"].update(data_offsets=[0, 16]), "overlap"),
        (lambda h: h.pop("b"), "cut short, or longer"),
        (lambda h: h.update(__metadata__={"x": [1]}), "notes that are no text"),
    ],
)
def test_headers_that_lie_are_refused(change, said):
    content = pack_arrays({"a": np.arange(3.0), "b": np.arange(2.0)}, {})
    unpack_arrays(content)
    with pytest.raises(InputError, match=said):
        unpack_arrays(header(content, change))
    for cut in range(0, len(content), 7):
        with pytest.raises(InputError):
            unpack_arrays(content[:cut])


# -- nothing is executed ------------------------------------------------------------------------


def test_loading_works_without_pickle_and_joblib(tmp_path, monkeypatch):
    from baldur.baselines import BASELINES
    from persist.models import N, cohort

    X, y = cohort("two")
    forest = BASELINES["RF"].make().set_params(n_estimators=3).fit(X[:N], y[:N])
    models = [fitted(NAME), fitted("dense, Grams"), forest]
    folders = [model.save(tmp_path / str(i)) for i, model in enumerate(models)]

    def broken(*_, **__):
        raise AssertionError("a pickle was opened")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, broken)
    monkeypatch.setattr(joblib, "load", broken)
    for model, saved in zip(models, folders, strict=True):
        again = baldur.load(saved)
        rows = rows_for("dense, Grams") if model is models[1] else X[N:]
        np.testing.assert_array_equal(again.predict_proba(rows), model.predict_proba(rows))


class Bomb:
    """What a pickle would run."""

    def __reduce__(self):
        return (os.system, ("touch /tmp/baldur-was-here",))


def test_a_pickle_is_opened_only_where_it_is_trusted(tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    model = pickle.dumps(Bomb())
    np.savez(folder / "features.npz")
    features = (folder / "features.npz").read_bytes()
    (folder / "model.joblib").write_bytes(model)
    manifest = {
        "schema": 1, "baldur": "0.1", "views": {"a": 1}, "named": [False], "classes": [],
        "details": {}, "sha256": {"model.joblib": digest(model), "features.npz": digest(features)},
    }  # fmt: skip
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(InputError, match=r"schema 1 and holds a pickle.*trust=True"):
        baldur.load(folder)
    assert not os.path.exists("/tmp/baldur-was-here")


def test_classes_that_are_not_listed_are_never_built(folder):
    for node in (
        {"is": "object", "class": "Popen", "fields": {}},
        {"is": "object", "class": "os.system", "fields": {}},
        {"is": "object", "class": "Explicit", "fields": {"__class__": "x"}},
        {"is": "object", "class": "Mixture", "fields": {"moments": 3}},
        {"is": "function", "name": "system"},
        {"is": "method", "name": "__init__", "of": None},
        {"is": "value", "node": 1},
        {"is": "same", "id": 3},
        {"is": "dtype", "value": "O"},
        {"is": "array", "name": "absent"},
        {"is": "texts", "name": "a", "ends": "b", "shape": [1 << 40, 1 << 40], "dtype": "<U1"},
    ):  # fmt: skip
        with pytest.raises((InputError, KeyError)):
            Decoder({}).value(node)


def test_baselines_of_other_types_are_refused():
    from skops.io import dumps

    from baldur.persist.baselines import unpack_baseline

    for thing in ({"a": os.path.join}, [1, 2]):
        with pytest.raises(InputError, match="baseline that"):
            unpack_baseline(np.frombuffer(dumps(thing), dtype=np.uint8))
    with pytest.raises(InputError, match="skops refuses"):
        unpack_baseline(np.frombuffer(b"PK nonsense", dtype=np.uint8))


# -- fuzzing --------------------------------------------------------------------------------------


def test_mutated_folders_give_errors_of_ours_or_the_same_predictions(tmp_path):
    """A hundred of each kind here; 2,000 of each with ``python tests/persist/fuzz.py 2000``."""
    models = {k: v for k, v in small_models().items() if k not in ("mean field", "loadings")}
    counts, faults = run(100, 1, tmp_path, models)
    assert faults == []
    assert counts["damaged: refused"] > 90
    assert counts["resealed: refused"] > 50


def test_what_is_beside_the_estimator_is_checked_too(tmp_path):
    model = fitted(NAME)
    good = SavedModel.alone(model)
    for wrong in (
        SavedModel(model, {"a": None}, good.n_features),
        SavedModel(model, good.features, {"a": 4, "b": 5}),
        SavedModel(model, good.features, good.n_features, training={"a": {"mean": np.zeros(9)}}),
    ):
        with pytest.raises((InputError, KeyError)):
            load_model(save_model(wrong, tmp_path / "wrong", overwrite=True))
    assert contents_of(save_model(good, tmp_path / "good"))


def test_short_files_cannot_ask_for_all_memory():
    ends = np.full(2000, 9, dtype=np.int64)
    arrays = {"a": np.frombuffer(b"long name", dtype=np.uint8), "b": ends}
    node = {"is": "texts", "name": "a", "ends": "b", "shape": [2000], "dtype": "<U999999"}
    found = Decoder(arrays).value(node)
    assert found.dtype.itemsize == 9 * 4
    arrays["a"] = np.zeros(900_000, dtype=np.uint8)
    arrays["b"] = np.full(2000, 900_000, dtype=np.int64)
    with pytest.raises(InputError, match="larger than any model's"):
        Decoder(arrays).value(node)
