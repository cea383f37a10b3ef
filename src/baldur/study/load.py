"""load_study: a study file to a `StudyConfig`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from baldur.io.schema import nearest, problem_of
from baldur.study.config import StudyConfig, problem, study_schema
from baldur.study.toml_file import parse_study

_HOW = {
    "samples": "add [samples] with file and id",
    "outcome": "add [outcome] with column",
    "views": "add [views.NAME] with file for each view",
    "models": 'add for example models = ["BALDUR", "LSVM-l1"]',
}
"""What to do where a section is missing."""


def load_study(
    path: str | Path, *, predicting: bool = False, roots: Sequence[str | Path] = ()
) -> StudyConfig:
    """Read and check a study file; no data are read and no estimators are made.

    Parameters
    ----------
    path : str or Path
        A TOML file.
    predicting : bool, default=False
        Samples and views are enough: the file describes new samples for a fitted model. Its
        models, folds and sites to harmonise are not looked at.
    roots : list of str or Path, optional
        Folders besides its own that files of the study may lie in. A study file cannot reach
        others, so one from someone else can be run without reading it first.

    Returns
    -------
    StudyConfig

    Raises
    ------
    StudyError
        One line that names the key and the fix.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import load_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> config.outcome.column, config.outcome.positive, config.folds.outer
    ('diagnosis', 'PD', 5)
    >>> folder.cleanup()
    """
    file = Path(path)
    given = parse_study(file)
    if predicting:
        # New samples are harmonised as the model learned it, whatever their own file says.
        given = {k: v for k, v in given.items() if k not in ("models", "folds", "harmonise")}
    for key in given:
        if key not in StudyConfig.model_fields:
            raise problem(file.name, key, "unknown key", nearest(key, StudyConfig.model_fields))
    for section, how in _HOW.items():
        if section not in given and not (predicting and section in ("outcome", "models")):
            raise problem(file.name, section, "missing", how)
    try:
        config = StudyConfig.model_validate(given)
    except ValidationError as error:
        raise problem(file.name, *problem_of(error, study_schema(), given)) from None
    return config.at(file, tuple(Path(root) for root in roots))
