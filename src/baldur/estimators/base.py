"""What all estimators share: parameters, preparation, fitted attributes, using the predictor."""

from __future__ import annotations

import copy
import warnings
from abc import abstractmethod
from pathlib import Path
from typing import Any, Self

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from baldur.core.parameters import check_parameters
from baldur.core.types import Array, Mask
from baldur.estimators.contributions import contributions
from baldur.estimators.default_fit import (
    FACTOR_COLUMNS,
    cost_columns,
    credible_frame,
    find_submodel,
    fit_submodels,
    path_frame,
    prepared_names,
    progress,
)
from baldur.estimators.summary import (
    Summary,
    against_base_rate,
    results_html,
    summarise,
    views_used,
)
from baldur.exceptions import InputError, NoSignalWarning, NotConvergedWarning
from baldur.inference.fit import FitResult
from baldur.inference.inner_folds import Problem
from baldur.inference.submodel_selection import CONFIDENT
from baldur.model.likelihood import Task
from baldur.preparation import preparation_for
from baldur.views.container import MultiView
from baldur.views.estimator_input import input_columns, open_views
from baldur.views.prepared_view import PreparedView
from baldur.views.validate import check_groups, match_labels, positive_weights


class OnnxModel(bytes):
    """Content of an ONNX file: bytes with a short representation."""

    def __repr__(self) -> str:
        return f"<OnnxModel of {len(self):,} bytes; to_onnx(path) writes it to a file>"


