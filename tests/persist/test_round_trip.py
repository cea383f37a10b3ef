"""A loaded model is the saved one: bit for bit, whatever it is and whatever is round it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csc_matrix
from sklearn.base import BaseEstimator

import baldur
from baldur.baselines import BASELINES
from baldur.evaluate import SideBySide
from baldur.exceptions import InputError
from baldur.persist import identity, read_manifest
from baldur.views import MultiView
from persist.models import MODELS, SLOW, N, answers, cohort, fitted, rows_for

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


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n in SLOW else n for n in MODELS]
)
def test_every_estimator_and_task(name, tmp_path):
    model, rows = fitted(name), rows_for(name)
    again = baldur.load(model.save(tmp_path / "model"))
    same(answers(again, rows), answers(model, rows))
    same(again.explain(rows[:4]), model.explain(rows[:4]))
    same(again.summary(), model.summary())
    same(again.get_params(), model.get_params())
    for attribute, value in vars(model).items():
        if attribute.endswith("_"):
            same(getattr(again, attribute), value)
    assert str(again.summary()) == str(model.summary())
    # What was loaded can be saved, and is the same model.
    assert identity(again.save(tmp_path / "again")) == identity(tmp_path / "model")


QUICK = {
    "SGP+ARD": {"max_iter": 5, "n_inducing": 5},
    "CPM-Nets": {"n_epochs": 2, "n_test_epochs": 2, "n_retune": 2, "n_latent": 4},
    "RF": {"n_estimators": 10},
    "PB-MVBoost": {"n_rounds": 5},
    "Boosted trees": {"max_iter": 5},
}


@pytest.mark.parametrize("row", [*BASELINES, "RF of numbers"])
def test_every_baseline(row, tmp_path):
    numbers = row.endswith(" of numbers")
    entry = BASELINES[row.removesuffix(" of numbers")]
    X, y = cohort("numbers" if numbers else "two")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = entry.make(classification=not numbers)
        model = made.set_params(**QUICK.get(row.removesuffix(" of numbers"), {})).fit(X[:N], y[:N])
    again = baldur.load(baldur.save(model, tmp_path / "model"))
    for method in ("predict", "predict_proba", "decision_function"):
        if hasattr(model, method):
            same(getattr(again, method)(X[N:]), getattr(model, method)(X[N:]))
    same(again.selected_features_, model.selected_features_)


def test_matrices_frames_and_scikit_learn_inside(tmp_path):
    from sklearn.svm import SVC

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(40, 4)), columns=list("pqrs"))
    y = np.where(frame["p"] > 0, "ill", "well")
    views = {"one": ["p", "q"], "two": slice(2, 4)}
    model = baldur.BaldurClassifier(
        views,
        members=("pooled",),
        random_state=np.random.RandomState(3),
        class_weight={"ill": 2, "well": 1},
    ).fit(frame, y)
    again = baldur.load(model.save(tmp_path / "frame"))
    same(again.predict_proba(frame), model.predict_proba(frame))
    assert again.views["two"] == slice(2, 4)
    assert (again.feature_names_in_ == model.feature_names_in_).all()
    with pytest.raises(ValueError, match="feature names should match"):
        again.predict(frame[list("qprs")])
    behind = SideBySide(SVC()).fit(cohort("two")[0][:N], cohort("two")[1][:N])
    same(
        baldur.load(behind.save(tmp_path / "svc")).decision_function(cohort("two")[0][N:]),
        behind.decision_function(cohort("two")[0][N:]),
    )


def test_training_rows_are_stored_only_where_predictions_need_them(tmp_path):
    cells = {v: cohort("two")[0][:N].view(v).read() for v in ("a", "b")}
    secret = np.float64(cells["a"][5, 2]).tobytes()
    for name in ("auto", "ranks", "dense, columns"):
        folder = fitted(name).save(tmp_path / name)
        content = (folder / "arrays.safetensors").read_bytes()
        assert not read_manifest(folder)["training_rows_inside"]
        if name != "ranks":  # ranks keep the values of each column, in rising order
            assert secret not in content
    wide = fitted("dense, Grams").save(tmp_path / "wide")
    assert (wide / "arrays.safetensors").stat().st_size > 8 * N * 90


def test_what_cannot_be_saved_is_said(tmp_path):
    with pytest.raises(InputError, match="Call fit first"):
        baldur.save(baldur.BaldurClassifier(), tmp_path / "model")
    model = baldur.load(fitted("dense, columns").save(tmp_path / "fine"))
    model.views = {"a": lambda x: x}
    with pytest.raises(InputError, match=r"cannot be saved: it holds a builtins\.function"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()
    odd = SideBySide(Odd()).fit(cohort("two")[0][:N], cohort("two")[1][:N])
    with pytest.raises(InputError, match=r"Odd cannot be saved: .*Odd.*do not trust"):
        odd.save(tmp_path / "odd")


class Odd(BaseEstimator):
    """An estimator of somebody else."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.repeat(self.classes_[:1], len(X))


def test_a_model_has_an_identity(tmp_path):
    folder = fitted("dense, columns").save(tmp_path / "model")
    name = identity(folder)
    assert len(name) == 64
    baldur.load(folder, identity=name)
    with pytest.raises(InputError, match="is another model: its identity is"):
        baldur.load(folder, identity="0" * 64)
    manifest = read_manifest(folder)
    assert manifest["task"] == "binary"
    assert manifest["preparation"]["samples"] == N
    assert manifest["views"][0]["names"] == ["age", "Größe", 'x"y']


class Lazy:
    """A matrix that is read piece by piece, as genotype files are."""

    def __init__(self, cells):
        self.cells = cells
        self.shape, self.dtype = cells.shape, cells.dtype

    def read(self, rows, cols):
        return self.cells[:, cols] if rows is None else self.cells[rows][:, cols]


@pytest.mark.parametrize("storage", ["int8", "lazy", "mapped", "sparse", "column-major"])
def test_training_rows_of_any_storage(storage, tmp_path, monkeypatch):
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
    monkeypatch.setattr("baldur.inference.screening.CANDIDATES", 5)
    monkeypatch.setattr("baldur.inference.screening.PER_VIEW", 5)
    model = baldur.BaldurClassifier(members=("pooled",), margin=0.0)
    model.fit(X[train], y[train])
    kinds = {type(c.features).__name__ for c in model.posterior.moments.__self__.components}
    assert kinds == {"Grams"}
    again = baldur.load(model.save(tmp_path / "model"))
    if storage == "mapped":
        (tmp_path / "cells.npy").unlink()
    same(answers(again, X), answers(model, X))
    same(again.explain(X[:3]), model.explain(X[:3]))
    assert read_manifest(tmp_path / "model")["training_rows_inside"]
    if storage in ("int8", "lazy"):
        content = (tmp_path / "model" / "arrays.safetensors").read_bytes()
        assert cells[train[0]].tobytes() in content
        unseen = np.setdiff1d(np.arange(60), train)
        assert not any(cells[i].tobytes() in content for i in unseen)


def test_settings_that_came_later_have_their_defaults(tmp_path):
    """A folder of a version that did not know a setting."""
    model = baldur.load(fitted("dense, columns").save(tmp_path / "new"))
    del model.margin
    again = baldur.load(model.save(tmp_path / "old"))
    assert again.margin == baldur.BaldurClassifier().margin
