"""The printable model: everything that a scorer needs, as JSON has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.cards.gaussian import joint_gaussian
from baldur.model.loadings import Loadings
from baldur.model.quadrature import probit_mixture
from baldur.preparation.scaling import Scaling

__all__ = ["printable"]

SCHEMA = 2
"""Version of the numbers, raised when an older scorer could not use them."""


def printable(model: Any, classes: list[Any] | None = None) -> dict[str, Any]:
    """Return a fitted estimator of ours as plain numbers, lists and text.

    Parameters
    ----------
    model : BaldurClassifier, BaldurRegressor, MeanFieldClassifier or MeanFieldRegressor
        Fitted.
    classes : list, optional
        Names of the classes, where the model itself knows only their numbers.

    Returns
    -------
    dict
        What ``score.py``, ``score.R`` and ``score.js`` read: schema, task, classes, views, features
        (how a value is standardised), mean and cov (of the weights of each factor, the intercept
        first), missing_variance (what a missing view adds), loadings (None where factors are
        outputs) and noise_variance. For classes also probit, the mixture of probit functions that
        equals the logistic function; for continuous outcomes outcome_mean and outcome_std.
    """
    posterior = joint_gaussian(model.predictor)
    scaling, input_columns = model.preparation_.scaling_, model.preparation_.columns_
    task = getattr(model, "_task", "regression")
    known = getattr(model, "classes_", None)
    labels = [] if known is None else (classes or np.asarray(known).tolist())
    features = [
        _feature(
            scaling, view, int(column), str(model.feature_names_[view][input_columns[view][column]])
        )
        for view, columns in zip(model.view_names_, posterior.index, strict=True)
        for column in columns
    ]
    numbers = {
        "schema": SCHEMA,
        "task": task,
        "classes": [str(label) for label in labels],
        "views": list(model.view_names_),
        "features": features,
        "mean": posterior.mean.tolist(),
        "cov": posterior.cov.tolist(),
        "missing_variance": posterior.missing_variance.tolist(),
        "loadings": _loadings(posterior.loadings),
        "noise_variance": posterior.noise_variance.tolist(),
    }
    if task == "regression":
        mean, std = model.output_units
        return {**numbers, "outcome_mean": mean.tolist(), "outcome_std": std.tolist()}
    weights, scales = probit_mixture()
    return {**numbers, "probit": {"weights": weights.tolist(), "scales": scales.tolist()}}


def _loadings(q: Loadings | None) -> dict[str, Any] | None:
    if q is None:
        return None
    b_var = np.broadcast_to(q.b_var, q.b.shape)
    parts = {"V": q.V, "V_cov": q.V_cov, "b": q.b, "b_var": b_var}
    return {name: part.tolist() for name, part in parts.items()}


def _feature(scaling: Scaling, view: str, column: int, name: str) -> dict[str, Any]:
    """Return how a value of one column is standardised."""
    constant = bool(scaling.constant_[view][column])
    lower, upper = (float(limit[view][column]) for limit in (scaling.lower_, scaling.upper_))
    clipped = np.isfinite([lower, upper]).all()
    found = {
        "view": view,
        "name": name,
        "mean": float(scaling.mean_[view][column]),
        "factor": 0.0 if constant else 1.0 / float(scaling.scale_[view][column]),
        "lower": lower if clipped else None,
        "upper": upper if clipped else None,
        "knots": None,
        "scores": None,
    }
    ranks = None if constant else scaling.ranks_of(view, column)
    if ranks is None:
        return found
    knots, scores = ranks
    keep = np.concatenate([[True], np.diff(knots) > 0])
    # Normal scores are standardised already.
    return {**found, "factor": 1.0, "knots": knots[keep].tolist(), "scores": scores[keep].tolist()}
