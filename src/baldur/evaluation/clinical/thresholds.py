"""Tests at a threshold: sensitivity, specificity, predictive values and likelihood ratios."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Unpack

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from scipy.stats import norm

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
    asked = [HALF] if thresholds is None else thresholds
    stated = check_thresholds(asked) if len(asked) else np.zeros(0)
    rows: list[tuple[object, ...]] = []
    for model, one in sample.models.items():
        if usable(one):
            continue
        share = _prevalence(one) if prevalence is None else prevalence
        cuts = [_Cut.same(one, float(t), "stated") for t in stated]
        if thresholds is None:
            cuts.append(_Cut.same(one, share, "prevalence"))
        for rule, values in (("sensitivity", sensitivities), ("specificity", specificities)):
            cuts += [_chosen(one, rule, wanted, prevalence, shift) for wanted in values]
        for cut in cuts:
            note = "; ".join(filter(None, (cut.note, one.mark)))
            for measure, value, low, high in _at(one, sample.boot, cut, prevalence, shift):
                rows.append((model, cut.threshold, cut.rule, measure, value, low, high, note))
    return pd.DataFrame(rows, columns=COLUMNS)


@dataclass(frozen=True)
class _Cut:
    """A threshold, why it is used, and the thresholds at which each repeat's people are judged."""

    threshold: float
    rule: str
    per_repeat: list[np.ndarray]
    note: str = ""

    @classmethod
    def same(cls, held: HeldOutPredictions, threshold: float, rule: str, note: str = "") -> _Cut:
        """Return a cut that is the same for everybody."""
        each = [np.full(len(rows), threshold) for rows, _ in held.repeats]
        return cls(threshold, rule, each, note)


def _prevalence(held: HeldOutPredictions) -> float:
    """Return the share of cases among the people who were predicted."""
    return float(np.mean(held.truth[held.members] == 1))


def _chosen(
    held: HeldOutPredictions, rule: str, wanted: float, prevalence: float | None, shift: bool
) -> _Cut:
    """Return the highest threshold with a sensitivity, or the lowest with a specificity.

    It is chosen over all repeats together, and for the people of a fold on the other folds.
    """
    if not 0 < wanted <= 1:
        raise InputError(f"A {rule} must lie above 0 and up to 1, but got {wanted!r}.")
    side = 1 if rule == "sensitivity" else 0
    predicted = [shifted(held, p, prevalence, shift) for _, p in held.repeats]
    of_side = [p.truth == side for _, p in held.repeats]
    both = zip(predicted, of_side, strict=True)
    threshold = _reaching(np.concatenate([p[at] for p, at in both]), side, wanted)
    name = f"{rule} {wanted:g}"
    folds = held.folds or [np.zeros(len(p)) for p in predicted]
    each = []
    for p, at, fold in zip(predicted, of_side, folds, strict=True):
        cuts = np.full(len(p), np.nan)
        for one in np.unique(fold):
            others = p[at & (fold != one)]
            if not len(others):
                return _Cut.same(held, threshold, name, SAME_PEOPLE)
            cuts[fold == one] = _reaching(others, side, wanted)
        each.append(cuts)
    return _Cut(threshold, name, each)


def _reaching(predicted: np.ndarray, side: int, wanted: float) -> float:
    """Return the threshold at which a share of cases (controls) is on the right side."""
    predicted = np.sort(predicted)
    # So many people may lie on the wrong side; rounding must not add or take one.
    if side:
        return float(predicted[int(len(predicted) * (1 - wanted) + 1e-9)])
    return float(np.nextafter(predicted[int(np.ceil(len(predicted) * wanted - 1e-9)) - 1], 2.0))


def _at(
    held: HeldOutPredictions,
    boot: Bootstrap,
    cut: _Cut,
    prevalence: float | None,
    shift: bool,
) -> list[tuple[str, float, float, float]]:
    """Return measure, estimate, low and high of a test at one threshold."""
    judged = []
    for (rows, p), cuts in zip(held.repeats, cut.per_repeat, strict=True):
        positive = shifted(held, p, prevalence, shift) >= cuts
        judged.append((rows, replace(p, label=positive.astype(np.intp))))
    tests = replace(held, repeats=judged)

    def rates(p: Predicted, weights: np.ndarray) -> np.ndarray:
        found = positive_rates(p.label, p.truth == 1, np.array([HALF]), weights)
        return np.concatenate(found[:2], axis=1)

    inside = held.members
    case = held.truth[inside] == 1
    alone = len(held.repeats) == 1 and held.n_units == len(case)
    if alone:
        sensitivity, alarm = (
            float(v) for v in rates(tests.repeats[0][1], np.ones((1, len(case))))[0]
        )
        n_case, n_control = float(case.sum()), float((~case).sum())
    else:
        draws = tests.draw(boot, rates)
        sensitivity, alarm = (float(v) for v in draws.estimate)
        n_case, n_control = _effective(held, draws, case)
    test = _Test(sensitivity, alarm, n_case, n_control, boot.level)
    own = prevalence is None
    share = float(case.mean()) if prevalence is None else prevalence
    return test.measures(share, 1 / n_case + 1 / n_control if own else 0.0)


