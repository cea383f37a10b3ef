"""Every constructor argument of every baseline changes something that a user can see."""

import inspect
import warnings

import numpy as np
import pytest

from baldur import Preparation
from baldur.baselines import BASELINES
from baldur.views import MultiView

COMMON = {"scale": ({}, "rank"), "preparation": ({}, Preparation("rank"))}
SEEDED = {**COMMON, "random_state": ({}, 1)}
SCALED = {"block_scale": ({}, "flip")}
REDUCED = {"reduction": ({}, "pca"), "n_components": ({"reduction": "pca"}, 2)}

# For each argument: the settings in which it is changed, and its other value.
CHANGES = {
    "LSVM-l1": {
        **SEEDED, **SCALED,
        "c_ratio": ({}, 3.0), "C": ({}, 0.5), "class_weight": ({}, "balanced"),
        "max_iter": ({"c_ratio": 100.0}, 2), "tol": ({}, 0.1),
    },
    "RF": {
        **SEEDED,
        "n_estimators": ({}, 7), "max_features": ({}, 1.0), "max_depth": ({}, 1),
        "min_samples_leaf": ({}, 9), "class_weight": ({}, "balanced"),
        "min_weight_fraction_leaf": ({}, 0.2), "selection": ({}, "mean"), "n_jobs": ({}, 2),
    },
    "SGP+ARD": {
        **SEEDED, **SCALED,
        "n_inducing": ({}, 5), "ard": ({}, "view"), "learning_rate": ({}, 0.2),
        "max_iter": ({}, 3), "tol": ({"max_iter": 40}, 0.9), "precision": ({}, "float32"),
        "scale_inputs": ({}, False),
    },
    "PCA-MCCD": {
        **COMMON, **SCALED, **REDUCED,
        "reduction": ({"reduction": "pca"}, None),
        "g1": ({}, 10.0), "g2": ({}, 10.0), "normalize_diversity": ({}, False),
        "stopping": ({}, "signed"), "max_iter": ({}, 2), "tol": ({}, 0.5),
    },
    "PCA-AWDR": {
        **COMMON, **SCALED, **REDUCED,
        "reduction": ({"reduction": "pca"}, None),
        "g": ({}, 100.0), "n_neighbors": ({}, 3), "decision": ({}, "argmax"),
        "max_iter": ({}, 1), "tol": ({}, 10.0),
    },
    "CPM-Nets": {
        **SEEDED, **SCALED,
        "n_latent": ({}, 5), "lam": ({}, 9.0), "n_epochs": ({}, 5), "learning_rate": ({}, 0.1),
        "latent_rate": ({}, 0.1), "hidden": ({}, 6), "dropout": ({"hidden": 6}, 0.5),
        "margin": ({}, "code"), "n_retune": ({}, 0), "solver": ({}, "adam"), "ridge": ({}, 1.0),
        "n_test_epochs": ({"solver": "adam"}, 3),
    },
    "PB-MVBoost": {
        **SEEDED,
        "n_rounds": ({}, 3), "max_depth": ({}, 4), "splitter": ({}, "best"),
        "normalize_voters": ({}, True), "constraint_jacobian": ({}, "author"),
        "fixed_tree_seed": ({}, True),
    },
    "MV-PLS": {**COMMON, **SCALED, "n_components": ({}, 4)},
    "Lasso-MkSVM": {
        **COMMON, **SCALED,
        "fraction": ({}, 0.8), "C": ({}, 0.01), "p": ({}, 2.0), "weights": ({}, "uniform"),
        "grid_step": ({"weights": "grid"}, 0.5), "cv": ({"weights": "grid"}, 2),
        "random_state": ({"weights": "grid"}, 3),
    },
    "Ridge logistic": {**COMMON, **SCALED, "C": ({}, 0.1)},
    "Elastic-net logistic": {
        **COMMON, **SCALED,
        "fraction": ({}, 0.5), "l1_ratio": ({}, 0.1), "max_iter": ({}, 3), "tol": ({}, 0.5),
    },
    "Boosted trees": {
        **SEEDED,
        "max_iter": ({}, 3), "learning_rate": ({}, 0.5), "max_leaf_nodes": ({}, 2),
        "min_samples_leaf": ({}, 25), "l2_regularization": ({}, 50.0), "max_features": ({}, 1.0),
        "max_bins": ({}, 4),
    },
    "Stacking": {
        **SEEDED, **SCALED,
        "Cs": ({}, (0.001,)), "penalty": ({}, 1.0), "cv": ({}, 2),
    },
    "Ridge": {**COMMON, **SCALED, "alpha": ({}, 100.0), "fit_intercept": ({}, False)},
    "Elastic net": {
        **COMMON, **SCALED,
        "alpha": ({}, 0.01), "l1_ratio": ({}, 1.0), "max_iter": ({"alpha": 1e-3}, 1),
        "tol": ({"alpha": 1e-3}, 0.5), "unit_target": ({}, False),
    },
    "Dummy": {"strategy": ({}, "uniform"), "random_state": ({"strategy": "stratified"}, 1)},
}  # fmt: skip
SMALL = {
    "SGP+ARD": {"max_iter": 8, "n_inducing": 10},
    "CPM-Nets": {"n_epochs": 3, "n_latent": 8, "n_retune": 5},
    "RF": {"n_estimators": 10},
    "PB-MVBoost": {"n_rounds": 6},
    "Boosted trees": {"max_iter": 6},
}
ROWS = {name: BASELINES[name] for name in CHANGES}


