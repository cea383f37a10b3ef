"""Contributions of views and features to each prediction, which add up exactly.

With prepared cells x (mean 0 over the training samples, so that 0 is the average person), mean
weights w and mean intercept b,

    eta = b + sum_m sum_d x_d w_d            the linear predictor without its uncertainty
    log odds of the probability = eta + u    u is what the uncertainty of the weights does

A missing view contributes 0, the average, and its uncertainty is part of u.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from baldur.core.types import Array
from baldur.estimators.summary import INTERVAL, output_names
from baldur.views.prepared_view import PreparedView

AVERAGE, OTHERS, UNCERTAINTY = "(average person)", "(other features)", "(uncertainty)"


def contributions(
    model: Any,
    views: Sequence[PreparedView],
    samples: Sequence[Any],
    total: Array | None,
    most: int,
) -> pd.DataFrame:
    """Return one row per sample, output and term.

    `total` are the log odds of the predictions, or None where there are none.

    Shapes: total (n, C).
    """
    n, outputs = len(samples), output_names(model)
    labels = np.asarray(samples, dtype=object)
    intercept = model.intercept_scaled_
    eta = np.tile(intercept, (n, 1))
    parts: list[pd.DataFrame] = []

    def add(c: int, view: str, features: Any, values: Array, spread: Any = np.nan) -> None:
        """Add the terms (n, L) of one output."""
        row = np.repeat(np.arange(n), len(features))
        columns = {
            "row": row,
            "place": c,
            "sample": labels[row],
            "output": outputs[c],
            "view": view,
            "feature": np.tile(features, n),
            "contribution": values.ravel(),
            "lower": (values - spread).ravel(),
            "upper": (values + spread).ravel(),
        }
        parts.append(pd.DataFrame(columns))

    for view, name in zip(views, model.view_names_, strict=True):
        columns = model.preparation_.columns_[name]
        names = np.asarray(model.feature_names_[name])[columns]
        w, std = model.coef_scaled_[name][:, columns], model.coef_scaled_std_[name][:, columns]
        used = np.flatnonzero(w.any(axis=0) | std.any(axis=0))
        if not used.size:
            continue
        strength = np.abs(w[:, used]).max(axis=0)
        listed = np.sort(used[np.argsort(-strength, kind="stable")[:most]])
        X = view.columns(listed)
        rest = w.copy()
        rest[:, listed] = 0.0
        others = view.apply(rest.T) if len(listed) < len(used) else None
        for c in range(len(outputs)):
            each = X * w[c, listed]
            eta[:, c] += each.sum(axis=1)
            spread = INTERVAL * np.abs(X) * std[c, listed]
            add(c, name, names[listed].astype(str), each, spread)
            if others is not None:
                eta[:, c] += others[:, c]
                add(c, name, [OTHERS], others[:, [c]])
    for c in range(len(outputs)):
        add(c, "", [AVERAGE], np.full((n, 1), intercept[c]))
        if total is not None:
            add(c, "", [UNCERTAINTY], total[:, [c]] - eta[:, [c]])
    table = pd.concat(parts, ignore_index=True)
    row, place = table.pop("row").to_numpy(), table.pop("place").to_numpy()
    table["linear_predictor"] = eta[row, place]
    order = np.lexsort((-np.abs(table["contribution"].to_numpy()), place, row))
    return table.iloc[order].reset_index(drop=True)
