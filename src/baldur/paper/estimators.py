"""PaperClassifier and PaperRegressor: the paper's own, fully factorised posterior."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from baldur.core.parameters import Constraint, is_number, is_one_of, one_of, parameter
from baldur.estimators.classifier import ClassifierBase
from baldur.estimators.default_fit import ITERATIONS, N_FACTORS, SEED, VERBOSE, progress
from baldur.estimators.regressor import RegressorBase
from baldur.exceptions import InputError, NoSignalWarning
from baldur.inference.inner_folds import Problem
from baldur.paper.predictor import make_predictor
from baldur.paper.run import SPACES, run_meanfield


def _spaces(space: Any) -> list[Any]:
    """Return the spaces that were given, one for all views or one per view."""
    return list(space) if isinstance(space, (list, tuple, np.ndarray)) else [space]


SPARSITY = Constraint(
    lambda v: is_number(v, 1e-6),
    "the shape of a Gamma prior from 1e-6 (few features) to float('inf') (none dropped)",
)
SPACE = Constraint(
    lambda v: all(is_one_of(space, SPACES) for space in _spaces(v)),
    f"one of {SPACES}, or one per view",
)
TOLERANCE = Constraint(lambda v: isinstance(v, Real) and float(v) > 0, "a positive number")


def fit_paper(
    estimator: PaperClassifier | PaperRegressor, problem: Problem, labels: Any, groups: Any
) -> list[tuple[str, type[Warning]]]:
    """Fit the mean-field posterior, set the attributes of an estimator, and return warnings.

    The labels and groups of inner folds are not used.
    """
    relevance, n_factors = estimator.relevance_vectors, estimator.n_factors
    automatic = isinstance(relevance, str) and relevance == "auto"
    if not automatic and set(_spaces(estimator.space)) == {"primal"}:
        raise InputError(
            "relevance_vectors carry the dual posterior, but no view has it. Give "
            'space="dual", or leave relevance_vectors out.'
        )
    regression = not problem.logistic
    if regression and not problem.T.any():
        raise InputError(
            "y: outcomes must differ, but all are the same in the samples with positive "
            "weight, and this posterior is not defined without noise. Check the column or "
            "how the rows were split."
        )
    seed = check_random_state(estimator.random_state).randint(2**31 - 1)
    with progress(estimator.verbose, type(estimator).__name__) as watch:
        result = run_meanfield(
            problem,
            n_factors=problem.T.shape[1] if n_factors == "auto" else int(n_factors),
            a_gamma=float(estimator.sparsity),
            spaces=estimator.space,
            relevance=relevance,
            max_iter=estimator.max_iter,
            tol=estimator.tol,
            prune=estimator.prune,
            rng=int(seed),
            # In regression outputs are observed: no bound on the logistic function is ever used.
            bound_kind=getattr(estimator, "bound", "jaakkola"),
            callback=watch,
        )
    predictor = make_predictor(result, problem.views, regression)
    estimator._set_predictor(predictor, [np.asarray(mask) for mask in result.features])
    names = [view.name for view in problem.views]
    estimator.elbo_ = float(result.elbo)
    estimator.relevance_vectors_ = dict(zip(names, result.relevance, strict=True))
    estimator.history_, estimator.converged_ = list(result.history), bool(result.converged)
    if not regression:
        estimator._row_noise = predictor.noise
    default = "BaldurRegressor" if regression else "BaldurClassifier"
    text = (
        "ended at the base rate: no factor is left, and every sample gets the same prediction. The "
        "bound of this posterior prefers that unless the signal is strong and sparse, so it does "
        f"not show that there is no signal. Use {default}, "
        "the default estimator, or more samples."
    )
    return [] if predictor.V.shape[1] else [(text, NoSignalWarning)]


@dataclass(eq=False, repr=False)
class PaperClassifier(ClassifierBase):
    """Multi-view classifier with the paper's fully factorised posterior.

    Every sample has latent factors and latent outputs of its own, and these, the weights of each
    view, the loadings and all precisions are independent under the posterior. Where the signal is
    strong and sparse it predicts well from very few features, most of them true. Where the
    signal is dense or weak its bound prefers no signal at all: it then predicts the base rate, and
    warns. `BaldurClassifier` has no such limit.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view (names, indices, a slice or a mask). None for a
        `MultiView`, or to treat all columns as one view.
    preparation : Preparation or {"clipped", "standard", "rank"}, optional
        What is learned about the columns before the model, or how they are scaled; see
        `BaldurClassifier`.
    n_factors : "auto" or int, default="auto"
        Latent factors at the start, of which surplus ones are dropped. "auto" has one per output.
    sparsity : float, default=1e-6
        Shape a of the prior Gamma(a, a) of the feature precisions: 1e-6 keeps few features, 0.5 is
        a heavy-tailed prior, ``float("inf")`` shrinks whole views only.
    bound : {"quadrature", "jaakkola"}, default="quadrature"
        How E[ln sigmoid] is computed: exactly, or by the paper's quadratic bound.
    prune : bool, default=True
        Drop features and factors whose removal does not lower the bound, and views that raise it
        by less than ln D, with D features in the view.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class in the likelihood.
    space : {"primal", "dual"} or one per view, default="primal"
        Posterior over the weights of a view, or over dual variables, one per relevance vector,
        with the prior variance outside their span.
    relevance_vectors : "auto", None, int or array of indices, or a list of these per view, \
