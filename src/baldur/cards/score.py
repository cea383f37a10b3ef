"""Score people with a printed BALDUR model: python score.py card.json people.json (needs NumPy).

A person is {"view": {"feature": number}}. What is null or left out is missing: a feature stands at
its training mean, a view is absent.
"""

import json
import math
import sys
from typing import Any

import numpy as np


def cell(f: dict[str, Any], v: Any) -> float:
    """Return the standardised value of one feature, 0 where it is missing."""
    if f["knots"] and not (v is None or math.isnan(v)):
        return float(np.interp(v, f["knots"], f["scores"])) * f["factor"]
    v = f["mean"] if v is None or math.isnan(v) else v
    held = v if f["lower"] is None else min(max(v, f["lower"]), f["upper"])
    return float((held - f["mean"]) * f["factor"])


def rate(rules: list[Any], mean: float, var: float) -> float:
    """Return the mean of 1/(1 + exp(-eta)) for a Gaussian eta."""
    s = math.sqrt(var)
    rule = next(r for r in rules if r["up_to"] is None or s <= r["up_to"])
    g: Any = [0.5 * math.erfc((x - mean) / (s * math.sqrt(2.0))) for x in rule["nodes"]]
    if rule["up_to"] is not None:
        g = 0.5 + 0.5 * np.tanh(0.5 * (mean + s * np.array(rule["nodes"])))
    return min(max(float(np.dot(g, rule["weights"])), 0.0), 1.0)


def predict(model: dict[str, Any], person: dict[str, Any]) -> Any:
    """Return class probabilities, or [mean, s.d.] of each outcome for numbers."""
    absent = np.array([person.get(v) is None for v in model["views"]], dtype=float)
    cells = [cell(f, (person.get(f["view"]) or {}).get(f["name"])) for f in model["features"]]
    x, L, moments = np.array([1.0, *cells]), model["loadings"], []
    for q in model["members"]:
        mean, var = np.array(q["mean"]) @ x, np.maximum(np.array(q["cov"]) @ x @ x, 0.0)
        var = var + absent @ np.array(q["lacking"])
        if L is not None:
            V, S = np.array(L["V"]), np.array(L["V_cov"])
            spread = S @ mean @ mean + np.einsum("ckk->ck", S) @ var
            mean, var = L["b"] + V @ mean, L["b_var"] + V**2 @ var + spread
        moments.append((np.array(q["weight"]), mean, np.maximum(var + model["noise"], 1e-12)))
    if model["task"] == "regression":
        mid = sum(w * m for w, m, _ in moments)
        var = sum(w * (v + (m - mid) ** 2) for w, m, v in moments) * np.square(model["spread"])
        std = np.sqrt(var + np.square(model["noise_std"]))
        return np.column_stack([mid * model["spread"] + model["center"], std]).tolist()
    p: Any = sum(w * [rate(model["rules"], *e) for e in np.c_[m, v]] for w, m, v in moments)
    p = np.maximum(p, 1e-12) / np.maximum(p, 1e-12).sum() if model["task"] == "multiclass" else p
    return [1.0 - p[0], p[0]] if model["task"] == "binary" else p.tolist()


if __name__ == "__main__":
    card, people = (json.load(open(name, encoding="utf-8")) for name in sys.argv[1:3])  # noqa: SIM115 the program ends here
    sys.stdout.write(json.dumps([predict(card["model"], person) for person in people]) + "\n")
