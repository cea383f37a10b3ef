"""Scaling: the last step of a preparation, from columns in their units to prepared columns.

Mean, scale, limits and ranks of every column are learned in one reading. Covariates are regressed
out of the scaled cells in the same object, so that nothing is scaled twice.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from baldur.core.parameters import check, one_of
from baldur.core.state import (
    ByView,
    Choice,
    Flags,
    Form,
    Integer,
    Numbers,
    Object,
    OrNone,
    Sizes,
    Texts,
    Widths,
    need,
    stored,
)
from baldur.exceptions import InputError, InputWarning
from baldur.preparation.column_statistics import (
    SCALES,
    SMALLEST_SPREAD,
    ColumnStatistics,
    column_statistics,
)
from baldur.preparation.covariates import Covariates, learn_regression
from baldur.preparation.steps import names_in
from baldur.preparation.variants import alleles_of, match_alleles
from baldur.views.container import MultiView
from baldur.views.prepared_view import PreparedView, prepare_view
from baldur.views.sources import DEFAULT_BLOCK_BYTES
from baldur.views.standardised_blocks import NormalScores, Standardised, working_dtype
from baldur.views.validate import rename_hint, some
from baldur.views.view import View


def check_missing(view: View, statistics: ColumnStatistics, impute: str, all_missing: str) -> None:
    """Refuse views and columns without values, and cells that may not be imputed."""
    n = int(view.present.sum())
    if n == 0:
        raise InputError(
            f"View {view.name!r}: expected data for at least one training sample, but all "
            f"{view.shape[0]} have none. Leave the view out with select, or check how samples "
            "were matched."
        )
    empty = np.flatnonzero(statistics.count == 0)
    if empty.size and all_missing == "error":
        raise InputError(
            f"View {view.name!r}: expected at least one value in each column, but "
            f"{empty.size} of {view.shape[1]} columns are missing in every training sample: "
            f"{some(view.names_of(empty).tolist())}. Drop them, or give them no weight with "
            "Preparation(all_missing='zero')."
        )
    holes = np.flatnonzero((statistics.count < n) & (statistics.count > 0))
    if holes.size and impute == "error":
        raise InputError(
            f"View {view.name!r}: expected no missing cells (impute='error'), but {holes.size} of "
            f"{view.shape[1]} columns have some: {some(view.names_of(holes).tolist())}. Fill "
            "them, or use impute='mean'."
        )


OPTIONS: dict[str, tuple[str, ...]] = {
    "scale": SCALES,
    "impute": ("mean", "error"),
    "all_missing": ("error", "zero"),
    "dtype": ("auto", "float32", "float64"),
}
"""Legal values of the options."""

_REGRESSING = "Preparation(regress_out=...)"


ByColumn: TypeAlias = dict[str, np.ndarray]
"""An array over the columns of each view."""


def _by_view(form: Form) -> Any:
    """Return the field of what is learned of each view, stored in this form."""
    return stored(form, init=False, default_factory=dict)


@dataclass(eq=False, repr=False)
class Scaling:
    """Scale every column with training statistics, fill missing cells, regress covariates out.

    Shapes: covariate_effect_ (1 + q, n_features).
    """

    kind = "scaling"

    scale: str = stored(Choice(OPTIONS["scale"]), default="clipped")
    impute: str = stored(Choice(OPTIONS["impute"]), default="mean")
    all_missing: str = stored(Choice(OPTIONS["all_missing"]), default="zero")
    dtype: str = stored(Choice(OPTIONS["dtype"]), default="auto")
    max_bytes: int = stored(Integer(1), default=DEFAULT_BLOCK_BYTES)
    regress_out: Sequence[str] = ()
    n_samples_: int = stored(Integer(1), init=False)
    covariates_: Covariates | None = stored(OrNone(Object(Covariates)), init=False, default=None)
    n_features_: dict[str, int] = stored(Widths(), init=False)
    mean_: ByColumn = _by_view(ByView(Numbers("D", largest=np.inf)))
    scale_: ByColumn = _by_view(ByView(Numbers("D", largest=np.inf, above=0.0)))
    # Of views with limits, missing where a column had no training value.
    lower_: ByColumn = _by_view(ByView(Numbers("D", finite=False, largest=np.inf), some=True))
    upper_: ByColumn = _by_view(ByView(Numbers("D", finite=False, largest=np.inf), some=True))
    minimum_: ByColumn = _by_view(ByView(Numbers("D", "number", finite=False, largest=np.inf)))
    maximum_: ByColumn = _by_view(ByView(Numbers("D", "number", finite=False, largest=np.inf)))
    constant_: ByColumn = _by_view(ByView(Flags("D")))
    # Of views whose covariates are regressed out.
    covariate_effect_: ByColumn = _by_view(ByView(Numbers("p D", largest=np.inf), some=True))
    alleles_: ByColumn = _by_view(ByView(Texts("2 D"), some=True))
    groups_: ByColumn = _by_view(ByView(Numbers("D", "int"), some=True))
    needed_: ByColumn | None = stored(OrNone(ByView(Flags("D"))), init=False, default=None)
    _names: dict[str, np.ndarray | None] = _by_view(ByView(OrNone(Texts("D"))))
    _scores: dict[str, NormalScores | None] = _by_view(ByView(OrNone(Object(NormalScores))))
    _spread: ByColumn = _by_view(ByView(Numbers("D", largest=np.inf, above=0.0), some=True))

    def __post_init__(self) -> None:
        for option, values in OPTIONS.items():
            check(f"Preparation: {option}", getattr(self, option), one_of(*values))

    def fit(self, mv: MultiView, weight: np.ndarray | None = None) -> Scaling:
        """Learn from training rows, all of which have a positive weight.

        Shapes: weight (n_samples,).
        """
        self.n_samples_ = len(mv)
        self.n_features_ = dict(mv.n_features)
        self.groups_ = mv.feature_groups
        design = None
        if self.regress_out:
            self.covariates_ = Covariates.fit(mv, names_in(self.regress_out), _REGRESSING, weight)
            design = self._design(mv)
        for name in mv.view_names:
            view = mv.view(name)
            self._names[name] = view.names
            self._fit_view(view, design, weight)
        return self

    def _fit_view(self, view: View, design: np.ndarray | None, weight: np.ndarray | None) -> None:
        """Learn the statistics of a view, what covariates explain of it, and its alleles.

        Shapes: design (n_samples, 1 + q) of the covariates, weight (n_samples,).
        """
        name = view.name
        statistics = column_statistics(view, self.max_bytes, scale=self.scale, weight=weight)
        check_missing(view, statistics, self.impute, self.all_missing)
        constant = statistics.constant
        if statistics.vanishing.any():
            names = view.names_of(np.flatnonzero(statistics.vanishing)).tolist()
            warnings.warn(
                f"View {name!r}: the standard deviation of {some(names)} is below "
                f"{SMALLEST_SPREAD:g}, too small to be squared in float64; these columns count as "
                "constant. Rescale them before fitting.",
                InputWarning,
                stacklevel=6,
            )
        scale = np.sqrt(statistics.variance)
        scale[constant] = 1.0
        self.mean_[name], self.scale_[name], self.constant_[name] = statistics.mean, scale, constant
        self.minimum_[name], self.maximum_[name] = statistics.minimum, statistics.maximum
        self.lower_[name], self.upper_[name] = statistics.lower, statistics.upper
        self._scores[name] = statistics.scores
        if design is not None:
            coef, spread = learn_regression(self._standardised(view, None), design, weight)
            explained = spread == 0
            spread[explained] = 1.0
            self.constant_[name] = constant | explained
            coef[:, self.constant_[name]] = 0
            # What covariates leave of a column is scaled again, to a standard deviation of 1.
            self.scale_[name] = np.where(self.constant_[name], 1.0, scale * spread)
            self.covariate_effect_[name] = coef / spread
            self._spread[name] = spread
        # Counts of an allele, and not what a step has made of them.
        counts = np.nanmin(statistics.minimum) >= 0 and np.nanmax(statistics.maximum) <= 2
        if counts and view.feature_info is not None:
            alleles = alleles_of(view)
            if alleles is not None:
                self.alleles_[name] = alleles

    def transform(self, mv: MultiView) -> dict[str, PreparedView]:
        """Return every view of `mv`, prepared with the training statistics."""
        if self.alleles_:
            mv = match_alleles(mv, self.alleles_, self.needed_columns)
        design = self._design(mv)
        return {
            name: prepare_view(self._standardised(mv.view(name), design))
            for name in self.n_features_
        }

    @property
    def needed_columns(self) -> dict[str, np.ndarray]:
        """Columns that predictions use: those that a model marked, or all with information."""
        if self.needed_ is not None:
            return self.needed_
        return {name: ~is_constant for name, is_constant in self.constant_.items()}

    def check_samples(self, mv: MultiView) -> None:
        """Refuse rows whose covariates are missing or cannot be read."""
        self._design(mv)

    def covariate_flags(self, mv: MultiView) -> dict[str, list[tuple[int, Any]]]:
        """Return for each flag the covariates of samples that differ from training."""
        return {} if self.covariates_ is None else self.covariates_.flags(mv, _REGRESSING)

    def ranks_of(self, name: str, column: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the knots of a ranked column and their scores; None where it is not ranked."""
        scores = self._scores[name]
        at = -1 if scores is None else scores.position[column]
        return None if scores is None or at < 0 else (scores.knots[:, at], scores.scores[:, at])

    def spread_of(self, name: str) -> np.ndarray:
        """Return the spread that covariates leave of each scaled column; 1 without covariates."""
        return self._spread.get(name, np.ones(self.n_features_[name]))

    def _design(self, mv: MultiView) -> np.ndarray | None:
        return None if self.covariates_ is None else self.covariates_.design(mv, _REGRESSING)

    def _standardised(self, view: View, design: np.ndarray | None) -> Standardised:
        """Return the cells of a view with the statistics that standardise them.

        Constant columns get the factor 0, so that they contribute nothing. Without a `design`
        covariates stay in. Shapes: design (n_samples, 1 + q).
        """
        name = view.name
        mean, constant, scores = self.mean_[name], self.constant_[name], self._scores[name]
        factor = np.where(constant, 0.0, 1.0 / self.scale_[name])
        lower = upper = None
        if np.isfinite(self.upper_[name]).any():
            with np.errstate(invalid="ignore"):  # an infinite limit of a column without weight
                lower = np.where(constant, -np.inf, (self.lower_[name] - mean) * factor)
                upper = np.where(constant, np.inf, (self.upper_[name] - mean) * factor)
        score_factor = None
        if scores is not None:
            score_factor = np.where(constant, 0.0, 1 / self.spread_of(name))
        return Standardised(
            name=name,
            source=view.source,
            mean=mean,
            factor=factor,
            absent=~view.present,
            dtype=working_dtype(*view.shape, self.dtype),
            max_bytes=self.max_bytes,
            lower=lower,
            upper=upper,
            scores=scores,
            score_factor=score_factor,
            design=design,
            confound_coef=None if design is None else self.covariate_effect_[name],
        )

    # -- checks ----------------------------------------------------------------------------

    @property
    def feature_names(self) -> dict[str, np.ndarray | None]:
        """Names of the columns of each view as given in fit, None where there were none."""
        return dict(self._names)

    def check_columns(self, mv: MultiView) -> None:
        """Refuse views with other columns than in `fit`, or in another order."""
        for name, width in self.n_features_.items():
            view = mv.view(name)
            if view.shape[1] != width:
                raise InputError(
                    f"View {name!r}: X has {view.shape[1]} features, but Preparation is expecting "
                    f"{width} features as input, the number seen in fit. Select the columns "
                    f"used in fit.{rename_hint(view.names, self._names[name])}"
                )
            names = self._names[name]
            if names is None or view.names is None or names is view.names:
                continue
            differ = np.flatnonzero(names != view.names)
            if differ.size:
                at = int(differ[0])
                raise InputError(
                    f"View {name!r}: expected the features of fit in the same order, but "
                    f"{differ.size} of {width} differ; the first is column {at}, "
                    f"{str(names[at])!r} in fit and {str(view.names[at])!r} now. Reorder "
                    f"or rename the columns.{rename_hint(view.names, names)}"
                )

    # -- state -----------------------------------------------------------------------------

    def state_values(self) -> dict[str, Any]:
        """Return what is stored in another form: the limits, of the views that have any."""
        limited = [name for name, upper in self.upper_.items() if np.isfinite(upper).any()]
        limits = {"lower_": self.lower_, "upper_": self.upper_}
        return {key: {name: limit[name] for name in limited} for key, limit in limits.items()}

    def check_state(self, sizes: Sizes) -> None:
        """Add what is not stored; refuse stored limits out of order, and other covariates."""
        self.regress_out = [] if self.covariates_ is None else self.covariates_.names
        for name, width in self.n_features_.items():
            lower = self.lower_.setdefault(name, np.broadcast_to(-np.inf, width))
            upper = self.upper_.setdefault(name, np.broadcast_to(np.inf, width))
            ordered = not (lower > upper).any()
            need(ordered, "expected lower limits not above the upper limits", "lower_", name)
            both = (np.isnan(lower) == np.isnan(upper)).all()
            need(both, "expected limits that are missing where upper_ is", "lower_", name)
            ordered = not (self.minimum_[name] > self.maximum_[name]).any()
            need(ordered, "expected minima that are not above the maxima", "minimum_", name)
            for field in ("_spread", "covariate_effect_"):
                fits = (name in getattr(self, field)) == (self.covariates_ is not None)
                need(fits, "expected it where there are covariates", field, name)
            if self.covariates_ is not None:
                rows = 1 + len(self.covariates_.mean)
                fits = len(self.covariate_effect_[name]) == rows
                need(fits, f"expected {rows} rows", "covariate_effect_", name)
