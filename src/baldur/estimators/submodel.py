"""DefaultModel: the posterior that classifier and regressor share, and smaller models out of it."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from baldur.core.parameters import NON_NEGATIVE
from baldur.estimators.base import BaldurBase, Training
from baldur.estimators.default_fit import (
    fit_posterior,
    path_frame,
    set_selection_attributes,
    signal_warnings,
)
from baldur.estimators.feature_arguments import features_per_view
from baldur.estimators.parameters import are_numbers_of_features, is_number_of_features
from baldur.exceptions import InputError
from baldur.inference.fit import FitResult
from baldur.inference.submodels import Submodel, column_masks, largest_within
from baldur.views.container import MultiView
from baldur.views.prepared_view import PreparedView


class DefaultModel(BaldurBase):
    """The default posterior with its submodel path; `BaldurClassifier` and `BaldurRegressor`."""

    def _fit_posterior(self, views: list[PreparedView], training: Training) -> FitResult:
        return fit_posterior(self, views, training)

    def _set_attributes(self, mv: MultiView, fitted: FitResult) -> None:
        super()._set_attributes(mv, fitted)
        set_selection_attributes(self, fitted)

    def _fit_warnings(self) -> list[tuple[str, type[Warning]]]:
        return [*super()._fit_warnings(), *signal_warnings(self)]

    def submodel(
        self, n_features: int | Mapping[str, int] | None = None, *, budget: float | None = None
    ) -> Self:
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
        BaldurClassifier or BaldurRegressor
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
        check_is_fitted(self)
        model: Any = self
        if budget is not None:
            if n_features is not None:
                raise InputError("submodel: give either a number of features or a budget.")
            found = _within_budget(model, budget)
            return _as_estimator(model, found, found.n_features)
        if are_numbers_of_features(n_features):
            asked = {str(view): int(number) for view, number in n_features.items()}
            found, record = _find_per_view(model, asked)
            return _as_estimator(model, found, asked, record)
        if not is_number_of_features(n_features):
            raise InputError(
                "submodel: expected a whole number of features from 0 on, a dict of views to such "
                f"numbers, or a budget, got {n_features!r}."
            )
        number = int(n_features)
        return _as_estimator(model, _find_submodel(model, number), number)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without cells of training samples that only `submodel` needs."""
        state: Any = super().__getstate__()
        return {name: value for name, value in state.items() if name != "_stored_path"}


def _as_estimator(
    model: Any, found: Submodel, n_features: Any, record: dict[str, Any] | None = None
) -> Any:
    """Return a submodel as a fitted estimator; `record` is its row where the path has none."""
    made = copy.copy(model)
    if hasattr(model, "_stored_path"):
        made._stored_path = model._stored_path
    made.n_features = n_features
    made.preparation_ = copy.copy(made.preparation_)
    made.preparation_.scaling_ = copy.copy(made.preparation_.scaling_)
    made._set_predictor(found.predictor, column_masks(found))
    path = on_path(model.sparsity_path_)
    if record is not None:
        path = pd.concat([path, path_frame(model, [record])], ignore_index=True)
    made.sparsity_path_ = path.assign(selected=[row == found.row for row in range(len(path))])
    made.credible_sets_ = _credible_sets_of(model, made.selected_features_)
    return made


def on_path(path: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the submodel path, without that of numbers of features per view."""
    return path[path["step"] != "per view"].reset_index(drop=True)


def _find_submodel(model: Any, n_features: int) -> Submodel:
    """Return the largest submodel with at most `n_features` features, or raise an error."""
    submodels = _submodels_of(model, f"submodel({n_features})", f"n_features={n_features}")
    if n_features >= model._all_features > submodels[-1].n_features:
        raise InputError(
            f"submodel({n_features}): a model with all {model._all_features:,} features of the "
            "selected views needs the training samples, which this model has not stored. Fit "
            f"again with n_features={n_features}, or ask for at most "
            f"{submodels[-1].n_features}."
        )
    return submodels[largest_within([one.n_features for one in submodels], n_features)]


def _submodels_of(model: Any, call: str, argument: str) -> list[Submodel]:
    submodels: list[Submodel] | None = getattr(model, "_submodels", None)
    if submodels is None:
        raise InputError(
            f"{call}: a model folder has the model that was saved and not its submodels. Call "
            f"submodel on the fitted model and save what it returns, or fit again with {argument}."
        )
    return submodels


def _within_budget(model: Any, budget: Any) -> Submodel:
    """Return the largest submodel that costs at most a budget, or raise an error."""
    if not NON_NEGATIVE.is_legal(budget):
        raise InputError(f"submodel: budget must be {NON_NEGATIVE.words}, but got {budget!r}.")
    submodels = _submodels_of(model, f"submodel(budget={budget})", "the number of features")
    if not len(model.cost_path_):
        raise InputError(
            f"submodel(budget={budget}): this model was fitted without costs. Fit again with "
            'cost={...}, such as cost={"mri": 800, "blood": 20}.'
        )
    return [one for one in submodels if one.cost <= float(budget) * (1.0 + 1e-12)][-1]


def _find_per_view(model: Any, asked: dict[str, int]) -> tuple[Submodel, dict[str, Any] | None]:
    """Return the submodel with so many features of each view, or raise an error."""
    views: list[str] = model.view_names_
    most = features_per_view(asked, views)
    if not most.any():
        return _find_submodel(model, 0), None
    _submodels_of(model, f"submodel({asked})", f"n_features={asked}")
    stored = getattr(model, "_stored_path", None)
    if stored is None:
        raise InputError(
            f"submodel({asked}): numbers of features per view are available in the session in "
            f"which the model was fitted, and this one was copied. Fit again with "
            f"n_features={asked}."
        )
    missing = stored.missing(most)
    if len(missing):
        has = stored.available()
        seen = ", ".join(f"{has[m]} of {views[m]!r}" for m in missing)
        raise InputError(
            f"submodel({asked}): the submodel path of this fit begins with {seen}, fewer than "
            f"were asked for. Ask for at most so many, or fit again with n_features={asked}."
        )
    found: tuple[Submodel, dict[str, Any]] = stored.submodel(
        np.asarray(most), len(on_path(model.sparsity_path_))
    )
    return found


def _credible_sets_of(model: Any, selected: dict[str, Any]) -> pd.DataFrame:
    """Return the credible sets of those features that are selected."""
    names = {
        (view, str(name))
        for view, mask in selected.items()
        for name, use in zip(model.feature_names_[view], mask, strict=True)
        if use
    }
    sets = model.credible_sets_
    own = [pair in names for pair in zip(sets["view"], sets["feature"], strict=True)]
    return sets[own].reset_index(drop=True)
