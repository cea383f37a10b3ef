"""BaldurRegressor: the same model for continuous outcomes, one or several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.estimators.base import StructuredFit
from baldur.estimators.regression import RegressionBase
from baldur.inference.ensemble import MEMBERS
from baldur.views.container import MultiView

__all__ = ["BaldurRegressor"]


class BaldurRegressor(StructuredFit, RegressionBase):
    """Bayesian multi-view regression with selection of features, factors and views.

    The model of `BaldurClassifier` with observed outputs y ~ N(eta, 1/psi), the noise precision
    learned per output. Targets are standardised inside; answers are in their own units.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view. None for a `MultiView` or one view.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled; see `BaldurClassifier`.
    preparation : Preparation, optional
        What is learned about the columns before the model, beyond scaling: filters, sites to align,
        covariates to regress out. It is a template that is cloned; its `scale`, if given, counts
        instead of the one above. Text and categories in a DataFrame are encoded without it.
    n_factors : "auto" or int, default="auto"
        Latent factors; "auto" has one per output.
    members : sequence of str, default=("spike_slab", "spike_slab_wide", "per_view", "pooled")
        Priors whose posteriors form the ensemble, one or more of these names; see
        `BaldurClassifier`.
    margin : float, default=0.1
        The part of what the ensemble gains over the base rate that a smaller model may lose, with
        95 % confidence. 0 selects whatever predicts best; larger values select less.
    max_iter : int, default=200
        Most iterations of each member of the ensemble.
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
    coef_scaled_, coef_scaled_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        The same per standard deviation of the input.
    intercept_, intercept_scaled_ : ndarray of shape (n_outputs,)
        Mean intercepts that go with `coef_` and with `coef_scaled_`.
    noise_std_ : ndarray of shape (n_outputs,)
        Standard deviation of the noise of each output.
    selected_features_, view_relevance_, factor_relevance_, loadings_, n_factors_
        As in `BaldurClassifier`; relevance adds outputs up in units of their standard deviations.
    sparsity_, inclusion_probability_, sparsity_path_, stack_, signal_, signal_shown_
        As in `BaldurClassifier`.
    credible_sets_, space_
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

    def __init__(
        self,
        views: Any = None,
        *,
        scale: str = "clipped",
        preparation: Any = None,
        n_factors: Any = "auto",
        members: Sequence[str] = MEMBERS,
        margin: float = 0.1,
        max_iter: int = 200,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.scale = scale
        self.preparation = preparation
        self.n_factors = n_factors
        self.members = members
        self.margin = margin
        self.max_iter = max_iter
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
            Samples of one group stay together in the inner folds.

        Returns
        -------
        BaldurRegressor
            Itself.
        """
        self._check_parameters()
        self._fit_outputs(self._open_training(X, y, sample_weight, groups))
        return self

    def _publish(self, mv: MultiView, fitted: Any) -> None:
        super()._publish(mv, fitted)
        self.noise_std_ = self._spread * np.sqrt(fitted.predictor.noise)
