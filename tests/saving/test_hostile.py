"""Model folders from strangers: nothing is executed or trusted, every fault is one line."""

import json
import pickle
import random

import joblib
import numpy as np
import pytest

from baldur.exceptions import BaldurError, InputError
from baldur.saving import load, save
from saving.forging import read_tree, real_models, reseal, run
from saving.models import fitted, rows_for

NAME = "mean field, words"


@pytest.fixture
def folder(tmp_path):
    return save(fitted(NAME), tmp_path / "model")


def test_forged_models_are_refused_or_predict_what_can_be():
    """Finding: NaN ranges and weights of 1e300 gave probabilities of NaN, or from -2 to 3.

    150 here; ``python tests/saving/forging.py 2000`` makes more.
    """
    counts, faults = run(150, 1, real_models())
    assert faults == []
    assert counts["refused"] > 30
    assert counts["sound"] > 30


@pytest.mark.slow
def test_five_hundred_forged_models():
    _, faults = run(500, 2, real_models())
    assert faults == []


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("estimator.predictor.result.V_cov", lambda v: -v, "not negative"),
        ("estimator.predictor.result.tau", lambda v: -1.0, "above 0"),
        ("estimator.predictor.result.W", lambda v: v[:1], "2 entries, but got 1"),
        ("estimator.predictor.kind", lambda v: "os.system", "expected 'mean-field predictor'"),
        ("estimator.kind", lambda v: "subprocess.Popen", "expected 'baldur classifier' or"),
        ("estimator.kind", lambda v: "baseline", "expected 'baldur classifier' or"),
        ("estimator.task", lambda v: "regression", "expected one of"),
        ("estimator.task", lambda v: "multiclass", "one output per class"),
        ("estimator.settings.max_iter", lambda v: -3, "max_iter must be"),
        ("estimator.settings.evil", lambda v: 1, "field 'evil' that is not known"),
        ("estimator.fitted.predict", lambda v: 1, "field 'predict' that is not known"),
        ("estimator.fitted.__class__", lambda v: 1, "field '__class__' that is not known"),
        ("estimator.fitted.coef_", lambda v: {**v, "a": v["b"]}, "coef_.a: expected numbers of"),
        ("estimator.fitted.selected_features_.a", lambda v: ~v, "features that were selected"),
        ("estimator.fitted.classes_", lambda v: np.array(["a", "a"]), "all different"),
        ("estimator.fitted.classes_", lambda v: np.array(["a", "b", "c"]), "two classes"),
        ("estimator.preparation.n_features_", lambda v: dict([*v.items()][::-1]), "steps leave"),
        ("estimator.preparation.n_features_", lambda v: {"a": 3, "other": 5}, "steps leave"),
        ("estimator.preparation.n_features_.a", lambda v: 2**40, "columns that the steps leave"),
        ("classes", lambda v: ["a"], "expected 2 labels"),
        ("classes", lambda v: [["a"], "b"], "labels that are text"),
        ("training", lambda v: {"a": {"mean": np.zeros(9)}}, "training.a.mean: expected numbers"),
        ("training", lambda v: {"c": {}}, "training: expected one entry for each"),
        ("details", lambda v: [], "details: expected an object"),
        ("details", lambda v: {"samples": "many"}, "details.samples: expected a whole number"),
        ("details", lambda v: {"included": {"categories": 1}}, "details.included.categories"),
        ("estimator.preparation.n_features_", lambda v: {}, "at least one view"),
    ],
)
def test_states_that_do_not_fit_are_refused_and_named(folder, path, value, said):
    refused(folder, path, value, said)


