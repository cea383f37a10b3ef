"""Small fitted models of every kind, each fitted once."""

import json
import warnings
from functools import cache

import numpy as np

from baldur import BaldurClassifier, BaldurRegressor
from baldur.datasets import make_multiview
from baldur.paper import PaperClassifier, PaperRegressor
from baldur.preparation import Preparation
from baldur.views import MultiView
from constants import constants
from preparation.test_state import STEPS
from preparation.test_state import cohort as steps_cohort

N = 40
"""Training rows; the rest are new ones."""


@cache
def cohort(kind):
    """Rows with missing cells and missing views, and what is to be predicted."""
    wide = kind in ("wide", "genotypes")
    sim = make_multiview(
        60,
        {"a": 3, "b": 90 if wide else 5},
        informative={"a": 2, "b": 40 if wide else 1},
        n_classes={"numbers": None, "three": 3}.get(kind, 2),
        noise=1.0,
        random_state=0,
    )
    cells = {v: sim.data.view(v).read().astype(float) for v in ("a", "b")}
    cells["a"][::7, 1] = np.nan
    cells["b"][3] = np.nan
    cells["b"][45] = np.nan
    cells["a"][50] *= 30  # beyond the clip
    names = {"a": ["age", "Größe", 'x"y'], "b": [f"gene {i}" for i in range(cells["b"].shape[1])]}
    if kind == "genotypes":
        # Whole numbers are stored as they are and standardised when they are read.
        codes = np.clip(np.nan_to_num(cells["b"]) + 1, 0, 2).round()
        cells["b"] = np.where(np.isnan(cells["b"]), -127, codes).astype(np.int8)
    X = MultiView(cells, feature_names=names)
    y = np.asarray(sim.target)
    if kind == "labels":
        y = np.column_stack([y, cells["a"][:, 0] > 0]).astype(int)
    if kind == "words":
        y = np.where(y > 0, "ill", "well")
    return X, y


DENSE = {"members": ("pooled",)}
MODELS = {
    "auto": (BaldurClassifier, {}, "two"),
    "words": (BaldurClassifier, DENSE, "words"),
    "everything kept": (BaldurClassifier, {"margin": 0.0, "preparation": "rank"}, "wide"),
    "ranks": (BaldurClassifier, {**DENSE, "preparation": "rank"}, "two"),
    "dense, columns": (BaldurClassifier, {**DENSE, "margin": 0.0}, "two"),
    "dense, Grams": (BaldurClassifier, {**DENSE, "margin": 0.0, "preparation": "standard"}, "wide"),
    "genotypes": (
        BaldurClassifier,
        {"members": ("pooled", "per_view"), "margin": 0.0},
        "genotypes",
    ),
    "three classes": (BaldurClassifier, DENSE, "three"),
    "factors": (BaldurClassifier, {**DENSE, "n_factors": 2}, "three"),
    "labels": (BaldurClassifier, DENSE, "labels"),
    "numbers": (BaldurRegressor, DENSE, "numbers"),
    "numbers, auto": (BaldurRegressor, {}, "numbers"),
    "mean field": (PaperClassifier, {"bound": "jaakkola"}, "two"),
    "mean field, no factor": (PaperClassifier, {"bound": "jaakkola", "sparsity": np.inf}, "two"),
    "mean field, words": (PaperClassifier, {"bound": "jaakkola"}, "words"),
    "mean field, three": (PaperClassifier, {"sparsity": 0.5, "n_factors": 2}, "three"),
    "mean field, labels": (PaperClassifier, {"sparsity": 0.5}, "labels"),
    "mean field, dual": (PaperClassifier, {"space": "dual", "bound": "jaakkola"}, "two"),
    "mean field, numbers": (PaperRegressor, {"sparsity": 0.5}, "numbers"),
}


@cache
def prepared():
    """A model behind every step of a preparation, and new rows for it."""
    X = steps_cohort()
    age, sex = X.samples["age"].to_numpy(), X.samples["sex"].to_numpy()
    y = (X.view("blood").read()[:, 0] + age + (sex == "f") > 0).astype(int)
    with warnings.catch_warnings(), constants(MOST_REPEATS=1):
        warnings.simplefilter("ignore")
        preparation = Preparation(steps=STEPS, regress_out=["age", "sex"])
        model = BaldurClassifier(**DENSE, margin=0.0, preparation=preparation)
        return model.fit(X[:N], y[:N]), X[N:]


@cache
def fitted(name):
    """One of the models above, on the first rows of its cohort."""
    kind, settings, data = MODELS[name]
    X, y = cohort(data)
    # What is selected is stored alike, whatever the folds chose.
    with warnings.catch_warnings(), constants(MOST_REPEATS=1, N_INNER=3):
        warnings.simplefilter("ignore")
        if kind in (PaperClassifier, PaperRegressor):
            settings = {"max_iter": 30, **settings}
        return kind(**settings).fit(X[:N], y[:N])


def rows_for(name):
    """New rows for a model."""
    return cohort(MODELS[name][2])[0][N:]


def answers(model, rows):
    """All that a model says about rows, as arrays and tables."""
    found = {"predict": model.predict(rows)}
    for method in ("predict_proba", "decision_function", "transform"):
        if hasattr(model, method):
            found[method] = getattr(model, method)(rows)
    if hasattr(model, "predict_proba"):
        found["one row"] = model.predict_proba(rows[:1])
        found["interval"] = model.predict_interval(rows)
    else:
        found["std"] = model.predict(rows, return_std=True)[1]
    return found


def manifest_of(folder):
    """Return the manifest of a model folder."""
    return json.loads((folder / "manifest.json").read_text())
