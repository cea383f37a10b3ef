"""Text from files, made harmless for the place it is written to.

A sample id, a feature name or a message may come from a stranger's file. In a spreadsheet it could
become a formula, in LaTeX a command, in Markdown a script, in a terminal a control sequence. Each
form has its own function here. CSV is escaped without loss: `unescape_cell` is the exact inverse of
`escape_cell`, and the readers of the package apply it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from baldur.exceptions import InputError

if TYPE_CHECKING:
    import pandas as pd

# Control characters (C0, DEL, C1), line and paragraph separators, and the marks that reverse the
# direction of text: all can make what is shown differ from what is there. Lone surrogates cannot be
# written as UTF-8 at all.
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
# What spreadsheets take for the beginning of a formula, full-width forms included, also after
# blanks; any number of apostrophes before it is our own mark, or text that looks like it.
_FORMULA = re.compile(r"'*[\s]*[=+\-@\t\r＝＋－＠]")
# A number is not a formula, though it may begin with a sign.
_NUMBER = re.compile(r"'*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")

_LATEX = str.maketrans(
    {
        **{c: f"\\{c}" for c in "&%$#_{}"},
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        "|": r"\textbar{}",
        "`": r"\textasciigrave{}",
    }
)
_MARKDOWN = str.maketrans(
    {**{c: f"\\{c}" for c in "\\`*_[]#!|~$"}, "&": "&amp;", "<": "&lt;", ">": "&gt;"}
)


def has_control(text: str) -> bool:
    """Return whether a text contains control or other invisible characters."""
    return _CONTROL.search(text) is not None


def printable(text: str) -> str:
    r"""Return text for a terminal or a text file: control characters become visible.

    Line breaks and tabs stay.

    Examples
    --------
    >>> from baldur.core.escape import printable
    >>> print(printable("red: \x1b[31m"))
    red: \x1b[31m
    """
    return _CONTROL.sub(lambda hit: hit[0] if hit[0] in "\n\t" else _visible(hit[0]), text)


def one_line(text: str) -> str:
    """Return text as one printable line, for a log."""
    return printable(" ".join(text.split()))


def _visible(character: str) -> str:
    code = ord(character)
    return f"\\x{code:02x}" if code < 256 else f"\\u{code:04x}"


def check_names(names: Iterable[Any], what: str, origin: str) -> None:
    """Refuse names with control characters."""
    listed = names if isinstance(names, list) else list(names)
    # One search over all of them: there may be a million.
    if not has_control("".join(map(str, listed))):
        return
    bad = next(str(name) for name in listed if has_control(str(name)))
    raise InputError(
        f"{origin}: a {what} must not hold control characters (line breaks, tabs, escape codes, "
        f"marks that reverse text), but {bad[:80]!a} does. Rename it."
    )


def escape_cell(value: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; anything but text stays as it is.

    Examples
    --------
    >>> from baldur.core.escape import escape_cell
    >>> [escape_cell(cell) for cell in ("=1+1", "-0.5", "plain", -2.0)]
    ["'=1+1", '-0.5', 'plain', -2.0]
    """
    return f"'{value}" if isinstance(value, str) and _is_formula(value) else value


def unescape_cell(value: Any) -> Any:
    """Return what `escape_cell` was given."""
    marked = isinstance(value, str) and value.startswith("'") and _is_formula(value)
    return value[1:] if marked else value


def _is_formula(text: str) -> bool:
    return _FORMULA.match(text) is not None and _NUMBER.fullmatch(text) is None


def csv_text(frame: pd.DataFrame) -> str:
    """Return a table as CSV in which no cell and no heading is a formula."""
    escaped = _changed(frame, escape_cell)
    text = escaped.to_csv(index=False, lineterminator="\n")
    if "\r" in text:
        # pandas leaves a lone carriage return without quotes, and readers take it for a new row.
        text = escaped.to_csv(index=False, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    return text


def unescape_frame(frame: pd.DataFrame) -> pd.DataFrame:
    """Return a table read from a file of `csv_text` as it was before."""
    return _changed(frame, unescape_cell)


def _changed(frame: pd.DataFrame, change: Any) -> pd.DataFrame:
    """Return a table whose headings and cells of text are changed by a function."""
    import pandas as pd

    headings = [change(name) for name in frame.columns]
    text_columns = [
        j
        for j, dtype in enumerate(frame.dtypes)
        if not (pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype))
    ]
    changed = {}  # only columns in which a cell changes, as the others need no copy
    for j in text_columns:
        column = frame.iloc[:, j]
        if any(change(cell) is not cell for cell in column.unique()):
            changed[j] = column.map(change)
    if changed:
        columns = [changed.get(j, frame.iloc[:, j]) for j in range(frame.shape[1])]
        frame = pd.concat(columns, axis=1)
    return frame.set_axis(headings, axis=1)


def latex(text: str) -> str:
    r"""Return text that LaTeX prints as it is, on one line.

    Examples
    --------
    >>> from baldur.core.escape import latex
    >>> print(latex("50% of a_b"))
    50\% of a\_b
    """
    return one_line(text).translate(_LATEX)


def markdown(text: str) -> str:
    """Return text that Markdown shows as it is, on one line: no markup, no HTML, no new column."""
    return one_line(text).translate(_MARKDOWN)
