"""Harmonise: the sites of the rows, travelling with them, and the step that aligns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.prepare import SiteHarmoniser
from baldur.prepare.harmonise import SITES
from baldur.views import MultiView
from baldur.views.rebuild import set_view

__all__ = ["Harmonise", "site_columns", "with_sites"]


@dataclass(frozen=True)
class Harmonise:
    """Which rows are of which site, and how sites are aligned.

    Attributes
    ----------
    sites : array-like of shape (n_samples,)
        Site of every row; missing where unknown.
    keep : array-like of shape (n_samples, q), optional
        Numeric covariates whose effect is kept. Never the outcome: it is not known for new rows.
    views : list of str, optional
        Views to harmonise; default all but genotypes.
    new_sites : {"pooled", "own"}, default="pooled"
        What is done about a site that training did not have, see `SiteHarmoniser`.
    estimates : {"shrunk", "plain"}, default="shrunk"
        Whether a site's estimates are shrunk towards what its features have in common.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.datasets import make_multiview
    >>> from baldur.evaluate import Harmonise, nested_cv
    >>> sim = make_multiview(90, {"a": 5, "b": 30}, random_state=0)
    >>> site = np.tile(["oslo", "rome", "lima"], 30)
    >>> result = nested_cv({"Ridge logistic": {"C": [1.0]}}, sim.data, sim.target, outer=3,
    ...                    harmonise=Harmonise(site))
    >>> result.harmonisation()["view"].tolist()
    ['a', 'b', 'a', 'b', 'a', 'b']
    """

    sites: Any
    keep: Any = None
    views: list[str] | None = None
    new_sites: str = "pooled"
    estimates: str = "shrunk"


def with_sites(mv: MultiView, harmonise: Harmonise) -> tuple[MultiView, SiteHarmoniser]:
    """Return the container with its sites as one more view, and the step to be fitted on it.

    Parameters
    ----------
    mv : MultiView
        All rows.
    harmonise : Harmonise
        Their sites.

    Returns
    -------
    MultiView, SiteHarmoniser
    """
    labels = np.asarray(harmonise.sites, dtype=object)
    if labels.shape != (len(mv),):
        raise InputError(
            f"harmonise: sites must have one value per sample ({len(mv)}), but the shape is "
            f"{labels.shape}."
        )
    known = sorted({str(v) for v in labels[~pd.isna(labels)]})
    cells = site_columns([None if pd.isna(v) else str(v) for v in labels], known, harmonise.keep)
    views = harmonise.views
    if views is None:
        # Named here, so that views which other steps add for themselves are not harmonised.
        views = [v for v in mv.view_names if mv.view(v).dtype != np.int8]
    return set_view(mv, SITES, cells), SiteHarmoniser(
        views, harmonise.new_sites, harmonise.estimates
    )


def site_columns(labels: list[str | None], known: list[str], keep: Any = None) -> np.ndarray:
    """Return the cells of the view `SITES`: a number for each site, and the kept covariates.

    Parameters
    ----------
    labels : list of str or None
        Site of every row; None where unknown.
    known : list of str
        Sites that have a number already; others follow in sorted order.
    keep : array-like of shape (n_samples, q), optional
        Kept covariates.

    Returns
    -------
    ndarray of shape (n_samples, 1 + q)
    """
    others = sorted({v for v in labels if v is not None} - set(known))
    numbers = {v: float(i) for i, v in enumerate([*known, *others])}
    code = np.array([np.nan if v is None else numbers[v] for v in labels])[:, None]
    if keep is None:
        return code
    covariates = np.asarray(keep, dtype=float)
    covariates = covariates[:, None] if covariates.ndim == 1 else covariates
    if covariates.ndim != 2 or len(covariates) != len(labels):
        raise InputError(
            f"harmonise: keep must have one row per sample ({len(labels)}), but the shape is "
            f"{covariates.shape}."
        )
    return np.hstack([code, covariates])
