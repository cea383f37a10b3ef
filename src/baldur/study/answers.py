"""What a saved model says in tables: predictions, what it found, and why this person."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from baldur.estimators.summary import named_outputs, views_used
from baldur.evaluation.engine.job import predict_rows
from baldur.saving import SavedModel
from baldur.views import MultiView

__all__ = ["found_by", "predictions_of", "reasons_of"]


def predictions_of(model: SavedModel, data: MultiView, *, bare: bool = False) -> pd.DataFrame:
    """Return one row per sample: what is predicted, how sure that is, and from which views.

    Parameters
    ----------
    model : SavedModel
    data : MultiView
        As `baldur.study.fitting.new_rows` returns it.
    bare : bool, default=False
        Without intervals, sd and views, in the columns that scores are computed from.

    Returns
    -------
    DataFrame
        sample and predicted; for classes p_<class>, followed by the ends of its 95 % interval where
        the model has one, or score; for numbers sd, lower and upper where the model has them; and
        views_used, the views that the sample has and the model kept features of.
    """
    estimator = model.estimator
    found = predict_rows(estimator, data, len(model.classes))
    sure = not bare and hasattr(estimator, "predict_interval")
    columns: dict[str, Any] = {"sample": data.sample_ids.astype(str)}
    if model.classes:
        columns |= _of_classes(model, data, found, sure)
    else:
        columns["predicted"] = found["label"]
        if sure:
            columns["sd"] = np.ravel(estimator.predict(data, return_std=True)[1])
            columns["lower"], columns["upper"] = map(np.ravel, estimator.predict_interval(data))
    if not bare:
        columns["views_used"] = _used(estimator, data)
    return pd.DataFrame(columns)


def _of_classes(
    model: SavedModel, data: MultiView, found: dict[str, np.ndarray], sure: bool
) -> dict[str, np.ndarray]:
    names = [str(c) for c in model.classes]
    known = np.asarray(getattr(model.estimator, "classes_", np.arange(len(names)))).tolist()
    place = {label: i for i, label in enumerate(known)}
    at = [place[label] for label in found["label"].tolist()]
    columns = {"predicted": np.array(names)[at]}
    if "proba" in found:
        ends: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        if sure:
            low, high = model.estimator.predict_interval(data)
            ends = {i: (low[:, i], high[:, i]) for i in range(low.shape[1])}
        for c, name in enumerate(names):
            columns[f"p_{name}"] = found["proba"][:, c]
            if c in ends:
                columns[f"p_{name}_lower"], columns[f"p_{name}_upper"] = ends[c]
    elif "margin" in found and found["margin"].ndim == 1:
        columns["score"] = found["margin"]
    elif "margin" in found:
        columns.update({f"score_{n}": found["margin"][:, c] for c, n in enumerate(names)})
    return columns


def _used(estimator: Any, data: MultiView) -> list[str]:
    masks = getattr(estimator, "selected_features_", None)
    if not isinstance(masks, dict):
        masks = dict.fromkeys(data.view_names, True)
    used = views_used(data, masks)
    names = used.columns.to_numpy(dtype=object)
    return ["; ".join(names[row]) for row in used.to_numpy(dtype=bool)]


def found_by(model: SavedModel) -> pd.DataFrame | None:
    """Return what a fitted model found, with the classes by name; None for one that cannot say.

    Parameters
    ----------
    model : SavedModel

    Returns
    -------
    Summary or None
    """
    if not hasattr(model.estimator, "summary"):
        return None
    return named_outputs(model.estimator, model.estimator.summary(), model.classes)


def reasons_of(model: SavedModel, data: MultiView) -> pd.DataFrame:
    """Return what each feature contributes to each prediction, with the classes by name.

    Parameters
    ----------
    model : SavedModel
        One whose estimator has `explain`.
    data : MultiView
        As `baldur.study.fitting.new_rows` returns it.

    Returns
    -------
    DataFrame
    """
    return named_outputs(model.estimator, model.estimator.explain(data), model.classes)
