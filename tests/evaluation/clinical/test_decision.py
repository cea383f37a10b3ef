"""Net benefit against dcurves, closed forms, and tests at thresholds."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logit

from baldur.evaluation import decision_curves, net_benefit, threshold_measures
from baldur.exceptions import InputError
from evaluation.clinical.cohorts import cohort, table

SAME_PEOPLE = "chosen on the same people, which is optimistic"
GRID = np.round(np.arange(1, 100) / 100, 2)


@pytest.mark.parametrize("prevalence", [None, 0.1])
def test_net_benefit_is_that_of_dcurves(prevalence):
    dcurves = pytest.importorskip("dcurves")
    events, p = cohort(250, seed=0)
    q = np.random.default_rng(1).uniform(size=250)
    data = pd.DataFrame({"case": events.astype(int), "m0": p, "m1": q})
    expected = dcurves.dca(
        data=data, outcome="case", modelnames=["m0", "m1"], thresholds=GRID, prevalence=prevalence
    ).set_index(["model", "threshold"])["net_benefit"]
    found = decision_curves(table(events, p, q), prevalence=prevalence, shift=False)
    names = {"treat all": "all", "treat none": "none"}
    compared = 0
    for row in found.itertuples():
        want = expected[names.get(row.model, row.model), row.threshold]
        assert row.net_benefit == pytest.approx(want, abs=1e-12), (row.model, row.threshold)
        compared += 1
    assert compared == 4 * 99


@given(st.integers(0, 1000), st.floats(0.01, 0.99), st.floats(0.01, 0.99))
@settings(max_examples=40, deadline=None)
def test_treating_all_and_none_have_closed_forms(seed, threshold, prevalence):
    events, p = cohort(40, seed=seed)
    at = np.array([threshold])
    for share, given_ in ((events.mean(), None), (prevalence, prevalence)):
        everyone = net_benefit(np.ones(40), events, at, prevalence=given_).item()
        assert everyone == pytest.approx(share - (1 - share) * threshold / (1 - threshold))
        assert net_benefit(np.zeros(40), events, at, prevalence=given_).item() == 0
        # No test finds more than all cases, without a false alarm.
        assert net_benefit(p, events, at, prevalence=given_).item() <= share + 1e-12


def shifted(p, a, b):
    """Return what probabilities at a share of cases `a` are at a share `b`, by Bayes' rule."""
    up, down = p * b / a, (1 - p) * (1 - b) / (1 - a)
    return up / (up + down)


@pytest.mark.parametrize("prevalence", [0.01, 0.3, 0.97])
def test_shifting_is_bayes_rule(prevalence):
    events, p = cohort(60, seed=5)
    how = {"prevalence": prevalence, "resamples": 100}
    found = decision_curves(table(events, p), **how)
    there = table(events, shifted(p, events.mean(), prevalence))
    pd.testing.assert_frame_equal(found, decision_curves(there, shift=False, **how))


def test_a_case_control_study_says_what_a_cohort_says():
    """Shifted to the cohort's prevalence, half cases and half controls give its net benefit."""
    events, p = cohort(40_000, seed=3, mean=-3.0, slope=1.0, shift=0.0)
    share = events.mean()
    rng = np.random.default_rng(0)
    cases = np.flatnonzero(events)
    chosen = np.r_[cases, rng.choice(np.flatnonzero(~events), len(cases), replace=False)]
    balanced = shifted(p[chosen], share, 0.5)
    found = decision_curves(
        table(events[chosen], balanced), prevalence=share, thresholds=[0.05, 0.1, 0.2],
        resamples=100,
    )  # fmt: skip
    found = found[found["model"] == "m0"]
    expected = net_benefit(p, events, np.array([0.05, 0.1, 0.2]))[0]
    np.testing.assert_allclose(found["net_benefit"], expected, atol=0.002)


def test_thresholds_have_textbook_intervals():
    """A table of 30 true and 10 false positives, 20 false and 90 true negatives."""
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    events = np.r_[np.ones(50), np.zeros(100)].astype(bool)
    p = np.r_[np.full(30, 0.8), np.full(20, 0.2), np.full(10, 0.8), np.full(90, 0.2)]
    found = threshold_measures(table(events, p), [0.5]).set_index("measure")
    estimate = found["estimate"]
    assert estimate["sensitivity"] == pytest.approx(0.6)
    assert estimate["specificity"] == pytest.approx(0.9)
    assert estimate["ppv"] == pytest.approx(30 / 40)
    assert estimate["npv"] == pytest.approx(90 / 110)
    assert estimate["lr_positive"] == pytest.approx(6)
    assert estimate["lr_negative"] == pytest.approx(0.4 / 0.9)
    assert estimate["number_needed_to_test"] == pytest.approx(150 / 30)
    assert estimate["number_needed_to_evaluate"] == pytest.approx(40 / 30)
    ends = found[["low", "high"]]
    wilson = proportion.proportion_confint(30, 50, method="wilson")
    assert ends.loc["sensitivity"].tolist() == pytest.approx(wilson)
    error = np.sqrt(1 / 30 - 1 / 50 + 1 / 10 - 1 / 100)
    by_log = np.exp(np.log(6) + np.array([-1, 1]) * 1.959964 * error)
    assert ends.loc["lr_positive"].tolist() == pytest.approx(by_log.tolist(), rel=1e-6)
    # Among those who test positive: the interval of a share by its log odds.
    by_odds = logit(0.75) + np.array([-1, 1]) * 1.959964 * np.sqrt(1 / 30 + 1 / 10)
    assert logit(ends.loc["ppv"]).tolist() == pytest.approx(by_odds.tolist(), rel=1e-6)
    by_odds = logit(90 / 110) + np.array([-1, 1]) * 1.959964 * np.sqrt(1 / 90 + 1 / 20)
    assert logit(ends.loc["npv"]).tolist() == pytest.approx(by_odds.tolist(), rel=1e-6)


