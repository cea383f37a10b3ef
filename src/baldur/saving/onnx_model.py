"""The printed model as an ONNX graph in float64, for programs that run ONNX and nothing else.

Inputs are ``x`` (rows by features, in the order of the metadata's ``features``; NaN where missing)
and ``absent`` (rows by views; 1 where the view is missing). Outputs are ``probabilities``, or
``mean`` and ``std`` of continuous outcomes.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from baldur.core.optional import import_extra

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
    """Return a printed model as the bytes of an ONNX file."""
    g = _Graph()
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
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    made.ir_version = IR_VERSION
    names = [[f["view"], f["name"]] for f in model["features"]]
    notes = {"features": names, "views": model["views"], "classes": model["classes"]}
    helper.set_model_props(made, {key: json.dumps(value) for key, value in notes.items()})
    g.onnx.checker.check_model(made)
    return bytes(made.SerializeToString())


def _standardised(g: _Graph, features: list[dict[str, Any]]) -> str:
    """Standardise the columns of x, 0 where missing, after a column of ones."""
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
    q = model["loadings"]
    if q is not None:
        V, V_cov = np.array(q["V"]), np.array(q["V_cov"])
        within = g("MatMul", var, (V**2 + np.einsum("ckk->ck", V_cov)).T)
        var = g("Add", g("Add", within, q["b_var"]), _quadratic(g, mean, V_cov))
        mean = g("Add", g("MatMul", mean, V.T), q["b"])
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
    """The normal distribution function, by its integral from 0."""
    t, w = np.polynomial.legendre.leggauss(CDF_NODES)
    t, w = 0.5 * (t + 1.0), 0.5 * w / np.sqrt(2.0 * np.pi)
    z = g("Min", g("Max", z, -FAR), FAR)
    last = g.constant([-1], np.int64)
    power = g("Mul", g("Unsqueeze", g("Mul", z, z), last), -0.5 * t**2)
    area = g("Squeeze", g("MatMul", g("Exp", power), w[:, None]), last)
    return g("Add", g("Mul", z, area), 0.5)
