"""The commands of a study (evaluate, report, demo, reproduce), and of a model."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from baldur.cli.screen import Screen
from baldur.core.escape import printable
from baldur.exceptions import InputError

StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY.TOML")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Processes; -1 for all cores. Results do not change.")
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="Another folder from which the study may read files; may be repeated."
    ),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print only the result and errors.")]
Results = Annotated[
    Path | None,
    typer.Option(
        "--out", help="Folder for the results; by default the one named in the study file."
    ),
]
ModelFolder = Annotated[Path, typer.Argument(help="Model folder, from baldur fit.")]
Missing = Annotated[
    str, typer.Option(help="What to do if a file lacks columns of the model: 'error' or 'impute'.")
]

# A scheduler that has ended does not answer when the connection is closed.
_SECONDS_TO_PART = 5
_FEWEST_TO_COMPARE = 20
_RESUME = "Finished jobs are kept; the same command continues."


@contextmanager
def stoppable(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Stopped. {advice}", err=True)
        raise typer.Exit(130) from None


def check_jobs(jobs: int) -> None:
    """Refuse a number of processes that is neither positive nor -1."""
    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs must be a positive number or -1, but got {jobs}.")


def evaluate(
    study_file: StudyFile,
    jobs: Jobs = 1,
    out: Results = None,
    fresh: Annotated[
        bool, typer.Option("--fresh", help="Run all jobs again, also those that are finished.")
    ] = False,
    check: Annotated[
        bool,
        typer.Option(
            "--check",
            help="Read the data, print the planned jobs and the estimated time, and stop.",
        ),
    ] = False,
    strict: Annotated[
        bool,
        typer.Option("--strict", help="Stop with an error if a check of the data finds a problem."),
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(
            help="Run one part of the jobs, such as 3/20 (part 3 of 20), for a job array."
        ),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Run on a Dask cluster: address of its scheduler, tcp://HOST:PORT."),
    ] = None,
    report: Annotated[
        bool, typer.Option(help="Write report.html beside the results, see baldur report.")
    ] = True,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Compare the models of a study by nested cross-validation.

    The same command continues after an interruption: finished jobs are kept in the output folder.
    Several machines can share the work, see docs/howto/cluster.md.
    """
    check_jobs(jobs)
    if scheduler is not None and (shard is not None or jobs != 1):
        raise InputError(
            "--scheduler cannot be combined with --jobs or --shard, because the "
            "cluster distributes the jobs."
        )
    if shard is not None and fresh:
        raise InputError(
            "--fresh with --shard would remove what other shards have done; remove the folder "
            "'jobs' in the output folder first."
        )
    screen = Screen(quiet)
    with screen.busy(f"Reading {study_file}"):
        from baldur.study import load_study

        config = load_study(study_file, roots=data or [])
    if check:
        _check(config, jobs, strict, screen)
        return
    with _cluster(scheduler) as client:
        done = _run(
            config, screen, n_jobs=jobs, output=out, fresh=fresh, strict=strict, shard=shard,
            client=client,
        )  # fmt: skip
        if report:
            _write_page(done, screen)
    if done.record["failures"]:
        raise typer.Exit(1)


def _check(config: Any, jobs: int, strict: bool, screen: Screen) -> None:
    """Show what a study is going to do; if `strict`, refuse one with findings in its data."""
    from baldur.study import check_study

    with screen.busy("Reading the data, and fitting each model on a part of them"):
        check = check_study(config, n_jobs=jobs)
    screen.check(check)
    if strict:
        check.refuse_findings(config)
    if check.findings:
        n = len(check.findings)
        warnings = "warning" if n == 1 else f"{n} warnings"
        screen.say(f"The study can run; look at the {warnings} first.")
    else:
        screen.say("The study file and its data are in order.")


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Yield a client of a Dask cluster, or None without an address."""
    if address is None:
        yield None
        return
    from baldur.evaluation.dask_runner import connect

    client = connect(address)
    # Dask logs the whole stack of a lost connection; the one line of ours says what to do.
    logging.disable(logging.ERROR)
    try:
        yield client
    finally:
        client.close(timeout=_SECONDS_TO_PART)
        logging.disable(logging.NOTSET)


def _run(config: Any, screen: Screen, **keywords: Any) -> Any:
    """Run a study, show its table and return its `Results`; one with jobs left ends the command."""
    from baldur.exceptions import UnfinishedError
    from baldur.study import evaluate_study

    on_check = None if screen.quiet else screen.check
    try:
        with stoppable(_RESUME), screen.progress() as on_progress:
            done = evaluate_study(config, progress=on_progress, on_check=on_check, **keywords)
    except UnfinishedError as error:
        screen.result(str(error))
        for model, reason in error.failures.items():
            screen.result(f"{model} failed: {reason}")
        raise typer.Exit(1 if error.failures else 0) from None
    screen.study(done)
    screen.result(f"Results: {done.folder}")
    return done


def _write_page(done: Any, screen: Screen, model: Any = None) -> None:
    """Write the report page of new results."""
    from baldur.report import report_study

    screen.report(lambda: report_study(done, model=model))


def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="Folder of results (baldur evaluate or validate), or model folder (baldur fit).",
            metavar="RUN",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="HTML file to write; by default report.html in the folder."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="With a results folder: model folder (from baldur fit) of the model fitted on "
            "all samples. Adds its "
            "intervals, interchangeable features and the calculator.",
        ),
    ] = None,
    people: Annotated[
        str,
        typer.Option(
            help="How individual samples are shown: 'hidden' (no identifiers), 'named', or 'none'."
        ),
    ] = "hidden",
    title: Annotated[
        str | None, typer.Option(help="Title of the page; by default the title of the study.")
    ] = None,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page about a study, a validation or a model.

    The page is a single file that opens in any browser, also from a USB stick: nothing is loaded
    and nothing is sent. It has the answer in words, checks with codes, figures, tables to sort and
    search, a calculator, a methods paragraph, TRIPOD+AI items, and the commands that reproduce the
    study. See docs/howto/report.md.
    """
    gc.disable()  # the process ends with the page: looking for garbage takes a tenth of the time
    from baldur.report import report_folder

    screen = Screen(quiet)
    with screen.busy(f"Reading {run}"):
        page = report_folder(run, out, model=model, people=people, title=title)
    screen.result(f"Report: {page}")


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path("baldur-demo"),
    jobs: Jobs = -1,
    quiet: Quiet = False,
) -> None:
    """Write a small simulated study, compare five models, and write the report page.

    The study resembles BioFIND: five views, one of them genotypes, with the signal in seven
    sleep items. Takes less than two minutes on two cores.
    """
    from baldur.saving import save
    from baldur.study import fit_study, load_study
    from baldur.study.fit import summary_of
    from baldur.study.simulate import write_demo

    screen = Screen(quiet)
    file = out / "study.toml"
    if not file.exists():
        file = write_demo(out)
    screen.say(f"Study: {file}")
    check_jobs(jobs)
    config = load_study(file)
    done = _run(config, screen, n_jobs=jobs)
    if done.record["failures"]:
        raise typer.Exit(1)
    with stoppable("The table is done."), screen.busy("Fitting BALDUR on all rows"):
        saved, _ = fit_study(config, "BALDUR", n_jobs=jobs)
    model = save(saved, out / "model", overwrite=True)
    screen.result(f"\nBALDUR on all {saved.details['samples']} rows: {summary_of(saved)}\n")
    screen.result(f"Model: {model}")
    _write_page(done, screen, saved)
    screen.say(f"Run it again, or change it and run:  baldur evaluate {file}")


