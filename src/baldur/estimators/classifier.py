"""BaldurClassifier: Bayesian multi-view classification with feature selection."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import column_or_1d

from baldur.core.parameters import check, parameter
from baldur.core.types import Array
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
from baldur.model.predictions import probabilities, probability_interval
from baldur.views.prepared_view import PreparedView
from baldur.views.validate import positive_weights, some, validate_labels, without_mask


class ClassifierBase(ClassifierMixin, BaldurBase):
    """Reading of labels and prediction of probabilities; subclasses fit the posterior."""

    class_weight: Any
    classes_: NDArray[Any]
    _row_noise: Array | None = None
    """Variance of the linear predictor that is specific to each sample, (C,), if there is one."""

    def _read_targets(self, y: Any, n: int) -> NDArray[Any]:
        """Return class labels (n,), or a 0/1 matrix of labels (n, n_labels)."""
        y = without_mask(y)
        try:
            given = None if y is None else np.asarray(y)
        except ValueError as error:
            raise InputError(
                f"y: expected one label, or one row of labels, per sample, but got rows of unequal "
                f"length ({error})."
            ) from error
        if given is not None and given.ndim == 2 and given.shape[1] != 1:
            labels = given
            if len(labels) != n:
                raise InputError(f"y: expected {n} rows of labels, but got {len(labels)}.")
            if not labels.shape[1]:
                raise InputError("y: expected at least one column of labels, but got none.")
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

    def _encode_targets(self, y: NDArray[Any], weight: Array) -> tuple[Array, NDArray[Any]]:
        """Return 0/1 outputs (n, C), one for two classes, and the labels; set task and classes."""
        if y.ndim == 2:
            constant = np.flatnonzero((y == y[0]).all(axis=0))
            if constant.size:
                raise InputError(
                    f"y: every label needs both values, but column {constant[0]} is constant. "
                    "Leave it out."
                )
            self._task, self.classes_ = "multilabel", np.arange(y.shape[1])
            self.class_count_ = np.asarray(y).astype(bool).sum(axis=0)
            return y.astype(float), y
        classes, codes, count = np.unique(y, return_inverse=True, return_counts=True)
        if len(classes) < 2:
            raise InputError(
                "y: expected at least two classes among the samples with positive weight, but "
                "got one class."
            )
        self._task = "binary" if len(classes) == 2 else "multiclass"
        self.classes_, self.class_count_ = classes, count
        if self._task == "binary":
            return codes[:, None].astype(float), y
        return np.eye(len(classes))[codes], y

    def _weigh_classes(self, weight: Array, labels: NDArray[Any], what: str) -> Array:
        """Return the sample weights (n,) times the weight of each sample's class."""
        classes = self.classes_
        if self.class_weight is None:
            return weight
        if labels.ndim == 2:
            raise InputError(
                "class_weight: a multi-label target has no classes of samples that could be "
                "weighted. Leave class_weight=None, and give sample_weight to fit if some samples "
                "are to count more."
            )
        try:
            by_class = compute_class_weight(self.class_weight, classes=classes, y=labels)
            by_class = np.asarray(by_class, dtype=float)
        except (TypeError, ValueError) as error:
            raise InputError(
                'class_weight must be None, "balanced" or a dictionary from class to number, for '
                f"the classes {some(classes.tolist())}, but got {self.class_weight!r} "
                f"({error})."
            ) from error
        wrong = ~(np.isfinite(by_class) & (by_class > 0))
        if wrong.any():
            raise InputError(
                "class_weight must be positive and finite, but "
                f"{some(classes[wrong].tolist())} has {by_class[wrong][0]}. Leave the "
                "samples of a class out of fit if it is not to count."
            )
        class_weight = by_class[np.searchsorted(classes, labels)]  # (n,)
        return positive_weights(weight * class_weight, len(weight), what)

    def _output_probability(self, views: list[PreparedView]) -> Array:
        """Return P(output = 1) of samples, (n, C)."""
        mean, var = self._predictor.moments(views)
        p = probabilities(mean, var, self._task)
        return check_answer(p, "probabilities", (0.0, 1.0))

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
        p = self._output_probability(self._open_new(X))
        return np.column_stack([1.0 - p[:, 0], p[:, 0]]) if self._task == "binary" else p

    def predict_interval(self, X: Any, level: float = 0.95) -> tuple[Array, Array]:
        """Return an interval for each class probability.

        The probability depends on weights that are known only roughly. `predict_proba` is its mean
        over their posterior. The interval contains it with posterior probability `level`, with
        equal tails. It describes how well the probability of this sample is known, and not which
        outcome will occur.

        Parameters
        ----------
        X : MultiView, or array or DataFrame of shape (n_samples, n_features)
            Samples with the views of ``fit``; whole views may be missing.
        level : float, default=0.95
            Probability inside.

        Returns
        -------
        lower, upper : ndarray of shape (n_samples, n_classes)
            For multi-label targets, of P(label) for each label.
        """
        check("level", level, LEVEL)
        mean, var = self.predictor.moments(self._open_new(X))
        low, high = probability_interval(mean, var, self._task, level, self._row_noise)
        if self._task == "binary":
            return np.hstack([1.0 - high, low]), np.hstack([1.0 - low, high])
        return low, high

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
        odds = self._log_odds(self._open_new(X))
        return odds[:, 0] if self._task == "binary" else odds

    def _log_odds(self, views: list[PreparedView]) -> Array:
        # Finite for probabilities that were rounded to 0 or 1.
        p = np.clip(self._output_probability(views), 1e-15, 1.0 - 1e-15)
        return np.asarray(np.log(p) - np.log1p(-p))

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
        p = self._output_probability(self._open_new(X))
        if self._task == "multilabel":
            return (p > 0.5).astype(int)
        codes = (p[:, 0] > 0.5).astype(int) if self._task == "binary" else p.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_label = True
        tags.target_tags.multi_output = False
        return tags


