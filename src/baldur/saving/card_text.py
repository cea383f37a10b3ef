"""The printable model: everything that a scorer needs, as JSON has it."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.core.escape import markdown
from baldur.estimators.summary import against_base_rate
from baldur.exceptions import InputError
from baldur.model.likelihood import Loadings, probit_mixture
from baldur.preparation import Preparation, SiteHarmoniser
from baldur.preparation.covariates import Covariates
from baldur.saving.scorers import joint_gaussian

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


MOST_ROWS = 100
"""Features that the page lists; card.json has all of them."""


def page(about: dict[str, Any], model: dict[str, Any] | None, reason: str = "") -> str:
    """Return the card as Markdown."""
    parts = [
        f"# Model card: {about['model']}",
        _lines(
            [
                f"Task: {about['task']}"
                + (f", classes {_names(about['classes'])}" if about["classes"] else ""),
                f"Fitted by baldur {about['baldur']} on {about['samples']:,} people",
                f"Views: {_names(f'{k} ({v:,} features)' for k, v in about['views'].items())}",
                _prevalence(about),
                _signal(about),
            ]
        ),
        "## Intended use\n\n" + markdown(about["intended_use"]),
        "## What it must not be used for\n\n" + _lines(markdown(t) for t in about["not_for"]),
        "## Performance\n\n" + _performance(about),
        "## The formula\n\n" + _formula(about),
        "## Missing values\n\n" + markdown(about["missing"]),
        "## Uncertainty\n\n" + _uncertainty(about, model, reason),
    ]
    return "\n\n".join(parts) + "\n"


def _lines(items: Any) -> str:
    return "\n".join(f"- {item}" for item in items if item)


def _names(items: Any) -> str:
    return ", ".join(markdown(str(item)) for item in items)


def _figure(value: Any) -> str:
    return "" if value is None else f"{value:.4g}"


def _prevalence(about: dict[str, Any]) -> str:
    if about["prevalence"]:
        shares = (f"{name} {share:.1%}" for name, share in about["prevalence"].items())
        return f"In the training rows: {_names(shares)}"
    if about.get("outcome"):
        pairs = zip(about["outcome"]["mean"], about["outcome"]["sd"], strict=True)
        return "Outcome in the training rows: " + "; ".join(
            f"mean {m:.4g}, s.d. {s:.4g}" for m, s in pairs
        )
    return ""


def _signal(about: dict[str, Any]) -> str:
    if not about["signal"]:
        return ""
    errors = about["signal"]["standard_errors_over_base_rate"]
    said = f"{against_base_rate(errors)} on held-out training rows"
    if about["signal"]["shown"]:
        return f"Evidence of signal: {said}"
    return f"**No evidence of signal on held-out data**: {said}. Do not interpret the features"


def _performance(about: dict[str, Any]) -> str:
    if not about["performance"]:
        return (
            "Not measured for this card. Measure it with `baldur evaluate` (nested "
            "cross-validation) or `baldur validate` (a new cohort), and pass it to `card`."
        )
    rows = ["| metric | estimate | 95 % interval |", "| --- | ---: | --- |"]
    for row in about["performance"]:
        where = f" ({markdown(row['site'])})" if row.get("site") else ""
        interval = f"{_figure(row['low'])} to {_figure(row['high'])}"
        rows.append(
            f"| {markdown(row['metric'])}{where} | {_figure(row['estimate'])} | {interval} |"
        )
    return "\n".join(rows)


def _formula(about: dict[str, Any]) -> str:
    what = "outcome" if about["task"] == "regression" else "log odds"
    several = len(about["outputs"]) > 1
    said = [
        f"At the mean weights, the {what} is the intercept plus the sum of weight times value, in "
        "the units of the input. A value outside the limits is set to the nearest limit."
    ]
    if about["task"] != "regression":
        said.append(
            "The probability is averaged over the uncertainty of the weights, and so less extreme "
            "than the log odds of this table alone. The scorers compute it."
        )
    if about["scale"] == "rank":
        said.append("Columns are ranked first, so a weight per unit holds only near the median.")
    if about["steps_before"]:
        said.append("Before that, columns are changed: " + _names(about["steps_before"]) + ".")
    if about["covariates_regressed_out"]:
        covariates = _names(about["covariates_regressed_out"])
        said.append(
            f"The effect of {covariates} on each column is subtracted, which this table leaves "
            "out. The scorers do it."
        )
    heads = [f"weight ({markdown(o)})" for o in about["outputs"]] if several else ["weight"]
    rows = [
        "| view | feature | " + " | ".join(heads) + " | s.d. | mean | lower limit | upper limit |",
        "| --- | --- |" + " ---: |" * (len(heads) + 4),
        "| | (intercept) | " + " | ".join(_figure(b) for b in about["intercept"]) + " | | | | |",
    ]
    for row in about["weights"][:MOST_ROWS]:
        spread = ", ".join(_figure(s) for s in row["weight_sd"])
        cells = [
            markdown(row["view"]),
            markdown(row["feature"]),
            *(_figure(w) for w in row["weight"]),
            spread,
            _figure(row["mean"]),
            _figure(row["lower_limit"]),
            _figure(row["upper_limit"]),
        ]
        rows.append("| " + " | ".join(cells) + " |")
    if len(about["weights"]) > MOST_ROWS:
        said.append(f"The first {MOST_ROWS} of {len(about['weights']):,} features are listed.")
    return " ".join(said) + "\n\n" + "\n".join(rows)


def _uncertainty(about: dict[str, Any], model: dict[str, Any] | None, reason: str) -> str:
    if model is None:
        return markdown(reason)
    of = "output" if model["loadings"] is None else "factor"
    said = (
        f"The intercept and the {len(model['features'])} weights of each {of} have one joint "
        "Gaussian posterior. `card.json` holds its mean and covariance (for standardised values: "
        "value minus mean, times factor) and the variance that a missing view adds. "
    )
    if about["task"] != "regression":
        said += (
            "The probability is the mean of the logistic function under this Gaussian, "
            "sum_i w_i Phi(mean / sqrt(c_i^2 + variance)), where mean and variance are those of "
            "the log odds, and w_i and c_i are the weights and scales of `probit`. "
        )
    return said + (
        "`score.py`, `score.R` and `score.js` compute predictions from these numbers and need no "
        "other software of ours."
    )
