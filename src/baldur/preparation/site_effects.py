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
    """Return the parameters of some columns."""
    return Pooled(*(array[..., cols] for array in vars(pooled).values()))


def learn_block(
    cells: np.ndarray,
    member: np.ndarray,
    covariates: np.ndarray,
    clip: float | None = None,
    fewest: int = 2,
) -> tuple[Pooled, SiteMoments]:
    """Fit sites and covariates to some columns by least squares over the cells that are known.

    Shapes: cells (n_samples, n_columns), member (n_samples, n_sites), covariates (n_samples, q).
    """
    alone = _two_values(cells)
    held = _held(cells, member)
    cells = np.where(cells == held, np.nan, cells)
    for in_site in member.T:
        rows = np.flatnonzero(in_site)
        part = cells[rows]
        part[:, (~np.isnan(part)).sum(axis=0) < fewest] = np.nan
        cells[rows] = part if clip is None else _pulled_in(part, clip)
    known = ~np.isnan(cells)
    # Least squares on centred cells keeps its digits when a column sits far from 0.
    centre = np.where(known, cells, 0.0).sum(axis=0) / np.maximum(known.sum(axis=0), 1)
    x = np.where(known, cells - centre, 0.0)
    design = np.hstack([member, covariates])
    effects = _least_squares(x, known, design)
    count = member.T @ known
    total = np.maximum(count.sum(axis=0), 1)
    by_site, coef = effects[: member.shape[1]], effects[member.shape[1] :]
    level = (count * by_site).sum(axis=0) / total
    residual = np.where(known, x - design @ effects, 0.0)
    squares = member.T @ residual**2
    spread = np.sqrt(squares.sum(axis=0) / total)
    whole = np.sqrt((x**2).sum(axis=0) / total)
    all_site = spread <= _NO_SPREAD * whole
    unit = np.where(all_site, 1.0, spread)
    moments = SiteMoments(
        count=count,
        mean=np.where(count > 0, (by_site - level) / unit, 0.0),
        variance=np.where(all_site, 0.0, squares / np.maximum(count - 1, 1) / unit**2),
    )
    alone |= (count > 0).sum(axis=0) < 2
    pooled = Pooled(level + centre, np.where(all_site, 0.0, spread), coef, held, alone)
    return pooled, moments


def _least_squares(x: np.ndarray, known: np.ndarray, design: np.ndarray) -> np.ndarray:
    """Coefficients (k, n_columns), each column over its own known cells; 0 where not determined."""
    coef = np.linalg.pinv(design) @ x
    holes = np.flatnonzero(~known.all(axis=0))
    if holes.size:
        n, k = design.shape
        squares = (design[:, :, None] * design[:, None, :]).reshape(n, k * k)
        grams = (known[:, holes].T.astype(float) @ squares).reshape(-1, k, k)
        right = (design.T @ x[:, holes]).T[:, :, None]
        inverse = np.linalg.pinv(grams, rcond=1e-12, hermitian=True)
        coef[:, holes] = (inverse @ right)[:, :, 0].T
    return coef


