"""From a study file to a results folder.

What comes in: ``study.toml``, which names samples, outcome, views, models and folds. `load_study`
turns it into a typed `StudyConfig`, the one object with options that all functions below take.

What goes out: `evaluate_study` reads the data (`read_study`), opens the comparison (`open_study`),
looks for data that seem wrong (`check_study`), runs the comparison and writes the results folder.
`fit_study` fits one model on all samples; `predict_study` and `validate_study` apply it to others.

May import: `io`, `preparation`, `evaluation`, `saving` and what these import. `report` and `cli`
import this package. Its names are imported when they are first used, as each command needs few.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from baldur.study.check import StudyCheck, check_study
    from baldur.study.config import StudyConfig, study_schema
    from baldur.study.data import StudyData
    from baldur.study.evaluate import EvaluatedStudy, evaluate_study
    from baldur.study.examples import simulate_study
    from baldur.study.fit import fit_study, predict_study
    from baldur.study.toml_file import load_study
    from baldur.study.validate import ValidatedStudy, validate_study

_HOMES = {
    "StudyCheck": "baldur.study.check",
    "check_study": "baldur.study.check",
    "StudyConfig": "baldur.study.config",
    "study_schema": "baldur.study.config",
    "StudyData": "baldur.study.data",
    "EvaluatedStudy": "baldur.study.evaluate",
    "evaluate_study": "baldur.study.evaluate",
    "simulate_study": "baldur.study.examples",
    "fit_study": "baldur.study.fit",
    "load_study": "baldur.study.toml_file",
    "predict_study": "baldur.study.fit",
    "ValidatedStudy": "baldur.study.validate",
    "validate_study": "baldur.study.validate",
}

__all__ = [
    "EvaluatedStudy",
    "StudyCheck",
    "StudyConfig",
    "StudyData",
    "ValidatedStudy",
    "check_study",
    "evaluate_study",
    "fit_study",
    "load_study",
    "predict_study",
    "simulate_study",
    "study_schema",
    "validate_study",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
