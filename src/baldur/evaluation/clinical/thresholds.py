"""Tests at a threshold: sensitivity, specificity, predictive values and likelihood ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtri

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws, wilson
from baldur.evaluation.clinical.decision import (
    check_prevalence,
    check_thresholds,
    positive_rates,
    shifted,
    usable,
)
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    resample,
)
from baldur.evaluation.metrics import Predicted
from baldur.exceptions import InputError

HALF = 0.5
"""The threshold of `predict`; reported by default beside the share of cases."""
SAME_PEOPLE = "chosen on the same people, which is optimistic"
"""Note on a threshold that could not be chosen on other folds."""
COLUMNS = ["model", "threshold", "rule", "measure", "estimate", "low", "high", "note"]


def threshold_measures(
    predictions: pd.DataFrame | Resampled,
    thresholds: Sequence[float] | None = None,
    *,
    sensitivities: Sequence[float] = (),
    specificities: Sequence[float] = (),
    prevalence: float | None = None,
    shift: bool = True,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Return sensitivity, specificity and other measures of a test at each threshold.

    Parameters
    ----------
    predictions : DataFrame or Resampled
        As ``predictions.csv`` of a study with two classes; see `read_held_out` for the columns.
    thresholds : list of float, optional
        Probabilities from which a person tests positive; default 0.5 and the prevalence.
    sensitivities, specificities : list of float
        Thresholds to be chosen in these data: the highest with at least this sensitivity, the
        lowest with at least this specificity. The threshold returned is chosen on all people. The
        measures are for the people of each fold with the threshold chosen on the other folds, so
        that nobody is judged by a threshold chosen on themselves. Without folds (a new cohort,
        one fixed split) they are for the people it was chosen on, which is optimistic; the column
        ``note`` then says so.
    prevalence : float, optional
        Share of cases in the population the test is meant for; default that of the predictions.
    shift : bool, default=True
        With `prevalence`: shift the probabilities to it as well.
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

    Returns
    -------
    DataFrame
        model, threshold, rule ("stated", "prevalence", or what it was chosen for), measure,
        estimate, low, high, note. The measures are sensitivity, specificity, ppv, npv, lr_positive,
        lr_negative, number_needed_to_test (people tested per case found) and
        number_needed_to_evaluate (people tested positive per case found).

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import threshold_measures
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> found = threshold_measures(table, [0.5])
    >>> found.loc[:1, ["measure", "estimate", "low", "high"]].round(2)
           measure  estimate   low  high
    0  sensitivity      1.00  0.91  1.00
    1  specificity      0.67  0.54  0.77
    """
    sample = resample(predictions, **bootstrap)
    check_prevalence(prevalence)
    stated = check_thresholds([HALF] if thresholds is None else thresholds)
    chosen = [("sensitivity", v) for v in sensitivities] + [
        ("specificity", v) for v in specificities
    ]

    def rows(held: HeldOutPredictions) -> Iterator[dict[str, Any]]:
        if usable(held):
            return
        proba = [shifted(held, p, prevalence, shift) for _, p in held.repeats]
        share = held.share(1) if prevalence is None else prevalence
        cuts: list[_Cut] = [(t, "stated", t, "") for t in stated.tolist()]
        if thresholds is None:
            cuts.append((share, "prevalence", share, ""))
        cuts += [_chosen_cut(held, proba, rule, least) for rule, least in chosen]
        for threshold, rule, judged_at, note in cuts:
            rates = _rates(held, sample.boot, proba, judged_at)
            # The share of cases is uncertain unless it was stated.
            variance = 1 / rates[2] + 1 / rates[3] if prevalence is None else 0.0
            measures = _measures(*rates, sample.boot.level, share, variance)
            estimate, low, high = map(list, zip(*measures.values(), strict=True))
            note = "; ".join(filter(None, (note, held.mark)))
            names = {"threshold": threshold, "rule": rule, "measure": list(measures), "note": note}
            yield {**names, "estimate": estimate, "low": low, "high": high}

    return sample.table(rows, COLUMNS)


_Cut = tuple[float, str, "float | list[np.ndarray]", str]
"""A threshold, why it is used, the thresholds at which people are judged, and a note."""
_Interval = tuple[float, float, float]
"""Estimate, low and high."""


def _chosen_cut(held: HeldOutPredictions, proba: list[np.ndarray], rule: str, least: float) -> _Cut:
    """Return the highest threshold with a sensitivity, or the lowest with a specificity.

    It is chosen over all repeats together, and for the people of a fold on the other folds.
    """
    if not 0 < least <= 1:
        raise InputError(f"A {rule} must lie above 0 and up to 1, but got {least!r}.")
    side = 1 if rule == "sensitivity" else 0
    on_side = [p.truth == side for _, p in held.repeats]
    both = zip(proba, on_side, strict=True)
    threshold = _threshold_with_share(np.concatenate([p[at] for p, at in both]), side, least)
    judged_at = []
    for p, at, fold in zip(proba, on_side, held.folds, strict=True):
        cuts = np.full(len(p), np.nan)
        for name in np.unique(fold):
            others = p[at & (fold != name)]
            if not len(others):
                return threshold, f"{rule} {least:g}", threshold, SAME_PEOPLE
            cuts[fold == name] = _threshold_with_share(others, side, least)
        judged_at.append(cuts)
    return threshold, f"{rule} {least:g}", judged_at, ""


