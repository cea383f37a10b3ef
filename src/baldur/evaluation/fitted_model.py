"""What one fitted model selects and predicts: features, weights, variance of views, predictions.

A weight per standard deviation can be compared between features and between models. A weight per
unit of the input is multiplied with a measurement as it was given. Estimators store the one or the
other; here both are returned for every model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.baselines.base import BaselineEstimator
from baldur.estimators.summary import FEW
from baldur.exceptions import InputError
from baldur.views import MultiView


@dataclass(frozen=True)
class ModelWeights:
    """Weights of every view, features by outputs."""

    per_sd: dict[str, np.ndarray]  # (n_features, n_outputs)
    raw: dict[str, np.ndarray]  # (n_features, n_outputs); For one unit of the input
    variance: dict[str, np.ndarray]  # (n_outputs,)


def weights_of(estimator: Any, mv: MultiView) -> ModelWeights | None:
    """Return the weights of a fitted model and the variance of each view's part of the predictor.

    None for a model without weights. `mv` are the training rows.
    """
    preparation = getattr(estimator, "preparation_", None)
    masks = getattr(estimator, "selected_features_", None)
    names = [v for v in mv.view_names if not isinstance(masks, dict) or v in masks]
    widths = {v: mv.n_features[v] for v in names}
    stored = _read_weights(estimator, widths)
    if not stored or preparation is None:
        return None
    # The variance of a view needs the cells of its weighted columns: moments of single columns do
    # not give it. `transform` reads nothing itself, and `apply` reads columns with a weight once;
    # both take 1 to 3 ms for 80 rows and 7,020 columns, beside 1 s of a default fit.
    prepared = preparation.transform(mv)
    per_sd, raw, variance = {}, {}, {}
    for name in widths:
        columns = preparation.columns_[name]
        # What a weight of 1 per standard deviation is for one unit of the input.
        unit = preparation.coef_in_input_units(name, np.ones(len(columns)))[:, None]
        if on_prepared(estimator):
            # Block-scaled views enter the model divided by the root of their width.
            factor = len(columns) ** -0.5 if getattr(estimator, "block_scale", False) else 1.0
            per_sd[name] = factor * stored[name]
            raw[name] = per_sd[name] * unit
        else:
            raw[name] = stored[name]
            per_sd[name] = np.divide(raw[name], unit, out=np.zeros_like(raw[name]), where=unit != 0)
        contribution = np.asarray(prepared[name].apply(per_sd[name][columns]))
        variance[name] = np.atleast_1d(contribution.var(axis=0))
    return ModelWeights(per_sd, raw, variance)


def on_prepared(estimator: Any) -> bool:
    """Whether ``coef_`` belongs to the prepared columns, not to units of the input."""
    return bool(getattr(estimator, "coef_on_prepared", isinstance(estimator, BaselineEstimator)))


def weights_by_class(weights: np.ndarray, n_classes: int, seen: np.ndarray) -> np.ndarray:
    """Return weights by class: of the positive one of two, or of each of several.

    Classes that are not among the `seen` ones (codes in the training rows) have NaN.

    Shapes: weights (n_features, n_outputs), seen (n_seen,); returns (n_features, 1 or n_classes).
    """
    n_outputs = weights.shape[1]
    if n_classes <= 2:
        # Some models have one output for each of two classes.
        return weights[:, 1:2] - weights[:, :1] if n_outputs == 2 else weights[:, :1]
    full = np.full((len(weights), n_classes), np.nan)
    if n_outputs == len(seen):
        full[:, seen] = weights
    elif n_outputs == 1 and len(seen) == 2:
        full[:, seen] = weights * np.array([-0.5, 0.5])
    return full


def read_selection(estimator: Any, mv: MultiView) -> dict[str, np.ndarray]:
    """Return the columns of the selected features, by view: all for a model without selection."""
    masks = getattr(estimator, "selected_features_", None)
    columns = getattr(getattr(estimator, "preparation_", None), "columns_", {})
    selected = {}
    for name in mv.view_names:
        if not isinstance(masks, dict):
            every = columns.get(name, np.arange(mv.n_features[name]))
            selected[name] = np.asarray(every).astype(np.int32)
        elif name in masks:
            selected[name] = np.flatnonzero(np.asarray(masks[name])).astype(np.int32)
    return selected


def _read_weights(estimator: Any, widths: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the weights of every view as features by outputs; empty where there are none."""
    coef, kept = getattr(estimator, "coef_", None), getattr(estimator, "lasso_features_", None)
    if not isinstance(coef, dict) or any(v not in coef for v in widths):
        return {}
    arrays = {v: np.asarray(coef[v], dtype=float) for v in widths}
    arrays = {v: a[None, :] if a.ndim == 1 else a for v, a in arrays.items()}  # One output
    if any(a.ndim != 2 for a in arrays.values()):
        return {}
    # Some models store outputs by features, as scikit-learn does, others features by outputs.
    if all(a.shape[1] == widths[v] for v, a in arrays.items()):
        return {v: a.T for v, a in arrays.items()}
    if all(a.shape[0] == widths[v] for v, a in arrays.items()):
        return arrays
    if isinstance(kept, dict) and all(len(a) == np.sum(kept[v]) for v, a in arrays.items()):
        # Weights only for the features a first step kept.
        full = {v: np.zeros((widths[v], a.shape[1])) for v, a in arrays.items()}
        for v, a in arrays.items():
            full[v][np.asarray(kept[v])] = a
        return full
    return {}


