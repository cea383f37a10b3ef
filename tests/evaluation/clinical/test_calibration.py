"""Calibration against statsmodels, and laws of the Brier score's parts."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit, logit

from baldur.evaluation import calibration_curves, calibration_measures
from baldur.evaluation.clinical.calibration import (
    Platt,
    brier_parts,
    calibration_line,
    integrated_calibration_index,
    local_regression,
)
from evaluation.clinical.cohorts import cohort, table

sm = pytest.importorskip("statsmodels.api")
BINOMIAL = sm.families.Binomial()


def line(p, events):
    return calibration_line(p, events, np.ones((1, len(p))))


def index(p, events):
    return integrated_calibration_index(p, events, np.ones((1, len(p))))


@pytest.mark.parametrize("seed", range(4))
def test_intercept_and_slope_are_those_of_an_offset_regression(seed):
    events, p = cohort(120, seed=seed)
    y, x = events.astype(float), logit(p)
    large = sm.GLM(y, np.ones(120), family=BINOMIAL, offset=x).fit(tol=1e-12)
    straight = sm.GLM(y, sm.add_constant(x), family=BINOMIAL).fit(tol=1e-12)
    intercept, slope = line(p, events)
    assert intercept.item() == pytest.approx(large.params[0], abs=1e-8)
    assert slope.item() == pytest.approx(straight.params[1], abs=1e-8)


def test_weights_are_repeated_rows():
    events, p = cohort(80, seed=5)
    weights = np.random.default_rng(0).multinomial(80, np.full(80, 1 / 80), size=20).astype(float)
    intercepts, slopes = calibration_line(p, events, weights)
    indices = integrated_calibration_index(p, events, np.ones((1, 80)))
    for w, intercept, slope in zip(weights, intercepts, slopes, strict=True):
        rows = np.repeat(np.arange(80), w.astype(int))
        again = line(p[rows], events[rows])
        assert (intercept, slope) == pytest.approx((again[0].item(), again[1].item()), abs=1e-8)
    assert indices.shape == (1,)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.2, 2.0), st.floats(-2.0, 2.0))
def test_recalibrating_moves_intercept_and_slope_as_it_should(seed, stretch, shift):
    """Log odds times s: slope divided by s. Log odds plus d: intercept minus d."""
    events, p = cohort(100, seed=seed)
    intercept, slope = line(p, events)
    stretched = line(expit(stretch * logit(p)), events)[1]
    assert stretched == pytest.approx(slope / stretch)
    moved = line(expit(logit(p) + shift), events)[0]
    assert moved == pytest.approx(intercept - shift, abs=1e-6)


def test_separated_equal_and_extreme_predictions():
    events = np.arange(20) < 8
    separated = line(np.where(events, 0.8, 0.3), events)
    assert np.isposinf(separated[1])
    assert np.isneginf(line(np.where(events, 0.3, 0.8), events)[1])
    assert np.isnan(line(np.full(20, 0.4), events)[1])
    certain = np.where(events, 1.0, 0.0)
    certain[0], certain[-1] = 0.0, 1.0
    assert 0 < line(certain, events)[1] < 0.5
    found = calibration_measures(table(events, np.where(events, 0.8, 0.3)))
    assert "separate" in found.set_index("measure").loc["slope", "note"]


@pytest.mark.parametrize("span", [0.5, 0.75])
def test_the_curve_is_lowess_without_robust_steps(span):
    events, p = cohort(150, seed=1)
    order = np.argsort(p)
    expected = sm.nonparametric.lowess(
        events[order].astype(float), p[order], frac=span, it=0, delta=0.0, return_sorted=False
    )
    p, y = p[order], events[order].astype(float)
    found = local_regression(p, y, np.ones((1, 150)), p, span)
    np.testing.assert_allclose(found[0], expected, atol=1e-8)


def test_the_index_is_the_mean_distance_from_lowess():
    events, p = cohort(150, seed=1)
    smooth = sm.nonparametric.lowess(
        events.astype(float), p, frac=0.75, it=0, delta=0.0, return_sorted=False
    )
    expected = np.mean(np.abs(np.clip(smooth, 0, 1) - p))
    assert index(p, events).item() == pytest.approx(expected, abs=1e-8)
    # With more people than points of the grid the curve is read between them.
    events, p = cohort(900, seed=2)
    smooth = sm.nonparametric.lowess(
        events.astype(float), p, frac=0.75, it=0, delta=0.0, return_sorted=False
    )
    expected = np.mean(np.abs(np.clip(smooth, 0, 1) - p))
    assert index(p, events).item() == pytest.approx(expected, abs=1e-4)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2, max_size=40).filter(
        lambda rows: len({e for _, e in rows}) == 2
    )
)
def test_the_parts_of_the_brier_score_add_up(rows):
    p, y = np.array([r[0] for r in rows]), np.array([r[1] for r in rows], dtype=float)
    parts = brier_parts(p, y)
    total = parts["miscalibration"] - parts["discrimination"] + parts["uncertainty"]
    assert total == pytest.approx(np.mean((p - y) ** 2), abs=1e-12)
    assert parts["uncertainty"] == pytest.approx(y.mean() * (1 - y.mean()), abs=1e-12)
    assert parts["miscalibration"] >= -1e-12
    assert parts["discrimination"] >= -1e-12
    # Constant predictions of the share of events have no fault and no merit.
    plain = brier_parts(np.full(len(y), y.mean()), y)
    assert plain["miscalibration"] == pytest.approx(0, abs=1e-12)
    assert plain["discrimination"] == pytest.approx(0, abs=1e-12)


def test_the_band_holds_the_truth_for_a_calibrated_model():
    events, p = cohort(500, seed=7, slope=1.0, shift=0.0)
    curve = calibration_curves(table(events, p))
    assert len(curve) == 51
    assert ((curve["low"] <= curve["observed"]) & (curve["observed"] <= curve["high"])).all()
    inside = (curve["low"] <= curve["predicted"]) & (curve["predicted"] <= curve["high"])
    assert inside.mean() > 0.9


def test_several_classes_are_judged_one_by_one():
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 120)
    proba = rng.dirichlet(np.ones(3), 120) + np.eye(3)[truth]
    proba /= proba.sum(axis=1, keepdims=True)
    frame = pd.DataFrame({"label": np.array(list("abc"))[truth]})
    for c, name in enumerate("abc"):
        frame[f"p_{name}"] = proba[:, c]
    found = calibration_measures(frame).set_index(["class", "measure"])["estimate"]
    for c, name in enumerate("abc"):
        expected = line(proba[:, c], truth == c)
        assert found[name, "intercept"] == expected[0].item()
        assert found[name, "slope"] == expected[1].item()


def test_a_number_has_a_line_and_no_brier_score():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=100)
    said = 2 * truth + rng.normal(size=100) + 0.5
    found = calibration_measures(pd.DataFrame({"label": truth, "predicted": said}))
    fit = sm.OLS(truth, sm.add_constant(said)).fit()
    found = found.set_index("measure")
    assert found.loc["slope", "estimate"] == pytest.approx(fit.params[1])
    assert found.loc["intercept", "estimate"] == pytest.approx(np.mean(truth - said))
    assert "brier" not in found.index
    error = fit.get_robustcov_results("HC3").bse[1]
    width = found.loc["slope", "high"] - found.loc["slope", "low"]
    assert width == pytest.approx(2 * 1.984 * error, rel=0.1)


def test_margins_that_say_nothing_give_the_share_of_cases():
    margin = np.array([1.0, 2.0, 3.0, 4.0])
    flat = Platt.learn(margin, np.array([True, True, False, False]))
    assert flat.proba(margin)[:, 1] == pytest.approx([0.5] * 4)
    constant = Platt.learn(np.ones(6), np.arange(6) < 2)
    assert constant.proba(np.ones(1))[0, 1] == pytest.approx(3 / 8)
    separated = Platt.learn(margin, np.array([False, False, True, True]))
    assert 0.5 < separated.proba(np.array([4.0]))[0, 1] < 1
