"""The default posterior in an estimator: arguments, the fit with names, and its submodels."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from numbers import Integral
from types import MappingProxyType
from typing import Any, NamedTuple, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from baldur.core.parameters import NON_NEGATIVE, Constraint, is_number, is_one_of
from baldur.core.types import Array, Index, IntArray, Mask
from baldur.estimators.summary import against_base_rate
from baldur.exceptions import InputError, NoSignalWarning
from baldur.inference.ensemble import MEMBERS
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.inner_folds import Problem, inner_folds, with_their_groups
from baldur.inference.path_search import EntryCosts
from baldur.inference.predictive import Task
from baldur.inference.selection import CONFIDENT
from baldur.inference.submodel_path import Entering
from baldur.inference.submodels import StoredPath, Submodel, largest_within
from baldur.preparation import Preparation
from baldur.views.container import MultiView
from baldur.views.prepared_view import PreparedView


def _is_count(value: Any) -> bool:
    return isinstance(value, Integral) and int(value) >= 1


def is_number_of_features(value: Any) -> TypeGuard[int]:
    """Return whether a value is a whole number from 0 on."""
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= 0


def are_numbers_of_features(value: Any) -> TypeGuard[Mapping[str, int]]:
    """Return whether a value is a dict of names of views to whole numbers from 0 on."""
    return (
        isinstance(value, Mapping)
        and bool(value)
        and all(isinstance(view, str) for view in value)
        and all(is_number_of_features(number) for number in value.values())
    )


def _are_costs(value: Any) -> bool:
    if value is None:
        return True
    named = isinstance(value, Mapping) and all(isinstance(name, str) for name in value)
    return named and all(NON_NEGATIVE.is_legal(number) for number in value.values())


def _are_names(value: Any) -> bool:
    several = isinstance(value, (list, tuple))
    return value is None or (several and all(isinstance(name, str) for name in value))


def _are_members(value: Any) -> bool:
    several = isinstance(value, Iterable) and not isinstance(value, (str, bytes))
    names = list(value) if several else []
    return bool(names) and all(is_one_of(name, MEMBERS) for name in names)


def _is_seed(value: Any) -> bool:
    try:
        check_random_state(value)
    except ValueError:
        return False
    return True


CONSTRAINTS: Mapping[str, Constraint] = MappingProxyType(
    {
        "n_factors": Constraint(
            lambda v: is_one_of(v, ("auto",)) or _is_count(v), '"auto" or a positive integer'
        ),
        "n_features": Constraint(
            lambda v: (
                is_one_of(v, ("auto",)) or is_number_of_features(v) or are_numbers_of_features(v)
            ),
            '"auto", a whole number from 0 on, or a dict of views to such numbers',
        ),
        "cost": Constraint(
            _are_costs,
            "None, or a dict of names of views or features to finite numbers from 0 on",
        ),
        "always": Constraint(_are_names, "None, or a list or tuple of names of features"),
        "max_iter": Constraint(_is_count, "a positive integer"),
        "members": Constraint(
            _are_members,
            "a tuple or list of one or more of " + ", ".join(f'"{name}"' for name in MEMBERS),
        ),
        "random_state": Constraint(_is_seed, "None, a whole number or a RandomState"),
        "n_jobs": Constraint(
            lambda v: v is None or (isinstance(v, Integral) and v != 0),
            "None or a number of processes (-1 for one per core)",
        ),
        "verbose": Constraint(lambda v: is_number(v, 0), "0, or 1 to print progress"),
        "margin": Constraint(
            lambda v: is_number(v, 0.0, 1.0),
            "a number from 0 (everything, unless less is shown to lose nothing) to 1, the part of "
            "what is gained over the base rate that a smaller model may lose",
        ),
    }
)
"""Argument to constraint. An argument that is not here is checked where it is used."""


# -- names of views and features ------------------------------------------------------------------

Columns = dict[str, set[tuple[str, int]]]
"""View and number of the prepared columns that a name stands for."""


def prepared_names(feature_names: Mapping[str, Any], preparation: Preparation) -> dict[str, Any]:
    """Return the names of the prepared columns of each view; levels have those of their column."""
    columns = preparation.columns_
    return {name: np.asarray(names)[columns[name]] for name, names in feature_names.items()}


def _named_columns(
    feature_names: Mapping[str, Any], preparation: Preparation
) -> tuple[Columns, set[str]]:
    """Return the columns that each name stands for, and names of which a column was removed."""
    levels, columns = preparation.level_columns, preparation.columns_
    known: Columns = {}
    removed: set[str] = set()
    for view, names in feature_names.items():
        place = {int(column): d for d, column in enumerate(columns[view])}
        for column, name in enumerate(map(str, names)):
            called = {name, levels.get(view, {}).get(name, name)}
            for text in [*called, *(f"{view}:{one}" for one in called)]:
                if column in place:
                    known.setdefault(text, set()).add((view, place[column]))
                else:
                    removed.add(text)
    return known, removed


def _did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return a question about the nearest known name, empty where none is near."""
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def entry_costs(
    cost: Mapping[str, float] | None, feature_names: Mapping[str, Any], preparation: Preparation
) -> EntryCosts | None:
    """Return the costs of the views and of their prepared columns; None where nothing costs.

    A feature that the preparation has removed costs nothing, as it is never measured.
    """
    if not cost or not any(cost.values()):
        return None
    views = list(feature_names)
    columns, removed = _named_columns(feature_names, preparation)
    of_view = np.zeros(len(views))
    of_column = {view: np.zeros(len(preparation.columns_[view])) for view in views}
    for name, price in cost.items():
        if name in views and name in columns:
            raise InputError(
                f"cost: {name!r} is the name of a view and of a feature. Write the feature as "
                f"{f'{min(columns[name])[0]}:{name}'!r}, or rename the view."
            )
        if name in views:
            of_view[views.index(name)] = float(price)
        elif name in columns:
            for view, column in columns[name]:
                of_column[view][column] = float(price)
        elif name not in removed:
            raise InputError(
                f"cost: no view and no feature is called {name!r}."
                f"{_did_you_mean(name, [*views, *columns])} Give names of views, of features "
                'or categories, or "view:feature".'
            )
    return EntryCosts(of_view, np.concatenate(list(of_column.values())))


