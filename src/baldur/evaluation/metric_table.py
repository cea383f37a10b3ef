"""The table of a comparison, one row per model: computed and printed.

It is printed for the terminal, a README or a paper.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd

from baldur.core.escape import latex, markdown, one_line, unescape_frame
from baldur.core.limits import one_thread
from baldur.evaluation.clinical.bootstrap_intervals import Draws
from baldur.evaluation.clinical.held_out import PLATT, Resampled, classes_of, predicted_of
from baldur.evaluation.metrics import METRICS, default_metrics, score
from baldur.evaluation.selected_features import percent_selected
from baldur.exceptions import InputError

FEATURES = "features_percent"
PLATT_NOTE = "probabilities by Platt scaling of decision scores, learned from training rows"
POOLED = ("pooled", "low", "high")
"""Endings of the columns of a metric's estimate on pooled predictions and of its interval."""

# A row is marked when it is at chance because nearly all rows get one class.
_CHANCE_MARGIN = 0.02
_ONE_CLASS = 0.9


def fold_scores(
    predictions: pd.DataFrame,
    metrics: Sequence[str],
    classes: Sequence[str],
    selection: pd.DataFrame | None = None,
) -> pd.DataFrame:
    """Score every model, repeat and fold; with the selected features give their percentage."""
    keys = ["model", "repeat", "fold"]
    rows = []
    for key, part in predictions.groupby(keys, sort=False):
        predicted = predicted_of(part, classes)
        rows.append((*key, *(score(m, predicted) for m in metrics)))
    scores = pd.DataFrame(rows, columns=[*keys, *metrics])
    if selection is None:
        return scores
    # The percentages of a model are in the order of its folds.
    scores["position"] = scores.groupby("model", sort=False).cumcount()
    percent = percent_selected(selection)
    scores = scores.merge(percent, on=["model", "position"], how="left", sort=False)
    return scores.drop(columns="position")


@one_thread()
def build_table(
    scores: pd.DataFrame,
    sample: Resampled | None,
    metrics: Sequence[str],
    models: Sequence[str],
    notes: Mapping[str, tuple[str, str]],
    failures: Mapping[str, str],
) -> pd.DataFrame:
    """Return the table of a comparison from the scores of its folds and its pooled predictions.

    `sample` is None where no model has predictions. `notes` has for each model what stands before
    and after the notes on its scores, "" for nothing.
    """
    rows = []
    for model in models:
        folds = scores[scores["model"] == model]
        row: dict[str, object] = {"model": model}
        before, after = notes.get(model, ("", ""))
        row_notes = [before]
        for column in (*metrics, FEATURES):
            values = folds[column].to_numpy(dtype=float)
            defined = values[np.isfinite(values)]
            row[column] = float(defined.mean()) if len(defined) else np.nan
            row[f"{column}_sd"] = float(defined.std(ddof=1)) if len(defined) > 1 else np.nan
            if column == FEATURES:
                continue
            if 0 < len(defined) < len(values):
                heading = METRICS[column].heading
                row_notes.append(f"{heading} over {len(defined)} of {len(values)} folds")
            pooled: tuple[float, ...] = (np.nan,) * len(POOLED)
            if sample is not None and model in sample.models:
                pooled = sample.interval(model, column)
            row |= {f"{column}_{end}": value for end, value in zip(POOLED, pooled, strict=True)}
        row["folds"] = len(folds)
        row["note"] = "; ".join(note for note in (*row_notes, after) if note)
        row["failure"] = failures.get(model, "")
        rows.append(row)
    return pd.DataFrame(rows)


def prediction_notes(
    predictions: pd.DataFrame, classes: Sequence[str]
) -> dict[str, tuple[str, str]]:
    """Return the notes before and after those on scores, by model: chance level, and Platt."""
    notes = {}
    for model, part in predictions.groupby("model", sort=False):
        scaled = "probability" in part and bool((part["probability"] == PLATT).any())
        chance = bool(classes) and _at_chance(part, len(classes))
        notes[str(model)] = ("chance level" if chance else "", PLATT_NOTE if scaled else "")
    return notes


def _at_chance(predictions: pd.DataFrame, n_classes: int) -> bool:
    """Return whether a model gives nearly all rows one class, and classifies at chance level."""
    label, predicted = (predictions[c].astype(str) for c in ("label", "predicted"))
    balanced = (label == predicted).groupby(label).mean().mean()
    commonest = predicted.value_counts(normalize=True).iloc[0]
    return bool(balanced < 1 / n_classes + _CHANCE_MARGIN and commonest >= _ONE_CLASS)


def recompute_table(predictions: pd.DataFrame, selection: pd.DataFrame) -> pd.DataFrame:
    """Compute the table again from the contents of ``predictions.csv`` and ``selection.csv``."""
    predictions, selection = unescape_frame(predictions), unescape_frame(selection)
    classes = classes_of(predictions)
    metrics = default_metrics(bool(classes))
    return build_table(
        fold_scores(predictions, metrics, classes, selection),
        Resampled(predictions, classes) if len(predictions) else None,
        metrics,
        list(dict.fromkeys(predictions["model"])),
        prediction_notes(predictions, classes),
        {},
    )


# -- the mean over outcomes --------------------------------------------------------------------


def mean_scores(
    each: Sequence[pd.DataFrame], models: Sequence[str], metrics: Sequence[str]
) -> pd.DataFrame:
    """Return the mean over outcomes of the scores of every fold."""
    parts = [scores[scores["model"].isin(models)] for scores in each]
    mean = parts[0].copy()
    for column in (*metrics, FEATURES):
        mean[column] = sum(part[column].to_numpy(dtype=float) for part in parts) / len(parts)
    return mean


