"""How many people a regression model needs: the closed forms of Riley and colleagues.

They are about models that estimate every candidate parameter without a penalty. For models that
select or shrink they say how far a study is from the plain case, not how many people it needs; the
learning curve says that.

R. D. Riley et al., "Minimum sample size for developing a multivariable prediction model",
Statistics in Medicine 38 (2019), parts I (numbers) and II (two classes); "A note on estimating the
Cox-Snell R2 from a reported C statistic", ibid. 40 (2021).
"""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.special import log_expit, logit, xlogy
from scipy.stats import norm

from baldur.exceptions import InputError

# As the authors recommend: coefficients shrunk by a tenth at most, R2 and the overall risk known to
# within 0.05, and the residual s.d. to within a tenth (which needs 234 degrees of freedom).
SHRINKAGE, MARGIN, RESIDUAL_DEGREES = 0.9, 0.05, 234

COLUMNS = ["criterion", "people", "meaning"]


def _check(parameters: int, r2: float, most: float) -> None:
    if parameters < 1:
        raise InputError(f"parameters must be at least 1, but got {parameters!r}.")
    if not 0 < r2 < most:
        raise InputError(f"R2 must lie between 0 and {most:.3g} here, but got {r2!r}.")


def r2_of_auc(auc: float, prevalence: float) -> float:
    """Return the Cox-Snell R2 that goes with an AUC, for a normal score of one s.d. in each class.

    Examples
    --------
    >>> from baldur.evaluation.clinical import r2_of_auc
    >>> round(r2_of_auc(0.8, prevalence=0.3), 3)
    0.228
    """
    if not 0.5 < auc < 1 or not 0 < prevalence < 1:
        raise InputError(
            f"auc must lie between 0.5 and 1 and prevalence between 0 and 1, but got {auc!r} and "
            f"{prevalence!r}."
        )
    distance = np.sqrt(2) * norm.ppf(auc)
    # With these scores the log odds of a case are exactly linear in the score.
    x = np.linspace(-9, 9 + distance, 20_001)
    odds = logit(prevalence) + distance * x - distance**2 / 2
    cases, controls = prevalence * norm.pdf(x - distance), (1 - prevalence) * norm.pdf(x)
    step = x[1] - x[0]
    fit = step * np.sum(cases * log_expit(odds) + controls * log_expit(-odds))
    return float(1 - np.exp(2 * (_null(prevalence) - fit)))


def _null(prevalence: float) -> float:
    """Return the mean log-likelihood of a model that knows only the prevalence."""
    return float(xlogy(prevalence, prevalence) + xlogy(1 - prevalence, 1 - prevalence))


def minimum_people(
    parameters: int, prevalence: float, *, auc: float | None = None, r2: float | None = None
) -> pd.DataFrame:
    """Give the people a logistic model needs, by each criterion.

    Examples
    --------
    >>> from baldur.evaluation.clinical.sample_size import minimum_people
    >>> found = minimum_people(parameters=20, prevalence=0.3, auc=0.8)
    >>> found.set_index("criterion")["people"].to_dict()
    {'shrinkage': 686, 'optimism': 489, 'risk': 323, 'all': 686}
    """
    if (auc is None) == (r2 is None):
        raise InputError("Give either auc or r2.")
    found = r2_of_auc(auc, prevalence) if auc is not None else float(r2 or 0.0)
    most = float(1 - np.exp(2 * _null(prevalence)))
    _check(parameters, found, most)
    shrink = found / (found + MARGIN * most)
    rows = [
        ("shrinkage", _for_shrinkage(parameters, found, SHRINKAGE),
         "coefficients shrunk by a tenth at most"),
        ("optimism", _for_shrinkage(parameters, found, shrink),
         "R2 (as a share of its maximum) too high by 0.05 at most"),
        ("risk", (norm.ppf(0.975) / MARGIN) ** 2 * prevalence * (1 - prevalence),
         "the overall risk known to within 0.05"),
    ]  # fmt: skip
    return _frame(rows)


def _for_shrinkage(parameters: int, r2: float, shrinkage: float) -> float:
    return float(parameters / ((shrinkage - 1) * np.log(1 - r2 / shrinkage)))


def minimum_people_regression(parameters: int, r2: float) -> pd.DataFrame:
    """Give the people a linear model needs, by each criterion.

    Examples
    --------
    >>> from baldur.evaluation.clinical.sample_size import minimum_people_regression
    >>> found = minimum_people_regression(parameters=20, r2=0.3)
    >>> found.set_index("criterion")["people"].to_dict()
    {'shrinkage': 448, 'optimism': 281, 'residual': 254, 'all': 448}
    """
    _check(parameters, r2, 1.0)
    rows = [
        ("shrinkage", _linear_shrinkage(parameters, r2), "coefficients shrunk by a tenth at most"),
        ("optimism", 1 + parameters * (1 - r2) / MARGIN, "R2 too high by 0.05 at most"),
        ("residual", RESIDUAL_DEGREES + parameters, "the residual s.d. known to within a tenth"),
    ]
    return _frame(rows)


def _linear_shrinkage(parameters: int, r2: float) -> float:
    """Return the fewest people with the shrinkage asked for, by halving."""

    def enough(n: int) -> bool:
        apparent = (r2 * (n - parameters - 1) + parameters) / (n - 1)
        return bool(1 + (parameters - 2) / (n * np.log(1 - apparent)) >= SHRINKAGE)

    low, high = parameters + 2, 2 * (parameters + 2)
    while not enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle, high)
    return float(low if enough(low) else high)


def _frame(rows: list[tuple[str, float, str]]) -> pd.DataFrame:
    # A whole number that rounding lifted a hair is still that number.
    counted = [(name, int(np.ceil(people - 1e-9)), meaning) for name, people, meaning in rows]
    most = max(people for _, people, _ in counted)
    return pd.DataFrame([*counted, ("all", most, "all of these")], columns=COLUMNS)
