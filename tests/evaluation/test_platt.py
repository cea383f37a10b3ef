"""Probabilities of margins: as scikit-learn makes them, and from training rows alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import roc_auc_score
from sklearn.svm import LinearSVC

from baldur.datasets import make_multiview
from baldur.evaluation import SideBySide, nested_cv
from evaluation import spies


@pytest.fixture(scope="module")
def sim():
    return make_multiview(90, {"a": 8, "b": 20}, random_state=0)


@pytest.fixture(scope="module")
def result(sim):
    models = {"SVM": LinearSVC(random_state=0, dual=False), "Ridge logistic": {"C": [1.0]}}
    return nested_cv(models, sim.data, sim.target, outer=3, inner=3)


class Margin(ClassifierMixin, BaseEstimator):
    """A classifier whose margins are its only column."""

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return X[:, 0]

    def predict(self, X):
        return self.classes_[(X[:, 0] > 0).astype(int)]


def test_probabilities_are_those_of_a_hand_written_search(sim, result):
    """Margins of the inner folds by hand, the curve by scikit-learn."""
    folds = spies.folds_seen(sim.data, sim.target, 3, 3)
    for (rows, _, inside), made in zip(folds, result.fits["SVM"], strict=True):
        margins = np.full(90, np.nan)
        for train, test in inside:
            model = SideBySide(LinearSVC(random_state=0, dual=False))
            model.fit(sim.data[train], sim.target[train])
            margins[test] = model.decision_function(sim.data[test])
        held, truth = margins[rows, None], sim.target[rows]
        curve = CalibratedClassifierCV(FrozenEstimator(Margin().fit(held, truth)))
        expected = curve.fit(held, truth).predict_proba(made.margin[:, None])
        # scikit-learn's own search for the curve stops at about this distance.
        np.testing.assert_allclose(made.proba, expected, atol=1e-4)


def test_they_are_marked_and_complete_the_table(result):
    other = result.predictions[result.predictions["model"] != "SVM"]
    assert (other["probability"] == "model").all()
    assert other["score"].isna().all()
    table = result.table().set_index("model")
    assert np.isfinite(
        table.loc["SVM", ["brier", "brier_low", "log_loss_pooled"]].astype(float)
    ).all()
    assert "Platt" in table.loc["SVM", "note"]
    assert "Platt" not in table.loc["Ridge logistic", "note"]
    measures = result.evaluation(resamples=100).calibration
    marked = measures[measures["note"].str.contains("Platt")]
    assert set(marked["model"]) == {"SVM"}


def test_scores_within_a_fold_are_those_of_the_margins(sim, result):
    for fit in result.fits["SVM"]:
        truth = sim.target[fit.test]
        by_margin = roc_auc_score(truth, fit.margin)
        by_proba = roc_auc_score(truth, fit.proba[:, 1])
        assert fit.score("auc", sim.target, 2) == pytest.approx(by_margin)
        assert by_proba == pytest.approx(by_margin)


def test_test_labels_do_not_change_them(sim, result):
    """Other labels in one fold's test rows leave that fold's probabilities as they were."""
    test = result.fits["SVM"][0].test
    changed = sim.target.copy()
    changed[test] = 1 - changed[test]
    split = np.full(90, "train", dtype=object)
    split[test] = "test"
    models = {"SVM": LinearSVC(random_state=0, dual=False)}
    one, other = (
        nested_cv(models, sim.data, y, split=split.astype(str), inner=3).predictions
        for y in (sim.target, changed)
    )
    pd.testing.assert_series_equal(one["p_1"], other["p_1"], check_exact=True)


def test_three_classes_and_tiny_studies_stay_without(sim):
    rng = np.random.default_rng(0)
    found = nested_cv(
        {"SVM": LinearSVC(random_state=0, dual=False)},
        sim.data,
        rng.integers(0, 3, 90),
        outer=3,
        inner=3,
    )
    assert found.predictions["p_0"].isna().all()
    assert "probability" not in found.predictions
