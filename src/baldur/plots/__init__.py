"""Figures: each is a Display with its numbers, a drawing and a sentence for those who cannot see.

=========================  =====================================================================
`ForestDisplay`            weights with intervals, and the probability of being in
`PathDisplay`              the path from nothing to everything, reference, bound and choice
`ViewShareDisplay`         share of each view, per fold or factor
`ContributionsDisplay`     one person's prediction, term by term
`ComparisonDisplay`        models compared, with intervals
`RocDisplay`               ROC curves with bands
`PrecisionRecallDisplay`   precision-recall curves with bands
`CalibrationDisplay`       smooth calibration curves with bands
`DecisionDisplay`          net benefit over thresholds
=========================  =====================================================================

``display.table`` has the numbers, ``display.plot()`` draws (`ax`, `theme`, `width`),
``display.alt_text`` says what is shown, ``display.save("figure.pdf")`` writes a file. Needs
matplotlib, which is installed with ``pip install 'baldur-multiview[report]'``.
"""

from baldur.plots.base import Display
from baldur.plots.calibration import CalibrationDisplay
from baldur.plots.comparison import ComparisonDisplay
from baldur.plots.contributions import ContributionsDisplay
from baldur.plots.decision import DecisionDisplay
from baldur.plots.forest import ForestDisplay
from baldur.plots.path import PathDisplay
from baldur.plots.precision_recall import PrecisionRecallDisplay
from baldur.plots.results import Results
from baldur.plots.roc import RocDisplay
from baldur.plots.view_share import ViewShareDisplay

__all__ = [
    "CalibrationDisplay",
    "ComparisonDisplay",
    "ContributionsDisplay",
    "DecisionDisplay",
    "Display",
    "ForestDisplay",
    "PathDisplay",
    "PrecisionRecallDisplay",
    "Results",
    "RocDisplay",
    "ViewShareDisplay",
]
