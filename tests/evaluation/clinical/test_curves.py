"""ROC and precision-recall curves equal scikit-learn's, point by point."""

import numpy as np
import pytest
from sklearn.metrics import (
    average_precision_score,
    precision_recall_curve,
    roc_auc_score,
    roc_curve,
)

from baldur.evaluation.clinical.curves import (
    GRID,
    average_precision,
    curve_areas,
    precision_at,
    precision_recall_curves,
    roc_curves,
    sensitivity_at,
)
from evaluation.clinical.cohorts import cohort, table


def once(values):
    return np.ones((1, len(values)))


def scores(n=120, seed=0, ties=False):
    events, p = cohort(n, seed=seed)
    return events, np.round(p, 1) if ties else p


@pytest.mark.parametrize("ties", [False, True])
def test_roc_is_that_of_scikit_learn(ties):
    events, p = scores(ties=ties)
    x, y, _ = roc_curve(events, p, drop_intermediate=False)
    mine = sensitivity_at(GRID, p, events, once(p))[0]
    for rate, value in zip(GRID, mine, strict=True):
        left = np.flatnonzero(x <= rate)[-1]
        right = min(left + 1, len(x) - 1)
        step = x[right] - x[left]
        share = (rate - x[left]) / step if step else 0.0
        assert value == pytest.approx(y[left] + share * (y[right] - y[left]))


@pytest.mark.parametrize("ties", [False, True])
def test_precision_is_that_of_scikit_learn(ties):
    events, p = scores(ties=ties)
    precision, recall, _ = precision_recall_curve(events, p)
    mine = precision_at(GRID, p, events, once(p))[0]
    for wanted, value in zip(GRID, mine, strict=True):
        # Recall falls along the curve; its last point has nobody called positive.
        at = np.flatnonzero(recall[:-1] >= wanted - 1e-12)[-1]
        assert value == pytest.approx(precision[at])
    assert average_precision(p, events, once(p))[0] == pytest.approx(
        average_precision_score(events, p)
    )


def test_weights_are_repeated_rows():
    events, p = scores(60, seed=2)
    counts = np.random.default_rng(0).integers(0, 3, 60)
    weights = counts[None].astype(float)
    many = np.repeat(np.arange(60), counts)
    for function in (sensitivity_at, precision_at):
        weighted = function(GRID, p, events, weights)
        assert weighted == pytest.approx(function(GRID, p[many], events[many], once(many)))
    assert average_precision(p, events, weights) == pytest.approx(
        average_precision(p[many], events[many], once(many))
    )


def test_one_class_has_no_curve():
    p, none = np.linspace(0, 1, 5), np.zeros(5, dtype=bool)
    assert np.isnan(sensitivity_at(GRID, p, none, once(p))).all()
    assert np.isnan(precision_at(GRID, p, none, once(p))).all()
    assert np.isnan(average_precision(p, none, once(p))).all()
    rows = table(np.ones(5, dtype=bool), p)
    assert not len(roc_curves(rows, classes=["control", "case"], resamples=100))


def test_tables_have_curves_areas_and_bands():
    events, p = scores()
    rows = table(events, p, np.full(len(p), 0.4))
    roc = roc_curves(rows, resamples=200)
    assert list(roc.columns) == [
        "model", "class", "false_positive_rate", "sensitivity", "low", "high",
    ]  # fmt: skip
    chance = roc[roc["model"] == "m1"]
    assert chance["sensitivity"].to_numpy() == pytest.approx(chance["false_positive_rate"])
    inside = roc.dropna()
    assert (inside["low"] <= inside["sensitivity"] + 1e-9).all()
    assert (inside["sensitivity"] <= inside["high"] + 1e-9).all()
    precision = precision_recall_curves(rows, resamples=200)
    flat = precision[precision["model"] == "m1"]
    assert flat["precision"].to_numpy() == pytest.approx(events.mean())
    assert flat["prevalence"].to_numpy() == pytest.approx(events.mean())
    areas = curve_areas(rows, resamples=200).set_index(["model", "measure"])
    assert areas.loc[("m0", "auc"), "estimate"] == pytest.approx(roc_auc_score(events, p))
    assert areas.loc[("m1", "auc"), "estimate"] == pytest.approx(0.5)


@pytest.mark.slow
def test_the_band_of_the_curve_covers_repeats_of_the_study():
    """About 95 % of new cohorts have a sensitivity inside, at a middling rate."""
    large = [scores(4000, seed=100 + s) for s in range(5)]
    truth = np.mean([sensitivity_at(np.array([0.2]), p, e, once(p)) for e, p in large])
    hits = []
    for seed in range(60):
        events, p = scores(150, seed=seed)
        rows = roc_curves(table(events, p), resamples=200)
        row = rows[rows["false_positive_rate"] == 0.2].iloc[0]
        hits.append(row["low"] <= truth <= row["high"])
    assert np.mean(hits) >= 0.87
