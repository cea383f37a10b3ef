"""Weights of a fitted model in both units, and what each view adds to the linear predictor.

A weight per standard deviation can be compared between features and between models; a weight per
unit of the input is what a reader multiplies a measurement with. Estimators keep the one or the
other; here both are given for every model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from baldur.baselines import BaselineEstimator
from baldur.evaluation.selection import read_weights
from baldur.views import MultiView

__all__ = ["Weights", "by_class", "on_prepared", "weights_of"]


@dataclass(frozen=True)
class Weights:
    """Weights of every view, features by outputs.

    Attributes
    ----------
    per_sd : dict of str to ndarray of shape (n_features, n_outputs)
        For one standard deviation of the prepared column.
    raw : dict of str to ndarray of shape (n_features, n_outputs)
        For one unit of the input.
    variance : dict of str to float
        Variance over the rows of what the view adds to the linear predictor, summed over outputs.
    """

    per_sd: dict[str, np.ndarray]
    raw: dict[str, np.ndarray]
    variance: dict[str, float]


def weights_of(estimator: Any, mv: MultiView) -> Weights | None:
    """Return the weights of a fitted model, or None for one without.

    Parameters
    ----------
    estimator : fitted estimator
        One with `preparation_` and `coef_`.
    mv : MultiView
        The rows it was fitted on.

    Returns
    -------
    Weights or None
    """
    preparation = getattr(estimator, "preparation_", None)
    masks = getattr(estimator, "selected_features_", None)
    names = [v for v in mv.view_names if not isinstance(masks, dict) or v in masks]
    widths = {v: mv.n_features[v] for v in names}
    given = read_weights(estimator, widths)
    if not given or preparation is None:
        return None
    prepared = preparation.transform(mv)
    per_sd, raw, variance = {}, {}, {}
    for name in widths:
        columns = preparation.columns_[name]
        unit = preparation.coef_in_input_units(name, np.ones(len(columns)))[:, None]
        if on_prepared(estimator):
            # Block-scaled views enter the model divided by the root of their width.
            factor = len(columns) ** -0.5 if getattr(estimator, "block_scale", False) else 1.0
            per_sd[name] = factor * given[name]
            raw[name] = per_sd[name] * unit
        else:
            raw[name] = given[name]
            per_sd[name] = np.divide(raw[name], unit, out=np.zeros_like(raw[name]), where=unit != 0)
        part = np.asarray(prepared[name].apply(per_sd[name][columns]))
        variance[name] = float(part.var(axis=0).sum())
    return Weights(per_sd, raw, variance)


def on_prepared(estimator: Any) -> bool:
    """Whether ``coef_`` belongs to the prepared columns, not to units of the input."""
    return bool(getattr(estimator, "coef_on_prepared", isinstance(estimator, BaselineEstimator)))


def by_class(weights: np.ndarray, n_classes: int, seen: np.ndarray) -> np.ndarray:
    """Return the weights with the outputs a reader asks about.

    Parameters
    ----------
    weights : array of shape (n_features, n_outputs)
        As in `Weights`.
    n_classes : int
        0 in regression.
    seen : array of int
        Classes of the training rows.

    Returns
    -------
    ndarray of shape (n_features, 1 or n_classes)
        Towards the positive class of two, towards each of several, or of the number predicted. NaN
        for a class that the training rows do not have.
    """
    outputs = weights.shape[1]
    if n_classes <= 2:
        # One column for each of two classes.
        return weights[:, 1:2] - weights[:, :1] if outputs == 2 else weights[:, :1]
    full = np.full((len(weights), n_classes), np.nan)
    if outputs == len(seen):
        full[:, seen] = weights
    elif outputs == 1 and len(seen) == 2:
        full[:, seen] = weights * np.array([-0.5, 0.5])
    return full
