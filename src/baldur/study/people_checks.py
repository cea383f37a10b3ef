"""Columns that repeat the outcome: they predict it almost without error."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np
import pandas as pd

from baldur.study.data_checks import LIMIT, Finding

# Where chance alone would produce one such column in more than one of a hundred views, none of
# them means anything: few rows, many columns.
_COPIES_BY_CHANCE = 0.01


def copying_classes(block: np.ndarray, codes: np.ndarray, n_columns: int) -> np.ndarray:
    """Return the columns that separate the classes with an AUC above `LIMIT`.

    With more than two classes the mean over pairs of classes counts, so that a column has to
    order all of them; a column of 0 and 1 may also stand for one class alone.

    Shapes: block (n_samples, b), codes (n_samples,); returns (b,).
    """
    classes = np.unique(codes)
    parts = {c: block[codes == c] for c in classes}
    pairs = [
        (a, b) for a, b in combinations(classes, 2) if not _lucky(parts[a], parts[b], n_columns)
    ]
    found = np.zeros(block.shape[1], dtype=bool)
    if len(pairs) == len(classes) * (len(classes) - 1) // 2:
        total = np.zeros(block.shape[1])
        for a, b in pairs:
            # No single pair may be far below the limit, or the mean cannot reach it.
            total += _separation(parts[a], parts[b], floor=1 - len(pairs) * (1 - LIMIT))
        found = total > LIMIT * len(pairs)
    if len(classes) > 2:
        for c in classes:
            rest = block[codes != c]
            if not _lucky(parts[c], rest, n_columns):
                found |= _is_indicator(parts[c], rest)
    return found


def _lucky(a: np.ndarray, b: np.ndarray, n_columns: int) -> bool:
    return 2 * n_columns / comb(len(a) + len(b), len(a)) > _COPIES_BY_CHANCE


def _is_indicator(inside: np.ndarray, outside: np.ndarray) -> np.ndarray:
    """Whether a column has one value in a class and another one everywhere else."""
    with np.errstate(invalid="ignore"):
        one = (inside == inside[0]).all(axis=0) & (outside == outside[0]).all(axis=0)
    return one & (inside[0] != outside[0])


def _separation(a: np.ndarray, b: np.ndarray, floor: float) -> np.ndarray:
    """AUC of each column between two groups of rows, at least 0.5; 0 where it is below `floor`.

    Half the rows of ``a`` lie at or below their median, and a tie counts half, so an AUC of 1 - e
    lets at most a share of 4 e of ``b`` lie at or above it. Only columns that pass are ranked.
    """
    values = np.zeros(a.shape[1])
    a_sorted = np.sort(a, axis=0)
    known = np.isfinite(a).sum(axis=0)
    usable = np.flatnonzero((known > 0) & np.isfinite(b).any(axis=0))
    middle = a_sorted[np.maximum(known - 1, 0) // 2, np.arange(a.shape[1])]
    upper = a_sorted[np.minimum(known // 2, len(a) - 1), np.arange(a.shape[1])]
    with np.errstate(invalid="ignore"):
        n_b = np.maximum(np.isfinite(b).sum(axis=0), 1)
        above = (b >= upper).sum(axis=0) / n_b
        below = (b <= middle).sum(axis=0) / n_b
    slack = 4 * (1 - floor) + 1e-12
    for j in usable[(np.minimum(above, below) <= slack)[usable]]:
        x, z = a[:, j][np.isfinite(a[:, j])], np.sort(b[:, j][np.isfinite(b[:, j])])
        wins = np.searchsorted(z, x, "left") + np.searchsorted(z, x, "right")
        auc = float(wins.mean() / (2 * len(z)))
        values[j] = max(auc, 1 - auc)
    return values


def copying_numbers(block: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the columns whose absolute correlation with a numeric outcome is above `LIMIT`.

    Shapes: block (n_samples, b), y (n_samples,); returns (b,).
    """
    known = np.isfinite(block)
    count = known.sum(axis=0)
    x = np.where(known, block, 0.0).astype(np.float64)
    target = np.where(known, y[:, None], 0.0)
    some = np.maximum(count, 1)
    x = np.where(known, x - x.sum(axis=0) / some, 0.0)
    target = np.where(known, target - target.sum(axis=0) / some, 0.0)
    scale = np.sqrt((x**2).sum(axis=0) * (target**2).sum(axis=0))
    r = np.abs((x * target).sum(axis=0)) / np.where(scale > 0, scale, 1.0)
    # Two or three points lie on a line by chance.
    return (count >= 10) & (scale > 0) & (r > LIMIT)


