"""StudyResults: the tables and the record of a comparison, from memory or from a folder."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.evaluation.label_matrix import AVERAGE
from baldur.evaluation.record import record_of
from baldur.evaluation.result import NestedResult
from baldur.evaluation.results_reader import (
    TABLES,
    changed_files,
    read_grids,
    read_record,
    read_result_table,
)
from baldur.exceptions import InputError
from baldur.plots.results_tables import Results

HAS = "has_"
"""Begins the columns of `StudyResults.people` that say who has which view."""

_USED = (
    "table", "predictions", "selection", "stability", "views", "view_shares", "presence",
    "participants", "folds", "weights", "settings", "comparisons", "differences", "permutation",
    "intervals", "calibration", "calibration_curve", "decision", "thresholds", "subgroups",
    "learning_curve", "sample_size", "feature_locations", "added_value", "reclassification",
    "few_features", "few_names",
)  # fmt: skip
"""Tables that a page is made from."""


@dataclass
class StudyResults:
    """A finished comparison: its tables by name, and what was compared."""

    results: Results  # Its tables, by the names of their files
    record: dict[str, Any]
    folder: Path | None = None  # The folder it was read from
    problems: list[str] = field(default_factory=list)

    @classmethod
    def from_result(cls, result: NestedResult) -> StudyResults:
        """Build it from a result in memory; tables are computed when they are first used."""
        return cls(Results(result), record_of(result))

    @classmethod
    def from_tables(
        cls,
        tables: Mapping[str, pd.DataFrame],
        record: dict[str, Any],
        grids: Mapping[str, dict[str, Any]] | None = None,
    ) -> StudyResults:
        """Build it from tables that were computed before."""
        return cls(Results.from_tables(tables, grids), record)

    @classmethod
    def from_folder(cls, folder: str | Path) -> StudyResults:
        """Read a results folder; nothing in it is run or unpickled.

        A folder without ``run.json`` or ``table.csv``, or with damaged ones, is refused. Other
        files that are missing or damaged are listed in `problems` and left out.
        """
        place = Path(folder)
        if not (place / "table.csv").is_file():
            raise InputError(
                f"{place} holds no results: it has no table.csv. Give the folder that baldur "
                "evaluate or baldur validate wrote, or a model folder."
            )
        record = read_record(place)
        tables, problems = read_tables(place, _USED, required=("table",))
        problems += _check_classes(tables, record) + _differences(place, record, problems)
        grids: dict[str, dict[str, Any]] = {}
        try:
            grids = read_grids(place)
        except InputError as error:
            problems.append(str(error))
        made = cls.from_tables(tables, record, grids)
        made.folder, made.problems = place, problems
        _check_models(tables["table"], record, place)
        return made

    def table(self, name: str) -> pd.DataFrame:
        """Return a table, empty where there is none."""
        return self.results.frame(name)

    def of_model(self, name: str, model: str) -> pd.DataFrame:
        """Return the rows of a table that belong to a model."""
        table = self.table(name)
        if "model" not in table:
            return table.iloc[:0]
        return table[table["model"] == model].reset_index(drop=True)

    @cached_property
    def people(self) -> pd.DataFrame:
        """One row per person: sample, label, site where known, and ``has_<view>``."""
        made = self.table("presence")
        predicted = self.table("predictions")
        if "site" in predicted and "sample" in made:
            sites = predicted.drop_duplicates("sample").set_index("sample")["site"]
            made = made.assign(site=made["sample"].map(sites).fillna("").astype(str))
        if "label" in made and not self.classes:
            made = made.assign(label=pd.to_numeric(made["label"], errors="coerce"))
        return made

    @property
    def classes(self) -> list[str]:
        """Classes, the positive one last; empty in regression."""
        return [str(c) for c in self.record.get("classes", [])]

    @property
    def finished(self) -> list[str]:
        """Names of the models that finished every fold."""
        failed = self.record.get("failures", {})
        return [m for m in self.record.get("models", []) if m not in failed]

    @property
    def with_all_views(self) -> list[str]:
        """Those of the finished models that get all views."""
        some = self.record.get("view_sets", {})
        return [m for m in self.finished if m not in some]


def read_tables(
    folder: Path, names: tuple[str, ...], required: tuple[str, ...] = ()
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


def _differences(folder: Path, record: dict[str, Any], known: list[str]) -> list[str]:
    """Return sentences about files that are not those the study wrote."""
    made = []
    files = record.get("files")
    if files is None:
        return ["run.json does not list the files of the study, so changes to them go unseen."]
    for name, what in changed_files(folder, record).items():
        if any(str(folder / name) in text for text in known):
            continue  # said already, and in more detail
        if what == "missing":
            made.append(f"{name} is missing. The page leaves out what it would show.")
        else:
            made.append(f"{name} was changed after the study had written it.")
    others = [f"{name}.csv" for name in TABLES if f"{name}.csv" not in files]
    others = [name for name in others if (folder / name).is_file()]
    return made + [f"{name} is not a file that the study wrote." for name in others]


def _check_classes(tables: dict[str, pd.DataFrame], record: dict[str, Any]) -> list[str]:
    """Drop predictions whose classes are not those of the study, and add a sentence about it."""
    predictions = tables["predictions"]
    if not len(predictions.columns):
        return []
    wanted = {f"p_{name}" for name in record["classes"]}
    found = {c for c in map(str, predictions) if c.startswith("p_")}
    if wanted == found:
        return []
    tables["predictions"] = pd.DataFrame()
    return [
        "predictions.csv and run.json name different classes. The page leaves out what "
        "predictions.csv would show."
    ]


def _check_models(table: pd.DataFrame, record: dict[str, Any], folder: Path) -> None:
    rows = table[table["outcome"] == AVERAGE] if "outcome" in table else table
    if list(rows["model"]) != record["models"]:
        raise InputError(
            f"{folder}: table.csv and run.json name different models, so they are not of one "
            "study. Run the study again, or restore the files."
        )
