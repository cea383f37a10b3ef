"""AUC and R2 on held-out rows are those of scikit-learn; their errors those of a bootstrap."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import r2_score, roc_auc_score

from baldur.inference.selection import accuracies, accuracy_interval, auc, r2

RNG = np.random.default_rng(0)
N = 150
T = RNG.integers(0, 2, N).astype(float)
SCORE = np.round(RNG.standard_normal(N) + T, 1)  # with ties
WEIGHT = RNG.random(N) + 0.2
MEASURES = {"binary": (auc, roc_auc_score), "regression": (r2, r2_score)}


@pytest.mark.parametrize("task", MEASURES)
def test_the_measures_are_those_of_scikit_learn(task):
    own, theirs = MEASURES[task]
    y = T if task == "binary" else SCORE + T
    value, influence = own(SCORE, y, WEIGHT / WEIGHT.sum())
    assert value == pytest.approx(theirs(y, SCORE, sample_weight=WEIGHT))
    assert WEIGHT @ influence == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("task", MEASURES)
def test_the_standard_error_is_that_of_a_bootstrap(task):
    y = T if task == "binary" else SCORE + T
    row = np.arange(N)
    mean = SCORE[None, :, None]
    found, error = accuracies(mean, np.zeros_like(mean), row, y[:, None], np.ones(N), task)
    draws = np.random.default_rng(1).integers(0, N, (800, N))
    drawn = [MEASURES[task][1](y[rows], SCORE[rows]) for rows in draws]
    assert error[0] == pytest.approx(np.std(drawn), rel=0.12)
    low, high = accuracy_interval(float(found[0]), float(error[0]), task)
    assert low < found[0] < high
    assert_allclose([low, high], np.quantile(drawn, [0.025, 0.975]), atol=0.03)


def test_repeats_are_averaged_before_and_outputs_after():
    mean = RNG.standard_normal((3, 2 * N, 2))
    row = np.concatenate([np.arange(N), np.arange(N)[::-1]])
    outcomes = np.stack([T, 1.0 - T], axis=1)
    found, _ = accuracies(mean, np.zeros_like(mean), row, outcomes, WEIGHT, "multilabel")
    rows = (mean[:, :N] + mean[:, N:][:, ::-1]) / 2
    for v in range(3):
        each = [roc_auc_score(outcomes[:, c], rows[v, :, c], sample_weight=WEIGHT) for c in (0, 1)]
        assert found[v] == pytest.approx(np.mean(each))


def test_without_two_classes_or_variance_nothing_is_known():
    flat, share = np.ones(N), np.full(N, 1 / N)
    assert auc(SCORE, flat, share)[0] == 0.5
    assert r2(SCORE, flat, share)[0] == 0.0
    assert accuracy_interval(1.0, 0.0, "binary") == (1.0, 1.0)
