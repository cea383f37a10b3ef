"""VariantFilter: rare, poorly called and monomorphic variants, judged on training rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from baldur.core.state import (
    Boolean,
    ByName,
    Flags,
    Form,
    Integer,
    Names,
    Number,
    Sizes,
    Texts,
    need,
)
from baldur.exceptions import InputError
from baldur.preparation.column_statistics import column_statistics
from baldur.preparation.steps import (
    ColumnFilter,
    check_multiview,
    chosen_views,
)
from baldur.views.container import MultiView, select_columns
from baldur.views.validate import some


class VariantFilter(ColumnFilter):
    """Drop rare, poorly called and monomorphic variants, judged on training rows.

    Parameters
    ----------
    views : str or sequence of str, optional
        Views of allele counts (0, 1, 2). By default those with a chromosome in their
        `feature_info`, as `read_plink` makes them; other views pass unchanged.
    min_maf : float, default=0
        Smallest frequency of the rarer allele among called genotypes.
    max_missing : float, default=1
        Largest share of people without a call.
    drop_monomorphic : bool, default=True
        Drop variants with one genotype only, or without any call.

    Attributes
    ----------
    kept_ : dict of str to bool array
        For each view, which variants remain.
    dropped_ : dict of str to dict of str to int
        For each view, how many variants were dropped and why: ``monomorphic``, ``rare``,
        ``missing``; a variant counts under the first reason that applies.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from baldur import MultiView
    >>> from baldur.preparation import VariantFilter
    >>> G = np.array([[0, 1, 2], [0, 1, -127], [0, 2, -127], [0, 0, 1]], dtype=np.int8)
    >>> info = pd.DataFrame({"chromosome": [1, 1, 2]})
    >>> X = MultiView({"snps": G}, feature_info={"snps": info})
    >>> step = VariantFilter(max_missing=0.1).fit(X)
    >>> step.dropped_
    {'snps': {'monomorphic': 1, 'rare': 0, 'missing': 1}}
    >>> step.transform(X).feature_names["snps"].tolist()
    ['snps_1']
    """

    def __init__(
        self,
        views: str | Sequence[str] | None = None,
        *,
        min_maf: float = 0.0,
        max_missing: float = 1.0,
        drop_monomorphic: bool = True,
    ) -> None:
        self.views = views
        self.min_maf = min_maf
        self.max_missing = max_missing
        self.drop_monomorphic = drop_monomorphic

    def fit(self, X: MultiView, y: Any = None) -> VariantFilter:
        """Judge every variant on the rows of `X`; `y` is not used."""
        self._check_options()
        X = check_multiview(X, "VariantFilter")
        names = chosen_views(X, self.views, "VariantFilter")
        if self.views is None:
            names = [
                name
                for name in names
                if name in X.feature_info and "chromosome" in X.feature_info[name]
            ]
        self.kept_ = {}
        self.dropped_: dict[str, dict[str, int]] = {}
        self._names: dict[str, np.ndarray] = {}
        for name in names:
            view = X.view(name)
            found = column_statistics(view)
            called = int(view.present.sum())
            frequency = np.minimum(found.mean / 2, 1 - found.mean / 2)
            one = found.constant if self.drop_monomorphic else np.zeros(view.shape[1], dtype=bool)
            rare = (frequency < self.min_maf) & ~one
            gaps = (found.count < (1 - self.max_missing) * called - 1e-9) & ~one & ~rare
            self.kept_[name] = ~(one | rare | gaps)
            self.dropped_[name] = {
                "monomorphic": int(one.sum()),
                "rare": int(rare.sum()),
                "missing": int(gaps.sum()),
            }
            if not self.kept_[name].any():
                raise InputError(
                    f"View {name!r}: the filters leave none of {view.shape[1]:,} variants "
                    f"({self.dropped_[name]}, judged on {called} people). Loosen min_maf or "
                    "max_missing, or leave the view out."
                )
            at = np.flatnonzero(self.kept_[name])
            self._names[name] = view.names_of(at)
        return self

    def _check_options(self) -> None:
        if not 0 <= self.min_maf <= 0.5 or not 0 <= self.max_missing <= 1:
            raise InputError(
                "VariantFilter: min_maf must lie between 0 and 0.5 and max_missing between 0 and "
                f"1, but got {self.min_maf!r} and {self.max_missing!r}."
            )

    def transform(self, X: MultiView) -> MultiView:
        """Return `X` with the variants that remain after `fit`; nothing is copied."""
        check_is_fitted(self, "kept_")
        X = check_multiview(X, "VariantFilter")
        for name, mask in self.kept_.items():
            if name not in X.view_names or X.n_features[name] != len(mask):
                raise InputError(
                    f"VariantFilter: expected the view {name!r} with {len(mask):,} variants as in "
                    f"fit, but the views are {some(list(X.n_features.items()))}."
                )
            if (X.view(name).names_of(np.flatnonzero(mask)) != self._names[name]).any():
                raise InputError(
                    f"View {name!r}: expected the variants of fit in the same order, but their "
                    "names differ. Read both sets from files with the same list of variants."
                )
        return select_columns(X, self.columns_)

    kind = "variant filter"
    stored_fields: ClassVar[dict[str, Form]] = {
        "views": Names(or_text=True, optional=True),
        "min_maf": Number(low=0.0, high=0.5),
        "max_missing": Number(low=0.0, high=1.0),
        "drop_monomorphic": Boolean(),
        "kept_": ByName(Flags("?")),
        "dropped_": ByName(ByName(Integer())),
        "_names": ByName(Texts("?")),
    }

    def check_state(self, sizes: Sizes) -> None:
        """Refuse parts that are not of the same views and variants."""
        for part in ("dropped_", "_names"):
            same = list(getattr(self, part)) == list(self.kept_)
            need(same, "expected one entry for each view", part)
        for name, mask in self.kept_.items():
            fits = len(self._names[name]) == mask.sum()
            need(fits, f"expected {mask.sum()} names", "_names", name)


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

    kind = "voxel mask"
    stored_fields: ClassVar[dict[str, Form]] = {
        "views": Names(or_text=True, optional=True),
        "threshold": Number(),
        "coverage": Number(),
        "kept_": ByName(Flags("?")),
    }

    def check_state(self, sizes: Sizes) -> None:
        """Refuse options outside of their range."""
        self._check_options()
