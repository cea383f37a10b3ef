"""The tables of the page: both tables of results side by side, and a check of the printed one.

Every function takes the figures of a run and returns blocks of the page.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from baldur import plots
from baldur.report.formatting import Cell, count, listed, number, p_value
from baldur.report.pictures import Plan, draw
from baldur.reproduction.claims import FIRST_IN
from baldur.reproduction.document import Figure, Table
from baldur.reproduction.evidence import Evidence, gap_texts
from baldur.reproduction.printed import (
    CHECKS,
    POSITIVE_SHARE,
    PRINTED,
    PrintedRow,
    percent_texts,
)
from baldur.reproduction.protocol import DEFAULT, PAPER

NAMES = {PAPER: "BALDUR, the paper's posterior", DEFAULT: "BALDUR, our default"}
"""What our two rows are called on the page."""
FIGURES = "figures"
"""Folder of the figures of the Markdown page."""
_DPI = 110  # about 570 pixels wide, and some tens of kilobytes

_KINDS: Mapping[str, tuple[Any, str]] = {
    "features": (
        plots.FoldWeightsDisplay,
        "features selected in each fold and their absolute weights, as in the paper's figure of "
        "features per fold",
    ),
    "brain": (
        plots.BrainDisplay,
        "voxels that at least one fold selects, with mean weights, and their overlap, as in the "
        "paper's figure of brain regions",
    ),
}
"""Kind of a figure to the class that draws it, and its caption."""


def selected_features(evidence: Evidence, folder: Path) -> list[Any]:
    """Return the table of selected features by view, and the figure of each fold's features."""
    views = list(evidence.result.data.n_features)
    rows: list[list[Cell | str]] = []
    for model in _drawn(evidence):
        counts = evidence.selected(model)
        cells = [Cell(number(counts[v].mean(), 1), small=_used(counts[v])) for v in views]
        rows.append([NAMES[model], *cells])
    table = Table(
        "Selected features: mean over folds (folds that use the view)",
        ["Model", *views],
        rows,
    )
    return [table, *_figures(evidence, "features", folder)]


def _drawn(evidence: Evidence) -> list[str]:
    return [model for model in NAMES if model in evidence.table.index]


def _used(counts: Any) -> str:
    return f"{int((counts > 0).sum())} of {count(len(counts), 'fold')}"


def brain_maps(evidence: Evidence, folder: Path) -> list[Any]:
    """Return the figures of the selected voxels of both images."""
    lead = "The figures show slices through the centre of the weights."
    if evidence.simulated:
        lead += (
            " The simulated brain is an ellipsoid; the template below it only serves orientation. "
            "Signal was put into two patches at the hippocampi in both images, one at the "
            "ventricles in the intensities, and one in the cerebellum in grey matter."
        )
    return [lead, *_figures(evidence, "brain", folder)]


def _figures(evidence: Evidence, kind: str, folder: Path) -> list[Any]:
    """Draw the figure of both models for both pages; say in words which cannot be drawn."""
    display, caption = _KINDS[kind]
    plans = {}
    for model in _drawn(evidence):
        name = f"{evidence.protocol.name}-{kind}-{'paper' if model == PAPER else 'default'}"
        make = partial(display.from_result, evidence.result, model)
        plans[name] = Plan(name, "", f"{NAMES[model]}: {caption}", make, wide=True)
    pictures, left = draw(list(plans.values()))
    blocks: list[Any] = []
    for picture in pictures:
        file = f"{FIGURES}/{picture.id}.png"
        plans[picture.id].make().plot(theme="light").save(folder / file, dpi=_DPI)
        blocks.append(Figure(picture, file))
    return [*blocks, *([[f"Not drawn: {text}" for text in left]] if left else [])]


HEADINGS = {
    "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "precision": "Precision",
    "recall": "Recall", "f1": "F1", "auc": "AUC",
}  # fmt: skip
"""Names of the metrics as the paper spells them out."""

_SPACE = "\u00a0"  # at which no line breaks
_FEWEST_ROWS = 4  # below which a correlation of ranks says nothing
_ORDERS = 9999  # orders drawn for the p-value of a correlation, whose s.d. is then at most .005


