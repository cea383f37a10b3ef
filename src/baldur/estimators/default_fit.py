"""The default posterior in an estimator: arguments, the fit with names, and its submodels."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from difflib import get_close_matches
from numbers import Integral
from typing import Any, TypeGuard

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from baldur.core.parameters import NON_NEGATIVE, Constraint, check, is_number, is_one_of
from baldur.core.types import Index, IntArray
from baldur.exceptions import InputError
from baldur.inference.ensemble import MEMBERS
from baldur.inference.fit import FitResult, fit_default
from baldur.inference.fit_context import Watcher
from baldur.inference.inner_folds import Problem, inner_folds, with_their_groups
from baldur.inference.path_search import EntryCosts
from baldur.inference.submodel_path import Entering
from baldur.inference.submodels import Submodel, largest_within
from baldur.preparation import Preparation


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


N_FACTORS = Constraint(
    lambda v: is_one_of(v, ("auto",)) or _is_count(v), '"auto" or a positive integer'
)
N_FEATURES = Constraint(
    lambda v: is_one_of(v, ("auto",)) or is_number_of_features(v) or are_numbers_of_features(v),
    '"auto", a whole number from 0 on, or a dict of views to such numbers',
)
COST = Constraint(
    _are_costs, "None, or a dict of names of views or features to finite numbers from 0 on"
)
ALWAYS = Constraint(_are_names, "None, or a list or tuple of names of features")
PRIORS = Constraint(
    _are_members,
    "a tuple or list of one or more of " + ", ".join(f'"{name}"' for name in MEMBERS),
)
MARGIN = Constraint(
    lambda v: is_number(v, 0.0, 1.0),
    "a number from 0 (everything, unless less is shown to lose nothing) to 1, the part of what is "
    "gained over the base rate that a smaller model may lose",
)
ITERATIONS = Constraint(_is_count, "a positive integer")
SEED = Constraint(_is_seed, "None, a whole number or a RandomState")
JOBS = Constraint(
    lambda v: v is None or (isinstance(v, Integral) and v != 0),
    "None or a number of processes (-1 for one per core)",
)
LEVEL = Constraint(
    lambda v: is_number(v, 0.0, 1.0) and 0.0 < v < 1.0, "a probability between 0 and 1"
)
"""What the probability inside an interval must be."""
VERBOSE = Constraint(lambda v: is_number(v, 0), "0, or 1 to print progress")


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
    """Return the prepared columns that each name stands for, and the names of removed columns.

    A column has its own name and that of the category it is a level of, each also after "view:".
    """
    levels, columns = preparation.level_columns, preparation.columns_
    columns_of: Columns = {}
    removed: set[str] = set()
    for view, names in feature_names.items():
        prepared = {int(column): d for d, column in enumerate(columns[view])}
        for column, name in enumerate(map(str, names)):
            aliases = {name, levels.get(view, {}).get(name, name)}
            for alias in [*aliases, *(f"{view}:{alias}" for alias in aliases)]:
                if column in prepared:
                    columns_of.setdefault(alias, set()).add((view, prepared[column]))
                else:
                    removed.add(alias)
    return columns_of, removed


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
            feature = f"{min(columns[name])[0]}:{name}"
            raise InputError(
                f"cost: {name!r} is the name of a view and of a feature. Write the feature as "
                f"{feature!r}, or rename the view."
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
    required = [np.unique(np.array(chosen, dtype=np.intp)) for chosen in index.values()]
    groups = preparation.feature_groups
    # A category is required as a whole.
    return required if groups is None else with_their_groups(required, groups)


# -- progress --------------------------------------------------------------------------------

EVERY = 2.0
"""Seconds between two lines; a fit of many short steps would fill the screen otherwise."""


@contextmanager
def progress(verbose: int, title: str) -> Iterator[Watcher]:
    """Give a function that prints what a fit is doing and how long it will take, if `verbose`.

    Lines are plain text, so that they appear alike on a terminal, in a notebook and in the log of a
    cluster job.
    """
    start = time.monotonic()
    steps, due = 0, 0.0

    def write(text: str) -> None:
        sys.stderr.write(f"{title}: {text}\n")
        sys.stderr.flush()

    def watch(record: dict[str, Any]) -> None:
        nonlocal steps, due
        steps += 1
        elapsed = time.monotonic() - start
        if not verbose or elapsed < due:
            return
        due = elapsed + EVERY
        parts = [str(record.get("event", f"iteration {steps}"))]
        if "features" in record:
            parts.append(f"{int(sum(record['features'])):,} features in the model")
        done = record.get("done")
        if done is not None and 0.0 < done < 1.0:
            parts.append(f"about {duration(elapsed * (1.0 - done) / done)} left")
        write(", ".join(parts))

    yield watch
    if verbose:
        write(f"finished in {duration(time.monotonic() - start)}")


def duration(seconds: float) -> str:
    """Return a number of seconds in words, such as "8 s", "3 min" or "2 h 05 min"."""
    if seconds < 60:
        return f"{max(round(seconds), 1)} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


# -- the fit -------------------------------------------------------------------------------------


def fit_submodels(
    problem: Problem,
    labels: NDArray[Any],
    groups: Any,
    feature_names: Mapping[str, Any],
    preparation: Preparation,
    parameters: Mapping[str, Any],
    watch: Watcher,
) -> FitResult:
    """Fit the ensemble with the parameters of an estimator, and select one of its submodels."""
    n_features, n_factors = parameters["n_features"], parameters["n_factors"]
    if isinstance(n_features, Mapping):
        n_features = features_per_view(n_features, list(feature_names))
    return fit_default(
        replace(
            problem,
            groups=preparation.feature_groups,
            costs=entry_costs(parameters["cost"], feature_names, preparation),
            always=required_columns(parameters["always"], feature_names, preparation),
        ),
        inner_folds(labels, problem.task, groups, parameters["random_state"]),
        members=tuple(parameters["members"]),
        margin=float(parameters["margin"]),
        n_features=None if isinstance(n_features, str) else n_features,
        n_factors=None if n_factors == "auto" else int(n_factors),
        n_jobs=parameters["n_jobs"],
        max_iter=parameters["max_iter"],
        watch=watch,
    )


# -- tables with the names of features ------------------------------------------------------------

SET_COLUMNS = (
    "view", "feature", "member_view", "member_feature", "probability", "min_abs_correlation"
)  # fmt: skip
FACTOR_COLUMNS = ("n_factors", "loss", "loss_difference", "standard_error", "selected")


def path_frame(records: list[dict[str, Any]], names: Mapping[str, Any]) -> pd.DataFrame:
    """Return records of submodels as a table; `names` are those of each view's prepared columns."""
    table, views = pd.DataFrame(records), list(names)

    def entering(pairs: Entering) -> str:
        """Return the names of the views (pairs without a column) or features that enter."""
        if pairs is None:
            return "(all others)"
        return ", ".join(
            views[m] if d is None else f"{views[m]}:{names[views[m]][d]}" for m, d in pairs
        )

    for column in {"enters", "orders"} & set(table):
        table[column] = [entering(record[column]) for record in records]
    return table


