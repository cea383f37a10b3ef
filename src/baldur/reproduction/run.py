"""reproduce: one of the paper's studies from its data to the page; continues when interrupted."""

from __future__ import annotations

import json
import os
import shlex
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
from sklearn.base import clone

from baldur.core.atomic_io import LOCK, PART, folder_lock, make_folder, write_atomically
from baldur.core.parameters import Constraint, check, integer
from baldur.datasets.simulated_outcomes import SCALE
from baldur.evaluation import NestedResult
from baldur.evaluation.design import Comparison
from baldur.evaluation.nested import fit_all_rows
from baldur.evaluation.progress import Progress
from baldur.evaluation.results import Results
from baldur.exceptions import BaldurError, InputError
from baldur.report import report_study
from baldur.report.render import check_extra
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.page import FIGURES, html_of, markdown_of, page_of
from baldur.reproduction.protocol import (
    PAPER,
    START_FACTORS,
    STUDY,
    Protocol,
    protocol_of,
    simulated_study,
    study_of_files,
)
from baldur.study import evaluate_study
from baldur.study.check import StudyCheck
from baldur.study.config import LARGEST_SEED

SEED = Constraint(
    lambda v: integer(0).is_legal(v) and v <= LARGEST_SEED, f"an integer from 0 to {LARGEST_SEED:,}"
)
REQUEST = "reproduction.json"
"""What was asked for when the folder was made."""
PAGE = "reproduction"
"""Name of the page, without ending."""


@dataclass(frozen=True)
class Reproduction:
    """A finished reproduction: its page, and the study behind it.

    Attributes
    ----------
    page, markdown : Path
        The page as HTML and as Markdown.
    study : Results
        The tables of the comparison, in its results folder.
    evidence : Evidence
        The figures that decided the claims.
    """

    page: Path
    markdown: Path
    study: Results
    evidence: Evidence


def reproduce(
    study: str,
    folder: str | Path,
    *,
    scale: float | None = None,
    quick: bool = False,
    data: str | Path | None = None,
    seed: int = 0,
    n_jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
    on_check: Callable[[StudyCheck], None] | None = None,
) -> Reproduction:
    """Run one of the paper's two studies and write the page about it.

    The folder becomes an ordinary study with a results folder. The same call after an interruption
    continues, and gives the same bytes as one that was not interrupted.

    Parameters
    ----------
    study : {"biofind", "adni"}
        Which study.
    folder : str or Path
        Where to write.
    scale : float, optional
        Share of the wide views to simulate; default 1 for "biofind" and 0.2 for "adni", and less
        with `quick`.
    quick : bool, default=False
        A small cohort, five outer folds and no search of settings: minutes instead of hours.
    data : str or Path, optional
        Folder with a user's own files, instead of simulated ones; their names are in
        ``docs/howto/reproduction.md``.
    seed : int, default=0
        Of the simulation, the folds and the models.
    n_jobs : int, default=1
        Processes; -1 for all cores. Results do not change.
    progress : callable, optional
        Called with a `Progress` after every job.
    on_check : callable, optional
        Called with the `StudyCheck` before anything is fitted.

    Returns
    -------
    Reproduction
    """
    protocol = protocol_of(study)
    if data is not None and scale is not None:
        raise InputError("scale is for simulated data; leave it out where data are given.")
    if data is None:
        if scale is None:
            scale = protocol.quick_scale if quick else protocol.scale
        check("scale", scale, SCALE)
    check("seed", seed, SEED)
    check_extra()
    folder = make_folder(folder)
    with folder_lock(folder, wait=False) as is_alone:
        if is_alone:  # no other process is writing them
            _remove_parts(folder)
        request = _claimed(folder, protocol, scale, quick, data, seed)
        try:
            if data is None:
                assert scale is not None
                config = simulated_study(protocol, folder, scale, seed, quick)
            else:
                config = study_of_files(protocol, folder, Path(data), seed, quick)
        except BaldurError:
            # A request that cannot be met must not keep the folder from a corrected one.
            if not (folder / STUDY).exists():
                (folder / REQUEST).unlink()
            raise
        done = evaluate_study(config, n_jobs=n_jobs, progress=progress, on_check=on_check)
        report_study(done)
        evidence = _evidence(protocol, done, folder if data is None else None)
        make_folder(folder / FIGURES)
        page = page_of(evidence, request, folder)
        html, markdown = folder / f"{PAGE}.html", folder / f"{PAGE}.md"
        write_atomically(html, html_of(page).encode())
        write_atomically(markdown, markdown_of(page).encode())
    return Reproduction(html, markdown, done, evidence)


