"""ROC curves: sensitivity against the false-positive rate."""

from __future__ import annotations

from baldur.evaluation.clinical.curves import roc_curves
from baldur.plots.clinical.ranking import RankingDisplay


class RocDisplay(RankingDisplay):
    """Sensitivity against the false-positive rate, with a pointwise 95 % band.

    Parameters
    ----------
    table : DataFrame
        model, class, false_positive_rate, sensitivity, low, high; as
        `baldur.evaluation.clinical.roc_curves` gives it.
    areas : DataFrame, optional
        model, class, measure, estimate, low, high; as `curve_areas` gives it.

    Examples
    --------
    >>> import pandas as pd
    >>> from baldur.plots import RocDisplay
    >>> held_out = pd.DataFrame({"model": "ridge", "label": ["PD", "PD", "HC", "PD", "HC", "HC"],
    ...                          "p_PD": [0.9, 0.8, 0.7, 0.4, 0.3, 0.1]})
    >>> RocDisplay.from_predictions(held_out, resamples=100).alt_text
    'ROC curve with a 95 % band: ridge, area under the curve 0.89 (0.28 to 0.99).'
    """

    curves = staticmethod(roc_curves)
    called = "ROC curve"
    columns = ("false_positive_rate", "sensitivity")
    headings = ("False-positive rate (1 − specificity)", "Sensitivity")
    area = ("auc", "area under the curve", "AUC")
