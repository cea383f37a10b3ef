"""The smallest increase that a study would show with a probability of 80 %.

An increase is shown if the interval of the paired difference lies above 0, so it is detected with
the stated power if it is as large as the sum of two quantiles times the standard error of the
difference. The standard error depends on the increase itself: two models that hardly differ have
almost the same predictions and a tiny standard error, which says nothing about a view that would
change them. The standard error of the observed difference is therefore only a lower bound. The
other is that of two ideal rules, of which the second has the increase through information that is
independent of the first. The larger of the two increases is returned.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtr, ndtri
from scipy.stats import t as student

POWER = 0.8
"""Probability with which a detectable increase is shown; the usual choice of sample sizes."""

_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(60)
_WEIGHTS = _WEIGHTS / _WEIGHTS.sum()
_TINY = 1e-6


def quantiles(units: int, level: float) -> float:
    """Return how many standard errors an increase has to be to be shown with the power."""
    degrees = max(units - 1, 1)
    return float(student.ppf(0.5 + level / 2, degrees) + student.ppf(POWER, degrees))


def auc_error(auc: float, increase: float, n_case: float, n_control: float) -> float:
    """Return the standard error of the difference of two AUCs, the second larger by an increase.

    Scores of cases and controls are normal with equal variances. The second score adds independent
    information to the first in the best way, so that the correlation of the two is the ratio of
    their standardised distances between cases and controls.
    """
    first, second = (np.sqrt(2) * ndtri(max(a, 0.5)) for a in (auc, auc + increase))
    correlation = min(first / second, 1.0) if second > 0 else 1.0
    # The share of controls below a case, of one score and of the other.
    z, e = _NODES[:, None], _NODES[None, :]
    weight = _WEIGHTS[:, None] * _WEIGHTS[None, :]
    other = correlation * z + np.sqrt(1 - correlation**2) * e
    change = ndtr(second + other) - ndtr(first + z)
    mean = float((weight * change).sum())
    variance = float((weight * (change - mean) ** 2).sum())
    return float(np.sqrt(variance * (1 / n_case + 1 / n_control)))


def r2_error(r2: float, increase: float, people: float) -> float:
    """Return the standard error of the difference of two R2, the second larger by an increase.

    The errors of the first prediction are those of the second and an independent normal part,
    whose variance is the increase.
    """
    left = max(1 - r2 - increase, 0.0)
    return float(np.sqrt((4 * left * increase + 2 * increase**2) / people))


def detectable_auc(
    auc: float, n_case: float, n_control: float, error: float, units: int, level: float
) -> float:
    """Return the smallest increase of an AUC that would be shown with the power."""
    start = max(auc, 0.5)
    return _smallest(
        lambda d: auc_error(start, d, n_case, n_control), 1 - start, error, quantiles(units, level)
    )


def detectable_r2(r2: float, people: float, error: float, units: int, level: float) -> float:
    """Return the smallest increase of R2 that would be shown with the power."""
    start = max(r2, 0.0)
    return _smallest(
        lambda d: r2_error(start, d, people), 1 - start, error, quantiles(units, level)
    )


def _smallest(
    error_at: Callable[[float], float], room: float, error: float, factor: float
) -> float:
    """Return the smallest increase that is `factor` times its standard error, up to `room`."""
    if not (np.isfinite(error) and np.isfinite(room)) or room <= 2 * _TINY:
        return float("nan")

    def beyond(increase: float) -> float:
        return increase - factor * error_at(increase)

    low, high = _TINY, room - _TINY
    if beyond(high) < 0:
        return float("nan")
    ideal = low if beyond(low) >= 0 else float(brentq(beyond, low, high, xtol=1e-5))
    found = max(ideal, factor * error)
    return found if found <= room else float("nan")
