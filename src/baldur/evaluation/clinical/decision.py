"""Tests at thresholds: net benefit, sensitivity, specificity, predictive values and more.

The people of a case-control study say how often cases and controls test positive, but not how
common cases are. With `prevalence` the figures are those of a population with that share of cases:
probabilities are shifted by the difference of the log odds of the two shares, and cases and
controls are weighted anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.special import expit, logit, ndtri

from baldur.evaluation.clinical.bootstrap_intervals import Draws, wilson
from baldur.evaluation.clinical.calibration import log_odds, pairs
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    Statistic,
    resample,
)
from baldur.evaluation.metrics import Predicted
from baldur.exceptions import InputError

THRESHOLDS = np.round(np.arange(1, 100) / 100, 2)
TREAT_ALL, TREAT_NONE = "treat all", "treat none"
HALF = 0.5
"""The threshold of `predict`; reported by default beside the share of cases."""
SAME_PEOPLE = "chosen on the same people, which is optimistic"
"""Note on a threshold that could not be chosen on other folds."""
_BENEFIT, _GAIN = ("net_benefit", "low", "high"), ("gain", "gain_low", "gain_high")

# -- on arrays -------------------------------------------------------------------------------


def shift_prevalence(proba: np.ndarray, from_: float, to: float) -> np.ndarray:
    """Return probabilities for a population with another share of cases (of `to`, not `from_`)."""
    return expit(log_odds(np.asarray(proba, dtype=float)) + logit(to) - logit(from_))


def positive_rates(
    proba: np.ndarray, truth: np.ndarray, thresholds: np.ndarray, weights: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return sensitivity and false-positive rate at each threshold, and the share of cases.

    Shapes: proba, truth (n,), thresholds (t,), weights (k, n); returns sensitivity,
    false_positive_rate (k, t), share (k, 1).
    """
    positive = (proba[:, None] >= thresholds).astype(float)
    case = np.asarray(truth, dtype=float)
    n_case = (weights @ case)[:, None]
    n_control = (weights @ (1 - case))[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):
        sensitivity = weights @ (positive * case[:, None]) / n_case
        false_positive = weights @ (positive * (1 - case)[:, None]) / n_control
    return sensitivity, false_positive, n_case / (n_case + n_control)


def net_benefit(
    proba: np.ndarray,
    truth: np.ndarray,
    thresholds: np.ndarray,
    *,
    prevalence: float | None = None,
    weights: np.ndarray | None = None,
) -> np.ndarray:
    """Return the net benefit of treating those at or above each threshold.

    Cases found minus controls treated, the latter weighted by the odds of the threshold, both as
    shares of all people.

    Parameters
    ----------
    proba, truth : array of shape (n,)
        Probabilities, and 0 or 1.
    thresholds : array of shape (t,)
        Above 0 and below 1.
    prevalence : float, optional
        Share of cases to weight them by; default that of the rows. Probabilities are taken as
        they are; `decision_curves` shifts those for another share.
    weights : array of shape (k, n), optional
        How often each row counts, for k resamples; default once.

    Returns
    -------
    array of shape (k, t)

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation import net_benefit
    >>> truth = np.array([0, 0, 0, 1, 0, 1, 1, 1])
    >>> proba = np.array([0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9])
    >>> net_benefit(proba, truth, np.array([0.2, 0.5])).round(3).tolist()
    [[0.406, 0.25]]
    """
    weights = np.ones((1, len(truth))) if weights is None else weights
    thresholds = check_thresholds(thresholds)
    sensitivity, false_positive, share = positive_rates(proba, truth, thresholds, weights)
    share = share if prevalence is None else np.full_like(share, prevalence)
    odds = thresholds / (1 - thresholds)
    # A resample without cases (or controls) has none to find (or to treat).
    cases_found = np.where(share > 0, sensitivity * share, 0.0)
    controls_treated = np.where(share < 1, false_positive * (1 - share), 0.0)
    return cases_found - odds * controls_treated


def check_thresholds(thresholds: Sequence[float] | np.ndarray) -> np.ndarray:
    """Return thresholds as an array; refuse values that are not between 0 and 1."""
    points = np.atleast_1d(np.asarray(thresholds, dtype=float))
    wrong = points[~((points > 0) & (points < 1))]
    if len(wrong):
        raise InputError(f"A threshold must lie between 0 and 1, but got {wrong[0]:g}.")
    return points


