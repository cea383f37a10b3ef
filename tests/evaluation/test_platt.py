"""Probabilities of margins: as scikit-learn makes them, and from training rows alone."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.svm import LinearSVC

from baldur.datasets import make_multiview
from baldur.evaluation import SideBySide, nested_cv
from baldur.evaluation.clinical.calibration import Platt
from baldur.evaluation.metrics import Predicted, score
from baldur.evaluation.splits import FoldPlan


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
    plan = FoldPlan(outer=3, inner=3)
    fits = {(f.repeat, f.fold): f for f in result.fits["SVM"]}
    for fold in plan.outer_folds(sim.target):
        made = fits[(fold.repeat, fold.number)]
        margins = np.full(90, np.nan)
        for train, test in plan.inner_folds(sim.target, fold):
            model = SideBySide(LinearSVC(random_state=0, dual=False))
            model.fit(sim.data[train], sim.target[train])
            margins[test] = model.decision_function(sim.data[test])
        inside, truth = margins[fold.train, None], sim.target[fold.train]
        curve = CalibratedClassifierCV(FrozenEstimator(Margin().fit(inside, truth)))
        expected = curve.fit(inside, truth).predict_proba(made.margin[:, None])
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
        by_margin = score("auc", Predicted(truth, fit.label, margin=fit.margin))
        by_proba = score("auc", Predicted(truth, fit.label, proba=fit.proba))
        assert fit.score("auc", sim.target, 2) == by_margin == pytest.approx(by_proba)


def test_test_labels_do_not_change_them(sim, result):
    """Other labels in one fold's test rows leave that fold's probabilities as they were."""
    fold = FoldPlan(outer=3, inner=3).outer_folds(sim.target)[0]
    changed = sim.target.copy()
    changed[fold.test] = 1 - changed[fold.test]
    split = np.full(90, "train", dtype=object)
    split[fold.test] = "test"
    models = {"SVM": LinearSVC(random_state=0, dual=False)}
    one, other = (
        nested_cv(models, sim.data, y, split=split.astype(str), inner=3).predictions
        for y in (sim.target, changed)
    )
    pd.testing.assert_series_equal(one["p_1"], other["p_1"], check_exact=True)


def test_margins_that_say_nothing_give_the_share_of_cases():
    margin = np.array([1.0, 2.0, 3.0, 4.0])
    flat = Platt.learn(margin, np.array([True, True, False, False]))
    assert flat.proba(margin)[:, 1] == pytest.approx([0.5] * 4)
    constant = Platt.learn(np.ones(6), np.arange(6) < 2)
    assert constant.proba(np.ones(1))[0, 1] == pytest.approx(3 / 8)
    separated = Platt.learn(margin, np.array([False, False, True, True]))
    assert 0.5 < separated.proba(np.array([4.0]))[0, 1] < 1


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
