"""The printed model: everything that a scorer needs, as JSON has it, as R code and as ONNX."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from baldur.core.optional import import_extra
from baldur.exceptions import InputError
from baldur.model.likelihood import probit_mixture
from baldur.preparation import Preparation, SiteHarmoniser
from baldur.preparation.covariates import Covariates

SCHEMA = 3
"""Version of the numbers, raised when an older scorer could not use them."""
MAX_NUMBERS = 500_000
"""Largest number of covariances that is printed, some megabytes of text."""
SAMPLES = "samples"
"""Where a person has sites and covariates, beside the views."""


def model_numbers(model: Any, classes: list[str]) -> dict[str, Any]:
    """Return what a scorer needs of a fitted estimator, as numbers, lists and text."""
    preparation: Preparation = model.preparation_
    harmoniser = _harmoniser(preparation)
    predictor = model.predictor
    index = predictor.joint_index()  # the prepared columns of each view that have a weight
    missing_variance = predictor.joint_missing_variance  # (views, factors)
    _check_size(missing_variance.shape[1], sum(map(len, index)))
    loadings = predictor.loadings
    joint = predictor.joint()
    input_columns = preparation.columns_
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
        for view, columns in zip(model.view_names_, index, strict=True)
        for column in columns
    ]
    numbers = {
        "schema": SCHEMA,
        "task": model._task,
        "classes": classes,
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
        # Gaussian over the intercept and the L weights of each of K factors: (K, 1 + L) and
        # (K, 1 + L, 1 + L).
        "mean": joint.mean[0].tolist(),
        "cov": joint.cov[0].tolist(),
        "missing_variance": missing_variance.tolist(),
        # Turn factors into outputs; None where factor k is output k.
        "loadings": loadings and {name: part.tolist() for name, part in loadings.items()},
        "noise_variance": predictor.noise.tolist(),
    }
    if model._task == "regression":
        mean, std = model.output_units
        return {**numbers, "outcome_mean": mean.tolist(), "outcome_std": std.tolist()}
    weights, scales = probit_mixture()
    return {**numbers, "probit": {"weights": weights.tolist(), "scales": scales.tolist()}}


def _check_size(n_factors: int, n_features: int) -> None:
    numbers = n_factors * (1 + n_features) ** 2
    if numbers > MAX_NUMBERS:
        raise InputError(
            f"A model of {n_features:,} features is not printed: the covariance of its weights has "
            f"{numbers:,} entries, more than {MAX_NUMBERS:,}. Save the model and load it with "
            "baldur, or fit one of fewer features (a larger margin)."
        )


def _harmoniser(preparation: Preparation) -> SiteHarmoniser | None:
    """Return the step that aligns sites, or None; refuse what a scorer cannot apply."""
    changing = [step for step in preparation.steps_ if step.changes_cells]
    harmonisers = [step for step in changing if isinstance(step, SiteHarmoniser)]
    if len(changing) > len(harmonisers):
        other = next(step for step in changing if step not in harmonisers)
        raise InputError(
            f"No scorer is printed: a scorer cannot do what {type(other).__name__} does to the "
            "cells. Predict with the fitted model."
        )
    if len(harmonisers) > 1:
        raise InputError(
            f"No scorer is printed: a scorer aligns sites once, and the preparation has "
            f"{len(harmonisers)} SiteHarmoniser steps. Save the model, and use baldur predict or "
            "baldur.load."
        )
    if harmonisers and harmonisers[0].new_sites == "own":
        raise InputError(
            "No scorer is printed: with new_sites='own' the values of a new site depend on all of "
            "its people, and a scorer sees one person at a time. Save the model, and use baldur "
            "predict or baldur.load."
        )
    reads_samples = harmonisers or preparation.covariates_ is not None
    if reads_samples and SAMPLES in preparation.n_features_:
        raise InputError(
            f"No scorer is printed: scorers read sites and covariates under the name {SAMPLES!r}, "
            "and a view has this name. Rename the view, or save the model and use baldur predict."
        )
    return harmonisers[0] if harmonisers else None


def _covariates(covariates: Covariates | None) -> list[dict[str, Any]]:
    """Return how to code the covariates of a person as a row of numbers, an entry per number.

    A number stands for itself; a category has an indicator for each level but the first.
    """
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
    """Return how a prepared column is aligned between sites; None where it is left alone.

    Cells that are exactly "held" are not aligned; "shift" and "factor" have an entry per site.
    """
    if harmoniser is None or view not in harmoniser.view_names_:
        return None
    # Steps after the alignment may have left columns out: back to its own column number.
    for step in reversed(preparation.steps_):
        if step is harmoniser:
            break
        column = int(step.columns_[view][column]) if view in step.columns_ else column
    pooled = harmoniser.pooled_[view]
    shift, factor = harmoniser.shift_[view][:, column], harmoniser.factor_[view][:, column]
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
    has_limits = np.isfinite([lower, upper]).all()
    feature = {
        "view": view,
        "name": name,
        "mean": float(scaling.mean_[view][column]),
        "factor": 0.0 if constant else 1.0 / float(scaling.scale_[view][column]),
        "lower": lower if has_limits else None,
        "upper": upper if has_limits else None,
        "knots": None,
        "scores": None,
        "effect": [0.0] if effect is None else effect[:, column].tolist(),
    }
    ranks = None if constant else scaling.ranks_of(view, column)
    if ranks is None:
        return feature
    knots, scores = ranks
    keep = np.concatenate([[True], np.diff(knots) > 0])  # interpolation needs different knots
    # Normal scores are standardised already; covariates leave a part of their spread.
    factor = 1.0 / float(scaling.spread_of(view)[column])
    ranked = {"knots": knots[keep].tolist(), "scores": scores[keep].tolist()}
    return {**feature, "factor": factor, **ranked}


# -- as R code -----------------------------------------------------------------------------------


def r_code(value: Any) -> str:
    """Return an R expression for a printed model: vectors, matrices, and lists of them."""
    if isinstance(value, dict):
        # An entry that is NULL is left out, which reads as NULL.
        parts = [f"{_name(k)} = {r_code(v)}" for k, v in value.items() if v is not None]
        return f"list({', '.join(parts)})"
    if isinstance(value, list):
        if value and all(_is_number(v) for v in value):
            return f"c({', '.join(map(r_code, value))})"
        if value and all(_is_row(v) and len(v) == len(value[0]) for v in value):
            cells = ", ".join(r_code(v) for row in value for v in row)
            return f"matrix(c({cells}), nrow = {len(value)}, byrow = TRUE)"
        return f"list({', '.join(map(r_code, value))})"
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    return "NULL" if value is None else repr(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _is_row(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0 and all(_is_number(v) for v in value)


def _text(value: str) -> str:
    """A string with everything but plain letters written as a code point."""
    plain = (c if c.isascii() and c.isprintable() and c not in '"\\' else _code(c) for c in value)
    return f'"{"".join(plain)}"'


def _code(character: str) -> str:
    number = ord(character)
    return f"\\u{{{number:x}}}" if number < 0x10000 else f"\\U{{{number:x}}}"


def _name(text: str) -> str:
    return f"`{text}`" if text.replace("_", "").isalnum() and text.isascii() else _text(text)


# -- as an ONNX graph ----------------------------------------------------------------------------

OPSET, IR_VERSION = 17, 8
"""Versions that any runtime since 2022 reads."""
CDF_NODES = 20
"""Gauss-Legendre nodes for the normal distribution function, exact to 1e-13: runtimes have no erf
in float64."""
FAR = 9.0
"""Standard deviations beyond which the normal distribution function is 0 or 1."""


class _Graph:
    """The nodes and constants of a graph under construction, each with a unique name."""

    def __init__(self) -> None:
        self.onnx = import_extra("onnx", "onnx", "to_onnx")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: type = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array: Any = np.asarray(values, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node and return its name; inputs that are not names become constants."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        out = f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, names, [out], **attributes))
        return out

    def total(self, value: str, axis: int) -> str:
        return self("ReduceSum", value, self.constant([axis], np.int64), keepdims=0)

    def output(self, value: str, name: str) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))


def onnx_bytes(model: dict[str, Any]) -> bytes:
    """Return a printed model as the bytes of an ONNX file in float64.

    Inputs are ``x`` (rows by features, in the order of the metadata's ``features``; NaN where
    missing) and ``absent`` (rows by views; 1 where the view is missing). Outputs are
    ``probabilities``, or ``mean`` and ``std`` of continuous outcomes.
    """
    g = _Graph()
    # L features, M views and C outputs.
    L, M, C = len(model["features"]), len(model["views"]), len(model["noise_variance"])
    mean, var = _moments(g, model)
    if model["task"] == "regression":
        unit = model["outcome_std"]
        outputs = {
            "mean": (g("Add", g("Mul", mean, unit), model["outcome_mean"]), C),
            "std": (g("Mul", g("Sqrt", var), unit), C),
        }
    else:
        p = _expected_sigmoid(g, model["probit"], mean, var)
        if model["task"] == "multiclass":
            p = g("Max", p, 1e-12)
            p = g("Div", p, g("ReduceSum", p, g.constant([1], np.int64), keepdims=1))
        if model["task"] == "binary":
            p = g("Concat", g("Sub", 1.0, p), p, axis=1)
        outputs = {"probabilities": (p, 2 if model["task"] == "binary" else C)}
    for name, (value, _) in outputs.items():
        g.output(value, name)
    helper, double = g.onnx.helper, g.onnx.TensorProto.DOUBLE
    graph = helper.make_graph(
        g.nodes,
        "baldur",
        [
            helper.make_tensor_value_info("x", double, ["n", L]),
            helper.make_tensor_value_info("absent", double, ["n", M]),
        ],
        [
            helper.make_tensor_value_info(name, double, ["n", width])
            for name, (_, width) in outputs.items()
        ],
        g.constants,
    )
    exported = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    exported.ir_version = IR_VERSION
    names = [[f["view"], f["name"]] for f in model["features"]]
    notes = {"features": names, "views": model["views"], "classes": model["classes"]}
    helper.set_model_props(exported, {key: json.dumps(value) for key, value in notes.items()})
    g.onnx.checker.check_model(exported)
    return bytes(exported.SerializeToString())


def _standardised(g: _Graph, features: list[dict[str, Any]]) -> str:
    """Standardise the columns of x, 0 where missing, after a column of ones; (n, 1 + L)."""
    # The only way to as many ones as there are rows.
    ones = g("Add", g("Mul", g.total("absent", 1), 0.0), 1.0)
    ones = g("Unsqueeze", ones, g.constant([1], np.int64))
    if not features:
        return ones
    low = [-np.inf if f["lower"] is None else f["lower"] for f in features]
    high = [np.inf if f["upper"] is None else f["upper"] for f in features]
    clipped = g("Min", g("Max", "x", low), high)
    z = g("Mul", g("Sub", clipped, [f["mean"] for f in features]), [f["factor"] for f in features])
    if any(f["knots"] for f in features):
        columns = []
        for i, f in enumerate(features):
            at = g.constant([i], np.int64)
            if not f["knots"]:
                columns.append(g("Gather", z, at, axis=1))
                continue
            # Linear interpolation as a sum over the segments: slope times the part of the segment
            # that lies below the value.
            knots, scores = np.array(f["knots"]), np.array(f["scores"])
            steps = np.diff(knots)
            below = g(
                "Min", g("Max", g("Sub", g("Gather", "x", at, axis=1), knots[:-1]), 0.0), steps
            )
            score = g("Add", g("MatMul", below, (np.diff(scores) / steps)[:, None]), scores[0])
            columns.append(g("Mul", score, f["factor"]))
        z = g("Concat", *columns, axis=1)
    return g("Concat", ones, g("Where", g("IsNaN", "x"), 0.0, z), axis=1)


def _moments(g: _Graph, model: dict[str, Any]) -> tuple[str, str]:
    """Mean and variance of the linear predictors, noise included, each (n, C)."""
    x1 = _standardised(g, model["features"])
    mean = g("MatMul", x1, np.array(model["mean"]).T)
    var = g("Max", _quadratic(g, x1, model["cov"]), 0.0)
    var = g("Add", var, g("MatMul", "absent", model["missing_variance"]))
    loadings = model["loadings"]
    if loadings is not None:
        # From moments of K factors to those of C outputs: V is (C, K), V_cov (C, K, K).
        V, V_cov = np.array(loadings["V"]), np.array(loadings["V_cov"])
        of_factors = g("MatMul", var, (V**2 + np.einsum("ckk->ck", V_cov)).T)
        var = g("Add", g("Add", of_factors, loadings["b_var"]), _quadratic(g, mean, V_cov))
        mean = g("Add", g("MatMul", mean, V.T), loadings["b"])
    return mean, g("Add", var, model["noise_variance"])


def _quadratic(g: _Graph, rows: str, S: Any) -> str:
    """x^T S_k x of every row and matrix, (n, K)."""
    rows = g("Unsqueeze", rows, g.constant([0], np.int64))
    form = g.total(g("Mul", g("MatMul", rows, S), rows), 2)
    return g("Transpose", form, perm=[1, 0])


def _expected_sigmoid(g: _Graph, probit: dict[str, Any], mean: str, var: str) -> str:
    """E[sigmoid(eta)] for eta ~ N(mean, var): sum_i w_i Phi(mean / sqrt(c_i^2 + var)), (n, C)."""
    last = g.constant([-1], np.int64)
    scale = g("Sqrt", g("Add", g("Unsqueeze", var, last), np.square(probit["scales"])))
    cdf = _normal_cdf(g, g("Div", g("Unsqueeze", mean, last), scale))
    return g("Squeeze", g("MatMul", cdf, np.array(probit["weights"])[:, None]), last)


def _normal_cdf(g: _Graph, z: str) -> str:
    """The normal distribution function: 1/2 plus the integral of the density from 0 to z."""
    nodes, w = np.polynomial.legendre.leggauss(CDF_NODES)
    # From [-1, 1] to [0, 1], the part t of the way to z; w has the constant of the density.
    t, w = 0.5 * (nodes + 1.0), 0.5 * w / np.sqrt(2.0 * np.pi)
    z = g("Min", g("Max", z, -FAR), FAR)
    last = g.constant([-1], np.int64)
    power = g("Mul", g("Unsqueeze", g("Mul", z, z), last), -0.5 * t**2)
    area = g("Squeeze", g("MatMul", g("Exp", power), w[:, None]), last)
    return g("Add", g("Mul", z, area), 0.5)
