"""Preparation: everything learned from training rows before a model, in one object.

Steps come first: categories, filters of variants and voxels, alignment of sites. Scaling comes
last, with missing cells and the regression of covariates. Models see prepared columns; their
results are reported for all columns of the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import BaseEstimator, clone

from baldur.core.parameters import is_one_of
from baldur.core.state import ByView, Each, Object, OrNone, Sizes, Texts, Widths, need, stored
from baldur.exceptions import InputError
from baldur.preparation.categories import CategoryEncoder, level_columns
from baldur.preparation.column_statistics import SCALES
from baldur.preparation.covariates import UnknownLevel
from baldur.preparation.new_samples import flag_table, warn_of_shift
from baldur.preparation.scaling import OPTIONS, Scaling
from baldur.preparation.sites import SiteHarmoniser
from baldur.preparation.steps import Step, VoxelMask, check_multiview, missing_and_new, names_in
from baldur.preparation.variants import VariantFilter
from baldur.views.container import MultiView
from baldur.views.prepared_view import PreparedView
from baldur.views.sources import DEFAULT_BLOCK_BYTES
from baldur.views.validate import positive_weights, rename_hint

STEPS: dict[str, type[Step]] = {
    step.__name__: step for step in (CategoryEncoder, VariantFilter, VoxelMask, SiteHarmoniser)
}
"""Steps whose state can be stored, by name."""


def _learned(attribute: str) -> property:
    """Return a property that is an attribute of the scaling."""
    return property(lambda self: getattr(self.scaling_, attribute))


def _over_input(attribute: str, fill: float | bool) -> property:
    """Return a property: an attribute of the scaling, for all columns of the input of each view.

    Columns that a step left out have the value `fill`.
    """

    def values(self: Preparation) -> dict[str, np.ndarray] | None:
        learned: dict[str, np.ndarray] | None = getattr(self.scaling_, attribute)
        if learned is None:
            return None
        over_input = {}
        for name, cells in learned.items():
            # A range of whole numbers has no room for "none"; it becomes floats where needed.
            if isinstance(fill, float) and cells.dtype.kind in "iu" and name in self._remaining:
                cells = cells.astype(np.float64)
            over_input[name] = self.expand(name, cells, fill)
        return over_input

    return property(values)


def _same_names(names: np.ndarray | None, other: np.ndarray | None) -> bool:
    if names is None or other is None:
        return names is other
    return np.array_equal(names, other)


@dataclass(eq=False, repr=False)
class Preparation(BaseEstimator):
    """Learn from training samples how views become the columns of a model.

    Every estimator and every competitor owns one as ``preparation_``: it is fitted once, on the
    training rows, and applied to any rows of the same views. To have more than scaling, give a
    template to the estimator, which it clones:
    ``BaldurClassifier(preparation=Preparation(regress_out=["age"]))``.

    Parameters
    ----------
    scale : {"clipped", "standard", "rank"}, optional
        What a column becomes. "standard": mean 0 and standard deviation 1. "clipped": the same,
        then held within 3 standard deviations, then standardised again, so that a few extreme
        cells do not decide its scale. "rank": normal scores, by the rank of a cell among the
        training values; up to 256 of these are stored per column. Columns of two values and of
        genotype codes (0, 1, 2) are standardised whatever the choice, and a new value outside
        their range counts as the nearest known one. Constant columns contribute 0 in training and
        in prediction, and are listed in `constant_features_`. Default: as the estimator that owns
        the preparation says, otherwise "clipped".
    impute : {"mean", "error"}, default="mean"
        A missing cell takes the training mean, or is refused.
    steps : sequence of Step
        What is done before columns are scaled, in order: `CategoryEncoder`, `VariantFilter`,
        `VoxelMask`, `SiteHarmoniser`. Views with categories that none of the steps encodes get a
        `CategoryEncoder` of their own, in front.
    regress_out : sequence of str
        Columns of `MultiView.samples`, numbers or categories, to regress out of every view. They
        are needed in prediction, too.
    all_missing : {"zero", "error"}, default="zero"
        A column without any training value counts as constant, or is refused.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the products. "auto": float64 for views up to 64 MB in float64, otherwise
        float32 with sums over blocks in float64.
    max_bytes : int, default=64 MB
        Largest block read from a wide view at once.

    Attributes
    ----------
    steps_ : list of Step
        The fitted ones.
    scaling_ : Scaling
        What was learned about the columns that the steps leave.
    columns_ : dict of str to int array
        For each view, the columns of the input that its prepared columns are.
    n_features_ : dict of str to int
        Columns of the input.
    mean_, scale_ : dict of str to ndarray of shape (n_features,)
        Subtracted from and divided into the (clipped) cells of each view; the scale is 1 where
        constant. For a ranked column: the value whose score is 0, and 1 over the slope there. These
        and the following have one entry per column of the input; a column that a step left out
        counts as constant, without a range.
    lower_, upper_ : dict of str to ndarray of shape (n_features,)
        Limits, in the units of the column, that cells are held within; infinite where they are not.
        Beyond them a cell counts as the limit. For a ranked column: its training minimum and
        maximum.
    minimum_, maximum_ : dict of str to ndarray of shape (n_features,)
        Of the training rows, before any clip.
    constant_ : dict of str to bool array
        Columns without information: constant, empty, left out, or explained by the covariates.
    constant_features_ : dict of str to array of str
        Their names.
    covariates_ : Covariates or None
        The covariates that are regressed out, as numbers.
    n_samples_ : int
        Training samples.
    alleles_ : dict of str to array of shape (2, n_columns)
        For views of variants, the allele that is counted and the other one. Rows that count the
        other one are turned round, see `baldur.preparation.steps`.
    needed_ : dict of str to bool array, or None
        Columns that a model uses, see `mark_needed`.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> from baldur import MultiView, Preparation
    >>> rng = np.random.default_rng(0)
    >>> age = rng.uniform(40, 80, 50)
    >>> X = MultiView({"blood": rng.normal(size=(50, 3)) + 0.1 * age[:, None]},
    ...               samples=pd.DataFrame({"age": age}))
    >>> prepared = Preparation(regress_out=["age"]).fit_transform(X)
    >>> bool(np.abs(age @ prepared["blood"].dense()).max() < 1e-9)
    True
    """

    kind = "preparation"

    scale: str | None = None
    impute: str = "mean"
    _: KW_ONLY
    steps: Sequence[Step] = ()
    regress_out: Sequence[str] = ()
    all_missing: str = "zero"
    dtype: str = "auto"
    max_bytes: int = DEFAULT_BLOCK_BYTES
    n_features_: dict[str, int] = stored(Widths(), init=False)
    steps_: list[Step] = stored(Each(Object(*STEPS.values())), init=False)
    scaling_: Scaling = stored(Object(Scaling), init=False)
    # Where the steps changed nothing, the scaling has the same names, and stores them.
    _names: dict[str, np.ndarray | None] = stored(ByView(OrNone(Texts("D")), some=True), init=False)

    # -- fitting and applying --------------------------------------------------------------

    def fit(self, mv: MultiView, y: Any = None, sample_weight: Any = None) -> Preparation:
        """Learn from the rows of `mv`.

        Parameters
        ----------
        mv : MultiView
            Training rows, and only those.
        y : object
            Not used.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts in the statistics of the columns: weight 2 is the row twice,
            weight 0 leaves it out.

        Returns
        -------
        Preparation
            Itself.
        """
        self._fit(mv, sample_weight)
        return self

    def fit_transform(
        self, mv: MultiView, y: Any = None, sample_weight: Any = None
    ) -> dict[str, PreparedView]:
        """Learn from the rows of `mv` and return them prepared; see `fit` and `transform`."""
        after_steps = self._fit(mv, sample_weight)
        if after_steps is None:
            return self.transform(mv)
        return self.scaling_.transform(after_steps)

    def _fit(self, mv: MultiView, sample_weight: Any) -> MultiView | None:
        """Fit, and return `mv` after all steps, or None if some rows have weight 0."""
        check_multiview(mv, "Preparation")
        scaling = Scaling(
            "clipped" if self.scale is None else self.scale,
            self.impute,
            self.all_missing,
            self.dtype,
            self.max_bytes,
            self.regress_out,
        )
        weight = None if sample_weight is None else positive_weights(sample_weight, len(mv))
        every_row_counts = weight is None or bool(weight.all())
        if weight is not None and not every_row_counts:
            used = np.flatnonzero(weight)
            mv, weight = mv[used], weight[used]
        if weight is not None and (weight == weight[0]).all():
            weight = None  # faster, and the same
        self.n_features_ = dict(mv.n_features)
        self._names = {name: mv.view(name).names for name in mv.view_names}
        self.steps_ = []
        after_steps = mv
        for step in self._steps_for(mv):
            fitted = step.fit(after_steps)
            after_steps = fitted.transform(after_steps)
            self.steps_.append(fitted)
        self._remaining = self._remaining_columns()
        self.scaling_ = scaling.fit(after_steps, weight)
        return after_steps if every_row_counts else None

    def _remaining_columns(self) -> dict[str, np.ndarray]:
        """Return the columns of the input that remain after all steps, for views that lose some."""
        remaining: dict[str, np.ndarray] = {}
        for step in self.steps_:
            for name, index in step.columns_.items():
                remaining[name] = remaining[name][index] if name in remaining else index
        return remaining

    def _steps_for(self, mv: MultiView) -> list[Step]:
        """Return the steps to fit: those given, and encoders of categories that none encodes."""
        for step in self.steps:
            if not isinstance(step, Step):
                raise InputError(
                    "Preparation: steps must be objects of baldur.preparation.Step, such as "
                    f"VariantFilter(), but got {type(step).__name__}. Put other transformers in "
                    "front of the estimator, in a pipeline."
                )
        steps = [clone(step) for step in self.steps]
        encoders = [step for step in steps if isinstance(step, CategoryEncoder)]
        if any(step.views is None for step in encoders):
            return steps
        named = {view for step in encoders for view in names_in(step.views or ())}
        others = [v for v in mv.view_names if v not in named and level_columns(mv.view(v))]
        return [CategoryEncoder(others), *steps] if others else steps

    def transform(self, mv: MultiView, *, warn: bool = False) -> dict[str, PreparedView]:
        """Return every view of `mv`, prepared with what was learned.

        Parameters
        ----------
        mv : MultiView
            Any rows of the same views.
        warn : bool, default=False
            Warn, by view and column, about new rows that are not on the scale of training.

        Returns
        -------
        dict of str to PreparedView
        """
        after_steps, unknown = self._apply_steps(mv)
        if warn:
            warn_of_shift(self.scaling_, after_steps, unknown)
        return self.scaling_.transform(after_steps)

    def warn_of_new_samples(self, mv: MultiView) -> None:
        """Warn about samples that differ from training, as ``transform(mv, warn=True)`` does."""
        warn_of_shift(self.scaling_, *self._apply_steps(mv))

    def _apply_steps(self, mv: MultiView) -> tuple[MultiView, list[UnknownLevel]]:
        """Return rows as all steps leave them, not scaled yet, and levels that are new in them."""
        self._check_views(mv)
        unknown: list[UnknownLevel] = []
        for step in self.steps_:
            after_step = step.transform(mv)
            if isinstance(step, CategoryEncoder):
                unknown += step.unknown_levels(mv)
            mv = after_step
        self.scaling_.check_columns(mv)
        return mv, unknown

    def flag_samples(self, mv: MultiView) -> pd.DataFrame:
        """Return for every sample the reasons to doubt a prediction.

        Only columns that predictions use are looked at.

        Parameters
        ----------
        mv : MultiView
            Any samples of the same views.

        Returns
        -------
        DataFrame
            One row per sample, with texts that are empty where there is nothing to say:
            out_of_range (features whose value is outside the training range, with both),
            unknown_category (levels that did not occur in training, with the known ones), imputed
            (features that take their training mean), missing_views, and flags, all of them in one
            text. Genotypes have no range.
        """
        return flag_table(self.scaling_, *self._apply_steps(mv))

    def _check_views(self, mv: MultiView) -> None:
        """Refuse rows of other views than those seen in `fit`."""
        if not hasattr(self, "scaling_"):
            raise InputError("Preparation: call fit on training rows before transform.")
        lacking = [name for name in self.n_features_ if name not in mv.n_features]
        extra = [name for name in mv.view_names if name not in self.n_features_]
        if lacking or extra:
            raise InputError(
                f"Expected the views seen in fit, {list(self.n_features_)}, but "
                f"{missing_and_new(lacking, extra, 'unknown')}.{rename_hint(extra, lacking)} A "
                "view that no new sample has still needs its columns, filled with NaN."
            )

    def check_samples(self, mv: MultiView) -> None:
        """Refuse rows whose covariates or sites are missing or cannot be read.

        Parameters
        ----------
        mv : MultiView
            Any rows; only ``mv.samples`` is looked at.
        """
        for step in self.steps_:
            step.check_samples(mv)
        self.scaling_.check_samples(mv)

    # -- what was learned, over the columns of the input ----------------------------------

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
        if name not in self._remaining:
            return values
        shape = (*values.shape[:-1], self.n_features_[name])
        expanded = np.full(shape, fill, dtype=values.dtype)
        expanded[..., self._remaining[name]] = values
        return expanded

    @property
    def columns_(self) -> dict[str, np.ndarray]:
        """For each view, the columns of the input that its prepared columns are."""
        return {
            name: self._remaining[name] if name in self._remaining else np.arange(width)
            for name, width in self.n_features_.items()
        }

    @property
    def feature_names(self) -> dict[str, np.ndarray | None]:
        """Names of every view's features as they were given to `fit`; None where none were."""
        return dict(self._names)

    mean_ = _over_input("mean_", 0.0)
    scale_ = _over_input("scale_", 1.0)
    lower_ = _over_input("lower_", -np.inf)
    upper_ = _over_input("upper_", np.inf)
    minimum_ = _over_input("minimum_", np.nan)
    maximum_ = _over_input("maximum_", np.nan)
    constant_ = _over_input("constant_", True)
    needed_ = _over_input("needed_", False)
    alleles_ = _learned("alleles_")
    covariates_ = _learned("covariates_")
    n_samples_ = _learned("n_samples_")

    @property
    def constant_features_(self) -> dict[str, np.ndarray]:
        """For each view, the names of the constant columns."""
        constant = {}
        for name, is_constant in self.constant_.items():
            at, names = np.flatnonzero(is_constant), self._names[name]
            constant[name] = np.array([f"{name}_{j}" for j in at]) if names is None else names[at]
        return constant

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
        return self.expand(name, self._coef_per_unit(name, coef))

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
        scaling = self.scaling_
        shift = -(self._coef_per_unit(name, coef) @ scaling.mean_[name])
        if scaling.covariates_ is None:
            return np.asarray(shift)
        # Along the last axis: the intercept, then the covariates, which are standardised.
        effect = np.asarray(coef, dtype=np.float64) @ scaling.covariate_effect_[name].T
        offset = scaling.covariates_.mean / scaling.covariates_.scale
        return np.asarray(shift - effect[..., 0] + effect[..., 1:] @ offset)

    def covariate_weights(self, name: str, coef: Any) -> np.ndarray:
        """Return the weight each covariate gets, in its own units, from being regressed out.

        Together with `coef_in_input_units` and `intercept_shift` this reproduces X coef. The
        covariates are those of ``covariates_.features``.
        """
        scaling = self.scaling_
        if scaling.covariates_ is None:
            raise InputError(
                "covariate_weights is defined only for a preparation with regress_out."
            )
        # Along the last axis: the intercept, then the covariates, which are standardised.
        effect = self._check_coef(name, coef) @ scaling.covariate_effect_[name].T
        return np.asarray(-effect[..., 1:] / scaling.covariates_.scale)

    def _coef_per_unit(self, name: str, coef: Any) -> np.ndarray:
        """Return weights per unit of the columns that the steps leave."""
        coef = self._check_coef(name, coef)
        constant = self.scaling_.constant_[name]
        return np.where(constant, 0.0, coef / self.scaling_.scale_[name])

    def _check_coef(self, name: str, coef: Any) -> np.ndarray:
        """Return weights on the prepared columns of a view as floats, or raise an error."""
        widths = self.scaling_.n_features_
        if name not in widths:
            raise InputError(
                f"There is no view {name!r}; the views seen in fit are {list(widths)}."
            )
        coef = np.asarray(coef, dtype=np.float64)
        if coef.ndim == 0 or coef.shape[-1] != widths[name]:
            raise InputError(
                f"View {name!r}: expected {widths[name]} weights in the last axis, but got shape "
                f"{coef.shape}."
            )
        return coef

    # -- what a model needs ----------------------------------------------------------------

    def mark_needed(self, masks: dict[str, np.ndarray]) -> None:
        """Set which prepared columns a model uses; checks of new samples ignore the others.

        Parameters
        ----------
        masks : dict of str to bool array
            For each view, over its prepared columns.
        """
        self.scaling_.needed_ = dict(masks)

    @property
    def feature_groups(self) -> list[np.ndarray] | None:
        """For each view a number per prepared column, shared within a category; None without."""
        groups = self.scaling_.groups_
        if not groups:
            return None
        widths = self.scaling_.n_features_
        return [groups.get(name, np.arange(width)) for name, width in widths.items()]

    @property
    def _encoders(self) -> list[CategoryEncoder]:
        return [step for step in self.steps_ if isinstance(step, CategoryEncoder)]

    @property
    def level_columns(self) -> dict[str, dict[str, str]]:
        """For each view with categories, the category of every input column that is a level."""
        columns: dict[str, dict[str, str]] = {}
        for step in reversed(self._encoders):
            columns |= step.level_columns
        return columns

    @property
    def n_reference_levels(self) -> dict[str, int]:
        """For each view with categories, the number of reference levels.

        Their input columns are used by no model, so that numbers of features leave them out.
        """
        counts: Counter[str] = Counter()
        for step in self._encoders:
            counts.update({view: len(names) for view, names in step.reference_.items()})
        return counts

    @property
    def sample_columns(self) -> list[str]:
        """Columns of `MultiView.samples` that are needed, covariates and sites among them."""
        listed = [c for step in getattr(self, "steps_", self.steps) for c in step.sample_columns]
        return list(dict.fromkeys([*listed, *names_in(self.regress_out)]))

    @property
    def site_report_(self) -> pd.DataFrame | None:
        """What aligning sites changed on the training rows, see `SiteHarmoniser.report_`."""
        reports = [step.report_ for step in self.steps_ if isinstance(step, SiteHarmoniser)]
        return reports[0] if reports else None

    # -- state -----------------------------------------------------------------------------

    def state_values(self) -> dict[str, Any]:
        """Return what is stored in another form: only names of columns that the scaling lacks."""
        after_steps = self.scaling_.feature_names
        return {
            "_names": {
                name: names
                for name, names in self._names.items()
                if not _same_names(names, after_steps[name])
            }
        }

    @classmethod
    def from_values(cls, values: dict[str, Any], sizes: Sizes) -> Preparation:
        """Return the fitted preparation of values read from a file; the scaling has the options."""
        scaling, steps = values["scaling_"], values["steps_"]
        preparation = cls(
            **{option: getattr(scaling, option) for option in OPTIONS},
            steps=[clone(step) for step in steps],
            regress_out=scaling.regress_out,
            max_bytes=scaling.max_bytes,
        )
        values["_names"] = {**scaling.feature_names, **values["_names"]}
        preparation.__dict__.update(values)
        return preparation

    def check_state(self, sizes: Sizes) -> None:
        """Refuse stored steps of other columns, and a scaling of columns that no step leaves."""
        widths = dict(self.n_features_)  # of the views as they come to each step
        for i, step in enumerate(self.steps_):
            path = ("steps_", f"[{i}]")
            given = {name: widths.get(name) for name in step.input_widths}
            need(step.input_widths == given, "expected the columns of the views", *path)
            need(set(step.columns_) <= set(widths), "expected views of the input", *path)
            for name, index in step.columns_.items():
                inside = len(index) and index.min() >= 0 and index.max() < widths[name]
                need(inside, f"expected columns of the view {name!r}", *path)
                once = len(np.unique(index)) == len(index)
                need(once, f"expected no column of the view {name!r} twice", *path)
                widths[name] = len(index)
        fits = list(widths.items()) == list(self.scaling_.n_features_.items())
        need(fits, "expected the columns that the steps leave", "scaling_")
        self._remaining = self._remaining_columns()


def preparation_for(template: Any, scale: str = "clipped") -> Preparation:
    """Return the unfitted preparation of an estimator.

    Parameters
    ----------
    template : Preparation, {"clipped", "standard", "rank"} or None
        The estimator's parameter `preparation`: a template, which is cloned, or how columns are
        scaled.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled where the template leaves it open.

    Returns
    -------
    Preparation

    Examples
    --------
    >>> from baldur.preparation import Preparation, preparation_for
    >>> preparation_for("standard")
    Preparation(scale='standard')
    >>> preparation_for(Preparation(regress_out=["age"]), "rank")
    Preparation(regress_out=['age'], scale='rank')
    """
    if template is None or is_one_of(template, SCALES):
        return Preparation(template or scale)
    if not isinstance(template, Preparation):
        raise InputError(
            f"preparation must be None, one of {SCALES}, or a baldur.Preparation, for example "
            f"Preparation(regress_out=['age']), but got {template!r}."
        )
    preparation: Preparation = clone(template)
    if preparation.scale is None:
        preparation.set_params(scale=scale)
    return preparation
