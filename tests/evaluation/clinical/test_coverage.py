"""Intervals cover the truth as often as they say, over many studies of a fixed model."""

import numpy as np
import pytest
from scipy.special import expit

from baldur.evaluation import net_benefit
from baldur.evaluation.clinical.bootstrap import Bootstrap
from baldur.evaluation.clinical.calibration import calibration_line
from baldur.evaluation.metrics import weighted_auc
from evaluation.clinical.cohorts import cohort

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
