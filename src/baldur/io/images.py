"""NIfTI images, one at a time: opened within limits, resampled to a grid, smoothed, as float32."""

from __future__ import annotations

import gzip
import io
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.limits import MAX_BYTES, ReadLimits, check_size
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.delimited import read_delimited
from baldur.io.files import find_file, parsing

SUFFIXES = (".nii", ".nii.gz")
_PURPOSE = "Reading NIfTI images"
# A voxel as stored, scaled in double precision, and as it is stored in the view.
_PER_VOXEL = 8 + 8 + 4
# A voxel of the grid that is worked on: image, mask, labels and its place.
_PER_GRID_VOXEL = 80
# A voxel that becomes a feature: its place, its name and what is said about it, and copies of them.
_PER_FEATURE = 400
_ADVICE = "Resample the image to larger voxels first."
# Of a grid to resample to: a hundredth of a millimetre over the head of a man.
_LONGEST_SIDE = 30_000
# Far more than any header extension that belongs to a volume.
_MAX_HEADER = 1 << 24


@dataclass(frozen=True, eq=False)
class Grid:
    """Shape and affine of an image: the position of every voxel."""

    shape: tuple[int, int, int]
    affine: np.ndarray

    def same(self, other: Grid) -> bool:
        """Whether the voxels of two grids coincide, to a thousandth of a millimetre."""
        return self.shape == other.shape and np.allclose(self.affine, other.affine, atol=1e-3)

    @property
    def voxel_size(self) -> np.ndarray:
        """Length of the sides of a voxel in millimetres."""
        return np.sqrt((self.affine[:3, :3] ** 2).sum(axis=0))

    def places(self, index: np.ndarray) -> np.ndarray:
        """Return the place of voxels in millimetres.

        Shapes: index (n, 3); returns (n, 3).
        """
        return index @ self.affine[:3, :3].T + self.affine[:3, 3]

    def __str__(self) -> str:
        sides = " x ".join(f"{side:g}" for side in self.voxel_size)
        return f"{' x '.join(map(str, self.shape))} voxels of {sides} mm"


def describe(image: Any) -> str:
    """Return the name of an image for messages: its file, or "an image in memory"."""
    given = isinstance(image, (str, os.PathLike))
    name = image if given else getattr(image, "get_filename", lambda: None)()
    return str(name) if name else "an image given in memory"


def image_grid(image: Any) -> Grid:
    """Return the grid of a 3-D image."""
    affine = np.asarray(image.affine, dtype=np.float64)
    if not np.isfinite(affine).all() or abs(np.linalg.det(affine[:3, :3])) < 1e-12:
        raise InputError(f"{describe(image)}: its affine does not say where the voxels lie.")
    i, j, k = (int(side) for side in image.shape[:3])
    return Grid((i, j, k), affine)


def open_image(image: Any, max_bytes: int = MAX_BYTES) -> Any:
    """Return a 3-D nibabel image; its cells are not read yet.

    Header and size are checked first, because a small file may claim to hold a huge image.
    """
    nib = import_extra("nibabel", "imaging", _PURPOSE)
    if isinstance(image, nib.spatialimages.SpatialImage):
        opened = image
    else:
        path = find_file(image, "a NIfTI image", SUFFIXES)
        with parsing(path, "a NIfTI image"):
            opened = _open_file(nib, path, max_bytes)
    shape = tuple(opened.shape)
    # A trailing axis of length 1 is how some programs write volumes.
    if len(shape) == 4 and shape[3] == 1:
        with parsing(describe(opened), "a NIfTI image"):
            return nib.Nifti1Image(np.asanyarray(opened.dataobj)[..., 0], opened.affine)
    if len(shape) != 3 or min(shape) < 1:
        raise InputError(
            f"{describe(opened)}: expected a 3-D image, but its shape is {shape}. Split a series "
            "into one file per sample, for example with nilearn.image.iter_img."
        )
    return opened


