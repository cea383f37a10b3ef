"""The printable model: everything that a scorer needs, as JSON has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.cards.members import plain_posterior
from baldur.model.quadrature import probit_mixture
from baldur.prepare import Preparation

__all__ = ["printable"]

SCHEMA = 1
"""Version of the numbers; raised when an older scorer could not use them."""


def printable(model: Any, classes: list[Any] | None = None) -> dict[str, Any]:
    """Return a fitted estimator of ours as plain numbers, lists and text.

    Parameters
    ----------
    model : BaldurClassifier, BaldurRegressor, MeanFieldClassifier or MeanFieldRegressor
        Fitted.
    classes : list, optional
        Names of the classes, where the model itself knows their numbers alone.

    Returns
    -------
    dict
        task, classes, outputs, views, features (with means, scales, limits), members (weight, mean
        and covariance of the weights, the intercept first), loadings, noise, and the
        mixture of probit functions by which probabilities are integrated. ``score.py``, ``score.R`` and ``score.js`` read it.
    """
    posterior = plain_posterior(model.predictor, len(model.view_names_))
    preparation = model.preparation_
    task = getattr(model, "_task", "regression")
    known = getattr(model, "classes_", None)
    labels = [] if known is None else (classes or np.asarray(known).tolist())
    features = [
        _feature(preparation, view, int(column), str(model.feature_names_[view][column]))
        for view, columns in zip(model.view_names_, posterior.index, strict=True)
        for column in columns
    ]
    made = {
        "schema": SCHEMA,
        "task": task,
        "classes": [str(label) for label in labels],
        "views": list(model.view_names_),
        "features": features,
        "members": [
            {
                "weight": member.weight.tolist(),
                "mean": member.mean.tolist(),
                "cov": member.cov.tolist(),
                "lacking": member.lacking.tolist(),
            }
            for member in posterior.members
        ],
        "loadings": None
        if posterior.loadings is None
        else {name: np.asarray(part).tolist() for name, part in posterior.loadings.items()},
        "noise": posterior.noise.tolist(),
    }
    if task == "regression":
        center, spread = model.output_units
        return {
            **made,
            "center": center.tolist(),
            "spread": spread.tolist(),
            "noise_std": model.noise_std_.tolist(),
        }
    weights, scales = probit_mixture()
    return {**made, "probit": {"weights": weights.tolist(), "scales": scales.tolist()}}


def _feature(preparation: Preparation, view: str, column: int, name: str) -> dict[str, Any]:
    """What turns a cell into what the weights are for; 0 for a cell that is missing."""
    dead = bool(preparation.constant_[view][column])
    lower, upper = (
        float(limit[view][column]) for limit in (preparation.lower_, preparation.upper_)
    )
    held = np.isfinite([lower, upper]).all()
    found = {
        "view": view,
        "name": name,
        "mean": float(preparation.mean_[view][column]),
        "factor": 0.0 if dead else 1.0 / float(preparation.scale_[view][column]),
        "lower": lower if held else None,
        "upper": upper if held else None,
        "knots": None,
        "scores": None,
    }
    ranks = preparation.ranks_of(view, column)
    if ranks is None:
        return found
    knots, scores = ranks
    keep = np.concatenate([[True], np.diff(knots) > 0])
    # A ranked column has a slope of its own; only whether it counts is left to the factor.
    return {
        **found,
        "factor": 0.0 if dead else 1.0,
        "knots": knots[keep].tolist(),
        "scores": scores[keep].tolist(),
    }
