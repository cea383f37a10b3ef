"""to_nifti: weights of voxels or regions back to an image."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io.formats.files import as_path, suffix_of
from baldur.io.formats.images import SUFFIXES, Grid, on_grid
from baldur.optional import import_extra
from baldur.views.container import MultiView


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
        _write(nib, image, file)
    return image


def _info(data: Any, name: str | None) -> pd.DataFrame:
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
    atlas = info.attrs.get("atlas") if atlas is None else atlas
    if atlas is None:
        raise InputError("The weights belong to regions; give their atlas with atlas=.")
    labels = np.rint(on_grid(atlas, grid)).astype(np.int64)
    known = info["label"].to_numpy()
    order = np.argsort(known)
    at = np.searchsorted(known[order], labels).clip(max=len(known) - 1)
    at = order[at]
    hit = known[at] == labels
    for volume, row in zip(volumes, rows, strict=True):
        volume[hit] = row[at[hit]]


def _write(nib: Any, image: Any, file: Any) -> None:
    path = as_path(file)
    if suffix_of(path) not in SUFFIXES:
        raise InputError(f"{path}: an image is written as .nii or .nii.gz.")
    if not path.parent.is_dir():
        raise InputError(f"{path}: there is no folder {path.parent}; make it first.")
    # nibabel chooses the format by the ending, which the temporary name has to keep.
    part = path.with_name(f".{os.getpid()}-{path.name}")
    try:
        nib.save(image, part)
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
