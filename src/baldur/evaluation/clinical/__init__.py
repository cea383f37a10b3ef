"""Clinical figures of held-out predictions: intervals, calibration, net benefit, subgroups.

In: a predictions table (as ``predictions.csv``) of one or several models, or arrays.
Out: tidy data frames, for a file or a figure; no drawings.

- `bootstrap_intervals` resamples people (and never fits a model).
- `held_out` reads the predictions. A `Statistic` is a function of predictions and weights with the
  names of its rows; `Resampled.table` applies statistics to all models, on the resamples that all
  tables of a run share, and returns the table with intervals.
- `metric_intervals`, `calibration`, `curves`, `decision` and `learning_curves` define
  statistics; `evaluation` computes all tables.

``docs/understand/evaluation.md`` says what the intervals include. It may import the metrics;
no other part of the evaluation.
"""

from baldur.evaluation.clinical.calibration import (
    calibration_curves,
    calibration_measures,
)
from baldur.evaluation.clinical.decision import decision_curves, net_benefit, threshold_measures
from baldur.evaluation.clinical.evaluation import Evaluation, evaluate_predictions
from baldur.evaluation.clinical.learning_curves import learning_curves
from baldur.evaluation.clinical.metric_intervals import (
    metric_differences,
    metric_intervals,
    subgroup_measures,
)

__all__ = [
    "Evaluation",
    "calibration_curves",
    "calibration_measures",
    "decision_curves",
    "evaluate_predictions",
    "learning_curves",
    "metric_differences",
    "metric_intervals",
    "net_benefit",
    "subgroup_measures",
    "threshold_measures",
]
