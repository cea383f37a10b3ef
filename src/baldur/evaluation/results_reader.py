"""The one reader of the tables of a results folder: files, their columns and their types.

A folder may come from somebody else, may have been edited, or may be cut off by a full disk.
Nothing in it is run or unpickled. What does not fit is refused by an `InputError` of one line that
names the file, the place and what to do.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.escape import one_line, unescape_cell
from baldur.core.spreadsheet import unescape_frame
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.record import SCHEMA
from baldur.exceptions import InputError

RECORD = "run.json"
"""File that says who was studied and how; the tables do not hold this."""
AGAIN = "Run the study again, or restore the file."
"""What to do about a damaged file."""
_LARGEST_RECORD = 20_000_000
"""Bytes of a JSON file; that of a study with a thousand models has less than one million."""


def is_number(value: Any) -> bool:
    """Return whether a value of a JSON file is a finite number."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return False
    # Whole numbers of JSON have any length; those beyond a float are refused by the comparison.
    return abs(value) <= sys.float_info.max


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53


def _is_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(v, str) for v in value)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) for v in value.values())


def _is_views(value: Any) -> bool:
    return isinstance(value, list) and all(
        isinstance(view, dict)
        and isinstance(view.get("name"), str)
        and _is_count(view.get("features"))
        and _is_count(view.get("people"))
        for view in value
    )


