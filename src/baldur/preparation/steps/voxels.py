"""VoxelMask: which voxels carry signal, judged on training images."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from baldur.exceptions import InputError
from baldur.preparation.steps.step import (
    ColumnFilter,
    check_multiview,
    chosen_views,
    read_views,
    views_state,
)
from baldur.state import Fields, State, made_by
from baldur.views.container import MultiView
from baldur.views.replace_columns import select_columns
from baldur.views.validate import some


class VoxelMask(ColumnFilter):
    """Keep the voxels whose mean intensity over the training images is not background.

    Parameters
    ----------
    views : str or sequence of str, optional
        Views of voxels; by default those `read_nifti` made. Other views pass unchanged.
    threshold : float, default=0.1
        A voxel is kept if its mean absolute intensity exceeds this share of the 98th percentile
        over all voxels.
    coverage : float, default=0.5
        Share of training images in which the voxel must not be missing.

    Attributes
    ----------
    kept_ : dict of str to bool array
        For each view, which voxels remain.

    Examples
    --------
    >>> import nibabel, numpy as np
    >>> from baldur.preparation import VoxelMask
    >>> from baldur.io import read_nifti
    >>> cells = np.zeros((3, 3, 3))
    >>> cells[1] = 5.0
    >>> X = read_nifti([nibabel.Nifti1Image(cells + 0.01, np.eye(4))] * 2)
    >>> VoxelMask().fit_transform(X).n_features
    {'images': 9}
    """

    def __init__(
        self,
        views: str | Sequence[str] | None = None,
        *,
        threshold: float = 0.1,
        coverage: float = 0.5,
    ) -> None:
        self.views = views
        self.threshold = threshold
        self.coverage = coverage

    def fit(self, X: MultiView, y: Any = None) -> VoxelMask:
        """Judge every voxel on the rows of `X`; `y` is not used."""
        self._check_options()
        X = check_multiview(X, "VoxelMask")
        names = chosen_views(X, self.views, "VoxelMask")
        if self.views is None:
            names = [
                name
                for name in names
                if name in X.feature_info and X.feature_info[name].attrs.get("kind") == "voxels"
            ]
        self.kept_ = {}
        for name in names:
            view = X.view(name)
            level, share = np.zeros(view.shape[1]), np.zeros(view.shape[1])
            present = view.present
            for cols, block in view.iter_blocks():
                known = ~np.isnan(block[present])
                total = np.abs(np.where(known, block[present], 0)).sum(axis=0, dtype=np.float64)
                level[cols] = total / np.maximum(known.sum(axis=0), 1)
                share[cols] = known.mean(axis=0) if present.any() else 0
            bound = self.threshold * np.percentile(level, 98)
            self.kept_[name] = (level > bound) & (share >= self.coverage)
            if not self.kept_[name].any():
                raise InputError(
                    f"View {name!r}: no voxel is left by threshold={self.threshold} and "
                    f"coverage={self.coverage}, judged on {int(present.sum())} images. Give a mask "
                    "image to read_nifti instead."
                )
        return self

    def _check_options(self) -> None:
        if not 0 <= self.threshold < 1 or not 0 <= self.coverage <= 1:
            raise InputError(
                "VoxelMask: threshold must lie in [0, 1) and coverage in [0, 1], but got "
                f"{self.threshold!r} and {self.coverage!r}."
            )

    def transform(self, X: MultiView) -> MultiView:
        """Return `X` with the voxels that remain after `fit`; nothing is copied."""
        check_is_fitted(self, "kept_")
        X = check_multiview(X, "VoxelMask")
        for name, kept in self.kept_.items():
            if X.n_features.get(name) != len(kept):
                raise InputError(
                    f"VoxelMask: expected the view {name!r} with {len(kept):,} voxels as in fit, "
                    f"but the views are {some(list(X.n_features.items()))}."
                )
        return select_columns(X, self.columns_)

    def to_state(self) -> State:
        """Return options and remaining voxels as plain values."""
        return {
            "kind": "voxel mask",
            "views": views_state(self.views),
            "threshold": float(self.threshold),
            "coverage": float(self.coverage),
            "kept": dict(self.kept_),
        }

    @classmethod
    def from_state(cls, state: Any) -> VoxelMask:
        """Build a fitted mask from what `to_state` returned."""
        with Fields(state, "voxel mask") as read:
            made = cls(
                read_views(read),
                threshold=read.number("threshold"),
                coverage=read.number("coverage"),
            )
            made_by((), lambda _: made._check_options(), None, {})
            made.kept_ = read.part("kept", _read_masks)
        return made


def _read_masks(state: Any) -> dict[str, np.ndarray]:
    with Fields(state) as read:
        return {name: read.flags(name, (None,)) for name in state}