def test_predictive_values_follow_the_prevalence():
    events, p = cohort(200, seed=1)
    own = threshold_measures(table(events, p), [0.5]).set_index("measure")["estimate"]
    there = threshold_measures(table(events, p), [0.5], prevalence=0.05, shift=False)
    there = there.set_index("measure")["estimate"]
    for same in ("sensitivity", "specificity", "lr_positive"):
        assert there[same] == own[same]
    se, sp = own["sensitivity"], own["specificity"]
    assert there["ppv"] == pytest.approx(0.05 * se / (0.05 * se + 0.95 * (1 - sp)))
    assert there["npv"] == pytest.approx(0.95 * sp / (0.95 * sp + 0.05 * (1 - se)))
    assert there["number_needed_to_test"] == pytest.approx(1 / (0.05 * se))


@pytest.mark.parametrize("wanted", [0.8, 0.9, 1.0])
def test_chosen_thresholds_keep_their_promise(wanted):
    events, p = cohort(100, seed=2)
    frame = table(events, p)
    found = threshold_measures(frame, [], sensitivities=[wanted], specificities=[wanted])
    found = found.set_index(["rule", "measure"])
    for rule in ("sensitivity", "specificity"):
        got = found.loc[(f"{rule} {wanted:g}", rule)]
        assert got["estimate"] >= wanted - 1e-12
        assert got["estimate"] <= wanted + 1 / min(events.sum(), (~events).sum()) + 1e-12


def test_people_of_a_fold_are_judged_by_a_threshold_of_the_others():
    """Each fold alone, with the threshold that the others give, counted by hand."""
    events, p = cohort(150, seed=3)
    fold = np.arange(150) % 5
    found = threshold_measures(table(events, p, fold=fold), [], sensitivities=[0.8])
    whole = threshold_measures(table(events, p), [], sensitivities=[0.8])
    assert set(found["threshold"]) == set(whole["threshold"])
    assert (whole["note"] == SAME_PEOPLE).all()
    assert (found["note"] == "").all()
    positive = np.zeros(150, dtype=bool)
    for one in range(5):
        cases = np.sort(p[events & (fold != one)])
        positive[fold == one] = p[fold == one] >= cases[int(len(cases) * 0.2 + 1e-9)]
    estimate = found.set_index("measure")["estimate"]
    assert estimate["sensitivity"] == pytest.approx(positive[events].mean())
    assert estimate["specificity"] == pytest.approx(1 - positive[~events].mean())


def test_where_other_folds_have_no_case_the_choice_is_called_optimistic():
    events, p = cohort(100, seed=4)
    fold = np.where(events, 0, np.arange(100) % 3)
    found = threshold_measures(
        table(events, p, fold=fold), [], sensitivities=[0.9], specificities=[0.9]
    )
    noted = found.groupby("rule")["note"].first()
    assert noted.to_dict() == {"sensitivity 0.9": SAME_PEOPLE, "specificity 0.9": ""}


def test_empty_cells_have_intervals_and_wrong_settings_are_named():
    events = np.arange(40) < 15
    found = threshold_measures(table(events, np.where(events, 0.9, 0.1)), [0.5]).set_index(
        "measure"
    )
    assert np.isinf(found.loc["lr_positive", "estimate"])
    assert 1 < found.loc["lr_positive", "low"] < 100
    assert found.loc["lr_negative", "estimate"] == 0 < found.loc["lr_negative", "high"] < 1
    for value in ("ppv", "npv"):
        assert found.loc[value, "low"] < found.loc[value, "estimate"] == found.loc[value, "high"]
    nobody = threshold_measures(table(events, np.full(40, 0.2)), [0.5]).set_index("measure")
    assert nobody.loc["ppv", ["estimate", "low", "high"]].isna().all()
    assert nobody.loc["lr_negative", "low"] < 1 < nobody.loc["lr_negative", "high"]
    assert np.isinf(nobody.loc["number_needed_to_test", "estimate"])
    assert 1 < nobody.loc["number_needed_to_test", "low"] < np.inf
    with pytest.raises(InputError, match="threshold"):
        threshold_measures(table(events, np.full(40, 0.5)), [1.5])
    with pytest.raises(InputError, match="prevalence"):
        decision_curves(table(events, np.full(40, 0.5)), prevalence=5)


def test_groups_widen_the_interval_of_a_rate():
    events, p = cohort(120, seed=6)
    alone = threshold_measures(table(events, p), [0.5]).set_index("measure").loc["sensitivity"]
    copied = table(np.repeat(events, 4), np.repeat(p, 4), group=np.repeat(np.arange(120), 4))
    grouped = threshold_measures(copied, [0.5]).set_index("measure").loc["sensitivity"]
    assert grouped["estimate"] == alone["estimate"]
    wide, narrow = grouped["high"] - grouped["low"], alone["high"] - alone["low"]
    assert wide == pytest.approx(narrow, rel=0.1)


def test_by_default_the_thresholds_are_one_half_and_the_prevalence():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=200)
    events = rng.uniform(size=200) < p * 0.6
    found = threshold_measures(table(events, p))
    assert dict.fromkeys(zip(found["threshold"], found["rule"], strict=True)) == {
        (0.5, "stated"): None,
        (events.mean(), "prevalence"): None,
    }
    stated = threshold_measures(table(events, p), prevalence=0.1)
    assert 0.1 in set(stated["threshold"])