def refused(folder, path, value, said):
    """Change one value of a saved state and expect one line that says what is wrong."""
    tree = read_tree(folder)
    *way, last = (int(step) if step.isdigit() else step for step in path.split("."))
    inside = tree
    for step in way:
        inside = inside[step]
    inside[last] = value(inside.get(last) if isinstance(inside, dict) else inside[last])
    reseal(folder, tree)
    with pytest.raises(InputError, match="does not hold a sound model: ") as caught:
        load(folder)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize(
    ("name", "path", "value", "said"),
    [
        ("auto", "weights", lambda v: -v, "weights: expected numbers of at least 0"),
        ("auto", "weights", lambda v: 1e300 * v, "weights: expected numbers within"),
        ("auto", "weights", lambda v: 0.5 * v, "weights that sum to 1"),
        ("auto", "blocks", lambda v: [], "weights: expected 0 rows"),
        ("auto", "blocks.0.kind", lambda v: "predictor", "expected 'weight gaussian' or"),
        ("auto", "blocks.0.mean", lambda v: v * np.nan, "mean: expected finite"),
        ("auto", "blocks.0.cov", lambda v: -v, "cov: expected variances that are not negative"),
        ("auto", "blocks.0.cov", lambda v: 2 - np.eye(len(v[0][0])) + 0 * v, "semidefinite"),
        ("auto", "blocks.0.index.0", lambda v: v + 3, "index[0]: expected numbers of at most 2"),
        ("auto", "blocks.0.index.0", lambda v: v * 0, "expected numbers that are all different"),
        ("auto", "missing_variance", lambda v: -v - 1, "missing_variance: expected numbers of at"),
        ("dense, Grams", "calibration.slope", lambda v: 0.0, "slope: expected a number above 0"),
        ("dense, Grams", "calibration.slope_var", lambda v: -1.0, "slope_var: expected a number"),
        ("dense, Grams", "calibration.spread", lambda v: -v, "spread: expected numbers of at"),
        ("three classes", "factors", lambda v: [], "factors: expected an object"),
        ("factors", "factors", lambda v: None, "factors: expected them where factors"),
        ("factors", "factors.R", lambda v: 2 * v, "R: expected orthonormal rows"),
        ("dense, Grams", "blocks.0.alpha", lambda v: v[..., 1:], "half: expected numbers of"),
        ("dense, Grams", "blocks.0.half", lambda v: v * np.inf, "half: expected finite"),
        ("dense, Grams", "blocks.0.s", lambda v: -v, "s: expected numbers of at least 0"),
        ("dense, Grams", "blocks.0.intercept_var", lambda v: np.nan, "expected finite numbers"),
        ("dense, Grams", "blocks.0.train", lambda v: v[:1], "train: expected 2 entries"),
        ("dense, Grams", "blocks.0.train", lambda v: None, "train: expected rows of columns"),
        ("dense, Grams", "blocks.0.train.1.cells.array", lambda v: v / 0, "expected finite"),
        ("dense, Grams", "blocks.0.train.1.cells.array", lambda v: v.astype("f2"), "32 or 64 bits"),
        ("genotypes", "blocks.0.train.1.cells.factor", lambda v: -v - 1, "factor: expected"),
        ("genotypes", "blocks.0.train.1.cells.dtype", lambda v: "object", "dtype: expected one of"),
        ("genotypes", "blocks.0.train.1.cells.upper", lambda v: np.zeros(90), "together with"),
        ("genotypes", "blocks.0.train.1.cells.source", lambda v: v[1:], "source: expected numbers"),
    ],
)  # fmt: skip
def test_predictors_that_cannot_be_are_refused_and_named(tmp_path, name, path, value, said):
    """Finding: mixture weights that are negative or 1e300 gave probabilities from -2 to 3."""
    with np.errstate(all="ignore"):
        refused(save(fitted(name), tmp_path / "model"), f"estimator.predictor.{path}", value, said)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        ("sparsity_path_.data.8.values", lambda v: ~v, "sparsity_path_: expected one selected row"),
        ("sparsity_path_.data.1.values", lambda v: np.arange(len(v)) + 50, "of as many views as"),
        ("sparsity_path_.data.0.values", lambda v: v[-1:].repeat(len(v)), "one row of nothing"),
        ("sparsity_path_.data.3.values", lambda v: v > 0, "numbers in the column loss"),
        ("stacking_weights_", lambda v: {"a": "b"}, "stacking_weights_.a: expected a number"),
        ("inclusion_probability_.a", lambda v: v + 2, "expected numbers of at most 1"),
        ("credible_sets_.columns", lambda v: v[::-1], "credible_sets_.columns: expected"),
    ],
)
def test_attributes_that_cannot_be_are_refused_and_named(tmp_path, path, value, said):
    refused(save(fitted("auto"), tmp_path / "model"), f"estimator.fitted.{path}", value, said)


