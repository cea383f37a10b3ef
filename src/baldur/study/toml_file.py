"""Study files as TOML: read within limits, whoever wrote the file, and written with defaults.

The parser of the standard library has no limits of its own: its time grows with the square of the
parts of a key, and numbers may have any length. Both are looked for before it starts.
"""

from __future__ import annotations

import re
import stat
import tomllib
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import tomli_w
from pydantic import ValidationError

from baldur.core.escape import has_control, one_line
from baldur.core.schema import nearest, problem_of
from baldur.exceptions import StudyError
from baldur.study.config import ADVICE, StudyConfig, problem, study_schema

_MAX_FILE = 1 << 20
"""Longest study file: 1 MB, enough for a list of 10,000 images."""

_MAX_PARTS = 10
"""Most parts of a dotted key, and deepest nesting; a study needs four."""

_LARGEST = 2**63 - 1
"""Largest whole number that TOML promises to keep."""

# The one option that may be a control character: tables are often separated by tabs.
_MAY_BE_TAB = "separator"

# The parser reads texts and comments from left to right exactly as this does, whatever they hold;
# a text without an end reaches to the end of the file, where the parser stops with an error.
_TEXT = (
    r'"""(?:\\.|[^\\])*?(?:"{3,5}|\Z)'
    r"|'''.*?(?:'{3,5}|\Z)"
    r'|"(?:[^"\\\n]|\\[^\n])*+"?'
    r"|'[^'\n]*+'?"
    r"|\#[^\n]*+"
)
_TEXTS = re.compile(_TEXT, re.DOTALL)
# Python refuses to convert whole numbers of more than 4,300 digits, without naming the key.
_TEXTS_AND_NUMBERS = re.compile(
    rf"{_TEXT}|(?P<number>(?<![\w.])[0-9][0-9_]{{1000,}}+(?![\w.]))", re.DOTALL
)
_BETWEEN_KEYS = re.compile(r"[=,\[\]{}\n]")
_BRACKETS = re.compile(r"[\[\]{}]")


def parse_study(file: Path) -> dict[str, Any]:
    """Return the content of a study file, which may come from a stranger: within limits."""
    text = _read(file)
    without_texts = _TEXTS.sub(lambda hit: "" if hit[0][0] == "#" else '""', text)
    _check_form(file.name, without_texts)
    try:
        content = tomllib.loads(_TEXTS_AND_NUMBERS.sub(_shortened, text))
    except tomllib.TOMLDecodeError as error:
        is_repeated = any(word in str(error) for word in ("overwrite", "twice", "Duplicate"))
        advice = (
            "a key or section occurs twice; remove one of the two"
            if is_repeated
            else "correct that line (text needs quotes)"
        )
        raise StudyError(f"{file.name}: not valid TOML: {error}; {advice}.") from None
    except ValueError as error:
        raise StudyError(
            f"{file.name}: not valid TOML: {str(error)[:200]}; correct the number or date."
        ) from None
    _check_values(file.name, "", content)
    return content


def template() -> str:
    """Return the commented study file that ``baldur init`` writes."""
    return resources.files("baldur.study").joinpath("template.toml").read_text(encoding="utf-8")


def _read(file: Path) -> str:
    """Return the text of a study file, unless it is too large, no plain file or not UTF-8."""
    try:
        state = file.stat()
        if stat.S_ISREG(state.st_mode) and state.st_size > _MAX_FILE:
            raise StudyError(
                f"{file.name}: has {state.st_size:,} bytes, and a study file at most "
                f"{_MAX_FILE:,}; name files by a pattern instead of one by one."
            )
        if not stat.S_ISREG(state.st_mode) and not stat.S_ISDIR(state.st_mode):
            raise StudyError(f"{file}: cannot be read (not a regular file); give a study file.")
        content = file.read_bytes()
    except FileNotFoundError:
        raise StudyError(
            f"{file}: there is no such study file; write one with 'baldur init {file}'."
        ) from None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise StudyError(f"{file}: cannot be read ({why}); give a study file.") from error
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise StudyError(f"{file.name}: is not UTF-8 text; save it as UTF-8.") from None


