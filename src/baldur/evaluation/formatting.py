"""The table as it is printed: for the terminal, a README or a paper."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

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
_ROUNDING = 1e-9
"""Percentages below it are rounding errors: one feature in a billion is more than any study has."""
# Names and reasons come from files of others; see `baldur.core.escape`.
_ESCAPE = {"latex": latex, "markdown": markdown, "text": one_line, "screen": one_line}


def format_table(
    table: pd.DataFrame, metrics: Sequence[str], form: str = "text", figures: str = "intervals"
) -> str:
    """Write the table for reading."""
    if form not in ("text", "markdown", "latex"):
        raise InputError(f"form must be 'text', 'markdown' or 'latex', but got {form!r}.")
    if figures not in FIGURES:
        raise InputError(f"figures must be one of {FIGURES}, but got {figures!r}.")
    heads, cells, reasons = table_cells(table, metrics, form, figures)
    # In LaTeX the notes are comments, which end with the line and need no more.
    notes = [
        (one_line if form == "latex" else _ESCAPE[form])(n) for n in _notes(table, reasons, figures)
    ]
    if form == "text":
        return _as_text(heads, cells, notes)
    if form == "markdown":
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        lines += ["| " + " | ".join(row) + " |" for row in cells]
        return "\n".join([*lines, "", *(f"{n}  " for n in notes)]).rstrip() + "\n"
    return _as_latex(heads, cells, notes)


def format_heading(text: str, form: str) -> str:
    """Return the heading of one of several tables, with its line end."""
    if form not in ("text", "markdown", "latex"):
        raise InputError(f"form must be 'text', 'markdown' or 'latex', but got {form!r}.")
    text = _ESCAPE[form](text)
    if form == "latex":
        return rf"\paragraph{{{text}}}" + "\n"
    return f"### {text}\n\n" if form == "markdown" else f"{text}\n"


def table_cells(
    table: pd.DataFrame, metrics: Sequence[str], form: str, figures: str = "intervals"
) -> tuple[list[str], list[list[str]], dict[str, str]]:
    """Return headings, rows of text, and the reasons of rows without figures.

    Text is escaped for `form`; "screen" is plain text in which the best figures stand between two
    pairs of stars.
    """
    columns = [*metrics, FEATURES]
    heads = ["", *(METRICS[m].heading for m in metrics), _FEATURES_HEADING]
    escape = _ESCAPE[form]
    heads = [escape(head) for head in heads]
    best = _best(table, columns, figures)
    rows, reasons = [], {}
    star = "recall" if "recall" in metrics else columns[0]
    for record in table.to_dict("records"):
        name = str(record["model"])
        label = escape(name)
        if form == "latex":
            label = label.replace("-l1", r"-$\ell$1")
        if record["failure"]:
            reasons[name] = str(record["failure"])
            rows.append([label, "failed", *[""] * (len(columns) - 1)])
            continue
        row = [label]
        for column in columns:
            if column == FEATURES or figures == "folds":
                mean, sd = float(record[column]), float(record[f"{column}_sd"])
                text = _mean_pm_sd(mean, sd, column, form)
            else:
                text = _with_interval(*(float(record[f"{column}_{e}"]) for e in POOLED))
            at_chance = str(record["note"]).startswith("chance level")
            if column == star and at_chance:
                text += "$^{*}$" if form == "latex" else "*"
            if name in best[column] and text != "-":
                text = _bold(text, form)
            row.append(text)
        rows.append(row)
    return heads, rows, reasons


def _bold(text: str, form: str) -> str:
    if form == "latex":
        return rf"\textbf{{{text}}}"
    return text if form == "text" else f"**{text}**"


def _best(table: pd.DataFrame, columns: Sequence[str], figures: str) -> dict[str, set[str]]:
    """Rows whose printed figure is the best of each column; none where all are equal."""
    fit = (table["failure"] == "") & ~table["note"].str.startswith("chance level")
    rows = np.flatnonzero(fit.to_numpy(dtype=bool))
    models = table["model"].to_numpy()[rows]
    best: dict[str, set[str]] = {}
    for column in columns:
        shown = column if column == FEATURES or figures == "folds" else f"{column}_pooled"
        values = table[shown].to_numpy(dtype=float)[rows]
        values = values.round(2 if column != FEATURES else 12)
        usable = values > 0 if column == FEATURES else ~np.isnan(values)
        best[column] = set()
        if len(np.unique(values[usable])) > 1:
            up = column != FEATURES and METRICS[column].greater_is_better
            top = values[usable].max() if up else values[usable].min()
            best[column] = set(models[values == top])
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


def _mean_pm_sd(mean: float, sd: float, column: str, form: str) -> str:
    if np.isnan(mean):
        return "-"
    sign = r"$\pm$" if form == "latex" else "±"
    unit = ""
    if column == FEATURES:
        unit = r" \%" if form == "latex" else " %"
        if np.isnan(sd) or (sd < _ROUNDING and mean in (0, 100)):
            return f"{_short(mean)}{unit}"
        return f"{_short(mean)} {sign} {_short(sd)}{unit}"
    if np.isnan(sd):
        return fixed(mean)
    return f"{fixed(mean)} {sign} {sd:.2f}"


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
        notes.append("(*) chance level: nearly all samples are given one class.")
    for record in table.to_dict("records"):
        rest = str(record["note"]).removeprefix("chance level").strip("; ")
        if rest:
            notes.append(f"{record['model']}: {rest}.")
    return notes + [f"{name} failed: {reason}" for name, reason in reasons.items()]


def _as_text(heads: list[str], cells: list[list[str]], notes: list[str]) -> str:
    wide = [max(len(row[j]) for row in [heads, *cells]) for j in range(len(heads))]

    def line(row: list[str]) -> str:
        first = f"{row[0]:<{wide[0]}}"
        return "  ".join([first, *(f"{c:>{w}}" for c, w in zip(row[1:], wide[1:], strict=True))])

    lines = [line(heads).rstrip(), "-" * (sum(wide) + 2 * (len(wide) - 1))]
    lines += [line(row).rstrip() for row in cells]
    return "\n".join([*lines, *notes]) + "\n"


def _as_latex(heads: list[str], cells: list[list[str]], notes: list[str]) -> str:
    lines = [
        r"\begin{tabular}{l " + "c " * (len(heads) - 2) + "|c}",
        r"\hline",
        " & ".join(heads) + r" \\ \hline",
    ]
    lines += [" & ".join(row) + r" \\" for row in cells]
    lines += [r"\hline", r"\end{tabular}", *(f"% {n}" for n in notes)]
    return "\n".join(lines) + "\n"
