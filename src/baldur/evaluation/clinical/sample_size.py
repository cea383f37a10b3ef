"""The people that a regression without penalty needs, by the criteria of Riley and colleagues."""

from __future__ import annotations

from bisect import bisect_left

import numpy as np
import pandas as pd
from scipy.special import log_expit, logit, ndtri, xlogy

from baldur.exceptions import InputError

# As Riley and colleagues recommend: coefficients shrunk by a tenth at most, R2 and the overall
# risk known to within 0.05, and the residual s.d. to within a tenth (which needs 234 degrees of
# freedom).
SHRINKAGE, MARGIN, RESIDUAL_DEGREES = 0.9, 0.05, 234


SAMPLE_SIZE_COLUMNS = ["criterion", "people", "meaning"]


def _check(parameters: int, r2: float, most: float) -> None:
    """Refuse numbers of parameters below 1, and an R2 that is not between 0 and its maximum."""
    if parameters < 1:
        raise InputError(f"parameters must be at least 1, but got {parameters!r}.")
    if not 0 < r2 < most:
        raise InputError(f"R2 must lie between 0 and {most:.3g} here, but got {r2!r}.")


def r2_of_auc(auc: float, prevalence: float) -> float:
    """Return the Cox-Snell R2 of a model with an AUC, if scores are normal with equal variances."""
    if not 0.5 < auc < 1 or not 0 < prevalence < 1:
        raise InputError(
            f"auc must lie between 0.5 and 1 and prevalence between 0 and 1, but got {auc!r} and "
            f"{prevalence!r}."
        )
    distance = np.sqrt(2) * ndtri(auc)  # Of the means of cases and controls, in s.d.
    # With these scores the log odds of a case are exactly linear in the score.
    x = np.linspace(-9, 9 + distance, 20_001)
    odds = logit(prevalence) + distance * x - distance**2 / 2
    cases, controls = prevalence * _density(x - distance), (1 - prevalence) * _density(x)
    step = x[1] - x[0]
    log_likelihood = step * np.sum(cases * log_expit(odds) + controls * log_expit(-odds))
    return float(1 - np.exp(2 * (_null_log_likelihood(prevalence) - log_likelihood)))


def _density(x: np.ndarray) -> np.ndarray:
    """Return the density of the standard normal distribution."""
    return np.asarray(np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi))


def _null_log_likelihood(prevalence: float) -> float:
    """Return the mean log-likelihood of a model that knows only the prevalence."""
    return float(xlogy(prevalence, prevalence) + xlogy(1 - prevalence, 1 - prevalence))


def minimum_people(parameters: int, prevalence: float, r2: float) -> pd.DataFrame:
    """Return the people that a logistic model with a Cox-Snell R2 needs, by each criterion."""
    most = float(1 - np.exp(2 * _null_log_likelihood(prevalence)))
    _check(parameters, r2, most)
    shrink = r2 / (r2 + MARGIN * most)
    rows = [
        ("shrinkage", _people_for_shrinkage(parameters, r2, SHRINKAGE),
         "coefficients shrunk by a tenth at most"),
        ("optimism", _people_for_shrinkage(parameters, r2, shrink),
         "R2 (as a share of its maximum) too high by 0.05 at most"),
        ("risk", (ndtri(0.975) / MARGIN) ** 2 * prevalence * (1 - prevalence),
         "the overall risk known to within 0.05"),
    ]  # fmt: skip
    return _sample_size_frame(rows)


def _people_for_shrinkage(parameters: int, r2: float, shrinkage: float) -> float:
    return float(parameters / ((shrinkage - 1) * np.log(1 - r2 / shrinkage)))


def minimum_people_regression(parameters: int, r2: float) -> pd.DataFrame:
    """Return the people that a linear model needs, by each criterion."""
    _check(parameters, r2, 1.0)
    rows = [
        ("shrinkage", _people_for_linear_shrinkage(parameters, r2),
         "coefficients shrunk by a tenth at most"),
        ("optimism", 1 + parameters * (1 - r2) / MARGIN, "R2 too high by 0.05 at most"),
        ("residual", RESIDUAL_DEGREES + parameters, "the residual s.d. known to within a tenth"),
    ]  # fmt: skip
    return _sample_size_frame(rows)


def _people_for_linear_shrinkage(parameters: int, r2: float) -> float:
    """Return the fewest people with whom a linear model is shrunk by a tenth at most."""

    def enough(n: int) -> bool:
        # The R2 in the training people that goes with an adjusted one of r2.
        apparent = (r2 * (n - parameters - 1) + parameters) / (n - 1)
        return bool(1 + (parameters - 2) / (n * np.log(1 - apparent)) >= SHRINKAGE)

    low, high = parameters + 2, 2 * (parameters + 2)
    while not enough(high):
        low, high = high, 2 * high
    return float(low + bisect_left(range(low, high), True, key=enough))


def _sample_size_frame(rows: list[tuple[str, float, str]]) -> pd.DataFrame:
    """Return the criteria with whole numbers of people, and a last row that meets all of them."""
    # A whole number that rounding lifted a hair is still that number.
    counted = [(name, int(np.ceil(people - 1e-9)), meaning) for name, people, meaning in rows]
    most = max(people for _, people, _ in counted)
    return pd.DataFrame([*counted, ("all", most, "all of these")], columns=SAMPLE_SIZE_COLUMNS)
