"""Figures of fitted models and of results. Each figure is a Display object.

What comes in: a fitted estimator (``from_estimator``), a `NestedResult` or the path of a results
folder (``from_result``), or a table of numbers. What goes out: ``display.table`` with the numbers,
``display.plot()``, ``display.alt_text`` (what is shown, in one sentence), ``display.save(path)``,
and a picture of itself in a notebook. Drawing needs matplotlib: ``pip install
'baldur-multiview[report]'``. This package may import everything below the study and the report.

=========================  =====================================================================
`ForestDisplay`            weights with intervals and inclusion probabilities
`PathDisplay`              held-out loss along the submodel path, with the selected submodel
`FewFeaturesDisplay`       accuracy with 1, 2, 3, 5, 10, 20 features and without a limit
`CostDisplay`              accuracy by the cost of what is measured
`FoldWeightsDisplay`       absolute weights of the features selected in each fold
`FoldHeatmapDisplay`       signed weights of the same features, one cell per feature and fold
`ViewShareDisplay`         share of each view in the prediction, per fold or factor
`CorrelationDisplay`       correlations of the selected features, with their credible sets
`LatentDisplay`            samples in the latent space
`LoadingsDisplay`          outputs on the latent factors, and the views that factors come from
`ContributionsDisplay`     the prediction for one sample, term by term
`ComparisonDisplay`        metrics of several models with intervals
`OutcomesDisplay`          one metric of every model for each of several outcomes
`RocDisplay`               ROC curves
`PrecisionRecallDisplay`   precision-recall curves
`CalibrationDisplay`       smooth calibration curves
`DecisionDisplay`          net benefit over threshold probabilities
`LearningCurveDisplay`     scores against the number of training samples
`MissingViewsDisplay`      patterns of present and missing views
`AddedValueDisplay`        how well sets of views predict, and what each view adds
`ManhattanDisplay`         variants along the chromosomes
`BrainDisplay`             selected voxels or regions of each image view, and their overlap
`HistoryDisplay`           convergence of a fit
=========================  =====================================================================

`display` has the base class and reads results; `style` has the colours, sizes and parts that all
figures share, and `text` writes their names and numbers.
"""

from baldur.plots.comparison import AddedValueDisplay, ComparisonDisplay, OutcomesDisplay
from baldur.plots.correlation import CorrelationDisplay
from baldur.plots.curves import (
    CalibrationDisplay,
    DecisionDisplay,
    LearningCurveDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
)
from baldur.plots.display import Display
from baldur.plots.feature_locations import BrainDisplay, ManhattanDisplay
from baldur.plots.fit import CostDisplay, FewFeaturesDisplay, HistoryDisplay, PathDisplay
from baldur.plots.samples import ContributionsDisplay, LatentDisplay
from baldur.plots.views import LoadingsDisplay, MissingViewsDisplay, ViewShareDisplay
from baldur.plots.weights import FoldHeatmapDisplay, FoldWeightsDisplay, ForestDisplay

__all__ = [
    "AddedValueDisplay",
    "BrainDisplay",
    "CalibrationDisplay",
    "ComparisonDisplay",
    "ContributionsDisplay",
    "CorrelationDisplay",
    "CostDisplay",
    "DecisionDisplay",
    "Display",
    "FewFeaturesDisplay",
    "FoldHeatmapDisplay",
    "FoldWeightsDisplay",
    "ForestDisplay",
    "HistoryDisplay",
    "LatentDisplay",
    "LearningCurveDisplay",
    "LoadingsDisplay",
    "ManhattanDisplay",
    "MissingViewsDisplay",
    "OutcomesDisplay",
    "PathDisplay",
    "PrecisionRecallDisplay",
    "RocDisplay",
    "ViewShareDisplay",
]
