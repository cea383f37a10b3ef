"""make_adni_like: two image views that share one signal, and three tables that summarise them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree
from sklearn.utils import Bunch

from baldur.datasets.simulated_outcomes import (
    RandomState,
    Truth,
    draw_cohort,
    scaled_width,
    streams,
)
from baldur.views import MultiView

FULL_VOXELS = 37_643
VOXEL_MM = 4.0
# Shape of the ellipsoid (left-right, back-front, down-up); its size follows from the voxel count.
_PROPORTIONS = np.array([1.0, 1.25, 0.95])
_MARGIN = 4  # empty voxels around it, so that fields smoothed round the edge stay apart


@dataclass(frozen=True, eq=False)
class BrainGrid:
    """Voxels of an ellipsoid on a regular grid.

    Shapes: mask (i, j, k), affine (4, 4).
    """

    mask: NDArray[np.bool_]
    affine: NDArray[np.float64]

    @property
    def indices(self) -> NDArray[np.intp]:
        """Grid indices of the voxels, (n_voxels, 3)."""
        return np.argwhere(self.mask)

    @property
    def millimetres(self) -> NDArray[np.float64]:
        """Positions of the voxels in millimetres, (n_voxels, 3)."""
        return self.indices @ self.affine[:3, :3].T + self.affine[:3, 3]

    def parcellate(self, n_regions: int) -> NDArray[np.int16]:
        """Cut the voxels into regions of similar size; return the region of each, (n_voxels,)."""
        points = self.millimetres
        seeds = [int(np.argmin(np.sum(points**2, axis=1)))]
        nearest = np.full(len(points), np.inf)
        # Farthest-point sampling: the same seeds for the same grid, without chance.
        for _ in range(n_regions - 1):
            nearest = np.minimum(nearest, np.sum((points - points[seeds[-1]]) ** 2, axis=1))
            seeds.append(int(np.argmax(nearest)))
        _, region = cKDTree(points[seeds]).query(points)
        return np.asarray(region, dtype=np.int16)

    def smooth_fields(
        self, count: int, fwhm_mm: float, rng: np.random.Generator
    ) -> NDArray[np.float32]:
        """Draw Gaussian fields of unit variance, smooth over `fwhm_mm`; (count, n_voxels)."""
        sigma = fwhm_mm / (2.0 * np.sqrt(2.0 * np.log(2.0))) / float(self.affine[0, 0])
        # With wrapping the variance is the same everywhere, and one factor makes it 1.
        impulse = np.zeros(self.mask.shape, dtype=np.float32)
        impulse[0, 0, 0] = 1.0
        norm = np.sqrt(np.sum(gaussian_filter(impulse, sigma, mode="wrap").astype(float) ** 2))
        out = np.empty((count, int(self.mask.sum())), dtype=np.float32)
        white = np.empty(self.mask.shape, dtype=np.float32)
        field = np.empty_like(white)
        for row in out:
            rng.standard_normal(out=white, dtype=np.float32)
            gaussian_filter(white, sigma, mode="wrap", output=field)
            row[:] = field[self.mask]
        out /= np.float32(norm)
        return out


def make_grid(n_voxels: int = FULL_VOXELS) -> BrainGrid:
    """Make an ellipsoid of exactly `n_voxels` voxels; with fewer of them they are larger."""
    # Semi-axes in voxels, from the volume 4/3 pi a b c.
    radius = np.cbrt(n_voxels * 3.0 / (4.0 * np.pi * np.prod(_PROPORTIONS)))
    half = np.ceil(radius * _PROPORTIONS).astype(int) + _MARGIN
    shape = 2 * half + 1
    offsets = np.indices(shape).reshape(3, -1).T - half
    distance = np.sum((offsets / _PROPORTIONS) ** 2, axis=1)
    mask = np.zeros(len(offsets), dtype=bool)
    mask[np.argsort(distance, kind="stable")[:n_voxels]] = True
    size = VOXEL_MM * np.cbrt(FULL_VOXELS / n_voxels)
    affine = np.diag([size, size, size, 1.0])
    affine[:3, 3] = -size * half
    return BrainGrid(mask.reshape(shape), affine)


N_LATE = 661
N_EARLY = 402
N_REGIONS = 136
IMAGES = ("t1_intensity", "grey_matter")
TABLES = ("grey_matter_volume", "white_matter_volume", "csf_volume")

FWHM_MM = 12.0
SEPARATION = 2.0  # distance of the class means of the latent score, in its s.d.
STRENGTH = 0.5  # s.d. of a voxel at the peak of the signal, per s.d. of the latent score
COMMON = 0.5  # share of an image's noise that both images have
TABLE_NOISE = 0.7  # s.d. of a table's own noise, relative to the s.d. of the regional mean

# Centres (mm) and radii (mm) of the patches with signal: both images, then one each.
_BOTH = (((-26.0, -18.0, -16.0), 14.0), ((26.0, -18.0, -16.0), 14.0))
_OWN = {
    "t1_intensity": (((0.0, 6.0, 18.0), 12.0),),
    "grey_matter": (((0.0, -52.0, -32.0), 12.0),),
}


def make_adni_like(scale: float = 1.0, *, random_state: RandomState = None) -> Bunch:
    """Simulate a cohort shaped as ADNI: late against early mild cognitive impairment.

    Views: ``t1_intensity`` and ``grey_matter`` (37,643 voxels of 4 mm each, float32, spatially
    smooth) and ``grey_matter_volume``, ``white_matter_volume`` and ``csf_volume`` (136 regions
    each). One latent score per person separates the classes. It lowers or raises both images in a
    few patches; the tables are regional means of the images with noise of their own, so they
    repeat the signal and add nothing.

    Parameters
    ----------
    scale : float, default=1.0
        Share of the voxels to simulate, at most 1 and enough for 136 regions (0.0037). The size of
        the brain does not change; the voxels become larger.
    random_state : int, Generator, RandomState, SeedSequence or None
        Seed. The same seed gives the same bytes.

    Returns
    -------
    sklearn.utils.Bunch
        ``data`` (`MultiView`, 1,063 rows), ``target`` (1 for the 661 late, 0 for the 402 early),
        ``target_names``, ``truth`` (`Truth`), ``mask`` (3-D, bool; voxels are in its C order) and
        ``affine`` (4 x 4, to millimetres). Voxels are named by their grid indices, such as
        ``"12_20_9"``. ``data.feature_info`` holds these indices ``i j k``, positions ``x y z`` in
        millimetres and ``region``, and in its ``attrs`` shape and affine of the image. An effect
        is the difference of the class means (late minus early) in units of the feature's s.d.
        within a class; ``truth.score`` is the latent score, and ``truth.redundant`` names the
        tables.

    Notes
    -----
    What the paper states of the real cohort: 661 people with late and 402 with early mild
    cognitive impairment (a prevalence of 62 %), T1-weighted intensities (37,643 features) and grey
    matter densities, both resampled to voxels of "4 mm^3", volumes of grey matter, white matter
    and cerebrospinal fluid in 136 regions, and which regions its model selected: hippocampus,
    amygdala and parahippocampal cortex on both sides in grey matter, with smaller clusters in
    thalamus, cerebellum and precentral cortex; the ventricles, extending to hippocampus,
    cerebellum and thalamus, and a smaller cluster in the insula in the intensities.

    Assumptions, which the paper does not settle: grey matter has as many voxels as the
    intensities, with edges of 4 mm. An ellipsoid stands for the brain. Noise of an image is white
    noise smoothed by a Gaussian kernel of 12 mm FWHM, usual after registration and modulation
    (neighbouring voxels of 4 mm correlate by .86), and half of its variance is shared by the two
    images, because both come from one scan. The class means of the latent score differ by two
    standard deviations, and a voxel in the middle of a patch has half a standard deviation of it:
    a single such voxel separates the classes with an AUC of .74 and the latent score itself with
    .92; the paper reports .85. Patches of 14 mm lie at the hippocampi (both images), one of 12 mm
    at the ventricles (intensities) and one in the cerebellum (grey matter). Tables are means of
    regions of similar size with noise of .7 of their standard deviation, so that they contain
    nothing that the images do not.

    Examples
    --------
    >>> from baldur.datasets import make_adni_like
    >>> cohort = make_adni_like(scale=0.01, random_state=0)
    >>> cohort.data.n_features["grey_matter"], cohort.truth.views
    (376, ['t1_intensity', 'grey_matter'])
    """
    n_voxels = scaled_width(scale, FULL_VOXELS, least=N_REGIONS)
    order, latent, table_rng, *image_rngs = streams(random_state, 6)

    n = N_LATE + N_EARLY
    target = draw_cohort(N_LATE, N_EARLY, order)
    score = SEPARATION * (target - 0.5) + latent.standard_normal(n)

    grid = make_grid(n_voxels)
    region = grid.parcellate(N_REGIONS)
    loadings = _loadings(grid)
    images = _draw_images(grid, score, loadings, image_rngs)
    tables = _draw_tables(images, region, table_rng)

    views: dict[str, NDArray[np.float32]] = {**images, **tables}
    voxels = _voxel_table(grid, region)
    voxel_names = ["_".join(map(str, ijk)) for ijk in grid.indices.tolist()]
    region_names = [f"region{r + 1:03d}" for r in range(N_REGIONS)]
    names = dict.fromkeys(IMAGES, voxel_names) | dict.fromkeys(TABLES, region_names)
    data = MultiView(
        views,
        sample_ids=np.array([f"adni{i:04d}" for i in range(n)]),
        feature_names=names,
        feature_info=dict.fromkeys(IMAGES, voxels),
    )
    return Bunch(
        data=data,
        target=target,
        target_names=np.array(["EMCI", "LMCI"]),
        truth=_truth(tables, loadings, region, target, score),
        mask=grid.mask,
        affine=grid.affine,
    )


def _loadings(grid: BrainGrid) -> dict[str, NDArray[np.float64]]:
    """Return the shift of each voxel per unit of the latent score, (n_voxels,) for each image.

    It is positive in one image and negative in the other, in smooth patches with a clear edge.
    """
    points = grid.millimetres
    loadings = {}
    for sign, name in zip((1.0, -1.0), IMAGES, strict=True):
        profile = np.zeros(len(points))
        for centre, radius in (*_BOTH, *_OWN[name]):
            # A coarse grid must not step over a patch.
            radius = max(radius, float(grid.affine[0, 0]))
            squared = np.sum((points - np.array(centre)) ** 2, axis=1) / radius**2
            profile = np.maximum(profile, 1.0 - squared)  # 1 in the centre, 0 beyond the radius
        loadings[name] = sign * STRENGTH * profile
    return loadings


def _draw_images(
    grid: BrainGrid,
    score: NDArray[np.float64],
    loadings: dict[str, NDArray[np.float64]],
    rngs: list[np.random.Generator],
) -> dict[str, NDArray[np.float32]]:
    """Draw both images, (n, n_voxels): signal, common noise and noise of their own."""
    n, width = len(score), int(grid.mask.sum())
    images = {name: np.empty((n, width), dtype=np.float32) for name in IMAGES}
    common_rng, *image_rngs = rngs
    for first in range(0, n, 32):
        rows = slice(first, min(first + 32, n))
        count = rows.stop - rows.start
        common = grid.smooth_fields(count, FWHM_MM, common_rng)
        common *= np.float32(np.sqrt(COMMON))
        for name, rng in zip(IMAGES, image_rngs, strict=True):
            block = grid.smooth_fields(count, FWHM_MM, rng)
            block *= np.float32(np.sqrt(1.0 - COMMON))
            block += common
            block += np.outer(score[rows], loadings[name]).astype(np.float32)
            images[name][rows] = block
    return images


def _regional_means(X: NDArray[np.floating], region: NDArray[np.int16]) -> NDArray[np.float64]:
    """Average voxels (columns) by region; sums in a fixed order, whatever the number of threads."""
    by_region = np.argsort(region, kind="stable")
    sizes = np.bincount(region, minlength=N_REGIONS)
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    means = np.empty((len(X), N_REGIONS))
    for first in range(0, len(X), 64):
        rows = slice(first, first + 64)
        block = X[rows][:, by_region].astype(np.float64)
        means[rows] = np.add.reduceat(block, starts, axis=1) / sizes
    return means


def _summarise(t1: NDArray[np.float64], gm: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Combine regional means of the two images into the three tables."""
    return dict(zip(TABLES, (gm, t1, 0.5 * (t1 - gm)), strict=True))