def cost_columns(path: pd.DataFrame) -> list[str]:
    """Return the columns of `cost_path_`, given the table of the submodel path."""
    metric = "r2" if "r2" in path else "auc"
    figures = [f"{name}{end}" for name in ("loss", metric) for end in ("", "_lower", "_upper")]
    return ["cost", "orders", "n_views", "n_features", *figures, "enters"]


def credible_frame(sets: Sequence[dict[str, Any]], names: Mapping[str, Any]) -> pd.DataFrame:
    """Return the credible sets as a table, with one row for each feature (member) of each set."""
    views = list(names)

    def named(view: int, column: int) -> tuple[str, str]:
        return views[view], str(names[views[view]][column])

    rows = [
        (*named(*record["feature"]), *named(*member), p, record["min_abs_correlation"])
        for record in sets
        for member, p in zip(record["members"], record["probability"], strict=True)
    ]
    return pd.DataFrame(rows, columns=list(SET_COLUMNS))


# -- submodels ------------------------------------------------------------------------------------


def find_submodel(
    fit: FitResult, views: list[str], n_features: Any, budget: Any, row: int
) -> tuple[Submodel, Any, dict[str, Any] | None]:
    """Return the largest submodel with so many features, in all or per view, or in a budget.

    Also return the `n_features` with which a fit selects it and, for numbers of features per view,
    a record to append to the table of the submodel path as row `row`; None where it has that row.
    """
    if budget is not None:
        if n_features is not None:
            raise InputError("submodel: give either a number of features or a budget.")
        submodel = _within_budget(fit, budget)
        return submodel, submodel.n_features, None
    if are_numbers_of_features(n_features):
        limits = {str(view): int(number) for view, number in n_features.items()}
        most = features_per_view(limits, views)
        if not most.any():
            return fit.submodels[0], limits, None
        _check_stored(fit, views, limits, most)
        assert fit.stored_path is not None
        submodel, _, record = fit.stored_path.submodel(most, row)
        return submodel, limits, record
    if not is_number_of_features(n_features):
        raise InputError(
            "submodel: expected a whole number of features from 0 on, a dict of views to such "
            f"numbers, or a budget, got {n_features!r}."
        )
    if n_features >= fit.n_features > fit.largest:
        raise InputError(
            f"submodel({n_features}): a model with all {fit.n_features:,} features of the selected "
            "views needs the training samples, which this model has not stored. Fit again with "
            f"n_features={n_features}, or ask for at most {fit.largest}."
        )
    sizes = [submodel.n_features for submodel in fit.submodels]
    return fit.submodels[largest_within(sizes, int(n_features))], int(n_features), None


def _within_budget(fit: FitResult, budget: Any) -> Submodel:
    """Return the largest submodel that costs at most a budget, or raise an error."""
    check("submodel: budget", budget, NON_NEGATIVE)
    if not fit.cost_path:
        raise InputError(
            f"submodel(budget={budget}): this model was fitted without costs. Fit again with "
            'cost={...}, such as cost={"mri": 800, "blood": 20}.'
        )
    limit = float(budget) * (1.0 + 1e-12)  # sums of costs are rounded
    return [submodel for submodel in fit.submodels if submodel.cost <= limit][-1]


def _check_stored(fit: FitResult, views: list[str], limits: dict[str, int], most: IntArray) -> None:
    """Refuse numbers of features per view (`most`, in the order of `views`) beyond the path's."""
    if fit.stored_path is None:
        raise InputError(
            f"submodel({limits}): numbers of features per view are available in the session in "
            "which the model was fitted, and this one was copied. Fit again with "
            f"n_features={limits}."
        )
    missing = fit.stored_path.missing(most)
    if len(missing):
        available = fit.stored_path.available()
        counts = ", ".join(f"{available[m]} of {views[m]!r}" for m in missing)
        raise InputError(
            f"submodel({limits}): the submodel path of this fit begins with {counts}, fewer than "
            f"were asked for. Ask for at most so many, or fit again with n_features={limits}."
        )
