"""The default posterior in an estimator: fit the ensemble, set what is known of the selection."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.base import Training
from baldur.estimators.feature_arguments import entry_costs, features_per_view, required_columns
from baldur.exceptions import NoSignalWarning
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.inner_folds import inner_folds
from baldur.inference.screening import Problem
from baldur.inference.selection import CONFIDENT, against_base_rate
from baldur.inference.submodel_path import Entering
from baldur.views.prepared_view import PreparedView

EVERY = 2.0
"""Seconds between two lines; a fit of many short steps would fill the screen otherwise."""


class Reporter:
    """Print what a fit is doing, and how long it will take.

    Lines are plain text, so that they appear alike on a terminal, in a notebook and in the log of a
    cluster job.
    """

    def __init__(self, verbose: int, title: str) -> None:
        self.verbose = verbose
        self.title = title
        self._steps = 0

    def __enter__(self) -> Reporter:
        self._start = time.monotonic()
        self._next = 0.0
        return self

    def __exit__(self, kind: object, *error: object) -> None:
        if kind is None and self.verbose:
            self._print(f"finished in {duration(time.monotonic() - self._start)}")

    def watch(self, record: dict[str, Any]) -> None:
        """Print one step of a fit."""
        self._steps += 1
        elapsed = time.monotonic() - self._start
        if not self.verbose or elapsed < self._next:
            return
        self._next = elapsed + EVERY
        parts = [str(record.get("event", f"iteration {self._steps}"))]
        if "features" in record:
            parts.append(f"{int(sum(record['features'])):,} features in the model")
        done = record.get("done")
        if done is not None and 0.0 < done < 1.0:
            parts.append(f"about {duration(elapsed * (1.0 - done) / done)} left")
        self._print(", ".join(parts))

    def _print(self, text: str) -> None:
        sys.stderr.write(f"{self.title}: {text}\n")
        sys.stderr.flush()


def duration(seconds: float) -> str:
    """Return a number of seconds in words, such as "8 s", "3 min" or "2 h 05 min"."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def fit_posterior(model: Any, views: list[PreparedView], training: Training) -> FitResult:
    """Fit the ensemble with the settings of an estimator, and select one of its submodels."""
    T, task = training.T, training.task
    mv = training.mv
    names = {name: mv.view(name).feature_names for name in model.view_names_}
    always = required_columns(model.always, names, model.preparation_)
    costs = entry_costs(model.cost, names, model.preparation_)
    n_features: Any = None if model.n_features == "auto" else model.n_features
    if isinstance(n_features, Mapping):
        n_features = features_per_view(n_features, model.view_names_)
    groups = model.preparation_.feature_groups
    problem = Problem(views, T, training.weight, task, groups, costs)
    with Reporter(model.verbose, type(model).__name__) as reporter:
        return fit_default(
            problem,
            inner_folds(training.labels, task, training.groups, model.random_state),
            members=tuple(model.members),
            margin=float(model.margin),
            n_features=n_features,
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
    model.sparsity_path_ = path_frame(model, result.path)
    by_cost = path_frame(model, result.cost_path)
    model.cost_path_ = by_cost.reindex(columns=cost_columns(model.sparsity_path_))
    model._submodels, model._all_features = result.submodels, result.n_features
    model._stored_path = result.stored_path
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


def cost_columns(path: pd.DataFrame) -> list[str]:
    """Return the columns of `cost_path_`, given the table of the submodel path."""
    metric = "r2" if "r2" in path else "auc"
    figures = [f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")]
    return ["cost", "orders", "n_views", "n_features", *figures, "enters"]


def path_frame(model: Any, records: list[dict[str, Any]]) -> pd.DataFrame:
    """Return records of submodels as a table, with the names of what enters."""
    names, columns = model.view_names_, model.preparation_.columns_
    features = [np.asarray(model.feature_names_[name])[columns[name]] for name in names]
    table = pd.DataFrame(records)
    for what in {"enters", "orders"} & set(table):
        table[what] = [_entering(record[what], names, features) for record in records]
    return table


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
