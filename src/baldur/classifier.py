"""BaldurClassifier: who is ill, how sure, and which measurements decide it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.model_selection import KFold, StratifiedGroupKFold, StratifiedKFold
from sklearn.utils import check_random_state
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from baldur.estimator import INNER_FOLDS, BaldurBase
from baldur.exceptions import InputError
from baldur.inference.scoring import Task, probabilities
from baldur.inference.sparsity import Fold
from baldur.model.likelihood import JaakkolaLogistic, QuadratureLogistic
from baldur.views.opening import open_views
from baldur.views.validate import positive_weights, validate_labels

__all__ = ["BaldurClassifier"]

Array = NDArray[np.float64]


class BaldurClassifier(ClassifierMixin, BaldurBase):
    """Bayesian multi-view classifier that says who, how sure, and from which few features.

    All views are projected into common latent factors by weights with two-way sparsity (over
    features and over views and factors), and class probabilities integrate over the uncertainty
    of the weights. Binary, multi-class and multi-label targets.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view (names, indices, a slice or a mask). None for a
        `MultiView`, or to treat all columns as one view.
    scale : {"clipped", "standard", "rank"}, default="clipped"
        How columns are scaled. "standard": mean 0, standard deviation 1. "clipped": the same, but
        held within 3 standard deviations and standardised again, so that no extreme cell decides.
        "rank": normal scores. Columns of two values and genotypes are standardised always.
    inference : {"structured", "mean-field"}, default="structured"
        Posterior family. "structured" keeps the weights of all views jointly Gaussian per factor.
        "mean-field" is the fully factorised posterior of the paper; it is faithful, and it
        collapses to the base rate when signal is spread over many features or the start is poor.
    n_factors : "auto" or int, default="auto"
        Latent factors. "auto" has one per output and no loadings to learn; a number below that of
        the outputs learns loadings V.
    sparsity : "auto" or float, default="auto"
        Shape a of the prior Gamma(a, a) of the feature precisions: 1e-6 keeps few features, 0.5 is
        a heavy-tailed prior, ``float("inf")`` shrinks whole views only. "auto" replaces it by the
        in-or-out prior whose share of features is learned per view, and settles on training rows
        how many features to keep (see `sparsity_path_`). Mean-field takes "auto" as 1e-6.
    bound : {"quadrature", "jaakkola"}, default="quadrature"
        How E[ln sigmoid] is computed: exactly, or by the paper's quadratic bound.
    prune : bool, default=True
        Drop features, factors and views whose removal raises the bound. Always done by "auto".
    class_weight : None, "balanced" or dict, default=None
        Weight of each class in the likelihood.
    max_iter : int, default=200
        Most sweeps.
    tol : float, default=1e-5
        Relative change of the bound that counts as calm.
    space : {"auto", "primal", "dual"} or one per view, default="auto"
        Mean-field only: posterior over weights, or the paper's over dual variables. "auto" never
        picks the dual, which scores a wide view with a functional that has no maximum.
    relevance_vectors : None, int or indices, default=None
        Mean-field dual only: training rows that carry the dual variables.
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
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Posterior mean and standard deviation of the weights of each view, per unit of the input;
        exactly zero where a feature was dropped.
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
        With ``sparsity="auto"``, the probability that each feature is in.
    sparsity_path_ : DataFrame
        With ``sparsity="auto"``, cross-validated log-loss against the number of features.
    space_ : dict of str to str
        Side the algebra was done on, per view.
    elbo_ : float
        Bound of the final posterior.
    history_ : list of dict
        One record per sweep.
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
        inference: str = "structured",
        n_factors: Any = "auto",
        sparsity: Any = "auto",
        bound: str = "quadrature",
        prune: bool = True,
        class_weight: Any = None,
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
        self.bound = bound
        self.prune = prune
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.tol = tol
        self.space = space
        self.relevance_vectors = relevance_vectors
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
        mv = open_views(self, X, reset=True)
        weight = positive_weights(sample_weight, len(mv))
        used = np.flatnonzero(weight)
        labels = self._check_labels(y, len(mv))
        if len(used) < len(mv):
            mv, weight = mv[used], weight[used]
            labels = self._check_labels(labels[used], len(used))
            groups = None if groups is None else np.asarray(groups)[used]
        T, task = self._outputs(labels)
        W = np.repeat((weight * self._class_weights(labels))[:, None], T.shape[1], axis=1)
        kind = QuadratureLogistic if self.bound == "quadrature" else JaakkolaLogistic
        self._task: Task = task
        folds = self._folds(labels, task, groups)
        self._fit_outputs(mv, kind(T, W), T, task, folds)
        return self

    def _check_labels(self, y: Any, n: int) -> NDArray[Any]:
        given = None if y is None else np.asarray(y)
        if given is not None and given.ndim == 2 and given.shape[1] > 1:
            labels = given
            if len(labels) != n:
                raise InputError(f"y: expected {n} rows of labels, but got {len(labels)}.")
            if type_of_target(labels) != "multilabel-indicator":
                raise InputError(
                    "y: a 2-D target must be a 0/1 matrix, one column per label, but got "
                    f"{type_of_target(labels)}. Give one column of class labels instead."
                )
            return labels
        if given is not None and given.ndim == 2:
            given = column_or_1d(given, warn=True)
        labels = validate_labels(given, n)
        check_classification_targets(labels)
        return labels

    def _outputs(self, labels: NDArray[Any]) -> tuple[Array, Task]:
        """Return T (N, C) of 0 and 1, and the task; set `classes_`."""
        if labels.ndim == 2:
            self.classes_ = np.arange(labels.shape[1])
            flat = np.flatnonzero((labels == labels[0]).all(axis=0))
            if flat.size:
                raise InputError(
                    f"y: every label needs both values, but column {flat[0]} is constant. Leave it "
                    "out."
                )
            return labels.astype(float), "multilabel"
        self.classes_, codes = np.unique(labels, return_inverse=True)
        if len(self.classes_) < 2:
            raise InputError(
                "y: expected at least two classes among the samples that count, but got one class."
            )
        if len(self.classes_) == 2:
            return codes[:, None].astype(float), "binary"
        return np.eye(len(self.classes_))[codes], "multiclass"

    def _class_weights(self, labels: NDArray[Any]) -> Array:
        if self.class_weight is None or labels.ndim == 2:
            return np.ones(len(labels))
        by_class = compute_class_weight(self.class_weight, classes=self.classes_, y=labels)
        return np.asarray(by_class)[np.searchsorted(self.classes_, labels)]

    def _folds(self, labels: NDArray[Any], task: Task, groups: Any) -> Sequence[Fold]:
        """Return the inner folds: stratified, and by group where groups are given."""
        seed = check_random_state(self.random_state).randint(2**31 - 1)
        if task == "multilabel":
            n = min(INNER_FOLDS, len(labels))
            return list(KFold(n, shuffle=True, random_state=seed).split(labels))
        rarest = int(np.unique(labels, return_counts=True)[1].min())
        n = max(2, min(INNER_FOLDS, rarest))
        if groups is None:
            splitter = StratifiedKFold(n, shuffle=True, random_state=seed)
            return list(splitter.split(np.zeros(len(labels)), labels))
        groups = np.asarray(groups)
        if groups.shape != (len(labels),):
            raise InputError(f"groups must have {len(labels)} entries, but has {groups.shape}.")
        n = min(n, len(np.unique(groups)))
        if n < 2:
            raise InputError("groups: inner folds need at least two groups, but there is one.")
        grouped = StratifiedGroupKFold(n, shuffle=True, random_state=seed)
        return list(grouped.split(np.zeros(len(labels)), labels, groups))

    def _output_probability(self, X: Any) -> Array:
        views = self._open_new(X)
        return probabilities(self._posterior.moments(views), self._task)

    def predict_proba(self, X: Any) -> Array:
        """Return class probabilities, uncertainty of the weights integrated out.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            For multi-label targets, P(label) for each label.
        """
        p = self._output_probability(X)
        return np.column_stack([1.0 - p[:, 0], p[:, 0]]) if self._task == "binary" else p

    def decision_function(self, X: Any) -> Array:
        """Return the log odds of the predicted probabilities.

        Ranks samples exactly as `predict_proba` does. The linear predictor without its
        uncertainty is ``X @ coef_ + intercept_`` for cells within the clip.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_classes) for more than two classes
        """
        p = np.clip(self._output_probability(X), 1e-15, 1.0 - 1e-15)
        odds = np.log(p) - np.log1p(-p)
        return odds[:, 0] if self._task == "binary" else odds

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the most probable label of each sample.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,), or (n_samples, n_labels) for multi-label targets
        """
        p = self._output_probability(X)
        if self._task == "multilabel":
            return (p > 0.5).astype(int)
        codes = (p[:, 0] > 0.5).astype(int) if self._task == "binary" else p.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = False
        return tags