def _check_form(file: str, toml: str) -> None:
    """Refuse long dotted keys and deep nesting in a text whose strings and comments are gone."""
    if any(key.count(".") >= _MAX_PARTS for key in _BETWEEN_KEYS.split(toml)):
        raise StudyError(f"{file}: a key has more than {_MAX_PARTS} parts; shorten it.")
    depth = 0
    for mark in _BRACKETS.finditer(toml):
        depth += 1 if mark[0] in "[{" else -1
        if depth > _MAX_PARTS:
            raise StudyError(
                f"{file}: lists or tables are nested more than {_MAX_PARTS} deep; write them "
                "plainly."
            )


def _shortened(hit: re.Match[str]) -> str:
    """Return what was found, a number of thousands of digits as one that is still too large."""
    return hit[0] if hit["number"] is None else str(_LARGEST + 1)


def _check_values(file: str, where: str, value: Any) -> None:
    """Refuse control characters, and whole numbers beyond 64 bits, in the value at a key."""
    if isinstance(value, dict):
        for key, inner in value.items():
            name = f"{where}.{key}" if where else key
            _check_text(file, name, key)
            if key != _MAY_BE_TAB:
                _check_values(file, name, inner)
    elif isinstance(value, list):
        for inner in value:
            _check_values(file, where, inner)
    elif isinstance(value, str):
        _check_text(file, where, value)
    elif isinstance(value, int) and abs(value) > _LARGEST:
        what = "is a whole number of more than 64 bits"
        raise problem(file, where, what, "write a smaller number, or text between quotes")


def _check_text(file: str, where: str, text: str) -> None:
    if has_control(text):
        raise problem(
            file, where[:200], f"{text[:80]!a} holds control characters",
            "write names and texts on one line, without escape codes",
        )  # fmt: skip


def load_study(
    path: str | Path, *, predicting: bool = False, roots: Sequence[str | Path] = ()
) -> StudyConfig:
    """Read and check a study file; no data are read and no estimators are made.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    predicting : bool, default=False
        Samples and views are enough: the file describes new samples for a fitted model. Its
        models, folds and sites to harmonise are not looked at.
    roots : list of str or Path, optional
        Folders besides its own that files of the study may lie in. A study file cannot reach
        others, so one from someone else can be run without reading it first.

    Returns
    -------
    StudyConfig

    Raises
    ------
    StudyError
        One line that names the key and the fix.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import load_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> config.outcome.column, config.outcome.positive, config.folds.outer
    ('diagnosis', 'PD', 5)
    >>> folder.cleanup()
    """
    file = Path(path)
    given = parse_study(file)
    if predicting:
        # New samples are harmonised as the model learned it, whatever their own file says.
        given = {k: v for k, v in given.items() if k not in ("models", "folds", "harmonise")}
    for key in given:
        if key not in StudyConfig.model_fields:
            raise problem(file.name, key, "unknown key", nearest(key, StudyConfig.model_fields))
    for section, advice in ADVICE.items():
        if section not in given and not (predicting and section in ("outcome", "models")):
            raise problem(file.name, section, "missing", advice)
    try:
        config = StudyConfig.model_validate(given)
    except ValidationError as error:
        raise problem(file.name, *problem_of(error, study_schema(), given)) from None
    return config.at(file, tuple(Path(root) for root in roots))


def study_text(config: StudyConfig) -> str:
    """Return the text of a study file with all defaults, as it was run."""
    where = config.folder.resolve()
    head = one_line(
        f"# As resolved. To run it from here: baldur evaluate study.toml --data {where}"
    )
    return f"{head}\n{tomli_w.dumps(config.as_toml())}"
