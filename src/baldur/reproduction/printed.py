"""The two tables of results as the paper prints them, and whether their figures fit together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from baldur.report.formatting import number, sd_decimals

METRICS = ("accuracy", "balanced_accuracy", "precision", "recall", "f1", "auc")
"""Columns of both tables, under our names; the share of selected features comes last."""

Cell = tuple[float, float] | None


@dataclass(frozen=True)
class PrintedRow:
    """One row of a printed table."""

    cells: Mapping[str, Cell]  # (mean, s.d.)
    percent: tuple[float, float]  # (mean, s.d.)
    chance: bool = False  # Whether the paper marks the row as being at chance level

    def mean(self, metric: str) -> float:
        """Return the printed mean of a metric, NaN where there is a dash."""
        cell = self.cells[metric]
        return float("nan") if cell is None else cell[0]


def _row(
    text: str, percent: tuple[float, float] = (100.0, 0.0), *, chance: bool = False
) -> PrintedRow:
    """Read ``mean sd`` of every metric, separated by commas; a dash where nothing is printed."""
    parts = [part.split() for part in text.split(",")]
    cells: list[Cell] = [None if p == ["-"] else (float(p[0]), float(p[1])) for p in parts]
    return PrintedRow(dict(zip(METRICS, cells, strict=True)), percent, chance)


PRINTED: Mapping[str, Mapping[str, PrintedRow]] = {
    "biofind": {
        "LSVM-l1": _row(".51 .02, .51 .02, .58 .02, .54 .03, .56 .02, .48 .05", (6.78, 0.56)),
        "RF": _row(".56 .01, .49 .01, .57 .01, .95 .03, .71 .01, -", (45.56, 34.03), chance=True),
        "SGP+ARD": _row(".57 .01, .50 .00, .57 .01, 1.00 .00, .73 .01, .58 .06", chance=True),
        "PCA-MCCD": _row(".57 .01, .50 .00, .57 .01, 1.00 .00, .73 .01, -", chance=True),
        "K-MCCD": _row(".57 .01, .50 .00, .57 .01, 1.00 .00, .73 .01, -", chance=True),
        "PCA-AWDR": _row(".56 .02, .49 .01, .56 .04, .93 .13, .70 .06, -", chance=True),
        "K-AWDR": _row(".56 .02, .49 .01, .56 .04, .93 .13, .70 .06, -", chance=True),
        "CPM-Nets": _row(".57 .01, .50 .00, .57 .01, 1.00 .00, .73 .01, -", chance=True),
        "PB-MVBoost": _row(".57 .01, .50 .00, .57 .01, 1.00 .00, .73 .01, -", chance=True),
        "MV-PLS": _row(".43 .02, .49 .05, .52 .12, .38 .22, .41 .20, .49 .06"),
        "Lasso-MkSVM": _row(".66 .07, .66 .07, .64 .13, .73 .06, .68 .10, .68 .08", (5.68, 0.98)),
        "BALDUR": _row(".68 .05, .70 .05, .55 .08, .82 .09, .66 .08, .73 .06", (9.5e-4, 7.6e-5)),
    },
    "adni": {
        "LSVM-l1": _row(".68 .06, .70 .06, .82 .05, .62 .09, .70 .07, .75 .05", (0.23, 0.03)),
        "RF": _row(".75 .03, .74 .03, .81 .02, .80 .04, .80 .03, -", (75.64, 18.16)),
        "SGP+ARD": _row(".74 .03, .75 .02, .87 .02, .67 .05, .76 .03, .81 .04"),
        "PCA-MCCD": _row(".62 .001, .50 .00, .62 .01, 1.00 .00, .76 .01, -", chance=True),
        "K-MCCD": _row(".62 .001, .50 .00, .62 .01, 1.00 .00, .76 .01, -", chance=True),
        "PCA-AWDR": _row(".78 .04, .70 .02, .78 .04, .77 .02, .78 .02, -"),
        "K-AWDR": _row(".77 .02, .75 .03, .80 .02, .82 .02, .80 .02, -"),
        "CPM-Nets": _row(".62 .001, .50 .00, .62 .01, 1.00 .00, .76 .01, -", chance=True),
        "PB-MVBoost": _row(".61 .01, .48 .01, .61 .01, .97 .01, .75 .01, -", chance=True),
        "MV-PLS": _row(".67 .02, .70 .04, .80 .05, .63 .05, .70 .04, .68 .06"),
        "Lasso-MkSVM": _row(".68 .06, .61 .05, .72 .10, .75 .04, .73 .06, .63 .07", (0.54, 0.11)),
        "BALDUR": _row(".78 .03, .80 .02, .80 .12, .93 .02, .80 .03, .85 .03", (2.36, 0.98)),
    },
}  # fmt: skip
"""Study to the rows of its printed table, in their order."""


@dataclass(frozen=True)
class Check:
    """Whether precision and recall of a printed row fit its accuracies."""

    as_printed: str  # accuracy and balanced accuracy that precision and recall imply
    exchanged: str  # the same with precision and recall exchanged
    reading: str  # "as printed", "exchanged", "either way" or "neither way": which values fit
    off_by: float = 0.0  # how far apart the mean specificities are that follow from the row
    contradicts: bool = False  # whether nothing fits even without the balanced accuracy


CHECKS: Mapping[str, Mapping[str, Check]] = {
    "biofind": {
        "LSVM-l1": Check("0.53, 0.53", "0.49, 0.48", "either way"),
        "RF": Check("0.58, 0.53", "0.75, 0.77", "as printed"),
        "SGP+ARD": Check("0.58, 0.53", "0.76, 0.78", "as printed"),
        "PCA-MCCD": Check("0.58, 0.53", "0.76, 0.78", "as printed"),
        "K-MCCD": Check("0.58, 0.53", "0.76, 0.78", "as printed"),
        "PCA-AWDR": Check("0.56, 0.51", "0.73, 0.75", "as printed"),
        "K-AWDR": Check("0.56, 0.51", "0.73, 0.75", "as printed"),
        "CPM-Nets": Check("0.58, 0.53", "0.76, 0.78", "as printed"),
        "PB-MVBoost": Check("0.58, 0.53", "0.76, 0.78", "as printed"),
        "MV-PLS": Check("0.46, 0.47", "0.26, 0.23", "neither way", 0.063),
        "Lasso-MkSVM": Check("0.62, 0.61", "0.67, 0.67", "exchanged"),
        "BALDUR": Check("0.53, 0.49", "0.68, 0.70", "exchanged"),
    },
    "adni": {
        "LSVM-l1": Check("0.68, 0.70", "0.58, 0.50", "as printed"),
        "RF": Check("0.76, 0.75", "0.76, 0.74", "either way"),
        "SGP+ARD": Check("0.73, 0.75", "0.65, 0.58", "as printed"),
        "PCA-MCCD": Check("0.62, 0.50", "0.76, 0.81", "as printed"),
        "K-MCCD": Check("0.62, 0.50", "0.76, 0.81", "as printed"),
        "PCA-AWDR": Check("0.72, 0.71", "0.72, 0.70", "neither way", 0.132, contradicts=True),
        "K-AWDR": Check("0.76, 0.74", "0.77, 0.76", "either way"),
        "CPM-Nets": Check("0.62, 0.50", "0.76, 0.81", "as printed"),
        "PB-MVBoost": Check("0.60, 0.48", "0.75, 0.79", "as printed"),
        "MV-PLS": Check("0.67, 0.69", "0.58, 0.51", "neither way", 0.004, contradicts=True),
        "Lasso-MkSVM": Check("0.66, 0.64", "0.68, 0.66", "neither way", 0.064),
        "BALDUR": Check("0.81, 0.77", "0.84, 0.85", "neither way", 0.102, contradicts=True),
    },
}  # fmt: skip
"""Study to the check of each printed row, which ``tests/reproduction/arithmetic.py`` computes."""

REMARKS: Mapping[str, Mapping[str, str]] = {
    "biofind": {
        "auc": "The paper prints no AUC for 7 of its 11 baselines.",
        "recall": "The recall that the paper prints for BALDUR, 0.82, fits its accuracies only as "
        "a precision; its recall is then 0.55.",
    },
    "adni": {
        "accuracy": "In the paper's table the accuracy of PCA-AWDR is as high (0.78).",
        "f1": "In the paper's table the F1 score of RF and K-AWDR is as high (0.80).",
        "auc": "The paper prints no AUC for 7 of its 11 baselines.",
    },
}  # fmt: skip
"""What a reader of a claim that BALDUR is first has to know about the printed values; by metric."""

POSITIVE_SHARE = {"biofind": (0.553, 0.575), "adni": (0.615, 0.625)}
"""The least and the largest share of the positive class that agree with the text of the paper and
with its rows that assign everybody to that class."""


def percent_texts(mean: float, sd: float) -> tuple[str, str]:
    """Return a share in per cent and its standard deviation, with the same number of decimals.

    Shapes: returns (str, str).

    Examples
    --------
    >>> from baldur.reproduction.printed import percent_texts
    >>> percent_texts(9.5e-4, 7.6e-5)
    ('0.000950', '0.000076')
    """
    digits = sd_decimals(sd) if 0.0 < sd < 0.01 else 2
    return number(mean, digits), number(sd, digits)