class BaldurBase(TransformerMixin, BaseEstimator):
    """Parameters, preparation, fitted attributes and the methods that every estimator has.

    `ClassifierBase` and `RegressorBase` add the targets and the predictions of their task; the
    estimators below them add their parameters. The posterior is the default one unless an estimator
    replaces `_fit_posterior`.
    """

    views: Any
    preparation: Any
    n_factors: Any
    max_iter: int
    verbose: int
    signal_: float
    sparsity_path_: pd.DataFrame
    credible_sets_: pd.DataFrame
    _task: Task

    # -- fitting ---------------------------------------------------------------------------

    @property
    def _units(self) -> tuple[Array, Array]:
        """Centre and spread of the outputs, each (C,): 0 and 1 where they are not standardised."""
        return np.zeros(1), np.ones(1)

    @abstractmethod
    def _read_targets(self, y: Any, n: int) -> NDArray[Any]:
        """Return labels or outcomes of n samples; refuse what cannot be targets."""

    @abstractmethod
    def _encode_targets(self, y: NDArray[Any], weight: Array) -> tuple[Array, NDArray[Any]]:
        """Return the outputs T (N, C) and what inner folds are stratified by; set the task."""

    def _weigh_classes(self, weight: Array, labels: NDArray[Any], what: str) -> Array:
        """Return the sample weights (N,) times class weights, if any; errors call these `what`."""
        return weight

    def _fit(self, X: Any, y: Any, sample_weight: Any, groups: Any = None) -> Self:
        """Fit the preparation and the posterior; every ``fit`` calls this and nothing else."""
        check_parameters(self)
        mv, y, weight, groups = self._open_training(X, y, sample_weight, groups)
        T, labels = self._encode_targets(y, weight)
        what = "class_weight" if sample_weight is None else "sample_weight times class_weight"
        weight = self._weigh_classes(weight, labels, what)
        problem = Problem(self._prepare_training(mv, weight), T, weight, self._task)
        signal_warnings = self._fit_posterior(problem, labels, groups)
        self.n_iter_ = len(self.history_)
        for text, category in [*self._convergence_warning(), *signal_warnings]:
            # Level 3 is the line that calls `fit`.
            warnings.warn(f"{type(self).__name__} {text}", category, stacklevel=3)
        return self

    def _open_training(
        self, X: Any, y: Any, sample_weight: Any, groups: Any
    ) -> tuple[MultiView, NDArray[Any], Array, Any]:
        """Return the N samples with positive weight, their targets, weights and groups."""
        mv = open_views(self, X, reset=True)
        y = match_labels(y, mv.sample_ids, X)
        weight = positive_weights(sample_weight, len(mv))
        groups = check_groups(groups, len(mv))
        y = self._read_targets(y, len(mv))
        used = np.flatnonzero(weight)
        if len(used) < len(mv):
            mv, weight = mv[used], weight[used]
            y = self._read_targets(y[used], len(used))
            groups = None if groups is None else groups[used]
        return mv, y, weight, groups

    def _prepare_training(self, mv: MultiView, weight: Array) -> list[PreparedView]:
        """Fit the preparation and return the prepared views, in the order of `view_names_`."""
        self.preparation_ = preparation_for(self.preparation)
        uneven = weight if np.ptp(weight) > 0 else None
        prepared = self.preparation_.fit_transform(mv, sample_weight=uneven)
        self.view_names_ = list(mv.view_names)
        self.feature_names_ = {name: mv.view(name).feature_names for name in self.view_names_}
        self.feature_info_ = mv.feature_info
        return [prepared[name] for name in self.view_names_]

    def _fit_posterior(
        self, problem: Problem, labels: NDArray[Any], groups: Any
    ) -> list[tuple[str, type[Warning]]]:
        """Fit the ensemble, select a submodel, set the attributes, and return warnings.

        `labels` are what inner folds are stratified by; samples of one of the `groups` (N,) stay
        together in them.
        """
        prep, parameters = self.preparation_, self.get_params(deep=False)
        with progress(self.verbose, type(self).__name__) as watch:
            fit = fit_submodels(
                problem, labels, groups, self.feature_names_, prep, parameters, watch
            )
        self._default_fit = fit
        self._set_predictor(fit.predictor, fit.selected)
        names = prepared_names(self.feature_names_, prep)
        inclusion = zip(names, fit.inclusion, strict=True)
        self.inclusion_probability_ = {name: prep.expand(name, p) for name, p in inclusion}
        self.sparsity_path_ = path_frame(fit.path, names)
        columns = cost_columns(self.sparsity_path_)
        self.cost_path_ = path_frame(fit.cost_path, names).reindex(columns=columns)
        self.factor_path_ = pd.DataFrame(fit.factor_path, columns=list(FACTOR_COLUMNS))
        self.stacking_weights_ = fit.stacking
        self.signal_ = fit.signal
        self.credible_sets_ = credible_frame(fit.credible_sets, names)
        self.history_, self.converged_ = fit.history, fit.converged
        if self.signal_shown_:
            return []
        advice = "do not interpret its selected features"
        if not any(mask.any() for mask in fit.selected):
            advice = "it predicts the base rate for every sample"
        text = (
            f"found no evidence of signal on held-out data, so {advice} (it is "
            f"{against_base_rate(self.signal_)}; 95 % confidence needs {CONFIDENT} better)."
        )
        return [(text, NoSignalWarning)]

    def _set_predictor(self, predictor: Any, masks: list[Mask]) -> None:
        """Store a predictor and set the attributes that follow from it, in units of the input.

        `masks` say for each view which prepared columns were selected.
        """
        self._predictor = predictor
        self._set_coefficients(predictor)
        selected = dict(zip(self.view_names_, masks, strict=True))
        self.preparation_.mark_needed(selected)
        self.selected_features_ = {
            name: self.preparation_.expand(name, mask) for name, mask in selected.items()
        }
        self._set_relevance(predictor)

    def _set_coefficients(self, predictor: Any) -> None:
        """Set weights and intercepts of input columns, per unit and per standard deviation."""
        prep = self.preparation_
        coefs, stds, intercept = predictor.coefficients()
        center, spread = self._units
        scale = spread[:, None]
        shift = np.zeros(len(intercept))
        self.coef_, self.coef_std_, self.coef_scaled_, self.coef_scaled_std_ = {}, {}, {}, {}
        for name, coef, std in zip(self.view_names_, coefs, stds, strict=True):
            self.coef_[name] = prep.coef_in_input_units(name, coef) * scale
            self.coef_std_[name] = prep.coef_in_input_units(name, std) * scale
            # Prepared columns have standard deviation 1, except constant ones, which get weight 0.
            informative = ~prep.scaling_.constant_[name]
            self.coef_scaled_[name] = prep.expand(name, coef * scale * informative)
            self.coef_scaled_std_[name] = prep.expand(name, std * scale * informative)
            shift = shift + prep.intercept_shift(name, coef)
        self.intercept_scaled_ = intercept * spread + center
        self.intercept_ = (intercept + shift) * spread + center

    def _set_relevance(self, predictor: Any) -> None:
        """Set the share of each view in the variance of the outputs and of each factor.

        Shapes: predictor.output_signal (M, C) and signal (M, K) of M views, C outputs, K factors.
        """
        names = self.view_names_
        strength = predictor.output_signal.sum(axis=1)
        total = strength.sum()
        view_share = strength / total if total > 0 else np.full(len(names), 1.0 / len(names))
        self.view_relevance_ = {name: float(s) for name, s in zip(names, view_share, strict=True)}
        by_factor = predictor.signal.T  # (K, M)
        sums = by_factor.sum(axis=1, keepdims=True)
        shares = np.divide(by_factor, sums, out=np.zeros_like(by_factor), where=sums > 0)
        factors = [f"factor{k}" for k in range(len(shares))]
        self.factor_relevance_ = pd.DataFrame(shares, index=factors, columns=names)
        self.loadings_ = predictor.V
        self.n_factors_ = int(predictor.V.shape[1])

    def _convergence_warning(self) -> list[tuple[str, type[Warning]]]:
        """Return the warning that the fit did not converge, with the settings that decide it."""
        if self.converged_:
            return []
        settings = [
            f"{name} (now {value})"
            for name, value in self.get_params(deep=False).items()
            if name in ("max_iter", "tol")
        ]
        return [(f"did not converge. Raise {' or '.join(settings)}.", NotConvergedWarning)]

    def _submodel(self, n_features: Any, budget: Any) -> Self:
        """Return a copy with the largest submodel of a number of features or a budget."""
        check_is_fitted(self)
        call = f"submodel({n_features if budget is None else f'budget={budget}'})"
        fit: FitResult | None = getattr(self, "_default_fit", None)
        if fit is None:
            again = "the number of features" if n_features is None else f"n_features={n_features}"
            raise InputError(
                f"{call}: a model folder has the model that was saved and not its submodels. Call "
                f"submodel on the fitted model and save what it returns, or fit again with {again}."
            )
        path = self.sparsity_path_[self.sparsity_path_["step"] != "per view"].reset_index(drop=True)
        submodel, limit, record = find_submodel(
            fit, self.view_names_, n_features, budget, len(path)
        )
        model: Any = copy.copy(self)
        model.n_features = limit
        # `_set_predictor` marks in the preparation which columns are needed.
        model.preparation_ = copy.copy(model.preparation_)
        model.preparation_.scaling_ = copy.copy(model.preparation_.scaling_)
        model._set_predictor(submodel.predictor, submodel.masks)
        if record is not None:  # the path has no row of this submodel yet
            names = prepared_names(self.feature_names_, self.preparation_)
            path = pd.concat([path, path_frame([record], names)], ignore_index=True)
        is_selected = [row == submodel.row for row in range(len(path))]
        model.sparsity_path_ = path.assign(selected=is_selected)
        sets = self.credible_sets_
        in_submodel = {
            (view, str(name))
            for view, mask in model.selected_features_.items()
            for name in np.asarray(self.feature_names_[view])[mask]
        }
        pairs = zip(sets["view"], sets["feature"], strict=True)
        # As truth values, also without any: an empty list would select no column.
        kept = np.array([pair in in_submodel for pair in pairs], dtype=bool)
        model.credible_sets_ = sets[kept].reset_index(drop=True)
        return model

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
        Z : ndarray of shape (n_samples, n_factors)
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
        """Return what was found: one row per selected feature and output, the strongest first.

        Parameters
        ----------
        everything : bool, default=False
            Also list features that were not selected.

        Returns
        -------
        DataFrame
            Columns view, feature, output (class), weight (per unit of the input), weight_scaled
            (per standard deviation) with its 95 % interval lower and upper, selected, and where
            known inclusion_probability, credible_set (features that are interchangeable with it,
            with probabilities) and the columns of the view's ``feature_info``. ``print`` shows the
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
        return contributions(self, views, list(mv.sample_ids), self._log_odds(views), most)

    def views_used(self, X: Any) -> pd.DataFrame:
        """Return which views the prediction of each sample uses.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.

        Returns
        -------
        DataFrame of bool, samples by views
            True where the sample has the view and features of it were selected.
        """
        check_is_fitted(self)
        return views_used(open_views(self, X, reset=False), self.selected_features_)

    def flag_samples(self, X: Any) -> pd.DataFrame:
        """Return for every sample the reasons to doubt its prediction.

        Only features that predictions use are looked at.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.

        Returns
        -------
        DataFrame
            One row per sample with the columns out_of_range, unknown_category, imputed,
            missing_views and flags; see `Preparation.flag_samples`.
        """
        check_is_fitted(self)
        return self.preparation_.flag_samples(open_views(self, X, reset=False))

    def _log_odds(self, views: list[PreparedView]) -> Array | None:
        """Return the log odds of the predictions, (n, C); None where there are none."""
        return None

    @property
    def signal_shown_(self) -> bool:
        """Whether held-out samples are evidence of signal with 95 % confidence (`signal_`)."""
        return bool(self.signal_ > CONFIDENT)

    @property
    def factor_names_(self) -> list[str]:
        """The three features that move each factor most, the strongest first.

        The weights of a factor are those of the outputs, combined by its loadings.
        """
        by_factor = np.linalg.pinv(self.loadings_)  # (K, C)
        strongest: list[list[tuple[float, str]]] = [[] for _ in by_factor]
        for view in self.view_names_:
            strength = np.abs(by_factor @ self.coef_scaled_[view])  # (K, D)
            for k, row in enumerate(strength):
                for d in np.argsort(-row, kind="stable")[:3]:
                    if row[d] > 0:
                        name = f"{view}:{self.feature_names_[view][d]}"
                        strongest[k].append((-float(row[d]), name))
        return [
            ", ".join(name for _, name in sorted(pairs)[:3]) or "no feature" for pairs in strongest
        ]

    @property
    def covariate_coef_(self) -> Array:
        """Weights of the covariates that are regressed out, (n_outputs, q), per unit of each.

        With `coef_` and `intercept_` they give the linear predictor for cells within the clip; the
        columns are ``preparation_.covariates_.features``. Without covariates there is no such
        attribute.
        """
        check_is_fitted(self)
        if self.preparation_.covariates_ is None:
            raise AttributeError(
                "covariate_coef_ exists only for a model whose preparation "
                "regresses covariates out."
            )
        columns = self.preparation_.columns_
        parts = [
            self.preparation_.covariate_weights(name, self.coef_scaled_[name][:, columns[name]])
            for name in self.view_names_
        ]
        return np.asarray(np.sum(parts, axis=0))

    def save(self, path: str | Path, *, overwrite: bool = False) -> Path:
        """Write the fitted model into a folder; `baldur.load` reads it.

        Parameters
        ----------
        path : str or Path
            The folder.
        overwrite : bool, default=False
            Replace a model folder that is there; nothing else is ever replaced.

        Returns
        -------
        Path
            The folder.
        """
        from baldur.saving import save

        return save(self, path, overwrite=overwrite)

    def card(self, path: str | Path | None = None, **words: Any) -> Any:
        """Return the printable model: what it is, its formula, and scorers in three languages.

        Parameters
        ----------
        path : str or Path, optional
            A folder to write ``card.md``, ``card.json`` and the scorers to.
        **words
            ``performance`` (a table with metric, estimate, low and high, or a dictionary of metric
            to these three), ``intended_use``, ``not_for`` and ``classes`` (names of the classes).

        Returns
        -------
        Card
            With `markdown`, `json` and `write`.
        """
        from baldur.saving.card import make_card

        card = make_card(self, **words)
        if path is not None:
            card.write(path)
        return card

    def to_onnx(self, path: str | Path | None = None) -> Path | OnnxModel:
        """Return the model as ONNX in float64, for programs that run it without Python.

        Inputs are ``x``, the selected features in the order of the metadata with NaN where missing,
        and ``absent``, 1 where a sample has a missing view. Outputs are ``probabilities``, or
        ``mean`` and ``std``.

        Parameters
        ----------
        path : str or Path, optional
            File to write.

        Returns
        -------
        Path or OnnxModel
            The file that was written; without a path, the content of the file as bytes.
        """
        content = OnnxModel(self.card().to_onnx(path))
        return content if path is None else Path(path)

    def report(self, path: str | Path, X: Any = None, y: Any = None, **options: Any) -> Path:
        """Write one page about this model: what it found, its figures and a calculator.

        Parameters
        ----------
        path : str or Path
            HTML file to write; it needs no network and no other file.
        X : MultiView, or array or DataFrame, optional
            Samples to show, with the contribution of each feature to their predictions.
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
        from baldur.report import report_model

        return report_model(self, path, X, y, **options)

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

    @property
    def feature_importances_(self) -> Array:
        """Importance of every input column, (n_features,), not negative and with sum 1.

        The absolute weights per standard deviation (`coef_scaled_`), summed over outputs and over
        the levels of a category, as shares of their total. Exactly 0 for columns that were not
        selected. ``SelectFromModel(model, importance_getter="feature_importances_",
        threshold=1e-12)`` passes the selected columns on.
        """
        check_is_fitted(self)
        spread = self._units[1][:, None]
        strength = {
            name: np.abs(self.coef_scaled_[name] / spread).sum(axis=0) for name in self.view_names_
        }
        total = np.zeros(self.n_features_in_)
        for name, columns in input_columns(self).items():
            np.add.at(total, columns, strength[name])
        return np.asarray(total / total.sum() if total.any() else total)

    def _html_repr(self) -> str:
        """Return scikit-learn's diagram, followed by the results of a fitted estimator."""
        diagram: str = super()._html_repr()
        return diagram + results_html(self) if self.__sklearn_is_fitted__() else diagram

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_predictor")


def check_answer(values: Array, what: str, limits: tuple[float, float] | None = None) -> Array:
    """Return the predictions; refuse values that are not finite or outside their range."""
    low, high = limits or (-np.inf, np.inf)
    # Far above rounding and far below any difference that matters.
    if not np.isfinite(values).all() or (values < low - 1e-6).any() or (values > high + 1e-6).any():
        raise InputError(
            f"The {what} are not finite, or outside of their range. Look for absurd numbers in "
            "these samples; a model from somebody else may be damaged or forged."
        )
    return values if limits is None else np.clip(values, low, high)
