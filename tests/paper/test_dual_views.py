"""Dual views: as good as primal ones, noise views dropped, few relevance vectors."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from baldur.datasets import make_multiview
from baldur.paper import PaperClassifier

N = 250
NOISE = 800
# Signal in a wide view, which is 3 to 10 times as wide as the samples are many.
CASES = {
    "wide": ({"a": 20, "b": 2000}, {"b": 6}, 0.0),
    "narrow and wide": ({"a": 20, "b": 2000}, {"a": 3, "b": 4}, 0.0),
    "correlated": ({"a": 20, "b": 1500}, {"b": 6}, {"b": 0.5}),
    "two wide": ({"a": 600, "b": 1500}, {"a": 3, "b": 3}, 0.0),
}


def folds(name):
    """Yield training and test samples of a case, with a view of pure noise."""
    dims, informative, correlation = CASES[name]
    sim = make_multiview(
        N,
        {**dims, "noise": NOISE},
        informative=informative,
        correlation=correlation,
        random_state=0,
    )
    split = StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(N), sim.target)
    for train, test in split:
        yield sim.data[train], sim.target[train], sim.data[test], sim.target[test]


def evaluate(name, **options):
    """Return the mean AUC over folds, and the models."""
    values, models = [], []
    for X, y, X_test, y_test in folds(name):
        model = PaperClassifier(**options).fit(X, y)
        values.append(roc_auc_score(y_test, model.predict_proba(X_test)[:, 1]))
        models.append(model)
    return float(np.mean(values)), models


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_a_wide_dual_view_is_as_good_as_a_primal_one(name):
    """About 18 s a case. Measured AUC, both forms: .905, .835, .839 and .864."""
    primal, _ = evaluate(name)
    dual, models = evaluate(name, space="dual")
    every, _ = evaluate(name, space="dual", relevance_vectors=None)
    assert primal > 0.8
    assert dual > primal - 0.02
    assert dual > every - 0.01
    for model in models:
        assert not model.selected_features_["noise"].any()
        assert model.selected_features_["b"].any()
        assert max(map(len, model.relevance_vectors_.values())) < 0.8 * N / 2
        assert np.isfinite(model.elbo_)


def test_a_noise_view_is_dropped_and_relevance_vectors_are_few():
    sim = make_multiview(160, {"a": 8, "b": 300}, informative={"a": 3}, random_state=2)
    model = PaperClassifier(space="dual", bound="jaakkola").fit(sim.data, sim.target)
    assert model.selected_features_["a"].any()
    assert not model.selected_features_["b"].any()
    assert all(len(rows) < 80 for rows in model.relevance_vectors_.values())
    assert model.relevance_vectors_["a"].max() < 160
