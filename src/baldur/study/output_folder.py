"""The folder of a study's results: below the study's folder, or given with ``--out``."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection
from pathlib import Path
from typing import Any

from baldur.core.atomic_io import PART, make_folder, write_atomically, writing
from baldur.core.escape import has_control, one_line
from baldur.core.paths import find_special, is_below, open_to_append, resolve
from baldur.study.config import StudyConfig

MARK = ".study.json"
"""File that says whose results a folder holds."""

_LONGEST_MARK = 1 << 16  # characters; two paths, which Linux limits to 4,096 bytes each

# What a folder of results has, besides its files; a folder with other things only is somebody's.
_OURS = ("log.txt", "jobs", ".lock", MARK)


class Log:
    """Lines with the time, added to ``log.txt``; never through a link."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, text: str) -> None:
        """Add one line, whatever the text holds."""
        with writing(self.file), open_to_append(self.file) as stream:
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
    _check_contents(config, folder)
    return folder


def claim_folder(config: StudyConfig, folder: Path, known: Collection[str], *, fresh: bool) -> None:
    """Mark a folder as that of a study, or refuse one with the results of another.

    The mark names the study file relative to the folder, so both may be moved together.
    """
    mark = folder / MARK
    file = config.file.resolve()
    this = {"study": os.path.relpath(file, folder), "path": str(file)}
    theirs = _read_mark(mark)
    if not fresh:
        if theirs is not None and not any(theirs.get(k) == v for k, v in this.items()):
            raise config.problem(
                "output",
                f"{folder} holds the results of another study ({str(theirs.get('path'))!a})",
                "choose another folder, or replace them with --fresh",
            )
        taken = sorted(name for name in known if (folder / name).exists())
        if theirs is None and taken:
            raise config.problem(
                "output",
                f"{folder} holds {taken[0]!r}, which this study has not written",
                "choose another folder, or replace it with --fresh",
            )
    write_atomically(mark, (json.dumps(this, indent=1) + "\n").encode())


def _read_mark(mark: Path) -> dict[str, Any] | None:
    try:
        with mark.open(encoding="utf-8") as stream:
            content = json.loads(stream.read(_LONGEST_MARK))
    except (OSError, ValueError, RecursionError):
        return None
    return content if isinstance(content, dict) else None


def _check_contents(config: StudyConfig, folder: Path) -> None:
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
