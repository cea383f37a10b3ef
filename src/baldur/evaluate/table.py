"""The table: figures from predictions and selections alone, in the shape papers print."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pandas as pd

from baldur.evaluate.clinical.held_out import PLATT, classes_of, open_predictions, predicted_of
from baldur.evaluate.clinical.intervals import intervals_of
from baldur.evaluate.features import percent_selected
from baldur.evaluate.handle import one_thread
from baldur.evaluate.metrics import METRICS, score
from baldur.exceptions import InputError
from baldur.guard.escape import latex, markdown, one_line

__all__ = ["build_table", "fold_scores", "format_table", "recompute_table"]

FEATURES = "features_percent"
FIGURES = ("intervals", "folds")
"""What a cell of the printed table holds: estimate [low, high], or mean and s.d. over folds."""

PLATT_NOTE = "probabilities by Platt scaling of margins, inside the training rows"
_NOTHING = dict.fromkeys(("pooled", "low", "high"), float("nan"))
_FEATURES_HEADING = "% Features selected"
# A row is marked when it is at chance because nearly all rows get one class.
_CHANCE_MARGIN = 0.02
_ONE_CLASS = 0.9
# Names and reasons come from files of others; see `baldur.guard`.
_ESCAPE = {"latex": latex, "markdown": markdown, "text": one_line, "screen": one_line}


def fold_scores(
    predictions: pd.DataFrame, metrics: Sequence[str], classes: Sequence[str]
) -> pd.DataFrame:
    """Score every model, repeat and fold from the predictions.

    Parameters
    ----------
    predictions : DataFrame
        As in `NestedResult.predictions`, or read from ``predictions.csv``.
    metrics : list of str
        Names out of `METRICS`.
    classes : list of str
        Classes with the positive one last; empty in regression.

    Returns
    -------
    DataFrame
        model, repeat, fold and one column per metric.
    """
    rows = []
    keys = ["model", "repeat", "fold"]
    for where, part in predictions.groupby(keys, sort=False):
        predicted = predicted_of(part, classes)
        rows.append((*where, *(score(m, predicted) for m in metrics)))
    return pd.DataFrame(rows, columns=[*keys, *metrics])


def build_table(
    predictions: pd.DataFrame,
    selection: pd.DataFrame,
    metrics: Sequence[str],
    classes: Sequence[str],
    models: Sequence[str] | None = None,
    failures: Mapping[str, str] | None = None,
) -> pd.DataFrame:
    """Build the table from predictions and selections alone.

    Parameters
    ----------
    predictions, selection : DataFrame
        As in `NestedResult`, or read from their files.
    metrics : list of str
        Columns.
    classes : list of str
        Classes with the positive one last; empty in regression.
    models : list of str, optional
        Rows and their order; default as in `predictions`.
    failures : dict of str to str, optional
        Reasons of the models that have no figures.

    Returns
    -------
    DataFrame
        model; for each metric the mean over folds, its s.d. (<metric>_sd), and on the pooled
        held-out predictions the estimate (<metric>_pooled) with its 95 % interval (<metric>_low,
        <metric>_high); mean and s.d. over folds of features_percent; folds, note and failure.
    """
    failures = failures or {}
    pooled = _pooled(predictions, metrics, classes)
    scores = fold_scores(predictions, metrics, classes)
    percent = percent_selected(selection)
    names = list(models) if models is not None else list(dict.fromkeys(predictions["model"]))
    rows = []
    for name in names:
        mine = scores[scores["model"] == name]
        row: dict[str, object] = {"model": name}
        notes = []
        for metric in metrics:
            values = mine[metric].to_numpy(dtype=float)
            row[metric], row[f"{metric}_sd"], known = _mean_sd(values)
            if 0 < known < len(values):
                heading = METRICS[metric].heading
                notes.append(f"{heading} over {known} of {len(values)} folds")
            for column, value in pooled.get((name, metric), _NOTHING).items():
                row[f"{metric}_{column}"] = value
        features = percent.loc[percent["model"] == name, FEATURES].to_numpy(dtype=float)
        row[FEATURES], row[f"{FEATURES}_sd"], _ = _mean_sd(features)
        row["folds"] = len(mine)
        if _is_scaled(predictions, name):
            notes.append(PLATT_NOTE)
        if len(mine) and classes and _at_chance(predictions, name, classes):
            notes.insert(0, "chance level")
        row["note"] = "; ".join(notes)
        row["failure"] = failures.get(name, "")
        rows.append(row)
    return pd.DataFrame(rows)


def _pooled(
    predictions: pd.DataFrame, metrics: Sequence[str], classes: Sequence[str]
) -> dict[tuple[str, str], dict[str, float]]:
    """Return estimate and interval of every model and metric on pooled predictions."""
    if not len(predictions):
        return {}
    with one_thread():
        held, boot = open_predictions(predictions, classes)
        found = intervals_of(held, boot, metrics, by_site=False)
    return {
        (row["model"], row["metric"]): {
            "pooled": row["estimate"], "low": row["low"], "high": row["high"]
        }
        for row in found.to_dict("records")
    }  # fmt: skip


def _is_scaled(predictions: pd.DataFrame, model: str) -> bool:
    if "probability" not in predictions:
        return False
    return bool((predictions.loc[predictions["model"] == model, "probability"] == PLATT).any())


def _mean_sd(values: np.ndarray) -> tuple[float, float, int]:
    known = values[np.isfinite(values)]
    mean = float(known.mean()) if len(known) else float("nan")
    sd = float(known.std(ddof=1)) if len(known) > 1 else float("nan")
    return mean, sd, len(known)


def _at_chance(predictions: pd.DataFrame, model: str, classes: Sequence[str]) -> bool:
    part = predictions[predictions["model"] == model]
    right = part["label"].astype(str) == part["predicted"].astype(str)
    balanced = right.groupby(part["label"].astype(str)).mean().mean()
    commonest = part["predicted"].astype(str).value_counts(normalize=True).iloc[0]
    return bool(balanced < 1 / len(classes) + _CHANCE_MARGIN and commonest >= _ONE_CLASS)


def recompute_table(predictions: pd.DataFrame, selection: pd.DataFrame) -> pd.DataFrame:
    """Compute the table again from the contents of the two result files.

    Parameters
    ----------
    predictions, selection : DataFrame
        Read from ``predictions.csv`` and ``selection.csv``, text kept as text.

    Returns
    -------
    DataFrame
        As `build_table`, with every metric of the task.
    """
    classes = classes_of(predictions)
    metrics = [m for m, d in METRICS.items() if d.classification == bool(classes)]
    return build_table(predictions, selection, metrics, classes)


# -- as printed ------------------------------------------------------------------------------


def format_table(
    table: pd.DataFrame, metrics: Sequence[str], form: str = "text", figures: str = "intervals"
) -> str:
    """Write the table for reading.

    Parameters
    ----------
    table : DataFrame
        As `build_table` makes it.
    metrics : list of str
        Its metrics.
    form : {"text", "markdown", "latex"}
        For the terminal, a README, or a paper. The best of each column is bold, rows at chance
        level excepted, which have a star at their recall (or first figure).
    figures : {"intervals", "folds"}
        Estimates on pooled predictions with their 95 % intervals, or mean and s.d. over folds.

    Returns
    -------
    str
    """
    if form not in ("text", "markdown", "latex"):
        raise InputError(f"form must be 'text', 'markdown' or 'latex', but got {form!r}.")
    if figures not in FIGURES:
        raise InputError(f"figures must be one of {FIGURES}, but got {figures!r}.")
    heads, cells, reasons = table_cells(table, metrics, form, figures)
    # In LaTeX the notes are comments, which end with the line and need no more.
    notes = [(one_line if form == "latex" else _ESCAPE[form])(n) for n in _notes(table, reasons)]
    if form == "text":
        return _as_text(heads, cells, notes)
    if form == "markdown":
        lines = ["| " + " | ".join(heads) + " |", "|" + "---|" * len(heads)]
        lines += ["| " + " | ".join(row) + " |" for row in cells]
        return "\n".join([*lines, "", *(f"{n}  " for n in notes)]).rstrip() + "\n"
    return _as_latex(heads, cells, notes)


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
    best = {c: _best(table, c, figures) for c in columns}
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
                text = _with_interval(*(float(record[f"{column}_{e}"]) for e in _NOTHING))
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


def _best(table: pd.DataFrame, column: str, figures: str) -> set[str]:
    """Rows whose printed figure is the best of a column; none where all are equal."""
    fit = (table["failure"] == "") & ~table["note"].str.startswith("chance level")
    shown = column if column == FEATURES or figures == "folds" else f"{column}_pooled"
    values = table.loc[fit, shown].round(2 if column != FEATURES else 12).dropna()
    if column == FEATURES:
        values = values[values > 0]
    if values.nunique() < 2:
        return set()
    up = column != FEATURES and METRICS[column].greater_is_better
    top = values.max() if up else values.min()
    return set(table.loc[values.index[values == top], "model"])


def _mean_pm_sd(mean: float, sd: float, column: str, form: str) -> str:
    if np.isnan(mean):
        return "-"
    sign = r"$\pm$" if form == "latex" else "±"
    unit = ""
    if column == FEATURES:
        unit = r" \%" if form == "latex" else " %"
        if np.isnan(sd) or (sd == 0 and mean in (0, 100)):
            return f"{_short(mean)}{unit}"
        return f"{_short(mean)} {sign} {_short(sd)}{unit}"
    if np.isnan(sd):
        return f"{mean:.2f}"
    return f"{mean:.2f} {sign} {sd:.2f}"


def _with_interval(estimate: float, low: float, high: float) -> str:
    if np.isnan(estimate):
        return "-"
    if np.isnan(low) or np.isnan(high):
        return f"{estimate:.2f}"
    return f"{estimate:.2f} [{low:.2f}, {high:.2f}]"


def _short(value: float) -> str:
    """Two decimals, or two figures where those would be zeros."""
    if value == 100 or value == 0:
        return f"{value:.0f}"
    return f"{value:.2f}" if value >= 0.01 else f"{value:.1e}"


def _notes(table: pd.DataFrame, reasons: Mapping[str, str]) -> list[str]:
    notes = []
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
