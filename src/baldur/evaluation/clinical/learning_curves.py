"""Learning curves: scores against the number of training people, and a power law through them.

The curve is score = a - b n^(-c) with b at least zero and a no better than perfect (signs turned
where less is better), fitted to the scores of every resample of people; its band is that of the
fitted curves. The band includes the choice of the test people and the uncertainty of the curve. It
does not include the choice of the training people, nor that the true curve may not be a power law.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Unpack

import numpy as np
import pandas as pd
from scipy.special import log_expit, logit, xlogy
from scipy.stats import norm

from baldur.evaluation.clinical.bootstrap import Draws
from baldur.evaluation.clinical.held_out import BootstrapOptions, resample
from baldur.evaluation.clinical.metric_intervals import rows_behind, scale_of
from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError

# Exponents tried: theory gives 1/2 and 1; slower than 1/4 is no learning, faster than 2 is done.
EXPONENTS = np.arange(0.25, 2.001, 0.05)
MORE = (50, 100, 200)
"""How many more people the gain is given for."""

_POINTS = 41
_LEAST_SIZES = 3
COLUMNS = ["model", "metric", "people", "kind", "estimate", "low", "high"]


def power_law(coefficients: np.ndarray, people: np.ndarray) -> np.ndarray:
    """Return a - b n^(-c) of coefficients (..., 3) at some numbers of people, as (..., k)."""
    a, b, c = (coefficients[..., j, None] for j in range(3))
    return a - b * np.asarray(people, dtype=float) ** -c


def fit_power_law(
    people: np.ndarray, scores: np.ndarray, weights: np.ndarray, best: float
) -> np.ndarray:
    """Fit score = a - b n^(-c) with b >= 0 and a <= `best`, by least squares, to many curves.

    Shapes: people (k,), scores (m, k), weights (k,); returns (m, 3).
    """
    found = np.full((len(scores), 3), np.nan)
    least = np.full(len(scores), np.inf)
    w = weights / weights.sum()
    mean = scores @ w
    for c in EXPONENTS:
        x = people.astype(float) ** -c
        centre = x @ w
        spread = w @ (x - centre) ** 2
        b = -((scores - mean[:, None]) * (x - centre)) @ w / spread
        a = mean + b * centre
        # Where the best line breaks a bound, the best within bounds lies on it.
        over = a > best
        b = np.where(over, (best - scores) @ (w * x) / (w @ x**2), b)
        a = np.where(over, best, a)
        falls = b < 0
        b, a = np.where(falls, 0.0, b), np.where(falls, np.minimum(mean, best), a)
        misfit = ((scores - a[:, None] + b[:, None] * x) ** 2) @ w
        # A slower law has to fit better, not equally, so that ties go to the first exponent.
        better = misfit < least - 1e-15
        least = np.where(better, misfit, least)
        found[better] = np.column_stack([a, b, np.full(len(a), c)])[better]
    return found


def learning_curves(
    by_people: Mapping[float, pd.DataFrame],
    metric: str,
    *,
    more: Sequence[int] = MORE,
    **bootstrap: Unpack[BootstrapOptions],
) -> pd.DataFrame:
    """Give scores against training people, the curve through them, and what more people would add.

    Parameters
    ----------
    by_people : dict of float to DataFrame
        Number of training people (a mean over folds) to predictions of the same people after
        training on so many; at least three numbers.
    metric : str
        A key of `METRICS`.
    more : list of int
        Numbers of further people to give the gain of.
    **bootstrap
        classes, resamples, level and random_state, as in `Resampled`.

    Returns
    -------
    DataFrame
        model, metric, people, kind, estimate, low, high. The kind is "measured", "curve" (the
        fitted law, on to the largest number asked for) or "gain" (curve at `people` minus curve at
        the most people measured).

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.evaluation import learning_curves
    >>> tables = {n: pd.DataFrame({"model": "Ridge", "label": ["no", "yes"] * 50,
    ...                            "p_yes": [0.4, 0.6] * right + [0.6, 0.4] * (50 - right)})
    ...           for n, right in ((30, 30), (60, 36), (90, 38))}
    >>> found = learning_curves(tables, "accuracy", more=[60])
    >>> found.loc[found["kind"] == "gain", ["people", "estimate", "low", "high"]].round(2)
        people  estimate  low  high
    44   150.0      0.03  0.0  0.06
    """
    people = np.array(sorted(by_people), dtype=float)
    if len(people) < _LEAST_SIZES:
        raise InputError(
            f"A learning curve needs at least {_LEAST_SIZES} different training set sizes, but got "
            f"{len(people)}."
        )
    # One table, so that people have one number and the resamples are the same at every size.
    parts = [
        by_people[n].assign(model=by_people[n]["model"].astype(str) + f"\t{j}")
        for j, n in enumerate(people)
    ]
    table = pd.concat(parts, ignore_index=True)
    sample = resample(table, **bootstrap)
    held = sample.models
    better = METRICS[metric].greater_is_better
    sign, best = (1.0, 1.0) if better else (-1.0, 0.0)
    frames = []
    for model in dict.fromkeys(name.rsplit("\t", 1)[0] for name in held):
        names = [f"{model}\t{j}" for j in range(len(people))]
        if not all(name in held for name in names):
            continue
        draws = [sample.metric(name, metric) for name in names]
        if not all(np.isfinite(d.estimate) for d in draws):
            continue
        count = rows_behind(metric, held[names[-1]])
        ends = [d.interval(scale_of(metric), count) for d in draws]
        measured = {
            "estimate": [float(d.estimate) for d in draws],
            "low": [float(low) for low, _ in ends],
            "high": [float(high) for _, high in ends],
        }
        frames.append(_frame(model, metric, people, "measured", **measured))
        frames += _fitted(model, metric, people, draws, sign, best, sorted(more))
    return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)


def _fitted(
    model: str,
    metric: str,
    people: np.ndarray,
    draws: list[Draws],
    sign: float,
    best: float,
    more: Sequence[int],
) -> list[pd.DataFrame]:
    errors = np.array([float(d.error()) for d in draws])
    # A size where all resamples agree is no reason to ignore the others.
    floor = max(1e-3, float(np.nanmax(errors)) / 10)
    weights = 1 / np.maximum(np.nan_to_num(errors, nan=1.0), floor) ** 2
    scores = np.vstack([[d.estimate for d in draws], np.column_stack([d.resampled for d in draws])])
    laws = fit_power_law(people, sign * scores, weights, best)
    level, last = draws[0].level, people[-1]
    grid = np.unique(np.r_[np.linspace(people[0], last + max([*more, 0]), _POINTS), last])
    curve = sign * power_law(laws, grid)
    frames = [_frame(model, metric, grid, "curve", **_band(curve, level))]
    if len(more):
        later = last + np.asarray(more, dtype=float)
        gain = sign * (power_law(laws, later) - power_law(laws, np.array([last])))
        frames.append(_frame(model, metric, later, "gain", **_band(gain, level)))
    return frames


def _band(values: np.ndarray, level: float) -> dict[str, np.ndarray]:
    """Quantiles over resamples (all lines but the first), stretched to hold the estimate."""
    tail = (1 - level) / 2
    low, high = np.nanquantile(values[1:], [tail, 1 - tail], axis=0)
    return {
        "estimate": values[0],
        "low": np.minimum(low, values[0]),
        "high": np.maximum(high, values[0]),
    }


def _frame(
    model: str, metric: str, people: np.ndarray, kind: str, **figures: np.ndarray | list[float]
) -> pd.DataFrame:
    return pd.DataFrame(
        {"model": model, "metric": metric, "people": people, "kind": kind, **figures}
    )[COLUMNS]


# As the authors recommend: coefficients shrunk by a tenth at most, R2 and the overall risk known to
# within 0.05, and the residual s.d. to within a tenth (which needs 234 degrees of freedom).
SHRINKAGE, MARGIN, RESIDUAL_DEGREES = 0.9, 0.05, 234

SAMPLE_SIZE_COLUMNS = ["criterion", "people", "meaning"]


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
    >>> from baldur.evaluation.clinical.learning_curves import minimum_people
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
    return _sample_size_frame(rows)


def _for_shrinkage(parameters: int, r2: float, shrinkage: float) -> float:
    return float(parameters / ((shrinkage - 1) * np.log(1 - r2 / shrinkage)))


def minimum_people_regression(parameters: int, r2: float) -> pd.DataFrame:
    """Give the people a linear model needs, by each criterion.

    Examples
    --------
    >>> from baldur.evaluation.clinical.learning_curves import minimum_people_regression
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
    return _sample_size_frame(rows)


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


def _sample_size_frame(rows: list[tuple[str, float, str]]) -> pd.DataFrame:
    # A whole number that rounding lifted a hair is still that number.
    counted = [(name, int(np.ceil(people - 1e-9)), meaning) for name, people, meaning in rows]
    most = max(people for _, people, _ in counted)
    return pd.DataFrame([*counted, ("all", most, "all of these")], columns=SAMPLE_SIZE_COLUMNS)
