"""From a study file to a results folder.

What comes in: ``study.toml``, which names samples, outcome, views, models and folds. `load_study`
turns it into a typed `StudyConfig`, the one object with options that all functions below take.

What goes out: `evaluate_study` reads the data (`read_study`), opens the comparison (`open_study`),
looks for data that seem wrong (`check_study`), runs the comparison and writes the results folder.
`fit_study` fits one model on all samples; `predict_study` and `validate_study` apply it to others.

May import: `io`, `preparation`, `evaluation`, `saving` and what these import. `report` and `cli`
import this package.
"""

from baldur.study.check import StudyCheck, check_study
from baldur.study.comparison import open_study
from baldur.study.config import StudyConfig, study_schema
from baldur.study.data import StudyData, read_study
from baldur.study.evaluate import EvaluatedStudy, evaluate_study
from baldur.study.examples.simulate import simulate_study
from baldur.study.examples.template import TEMPLATE
from baldur.study.fit import fit_study
from baldur.study.load import load_study
from baldur.study.predict import predict_study
from baldur.study.validate import ValidatedStudy, validate_study

__all__ = [
    "TEMPLATE",
    "EvaluatedStudy",
    "StudyCheck",
    "StudyConfig",
    "StudyData",
    "ValidatedStudy",
    "check_study",
    "evaluate_study",
    "fit_study",
    "load_study",
    "open_study",
    "predict_study",
    "read_study",
    "simulate_study",
    "study_schema",
    "validate_study",
]
