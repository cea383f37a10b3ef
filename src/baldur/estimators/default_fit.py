"""The default posterior in an estimator: fit the ensemble, set what is known of the selection."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.base import Training
from baldur.estimators.progress import Reporter
from baldur.estimators.required_features import required_columns
from baldur.exceptions import NoSignalWarning
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.inner_folds import inner_folds
from baldur.inference.path_table import Entering
from baldur.inference.screening import Problem
from baldur.inference.selection import CONFIDENT, against_base_rate
from baldur.views.matrices.prepared_view import PreparedView


def fit_posterior(model: Any, views: list[PreparedView], training: Training) -> FitResult:
    """Fit the ensemble with the settings of an estimator, and select one of its submodels.

    Parameters
    ----------
    model : BaldurClassifier or BaldurRegressor
        With its settings and a fitted preparation.
    views : list of PreparedView
    training : Training
    """
    T, task = training.T, training.task
    mv = training.mv
    names = {name: mv.view(name).feature_names for name in model.view_names_}
    always = required_columns(model.always, names, model.preparation_)
    problem = Problem(views, T, training.weight, task, model.preparation_.feature_groups)
    with Reporter(model.verbose, type(model).__name__) as reporter:
        return fit_default(
            problem,
            inner_folds(training.labels, task, training.groups, model.random_state),
            members=tuple(model.members),
            margin=float(model.margin),
            n_features=None if model.n_features == "auto" else int(model.n_features),
            always=always,
            n_factors=None if model.n_factors == "auto" else int(model.n_factors),
            n_jobs=model.n_jobs,
            max_iter=model.max_iter,
            watch=reporter.watch,
        )


def set_selection_attributes(model: Any, result: FitResult) -> None:
    """Set the submodel path, the stacking weights, and what is known of the selection."""
    names = model.view_names_
    model.inclusion_probability_ = {
        name: model.preparation_.expand(name, inclusion)
        for name, inclusion in zip(names, result.inclusion, strict=True)
    }
    columns = model.preparation_.columns_
    features = [np.asarray(model.feature_names_[name])[columns[name]] for name in names]
    path = pd.DataFrame(result.path)
    path["enters"] = [_entering(pairs, names, features) for pairs in path["enters"]]
    model.sparsity_path_ = path
    model._submodels, model._all_features = result.submodels, result.n_features
    by_factor = ["n_factors", "loss", "loss_difference", "standard_error", "selected"]
    model.factor_path_ = pd.DataFrame(result.factor_path, columns=by_factor)
    model.stacking_weights_ = result.stacking
    model.sparsity_ = dict(zip(names, result.share.tolist(), strict=True))
    model.space_ = dict.fromkeys(names, result.solver)
    model.signal_ = result.signal.in_errors
    model.signal_shown_ = bool(model.signal_ > CONFIDENT)
    model.credible_sets_ = pd.DataFrame(
        [
            {
                "view": names[found.view],
                "feature": str(features[found.view][found.feature]),
                "member_view": names[m],
                "member_feature": str(features[m][d]),
                "probability": p,
                "min_abs_correlation": found.min_abs_correlation,
            }
            for found in result.credible_sets
            for m, d, p in zip(found.views, found.features, found.probability, strict=True)
        ],
        columns=[
            "view",
            "feature",
            "member_view",
            "member_feature",
            "probability",
            "min_abs_correlation",
        ],
    )


def _entering(pairs: Entering, names: Sequence[str], features: Sequence[Any]) -> str:
    """Return the names of the views, or of the features, that enter with a submodel."""
    if pairs is None:
        return "(all others)"
    return ", ".join(names[m] if d is None else f"{names[m]}:{features[m][d]}" for m, d in pairs)


def signal_warnings(model: Any) -> list[tuple[str, type[Warning]]]:
    """Return the warning that there is no evidence of signal, or nothing where there is some."""
    if model.signal_shown_:
        return []
    selected = any(mask.any() for mask in model.selected_features_.values())
    advice = "do not interpret its selected features"
    if not selected:
        advice = "it predicts the base rate for every sample"
    text = (
        f"found no evidence of signal on held-out data, so {advice} (it is "
        f"{against_base_rate(model.signal_)}; 95 % confidence needs {CONFIDENT} better)."
    )
    return [(text, NoSignalWarning)]
