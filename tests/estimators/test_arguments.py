"""Every constructor argument of the two estimators changes something that a user can see."""

import inspect

import joblib
import numpy as np
import pytest

from baldur import BaldurClassifier, BaldurRegressor
from baldur.datasets import make_multiview

N = 80
QUICK = {"members": ("pooled",)}
ITERATED = {"members": ("per_view",)}
CLASSES = (BaldurClassifier, BaldurRegressor)

# For each argument: the settings in which it is changed, and its other value.
CHANGES = {
    "preparation": (QUICK, "rank"),
    "class_weight": (QUICK, {0: 1.0, 1: 4.0}),
    "random_state": ({}, 3),
    "members": (QUICK, ("per_view",)),
    "margin": ({"margin": 0.0}, 1.0),
    "n_features": (QUICK, 2),
    "always": ({**QUICK, "n_features": 1}, ("genes_11",)),
    "cost": ({**QUICK, "n_features": 1}, {"clinic": 100.0}),
    "max_iter": (ITERATED, 2),
}
# Tested below, by what they do instead of by the answer.
ELSEWHERE = {"views", "n_jobs", "verbose", "n_factors"}

pytestmark = [
    pytest.mark.filterwarnings("ignore::baldur.exceptions.NotConvergedWarning"),
    pytest.mark.usefixtures("one_repeat"),
]


@pytest.fixture(scope="module")
def sims():
    return {
        kind: make_multiview(
            N + 30,
            {"clinic": 4, "genes": 12},
            informative={"clinic": 2, "genes": 1},
            n_classes=2 if kind is BaldurClassifier else None,
            noise=0.0 if kind is BaldurClassifier else 2.0,
            random_state=0,
        )
        for kind in CLASSES
    }


@pytest.fixture(scope="module")
def fitted(sims):
    """A model with some settings, fitted once for each."""
    found = {}

    def fit(kind, settings):
        key = (kind, repr(sorted(settings.items())))
        if key not in found:
            found[key] = kind(**settings).fit(sims[kind].data[:N], sims[kind].target[:N])
        return found[key]

    return fit


def seen(model, new):
    """What a user reads off a model."""
    answer = getattr(model, "predict_proba", model.predict)
    shown = [answer(new), *model.coef_.values()]
    if hasattr(model, "sparsity_path_"):
        shown.append(model.sparsity_path_.select_dtypes(["number", "bool"]).to_numpy(float))
    return np.concatenate([np.ravel(s) for s in shown])


@pytest.mark.parametrize("kind", CLASSES)
def test_every_argument_is_listed(kind):
    have = set(inspect.signature(kind).parameters)
    only_for_labels = set() if kind is BaldurClassifier else {"class_weight"}
    assert have == (set(CHANGES) | ELSEWHERE) - only_for_labels


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("name", CHANGES)
def test_every_argument_changes_the_answer(kind, name, sims, fitted):
    if name not in inspect.signature(kind).parameters:
        pytest.skip("an argument of the classifier alone")
    settings, value = CHANGES[name]
    one, other = (
        seen(fitted(kind, given), sims[kind].data[N:])
        for given in (settings, {**settings, name: value})
    )
    assert one.shape != other.shape or np.nanmax(np.abs(one - other)) > 1e-6


@pytest.mark.parametrize("kind", CLASSES)
def test_the_iteration_stops_at_max_iter(kind, fitted):
    """Fewer iterations are shown as fewer records, and said to be too few."""
    many = fitted(kind, ITERATED)
    few = fitted(kind, {**ITERATED, "max_iter": 2})
    assert few.n_iter_ < many.n_iter_
    assert many.converged_
    assert not few.converged_


@pytest.mark.parametrize("kind", CLASSES)
def test_a_larger_margin_keeps_fewer(kind, fitted):
    kept = []
    for margin in (0.0, 1.0):
        model = fitted(kind, {"margin": margin})
        kept.append(sum(int(mask.sum()) for mask in model.selected_features_.values()))
    assert kept[0] >= kept[1] > 0
    assert kept[0] > kept[1] or kind is BaldurRegressor


@pytest.mark.parametrize("members", [BaldurClassifier().members, ("pooled",)])
@pytest.mark.parametrize("kind", CLASSES)
def test_the_number_of_factors(kind, members):
    """Three outputs: by default the fewest that predict about as well, or as many as asked for."""
    n = 45
    sim = make_multiview(
        n, {"clinic": 4, "genes": 8}, informative={"clinic": 2}, n_classes=3, random_state=1
    )
    y = sim.target
    if kind is BaldurRegressor:
        noise = np.random.default_rng(0).standard_normal((n, 3))
        y = sim.data.view("clinic").read()[:, :1] * [1.0, -1.0, 2.0] + noise
    options = {"members": members, "max_iter": 15}
    auto, many, few = (kind(n_factors=K, **options).fit(sim.data, y) for K in ("auto", 3, 1))
    path = auto.factor_path_.set_index("n_factors")
    assert auto.n_factors_ == auto.loadings_.shape[1] == path["selected"].idxmax()
    assert auto.n_factors_ <= path["loss"].idxmin()
    assert many.n_factors_ == 3
    np.testing.assert_array_equal(many.loadings_, np.eye(3))
    assert few.n_factors_ == 1
    assert few.loadings_.shape == (3, 1)
    assert few.transform(sim.data).shape == (n, 1)


@pytest.mark.parametrize("kind", CLASSES)
def test_views_say_which_columns_belong_together(kind, sims):
    sim = sims[kind]
    X = np.hstack([sim.data.view(v).read() for v in sim.data.view_names])
    columns = {"clinic": slice(0, 4), "genes": slice(4, 16)}
    named = kind(views=columns, **QUICK).fit(X[:N], sim.target[:N])
    same = kind(**QUICK).fit(sim.data[:N], sim.target[:N])
    assert list(named.coef_) == list(columns)
    for name, coef in named.coef_.items():
        np.testing.assert_array_equal(coef, same.coef_[name])
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
    kind(max_iter=30).fit(sim.data[:N], sim.target[:N])
    assert set(asked) == {None}
    assert capfd.readouterr() == ("", "")
    asked.clear()
    kind(max_iter=30, n_jobs=2, verbose=1).fit(sim.data[:N], sim.target[:N])
    assert 2 in asked
    assert kind.__name__ in capfd.readouterr().err
