"""What all estimators share: parameters, preparation, fitted attributes, using the predictor."""

from __future__ import annotations

import time
import warnings
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from importlib import import_module
from numbers import Integral, Real
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from baldur.estimators.explain import contributions
from baldur.estimators.progress import Reporter
from baldur.estimators.save_mixins import ExportMixin
from baldur.estimators.summary import Summary, output_names, summarise, views_used
from baldur.exceptions import InputError, NoSignalWarning, NotConvergedWarning
from baldur.inference.ensemble import MEMBERS
from baldur.inference.factors import fit_factors_on_selected
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.inner_folds import inner_folds
from baldur.inference.predictive import Task
from baldur.inference.screening import Problem
from baldur.inference.selection import CONFIDENT, against_base_rate
from baldur.preparation import SCALES, preparation_for
from baldur.views.container import MultiView
from baldur.views.opening import open_views
from baldur.views.products import PreparedView

Array = NDArray[np.float64]


class Training(NamedTuple):
    """The samples that count in a fit.

    Attributes
    ----------
    mv : MultiView
    T : (N, C) array
        Outputs: 0 and 1 for labels, standardised numbers for continuous outcomes.
    weight : (N,) array
        How much each sample counts.
    task : Task
    labels : (N,) or (N, C) array
        What inner folds are stratified by.
    groups : array-like of shape (N,), or None
        Samples that stay together in inner folds.
    """

    mv: MultiView
    T: Array
    weight: Array
    task: Task
    labels: NDArray[Any]
    groups: Any


def check_level(level: Any) -> None:
    """Refuse a probability of an interval that is none."""
    if not (isinstance(level, Real) and 0.0 < float(level) < 1.0):
        raise InputError(f"level must be a probability between 0 and 1, but got {level!r}.")


def check_answer(values: Array, what: str, limits: tuple[float, float] | None = None) -> Array:
    """Return predictions that can be; refuse others, which a forged model or absurd rows can give.

    Parameters
    ----------
    values : array
    what : str
        What they are, for the message.
    limits : pair of float, optional
        Smallest and largest legal value. What rounding leaves outside is put on the limit.

    Returns
    -------
    array
    """
    low, high = limits or (-np.inf, np.inf)
    # Far above rounding and far below any difference that matters.
    if not np.isfinite(values).all() or (values < low - 1e-6).any() or (values > high + 1e-6).any():
        raise InputError(
            f"The {what} are not finite, or outside of their range. Look for absurd numbers in "
            "these rows; a model from somebody else may be damaged or forged."
        )
    return values if limits is None else np.clip(values, low, high)


def check_seed(random_state: Any) -> None:
    """Refuse what cannot start a random stream."""
    try:
        check_random_state(random_state)
    except ValueError:
        raise InputError(
            f"random_state must be None, a whole number or a RandomState, but got {random_state!r}."
        ) from None


