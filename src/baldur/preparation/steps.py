"""Steps: what is learned from training rows about the columns of views, before they are scaled.

A step takes a `MultiView` and returns one, with the same samples and views. It may leave columns
out, as the two filters here do, or change their cells. It remembers which columns of its input it
leaves, so that weights on what is left can be reported for all columns of the input.

The alleles of genotypes, which new files may count the other way round, are at the end.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from baldur.core.state import ByName, Flags, Names, Number, OrNone, Sizes, stored
from baldur.exceptions import InputError
from baldur.views.container import MultiView, select_columns
from baldur.views.validate import some
from baldur.views.view import View


class Step(TransformerMixin, BaseEstimator):
    """Base of the steps of a `Preparation`.

    Attributes
    ----------
    changes_cells : bool
        False for a step that only leaves columns out.
    columns_ : dict of str to int array
        For each view whose columns change, the columns of the input that are left, in order.
    sample_columns : list of str
        Columns of `MultiView.samples` that the step reads.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.preparation import Step, VariantFilter
    >>> from baldur.views import MultiView
    >>> X = MultiView({"snps": np.array([[0, 0, 1], [0, 2, 1], [0, 1, 0]], dtype=np.int8)})
    >>> step = VariantFilter(views="snps", drop_monomorphic=True).fit(X)
    >>> isinstance(step, Step), step.changes_cells, step.columns_
    (True, False, {'snps': array([1, 2])})
    >>> step.transform(X).n_features
    {'snps': 2}
    """

    changes_cells: ClassVar[bool] = False
    kind: ClassVar[str]  # In model folders, see `baldur.core.state`

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view that loses columns, the columns of the input that are left, in order."""
        return {}

    @property
    def sample_columns(self) -> list[str]:
        """Columns of `MultiView.samples` that the step reads."""
        return []

    def fit(self, X: MultiView, y: Any = None) -> Self:
        """Learn from the training rows `X`, and only those; the outcome `y` is not used."""
        self._check_options()
        self._fit(check_multiview(X, type(self).__name__))
        return self

    def transform(self, X: MultiView) -> MultiView:
        """Return any rows of the same views as the step leaves them; nothing wide is copied."""
        check_is_fitted(self)
        return self._transform(check_multiview(X, type(self).__name__))

    @abstractmethod
    def _check_options(self) -> None: ...

    @abstractmethod
    def _fit(self, X: MultiView) -> None: ...

    @abstractmethod
    def _transform(self, X: MultiView) -> MultiView: ...

    def check_samples(self, X: MultiView) -> None:
        """Refuse samples without the columns of ``samples`` that the step reads."""

    @property
    def input_widths(self) -> dict[str, int]:
        """Number of columns that each view must have before the step; views may be left out."""
        return {}


def check_multiview(X: Any, who: str) -> MultiView:
    """Return `X` if it is a MultiView, or raise an error that says how to make one."""
    if not isinstance(X, MultiView):
        raise InputError(
            f"{who} expects a MultiView, as the readers of baldur.io return, but got "
            f"{type(X).__name__}. Wrap matrices with MultiView.from_dict."
        )
    return X


def names_in(names: str | Sequence[str]) -> list[str]:
    """Return the names of an argument that may be a single one."""
    return [names] if isinstance(names, str) else list(names)


def chosen_views(mv: MultiView, views: Any, who: str) -> list[str]:
    """Return the views a step works on: those named, or all."""
    if views is None:
        return mv.view_names
    wanted = names_in(views)
    unknown = [name for name in wanted if name not in mv.view_names]
    if unknown:
        raise InputError(
            f"{who}: there is no view {unknown[0]!r}; the views are {mv.view_names}. Correct "
            "views=."
        )
    return wanted


def missing_and_new(missing: Sequence[str], new: Sequence[str], word: str = "new") -> str:
    """Return in words which names are missing and which are new (or what `word` says)."""
    parts = ((missing, "missing"), (new, word))
    return " and ".join(f"{some(names)} {what}" for names, what in parts if names)


