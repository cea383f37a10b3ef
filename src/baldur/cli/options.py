"""Arguments that several commands share, and how a command stops after Ctrl-C."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

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