default="auto"
        Training samples that carry the dual variables: chosen by pivoted Cholesky decomposition
        of the kernel of the view, all, that many chosen in the same way, or those given (counted
        among samples whose weight is not 0).
    max_iter : int, default=200
        Most sweeps from each of the three starts.
    tol : float, default=1e-4
        The fit has converged when a sweep gains less than this many nats per sample.
    random_state : int, RandomState or None, default=0
        Starts the factors beyond the number of outputs.
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
        exactly zero where a feature was dropped.
    intercept_ : ndarray of shape (n_outputs,)
        Mean intercept that goes with `coef_`.
    selected_features_, view_relevance_, factor_relevance_, loadings_
        As in `BaldurClassifier`.
    n_factors_ : int
        Number of live factors, those that move a prediction; 0 if the fit ended at the base rate.
    relevance_vectors_ : dict of str to ndarray of int
        Training samples that carry the dual variables of each view; empty for primal and dropped
        views.
    elbo_ : float
        Bound on the log evidence, dropped features and factors counted.
    history_ : list of dict
        One record per sweep from the start of the best bound.
    n_iter_, converged_ : int, bool
        Number of records, and whether the fit converged.
    preparation_ : Preparation
        Means and scales, learned on the training rows.

    See Also
    --------
    BaldurClassifier : The default: other priors, and a posterior that keeps the views together.

    Examples
    --------
    >>> from baldur.paper import PaperClassifier
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(130, {"clinic": 6}, informative={"clinic": 3}, random_state=0)
    >>> model = PaperClassifier(bound="jaakkola").fit(sim.data[:80], sim.target[:80])
    >>> model.predict_proba(sim.data[80:]).shape
    (50, 2)
    """

    views: Any = None
    _: KW_ONLY
    preparation: Any = None
    n_factors: Any = parameter("auto", N_FACTORS)
    sparsity: float = parameter(1e-6, SPARSITY)
    bound: str = parameter("quadrature", one_of("quadrature", "jaakkola"))
    prune: bool = True
    class_weight: Any = None
    space: Any = parameter("primal", SPACE)
    relevance_vectors: Any = "auto"
    max_iter: int = parameter(200, ITERATIONS)
    tol: float = parameter(1e-4, TOLERANCE)
    random_state: Any = parameter(0, SEED)
    verbose: int = parameter(0, VERBOSE)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PaperClassifier:
        """Fit the posterior.

        Parameters
        ----------
        X : MultiView, or array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples. Missing cells are NaN; a sample may have missing views.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels, or a 0/1 matrix for multi-label targets.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts. A weight of 0 leaves the sample out.

        Returns
        -------
        PaperClassifier
            Itself.
        """
        return self._fit(X, y, sample_weight)

    _fit_posterior = fit_paper


@dataclass(eq=False, repr=False)
class PaperRegressor(RegressorBase):
    """Multi-view regression with the paper's fully factorised posterior.

    The model of `PaperClassifier` with observed outputs. Targets are standardised inside;
    answers are in their own units. The noise precision is one for all standardised outputs, as
    in the paper.

    Parameters
    ----------
    views, preparation, n_factors, sparsity, prune, space, relevance_vectors
        As in `PaperClassifier`.
    max_iter, tol, random_state, verbose
        As in `PaperClassifier`.

    Attributes
    ----------
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Posterior mean and standard deviation of the weights, in units of output per input.
    intercept_ : ndarray of shape (n_outputs,)
        Mean intercept that goes with `coef_`.
    noise_std_ : ndarray of shape (n_outputs,)
        Standard deviation of what the weights leave unexplained in each output: the noise of the
        output and that of the latent factors behind it.
    selected_features_, view_relevance_, factor_relevance_, loadings_, n_factors_
        As in `BaldurClassifier`.
    relevance_vectors_, elbo_, history_, n_iter_, converged_, preparation_
        As in `PaperClassifier`.

    See Also
    --------
    BaldurRegressor : The default: other priors, and a posterior that keeps the views together.

    Examples
    --------
    >>> from baldur.paper import PaperRegressor
    >>> from baldur.datasets import make_multiview
    >>> sim = make_multiview(130, {"clinic": 6}, informative={"clinic": 3}, n_classes=None,
    ...                      noise=1.0, random_state=0)
    >>> model = PaperRegressor().fit(sim.data[:80], sim.target[:80])
    >>> mean, std = model.predict(sim.data[80:], return_std=True)
    >>> mean.shape
    (50,)
    """

    views: Any = None
    _: KW_ONLY
    preparation: Any = None
    n_factors: Any = parameter("auto", N_FACTORS)
    sparsity: float = parameter(1e-6, SPARSITY)
    prune: bool = True
    space: Any = parameter("primal", SPACE)
    relevance_vectors: Any = "auto"
    max_iter: int = parameter(200, ITERATIONS)
    tol: float = parameter(1e-4, TOLERANCE)
    random_state: Any = parameter(0, SEED)
    verbose: int = parameter(0, VERBOSE)

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> PaperRegressor:
        """Fit the posterior.

        Parameters
        ----------
        X : MultiView, or array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples. Missing cells are NaN; a sample may have missing views.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Outcomes.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts. A weight of 0 leaves the sample out.

        Returns
        -------
        PaperRegressor
            Itself.
        """
        return self._fit(X, y, sample_weight)

    _fit_posterior = fit_paper
