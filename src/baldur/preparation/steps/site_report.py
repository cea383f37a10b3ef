"""What harmonisation changed in a view: variance between sites, and their spreads."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.preparation.steps.site_effects import SiteMoments, variance_explained
from baldur.views import View

COLUMNS = [
    "view", "features", "harmonised", "sites", "before", "after", "chance",
    "worst_feature", "worst_before", "worst_after", "spread_before", "spread_after",
]  # fmt: skip
"""Columns of the table, see `SiteHarmoniser.report_`."""


def summarise(
    view: View, before: SiteMoments, after: SiteMoments, used: np.ndarray
) -> tuple[Any, ...]:
    """Return the row of one view in the report of a harmonisation.

    Shapes: used (n_features,).
    """
    n, n_sites = before.count.sum(axis=0), len(before.count)
    head = (view.name, view.shape[1], int(used.sum()), n_sites)
    if not used.any():
        return (*head, *[np.nan] * 3, "", *[np.nan] * 4)
    shares = [variance_explained(m) for m in (before, after)]
    worst = int(np.flatnonzero(used)[np.argmax(shares[0][used])])
    return (
        *head,
        float(shares[0][used].mean()),
        float(shares[1][used].mean()),
        # Without site effects the expected share for n samples of S sites is (S - 1)/(n - 1).
        float(np.mean((n_sites - 1) / np.maximum(n[used] - 1, 1))),
        str(view.names_of(np.array([worst]))[0]),
        float(shares[0][worst]),
        float(shares[1][worst]),
        *(_spread_ratio(m, used) for m in (before, after)),
    )


def _spread_ratio(moments: SiteMoments, used: np.ndarray) -> float:
    """Median over features of the largest to the smallest spread of a site."""
    variance = np.where((moments.count >= 2) & (moments.variance > 0), moments.variance, np.nan)
    here = used & (np.isfinite(variance).sum(axis=0) > 1)
    if not here.any():
        return float("nan")
    logs = np.log(variance[:, here])
    return float(np.exp(np.median(np.nanmax(logs, axis=0) - np.nanmin(logs, axis=0)) / 2))