def features_per_view(n_features: Mapping[str, int], views: list[str]) -> IntArray:
    """Return the largest number of features of every view, 0 for views that are not named."""
    for name in n_features:
        if name not in views:
            raise InputError(
                f"n_features: there is no view {name!r}.{_did_you_mean(name, views)} The views are "
                f"{', '.join(views)}."
            )
    return np.array([int(n_features.get(view, 0)) for view in views], dtype=np.intp)


def required_columns(
    always: Sequence[str] | None, feature_names: Mapping[str, Any], preparation: Preparation
) -> Index | None:
    """Return the prepared columns of each view that every submodel has; None without any."""
    if not always:
        return None
    columns, removed = _named_columns(feature_names, preparation)
    index: dict[str, list[int]] = {view: [] for view in feature_names}
    for name in always:
        if name not in columns and name in removed:
            raise InputError(
                f"always: the preparation has removed {name!r}, so no submodel can have it. Leave "
                "it out of always, or change the preparation."
            )
        if name not in columns:
            raise InputError(
                f"always: no view has a feature {name!r}.{_did_you_mean(name, columns)} Give names "
                'of features or categories, or "view:feature".'
            )
        for view, column in columns[name]:
            index[view].append(column)
    required = [np.unique(np.array(own, dtype=np.intp)) for own in index.values()]
    groups = preparation.feature_groups
    return required if groups is None else with_their_groups(required, groups)


# -- progress --------------------------------------------------------------------------------

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


# -- the fit -------------------------------------------------------------------------------------


class Training(NamedTuple):
    """The samples with positive weight in a fit."""

    mv: MultiView
    T: Array  # (N, C); Outputs: 0 and 1 for labels, standardised numbers for continuous outcomes
    weight: Array  # (N,); How much each sample counts
    task: Task
    labels: NDArray[Any]  # (N,); or (N, C) array; What inner folds are stratified by
    groups: Any  # (N,); Samples that stay together in inner folds


