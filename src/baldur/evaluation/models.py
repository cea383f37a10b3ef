"""The models of a comparison: a name, an estimator, the settings to search, and its views."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from baldur.baselines import BASELINES
from baldur.baselines.plain import SideBySide, takes_views
from baldur.baselines.registry_with_grids import Entry
from baldur.estimators.classifier import BaldurClassifier, ClassifierBase
from baldur.estimators.regressor import BaldurRegressor
from baldur.exceptions import InputError
from baldur.paper.estimators import PaperClassifier, PaperRegressor
from baldur.preparation import Preparation, preparation_for
from baldur.views import MultiView

OURS: dict[str, tuple[type, type]] = {
    "BALDUR": (BaldurClassifier, BaldurRegressor),
    "BALDUR (mean-field)": (PaperClassifier, PaperRegressor),
}
"""Rows of ours: the classifier and the regressor."""

_MOST_COMBINATIONS = 10_000
"""Of the values of a grid, which are listed in memory; each is fitted on every inner fold."""

_BY_VIEW = ("n_features", "cost")
"""Parameters of estimators that may be dictionaries with a value for each view."""
_BY_NAME = "always"
"""Parameter of estimators that lists names of features."""

_NOT_SETTINGS = ("estimator", "views", "preparation")

FULL = "full"
"""What to write for the whole grid of a row."""


def fit_with_groups(estimator: Any, X: Any, y: Any, groups: Any) -> Any:
    """Fit an estimator, and pass the groups if it has inner folds that ask for them."""
    if groups is not None and "groups" in inspect.signature(estimator.fit).parameters:
        return estimator.fit(X, y, groups=groups)
    return estimator.fit(X, y)


@dataclass(frozen=True)
class Model:
    """One model of a comparison: its name, its estimator and the settings to search.

    Attributes
    ----------
    name : str
    estimator : estimator
        Unfitted; accepts a `MultiView`.
    grid : dict of str to list
        Settings to search on inner folds; empty for none.
    search : dict
        Parameters that hold while the grid is searched, and not in the final fit.
    views : tuple of str or None
        The views that it gets; None for all.
    base : str
        Name of the model without its views, which its seed is made of, so that the same model on
        the same views has the same jobs whatever its row is called; default `name`.

    Examples
    --------
    >>> from baldur.evaluation import make_model
    >>> model = make_model("Ridge logistic", grid={"C": [0.1, 1.0]}, views=["clinical"])
    >>> model.name, model.views
    ('Ridge logistic (clinical)', ('clinical',))
    >>> model.settings()
    [{'C': 0.1}, {'C': 1.0}]
    """

    name: str
    estimator: Any
    grid: Mapping[str, list[Any]] = field(default_factory=dict)
    search: Mapping[str, Any] = field(default_factory=dict)
    views: tuple[str, ...] | None = None
    base: str = ""

    @property
    def seed_name(self) -> str:
        """Name that the seed is made of: that of the model without its views."""
        return self.base or self.name

    @property
    def joint(self) -> bool:
        """Whether all labels of a label matrix are fitted together, not one after another."""
        return isinstance(self.estimator, ClassifierBase)

    def prepared_by(self, preparation: Any) -> Model:
        """Return the model with this preparation, unless its estimator has one of its own.

        Parameters
        ----------
        preparation : Preparation
            Template; every parameter of this name, also of estimators inside, is set to it. Steps
            that name none of the model's views are left out.

        Returns
        -------
        Model
        """
        parameters = self.estimator.get_params(deep=True)
        templates = {k: v for k, v in parameters.items() if k.rpartition("__")[2] == "preparation"}
        if not templates:
            raise InputError(
                f"Model {self.name!r}: {type(self.estimator).__name__} accepts a MultiView but has "
                "no parameter 'preparation', so that filters, sites and covariates cannot be "
                "learned inside of it. Give it one, see baldur.preparation.preparation_for."
            )
        preparation = prepare_views(preparation, self.views)
        # A string says how columns are scaled, and nothing about the rest.
        changed = {
            k: preparation if v is None else preparation_for(preparation, v)
            for k, v in templates.items()
            if v is None or isinstance(v, str)
        }
        return replace(self, estimator=clone(self.estimator).set_params(**changed))

    def settings(self) -> list[dict[str, Any]]:
        """Return every combination in the grid, in a fixed order."""
        return [dict(sorted(s.items())) for s in ParameterGrid(dict(self.grid))]

    def make(self, setting: Mapping[str, Any], seed: int, *, searching: bool = False) -> Any:
        """Return a new estimator with a setting and a seed; `searching` adds those of `search`."""
        search = self.search if searching else {}
        parameters = {**search, **setting}
        scale = parameters.get("preparation")
        template = getattr(self.estimator, "preparation", None)
        if isinstance(scale, str) and isinstance(template, Preparation):
            # A string says how columns are scaled; the rest of the template stays.
            parameters["preparation"] = preparation_for(template, scale)
        estimator = clone(self.estimator).set_params(**parameters)
        names = (k for k in estimator.get_params(deep=True) if k.split("__")[-1] == "random_state")
        return estimator.set_params(**dict.fromkeys(names, seed))


def known_models(classification: bool = True) -> list[str]:
    """Return the names that can be given without an estimator."""
    task = "classifier" if classification else "regressor"
    baselines = [name for name, entry in BASELINES.items() if getattr(entry, task) is not None]
    return [*OURS, *baselines]


def make_model(
    name: str,
    *,
    estimator: Any = None,
    grid: Mapping[str, list[Any]] | str | None = None,
    settings: Mapping[str, Any] | None = None,
    classification: bool = True,
    views: Sequence[str] | None = None,
) -> Model:
    """Build one model from its name, or from an estimator with a given name.

    Parameters
    ----------
    name : str
        "BALDUR", "BALDUR (mean-field)" for the paper's own posterior, a row of
        `baldur.baselines.BASELINES`, or any name with an `estimator`.
    estimator : estimator, optional
        One that does not accept a `MultiView` is put behind `SideBySide`.
    grid : dict of str to list, or "full", optional
        Replaces the grid the name comes with, which is sized for a first run; {} searches
        nothing, "full" is the search of a paper.
    settings : dict, optional
        Parameters to set once; "scale", of every model, says how columns are scaled ("clipped",
        "standard" or "rank").
    classification : bool, default=True
        Which of the two tasks it is for.
    views : list of str, optional
        Views that the model gets, which are added to its name; default all views.

    Returns
    -------
    Model

    Examples
    --------
    >>> from baldur.evaluation import make_model
    >>> make_model("BALDUR", views=["clinical"]).name
    'BALDUR (clinical)'
    """
    if isinstance(grid, str) and grid != FULL:
        raise InputError(f"Model {name!r}: grid must be a dictionary or 'full', but got {grid!r}.")
    default: Mapping[str, list[Any]] = {}
    search: Mapping[str, Any] = {}
    if estimator is None and name in OURS:
        estimator = OURS[name][0 if classification else 1]()
    elif estimator is None:
        entry = _entry(name, classification)
        estimator = entry.make(classification=classification)
        default, search = entry.settings_to_try(full=grid == FULL), entry.search
    elif not takes_views(estimator):
        estimator = SideBySide(estimator)
    wrapped = isinstance(estimator, SideBySide)
    legal = estimator.get_params(deep=True)
    fixed = {_parameter(k, wrapped, legal): v for k, v in (settings or {}).items()}
    tried = default if grid is None or isinstance(grid, str) else grid
    tried = {_parameter(k, wrapped, legal): list(v) for k, v in tried.items()}
    # A setting given once is not searched.
    tried = {k: v for k, v in tried.items() if k not in fixed}
    _check_settings(name, tried, [*tried, *fixed], legal)
    estimator = clone(estimator).set_params(**fixed)
    search = {k: v for k, v in search.items() if k not in tried and k not in fixed}
    if views is None:
        return Model(name, estimator, tried, search)
    if isinstance(views, str) or not views:
        raise InputError(
            f"Model {name!r}: views must be a list of one or more names, but got {views!r}."
        )
    return Model(name_with_views(name, views), estimator, tried, search, tuple(views), name)


def _entry(name: str, classification: bool) -> Entry:
    """Return a baseline by its name, or name the one that was probably meant."""
    known = known_models(classification)
    if name in known:
        return BASELINES[name]
    near = get_close_matches(name, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "give an estimator for it."
    raise InputError(
        f"There is no model {name!r} for this task; known are {', '.join(known)}: {hint}"
    )


def _check_settings(
    name: str, grid: Mapping[str, list[Any]], keys: Iterable[str], legal: Iterable[str]
) -> None:
    """Refuse settings that an estimator does not have, and grids that are empty or too large."""
    for key in keys:
        if key not in legal:
            known = [_bare(k) for k in legal if _bare(k).partition("__")[0] not in _NOT_SETTINGS]
            near = get_close_matches(_bare(key), known, 1)
            hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known)}."
            raise InputError(f"Model {name!r} has no setting {_bare(key)!r}: {hint}")
    for key, values in grid.items():
        if not values:
            raise InputError(f"Model {name!r}: the grid of {_bare(key)!r} is empty; list values.")
    combinations = math.prod(map(len, grid.values()))
    if combinations > _MOST_COMBINATIONS:
        raise InputError(
            f"Model {name!r}: the grid has {combinations:,} combinations, and at most "
            f"{_MOST_COMBINATIONS:,} are tried; list fewer values."
        )


def _parameter(key: str, wrapped: bool, legal: Mapping[str, Any]) -> str:
    """Return the parameter that a setting of a study names; "scale" is one of `preparation`."""
    if key == "scale" and key not in legal and f"estimator__{key}" not in legal:
        return "preparation"
    return f"estimator__{key}" if wrapped and not key.startswith("estimator__") else key


def _bare(key: str) -> str:
    return key.removeprefix("estimator__")


def make_models(models: Any, classification: bool = True) -> list[Model]:
    """Build the models of a comparison from names, estimators or grids."""
    if isinstance(models, Mapping):
        built = [_from_pair(name, value, classification) for name, value in models.items()]
    elif isinstance(models, Iterable):
        built = [
            m if isinstance(m, Model) else make_model(m, classification=classification)
            for m in ([models] if isinstance(models, str) else models)
        ]
    else:
        raise InputError(
            f"models must be names, or a dictionary of estimators, but got {models!r}."
        )
    names = [m.name for m in built]
    if not names or len(set(names)) != len(names):
        raise InputError(f"models must have one or more different names, but got {names}.")
    return built


def _from_pair(name: str, given: Any, classification: bool) -> Model:
    """Build a model from one entry of a dictionary: its name, and what `nested_cv` lists."""
    if isinstance(given, Model):
        return replace(given, name=name, base=given.seed_name if given.views else "")
    if given is None or isinstance(given, (Mapping, str)):
        return make_model(name, grid=given, classification=classification)
    if isinstance(given, Entry):
        estimator = given.make(classification=classification)
        return make_model(name, estimator=estimator, grid=given.grid)
    if isinstance(given, tuple):
        if len(given) != 2:
            raise InputError(f"Model {name!r}: a tuple must be (estimator, grid).")
        return make_model(name, estimator=given[0], grid=given[1])
    if not hasattr(given, "get_params"):
        raise InputError(
            f"Model {name!r}: expected an estimator, (estimator, grid), a grid or None, but got "
            f"{type(given).__name__}."
        )
    return make_model(name, estimator=given)


# -- models on some of the views -------------------------------------------------------------------


def name_with_views(name: str, views: Sequence[str]) -> str:
    """Return the name of a model that gets some of the views."""
    return f"{name} ({', '.join(views)})"


def check_views(views: Any, known: Sequence[str], what: str) -> tuple[str, ...]:
    """Return views in the order of the data; refuse what is not a list of known views."""
    wanted = [] if isinstance(views, str) else list(views)
    if not wanted or len(set(wanted)) < len(wanted):
        raise InputError(
            f"{what}: views must be a list of one or more different names out of {list(known)}, "
            f"but got {views!r}."
        )
    for name in wanted:
        if name not in known:
            near = get_close_matches(str(name), list(known), 1)
            hint = f"did you mean {near[0]!r}?" if near else "correct the name."
            raise InputError(
                f"{what}: there is no view {name!r}; the views are {list(known)}: {hint}"
            )
    return tuple(name for name in known if name in wanted)


def on_views(model: Model, data: MultiView) -> Model:
    """Return a model with its views checked, and without parameters that concern other views."""
    if model.views is None:
        return model
    views = check_views(model.views, data.view_names, f"Model {model.name!r}")
    if len(views) == len(data.view_names):
        return replace(model, views=None, base=model.seed_name)
    params = model.estimator.get_params(deep=False)
    left_out = [name for name in data.view_names if name not in views]
    changed: dict[str, Any] = {
        key: {k: v for k, v in params[key].items() if k not in left_out}
        for key in _BY_VIEW
        if isinstance(params.get(key), Mapping)
    }
    if params.get(_BY_NAME):
        not_its_own = _feature_names(data, left_out) - _feature_names(data, views)
        changed[_BY_NAME] = [n for n in params[_BY_NAME] if n not in not_its_own] or None
    estimator = clone(model.estimator).set_params(**changed)
    return replace(model, views=views, estimator=estimator, base=model.seed_name)


def _feature_names(data: MultiView, views: Sequence[str]) -> set[str]:
    """Return the names by which features and categories of some views can be called."""
    every: set[str] = set()
    for view in views:
        names = {str(name) for name in data.view(view).feature_names}
        names |= {name.partition("=")[0] for name in names}
        every |= names | {f"{view}:{name}" for name in names}
    return every


def prepare_views(preparation: Preparation, views: Sequence[str] | None) -> Preparation:
    """Return a preparation for some of the views, without steps that name other views only."""
    if views is None:
        return preparation
    steps = []
    for step in preparation.steps:
        named = step.get_params(deep=False).get("views")
        if named is None:
            steps.append(step)
            continue
        kept = [v for v in ([named] if isinstance(named, str) else named) if v in views]
        if kept:
            steps.append(clone(step).set_params(views=kept))
    return clone(preparation).set_params(steps=steps)


def rows_with_views(data: MultiView, views: Sequence[str] | None) -> np.ndarray | None:
    """Return a mask of the samples that have at least one of the views; None for all views."""
    if views is None:
        return None
    return np.any([data.view(name).present for name in views], axis=0)
