"""Read the files of a results folder, and check them.

A folder may come from somebody else, may have been edited, or may be cut off by a full disk.
Nothing in it is run or unpickled. What does not fit is refused by an `InputError` of one line that
names the file, the place and what to do.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from baldur.core.escape import one_line, unescape_cell, unescape_frame
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.result_files import (
    ANY,
    COUNT,
    COUNTS,
    FILES,
    GRIDS,
    NUMBER,
    RECALIBRATED,
    RECORD,
    SCHEMA,
    SHARE,
    TABLES,
    TEXT,
    digest,
)
from baldur.exceptions import InputError

AGAIN = "Run the study again, or restore the file."
"""What to do about a damaged file."""
_LARGEST_RECORD = 20_000_000
"""Bytes of a JSON file; that of a study with a thousand models has less than one million."""
_LARGEST = 1 << 28
"""Bytes of a table: three million predictions fit, and reading takes up to ten times as much
memory."""
_LONGEST_HEADING = 1 << 20
_MOST_COLUMNS = 10_000
"""Bytes and columns of a heading; predictions have a column for each class."""


def read_results(
    folder: Path,
) -> tuple[dict[str, Any], dict[str, pd.DataFrame], dict[str, dict[str, Any]], list[str]]:
    """Return the record, tables and grids of a results folder, and sentences about its problems.

    A folder without ``run.json`` or ``table.csv``, or with damaged ones, is refused. What other
    files hold is left out where they are missing or damaged.
    """
    if not (folder / "table.csv").is_file():
        raise InputError(
            f"{folder} holds no results: it has no table.csv. Give the folder that baldur "
            "evaluate or baldur validate wrote, or a model folder."
        )
    record = read_record(folder)
    names = [file.table for file in FILES if file.table in TABLES]
    tables, problems = read_tables(folder, names, required=("table",))
    problems += _check_classes(tables, record) + _differences(folder, record, problems)
    grids: dict[str, dict[str, Any]] = {}
    try:
        grids = read_grids(folder)
    except InputError as error:
        problems.append(str(error))
    return record, tables, grids, problems


def read_tables(
    folder: Path, names: Iterable[str], required: Sequence[str] = ()
) -> tuple[dict[str, pd.DataFrame], list[str]]:
    """Read tables of a folder; damaged ones that are not required become sentences."""
    tables, problems = {}, []
    for name in names:
        try:
            tables[name] = read_result_table(folder, name)
        except InputError as error:
            if name in required:
                raise
            tables[name] = pd.DataFrame()
            problems.append(f"{error} The page leaves out what it would show.")
    return tables, problems


def read_result_table(folder: str | Path, name: str) -> pd.DataFrame:
    """Read one table of a results folder and check it."""
    file = Path(folder) / f"{name}.csv"
    if not file.is_file():
        return pd.DataFrame()
    schema = TABLES[name.removeprefix(RECALIBRATED)]
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
    for column in heading if len(frame) else ():
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
    else:  # The heading does not end within these bytes
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


_WANTED = {
    TEXT: "a text",
    COUNTS: "whole numbers, such as 3;0;2",
    NUMBER: "a number",
    SHARE: "a number from 0 to 1",
    COUNT: "a whole number",
}


def _check(column: pd.Series, kind: str, file: Path) -> None:
    """Refuse a column that does not have its type, and say where."""
    if kind == ANY or (kind == NUMBER and column.dtype.kind in "iuf"):
        return
    if kind == TEXT:
        bad = column.isna()
    elif kind == COUNTS:
        good = column.str.fullmatch(r"\d{1,12}(;\d{1,12})*").astype("boolean")
        bad = ~good.fillna(False).astype(bool)
    else:
        truth_values = pd.api.types.is_bool_dtype(column)
        numbers = pd.to_numeric(column, errors="coerce").astype(float)
        bad = column.notna() & (numbers.isna() | truth_values)
        if kind == COUNT:
            whole = (numbers >= 0) & (numbers == np.floor(numbers)) & (numbers < 2**53)
            bad |= ~whole & numbers.notna()
        if kind == SHARE:
            bad |= ~numbers.between(0, 1)
        if not bad.any() and not pd.api.types.is_numeric_dtype(column):
            raise InputError(f"{file}: column {column.name!r} does not hold numbers. {AGAIN}")
    if bad.any():
        at = int(np.flatnonzero(bad)[0])
        seen = one_line(str(column.iloc[at]))[:40]
        raise InputError(
            f"{file}: column {column.name!r} should hold {_WANTED[kind]}, but line {at + 2} has "
            f"{seen!r}. {AGAIN}"
        )


def _check_classes(tables: dict[str, pd.DataFrame], record: dict[str, Any]) -> list[str]:
    """Drop predictions whose classes are not those of the study, and return a sentence about it."""
    predictions = tables["predictions"]
    if not len(predictions.columns):
        return []
    columns = {c for c in map(str, predictions) if c.startswith("p_")}
    if columns == {f"p_{name}" for name in record["classes"]}:
        return []
    tables["predictions"] = pd.DataFrame()
    return [
        "predictions.csv and run.json name different classes. The page leaves out what "
        "predictions.csv would show."
    ]


def _differences(folder: Path, record: dict[str, Any], problems: list[str]) -> list[str]:
    """Return sentences about files that are not those the study wrote, besides known problems."""
    files = record.get("files")
    if files is None:
        return ["run.json does not list the files of the study, so changes to them go unseen."]
    sentences = []
    for name, change in changed_files(folder, record).items():
        if any(str(folder / name) in text for text in problems):
            continue  # said already, and in more detail
        if change == "missing":
            sentences.append(f"{name} is missing. The page leaves out what it would show.")
        else:
            sentences.append(f"{name} was changed after the study had written it.")
    others = [f"{name}.csv" for name in TABLES if f"{name}.csv" not in files]
    others = [name for name in others if (folder / name).is_file()]
    return sentences + [f"{name} is not a file that the study wrote." for name in others]


def changed_files(folder: str | Path, record: Mapping[str, Any]) -> dict[str, str]:
    """Return recorded files that are "missing", or "changed" since the study wrote them."""
    changes = {}
    for name, wanted in record.get("files", {}).items():
        stem, _, ending = name.rpartition(".")
        if not (ending == "csv" and stem in TABLES) and name != GRIDS:
            continue  # only files that this reader knows; a name may point anywhere
        file = Path(folder) / name
        if not file.is_file():
            changes[name] = "missing"
        elif file.stat().st_size > _LARGEST or digest(file.read_bytes()) != wanted:
            changes[name] = "changed"
    return changes


_WholeNumber = Annotated[int, Field(ge=0, lt=2**53, description="a whole number")]
_Positive = Annotated[int, Field(ge=1, lt=2**53, description="a whole number from 1")]
_Text = Annotated[str, Field(description="a text")]
_Texts = Annotated[list[str], Field(description="a list of texts")]
_KnownMetric = Annotated[str, Field(pattern=f"^({'|'.join(METRICS)})$")]


class _RecordedView(BaseModel):
    """A view in ``run.json``."""

    model_config = ConfigDict(strict=True)

    name: str
    features: _WholeNumber
    people: _WholeNumber


class _Record(BaseModel):
    """The entries of ``run.json``; their descriptions follow "should be" in an error message."""

    model_config = ConfigDict(strict=True)

    task: Literal["classification", "regression"] = Field(
        description="'classification' or 'regression'"
    )
    people: _WholeNumber
    classes: _Texts
    views: list[_RecordedView] = Field(
        description="a list of views, each with name, features and people"
    )
    models: _Texts
    failures: dict[str, str] = Field(description="a text for each model that failed")
    notes: dict[str, list[str]] = Field(description="a list of texts for each model")
    metrics: list[_KnownMetric] = Field(description="a list of known metrics")
    select_by: _KnownMetric = Field(description="a known metric")
    folds: _Positive
    repeats: _Positive
    groups: _WholeNumber | None = Field(description="a whole number, or null")
    sites: _WholeNumber | None = Field(description="a whole number, or null")
    versions: dict[str, str] = Field(description="a text for each package")

    files: dict[str, str] = Field({}, description="a text for each file")
    view_sets: dict[str, list[str]] = Field(
        {}, description="a list of views for each model that gets some of them"
    )
    prevalence: FiniteFloat | None = Field(None, description="a number, or null")
    left_out: _WholeNumber = 0
    title: _Text = ""
    outcome: _Text = ""
    added_value_missing: _Text = ""
    outcomes: _Texts = []
    regress_out: _Texts = []
    findings: _Texts = []
    notes_on_data: _Texts = []
    baseline_views: _Texts = []
    seed: _WholeNumber | None = Field(None, description="a whole number, or null")
    inner: _WholeNumber | None = Field(None, description="a whole number, or null")
    scheme: str | None = Field(None, description="a text, or null")
    scale: str | None = Field(None, description="a text, or null")


def read_record(folder: str | Path) -> dict[str, Any]:
    """Read ``run.json`` of a results folder and check the type of every entry."""
    file = Path(folder) / RECORD
    if not file.is_file():
        raise InputError(f"{file.parent} has no {RECORD}. {AGAIN}")
    record = _read_json(file)
    if not isinstance(record, dict):
        raise InputError(f"{file} does not contain a JSON object. {AGAIN}")
    if record.get("schema") != SCHEMA or isinstance(record.get("schema"), bool):
        raise InputError(
            f"{file}: 'schema' should be {SCHEMA}, which this version reads, but is "
            f"{_shown(record.get('schema'))}. Run the study again with this version."
        )
    try:
        _Record.model_validate(record)
    except ValidationError as error:
        key = str(error.errors()[0]["loc"][0])
        if key not in record:
            raise InputError(f"{file} has no entry {key!r}. {AGAIN}") from None
        wanted = _Record.model_fields[key].description
        raise InputError(
            f"{file}: {key!r} should be {wanted}, but is {_shown(record[key])}. {AGAIN}"
        ) from None
    if (record["task"] == "classification") != bool(record["classes"]):
        raise InputError(
            f"{file}: 'task' is {record['task']}, which does not fit "
            f"{len(record['classes'])} 'classes'. {AGAIN}"
        )
    return record


def _shown(value: Any) -> str:
    return one_line(repr(value))[:60]


_Numbers = list[FiniteFloat]
_Three, _Four = Field(min_length=3, max_length=3), Field(min_length=4, max_length=4)


class _Grid(BaseModel):
    """Shape and affine of a view made of images in ``grids.json``."""

    model_config = ConfigDict(strict=True)

    shape: Annotated[_Numbers, _Three]
    affine: Annotated[list[Annotated[_Numbers, _Four]], _Four]


def read_grids(folder: str | Path) -> dict[str, dict[str, Any]]:
    """Read shape and affine of every view made of images; empty where there is none."""
    file = Path(folder) / GRIDS
    if not file.is_file():
        return {}
    grids: dict[str, dict[str, Any]] = _read_json(file)
    try:
        TypeAdapter(dict[str, _Grid]).validate_python(grids)
    except ValidationError:
        raise InputError(f"{file} does not hold the grids of images. {AGAIN}") from None
    return grids


def _read_json(file: Path) -> Any:
    """Return the content of a JSON file, or refuse it in one line."""
    try:
        if file.stat().st_size > _LARGEST_RECORD:
            raise InputError(f"{file} is larger than {_LARGEST_RECORD:,} bytes. {AGAIN}")
        return json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(
            f"{file} cannot be read as JSON: {one_line(str(error))}. {AGAIN}"
        ) from None
