"""The comparison of a study: its models made, its design applied to its data, and checked."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, is_classifier, is_regressor

from baldur.core.schema import nearest
from baldur.evaluation.design import Comparison, open_comparison
from baldur.evaluation.models import Model, make_model
from baldur.exceptions import BaldurError, InputError, MissingExtraError, StudyError
from baldur.study.config import ModelEntry, StudyConfig
from baldur.study.data import StudyData
from baldur.study.suspicious_data import variants

_MOST_PARTS = 5  # of the name of a class; those of scikit-learn have three or four


def open_study(config: StudyConfig, data: StudyData, *, only: str | None = None) -> Comparison:
    """Return the models (or the one labelled `only`) and folds of a study, applied to its data."""
    models = make_models(config, only)
    _check_views(config, data)
    try:
        comparison = open_comparison(
            models,
            data.data,
            data.y,
            task=config.outcome.task,
            positive=data.positive,
            scheme=config.folds.scheme,
            outer=config.folds.outer,
            inner=config.folds.inner,
            repeats=config.folds.repeats,
            groups=data.groups,
            sites=data.sites,
            split=data.split,
            preparation=data.preparation,
            metrics=config.report.metrics,
            select_by=config.folds.select_by,
            permutations=config.report.permutations,
            random_state=config.seed,
            # A model that is fitted alone is not compared.
            baseline_views=config.report.baseline_views if only is None else None,
        )
        _ = comparison.folds  # made here, where an impossible design can be explained
    except InputError as error:
        raise folds_problem(config, data, error) from error
    return comparison


def _check_views(config: StudyConfig, data: StudyData) -> None:
    """Refuse names of views that the study does not have, and say where they are written."""
    known = data.data.view_names
    named = {f"models[{i}].views": entry.views for i, entry in enumerate(config.models, 1)}
    named["report.baseline_views"] = config.report.baseline_views
    for key, views in named.items():
        for view in views or ():
            if view not in known:
                raise config.problem(key, f"there is no view {view!r}", nearest(view, known))
    if set(config.report.baseline_views or ()) == set(known):
        what = "all views are named, so that there is none to add"
        raise config.problem("report.baseline_views", what, "leave at least one out")
    if config.report.baseline_views and all(
        len(entry.views or known) < len(known) for entry in config.models
    ):
        what = "no model gets all views, which what a view adds is computed from"
        raise config.problem("report.baseline_views", what, "remove views from one of the models")


def folds_problem(config: StudyConfig, data: StudyData, error: InputError) -> StudyError:
    """Return why a comparison was refused as an error about the study file, with what to do."""
    if config.classification and config.outcome.column:
        # Two ways of writing one class may be why there are too few samples of it.
        for finding in variants("outcome.column", config.outcome.column, np.unique(data.y)):
            return config.problem(*finding)
    # Messages of the comparison have what to do after the last semicolon.
    what, _, fix = str(error).rstrip(".").rpartition("; ")
    return config.problem("folds", what or fix, fix if what else "change the folds or the samples")


def make_models(config: StudyConfig, only: str | None = None) -> list[Model]:
    """Make the models of a study."""
    return [
        _model(config, f"models[{i}]", entry)
        for i, entry in enumerate(config.models, 1)
        if only is None or entry.label == only
    ]


def _model(config: StudyConfig, where: str, entry: ModelEntry) -> Model:
    """Return a model of a study with its grid and settings; `where` is its key for errors."""
    estimator = None
    if entry.estimator is not None:
        estimator = _estimator(config, f"{where}.estimator", entry.estimator)
    grid = entry.grid
    if isinstance(grid, dict):
        grid = {key: [_none(value) for value in values] for key, values in grid.items()}
    settings = {key: _none(value) for key, value in entry.settings.items()}
    searched = grid if isinstance(grid, dict) else {}
    # The scaling of the study is for models that do not set one of their own.
    if config.preparation.scale and not {"scale", "preparation"} & {*settings, *searched}:
        settings["scale"] = config.preparation.scale
    try:
        return make_model(
            entry.name,
            estimator=estimator,
            grid=grid,
            settings=settings,
            classification=config.classification,
            views=entry.views,
        )
    except MissingExtraError:
        raise
    except BaldurError as error:
        raise config.problem(where, str(error).rstrip("."), "correct the model") from error


def _none(value: Any) -> Any:
    # TOML has no word for None.
    return None if value == "none" else value


def _estimator(config: StudyConfig, where: str, dotted: str) -> Any:
    """Return an estimator by its dotted name; of scikit-learn only, as a file cannot run code."""
    module, _, class_name = dotted.rpartition(".")
    parts = dotted.split(".")
    private = any(part.startswith("_") for part in parts)
    if parts[0] != "sklearn" or private or len(parts) > _MOST_PARTS:
        raise config.problem(
            where,
            f"{dotted!r} is not a public scikit-learn class",
            "write for example 'sklearn.svm.SVC'; other estimators can be compared from Python "
            "with baldur.evaluation.nested_cv",
        )
    try:
        imported = getattr(importlib.import_module(module), class_name)
        # Only classes of estimators are ever called.
        is_estimator = isinstance(imported, type) and issubclass(imported, BaseEstimator)
        estimator = imported() if is_estimator else None
    except (ImportError, AttributeError, TypeError, ValueError) as error:
        what = f"{dotted!r} cannot be made ({error})"
        raise config.problem(where, what, "correct the name") from None
    # Others predict something else, such as numbers of clusters instead of classes.
    suits = is_classifier if config.classification else is_regressor
    if not is_estimator or not suits(estimator):
        what = f"{dotted!r} is not an estimator for {config.outcome.task}"
        raise config.problem(where, what, "name a classifier or regressor")
    return estimator
