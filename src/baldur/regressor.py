"""BaldurRegressor: the same model for continuous outcomes, one or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.model_selection import GroupKFold, KFold
from sklearn.utils import check_random_state

from baldur.estimator import INNER_FOLDS, BaldurBase
from baldur.exceptions import InputError
from baldur.inference.scoring import mixture_moments
from baldur.inference.sparsity import Fold
from baldur.model.likelihood import GaussianOutputs
from baldur.views.opening import open_views
from baldur.views.validate import positive_weights

__all__ = ["BaldurRegressor"]

Array = NDArray[np.float64]


class BaldurRegressor(RegressorMixin, BaldurBase):
    """Bayesian multi-view regression with selection of features, factors and views.

    The model of `BaldurClassifier` with observed outputs y ~ N(eta, 1/psi), the noise precision
    learned per output. Targets are standardised inside; answers are in their own units.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view. None for a `MultiView` or one view.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled; see `BaldurClassifier`.
    inference : {"structured", "mean-field"}, default="structured"
        Posterior family; see `BaldurClassifier`.
    n_factors : "auto" or int, default="auto"
        Latent factors; "auto" has one per output.
    sparsity : "auto" or float, default="auto"
        Shape of the prior of the feature precisions, or how many features to keep settled on
        training rows; see `BaldurClassifier`.
    prune : bool, default=True
        Drop features, factors and views whose removal raises the bound.
    max_iter : int, default=200
        Most sweeps.
    tol : float, default=1e-5
        Relative change of the bound that counts as calm.
    space : {"auto", "primal", "dual"} or one per view, default="auto"
        Mean-field only; see `BaldurClassifier`.
    relevance_vectors : None, int or indices, default=None
        Mean-field dual only.
    random_state : int, RandomState or None, default=0
        Assigns rows to the inner folds.
    n_jobs : int, optional
        Inner folds fitted at the same time; does not change the result.
    verbose : int, default=0
        Show progress on the terminal.

    Attributes
    ----------
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Posterior mean and standard deviation of the weights, in units of output per input.
    intercept_ : ndarray of shape (n_outputs,)
        Mean intercept that goes with `coef_`.
    noise_std_ : ndarray of shape (n_outputs,)
        Standard deviation of the noise of each output.
    selected_features_, view_relevance_, factor_relevance_, loadings_, n_factors_
        As in `BaldurClassifier`.
    sparsity_, inclusion_probability_, sparsity_path_, space_
        As in `BaldurClassifier`.
    elbo_, history_, n_iter_, converged_, preparation_
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

    bound = "quadrature"

    def __init__(
        self,
        views: Any = None,
        *,
        scale: str = "clipped",
        inference: str = "structured",
        n_factors: Any = "auto",
        sparsity: Any = "auto",
        prune: bool = True,
        max_iter: int = 200,
        tol: float = 1e-5,
        space: Any = "auto",
        relevance_vectors: Any = None,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.scale = scale
        self.inference = inference
        self.n_factors = n_factors
        self.sparsity = sparsity
        self.prune = prune
        self.max_iter = max_iter
        self.tol = tol
        self.space = space
        self.relevance_vectors = relevance_vectors
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> BaldurRegressor:
        """Fit the posterior.

        Parameters
        ----------
        X : MultiView, or array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples. Missing cells are NaN; a sample may lack whole views.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Outcomes.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts. A weight of 0 leaves the sample out.
        groups : array-like of shape (n_samples,), optional
            Samples of one group stay together in the inner folds of ``sparsity="auto"``.

        Returns
        -------
        BaldurRegressor
            Itself.
        """
        self._check_parameters()
        mv = open_views(self, X, reset=True)
        weight = positive_weights(sample_weight, len(mv))
        Y = self._check_targets(y, len(mv))
        used = np.flatnonzero(weight)
        if len(used) < len(mv):
            mv, weight, Y = mv[used], weight[used], Y[used]
            groups = None if groups is None else np.asarray(groups)[used]
        self._center = np.average(Y, axis=0, weights=weight)
        spread = np.sqrt(np.average((Y - self._center) ** 2, axis=0, weights=weight))
        self._spread = np.where(spread > 0, spread, 1.0)
        T = (Y - self._center) / self._spread
        likelihood = GaussianOutputs(T, np.repeat(weight[:, None], T.shape[1], axis=1))
        self._likelihood = likelihood
        self._fit_outputs(mv, likelihood, T, "regression", self._folds(len(T), groups))
        self.noise_std_ = self._spread / np.sqrt(likelihood.psi.mean)
        return self

    def _check_targets(self, y: Any, n: int) -> Array:
        if y is None:
            raise InputError("BaldurRegressor requires y to be passed, but the target y is None.")
        try:
            Y = np.asarray(y, dtype=float)
        except (TypeError, ValueError):
            raise InputError(
                "y: expected numbers, but got values that cannot be read as such. Use "
                "BaldurClassifier for class labels."
            ) from None
        self._one_output = Y.ndim == 1
        Y = Y[:, None] if Y.ndim == 1 else Y
        if Y.ndim != 2 or len(Y) != n:
            raise InputError(
                f"y: expected {n} outcomes, one row per sample, but got shape {np.shape(y)}."
            )
        if not np.isfinite(Y).all():
            raise InputError("y: outcomes must be finite, but Input contains NaN or infinity.")
        return Y

    def _folds(self, n: int, groups: Any) -> Sequence[Fold]:
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        if groups is None:
            return list(KFold(min(INNER_FOLDS, n), shuffle=True, random_state=seed).split(range(n)))
        groups = np.asarray(groups)
        if groups.shape != (n,):
            raise InputError(f"groups must have {n} entries, but has shape {groups.shape}.")
        n_groups = len(np.unique(groups))
        if n_groups < 2:
            raise InputError("groups: inner folds need at least two groups, but there is one.")
        splitter = GroupKFold(min(INNER_FOLDS, n_groups), shuffle=True, random_state=seed)
        return list(splitter.split(np.zeros(n), groups=groups))

    def _output_scale(self) -> Array:
        return np.asarray(self._spread)[:, None]

    def _output_intercept(self, intercept: Array) -> Array:
        return intercept + self._center

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
        views = self._open_new(X)
        mean, var = mixture_moments(self._posterior.moments(views))
        mean = mean * self._spread + self._center
        std = np.sqrt(var * self._spread**2 + self.noise_std_**2)
        if self._one_output:
            mean, std = mean[:, 0], std[:, 0]
        return (mean, std) if return_std else mean

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags
