"""A brain-like grid: an ellipsoid of voxels, regions on it, and smooth random fields."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from scipy.spatial import cKDTree

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
        """Cut the voxels into regions of similar size, each around one voxel; (n_voxels,)."""
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
        """Draw stationary Gaussian fields of unit variance; (count, n_voxels)."""
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
    """Make an ellipsoid of exactly `n_voxels` voxels."""
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