def difference_table(evidence: Evidence) -> list[Any]:
    """Return the differences of our two rows from every baseline, with simultaneous intervals."""
    wanted = [(PAPER, metric) for metric in FIRST_IN[evidence.protocol.name]] + [(DEFAULT, "auc")]
    wanted = [pair for pair in wanted if pair[0] in evidence.table.index]
    columns = []
    for model, metric in wanted:
        gaps = map(gap_texts, evidence.differences(model, evidence.baselines, metric))
        columns.append([Cell(value, small=ends) for value, ends in gaps])
    if not wanted or not evidence.baselines:
        return ["The rows that would be compared were not run."]
    heads = [HEADINGS[metric] + ", our default" * (model == DEFAULT) for model, metric in wanted]
    lead = (
        "BALDUR with the paper's posterior (in a column of our default: the default) minus the "
        "baseline. The 95 % intervals of a column hold for all of its baselines at once."
    )
    rows = [list(row) for row in zip(evidence.baselines, *columns, strict=True)]
    return [lead, Table("Difference, with its interval", ["Baseline", *heads], rows)]


def both_tables(evidence: Evidence) -> list[Any]:
    """Return our table beside the printed one, and how far the order of the rows agrees."""
    protocol = evidence.protocol
    printed = PRINTED[protocol.name]
    rows: list[list[Cell | str]] = []
    for name in protocol.rows:
        row = printed.get("BALDUR" if name == PAPER else name) if name != DEFAULT else None
        rows.append([NAMES.get(name, name), *_cells(evidence, name, row)])
    lead = (
        f"Mean and standard deviation over {evidence.n_folds} outer folds, each with the values of "
        f"the paper ({protocol.folds} folds). The paper does not say what it prints after ±; it is "
        "taken as the standard deviation over folds. An asterisk marks a row at chance level: here "
        "one that assigns nearly everybody to one class, in the paper as printed."
    )
    columns = ["Model", *HEADINGS.values(), "% features"]
    table = Table("Results, here and in the paper", columns, rows)
    missing = [f"{NAMES.get(m, m)}: {why}." for m, why in (evidence.not_run or {}).items()]
    return [lead, table, *([missing] if missing else []), *_orders(evidence)]


def _cells(evidence: Evidence, model: str, printed: PrintedRow | None) -> list[Cell]:
    cells = []
    ran = model in evidence.table.index
    ours = evidence.table.loc[model] if ran else None
    for metric in HEADINGS:
        text = "not run" if ours is None else _mean_sd(ours[metric], ours[f"{metric}_sd"])
        if metric == "recall" and ours is not None and str(ours["note"]).startswith("chance"):
            text += " *"
        there = None if printed is None else printed.cells[metric]
        small = (
            ""
            if printed is None
            else "paper –"
            if there is None
            else f"paper{_SPACE}{_mean_sd(*there)}"
        )
        if metric == "recall" and printed is not None and printed.chance:
            small += f"{_SPACE}*"
        cells.append(Cell(text, small=small))
    text = "not run"
    if ran:
        percent = evidence.percent(model)
        text = _percent(float(percent.mean()), float(percent.std(ddof=1)))
    small = "" if printed is None else f"paper {_percent(*printed.percent)}"
    return [*cells, Cell(text, small=small)]


def _mean_sd(mean: Any, sd: Any) -> str:
    return f"{number(mean)}{_SPACE}±{_SPACE}{number(sd, small=True)}"


def _percent(mean: float, sd: float) -> str:
    return f"{_SPACE}±{_SPACE}".join(percent_texts(mean, sd)) if sd > 0 else number(mean)


