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
from baldur.estimators.summary import INTERVAL
from baldur.views.prepared_view import PreparedView

AVERAGE, OTHERS, UNCERTAINTY = "(average person)", "(other features)", "(uncertainty)"


def contributions(
    views: Sequence[PreparedView],
    view_names: Sequence[str],
    feature_names: dict[str, Any],
    coef: Sequence[Array],
    coef_std: Sequence[Array],
    intercept: Array,
    outputs: Sequence[str],
    samples: Sequence[Any],
    total: Array | None,
    most: int,
) -> pd.DataFrame:
    """Return one row per sample, output and term.

    Shapes: coef, coef_std (C, D_m), intercept (C,), total (n, C).
    """
    n = views[0].shape[0]
    parts = []
    eta = np.tile(intercept, (n, 1))
    for view, name, w, std in zip(views, view_names, coef, coef_std, strict=True):
        used = np.flatnonzero(w.any(axis=0) | std.any(axis=0))
        if not used.size:
            continue
        strength = np.abs(w[:, used]).max(axis=0)
        listed = np.sort(used[np.argsort(-strength, kind="stable")[:most]])
        X = view.columns(listed)
        names = np.asarray(feature_names[name])[listed].astype(str)
        rest = w.copy()
        rest[:, listed] = 0.0
        others = view.apply(rest.T) if len(listed) < len(used) else None
        for c, output in enumerate(outputs):
            each = X * w[c, listed]
            spread = INTERVAL * np.abs(X) * std[c, listed]
            eta[:, c] += each.sum(axis=1)
            parts.append(
                pd.DataFrame(
                    {
                        "sample": np.repeat(np.asarray(samples, dtype=object), len(listed)),
                        "output": output,
                        "view": name,
                        "feature": np.tile(names, n),
                        "contribution": each.ravel(),
                        "lower": (each - spread).ravel(),
                        "upper": (each + spread).ravel(),
                    }
                )
            )
            if others is not None:
                eta[:, c] += others[:, c]
                parts.append(_rows(samples, output, name, OTHERS, others[:, c]))
    for c, output in enumerate(outputs):
        parts.append(_rows(samples, output, "", AVERAGE, np.full(n, intercept[c])))
        if total is not None:
            parts.append(_rows(samples, output, "", UNCERTAINTY, total[:, c] - eta[:, c]))
    table = pd.concat(parts, ignore_index=True)
    wide = pd.MultiIndex.from_product([list(samples), list(outputs)])
    linear = pd.Series(eta.ravel(), index=wide)
    keys = pd.MultiIndex.from_arrays([table["sample"], table["output"]])
    table["linear_predictor"] = linear.reindex(keys).to_numpy() if wide.is_unique else np.nan
    position = pd.Series(np.arange(n), index=pd.Index(list(samples), dtype=object))
    if position.index.is_unique:
        rank = {output: c for c, output in enumerate(outputs)}
        order = np.lexsort(
            (
                -np.abs(table["contribution"].to_numpy()),
                table["output"].map(rank).to_numpy(),
                position.reindex(table["sample"]).to_numpy(),
            )
        )
        table = table.iloc[order].reset_index(drop=True)
    return table


def _rows(
    samples: Sequence[Any], output: str, view: str, feature: str, values: Array
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "sample": np.asarray(samples, dtype=object),
            "output": output,
            "view": view,
            "feature": feature,
            "contribution": values,
            "lower": np.nan,
            "upper": np.nan,
        }
    )