def _effective(held: HeldOutPredictions, draws: Draws, case: np.ndarray) -> tuple[float, float]:
    """Return how many independent cases and controls would leave rates as uncertain as they are.

    People of a group are not independent of each other. There are never more than people, and no
    more than groups where all test alike and the resamples say nothing.
    """
    units = held.units[held.members]
    found = []
    for j, rows in enumerate((case, ~case)):
        rate, error = float(draws.estimate[j]), float(draws.error()[j])
        if 0 < rate < 1 and error > 0:
            found.append(min(rate * (1 - rate) / error**2, float(rows.sum())))
        else:
            found.append(float(len(np.unique(units[rows]))))
    return found[0], found[1]


@dataclass(frozen=True)
class _Test:
    """Sensitivity and specificity of a test, with the numbers of cases and controls."""

    sensitivity: float
    alarm: float
    n_case: float
    n_control: float
    level: float

    @property
    def _z(self) -> float:
        return float(norm.ppf(0.5 + self.level / 2))

    def measures(
        self, share: float, share_variance: float
    ) -> list[tuple[str, float, float, float]]:
        """Return all measures for a share of cases and the variance of its log odds."""
        se, fp = self.sensitivity, self.alarm
        rows: list[tuple[str, float, float, float]] = [
            ("sensitivity", se, *self._wilson(se, self.n_case)),
            ("specificity", 1 - fp, *self._wilson(1 - fp, self.n_control)),
        ]
        odds = logit(share)
        for ratio, value, case_rate, control_rate in (
            ("lr_positive", "ppv", se, fp),
            ("lr_negative", "npv", 1 - se, 1 - fp),
        ):
            with np.errstate(divide="ignore", invalid="ignore"):
                estimate = float(np.divide(case_rate, control_rate))
            centre, variance = self._log_ratio(case_rate, control_rate)
            half = self._z * np.sqrt(variance)
            rows.append(_holding(ratio, estimate, np.exp(centre - half), np.exp(centre + half)))
            # Predictive values are the odds of a case moved by the likelihood ratio.
            half = self._z * np.sqrt(variance + share_variance)
            low, high = expit(odds + centre - half), expit(odds + centre + half)
            with np.errstate(divide="ignore"):
                middle = float(expit(odds + np.log(estimate)))
            if value == "npv":
                middle, low, high = 1 - middle, 1 - high, 1 - low
            rows.append(_holding(value, middle, low, high))
        rows.append(self._tests_per_case(share, share_variance))
        # Per case found: one over the predictive value, so that its ends change places.
        _, ppv, low, high = next(r for r in rows if r[0] == "ppv")
        rows.append(("number_needed_to_evaluate", _inverse(ppv), _inverse(high), _inverse(low)))
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

    def _tests_per_case(
        self, share: float, share_variance: float
    ) -> tuple[str, float, float, float]:
        name = "number_needed_to_test"
        if self.sensitivity <= 0:
            most = self._wilson(0.0, self.n_case)[1]
            return name, float("inf"), 1 / (most * share), float("inf")
        per = self.sensitivity * share
        variance = (1 - self.sensitivity) / (self.sensitivity * self.n_case)
        variance += (1 - share) ** 2 * share_variance
        factor = float(np.exp(self._z * np.sqrt(variance)))
        return name, 1 / per, max(1.0, 1 / (per * factor)), factor / per


def _holding(
    name: str, estimate: float, low: float, high: float
) -> tuple[str, float, float, float]:
    """Return a row whose interval is widened, if needed, to contain the estimate."""
    if np.isnan(estimate):
        return name, estimate, estimate, estimate
    return name, estimate, min(float(low), estimate), max(float(high), estimate)


def _inverse(value: float) -> float:
    return float(np.divide(1.0, value)) if value != 0 else float("inf")