class FittedPosterior(NamedTuple):
    """What a fit gives an estimator."""

    predictor: Any
    selected: list[Mask]  # which prepared columns of each view were selected, (D_m,)
    attributes: dict[str, Any]  # further attributes of the estimator, history_ and converged_ too
    warnings: list[tuple[str, type[Warning]]]  # beyond that about convergence


def fit_submodels(
    views: list[PreparedView],
    training: Training,
    preparation: Preparation,
    parameters: Mapping[str, Any],
    watch: Callable[[dict[str, Any]], None],
) -> FittedPosterior:
    """Fit the ensemble with the parameters of an estimator, and select one of its submodels."""
    task, n_features, n_factors = training.task, parameters["n_features"], parameters["n_factors"]
    names = {name: training.mv.view(name).feature_names for name in training.mv.view_names}
    if isinstance(n_features, Mapping):
        n_features = features_per_view(n_features, list(names))
    groups, costs = preparation.feature_groups, entry_costs(parameters["cost"], names, preparation)
    result = fit_default(
        Problem(views, training.T, training.weight, task, groups, costs),
        inner_folds(training.labels, task, training.groups, parameters["random_state"]),
        members=tuple(parameters["members"]),
        margin=float(parameters["margin"]),
        n_features=None if isinstance(n_features, str) else n_features,
        always=required_columns(parameters["always"], names, preparation),
        n_factors=None if n_factors == "auto" else int(n_factors),
        n_jobs=parameters["n_jobs"],
        max_iter=parameters["max_iter"],
        watch=watch,
    )
    fit = DefaultFit(result, prepared_names(names, preparation), preparation)
    return FittedPosterior(result.predictor, result.selected, fit.attributes(), fit.warnings())


SET_COLUMNS = (
    "view", "feature", "member_view", "member_feature", "probability", "min_abs_correlation"
)  # fmt: skip
FACTOR_COLUMNS = ("n_factors", "loss", "loss_difference", "standard_error", "selected")


@dataclass
class DefaultFit:
    """A default fit with the names of its columns, and the smaller models that come out of it."""

    result: FitResult
    names: dict[str, Any]  # of the prepared columns of each view
    preparation: Preparation

    def attributes(self) -> dict[str, Any]:
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
            "history_": result.history,
            "converged_": result.converged,
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
        views = list(self.names)
        return ", ".join(
            views[m] if d is None else f"{views[m]}:{self.names[views[m]][d]}" for m, d in pairs
        )

    def _credible_sets(self) -> pd.DataFrame:
        """Return one row for each feature of each credible set."""
        names = list(self.names.items())
        rows = [
            (
                names[found.view][0],
                str(names[found.view][1][found.feature]),
                names[m][0],
                str(names[m][1][d]),
                p,
                found.min_abs_correlation,
            )
            for found in self.result.credible_sets
            for m, d, p in zip(found.views, found.features, found.probability, strict=True)
        ]
        return pd.DataFrame(rows, columns=list(SET_COLUMNS))

    def warnings(self) -> list[tuple[str, type[Warning]]]:
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
            return self._per_view(asked, row)
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

    def _per_view(
        self, asked: dict[str, int], row: int
    ) -> tuple[Submodel, dict[str, int], dict[str, Any] | None]:
        """Return the submodel with so many features of each view, or raise an error."""
        views = list(self.names)
        most = features_per_view(asked, views)
        if not most.any():
            return self._with_features(0), asked, None
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
            seen = ", ".join(f"{has[m]} of {views[m]!r}" for m in missing)
            raise InputError(
                f"submodel({asked}): the submodel path of this fit begins with {seen}, fewer than "
                f"were asked for. Ask for at most so many, or fit again with n_features={asked}."
            )
        submodel, _, record = stored.submodel(most, row)
        return submodel, asked, record

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without cells of training samples that only `submodel` needs."""
        return {**vars(self), "result": replace(self.result, stored_path=None)}


def cost_columns(path: pd.DataFrame) -> list[str]:
    """Return the columns of `cost_path_`, given the table of the submodel path."""
    metric = "r2" if "r2" in path else "auc"
    figures = [f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")]
    return ["cost", "orders", "n_views", "n_features", *figures, "enters"]
