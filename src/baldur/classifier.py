"""BaldurClassifier: who is ill, how sure, and which measurements decide it."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.classification import ClassificationBase
from baldur.estimator import Training
from baldur.inference.fitted import Fitted
from baldur.model.likelihood import JaakkolaLogistic, QuadratureLogistic
from baldur.progress import Reporter
from baldur.structured_fit import StructuredFit
from baldur.views.products import PreparedView

__all__ = ["BaldurClassifier"]


class BaldurClassifier(StructuredFit, ClassificationBase):
    """Bayesian multi-view classifier that says who, how sure, and from which few features.

    All views are projected into common latent factors by weights with two-way sparsity (over
    features and over views and factors), and class probabilities integrate over the uncertainty
    of the weights. Binary, multi-class and multi-label targets.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view: names, "gene_*", a regular expression, a
        `make_column_selector`, indices, a slice or a mask, see `MultiView.from_columns`. None for a
        `MultiView`, or to treat all columns as one view.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled. "standard": mean 0, standard deviation 1. "clipped": the same, but
        held within 3 standard deviations and standardised again, so that no extreme cell decides.
        "rank": normal scores. Columns of two values and genotypes are standardised always.
    preparation : Preparation, optional
        What is learned about the columns before the model, beyond scaling: filters, sites to align,
        covariates to regress out. It is a template that is cloned; its `scale`, if given, counts
        instead of the one above. Text and categories in a DataFrame are encoded without it.
    n_factors : "auto" or int, default="auto"
        Latent factors. "auto" has one per output and no loadings to learn; a number below that of
        the outputs learns loadings V.
    sparsity : "auto" or float, default="auto"
        Shape a of the prior Gamma(a, a) of the feature precisions: 1e-6 keeps few features, 0.5 is
        a heavy-tailed prior, ``float("inf")`` shrinks whole views only. "auto" stacks several
        priors, sparse and dense, by what they predict on held-out training rows, and keeps the
        fewest views and features that predict about as well as the best (see `sparsity_path_`).
    margin : float, default=0.1
        With ``sparsity="auto"``, the part of what the reference gains over the base rate that a
        smaller model may lose, with 95 % confidence; of those the smallest that is next to nothing
        behind the best is kept. 0 keeps whatever predicts best; larger values keep less.
    bound : {"quadrature", "jaakkola"}, default="quadrature"
        How E[ln sigmoid] is computed: exactly, or by the paper's quadratic bound.
    prune : bool, default=True
        With a number for `sparsity`, drop features, factors and views whose removal raises the
        bound.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class in the likelihood.
    max_iter : int, default=200
        Most sweeps, or iterations of each member of the stack.
    tol : float, default=1e-5
        With a finite number for `sparsity`, the relative change of the bound that counts as calm.
    random_state : int, RandomState or None, default=0
        Assigns rows to the inner folds. The default gives the same result on every run.
    n_jobs : int, optional
        Inner folds fitted at the same time; does not change the result.
    verbose : int, default=0
        Show progress on the terminal.

    Attributes
    ----------
    classes_ : ndarray
        Labels, or output numbers for multi-label targets.
    class_count_ : ndarray of int
        Training samples of each class, or with each label.
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Posterior mean and standard deviation of the weights of each view, per unit of the input;
        exactly zero where a feature was dropped. With ``sparsity="auto"`` the standard deviation
        is that of the members with features: how uncertain a weight is if there is a signal.
    coef_scaled_, coef_scaled_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        The same per standard deviation of the input.
    intercept_ : ndarray of shape (n_outputs,)
        Mean intercept that goes with `coef_`.
    selected_features_ : dict of str to bool array
        Features that were kept. Only these enter predictions.
    view_relevance_ : dict of str to float
        Share of each view in the variance of the linear predictor; they sum to 1.
    factor_relevance_ : DataFrame of shape (n_factors_, n_views)
        Share of each view in each factor: shared factors have several, specific ones have one.
    loadings_ : ndarray of shape (n_outputs, n_factors_)
        V, the identity where factors are outputs.
    n_factors_ : int
        Factors in use.
    sparsity_ : float, or dict of str to float
        Prior shape, or the learned share of features that are in.
    inclusion_probability_ : dict of str to ndarray
        With ``sparsity="auto"``, the probability that each feature is in, averaged over the
        members of the stack that select; 0 for features that were screened out.
    sparsity_path_ : DataFrame
        With ``sparsity="auto"``, one row per step: nothing, fewer views, fewer features. Held-out
        loss, how much it lies above the reference's with its standard error and upper 95 % bound,
        whether the step is a candidate, and which one was kept.
    stack_ : dict of str to float
        With ``sparsity="auto"``, the weight of each prior's linear predictor in the reference.
        The sum is how far they are believed: below 1 the reference is shrunk towards the base
        rate, above 1 they were too cautious.
    signal_, signal_shown_ : float, bool
        With ``sparsity="auto"``, what the reference gains over the base rate on held-out rows, in
        standard errors, and whether that shows a signal with 95 % confidence. If not, the kept
        features are not to be read.
    credible_sets_ : DataFrame
        With ``sparsity="auto"``, for each kept feature the features that could be in its place:
        the smallest set that holds the effect with 95 % probability, with the smallest
        absolute correlation within it. Empty where all features of the kept views were kept.
    space_ : dict of str to str
        Side the algebra was done on, per view.
    elbo_ : float
        With a number for `sparsity`, the bound on the log evidence that was maximised (for
        ``float("inf")`` given the best prior variances). nan with "auto", a stack of posteriors.
    history_ : list of dict
        One record per sweep, or per iteration of each member of the stack.
    n_iter_, converged_ : int, bool
        Number of records, and whether the bound was calm at the end.
    preparation_ : Preparation
        Means and scales, learned on the training rows.

    Examples
    --------
    >>> from baldur import BaldurClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(200, {"clinic": 10, "genes": 300}, informative={"clinic": 3},
    ...                      random_state=0)
    >>> model = BaldurClassifier().fit(sim.data[:150], sim.target[:150])
    >>> model.predict_proba(sim.data[150:]).shape
    (50, 2)
    >>> sorted(model.view_relevance_, key=model.view_relevance_.get)[-1]
    'clinic'
    """

    def __init__(
        self,
        views: Any = None,
        *,
        scale: str = "clipped",
        preparation: Any = None,
        n_factors: Any = "auto",
        sparsity: Any = "auto",
        margin: float = 0.1,
        bound: str = "quadrature",
        prune: bool = True,
        class_weight: Any = None,
        max_iter: int = 200,
        tol: float = 1e-5,
        random_state: Any = 0,
        n_jobs: int | None = None,
        verbose: int = 0,
    ) -> None:
        self.views = views
        self.scale = scale
        self.preparation = preparation
        self.n_factors = n_factors
        self.sparsity = sparsity
        self.margin = margin
        self.bound = bound
        self.prune = prune
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.verbose = verbose

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> BaldurClassifier:
        """Fit the posterior.

        Parameters
        ----------
        X : MultiView, or array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples. Missing cells are NaN; a sample may lack whole views.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels, or a 0/1 matrix for multi-label targets.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts. A weight of 0 leaves the sample out.
        groups : array-like of shape (n_samples,), optional
            Samples of one group stay together in the inner folds of ``sparsity="auto"``.

        Returns
        -------
        BaldurClassifier
            Itself.
        """
        self._check_parameters()
        self._fit_outputs(self._open_training(X, y, sample_weight, groups))
        return self

    def _run(self, views: list[PreparedView], training: Training, reporter: Reporter) -> Fitted:
        T = training.T
        kind = QuadratureLogistic if self.bound == "quadrature" else JaakkolaLogistic
        likelihood = kind(T, np.repeat(training.weight[:, None], T.shape[1], axis=1))
        return self._fit_posterior(views, likelihood, training, reporter)
