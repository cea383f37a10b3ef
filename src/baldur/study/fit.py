"""fit_study: one model of a study, fitted on all its samples."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

from baldur.core.schema import nearest
from baldur.estimators.summary import named_outputs
from baldur.evaluation.cohort_shift import describe_views
from baldur.evaluation.models import rows_with_views
from baldur.evaluation.nested import fit_all_rows
from baldur.evaluation.progress import Progress
from baldur.saving import SavedModel
from baldur.study.comparison import open_study
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.data import read_study


def fit_study(
    config: StudyConfig,
    name: str | None = None,
    *,
    n_jobs: int = 1,
    progress: Callable[[Progress], None] | None = None,
) -> tuple[SavedModel, list[str]]:
    """Train one model of a study on all its rows.

    Parameters
    ----------
    config : StudyConfig
        As `load_study` returns it.
    name : str, optional
        Model; default the first of the study. Its setting is selected on the study's inner folds.
    n_jobs : int, default=1
        Processes.
    progress : callable, optional
        Called with a `Progress` after every job.

    Returns
    -------
    model : SavedModel
        The fitted model with what its users need to know.
    notes : list of str
        What a reader should know about the samples.

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import fit_study, load_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> config = load_study(simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"]))
    >>> model, notes = fit_study(config, "Dummy")
    >>> type(model.estimator).__name__, model.classes, notes
    ('SideBySideClassifier', ['control', 'PD'], [])
    >>> folder.cleanup()
    """
    names = [entry.label for entry in config.models]
    if name is not None and name not in names:
        raise config.problem("models", f"the study has no model {name!r}", nearest(name, names))
    chosen = names[0] if name is None else name
    study = read_study(config)
    comparison = open_study(config, study, only=chosen)
    if comparison.outcomes and not comparison.models[0].joint:
        what = f"{chosen} is fitted to one outcome at a time"
        raise config.problem("outcome.columns", what, "name one as outcome.column, or fit BALDUR")
    with config.errors_at(f"models: {chosen}", "change the model or its settings"):
        estimator, setting = fit_all_rows(comparison, n_jobs=n_jobs, progress=progress)
    classes = list(comparison.outcomes) or comparison.classes
    notes = list(study.notes)
    codes = getattr(estimator, "classes_", None)  # evaluation works with codes of classes
    if codes is not None and not comparison.outcomes and len(codes) < len(classes):
        # The samples with the views of the model lack a class.
        known = [classes[int(code)] for code in codes]
        absent = ", ".join(name for name in classes if name not in known)
        notes.append(
            f"No sample with the views of {chosen} is of class {absent}, which it cannot predict."
        )
        classes = known
    data = comparison.data_of(comparison.models[0])
    if hasattr(estimator, "predictor") and classes:
        # Users of the saved model expect the labels.
        estimator.classes_ = np.array([str(label) for label in classes])
    # None for a model that is fitted on every sample.
    fitted_rows = rows_with_views(data, comparison.models[0].views)
    has_covariates = study.coding is not None and COVARIATES in data.view_names
    details = {
        "model": chosen,
        "setting": setting,
        "task": config.outcome.task,
        "outcome": ", ".join(config.outcome.names),
        "samples": len(data) if fitted_rows is None else int(fitted_rows.sum()),
        "title": config.title,
        "included": {"categories": study.coding} if has_covariates else None,
    }
    saved = SavedModel(estimator, classes, details, training=describe_views(data))
    return saved, notes


def summary_of(model: SavedModel) -> pd.DataFrame | None:
    """Return what a fitted model found, with the classes by name; or None without a summary."""
    if not hasattr(model.estimator, "summary"):
        return None
    return named_outputs(model.estimator, model.estimator.summary(), model.classes)
