"""Tables of clinical use: the models as tests at thresholds, and figures in subgroups."""

from __future__ import annotations

import numpy as np
import pandas as pd

from baldur.evaluation.clinical.thresholds import SAME_PEOPLE
from baldur.evaluation.metrics import METRICS
from baldur.report.formatting import count, number
from baldur.report.results import StudyResults
from baldur.report.tables.base import Cell, Column, Table

MOST_ROWS = 300
"""Rows of subgroups on the page; the file has them all."""

_MEASURES = {
    "sensitivity": "Sensitivity", "specificity": "Specificity", "ppv": "Positive predictive value",
    "npv": "Negative predictive value", "lr_positive": "Likelihood ratio, positive",
    "lr_negative": "Likelihood ratio, negative", "number_needed_to_test": "Number needed to test",
    "number_needed_to_evaluate": "Number needed to evaluate",
}  # fmt: skip
_RULES = {"stated": "", "prevalence": "prevalence"}
_CHOSEN = (
    "A threshold that was chosen for a sensitivity or specificity is the one chosen on all people. "
    "Its figures are for the people of each fold with the threshold chosen on the other folds"
)


def threshold_table(run: StudyResults) -> Table:
    """Return what the models would do as tests at stated thresholds."""
    frame = run.table("thresholds")
    columns = [Column("Model", numeric=False), Column("Threshold")]
    columns += [Column(name) for name in _MEASURES.values()]
    table = Table("thresholds", "The models as tests, with 95 % intervals", columns)
    if "measure" not in frame:
        return table
    for (model, threshold, rule), part in frame.groupby(["model", "threshold", "rule"], sort=False):
        by = part.drop_duplicates("measure").set_index("measure")
        at = _RULES.get(str(rule), f"chosen for {rule}")
        if SAME_PEOPLE in str(part["note"].iloc[0]):
            at += ", optimistic"
        cells = [Cell.name(model), Cell(number(threshold), float(str(threshold)), at)]
        for key in _MEASURES:
            if key in by.index:
                row = by.loc[key]
                cells.append(Cell.interval(row["estimate"], row["low"], row["high"]))
            else:
                cells.append(Cell("–"))
        table.add(cells, model=str(model))
    chosen = frame[~frame["rule"].isin(_RULES)]
    same = chosen["note"].astype(str).str.contains(SAME_PEOPLE)
    if len(chosen):
        table.note = (
            f"{_CHOSEN}."
            if not same.any()
            else f"{_CHOSEN}; those marked ‘optimistic’ are for the people on whom it was chosen."
        )
    return table


_ICI = (
    "ICI, the integrated calibration index, is the mean distance of probabilities from a smooth "
    "curve of observed frequencies; the calibration error of the models is computed in bins, so "
    "the two differ."
)


def subgroup_table(run: StudyResults, main: str | None) -> Table:
    """Return the figures of the model in subgroups, and their differences from all others."""
    frame = run.table("subgroups") if main is None else run.of_model("subgroups", main)
    columns = [
        Column("Subgroup", numeric=False), Column("Level", numeric=False), Column("People"),
        Column("Cases"), Column("Measure", numeric=False), Column("Estimate"),
        Column("Difference", "subgroup minus all others"), Column("Note", numeric=False),
    ]  # fmt: skip
    table = Table("subgroups", "Figures in subgroups, with 95 % intervals", columns)
    if "measure" not in frame:
        return table
    for row in frame.head(MOST_ROWS).to_dict("records"):
        measure = str(row["measure"])
        name = METRICS[measure].heading if measure in METRICS else measure.replace("_", " ")
        table.add(
            [
                Cell.name(row["subgroup"]), Cell.name(row["level"]), Cell.whole(row["people"]),
                Cell.whole(row["cases"]), Cell.name("ICI" if name == "ici" else name),
                Cell.interval(row["estimate"], row["low"], row["high"]),
                Cell.interval(row["difference"], row["difference_low"], row["difference_high"]),
                Cell.name(row["note"]),
            ]
        )  # fmt: skip
    table.note = multiplicity(frame)
    if "ici" in set(frame["measure"]):
        table.note += f" {_ICI}"
    if len(frame) > MOST_ROWS:
        table.note += f" {count(len(frame) - MOST_ROWS, 'row')} more in subgroups.csv."
    return table


def multiplicity(frame: pd.DataFrame) -> str:
    """Return how many differences are shown, and how many would exclude 0 by chance."""
    ends = frame[["difference_low", "difference_high"]].to_numpy(dtype=float)
    ends = ends[np.isfinite(ends).all(axis=1)]
    if not len(ends):
        return ""
    apart = int(np.sum((ends[:, 0] > 0) | (ends[:, 1] < 0)))
    expected = number(0.05 * len(ends), 1).removesuffix(".0")
    return (
        f"{count(len(ends), 'difference')} {'is' if len(ends) == 1 else 'are'} compared with 0, "
        f"and {apart} of the intervals {'excludes' if apart == 1 else 'exclude'} it. The intervals "
        f"are not adjusted for their number: about {expected} would exclude 0 by chance alone."
    )
