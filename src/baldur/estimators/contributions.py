"""Contributions: what each feature and view adds to the linear predictor of each sample.

There is one row per sample and term, and the terms add up to the prediction exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from baldur.core.types import Array
from baldur.estimators.summary import INTERVAL, output_names

if TYPE_CHECKING:
    from baldur.views.prepared_view import PreparedView


AVERAGE, OTHERS, UNCERTAINTY = "(average person)", "(other features)", "(uncertainty)"


def contributions(
    model: Any,
    views: Sequence[PreparedView],
    samples: Sequence[Any],
    log_odds: Array | None,
    most: int,
) -> pd.DataFrame:
    """Return what each view and feature adds to each prediction, one row per term.

    With prepared cells x (mean 0 over the training samples, so that 0 is the average person), mean
    weights w and mean intercept b,

        eta = b + sum_m sum_d x_d w_d            the linear predictor without its uncertainty
        log odds of the probability = eta + u    u is what the uncertainty of the weights does

    A missing view contributes 0, the average, and its uncertainty is part of u.

    At most `most` features of a view have a row of their own. `log_odds` are those of the
    predictions, or None in regression.

    Shapes: log_odds (n, C) of n samples and C outputs.
    """
    n, outputs = len(samples), output_names(model)
    labels = np.asarray(samples, dtype=object)
    intercept = model.intercept_scaled_
    eta = np.tile(intercept, (n, 1))
    parts: list[pd.DataFrame] = []

    def add(c: int, view: str, features: Any, values: Array, spread: Any = np.nan) -> None:
        """Add the terms (n, L) of one output c: one for each sample and each of L features."""
        row = np.repeat(np.arange(n), len(features))
        columns = {
            "row": row,
            "output_index": c,
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
        w_others = w.copy()
        w_others[:, listed] = 0.0
        others = view.apply(w_others.T) if len(listed) < len(used) else None
        for c in range(len(outputs)):
            terms = X * w[c, listed]
            eta[:, c] += terms.sum(axis=1)
            spread = INTERVAL * np.abs(X) * std[c, listed]
            add(c, name, names[listed].astype(str), terms, spread)
            if others is not None:
                eta[:, c] += others[:, c]
                add(c, name, [OTHERS], others[:, [c]])
    for c in range(len(outputs)):
        add(c, "", [AVERAGE], np.full((n, 1), intercept[c]))
        if log_odds is not None:
            add(c, "", [UNCERTAINTY], log_odds[:, [c]] - eta[:, [c]])
    table = pd.concat(parts, ignore_index=True)
    row, output = table.pop("row").to_numpy(), table.pop("output_index").to_numpy()
    table["linear_predictor"] = eta[row, output]
    order = np.lexsort((-np.abs(table["contribution"].to_numpy()), output, row))
    return table.iloc[order].reset_index(drop=True)
