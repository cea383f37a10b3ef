"""evaluate_study: run a study and write its results, all of them or none."""

from __future__ import annotations

import json
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import sklearn

import baldur
from baldur.atomic_io import replace_files
from baldur.evaluation import (
    NestedResult,
    Progress,
    people_needed,
    run_comparison,
    run_learning_curve,
)
from baldur.evaluation.record import record_of
from baldur.evaluation.results_folder import RECORD, digest
from baldur.evaluation.shard import Shard
from baldur.evaluation.store import JobStore
from baldur.exceptions import InputError, StudyError, UnfinishedError
from baldur.safety.escape import one_line
from baldur.safety.spreadsheet import csv_text
from baldur.study.check import StudyCheck, check_study, folds_problem
from baldur.study.index import INDEX, REPORT, index_text
from baldur.study.load import Study
from baldur.study.output import Log, claim_folder, results_folder
from baldur.study.toml_writer import dump_toml

__all__ = ["EvaluatedStudy", "evaluate_study", "write_results"]

JOBS = "jobs"

RESULT_FILES = frozenset(
    {
        INDEX,
        "calibration.csv", "calibration_curve.csv", "comparisons.csv", "correlations.csv",
        "decision.csv", "differences.csv", "folds.csv", "grids.json", "harmonisation.csv",
        "intervals.csv", "learning_curve.csv", "left_out.csv", "participants.csv",
        "permutation.csv", "places.csv",
        "predictions.csv", "presence.csv", REPORT, RECORD, "sample_size.csv",
        "selection.csv", "settings.csv",
        "stability.csv", "study.toml", "subgroups.csv", "table.csv", "table.md", "table.tex",
        "table.txt", "table_folds.md", "table_folds.tex", "thresholds.csv", "view_shares.csv",
        "views.csv", "weights.csv",
    }
)  # fmt: skip
"""All names a set of results may have; a new set removes those it does not have."""


@dataclass
class EvaluatedStudy:
    """A finished study: its result, its folder, and notes for the reader."""

    result: NestedResult
    folder: Path
    notes: list[str] = field(default_factory=list)


def evaluate_study(
    study: Study,
    *,
    n_jobs: int = 1,
    output: str | Path | None = None,
    fresh: bool = False,
    shard: str | None = None,
    client: Any = None,
    progress: Callable[[Progress], None] | None = None,
    strict: bool = False,
    on_check: Callable[[StudyCheck], None] | None = None,
) -> EvaluatedStudy:
    """Run the nested cross-validation a study describes and write the results.

    Finished jobs are kept in the output folder; the same call after an interruption continues.

    Parameters
    ----------
    study : Study
        As `load_study` returns it.
    n_jobs : int, default=1
        Processes.
    output : str or Path, optional
        Folder for the results, instead of the study's own, which has to lie below its folder.
    fresh : bool, default=False
        Do every job again.
    shard : str, optional
        Such as "3/20": do the third of twenty parts of the work. Whichever part ends last writes
        the results; the others leave with `UnfinishedError`.
    client : distributed.Client, optional
        A Dask cluster to run on, instead of processes of this machine.
    progress : callable, optional
        Called with a `Progress` after every job.
    strict : bool, default=False
        Refuse data that look wrong, instead of noting it in the log.
    on_check : callable, optional
        Called with the `StudyCheck` before anything is fitted.

    Returns
    -------
    EvaluatedStudy
    """
    if shard is not None:
        Shard.of(shard)
    folder = results_folder(study, output)
    # The time of the jobs is worth a trial only if somebody is told, and not for a part of them.
    check = check_study(study, n_jobs=n_jobs, trial=on_check is not None and shard is None)
    found = check.data
    if on_check is not None:
        on_check(check)
    if strict:
        check.refuse_findings(study)
    claim_folder(study, folder, RESULT_FILES, fresh=fresh)
    log = Log(folder / "log.txt")
    log(f"study {study.file.resolve()} with {n_jobs} process(es)")
    log(
        f"baldur {baldur.__version__}, Python {platform.python_version()}, numpy "
        f"{np.__version__}, scikit-learn {sklearn.__version__}"
    )
    log(f"{found.data.shape[0]} samples, {found.data.n_features} features")
    for note in found.notes:
        log(f"note: {note}")
    for finding in check.findings:
        log(f"warning: {finding}")
    if fresh:
        JobStore(folder / JOBS).clear()
    reused = 0

    def watch(state: Progress) -> None:
        nonlocal reused
        reused = state.reused
        if progress is not None:
            progress(state)

    started = time.monotonic()
    how = {"client": client, "n_jobs": n_jobs, "progress": watch, "store": folder / JOBS}
    try:
        result = run_comparison(check.comparison, shard=shard, **how)
    except InputError as error:
        log(f"stopped: {error}")
        raise folds_problem(study, error) from error
    except UnfinishedError as error:
        log(str(error))
        raise
    except StudyError as error:
        log(f"stopped: {error}")
        raise
    for model, notes in result.notes.items():
        for note in notes:
            log(f"{model}: {note}")
    for model, reason in result.failures.items():
        log(f"{model} failed: {reason}")
    for model, fits in result.fits.items():
        log(f"{model}: {sum(f.seconds for f in fits):.1f} s in {len(fits)} outer fits")
    learned = None
    if study.report["learning_curve"]:
        # Whoever has the whole result does this part alone, in the same store.
        try:
            learned = run_learning_curve(
                check.comparison, full=result, shares=study.report["learning_curve"], **how
            )
        except InputError as error:
            found.notes.append(f"There is no learning curve: {str(error).rstrip('.')}")
            log(f"note: {found.notes[-1]}")
    findings = [str(finding) for finding in check.findings]
    said = {"findings": findings, "notes_on_data": list(found.notes)}
    write_results(result, folder, study, found.subgroups, learned, said)
    log(f"finished in {time.monotonic() - started:.1f} s; {reused} jobs were done before")
    return EvaluatedStudy(result, folder, found.notes)


