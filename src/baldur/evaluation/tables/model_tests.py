"""Tests of models: paired comparisons over the outer folds, and permutation tests.

C. Nadeau and Y. Bengio, "Inference for the generalization error", Machine Learning 52 (2003):
scores of cross-validation folds share training rows, so the variance of their mean difference is
taken as (1/J + n_test/n_train) s^2 instead of s^2/J. p-values over all pairs are adjusted by
Holm's step-down rule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations

import numpy as np
import pandas as pd
from scipy.stats import t as student

from baldur.evaluation.metrics import METRICS


def corrected_error(difference: np.ndarray, test_train_ratio: float) -> float:
    """Return the standard error of the mean difference, corrected for shared training rows.

    Shapes: difference (J,).
    """
    j = len(difference)
    if j < 2:
        return float("nan")
    return float(np.sqrt((1 / j + test_train_ratio) * np.var(difference, ddof=1)))


def corrected_t_test(difference: np.ndarray, test_train_ratio: float) -> tuple[float, int, float]:
    """Test whether the mean difference of paired fold scores is zero.

    Shapes: difference (J,).

    Examples
    --------
    >>> from baldur.evaluation.tables.model_tests import corrected_t_test
    >>> difference = [0.02, 0.05, 0.03, 0.06, 0.04]  # AUC of one model minus the other, per fold
    >>> t, degrees, p = corrected_t_test(difference, test_train_ratio=1 / 4)
    >>> round(t, 2), degrees, round(p, 3)
    (3.77, 4, 0.02)
    """
    difference = np.asarray(difference, dtype=float)
    j = len(difference)
    if j < 2:
        return float("nan"), max(j - 1, 0), float("nan")
    mean, variance = float(difference.mean()), float(difference.var(ddof=1))
    # Equal differences leave a variance of rounding errors only.
    if variance <= (1e-12 * max(1.0, abs(mean))) ** 2:
        return (
            (0.0, j - 1, 1.0) if abs(mean) < 1e-12 else (float(np.sign(mean) * np.inf), j - 1, 0.0)
        )
    statistic = mean / corrected_error(difference, test_train_ratio)
    return float(statistic), j - 1, float(2 * student.sf(abs(statistic), j - 1))


def holm(p_values: np.ndarray) -> np.ndarray:
    """Adjust p-values by Holm's step-down rule; NaN stay NaN and do not count.

    Shapes: p_values (m,); returns (m,).

    Examples
    --------
    >>> from baldur.evaluation.tables.model_tests import holm
    >>> holm([0.01, 0.04, 0.03]).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, dtype=float)
    out = np.full(p.shape, np.nan)
    known = np.flatnonzero(~np.isnan(p))
    order = known[np.argsort(p[known], kind="stable")]
    factors = np.arange(len(order), 0, -1)
    out[order] = np.minimum(np.maximum.accumulate(p[order] * factors), 1.0)
    return out


def compare_pairs(
    scores: Mapping[str, np.ndarray],
    test_train_ratio: float,
    metric: str = "",
    apart: Collection[str] = (),
) -> pd.DataFrame:
    """Compare every pair of models by the corrected resampled t-test.

    Shapes: scores (J,).

    Examples
    --------
    >>> from baldur.evaluation.tables.model_tests import compare_pairs
    >>> scores = {"A": [0.82, 0.85, 0.80, 0.84], "B": [0.80, 0.80, 0.77, 0.78],
    ...           "C": [0.81, 0.78, 0.79, 0.77]}
    >>> found = compare_pairs(scores, test_train_ratio=1 / 4, metric="auc")
    >>> found[["model_a", "model_b", "difference", "p_holm"]].round(3)
      model_a model_b  difference  p_holm
    0       A       B        0.04   0.160
    1       A       C        0.04   0.402
    2       B       C        0.00   1.000
    """
    rows = []
    for a, b in combinations(scores, 2):
        difference = np.asarray(scores[a], float) - np.asarray(scores[b], float)
        difference = difference[~np.isnan(difference)]
        statistic, degrees, p = corrected_t_test(difference, test_train_ratio)
        mean = float(difference.mean()) if len(difference) else float("nan")
        error = corrected_error(difference, test_train_ratio)
        rows.append((metric, a, b, mean, error, statistic, degrees, p))
    columns = ["metric", "model_a", "model_b", "difference", "standard_error", "t", "df", "p"]
    frame = pd.DataFrame(rows, columns=columns).assign(p_holm=np.nan)
    other = frame["model_a"].isin(apart) | frame["model_b"].isin(apart)
    for family in (other, ~other):
        frame.loc[family, "p_holm"] = holm(frame.loc[family, "p"].to_numpy(dtype=float))
    return frame


def permutation_p_value(
    observed: float, permuted: np.ndarray, greater_is_better: bool = True
) -> float:
    """Return (1 + number of permuted scores at least as good) / (1 + number of them).

    Shapes: permuted (B,).
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

    Shapes: scores (n_folds,).
    """
    better = METRICS[metric].greater_is_better
    rows = []
    for model, values in scores.items():
        found = np.array(permuted.get(model, []))
        if not len(found):
            continue
        seen = float(np.nanmean(values))
        p = permutation_p_value(seen, found, better)
        rows.append((model, metric, seen, float(found.mean()), len(found), p))
    columns = ["model", "metric", "score", "permuted_mean", "permutations", "p"]
    frame = pd.DataFrame(rows, columns=columns)
    frame["p_holm"] = holm(frame["p"].to_numpy(dtype=float))
    return frame
