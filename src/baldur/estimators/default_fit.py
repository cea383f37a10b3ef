"""The default posterior in an estimator: its fit with names, the attributes, and its submodels."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from baldur.core.parameters import NON_NEGATIVE
from baldur.core.types import Array, Mask
from baldur.estimators.parameters import (
    are_numbers_of_features,
    entry_costs,
    features_per_view,
    is_number_of_features,
    required_columns,
)
from baldur.estimators.summary import against_base_rate
from baldur.exceptions import InputError, NoSignalWarning
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.inner_folds import Problem, inner_folds
from baldur.inference.predictive import Task
from baldur.inference.selection import CONFIDENT
from baldur.inference.submodel_path import Entering
from baldur.inference.submodels import StoredPath, Submodel, largest_within
from baldur.preparation import Preparation
from baldur.views.container import MultiView
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


class Training(NamedTuple):
    """The samples with positive weight in a fit."""

    mv: MultiView
    T: Array  # (N, C); Outputs: 0 and 1 for labels, standardised numbers for continuous outcomes
    weight: Array  # (N,); How much each sample counts
    task: Task
    labels: NDArray[Any]  # (N,); or (N, C) array; What inner folds are stratified by
    groups: Any  # (N,); Samples that stay together in inner folds


@dataclass
class FittedPosterior:
    """What a fit gives an estimator."""

    predictor: Any
    selected: list[Mask]  # which prepared columns of each view were selected, (D_m,)
    history: list[dict[str, Any]]
    converged: bool
    attributes: dict[str, Any]  # further attributes of the estimator
    warnings: list[tuple[str, type[Warning]]]  # beyond that about convergence


def prepared_names(feature_names: Mapping[str, Any], preparation: Preparation) -> dict[str, Any]:
    """Return the names of the prepared columns of each view; levels have those of their column."""
    columns = preparation.columns_
    return {name: np.asarray(names)[columns[name]] for name, names in feature_names.items()}


def fit_submodels(
    views: list[PreparedView],
    training: Training,
    preparation: Preparation,
    names: Mapping[str, Any],
    parameters: Mapping[str, Any],
    watch: Callable[[dict[str, Any]], None],
) -> FittedPosterior:
    """Fit the ensemble with the parameters of an estimator, and select one of its submodels.

    `names` are those of the prepared columns of each view.
    """
    task, n_features = training.task, parameters["n_features"]
    all_names = {name: training.mv.view(name).feature_names for name in names}
    if isinstance(n_features, Mapping):
        n_features = features_per_view(n_features, list(names))
    problem = Problem(
        views,
        training.T,
        training.weight,
        task,
        preparation.feature_groups,
        entry_costs(parameters["cost"], all_names, preparation),
    )
    n_factors = parameters["n_factors"]
    result = fit_default(
        problem,
        inner_folds(training.labels, task, training.groups, parameters["random_state"]),
        members=tuple(parameters["members"]),
        margin=float(parameters["margin"]),
        n_features=None if isinstance(n_features, str) else n_features,
        always=required_columns(parameters["always"], all_names, preparation),
        n_factors=None if n_factors == "auto" else int(n_factors),
        n_jobs=parameters["n_jobs"],
        max_iter=parameters["max_iter"],
        watch=watch,
    )
    return DefaultFit(result, names, preparation).fitted()


SET_COLUMNS = (
    "view", "feature", "member_view", "member_feature", "probability", "min_abs_correlation"
)  # fmt: skip
FACTOR_COLUMNS = ("n_factors", "loss", "loss_difference", "standard_error", "selected")


@dataclass
class DefaultFit:
    """A default fit with the names of its columns, and the smaller models that come out of it."""

    result: FitResult
    names: Mapping[str, Any]  # of the prepared columns of each view
    preparation: Preparation

    def fitted(self) -> FittedPosterior:
        """Return what the estimator stores."""
        result = self.result
        return FittedPosterior(
            result.predictor,
            result.selected,
            result.history,
            result.converged,
            self._attributes(),
            self._warnings(),
        )

    def _attributes(self) -> dict[str, Any]:
        """Return the submodel path, the stacking weights, and what is known of the selection."""
        result = self.result
        path = self.path_frame(result.path)
        costs = self.path_frame(result.cost_path).reindex(columns=cost_columns(path))
        inclusion = zip(self.names, result.inclusion, strict=True)
        return {
            "inclusion_probability_": {
                name: self.preparation.expand(name, values) for name, values in inclusion
            },
            "sparsity_path_": path,
            "cost_path_": costs,
            "factor_path_": pd.DataFrame(result.factor_path, columns=list(FACTOR_COLUMNS)),
            "stacking_weights_": result.stacking,
            "signal_": result.signal.in_errors,
            "credible_sets_": self._credible_sets(),
            "_default_fit": self,
        }

    def path_frame(self, records: list[dict[str, Any]]) -> pd.DataFrame:
        """Return records of submodels as a table, with the names of what enters."""
        table = pd.DataFrame(records)
        for what in {"enters", "orders"} & set(table):
            table[what] = [self._entering(record[what]) for record in records]
        return table

    def _entering(self, pairs: Entering) -> str:
        """Return the names of the views, or of the features, that enter with a submodel."""
        if pairs is None:
            return "(all others)"
        return ", ".join(self._views[m] if d is None else self._label(m, d) for m, d in pairs)

    @property
    def _views(self) -> list[str]:
        return list(self.names)

    def _label(self, m: int, d: int) -> str:
        view = self._views[m]
        return f"{view}:{self.names[view][d]}"

    def _credible_sets(self) -> pd.DataFrame:
        """Return one row for each feature of each credible set."""
        views = self._views
        rows = [
            (
                views[found.view],
                str(self.names[views[found.view]][found.feature]),
                views[m],
                str(self.names[views[m]][d]),
                p,
                found.min_abs_correlation,
            )
            for found in self.result.credible_sets
            for m, d, p in zip(found.views, found.features, found.probability, strict=True)
        ]
        return pd.DataFrame(rows, columns=list(SET_COLUMNS))

    def _warnings(self) -> list[tuple[str, type[Warning]]]:
        """Return the warning that there is no evidence of signal, or nothing where there is."""
        signal = self.result.signal.in_errors
        if signal > CONFIDENT:
            return []
        advice = "do not interpret its selected features"
        if not any(mask.any() for mask in self.result.selected):
            advice = "it predicts the base rate for every sample"
        text = (
            f"found no evidence of signal on held-out data, so {advice} (it is "
            f"{against_base_rate(signal)}; 95 % confidence needs {CONFIDENT} better)."
        )
        return [(text, NoSignalWarning)]

    # -- submodels ---------------------------------------------------------------------------

    @property
    def largest(self) -> int:
        """Number of features of the largest submodel that is stored."""
        return self.result.submodels[-1].n_features

    def find(
        self, n_features: Any, budget: Any, row: int
    ) -> tuple[Submodel, Any, dict[str, Any] | None]:
        """Return the largest submodel with so many features, in all or per view, or in a budget.

        With it come the argument `n_features` that fits the same, and for a number of features per
        view its record, which takes the place `row` of the table of the submodel path.
        """
        if budget is not None:
            if n_features is not None:
                raise InputError("submodel: give either a number of features or a budget.")
            affordable = self._within_budget(budget)
            return affordable, affordable.n_features, None
        if are_numbers_of_features(n_features):
            asked = {str(view): int(number) for view, number in n_features.items()}
            submodel, record = self._per_view(asked, row)
            return submodel, asked, record
        if is_number_of_features(n_features):
            return self._with_features(int(n_features)), int(n_features), None
        raise InputError(
            "submodel: expected a whole number of features from 0 on, a dict of views to such "
            f"numbers, or a budget, got {n_features!r}."
        )

    def _with_features(self, n_features: int) -> Submodel:
        """Return the largest submodel with at most so many features, or raise an error."""
        submodels, everything = self.result.submodels, self.result.n_features
        if n_features >= everything > self.largest:
            raise InputError(
                f"submodel({n_features}): a model with all {everything:,} features of the selected "
                "views needs the training samples, which this model has not stored. Fit again with "
                f"n_features={n_features}, or ask for at most {self.largest}."
            )
        return submodels[largest_within([one.n_features for one in submodels], n_features)]

    def _within_budget(self, budget: Any) -> Submodel:
        """Return the largest submodel that costs at most a budget, or raise an error."""
        if not NON_NEGATIVE.is_legal(budget):
            raise InputError(f"submodel: budget must be {NON_NEGATIVE.words}, but got {budget!r}.")
        if not self.result.cost_path:
            raise InputError(
                f"submodel(budget={budget}): this model was fitted without costs. Fit again with "
                'cost={...}, such as cost={"mri": 800, "blood": 20}.'
            )
        within = float(budget) * (1.0 + 1e-12)
        return [one for one in self.result.submodels if one.cost <= within][-1]

    def _per_view(self, asked: dict[str, int], row: int) -> tuple[Submodel, dict[str, Any] | None]:
        """Return the submodel with so many features of each view, or raise an error."""
        most = features_per_view(asked, self._views)
        if not most.any():
            return self._with_features(0), None
        stored: StoredPath | None = self.result.stored_path
        if stored is None:
            raise InputError(
                f"submodel({asked}): numbers of features per view are available in the session in "
                "which the model was fitted, and this one was copied. Fit again with "
                f"n_features={asked}."
            )
        missing = stored.missing(most)
        if len(missing):
            has = stored.available()
            seen = ", ".join(f"{has[m]} of {self._views[m]!r}" for m in missing)
            raise InputError(
                f"submodel({asked}): the submodel path of this fit begins with {seen}, fewer than "
                f"were asked for. Ask for at most so many, or fit again with n_features={asked}."
            )
        submodel, _, record = stored.submodel(most, row)
        return submodel, record

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without cells of training samples that only `submodel` needs."""
        return {**vars(self), "result": replace(self.result, stored_path=None)}


def cost_columns(path: pd.DataFrame) -> list[str]:
    """Return the columns of `cost_path_`, given the table of the submodel path."""
    metric = "r2" if "r2" in path else "auc"
    figures = [f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")]
    return ["cost", "orders", "n_views", "n_features", *figures, "enters"]
