"""What of a fitted object is stored: all that predicts, and no training row beyond it."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.inference.features import Columns
from baldur.model.posterior import FeatureSide, SampleSide
from baldur.views.products import PreparedView
from baldur.views.source import ArraySource
from baldur.views.standardised import Kept, Standardised

__all__ = ["holds_training_rows", "state_of"]


def state_of(value: Any) -> dict[str, Any]:
    """Return the attributes of an object that are stored.

    Caches that can be made again are left out, and so are training rows where the weights are
    known without them. Rows that are needed are stored as numbers, whatever file they came from.
    """
    if isinstance(value, PreparedView):
        return {"name": value.name, "absent": value.absent, "_cells": vars(value)["_cells"]}
    state = dict(vars(value))
    if isinstance(value, Kept) and value.rows is not None:
        # Read as products do, so that the layout in memory and with it every rounding stays.
        cells = ArraySource(value.array).read(value.rows, slice(None))
        return {"array": cells, "rows": None}
    if isinstance(value, Standardised):
        cells = value.source.read(value.rows, slice(None))
        return {**state, "source": ArraySource(np.asarray(cells)), "rows": None}
    if isinstance(value, ArraySource):
        return {"array": np.asarray(value.array)}
    if isinstance(value, SampleSide):
        state.pop("Ci", None)
    if isinstance(value, FeatureSide):
        none = np.zeros(0)
        return {
            "X": np.zeros((0, value.X.shape[1])), "gram": np.zeros((0, 0)), "alpha": none,
            "w": value.w, "half": value.half, "mean": none, "kl": value.kl,
        }  # fmt: skip
    if isinstance(value, Columns):
        state["_kernels"] = (None, [])
    if type(value).__name__ == "Implicit" and isinstance(value.features, Columns):
        if all(isinstance(side, FeatureSide) for side in value.sides):
            columns = value.features
            state["features"] = Columns(
                columns.X[:0], columns.owner, columns.n_views, columns.intercept_var
            )
        state["train"] = []
    return state


def holds_training_rows(estimator: Any) -> bool | None:
    """Whether a model of ours predicts through its training rows, and so has them inside.

    None for baselines, of which some (support vectors, kernels) do as well.
    """
    posterior = getattr(estimator, "posterior", None)
    if posterior is None:
        return None
    mixture = getattr(posterior.moments, "__self__", None)
    return any(
        not (isinstance(c.features, Columns) and isinstance(c.sides[0], FeatureSide))
        for c in getattr(mixture, "components", [])
        if hasattr(c, "features")
    )