def _or_nothing(check: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or check(value)


_REQUIRED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "task": (lambda v: v in ("classification", "regression"), "'classification' or 'regression'"),
    "people": (_is_count, "a whole number"),
    "classes": (_is_texts, "a list of texts"),
    "views": (_is_views, "a list of views, each with name, features and people"),
    "models": (_is_texts, "a list of texts"),
    "failures": (_is_text_map, "a text for each model that failed"),
    "notes": (
        lambda v: isinstance(v, dict) and all(map(_is_texts, v.values())),
        "a list of texts for each model",
    ),
    "metrics": (lambda v: _is_texts(v) and set(v) <= set(METRICS), "a list of known metrics"),
    "select_by": (lambda v: isinstance(v, str) and v in METRICS, "a known metric"),
    "folds": (lambda v: _is_count(v) and v > 0, "a whole number from 1"),
    "repeats": (lambda v: _is_count(v) and v > 0, "a whole number from 1"),
    "groups": (_or_nothing(_is_count), "a whole number, or null"),
    "sites": (_or_nothing(_is_count), "a whole number, or null"),
    "versions": (_is_text_map, "a text for each package"),
}
_OPTIONAL: dict[str, tuple[Callable[[Any], bool], str]] = {
    "files": (_is_text_map, "a text for each file"),
    "title": (lambda v: isinstance(v, str), "a text"),
    "outcome": (lambda v: isinstance(v, str), "a text"),
    "outcomes": (_is_texts, "a list of texts"),
    "seed": (_or_nothing(_is_count), "a whole number, or null"),
    "scheme": (_or_nothing(lambda v: isinstance(v, str)), "a text, or null"),
    "inner": (_or_nothing(_is_count), "a whole number, or null"),
    "scale": (_or_nothing(lambda v: isinstance(v, str)), "a text, or null"),
    "regress_out": (_is_texts, "a list of texts"),
    "prevalence": (_or_nothing(is_number), "a number, or null"),
    "findings": (_is_texts, "a list of texts"),
    "notes_on_data": (_is_texts, "a list of texts"),
    "left_out": (_is_count, "a whole number"),
    "view_sets": (
        lambda v: isinstance(v, dict) and all(map(_is_texts, v.values())),
        "a list of views for each model that gets some of them",
    ),
    "baseline_views": (_is_texts, "a list of texts"),
    "added_value_missing": (lambda v: isinstance(v, str), "a text"),
}


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read ``run.json`` of a results folder and check the type of every entry."""
    file = Path(folder) / RECORD
    if not file.is_file():
        raise InputError(f"{file.parent} has no {RECORD}. {AGAIN}")
    found = read_json_file(file)
    if not isinstance(found, dict):
        raise InputError(f"{file} does not contain a JSON object. {AGAIN}")
    if found.get("schema") != SCHEMA or isinstance(found.get("schema"), bool):
        raise InputError(
            f"{file}: 'schema' should be {SCHEMA}, which this version reads, but is "
            f"{_shown(found.get('schema'))}. Run the study again with this version."
        )
    for key, (good, wanted) in {**_REQUIRED, **_OPTIONAL}.items():
        if key not in found:
            if key in _REQUIRED:
                raise InputError(f"{file} has no entry {key!r}. {AGAIN}")
        elif not good(found[key]):
            raise InputError(
                f"{file}: {key!r} should be {wanted}, but is {_shown(found[key])}. {AGAIN}"
            )
    if (found["task"] == "classification") != bool(found["classes"]):
        raise InputError(
            f"{file}: 'task' is {found['task']}, which does not fit "
            f"{len(found['classes'])} 'classes'. {AGAIN}"
        )
    return found


def _shown(value: Any) -> str:
    return one_line(repr(value))[:60]


def read_json_file(file: Path) -> Any:
    """Return the content of a JSON file, or refuse it in one line."""
    try:
        if file.stat().st_size > _LARGEST_RECORD:
            raise InputError(f"{file} is larger than {_LARGEST_RECORD:,} bytes. {AGAIN}")
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{file} cannot be read as JSON: {one_line(str(error))}. {AGAIN}"
        ) from None


TEXT, NUMBER, SHARE, COUNT, COUNTS, ANY = "text", "number", "share", "count", "counts", "any"
"""Types of columns: names; numbers; numbers from 0 to 1, none missing; whole numbers from 0; such
as ``3;0;2``; whatever is there."""

_LARGEST = 1 << 28
"""Bytes of a table: three million predictions fit, and reading takes up to ten times as much
memory."""
_LONGEST_HEADING = 1 << 20
_MOST_COLUMNS = 10_000
"""Bytes and columns of a heading; predictions have a column for each class."""


@dataclass(frozen=True)
class TableSchema:
    """Columns of one table."""

    columns: Mapping[str, str]  # Required columns and their types
    optional: Mapping[str, str] = field(default_factory=dict)
    rest: str = NUMBER  # Type of every other column

    def type_of(self, column: str) -> str:
        """Return the type of a column."""
        return self.columns.get(column) or self.optional.get(column) or self.rest


def _columns(text: str = "", number: str = "", count: str = "", **other: str) -> dict[str, str]:
    found = dict.fromkeys(text.split(), TEXT)
    found |= dict.fromkeys(number.split(), NUMBER)
    return found | dict.fromkeys(count.split(), COUNT) | other


_FOLD = {"model": TEXT, "repeat": COUNT, "fold": COUNT}
_ENDS = "estimate low high"

TABLES: dict[str, TableSchema] = {
    "table": TableSchema(_columns("model note failure", count="folds"), _columns("outcome")),
    "predictions": TableSchema(
        {**_FOLD, **_columns("sample", label=ANY, predicted=ANY)},
        _columns("group site probability flags"),
    ),
    "selection": TableSchema(
        _columns(
            "model view feature class",
            "mean_weight mean_raw_weight sign_agreement",
            "n_features",
            frequency=SHARE,
            folds=COUNTS,
        )
    ),
    "folds": TableSchema(_FOLD),
    "comparisons": TableSchema(
        _columns("metric model_a model_b", "difference standard_error t p p_holm", "df")
    ),
    "stability": TableSchema(_columns("model view", "stability error low high")),
    "views": TableSchema(
        _columns("model view", "frequency percent_of_view share variance_share")
    ),
    "view_shares": TableSchema(
        {**_FOLD, **_columns("view", "share variance_share", "selected")}
    ),
    "presence": TableSchema(_columns("sample", label=ANY), rest=COUNT),
    "participants": TableSchema(
        _columns("view feature level class kind", "mean sd share", "count missing")
    ),
    "weights": TableSchema({**_FOLD, **_columns("view feature class", "weight raw_weight")}),
    "settings": TableSchema({**_FOLD, **_columns("setting value")}),
    "intervals": TableSchema(
        _columns("model site metric note", _ENDS, "people units"), _columns("outcome")
    ),
    "differences": TableSchema(_columns("metric model_a model_b note", "difference low high")),
    "calibration": TableSchema(_columns("model class measure note", _ENDS)),
    "calibration_curve": TableSchema(_columns("model class", "predicted observed low high")),
    "decision": TableSchema(_columns("model", "threshold net_benefit low high")),
    "thresholds": TableSchema(_columns("model rule measure note", f"threshold {_ENDS}")),
    "subgroups": TableSchema(
        _columns(
            "model subgroup level measure note",
            f"{_ENDS} difference difference_low difference_high",
            "people cases",
        )
    ),
    "few_features": TableSchema(
        _columns(
            "model limit metric",
            f"features_mean features_min features_max {_ENDS} difference difference_low "
            "difference_high chance",
        )
    ),
    "few_names": TableSchema(
        _columns("model limit view feature", count="folds", share=SHARE)
    ),
    "left_out": TableSchema(_columns("model figure reason")),
    "learning_curve": TableSchema(_columns("model metric kind", f"people {_ENDS}")),
    "sample_size": TableSchema(
        _columns("model candidates criterion meaning note", "people", "parameters")
    ),
    "permutation": TableSchema(
        _columns("model metric", "score permuted_mean p p_holm", "permutations")
    ),
    "correlations": TableSchema(
        _columns("model view_a feature_a view_b feature_b", "correlation")
    ),
    "feature_locations": TableSchema(_columns("view feature"), _columns("chromosome"), rest=ANY),
    "added_value": TableSchema(
        _columns(
            "question view model reference metric outcome note",
            "threshold value value_low value_high reference_value difference low high "
            "standard_error detectable p p_holm",
            "people of_people units",
        )
    ),
    "reclassification": TableSchema(
        _columns(
            "question view model reference class",
            "threshold people up down unchanged net low high",
        )
    ),
    "harmonisation": TableSchema(_columns("view", "", "repeat fold"), rest=ANY),
    # What baldur validate writes besides those above.
    "scores": TableSchema(_FOLD),
    "development": TableSchema(_columns("metric", _ENDS)),
    "shift_views": TableSchema(
        _columns(
            "view worst", "mean_shift spread_ratio outside worst_shift absent", "features far"
        ),
        rest=ANY,
    ),
    "shift_features": TableSchema(_columns("view feature"), rest=ANY),
    "recalibration": TableSchema(_columns("version", "intercept slope"), rest=ANY),
}  # fmt: skip
"""Every table that a results folder may hold, by the name of its file without ``.csv``."""


def read_result_table(folder: str | Path, name: str) -> pd.DataFrame:
    """Read one table of a results folder and check it."""
    file = Path(folder) / f"{name}.csv"
    if not file.is_file():
        return pd.DataFrame()
    schema = TABLES[name.removeprefix("recalibrated_")]
    try:
        _check_form(file)
        heading = list(pd.read_csv(file, nrows=0, index_col=False).columns)
        types = {column: schema.type_of(unescape_cell(column)) for column in heading}
        if {"label", "predicted"} & {c for c, t in types.items() if t == ANY}:
            types |= _types_of_labels(name, heading)
        texts = [column for column, kind in types.items() if kind in (TEXT, COUNTS)]
        frame = pd.read_csv(
            file,
            dtype=dict.fromkeys(texts, str),
            index_col=False,
            keep_default_na=False,
            na_values={column: [""] for column in heading if column not in texts},
            float_precision="round_trip",
        )
    except InputError:
        raise
    except (OSError, ValueError, OverflowError) as error:
        raise InputError(
            f"{file} cannot be read as a table: {one_line(str(error))}. {AGAIN}"
        ) from None
    lacking = [c for c in schema.columns if c not in {unescape_cell(h) for h in heading}]
    if lacking:
        raise InputError(f"{file} has no column {lacking[0]!r}. {AGAIN}")
    for column in heading:
        _check(frame[column], types[column], file)
    return unescape_frame(frame)


def _check_form(file: Path) -> None:
    """Refuse a table that is too large or too wide to be read, or truncated."""
    with file.open("rb") as stream:
        size = stream.seek(0, 2)
        if size > _LARGEST:
            raise InputError(f"{file} is larger than {_LARGEST:,} bytes. {AGAIN}")
        stream.seek(max(size - 1, 0))
        if size > 0 and stream.read(1) != b"\n":
            raise InputError(f"{file} is truncated: its last line has no line break. {AGAIN}")
        stream.seek(0)
        start = stream.read(_LONGEST_HEADING).splitlines(keepends=True)
    quotes = commas = 0
    for line in start:
        quotes += line.count(b'"')
        commas += line.count(b",")
        # A line end between quotes belongs to a name.
        if line.endswith(b"\n") and quotes % 2 == 0:
            break
    else:
        commas = _MOST_COLUMNS if start else 0
    if commas >= _MOST_COLUMNS:
        raise InputError(f"{file} has a heading of more than {_MOST_COLUMNS:,} columns. {AGAIN}")


def _types_of_labels(name: str, heading: list[str]) -> dict[str, str]:
    """Return the types of outcomes: names of classes, or numbers in regression."""
    if name == "presence":
        # Only run.json says whether these are names; both can be read as text.
        return {"label": TEXT}
    classes = any(unescape_cell(column).startswith("p_") for column in heading)
    return dict.fromkeys({"label", "predicted"} & set(heading), TEXT if classes else NUMBER)


def _check(column: pd.Series, kind: str, file: Path) -> None:
    """Refuse a column that does not have its type, and say where."""
    if kind == ANY:
        return
    if kind == TEXT:
        bad, wanted = column.isna(), "a text"
    elif kind == COUNTS:
        good = column.str.fullmatch(r"\d{1,12}(;\d{1,12})*").astype("boolean")
        bad, wanted = ~good.fillna(False).astype(bool), "whole numbers, such as 3;0;2"
    elif pd.api.types.is_bool_dtype(column):
        bad, wanted = column.notna(), "a number"
    elif not pd.api.types.is_numeric_dtype(column):
        bad = column.notna() & pd.to_numeric(column, errors="coerce").isna()
        wanted = "a number"
    elif kind == COUNT:
        values = column.to_numpy(dtype=float)
        with np.errstate(invalid="ignore"):
            whole = (values >= 0) & (values == np.floor(values)) & (values < 2**53)
        bad, wanted = ~whole & ~np.isnan(values), "a whole number"
    elif kind == SHARE:
        bad, wanted = ~column.between(0, 1), "a number from 0 to 1"
    else:
        return
    if bad.any():
        at = int(np.flatnonzero(np.asarray(bad, dtype=bool))[0])
        seen = one_line(str(column.iloc[at]))[:40]
        raise InputError(
            f"{file}: column {column.name!r} should hold {wanted}, but line {at + 2} has {seen!r}. "
            f"{AGAIN}"
        )
    if kind in (NUMBER, SHARE, COUNT) and not pd.api.types.is_numeric_dtype(column):
        raise InputError(f"{file}: column {column.name!r} does not hold numbers. {AGAIN}")


def read_grids(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Read shape and affine of every view made of images; empty where there is none."""
    file = Path(folder) / "grids.json"
    if not file.is_file():
        return {}
    found = read_json_file(file)
    good = isinstance(found, dict) and all(
        isinstance(grid, dict)
        and _is_numbers(grid.get("shape"), 3)
        and isinstance(grid.get("affine"), list)
        and len(grid["affine"]) == 4
        and all(_is_numbers(row, 4) for row in grid["affine"])
        for grid in found.values()
    )
    if not good:
        raise InputError(f"{file} does not hold the grids of images. {AGAIN}")
    return dict(found)


def _is_numbers(value: Any, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(map(is_number, value))


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of a file's content, as ``run.json`` records it."""
    return hashlib.sha256(content).hexdigest()


def changed_files(folder: str | Path, record: Mapping[str, Any]) -> dict[str, str]:
    """Return which recorded files are missing, or differ from what the study wrote."""
    made = {}
    for name, wanted in record.get("files", {}).items():
        stem, _, ending = name.rpartition(".")
        if not (ending == "csv" and stem in TABLES) and name != "grids.json":
            continue  # only files that this reader knows; a name may point anywhere
        file = Path(folder) / name
        if not file.is_file():
            made[name] = "missing"
        elif file.stat().st_size > _LARGEST or digest(file.read_bytes()) != wanted:
            made[name] = "changed"
    return made
