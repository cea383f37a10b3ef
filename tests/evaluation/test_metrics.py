"""Metrics equal scikit-learn's where it has them, and a literal twin where it has not."""

import numpy as np
import pytest
import sklearn.metrics as reference
from hypothesis import given, settings
from hypothesis import strategies as st

from baldur.evaluation import METRICS
from baldur.evaluation.metrics import Predicted, default_metrics, score, scores
from baldur.exceptions import InputError


@pytest.fixture
def binary():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 2, 80)
    p = np.clip(0.5 + 0.3 * (truth - 0.5) + rng.normal(0, 0.25, 80), 0.01, 0.99)
    return Predicted(truth, (p > 0.5).astype(int), np.column_stack([1 - p, p]))


@pytest.fixture
def three():
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 3, 90)
    proba = rng.dirichlet(np.ones(3), 90) + 0.5 * np.eye(3)[truth]
    proba /= proba.sum(axis=1, keepdims=True)
    return Predicted(truth, proba.argmax(axis=1), proba, n_classes=3)


def test_binary_metrics_are_scikit_learns(binary):
    t, label, p = binary.truth, binary.label, binary.proba[:, 1]
    expected = {
        "accuracy": reference.accuracy_score(t, label),
        "balanced_accuracy": reference.balanced_accuracy_score(t, label),
        "precision": reference.precision_score(t, label),
        "recall": reference.recall_score(t, label),
        "f1": reference.f1_score(t, label),
        "auc": reference.roc_auc_score(t, p),
        "log_loss": reference.log_loss(t, p),
        "brier": reference.brier_score_loss(t, p),
    }
    for name, value in expected.items():
        assert score(name, binary) == pytest.approx(value, abs=1e-12), name


def test_metrics_of_three_classes_are_scikit_learns(three):
    t, label, p = three.truth, three.label, three.proba
    expected = {
        "balanced_accuracy": reference.balanced_accuracy_score(t, label),
        "precision": reference.precision_score(t, label, average="macro"),
        "f1": reference.f1_score(t, label, average="macro"),
        "auc": reference.roc_auc_score(t, p, multi_class="ovr"),
        "log_loss": reference.log_loss(t, p),
    }
    for name, value in expected.items():
        assert score(name, three) == pytest.approx(value, abs=1e-12), name


def test_calibration_error_equals_its_literal_twin(binary):
    said, hit = binary.proba[:, 1], binary.truth == 1
    total = 0.0
    for b in range(10):
        rows = [i for i in range(len(said)) if b / 10 <= said[i] < (b + 1) / 10]
        if rows:
            gap = abs(sum(said[i] for i in rows) - sum(hit[i] for i in rows))
            total += gap / len(said)
    assert score("calibration", binary) == pytest.approx(total, abs=1e-12)


def test_regression_metrics_are_scikit_learns():
    rng = np.random.default_rng(0)
    truth, said = rng.normal(size=50), rng.normal(size=50)
    p = Predicted(truth, said, n_classes=0)
    assert score("r2", p) == pytest.approx(reference.r2_score(truth, said))
    assert score("rmse", p) == pytest.approx(reference.root_mean_squared_error(truth, said))
    assert score("mae", p) == pytest.approx(reference.mean_absolute_error(truth, said))
    assert score("correlation", p) == pytest.approx(np.corrcoef(truth, said)[0, 1])


def test_margins_give_an_auc_and_no_log_loss(binary):
    p = Predicted(binary.truth, binary.label, margin=binary.proba[:, 1] - 0.5)
    assert score("auc", p) == score("auc", binary)
    assert np.isnan([score(m, p) for m in ("log_loss", "brier", "calibration")]).all()


def test_an_auc_of_one_class_is_nan_and_constant_predictions_have_no_warning():
    one = Predicted(np.ones(5, int), np.ones(5, int), np.tile([0.3, 0.7], (5, 1)))
    assert np.isnan(score("auc", one))
    constant = Predicted(np.array([0, 1, 0]), np.zeros(3, int))
    assert np.isnan(score("precision", constant))


def test_a_wrong_metric_is_named(binary):
    with pytest.raises(InputError, match="r2"):
        score("r2", binary)
    assert set(default_metrics(True)) | set(default_metrics(False)) == set(METRICS)


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([0, 2, 3]), st.booleans())
def test_weights_are_repeated_rows(seed, n_classes, ties):
    rng = np.random.default_rng(seed)
    weights = rng.integers(0, 4, (3, 40)).astype(float)
    weights[:, :3] = 1
    if n_classes == 0:
        p = Predicted(rng.normal(5, 1, 40), rng.normal(5, 1, 40), n_classes=0)
    else:
        truth = np.r_[np.arange(n_classes), rng.integers(0, n_classes, 40 - n_classes)]
        proba = rng.dirichlet(np.ones(n_classes), 40)
        proba = (proba.round(1) + 0.01) / (1 + 0.01 * n_classes) if ties else proba
        proba /= proba.sum(axis=1, keepdims=True)
        p = Predicted(truth, proba.argmax(axis=1), proba, n_classes=n_classes)
    for name in default_metrics(n_classes > 0):
        for w, found in zip(weights, scores(name, p, weights), strict=True):
            again = score(name, p.take(np.repeat(np.arange(40), w.astype(int))))
            assert found == pytest.approx(again, abs=1e-12), name


@given(st.lists(st.tuples(st.floats(-50, 50), st.booleans()), min_size=2, max_size=30))
def test_the_auc_does_not_change_under_rising_maps(rows):
    values = np.array([r[0] for r in rows]).round(3)
    truth = np.array([r[1] for r in rows], dtype=int)
    before = score("auc", Predicted(truth, truth, margin=values))
    for rising in (lambda v: 3 * v - 7, lambda v: v**3, np.arctan):
        after = score("auc", Predicted(truth, truth, margin=rising(values)))
        np.testing.assert_equal(after, before)
    np.testing.assert_allclose(score("auc", Predicted(truth, truth, margin=-values)), 1 - before)


def test_precision_and_recall_without_a_case_are_undefined():
    none_called = Predicted(np.array([0, 1, 0]), np.zeros(3, int))
    assert np.isnan(score("precision", none_called))
    assert score("recall", none_called) == 0.0
    assert score("f1", none_called) == 0.0
    none_real = Predicted(np.zeros(3, int), np.array([0, 1, 0]))
    assert score("precision", none_real) == 0.0
    assert np.isnan(score("recall", none_real))
    nothing = Predicted(np.zeros(3, int), np.zeros(3, int))
    assert np.isnan([score(m, nothing) for m in ("precision", "recall", "f1")]).all()
