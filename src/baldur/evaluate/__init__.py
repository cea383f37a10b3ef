"""Nested cross-validation of several models, with everything a reader of the table may ask.

>>> from baldur.evaluate import METRICS
>>> list(METRICS)[:6]
['accuracy', 'balanced_accuracy', 'precision', 'recall', 'f1', 'auc']
"""

from baldur.evaluate.adapters import SideBySide
from baldur.evaluate.compare import compare_pairs, corrected_t_test, holm
from baldur.evaluate.deconfound import Deconfounded
from baldur.evaluate.features import Stability
from baldur.evaluate.metrics import METRICS
from baldur.evaluate.models import Model, known_models, make_model, make_models
from baldur.evaluate.nested import nested_cv
from baldur.evaluate.progress import Progress
from baldur.evaluate.result import NestedResult
from baldur.evaluate.splits import Plan
from baldur.evaluate.stability import StabilityIndex, nogueira
from baldur.evaluate.steps import WithSteps
from baldur.evaluate.table import build_table, recompute_table

__all__ = [
    "METRICS",
    "Deconfounded",
    "Model",
    "NestedResult",
    "Plan",
    "Progress",
    "SideBySide",
    "Stability",
    "StabilityIndex",
    "WithSteps",
    "build_table",
    "compare_pairs",
    "corrected_t_test",
    "holm",
    "known_models",
    "make_model",
    "make_models",
    "nested_cv",
    "nogueira",
    "recompute_table",
]
