"""Step: what is learned from training rows about the columns of views, before they are scaled.

A step takes a `MultiView` and returns one, with the same samples and views. It may leave columns
out, or change their cells. It remembers which columns of its input it leaves, so that weights on
what is left can be reported for all columns of the input.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from baldur.exceptions import InputError
from baldur.state import Fields, State
from baldur.views.container import MultiView


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

    @property
    @abstractmethod
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view that loses columns, the columns of the input that are left, in order."""

    @property
    def sample_columns(self) -> list[str]:
        """Columns of `MultiView.samples` that the step reads."""
        return []

    @abstractmethod
    def fit(self, X: MultiView, y: Any = None) -> Self:
        """Learn from the training rows `X`; the outcome `y` is not used."""

    @abstractmethod
    def transform(self, X: MultiView) -> MultiView:
        """Return any rows of the same views as the step leaves them."""

    def check_samples(self, X: MultiView) -> None:
        """Refuse samples without the columns of ``samples`` that the step reads."""

    @property
    def input_widths(self) -> dict[str, int]:
        """Number of columns that each view must have before the step; views may be left out."""
        return {}

    @abstractmethod
    def to_state(self) -> State:
        """Return what was learned as plain values, text and arrays."""

    @classmethod
    @abstractmethod
    def from_state(cls, state: Any) -> Self:
        """Build a fitted step from what `to_state` returned."""


class ColumnFilter(Step):
    """Base of the steps that only leave columns out."""

    kept_: dict[str, np.ndarray]  # For each view that the step works on, which columns remain

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view, the columns of the input that remain."""
        return {name: np.flatnonzero(mask) for name, mask in self.kept_.items()}

    @property
    def input_widths(self) -> dict[str, int]:
        """Number of columns that each view had in `fit`."""
        return {name: len(mask) for name, mask in self.kept_.items()}


def check_multiview(X: Any, who: str) -> MultiView:
    """Return `X` if it is a MultiView, or raise an error that says how to make one."""
    if not isinstance(X, MultiView):
        raise InputError(
            f"{who} expects a MultiView, as the readers of baldur.io return, but got "
            f"{type(X).__name__}. Wrap matrices with MultiView.from_dict."
        )
    return X


def chosen_views(mv: MultiView, views: Any, who: str) -> list[str]:
    """Return the views a step works on: those named, or all."""
    if views is None:
        return mv.view_names
    wanted = [views] if isinstance(views, str) else list(views)
    unknown = [name for name in wanted if name not in mv.view_names]
    if unknown:
        raise InputError(
            f"{who}: there is no view {unknown[0]!r}; the views are {mv.view_names}. Correct "
            "views=."
        )
    return wanted


def views_state(views: Any) -> Any:
    """Return the parameter `views` of a step as a plain value."""
    return views if views is None or isinstance(views, str) else [str(v) for v in views]


def read_views(read: Fields) -> Any:
    """Return the parameter `views` of a step from its state."""
    if not read.has("views"):
        return None
    return read.text("views") if type(read.plain("views")) is str else read.names("views")