def _open_file(nib: Any, path: Path, max_bytes: int) -> Any:
    """Open a NIfTI 1 or 2 file by its header alone, and check what the header claims.

    nibabel's own way reads the extensions behind the header as well, whatever size they claim.
    """
    packed = path.name.lower().endswith(".gz")
    with gzip.open(path) if packed else path.open("rb") as stream:
        raw = stream.read(540)
    kinds = {348: nib.Nifti1Image, 540: nib.Nifti2Image}  # by the length of the header
    # The first number of a header is its length; its byte order is not known yet.
    lengths = [int.from_bytes(raw[:4], order) for order in ("little", "big")]
    length = next((length for length in lengths if length in kinds), None)
    if length is None:
        raise InputError(
            f"{path}: expected a NIfTI image, but the header does not begin like one. The file is "
            "damaged or of another kind."
        )
    kind = kinds[length]
    header = kind.header_class.from_fileobj(io.BytesIO(raw[:length].ljust(length + 4, b"\0")))
    dtype = header.get_data_dtype()
    if dtype.kind not in "iuf" or dtype.itemsize > 16:
        raise InputError(f"{path}: expected an image of real numbers, but its type is {dtype}.")
    cells = math.prod(int(side) for side in header.get_data_shape())
    if cells < 1:
        raise InputError(f"{path}: its header has an invalid shape, {header.get_data_shape()}.")
    offset = float(header["vox_offset"])
    if not 0 <= offset <= _MAX_HEADER:
        raise InputError(f"{path}: its header has an invalid length of {offset:g} bytes.")
    check_size(path, cells * (_PER_VOXEL + dtype.itemsize), max_bytes, _ADVICE)
    if not packed and path.stat().st_size < offset + cells * dtype.itemsize:
        raise InputError(
            f"{path}: expected {int(offset + cells * dtype.itemsize):,} bytes by its header, but "
            f"the file has {path.stat().st_size:,}. It was cut short; write or copy it again."
        )
    opened = kind(kind.ImageArrayProxy(str(path), header), header.get_best_affine(), header)
    opened.set_filename(str(path))
    return opened


def image_cells(image: Any, dtype: Any = np.float32) -> np.ndarray:
    """Return the voxels of an opened image; infinities are refused, NaN means missing."""
    with parsing(describe(image), "a NIfTI image"), np.errstate(all="ignore"):
        cells = np.asanyarray(image.dataobj).astype(dtype)
    if np.isinf(cells).any():
        raise InputError(
            f"{describe(image)}: it holds infinite values, or some too large for {cells.dtype}. "
            "Replace them by NaN or 0 before reading."
        )
    return cells


def check_millimetres(name: str, value: Any) -> None:
    """Refuse a value that is not a positive length."""
    number = isinstance(value, (int, float, np.integer, np.floating))
    if not number or isinstance(value, bool) or not 0 < value < np.inf:
        raise InputError(f"{name} must be a positive number of millimetres, but got {value!r}.")


def check_grid(grid: Grid, max_bytes: int, features: int = 0) -> None:
    """Refuse a grid whose images or features need too much memory, before allocating any."""
    i, j, k = grid.shape
    check_size(
        f"An image of {grid}",
        float(i) * j * k * _PER_GRID_VOXEL + features * _PER_FEATURE,
        max_bytes,
        "Give a larger voxel_size=, a mask, or resample the images first.",
    )


def resampled_grid(grid: Grid, voxel_size: float) -> Grid:
    """Return a grid with cubic voxels over the same box, along the axes of millimetre space."""
    check_millimetres("voxel_size", voxel_size)
    # Shapes: corners (8, 4) in homogeneous coordinates, places (8, 3) in millimetres.
    corners = np.array([[i, j, k, 1] for i in (0, 1) for j in (0, 1) for k in (0, 1)], dtype=float)
    corners[:, :3] *= np.asarray(grid.shape) - 1
    places = corners @ grid.affine[:3].T
    low, high = places.min(axis=0), places.max(axis=0)
    # A small number on top, so that rounding does not lose a voxel.
    sides = np.floor((high - low) / voxel_size + 1e-6) + 1
    if not np.isfinite(sides).all() or sides.max() > _LONGEST_SIDE:
        raise InputError(
            f"voxel_size={voxel_size!r} makes a grid with {sides.max():.3g} voxels on a side, more "
            f"than {_LONGEST_SIDE:,}. Give larger voxels."
        )
    shape = sides.astype(int)
    affine = np.diag([voxel_size] * 3 + [1.0])
    affine[:3, 3] = low
    return Grid((int(shape[0]), int(shape[1]), int(shape[2])), affine)


def read_image(
    image: Any,
    grid: Grid,
    resample: str | None = None,
    smoothing_fwhm: float | None = None,
    max_bytes: int = MAX_BYTES,
) -> np.ndarray:
    """Return the voxels of one image on a grid, resampled and smoothed as asked for, as float32."""
    opened = open_image(image, max_bytes)
    cells, own_grid = image_cells(opened), image_grid(opened)
    on_grid = own_grid.same(grid)
    if on_grid and smoothing_fwhm is None:
        return cells
    nib = import_extra("nibabel", "imaging", _PURPOSE)
    nilearn = import_extra("nilearn.image", "imaging", "Resampling and smoothing images")
    name = describe(opened)
    # Neither operation knows missing voxels; they count as 0 there.
    image = nib.Nifti1Image(np.nan_to_num(cells), own_grid.affine)
    if not on_grid:
        if resample is None:
            raise InputError(
                f"{name}: expected {grid}, but the image has {own_grid}. Give "
                "resample='continuous' to bring images to the grid of the mask, or resample them "
                "beforehand."
            )
        image = _resampled(image, name, grid, resample)
    if smoothing_fwhm is not None:
        with parsing(name, "a NIfTI image"):
            image = nilearn.smooth_img(image, smoothing_fwhm)
    return np.asarray(image.dataobj, dtype=np.float32)


