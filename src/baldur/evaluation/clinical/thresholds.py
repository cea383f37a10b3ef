"""Tests at a threshold: sensitivity, specificity, predictive values and likelihood ratios."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
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
            rates = _Rates.at(held, sample.boot, proba, judged_at)
            # The share of cases is uncertain unless it was stated.
            variance = 1 / rates.n_case + 1 / rates.n_control if prevalence is None else 0.0
            note = "; ".join(filter(None, (note, held.mark)))
            start = {"threshold": threshold, "rule": rule, "note": note}
            for measure, ends in rates.measures(share, variance).items():
                estimate, low, high = ends
                yield {
                    **start,
                    "measure": measure,
                    "estimate": [estimate],
                    "low": low,
                    "high": high,
                }

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
    for p, at, fold in zip(proba, on_side, held.folds or map(np.zeros_like, proba), strict=True):
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


@dataclass(frozen=True)
class _Rates:
    """Sensitivity and false-positive rate of a test, with the numbers of cases and controls."""

    sensitivity: float
    false_positive: float
    n_case: float
    n_control: float
    level: float

    @classmethod
    def at(
        cls,
        held: HeldOutPredictions,
        boot: Bootstrap,
        proba: list[np.ndarray],
        thresholds: float | list[np.ndarray],
    ) -> _Rates:
        """Judge each person by a threshold, which may differ between persons."""
        if not isinstance(thresholds, list):
            thresholds = [np.full(len(p), thresholds) for p in proba]
        judged = [
            (rows, replace(p, label=(value >= cuts).astype(np.intp)))
            for (rows, p), value, cuts in zip(held.repeats, proba, thresholds, strict=True)
        ]
        tests = replace(held, repeats=judged)

        def rates(p: Predicted, weights: np.ndarray) -> np.ndarray:
            both = positive_rates(p.label, p.truth == 1, np.array([HALF]), weights)[:2]
            return np.concatenate(both, axis=1)

        case = held.truth[held.members] == 1
        if len(held.repeats) == 1 and held.n_units == len(case):
            estimate = rates(judged[0][1], np.ones((1, len(case))))[0]
            counts = [float(case.sum()), float((~case).sum())]
        else:
            draws = tests.draw(boot, rates)
            estimate, counts = draws.estimate, _effective_counts(held, draws, case)
        sensitivity, false_positive = (float(rate) for rate in estimate)
        n_case, n_control = counts
        return cls(sensitivity, false_positive, n_case, n_control, boot.level)

    @property
    def _z(self) -> float:
        return float(ndtri(0.5 + self.level / 2))

    def measures(self, share: float, share_variance: float) -> dict[str, _Interval]:
        """Return all measures for a share of cases and the variance of its log odds."""
        se, fp = self.sensitivity, self.false_positive
        rows = {
            "sensitivity": (se, *self._wilson(se, self.n_case)),
            "specificity": (1 - fp, *self._wilson(1 - fp, self.n_control)),
        }
        odds = logit(share)
        for ratio, value, case_rate, control_rate in (
            ("lr_positive", "ppv", se, fp),
            ("lr_negative", "npv", 1 - se, 1 - fp),
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                estimate = float(np.divide(case_rate, control_rate))
                middle = float(expit(odds + np.log(estimate)))
            centre, variance = self._log_ratio(case_rate, control_rate)
            half = self._z * np.sqrt(variance)
            rows[ratio] = _containing(estimate, np.exp(centre - half), np.exp(centre + half))
            # Predictive values are the odds of a case moved by the likelihood ratio.
            half = self._z * np.sqrt(variance + share_variance)
            low, high = expit(odds + centre - half), expit(odds + centre + half)
            if value == "npv":
                middle, low, high = 1 - middle, 1 - high, 1 - low
            rows[value] = _containing(middle, low, high)
        rows["number_needed_to_test"] = self._tests_per_case(share, share_variance)
        # Per case found: one over the predictive value, so that its ends change places.
        ppv, low, high = (float(v) for v in rows["ppv"])
        rows["number_needed_to_evaluate"] = (_inverse(ppv), _inverse(high), _inverse(low))
        return rows

    def _wilson(self, rate: float, count: float) -> tuple[float, float]:
        low, high = wilson(np.asarray(rate), np.asarray(count), self.level)
        return float(low), float(high)

    def _log_ratio(self, case_rate: float, control_rate: float) -> tuple[float, float]:
        """Return the logarithm of a likelihood ratio and its variance.

        Half a person is added to each cell where one is empty, as for odds ratios.
        """
        n, m = self.n_case, self.n_control
        hits, alarms = case_rate * n, control_rate * m
        if min(hits, alarms, n - hits, m - alarms) <= 0:
            hits, alarms, n, m = hits + 0.5, alarms + 0.5, n + 1, m + 1
        variance = 1 / hits - 1 / n + 1 / alarms - 1 / m
        return float(np.log(hits / n) - np.log(alarms / m)), max(variance, 0.0)

    def _tests_per_case(self, share: float, share_variance: float) -> _Interval:
        if self.sensitivity <= 0:
            most = self._wilson(0.0, self.n_case)[1]
            return float("inf"), 1 / (most * share), float("inf")
        per = self.sensitivity * share
        variance = (1 - self.sensitivity) / (self.sensitivity * self.n_case)
        variance += (1 - share) ** 2 * share_variance
        factor = float(np.exp(self._z * np.sqrt(variance)))
        return 1 / per, max(1.0, 1 / (per * factor)), factor / per


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


def _inverse(value: float) -> float:
    return float(np.divide(1.0, value)) if value != 0 else float("inf")
