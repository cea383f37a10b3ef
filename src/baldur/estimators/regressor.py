"""BaldurRegressor: the same model for continuous outcomes, one or several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from baldur.core.parameters import check, parameter
from baldur.core.types import Array, Mask
from baldur.estimators.base import BaldurBase, check_answer
from baldur.estimators.default_fit import (
    ALWAYS,
    COST,
    ITERATIONS,
    JOBS,
    LEVEL,
    MARGIN,
    N_FACTORS,
    N_FEATURES,
    PRIORS,
    SEED,
    VERBOSE,
)
from baldur.exceptions import InputError
from baldur.inference.ensemble import MEMBERS
from baldur.model.likelihood import Task
from baldur.model.predictions import tails
from baldur.preparation.column_statistics import LARGEST_SPREAD, SMALLEST_SPREAD, same_but_rounding
from baldur.views.validate import without_mask


class RegressorBase(RegressorMixin, BaldurBase):
    """Reading of outcomes and prediction of means; subclasses fit the posterior."""

    _task: Task = "regression"
    noise_std_: Array
    _center: Array
    _spread: Array
    _one_output: bool  # whether outcomes were given as one column without a second axis

    @property
    def _units(self) -> tuple[Array, Array]:
        return np.asarray(self._center), np.asarray(self._spread)

    def _read_targets(self, y: Any, n: int) -> NDArray[Any]:
        """Return finite outcomes, (n,) or (n, n_outputs)."""
        if y is None:
            raise InputError("BaldurRegressor requires y to be passed, but the target y is None.")
        y = without_mask(y)
        try:
            if np.asarray(y).dtype.kind in "cmM":  # complex numbers, durations and dates
                raise TypeError
            Y = np.asarray(y, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                "y: expected numbers, but got values that cannot be read as such. Use "
                "BaldurClassifier for class labels."
            ) from None
        if Y.ndim not in (1, 2) or len(Y) != n:
            raise InputError(
                f"y: expected {n} outcomes, one row per sample, but got shape {np.shape(y)}."
            )
        if Y.ndim == 2 and not Y.shape[1]:
            raise InputError("y: expected at least one column of outcomes, but got none.")
        if not np.isfinite(Y).all():
            raise InputError(
                "y: outcomes must be finite, but Input contains NaN or infinity. Leave these "
                "samples out, or correct their outcomes."
            )
        return Y

    def _encode_targets(self, y: NDArray[Any], weight: Array) -> tuple[Array, NDArray[Any]]:
        """Return standardised outcomes (n, C), twice: as outputs and to stratify folds by."""
        self._one_output = y.ndim == 1
        Y = y[:, None] if self._one_output else y
        self._center, spread = _centre_and_spread(Y, weight)
        self._spread = np.where(spread > 0, spread, 1.0)
        T = np.where(spread > 0, (Y - self._center) / self._spread, 0.0)
        return T, T

    @property
    def output_units(self) -> tuple[Array, Array]:
        """Mean and standard deviation of each outcome, by which outputs are standardised."""
        check_is_fitted(self)
        return self._units

    def _set_predictor(self, predictor: Any, masks: list[Mask]) -> None:
        super()._set_predictor(predictor, masks)
        self.noise_std_ = self._spread * np.sqrt(predictor.noise)

    def predict(self, X: Any, return_std: bool = False) -> Any:
        """Return the predictive mean of each sample.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        return_std : bool, default=False
            Also return the standard deviation of a new observation, noise included.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the same shape
            Only with ``return_std=True``.
        """
        mean, std = self._predictive(X)
        check_answer(mean, "predictions")
        check_answer(std, "standard deviations")
        mean, std = self._shaped(mean), self._shaped(std)
        return (mean, std) if return_std else mean

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for a new observation of each sample, noise included.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        level : float, default=0.95
            Probability inside, with equal tails.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        """
        check("level", level, LEVEL)
        center, std = self._predictive(X)
        low, high = (self._shaped(center + ndtri(p) * std) for p in tails(level))
        return low, high

    def _predictive(self, X: Any) -> tuple[Array, Array]:
        """Return mean and standard deviation of new observations in their own units, (n, C)."""
        views = self._open_new(X)
        mean, var = self.predictor.moments(views)
        std = np.hypot(np.sqrt(var) * self._spread, self.noise_std_)
        return mean * self._spread + self._center, std

    def _shaped(self, values: Array) -> Array:
        """Return values (n, C) in the shape of the outcomes passed to fit."""
        return values[:, 0] if self._one_output else values

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags


@dataclass(eq=False, repr=False)
class BaldurRegressor(RegressorBase):
    """Bayesian multi-view regression with selection of features, factors and views.

    The model of `BaldurClassifier` with observed outputs y ~ N(eta, 1/psi), the noise precision
    learned per output. Targets are standardised inside; answers are in their own units.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view. None for a `MultiView` or one view.
    preparation : Preparation or {"clipped", "standard", "rank"}, optional
        What is learned about the columns before the model, or how they are scaled; see
        `BaldurClassifier`.
    n_factors : "auto" or int, default="auto"
        Latent factors behind several targets; "auto" selects the number that predicts held-out
        samples best.
    members : sequence of str, default=all
        Priors whose posteriors form the ensemble, one or more of these names; see
        `BaldurClassifier`.
    n_features : "auto", int or dict of str to int, default="auto"
        How many features are selected, of all views or of each; see `BaldurClassifier`.
    always : list of str, optional
        Features that are in every submodel and do not count; see `BaldurClassifier`.
    cost : dict of str to float, optional
        What views and features cost; features then enter by gain per cost; see `BaldurClassifier`.
    margin : float, default=0.1
        The part of what the ensemble gains over the base rate that a smaller model may lose, with
        95 % confidence. 0 selects everything, unless less is shown to lose nothing; larger values
        select less.
    max_iter : int, default=200
        Most iterations of each member of the ensemble.
    random_state : int, RandomState or None, default=0
        Assigns samples to the inner folds.
    n_jobs : int, optional
        Inner folds fitted at the same time; does not change the result.
    verbose : int, default=0
        1 prints progress with the time left.

    Attributes
    ----------
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Posterior mean and standard deviation of the weights, in units of output per input.
    coef_scaled_, coef_scaled_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        The same per standard deviation of the input.
    intercept_, intercept_scaled_ : ndarray of shape (n_outputs,)
        Mean intercepts that go with `coef_` and with `coef_scaled_`.
    noise_std_ : ndarray of shape (n_outputs,)
        Standard deviation of the noise of each output.
    feature_importances_
        As in `BaldurClassifier`.
    selected_features_, view_relevance_, factor_relevance_, loadings_, n_factors_
        As in `BaldurClassifier`; relevance adds outputs up in units of their standard deviations.
    factor_names_, factor_path_
        As in `BaldurClassifier`.
    inclusion_probability_, sparsity_path_, stacking_weights_, signal_, signal_shown_
        As in `BaldurClassifier`.
    cost_path_, credible_sets_
        As in `BaldurClassifier`.
    history_, n_iter_, converged_, preparation_
        As in `BaldurClassifier`.

    Examples
    --------
    >>> from baldur import BaldurRegressor
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(150, {"clinic": 10, "genes": 200}, informative={"clinic": 3},
    ...                      n_classes=None, noise=1.0, random_state=0)
    >>> model = BaldurRegressor().fit(sim.data[:100], sim.target[:100])
    >>> mean, std = model.predict(sim.data[100:], return_std=True)
    >>> mean.shape
    (50,)
    """

    views: Any = None
    _: KW_ONLY
    preparation: Any = None
    n_factors: Any = parameter("auto", N_FACTORS)
    members: Sequence[str] = parameter(MEMBERS, PRIORS)
    n_features: Any = parameter("auto", N_FEATURES)
    always: Sequence[str] | None = parameter(None, ALWAYS)
    cost: Mapping[str, float] | None = parameter(None, COST)
    margin: float = parameter(0.1, MARGIN)
    max_iter: int = parameter(200, ITERATIONS)
    random_state: Any = parameter(0, SEED)
    n_jobs: int | None = parameter(None, JOBS)
    verbose: int = parameter(0, VERBOSE)

    if TYPE_CHECKING:
        # scikit-learn has no types, so that checkers would let this class take any argument.
        def __init__(
            self,
            views: Any = None,
            *,
            preparation: Any = None,
            n_factors: Any = "auto",
            members: Sequence[str] = MEMBERS,
            n_features: Any = "auto",
            always: Sequence[str] | None = None,
            cost: Mapping[str, float] | None = None,
            margin: float = 0.1,
            max_iter: int = 200,
            random_state: Any = 0,
            n_jobs: int | None = None,
            verbose: int = 0,
        ) -> None: ...

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> BaldurRegressor:
        """Fit the posterior.

        Parameters
        ----------
        X : MultiView, or array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples. Missing cells are NaN; whole views of a sample may be missing.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Outcomes.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts. A weight of 0 leaves the sample out.
        groups : array-like of shape (n_samples,), optional
            Samples of one group stay together in the inner folds.

        Returns
        -------
        BaldurRegressor
            Itself.
        """
        return self._fit(X, y, sample_weight, groups)

    def submodel(
        self, n_features: int | Mapping[str, int] | None = None, *, budget: float | None = None
    ) -> BaldurRegressor:
        """Return the largest submodel with at most `n_features` features, without fitting again.

        Parameters
        ----------
        n_features : int or dict of str to int, optional
            Largest number of features, in all or of each view.
        budget : float, optional
            Instead of a number: the largest submodel that costs at most so much.

        Returns
        -------
        BaldurRegressor
            A fitted estimator; see `BaldurClassifier.submodel`.
        """
        return self._submodel(n_features, budget)


def _centre_and_spread(Y: Array, weight: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each outcome; 0 where values differ only by rounding.

    Shapes: Y (n_samples, n_outputs), weight (n_samples,).
    """
    low, high = Y.min(axis=0), Y.max(axis=0)
    flat = same_but_rounding(low, high)
    middle = low / 2 + high / 2  # taken off first, so that a large offset costs no digits
    with np.errstate(over="ignore", invalid="ignore"):
        centre = middle + np.average(Y - middle, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - centre) ** 2, axis=0, weights=weight))
    usable = (spread >= SMALLEST_SPREAD) & (spread <= LARGEST_SPREAD)
    extreme = np.flatnonzero(~usable & ~flat)
    if extreme.size:
        raise InputError(
            f"y: the standard deviation of an outcome must be between {SMALLEST_SPREAD:g} and "
            f"{LARGEST_SPREAD:g}, but column {extreme[0]} lies between {low[extreme[0]]:.3g} and "
            f"{high[extreme[0]]:.3g}. Give it in another unit."
        )
    return np.where(flat, middle, centre), np.where(flat, 0.0, spread)
