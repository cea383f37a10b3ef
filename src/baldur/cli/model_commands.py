"""The commands of a saved model: fit, predict and validate."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from baldur.cli.options import Data, Jobs, Quiet, StudyFile, check_jobs, stoppable
from baldur.cli.screen import Screen
from baldur.core.escape import printable
from baldur.exceptions import InputError

_FEWEST_TO_COMPARE = 20

Missing = Annotated[
    str, typer.Option(help="What to do if a file lacks columns of the model: 'error' or 'impute'.")
]


def fit(
    study_file: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="Model folder to write.")],
    model: Annotated[
        str | None,
        typer.Option("--model", help="Name of the model in the study; by default the first one."),
    ] = None,
    jobs: Jobs = 1,
    force: Annotated[
        bool, typer.Option("--force", help="Replace an existing model folder.")
    ] = False,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Train one model of a study on all rows and save it as a folder."""
    from baldur.core.atomic_io import check_writable, make_folder, write_atomically
    from baldur.core.escape import csv_text
    from baldur.core.model_catalog import SAVED_MODELS
    from baldur.saving import save
    from baldur.saving.folder import read_manifest
    from baldur.study import fit_study, load_study
    from baldur.study.fit import summary_of

    check_jobs(jobs)
    if (out / "manifest.json").exists() and not force:
        raise InputError(f"{out} holds a model; choose another folder, or replace it with --force.")
    screen = Screen(quiet)
    config = load_study(study_file, roots=data or [])
    for entry in config.models:
        chosen = entry.label == (config.models[0].label if model is None else model)
        if chosen and entry.name not in SAVED_MODELS:
            raise InputError(
                f"{entry.label} cannot be saved: model folders have BALDUR and its mean-field form "
                "only. Name one of them with --model, or save the baseline from Python with skops, "
                "as docs/howto/models.md shows."
            )
    check_writable(out if out.is_dir() else make_folder(out.parent))
    with stoppable("Nothing was written."), screen.progress() as on_progress:
        saved, notes = fit_study(config, model, n_jobs=jobs, progress=on_progress)
    save(saved, out, overwrite=force)
    screen.notes(notes)
    details = saved.details
    setting = f": {details['setting']}" if details["setting"] else "."
    screen.say(f"{details['model']} fitted on {details['samples']} samples{setting}")
    table = summary_of(saved)
    if table is not None:
        write_atomically(out / "features.csv", csv_text(table).encode())
        screen.say(printable(str(table)))
    screen.say(f"Identity: {read_manifest(out)['identity']}")
    screen.result(f"Model: {out}")


def predict(
    model: Annotated[Path, typer.Argument(help="Model folder, from baldur fit.")],
    study_file: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="CSV file to write; - for the screen.")],
    missing: Missing = "error",
    explain: Annotated[
        Path | None,
        typer.Option("--explain", help="CSV file to write: what each feature contributes."),
    ] = None,
    drift: Annotated[
        Path | None,
        typer.Option(
            "--drift", help="CSV file to write: how new columns differ from the training columns."
        ),
    ] = None,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Score new samples with a saved model.

    The study file names samples and views as for fit; it needs no outcome and no models. Views
    may be missing for some or all samples. Nothing in a model folder is executed.
    """
    from baldur.core.atomic_io import write_atomically
    from baldur.core.escape import csv_text
    from baldur.evaluation.validation import drift_notes, predictor_shift
    from baldur.saving import load
    from baldur.study import load_study
    from baldur.study.fit import contributions_of, features_used, predictions_of, shift_in_notes
    from baldur.study.new_samples import read_new_samples
    from baldur.views.validate import counted

    _check_missing(missing)
    screen = Screen(quiet)
    config = load_study(study_file, predicting=True, roots=data or [])
    for target in (out, explain, drift):
        if target is not None and str(target) != "-" and not target.parent.is_dir():
            raise InputError(f"{target.parent} is not a folder; create it first.")
    saved = load(model, study=True)
    rows, _, notes, unknown = read_new_samples(saved, config, missing=missing)
    with shift_in_notes(notes):
        frame = predictions_of(saved, rows, unknown=unknown)
    if saved.training:
        views, features = predictor_shift(saved.training, rows, features_used(saved))
        # A few samples have no spread to compare.
        notes += drift_notes(views, features) if len(rows) >= _FEWEST_TO_COMPARE else []
        if drift is not None:
            write_atomically(drift, csv_text(features).encode())
    screen.notes(notes)
    if explain is not None:
        write_atomically(explain, csv_text(contributions_of(saved, rows)).encode())
        screen.say(f"Contributions: {explain}")
    content = csv_text(frame)
    if str(out) == "-":
        typer.echo(printable(content), nl=False)
        return
    write_atomically(out, content.encode())
    screen.result(f"Predictions of {counted(len(frame), 'sample')}: {out}")


def validate(
    model: Annotated[Path, typer.Argument(help="Model folder, from baldur fit.")],
    study_file: StudyFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", help="Folder for the results; by default the one named in the study file."
        ),
    ] = None,
    missing: Missing = "error",
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Replace existing results in the folder.")
    ] = False,
    development: Annotated[
        Path | None,
        typer.Option(
            "--development",
            help="Results folder of the study in which the model was developed, to compare with.",
        ),
    ] = None,
    report: Annotated[bool, typer.Option(help="Write report.html beside the results.")] = True,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Evaluate a saved model, without refitting, on a new cohort.

    The study file names samples, outcome and views; it needs no models. Written are the figures of
    a study with intervals, how the predictors differ from training, and, apart from these, what
    recalibration on the new cohort would give.
    """
    from baldur.report import report_folder
    from baldur.saving import load
    from baldur.study import load_study, validate_study

    _check_missing(missing)
    screen = Screen(quiet)
    config = load_study(study_file, predicting=True, roots=data or [])
    saved = load(model, study=True)
    done = validate_study(
        saved, config, missing=missing, output=out, fresh=fresh, development=development
    )
    screen.result((done.folder / "validation.txt").read_text(encoding="utf-8").rstrip())
    screen.result(f"Results: {done.folder}")
    if report:
        screen.report(lambda: report_folder(done.folder))


def _check_missing(missing: str) -> None:
    if missing not in ("error", "impute"):
        raise InputError(f"--missing must be 'error' or 'impute', but got {missing!r}.")