def estimators():
    """Each row as a classifier and as a regressor, where it is one."""
    for row, entry in ROWS.items():
        if entry.classifier is not None:
            yield row, True, entry.classifier
        if entry.regressor is not None:
            yield row, False, entry.regressor


def own_arguments(made):
    """All arguments of a class but the views; of scikit-learn estimators in the table, none."""
    if hasattr(made, "estimator"):
        return []
    return [name for name in inspect.signature(type(made)).parameters if name != "views"]


KINDS = [(row, classify) for row, classify, _ in estimators()]
CASES = [
    (row, classify, name)
    for row, classify, made in estimators()
    for name in CHANGES[row]
    if name in made.get_params()
]


@pytest.fixture(scope="module")
def data():
    """Two groups of unequal size, in two views with heavy tails."""
    rng = np.random.default_rng(0)
    y = (rng.random(90) < 0.35).astype(int)
    a, b = rng.standard_t(3, size=(90, 6)), rng.standard_t(3, size=(90, 25))
    a[:, 0] += 1.5 * y
    b[:, :3] += 1.0 * y[:, None]
    return MultiView({"a": a, "b": b}), y


@pytest.fixture(scope="module")
def seen(data):
    """What a user sees of a model with some settings, fitted once for each."""
    X, y = data
    found = {}

    def look(row, classify, settings):
        key = (row, classify, tuple(sorted(settings.items())))
        if key not in found:
            model = make(row, classify, settings)
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                model.fit(X[:60], y[:60])
            shown = [model.decision_function(X[60:]) if classify else model.predict(X[60:])]
            if hasattr(model, "predict_proba"):
                shown.append(model.predict_proba(X[60:]))
            shown += list(model.selected_features_.values())
            # Workers change no answer; histogram trees see only the order of cells, which the
            # scale hardly changes. Both are read off the model.
            shown.append(getattr(getattr(model, "estimator_", None), "n_jobs", None) or 0)
            if row == "Boosted trees":
                shown.append(model.preparation_.upper_["a"])
            told = [str(w.message) for w in caught]
            found[key] = np.concatenate([np.ravel(s) for s in shown]), told
        return found[key]

    return look


def make(row, classify, settings=None):
    made = ROWS[row].make(0, classification=classify)
    given = {**SMALL.get(row, {}), **(settings or {})}
    return made.set_params(**{k: v for k, v in given.items() if k in made.get_params()})


def test_every_row_and_every_argument_is_listed():
    classes = {type(made) for _, _, made in estimators()}
    every = [e for entry in BASELINES.values() for e in (entry.classifier, entry.regressor)]
    assert classes == {type(made) for made in every if made is not None}
    for row, _, made in estimators():
        assert set(own_arguments(made)) <= set(CHANGES[row]), row
    for row, entry in ROWS.items():
        assert {*entry.grid, *entry.full_grid, *entry.search} <= set(CHANGES[row]), row


@pytest.mark.parametrize(("row", "classify", "name"), CASES)
def test_every_argument_acts(row, classify, name, quick, seen):
    quick(row, classification=classify)  # skipped without its extra
    settings, value = CHANGES[row][name]
    before = make(row, classify, settings).get_params()[name]
    value = not before if value == "flip" else value
    if (row, name, classify) == ("Dummy", "strategy", False):
        value = "median"
    assert value != before
    one, told = seen(row, classify, settings)
    other, told_other = seen(row, classify, {**settings, name: value})
    assert not np.array_equal(one, other) or told != told_other


@pytest.mark.parametrize(("row", "classify"), KINDS)
def test_views_say_which_columns_belong_together(row, classify, quick, data):
    quick(row, classification=classify)
    X, y = data
    matrix = np.hstack([X.view(v).read() for v in "ab"])
    columns = {"a": slice(0, 6), "b": slice(6, 31)}
    model = make(row, classify)
    assert list(model.fit(matrix, y).selected_features_) == ["X"]
    named = model.set_params(views=columns).fit(matrix, y)
    assert list(named.selected_features_) == ["a", "b"]
