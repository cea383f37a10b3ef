"""The printed model as an ONNX graph in float64, for programs that run ONNX and nothing else.

Inputs are ``x`` (rows by features, in the order of the metadata's ``features``; NaN where missing)
and ``absent`` (rows by views; 1 where a person lacks the view). Outputs are ``probabilities``, or
``mean`` and ``std`` for numbers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from baldur.exceptions import MissingExtraError

__all__ = ["onnx_bytes"]

OPSET, IR_VERSION = 17, 8
"""Versions that any runtime since 2022 reads."""
PHI_NODES = 20
"""Gauss-Legendre nodes for the normal distribution function, exact to 1e-13: runtimes have no erf
in float64."""
FAR = 9.0
"""Standard deviations beyond which the normal distribution function is 0 or 1."""


class _Graph:
    """Nodes and constants, each under a name of its own."""

    def __init__(self) -> None:
        try:
            import onnx
        except ImportError:
            raise MissingExtraError(
                "to_onnx needs the library onnx. Install it: pip install 'baldur-multiview[onnx]'"
            ) from None
        self.onnx = onnx
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def constant(self, values: Any, dtype: type = np.float64) -> str:
        name = f"c{len(self.constants)}"
        array: Any = np.asarray(values, dtype=dtype)
        self.constants.append(self.onnx.numpy_helper.from_array(array, name))
        return name

    def __call__(self, op: str, *inputs: Any, **attributes: Any) -> str:
        """Add a node; what is no name becomes a constant."""
        names = [i if isinstance(i, str) else self.constant(i) for i in inputs]
        out = f"n{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(op, names, [out], **attributes))
        return out

    def total(self, value: str, axis: int) -> str:
        return self("ReduceSum", value, self.constant([axis], np.int64), keepdims=0)

    def shaped(self, value: str, shape: Sequence[int]) -> str:
        return self("Reshape", value, self.constant(shape, np.int64))

    def called(self, value: str, name: str) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))


def onnx_bytes(model: dict[str, Any]) -> bytes:
    """Return a printed model as the bytes of an ONNX file.

    Parameters
    ----------
    model : dict
        As `baldur.cards.printable` gives it.

    Returns
    -------
    bytes
    """
    g = _Graph()
    L, M, C = len(model["features"]), len(model["views"]), len(model["noise"])
    x1 = _cells(g, model["features"])
    pairs = [_member(g, model, member, x1) for member in model["members"]]
    weights = np.array([member["weight"] for member in model["members"]])  # (J, C)
    # (n, J, C)
    mean, var = (g("Concat", *(g.shaped(p[i], [-1, 1, C]) for p in pairs), axis=1) for i in (0, 1))
    outputs = _numbers(g, model, mean, var, weights)
    if model["task"] != "regression":
        p = g.total(g("Mul", _rate(g, model["rules"], mean, var), weights), 1)
        if model["task"] == "multiclass":
            p = g("Max", p, 1e-12)
            p = g("Div", p, g("ReduceSum", p, g.constant([1], np.int64), keepdims=1))
        if model["task"] == "binary":
            p = g("Concat", g("Sub", 1.0, p), p, axis=1)
        outputs = {"probabilities": (p, 2 if model["task"] == "binary" else C)}
    for name, (value, _) in outputs.items():
        g.called(value, name)
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


def _cells(g: _Graph, features: list[dict[str, Any]]) -> str:
    """Standardise the columns of x, 0 where missing, after a column of ones."""
    ones = g("Add", g("Mul", g.total("absent", 1), 0.0), 1.0)
    ones = g.shaped(ones, [-1, 1])
    if not features:
        return ones
    low = [-np.inf if f["lower"] is None else f["lower"] for f in features]
    high = [np.inf if f["upper"] is None else f["upper"] for f in features]
    held = g("Min", g("Max", "x", low), high)
    z = g("Mul", g("Sub", held, [f["mean"] for f in features]), [f["factor"] for f in features])
    if any(f["knots"] for f in features):
        columns = []
        for i, f in enumerate(features):
            if not f["knots"]:
                columns.append(g("Gather", z, g.constant([i], np.int64), axis=1))
                continue
            # From knot to knot, as far as the cell has come: a sum of pieces that saturate.
            knots, scores = np.array(f["knots"]), np.array(f["scores"])
            steps = np.diff(knots)
            slopes = np.diff(scores) / steps if len(steps) else np.zeros(0)
            column = g("Gather", "x", g.constant([i], np.int64), axis=1)
            parts = g("Min", g("Max", g("Sub", column, knots[:-1]), 0.0), steps)
            score = g("Add", g("MatMul", parts, slopes[:, None]), scores[0])
            columns.append(g("Mul", score, f["factor"]))
        z = g("Concat", *columns, axis=1)
    return g("Concat", ones, g("Where", g("IsNaN", "x"), 0.0, z), axis=1)


def _member(g: _Graph, model: dict[str, Any], member: dict[str, Any], x1: str) -> tuple[str, str]:
    """Mean and variance of the linear predictors under one Gaussian, each (n, C)."""
    mean = g("MatMul", x1, np.array(member["mean"]).T)
    rows = g("Unsqueeze", x1, g.constant([0], np.int64))
    square = g.total(g("Mul", g("MatMul", rows, np.array(member["cov"])), rows), 2)  # (K, n)
    var = g("Max", g("Transpose", square, perm=[1, 0]), 0.0)
    var = g("Add", var, g("MatMul", "absent", np.array(member["lacking"])))
    load = model["loadings"]
    if load is not None:
        V, S = np.array(load["V"]), np.array(load["V_cov"])
        rows = g("Unsqueeze", mean, g.constant([0], np.int64))
        spread = g.total(g("Mul", g("MatMul", rows, S), rows), 2)  # (C, n)
        through = g("MatMul", var, (V**2 + np.einsum("ckk->ck", S)).T)
        var = g("Add", g("Add", through, load["b_var"]), g("Transpose", spread, perm=[1, 0]))
        mean = g("Add", g("MatMul", mean, V.T), load["b"])
    return mean, g("Max", g("Add", var, model["noise"]), 1e-12)


def _numbers(
    g: _Graph, model: dict[str, Any], mean: str, var: str, weights: np.ndarray
) -> dict[str, tuple[str, int]]:
    """Mean and standard deviation of the outcomes; nothing for classes."""
    if model["task"] != "regression":
        return {}
    C = weights.shape[1]
    middle = g.total(g("Mul", mean, weights), 1)
    apart = g("Sub", mean, g.shaped(middle, [-1, 1, C]))
    spread = g.total(g("Mul", g("Add", var, g("Mul", apart, apart)), weights), 1)
    unit = np.array(model["spread"])
    total = g("Add", g("Mul", spread, unit**2), np.array(model["noise_std"]) ** 2)
    return {
        "mean": (g("Add", g("Mul", middle, unit), model["center"]), C),
        "std": (g("Sqrt", total), C),
    }


def _rate(g: _Graph, rules: list[dict[str, Any]], mean: str, var: str) -> str:
    """The mean of the logistic function under every Gaussian, by the rule of its spread."""
    s = g("Sqrt", var)
    last = g.constant([-1], np.int64)
    wide_mean, made = g("Unsqueeze", mean, last), ""
    for rule in reversed(rules):
        nodes, weights = np.array(rule["nodes"]), np.array(rule["weights"])[:, None]
        if rule["up_to"] is None:
            # Held from below where the rule is not asked for, so that nothing overflows.
            least = max(r["up_to"] for r in rules if r["up_to"] is not None)
            unit = g("Unsqueeze", g("Max", s, least), last)
            z = g("Div", g("Sub", wide_mean, nodes), unit)
            p = g("MatMul", _phi(g, z), weights)
            made = g("Min", g("Max", g("Squeeze", p, last), 0.0), 1.0)
            continue
        eta = g("Add", wide_mean, g("Mul", g("Unsqueeze", s, last), nodes))
        p = g("Squeeze", g("MatMul", g("Sigmoid", eta), weights), last)
        made = g("Where", g("LessOrEqual", s, rule["up_to"]), p, made)
    return made


def _phi(g: _Graph, z: str) -> str:
    """The normal distribution function, by its integral from 0."""
    t, w = np.polynomial.legendre.leggauss(PHI_NODES)
    t, w = 0.5 * (t + 1.0), 0.5 * w / np.sqrt(2.0 * np.pi)
    z = g("Min", g("Max", z, -FAR), FAR)
    last = g.constant([-1], np.int64)
    power = g("Mul", g("Unsqueeze", g("Mul", z, z), last), -0.5 * t**2)
    area = g("Squeeze", g("MatMul", g("Exp", power), w[:, None]), last)
    return g("Add", g("Mul", z, area), 0.5)