# -- predictions ---------------------------------------------------------------------------------


def predict_rows(estimator: Any, X: Any, n_classes: int) -> dict[str, np.ndarray]:
    """Return labels and, where the estimator has them, probabilities or else decision scores.

    A class that no training row had gets the probability 0, and the smallest score. A model of a
    label matrix gives labels and the probability of each, both of shape (n_samples, n_labels).
    """
    predicted = {"label": np.asarray(estimator.predict(X))}
    if n_classes and predicted["label"].ndim == 2:
        predicted["proba"] = np.asarray(estimator.predict_proba(X), dtype=float)
        return predicted
    if n_classes == 0:
        predicted["label"] = predicted["label"].astype(float).reshape(-1)
        return predicted
    seen = np.asarray(getattr(estimator, "classes_", np.arange(n_classes)))
    if hasattr(estimator, "predict_proba"):
        proba = np.asarray(estimator.predict_proba(X), dtype=float)
        predicted["proba"] = _for_all_classes(proba, seen, n_classes, np.zeros(len(proba)))
    elif hasattr(estimator, "decision_function"):
        margin = np.asarray(estimator.decision_function(X), dtype=float)
        if margin.ndim == 1 and n_classes > 2:  # Training rows had two of the classes
            margin = np.column_stack([-margin / 2, margin / 2])
        lowest = margin.min(axis=1) - 1.0 if margin.ndim == 2 else margin
        predicted["margin"] = _for_all_classes(margin, seen, n_classes, lowest)
    return predicted


def _for_all_classes(
    values: np.ndarray, seen: np.ndarray, n_classes: int, absent: np.ndarray
) -> np.ndarray:
    """Return probabilities or scores with a column for every class, `absent` for unseen ones.

    Shapes: values (n,) or (n, n_seen), seen (n_seen,), absent (n,); returns (n,) or (n, n_classes).
    """
    if values.ndim == 1 or len(seen) == n_classes:
        return values
    full = np.repeat(absent[:, None], n_classes, axis=1)
    full[:, seen.astype(np.intp)] = values
    return full


def one_label(predicted: dict[str, np.ndarray], column: int) -> dict[str, np.ndarray]:
    """Return the predictions of one label, out of those of a label matrix, as of two classes."""
    p = predicted["proba"][:, column]
    return {"label": predicted["label"][:, column], "proba": np.column_stack([1.0 - p, p])}


def predict_submodels(
    estimator: Any, training: MultiView, test: MultiView, n_classes: int
) -> dict[str, np.ndarray]:
    """Return the predictions and features of submodels with few features; empty without any.

    Keys are such as "few3_label" for at most 3 features; "few3_columns" are the features, counted
    over all views side by side.
    """
    widths = training.n_features
    # The first column of each view; the last sum, of all, is left over.
    starts = dict(zip(widths, np.cumsum([0, *widths.values()]), strict=False))
    arrays: dict[str, np.ndarray] = {}
    for limit in FEW if hasattr(estimator, "submodel") else ():
        if limit >= training.shape[1]:
            break
        try:
            small = estimator.submodel(limit)
        except InputError:
            # All features of wide views need the training rows; the largest submodel has fewer.
            small = estimator.submodel(estimator._default_fit.largest)
        predicted = predict_rows(small, test, n_classes)
        arrays |= {f"few{limit}_{k}": v for k, v in predicted.items() if k != "margin"}
        parts = [index + starts[view] for view, index in read_selection(small, training).items()]
        arrays[f"few{limit}_columns"] = np.concatenate(parts).astype(np.int64)
    return arrays