class MeanOverOutcomes(Resampled):
    """Means over outcomes of the metrics, with one seed on the same resamples of people.

    The people of all outcomes are the same in the same order, so that the bootstrap draws the same
    people for each of them.
    """

    def __init__(self, each: Sequence[Resampled], models: Sequence[str]) -> None:
        self.each, self.boot = each, each[0].boot
        self.models = {model: each[0].models[model] for model in models}

    def metric(self, model: str, metric: str) -> Draws:
        """Return the mean over outcomes on the sample and on every resample."""
        each = [sample.metric(model, metric) for sample in self.each]
        return replace(
            each[0],
            estimate=np.mean([d.estimate for d in each], axis=0),
            resampled=np.mean([d.resampled for d in each], axis=0),
            count=None,
        )

    def interval(self, model: str, metric: str) -> tuple[float, float, float]:
        """Return the mean of a metric over the outcomes, with its interval.

        All resamples of an outcome with an estimate of exactly 0 or 1 agree and say nothing; such
        an outcome widens the interval of the mean by the ends of its own, which is Wilson's.
        """
        estimate, low, high = super().interval(model, metric)
        if METRICS[metric].scale != "logit":
            return estimate, low, high
        if estimate in (0.0, 1.0):  # so is every outcome, and no resample differs
            low = high = estimate
        below = above = 0.0
        for sample in self.each:
            value, value_low, value_high = sample.interval(model, metric)
            if value in (0.0, 1.0):
                below += value - value_low
                above += value_high - value
        n = len(self.each)
        return estimate, max(low - below / n, 0.0), min(high + above / n, 1.0)


# -- as it is printed --------------------------------------------------------------------------

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
    heads, cells = table_cells(table, metrics, form, figures)
    # In LaTeX the notes are comments, which end with the line and need no more.
    escape = one_line if form == "latex" else _FORMS[form].escape
    notes = [escape(note) for note in _notes(table, figures)]
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
        aligned = [f"{{:<{widths[0]}}}", *(f"{{:>{width}}}" for width in widths[1:])]
        lines = ["  ".join(aligned).format(*row).rstrip() for row in rows]
        lines.insert(1, "-" * (sum(widths) + 2 * (len(widths) - 1)))
        lines += notes
    return "\n".join(lines) + "\n"


def format_heading(text: str, form: str) -> str:
    """Return the heading of one of several tables, with its line end."""
    _check_form(form)
    return _FORMS[form].heading.format(_FORMS[form].escape(text))


def _check_form(form: str) -> None:
    if form not in ("text", "markdown", "latex"):
        raise InputError(f"form must be 'text', 'markdown' or 'latex', but got {form!r}.")


def table_cells(
    table: pd.DataFrame, metrics: Sequence[str], form: str, figures: str = "intervals"
) -> tuple[list[str], list[list[str]]]:
    """Return headings and rows of text, escaped for `form`, with the best figures in bold."""
    style = _FORMS[form]
    columns = [*metrics, FEATURES]
    heads = ["", *(METRICS[m].heading for m in metrics), _FEATURES_HEADING]
    best = _best(table, columns, figures)
    rows = []
    # The column with the mark of models at chance level.
    starred = "recall" if "recall" in metrics else columns[0]
    for record in table.to_dict("records"):
        name = str(record["model"])
        label = style.escape(name)
        row = [label.replace("-l1", r"-$\ell$1") if form == "latex" else label]
        rows.append(row)
        if record["failure"]:
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
    return [style.escape(head) for head in heads], rows


def _best(table: pd.DataFrame, columns: Sequence[str], figures: str) -> dict[str, set[str]]:
    """Return the models with the best printed figure of each column; none where all are equal.

    The fewest features are the best. Models that failed or are at chance level do not count.
    """
    eligible = table[(table["failure"] == "") & ~table["note"].str.startswith("chance level")]
    best: dict[str, set[str]] = {}
    for column in columns:
        shown = column if column == FEATURES or figures == "folds" else f"{column}_pooled"
        values = eligible[shown].astype(float).round(2 if column != FEATURES else 12)
        usable = values[values > 0] if column == FEATURES else values.dropna()
        greater = column != FEATURES and METRICS[column].greater_is_better
        top = usable.max() if greater else usable.min()
        best[column] = set(eligible["model"][values == top]) if usable.nunique() > 1 else set()
    return best


def fixed(value: float, digits: int = 2, *, sign: bool = False) -> str:
    """Return a number with so many decimals; one that is rounded to 0 has no sign."""
    text = f"{value:z.{digits}f}"
    return f"+{text}" if sign and float(text) > 0 else text


def _mean_and_sd(mean: float, sd: float, column: str, style: _Form) -> str:
    """Write a mean over folds and its s.d., if there is one; the features with a percent sign."""
    if np.isnan(mean):
        return "-"
    if column != FEATURES:
        return fixed(mean) if np.isnan(sd) else f"{fixed(mean)} {style.sign} {sd:.2f}"
    without_sd = np.isnan(sd) or (sd < _ROUNDING and mean in (0, 100))
    spread = "" if without_sd else f" {style.sign} {_short(sd)}"
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


def _notes(table: pd.DataFrame, figures: str) -> list[str]:
    """Return the lines below the table: what figures and marks mean, and notes on models."""
    notes = []
    records = table.to_dict("records")
    if figures == "intervals" and (table["failure"] == "").any():
        notes.append(_INTERVALS_NOTE)
    if table["note"].str.startswith("chance level").any():
        notes.append(_CHANCE_NOTE)
    for record in records:
        rest = str(record["note"]).removeprefix("chance level").strip("; ")
        if rest:
            notes.append(f"{record['model']}: {rest}.")
    return notes + [f"{r['model']} failed: {r['failure']}" for r in records if r["failure"]]
