"""read_nifti: images and a mask (or an atlas) to a view of voxels (or regions)."""

from __future__ import annotations

import glob
import gzip
import hashlib
import os
import re
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.atomic_io import atomic_file, make_folder
from baldur.core.limits import MAX_BYTES, check_size, no_bare_memory_error
from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.io.files import as_path, check_ids, file_ending, find_file, parsing
from baldur.io.images import (
    SUFFIXES,
    Grid,
    check_grid,
    check_millimetres,
    describe,
    image_grid,
    labels_on_grid,
    number_regions,
    open_image,
    read_image,
    region_means,
    region_names,
    resampled_grid,
)
from baldur.io.tables import read_ids
from baldur.views.container import MultiView
from baldur.views.sources import ArraySource
from baldur.views.table_encoding import feature_names
from baldur.views.view import View

_RESAMPLE = (None, "continuous", "linear", "nearest")
_MAX_STARS = 3
_SUBJECT = re.compile(r"(sub-[A-Za-z0-9]+)")


@no_bare_memory_error
def read_nifti(
    images: str | os.PathLike[str] | Sequence[Any],
    *,
    name: str = "images",
    mask: Any = None,
    atlas: Any = None,
    atlas_labels: Mapping[int, str] | str | os.PathLike[str] | None = None,
    sample_ids: Sequence[Any] | str | os.PathLike[str] | None = None,
    id_pattern: str | None = None,
    resample: str | None = None,
    voxel_size: float | None = None,
    smoothing_fwhm: float | None = None,
    cache_dir: str | os.PathLike[str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> MultiView:
    """Read 3-D images, one per sample, as a view of voxels or of region means.

    Parameters
    ----------
    images : str, path or sequence
        A pattern such as ``"maps/*.nii.gz"`` (files in sorted order), or a list of files or
        nibabel images.
    name : str, default="images"
        Name of the view.
    mask : path or image, optional
        Voxels to keep (non-zero). Without one every voxel of the grid is kept; put a `VoxelMask`
        in front of the estimator to learn the mask from training images.
    atlas : path or image, optional
        Integer labels; the view then holds the mean over each label's voxels (inside the mask,
        if one is given).
    atlas_labels : dict or path, optional
        Names of the labels: a dictionary, or a table with the columns ``index`` and ``name``.
    sample_ids : sequence or path, optional
        Ids in the order of the images, or a table that lists them in its first column. By default
        ``sub-...`` in the file name or its folders, otherwise the file name without its ending.
    id_pattern : str, optional
        Where the id stands in the file name, such as ``"smwc1{id}_T1*.nii"``.
    resample : {None, "continuous", "linear", "nearest"}, default=None
        Interpolation for images on another grid than the mask, atlas or first image. None refuses
        such images.
    voxel_size : float, optional
        Work on cubic voxels of this size in millimetres; needs `resample`.
    smoothing_fwhm : float, optional
        Smooth with a Gaussian of this width in millimetres, after resampling.
    cache_dir : str or path-like, optional
        Folder in which the matrix is kept as a file and read from there, in this and later calls.
        Without it the matrix is held in memory.
    max_bytes : int, default=4 GB
        Memory that one image, the grid and the matrix may take, each.

    Returns
    -------
    MultiView
        One float32 view. For voxels `feature_info` has the grid indices ``i, j, k`` and the place
        ``x, y, z`` in millimetres; for regions ``label``, ``region``, ``n_voxels`` and the centre.
        `to_nifti` writes weights back.

    Raises
    ------
    InputError
        Where an image is missing, damaged, not 3-D or on another grid.
    MissingExtraError
        Without the extra ``imaging``.

    Notes
    -----
    Voxels that are NaN are missing cells; before resampling or smoothing they are set to 0.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import nibabel, numpy as np
    >>> from baldur.io import read_nifti, to_nifti
    >>> folder = tempfile.TemporaryDirectory()
    >>> for i in range(2):
    ...     cells = np.full((2, 2, 2), i + 1, dtype=np.float32)
    ...     file = pathlib.Path(folder.name) / f"sub-0{i}_map.nii.gz"
    ...     nibabel.save(nibabel.Nifti1Image(cells, np.diag([4, 4, 4, 1])), file)
    >>> X = read_nifti(f"{folder.name}/*.nii.gz", name="grey")
    >>> X
    MultiView: 2 samples, 8 features in 1 view
      grey  8  float32
    >>> X.sample_ids
    array(['sub-00', 'sub-01'], dtype='<U6')
    >>> float(to_nifti(np.arange(8.0), X).get_fdata()[1, 0, 1])
    5.0
    >>> folder.cleanup()
    """
    import_extra("nibabel", "imaging", "Reading NIfTI images")
    if resample not in _RESAMPLE:
        raise InputError(f"resample must be one of {_RESAMPLE}, but got {resample!r}.")
    if smoothing_fwhm is not None:
        check_millimetres("smoothing_fwhm", smoothing_fwhm)
    listed = _list_images(images)
    ids = read_ids(sample_ids, len(listed), "read_nifti")
    if ids is None:
        ids = _ids_from_names(listed, id_pattern)
    first = next(image for image in (mask, atlas, listed[0]) if image is not None)
    grid = image_grid(open_image(first, max_bytes))
    if voxel_size is not None:
        if resample is None:
            raise InputError("voxel_size= needs resample=, for example resample='continuous'.")
        grid = resampled_grid(grid, voxel_size)
    check_grid(grid, max_bytes)
    widest = float((grid.voxel_size * grid.shape).max())
    if smoothing_fwhm is not None and smoothing_fwhm > widest:
        raise InputError(
            f"smoothing_fwhm={smoothing_fwhm!r} is wider than the images, which span "
            f"{widest:.0f} mm. Give millimetres, 4 to 12 as a rule."
        )
    read = partial(
        read_image,
        grid=grid,
        resample=resample,
        smoothing_fwhm=smoothing_fwhm,
        max_bytes=max_bytes,
    )
    inside = _mask_on(mask, grid, max_bytes)
    if atlas is not None:
        labels = labels_on_grid(atlas, grid, max_bytes)
        # The absolute path, so that weights can be written back later.
        file = isinstance(atlas, (str, os.PathLike))
        source = str(as_path(atlas).absolute()) if file else None
        voxels, region, info = number_regions(labels, inside, region_names(atlas_labels), grid)
        names = feature_names(info["region"], source or "atlas_labels")
        attributes = {"kind": "regions", "atlas": source}
    elif atlas_labels is not None:
        raise InputError("atlas_labels= names the regions of atlas=, which is not given.")
    else:
        check_grid(grid, max_bytes, int(inside.sum()))
        info = _voxel_info(inside, grid)
        names = _voxel_names(info)
        attributes = {"kind": "voxels"}
    # Plain lists, which any file format can store.
    info.attrs.update(shape=list(grid.shape), affine=grid.affine.tolist(), **attributes)
    if atlas is None and cache_dir is not None:
        matrix = _cached_matrix(listed, read, inside, cache_dir)
    else:
        check_size(
            describe(listed[0]),
            len(listed) * len(info) * 4,
            max_bytes,
            "Give cache_dir= to keep the matrix in a file, a mask, or larger voxels.",
        )
        matrix = np.empty((len(listed), len(info)), dtype=np.float32)
        for row, image in zip(matrix, listed, strict=True):
            cells = read(image)
            row[:] = cells[inside] if atlas is None else region_means(cells, voxels, region)
    view = View(name, ArraySource(matrix), names, info)
    return MultiView.from_views([view], ids)


def _list_images(images: Any) -> list[Any]:
    """Return the files of a pattern or the given images, after a look at each file."""
    if isinstance(images, (str, os.PathLike)):
        pattern = str(as_path(images))
        images = sorted(glob.glob(pattern, recursive=True))
        if not images:
            raise InputError(f"{pattern}: no image fits this pattern. Check folder and ending.")
        wrong = [file for file in images if not file.lower().endswith(SUFFIXES)]
        if wrong:
            raise InputError(
                f"{pattern}: expected only NIfTI images (.nii, .nii.gz), but {wrong[0]} fits the "
                "pattern as well. Make it narrower."
            )
    if isinstance(images, Mapping) or not hasattr(images, "__len__"):
        raise InputError(
            f"Expected a pattern or a list of images, but got {type(images).__name__}."
        )
    if not len(images):
        raise InputError("Expected at least one image, but the list is empty.")
    return [
        find_file(image, "a NIfTI image", SUFFIXES)
        if isinstance(image, (str, os.PathLike))
        else image
        for image in images
    ]


def _ids_from_names(images: list[Any], id_pattern: str | None) -> np.ndarray | None:
    """Return sample ids taken from file names; None where some image has no file."""
    if not all(isinstance(image, Path) for image in images):
        if id_pattern is not None:
            raise InputError("id_pattern= looks at file names, but some images have none.")
        return None
    if id_pattern is not None:
        if not isinstance(id_pattern, str) or id_pattern.count("{id}") != 1:
            raise InputError(f"id_pattern must contain {{id}} once, but got {id_pattern!r}.")
        # Each star is tried at every place for every place of those before it.
        if id_pattern.count("*") > _MAX_STARS or len(id_pattern) > 255:
            raise InputError(f"id_pattern must have at most {_MAX_STARS} stars: {id_pattern!r}.")
        text = re.escape(id_pattern).replace(r"\{id\}", "(.+?)").replace(r"\*", ".*?")
        ids = []
        for image in images:
            hit = re.fullmatch(text, image.name)
            if hit is None:
                raise InputError(
                    f"id_pattern {id_pattern!r} does not fit the file name {image.name!r}."
                )
            ids.append(hit.group(1))
    else:
        ids = [_subject(image) for image in images]
        if None in ids:
            ids = [re.sub(r"\.nii(\.gz)?$", "", i.name, flags=re.IGNORECASE) for i in images]
    return check_ids(ids, len(images), "Sample ids from file names (see id_pattern=)")


def _subject(path: Path) -> str | None:
    """Return "sub-..." from the name of a file, or from the nearest folder that has it."""
    for part in reversed(path.parts):
        if hit := _SUBJECT.search(part):
            return hit.group(1)
    return None


def _mask_on(mask: Any, grid: Grid, max_bytes: int) -> np.ndarray:
    """Return which voxels of a grid lie inside a mask; all of them without one."""
    if mask is None:
        return np.ones(grid.shape, dtype=bool)
    inside = labels_on_grid(mask, grid, max_bytes) > 0
    if not inside.any():
        raise InputError(
            f"{describe(open_image(mask, max_bytes))}: the mask is empty; no voxel is above 0"
            " on the grid of the images. Check that it is in the same space."
        )
    return inside


def _voxel_info(inside: np.ndarray, grid: Grid) -> pd.DataFrame:
    """Return where each voxel inside the mask lies: on the grid (ijk), in millimetres (xyz)."""
    index = np.argwhere(inside)
    place = grid.places(index)
    return pd.DataFrame(
        {
            **{axis: index[:, a].astype(np.int32) for a, axis in enumerate("ijk")},
            **{axis: place[:, a].astype(np.float32) for a, axis in enumerate("xyz")},
        }
    )


def _voxel_names(info: pd.DataFrame) -> np.ndarray:
    i, j, k = (info[axis].to_numpy().astype("U5") for axis in "ijk")
    return np.char.add(np.char.add(np.char.add(i, "_"), np.char.add(j, "_")), k)


def _cached_matrix(
    images: list[Any], read: partial[np.ndarray], inside: np.ndarray, cache_dir: Any
) -> np.ndarray:
    """Return the matrix of images by voxels, left in a file of `cache_dir`.

    The file is written by the first call with these images and options: whole, or not at all.
    `read` is `read_image` with its options, `inside` the mask.
    """
    shape = (len(images), int(inside.sum()))
    folder = make_folder(as_path(cache_dir))
    file = folder / f"images-{_fingerprint(images, read.keywords, inside)}.npy"
    # A link there is replaced: it would lead to cells of another file.
    if file.is_symlink() or not file.is_file():
        header = {"descr": "<f4", "fortran_order": False, "shape": shape}
        # Written, not mapped: a map on a full disk ends the process without a word.
        with atomic_file(file) as stream:
            np.lib.format.write_array_header_1_0(stream, header)
            for image in images:
                stream.write(read(image)[inside].astype("<f4", copy=False).tobytes())
    with parsing(file, "a matrix kept from an earlier call"):
        matrix = np.load(file, mmap_mode="r", allow_pickle=False)
    if matrix.shape != shape or matrix.dtype != np.float32:
        raise InputError(
            f"{file}: expected a matrix of shape {shape} from an earlier call, but it is "
            f"{matrix.dtype} of shape {matrix.shape}. Remove the file."
        )
    return matrix


def _fingerprint(images: list[Any], options: Mapping[str, Any], inside: np.ndarray) -> str:
    """Return a hash of images, mask and options, which names the file of the matrix they make."""
    digest = hashlib.sha256()
    digest.update(np.packbits(inside).tobytes())
    grid = options["grid"]
    used = (grid.shape, grid.affine.tolist(), options["resample"], options["smoothing_fwhm"])
    digest.update(repr(used).encode())
    for image in images:
        if isinstance(image, Path):
            # The content, as copying and unpacking keep or set times as they like.
            with image.open("rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
        else:
            digest.update(np.ascontiguousarray(image.dataobj).tobytes())
            digest.update(np.asarray(image.affine).tobytes())
    return digest.hexdigest()[:24]


def to_nifti(
    weights: Any,
    data: MultiView | pd.DataFrame,
    *,
    name: str | None = None,
    fill: float = 0.0,
    atlas: Any = None,
    file: str | os.PathLike[str] | None = None,
) -> Any:
    """Return weights as an image, the exact inverse of reading it.

    Parameters
    ----------
    weights : array of shape (n_features,) or (k, n_features)
        One value per feature; k rows make an image of k volumes.
    data : MultiView or DataFrame
        Where the features lie: what `read_nifti` returned (any rows of it, also after
        `VoxelMask`), or its `feature_info`.
    name : str, optional
        The view, where `data` has several.
    fill : float, default=0
        Value of voxels without a feature.
    atlas : path or image, optional
        The atlas, for a view of regions; by default the file the view was read with.
    file : str or path-like, optional
        Also write the image there (``.nii`` or ``.nii.gz``), whole or not at all.

    Returns
    -------
    nibabel.Nifti1Image
        float32 for float32 weights, float64 otherwise.

    Examples
    --------
    >>> import nibabel, numpy as np
    >>> from baldur.io import read_nifti, to_nifti
    >>> mask = nibabel.Nifti1Image(np.eye(3, dtype=np.uint8)[None], np.eye(4))
    >>> image = nibabel.Nifti1Image(np.arange(9.0).reshape(1, 3, 3), np.eye(4))
    >>> X = read_nifti([image], mask=mask)
    >>> row = X.view("images").read()[0]
    >>> row
    array([0., 4., 8.], dtype=float32)
    >>> to_nifti(row, X).get_fdata()[0].diagonal()
    array([0., 4., 8.])
    """
    nib = import_extra("nibabel", "imaging", "Writing NIfTI images")
    info = _info(data, name)
    weights = np.asarray(weights)
    if weights.dtype.kind not in "biuf":
        raise InputError(f"weights must be numbers, but their dtype is {weights.dtype}.")
    weights = weights.astype(np.float32 if weights.dtype == np.float32 else np.float64)
    if weights.ndim not in (1, 2) or weights.shape[-1] != len(info):
        raise InputError(
            f"Expected {len(info)} weights, one per feature, but got shape {weights.shape}."
        )
    rows = np.atleast_2d(weights)
    shape = tuple(info.attrs["shape"])
    affine = np.asarray(info.attrs["affine"], dtype=np.float64)
    volumes = np.full((len(rows), *shape), fill, dtype=weights.dtype)
    if info.attrs.get("kind") == "regions":
        _fill_regions(volumes, rows, info, Grid((shape[0], shape[1], shape[2]), affine), atlas)
    else:
        i, j, k = (info[axis].to_numpy() for axis in "ijk")
        volumes[:, i, j, k] = rows
    cells = volumes[0] if weights.ndim == 1 else np.moveaxis(volumes, 0, -1)
    image = nib.Nifti1Image(cells, affine)
    if file is not None:
        _write(image, file)
    return image


def _info(data: Any, name: str | None) -> pd.DataFrame:
    """Return the table with the places of the features, from a container or as given."""
    if isinstance(data, MultiView):
        placed = [view for view, table in data.feature_info.items() if "shape" in table.attrs]
        if name is None and len(placed) != 1:
            raise InputError(f"Say which view with name=; those made of images are {placed}.")
        if name is not None and name not in placed:
            raise InputError(f"View {name!r} is not made of images; those that are: {placed}.")
        return data.feature_info[placed[0] if name is None else name]
    if not isinstance(data, pd.DataFrame) or not {"shape", "affine"} <= set(data.attrs):
        raise InputError(
            "to_nifti needs what read_nifti returned, or its feature_info with the grid in its "
            f"attrs, but got {type(data).__name__}."
        )
    return data


def _fill_regions(
    volumes: np.ndarray, rows: np.ndarray, info: pd.DataFrame, grid: Grid, atlas: Any
) -> None:
    """Write weights (k, n_regions) of regions into the voxels of volumes (k, *grid), in place."""
    atlas = info.attrs.get("atlas") if atlas is None else atlas
    if atlas is None:
        raise InputError("The weights belong to regions; give their atlas with atlas=.")
    labels = np.rint(labels_on_grid(atlas, grid)).astype(np.int64)
    region_labels = info["label"].to_numpy()
    order = np.argsort(region_labels)
    at = np.searchsorted(region_labels[order], labels).clip(max=len(region_labels) - 1)
    region = order[at]
    # The search gives every label a region, also one that has none.
    in_region = region_labels[region] == labels
    for volume, row in zip(volumes, rows, strict=True):
        volume[in_region] = row[region[in_region]]


def _write(image: Any, file: Any) -> None:
    """Write an image, whole or not at all."""
    path = as_path(file)
    if file_ending(path) not in SUFFIXES:
        raise InputError(f"{path}: an image is written as .nii or .nii.gz.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first.")
    cells = image.to_bytes()
    with atomic_file(path) as stream:
        stream.write(gzip.compress(cells) if file_ending(path) == ".nii.gz" else cells)
