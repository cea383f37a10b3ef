"""Evaluation: compare models by nested cross-validation, and judge held-out predictions.

In: a `Design` (how models are compared), models, data and labels. `open_comparison` checks them
and returns a `Comparison`; `run_comparison` runs its jobs; `nested_cv` does both.
Out: a `NestedResult`, from which all tables are computed with one bootstrap (for a label matrix a
`MultilabelResult` with one for each label); or, from a predictions table of any model, an
`Evaluation`.

`run` runs and `job_store` stores jobs, `metric_table` has the table of metrics and tests between
models, `selected_features` the selected features, `clinical` intervals, calibration, net benefit
and subgroups, `added_value` what each view adds, and `validation` a frozen model on a new cohort.
`results` has all tables by name, for files, figures and pages; `result_files` is their registry.

It may import estimators, baselines, preparation and views; never saving, plots, study or report.

>>> from baldur.evaluation import METRICS
>>> list(METRICS)[:6]
['accuracy', 'balanced_accuracy', 'precision', 'recall', 'f1', 'auc']
"""

from baldur.evaluation.added_value import AddedValue
from baldur.evaluation.clinical import (
    Evaluation,
    calibration_curves,
    calibration_measures,
    decision_curves,
    evaluate_predictions,
    integrated_calibration_index,
    learning_curves,
    metric_differences,
    metric_intervals,
    net_benefit,
    shift_prevalence,
    subgroup_measures,
    threshold_measures,
)
from baldur.evaluation.design import Design
from baldur.evaluation.learning_curve import learning_curve, people_needed
from baldur.evaluation.metrics import METRICS
from baldur.evaluation.models import Model, SideBySide, known_models, make_model
from baldur.evaluation.multilabel import MultilabelResult
from baldur.evaluation.nested import added_value, fit_all_rows, nested_cv
from baldur.evaluation.preview import Preview, preview
from baldur.evaluation.result import NestedResult
from baldur.evaluation.run import Progress
from baldur.evaluation.selected_features import Stability, StabilityIndex
from baldur.evaluation.validation import batch_drift

__all__ = [
    "METRICS",
    "AddedValue",
    "Design",
    "Evaluation",
    "Model",
    "MultilabelResult",
    "NestedResult",
    "Preview",
    "Progress",
    "SideBySide",
    "Stability",
    "StabilityIndex",
    "added_value",
    "batch_drift",
    "calibration_curves",
    "calibration_measures",
    "decision_curves",
    "evaluate_predictions",
    "fit_all_rows",
    "integrated_calibration_index",
    "known_models",
    "learning_curve",
    "learning_curves",
    "make_model",
    "metric_differences",
    "metric_intervals",
    "nested_cv",
    "net_benefit",
    "people_needed",
    "preview",
    "shift_prevalence",
    "subgroup_measures",
    "threshold_measures",
]
