"""A study in one file: samples, outcome, views, models and folds, run by one command.

>>> from baldur.study import schema_text
>>> print(schema_text().splitlines()[1])
  title         what the study is called (default '')
"""

from baldur.study.check import StudyCheck, check_study
from baldur.study.data import StudyData, read_study
from baldur.study.fitting import fit_study, predict_study
from baldur.study.load import Study, load_study
from baldur.study.run import EvaluatedStudy, evaluate_study
from baldur.study.schema import schema_text
from baldur.study.simulate import simulate_study
from baldur.study.template import TEMPLATE
from baldur.study.validate import ValidatedStudy, validate_study

__all__ = [
    "TEMPLATE",
    "EvaluatedStudy",
    "Study",
    "StudyCheck",
    "StudyData",
    "ValidatedStudy",
    "check_study",
    "evaluate_study",
    "fit_study",
    "load_study",
    "predict_study",
    "read_study",
    "schema_text",
    "simulate_study",
    "validate_study",
]
