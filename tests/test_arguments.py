"""Every constructor argument of the two estimators changes something that a user can see."""

import inspect

import joblib
import numpy as np
import pytest

from baldur import BaldurClassifier, BaldurRegressor
from baldur.datasets import make_multiview

N = 50
QUICK = {"sparsity": float("inf")}
CLASSES = (BaldurClassifier, BaldurRegressor)

# For each argument: the settings in which it is changed, and its other value.
CHANGES = {
    "scale": (QUICK, "rank"),
    "class_weight": (QUICK, {0: 1.0, 1: 4.0}),
    "random_state": ({}, 3),
}
# Tested below, by what they do instead of by the answer.
ELSEWHERE = {"views", "n_jobs", "verbose"}
# Arguments of the numerics.
NUMERICS = {"n_factors", "sparsity", "bound", "prune", "max_iter", "tol"}


@pytest.fixture(scope="module")
def sims():
    return {
        kind: make_multiview(
            N + 30,
            {"clinic": 4, "genes": 12},
            informative={"clinic": 2, "genes": 2},
            n_classes=2 if kind is BaldurClassifier else None,
            random_state=0,
        )
        for kind in CLASSES
    }


@pytest.fixture(scope="module")
def seen(sims):
    """What a user reads off a model with some settings, fitted once for each."""
    found = {}

    def look(kind, settings):
        key = (kind, repr(sorted(settings.items())))
        if key not in found:
            sim = sims[kind]
            model = kind(**settings).fit(sim.data[:N], sim.target[:N])
            answer = model.predict_proba if kind is BaldurClassifier else model.predict
            path = model.sparsity_path_.select_dtypes("number")
            shown = [path, answer(sim.data[N:]), *model.coef_.values()]
            found[key] = np.concatenate([np.ravel(s) for s in shown])
        return found[key]

    return look


@pytest.mark.parametrize("kind", CLASSES)
def test_every_argument_is_listed(kind):
    have = set(inspect.signature(kind).parameters)
    only_for_labels = set() if kind is BaldurClassifier else {"class_weight", "bound"}
    assert have == (set(CHANGES) | ELSEWHERE | NUMERICS) - only_for_labels


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", CHANGES)
def test_every_argument_changes_the_answer(kind, name, seen):
    if name not in inspect.signature(kind).parameters:
        pytest.skip("an argument of the classifier alone")
    settings, value = CHANGES[name]
    one, other = seen(kind, settings), seen(kind, {**settings, name: value})
    assert one.shape != other.shape or np.nanmax(np.abs(one - other)) > 1e-6


@pytest.mark.parametrize("kind", CLASSES)
def test_views_say_which_columns_belong_together(kind, sims, seen):
    sim = sims[kind]
    X = np.hstack([sim.data.view(v).read() for v in sim.data.view_names])
    columns = {"clinic": slice(0, 4), "genes": slice(4, 16)}
    named = kind(views=columns, **QUICK).fit(X[:N], sim.target[:N])
    assert list(named.coef_) == list(columns)
    np.testing.assert_array_equal(
        np.concatenate([c.ravel() for c in named.coef_.values()]), seen(kind, QUICK)[-16:]
    )
    assert list(kind(**QUICK).fit(X[:N], sim.target[:N]).coef_) == ["X"]


@pytest.mark.parametrize("kind", CLASSES)
def test_workers_and_progress(kind, sims, monkeypatch, capfd):
    sim, asked = sims[kind], []
    start = joblib.Parallel.__init__

    def spy(self, n_jobs=None, **options):
        asked.append(n_jobs)
        start(self, n_jobs, **options)

    monkeypatch.setattr(joblib.Parallel, "__init__", spy)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    kind().fit(sim.data[:N], sim.target[:N])
    assert set(asked) == {None}
    assert capfd.readouterr() == ("", "")
    asked.clear()
    kind(n_jobs=2, verbose=1).fit(sim.data[:N], sim.target[:N])
    assert 2 in asked
    assert kind.__name__ in capfd.readouterr().err
