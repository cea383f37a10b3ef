"""Usefulness: net benefit over thresholds, and the probabilities for another prevalence.

The people of a case-control study say how often cases and controls test positive, but not how
common cases are. With `prevalence` the figures are those of a population with that share of cases:
probabilities are shifted by the difference of the log odds of the two shares, and cases and
controls are weighted anew.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack

import numpy as np
import pandas as pd
from scipy.special import expit, logit

from baldur.evaluation.clinical.bootstrap import Draws
from baldur.evaluation.clinical.held_out import (
    BootstrapOptions,
    HeldOutPredictions,
    Resampled,
    Statistic,
    resample,
)
from baldur.evaluation.clinical.logistic_fit import log_odds
from baldur.evaluation.metrics import Predicted
from baldur.exceptions import InputError

THRESHOLDS = np.round(np.arange(1, 100) / 100, 2)
TREAT_ALL, TREAT_NONE = "treat all", "treat none"
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
        they are: shift them first with `shift_prevalence` if they are for another share.
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
    # A resample without cases (or controls) has none to find (or to spare).
    found = np.where(share > 0, sensitivity * share, 0.0)
    spared = np.where(share < 1, false_positive * (1 - share), 0.0)
    return found - odds * spared


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


# -- on a predictions table ------------------------------------------------------------------


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
    predictions : DataFrame or Resampled
        As ``predictions.csv`` of a study with two classes; see `read_held_out` for the columns.
    prevalence : float, optional
        Share of cases in the population the test is meant for; default that of the predictions.
    shift : bool, default=True
        With `prevalence`: shift the probabilities to it as well. False where they are for that
        population already.
    thresholds : array of float
        Default 0.01 to 0.99.
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

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
    models = [model for model, held in sample.models.items() if not usable(held)]
    unknown = dict.fromkeys((*_GAIN, "test_tradeoff"), np.nan)

    def draw(model: str, *, everyone: bool) -> Draws:
        def benefit(p: Predicted, weights: np.ndarray) -> np.ndarray:
            held = sample.models[model]
            proba = np.ones(len(p.truth)) if everyone else shifted(held, p, prevalence, shift)
            return net_benefit(proba, p.truth == 1, points, prevalence=prevalence, weights=weights)

        return sample.draw(model, Statistic(benefit, {}))

    def rows(held: HeldOutPredictions) -> Iterator[dict[str, Any]]:
        if held.model not in models:
            return
        treat_all, draws = (draw(held.model, everyone=every) for every in (True, False))
        if held.model == models[0]:
            for name, default in (
                (TREAT_ALL, treat_all), (TREAT_NONE, treat_all.map(np.zeros_like)),
            ):  # fmt: skip
                columns = default.columns(_BENEFIT)
                yield {"threshold": points, **columns, **unknown, "model": name}
        gain = draws.minus(treat_all.map(lambda x: np.maximum(x, 0.0)))
        with np.errstate(divide="ignore"):
            tests = np.where(gain.estimate > 0, 1.0 / gain.estimate, np.nan)
        columns = {**draws.columns(_BENEFIT), **gain.columns(_GAIN), "test_tradeoff": tests}
        yield {"threshold": points, **columns}

    return sample.table(rows, ["model", "threshold", *_BENEFIT, *unknown])


def usable(held: HeldOutPredictions) -> str:
    """Return why a model has no figures at thresholds; an empty text if it has."""
    if len(held.classes) != 2:
        return "needs an outcome of two classes"
    return "" if held.has_proba else "needs probabilities, which this model does not give"


def shifted(
    held: HeldOutPredictions, p: Predicted, prevalence: float | None, shift: bool
) -> np.ndarray:
    """Return the probabilities of the positive class, for the prevalence asked for."""
    if p.proba is None:
        raise InputError(f"Model {held.model!r} has no probabilities.")
    if prevalence is None or not shift:
        return p.proba[:, 1]
    return shift_prevalence(p.proba[:, 1], held.share(1), prevalence)
