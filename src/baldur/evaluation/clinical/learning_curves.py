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

from baldur.evaluation.clinical.bootstrap import Draws
from baldur.evaluation.clinical.metric_intervals import rows_behind, scale_of
from baldur.evaluation.clinical.resampled import BootstrapOptions, resample
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
