"""ROC curves: sensitivity against the false-positive rate."""

from __future__ import annotations

from baldur.evaluation.clinical.curves import roc_curves
from baldur.plots.clinical.ranking import RankingDisplay

__all__ = ["RocDisplay"]


class RocDisplay(RankingDisplay):
    """Sensitivity against the false-positive rate, with a pointwise 95 % band.

    Parameters
    ----------
    table : DataFrame
        model, class, false_positive_rate, sensitivity, low, high; as
        `baldur.evaluation.clinical.roc_curves` gives it.
    areas : DataFrame, optional
        model, class, measure, estimate, low, high; as `curve_areas` gives it.
    """

    curves = staticmethod(roc_curves)
    called = "ROC curve"
    columns = ("false_positive_rate", "sensitivity")
    headings = ("False-positive rate (1 − specificity)", "Sensitivity")
    area = ("auc", "area under the curve", "AUC")
