"""The files of a results folder: a registry of all, how tables are made, and how they are read.

A folder may come from somebody else, may have been edited, or may be cut off by a full disk.
Nothing in it is run or unpickled. What does not fit is refused by an `InputError` of one line that
names the file, the place and what to do.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, TypeAdapter, ValidationError

from baldur.core.escape import one_line, unescape_cell, unescape_frame
from baldur.evaluation.clinical.evaluation import Evaluation
from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError

INDEX = "README.txt"
REPORT = "report.html"
LOG = "log.txt"
RECORD = "run.json"
"""File that says who was studied and how; the tables do not hold this."""
SCHEMA = 2
"""Of ``run.json``; raised when an older package could not read a newer file."""
GRIDS = "grids.json"
SUMMARY = "validation.txt"
"""File that every validation has and no other folder."""
JOBS = "jobs"
"""Folder of finished jobs."""
OUTCOMES = "outcomes"
"""Folder of the results of every outcome, where a study has several."""

TEXT, NUMBER, SHARE, COUNT, COUNTS, ANY = "text", "number", "share", "count", "counts", "any"
"""Types of columns: names; numbers; numbers from 0 to 1, none missing; whole numbers from 0; such
as ``3;0;2``; whatever is there."""


@dataclass(frozen=True)
class ResultFile:
    """One file of a results folder, and the columns of a table."""

    name: str  # Of the file
    about: str = ""  # What it holds; "" where another line of README.txt says so
    make: Callable[[Any], Any] | None = None  # From the `Results` of a run; None: given or no file
    columns: Mapping[str, str] = field(default_factory=dict)  # Required ones and their types
    optional: Mapping[str, str] = field(default_factory=dict)
    rest: str = NUMBER  # Type of every other column
    of_mean: bool = False  # Whether the mean over several outcomes has it

    @property
    def table(self) -> str:
        """Name of the table: that of the file without its ending."""
        return self.name.removesuffix(".csv")

    def type_of(self, column: str) -> str:
        """Return the type of a column."""
        return self.columns.get(column) or self.optional.get(column) or self.rest


def _columns(text: str = "", number: str = "", count: str = "", **other: str) -> dict[str, str]:
    types = dict.fromkeys(text.split(), TEXT)
    types |= dict.fromkeys(number.split(), NUMBER)
    return types | dict.fromkeys(count.split(), COUNT) | other


def _with_rows(frame: pd.DataFrame | None) -> pd.DataFrame | None:
    return None if frame is None or not len(frame) else frame


def _people_needed(results: Any) -> pd.DataFrame | None:
    from baldur.evaluation.nested import people_needed

    return people_needed(results.run) if len(results.run.predictions) else None


def _evaluated(
    name: str, about: str, columns: Mapping[str, str], optional: Mapping[str, str] | None = None
) -> ResultFile:
    """Return a table of `Evaluation`; the mean over outcomes has two of them."""
    return ResultFile(
        f"{name}.csv", about, lambda results: results.evaluation.get(name), columns,
        optional or {}, of_mean=name in ("intervals", "differences"),
    )  # fmt: skip


_FOLD = {"model": TEXT, "repeat": COUNT, "fold": COUNT}
_ENDS = "estimate low high"

FILES = (
    ResultFile(REPORT, "the answer on one page, with figures; opens in any browser, without a "
               "network"),
    ResultFile("table.txt", "the comparison, one line per model; table.csv, .md and .tex hold the "
               "same", lambda r: r.run.format("text"), of_mean=True),
    ResultFile("table.csv", "", lambda r: r.run.table(),
               _columns("model note failure", count="folds"), _columns("outcome"), of_mean=True),
    ResultFile("table.md", "", lambda r: r.run.format("markdown"), of_mean=True),
    ResultFile("table.tex", "", lambda r: r.run.format("latex"), of_mean=True),
    _evaluated("intervals", "every metric with its interval",
               _columns("model site metric note", _ENDS, "people units"), _columns("outcome")),
    _evaluated("differences", "differences between models with their intervals",
               _columns("metric model_a model_b note", "difference low high")),
    ResultFile("comparisons.csv", "tests of every pair of models, adjusted for multiple testing",
               lambda r: r.run.compare(),
               _columns("metric model_a model_b", "difference standard_error t p p_holm", "df"),
               of_mean=True),
    ResultFile("permutation.csv", "tests against permuted labels",
               lambda r: r.run.permutation_test() if any(r.run.permuted.values()) else None,
               _columns("model metric", "score permuted_mean p p_holm", "permutations"),
               of_mean=True),
    ResultFile("selection.csv", "features: how often they are selected, and their weights, one "
               "row per class", lambda r: r.run.selection,
               _columns("model view feature class", "mean_weight mean_raw_weight sign_agreement",
                        "n_features", frequency=SHARE, folds=COUNTS)),
    ResultFile("views.csv", "how often each view is used, and its share of the variance explained",
               lambda r: r.stability.views,
               _columns("model view", "frequency percent_of_view share variance_share")),
    ResultFile("view_shares.csv", "the same in every fold", lambda r: r.run.view_shares(),
               {**_FOLD, **_columns("view", "share variance_share", "selected")}),
    ResultFile("stability.csv", "agreement of the folds on the selected features",
               lambda r: r.stability.index, _columns("model view", "stability error low high")),
    ResultFile("weights.csv", "weight of every selected feature in every fold",
               lambda r: r.run.weights(),
               {**_FOLD, **_columns("view feature class", "weight raw_weight")}),
    ResultFile("correlations.csv", "correlations between the features that half of the folds "
               "select", lambda r: _with_rows(r.run.correlations()),
               _columns("model view_a feature_a view_b feature_b", "correlation")),
    ResultFile("feature_locations.csv", "where selected variants, voxels or regions lie",
               lambda r: _with_rows(r.run.feature_locations()),
               _columns("view feature"), _columns("chromosome"), ANY),
    ResultFile(GRIDS, "the grids of views made of images",
               lambda r: json.dumps(r.grids(), indent=1) + "\n" if r.grids() else None),
    ResultFile("few_features.csv", "accuracy with 1, 2, 3, 5, 10 and 20 features on the held-out "
               "folds", lambda r: _with_rows(r.run.few_features()),
               _columns("model limit metric", "features_mean features_min features_max "
                        f"{_ENDS} difference difference_low difference_high chance")),
    ResultFile("few_names.csv", "which features these are, and in how many folds",
               lambda r: _with_rows(r.run.few_names()),
               _columns("model limit view feature", count="folds", share=SHARE)),
    ResultFile("predictions.csv", "every held-out prediction; all figures follow from it and "
               "selection.csv", lambda r: r.run.predictions,
               {**_FOLD, **_columns("sample", label=ANY, predicted=ANY)},
               _columns("group site probability flags")),
    ResultFile("presence.csv", "which sample has which view", lambda r: r.run.presence(),
               _columns("sample", label=ANY), rest=COUNT),
    ResultFile("participants.csv", "characteristics of the participants, by outcome",
               lambda r: r.run.participants(),
               _columns("view feature level class kind", "mean sd share", "count missing")),
    ResultFile("added_value.csv", "what each view adds to the baseline and to all others",
               lambda r: None if r.added is None else r.added.table,
               _columns("question view model reference metric outcome note",
                        "threshold value value_low value_high reference_value difference low high "
                        "standard_error detectable p p_holm", "people of_people units")),
    ResultFile("reclassification.csv", "who moves across the thresholds when a view is added",
               lambda r: None if r.added is None else _with_rows(r.added.reclassification),
               _columns("question view model reference class",
                        "threshold people up down unchanged net low high")),
    _evaluated("calibration", "agreement of probabilities with observed frequencies",
               _columns("model class measure note", _ENDS)),
    _evaluated("calibration_curve", "the same, as a curve",
               _columns("model class", "predicted observed low high")),
    _evaluated("decision", "net benefit of decisions based on the predictions",
               _columns("model", "threshold net_benefit low high")),
    _evaluated("thresholds", "sensitivity, specificity and predictive values at thresholds",
               _columns("model rule measure note", f"threshold {_ENDS}")),
    _evaluated("subgroups", "metrics in subgroups of the samples",
               _columns("model subgroup level measure note",
                        f"{_ENDS} difference difference_low difference_high", "people cases")),
    ResultFile("learning_curve.csv", "scores against the number of training samples", None,
               _columns("model metric kind", f"people {_ENDS}")),
    ResultFile("sample_size.csv", "number of samples that a study of this kind needs",
               _people_needed,
               _columns("model candidates criterion meaning note", "people", "parameters")),
    ResultFile("harmonisation.csv", "what was removed from the measurements of each site",
               lambda r: _with_rows(r.run.harmonisation()), _columns("view", "", "repeat fold"),
               rest=ANY),
    _evaluated("left_out", "figures that are not given, and why", _columns("model figure reason")),
    ResultFile("folds.csv", "scores of every fold", lambda r: r.run.scores(), _FOLD),
    ResultFile("settings.csv", "settings that were selected in every fold",
               lambda r: r.run.settings, {**_FOLD, **_columns("setting value")}),
    ResultFile("table_folds.md", "the comparison as mean and s.d. over folds; table_folds.tex is "
               "the same", lambda r: r.run.format("markdown", "folds"), of_mean=True),
    ResultFile("table_folds.tex", "", lambda r: r.run.format("latex", "folds"), of_mean=True),
    ResultFile("study.toml", "the study as it was run", of_mean=True),
    # Written last, as it lists the others.
    ResultFile(RECORD, "counts, versions, notes and findings, for programs that read this folder"),
)  # fmt: skip
"""Every file that `baldur evaluate` may write, in the order of reading."""

OF_VALIDATION = (
    ResultFile("scores.csv", "scores of the model in the new cohort", columns=_FOLD),
    ResultFile("development.csv", "the figures of the study in which the model was developed",
               columns=_columns("metric", _ENDS)),
    ResultFile("shift_views.csv", "how far predictors lie from those of the training, by view",
               columns=_columns("view worst",
                                "mean_shift spread_ratio outside worst_shift absent",
                                "features far"), rest=ANY),
    ResultFile("shift_features.csv", "the same, by feature", columns=_columns("view feature"),
               rest=ANY),
    ResultFile("recalibration.csv", "intercept and slope of recalibrated versions of the model",
               columns=_columns("version", "intercept slope"), rest=ANY),
)  # fmt: skip
"""Tables that `baldur validate` writes besides those above."""

TABLES = {file.table: file for file in (*FILES, *OF_VALIDATION) if file.name.endswith(".csv")}
"""Every table that a results folder may hold, by its name."""

RESULT_FILES = frozenset({INDEX, *(file.name for file in FILES)})
"""Names that a set of results may have; a new set removes those it does not have."""

RECALIBRATED = "recalibrated_"
"""Begins the names of the tables of a recalibrated model."""
_EVALUATED = ("predictions", "scores", *(f.name for f in fields(Evaluation)))
VALIDATION_TABLES = (
    *_EVALUATED,
    *(f"{RECALIBRATED}{name}" for name in _EVALUATED),
    *(file.table for file in OF_VALIDATION if file.table != "scores"),
)
"""Every table that `baldur validate` may write."""
VALIDATION_FILES = frozenset({SUMMARY, REPORT, *(f"{name}.csv" for name in VALIDATION_TABLES)})
"""All names the files of a validation may have."""


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


_WANTED = {
    TEXT: "a text",
    COUNTS: "whole numbers, such as 3;0;2",
    NUMBER: "a number",
    SHARE: "a number from 0 to 1",
    COUNT: "a whole number",
}


def _check(column: pd.Series, kind: str, file: Path) -> None:
    """Refuse a column that does not have its type, and say where."""
    if kind == ANY:
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


def digest(content: bytes) -> str:
    """Return the SHA-256 digest of a file's content, as ``run.json`` records it."""
    return hashlib.sha256(content).hexdigest()


def changed_files(folder: str | Path, record: Mapping[str, Any]) -> dict[str, str]:
    """Return which recorded files are missing, or differ from what the study wrote."""
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
