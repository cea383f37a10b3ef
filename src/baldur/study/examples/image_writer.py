"""Write a view of voxels as NIfTI images, one per sample, with the mask of its voxels."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import numpy as np

from baldur.atomic_io import make_folder, write_atomically
from baldur.optional import import_extra
from baldur.views.view import View

MASK = "mask.nii.gz"
_LEVEL = 1  # of compression: noise does not become smaller, and the empty surroundings do


def write_images(folder: Path, name: str, view: View, ids: np.ndarray) -> dict[str, Any]:
    """Write ``NAME/ID.nii.gz`` for every sample, and ``NAME_mask.nii.gz``."""
    nib = import_extra("nibabel", "imaging", "Writing simulated images")
    info = view.feature_info
    assert info is not None
    shape, affine = tuple(info.attrs["shape"]), np.asarray(info.attrs["affine"], dtype=float)
    at = tuple(info[axis].to_numpy() for axis in "ijk")

    def write(path: Path, values: np.ndarray) -> None:
        cells = np.zeros(shape, dtype=values.dtype)
        cells[at] = values
        content = nib.Nifti1Image(cells, affine).to_bytes()
        # Thousands of files: waiting for the disk after each would take minutes. The study file,
        # without which nothing is read, is written last.
        write_atomically(path, gzip.compress(content, _LEVEL, mtime=0), sync=False)

    make_folder(folder / name)
    for sample, row in zip(ids, view.raw(), strict=True):
        write(folder / name / f"{sample}.nii.gz", row)
    mask = f"{name}_{MASK}"
    write(folder / mask, np.ones(len(info), dtype=np.uint8))
    file = f"{name}/*.nii.gz"
    return {"file": file, "kind": "nifti", "mask": mask, "id_pattern": "{id}.nii.gz"}
