"""Resamples, intervals on their scales, and agreement with DeLong's."""

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit, logit
from scipy.stats import norm

from baldur.evaluation import METRICS, metric_differences, metric_intervals, net_benefit
from baldur.evaluation.clinical.bootstrap_intervals import Bootstrap, Draws, wilson
from baldur.evaluation.clinical.calibration import calibration_line
from baldur.evaluation.metrics import weighted_auc
from baldur.exceptions import InputError
from evaluation.clinical.cohorts import cohort, table

proportion = pytest.importorskip("statsmodels.stats.proportion")


def delong(p, q, events):
    """AUCs of two scores, and their covariance, by the literal sums over pairs."""
    up, down = np.flatnonzero(events), np.flatnonzero(~events)
    aucs, rows, columns = [], [], []
    for s in (p, q):
        wins = np.array([[(s[i] > s[j]) + 0.5 * (s[i] == s[j]) for j in down] for i in up])
        aucs.append(wins.mean())
        rows.append(wins.mean(axis=1))
        columns.append(wins.mean(axis=0))
    return np.array(aucs), np.cov(rows) / len(up) + np.cov(columns) / len(down)


def test_auc_intervals_and_differences_agree_with_delong():
    events, p = cohort(200, seed=3)
    q = expit(logit(p) + np.random.default_rng(0).normal(size=200))
    aucs, covariance = delong(p, q, events)
    found = metric_intervals(table(events, p, q), metrics=["auc"], resamples=4000)
    z = norm.ppf(0.975)
    for j, row in enumerate(found.itertuples()):
        assert row.estimate == pytest.approx(aucs[j], abs=1e-12)
        # DeLong's standard error on the log odds.
        error = np.sqrt(covariance[j, j]) / (aucs[j] * (1 - aucs[j]))
        expected = expit(logit(aucs[j]) + np.array([-z, z]) * error)
        assert [row.low, row.high] == pytest.approx(expected, abs=0.006)
    gap = metric_differences(table(events, p, q), metrics=["auc"], resamples=4000).iloc[0]
    error = np.sqrt(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])
    assert gap["difference"] == pytest.approx(aucs[0] - aucs[1], abs=1e-12)
    assert gap["high"] - gap["low"] == pytest.approx(2 * z * error, rel=0.06)


def test_intervals_of_all_metrics_hold_their_estimate():
    events, p = cohort(80, seed=1)
    found = metric_intervals(table(events, p))
    assert found["metric"].tolist() == [m for m, d in METRICS.items() if d.classification]
    assert (found["low"] < found["estimate"]).all()
    assert (found["estimate"] < found["high"]).all()
    again = metric_intervals(table(events, p))
    pd.testing.assert_frame_equal(found, again, check_exact=True)


def test_groups_are_drawn_whole():
    units = np.repeat(np.arange(10), 3)
    for block in Bootstrap(units, resamples=100).blocks():
        assert (block.reshape(len(block), 10, 3) == block[:, ::3, None]).all()
        assert (block.sum(axis=1) == 30).all()


def test_blocks_are_the_same_however_many_resamples_fit_in_one(constants):
    whole = np.concatenate(list(Bootstrap(np.arange(20), resamples=300).blocks()))
    constants(_BLOCK_CELLS=20 * 7, _KEEP_CELLS=0)
    again = Bootstrap(np.arange(20), resamples=300)
    for _ in range(2):
        np.testing.assert_array_equal(np.concatenate(list(again.blocks())), whole)
    assert len(list(again.blocks())) == 43


def test_copied_people_in_groups_change_nothing():
    """Three copies of everyone, each with their copies in a group, say what one copy says."""
    events, p = cohort(60, seed=2)
    once = metric_intervals(table(events, p))
    many = table(np.repeat(events, 3), np.repeat(p, 3), group=np.repeat(np.arange(60), 3))
    thrice = metric_intervals(many)
    for column in ("estimate", "low", "high"):
        np.testing.assert_allclose(thrice[column], once[column], atol=1e-12)
    assert thrice["units"].eq(60).all()
    assert thrice["people"].eq(180).all()


def test_copied_repeats_change_nothing():
    events, p = cohort(60, seed=2)
    one = table(events, p)
    two = pd.concat([one, one.assign(repeat=2).sample(frac=1, random_state=0)])
    columns = ["estimate", "low", "high"]
    np.testing.assert_allclose(
        metric_intervals(two)[columns], metric_intervals(one)[columns], atol=1e-12
    )


def test_sites_have_intervals_of_their_own():
    events, p = cohort(150, seed=4)
    site = np.where(np.arange(150) % 3 == 0, "A", "B")
    found = metric_intervals(table(events, p, site=site), metrics=["auc"]).set_index("site")
    assert found.index.tolist() == ["*", "A", "B"]
    assert found["people"].tolist() == [150, 50, 100]
    alone = metric_intervals(table(events[site == "A"], p[site == "A"]), metrics=["auc"])
    assert found.loc["A", "estimate"] == alone["estimate"].item()
    wide, narrow = (found.loc[s, "high"] - found.loc[s, "low"] for s in ("A", "*"))
    assert wide > narrow


def test_a_perfect_score_has_wilsons_interval():
    events = np.arange(40) < 15
    found = metric_intervals(table(events, np.where(events, 0.9, 0.1))).set_index("metric")
    assert found.loc["recall", "high"] == 1.0
    low = proportion.proportion_confint(15, 15, method="wilson")[0]
    assert found.loc["recall", "low"] == pytest.approx(low)
    assert found.loc["auc", "low"] == pytest.approx(low)


