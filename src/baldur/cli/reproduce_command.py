"""The command ``baldur reproduce``: the paper's two studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from baldur.cli.options import Jobs, Quiet, check_jobs, stoppable
from baldur.cli.screen import Screen


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
    kept = "Finished jobs are kept; the same command continues."
    with stoppable(kept), screen.progress() as on_progress:
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
    screen.result(done.study.result.format("text", "folds"))
    screen.result(f"Results: {done.study.folder}")
    screen.result(f"Page: {done.page} (Markdown: {done.markdown})")
    if done.study.result.failures:
        raise typer.Exit(1)
