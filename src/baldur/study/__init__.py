"""From a study file to a results folder.

What comes in: ``study.toml``, which names samples, outcome, views, models and folds. `load_study`
turns it into a typed `StudyConfig`, the one object with options that all functions below take.

What goes out: `check_study` reads the data, makes models and folds, and looks for data that seem
wrong; `evaluate_study` does the same, runs the comparison and writes the results folder.
`fit_study` fits one model on all samples; `predict_study` and `validate_study` apply it to others.

May import: `io`, `preparation`, `evaluation`, `saving` and what these import. `report` and `cli`
import this package. Its names are imported when they are first used, as each command needs few.
"""

from typing import TYPE_CHECKING

from baldur.core.optional import lazy_names

if TYPE_CHECKING:
    from baldur.study.check import check_study
    from baldur.study.config import StudyConfig
    from baldur.study.evaluate import evaluate_study
    from baldur.study.fit import fit_study
    from baldur.study.predict import predict_study
    from baldur.study.simulate import simulate_study
    from baldur.study.toml_file import load_study
    from baldur.study.validate import validate_study

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        "check": "check_study",
        "config": "StudyConfig",
        "evaluate": "evaluate_study",
        "simulate": "simulate_study",
        "fit": "fit_study",
        "predict": "predict_study",
        "toml_file": "load_study",
        "validate": "validate_study",
    },
)

__all__ = [
    "StudyConfig",
    "check_study",
    "evaluate_study",
    "fit_study",
    "load_study",
    "predict_study",
    "simulate_study",
    "validate_study",
]
