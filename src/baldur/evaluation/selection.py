"""What one fitted model selected: features and their weights, per view, in one form."""

from __future__ import annotations

from typing import Any

import numpy as np

from baldur.views import MultiView

__all__ = ["read_selection", "read_weights"]


def read_selection(estimator: Any, mv: MultiView) -> dict[str, np.ndarray]:
    """Return the selected features of every view.

    Parameters
    ----------
    estimator : fitted estimator
        With `selected_features_` (dict of view to mask).
    mv : MultiView
        Rows it was fitted on, for names and widths.

    Returns
    -------
    dict of str to int array
        A model without masks counts as using every feature; views it was not given are left out.
    """
    masks = getattr(estimator, "selected_features_", None)
    found = {}
    for name in mv.view_names:
        if not isinstance(masks, dict):
            found[name] = np.arange(mv.n_features[name], dtype=np.int32)
        elif name in masks:
            found[name] = np.flatnonzero(np.asarray(masks[name])).astype(np.int32)
    return found


def read_weights(estimator: Any, widths: dict[str, int]) -> dict[str, np.ndarray]:
    """Return the weights of every view as features by outputs, or {} for a model without."""
    kept = getattr(estimator, "lasso_features_", None)
    return _orient(getattr(estimator, "coef_", None), widths, kept)


def _orient(coef: Any, widths: dict[str, int], kept: Any) -> dict[str, np.ndarray]:
    """Weights of every view as features by outputs; empty where they cannot be told apart."""
    if not isinstance(coef, dict) or any(v not in coef for v in widths):
        return {}
    arrays = {v: np.asarray(coef[v], dtype=float) for v in widths}
    arrays = {v: a[None, :] if a.ndim == 1 else a for v, a in arrays.items()}
    if any(a.ndim != 2 for a in arrays.values()):
        return {}
    if all(a.shape[1] == widths[v] for v, a in arrays.items()):
        return {v: a.T for v, a in arrays.items()}
    if all(a.shape[0] == widths[v] for v, a in arrays.items()):
        return arrays
    if isinstance(kept, dict) and all(len(a) == np.sum(kept[v]) for v, a in arrays.items()):
        # Weights only for the features a first step kept.
        full = {v: np.zeros((widths[v], a.shape[1])) for v, a in arrays.items()}
        for v, a in arrays.items():
            full[v][np.asarray(kept[v])] = a
        return full
    return {}
