"""Preparation: statistics learned on training rows, applied to any rows of the same views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.prepare.confounds import ConfoundDesign, learn_confounds
from baldur.prepare.impute import check_missing
from baldur.prepare.scale import column_statistics
from baldur.views.blocks import DEFAULT_BLOCK_BYTES
from baldur.views.container import MultiView
from baldur.views.products import PreparedView, prepare_view
from baldur.views.standardised import Standardised, working_dtype
from baldur.views.validate import some
from baldur.views.view import View

__all__ = ["Preparation"]


class Preparation:
    """Centre, scale, impute and deconfound each view with training statistics.

    Parameters
    ----------
    scale : bool, default=True
        Divide by the standard deviation. Constant columns are not divided; they contribute 0
        in training and in prediction, and are listed in `constant_features_`.
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
        Subtracted from and divided into the cells of each view; the scale is 1 where constant.
    constant_ : dict of str to bool array
        Columns without information: constant, empty, or explained by the confounders.
    constant_features_ : dict of str to array of str
        Their names.
    n_features_ : dict of str to int
    confound_coef_ : dict of str to ndarray of shape (q, n_features), or empty
        Subtracted is `design @ confound_coef_`, see `baldur.prepare.confounds`.
    n_samples_ : int
        Training rows.
    """

    def __init__(
        self,
        scale: bool = True,
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

    def fit(self, mv: MultiView, confounds: Any = None) -> Preparation:
        """Learn the statistics of every view from the rows of `mv`.

        Parameters
        ----------
        mv : MultiView
            Training rows, and only those.
        confounds : array-like of shape (n_samples,) or (n_samples, q), optional
            Numeric covariates to regress out of every view.

        Returns
        -------
        Preparation
            Itself.
        """
        self._check_options()
        self.n_samples_ = len(mv)
        self.n_features_ = mv.n_features
        self.mean_: dict[str, np.ndarray] = {}
        self.scale_: dict[str, np.ndarray] = {}
        self.constant_: dict[str, np.ndarray] = {}
        self.constant_features_: dict[str, np.ndarray] = {}
        self.confound_coef_: dict[str, np.ndarray] = {}
        self._names = {
            name: mv.view(name).feature_names if mv.view(name).names_given else None
            for name in mv.view_names
        }
        self.confound_design_: ConfoundDesign | None = None
        design = None
        if confounds is not None:
            self.confound_design_ = ConfoundDesign.fit(confounds, len(mv))
            design = self.confound_design_.design(confounds, len(mv))
        for name in mv.view_names:
            self._fit_view(mv.view(name), design)
        return self

    def _fit_view(self, view: View, design: np.ndarray | None) -> None:
        name = view.name
        found = column_statistics(view, self.max_bytes)
        check_missing(view, found, self.impute, self.all_missing)
        constant = found.constant
        scale = np.sqrt(found.variance) if self.scale else np.ones(view.shape[1])
        scale[constant] = 1.0
        self.mean_[name], self.scale_[name], self.constant_[name] = found.mean, scale, constant
        if design is not None:
            coef, spread = learn_confounds(self._standardised(view, None), design)
            explained = spread == 0
            spread[explained] = 1.0
            if not self.scale:
                spread[:] = 1.0
            self.constant_[name] = constant | explained
            coef[:, self.constant_[name]] = 0
            self.scale_[name] = np.where(self.constant_[name], 1.0, scale * spread)
            self.confound_coef_[name] = coef / spread
        at = np.flatnonzero(self.constant_[name])
        self.constant_features_[name] = view.names_of(at)

    def transform(self, mv: MultiView, confounds: Any = None) -> dict[str, PreparedView]:
        """Return every view of `mv`, standardised with the training statistics.

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
        """Learn from `mv` and return it standardised."""
        return self.fit(mv, confounds).transform(mv, confounds)

    def _standardised(self, view: View, design: np.ndarray | None) -> Standardised:
        name = view.name
        made = Standardised(
            name=name,
            source=view.source,
            rows=view.rows,
            mean=self.mean_[name],
            factor=np.where(self.constant_[name], 0.0, 1.0 / self.scale_[name]),
            absent=~view.present,
            dtype=working_dtype(*view.shape, self.dtype),
            max_bytes=self.max_bytes,
        )
        if design is None:
            return made
        return replace(made, design=design, confound_coef=self.confound_coef_[name])

    # -- back to the units of the input ----------------------------------------------------

    def coef_in_input_units(self, name: str, coef: Any) -> np.ndarray:
        """Return weights per unit of the input from weights on the standardised view.

        Parameters
        ----------
        name : str
            View.
        coef : array of shape (n_features,) or (..., n_features)
            Weights on the standardised columns.

        Returns
        -------
        ndarray of the same shape
            coef / scale, and 0 for columns without information.
        """
        coef = self._check_coef(name, coef)
        return np.where(self.constant_[name], 0.0, coef / self.scale_[name])

    def intercept_shift(self, name: str, coef: Any) -> np.ndarray:
        """Return what to add to the intercept when the weights are in input units.

        Parameters
        ----------
        name : str
            View.
        coef : array of shape (..., n_features)
            Weights on the standardised columns.

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
            "scale": (True, False),
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