def test_control_characters_do_not_get_in(folder):
    """Finding: labels with control characters reached predictions.csv."""
    tree = read_tree(folder)
    with pytest.raises(InputError, match="control characters"):
        reseal(folder, {**tree, "classes": ["ill\x1b[31m", "well"]})
    # Written by another program.
    raw = (folder / "state.json").read_text().replace('"ill"', '"ill\\u001b[31m"')
    (folder / "state.json").write_text(raw)
    reseal(folder)
    with pytest.raises(InputError, match="control characters"):
        load(folder)


def test_a_manifest_that_tells_another_story_is_refused_even_with_right_checksums(folder):
    reseal(folder, classes=["well", "ill"])
    with pytest.raises(InputError, match="describes another model than the one beside it"):
        load(folder)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_files_are_refused(folder, seed):
    """Bits flipped, cut, repeated, exchanged: found by the checksums, whatever they hit."""
    rng = random.Random(seed)
    names = sorted(f.name for f in folder.iterdir() if f.name not in (".lock", "card.md"))
    original = {name: (folder / name).read_bytes() for name in names}
    for _ in range(40):
        name = rng.choice(names)
        raw = bytearray(original[name])
        at = rng.randrange(len(raw))
        match rng.choice(["flip", "cut", "grow", "other"]):
            case "flip":
                raw[at] ^= 1 << rng.randrange(8)
            case "cut":
                del raw[at:]
            case "grow":
                raw[at:at] = rng.randbytes(9)
            case "other":
                raw = bytearray(original[rng.choice([n for n in names if n != name])])
        if bytes(raw) == original[name]:
            continue
        (folder / name).write_bytes(raw)
        with pytest.raises(BaldurError) as caught:
            load(folder)
        assert len(str(caught.value).splitlines()) == 1
        (folder / name).write_bytes(original[name])
    load(folder)


def test_damaged_states_with_right_checksums_give_one_line(folder):
    """The JSON text changed at random, then sealed: refused, or a model that predicts."""
    rng, said = random.Random(0), []
    original = (folder / "state.json").read_bytes()
    for _ in range(150):
        raw = bytearray(original)
        for _ in range(rng.choice([1, 3])):
            at = rng.randrange(len(raw))
            raw[at : at + rng.choice([0, 1, 4])] = rng.choice(
                [b"", b"0", b"-", b'"', b"[", b"}", b",", b"null", b"1e9", b'"$array"']
            )
        (folder / "state.json").write_bytes(raw)
        reseal(folder)
        try:
            p = load(folder).predict_proba(rows_for(NAME))
        except BaldurError as error:
            said.append(str(error))
        else:
            assert np.isfinite(p).all()
    assert len(said) > 100
    assert all(len(line.splitlines()) == 1 and len(line) < 600 for line in said)


def test_loading_works_without_pickle_and_joblib(tmp_path, monkeypatch):
    names = (NAME, "auto")
    models = [fitted(name) for name in names]
    folders = [save(model, tmp_path / str(i)) for i, model in enumerate(models)]

    def broken(*_, **__):
        raise AssertionError("a pickle was opened")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, broken)
    monkeypatch.setattr(joblib, "load", broken)
    for name, model, saved in zip(names, models, folders, strict=True):
        rows = rows_for(name)
        np.testing.assert_array_equal(load(saved).predict_proba(rows), model.predict_proba(rows))


def test_truth_values_that_are_neither_are_refused(folder):
    """Finding: NumPy counts masks by their bytes, and reads outside of an array."""
    raw = bytearray((folder / "arrays.safetensors").read_bytes())
    size = int.from_bytes(raw[:8], "little")
    header = json.loads(raw[8 : 8 + size])
    begin = next(one["data_offsets"][0] for one in header.values() if one["dtype"] == "BOOL")
    raw[8 + size + begin] = 255
    (folder / "arrays.safetensors").write_bytes(raw)
    reseal(folder)
    with pytest.raises(InputError, match="neither 0 nor 1"):
        load(folder)
