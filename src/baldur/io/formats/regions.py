"""Means of an image over the labelled regions of an atlas."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from baldur.exceptions import InputError
from baldur.io.formats.delimited import read_delimited
from baldur.io.formats.files import find_file
from baldur.io.formats.images import Grid
from baldur.views.encode import feature_names

_MAX_REGIONS = 100_000
# Labels are whole numbers of 32 bits, as NIfTI stores them.
_LARGEST_LABEL = 2**32


def region_names(given: Any) -> dict[int, str]:
    """Return label to name, from a dictionary or a table with the columns index and name."""
    if given is None:
        return {}
    if isinstance(given, Mapping):
        try:
            return {int(label): str(name) for label, name in given.items()}
        except (TypeError, ValueError, OverflowError) as error:
            raise InputError("atlas_labels must map whole numbers to names.") from error
    if not isinstance(given, (str, os.PathLike)):
        raise InputError(
            "atlas_labels must be a dictionary or the path of a table, but got "
            f"{type(given).__name__}."
        )
    path = find_file(given, "a table of region names", (".csv", ".tsv", ".txt"))
    table = read_delimited(path)
    if "index" not in table or "name" not in table:
        raise InputError(
            f"{path}: expected the columns index and name, but found {list(table.columns)}."
        )
    labels = pd.to_numeric(table["index"], errors="coerce")
    if not np.isfinite(labels).all():
        raise InputError(f"{path}: the column index must hold whole numbers.")
    return {
        int(label): str(name)
        for label, name in zip(labels.tolist(), table["name"].tolist(), strict=True)
    }


@dataclass(frozen=True, eq=False)
class Regions:
    """Labelled voxels of a grid, with number, name and position of each region."""

    voxels: np.ndarray
    number: np.ndarray
    info: pd.DataFrame
    names: np.ndarray

    @property
    def count(self) -> int:
        """Number of regions of the atlas."""
        return len(self.names)

    @classmethod
    def of(
        cls,
        labels: np.ndarray,
        inside: np.ndarray,
        names: Mapping[int, str],
        grid: Grid,
        source: str | None,
    ) -> Regions:
        """Number the regions with at least one voxel inside; 0 is background."""
        whole = np.rint(labels)
        if np.abs(whole - labels).max(initial=0) > 1e-3 or np.abs(whole).max() > _LARGEST_LABEL:
            raise InputError(
                f"The atlas must hold whole numbers, one per region, none above {_LARGEST_LABEL:,}."
            )
        voxels = np.flatnonzero((whole != 0) & inside)
        found, number, sizes = np.unique(
            whole.ravel()[voxels].astype(np.int64), return_inverse=True, return_counts=True
        )
        if not len(found) or len(found) > _MAX_REGIONS:
            raise InputError(
                f"The atlas has {len(found)} regions inside the mask; expected between 1 and "
                f"{_MAX_REGIONS:,}. Check that both are in the same space."
            )
        place = np.argwhere(np.ones(grid.shape, dtype=bool))[voxels]
        place = place @ grid.affine[:3, :3].T + grid.affine[:3, 3]
        text = [names.get(int(label), f"region_{label}") for label in found]
        info = pd.DataFrame({"label": found, "region": text, "n_voxels": sizes})
        for axis, at in zip("xyz", place.T, strict=True):
            info[axis] = (np.bincount(number, at) / sizes).astype(np.float32)
        info.attrs.update(
            shape=list(grid.shape), affine=grid.affine.tolist(), kind="regions", atlas=source
        )
        return cls(voxels, number, info, feature_names(text, source or "atlas_labels"))

    def means(self, cells: np.ndarray) -> np.ndarray:
        """Return the mean over each region of one image, leaving missing voxels out."""
        values = cells.ravel()[self.voxels].astype(np.float64)
        known = ~np.isnan(values)
        totals = np.bincount(self.number, np.where(known, values, 0.0), self.count)
        sizes = np.bincount(self.number, known, self.count)
        with np.errstate(invalid="ignore"):
            return totals / np.where(sizes > 0, sizes, np.nan)
