"""Clinical figures of held-out predictions: intervals, calibration, net benefit, subgroups.

In: a predictions table (as ``predictions.csv``) of one or several models, or arrays.
Out: tidy data frames, for a file or a figure; no drawings.

- `held_out` reads the table, `bootstrap` resamples people (and never fits a model), and `resampled`
  shares one bootstrap between all tables of a run.
- `metric_intervals`, `calibration`, `curves`, `decision`, `thresholds`, `subgroups` and
  `learning_curves` compute one table each; `evaluation` computes all of them.
- `logistic_fit` and `local_regression` are fits for all resamples at once, and `sample_size` has
  the minimum number of people.

``docs/understand/evaluation.md`` says what the intervals include. It may import the metrics;
no other part of the evaluation.
"""

from baldur.evaluation.clinical.bootstrap import Bootstrap, Draws
from baldur.evaluation.clinical.calibration import (
    BrierParts,
    brier_parts,
    calibration_curves,
    calibration_line,
    calibration_measures,
    integrated_calibration_index,
)
from baldur.evaluation.clinical.curves import curve_areas, precision_recall_curves, roc_curves
from baldur.evaluation.clinical.decision import decision_curves, net_benefit, shift_prevalence
from baldur.evaluation.clinical.evaluation import Evaluation, evaluate_predictions
from baldur.evaluation.clinical.held_out import HeldOutPredictions, Resampled, read_held_out
from baldur.evaluation.clinical.learning_curves import (
    learning_curves,
    minimum_people,
    minimum_people_regression,
    r2_of_auc,
)
from baldur.evaluation.clinical.metric_intervals import (
    metric_differences,
    metric_intervals,
    subgroup_measures,
)
from baldur.evaluation.clinical.thresholds import threshold_measures

__all__ = [
    "Bootstrap",
    "BrierParts",
    "Draws",
    "Evaluation",
    "HeldOutPredictions",
    "Resampled",
    "brier_parts",
    "calibration_curves",
    "calibration_line",
    "calibration_measures",
    "curve_areas",
    "decision_curves",
    "evaluate_predictions",
    "integrated_calibration_index",
    "learning_curves",
    "metric_differences",
    "metric_intervals",
    "minimum_people",
    "minimum_people_regression",
    "net_benefit",
    "precision_recall_curves",
    "r2_of_auc",
    "read_held_out",
    "roc_curves",
    "shift_prevalence",
    "subgroup_measures",
    "threshold_measures",
]
