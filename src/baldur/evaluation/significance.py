"""P-values of differences between models and of permuted labels, corrected for multiple tests."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.special import stdtr

from baldur.evaluation.metrics import METRICS


def corrected_t_test(
    difference: np.ndarray, test_train_ratio: float
) -> tuple[float, int, float, float]:
    """Test whether the mean difference of paired fold scores is zero: t, df, p, standard error.

    The standard error is corrected for the training rows that folds share. Missing scores do not
    count.

    Shapes: difference (n_folds,).
    """
    difference = np.asarray(difference, dtype=float)
    difference = difference[~np.isnan(difference)]
    n_folds, nan = len(difference), float("nan")
    if n_folds < 2:
        return nan, max(n_folds - 1, 0), nan, nan
    df = n_folds - 1
    mean, variance = float(difference.mean()), float(difference.var(ddof=1))
    error = float(np.sqrt((1 / n_folds + test_train_ratio) * variance))
    # Equal differences leave a variance of rounding errors only.
    if variance <= (1e-12 * max(1.0, abs(mean))) ** 2:
        if abs(mean) < 1e-12:
            return 0.0, df, 1.0, error
        return float(np.sign(mean) * np.inf), df, 0.0, error
    statistic = mean / error
    return statistic, df, float(2 * stdtr(df, -abs(statistic))), error


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values by Holm's step-down rule; NaN stay NaN and do not count.

    Shapes: p_values (m,); returns (m,).
    """
    p = np.asarray(p_values, dtype=float)
    adjusted = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return adjusted


def compare_pairs(
    scores: Mapping[str, np.ndarray],
    test_train_ratio: float,
    metric: str = "",
    apart: Collection[str] = (),
) -> pd.DataFrame:
    """Compare every pair of models by the corrected resampled t-test.

    Pairs with a model that is `apart` are adjusted for multiple testing on their own.

    Shapes: scores (n_folds,) of each model.
    """
    rows = []
    for a, b in combinations(scores, 2):
        difference = np.asarray(scores[a], float) - np.asarray(scores[b], float)
        t, df, p, error = corrected_t_test(difference, test_train_ratio)
        known = difference[~np.isnan(difference)]
        mean = float(known.mean()) if len(known) else float("nan")
        rows.append((metric, a, b, mean, error, t, df, p))
    columns = ["metric", "model_a", "model_b", "difference", "standard_error", "t", "df", "p"]
    frame = pd.DataFrame(rows, columns=columns).assign(p_holm=np.nan)
    is_apart = frame["model_a"].isin(apart) | frame["model_b"].isin(apart)
    for family in (is_apart, ~is_apart):
        frame.loc[family, "p_holm"] = holm(frame.loc[family, "p"].to_numpy(dtype=float))
    return frame


def permutation_p_value(
    observed: float, permuted: np.ndarray, greater_is_better: bool = True
) -> float:
    """Return (1 + number of permuted scores at least as good) / (1 + number of them).

    Shapes: permuted (n_permutations,).
    """
    permuted = np.asarray(permuted, dtype=float)
    permuted = permuted[np.isfinite(permuted)]
    if not len(permuted) or not np.isfinite(observed):
        return float("nan")
    sign = 1.0 if greater_is_better else -1.0
    # Equal scores may differ in their last digits.
    as_good = np.sum(sign * permuted >= sign * observed - 1e-12)
    return float((1 + as_good) / (1 + len(permuted)))


def permutation_tests(
    scores: Mapping[str, np.ndarray], permuted: Mapping[str, Sequence[float]], metric: str
) -> pd.DataFrame:
    """Compare every model with itself on permuted labels.

    Shapes: scores (n_folds,), permuted (n_permutations,) of each model.
    """
    greater_is_better = METRICS[metric].greater_is_better
    rows = []
    for model, values in scores.items():
        by_chance = np.array(permuted.get(model, []))
        if len(by_chance):
            observed = float(np.nanmean(values))
            p = permutation_p_value(observed, by_chance, greater_is_better)
            rows.append((model, metric, observed, float(by_chance.mean()), len(by_chance), p))
    columns = ["model", "metric", "score", "permuted_mean", "permutations", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    return frame.assign(p_holm=holm(frame["p"].to_numpy(dtype=float)))
