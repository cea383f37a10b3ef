"""The command and its subcommands.

Exit codes: 0 done; 1 done, but a model failed; 2 the command or a file is not right; 130
interrupted from the keyboard.
"""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

import baldur
from baldur.cli.screen import Screen, screen_table
from baldur.exceptions import BaldurError
from baldur.guard.escape import printable

__all__ = ["app", "main"]

app = typer.Typer(
    name="baldur",
    help="Classify and regress from several wide data views, and compare models in a study.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    epilog="Start with [bold]baldur demo[/bold], or write a study file with "
    "[bold]baldur init[/bold]. Exit codes: 0 done, 1 a model failed, 2 wrong input, "
    "130 interrupted.",
)

# A scheduler that is gone does not answer the good-bye.
_SECONDS_TO_PART = 5

StudyFile = Annotated[Path, typer.Argument(help="Study file (TOML).", metavar="STUDY.TOML")]
Jobs = Annotated[
    int, typer.Option("--jobs", "-j", help="Processes; -1 for all cores. Results do not change.")
]
Data = Annotated[
    list[Path] | None,
    typer.Option(
        "--data", help="A folder the study's files may lie in, besides its own; may be repeated."
    ),
]
_FEWEST_TO_COMPARE = 20

Trust = Annotated[
    bool,
    typer.Option("--trust", help="Open a folder of an old version, whose pickle can run any code."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Only the result and errors.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"baldur {baldur.__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    pass


@app.command()
def init(
    path: Annotated[Path, typer.Argument(help="File to write.")] = Path("study.toml"),
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Write a commented study file to fill in."""
    from baldur.exceptions import InputError
    from baldur.files import write_atomically
    from baldur.study import TEMPLATE

    if path.is_dir():
        path = path / "study.toml"
    if path.exists() and not force:
        raise InputError(f"{path} exists; choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder; make it first.")
    write_atomically(path, TEMPLATE.encode())
    typer.echo(f"Wrote {path}. Fill it in, then run: baldur evaluate {path}")


@app.command()
def evaluate(
    study_file: StudyFile,
    jobs: Jobs = 1,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the results; default the study's.")
    ] = None,
    fresh: Annotated[bool, typer.Option("--fresh", help="Do finished jobs again.")] = False,
    check: Annotated[
        bool, typer.Option("--check", help="Read everything, say what would be done, and stop.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Stop where something looks wrong in the data.")
    ] = False,
    shard: Annotated[
        str | None,
        typer.Option(help="Do one part of the work, such as 3/20, for an array of jobs."),
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
    Several machines can share the work, see docs/cluster.md.
    """
    from baldur.exceptions import InputError

    _check_jobs(jobs)
    if scheduler is not None and (shard is not None or jobs != 1):
        raise InputError("--scheduler takes neither --jobs nor --shard; the cluster has workers.")
    if shard is not None and fresh:
        raise InputError(
            "--fresh with --shard would remove what other shards have done; remove the folder "
            "'jobs' in the output folder first."
        )
    screen = Screen(quiet)
    with screen.busy(f"Reading {study_file}"):
        from baldur.study import load_study

        study = load_study(study_file, roots=data or [])
    if check:
        _check(study, jobs, strict, screen)
        return
    with _cluster(scheduler) as client:
        _evaluate(
            study, screen, report, n_jobs=jobs, output=out, fresh=fresh, strict=strict,
            shard=shard, client=client,
        )  # fmt: skip


def _check(study: Any, jobs: int, strict: bool, screen: Screen) -> None:
    from baldur.study import check_study

    with screen.busy("Looking at the data, and fitting each model once on some of it"):
        check = check_study(study, n_jobs=jobs)
    screen.check(check)
    if strict:
        check.refuse_findings(study)
    if check.findings:
        screen.say(f"The study can run; look at the {len(check.findings)} warnings first.")
    else:
        screen.say("The study file and its data are in order.")


@contextmanager
def _cluster(address: str | None) -> Iterator[Any]:
    """Give a client of a Dask cluster, or None."""
    if address is None:
        yield None
        return
    from baldur.evaluate.cluster import connect

    client = connect(address)
    # Dask logs the whole stack of a lost connection; the one line of ours says what to do.
    logging.disable(logging.ERROR)
    try:
        yield client
    finally:
        client.close(timeout=_SECONDS_TO_PART)
        logging.disable(logging.NOTSET)


def _evaluate(study: Any, screen: Screen, report: bool = True, **keywords: Any) -> Path:
    from baldur.exceptions import UnfinishedError
    from baldur.study import evaluate_study

    kept = "Finished jobs are kept; the same command continues."
    try:
        with _stoppable(kept), screen.progress() as on_progress:
            done = evaluate_study(
                study,
                progress=on_progress,
                on_check=None if screen.quiet else screen.check,
                **keywords,
            )
    except UnfinishedError as error:
        screen.result(str(error))
        for model, reason in error.failures.items():
            screen.result(f"{model} failed: {reason}")
        raise typer.Exit(1 if error.failures else 0) from None
    result = done.result
    for part in screen_table(result, screen.out.width if screen.out.is_terminal else None):
        screen.result(part)
    screen.paired(result)
    screen.result(f"Results: {done.folder}")
    if report:
        _report_results(done.folder, screen)
    if result.failures:
        raise typer.Exit(1)
    return Path(done.folder)


def _report_results(folder: Path, screen: Screen, model: Path | None = None) -> None:
    """Write the page of results that were just made; without its libraries say what to install."""
    from baldur.exceptions import MissingExtraError
    from baldur.report import report_folder

    try:
        with screen.busy("Writing the report"):
            page = report_folder(folder, model=model)
    except MissingExtraError as error:
        screen.result(f"Report: not written. {error}")
        return
    screen.result(f"Report: {page}")


@app.command()
def report(
    run: Annotated[
        Path,
        typer.Argument(
            help="Folder of results (baldur evaluate), or model folder (baldur fit).", metavar="RUN"
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option("--out", help="HTML file to write; default report.html in the folder."),
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="For results: folder of the model fitted on all people (baldur fit). Adds its "
            "intervals, stand-ins and the calculator.",
        ),
    ] = None,
    people: Annotated[
        str,
        typer.Option(help="Individual people: 'hidden' (no identifiers), 'named', or 'none'."),
    ] = "hidden",
    title: Annotated[str | None, typer.Option(help="Heading; default the study's title.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write one HTML page that answers who, how sure, and which measurements.

    The page is a single file that opens in any browser, also from a USB stick: nothing is loaded
    and nothing is sent. It has the answer in words, checks with codes, figures, tables to sort and
    search, a calculator, a methods paragraph, TRIPOD+AI items, and how to repeat the study. See
    docs/report.md.
    """
    from baldur.report import report_folder

    screen = Screen(quiet)
    with screen.busy(f"Reading {run}"):
        page = report_folder(run, out, model=model, people=people, title=title)
    screen.result(f"Report: {page}")


@app.command()
def fit(
    study_file: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="Model folder to write.")],
    model: Annotated[
        str | None, typer.Option("--model", help="Model of the study; default the first.")
    ] = None,
    jobs: Jobs = 1,
    force: Annotated[bool, typer.Option("--force", help="Replace a model folder.")] = False,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Train one model of a study on all rows and save it as a folder."""
    from baldur.exceptions import InputError
    from baldur.files import check_writable, make_folder, write_atomically
    from baldur.guard.spreadsheet import csv_text
    from baldur.persist import identity, save_model
    from baldur.study import fit_study, load_study
    from baldur.study.answers import found_by

    _check_jobs(jobs)
    if (out / "manifest.json").exists() and not force:
        raise InputError(f"{out} holds a model; choose another folder, or replace it with --force.")
    screen = Screen(quiet)
    study = load_study(study_file, roots=data or [])
    check_writable(out if out.is_dir() else make_folder(out.parent))
    with _stoppable("Nothing was written."), screen.progress() as on_progress:
        saved, notes = fit_study(study, model, n_jobs=jobs, progress=on_progress)
    save_model(saved, out, overwrite=force)
    screen.notes(notes)
    details = saved.details
    setting = f": {details['setting']}" if details["setting"] else "."
    screen.say(f"{details['model']} fitted on {details['samples']} samples{setting}")
    table = found_by(saved)
    if table is not None:
        write_atomically(out / "features.csv", csv_text(table).encode())
        screen.say(printable(str(table)))
    screen.say(f"Identity: {identity(out)}")
    screen.result(f"Model: {out}")


@app.command()
def predict(
    model: Annotated[Path, typer.Argument(help="Model folder, from baldur fit.")],
    study_file: StudyFile,
    out: Annotated[Path, typer.Option("--out", help="CSV file to write; - for the screen.")],
    missing: Annotated[
        str,
        typer.Option(help="Columns the model needs and a file lacks: 'error', or 'impute'."),
    ] = "error",
    explain: Annotated[
        Path | None,
        typer.Option("--explain", help="CSV file to write: what each feature contributes."),
    ] = None,
    drift: Annotated[
        Path | None,
        typer.Option("--drift", help="CSV file to write: how columns differ from training."),
    ] = None,
    trust: Trust = False,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Score new samples with a saved model.

    The study file names samples and views as for fit; it needs no outcome and no models. Views
    may be missing for some or all samples. Nothing in a model folder is executed; only folders of
    old versions hold a pickle, which needs --trust.
    """
    from baldur.evaluate.drift import drift_notes, predictor_shift
    from baldur.exceptions import InputError
    from baldur.files import write_atomically
    from baldur.guard.spreadsheet import csv_text
    from baldur.persist import load_model
    from baldur.study import load_study
    from baldur.study.answers import predictions_of, reasons_of
    from baldur.study.fitting import new_rows

    if missing not in ("error", "impute"):
        raise InputError(f"--missing must be 'error' or 'impute', but got {missing!r}.")
    screen = Screen(quiet)
    study = load_study(study_file, predicting=True, roots=data or [])
    for target in (out, explain, drift):
        if target is not None and str(target) != "-" and not target.parent.is_dir():
            raise InputError(f"{target.parent} is no folder; make it first.")
    saved = load_model(model, trust=trust)
    if explain is not None and not hasattr(saved.estimator, "explain"):
        raise InputError(
            f"--explain: {saved.details['model']} does not tell what its features contribute. Fit "
            "BALDUR, or leave --explain out."
        )
    rows, _, notes = new_rows(saved, study, missing=missing)
    with _shift_in_notes(notes):
        frame = predictions_of(saved, rows)
    if saved.training:
        views, features = predictor_shift(saved.training, rows)
        # A few people have no spread to compare.
        notes += drift_notes(views, features) if len(rows) >= _FEWEST_TO_COMPARE else []
        if drift is not None:
            write_atomically(drift, csv_text(features).encode())
    screen.notes(notes)
    if explain is not None:
        write_atomically(explain, csv_text(reasons_of(saved, rows)).encode())
        screen.say(f"Contributions: {explain}")
    content = csv_text(frame)
    if str(out) == "-":
        typer.echo(printable(content), nl=False)
        return
    write_atomically(out, content.encode())
    screen.result(f"Predictions of {len(frame)} samples: {out}")


@app.command()
def validate(
    model: Annotated[Path, typer.Argument(help="Model folder, from baldur fit.")],
    study_file: StudyFile,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for the results; default the study's.")
    ] = None,
    missing: Annotated[
        str,
        typer.Option(help="Columns the model needs and a file lacks: 'error', or 'impute'."),
    ] = "error",
    fresh: Annotated[bool, typer.Option("--fresh", help="Replace what is in the folder.")] = False,
    trust: Trust = False,
    data: Data = None,
    quiet: Quiet = False,
) -> None:
    """Judge a saved model, unchanged, on a new cohort.

    The study file names samples, outcome and views; it needs no models. Written are the figures of
    a study with intervals, how the predictors differ from training, and, apart from these, what
    recalibration on the new cohort would give.
    """
    from baldur.exceptions import InputError
    from baldur.persist import load_model
    from baldur.study import load_study, validate_study

    if missing not in ("error", "impute"):
        raise InputError(f"--missing must be 'error' or 'impute', but got {missing!r}.")
    screen = Screen(quiet)
    study = load_study(study_file, predicting=True, roots=data or [])
    saved = load_model(model, trust=trust)
    done = validate_study(saved, study, missing=missing, output=out, fresh=fresh)
    screen.result((done.folder / "validation.txt").read_text(encoding="utf-8").rstrip())
    screen.result(f"Results: {done.folder}")


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")] = Path("baldur-demo"),
    jobs: Jobs = -1,
    quiet: Quiet = False,
) -> None:
    """Write a small simulated study, compare five models, and write the report page.

    The study resembles BioFIND: five views, one of them genotypes, with the signal in seven
    sleep items. Takes less than two minutes on two cores.
    """
    from baldur.persist import save_model
    from baldur.study import fit_study, load_study
    from baldur.study.answers import found_by
    from baldur.study.demo import write_demo

    screen = Screen(quiet)
    file = out / "study.toml"
    if not file.exists():
        file = write_demo(out)
    screen.say(f"Study: {file}")
    _check_jobs(jobs)
    study = load_study(file)
    folder = _evaluate(study, screen, report=False, n_jobs=jobs)
    with _stoppable("The table is done."), screen.busy("Fitting BALDUR on all rows"):
        saved, _ = fit_study(study, "BALDUR", n_jobs=jobs)
    model = save_model(saved, out / "model", overwrite=True)
    screen.result(f"\nBALDUR on all {saved.details['samples']} rows: {found_by(saved)}\n")
    screen.result(f"Model: {model}")
    _report_results(folder, screen, model)
    screen.say(f"Run it again, or change it and run:  baldur evaluate {file}")


@app.command()
def models() -> None:
    """List the models that a study can name, and what they are."""
    from rich.table import Table

    from baldur.rows import REGRESSION, ROWS

    table = Table(box=None, pad_edge=False)
    for heading in ("Model", "Numbers too", "What it is"):
        table.add_column(heading, no_wrap=heading != "What it is")
    for name, about in ROWS.items():
        table.add_row(name, "yes" if name in REGRESSION else "", about)
    Screen().out.print(table)


@app.command()
def simulate(
    kind: Annotated[str, typer.Argument(help="biofind, adni or multiview.")],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    scale: Annotated[float, typer.Option(help="Share of the full width of wide views.")] = 0.001,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
) -> None:
    """Write simulated data with a known truth, and a study file for them."""
    from baldur.study import simulate_study

    file = simulate_study(kind, out, scale=scale, seed=seed)
    typer.echo(f"Wrote {file}. Run: baldur evaluate {file}")


@contextmanager
def _stoppable(advice: str) -> Iterator[None]:
    """Turn Ctrl-C into one line and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"Stopped. {advice}", err=True)
        raise typer.Exit(130) from None


@contextmanager
def _shift_in_notes(notes: list[str]) -> Iterator[None]:
    """Add warnings about the scale of new rows to the notes; others are shown as ever."""
    import warnings

    from baldur.exceptions import ShiftWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for one in caught:
        if issubclass(one.category, ShiftWarning):
            notes.append(str(one.message))
        else:
            warnings.warn_explicit(one.message, one.category, one.filename, one.lineno)


def _check_jobs(jobs: int) -> None:
    from baldur.exceptions import InputError

    if jobs == 0 or jobs < -1:
        raise InputError(f"--jobs must be a positive number or -1, but got {jobs}.")


def main() -> None:
    """Run the command and leave with the right exit code."""
    try:
        try:
            app(prog_name="baldur")
        finally:
            # Where the output goes to a full disk, it is better known here than at the very end.
            sys.stdout.flush()
    except BaldurError as error:
        typer.echo(printable(f"Error: {error}"), err=True)
        sys.exit(2)
    except MemoryError:
        advice = "use fewer processes (--jobs), fewer columns, or a larger machine"
        typer.echo(f"Error: there is not enough memory; {advice}.", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output went away, as `head` does; that is no error of ours.
        _drop_output()
        sys.exit(0)
    except OSError as error:
        from baldur.files import refused

        _drop_output()
        typer.echo(f"Error: {refused(error.filename or 'The output', error)}", err=True)
        sys.exit(2)


def _drop_output() -> None:
    """What is still to be printed has nowhere to go."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