def _draw_tables(
    images: dict[str, NDArray[np.float32]], region: NDArray[np.int16], rng: np.random.Generator
) -> dict[str, NDArray[np.float32]]:
    """Draw the tables (n, N_REGIONS): combined regional means of the images, with noise."""
    tables = {}
    for name, value in _summarise(*(_regional_means(images[v], region) for v in IMAGES)).items():
        noise = TABLE_NOISE * value.std(axis=0) * rng.standard_normal(value.shape)
        tables[name] = (value + noise).astype(np.float32)
    return tables


def _voxel_table(grid: BrainGrid, region: NDArray[np.int16]) -> pd.DataFrame:
    """Return grid indices, position and region of every voxel; the grid itself is in ``attrs``."""
    table = pd.DataFrame(grid.indices.astype(np.int32), columns=["i", "j", "k"])
    table[["x", "y", "z"]] = grid.millimetres
    table["region"] = region
    # As the reader of NIfTI images has them, so that weights can be drawn and written as images.
    table.attrs.update(shape=list(grid.mask.shape), affine=grid.affine.tolist(), kind="voxels")
    return table


def _truth(
    tables: dict[str, NDArray[np.float32]],
    loadings: dict[str, NDArray[np.float64]],
    region: NDArray[np.int16],
    target: NDArray[np.int64],
    score: NDArray[np.float64],
) -> Truth:
    """Return the voxels and features that carry signal, and the size of their effects.

    An effect is the difference of the class means in standard deviations within a class.
    """
    # Within a class a voxel has noise of variance 1 and the score's variance of 1 times loading^2.
    by_view = {v: SEPARATION * b / np.sqrt(1.0 + b**2) for v, b in loadings.items()}
    # The s.d. of a regional mean has no closed form: take that of the rows drawn.
    shifts = _summarise(*(_regional_means(loadings[v][None], region)[0] for v in IMAGES))
    for name, shift in shifts.items():
        groups = [tables[name][target == c].astype(np.float64) for c in (0, 1)]
        within = np.sqrt(sum(np.sum((g - g.mean(axis=0)) ** 2, axis=0) for g in groups))
        by_view[name] = SEPARATION * shift / (within / np.sqrt(len(target) - 2))
    features = {v: np.flatnonzero(effect) for v, effect in by_view.items()}
    return Truth(
        n_features={v: len(effect) for v, effect in by_view.items()},
        features=features,
        effects={v: effect[features[v]] for v, effect in by_view.items()},
        score=score,
        redundant=TABLES,
    )