def write_results(
    result: NestedResult,
    folder: Path,
    study: Study | None = None,
    subgroups: pd.DataFrame | None = None,
    learned: pd.DataFrame | None = None,
    said: dict[str, Any] | None = None,
) -> None:
    """Write every file of the output folder, in place of those of an earlier run.

    Parameters
    ----------
    result : NestedResult
        What to write.
    folder : Path
        Where to; it must exist.
    study : Study, optional
        Written as ``study.toml``, as resolved; says thresholds and prevalence.
    subgroups : DataFrame, optional
        One row per sample, ids as index, one column per way of parting the people.
    learned : DataFrame, optional
        The learning curve.
    said : dict, optional
        What else ``run.json`` is to hold: findings about the data.
    """
    stability = result.stability()
    frames: dict[str, pd.DataFrame] = {
        "table.csv": result.table(),
        "predictions.csv": result.predictions,
        "selection.csv": result.selection,
        "folds.csv": result.scores(),
        "comparisons.csv": result.compare(),
        "stability.csv": stability.index,
        "views.csv": stability.views,
        "view_shares.csv": result.view_shares(),
        "presence.csv": result.presence(),
        "participants.csv": result.participants(),
        "weights.csv": result.weights(),
        "settings.csv": result.settings,
    }
    if len(result.predictions):
        wanted = {} if study is None else _wanted(study)
        frames.update(result.evaluation(subgroups=subgroups, **wanted).frames())
        frames["sample_size.csv"] = people_needed(result)
    if learned is not None:
        frames["learning_curve.csv"] = learned
    for name, frame in (("correlations", result.correlations()), ("places", result.places())):
        if len(frame):
            frames[f"{name}.csv"] = frame
    if len(harmonised := result.harmonisation()):
        frames["harmonisation.csv"] = harmonised
    if any(result.permuted.values()):
        frames["permutation.csv"] = result.permutation_test()
    contents = {name: csv_text(frame).encode() for name, frame in frames.items()}
    if grids := result.grids():
        contents["grids.json"] = (json.dumps(grids, indent=1) + "\n").encode()
    digests = {name: digest(content) for name, content in contents.items()}
    contents["table.md"] = result.format("markdown").encode()
    contents["table.tex"] = result.format("latex").encode()
    contents["table.txt"] = result.format("text").encode()
    contents["table_folds.md"] = result.format("markdown", "folds").encode()
    contents["table_folds.tex"] = result.format("latex", "folds").encode()
    record = {**record_of(result), **({} if study is None else _told(study)), **(said or {})}
    record["files"] = digests
    contents[RECORD] = (json.dumps(record, indent=1) + "\n").encode()
    if study is not None:
        where = study.folder.resolve()
        head = one_line(
            f"# As resolved. To run it from here: baldur evaluate study.toml --data {where}"
        )
        contents["study.toml"] = f"{head}\n{dump_toml(study.as_toml())}".encode()
    title = "" if study is None else study.top["title"]
    contents[INDEX] = index_text(title, {*contents, "log.txt", JOBS}).encode()
    replace_files(folder, contents, RESULT_FILES)


def _wanted(study: Study) -> dict[str, Any]:
    """What the study says about figures beyond the table."""
    asked = {key: study.report[key] for key in ("prevalence", "thresholds")}
    return {key: value for key, value in asked.items() if value is not None}


def _told(study: Study) -> dict[str, Any]:
    """What the study says of itself."""
    return {
        "title": study.top["title"],
        "outcome": study.outcome["column"],
        "seed": study.top["seed"],
        "scheme": study.folds["scheme"],
        "inner": study.folds["inner"],
        "scale": study.preparation["scale"],
        "regress_out": list(study.covariates["regress_out"]),
        "prevalence": study.report["prevalence"],
    }
