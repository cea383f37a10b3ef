"""Attributes of a fitted estimator that follow from its predictor, in units of the input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray


def set_coefficients(model: Any, predictor: Any) -> None:
    """Set weights and intercepts, per unit of the input and per standard deviation."""
    prep = model.preparation_
    coefs, stds, intercept = predictor.coefficients()
    center, spread = model._targets.units
    scale = spread[:, None]
    shift, model.coef_, model.coef_std_ = np.zeros(len(intercept)), {}, {}
    model.coef_scaled_, model.coef_scaled_std_ = {}, {}
    for name, coef, std in zip(model.view_names_, coefs, stds, strict=True):
        model.coef_[name] = prep.coef_in_input_units(name, coef) * scale
        model.coef_std_[name] = prep.coef_in_input_units(name, std) * scale
        # Prepared columns have standard deviation 1.
        informative = ~prep.scaling_.constant_[name]
        model.coef_scaled_[name] = prep.expand(name, coef * scale * informative)
        model.coef_scaled_std_[name] = prep.expand(name, std * scale * informative)
        shift = shift + prep.intercept_shift(name, coef)
    model.intercept_scaled_ = intercept * spread + center
    model.intercept_ = (intercept + shift) * spread + center


def set_selected_features(model: Any, masks: list[NDArray[np.bool_]]) -> None:
    """Set which input columns were selected; `masks` say it of the prepared columns."""
    prep = model.preparation_
    selected = dict(zip(model.view_names_, masks, strict=True))
    prep.mark_needed(selected)
    model.selected_features_ = {name: prep.expand(name, mask) for name, mask in selected.items()}


def set_relevance(model: Any, predictor: Any) -> None:
    """Set what each view contributes to outputs and factors, and the factors with their names."""
    names = model.view_names_
    strength = predictor.output_signal.sum(axis=1)
    total = strength.sum()
    share = strength / total if total > 0 else np.full(len(names), 1.0 / len(names))
    model.view_relevance_ = {name: float(s) for name, s in zip(names, share, strict=True)}
    by_factor = predictor.signal.T  # (K, M)
    sums = by_factor.sum(axis=1, keepdims=True)
    parts = np.divide(by_factor, sums, out=np.zeros_like(by_factor), where=sums > 0)
    factors = [f"factor{k}" for k in range(len(parts))]
    model.factor_relevance_ = pd.DataFrame(parts, index=factors, columns=names)
    model.loadings_ = predictor.V
    model.n_factors_ = int(predictor.V.shape[1])
    model.factor_names_ = name_factors(model)


def name_factors(model: Any) -> list[str]:
    """Name every factor by the three features that move it most, the strongest first.

    The weights of a factor are those of the outputs, combined by its loadings.
    """
    by_factor = np.linalg.pinv(model.loadings_)  # (K, C)
    found: list[list[tuple[float, str]]] = [[] for _ in by_factor]
    for view in model.view_names_:
        strength = np.abs(by_factor @ model.coef_scaled_[view])  # (K, D)
        for k, row in enumerate(strength):
            for d in np.argsort(-row, kind="stable")[:3]:
                if row[d] > 0:
                    found[k].append((-float(row[d]), f"{view}:{model.feature_names_[view][d]}"))
    return [", ".join(name for _, name in sorted(one)[:3]) or "no feature" for one in found]
