"""evaluate_study: read, check and run a study, and write all its results together."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import sklearn

import baldur
from baldur.evaluation.job_store import JobStore
from baldur.evaluation.nested import run_comparison, run_learning_curve
from baldur.evaluation.progress import Progress
from baldur.evaluation.result_files import JOBS, RESULT_FILES
from baldur.evaluation.results import Results
from baldur.evaluation.run import tasks_of_shard
from baldur.exceptions import InputError, StudyError, UnfinishedError
from baldur.study.check import StudyCheck, check_study
from baldur.study.comparison import folds_problem
from baldur.study.config import StudyConfig
from baldur.study.results_folder import (
    add_to_log,
    claim_folder,
    results_folder,
    write_results,
)
from baldur.study.toml_file import study_text


def evaluate_study(
    config: StudyConfig,
    *,
    n_jobs: int = 1,
    output: str | Path | None = None,
    fresh: bool = False,
    shard: str | None = None,
    client: Any = None,
    progress: Callable[[Progress], None] | None = None,
    strict: bool = False,
    on_check: Callable[[StudyCheck], None] | None = None,
) -> Results:
    """Run the nested cross-validation a study describes and write the results.

    Finished jobs are kept in the output folder; the same call after an interruption continues.

    Parameters
    ----------
    config : StudyConfig
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
    Results
        The tables of the study by name (`table`), its `record`, `folder` and, as `run`, the
        `NestedResult` that they are computed from.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import evaluate_study, load_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> options = {"models": ["Dummy"], "folds": {"outer": 2}}
    >>> file = simulate_study("biofind", folder.name, scale=1e-5, **options)
    >>> study = evaluate_study(load_study(file))
    >>> sorted(path.name for path in study.folder.glob("t*.csv"))
    ['table.csv', 'thresholds.csv']
    >>> folder.cleanup()
    """
    if shard is not None:
        tasks_of_shard(shard)  # refuses what is not written like 3/20
    folder = results_folder(config, output)
    # Trial fits are made where the estimate of the time is shown, and not for a part of the jobs.
    trial = on_check is not None and shard is None
    check = check_study(config, n_jobs=n_jobs, trial=trial)
    data, comparison = check.data, check.comparison
    if on_check is not None:
        on_check(check)
    if strict:
        check.refuse_findings(config)
    claim_folder(config, folder, RESULT_FILES, fresh=fresh)
    log = partial(add_to_log, folder)
    log(f"study {config.file.resolve()} with {n_jobs} process(es)")
    log(
        f"baldur {baldur.__version__}, Python {platform.python_version()}, numpy "
        f"{np.__version__}, scikit-learn {sklearn.__version__}"
    )
    log(f"{len(data.data)} samples, {comparison.n_features} features")
    for note in data.notes:
        log(f"note: {note}")
    for finding in check.findings:
        log(f"warning: {finding}")
    if fresh:
        JobStore(folder / JOBS).clear()
    reused = 0  # jobs that an earlier call had done

    def watch(state: Progress) -> None:
        nonlocal reused
        reused = state.reused
        if progress is not None:
            progress(state)

    started = time.monotonic()
    running = {"client": client, "n_jobs": n_jobs, "progress": watch, "store": folder / JOBS}
    try:
        result = run_comparison(comparison, shard=shard, **running)
    except InputError as error:
        log(f"stopped: {error}")
        raise folds_problem(config, data, error) from error
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
    curve = None
    if config.report.learning_curve and not result.outcomes:
        # Whichever process has the whole result does this part alone, in the same store.
        try:
            curve = run_learning_curve(
                comparison, full=result, shares=config.report.learning_curve, **running
            )
        except InputError as error:
            data.notes.append(f"There is no learning curve: {str(error).rstrip('.')}")
            log(f"note: {data.notes[-1]}")
    report = config.report
    results = Results(
        result,
        tables={} if curve is None else {"learning_curve": curve},
        record={
            "title": config.title,
            "outcome": config.outcome.column,
            "seed": config.seed,
            "scheme": config.folds.scheme,
            "inner": config.folds.inner,
            "scale": config.preparation.scale,
            "regress_out": config.covariates.regress_out,
            "prevalence": report.prevalence,
            "findings": [str(finding) for finding in check.findings],
            "notes_on_data": list(data.notes),
            "left_out": data.left_out,
        },
        evaluation={"subgroups": data.subgroups, **report.clinical_options()},
        # Thresholds that are chosen for a sensitivity or specificity differ between view sets.
        added_value={"thresholds": report.thresholds, "prevalence": report.prevalence},
    )
    write_results(results, folder, study_text(config))
    if missing := result.added_value_missing:
        log(f"note: Added value: {missing.rstrip('.')}")
    log(f"finished in {time.monotonic() - started:.1f} s; {reused} jobs were done before")
    return results
