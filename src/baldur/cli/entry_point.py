"""The command ``baldur``: its subcommands without a study file, and its exit codes.

Exit codes: 0 done; 1 done, but a model failed; 2 the command or a file is not right; 130
interrupted from the keyboard.
"""

from __future__ import annotations

import atexit
import gc
import json
import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

import baldur
from baldur.cli.commands import demo, evaluate, fit, predict, report, reproduce, validate
from baldur.cli.screen import Screen
from baldur.core.escape import printable
from baldur.exceptions import BaldurError, InputError

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
    force: Annotated[bool, typer.Option("--force", help="Replace an existing file.")] = False,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of study files, and stop.")
    ] = False,
) -> None:
    """Write a commented study file to fill in, and the JSON schema that editors use for it."""
    from baldur.core.atomic_io import write_atomically
    from baldur.study.config import study_schema
    from baldur.study.toml_file import template

    schema_text = json.dumps(study_schema(), indent=1) + "\n"
    if schema:
        typer.echo(schema_text, nl=False)
        return
    if path.is_dir():
        path = path / "study.toml"
    if path.exists() and not force:
        raise InputError(f"{path} exists; choose another name, or replace it with --force.")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder; create it first.")
    schema_file = path.with_name(f"{path.stem}.schema.json")
    write_atomically(schema_file, schema_text.encode())
    write_atomically(path, f"#:schema {schema_file.name}\n{template()}".encode())
    typer.echo(
        f"Wrote {path}. Fill it in, check it with: baldur evaluate {path} --check\n"
        f"Then run it with: baldur evaluate {path}"
    )


# In the order of the help.
for _command in (evaluate, report, fit, predict, validate, demo, reproduce):
    app.command()(_command)


@app.command()
def models() -> None:
    """List the models that a study can name, and what they are."""
    from rich.table import Table

    from baldur.core.model_catalog import MODELS, REGRESSION_MODELS

    table = Table(box=None, pad_edge=False)
    for heading in ("Model", "Numbers too", "What it is"):
        table.add_column(heading, no_wrap=heading != "What it is")
    for name, about in MODELS.items():
        table.add_row(name, "yes" if name in REGRESSION_MODELS else "", about)
    Screen().out.print(table)


@app.command()
def simulate(
    kind: Annotated[
        str, typer.Argument(help="Kind of simulated data: biofind, adni or multiview.")
    ],
    out: Annotated[Path, typer.Option("--out", help="Folder to write.")],
    scale: Annotated[
        float | None,
        typer.Option(
            help="Fraction of the features of wide views to simulate; by default 0.001 for biofind "
            "and 0.004 for adni."
        ),
    ] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same files.")] = 0,
) -> None:
    """Write simulated data with a known truth, and a study file for them."""
    from baldur.study import simulate_study

    file = simulate_study(kind, out, scale=scale, seed=seed)
    typer.echo(f"Wrote {file}. Run: baldur evaluate {file}")


def main() -> None:
    """Run the command and exit with the exit code of its outcome."""
    # The libraries make hundreds of thousands of objects that stay to the end. Looking for garbage
    # among them, while they are imported and again at the end, takes a third of a second.
    gc.set_threshold(100_000, 20, 20)
    atexit.register(gc.freeze)
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
        # The reader of our output went away, as `head` does; that is not an error.
        _drop_output()
        sys.exit(0)
    except OSError as error:
        from baldur.core.atomic_io import refused

        _drop_output()
        typer.echo(f"Error: {refused(error.filename or 'The output', error)}", err=True)
        sys.exit(2)


def _drop_output() -> None:
    """Discard output that is still to be printed, because the reader of the pipe is gone."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
