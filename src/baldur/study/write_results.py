"""The files of a results folder: one list of names, contents and writers, and README.txt."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pandas as pd

from baldur.core.atomic_io import make_folder, replace_files
from baldur.core.escape import one_line
from baldur.core.spreadsheet import csv_text
from baldur.evaluation import AddedValue, NestedResult
from baldur.evaluation.learning_curve import people_needed
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.record import record_of
from baldur.evaluation.results_reader import RECORD, digest
from baldur.study.config import StudyConfig
from baldur.study.toml_file import toml_text

INDEX = "README.txt"
REPORT = "report.html"
LOG = "log.txt"
JOBS = "jobs"
"""Folder of finished jobs."""
OUTCOMES = "outcomes"
"""Folder of the results of every outcome, where a study has several."""


@dataclass(frozen=True)
class _Run:
    """Data from which the result files are written."""

    result: NestedResult
    config: StudyConfig | None = None
    subgroups: pd.DataFrame | None = None
    learning_curve: pd.DataFrame | None = None
    findings: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def stability(self) -> Any:
        """Agreement of the folds on features and views."""
        return self.result.stability()

    @cached_property
    def clinical(self) -> dict[str, pd.DataFrame]:
        """Intervals, calibration, usefulness and subgroups, by the name of their file."""
        if not len(self.result.predictions):
            return {}
        options = {} if self.config is None else self.config.report.clinical_options()
        return self.result.evaluation(subgroups=self.subgroups, **options).frames()

    @cached_property
    def added(self) -> AddedValue | None:
        """What each view adds; None where it was not asked for, or nothing can be compared.

        The record says why (`added_value_missing`).
        """
        result = self.result
        if not result.has_added_value:
            return None
        options: dict[str, Any] = {}
        if self.config is not None:
            # Thresholds that are chosen for a sensitivity or specificity differ between view sets.
            report = self.config.report
            options = {"thresholds": report.thresholds, "prevalence": report.prevalence}
        return result.added_value(**options)


@dataclass(frozen=True)
class WrittenResults:
    """The tables and the record of a results folder, as they were written."""

    tables: dict[str, pd.DataFrame]  # By the names of their files without ending
    record: dict[str, Any]  # Content of ``run.json``
    grids: dict[str, dict[str, Any]]  # Shape and affine of every view made of images
    added: AddedValue | None = None  # What each view adds, where the study asks for it


@dataclass(frozen=True)
class ResultFile:
    """One file of a results folder."""

    name: str  # Name of the file
    about: str  # What it holds; "" where another line of README.txt says so
    content: Callable[[_Run], pd.DataFrame | str | None]


def _clinical(name: str, about: str) -> ResultFile:
    return ResultFile(name, about, lambda run: run.clinical.get(name))


def _filled(frame: pd.DataFrame) -> pd.DataFrame | None:
    return frame if len(frame) else None


def _permutation_test(run: _Run) -> pd.DataFrame | None:
    return run.result.permutation_test() if any(run.result.permuted.values()) else None


def _sample_size(run: _Run) -> pd.DataFrame | None:
    return people_needed(run.result) if len(run.result.predictions) else None


def _grids(run: _Run) -> str | None:
    grids = run.result.grids()
    return json.dumps(grids, indent=1) + "\n" if grids else None


def study_text(config: StudyConfig | None) -> str | None:
    """Return the study file as it was run, or None without one."""
    if config is None:
        return None
    where = config.folder.resolve()
    head = one_line(
        f"# As resolved. To run it from here: baldur evaluate study.toml --data {where}"
    )
    return f"{head}\n{toml_text(config.as_toml())}"


def described(config: StudyConfig | None, outcome: str | None = None) -> dict[str, Any]:
    """Return what the study file says about itself, for ``run.json``."""
    if config is None:
        return {}
    return {
        "title": ": ".join(part for part in (config.title, outcome) if part),
        "outcome": config.outcome.column if outcome is None else outcome,
        "seed": config.seed,
        "scheme": config.folds.scheme,
        "inner": config.folds.inner,
        "scale": config.preparation.scale,
        "regress_out": config.covariates.regress_out,
        "prevalence": config.report.prevalence,
    }


FILES = (
    ResultFile(REPORT, "the answer on one page, with figures; opens in any browser, without a "
               "network", lambda run: None),
    ResultFile("table.txt", "the comparison, one line per model; table.csv, .md and .tex hold the "
               "same", lambda run: run.result.format("text")),
    ResultFile("table.csv", "", lambda run: run.result.table()),
    ResultFile("table.md", "", lambda run: run.result.format("markdown")),
    ResultFile("table.tex", "", lambda run: run.result.format("latex")),
    _clinical("intervals.csv", "every metric with its interval"),
    _clinical("differences.csv", "differences between models with their intervals"),
    ResultFile("comparisons.csv", "tests of every pair of models, adjusted for multiple testing",
               lambda run: run.result.compare()),
    ResultFile("permutation.csv", "tests against permuted labels", _permutation_test),
    ResultFile("selection.csv", "features: how often they are selected, and their weights, one "
               "row per class", lambda run: run.result.selection),
    ResultFile("views.csv", "how often each view is used, and its share of the variance explained",
               lambda run: run.stability.views),
    ResultFile("view_shares.csv", "the same in every fold", lambda run: run.result.view_shares()),
    ResultFile("stability.csv", "agreement of the folds on the selected features",
               lambda run: run.stability.index),
    ResultFile("weights.csv", "weight of every selected feature in every fold",
               lambda run: run.result.weights()),
    ResultFile("correlations.csv", "correlations between the features that half of the folds "
               "select", lambda run: _filled(run.result.correlations())),
    ResultFile("feature_locations.csv", "where selected variants, voxels or regions lie",
               lambda run: _filled(run.result.feature_locations())),
    ResultFile("grids.json", "the grids of views made of images", _grids),
    ResultFile("few_features.csv", "accuracy with 1, 2, 3, 5, 10 and 20 features on the held-out "
               "folds", lambda run: _filled(run.result.few_features())),
    ResultFile("few_names.csv", "which features these are, and in how many folds",
               lambda run: _filled(run.result.few_names())),
    ResultFile("predictions.csv", "every held-out prediction; all figures follow from it and "
               "selection.csv", lambda run: run.result.predictions),
    ResultFile("presence.csv", "which sample has which view", lambda run: run.result.presence()),
    ResultFile("participants.csv", "characteristics of the participants, by outcome",
               lambda run: run.result.participants()),
    ResultFile("added_value.csv", "what each view adds to the baseline and to all others",
               lambda run: None if run.added is None else run.added.table),
    ResultFile("reclassification.csv", "who moves across the thresholds when a view is added",
               lambda run: None if run.added is None else _filled(run.added.reclassification)),
    _clinical("calibration.csv", "agreement of probabilities with observed frequencies"),
    _clinical("calibration_curve.csv", "the same, as a curve"),
    _clinical("decision.csv", "net benefit of decisions based on the predictions"),
    _clinical("thresholds.csv", "sensitivity, specificity and predictive values at thresholds"),
    _clinical("subgroups.csv", "metrics in subgroups of the samples"),
    ResultFile("learning_curve.csv", "scores against the number of training samples",
               lambda run: run.learning_curve),
    ResultFile("sample_size.csv", "number of samples that a study of this kind needs",
               _sample_size),
    ResultFile("harmonisation.csv", "what was removed from the measurements of each site",
               lambda run: _filled(run.result.harmonisation())),
    _clinical("left_out.csv", "figures that are not given, and why"),
    ResultFile("folds.csv", "scores of every fold", lambda run: run.result.scores()),
    ResultFile("settings.csv", "settings that were selected in every fold",
               lambda run: run.result.settings),
    ResultFile("table_folds.md", "the comparison as mean and s.d. over folds; table_folds.tex is "
               "the same", lambda run: run.result.format("markdown", "folds")),
    ResultFile("table_folds.tex", "", lambda run: run.result.format("latex", "folds")),
    ResultFile("study.toml", "the study as it was run",
               lambda run: study_text(run.config)),
    # Written last, as it lists the others.
    ResultFile(RECORD, "counts, versions, notes and findings, for programs that read this folder",
               lambda run: None),
)  # fmt: skip
"""Every file that a set of results may have, in the order of reading."""

RESULT_FILES = frozenset({INDEX, *(file.name for file in FILES)})
"""Names that a set of results may have; a new set removes those it does not have."""

_ABOUT = {file.name: file.about for file in FILES if file.about} | {
    LOG: "what happened, with warnings and times",
    OUTCOMES: "a folder with the results and the page of every outcome",
    JOBS: "finished jobs, so that the same command continues; may be deleted at the end",
}
_FIRST = (REPORT, "table.txt", OUTCOMES, "selection.csv", "views.csv", "predictions.csv")


def write_results(
    result: NestedResult,
    folder: Path,
    config: StudyConfig | None = None,
    subgroups: pd.DataFrame | None = None,
    learning_curve: pd.DataFrame | None = None,
    findings: dict[str, Any] | None = None,
    outcome: str | None = None,
) -> WrittenResults:
    """Write every file of a results folder, in place of those of an earlier run."""
    run = _Run(result, config, subgroups, learning_curve, findings or {})
    made = {file.name: file.content(run) for file in FILES}
    record = {**record_of(result), **described(config, outcome), **run.findings}
    beside = {LOG, JOBS} if outcome is None else set()
    tables = write_set(folder, made, record, beside)
    return WrittenResults(tables, record, result.grids(), run.added)


def write_set(
    folder: Path,
    made: Mapping[str, pd.DataFrame | str | None],
    record: dict[str, Any],
    beside: Collection[str],
) -> dict[str, pd.DataFrame]:
    """Write a set of result files with ``run.json`` and README.txt, all of them or none."""
    contents = {
        name: (content if isinstance(content, str) else csv_text(content)).encode()
        for name, content in made.items()
        if content is not None
    }
    record["files"] = {
        name: digest(content)
        for name, content in contents.items()
        if name.endswith((".csv", ".json"))
    }
    contents[RECORD] = (json.dumps(record, indent=1) + "\n").encode()
    contents[INDEX] = index_text(record.get("title", ""), {*contents, *beside}).encode()
    replace_files(folder, contents, RESULT_FILES)
    return {
        name.removesuffix(".csv"): content
        for name, content in made.items()
        if isinstance(content, pd.DataFrame)
    }


def index_text(title: str, names: Collection[str]) -> str:
    """Return the text of README.txt: what is in a results folder, and what to open first."""
    width = max(map(len, _ABOUT))
    lines = {name: f"  {name:<{width}}  {about}" for name, about in _ABOUT.items() if name in names}
    first = [lines[name] for name in _FIRST if name in lines]
    rest = [line for name, line in lines.items() if name not in _FIRST]
    heading = one_line(title) or "Results of a study"
    return "\n".join([heading, "", "Open first:", *first, "", "Then:", *rest]) + "\n"


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
    >>> from baldur.study.write_results import outcome_folders
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
