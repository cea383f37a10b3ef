"""Write the results of a study to its folder: every file of the registry, and README.txt."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from baldur.core.atomic_io import make_folder, replace_files, write_atomically
from baldur.core.escape import one_line
from baldur.core.spreadsheet import csv_text
from baldur.evaluation.result_files import (
    FILES,
    INDEX,
    JOBS,
    LOG,
    OUTCOMES,
    RECORD,
    REPORT,
    RESULT_FILES,
    TABLES,
)
from baldur.evaluation.results import Results, outcome_folders
from baldur.evaluation.results_reader import digest

if TYPE_CHECKING:
    from baldur.evaluation import MultilabelResult, NestedResult
    from baldur.study.config import StudyConfig

_ABOUT = {file.name: file.about for file in FILES if file.about} | {
    LOG: "what happened, with warnings and times",
    OUTCOMES: "a folder with the results and the page of every outcome",
    JOBS: "finished jobs, so that the same command continues; may be deleted at the end",
}
_FIRST = (REPORT, "table.txt", OUTCOMES, "selection.csv", "views.csv", "predictions.csv")


def write_results(
    result: NestedResult | MultilabelResult,
    folder: Path,
    config: StudyConfig | None = None,
    subgroups: pd.DataFrame | None = None,
    learning_curve: pd.DataFrame | None = None,
    findings: dict[str, Any] | None = None,
) -> Results:
    """Write every file of a results folder, in place of those of an earlier run."""
    evaluation: dict[str, Any] = {"subgroups": subgroups}
    added_value: dict[str, Any] = {}
    if config is not None:
        evaluation |= config.report.clinical_options()
        # Thresholds that are chosen for a sensitivity or specificity differ between view sets.
        report = config.report
        added_value = {"thresholds": report.thresholds, "prevalence": report.prevalence}
    results = Results(
        result,
        tables={} if learning_curve is None else {"learning_curve": learning_curve},
        record={**_description(config), **(findings or {})},
        evaluation=evaluation,
        added_value=added_value,
    )
    places = outcome_folders(list(results.outcomes))
    remove_outcomes(folder, keep=list(places.values()))
    for name, below in places.items():
        _write(results.outcomes[name], make_folder(folder / OUTCOMES / below), study_text(config))
    _write(results, folder, study_text(config))
    return results


def _write(results: Results, folder: Path, study: str | None) -> None:
    """Write a set of result files, all of them or none, and README.txt."""
    contents: dict[str, bytes] = {}
    for file in FILES:
        content: Any = study if file.name == "study.toml" else None
        if file.table in TABLES:
            content = results.table(file.table, every_outcome=True)
            content = csv_text(content) if len(content.columns) else None
        elif file.make is not None and (file.of_mean or not results.outcomes):
            content = file.make(results)
        if content is not None:
            contents[file.name] = content.encode()
    results.record["files"] = {
        name: digest(content)
        for name, content in contents.items()
        if name.endswith((".csv", ".json"))
    }
    contents[RECORD] = (json.dumps(results.record, indent=1) + "\n").encode()
    beside = {path.name for path in folder.iterdir()} - RESULT_FILES
    contents[INDEX] = _index(results, {*contents, *beside}).encode()
    replace_files(folder, contents, RESULT_FILES)
    results.folder = folder


def list_page(results: Results) -> None:
    """Write README.txt again: the page is now the file to open first."""
    assert results.folder is not None
    names = {path.name for path in results.folder.iterdir()}
    write_atomically(results.folder / INDEX, _index(results, names).encode())


def _index(results: Results, names: set[str]) -> str:
    """Return the text of README.txt: what is in a results folder, and what to open first."""
    title = str(results.record.get("title", ""))
    width = max(map(len, _ABOUT))
    lines = {name: f"  {name:<{width}}  {about}" for name, about in _ABOUT.items() if name in names}
    first = [lines[name] for name in _FIRST if name in lines]
    rest = [line for name, line in lines.items() if name not in _FIRST]
    heading = one_line(title) or "Results of a study"
    return "\n".join([heading, "", "Open first:", *first, "", "Then:", *rest]) + "\n"


def study_text(config: StudyConfig | None) -> str | None:
    """Return the study file as it was run, or None without one."""
    if config is None:
        return None
    from baldur.study.toml_file import toml_text

    where = config.folder.resolve()
    head = one_line(
        f"# As resolved. To run it from here: baldur evaluate study.toml --data {where}"
    )
    return f"{head}\n{toml_text(config.as_toml())}"


def _description(config: StudyConfig | None) -> dict[str, Any]:
    """Return what the study file says about itself, for ``run.json``."""
    if config is None:
        return {}
    return {
        "title": config.title,
        "outcome": config.outcome.column,
        "seed": config.seed,
        "scheme": config.folds.scheme,
        "inner": config.folds.inner,
        "scale": config.preparation.scale,
        "regress_out": config.covariates.regress_out,
        "prevalence": config.report.prevalence,
    }


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
