"""Score people with a printed BALDUR model: python score.py card.json people.json (needs NumPy).

A person is {"view": {"feature": number}}. What is null or left out is missing: a feature is
replaced by its training mean, and a missing view adds to the variance. Where sites are harmonised
or covariates regressed out, {"samples": {"site": text, "age": number}} holds them beside the views.
"""

import json
import math
import sys
from typing import Any

import numpy as np


def unknown(value: Any) -> bool:
    """Return whether a value is missing."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def standardised(f: dict[str, Any], value: Any) -> float:
    """Return the standardised value of one feature, 0 where it is missing."""
    if unknown(value):
        return 0.0
    if f["knots"]:
        return float(np.interp(value, f["knots"], f["scores"])) * f["factor"]
    clipped = value if f["lower"] is None else min(max(value, f["lower"]), f["upper"])
    return float((clipped - f["mean"]) * f["factor"])


def text(value: Any) -> str:
    """Return a site or a level of a category as text; 1.0 and 1 are the same."""
    whole = isinstance(value, float) and value.is_integer()
    return str(int(value) if whole else value).strip()


def covariates(columns: list[dict[str, Any]], about: dict[str, Any]) -> Any:
    """Return the standardised covariates, at the training mean where unknown."""
    values = []
    for c in columns:
        v = about.get(c["name"])
        if c["levels"] and not unknown(v):
            v = float(text(v) == c["level"]) if text(v) in c["levels"] else None
        values.append(((c["fill"] if unknown(v) else v) - c["mean"]) / c["scale"])
    return np.array(values)


def features(model: dict[str, Any], person: dict[str, Any]) -> list[float]:
    """Return every feature: aligned between sites, standardised, less what covariates explain."""
    about, sites = person.get("samples") or {}, model["sites"] or {"names": [], "keep": []}
    site = about.get(sites.get("by"))
    seen = not unknown(site) and text(site) in sites["names"]
    at = sites["names"].index(text(site)) if seen else 0
    keep, design = covariates(sites["keep"], about), covariates(model["covariates"], about)
    values = []
    for f in model["features"]:
        v, s = (person.get(f["view"]) or {}).get(f["name"]), f["sites"]
        if unknown(v):
            values.append(0.0)
            continue
        if s and seen and v != s["held"]:
            level = s["level"] + keep @ np.array(s["coef"])
            v = level + (v - level - s["shift"][at]) * s["factor"][at]
        values.append(standardised(f, v) - f["effect"][0] - design @ np.array(f["effect"][1:]))
    return values


def moments(model: dict[str, Any], person: dict[str, Any]) -> tuple[Any, Any]:
    """Return mean and variance of the linear predictor of each output, without noise."""
    missing = np.array([person.get(v) is None for v in model["views"]], dtype=float)
    x = np.array([1.0, *features(model, person)])
    mean, var = np.array(model["mean"]) @ x, np.maximum(np.array(model["cov"]) @ x @ x, 0.0)
    var = var + missing @ np.array(model["missing_variance"])
    q = model["loadings"]
    if q is None:
        return mean, var
    V, S = np.array(q["V"]), np.array(q["V_cov"])
    spread = S @ mean @ mean + np.einsum("ckk->ck", S) @ var
    return q["b"] + V @ mean, q["b_var"] + V**2 @ var + spread


def predict(model: dict[str, Any], person: dict[str, Any]) -> Any:
    """Return class probabilities, or [mean, s.d.] of each continuous outcome."""
    mean, var = moments(model, person)
    var = var + model["noise_variance"]
    if model["task"] == "regression":
        unit = np.array(model["outcome_std"])
        return np.c_[mean * unit + model["outcome_mean"], np.sqrt(var) * unit].tolist()
    # E[1/(1 + exp(-eta))] = sum_i w_i Phi(mean / sqrt(c_i^2 + var)), with Phi(z) = erfc(-z/2^.5)/2.
    z = mean[:, None] / np.sqrt(np.square(model["probit"]["scales"]) + var[:, None])
    p = 0.5 * np.vectorize(math.erfc)(-z / math.sqrt(2.0)) @ model["probit"]["weights"]
    if model["task"] == "multiclass":
        p = np.maximum(p, 1e-12) / np.maximum(p, 1e-12).sum()
    return [1.0 - p[0], p[0]] if model["task"] == "binary" else p.tolist()


if __name__ == "__main__":
    card, people = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:3])  # noqa: SIM115 the program ends here
    sys.stdout.write(json.dumps([predict(card["model"], person) for person in people]) + "\n")
