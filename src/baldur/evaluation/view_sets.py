"""Models on some of the views: which views each gets, and the sets that show what a view adds."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import Any

import numpy as np
from sklearn.base import clone

from baldur.evaluation.job_store import job_key
from baldur.evaluation.models import Model, name_with_views
from baldur.evaluation.view_additions import questions
from baldur.exceptions import InputError
from baldur.preparation import Preparation
from baldur.views import MultiView

_BY_VIEW = ("n_features", "cost")
"""Parameters of estimators that may be dictionaries with a value for each view."""
_BY_NAME = "always"
"""Parameter of estimators that lists names of features."""
_DEFAULT = "BALDUR"


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
    """Return a model with its views checked, and parameters that name other views restricted."""
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
        gone = _feature_names(data, left_out) - _feature_names(data, views)
        changed[_BY_NAME] = [name for name in params[_BY_NAME] if name not in gone] or None
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
    """Return a preparation whose steps name none but some views."""
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


def measured_rows(
    splits: list[tuple[np.ndarray, np.ndarray]], has: np.ndarray | None, *, test: bool
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Leave samples without any view of a model out of its training rows.

    Shapes: splits (train, test), has (n_samples,); returns (train, test).
    """
    if has is None or has.all():
        return splits
    return [(a[has[a]], b[has[b]] if test else b) for a, b in splits]


# -- what a view adds ----------------------------------------------------------------------------


def _model_with_all_views(models: Sequence[Model]) -> Model:
    """Return the model whose view sets are compared: BALDUR, or else the first with all views."""
    whole = [m for m in models if m.views is None]
    if not whole:
        raise InputError(
            "baseline_views needs a model with all views; remove views from one of the models."
        )
    return next((m for m in whole if m.seed_name == _DEFAULT), whole[0])


def view_sets(known: Sequence[str], baseline: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the sets of views that answer what each view adds, each once, without all views."""
    sets = dict.fromkeys(views for _, _, views, _ in questions(known, baseline))
    return [views for views in sets if 0 < len(views) < len(known)]


def view_set_models(
    models: Sequence[Model], data: MultiView, baseline: Sequence[str]
) -> list[Model]:
    """Return the models that a comparison needs in addition to say what each view adds."""
    whole = _model_with_all_views(models)
    there = {_identity(model) for model in models}
    names = {model.name for model in models}
    made = []
    for views in view_sets(data.view_names, baseline):
        name = name_with_views(whole.name, views)
        one = on_views(replace(whole, name=name, views=views, base=whole.seed_name), data)
        if _identity(one) in there:
            continue
        if name in names:
            # The name belongs to a model with other settings.
            one = replace(one, name=f"{name}, as {whole.name}")
        made.append(one)
    return made


def models_by_views(
    models: Sequence[Model], data: MultiView, finished: Collection[str], whole: Model | None
) -> tuple[str, dict[tuple[str, ...], str], list[str]]:
    """Return a model with all views, that of each set of views that finished, and the others.

    All have the same settings, and are given by their names.
    """
    whole = whole or _model_with_all_views(models)
    alike = [
        model
        for model in models
        if _identity(model) == _identity(on_views(replace(whole, views=model.views), data))
    ]
    rows: dict[tuple[str, ...], str] = {}
    for model in alike:
        if model.name in finished:
            rows.setdefault(model.views or tuple(data.view_names), model.name)
    return whole.name, rows, [model.name for model in alike if model.name not in finished]


def _identity(model: Model) -> str:
    """Return a text that two models share if their jobs are the same.

    The preparation of the comparison, whose steps may name views, is the same for all models.
    """
    estimator = clone(model.estimator)
    params = estimator.get_params(deep=True)
    preparations = [k for k in params if k.rpartition("__")[2] == "preparation"]
    return job_key(
        seed=model.seed_name,
        views=model.views,
        estimator=estimator.set_params(**dict.fromkeys(preparations)),
        grid=dict(model.grid),
        search=dict(model.search),
    )