@dataclass(eq=False, repr=False)
class BaldurClassifier(ClassifierBase):
    """Bayesian multi-view classifier with class probabilities, intervals and selected features.

    All views are projected into common latent factors by weights with two-way sparsity (over
    features and over views and factors), and class probabilities integrate over the uncertainty
    of the weights. Binary, multi-class and multi-label targets.

    Parameters
    ----------
    views : dict of str to columns, optional
        Which columns of a 2-D `X` form which view: names, "gene_*", a regular expression, a
        `make_column_selector`, indices, a slice or a mask, see `MultiView.from_columns`. None for a
        `MultiView`, or to treat all columns as one view.
    preparation : Preparation or {"clipped", "standard", "rank"}, optional
        What is learned about the columns before the model: filters, sites to align, covariates to
        regress out, and scaling. It is a template that is cloned. A text says how columns are
        scaled. "standard": mean 0, standard deviation 1. "clipped" (the default): the same, but
        held within 3 standard deviations and standardised again, so that no extreme cell decides.
        "rank": normal scores. Columns of two values and genotypes are standardised always. Text and
        categories in a DataFrame are encoded without it.
    n_factors : "auto" or int, default="auto"
        Latent factors behind several outputs (classes, or columns of a label matrix). "auto"
        selects the fewest whose held-out loss is within one standard error of the smallest, and has
        one factor per output where sharing does not help. A number is used as it is.
    members : sequence of str, default=all
        Priors whose posteriors form the ensemble, one or more of these names. "spike_slab" and
        "spike_slab_wide": spike-and-slab priors, where a feature has an effect or none, with a
        narrower and a wider slab. "per_view": every feature has an effect, with one prior variance
        per view. "pooled": the same with one variance for all views. "screened_10", "screened_30"
        and "screened_100": only so many features have an effect, those with the strongest marginal
        association with the outcome. The weight of each member is learned on held-out training
        samples (see `stacking_weights_`). ``("per_view", "pooled")`` is a dense fit. With a single
        view "per_view" equals "pooled" and only one of them is fitted; screened members are left
        out where there are no more features than they have, unless they are alone.
    n_features : "auto", int or dict of str to int, default="auto"
        How many features are selected. "auto" selects the number by `margin`. A number selects the
        largest submodel with at most so many features, and 0 gives the base rate. A category counts
        as one feature, whatever the number of its levels. Each number up to 20 is available, then
        some up to 128 (see `sparsity_path_`), and all features of the selected views. A dict such
        as ``{"genes": 5, "clinic": 3}`` selects at most so many features of each view, the first
        ones of the submodel path, and none of a view that is not named.
    always : list of str, optional
        Features that are in every submodel and do not count in `n_features`, such as
        ``["age", "sex"]``: names of features or of categories, or "view:feature". They come first
        in the submodel path, and no view is left out before features are selected.
    cost : dict of str to float, optional
        What measurements cost, such as ``{"mri": 800, "blood": 20}``, by the name of a view, of a
        feature or category, or as "view:feature"; what is not named costs nothing. The cost of a
        view is paid once, when the first of its features enters, that of a feature when it enters.
        Features then enter the submodel path by gain per cost: the order is greedy, each step
        taking the largest gain in explained loss of the ensemble per unit of what it costs at that
        moment, where a view that is not paid for yet gains what all its features explain. Features
        that cost nothing more enter first, as long as each explains 1 % of what the ensemble does.
        A greedy order need not find the cheapest set for a given accuracy. No view is left out
        before features are selected. `cost_path_` says which tests give which accuracy.
    margin : float, default=0.1
        The part of what the ensemble gains over the base rate that a smaller model may lose, with
        95 % confidence; of those, the smallest within 0.5 standard errors of the best is selected
        (see `sparsity_path_`). 0 selects everything, unless less is shown to lose nothing;
        larger values select less.
    class_weight : None, "balanced" or dict, default=None
        Weight of each class in the likelihood.
    max_iter : int, default=200
        Most iterations of each member of the ensemble.
    random_state : int, RandomState or None, default=0
        Assigns samples to the inner folds. The default gives the same result on every run.
    n_jobs : int, optional
        Inner folds fitted at the same time; does not change the result.
    verbose : int, default=0
        1 prints progress with the time left.

    Attributes
    ----------
    classes_ : ndarray
        Labels, or output numbers for multi-label targets.
    class_count_ : ndarray of int
        Training samples of each class, or with each label.
    coef_, coef_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        Posterior mean and standard deviation of the weights of each view, per unit of the input;
        exactly zero where a feature was not selected. The standard deviation is that of the
        members with features: how uncertain a weight is if there is a signal.
    coef_scaled_, coef_scaled_std_ : dict of str to ndarray of shape (n_outputs, n_features)
        The same per standard deviation of the input.
    intercept_, intercept_scaled_ : ndarray of shape (n_outputs,)
        Mean intercepts that go with `coef_` and with `coef_scaled_`.
    selected_features_ : dict of str to bool array
        Features that were selected. Only these enter predictions.
    feature_importances_ : ndarray of shape (n_features,)
        Share of every input column in the absolute weights per standard deviation, 0 where it was
        not selected; for `SelectFromModel` with ``importance_getter="feature_importances_"``.
    view_relevance_ : dict of str to float
        Share of each view in the variance of the linear predictor; they sum to 1. A view's part of
        the predictor is its prepared columns times their mean weights (`coef_scaled_`), and its
        variance the mean square of that part over the training samples that have the view, summed
        over outputs. Without any selected feature all views have the same share.
    factor_relevance_ : DataFrame of shape (n_factors, n_views)
        Share of each view in each factor: shared factors have several, specific ones have one.
    loadings_ : ndarray of shape (n_outputs, n_factors)
        V, the identity where factors are outputs. Columns are ordered by the variance of their
        factor, and the largest entry of each is positive.
    n_factors_ : int
        Factors in use.
    factor_names_ : list of str
        The three strongest features of each factor.
    factor_path_ : DataFrame
        Held-out loss of every number of factors; empty for a single output.
    inclusion_probability_ : dict of str to ndarray
        Posterior inclusion probability of each feature, averaged over the spike-and-slab members;
        0 for features that were screened out. Without such a member, the stacking weight of the
        members that have the feature: 1 for all features of a dense fit.
    sparsity_path_ : DataFrame
        The submodel path, one row per step: nothing, fewer views, fewer features. Held-out loss,
        how much it lies above the ensemble's with its standard error and upper 95 % bound, whether
        the step is a candidate, and which one was selected. Then 95 % intervals of the loss, the
        held-out AUC (mean over outputs; R2 in regression) with its interval, and the views or
        features that enter with the step on all training samples. The figures are those of the
        inner folds, each of which orders its features itself. They do not include that the
        selected step was chosen by them.
    cost_path_ : DataFrame
        What a budget buys, one row for each cost along the submodel path: cost so far, the views
        and features that are paid for (orders), numbers of views and features, held-out loss and
        AUC (R2 in regression) with 95 % intervals, and the features that enter. In every inner
        fold the figures are those of the features that the fold itself
        would buy for at most that cost. Empty without `cost`.
    stacking_weights_ : dict of str to float
        Stacking weight of each member's linear predictor times the calibration slope, by the
        member's name. Their sum is the slope: below 1 the ensemble is shrunk towards the base
        rate, above 1 the members were too cautious.
    signal_, signal_shown_ : float, bool
        What the ensemble gains over the base rate on held-out samples, in standard errors, and
        whether that is evidence of signal with 95 % confidence. If not, do not interpret the
        selected features.
    credible_sets_ : DataFrame
        For each selected feature the features that are interchangeable with it: the smallest set
        that holds the effect with 95 % probability, if each selected feature stands for an effect
        of its own, with the smallest absolute correlation within the set. Empty where all
        features of the selected views were selected, and without a spike-and-slab member.
    history_ : list of dict
        One record per iteration of each member of the ensemble, with the change of what it learns.
    n_iter_, converged_ : int, bool
        Number of records, and whether every member converged.
    preparation_ : Preparation
        Means and scales, learned on the training samples.

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

    views: Any = None
    _: KW_ONLY
    preparation: Any = None
    n_factors: Any = parameter("auto", N_FACTORS)
    members: Sequence[str] = parameter(MEMBERS, PRIORS)
    n_features: Any = parameter("auto", N_FEATURES)
    always: Sequence[str] | None = parameter(None, ALWAYS)
    cost: Mapping[str, float] | None = parameter(None, COST)
    margin: float = parameter(0.1, MARGIN)
    class_weight: Any = None
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
            class_weight: Any = None,
            max_iter: int = 200,
            random_state: Any = 0,
            n_jobs: int | None = None,
            verbose: int = 0,
        ) -> None: ...

    def fit(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> BaldurClassifier:
        """Fit the posterior.

        Parameters
        ----------
        X : MultiView, or array, sparse matrix or DataFrame of shape (n_samples, n_features)
            Training samples. Missing cells are NaN; whole views of a sample may be missing.
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Labels, or a 0/1 matrix for multi-label targets.
        sample_weight : array-like of shape (n_samples,), optional
            How much each sample counts. A weight of 0 leaves the sample out.
        groups : array-like of shape (n_samples,), optional
            Samples of one group stay together in the inner folds.

        Returns
        -------
        BaldurClassifier
            Itself.
        """
        return self._fit(X, y, sample_weight, groups)

    def submodel(
        self, n_features: int | Mapping[str, int] | None = None, *, budget: float | None = None
    ) -> BaldurClassifier:
        """Return the largest submodel with at most `n_features` features, without fitting again.

        It is the estimator that ``n_features=...`` in the constructor gives on the same data, with
        the same predictions. It has the features that lead the submodel path of this fit, in the
        views that this fit selected.

        Parameters
        ----------
        n_features : int or dict of str to int, optional
            Largest number of features. A category counts as one feature. 0 gives the base rate.
            Each number up to 20 is available, then some up to 128, and all features of the
            selected views; between two of them the smaller one is returned. A dict gives the
            largest number of features of each view, 0 for views that are not named. It is
            available for the first 64 columns of the submodel path, in the session in which the
            model was fitted.
        budget : float, optional
            Instead of a number: the largest submodel that costs at most so much, for a model that
            was fitted with `cost`.

        Returns
        -------
        BaldurClassifier
            A fitted estimator of the same class. Its `credible_sets_` are those that this fit has
            for its features. It shares what does not differ with this one, so neither is to be
            changed in place.

        Examples
        --------
        >>> from baldur import BaldurClassifier
        >>> from baldur.datasets import make_multiview
        >>> sim = make_multiview(200, {"clinic": 10, "genes": 300}, informative={"clinic": 3},
        ...                      random_state=0)
        >>> model = BaldurClassifier().fit(sim.data, sim.target)
        >>> small = model.submodel(2)
        >>> sum(int(mask.sum()) for mask in small.selected_features_.values())
        2
        """
        return self._submodel(n_features, budget)
