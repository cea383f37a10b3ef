"""The facts of a card: what the model is, training data, performance and intended use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

import baldur
from baldur.estimators.summary import output_names
from baldur.exceptions import InputError

INTENDED = (
    "Research on people like those it was trained on: the same inclusion criteria, the same "
    "instruments and units. The probability it gives is to be read beside other evidence."
)
"""What a model is for, unless its maker says otherwise."""

NOT_FOR = (
    "Decisions about single people without a clinician and without validation in their population.",
    "People or instruments that differ from training: other ages, scanners, assays, ancestries, "
    "units.",
    "Claims about causes: a weight says what predicts, and not what would change an outcome.",
    "Other prevalences without recalibration: probabilities carry the prevalence of training.",
)
"""What no model of this kind must be used for."""


def facts(
    model: Any,
    *,
    classes: list[Any] | None = None,
    performance: Any = None,
    intended_use: str | None = None,
    not_for: Any = None,
) -> dict[str, Any]:
    """Return what a card says in words and figures, as JSON has it."""
    preparation = model.preparation_
    known = getattr(model, "classes_", None)
    labels = [] if known is None else [str(c) for c in (classes or np.asarray(known).tolist())]
    task = getattr(model, "_task", "regression")
    n = int(preparation.n_samples_)
    outputs = labels if task == "multilabel" else output_names(model)
    if labels and task != "multilabel":
        outputs = labels[-1:] if len(model.intercept_) == 1 else labels
    found: dict[str, Any] = {
        "model": type(model).__name__,
        "baldur": baldur.__version__,
        "task": task,
        "classes": labels,
        "outputs": outputs,
        "samples": n,
        "prevalence": None,
        "views": {name: int(width) for name, width in preparation.n_features_.items()},
        "scale": preparation.scaling_.scale,
        "steps_before": [type(step).__name__ for step in preparation.steps_],
        "covariates_regressed_out": []
        if preparation.covariates_ is None
        else list(preparation.covariates_.names),
        "missing": "A missing cell is replaced by its training mean. Where a whole view is "
        "missing, all of its cells are, and the variance of the prediction increases.",
        "intercept": model.intercept_.tolist(),
        "weights": _weights(model),
        "signal": None,
        "performance": read_performance(performance),
        "intended_use": intended_use or INTENDED,
        "not_for": [*NOT_FOR, *([not_for] if isinstance(not_for, str) else (not_for or []))],
    }
    counts = getattr(model, "class_count_", None)
    if counts is not None:
        shares = np.asarray(counts, dtype=float) / n
        found["prevalence"] = dict(zip(labels, shares.tolist(), strict=True))
    elif task == "regression":
        mean, std = model.output_units
        found["outcome"] = {"mean": mean.tolist(), "sd": std.tolist()}
    if hasattr(model, "signal_shown_"):
        found["signal"] = {
            "standard_errors_over_base_rate": float(model.signal_),
            "shown": bool(model.signal_shown_),
            "held_out_loss": _selected_loss(model),
        }
    return found


def _weights(model: Any) -> list[dict[str, Any]]:
    """Return a row for each selected feature: weights per unit of the input, limits and range."""
    preparation, rows = model.preparation_, []
    lowers, uppers, means = preparation.lower_, preparation.upper_, preparation.mean_
    minima, maxima = preparation.minimum_, preparation.maximum_
    for view in model.view_names_:
        for column in np.flatnonzero(model.selected_features_[view]):
            lower, upper = lowers[view][column], uppers[view][column]
            rows.append(
                {
                    "view": view,
                    "feature": str(model.feature_names_[view][column]),
                    "weight": model.coef_[view][:, column].tolist(),
                    "weight_sd": model.coef_std_[view][:, column].tolist(),
                    "mean": float(means[view][column]),
                    "lower_limit": float(lower) if np.isfinite(lower) else None,
                    "upper_limit": float(upper) if np.isfinite(upper) else None,
                    "training_range": [
                        float(minima[view][column]),
                        float(maxima[view][column]),
                    ],
                }
            )
    return rows


def _selected_loss(model: Any) -> float | None:
    path = model.sparsity_path_
    selected = path[path["selected"]]
    return float(selected["loss"].iloc[0]) if len(selected) else None


def read_performance(given: Any) -> list[dict[str, Any]]:
    """Return performance as rows of metric, estimate, low and high."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        given = pd.DataFrame(
            [(name, *values) for name, values in given.items()],
            columns=["metric", "estimate", "low", "high"],
        )
    lacking = {"metric", "estimate", "low", "high"} - set(getattr(given, "columns", ()))
    if lacking:
        raise InputError(
            f"performance: expected a table with metric, estimate, low and high, but it has no "
            f"{', '.join(sorted(lacking))}."
        )
    if "model" in given and given["model"].nunique() > 1:
        raise InputError(
            f"performance: expected the rows of one model, but there are {given['model'].nunique()}"
            ". Select those of the model on the card."
        )
    keep = [c for c in ("metric", "estimate", "low", "high", "people", "site") if c in given]
    return [
        {str(k): v if isinstance(v, str) else _number(v) for k, v in row.items()}
        for row in given[keep].to_dict("records")
    ]


def _number(value: Any) -> float | int | None:
    number = float(value)
    if not np.isfinite(number):
        return None
    return int(number) if isinstance(value, (int, np.integer)) else number
