"""The record of a comparison, ``run.json``: what its tables do not hold, written and read."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

import baldur
from baldur.core.escape import one_line
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.result_files import AGAIN, RECORD, is_number, read_json_file
from baldur.exceptions import InputError

if TYPE_CHECKING:
    from baldur.evaluation.result import NestedResult

SCHEMA = 2
"""Of ``run.json``; raised when an older package could not read a newer file."""


def versions() -> dict[str, str]:
    """Return the versions that a result depends on."""
    return {
        "baldur": baldur.__version__,
        "Python": platform.python_version(),
        "numpy": np.__version__,
        "scipy": version("scipy"),
        "scikit-learn": version("scikit-learn"),
        "pandas": pd.__version__,
    }


def record_of(result: NestedResult) -> dict[str, Any]:
    """Return samples, classes, folds and models as JSON values, without times."""
    names = [str(c) for c in result.classes]
    repeats = 1 + max((f.repeat for f in result.folds), default=0)
    return {
        "schema": SCHEMA,
        "task": "classification" if names else "regression",
        "people": len(result.data),
        "classes": names,
        "views": [
            {
                "name": view,
                "features": int(width),
                "people": int(np.sum(result.data.view(view).present)),
            }
            for view, width in result.n_features.items()
        ],
        "models": list(result.models),
        "view_sets": {
            model.name: list(model.views)
            for model in result.comparison.models
            if model.views is not None
        },
        "baseline_views": list(result.comparison.baseline_views),
        "added_value_missing": result.added_value_missing,
        "failures": dict(result.failures),
        "notes": {model: list(notes) for model, notes in result.notes.items() if notes},
        "metrics": list(result.metrics),
        "select_by": result.select_by,
        "folds": len(result.folds) // repeats,
        "repeats": repeats,
        "groups": None if result.groups is None else len(np.unique(result.groups)),
        "sites": None if result.sites is None else len(np.unique(result.sites)),
        "versions": versions(),
        **({"outcomes": result.outcomes} if result.outcomes else {}),
    }


Check = tuple[Callable[[Any], bool], str]
"""Whether a value is legal, and the words that follow "should be"."""


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _is_view(value: Any) -> bool:
    is_named = isinstance(value, dict) and isinstance(value.get("name"), str)
    return is_named and all(_is_count(value.get(key)) for key in ("features", "people"))


def _of_each(legal: Callable[[Any], bool], words: str) -> Check:
    return lambda v: isinstance(v, dict) and all(map(legal, v.values())), words


def _or_null(check: Check) -> Check:
    return lambda v: v is None or check[0](v), f"{check[1]}, or null"


_COUNT: Check = (_is_count, "a whole number")
_POSITIVE: Check = (lambda v: _is_count(v) and v > 0, "a whole number from 1")
_TEXT: Check = (lambda v: isinstance(v, str), "a text")
_TEXTS: Check = (_is_texts, "a list of texts")

_REQUIRED: dict[str, Check] = {
    "task": (lambda v: v in ("classification", "regression"), "'classification' or 'regression'"),
    "people": _COUNT,
    "classes": _TEXTS,
    "views": (
        lambda v: isinstance(v, list) and all(map(_is_view, v)),
        "a list of views, each with name, features and people",
    ),
    "models": _TEXTS,
    "failures": _of_each(_TEXT[0], "a text for each model that failed"),
    "notes": _of_each(_is_texts, "a list of texts for each model"),
    "metrics": (lambda v: _is_texts(v) and set(v) <= set(METRICS), "a list of known metrics"),
    "select_by": (lambda v: isinstance(v, str) and v in METRICS, "a known metric"),
    "folds": _POSITIVE,
    "repeats": _POSITIVE,
    "groups": _or_null(_COUNT),
    "sites": _or_null(_COUNT),
    "versions": _of_each(_TEXT[0], "a text for each package"),
}
_OPTIONAL: dict[str, Check] = {
    "files": _of_each(_TEXT[0], "a text for each file"),
    "view_sets": _of_each(_is_texts, "a list of views for each model that gets some of them"),
    "prevalence": _or_null((is_number, "a number")),
    "left_out": _COUNT,
    **dict.fromkeys(("title", "outcome", "added_value_missing"), _TEXT),
    **dict.fromkeys(
        ("outcomes", "regress_out", "findings", "notes_on_data", "baseline_views"), _TEXTS
    ),
    **dict.fromkeys(("seed", "inner"), _or_null(_COUNT)),
    **dict.fromkeys(("scheme", "scale"), _or_null(_TEXT)),
}


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read ``run.json`` of a results folder and check the type of every entry."""
    file = Path(folder) / RECORD
    if not file.is_file():
        raise InputError(f"{file.parent} has no {RECORD}. {AGAIN}")
    record = read_json_file(file)
    if not isinstance(record, dict):
        raise InputError(f"{file} does not contain a JSON object. {AGAIN}")
    if record.get("schema") != SCHEMA or isinstance(record.get("schema"), bool):
        raise InputError(
            f"{file}: 'schema' should be {SCHEMA}, which this version reads, but is "
            f"{_shown(record.get('schema'))}. Run the study again with this version."
        )
    for key, (good, wanted) in {**_REQUIRED, **_OPTIONAL}.items():
        if key not in record:
            if key in _REQUIRED:
                raise InputError(f"{file} has no entry {key!r}. {AGAIN}")
        elif not good(record[key]):
            raise InputError(
                f"{file}: {key!r} should be {wanted}, but is {_shown(record[key])}. {AGAIN}"
            )
    if (record["task"] == "classification") != bool(record["classes"]):
        raise InputError(
            f"{file}: 'task' is {record['task']}, which does not fit "
            f"{len(record['classes'])} 'classes'. {AGAIN}"
        )
    return record


def _shown(value: Any) -> str:
    return one_line(repr(value))[:60]