def reproduce(
    study: Annotated[str, typer.Argument(help="Study of the paper: biofind or adni.")],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Folder to write; by default reproduction-STUDY."),
    ] = None,
    scale: Annotated[
        float | None,
        typer.Option(
            help="Share of the genotypes or voxels to simulate; by default 1 for biofind and 0.2 "
            "for adni, with --quick 0.005 and 0.01."
        ),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help="A small cohort, five folds and no search of settings: minutes."
        ),
    ] = False,
    data: Annotated[
        Path | None,
        typer.Option(
            "--data", help="Folder with your own files of the study, instead of simulated data."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the simulation, the folds and models.")] = 0,
    jobs: Jobs = 1,
    quiet: Quiet = False,
) -> None:
    """Run one of the paper's two studies again, and write a page that compares the results.

    The data are simulated with the shape of the paper's cohorts, or your own. The page has our
    table beside the printed one, the paper's figures, and which of its claims the run reproduces.
    The same command continues after an interruption. See docs/howto/reproduction.md.
    """
    from baldur import reproduction

    check_jobs(jobs)
    screen = Screen(quiet)
    with stoppable(_RESUME), screen.progress() as on_progress:
        done = reproduction.reproduce(
            study,
            out or Path(f"reproduction-{study}"),
            scale=scale,
            quick=quick,
            data=data,
            seed=seed,
            n_jobs=jobs,
            progress=on_progress,
        )
    screen.result(done.study.run.format("text", "folds"))
    screen.result(f"Results: {done.study.folder}")
    screen.result(f"Page: {done.page} (Markdown: {done.markdown})")
    if done.study.run.failures:
        raise typer.Exit(1)


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
    from baldur.saving.folder_files import read_folder
    from baldur.study import fit_study, load_study
    from baldur.study.fit import summary_of

    check_jobs(jobs)
    if (out / "manifest.json").exists() and not force:
        raise InputError(f"{out} holds a model; choose another folder, or replace it with --force.")
    screen = Screen(quiet)
    config = load_study(study_file, roots=data or [])
    chosen = config.models[0].label if model is None else model
    if any(e.label == chosen and e.name not in SAVED_MODELS for e in config.models):
        raise InputError(
            f"{chosen} cannot be saved: model folders have BALDUR and its mean-field form only. "
            "Name one of them with --model, or save the baseline from Python with skops, as "
            "docs/howto/models.md shows."
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
    screen.say(f"Identity: {read_folder(out)[0]['identity']}")
    screen.result(f"Model: {out}")


def predict(
    model: ModelFolder,
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
    from baldur.evaluation.cohort_shift import drift_notes
    from baldur.saving import load
    from baldur.study import load_study
    from baldur.study.predict import (
        contributions_of,
        predictions_of,
        read_new_samples,
        shift_from_training,
        shift_in_notes,
    )
    from baldur.views.validate import counted

    _check_missing(missing)
    screen = Screen(quiet)
    config = load_study(study_file, predicting=True, roots=data or [])
    for target in (out, explain, drift):
        if target is not None and str(target) != "-" and not target.parent.is_dir():
            raise InputError(f"{target.parent} is not a folder; create it first.")
    saved = load(model, study=True)
    rows, _, notes = read_new_samples(saved, config, missing=missing)
    with shift_in_notes(notes):
        frame = predictions_of(saved, rows)
    if saved.training:
        views, features = shift_from_training(saved, rows)
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
    model: ModelFolder,
    study_file: StudyFile,
    out: Results = None,
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
    folder = done.folder
    assert folder is not None
    screen.result((folder / "validation.txt").read_text(encoding="utf-8").rstrip())
    screen.result(f"Results: {folder}")
    if report:
        screen.report(lambda: report_folder(folder))


def _check_missing(missing: str) -> None:
    if missing not in ("error", "impute"):
        raise InputError(f"--missing must be 'error' or 'impute', but got {missing!r}.")
