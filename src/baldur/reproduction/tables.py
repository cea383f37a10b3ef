"""The tables of the page: both tables of results side by side, and a check of the printed one.

Every function takes the figures of a run and returns blocks of the page.
"""

from __future__ import annotations

from typing import Any

from scipy.stats import spearmanr

from baldur.report.formatting import listed, number
from baldur.reproduction.arithmetic import READINGS, implied, mismatches, positive_share
from baldur.reproduction.claims import FIRST_IN
from baldur.reproduction.document import Cell, Table
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.figures import NAMES
from baldur.reproduction.printed import PRINTED, PrintedRow
from baldur.reproduction.protocol import DEFAULT, PAPER
from baldur.reproduction.verdicts import gap_texts

__all__ = ["both_tables", "difference_table", "printed_check"]

HEADINGS = {
    "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "precision": "Precision",
    "recall": "Recall", "f1": "F1", "auc": "AUC",
}  # fmt: skip
"""Names of the metrics as the paper spells them out."""

_SPACE = "\u00a0"  # at which no line breaks
_FEWEST_ROWS = 4  # below which a correlation of ranks says nothing


def difference_table(evidence: Evidence) -> list[Any]:
    """Return the differences of our two rows from every baseline, with simultaneous intervals."""
    wanted = [(PAPER, metric) for metric in FIRST_IN[evidence.protocol.name]] + [(DEFAULT, "auc")]
    wanted = [pair for pair in wanted if pair[0] in evidence.table.index]
    columns = [
        [Cell(*gap_texts(gap)) for gap in evidence.differences(model, evidence.baselines, metric)]
        for model, metric in wanted
    ]
    heads = [HEADINGS[metric] + ", our default" * (model == DEFAULT) for model, metric in wanted]
    lead = (
        "BALDUR with the paper's posterior minus the baseline; in the last column our default "
        "minus the baseline. The 95 % intervals of a column hold for all of its baselines at once."
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
        f"Mean and standard deviation over {evidence.n_folds} outer folds, each with that of the "
        "paper. An asterisk marks a row at chance level, as in the paper."
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
        cells.append(Cell(text, small))
    text = "not run"
    if ran:
        percent = evidence.percent(model)
        text = _percent(float(percent.mean()), float(percent.std(ddof=1)))
    small = "" if printed is None else f"paper {_percent(*printed.percent)}"
    return [*cells, Cell(text, small)]


def _mean_sd(mean: Any, sd: Any) -> str:
    return f"{number(mean)}{_SPACE}±{_SPACE}{number(sd, small=True)}"


def _percent(mean: float, sd: float) -> str:
    text = number(mean, 2, small=True)
    return f"{text}{_SPACE}±{_SPACE}{number(sd, 2, small=True)}" if sd > 0 else text


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
        rho = float("nan")
        if len(pairs) >= _FEWEST_ROWS:
            rho = float(spearmanr(*zip(*pairs, strict=True)).statistic)
        rows.append([HEADINGS[metric], str(len(pairs)), number(rho, sign=True)])
    lead = (
        "How far the order of the rows agrees with that of the paper: Spearman's rank correlation; "
        "1 is the same order."
    )
    return [lead, Table("Agreement of orders", ["Metric", "Rows", "Rank correlation"], rows)]


def printed_check(evidence: Evidence) -> list[Any]:
    """Return how precision and recall of the printed rows fit their accuracies."""
    protocol = evidence.protocol
    printed = PRINTED[protocol.name]
    positives, negatives = protocol.counts
    share = positive_share(printed.values(), positives, negatives)
    shape = protocol.folds, positives + negatives
    off = {name: mismatches(row, share, *shape) for name, row in printed.items()}
    readings = {name: READINGS[a == 0.0, b == 0.0] for name, (a, b) in off.items()}
    checked = ("precision", "recall", "accuracy", "balanced_accuracy")
    rows: list[list[Cell | str]] = []
    for name, row in printed.items():
        precision, recall = row.mean("precision"), row.mean("recall")
        pairs = [(precision, recall), (recall, precision)]
        found = [implied(*pair, positives, negatives) for pair in pairs]
        far = f"off by {number(min(off[name]), 3)}" if min(off[name]) > 0.0 else ""
        rows.append(
            [
                name,
                *(number(row.mean(m)) for m in checked),
                *(", ".join(map(number, values)) for values in found),
                Cell(readings[name], far),
            ]
        )
    lead = (
        "The script that the authors published passes its arguments to the metric functions in the "
        "order (prediction, truth), which exchanges precision and recall. Whether a row fits its "
        "own accuracies as printed or exchanged can be computed."
    )
    words = {
        "exchanged": "Only exchanged values fit in the rows",
        "neither way": "Neither way fits, so that the printed values contradict each other, in",
    }
    for word, text in words.items():
        names = [name for name, found in readings.items() if found == word]
        lead += f" {text} {listed(names)}." if names else ""
    how = (
        "Implied values follow from the printed means with the numbers of people in the text, "
        f"{positives} and {negatives}. The last column allows for rounding to two decimals, for "
        "any stratified folds with the printed means and standard deviations (the mean of a ratio "
        "is not the ratio of means, and folds differ by at most one person of each class), and for "
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
