"""A loaded model is the saved one: bit for bit, whatever it is."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix
from sklearn.base import BaseEstimator

import baldur
from baldur import load, save
from baldur.baselines import BASELINES
from baldur.datasets import make_multiview
from baldur.evaluation import SideBySide
from baldur.exceptions import InputError, InputWarning
from baldur.paper import PaperClassifier
from baldur.views import MultiView
from saving.forging import reseal
from saving.models import MODELS, N, answers, cohort, fitted, manifest_of, rows_for

pytestmark = pytest.mark.usefixtures("one_repeat")


def same(one, two):
    """Whether two values agree to the last bit, through tables and lists."""
    assert type(one) is type(two)
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype
        np.testing.assert_array_equal(one, two)
    elif isinstance(one, pd.DataFrame):
        pd.testing.assert_frame_equal(one, two, check_exact=True)
    elif isinstance(one, dict):
        assert list(one) == list(two)
        for key in one:
            same(one[key], two[key])
    elif isinstance(one, (list, tuple)):
        assert len(one) == len(two)
        for a, b in zip(one, two, strict=True):
            same(a, b)
    elif isinstance(one, float):
        np.testing.assert_equal(one, two)
    elif isinstance(one, (str, int, bool, type(None))):
        assert one == two


@pytest.mark.parametrize("name", MODELS)
def test_every_estimator_and_task(name, tmp_path):
    model, rows = fitted(name), rows_for(name)
    again = load(model.save(tmp_path / "model"))
    same(answers(again, rows), answers(model, rows))
    same(again.explain(rows[:4]), model.explain(rows[:4]))
    same(again.summary(), model.summary())
    same(again.get_params(), model.get_params())
    for attribute, value in vars(model).items():
        if attribute.endswith("_"):
            same(getattr(again, attribute), value)
    assert str(again.summary()) == str(model.summary())
    # What was loaded can be saved, and is the same model.
    copies = [manifest_of(save(again, tmp_path / "again")), manifest_of(tmp_path / "model")]
    assert copies[0]["identity"] == copies[1]["identity"]


@pytest.mark.parametrize("name", ["auto", "mean field, words"])
def test_names_of_features_are_stored_once(tmp_path, name):
    folder = save(fitted(name), tmp_path / "model")
    assert (folder / "arrays.safetensors").read_bytes().count(b"gene 0gene 1") == 1
    again = load(folder)
    for view, names in fitted(name).feature_names_.items():
        np.testing.assert_array_equal(again.feature_names_[view], names)


def test_default_names_of_features_come_back(tmp_path):
    sim = make_multiview(40, {"a": 12}, random_state=0)
    model = PaperClassifier(sparsity=0.5, max_iter=5).fit(sim.data, sim.target)
    again = load(save(model, tmp_path / "model"))
    assert again.feature_names_["a"].tolist() == model.feature_names_["a"].tolist()
    assert b"a_0a_1" not in (tmp_path / "model" / "arrays.safetensors").read_bytes()


def test_training_rows_are_stored_only_where_predictions_need_them(tmp_path):
    cells = cohort("two")[0][:N].view("a").read()
    secret = np.float64(cells[5, 2]).tobytes()
    for name in ("auto", "ranks", "dense, columns"):
        folder = save(fitted(name), tmp_path / name)
        content = (folder / "arrays.safetensors").read_bytes()
        assert manifest_of(folder)["training_rows_inside"] is False
        if name != "ranks":  # ranks keep the values of each column, in rising order
            assert secret not in content
    wide = save(fitted("dense, Grams"), tmp_path / "wide")
    assert manifest_of(wide)["training_rows_inside"] is True
    assert (wide / "arrays.safetensors").stat().st_size > 8 * N * 90


class Lazy:
    """A matrix that is read piece by piece, as genotype files are."""

    def __init__(self, cells):
        self.cells = cells
        self.shape, self.dtype = cells.shape, cells.dtype

    def read(self, rows, cols):
        return self.cells[:, cols] if rows is None else self.cells[rows][:, cols]


@pytest.mark.parametrize("storage", ["int8", "lazy", "mapped", "sparse", "column-major"])
def test_training_rows_of_any_storage(storage, tmp_path, constants):
    """Rows that predictions need are stored as numbers, without the file they came from."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 3, (60, 80)).astype(np.int8)
    cells[7, 3] = -127
    y = (cells[:, :20].sum(axis=1) + rng.normal(size=60) > 20).astype(int)
    if storage == "mapped":
        np.save(tmp_path / "cells.npy", cells.astype(np.float32))
        matrix = np.load(tmp_path / "cells.npy", mmap_mode="r")
    else:
        matrix = {
            "int8": lambda: cells,
            "lazy": lambda: Lazy(cells),
            "sparse": lambda: csc_matrix(cells.astype(float)),
            "column-major": lambda: np.asfortranarray(cells, dtype=float),
        }[storage]()
    X = MultiView({"snps": matrix, "age": rng.normal(size=(60, 1))})
    train = rng.permutation(60)[:40]
    constants(CANDIDATES=5, PER_VIEW=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = baldur.BaldurClassifier(members=("pooled",), margin=0.0).fit(X[train], y[train])
    assert model.predictor.blocks[0].train is not None
    again = load(save(model, tmp_path / "model"))
    if storage == "mapped":
        (tmp_path / "cells.npy").unlink()
    same(answers(again, X), answers(model, X))
    same(again.explain(X[:3]), model.explain(X[:3]))
    assert manifest_of(tmp_path / "model")["training_rows_inside"]
    if storage in ("int8", "lazy"):
        content = (tmp_path / "model" / "arrays.safetensors").read_bytes()
        assert cells[train[0]].tobytes() in content
        unseen = np.setdiff1d(np.arange(60), train)
        assert not any(cells[i].tobytes() in content for i in unseen)


class Odd(BaseEstimator):
    """An estimator of somebody else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(InputError, match="Call fit first"):
        save(baldur.BaldurClassifier(), tmp_path / "model")
    ridge = BASELINES["Ridge logistic"].make().fit(cohort("two")[0][:N], cohort("two")[1][:N])
    for other in (Odd(), ridge, SideBySide(Odd())):
        with pytest.raises(InputError, match=f"{type(other).__name__} cannot be saved: .* skops"):
            save(other, tmp_path / "model")
    model = load(save(fitted("mean field"), tmp_path / "fine"))
    model.views = {"a": lambda x: x}
    with pytest.raises(InputError, match=r"The setting views cannot be saved: .* a function"):
        save(model, tmp_path / "model")
    model.views = None
    model.coef_ = {**model.coef_, "a": model.coef_["a"] * np.nan}
    with pytest.raises(InputError, match=r"could not be loaded: .*coef_\.a: expected finite"):
        save(model, tmp_path / "model")
    assert not (tmp_path / "model").exists()


@pytest.mark.parametrize("kind", [np.array, list, pd.Series])
def test_labels_that_are_bytes_are_refused_by_fit(kind):
    """Finding: scikit-learn's TypeError; such labels could not be saved either."""
    X, y = cohort("two")
    labels = kind([b"ill" if one else b"well" for one in y])
    for model in (baldur.BaldurClassifier(), BASELINES["Ridge logistic"].make()):
        with pytest.raises(InputError, match=r"bytes\. Decode them"):
            model.fit(X, labels)


def test_matrices_and_frames(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("pqrs"))
    y = np.where(frame["p"] > 0, "ill", "well")
    model = baldur.paper.PaperClassifier(
        {"one": ["p", "q"], "two": slice(2, 4)},
        sparsity=0.5,
        bound="jaakkola",
        max_iter=5,
        random_state=np.random.RandomState(3),
        class_weight={"ill": 2, "well": 1},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(frame, y)
    again = load(save(model, tmp_path / "frame"))
    same(again.predict_proba(frame), model.predict_proba(frame))
    assert again.views == {"one": ["p", "q"], "two": slice(2, 4)}
    assert again.class_weight == {"ill": 2, "well": 1}
    assert (again.feature_names_in_ == model.feature_names_in_).all()
    assert again.random_state.randint(1000) == model.random_state.randint(1000)
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[list("qprs")])


def test_a_model_has_an_identity(tmp_path):
    folder = save(fitted("mean field"), tmp_path / "model")
    name = manifest_of(folder)["identity"]
    assert len(name) == 64
    load(folder, identity=name.upper())
    with pytest.raises(InputError, match="is another model: its identity is"):
        load(folder, identity="0" * 64)
    manifest = manifest_of(folder)
    assert manifest["task"] == "binary"
    assert manifest["samples"] == N
    assert manifest["views"] == [{"name": "a", "features": 3}, {"name": "b", "features": 5}]
    assert load(folder, study=True).features["a"].tolist() == ["age", "Größe", 'x"y']


def test_scorers_that_are_not_ours_are_pointed_out(tmp_path):
    folder = save(fitted("mean field"), tmp_path / "model")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        load(folder)
    # A stranger's folder may have any program under this name, with a right checksum or none.
    (folder / "score.R").write_text("system('rm -rf ~')")
    reseal(folder)
    with pytest.warns(InputWarning, match=r"score\.R came with the folder.*do not run it"):
        load(folder)


def test_loading_a_model_of_ours_imports_no_more_than_it_needs(tmp_path):
    folder = save(fitted("mean field"), tmp_path / "model")
    code = (
        "import sys\n"
        "before = set(sys.modules)\n"
        "from baldur.saving import load\n"
        "load(sys.argv[1])\n"
        "print(*sorted(set(sys.modules) & {'sklearn.ensemble', 'sklearn.linear_model',"
        " 'baldur.saving.card', 'baldur.baselines', 'baldur.evaluation'}))\n"
    )
    paths = [Path(__file__).parents[1], Path(baldur.__file__).parents[1]]
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths))},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == []
