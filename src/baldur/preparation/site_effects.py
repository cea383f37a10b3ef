"""Location and scale of every feature in every site, shrunk towards what a site's features share.

The model is that of ComBat. For sample n of site i and feature d, with covariates c_n to preserve,

    x_nd = alpha_d + c_n beta_d + sigma_d (gamma_id + delta_id e_nd),   e ~ N(0, 1),

where alpha, beta and sigma are the pooled level, effects and spread. Within a site the locations
gamma_i1, ..., gamma_iD are drawn from N(m_i, t_i) and the squared scales from an inverse gamma
distribution, both with parameters fitted to the moments of the estimates. What is kept of a site's
estimate is its posterior mode under that prior (empirical Bayes). Harmonised is

    x_nd -> alpha_d + c_n beta_d + (x_nd - alpha_d - c_n beta_d - sigma_d gamma_id) / delta_id.

Everything a site needs is in its count, mean and variance per feature, so the cells are read once.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np

from baldur.core.state import Flags, Numbers, stored
from baldur.views import View
from baldur.views.sources import Source

# A spread inside the sites below this share of the whole is rounding: the site is all there is.
_NO_SPREAD = 1e-7
# A prior fitted to fewer features says nothing; the site's own estimates are then used as they are.
_FEWEST_FEATURES = 10
# A least or largest value that this share of the cells have in common is a zero count or a limit of
# detection, the same in every site. Continuous measurements reach it at random far more rarely.
_SHARED = 0.1
# Both updates of the mode contract quickly; ten digits take some dozens of passes at most.
_TOLERANCE = 1e-10
_MOST_PASSES = 500


@dataclass(frozen=True)
class Pooled:
    """Parameters of every feature that are pooled over all sites.

    `level`, `spread` and `coef` are alpha, sigma and beta. `held` is a value of the column that is
    the same in every site (NaN without one), and columns that are `left_alone` are not harmonised.
    """

    kind: ClassVar[str] = "pooled parameters"

    level: np.ndarray = stored(Numbers("d", largest=np.inf))
    spread: np.ndarray = stored(Numbers("d", largest=np.inf, low=0.0))
    coef: np.ndarray = stored(Numbers("q d", largest=np.inf))
    held: np.ndarray = stored(Numbers("d", finite=False, largest=np.inf))
    left_alone: np.ndarray = stored(Flags("d"))


@dataclass(frozen=True)
class SiteMoments:
    """Count, mean and variance of the standardised cells, each of shape (n_sites, n_features)."""

    count: np.ndarray
    mean: np.ndarray
    variance: np.ndarray


_Parameters = TypeVar("_Parameters", Pooled, SiteMoments)


def join(parts: Iterable[_Parameters]) -> _Parameters:
    """Return the parameters of blocks of columns as one."""
    first, *others = parts
    arrays = zip(*(vars(part).values() for part in (first, *others)), strict=True)
    return type(first)(*(np.concatenate(blocks, axis=-1) for blocks in arrays))


def some_columns(pooled: Pooled, cols: slice) -> Pooled:
    """Return the parameters of some columns, which are the last axis of every array."""
    return Pooled(*(array[..., cols] for array in vars(pooled).values()))


def learn_block(
    cells: np.ndarray,
    member: np.ndarray,
    covariates: np.ndarray,
    clip: float | None = None,
    fewest: int = 2,
) -> tuple[Pooled, SiteMoments]:
    """Fit sites and covariates to some columns by least squares over the cells that are known.

    `clip` is the distance from its site's median, in robust standard deviations, to which a cell is
    pulled in; a site with fewer than `fewest` known cells of a column does not count there.

    Shapes: cells (n_samples, n_columns), member (n_samples, n_sites) of 0 and 1, covariates
    (n_samples, q).
    """
    left_alone = _two_values(cells)
    held = _held(cells, member)
    cells = np.where(cells == held, np.nan, cells)
    for in_site in member.T:
        rows = np.flatnonzero(in_site)
        part = cells[rows]
        part[:, (~np.isnan(part)).sum(axis=0) < fewest] = np.nan
        cells[rows] = part if clip is None else _clipped(part, clip)
    observed = ~np.isnan(cells)
    # Least squares on centred cells keeps its digits when a column sits far from 0.
    centre = np.where(observed, cells, 0.0).sum(axis=0) / np.maximum(observed.sum(axis=0), 1)
    x = np.where(observed, cells - centre, 0.0)
    design = np.hstack([member, covariates])
    effects = _least_squares(x, observed, design)
    count = member.T @ observed
    total = np.maximum(count.sum(axis=0), 1)
    by_site, coef = effects[: member.shape[1]], effects[member.shape[1] :]
    level = (count * by_site).sum(axis=0) / total
    residual = np.where(observed, x - design @ effects, 0.0)
    squares = member.T @ residual**2
    spread = np.sqrt(squares.sum(axis=0) / total)
    whole = np.sqrt((x**2).sum(axis=0) / total)
    all_site = spread <= _NO_SPREAD * whole  # no spread inside the sites
    unit = np.where(all_site, 1.0, spread)
    moments = SiteMoments(
        count=count,
        mean=np.where(count > 0, (by_site - level) / unit, 0.0),
        variance=np.where(all_site, 0.0, squares / np.maximum(count - 1, 1) / unit**2),
    )
    left_alone |= (count > 0).sum(axis=0) < 2
    pooled = Pooled(level + centre, np.where(all_site, 0.0, spread), coef, held, left_alone)
    return pooled, moments


def _least_squares(x: np.ndarray, observed: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Return coefficients of each column over its own observed cells; 0 where not determined.

    Shapes: x (n_samples, n_columns), 0 where not observed; design (n_samples, k); returns
    (k, n_columns).
    """
    coef = np.linalg.pinv(design) @ x
    gappy = np.flatnonzero(~observed.all(axis=0))
    if gappy.size:
        # Normal equations, with a Gram matrix of the design for each column's own samples.
        n, k = design.shape
        squares = (design[:, :, None] * design[:, None, :]).reshape(n, k * k)
        grams = (observed[:, gappy].T.astype(float) @ squares).reshape(-1, k, k)
        right = (design.T @ x[:, gappy]).T[:, :, None]
        inverse = np.linalg.pinv(grams, rcond=1e-12, hermitian=True)
        coef[:, gappy] = (inverse @ right)[:, :, 0].T
    return coef


def _edges(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the smallest and the largest known value of each column."""
    return (
        np.nanmin(cells, axis=0, initial=np.inf),
        np.nanmax(cells, axis=0, initial=-np.inf),
    )


def _held(cells: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Return the minimum or maximum of each column if many cells and sites share it, else NaN.

    It is the same in every site, such as a count of zero or a limit of detection, and is not
    harmonised. If both are shared, the minimum counts.
    """
    fewest = _SHARED * (~np.isnan(cells)).sum(axis=0)
    held = np.full(cells.shape[1], np.nan)
    for edge in reversed(_edges(cells)):
        by_site = member.T @ (cells == edge)
        # A value that only one site has is a measurement, and is shifted with the others.
        held = np.where(
            (by_site.sum(axis=0) >= fewest) & ((by_site > 0).sum(axis=0) > 1), edge, held
        )
    return held


def _clipped(cells: np.ndarray, clip: float) -> np.ndarray:
    """Return the cells of one site, clipped at `clip` robust deviations from the median."""
    median = _medians(cells)
    # 1.4826 median absolute deviations are a standard deviation in normal data.
    distance = clip * 1.4826 * _medians(np.abs(cells - median))
    # Where more than half of the cells are equal the distance is 0: their value is the location.
    return np.clip(cells, median - distance, median + distance)


def _medians(cells: np.ndarray) -> np.ndarray:
    """Return the median of each column over its known cells; 0 for a column without any."""
    ordered = np.sort(cells, axis=0)  # NaN come last
    n = (~np.isnan(cells)).sum(axis=0)
    at = np.arange(cells.shape[1])
    # The two values in the middle; one and the same where their number is odd.
    both = ordered[np.maximum(n - 1, 0) // 2, at] + ordered[np.minimum(n // 2, len(cells) - 1), at]
    return np.where(n > 0, both / 2, 0.0)


def _two_values(cells: np.ndarray) -> np.ndarray:
    low, high = _edges(cells)
    return np.asarray(((cells == low) | (cells == high) | np.isnan(cells)).all(axis=0))


def new_site_block(
    cells: np.ndarray, pooled: Pooled, covariates: np.ndarray, clip: float | None = None
) -> SiteMoments:
    """Return count, mean and variance of one more site, standardised with the pooled parameters.

    The site was not in training. Shapes: cells (n_samples, n_columns), covariates (n_samples, q).
    """
    cells = np.where(cells == pooled.held, np.nan, cells)
    if clip is not None:
        cells = _clipped(cells, clip)
    observed = ~np.isnan(cells)
    unit = np.where(pooled.spread > 0, pooled.spread, 1.0)
    z = np.where(observed, (cells - pooled.level - covariates @ pooled.coef) / unit, 0.0)
    count = observed.sum(axis=0)
    mean = z.sum(axis=0) / np.maximum(count, 1)
    variance = (np.where(observed, z - mean, 0.0) ** 2).sum(axis=0) / np.maximum(count - 1, 1)
    return SiteMoments(count[None].astype(float), mean[None], variance[None])


def shrink(
    moments: SiteMoments, usable: np.ndarray, plain: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return locations and squared scales of every site and feature.

    They are shrunk towards what the features of a site share or, if `plain`, its own means and
    variances. Features that are not `usable` keep their mean and the scale 1.

    Shapes: usable (n_features,); returns location, squared_scale (n_sites, n_features).
    """
    location = np.where(moments.count > 0, moments.mean, 0.0)
    known = usable & (moments.count >= 2) & (moments.variance > _NO_SPREAD**2)
    scale = np.where(known, moments.variance, 1.0)
    for i, features in enumerate(known):
        if features.sum() >= _FEWEST_FEATURES and not plain:
            location[i, features], scale[i, features] = _modes(
                moments.count[i, features],
                moments.mean[i, features],
                moments.variance[i, features],
            )
    return location, scale


def _modes(n: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the joint posterior modes of location and squared scale of one site's features.

    Locations have a normal prior and squared scales an inverse gamma prior, both fitted to the
    moments over the features; the two modes are updated in turn. Shapes: all (n_features,).
    """
    prior_mean, prior_variance = mean.mean(), mean.var(ddof=1)
    v, vv = variance.mean(), variance.var(ddof=1)
    if prior_variance <= 0:
        return mean, variance
    if vv <= _NO_SPREAD**2 * v**2:
        # All features agree on the scale: the prior is a point.
        location = (n * prior_variance * mean + v * prior_mean) / (n * prior_variance + v)
        return location, np.full(len(n), v)
    # Shape and scale of the inverse gamma distribution with mean v and variance vv.
    a, b = 2.0 + v**2 / vv, v + v**3 / vv
    squares = (n - 1) * variance
    location, scale = mean, variance
    for _ in range(_MOST_PASSES):
        new_location = (n * prior_variance * mean + scale * prior_mean) / (
            n * prior_variance + scale
        )
        new_scale = (b + 0.5 * (squares + n * (mean - new_location) ** 2)) / (n / 2 + a - 1)
        moved = max(np.abs(new_location - location).max(), np.abs(new_scale / scale - 1).max())
        location, scale = new_location, new_scale
        if moved < _TOLERANCE:
            break
    return location, scale


def variance_explained(moments: SiteMoments) -> np.ndarray:
    """Return the share of each feature's variance, less covariates, that lies between sites."""
    n = moments.count
    mean = (n * moments.mean).sum(axis=0) / np.maximum(n.sum(axis=0), 1)
    between = (n * (moments.mean - mean) ** 2).sum(axis=0)
    whole = between + (np.maximum(n - 1, 0) * moments.variance).sum(axis=0)
    return np.divide(between, whole, out=np.zeros_like(whole), where=whole > 0)


COLUMNS = [
    "view", "features", "harmonised", "sites", "before", "after", "chance",
    "worst_feature", "worst_before", "worst_after", "spread_before", "spread_after",
]  # fmt: skip
"""Columns of the table, see `SiteHarmoniser.report_`."""


def summarise(
    view: View, before: SiteMoments, after: SiteMoments, used: np.ndarray
) -> tuple[Any, ...]:
    """Return the row of one view in the report of a harmonisation, with the columns `COLUMNS`.

    The moments are those before and after it; `used` are the features that it changes.

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
    """Return the ratio of the largest to the smallest spread of a site, as median over features."""
    variance = np.where((moments.count >= 2) & (moments.variance > 0), moments.variance, np.nan)
    comparable = used & (np.isfinite(variance).sum(axis=0) > 1)
    if not comparable.any():
        return float("nan")
    logs = np.log(variance[:, comparable])
    # Half of a difference in log variance is one in log spread.
    return float(np.exp(np.median(np.nanmax(logs, axis=0) - np.nanmin(logs, axis=0)) / 2))


class HarmonisedSource(Source):
    """Cells of a view, harmonised as they are read.

    `site` is the row of `shift` and `factor` for each sample; their last row changes nothing.
    """

    def __init__(
        self, view: View, pooled: Pooled, covariates: np.ndarray, site: np.ndarray,
        shift: np.ndarray, factor: np.ndarray,
    ) -> None:  # fmt: skip
        self.base = view.source
        self.pooled, self.covariates, self.site = pooled, covariates, site
        self.shift, self.factor = shift, factor
        self.shape = view.shape
        narrow = view.dtype in (np.float16, np.float32)
        self.dtype = np.dtype(np.float32 if narrow else np.float64)

    def read(self, rows: np.ndarray | None, cols: slice | np.ndarray) -> np.ndarray:
        """Return the cells of `rows` (None: all) and `cols`."""
        samples = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        x = self.base.read(rows, cols).astype(np.float64)
        site = self.site[samples]
        # Samples of unseen sites and columns that are not harmonised stay as they are.
        at = np.flatnonzero(site < len(self.shift) - 1)
        level = self.pooled.level[cols] + self.covariates[samples[at]] @ self.pooled.coef[:, cols]
        shift, factor = self.shift[site[at]][:, cols], self.factor[site[at]][:, cols]
        same = ((shift == 0) & (factor == 1)) | (x[at] == self.pooled.held[cols])
        x[at] = np.where(same, x[at], level + (x[at] - level - shift) * factor)
        return x.astype(self.dtype, copy=False)
