"""fit_study: one model of a study, fitted on all its samples."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.schema import nearest
from baldur.estimators.summary import named_outputs, views_used
from baldur.evaluation.fitted_model import one_label, predict_rows
from baldur.evaluation.metrics import NO_YES
from baldur.evaluation.models import rows_with_views
from baldur.evaluation.nested import fit_all_rows
from baldur.evaluation.run import Progress
from baldur.evaluation.validation import describe_views, predictor_shift
from baldur.exceptions import ShiftWarning
from baldur.saving import SavedModel
from baldur.study.comparison import open_study
from baldur.study.config import COVARIATES, StudyConfig
from baldur.study.data import read_study
from baldur.study.new_samples import read_new_samples
from baldur.views.container import MultiView, select_columns


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
    data = comparison.data_of(comparison.models[0])
    if hasattr(estimator, "predictor") and classes:
        # Evaluation works with class codes; users of the saved model expect the labels.
        estimator.classes_ = np.array([str(label) for label in classes])
    has = rows_with_views(data, comparison.models[0].views)
    included = study.coding is not None and COVARIATES in data.view_names
    details = {
        "model": chosen,
        "setting": setting,
        "task": config.outcome.task,
        "outcome": ", ".join(config.outcome.names),
        "samples": len(data) if has is None else int(has.sum()),
        "title": config.title,
        "included": {"categories": study.coding} if included else None,
    }
    saved = SavedModel(estimator, classes, details, training=describe_views(data))
    return saved, study.notes


def predict_study(
    model: SavedModel, config: StudyConfig, *, missing: str = "error"
) -> tuple[pd.DataFrame, list[str]]:
    """Score the samples of a study file with a fitted model.

    Parameters
    ----------
    model : SavedModel
        As `load` returns it.
    config : StudyConfig
        Read with ``load_study(file, predicting=True)``. Views the model knows and the file does
        not have are absent for every sample; columns the model does not know are left out.
    missing : {"error", "impute"}, default="error"
        A column of the model that a view does not have is refused, or imputed by its training mean.

    Returns
    -------
    predictions : DataFrame
        sample, predicted, and for classes p_<class> with the ends of a 95 % interval, or score
        (for several outcomes predicted_<outcome>, and p_<outcome> with its interval);
        for numbers sd and the ends of an interval; and the views that were used. Intervals and
        sd where the model has them.
    notes : list of str

    Examples
    --------
    >>> import tempfile
    >>> from baldur.study import fit_study, load_study, predict_study, simulate_study
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = simulate_study("biofind", folder.name, scale=1e-5, models=["Dummy"])
    >>> model, _ = fit_study(load_study(file))
    >>> predictions, notes = predict_study(model, load_study(file, predicting=True))
    >>> predictions[["sample", "predicted", "p_PD"]].round(3).head(2)
           sample predicted   p_PD
    0  biofind000        PD  0.553
    1  biofind001        PD  0.553
    >>> folder.cleanup()
    """
    data, _, notes = read_new_samples(model, config, missing=missing)
    return predictions_of(model, data), notes


def predictions_of(
    model: SavedModel,
    data: MultiView,
    *,
    bare: bool = False,
    outcome: str | None = None,
) -> pd.DataFrame:
    """Return one row per sample: what is predicted, how sure that is, and from which views."""
    estimator = model.estimator
    columns: dict[str, Any] = {"sample": data.sample_ids.astype(str)}
    with warnings.catch_warnings(action="ignore", category=ShiftWarning):
        predicted = predict_rows(estimator, data, len(model.classes))
        ends = ()
        if not bare and hasattr(estimator, "predict_interval"):
            ends = estimator.predict_interval(data)
        if outcome is not None:
            label = one_label(predicted, model.outcomes.index(outcome))
            columns["predicted"] = np.array(NO_YES)[label["label"].astype(int)]
            columns |= {f"p_{c}": label["proba"][:, j] for j, c in enumerate(NO_YES)}
        elif model.outcomes:
            answers = np.array(NO_YES)[predicted["label"].astype(int)]
            for j, name in enumerate(model.outcomes):
                columns[f"predicted_{name}"] = answers[:, j]
                columns |= _probability(name, j, predicted["proba"], ends)
        elif model.classes:
            columns |= _columns_of_classes(model, predicted, ends)
        else:
            columns["predicted"] = predicted["label"]
            if ends:
                columns["sd"] = np.ravel(estimator.predict(data, return_std=True)[1])
                columns["lower"], columns["upper"] = map(np.ravel, ends)
    if not bare:
        columns["views_used"] = _views_used(model, data)
    # Once, and for every model; some warn in each of the calls above, baselines in none.
    estimator.preparation_.warn_of_new_samples(data)
    if not bare:
        columns["flags"] = estimator.preparation_.flag_samples(data)["flags"].to_numpy()
    return pd.DataFrame(columns)


@contextmanager
def shift_in_notes(notes: list[str]) -> Iterator[None]:
    """Add warnings about new samples that differ from training to the notes, each once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield
    for entry in caught:
        if not issubclass(entry.category, ShiftWarning):
            warnings.warn_explicit(entry.message, entry.category, entry.filename, entry.lineno)
        elif (note := str(entry.message).rstrip(".")) not in notes:
            notes.append(note)


