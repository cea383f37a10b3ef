"""Columns that are constant at one site, and sites that predict the outcome."""

from __future__ import annotations

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency, f_oneway

from baldur.study.checks.finding import Finding, names

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


def constant_in_site(key: str, found: dict[str, str]) -> list[Finding]:
    """Report the columns of a view that are constant at a site."""
    if not found:
        return []
    columns = list(found)
    sites = sorted(set(found.values()))
    where = f"at site {sites[0]!r}" if len(sites) == 1 else f"at sites {names(sites)}"
    return [
        Finding(
            key,
            f"{names(columns)} {'is' if len(columns) == 1 else 'are'} constant {where} and not "
            "elsewhere",
            "check how the site measured, or leave such columns out: they tell the site",
        )
    ]


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