def _threshold_with_share(proba: np.ndarray, side: int, share: float) -> float:
    """Return the threshold at which a share of cases (or controls) is on the right side."""
    proba = np.sort(proba)
    # So many people may lie on the wrong side; rounding must not add or take one.
    if side:
        return float(proba[int(len(proba) * (1 - share) + 1e-9)])
    return float(np.nextafter(proba[int(np.ceil(len(proba) * share - 1e-9)) - 1], 2.0))


def _rates(
    held: HeldOutPredictions,
    boot: Bootstrap,
    proba: list[np.ndarray],
    thresholds: float | list[np.ndarray],
) -> tuple[float, float, float, float]:
    """Return sensitivity, false-positive rate and the numbers of cases and controls of a test.

    Each person is judged by a threshold, which may differ between persons.
    """
    if not isinstance(thresholds, list):
        thresholds = [np.full(len(p), thresholds) for p in proba]
    judged = [
        (rows, replace(p, label=(value >= cuts).astype(np.intp)))
        for (rows, p), value, cuts in zip(held.repeats, proba, thresholds, strict=True)
    ]

    def rates(p: Predicted, weights: np.ndarray) -> np.ndarray:
        both = positive_rates(p.label, p.truth == 1, np.array([HALF]), weights)[:2]
        return np.concatenate(both, axis=1)

    case = held.truth[held.members] == 1
    if len(held.repeats) == 1 and held.n_units == len(case):
        estimate = rates(judged[0][1], np.ones((1, len(case))))[0]
        counts = [float(case.sum()), float((~case).sum())]
    else:
        draws = replace(held, repeats=judged).draw(boot, rates)
        estimate, counts = draws.estimate, _effective_counts(held, draws, case)
    return float(estimate[0]), float(estimate[1]), counts[0], counts[1]


def _measures(
    sensitivity: float,
    false_positive: float,
    n_case: float,
    n_control: float,
    level: float,
    share: float,
    share_variance: float,
) -> dict[str, _Interval]:
    """Return all measures for a share of cases and the variance of its log odds."""
    z = float(ndtri(0.5 + level / 2))

    def of_share(rate: float, count: float) -> _Interval:
        low, high = wilson(np.asarray(rate), np.asarray(count), level)
        return rate, float(low), float(high)

    measures = {
        "sensitivity": of_share(sensitivity, n_case),
        "specificity": of_share(1 - false_positive, n_control),
    }
    odds = logit(share)
    for ratio, value, case_rate, control_rate in (
        ("lr_positive", "ppv", sensitivity, false_positive),
        ("lr_negative", "npv", 1 - sensitivity, 1 - false_positive),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = float(np.divide(case_rate, control_rate))
            middle = float(expit(odds + np.log(estimate)))
        centre, variance = _log_ratio(case_rate, control_rate, n_case, n_control)
        half = z * np.sqrt(variance)
        measures[ratio] = _containing(estimate, np.exp(centre - half), np.exp(centre + half))
        # Predictive values are the odds of a case moved by the likelihood ratio.
        half = z * np.sqrt(variance + share_variance)
        low, high = expit(odds + centre - half), expit(odds + centre + half)
        if value == "npv":
            middle, low, high = 1 - middle, 1 - high, 1 - low
        measures[value] = _containing(middle, low, high)
    if sensitivity > 0:
        per = sensitivity * share
        variance = (1 - sensitivity) / (sensitivity * n_case) + (1 - share) ** 2 * share_variance
        factor = float(np.exp(z * np.sqrt(variance)))
        tests = (1 / per, max(1.0, 1 / (per * factor)), factor / per)
    else:
        tests = (float("inf"), 1 / (of_share(0.0, n_case)[2] * share), float("inf"))
    measures["number_needed_to_test"] = tests
    # Per case found: one over the predictive value, so that its ends change places.
    estimate, low, high = (1.0 / v if v != 0 else float("inf") for v in measures["ppv"])
    measures["number_needed_to_evaluate"] = (estimate, high, low)
    return measures


def _log_ratio(
    case_rate: float, control_rate: float, n_case: float, n_control: float
) -> tuple[float, float]:
    """Return the logarithm of a likelihood ratio and its variance.

    Half a person is added to each cell where one is empty, as for odds ratios.
    """
    n, m = n_case, n_control
    hits, alarms = case_rate * n, control_rate * m
    if min(hits, alarms, n - hits, m - alarms) <= 0:
        hits, alarms, n, m = hits + 0.5, alarms + 0.5, n + 1, m + 1
    variance = 1 / hits - 1 / n + 1 / alarms - 1 / m
    return float(np.log(hits / n) - np.log(alarms / m)), max(variance, 0.0)


def _effective_counts(held: HeldOutPredictions, draws: Draws, case: np.ndarray) -> list[float]:
    """Return how many independent cases and controls would leave rates as uncertain as they are.

    People of a group are not independent of each other. There are never more than people, and no
    more than groups where all test alike and the resamples say nothing.
    """
    units = held.units[held.members]
    counts = []
    for j, rows in enumerate((case, ~case)):
        rate, error = float(draws.estimate[j]), float(draws.error()[j])
        if 0 < rate < 1 and error > 0:
            counts.append(min(rate * (1 - rate) / error**2, float(rows.sum())))
        else:
            counts.append(float(len(np.unique(units[rows]))))
    return counts


def _containing(estimate: float, low: float, high: float) -> _Interval:
    """Return an interval that is widened, if needed, to contain the estimate."""
    if np.isnan(estimate):
        return estimate, estimate, estimate
    return estimate, min(float(low), estimate), max(float(high), estimate)
