"""The table as it is printed: for the terminal, a README or a paper."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pandas as pd

from baldur.core.escape import latex, markdown, one_line
from baldur.evaluation.metric_table import FEATURES, POOLED
from baldur.evaluation.metrics import METRICS
from baldur.exceptions import InputError

FIGURES = ("intervals", "folds")
"""What a cell holds: estimate [low, high], or mean and s.d. over folds."""

_FEATURES_HEADING = "% Features selected"
_INTERVALS_NOTE = (
    "Estimates on pooled held-out predictions, 95 % intervals; features: mean ± s.d. over folds."
)
_CHANCE_NOTE = "(*) chance level: nearly all samples are given one class."
_ROUNDING = 1e-9
"""Percentages below it are rounding errors: one feature in a billion is more than any study has."""


class _Form(NamedTuple):
    """How text and figures are written; names and reasons come from files of others."""

    escape: Callable[[str], str]
    heading: str
    bold: str
    sign: str = "±"
    percent: str = " %"
    star: str = "*"


_FORMS = {
    "text": _Form(one_line, "{}\n", "{}"),
    "markdown": _Form(markdown, "### {}\n\n", "**{}**"),
    "latex": _Form(latex, "\\paragraph{{{}}}\n", r"\textbf{{{}}}", r"$\pm$", r" \%", "$^{*}$"),
    # Plain text in which the best figures stand between two pairs of stars.
    "screen": _Form(one_line, "{}\n", "**{}**"),
}


def format_table(
    table: pd.DataFrame, metrics: Sequence[str], form: str = "text", figures: str = "intervals"
) -> str:
    """Write the table for reading."""
    _check_form(form)
    if figures not in FIGURES:
        raise InputError(f"figures must be one of {FIGURES}, but got {figures!r}.")
    heads, cells, reasons = table_cells(table, metrics, form, figures)
    # In LaTeX the notes are comments, which end with the line and need no more.
    escape = one_line if form == "latex" else _FORMS[form].escape
    notes = [escape(note) for note in _notes(table, reasons, figures)]
    rows = [heads, *cells]
    if form == "markdown":
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "---|" * len(heads))
        return "\n".join([*lines, "", *(f"{note}  " for note in notes)]).rstrip() + "\n"
    if form == "latex":
        lines = [" & ".join(row) + r" \\" for row in rows]
        lines[0] += r" \hline"
        columns = "l " + "c " * (len(heads) - 2) + "|c"
        lines = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", *lines, r"\hline"]
        lines += [r"\end{tabular}", *(f"% {note}" for note in notes)]
    else:
        widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
        lines = [_aligned(row, widths) for row in rows]
        lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
        lines += notes
    return "\n".join(lines) + "\n"


def _aligned(row: Sequence[str], widths: Sequence[int]) -> str:
    cells = [f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)]
    return "  ".join([f"{row[0]:<{widths[0]}}", *cells[1:]]).rstrip()


def format_heading(text: str, form: str) -> str:
    """Return the heading of one of several tables, with its line end."""
    _check_form(form)
    return _FORMS[form].heading.format(_FORMS[form].escape(text))


def _check_form(form: str) -> None:
    if form not in ("text", "markdown", "latex"):
        raise InputError(f"form must be 'text', 'markdown' or 'latex', but got {form!r}.")


def table_cells(
    table: pd.DataFrame, metrics: Sequence[str], form: str, figures: str = "intervals"
) -> tuple[list[str], list[list[str]], dict[str, str]]:
    """Return headings, rows of text, and the reasons of rows without figures.

    Text is escaped for `form`.
    """
    style = _FORMS[form]
    columns = [*metrics, FEATURES]
    heads = ["", *(METRICS[m].heading for m in metrics), _FEATURES_HEADING]
    best = _best(table, columns, figures)
    rows, reasons = [], {}
    starred = "recall" if "recall" in metrics else columns[0]
    for record in table.to_dict("records"):
        name = str(record["model"])
        label = style.escape(name)
        row = [label.replace("-l1", r"-$\ell$1") if form == "latex" else label]
        rows.append(row)
        if record["failure"]:
            reasons[name] = str(record["failure"])
            row += ["failed", *[""] * (len(columns) - 1)]
            continue
        for column in columns:
            if column == FEATURES or figures == "folds":
                mean, sd = float(record[column]), float(record[f"{column}_sd"])
                text = _mean_and_sd(mean, sd, column, style)
            else:
                text = _with_interval(*(float(record[f"{column}_{end}"]) for end in POOLED))
            if column == starred and str(record["note"]).startswith("chance level"):
                text += style.star
            row.append(style.bold.format(text) if name in best[column] and text != "-" else text)
    return [style.escape(head) for head in heads], rows, reasons


def _best(table: pd.DataFrame, columns: Sequence[str], figures: str) -> dict[str, set[str]]:
    """Rows whose printed figure is the best of each column; none where all are equal."""
    fit = table[(table["failure"] == "") & ~table["note"].str.startswith("chance level")]
    best: dict[str, set[str]] = {}
    for column in columns:
        shown = column if column == FEATURES or figures == "folds" else f"{column}_pooled"
        values = fit[shown].astype(float).round(2 if column != FEATURES else 12)
        usable = values[values > 0] if column == FEATURES else values.dropna()
        greater = column != FEATURES and METRICS[column].greater_is_better
        top = usable.max() if greater else usable.min()
        best[column] = set(fit["model"][values == top]) if usable.nunique() > 1 else set()
    return best


def fixed(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """Return a number with so many decimals; one that is rounded to 0 has no sign.

    Examples
    --------
    >>> from baldur.evaluation.formatting import fixed
    >>> fixed(0.126, sign=True), fixed(0.004, sign=True), fixed(-0.004), fixed(-0.126)
    ('+0.13', '0.00', '0.00', '-0.13')
    """
    text = f"{value:z.{digits}f}"
    return f"+{text}" if sign and float(text) > 0 else text


def _mean_and_sd(mean: float, sd: float, column: str, style: _Form) -> str:
    if np.isnan(mean):
        return "-"
    if column != FEATURES:
        return fixed(mean) if np.isnan(sd) else f"{fixed(mean)} {style.sign} {sd:.2f}"
    alone = np.isnan(sd) or (sd < _ROUNDING and mean in (0, 100))
    spread = "" if alone else f" {style.sign} {_short(sd)}"
    return f"{_short(mean)}{spread}{style.percent}"


def _with_interval(estimate: float, low: float, high: float) -> str:
    if np.isnan(estimate):
        return "-"
    if np.isnan(low) or np.isnan(high):
        return fixed(estimate)
    return f"{fixed(estimate)} [{fixed(low)}, {fixed(high)}]"


def _short(value: float) -> str:
    """Return a number with two decimals, or with two significant digits if these would be zero."""
    if value == 100 or value < _ROUNDING:
        return "100" if value == 100 else "0"
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1e}"


def _notes(table: pd.DataFrame, reasons: Mapping[str, str], figures: str) -> list[str]:
    notes = []
    if figures == "intervals" and (table["failure"] == "").any():
        notes.append(_INTERVALS_NOTE)
    if table["note"].str.startswith("chance level").any():
        notes.append(_CHANCE_NOTE)
    for record in table.to_dict("records"):
        rest = str(record["note"]).removeprefix("chance level").strip("; ")
        if rest:
            notes.append(f"{record['model']}: {rest}.")
    return notes + [f"{name} failed: {reason}" for name, reason in reasons.items()]