class BaldurBase(ExportMixin, TransformerMixin, BaseEstimator):
    """Shared machinery; subclasses turn targets into outputs and predictions into targets."""

    views: Any
    scale: str
    preparation: Any
    n_factors: Any
    max_iter: int
    verbose: int

    # -- fitting ---------------------------------------------------------------------------

    def _fit_outputs(self, training: Training) -> None:
        """Fit and set every attribute the estimators share."""
        started = time.perf_counter()
        mv = training.mv
        weight = training.weight if np.ptp(training.weight) > 0 else None
        self.preparation_ = preparation_for(self.preparation, self.scale)
        prepared = self.preparation_.fit_transform(mv, sample_weight=weight)
        self.view_names_ = list(mv.view_names)
        views = [prepared[name] for name in self.view_names_]
        with Reporter(self.verbose, type(self).__name__) as reporter:
            fitted = self._run(views, training, reporter)
        self._predictor = fitted.predictor
        self._publish(mv, fitted)
        self.fit_seconds_ = time.perf_counter() - started
        if not fitted.converged:
            warnings.warn(
                f"{type(self).__name__} did not converge. Raise {self._stopping_settings()}.",
                NotConvergedWarning,
                stacklevel=3,
            )

    def _stopping_settings(self) -> str:
        """Return the settings that decide when a fit stops, with their values, for messages."""
        return f"max_iter (now {self.max_iter})"

    @abstractmethod
    def _run(self, views: list[PreparedView], training: Training, reporter: Reporter) -> Any:
        """Return the fit: its predictor, the selected features and the record."""

    def _check_parameters(self) -> None:
        """Refuse parameters outside their legal values, before anything is computed."""
        if self.scale not in SCALES:
            raise InputError(f"scale must be one of {SCALES}, but got {self.scale!r}.")
        rank = self.n_factors
        if rank != "auto" and not (isinstance(rank, Integral) and int(rank) >= 1):
            raise InputError(f'n_factors must be "auto" or a positive integer, but got {rank!r}.')
        if not (isinstance(self.max_iter, Integral) and int(self.max_iter) >= 1):
            raise InputError(f"max_iter must be a positive integer, but got {self.max_iter!r}.")

    def _publish(self, mv: MultiView, fitted: Any) -> None:
        """Set the fitted attributes, weights in the units and over all columns of the input."""
        names = self.view_names_
        self.feature_names_ = {name: mv.view(name).feature_names for name in names}
        self.feature_info_ = mv.feature_info
        prep = self.preparation_
        predictor = fitted.predictor
        coefs, stds, intercept = predictor.coefficients()
        scale = self._output_scale()  # (C, 1)
        shift, self.coef_, self.coef_std_ = np.zeros(len(intercept)), {}, {}
        self.coef_scaled_, self.coef_scaled_std_ = {}, {}
        for name, coef, std in zip(names, coefs, stds, strict=True):
            self.coef_[name] = prep.coef_in_input_units(name, coef) * scale
            self.coef_std_[name] = prep.coef_in_input_units(name, std) * scale
            # Prepared columns have standard deviation 1.
            informative = ~prep.scaling_.constant_[name]
            self.coef_scaled_[name] = prep.expand(name, coef * scale * informative)
            self.coef_scaled_std_[name] = prep.expand(name, std * scale * informative)
            shift = shift + prep.intercept_shift(name, coef)
        self.intercept_scaled_ = self._output_intercept(intercept * scale[:, 0])
        self.intercept_ = self._output_intercept((intercept + shift) * scale[:, 0])
        selected = dict(zip(names, fitted.selected, strict=True))
        prep.mark_needed(selected)
        self.selected_features_ = {name: prep.expand(name, mask) for name, mask in selected.items()}
        strength = predictor.output_signal.sum(axis=1)
        total = strength.sum()
        share = strength / total if total > 0 else np.full(len(names), 1.0 / len(names))
        self.view_relevance_ = {name: float(s) for name, s in zip(names, share, strict=True)}
        by_factor = predictor.signal.T  # (K, M)
        sums = by_factor.sum(axis=1, keepdims=True)
        parts = np.divide(by_factor, sums, out=np.zeros_like(by_factor), where=sums > 0)
        factors = [f"factor{k}" for k in range(len(parts))]
        self.factor_relevance_ = pd.DataFrame(parts, index=factors, columns=names)
        self.loadings_ = predictor.V
        self.n_factors_ = int(predictor.V.shape[1])
        self.history_ = fitted.history
        self.n_iter_ = len(fitted.history)
        self.converged_ = fitted.converged

    def _output_scale(self) -> Array:
        return np.ones((len(self._predictor.noise), 1))

    def _output_intercept(self, intercept: Array) -> Array:
        return intercept

    # -- using -----------------------------------------------------------------------------

    def _prepare(self, mv: MultiView, *, warn: bool = False) -> list[PreparedView]:
        prepared = self.preparation_.transform(mv, warn=warn)
        return [prepared[name] for name in self.view_names_]

    def _open_new(self, X: Any) -> list[PreparedView]:
        check_is_fitted(self)
        return self._prepare(open_views(self, X, reset=False), warn=True)

    def transform(self, X: Any, return_std: bool = False) -> Any:
        """Return the latent factors of each sample.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``.
        return_std : bool, default=False
            Also return the standard deviation of each factor.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_factors_)
        std : ndarray of the same shape
            Only with ``return_std=True``.
        """
        mean, var = self.predictor.latent(self._open_new(X))
        return (mean, np.sqrt(var)) if return_std else mean

    @property
    def predictor(self) -> Any:
        """The fitted predictor, for code that needs more than predictions."""
        check_is_fitted(self)
        return self._predictor

    def summary(self, everything: bool = False) -> Summary:
        """Return what was found: one row per kept feature and output, the strongest first.

        Parameters
        ----------
        everything : bool, default=False
            Also list features that were dropped.

        Returns
        -------
        DataFrame
            Columns view, feature, output (class), weight (per unit of the input), weight_scaled
            (per standard deviation) with its 95 % interval lower and upper, selected, and where
            known probability (of being in), stand_ins (who could be in its place, with
            probabilities) and the columns of the view's ``feature_info``. ``print`` shows the
            answer in words and the ten strongest.
        """
        check_is_fitted(self)
        return summarise(self, everything=everything)

    def explain(self, X: Any, most: int = 50) -> pd.DataFrame:
        """Return what each view and feature contributes to each prediction.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        most : int, default=50
            Features listed one by one in each view; the others are summed in one row.

        Returns
        -------
        DataFrame
            One row per sample, output and term: contribution to the linear predictor (log odds, or
            units of the outcome in regression) relative to the average person, with a 95 %
            interval. The contributions of "(average person)" and of all features add up to
            ``linear_predictor``; with "(uncertainty)" to the log odds of the predicted
            probability.
        """
        check_is_fitted(self)
        mv = open_views(self, X, reset=False)
        views = self._prepare(mv)
        names, columns = self.view_names_, self.preparation_.columns_
        return contributions(
            views,
            names,
            {name: np.asarray(self.feature_names_[name])[columns[name]] for name in names},
            [self.coef_scaled_[name][:, columns[name]] for name in names],
            [self.coef_scaled_std_[name][:, columns[name]] for name in names],
            self.intercept_scaled_,
            output_names(self),
            list(mv.sample_ids),
            self._log_odds(views),
            most,
        )

    def views_used(self, X: Any) -> pd.DataFrame:
        """Return which views the prediction of each sample rests on.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.

        Returns
        -------
        DataFrame of bool, samples by views
            True where the sample has the view and features of it were kept.
        """
        check_is_fitted(self)
        return views_used(open_views(self, X, reset=False), self.selected_features_)

    def _log_odds(self, views: list[PreparedView]) -> Array | None:
        """Return the log odds of the predictions, (n, C); None where there are none."""
        return None

    @property
    def covariate_coef_(self) -> Array:
        """Weights of the covariates that are regressed out, (n_outputs, q), per unit of each.

        With `coef_` and `intercept_` they give the linear predictor for cells within the clip; the
        columns are ``preparation_.covariates_.features``.
        """
        check_is_fitted(self)
        columns = self.preparation_.columns_
        parts = [
            self.preparation_.covariate_weights(name, self.coef_scaled_[name][:, columns[name]])
            for name in self.view_names_
        ]
        return np.asarray(np.sum(parts, axis=0))

    def report(self, path: str | Path, X: Any = None, y: Any = None, **options: Any) -> Path:
        """Write one page about this model: what it found, its figures and a calculator.

        Parameters
        ----------
        path : str or Path
            HTML file to write; it needs no network and no other file.
        X : MultiView, or array or DataFrame, optional
            People to show, with what each feature contributes to their prediction.
        y : array-like, optional
            Their outcomes.
        **options
            As in `baldur.report.report_model`: people, title.

        Returns
        -------
        Path
            The file.
        """
        check_is_fitted(self)
        # What writes pages knows all models and so stands above them; it is asked for by name.
        made: Path = import_module("baldur.report").report_model(self, path, X, y, **options)
        return made

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Return the names of the latent factors.

        Parameters
        ----------
        input_features : None
            Ignored; the factors do not belong to single features.

        Returns
        -------
        ndarray of str
        """
        check_is_fitted(self)
        name = type(self).__name__.lower()
        return np.array([f"{name}{k}" for k in range(self.n_factors_)], dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")


class StructuredFit(BaldurBase):
    """The settings of the two estimators and the fit they share."""

    members: Sequence[str]
    margin: float
    random_state: Any
    n_jobs: int | None

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_members(self.members)
        check_seed(self.random_state)
        if self.n_jobs is not None and not (isinstance(self.n_jobs, Integral) and self.n_jobs != 0):
            raise InputError(
                "n_jobs must be None or a number of processes (-1 for one per core), but got "
                f"{self.n_jobs!r}."
            )
        if not (isinstance(self.margin, Real) and 0.0 <= float(self.margin) <= 1.0):
            raise InputError(
                "margin must be a number from 0 (keep whatever predicts best) to 1, the part of "
                "what is gained over the base rate that a smaller model may lose, but got "
                f"{self.margin!r}."
            )

    def _run(self, views: list[PreparedView], training: Training, reporter: Reporter) -> FitResult:
        T = training.T
        groups = self.preparation_.feature_groups
        problem = Problem(views, T, training.weight, training.task, groups)
        result = fit_default(
            problem,
            inner_folds(training.labels, training.task, training.groups, self.random_state),
            members=tuple(self.members),
            margin=float(self.margin),
            n_jobs=self.n_jobs,
            max_iter=self.max_iter,
            watch=reporter.watch,
        )
        if self.n_factors == "auto" or int(self.n_factors) >= T.shape[1]:
            return result
        return fit_factors_on_selected(problem, result, int(self.n_factors), max_iter=self.max_iter)

    def _publish(self, mv: MultiView, fitted: FitResult) -> None:
        super()._publish(mv, fitted)
        self._publish_selection(fitted)

    def _publish_selection(self, answer: FitResult) -> None:
        """Set the submodel path, the stacking weights, and what is known of the selection."""
        names = self.view_names_
        self.inclusion_probability_ = {
            name: self.preparation_.expand(name, inclusion)
            for name, inclusion in zip(names, answer.inclusion, strict=True)
        }
        self.sparsity_path_ = pd.DataFrame(answer.path)
        self.stack_ = answer.stacking
        self.sparsity_ = dict(zip(names, answer.share.tolist(), strict=True))
        self.space_ = dict.fromkeys(names, answer.solver)
        self.signal_ = answer.signal.in_errors
        self.signal_shown_ = bool(self.signal_ > CONFIDENT)
        columns = self.preparation_.columns_
        features = [np.asarray(self.feature_names_[name])[columns[name]] for name in names]
        self.credible_sets_ = pd.DataFrame(
            [
                {
                    "view": names[found.view],
                    "feature": str(features[found.view][found.feature]),
                    "member_view": names[m],
                    "member_feature": str(features[m][d]),
                    "probability": p,
                    "min_abs_correlation": found.min_abs_correlation,
                }
                for found in answer.credible_sets
                for m, d, p in zip(found.views, found.features, found.probability, strict=True)
            ],
            columns=[
                "view",
                "feature",
                "member_view",
                "member_feature",
                "probability",
                "min_abs_correlation",
            ],
        )
        if not self.signal_shown_:
            kept = sum(int(np.sum(mask)) for mask in answer.selected)
            what = (
                "the base rate is predicted for everybody"
                if kept == 0
                else "the features it keeps are not to be read as findings"
            )
            warnings.warn(
                f"{type(self).__name__}: no signal was shown. On held-out rows the model is "
                f"{against_base_rate(self.signal_)}, and {CONFIDENT} better would be needed for "
                f"95 % confidence; {what}.",
                NoSignalWarning,
                stacklevel=4,
            )


def check_members(members: Any) -> None:
    """Refuse anything but a non-empty collection of members' names."""
    legal = ", ".join(f'"{name}"' for name in MEMBERS)
    several = isinstance(members, Iterable) and not isinstance(members, (str, bytes))
    names = list(members) if several else []
    if not names or any(not isinstance(name, str) or name not in MEMBERS for name in names):
        raise InputError(
            f"members must be a tuple or list of one or more of {legal}, but got {members!r}."
        )
