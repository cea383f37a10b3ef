"""The [[models]] of a study file, as models to compare."""

from __future__ import annotations

import importlib
from typing import Any

from sklearn.base import BaseEstimator

from baldur.evaluation.models import FULL, Model, known_models, make_model
from baldur.exceptions import BaldurError, MissingExtraError
from baldur.study.schema import SCHEMA, check_keys, nearest, problem

__all__ = ["read_models"]

_MODEL_TABLES = ("grid", "settings")
_EXAMPLE = 'add for example models = ["BALDUR", "LSVM-l1"]'


def read_models(
    name: str, given: Any, classification: bool, scale: str | None = None
) -> tuple[list[Model], list[dict[str, Any]]]:
    """Check the models of a study file and build them.

    Parameters
    ----------
    name : str
        Name of the study file, for messages.
    given : list
        What the file has under `models`: names, or sections.
    classification : bool
        Which of the two tasks they are for.
    scale : str, optional
        How they all scale columns.

    Returns
    -------
    models : list of Model
    entries : list of dict
        The sections as resolved.
    """
    if not isinstance(given, list) or not given:
        raise problem(name, "models", "must be a list with at least one model", _EXAMPLE)
    made: list[Model] = []
    entries: list[dict[str, Any]] = []
    for i, one in enumerate(given):
        entry = {"name": one} if isinstance(one, str) else one
        where = f"models[{i + 1}]"
        if not isinstance(entry, dict):
            raise problem(name, where, "must be a name or a [[models]] section", _EXAMPLE)
        tables = {k: entry[k] for k in _MODEL_TABLES if k in entry}
        unknown = [k for k in entry if k not in SCHEMA["model"] and k not in _MODEL_TABLES]
        if unknown:
            known = [*SCHEMA["model"], *_MODEL_TABLES]
            raise problem(name, f"{where}.{unknown[0]}", "unknown key", nearest(unknown[0], known))
        plain = {k: v for k, v in entry.items() if k not in _MODEL_TABLES}
        checked = check_keys(name, "model", plain, where)
        if any(checked["name"] == m.name for m in made):
            raise problem(
                name, f"{where}.name", f"{checked['name']!r} comes twice", "give another name"
            )
        made.append(_model(name, where, checked, tables, classification, scale))
        entries.append({k: v for k, v in {**checked, **tables}.items() if v is not None})
    return made, entries


def _model(
    name: str,
    where: str,
    entry: dict[str, Any],
    tables: dict[str, Any],
    classification: bool,
    scale: str | None,
) -> Model:
    for key, table in tables.items():
        if not isinstance(table, dict) and (key, table) != ("grid", FULL):
            raise problem(
                name, f"{where}.{key}", "must be a table", f"write {key} = {{ C = [0.1, 1.0] }}"
            )
    grid = tables.get("grid")
    if isinstance(grid, dict):
        for key, values in grid.items():
            if not isinstance(values, list) or not values:
                raise problem(
                    name, f"{where}.grid.{key}", "must be a list of values to try",
                    f"write {key} = [{values!r}], or move it to settings",
                )  # fmt: skip
    task = "classification" if classification else "regression"
    estimator = None
    if entry["estimator"] is not None:
        estimator = _estimator(name, f"{where}.estimator", entry["estimator"])
    elif entry["name"] not in known_models(classification):
        raise problem(
            name, f"{where}.name", f"no model {entry['name']!r} for {task}",
            nearest(entry["name"], known_models(classification)),
        )  # fmt: skip
    try:
        return make_model(
            entry["name"],
            estimator=estimator,
            grid={k: [_none(v) for v in vs] for k, vs in grid.items()}
            if isinstance(grid, dict)
            else grid,
            settings={k: _none(v) for k, v in tables.get("settings", {}).items()},
            classification=classification,
            scale=scale,
        )
    except MissingExtraError:
        raise
    except BaldurError as error:
        raise problem(name, where, str(error).rstrip("."), "correct the model") from error


def _none(value: Any) -> Any:
    # TOML has no word for None.
    return None if value == "none" else value


def _estimator(name: str, where: str, dotted: str) -> Any:
    """An estimator by its dotted name; only scikit-learn's, as a file should not import at will."""
    module, _, cls = dotted.rpartition(".")
    if module.split(".")[0] != "sklearn" or any(p.startswith("_") for p in dotted.split(".")):
        raise problem(
            name,
            where,
            f"{dotted!r} is not a public scikit-learn class",
            "write for example 'sklearn.svm.SVC'; other estimators can be compared from Python "
            "with baldur.evaluation.nested_cv",
        )
    try:
        found = getattr(importlib.import_module(module), cls)
        # Only classes of estimators are ever called.
        estimator = isinstance(found, type) and issubclass(found, BaseEstimator)
        made = found() if estimator else None
    except (ImportError, AttributeError, TypeError) as error:
        fix = "correct the name"
        raise problem(name, where, f"{dotted!r} cannot be made ({error})", fix) from None
    if not hasattr(made, "fit") or not hasattr(made, "predict"):
        fix = "name a classifier or regressor"
        raise problem(name, where, f"{dotted!r} is no estimator that predicts", fix)
    return made