def _orders(evidence: Evidence) -> list[Any]:
    """Return how far the order of the rows is that of the paper, metric by metric."""
    printed = PRINTED[evidence.protocol.name]
    rows = []
    for metric in HEADINGS:
        values = evidence.table[metric].astype(float).to_dict()
        pairs = [
            (row.mean(metric), values[ours])
            for name, row in printed.items()
            for ours in [PAPER if name == "BALDUR" else name]
            if row.cells[metric] is not None and ours in values
        ]
        found = (float("nan"), float("nan"))
        if len(pairs) >= _FEWEST_ROWS:
            found = _rank_correlation(*zip(*pairs, strict=True))
        cells = number(found[0], sign=True), p_value(found[1])
        rows.append([HEADINGS[metric], str(len(pairs)), *cells])
    lead = (
        "How far the order of the rows agrees with that of the paper: Spearman's rank correlation; "
        "1 is the same order. P is the share of the orders of our rows, drawn at random, whose "
        "correlation is as far from 0. Rows with the same printed value are ties."
    )
    columns = ["Metric", "Rows", "Rank correlation", "P"]
    return [lead, Table("Agreement of orders", columns, rows)]


def _rank_correlation(printed: Sequence[float], ours: Sequence[float]) -> tuple[float, float]:
    """Return Spearman's correlation, and its two-sided p-value by random orders of our rows."""
    ranks = [rankdata(values) for values in (printed, ours)]
    there, here = ((x - x.mean()) / (np.linalg.norm(x - x.mean()) or np.nan) for x in ranks)
    rho = float(here @ there)
    if np.isnan(rho):
        return rho, rho
    orders = np.random.default_rng(0).permuted(np.tile(here, (_ORDERS, 1)), axis=1)
    as_far = np.abs(orders @ there) >= abs(rho) - 1e-12  # ties differ by rounding
    return rho, float((1 + as_far.sum()) / (1 + _ORDERS))


def printed_check(evidence: Evidence) -> list[Any]:
    """Return how precision and recall of the printed rows fit their accuracies."""
    protocol = evidence.protocol
    printed = PRINTED[protocol.name]
    positives, negatives = protocol.counts
    share, fits = POSITIVE_SHARE[protocol.name], CHECKS[protocol.name]
    checked = ("precision", "recall", "accuracy", "balanced_accuracy")
    rows: list[list[Cell | str]] = []
    for name, row in printed.items():
        fit = fits[name]
        far = f"off by {number(fit.off_by, 3)}" if fit.off_by > 0.0 else ""
        rows.append(
            [
                name,
                *(number(row.mean(m)) for m in checked),
                fit.as_printed,
                fit.exchanged,
                Cell(fit.reading, small=far),
            ]
        )
    lead = (
        "The script that the authors published passes its arguments to the metric functions in the "
        "order (prediction, truth). This exchanges precision and recall, and turns the balanced "
        "accuracy into the mean of the positive and the negative predictive value. Whether "
        "precision and recall of a row fit its own accuracies as printed or exchanged can be "
        "computed."
    )
    kinds = {
        "Only exchanged values fit in the rows": [
            name for name, fit in fits.items() if fit.reading == "exchanged"
        ],
        "Whatever the order of the arguments was, the printed values contradict each other in": [
            name for name, fit in fits.items() if fit.contradicts
        ],
        "Neither way fits, unless the balanced accuracy is the one of (prediction, truth), in": [
            name for name, fit in fits.items() if fit.off_by > 0.0 and not fit.contradicts
        ],
    }
    for text, names in kinds.items():
        lead += f" {text} {listed(names)}." if names else ""
    how = (
        "Implied values follow from the printed means with the numbers of people in the text, "
        f"{positives} and {negatives}. The last column allows for rounding to two decimals, for "
        "any stratified folds with the printed means and standard deviations (the mean of a ratio "
        "is not the ratio of means, and folds differ by at most one person of each class; what the "
        "paper prints after ± is taken as the standard deviation over folds), and for "
        f"a share of the positive class of {number(share[0], 3)} to {number(share[1], 3)}, which "
        "covers the numbers in the text and the accuracies of models that assign everybody to it. "
        "Off by: how far apart the values of the mean specificity "
        "are that follow from the row."
    )
    columns = (
        "Model", "Precision", "Recall", "Accuracy", "Balanced accuracy", "Implied as printed",
        "Implied if exchanged", "Precision and recall fit",
    )  # fmt: skip
    return [lead, how, Table("Implied: accuracy, balanced accuracy", columns, rows)]
