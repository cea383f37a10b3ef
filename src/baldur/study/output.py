"""Where a study's results go: below its own folder, or where whoever runs it says."""

from __future__ import annotations

import time
from pathlib import Path

from baldur.exceptions import InputError
from baldur.files import make_folder, writing
from baldur.guard.confine import find_link, is_below, open_to_append, resolve
from baldur.guard.escape import has_control, one_line
from baldur.study.load import Study

__all__ = ["Log", "results_folder"]

# What a folder of results has, besides its files; a folder with other things only is somebody's.
_OURS = ("log.txt", "jobs", ".lock")


class Log:
    """Lines with the time, added to ``log.txt``; never through a link.

    Parameters
    ----------
    file : Path
        The file to add to.
    """

    def __init__(self, file: Path) -> None:
        self.file = file

    def __call__(self, text: str) -> None:
        """Add one line, whatever the text holds."""
        with writing(self.file), open_to_append(self.file) as stream:
            stream.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')} {one_line(text)}\n")


def results_folder(study: Study, output: str | Path | None = None) -> Path:
    """Return the folder for the results of a study, made if need be, or refuse it.

    A study file may come from somebody else. What it names has to lie strictly below its own
    folder, symbolic links followed; `output` is named by whoever runs the study and may lie
    anywhere. In both cases a folder with files that are no results is refused, as is one with links
    in it.

    Parameters
    ----------
    study : Study
    output : str or Path, optional
        Instead of the study's own.

    Returns
    -------
    Path
        Resolved and existing.
    """
    given = study.folder / study.top["output"] if output is None else Path(output)
    if has_control(str(given)):
        raise study.problem(
            "output", f"{str(given)!a} holds control characters", "choose another name"
        )
    try:
        folder = resolve(given)
    except InputError as error:
        raise study.problem("output", str(error).rstrip("."), "choose another folder") from None
    if output is None and not is_below(folder, [study.folder], strictly=True):
        raise study.problem(
            "output",
            f"{study.top['output']!r} does not lie below the folder of the study",
            "name a folder inside it, or give the place yourself with --out",
        )
    home = resolve(study.folder)
    if folder == home or folder in home.parents:
        raise study.problem(
            "output", f"{folder} holds the study itself", "choose a folder of its own for results"
        )
    make_folder(folder)
    _check_contents(study, folder)
    return folder


def _check_contents(study: Study, folder: Path) -> None:
    names = [one.name for one in folder.iterdir()]
    if names and not any(name in _OURS for name in names):
        raise study.problem(
            "output",
            f"{folder} holds other files ({sorted(names)[0]!a}, ...) and no results",
            "choose an empty folder or a new one",
        )
    link = find_link(folder)
    if link is not None:
        raise study.problem(
            "output", f"{str(link)!a} is a link, which is not written through",
            "remove it, or choose another folder",
        )  # fmt: skip