# At a site with fewer rows many columns are constant, and little can be said about the outcome.
_LEAST_ROWS = 5
# Expected number of such columns by chance, above which they say nothing (rare variants).
_BY_CHANCE = 0.01
# Cramer's V, or the root of the explained share of variance: a medium association.
_MEDIUM = 0.3
_SIGNIFICANT = 0.001


def constant_columns(block: np.ndarray, sites: np.ndarray, n_columns: int) -> list[tuple[int, str]]:
    """Return columns that have one value at a site, and several elsewhere.

    Shapes: block (n_samples, b), sites (n_samples,); returns (column in the block, site).
    """
    known = np.isfinite(block)
    low, high = np.where(known, block, np.inf), np.where(known, block, -np.inf)
    varies = low.min(axis=0) < high.max(axis=0)
    found = []
    for site in np.unique(sites):
        here = sites == site
        count = known[here].sum(axis=0)
        same = (low[here].min(axis=0) == high[here].max(axis=0)) & varies & (count >= _LEAST_ROWS)
        for j in np.flatnonzero(same).tolist():
            values = np.unique(block[known[:, j], j], return_counts=True)[1]
            share = values / values.sum()
            if n_columns * float((share ** count[j]).sum()) <= _BY_CHANCE:
                found.append((j, str(site)))
    return found


def site_predicts(sites: np.ndarray, y: np.ndarray, outcome: str, classification: bool,
                  scheme: str) -> list[Finding]:  # fmt: skip
    """Report an outcome that depends on the site.

    Shapes: sites (n_samples,), y (n_samples,).
    """
    counts = pd.Series(sites).value_counts()
    large = counts.index[counts >= _LEAST_ROWS]
    keep = np.isin(sites, large)
    if len(large) < 2:
        return []
    if classification:
        table = pd.crosstab(sites[keep], y[keep])
        if table.shape[1] < 2:
            return []
        from scipy.stats import chi2_contingency

        found = chi2_contingency(table)
        size = float(np.sqrt(found.statistic / keep.sum() / (min(table.shape) - 1)))
        shares = table.to_numpy() / table.to_numpy().sum(axis=1, keepdims=True)
        at = int(np.argmax(np.ptp(shares, axis=0)))
        low, high = int(np.argmin(shares[:, at])), int(np.argmax(shares[:, at]))
        seen = (
            f"{table.columns[at]!r} is {100 * shares[low, at]:.0f} % at site "
            f"{table.index[low]!r} and {100 * shares[high, at]:.0f} % at {table.index[high]!r}"
        )
        p = float(found.pvalue)
    else:
        from scipy.stats import f_oneway

        groups = [y[sites == s] for s in large]
        p = float(f_oneway(*groups).pvalue)
        mean = float(y[keep].mean())
        between = sum(len(g) * (g.mean() - mean) ** 2 for g in groups)
        size = float(np.sqrt(between / max(((y[keep] - mean) ** 2).sum(), 1e-300)))
        means = {str(s): float(g.mean()) for s, g in zip(large, groups, strict=True)}
        least, most = min(means, key=means.__getitem__), max(means, key=means.__getitem__)
        seen = f"mean {means[least]:.3g} at site {least!r} and {means[most]:.3g} at {most!r}"
    if not (p < _SIGNIFICANT and size >= _MEDIUM):
        return []
    fix = 'regress the site out, or use scheme = "leave-one-site-out"'
    if scheme == "leave-one-site-out":
        fix = "expect figures below those of studies that mix sites, or regress the site out"
    return [Finding("samples.site", f"the site predicts {outcome!r}: {seen}", fix)]
