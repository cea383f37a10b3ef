"""Precision-recall curves: precision against sensitivity."""

from __future__ import annotations

from typing import Any

from baldur.evaluation.clinical.curves import precision_recall_curves
from baldur.plots.clinical.ranking import RankingDisplay
from baldur.plots.drawing.style import Style


class PrecisionRecallDisplay(RankingDisplay):
    """Precision against sensitivity, with a pointwise 95 % band and the prevalence.

    Parameters
    ----------
    table : DataFrame
        model, class, sensitivity, precision, low, high, prevalence; as
        `baldur.evaluation.clinical.precision_recall_curves` gives it.
    areas : DataFrame, optional
        model, class, measure, estimate, low, high; as `curve_areas` gives it.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import PrecisionRecallDisplay
    >>> held_out = pd.DataFrame({"model": "ridge", "label": ["PD", "PD", "HC", "PD", "HC", "HC"],
    ...                          "p_PD": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> display = PrecisionRecallDisplay.from_predictions(held_out, resamples=100)
    >>> print(display.alt_text)
    Precision-recall curve with a 95 % band (precision by chance 50%): ridge, average precision
    0.92 (0.56 to 0.99).
    """

    curves = staticmethod(precision_recall_curves)
    called = "Precision-recall curve"
    columns = ("sensitivity", "precision")
    headings = ("Sensitivity (recall)", "Precision")
    area = ("average_precision", "average precision", "AP")

    def _chance_text(self) -> str:
        shares = self.table["prevalence"].astype(float)
        low, high = f"{shares.min():.0%}", f"{shares.max():.0%}"
        return f" (precision by chance {low if low == high else f'{low} to {high}'})"

    def _chance(self, ax: Any, style: Style) -> None:
        shares = self.table["prevalence"].astype(float)
        if shares.nunique() > 2:
            # One line per class would be a hatching: the range is shown instead.
            ax.axhspan(shares.min(), shares.max(), color=style.faint, alpha=0.25, linewidth=0.0)
            return
        for share in shares.unique():
            ax.axhline(share, color=style.faint, linestyle=":", linewidth=1.0, zorder=0)
