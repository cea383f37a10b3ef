"""The printable model: everything that a scorer needs, as JSON has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.model.loadings import Loadings
from baldur.model.quadrature import probit_mixture
from baldur.preparation import Preparation, SiteHarmoniser
from baldur.preparation.covariates import Covariates
from baldur.saving.cards.gaussian import joint_gaussian

SCHEMA = 3
"""Version of the numbers, raised when an older scorer could not use them."""
SAMPLES = "samples"
"""Where a person has sites and covariates, beside the views."""


def printable(model: Any, classes: list[Any] | None = None) -> dict[str, Any]:
    """Return a fitted estimator of the package as plain numbers, lists and text."""
    harmoniser = _harmoniser(model.preparation_)
    posterior = joint_gaussian(model.predictor)
    preparation: Preparation = model.preparation_
    input_columns = preparation.columns_
    task = getattr(model, "_task", "regression")
    known = getattr(model, "classes_", None)
    labels = [] if known is None else (classes or np.asarray(known).tolist())
    features = [
        {
            **_feature(
                preparation,
                view,
                int(column),
                str(model.feature_names_[view][input_columns[view][column]]),
            ),
            "sites": _site_effects(preparation, harmoniser, view, int(column)),
        }
        for view, columns in zip(model.view_names_, posterior.index, strict=True)
        for column in columns
    ]
    numbers = {
        "schema": SCHEMA,
        "task": task,
        "classes": [str(label) for label in labels],
        "views": list(model.view_names_),
        "features": features,
        "covariates": _covariates(preparation.covariates_),
        "sites": None
        if harmoniser is None
        else {
            "by": harmoniser.by,
            "names": list(harmoniser.sites_),
            "keep": _covariates(harmoniser.covariates_),
        },
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


def _harmoniser(preparation: Preparation) -> SiteHarmoniser | None:
    """Return the step that aligns sites, or None; refuse what a scorer cannot apply."""
    found = [step for step in preparation.steps_ if isinstance(step, SiteHarmoniser)]
    if len(found) > 1:
        raise InputError(
            f"No scorer is printed: a scorer aligns sites once, and the preparation has "
            f"{len(found)} SiteHarmoniser steps. Save the model, and use baldur predict or "
            "baldur.load."
        )
    if found and found[0].new_sites == "own":
        raise InputError(
            "No scorer is printed: with new_sites='own' the values of a new site depend on all of "
            "its people, and a scorer sees one person at a time. Save the model, and use baldur "
            "predict or baldur.load."
        )
    if preparation.changes_cells and SAMPLES in preparation.n_features_:
        raise InputError(
            f"No scorer is printed: scorers read sites and covariates under the name {SAMPLES!r}, "
            "and a view has this name. Rename the view, or save the model and use baldur predict."
        )
    return found[0] if found else None


def _covariates(covariates: Covariates | None) -> list[dict[str, Any]]:
    """Return how each column of numbers is made of the covariates of a person."""
    if covariates is None:
        return []
    columns: list[tuple[str, str | None]] = []
    for name in covariates.names:
        levels = covariates.levels.get(name)
        columns += [(name, None)] if levels is None else [(name, level) for level in levels[1:]]
    return [
        {
            "name": name,
            "level": level,
            "levels": None if level is None else list(covariates.levels[name]),
            "fill": float(covariates.fill[j]),
            "mean": float(covariates.mean[j]),
            "scale": float(covariates.scale[j]),
        }
        for j, (name, level) in enumerate(columns)
    ]


def _site_effects(
    preparation: Preparation, harmoniser: SiteHarmoniser | None, view: str, column: int
) -> dict[str, Any] | None:
    """Return how a prepared column is aligned between sites; None where it is left alone."""
    if harmoniser is None or view not in harmoniser.view_names_:
        return None
    # Steps after the alignment may have left columns out.
    for step in reversed(preparation.steps_):
        if step is harmoniser:
            break
        column = int(step.columns_[view][column]) if view in step.columns_ else column
    pooled = harmoniser.pooled_[view]
    shift, factor = (e[view][:, column] for e in (harmoniser.shift_, harmoniser.factor_))
    if (shift == 0).all() and (factor == 1).all():
        return None
    held = float(pooled.held[column])
    return {
        "level": float(pooled.level[column]),
        "coef": pooled.coef[:, column].tolist(),
        "held": None if np.isnan(held) else held,
        "shift": shift.tolist(),
        "factor": factor.tolist(),
    }


def _feature(preparation: Preparation, view: str, column: int, name: str) -> dict[str, Any]:
    """Return how a value of one column is standardised, and what covariates explain of it."""
    scaling = preparation.scaling_
    effect = scaling.covariate_effect_.get(view)
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
        "effect": [0.0] if effect is None else effect[:, column].tolist(),
    }
    ranks = None if constant else scaling.ranks_of(view, column)
    if ranks is None:
        return found
    knots, scores = ranks
    keep = np.concatenate([[True], np.diff(knots) > 0])
    # Normal scores are standardised already; covariates leave a part of their spread.
    factor = 1.0 / float(scaling.spread_of(view)[column])
    ranked = {"knots": knots[keep].tolist(), "scores": scores[keep].tolist()}
    return {**found, "factor": factor, **ranked}
