"""Evaluation: compare models by nested cross-validation, and judge held-out predictions.

In: models, data and labels. `nested_cv` checks them and runs the comparison.
Out: a `NestedResult`, from which all tables are computed with one bootstrap (for a label matrix it
has one for each label, and their mean); or, from a predictions table of any model, the tables of
`evaluate_predictions`.

`design` has the options of a comparison and `splits` its folds; `run` makes and runs the `jobs`,
whose results `job_store` holds; `selected_features` summarises what was selected, and `clinical`
has intervals, calibration, net benefit and subgroups. `view_sets` and `view_additions` say what
each view adds, and `cohort_shift` compares a new cohort with the training rows of a model.
`nested_result` is what `nested_cv` returns. `results` has all tables by name, for files, figures
and pages; `result_files` is their registry, and `results_reader` reads a folder of them.

It may import core, estimators, baselines, preparation and views; never saving, plots, study or
report.

>>> from baldur.evaluation import METRICS
>>> list(METRICS)[:6]
['accuracy', 'balanced_accuracy', 'precision', 'recall', 'f1', 'auc']
"""

from typing import TYPE_CHECKING

from baldur.core.optional import lazy_names

if TYPE_CHECKING:
    from baldur.evaluation.clinical import (
        calibration_curves,
        calibration_measures,
        decision_curves,
        evaluate_predictions,
        metric_differences,
        metric_intervals,
        net_benefit,
        subgroup_measures,
        threshold_measures,
    )
    from baldur.evaluation.cohort_shift import batch_drift
    from baldur.evaluation.metrics import METRICS
    from baldur.evaluation.models import Model, SideBySide, make_model
    from baldur.evaluation.nested import added_value, learning_curve, nested_cv
    from baldur.evaluation.nested_result import NestedResult
    from baldur.evaluation.view_additions import AddedValue

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "view_additions": "AddedValue",
        "clinical": (
            "calibration_curves calibration_measures decision_curves evaluate_predictions "
            "metric_differences metric_intervals net_benefit subgroup_measures "
            "threshold_measures"
        ),
        "metrics": "METRICS",
        "models": "Model SideBySide make_model",
        "nested": "added_value learning_curve nested_cv",
        "nested_result": "NestedResult",
        "cohort_shift": "batch_drift",
    },
)

__all__ = [
    "METRICS",
    "AddedValue",
    "Model",
    "NestedResult",
    "SideBySide",
    "added_value",
    "batch_drift",
    "calibration_curves",
    "calibration_measures",
    "decision_curves",
    "evaluate_predictions",
    "learning_curve",
    "make_model",
    "metric_differences",
    "metric_intervals",
    "nested_cv",
    "net_benefit",
    "subgroup_measures",
    "threshold_measures",
]
