"""The corrected test reduces to the paired t-test, is honest under overlap, and Holm is Holm."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import ttest_rel
from sklearn.model_selection import KFold

from baldur.datasets import make_multiview
from baldur.evaluation import nested_cv
from baldur.evaluation.jobs import permute_labels
from baldur.evaluation.metric_table import _FORMS, FEATURES, _mean_and_sd, recompute_table
from baldur.evaluation.significance import (
    compare_pairs,
    corrected_t_test,
    holm,
    permutation_p_value,
)
from pages import write_folder


def test_without_overlap_it_is_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=10), rng.normal(size=10)
    t, df, p, _ = corrected_t_test(a - b, 0.0)
    expected = ttest_rel(a, b)
    assert (t, df, p) == pytest.approx((expected.statistic, 9, expected.pvalue))


def test_the_correction_is_the_published_factor():
    d = np.array([0.1, 0.3, 0.2, 0.0, 0.4])
    t = corrected_t_test(d, 0.25)[0]
    assert t == pytest.approx(d.mean() / np.sqrt((1 / 5 + 1 / 4) * d.var(ddof=1)))


def test_equal_scores_give_p_one_and_constant_gains_p_zero():
    assert corrected_t_test(np.zeros(5), 0.2)[2] == 1.0
    assert corrected_t_test(np.full(5, 0.1), 0.2)[2] == 0.0
    assert np.isnan(corrected_t_test(np.array([0.1]), 0.2)[2])


def test_false_alarms_stay_near_the_level():
    """Two equally good learners over 5 x 2 folds: the plain test is far off, ours is not."""
    rng = np.random.default_rng(2)
    plain, ours = [], []
    for _ in range(400):
        X = rng.normal(size=(60, 2))
        y = rng.normal(size=60)
        d = []
        for r in range(5):
            for train, test in KFold(2, shuffle=True, random_state=r).split(X):
                beta = (X[train] * y[train, None]).mean(axis=0)
                error = (y[test, None] - X[test] * beta) ** 2
                d.append(error[:, 0].mean() - error[:, 1].mean())
        plain.append(corrected_t_test(np.array(d), 0.0)[2] < 0.05)
        ours.append(corrected_t_test(np.array(d), 1.0)[2] < 0.05)
    print(f"false alarms at 5%: plain {np.mean(plain):.3f}, corrected {np.mean(ours):.3f}")
    assert np.mean(plain) > 0.15
    assert np.mean(ours) < 0.08


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_equals_its_literal_twin(p):
    order = sorted(range(len(p)), key=lambda i: p[i])
    expected, running = [0.0] * len(p), 0.0
    for rank, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - rank) * p[i]))
        expected[i] = running
    np.testing.assert_allclose(holm(np.array(p)), expected, atol=1e-12)


def test_pairs_skip_undefined_folds_and_adjust_together():
    scores = {
        "a": np.array([0.9, 0.8, np.nan]),
        "b": np.array([0.5, 0.5, 0.5]),
        "c": np.array([0.5, 0.4, 0.6]),
    }
    frame = compare_pairs(scores, 0.25, "auc")
    assert frame["df"].tolist() == [1, 1, 2]
    assert frame["difference"].tolist() == pytest.approx([0.35, 0.4, 0.0])
    np.testing.assert_allclose(frame["p_holm"], holm(frame["p"].to_numpy()))


def test_permuted_labels_respect_groups():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(10), 4)
    mixed = rng.integers(0, 2, 40)
    shuffled = permute_labels(mixed, groups, rng)
    for g in range(10):
        assert sorted(shuffled[groups == g]) == sorted(mixed[groups == g])
    whole = np.repeat(rng.integers(0, 2, 10), 4)
    shuffled = permute_labels(whole, groups, rng)
    assert all(len(set(shuffled[groups == g])) == 1 for g in range(10))
    assert sorted(shuffled) == sorted(whole)
    assert sorted(permute_labels(mixed, None, rng)) == sorted(mixed)


def test_permutation_p_value_counts_itself():
    assert permutation_p_value(0.9, np.full(99, 0.5)) == pytest.approx(0.01)
    assert permutation_p_value(0.5, np.full(9, 0.5)) == 1.0
    assert permutation_p_value(0.1, np.full(9, 0.5), greater_is_better=False) == pytest.approx(0.1)


@pytest.mark.parametrize("classes", [["0", "1"], ["-x", "+x"]], ids=["plain", "formulas"])
def test_the_table_follows_from_the_two_files(tmp_path, classes):
    sim = make_multiview(60, {"a": 8, "b": 20}, random_state=0)
    models = {"Dummy": None, "LSVM-l1": {"c_ratio": [3.0, 10.0]}}
    result = nested_cv(models, sim.data, np.array(classes)[sim.target], outer=3, inner=3)
    write_folder(result, tmp_path)
    text = {"label": str, "predicted": str}
    p = pd.read_csv(tmp_path / "predictions.csv", dtype=text, float_precision="round_trip")
    s = pd.read_csv(tmp_path / "selection.csv", float_precision="round_trip")
    found = recompute_table(p, s)
    pd.testing.assert_frame_equal(found, result.table(), check_exact=True)
    assert found.to_csv(index=False).encode() == (tmp_path / "table.csv").read_bytes()


@pytest.mark.parametrize(
    ("mean", "sd", "said"),
    [
        (100 / 37, 5.4e-16, "2.70 ± 0 %"), (0.0, 0.0, "0 %"), (100.0, 1e-15, "100 %"),
        (0.001, 0.0, "1.0e-03 ± 0 %"), (36.036, 25.112, "36.04 ± 25.11 %"),
    ],
)  # fmt: skip
def test_rounding_errors_of_the_share_of_features_are_0(mean, sd, said):
    assert _mean_and_sd(mean, sd, FEATURES, _FORMS["text"]) == said


def test_permuted_rows_of_outcomes_stay_whole():
    Y = np.random.default_rng(1).integers(0, 2, (60, 3))
    for groups in (None, np.repeat(np.arange(20), 3)):
        made = permute_labels(Y, groups, np.random.default_rng(0))
        assert sorted(map(tuple, made)) == sorted(map(tuple, Y))