def _probability(
    name: str, at: int, proba: np.ndarray, ends: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the probability of a class or an outcome, and the ends of its interval if known."""
    columns = {f"p_{name}": proba[:, at]}
    for end, values in zip(("lower", "upper"), ends, strict=False):
        columns[f"p_{name}_{end}"] = values[:, at]
    return columns


def _columns_of_classes(
    model: SavedModel, predicted: dict[str, np.ndarray], ends: Sequence[np.ndarray]
) -> dict[str, np.ndarray]:
    """Return the predicted class of each sample, and the probability or score of every class."""
    names = [str(c) for c in model.classes]
    known = np.asarray(getattr(model.estimator, "classes_", np.arange(len(names)))).tolist()
    place = {label: i for i, label in enumerate(known)}
    at = [place[label] for label in predicted["label"].tolist()]
    columns = {"predicted": np.array(names)[at]}
    if "proba" in predicted:
        for c, name in enumerate(names):
            columns |= _probability(name, c, predicted["proba"], ends)
    elif "margin" in predicted and predicted["margin"].ndim == 1:
        columns["score"] = predicted["margin"]
    elif "margin" in predicted:
        columns |= {f"score_{n}": predicted["margin"][:, c] for c, n in enumerate(names)}
    return columns


def features_used(model: SavedModel) -> dict[str, np.ndarray] | None:
    """Return for each view which of its columns a model uses; None where it does not say."""
    masks = getattr(model.estimator, "selected_features_", None)
    return dict(masks) if isinstance(masks, dict) else None


def shift_from_training(model: SavedModel, data: MultiView) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return how predictors differ from those a model was fitted on, by view and by feature."""
    return predictor_shift(model.training, _columns_of_fit(model, data), features_used(model))


def _columns_of_fit(model: SavedModel, data: MultiView) -> MultiView:
    """Return new samples without the levels behind the columns of fit, see `read_new_samples`."""
    return select_columns(data, {name: np.arange(n) for name, n in model.n_features.items()})


def _views_used(model: SavedModel, data: MultiView) -> list[str]:
    """Return for each sample the names of the views that its prediction comes from."""
    masks = features_used(model) or {name: np.ones(n, bool) for name, n in data.n_features.items()}
    used = views_used(_columns_of_fit(model, data), masks)
    names = used.columns.to_numpy(dtype=object)
    return ["; ".join(names[row]) for row in used.to_numpy(dtype=bool)]


def summary_of(model: SavedModel) -> pd.DataFrame | None:
    """Return what a fitted model found, with the classes by name; or None without a summary."""
    if not hasattr(model.estimator, "summary"):
        return None
    return named_outputs(model.estimator, model.estimator.summary(), model.classes)


def contributions_of(model: SavedModel, data: MultiView) -> pd.DataFrame:
    """Return what each feature contributes to each prediction, with the classes by name."""
    with warnings.catch_warnings(action="ignore", category=ShiftWarning):
        explained = model.estimator.explain(data)
    return named_outputs(model.estimator, explained, model.classes)
