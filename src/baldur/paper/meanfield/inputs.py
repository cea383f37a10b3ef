"""Check the inputs of a mean-field run and gather them in one object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from baldur.exceptions import InputError
from baldur.paper.meanfield.dropped import NormGroups
from baldur.paper.meanfield.products import (
    DenseView,
    SelectedColumns,
    ViewProducts,
    as_products,
    column_statistics,
)
from baldur.paper.meanfield.state import Data
from baldur.paper.priors import Priors, sparsity_prior
from baldur.types import IntArray

SPACES = ("primal", "dual", "paper")


def prepare_data(
    X_views: Sequence[Any],
    T: Any,
    task: str,
    a_gamma: float = 1e-6,
    spaces: str | Sequence[str] = "primal",
    relevance: Any = None,
    sample_weight: Any = None,
    bound_kind: str = "jaakkola",
    priors: Priors | None = None,
) -> Data:
    """Check the inputs of `run_meanfield` and gather them; see there for the parameters.

    Relevance vectors that are to be chosen (None or a number) start as all rows;
    `starts.choose_relevance` makes the choice for each start.
    """
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
    views = [v if isinstance(v, DenseView) else SelectedColumns(v) for v in views]
    centred = weight[:, None] * (T - weight @ T / weight.sum())
    norms, scores = zip(*(column_statistics(v, weight, centred) for v in views), strict=True)
    for m, norm in enumerate(norms):
        if not np.isfinite(norm).all():
            raise InputError(f"view {m} holds NaN or infinite values; prepare the views first")
    strength = [float(np.mean(score**2)) for score in scores]
    return Data(
        views=views,
        T=T,
        weight=weight,
        classification=task == "classification",
        quadrature=bound_kind == "quadrature",
        priors=replace(priors or Priors(), gamma=sparsity_prior(a_gamma)),
        spaces=_resolve_spaces(spaces, len(views)),
        relevance=_resolve_relevance(relevance, len(views), N),
        norms=list(norms),
        groups=[NormGroups.of(norm) for norm in norms],
        scores=list(scores),
        order=sorted(range(len(views)), key=lambda m: (-strength[m], m)),
    )


def _resolve_spaces(spaces: str | Sequence[str], M: int) -> list[str]:
    asked = [spaces] * M if isinstance(spaces, str) else list(spaces)
    if len(asked) != M or not set(asked) <= set(SPACES):
        raise InputError(
            f"spaces must be one of {SPACES}, once or for each of {M} views, got {spaces!r}"
        )
    return asked


def relevance_requests(relevance: Any, M: int) -> list[Any]:
    """Return the request for the relevance vectors of each view: "auto", None, number or rows."""
    per_view = list(relevance) if isinstance(relevance, list | tuple) else [relevance] * M
    if len(per_view) != M:
        raise InputError(f"relevance lists {len(per_view)} entries for {M} views")
    return per_view


def _resolve_relevance(relevance: Any, M: int, N: int) -> list[IntArray]:
    out: list[IntArray] = []
    for m, rows in enumerate(relevance_requests(relevance, M)):
        index = np.arange(N)
        if isinstance(rows, str):
            if rows != "auto":
                raise InputError(f"view {m}: relevance must be 'auto', rows or a number: {rows!r}")
        elif rows is not None and np.ndim(rows) == 0:
            if not 1 <= int(rows) <= N:
                raise InputError(
                    f"view {m}: the number of relevance vectors must lie in 1..{N}, got {rows}"
                )
        elif rows is not None:
            index = np.unique(np.asarray(rows))
            if index.dtype.kind not in "iu" or index.min() < 0 or index.max() >= N:
                raise InputError(f"view {m}: relevance rows must be integers in 0..{N - 1}")
        out.append(index.astype(np.intp))
    return out
