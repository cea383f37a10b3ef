"""Where the numbers of a report come from: a folder of results, a result in memory, a model."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.evaluation.record import SCHEMA, record_of
from baldur.evaluation.result import NestedResult
from baldur.exceptions import InputError
from baldur.plots import Results
from baldur.study.results import RECORD

__all__ = ["Run", "open_run", "run_of"]

HAS = "has_"
"""Begins the columns of `Run.people` that say who has which view."""


@dataclass
class Run:
    """A finished comparison: its tables by name, and what it was.

    Attributes
    ----------
    results : Results
        Its tables, by the names of their files.
    record : dict
        As ``run.json`` holds it.
    folder : Path or None
    """

    results: Results
    record: dict[str, Any]
    folder: Path | None = None

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
        return made

    @property
    def classes(self) -> list[str]:
        """Classes, the positive one last; empty in regression."""
        return [str(c) for c in self.record.get("classes", [])]

    @property
    def finished(self) -> list[str]:
        """Models that have figures."""
        failed = self.record.get("failures", {})
        return [m for m in self.record.get("models", []) if m not in failed]


def run_of(result: NestedResult) -> Run:
    """Return the run behind a result in memory.

    Parameters
    ----------
    result : NestedResult

    Returns
    -------
    Run
    """
    return Run(Results(result), record_of(result))


def open_run(folder: str | Path) -> Run:
    """Read a folder of results; nothing in it is run or unpickled.

    Parameters
    ----------
    folder : str or Path
        As `baldur evaluate` writes it.

    Returns
    -------
    Run
    """
    place = Path(folder)
    if not (place / "table.csv").is_file():
        raise InputError(
            f"{place} holds no results: it has no table.csv. Give the folder that baldur evaluate "
            "wrote, or a model folder."
        )
    return Run(Results(place), _read_record(place / RECORD), place)


def _read_record(file: Path) -> dict[str, Any]:
    if not file.is_file():
        raise InputError(
            f"{file.parent} has no {file.name}: its results are of an earlier version. Run the "
            "study again."
        )
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{file} cannot be read ({error}); run the study again.") from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(
            f"{file} is not of schema {SCHEMA}, which this version reads; run the study again."
        )
    return found