def check_prevalence(prevalence: float | None) -> None:
    """Refuse a prevalence that is not between 0 and 1."""
    if prevalence is not None and not 0 < prevalence < 1:
        raise InputError(f"prevalence must lie between 0 and 1, but got {prevalence!r}.")


# -- net benefit -----------------------------------------------------------------------------


def decision_curves(
    predictions: pd.DataFrame | Resampled,
    *,
    prevalence: float | None = None,
    shift: bool = True,
    thresholds: Sequence[float] | np.ndarray = THRESHOLDS,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give the net benefit of every model, of treating all and of treating none.

    Parameters
    ----------
    predictions : DataFrame
        As in `evaluate_predictions`, of two classes.
    prevalence : float, optional
        Share of cases in the population the test is meant for; default that of the predictions.
    shift : bool, default=True
        With `prevalence`: shift the probabilities to it as well. False where they are for that
        population already.
    thresholds : array of float
        Default 0.01 to 0.99.
    **bootstrap
        As in `evaluate_predictions`.

    Returns
    -------
    DataFrame
        model, threshold, net_benefit, low, high; gain over the better of treating all and none,
        with gain_low and gain_high; and test_tradeoff, how many people are tested for one more
        case found at no cost in controls treated (1 / gain, where there is a gain).

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import decision_curves
    >>> table = pd.DataFrame({"label": ["no", "no", "no", "yes", "yes"] * 20,
    ...                       "p_yes": [0.1, 0.3, 0.8, 0.7, 0.9] * 20})
    >>> curves = decision_curves(table, thresholds=[0.5])
    >>> curves.set_index("model")["net_benefit"].round(2).to_dict()
    {'treat all': -0.2, 'treat none': 0.0, 'model': 0.2}
    """
    sample = resample(predictions, **bootstrap)
    points = check_thresholds(thresholds)
    check_prevalence(prevalence)
    benefit = net_benefit_at(points, prevalence)
    models = [model for model, held in sample.models.items() if not why_unusable(held)]

    def everyone(p: Predicted, weights: np.ndarray) -> np.ndarray:
        return benefit(replace(p, proba=np.ones((len(p.truth), 2))), weights)

    def rows(held: HeldOutPredictions) -> Iterator[dict[str, Any]]:
        if held.model not in models:
            return
        treat_all = sample.draw(Statistic(held, everyone))
        if held.model == models[0]:
            treat_none = treat_all.map(np.zeros_like)
            for name, default in ((TREAT_ALL, treat_all), (TREAT_NONE, treat_none)):
                yield {"model": name, "threshold": points, **default.columns(*_BENEFIT)}
        draws = sample.draw(Statistic(for_population(held, prevalence, shift), benefit))
        gain = draws.minus(treat_all.map(lambda x: np.maximum(x, 0.0)))
        with np.errstate(divide="ignore"):
            tests = np.where(gain.estimate > 0, 1.0 / gain.estimate, np.nan)
        columns = {**draws.columns(*_BENEFIT), **gain.columns(*_GAIN), "test_tradeoff": tests}
        yield {"model": held.model, "threshold": points, **columns}

    return sample.table(rows, ["model", "threshold", *_BENEFIT, *_GAIN, "test_tradeoff"])


def net_benefit_at(
    thresholds: np.ndarray, prevalence: float | None
) -> Callable[[Predicted, np.ndarray], np.ndarray]:
    """Return the net benefit at some thresholds as a function of predictions and weights."""

    def benefit(p: Predicted, weights: np.ndarray) -> np.ndarray:
        return net_benefit(*pairs(p, 1), thresholds, prevalence=prevalence, weights=weights)

    return benefit


def for_population(
    held: HeldOutPredictions, prevalence: float | None, shift: bool = True
) -> HeldOutPredictions:
    """Return predictions with probabilities for a population with another share of cases.

    They are shifted from the share of cases among all people, whom models were trained on.
    """
    if prevalence is None or not shift or why_unusable(held):
        return held
    positive = shift_prevalence(pairs(held.predicted, 1)[0], held.share(1), prevalence)
    proba = np.column_stack([1 - positive, positive])
    return replace(held, predicted=replace(held.predicted, proba=proba))


def why_unusable(held: HeldOutPredictions) -> str:
    """Return why a model has no figures at thresholds; an empty text if it has."""
    if len(held.classes) != 2:
        return "needs an outcome of two classes"
    return "" if held.predicted.has_proba else "needs probabilities, which this model does not give"


# -- sensitivity, specificity and predictive values ---------------------------------------------


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
    predictions : DataFrame
        As in `evaluate_predictions`, of two classes.
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
        As in `evaluate_predictions`.

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
    wanted = [("sensitivity", v) for v in sensitivities]
    wanted += [("specificity", v) for v in specificities]

    def rows(held: HeldOutPredictions) -> Iterator[dict[str, Any]]:
        if why_unusable(held):
            return
        share = held.share(1) if prevalence is None else prevalence
        held = for_population(held, prevalence, shift)
        cuts: list[Cut] = [(at, "stated", at, "") for at in stated.tolist()]
        if thresholds is None:
            cuts.append((share, "prevalence", share, ""))
        cuts += [_chosen_cut(held, rule, least) for rule, least in wanted]
        for threshold, rule, judged_at, note in cuts:
            sensitivity, false_positive, n_case, n_control = _rates(sample, held, judged_at)
            # The share of cases is uncertain unless it was stated; this is for its log odds.
            variance = 1 / n_case + 1 / n_control if prevalence is None else 0.0
            measures = _measures(
                sensitivity, false_positive, n_case, n_control, sample.boot.level, share, variance
            )
            estimate, low, high = map(list, zip(*measures.values(), strict=True))
            yield {
                "model": held.model, "threshold": threshold, "rule": rule,
                "measure": list(measures), "estimate": estimate, "low": low, "high": high,
                "note": "; ".join(filter(None, (note, held.mark))),
            }  # fmt: skip

    columns = ["model", "threshold", "rule", "measure", "estimate", "low", "high", "note"]
    return sample.table(rows, columns)


Cut = tuple[float, str, float | np.ndarray, str]
"""A threshold, its rule, the threshold at which rows are judged (or that of each), and a note."""


def _chosen_cut(held: HeldOutPredictions, rule: str, least: float) -> Cut:
    """Return the highest threshold with a sensitivity, or the lowest with a specificity.

    The threshold to report is chosen over all repeats together, that at which the people of a fold
    are judged on the other folds of the repeat.
    """
    if not 0 < least <= 1:
        raise InputError(f"A {rule} must lie above 0 and up to 1, but got {least!r}.")
    side = 1 if rule == "sensitivity" else 0
    rule = f"{rule} {least:g}"
    proba, on_side = pairs(held.predicted, 1)[0], held.predicted.truth == side
    threshold = _threshold_with_share(proba[on_side], side, least)
    judged_at = np.zeros(len(proba))
    for repeat, fold in set(zip(held.repeat.tolist(), held.fold.tolist(), strict=True)):
        in_repeat, in_fold = held.repeat == repeat, held.fold == fold
        others = proba[on_side & in_repeat & ~in_fold]
        if not len(others):
            return threshold, rule, threshold, SAME_PEOPLE
        judged_at[in_repeat & in_fold] = _threshold_with_share(others, side, least)
    return threshold, rule, judged_at, ""


def _threshold_with_share(proba: np.ndarray, side: int, share: float) -> float:
    """Return the threshold where a share of cases tests positive (side 1), of controls not (0)."""
    proba = np.sort(proba)
    # So many people may lie on the wrong side; rounding must not add or take one.
    if side:
        return float(proba[int(len(proba) * (1 - share) + 1e-9)])
    return float(np.nextafter(proba[int(np.ceil(len(proba) * share - 1e-9)) - 1], 2.0))


def _rates(
    sample: Resampled, held: HeldOutPredictions, threshold: float | np.ndarray
) -> tuple[float, float, float, float]:
    """Return sensitivity, false-positive rate and the numbers of cases and controls of a test."""
    positive = (pairs(held.predicted, 1)[0] >= threshold).astype(np.intp)
    judged = replace(held, predicted=replace(held.predicted, label=positive))

    def rates(p: Predicted, weights: np.ndarray) -> np.ndarray:
        # The label, 0 or 1, says who tests positive: any threshold between gives the same rates.
        both = positive_rates(p.label, p.truth == 1, np.array([HALF]), weights)[:2]
        return np.concatenate(both, axis=1)

    case = held.truth[held.members] == 1
    if len(held.repeats) == 1 and held.n_units == len(case):  # Independent people, each once
        estimate = rates(judged.predicted, np.ones((1, len(case))))[0]
        counts = [float(case.sum()), float((~case).sum())]
    else:
        draws = sample.draw(Statistic(judged, rates))
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
) -> dict[str, tuple[float, float, float]]:
    """Return estimate, low, high of each measure; `share_variance` is of the share's log odds."""
    z = float(ndtri(0.5 + level / 2))

    def with_wilson(rate: float, count: float) -> tuple[float, float, float]:
        low, high = wilson(np.asarray(rate), np.asarray(count), level)
        return rate, float(low), float(high)

    measures = {
        "sensitivity": with_wilson(sensitivity, n_case),
        "specificity": with_wilson(1 - false_positive, n_control),
    }
    odds = logit(share)
    for ratio, value, case_rate, control_rate in (
        ("lr_positive", "ppv", sensitivity, false_positive),
        ("lr_negative", "npv", 1 - sensitivity, 1 - false_positive),
    ):
        with np.errstate(divide="ignore", invalid="ignore"):
            estimate = float(np.divide(case_rate, control_rate))
            predictive = float(expit(odds + np.log(estimate)))
        centre, variance = _log_ratio(case_rate, control_rate, n_case, n_control)
        half = z * np.sqrt(variance)
        measures[ratio] = _containing(estimate, np.exp(centre - half), np.exp(centre + half))
        # Predictive values are the odds of a case moved by the likelihood ratio.
        half = z * np.sqrt(variance + share_variance)
        low, high = expit(odds + centre - half), expit(odds + centre + half)
        if value == "npv":
            predictive, low, high = 1 - predictive, 1 - high, 1 - low
        measures[value] = _containing(predictive, low, high)
    if sensitivity > 0:
        cases_per_test = sensitivity * share
        variance = (1 - sensitivity) / (sensitivity * n_case) + (1 - share) ** 2 * share_variance
        factor = float(np.exp(z * np.sqrt(variance)))
        low, high = max(1.0, 1 / (cases_per_test * factor)), factor / cases_per_test
        tests = (1 / cases_per_test, low, high)
    else:
        tests = (float("inf"), 1 / (with_wilson(0.0, n_case)[2] * share), float("inf"))
    measures["number_needed_to_test"] = tests
    # Per case found: one over the predictive value, so that its ends change places.
    estimate, low, high = (1.0 / v if v != 0 else float("inf") for v in measures["ppv"])
    measures["number_needed_to_evaluate"] = (estimate, high, low)
    return measures


def _log_ratio(
    case_rate: float, control_rate: float, n_case: float, n_control: float
) -> tuple[float, float]:
    """Return the logarithm of the likelihood ratio of a test result, and its variance.

    The rates are those of the result. Half a person is added to each cell of the table of cases
    and controls with and without it where a cell is empty, as for odds ratios.
    """
    n, m = n_case, n_control
    cases, controls = case_rate * n, control_rate * m
    if min(cases, controls, n - cases, m - controls) <= 0:
        cases, controls, n, m = cases + 0.5, controls + 0.5, n + 1, m + 1
    variance = 1 / cases - 1 / n + 1 / controls - 1 / m
    return float(np.log(cases / n) - np.log(controls / m)), max(variance, 0.0)


def _effective_counts(held: HeldOutPredictions, draws: Draws, case: np.ndarray) -> list[float]:
    """Return how many independent cases and controls would leave rates as uncertain as they are.

    People of a group are not independent of each other. There are never more than people, and no
    more than groups where all test alike and the resamples say nothing.
    """
    units = held.units[held.members]
    counts = []
    for j, rows in enumerate((case, ~case)):  # Draws are of sensitivity and false-positive rate
        rate, error = float(draws.estimate[j]), float(draws.error()[j])
        if 0 < rate < 1 and error > 0:
            counts.append(min(rate * (1 - rate) / error**2, float(rows.sum())))
        else:
            counts.append(float(len(np.unique(units[rows]))))
    return counts


def _containing(estimate: float, low: float, high: float) -> tuple[float, float, float]:
    """Return an interval that is widened, if needed, to contain the estimate."""
    if np.isnan(estimate):
        return estimate, estimate, estimate
    return estimate, min(float(low), estimate), max(float(high), estimate)
