"""Figures: each is a Display with its numbers, a drawing and a sentence for those who cannot see.

=========================  =====================================================================
`ForestDisplay`            weights with intervals, and the probability of being in
`PathDisplay`              the path from nothing to everything, reference, bound and choice
`FoldWeightsDisplay`       features selected per fold with absolute weight, common ones marked
`FoldHeatmapDisplay`       the same as cells with signs
`ViewShareDisplay`         share of each view, per fold or factor
`CorrelationDisplay`       kept features across views, with their credible sets
`LatentDisplay`            people in the latent space
`ContributionsDisplay`     one person's prediction, term by term
`ComparisonDisplay`        models compared, with intervals
`RocDisplay`               ROC curves with bands
`PrecisionRecallDisplay`   precision-recall curves with bands
`CalibrationDisplay`       smooth calibration curves with bands
`DecisionDisplay`          net benefit over thresholds
`LearningCurveDisplay`     scores against training people
`MissingViewsDisplay`      who lacks which view
`ManhattanDisplay`         variants along the chromosomes
`BrainDisplay`             kept voxels or regions of each image view, and their overlap
`HistoryDisplay`           bound and active features over passes
=========================  =====================================================================

``display.table`` has the numbers, ``display.plot()`` draws (`ax`, `theme`, `width`),
``display.alt_text`` says what is shown, ``display.save("figure.pdf")`` writes a file. Needs
matplotlib, which is installed with ``pip install 'baldur-multiview[report]'``.
"""

from baldur.plots.base import Display
from baldur.plots.brain import BrainDisplay
from baldur.plots.calibration import CalibrationDisplay
from baldur.plots.comparison import ComparisonDisplay
from baldur.plots.contributions import ContributionsDisplay
from baldur.plots.correlation import CorrelationDisplay
from baldur.plots.decision import DecisionDisplay
from baldur.plots.fold_heatmap import FoldHeatmapDisplay
from baldur.plots.fold_weights import FoldWeightsDisplay
from baldur.plots.forest import ForestDisplay
from baldur.plots.history import HistoryDisplay
from baldur.plots.latent import LatentDisplay
from baldur.plots.learning import LearningCurveDisplay
from baldur.plots.manhattan import ManhattanDisplay
from baldur.plots.missing_views import MissingViewsDisplay
from baldur.plots.path import PathDisplay
from baldur.plots.precision_recall import PrecisionRecallDisplay
from baldur.plots.results import Results
from baldur.plots.roc import RocDisplay
from baldur.plots.view_share import ViewShareDisplay

__all__ = [
    "BrainDisplay",
    "CalibrationDisplay",
    "ComparisonDisplay",
    "ContributionsDisplay",
    "CorrelationDisplay",
    "DecisionDisplay",
    "Display",
    "FoldHeatmapDisplay",
    "FoldWeightsDisplay",
    "ForestDisplay",
    "HistoryDisplay",
    "LatentDisplay",
    "LearningCurveDisplay",
    "ManhattanDisplay",
    "MissingViewsDisplay",
    "PathDisplay",
    "PrecisionRecallDisplay",
    "Results",
    "RocDisplay",
    "ViewShareDisplay",
]