class ColumnFilter(Step):
    """Base of the steps that only leave columns out."""

    what: ClassVar[str]  # What a column is, in words
    views: str | Sequence[str] | None
    kept_: dict[str, np.ndarray]  # For each view that the step works on, which columns remain

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view, the columns of the input that remain."""
        return {name: np.flatnonzero(mask) for name, mask in self.kept_.items()}

    @property
    def input_widths(self) -> dict[str, int]:
        """Number of columns that each view had in `fit`."""
        return {name: len(mask) for name, mask in self.kept_.items()}

    def _fit(self, X: MultiView) -> None:
        self.kept_ = {}
        for name in chosen_views(X, self.views, type(self).__name__):
            view = X.view(name)
            if self.views is not None or self._is_default(view):
                self.kept_[name] = self._judge(view)

    @abstractmethod
    def _is_default(self, view: View) -> bool:
        """Return whether the filter works on a view if none is named."""

    @abstractmethod
    def _judge(self, view: View) -> np.ndarray:
        """Return which columns remain, or raise an error if none does."""

    def _transform(self, X: MultiView) -> MultiView:
        """Return the columns that remain; refuse views of another width than in fit."""
        for name, mask in self.kept_.items():
            if X.n_features.get(name) != len(mask):
                raise InputError(
                    f"{type(self).__name__}: expected the view {name!r} with {len(mask):,} "
                    f"{self.what} as in fit, but the views are {some(list(X.n_features.items()))}."
                )
        return select_columns(X, self.columns_)


@dataclass(eq=False, repr=False)
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

    kind = "voxel mask"
    what = "voxels"

    views: str | Sequence[str] | None = stored(OrNone(Names(or_text=True)), default=None)
    _: KW_ONLY
    threshold: float = stored(Number(), default=0.1)
    coverage: float = stored(Number(), default=0.5)
    kept_: dict[str, np.ndarray] = stored(ByName(Flags("?")), init=False)

    def _check_options(self) -> None:
        if not 0 <= self.threshold < 1 or not 0 <= self.coverage <= 1:
            raise InputError(
                "VoxelMask: threshold must lie in [0, 1) and coverage in [0, 1], but got "
                f"{self.threshold!r} and {self.coverage!r}."
            )

    def _is_default(self, view: View) -> bool:
        return view.feature_info is not None and view.feature_info.attrs.get("kind") == "voxels"

    def _judge(self, view: View) -> np.ndarray:
        """Return which voxels are brighter than background and covered by enough images."""
        # Mean absolute intensity of each voxel, and the share of images in which it is known.
        intensity, coverage = np.zeros(view.shape[1]), np.zeros(view.shape[1])
        present = view.present
        for cols, block in view.iter_blocks():
            observed = ~np.isnan(block[present])
            total = np.abs(np.where(observed, block[present], 0)).sum(axis=0, dtype=np.float64)
            intensity[cols] = total / np.maximum(observed.sum(axis=0), 1)
            coverage[cols] = observed.mean(axis=0) if present.any() else 0
        bright = intensity > self.threshold * np.percentile(intensity, 98)
        kept = bright & (coverage >= self.coverage)
        if not kept.any():
            raise InputError(
                f"View {view.name!r}: no voxel is left by threshold={self.threshold} and "
                f"coverage={self.coverage}, judged on {int(present.sum())} images. Give a mask "
                "image to read_nifti instead."
            )
        return np.asarray(kept)

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored options outside of their range."""
        self._check_options()


# -- alleles of genotypes ------------------------------------------------------------------------

# Files may count either of the two alleles of a variant:
# in fit A/G, now A/G or, on the other strand, T/C: as it is;
# in fit A/G, now G/A or C/T: the other allele is counted, 2 - x;
# in fit A/T (or C/G), now T/A: refused, as swapped alleles and the other strand look the same;
# in fit A/G, now A/C: refused, as it is another variant.