def _remove_parts(folder: Path) -> None:
    """Remove half-written files of a run that was killed."""
    for part in [*folder.glob(f".*{PART}"), *folder.glob(f"*/.*{PART}")]:
        part.unlink(missing_ok=True)


def _claimed(
    folder: Path, protocol: Protocol, scale: float | None, quick: bool, data: Any, seed: int
) -> dict[str, Any]:
    """Return what was asked for in a folder; write it into a new one, and refuse another request.

    With the command and the date of the first call, which are on the page.
    """
    request: dict[str, Any] = {
        "study": protocol.name,
        "scale": None if scale is None else float(scale),
        "quick": quick,
        "seed": seed,
        "data": None if data is None else str(Path(data).resolve()),
    }
    file = folder / REQUEST
    if file.is_file():
        try:
            earlier = json.loads(file.read_text(encoding="utf-8"))
            differing = [key for key in request if earlier[key] != request[key]]
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"{file} is damaged ({error}); choose another folder.") from error
        if differing:
            key = differing[0]
            raise InputError(
                f"{folder} holds a reproduction with {key} = {earlier[key]!r}, and "
                f"this one has {request[key]!r}; choose another folder."
            )
        return dict(earlier)
    if any(file.name != LOCK and not file.name.endswith(PART) for file in folder.iterdir()):
        raise InputError(f"{folder} holds other files; choose an empty folder or a new one.")
    # The date of reproducible builds, where one is set.
    moment = int(os.environ.get("SOURCE_DATE_EPOCH") or time.time())
    words = ["baldur", "reproduce", protocol.name]
    words += ["--quick"] if quick else []
    # The page prints the command; where a user's folder is stays in this file.
    name = "" if data is None else Path(request["data"]).name
    words += ["--data", name] if scale is None else ["--scale", f"{scale:.15g}"]
    words += ["--seed", str(seed)] if seed else []
    request["command"] = shlex.join(words)
    request["date"] = time.strftime("%Y-%m-%d", time.gmtime(moment))
    write_atomically(file, (json.dumps(request, indent=1) + "\n").encode())
    return request


def _evidence(protocol: Protocol, done: Results, simulated: Path | None) -> Evidence:
    """Return the figures of a run; `simulated` is the folder of a cohort with a known truth."""
    result = done.run
    if not isinstance(result, NestedResult):
        raise TypeError("the paper's studies have one outcome each")
    ran = PAPER in result.models and PAPER not in result.failures
    # Only the study of BioFIND has a claim about the number of factors.
    factors = _live_factors(result.comparison) if ran and protocol.name == "biofind" else None
    return Evidence(
        protocol,
        result,
        None if simulated is None else pd.read_csv(simulated / "truth.csv", dtype={"feature": str}),
        factors,
        {name: f"failed: {why.rstrip('.')}" for name, why in result.failures.items()},
    )


def _live_factors(comparison: Comparison) -> int:
    """Fit the paper's posterior on all people from several factors; return how many are live."""
    model = comparison.model(PAPER)
    several = clone(model.estimator).set_params(n_factors=START_FACTORS)
    changed = replace(comparison, models=[replace(model, estimator=several)])
    fitted, _ = fit_all_rows(changed, PAPER)
    return int(fitted.n_factors_)
