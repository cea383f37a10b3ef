"""What is on the page of a reproduction: the claims, both tables, the figures, and how it ran."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from baldur.report.formatting import listed, number
from baldur.reproduction.claims import claims_of
from baldur.reproduction.default_claims import default_claims
from baldur.reproduction.document import (
    Cell,
    Document,
    Finding,
    Findings,
    Section,
    Table,
)
from baldur.reproduction.evidence import Evidence
from baldur.reproduction.figures import NAMES, brain_maps, selected_features
from baldur.reproduction.printed import PRINTED, PrintedRow, implied, swapped
from baldur.reproduction.protocol import DEFAULT, FIXED, GRIDS, PAPER
from baldur.reproduction.verdicts import FAILS, HOLDS, IN_PART, OPEN, Claim

__all__ = ["page_of"]

HEADINGS = {
    "accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy", "precision": "Precision",
    "recall": "Recall", "f1": "F1", "auc": "AUC",
}  # fmt: skip
"""Names of the metrics as the paper spells them out."""

_FEWEST_ROWS = 4  # below which a correlation of ranks says nothing


def page_of(evidence: Evidence, request: dict[str, Any], folder: Path) -> Document:
    """Return the page of a finished run; its figures are written as PNG files as well.

    Parameters
    ----------
    evidence : Evidence
        The figures of the run.
    request : dict
        What was asked for: scale, seed, quick, command, date.
    folder : Path
        Where figures are written, below ``figures``.

    Returns
    -------
    Document
    """
    protocol = evidence.protocol
    claims, ours = claims_of(evidence), default_claims(evidence)
    sections = [
        Section("Summary", _summary(evidence, claims)),
        Section("Our default", _default(ours)),
        Section("Both tables, side by side", _tables(evidence)),
        Section("What can be compared", _comparable(evidence)),
        Section("Precision and recall in the printed table", _arithmetic(evidence)),
        Section("Selected features", selected_features(evidence, folder)),
    ]
    if protocol.name == "adni":
        sections.append(Section("Brain maps", brain_maps(evidence, folder)))
    sections.append(Section("How it was run", _how(evidence, request)))
    data = "simulated data" if evidence.simulated else "the data that were given"
    title = f"The paper's study of {protocol.cohort}, run again on {data}"
    return Document(title, _lead(evidence, request), sections)


def _lead(evidence: Evidence, request: dict[str, Any]) -> str:
    data = evidence.result.data
    width = sum(data.n_features.values())
    what = f"{len(data):,} people, {len(data.n_features)} views, {width:,} features"
    protocol = evidence.protocol
    if not evidence.simulated:
        return f"{protocol.cohort}, {protocol.disease}, from files in {request['data']}: {what}."
    scale = float(request["scale"])
    shape = "of the same shape" if scale == 1.0 else f"of the same shape at scale {scale:g}"
    quick = " A quick run: five folds and no search of settings." if request["quick"] else ""
    return (
        f"{protocol.cohort}, {protocol.disease}: the paper's protocol on a simulated cohort "
        f"{shape} ({what}).{quick}"
    )


# -- claims ----------------------------------------------------------------------------------------


def _summary(evidence: Evidence, claims: list[Claim]) -> list[Any]:
    counts = Counter(claim.verdict.outcome for claim in claims)
    order = (HOLDS, IN_PART, OPEN, FAILS)
    said = [f"{counts[name]} {name}" for name in order if counts[name]]
    left = len(claims) - sum(counts[name] for name in order)
    said += [f"{left} not tested"] if left else []
    first = f"Of {len(claims)} claims of the paper about this study, {listed(said)}."
    how = (
        "Differences between models are decided by their 95 % intervals (paired bootstrap of "
        'held-out predictions): "not decided" means that the interval includes 0. Claims about '
        "selected features are decided fold by fold."
    )
    return [first, how, _claims(claims)]


def _default(claims: list[Claim]) -> list[Any]:
    lead = (
        "The default estimator of this package, BaldurClassifier, was run on the same folds. It "
        "has the paper's model with another posterior and another rule of selection."
    )
    return [
        lead,
        _claims(claims, {HOLDS: "holds", IN_PART: "holds in part", FAILS: "does not hold"}),
    ]


def _claims(claims: list[Claim], words: Mapping[str, str] | None = None) -> Findings:
    """Return the claims with their outcomes, in other words where some are given."""
    levels = {HOLDS: "note", FAILS: "serious"}
    return Findings(
        [
            Finding(
                claim.text,
                (words or {}).get(claim.verdict.outcome, claim.verdict.outcome),
                claim.verdict.figures,
                claim.verdict.why,
                levels.get(claim.verdict.outcome, "care"),
            )
            for claim in claims
        ]
    )


# -- tables ----------------------------------------------------------------------------------------


def _tables(evidence: Evidence) -> list[Any]:
    protocol = evidence.protocol
    printed = PRINTED[protocol.name]
    rows: list[list[Cell | str]] = []
    for name in protocol.rows:
        row = printed.get("BALDUR" if name == PAPER else name) if name != DEFAULT else None
        rows.append([NAMES.get(name, name), *_cells(evidence, name, row)])
    table = Table(
        f"Mean and standard deviation over {evidence.n_folds} outer folds; below each figure that "
        "of the paper. An asterisk marks a row at chance level, as in the paper.",
        ["Model", *HEADINGS.values(), "% features"],
        rows,
    )
    missing = [f"{NAMES.get(m, m)}: {why}." for m, why in (evidence.not_run or {}).items()]
    return [table, *([missing] if missing else []), *_orders(evidence)]


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
            "" if printed is None else "paper –" if there is None else f"paper {_mean_sd(*there)}"
        )
        if metric == "recall" and printed is not None and printed.chance:
            small += " *"
        cells.append(Cell(text, small))
    text = "not run"
    if ran:
        percent = evidence.percent(model)
        text = _percent(float(percent.mean()), float(percent.std(ddof=1)))
    small = "" if printed is None else f"paper {_percent(*printed.percent)}"
    return [*cells, Cell(text, small)]


def _mean_sd(mean: Any, sd: Any) -> str:
    return f"{number(mean)} ± {number(sd)}"


def _percent(mean: float, sd: float) -> str:
    text = number(mean, 2, small=True)
    return f"{text} ± {number(sd, 2, small=True)}" if sd > 0 else text


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
    caption = (
        "Agreement of the order of the rows with that of the paper (Spearman's rank correlation; 1 "
        "is the same order)"
    )
    return [Table(caption, ["Metric", "Rows", "Rank correlation"], rows)]


def _comparable(evidence: Evidence) -> list[Any]:
    if not evidence.simulated:
        return [
            "The data are a user's own. Values can be compared with those of the paper if people, "
            "features and preparation are the same; folds differ, because the paper does not list "
            "them.",
            _sizes(evidence),
        ]
    return [
        "The data are simulated, because the real ones may not be passed on. Which model is better "
        "than which, how many features are selected, and whether they are the right ones can be "
        "compared with the paper. Values cannot: how strong the simulated signal is was our choice "
        "(see the documentation of the simulators in baldur.datasets).",
        [
            "Comparable: the order of the rows, views and features that are selected, their "
            "number, agreement between folds.",
            "Not comparable: the values of accuracy, AUC and the like; the share of features where "
            "the scale is below 1, because fewer features are there.",
            "The paper lists neither its folds nor the settings that it searched; ours are below.",
        ],
        _sizes(evidence),
    ]


def _sizes(evidence: Evidence) -> Table:
    protocol, data = evidence.protocol, evidence.result.data
    people = np.bincount(evidence.result.truth.astype(int))[::-1]
    classes = [str(c) for c in evidence.result.classes][::-1]
    rows = [
        [f"People, {name}", f"{paper:,}", f"{int(here):,}"]
        for name, paper, here in zip(classes, protocol.counts, people, strict=False)
    ]
    rows += [
        [f"Features, {view}", f"{width:,}", f"{data.n_features.get(view, 0):,}"]
        for view, width in protocol.views.items()
    ]
    return Table("Size of the cohort", ["", "Paper", "Here"], rows)


def _arithmetic(evidence: Evidence) -> list[Any]:
    protocol = evidence.protocol
    positives, negatives = protocol.counts
    rows, exchanged = [], []
    printed_columns = ("precision", "recall", "accuracy", "balanced_accuracy")
    for name, row in PRINTED[protocol.name].items():
        precision, recall = row.mean("precision"), row.mean("recall")
        as_printed = implied(precision, recall, positives, negatives)
        other = implied(recall, precision, positives, negatives)
        verdict = swapped(row, positives, negatives)
        if verdict:
            exchanged.append(name)
        rows.append(
            [
                name,
                *(number(row.mean(m)) for m in printed_columns),
                f"{number(as_printed.accuracy)}, {number(as_printed.balanced_accuracy)}",
                f"{number(other.accuracy)}, {number(other.balanced_accuracy)}",
                {True: "exchanged", False: "as printed", None: "cannot be determined"}[verdict],
            ]
        )
    found = (
        f"Only exchanged values agree with the printed accuracies in the rows {listed(exchanged)}."
        if exchanged
        else "There is no row in which only exchanged values agree with the printed accuracies."
    )
    lead = (
        f"With {positives} people of the positive and {negatives} of the negative class, precision "
        "and recall imply accuracy and balanced accuracy. The script that the authors published "
        "passes its arguments to the metric functions in the order (prediction, truth), which "
        f"exchanges precision and recall. {found}"
    )
    columns = [
        "Model", "Precision", "Recall", "Accuracy", "Balanced accuracy", "Implied as printed",
        "Implied if exchanged", "Precision and recall are",
    ]  # fmt: skip
    caption = "Implied: accuracy, balanced accuracy. Two values within 0.035 of each other agree."
    return [lead, Table(caption, columns, rows)]


# -- how -------------------------------------------------------------------------------------------


def _how(evidence: Evidence, request: dict[str, Any]) -> list[Any]:
    plan = evidence.result.comparison.plan
    items = [
        f"Command: {request['command']}",
        f"Started on {request['date']}.",
        f"Nested cross-validation with {plan.outer} outer folds, stratified by class, and "
        f"{plan.inner} inner folds; settings are selected by AUC. In the paper: "
        f"{evidence.protocol.folds} outer and {evidence.protocol.folds} inner folds.",
        "All tables, predictions and the ordinary report are in the folder results.",
    ]
    if request["quick"]:
        return [
            items,
            "No settings were searched: models have the defaults of their class, or the settings "
            "that study.toml lists.",
        ]
    rows = [[name, _grid(grid), _fixed(name)] for name, grid in GRIDS.items()]
    rows += [[name, "nothing", _fixed(name)] for name in FIXED if name not in GRIDS]
    return [items, Table("Settings of the baselines", ["Model", "Searched", "Fixed"], rows)]


def _grid(grid: Any) -> str:
    return "; ".join(f"{key} = {', '.join(map(str, values))}" for key, values in grid.items())


def _fixed(name: str) -> str:
    return "; ".join(f"{key} = {value}" for key, value in FIXED.get(name, {}).items())
