"""Check what a mean-field run is given and gather it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.paper.meanfield.products import ViewProducts, as_products, project, squared_norms
from baldur.paper.meanfield.state import Array, Data, Index
from baldur.paper.priors import Priors, sparsity_prior


def prepare_data(
    X_views: Sequence[Any],
    T: Any,
    task: str,
    a_gamma: float = 1e-6,
    spaces: str | Sequence[str] = "primal",
    relevance: Any = None,
    sample_weight: Any = None,
    rng: Any = None,
    bound_kind: str = "jaakkola",
    priors: Priors | None = None,
) -> Data:
    """Check the inputs of ``run_meanfield`` and gather them; see there for the parameters."""
    if task not in ("classification", "regression"):
        raise InputError(f"task must be 'classification' or 'regression', got {task!r}")
    if bound_kind not in ("jaakkola", "quadrature"):
        raise InputError(f"bound_kind must be 'jaakkola' or 'quadrature', got {bound_kind!r}")
    T = np.asarray(T, dtype=np.float64)
    if T.ndim != 2:
        raise InputError(f"T must have shape (rows, outputs), got {T.shape}")
    if not np.isfinite(T).all():
        raise InputError("T holds NaN or infinite values")
    if task == "classification" and not np.isin(T, (0.0, 1.0)).all():
        raise InputError("classification needs labels 0 and 1 in T, one column per output")
    views: list[ViewProducts] = [as_products(X) for X in X_views]
    if not views:
        raise InputError("at least one view is needed, got none")
    N = T.shape[0]
    for m, view in enumerate(views):
        if len(view.shape) != 2 or view.shape[0] != N:
            raise InputError(f"view {m} has shape {view.shape}, expected {N} rows as in T")
    weight = np.ones(N) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (N,) or not np.isfinite(weight).all() or (weight < 0).any():
        raise InputError(f"sample_weight must be {N} finite, non-negative numbers")
    if not weight.any():
        raise InputError("every sample weight is zero; nothing is left to fit")
    norms = [squared_norms(view, weight) for view in views]
    for m, norm in enumerate(norms):
        if not np.isfinite(norm).all():
            raise InputError(f"view {m} holds NaN or infinite values; prepare the views first")
    rng = np.random.default_rng(rng)
    return Data(
        views=views,
        T=T,
        weight=weight,
        classification=task == "classification",
        quadrature=bound_kind == "quadrature",
        priors=replace(priors or Priors(), gamma=sparsity_prior(a_gamma)),
        spaces=_resolve_spaces(spaces, len(views)),
        relevance=_resolve_relevance(relevance, len(views), N, rng),
        norms=norms,
        order=_order(views, T, weight),
    )


def _order(views: list[ViewProducts], T: Array, weight: Array) -> list[int]:
    centred = weight[:, None] * (T - weight @ T / weight.sum())
    strength = [float(np.mean(project(view, centred) ** 2)) for view in views]
    return sorted(range(len(views)), key=lambda m: (-strength[m], m))


def _resolve_spaces(spaces: str | Sequence[str], M: int) -> list[str]:
    asked = [spaces] * M if isinstance(spaces, str) else list(spaces)
    if len(asked) != M or not set(asked) <= {"primal", "dual"}:
        raise InputError(
            f"spaces must be 'primal' or 'dual', once or for each of {M} views, got {spaces!r}"
        )
    return asked


def _resolve_relevance(relevance: Any, M: int, N: int, rng: np.random.Generator) -> list[Index]:
    per_view = relevance if isinstance(relevance, list | tuple) else [relevance] * M
    if len(per_view) != M:
        raise InputError(f"relevance lists {len(per_view)} entries for {M} views")
    out: list[Index] = []
    for m, rows in enumerate(per_view):
        if rows is None:
            out.append(np.arange(N))
        elif np.ndim(rows) == 0:
            if not 1 <= int(rows) <= N:
                raise InputError(f"view {m}: relevance must lie in 1..{N}, got {rows}")
            out.append(np.sort(rng.choice(N, int(rows), replace=False)))
        else:
            index: Array = np.unique(np.asarray(rows))
            if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= N:
                raise InputError(f"view {m}: relevance rows must be integers in 0..{N - 1}")
            out.append(index.astype(np.intp))
    return out