def _resampled(image: Any, name: str, grid: Grid, interpolation: str) -> Any:
    """Return an image on another grid."""
    nilearn = import_extra("nilearn.image", "imaging", "Resampling images")
    with parsing(name, "a NIfTI image"):
        return nilearn.resample_img(
            image,
            target_affine=grid.affine,
            target_shape=grid.shape,
            interpolation=interpolation,
            force_resample=True,
            copy_header=True,
        )


def labels_on_grid(image: Any, grid: Grid, max_bytes: int = MAX_BYTES) -> np.ndarray:
    """Return a mask or an atlas on a grid; each voxel takes the nearest label, not a mean."""
    opened = open_image(image, max_bytes)
    cells = np.nan_to_num(image_cells(opened, np.float64))
    if image_grid(opened).same(grid):
        return cells
    nib = import_extra("nibabel", "imaging", _PURPOSE)
    image = nib.Nifti1Image(cells.astype(np.float32), opened.affine)
    resampled = _resampled(image, describe(opened), grid, "nearest")
    return np.asarray(resampled.dataobj, dtype=np.float64)


_MAX_REGIONS = 100_000
# Labels are whole numbers of 32 bits, as NIfTI stores them.
_LARGEST_LABEL = 2**32


def region_names(given: Any) -> dict[int, str]:
    """Return label to name, from a dictionary or a table with the columns index and name."""
    if given is None:
        return {}
    if isinstance(given, (str, os.PathLike)):
        path = find_file(given, "a table of region names", (".csv", ".tsv", ".txt"))
        table = read_delimited(path, ReadLimits(path))
        if "index" not in table or "name" not in table:
            raise InputError(
                f"{path}: expected the columns index and name, but found {list(table.columns)}."
            )
        labels = pd.to_numeric(table["index"], errors="coerce")
        if not np.isfinite(labels).all():
            raise InputError(f"{path}: the column index must hold whole numbers.")
        given = dict(zip(labels.tolist(), table["name"].tolist(), strict=True))
    if not isinstance(given, Mapping):
        raise InputError(
            "atlas_labels must be a dictionary or the path of a table, but got "
            f"{type(given).__name__}."
        )
    try:
        return {int(label): str(name) for label, name in given.items()}
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError("atlas_labels must map whole numbers to names.") from error


def number_regions(
    labels: np.ndarray, inside: np.ndarray, names: Mapping[int, str], grid: Grid
) -> tuple[np.ndarray, np.ndarray, pd.DataFrame]:
    """Return the labelled voxels inside a mask, the region of each, and a table of the regions.

    Voxels are positions in the flattened grid, and regions are numbered from 0 in the order of
    their labels. Shapes: labels and inside (the grid); returns (n_voxels,), (n_voxels,).
    """
    whole = np.rint(labels)
    if np.abs(whole - labels).max(initial=0) > 1e-3 or np.abs(whole).max() > _LARGEST_LABEL:
        raise InputError(
            f"The atlas must hold whole numbers, one per region, none above {_LARGEST_LABEL:,}."
        )
    # Label 0 is background.
    voxels = np.flatnonzero((whole != 0) & inside)
    found, region, sizes = np.unique(
        whole.ravel()[voxels].astype(np.int64), return_inverse=True, return_counts=True
    )
    if not len(found) or len(found) > _MAX_REGIONS:
        raise InputError(
            f"The atlas has {len(found)} regions inside the mask; expected between 1 and "
            f"{_MAX_REGIONS:,}. Check that both are in the same space."
        )
    place = grid.places(np.argwhere(np.ones(grid.shape, dtype=bool))[voxels])
    text = [names.get(int(label), f"region_{label}") for label in found]
    info = pd.DataFrame({"label": found, "region": text, "n_voxels": sizes})
    # The centre of each region in millimetres.
    for axis, coordinate in zip("xyz", place.T, strict=True):
        info[axis] = (np.bincount(region, coordinate) / sizes).astype(np.float32)
    return voxels, region, info


def region_means(cells: np.ndarray, voxels: np.ndarray, region: np.ndarray) -> np.ndarray:
    """Return the mean over each region of one image, leaving missing voxels out.

    `voxels` and `region` are those of `number_regions`. A region without a known voxel is NaN.
    Shapes: cells (the grid), voxels and region (n_voxels,); returns (n_regions,).
    """
    values = cells.ravel()[voxels].astype(np.float64)
    observed = ~np.isnan(values)
    totals = np.bincount(region, np.where(observed, values, 0.0))
    sizes = np.bincount(region, observed)
    with np.errstate(invalid="ignore"):
        return totals / np.where(sizes > 0, sizes, np.nan)