def _edges(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return (
        np.nanmin(cells, axis=0, initial=np.inf),
        np.nanmax(cells, axis=0, initial=-np.inf),
    )


def _held(cells: np.ndarray, member: np.ndarray) -> np.ndarray:
    """Return the minimum or maximum of each column if many cells and sites share it, else NaN."""
    fewest = _SHARED * (~np.isnan(cells)).sum(axis=0)
    held = np.full(cells.shape[1], np.nan)
    for edge in reversed(_edges(cells)):
        by_site = member.T @ (cells == edge)
        # A value that only one site has is a measurement, and is shifted with the others.
        held = np.where(
            (by_site.sum(axis=0) >= fewest) & ((by_site > 0).sum(axis=0) > 1), edge, held
        )
    return held


def _pulled_in(cells: np.ndarray, clip: float) -> np.ndarray:
    """Return the cells of one site, clipped at a distance from the median."""
    middle = _medians(cells)
    # 1.4826 median absolute deviations are a standard deviation in normal data.
    reach = clip * 1.4826 * _medians(np.abs(cells - middle))
    # Where more than half of the cells are equal the reach is 0: their value is the location.
    return np.clip(cells, middle - reach, middle + reach)


def _medians(cells: np.ndarray) -> np.ndarray:
    """Median of each column over its known cells; 0 for a column without any."""
    ordered = np.sort(cells, axis=0)  # NaN come last
    n = (~np.isnan(cells)).sum(axis=0)
    at = np.arange(cells.shape[1])
    both = ordered[np.maximum(n - 1, 0) // 2, at] + ordered[np.minimum(n // 2, len(cells) - 1), at]
    return np.where(n > 0, both / 2, 0.0)


def _two_values(cells: np.ndarray) -> np.ndarray:
    low, high = _edges(cells)
    return np.asarray(((cells == low) | (cells == high) | np.isnan(cells)).all(axis=0))


def new_site_block(
    cells: np.ndarray, pooled: Pooled, covariates: np.ndarray, clip: float | None = None
) -> SiteMoments:
    """Count, mean and variance of one more site, standardised with the pooled parameters.

    Shapes: cells (n_samples, n_columns), covariates (n_samples, q).
    """
    cells = np.where(cells == pooled.held, np.nan, cells)
    if clip is not None:
        cells = _pulled_in(cells, clip)
    known = ~np.isnan(cells)
    unit = np.where(pooled.spread > 0, pooled.spread, 1.0)
    z = np.where(known, (cells - pooled.level - covariates @ pooled.coef) / unit, 0.0)
    count = known.sum(axis=0)
    mean = z.sum(axis=0) / np.maximum(count, 1)
    variance = (np.where(known, z - mean, 0.0) ** 2).sum(axis=0) / np.maximum(count - 1, 1)
    return SiteMoments(count[None].astype(float), mean[None], variance[None])


def shrink(
    moments: SiteMoments, usable: np.ndarray, plain: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Return locations and squared scales of every site and feature.

    Shapes: usable (n_features,); returns location, squared_scale (n_sites, n_features).
    """
    location = np.where(moments.count > 0, moments.mean, 0.0)
    known = usable & (moments.count >= 2) & (moments.variance > _NO_SPREAD**2)
    scale = np.where(known, moments.variance, 1.0)
    for i, here in enumerate(known):
        if here.sum() >= _FEWEST_FEATURES and not plain:
            location[i, here], scale[i, here] = _modes(
                moments.count[i, here], moments.mean[i, here], moments.variance[i, here]
            )
    return location, scale


def _modes(n: np.ndarray, mean: np.ndarray, variance: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Joint posterior modes of the location and squared scale of one site's features."""
    centre, width = mean.mean(), mean.var(ddof=1)
    v, vv = variance.mean(), variance.var(ddof=1)
    if width <= 0:
        return mean, variance
    if vv <= _NO_SPREAD**2 * v**2:
        # All features agree on the scale: the prior is a point.
        return (n * width * mean + v * centre) / (n * width + v), np.full(len(n), v)
    a, b = 2.0 + v**2 / vv, v + v**3 / vv
    inside = (n - 1) * variance
    g, d = mean, variance
    for _ in range(_MOST_PASSES):
        new_g = (n * width * mean + d * centre) / (n * width + d)
        new_d = (b + 0.5 * (inside + n * (mean - new_g) ** 2)) / (n / 2 + a - 1)
        moved = max(np.abs(new_g - g).max(), np.abs(new_d / d - 1).max())
        g, d = new_g, new_d
        if moved < _TOLERANCE:
            break
    return g, d


def variance_explained(moments: SiteMoments) -> np.ndarray:
    """Share of each feature's variance that lies between sites, once covariates are taken out."""
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
        inside = np.arange(self.shape[0]) if rows is None else np.asarray(rows)
        x = self.base.read(rows, cols).astype(np.float64)
        site = self.site[inside]
        # Samples of unseen sites and columns that are not harmonised stay as they are.
        at = np.flatnonzero(site < len(self.shift) - 1)
        level = self.pooled.level[cols] + self.covariates[inside[at]] @ self.pooled.coef[:, cols]
        shift, factor = self.shift[site[at]][:, cols], self.factor[site[at]][:, cols]
        same = ((shift == 0) & (factor == 1)) | (x[at] == self.pooled.held[cols])
        x[at] = np.where(same, x[at], level + (x[at] - level - shift) * factor)
        return x.astype(self.dtype, copy=False)
