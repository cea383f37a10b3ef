"""Preparation: statistics learned on training rows, applied to any rows of the same views."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError, InputWarning
from baldur.prepare.alleles import alleles_of, match_alleles
from baldur.prepare.confounds import ConfoundDesign, learn_confounds
from baldur.prepare.impute import check_missing
from baldur.prepare.moments import SMALLEST_SPREAD
from baldur.prepare.ranges import warn_off_scale
from baldur.prepare.scale import SCALES, column_statistics
from baldur.views.blocks import DEFAULT_BLOCK_BYTES
from baldur.views.container import MultiView
from baldur.views.products import PreparedView, prepare_view
from baldur.views.scores import NormalScores
from baldur.views.standardised import Standardised, working_dtype
from baldur.views.validate import some
from baldur.views.view import View
from baldur.views.weights import positive_weights

__all__ = ["Preparation"]


class Preparation:
    """Scale, impute and deconfound each view with training statistics.

    Parameters
    ----------
    scale : {"clipped", "standard", "rank"}, default="clipped"
        What a column becomes. "standard": mean 0 and standard deviation 1. "clipped": the same,
        then held within 3 standard deviations, then standardised again, so that a few extreme
        cells do not decide its scale. "rank": normal scores, by the place of a cell among the
        training values; it keeps up to 256 of them per column. Columns of two values and of
        genotype codes (0, 1, 2) are standardised whatever the choice, and a new value outside
        their range counts as the nearest known one. Constant columns contribute 0 in training and
        in prediction, and are listed in `constant_features_`.
    impute : {"mean", "error"}, default="mean"
        A missing cell takes the training mean, or is refused.
    all_missing : {"error", "zero"}, default="error"
        A column without any training value is refused, or counts as constant.
    dtype : {"auto", "float32", "float64"}, default="auto"
        Precision of the products. "auto": float64 for views up to 64 MB in float64, otherwise
        float32 with sums over blocks in float64.
    max_bytes : int, default=64 MB
        Largest block read from a wide view at once.

    Attributes
    ----------
    mean_, scale_ : dict of str to ndarray of shape (n_features,)
        Subtracted from and divided into the (clipped) cells of each view; the scale is 1 where
        constant. For a ranked column: the value whose score is 0, and 1 over the slope there.
    lower_, upper_ : dict of str to ndarray of shape (n_features,)
        Limits, in input units, that cells are held within; infinite where they are not. Beyond
        them a cell counts as the limit. For a ranked column: its training minimum and maximum.
    minimum_, maximum_ : dict of str to ndarray of shape (n_features,)
        Of the training rows, before any clip.
    constant_ : dict of str to bool array
        Columns without information: constant, empty, or explained by the confounders.
    constant_features_ : dict of str to array of str
        Their names.
    n_features_ : dict of str to int
    confound_coef_ : dict of str to ndarray of shape (q, n_features), or empty
        Subtracted is `design @ confound_coef_`, see `baldur.prepare.confounds`.
    n_samples_ : int
        Training rows.
    alleles_ : dict of str to array of shape (2, n_features)
        For views of variants, the allele that is counted and the other one. Rows that count the
        other one are turned round, see `baldur.prepare.alleles`.
    needed_ : dict of str to bool array, or None
        Columns that a model kept; a model sets it, so that nothing is asked of the others.
    """

    def __init__(
        self,
        scale: str = "clipped",
        impute: str = "mean",
        *,
        all_missing: str = "error",
        dtype: str = "auto",
        max_bytes: int = DEFAULT_BLOCK_BYTES,
    ) -> None:
        self.scale = scale
        self.impute = impute
        self.all_missing = all_missing
        self.dtype = dtype
        self.max_bytes = max_bytes

    def fit(
        self, mv: MultiView, confounds: Any = None, *, sample_weight: Any = None
    ) -> Preparation:
        """Learn the statistics of every view from the rows of `mv`.

        Parameters
        ----------
        mv : MultiView
            Training rows, and only those.
        confounds : array-like of shape (n_samples,) or (n_samples, q), optional
            Numeric covariates to regress out of every view.
        sample_weight : array-like of shape (n_samples,), optional
            How much each row counts: weight 2 is the row twice, weight 0 leaves it out.

        Returns
        -------
        Preparation
            Itself.
        """
        self._check_options()
        self.n_features_ = mv.n_features
        self.mean_: dict[str, np.ndarray] = {}
        self.scale_: dict[str, np.ndarray] = {}
        self.lower_: dict[str, np.ndarray] = {}
        self.upper_: dict[str, np.ndarray] = {}
        self.minimum_: dict[str, np.ndarray] = {}
        self.maximum_: dict[str, np.ndarray] = {}
        self.constant_: dict[str, np.ndarray] = {}
        self.constant_features_: dict[str, np.ndarray] = {}
        self.confound_coef_: dict[str, np.ndarray] = {}
        # Of each view: normal scores, if any column is ranked, and the spread that confounders
        # leave, if there are any.
        self._scores: dict[str, NormalScores | None] = {}
        self._spread: dict[str, np.ndarray] = {}
        self._names = {
            name: mv.view(name).feature_names if mv.view(name).names_given else None
            for name in mv.view_names
        }
        self.confound_design_: ConfoundDesign | None = None
        self.alleles_: dict[str, np.ndarray] = {}
        self.needed_: dict[str, np.ndarray] | None = None
        weight = None if sample_weight is None else positive_weights(sample_weight, len(mv))
        design = None
        if confounds is not None:
            self.confound_design_ = ConfoundDesign.fit(confounds, len(mv), weight)
            design = self.confound_design_.design(confounds, len(mv))
        if weight is not None and not weight.all():
            used = np.flatnonzero(weight)
            mv, weight = mv[used], weight[used]
            design = None if design is None else design[used]
        if weight is not None and (weight == weight[0]).all():
            weight = None
        self.n_samples_ = len(mv)
        for name in mv.view_names:
            self._fit_view(mv.view(name), design, weight)
        return self

    def _fit_view(self, view: View, design: np.ndarray | None, weight: np.ndarray | None) -> None:
        name = view.name
        found = column_statistics(view, self.max_bytes, scale=self.scale, weight=weight)
        check_missing(view, found, self.impute, self.all_missing)
        constant = found.constant
        _warn_of_vanishing(view, np.flatnonzero(found.vanishing))
        scale = np.sqrt(found.variance)
        scale[constant] = 1.0
        self.mean_[name], self.scale_[name], self.constant_[name] = found.mean, scale, constant
        self.minimum_[name], self.maximum_[name] = found.minimum, found.maximum
        self.lower_[name], self.upper_[name] = found.lower, found.upper
        self._scores[name] = found.scores
        if design is not None:
            coef, spread = learn_confounds(self._standardised(view, None), design, weight)
            explained = spread == 0
            spread[explained] = 1.0
            self.constant_[name] = constant | explained
            coef[:, self.constant_[name]] = 0
            self.scale_[name] = np.where(self.constant_[name], 1.0, scale * spread)
            self.confound_coef_[name] = coef / spread
            self._spread[name] = spread
        at = np.flatnonzero(self.constant_[name])
        self.constant_features_[name] = view.names_of(at)
        # Counts of an allele, and not what a step has made of them.
        counts = np.nanmin(found.minimum) >= 0 and np.nanmax(found.maximum) <= 2
        alleles = alleles_of(view) if counts else None
        if alleles is not None:
            self.alleles_[name] = alleles

    def transform(self, mv: MultiView, confounds: Any = None) -> dict[str, PreparedView]:
        """Return every view of `mv`, prepared with the training statistics.

        Parameters
        ----------
        mv : MultiView
            Any rows of the same views.
        confounds : array-like, optional
            The covariates of these rows; required exactly when `fit` had them.

        Returns
        -------
        dict of str to PreparedView
        """
        self._check_against_fit(mv)
        mv = match_alleles(mv, getattr(self, "alleles_", {}), self._needed())
        if (confounds is None) != (self.confound_design_ is None):
            raise InputError(
                "confounds: "
                + (
                    "fit had none, but transform got some. Pass them to both or to neither."
                    if self.confound_design_ is None
                    else "fit had them, but transform got none. Pass those of the new rows."
                )
            )
        design = None
        if self.confound_design_ is not None:
            design = self.confound_design_.design(confounds, len(mv))
        return {
            name: prepare_view(self._standardised(mv.view(name), design))
            for name in self.n_features_
        }

    def fit_transform(self, mv: MultiView, confounds: Any = None) -> dict[str, PreparedView]:
        """Learn from `mv` and return it prepared."""
        return self.fit(mv, confounds).transform(mv, confounds)

    @property
    def feature_names(self) -> dict[str, np.ndarray | None]:
        """Names of every view's features as they were given to `fit`; None where none were."""
        return dict(self._names)

    def _needed(self) -> dict[str, np.ndarray]:
        """Columns that can change a prediction: those that vary, or those that a model kept."""
        kept = getattr(self, "needed_", None)
        return {name: ~flat for name, flat in self.constant_.items()} if kept is None else kept

    def check_scale(self, mv: MultiView) -> None:
        """Warn, by view and column, about new rows that are not on the scale of training.

        Parameters
        ----------
        mv : MultiView
            New rows of the same views.
        """
        self._check_against_fit(mv)
        warn_off_scale(self, mv, self._needed())

    def ranks_of(self, name: str, column: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Return the knots of a ranked column and their scores; None where it is not ranked."""
        scores = self._scores[name]
        if scores is None or scores.position[column] < 0:
            return None
        at = scores.position[column]
        return scores.knots[:, at], scores.scores[:, at]

    def _standardised(self, view: View, design: np.ndarray | None) -> Standardised:
        name = view.name
        mean, dead = self.mean_[name], self.constant_[name]
        factor = np.where(dead, 0.0, 1.0 / self.scale_[name])
        made = Standardised(
            name=name,
            source=view.source,
            rows=view.rows,
            mean=mean,
            factor=factor,
            absent=~view.present,
            dtype=working_dtype(*view.shape, self.dtype),
            max_bytes=self.max_bytes,
        )
        scores = self._scores[name]
        if scores is not None:
            spread = self._spread.get(name, np.ones(len(mean)))
            made = replace(made, scores=scores, score_factor=np.where(dead, 0.0, 1.0 / spread))
        if np.isfinite(self.upper_[name]).any():
            with np.errstate(invalid="ignore"):  # an infinite limit of a column without weight
                lower, upper = (
                    (self.lower_[name] - mean) * factor,
                    (self.upper_[name] - mean) * factor,
                )
            made = replace(
                made, lower=np.where(dead, -np.inf, lower), upper=np.where(dead, np.inf, upper)
            )
        if design is None:
            return made
        return replace(made, design=design, confound_coef=self.confound_coef_[name])

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
        coef : array of shape (n_features,) or (..., n_features)
            Weights on the prepared columns.

        Returns
        -------
        ndarray of the same shape
            coef / scale, and 0 for columns without information.
        """
        coef = self._check_coef(name, coef)
        return np.where(self.constant_[name], 0.0, coef / self.scale_[name])

    def coef_per_deviation(self, name: str, coef: Any) -> np.ndarray:
        """Return weights per standard deviation of the training rows from those per input unit.

        The inverse of `coef_in_input_units`. Prepared columns have standard deviation 1 over the
        training rows (as they are after the clip, the ranks and what confounders explain), so
        these are the weights on the prepared columns, comparable between features.

        Parameters
        ----------
        name : str
            View.
        coef : array of shape (n_features,) or (..., n_features)
            Weights in input units.

        Returns
        -------
        ndarray of the same shape
            coef * scale, and 0 for columns without information.
        """
        coef = self._check_coef(name, coef)
        return np.where(self.constant_[name], 0.0, coef * self.scale_[name])

    def intercept_shift(self, name: str, coef: Any) -> np.ndarray:
        """Return what to add to the intercept when the weights are in input units.

        Parameters
        ----------
        name : str
            View.
        coef : array of shape (..., n_features)
            Weights on the prepared columns.

        Returns
        -------
        ndarray of shape (...)
            -sum of mean * coef / scale, less the constant part of what confounders explain.
        """
        shift = -(self.coef_in_input_units(name, coef) @ self.mean_[name])
        if self.confound_design_ is None:
            return np.asarray(shift)
        effect = self._confound_effect(name, coef)
        design = self.confound_design_
        return np.asarray(shift - effect[..., 0] + effect[..., 1:] @ (design.mean / design.scale))

    def confound_weights(self, name: str, coef: Any) -> np.ndarray:
        """Return the weight each covariate gets, in its own units, from taking it out.

        Together with `coef_in_input_units` and `intercept_shift` this reproduces X coef.
        """
        if self.confound_design_ is None:
            raise InputError("confound_weights: the preparation was fitted without confounds.")
        return -self._confound_effect(name, coef)[..., 1:] / self.confound_design_.scale

    def _confound_effect(self, name: str, coef: Any) -> np.ndarray:
        return self._check_coef(name, coef) @ self.confound_coef_[name].T

    # -- checks ----------------------------------------------------------------------------

    def _check_coef(self, name: str, coef: Any) -> np.ndarray:
        if name not in self.n_features_:
            raise InputError(f"There is no view {name!r}; fit saw {list(self.n_features_)}.")
        coef = np.asarray(coef, dtype=np.float64)
        if coef.ndim == 0 or coef.shape[-1] != self.n_features_[name]:
            raise InputError(
                f"View {name!r}: expected {self.n_features_[name]} weights in the last axis, but "
                f"got shape {coef.shape}."
            )
        return coef

    def _check_options(self) -> None:
        legal = {
            "scale": SCALES,
            "impute": ("mean", "error"),
            "all_missing": ("error", "zero"),
            "dtype": ("auto", "float32", "float64"),
        }
        for option, values in legal.items():
            got = getattr(self, option)
            if got not in values:
                raise InputError(f"Preparation: {option} must be one of {values}, but got {got!r}.")

    def _check_against_fit(self, mv: MultiView) -> None:
        if not hasattr(self, "n_features_"):
            raise InputError("Preparation: call fit on training rows before transform.")
        lacking = [name for name in self.n_features_ if name not in mv.n_features]
        extra = [name for name in mv.view_names if name not in self.n_features_]
        if lacking or extra:
            raise InputError(
                f"Expected the views seen in fit, {list(self.n_features_)}, but "
                + " and ".join(
                    part
                    for part in (
                        f"{some(lacking)} missing" if lacking else "",
                        f"{some(extra)} unknown" if extra else "",
                    )
                    if part
                )
                + ". A view that no new sample has still needs its columns, filled with NaN."
            )
        for name, width in self.n_features_.items():
            view = mv.view(name)
            if view.shape[1] != width:
                raise InputError(
                    f"View {name!r}: X has {view.shape[1]} features, but Preparation is expecting "
                    f"{width} features as input, the number seen in fit. Select the columns "
                    "used in fit."
                )
            names = self._names[name]
            if names is None or not view.names_given or names is view.feature_names:
                continue
            differ = np.flatnonzero(names != view.feature_names)
            if differ.size:
                at = int(differ[0])
                raise InputError(
                    f"View {name!r}: expected the features of fit in the same order, but "
                    f"{differ.size} of {width} differ; the first is column {at}, "
                    f"{str(names[at])!r} in fit and {str(view.feature_names[at])!r} now. Reorder "
                    "the columns."
                )


def _warn_of_vanishing(view: View, at: np.ndarray) -> None:
    if at.size:
        warnings.warn(
            f"View {view.name!r}: the standard deviation of {some(view.names_of(at).tolist())} is "
            f"below {SMALLEST_SPREAD:g}, too small to be squared in float64; these columns count "
            "as constant. Rescale them before fitting.",
            InputWarning,
            stacklevel=6,
        )
