"""The folder of a study's results: where it may lie, and every file that is written there."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from baldur.core.atomic_io import PART, make_folder, replace_files, write_atomically, writing
from baldur.core.escape import csv_text, has_control, one_line
from baldur.core.paths import find_special, is_below, open_to_append, resolve
from baldur.evaluation.result_files import (
    FILES,
    INDEX,
    JOBS,
    LOG,
    OUTCOMES,
    RECORD,
    REPORT,
    RESULT_FILES,
    TABLES,
    digest,
)
from baldur.evaluation.results import Results, outcome_folders

if TYPE_CHECKING:
    from baldur.study.config import StudyConfig

MARK = ".study.json"
"""File that says whose results a folder holds."""

_LONGEST_MARK = 1 << 16  # characters; two paths, which Linux limits to 4,096 bytes each

# What a folder of results has, besides its files; a folder with other things only is somebody's.
_OURS = ("log.txt", "jobs", ".lock", MARK)


def add_to_log(folder: Path, text: str) -> None:
    """Add one line with the time to ``log.txt``, whatever the text holds; never through a link."""
    with writing(folder / LOG), open_to_append(folder / LOG) as stream:
        stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {one_line(text)}\n")


def results_folder(config: StudyConfig, output: str | Path | None = None) -> Path:
    """Return the folder for the results of a study, made if need be, or refuse it.

    A study file may come from somebody else. What it names has to lie strictly below its own
    folder, symbolic links followed; `output` is named by whoever runs the study and may lie
    anywhere. In both cases a folder with files that are no results is refused, as is one with links
    or pipes in it.
    """
    given = config.folder / config.output if output is None else Path(output)
    if has_control(str(given)):
        raise config.problem(
            "output", f"{str(given)!a} holds control characters", "choose another name"
        )
    with config.errors_at("output", "choose another folder"):
        folder = resolve(given)
    if output is None and not is_below(folder, [config.folder], strictly=True):
        raise config.problem(
            "output",
            f"{config.output!r} does not lie below the folder of the study",
            "name a folder inside it, or give the place yourself with --out",
        )
    home = resolve(config.folder)
    if folder == home or folder in home.parents:
        raise config.problem(
            "output", f"{folder} holds the study itself", "choose a folder of its own for results"
        )
    make_folder(folder)
    # What another process is just writing there says nothing yet.
    names = [path.name for path in folder.iterdir() if not path.name.endswith(PART)]
    if names and not any(name in _OURS for name in names):
        raise config.problem(
            "output",
            f"{folder} holds other files ({sorted(names)[0]!a}, ...) and no results",
            "choose an empty folder or a new one",
        )
    special = find_special(folder)
    if special is not None:
        raise config.problem(
            "output", f"{str(special)!a} is a link or a pipe, which is not written through",
            "remove it, or choose another folder",
        )  # fmt: skip
    return folder


def claim_folder(
    config: StudyConfig, folder: Path, result_files: Collection[str], *, fresh: bool
) -> None:
    """Mark a folder as that of a study before its results are written there.

    Without `fresh` a folder is refused if it has the mark of another study, or `result_files`
    without a mark. The mark names the study file relative to the folder, so both may be moved
    together, and by its full path, so that the folder alone may be.
    """
    mark = folder / MARK
    file = config.file.resolve()
    ours = {"study": os.path.relpath(file, folder), "path": str(file)}
    theirs = _read_mark(mark)
    if not fresh:
        if theirs is not None and all(theirs.get(k) != v for k, v in ours.items()):
            raise config.problem(
                "output",
                f"{folder} holds the results of another study ({str(theirs.get('path'))!a})",
                "choose another folder, or replace them with --fresh",
            )
        taken = sorted(name for name in result_files if (folder / name).exists())
        if theirs is None and taken:
            raise config.problem(
                "output",
                f"{folder} holds {taken[0]!r}, which this study has not written",
                "choose another folder, or replace it with --fresh",
            )
    write_atomically(mark, (json.dumps(ours, indent=1) + "\n").encode())


def _read_mark(mark: Path) -> dict[str, Any] | None:
    """Return the content of a mark; None without one that can be read."""
    try:
        with mark.open(encoding="utf-8") as stream:
            content = json.loads(stream.read(_LONGEST_MARK))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


_ABOUT = {file.name: file.about for file in FILES if file.about} | {
    LOG: "what happened, with warnings and times",
    OUTCOMES: "a folder with the results and the page of every outcome",
    JOBS: "finished jobs, so that the same command continues; may be deleted at the end",
}
_FIRST = (REPORT, "table.txt", OUTCOMES, "selection.csv", "views.csv", "predictions.csv")


def write_results(results: Results, folder: Path, study: str | None = None) -> Results:
    """Write every file of a results folder, the study file as it was run among them if given."""
    folders = outcome_folders(list(results.outcomes))
    remove_outcomes(folder, keep=list(folders.values()))
    for outcome, below in folders.items():
        _write(results.outcomes[outcome], make_folder(folder / OUTCOMES / below), study)
    _write(results, folder, study)
    return results


def _write(results: Results, folder: Path, study: str | None) -> None:
    """Write all result files or none: tables, what `FILES` makes of the results, and README.txt."""
    contents: dict[str, bytes] = {}
    for file in FILES:
        content: Any = study if file.name == "study.toml" else None
        if file.table in TABLES:
            content = results.table(file.table, every_outcome=True)
            content = csv_text(content) if len(content.columns) else None
        # Of several outcomes the folder of each has the files that are about one.
        elif file.make is not None and (file.of_mean or not results.outcomes):
            content = file.make(results)
        if content is not None:
            contents[file.name] = content.encode()
    results.record["files"] = {
        name: digest(content)
        for name, content in contents.items()
        if name.endswith((".csv", ".json"))
    }
    contents[RECORD] = (json.dumps(results.record, indent=1) + "\n").encode()
    beside = {path.name for path in folder.iterdir()} - RESULT_FILES
    contents[INDEX] = _index(results, {*contents, *beside}).encode()
    replace_files(folder, contents, RESULT_FILES)
    results.folder = folder


def list_page(results: Results) -> None:
    """Write README.txt again: the page is now the file to open first."""
    assert results.folder is not None
    names = {path.name for path in results.folder.iterdir()}
    write_atomically(results.folder / INDEX, _index(results, names).encode())


def _index(results: Results, names: set[str]) -> str:
    """Return the text of README.txt: what is in a results folder, and what to open first."""
    title = str(results.record.get("title", ""))
    width = max(map(len, _ABOUT))
    lines = {name: f"  {name:<{width}}  {about}" for name, about in _ABOUT.items() if name in names}
    first = [lines[name] for name in _FIRST if name in lines]
    rest = [line for name, line in lines.items() if name not in _FIRST]
    heading = one_line(title) or "Results of a study"
    return "\n".join([heading, "", "Open first:", *first, "", "Then:", *rest]) + "\n"


def remove_outcomes(folder: Path, keep: Sequence[str] = ()) -> None:
    """Remove the results of outcomes that a study no longer has; folders in `keep` stay."""
    parent = folder / OUTCOMES
    if parent.is_symlink() or not parent.is_dir():
        return
    for below in sorted(parent.iterdir()):
        if below.name in keep or below.is_symlink() or not below.is_dir():
            continue
        for name in (*RESULT_FILES, ".lock"):
            (below / name).unlink(missing_ok=True)
        with suppress(OSError):  # somebody else's files are in it
            below.rmdir()
    with suppress(OSError):
        parent.rmdir()