@pytest.mark.parametrize("hits", [0, 1, 17, 40])
def test_wilsons_interval_is_that_of_statsmodels(hits):
    expected = proportion.proportion_confint(hits, 40, method="wilson")
    found = wilson(np.array(hits / 40), np.array(40.0), 0.95)
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_a_few_wild_resamples_do_not_open_the_interval_and_many_do():
    values = np.random.default_rng(0).normal(1.0, 0.1, 1000)
    tame = Draws(np.array(1.0), values, 100, 0.95).interval()
    wild = values.copy()
    wild[:5] = np.inf
    found = Draws(np.array(1.0), wild, 100, 0.95).interval()
    np.testing.assert_allclose(found, tame, atol=0.02)
    wild[:300] = np.inf
    assert np.isinf(Draws(np.array(1.0), wild, 100, 0.95).interval()).all()
    wild[:] = np.nan
    assert np.isnan(Draws(np.array(1.0), wild, 100, 0.95).interval()).all()


def test_no_error_at_all_has_an_interval_too():
    truth = np.arange(30.0)
    exact = pd.DataFrame({"label": truth, "predicted": truth})
    found = metric_intervals(exact).set_index("metric")[["estimate", "low", "high"]]
    assert found.loc["rmse"].tolist() == [0, 0, 0]
    assert found.loc["mae"].tolist() == [0, 0, 0]
    assert found.loc["r2"].tolist() == [1, 1, 1]


def test_wrong_settings_are_named():
    events, p = cohort(30)
    with pytest.raises(InputError, match="resamples"):
        metric_intervals(table(events, p), resamples=10)
    with pytest.raises(InputError, match="level"):
        metric_intervals(table(events, p), level=95)


# -- Intervals cover the truth as often as they say, over many studies of a fixed model -----------


STUDIES = 500
THRESHOLD = 0.3
# mean and spread of the true log odds: middling and good discrimination, and a rare outcome.
SETTINGS = {"middling": (-0.5, 1.2), "good": (-1.0, 2.5), "rare": (-2.0, 1.2)}
SLOPE, SHIFT = 1.3, 0.3


def truth(mean, spread):
    """The model's true AUC, slope and net benefit, by sums over a fine grid of log odds."""
    z = np.linspace(-8, 8, 20_001)
    density = np.exp(-(z**2) / 2)
    density /= density.sum()
    odds = mean + spread * z
    cases, controls = density * expit(odds), density * expit(-odds)
    auc = np.sum(cases * (np.cumsum(controls) - controls / 2)) / (cases.sum() * controls.sum())
    treated = expit(SLOPE * odds + SHIFT) >= THRESHOLD
    benefit = cases[treated].sum() - controls[treated].sum() * THRESHOLD / (1 - THRESHOLD)
    return {"auc": auc, "slope": 1 / SLOPE, "net benefit": benefit}


@pytest.mark.slow
@pytest.mark.parametrize("n", [150, 300])
def test_intervals_cover_the_truth(n):
    """Five hundred studies, a third of each setting; other people in every one."""
    names = list(SETTINGS)
    true = {name: truth(*SETTINGS[name]) for name in names}
    hits = {name: dict.fromkeys(true[name], 0) for name in names}
    at = np.array([THRESHOLD])
    for study in range(STUDIES):
        name = names[study % len(names)]
        events, p = cohort(n, study + n, *SETTINGS[name], SLOPE, SHIFT)
        boot = Bootstrap(np.arange(n), resamples=500, random_state=study)
        intervals = {
            "auc": boot.run(
                lambda w, p=p, e=events: weighted_auc(p, e, w), scale="logit"
            ).interval(),
            "slope": boot.run(lambda w, p=p, e=events: calibration_line(p, e, w)[1]).interval(),
            "net benefit": boot.run(
                lambda w, p=p, e=events: net_benefit(p, e, at, weights=w)[:, 0]
            ).interval(),
        }
        for measure, (low, high) in intervals.items():
            hits[name][measure] += bool(low <= true[name][measure] <= high)
    shares = {m: sum(hits[name][m] for name in names) / STUDIES for m in hits[names[0]]}
    print(n, shares, hits)
    for measure, share in shares.items():
        assert 0.92 <= share <= 0.97, (measure, share)


@pytest.mark.slow
def test_families_are_covered_when_drawn_whole_and_not_when_torn():
    """Sixty families of four share part of their risk: people drawn alone look too certain."""
    families, size, studies = 60, 4, STUDIES

    def study(rng, n):
        shared = np.repeat(rng.normal(0, 1.5, n), size)
        odds = -0.5 + shared + 0.5 * rng.normal(size=n * size)
        return rng.uniform(size=n * size) < expit(odds), odds

    events, odds = study(np.random.default_rng(0), 200_000)
    true = weighted_auc(odds, events, np.ones((1, len(events)))).item()
    hits = {"families": 0, "people": 0}
    for seed in range(1, studies + 1):
        events, odds = study(np.random.default_rng(seed), families)
        for name, units in (
            ("families", np.repeat(np.arange(families), size)),
            ("people", np.arange(families * size)),
        ):
            boot = Bootstrap(units, resamples=1000, random_state=seed)
            draws = boot.run(lambda w, e=events, o=odds: weighted_auc(o, e, w), scale="logit")
            low, high = draws.interval()
            hits[name] += bool(low <= true <= high)
    shares = {name: count / studies for name, count in hits.items()}
    print(shares)
    assert 0.92 <= shares["families"] <= 0.97
    assert shares["people"] < shares["families"]
