"""The results folder of a study with several outcomes: the mean on top, a folder for each below."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.atomic_io import make_folder
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.record import record_of
from baldur.study.config import StudyConfig
from baldur.study.write_results import (
    JOBS,
    LOG,
    OUTCOMES,
    RESULT_FILES,
    WrittenResults,
    described,
    study_text,
    write_results,
    write_set,
)

_LONGEST_NAME = 60
"""Characters of a folder; file systems allow 255 bytes."""


@dataclass(frozen=True)
class WrittenOutcomes:
    """The tables of a results folder with several outcomes, as they were written."""

    tables: dict[str, pd.DataFrame]
    record: dict[str, Any]  # Content of ``run.json``
    outcomes: dict[str, WrittenResults]  # Of every outcome


def outcome_folders(outcomes: Sequence[str]) -> dict[str, str]:
    """Return the name of the folder of every outcome, which any file system can have.

    Examples
    --------
    >>> from baldur.study.write_outcomes import outcome_folders
    >>> outcome_folders(["stroke", "fall / fracture", "Stroke"])
    {'stroke': 'stroke', 'fall / fracture': 'fall_fracture', 'Stroke': 'Stroke_3'}
    """
    made: dict[str, str] = {}
    taken: set[str] = set()
    for number, name in enumerate(outcomes, 1):
        plain = re.sub(r"[^A-Za-z0-9-]+", "_", name).strip("_")[:_LONGEST_NAME] or "outcome"
        if plain.casefold() in taken:
            plain = f"{plain}_{number}"
        taken.add(plain.casefold())
        made[name] = plain
    return made


def write_outcomes(
    result: MultilabelResult,
    folder: Path,
    config: StudyConfig | None = None,
    subgroups: pd.DataFrame | None = None,
    findings: dict[str, Any] | None = None,
) -> WrittenOutcomes:
    """Write the results of every outcome and of their mean, in place of those of an earlier run."""
    places = outcome_folders(result.outcomes)
    remove_outcomes(folder, keep=list(places.values()))
    written = {}
    for name, place in places.items():
        make_folder(folder / OUTCOMES / place)
        written[name] = write_results(
            result[name], folder / OUTCOMES / place, config, subgroups, None, findings, name
        )
    made = {
        "table.txt": result.format("text"),
        "table.csv": result.table(),
        "table.md": result.format("markdown"),
        "table.tex": result.format("latex"),
        "intervals.csv": result.intervals(),
        "differences.csv": result.differences(),
        "comparisons.csv": result.compare(),
        "permutation.csv": result.permutation_test() if any(result.permuted.values()) else None,
        "table_folds.md": result.format("markdown", "folds"),
        "table_folds.tex": result.format("latex", "folds"),
        "study.toml": study_text(config),
    }
    record = {**record_of(result), **described(config, ""), **(findings or {})}
    tables = write_set(folder, made, record, {LOG, JOBS, OUTCOMES})
    return WrittenOutcomes(tables, record, written)


def remove_outcomes(folder: Path, keep: Sequence[str] = ()) -> None:
    """Remove the results of outcomes that a study does not have any more."""
    above = folder / OUTCOMES
    if above.is_symlink() or not above.is_dir():
        return
    for place in sorted(above.iterdir()):
        if place.name in keep or place.is_symlink() or not place.is_dir():
            continue
        for name in (*RESULT_FILES, ".lock"):
            (place / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's files are in it
            place.rmdir()
    with suppress(OSError):
        above.rmdir()
