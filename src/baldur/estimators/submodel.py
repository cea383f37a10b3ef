"""SubmodelMixin: smaller models out of one fit, as estimators of their own."""

from __future__ import annotations

import copy
from typing import Any, Self

import pandas as pd
from sklearn.utils.validation import check_is_fitted

from baldur.estimators.parameters import is_number_of_features
from baldur.exceptions import InputError
from baldur.inference.submodels import Submodel, column_masks, largest_within

__all__ = ["SubmodelMixin"]


class SubmodelMixin:
    """The method `submodel`, for estimators that have a submodel path."""

    def submodel(self, n_features: int) -> Self:
        """Return the largest submodel with at most `n_features` features, without fitting again.

        It is the estimator that ``n_features=...`` in the constructor gives on the same data, with
        the same predictions. It has the features that lead the submodel path of this fit, in the
        views that this fit selected.

        Parameters
        ----------
        n_features : int
            Largest number of features. A category counts as one feature. 0 gives the base rate.
            Each number up to 20 is available, then some up to 128, and all features of the
            selected views; between two of them the smaller one is returned.

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
        if not is_number_of_features(n_features):
            raise InputError(
                f"submodel: expected a whole number of features from 0 on, got {n_features!r}."
            )
        found = self._find_submodel(int(n_features))
        made: Any = copy.copy(self)
        made.n_features = int(n_features)
        made.preparation_ = copy.copy(made.preparation_)
        made.preparation_.scaling_ = copy.copy(made.preparation_.scaling_)
        made._set_predictor(found.predictor, column_masks(found))
        path = made.sparsity_path_
        made.sparsity_path_ = path.assign(selected=[row == found.row for row in range(len(path))])
        made.credible_sets_ = self._credible_sets_of(made.selected_features_)
        own: Self = made
        return own

    def _find_submodel(self: Any, n_features: int) -> Submodel:
        """Return the largest submodel with at most `n_features` features, or raise an error."""
        submodels = getattr(self, "_submodels", None)
        if submodels is None:
            raise InputError(
                f"submodel({n_features}): a model folder has the model that was saved and not its "
                "submodels. Call submodel on the fitted model and save what it returns, or fit "
                f"again with n_features={n_features}."
            )
        if n_features >= self._all_features > submodels[-1].n_features:
            raise InputError(
                f"submodel({n_features}): a model with all {self._all_features:,} features of the "
                "selected views needs the training samples, which this model has not stored. Fit "
                f"again with n_features={n_features}, or ask for at most "
                f"{submodels[-1].n_features}."
            )
        found: Submodel = submodels[
            largest_within([one.n_features for one in submodels], n_features)
        ]
        return found

    def _credible_sets_of(self: Any, selected: dict[str, Any]) -> pd.DataFrame:
        """Return the credible sets of those features that are selected."""
        names = {
            (view, str(name))
            for view, mask in selected.items()
            for name, use in zip(self.feature_names_[view], mask, strict=True)
            if use
        }
        sets = self.credible_sets_
        own = [pair in names for pair in zip(sets["view"], sets["feature"], strict=True)]
        return sets[own].reset_index(drop=True)
