"""Step: what is learned from training rows about the columns of views, before they are scaled.

A step takes a `MultiView` and returns one, with the same samples and views. It may leave columns
out, or change their cells. It remembers which columns of its input it leaves, so that weights on
what is left can be reported for all columns of the input.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from baldur.core.state import Form
from baldur.exceptions import InputError
from baldur.preparation.scaling import Scaling
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
    kind: ClassVar[str]  # The kind of the step, and what is stored of it, see `baldur.core.state`
    stored_fields: ClassVar[dict[str, Form]]

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


class LearnedColumns:
    """Means, scales, limits and ranges over the columns of the input, and weights in their units.

    The base of `Preparation`, which sets these attributes.
    """

    n_features_: dict[str, int]  # Columns of the input
    scaling_: Scaling  # What was learned about the columns that the steps leave
    _names: dict[str, np.ndarray | None]
    _left: dict[str, np.ndarray]  # for views that lose columns, the columns that are left

    def expand(self, name: str, values: Any, fill: Any = 0) -> np.ndarray:
        """Return values of the prepared columns of a view for all columns of the input.

        Parameters
        ----------
        name : str
            View.
        values : array of shape (..., n_prepared)
            Values of the prepared columns, along the last axis.
        fill : scalar, default=0
            For columns that a step left out.

        Returns
        -------
        ndarray of shape (..., n_features)
        """
        values = np.asarray(values)
        if name not in self._left:
            return values
        shape = (*values.shape[:-1], self.n_features_[name])
        made = np.full(shape, fill, dtype=values.dtype)
        made[..., self._left[name]] = values
        return made

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view, the columns of the input that its prepared columns are."""
        return {
            name: self._left[name] if name in self._left else np.arange(width)
            for name, width in self.n_features_.items()
        }

    @property
    def feature_names(self) -> dict[str, np.ndarray | None]:
        """Names of every view's features as they were given to `fit`; None where none were."""
        return dict(self._names)

    @property
    def mean_(self) -> dict[str, np.ndarray]:
        """For each view, the value subtracted from the cells of each column."""
        return self._over_input(self.scaling_.mean_, 0.0)

    @property
    def scale_(self) -> dict[str, np.ndarray]:
        """For each view, the value by which the cells of each column are divided."""
        return self._over_input(self.scaling_.scale_, 1.0)

    @property
    def lower_(self) -> dict[str, np.ndarray]:
        """For each view, the lower limit to which cells of each column are clipped."""
        return self._over_input(self.scaling_.lower_, -np.inf)

    @property
    def upper_(self) -> dict[str, np.ndarray]:
        """For each view, the upper limit to which cells of each column are clipped."""
        return self._over_input(self.scaling_.upper_, np.inf)

    @property
    def minimum_(self) -> dict[str, np.ndarray]:
        """Smallest training value of each column."""
        return self._over_input(self.scaling_.minimum_, np.nan)

    @property
    def maximum_(self) -> dict[str, np.ndarray]:
        """Largest training value of each column."""
        return self._over_input(self.scaling_.maximum_, np.nan)

    @property
    def constant_(self) -> dict[str, np.ndarray]:
        """For each view, a mask of the constant columns."""
        return self._over_input(self.scaling_.constant_, True)

    @property
    def constant_features_(self) -> dict[str, np.ndarray]:
        """For each view, the names of the constant columns."""
        made = {}
        for name, flat in self.constant_.items():
            at, names = np.flatnonzero(flat), self._names[name]
            made[name] = np.array([f"{name}_{j}" for j in at]) if names is None else names[at]
        return made

    @property
    def alleles_(self) -> dict[str, np.ndarray]:
        """Counted and other allele of the prepared columns of variants."""
        return self.scaling_.alleles_

    @property
    def covariates_(self) -> Any:
        """The covariates that are regressed out, as numbers; None without any."""
        return self.scaling_.covariates_

    @property
    def n_samples_(self) -> int:
        """Number of training samples with a positive weight."""
        return self.scaling_.n_samples_

    @property
    def needed_(self) -> dict[str, np.ndarray] | None:
        """Columns of the input that a model uses; None before `mark_needed` was called."""
        needed = self.scaling_.needed_
        return None if needed is None else self._over_input(needed, False)

    def _over_input(self, found: dict[str, np.ndarray], fill: Any) -> dict[str, np.ndarray]:
        made = {}
        for name, values in found.items():
            # A range of whole numbers has no room for "none"; it becomes floats where needed.
            missing = isinstance(fill, float) and values.dtype.kind in "iu"
            values = values.astype(np.float64) if missing and name in self._left else values
            made[name] = self.expand(name, values, fill)
        return made

    def ranks_of(self, name: str, column: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the knots of a ranked prepared column and their scores; None where not ranked."""
        return self.scaling_.ranks_of(name, column)

    # -- back to the units of the input ----------------------------------------------------

    def coef_in_input_units(self, name: str, coef: Any) -> np.ndarray:
        """Return weights per unit of the input from weights on the prepared view.

        For a clipped column the weight holds within the clip; beyond it a cell counts as the
        limit (`lower_`, `upper_`). A ranked column has no weight per unit that holds throughout:
        what is returned is the weight times the slope of its scores at the median, and the weight
        per standard deviation is the one to read.

        Parameters
        ----------
        name : str
            View.
        coef : array of shape (n_prepared,) or (..., n_prepared)
            Weights on the prepared columns.

        Returns
        -------
        ndarray of shape (..., n_features)
            coef / scale over all columns of the input, and 0 for columns without information.
        """
        return self.expand(name, self.scaling_.coef_in_input_units(name, coef))

    def intercept_shift(self, name: str, coef: Any) -> np.ndarray:
        """Return what to add to the intercept when the weights are in input units.

        Parameters
        ----------
        name : str
            View.
        coef : array of shape (..., n_prepared)
            Weights on the prepared columns.

        Returns
        -------
        ndarray of shape (...)
            -sum of mean * coef / scale, less the constant part of what covariates explain.
        """
        return self.scaling_.intercept_shift(name, coef)

    def covariate_weights(self, name: str, coef: Any) -> np.ndarray:
        """Return the weight each covariate gets, in its own units, from being regressed out.

        Together with `coef_in_input_units` and `intercept_shift` this reproduces X coef. The
        covariates are those of ``covariates_.features``.
        """
        return self.scaling_.covariate_weights(name, coef)


def columns_left(steps: Sequence[Step]) -> dict[str, np.ndarray]:
    """Return the columns of the input that all steps leave, for views that lose columns."""
    left: dict[str, np.ndarray] = {}
    for step in steps:
        for name, index in step.columns_.items():
            left[name] = left[name][index] if name in left else index
    return left
