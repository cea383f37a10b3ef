"""Small feature matrices in place of views, all computed from one Gram matrix per view.

A method that is ridge-like in each view sees the view only through ``K = X X'``. With the
eigendecomposition ``K = U S^2 U'`` every front-end below is a pair of n x r matrices:

- ``features`` F, what the method is trained on;
- ``lift`` L, with ``W = X' L W_F`` turning weights on F into weights on the columns of X, so that
  new rows need neither the training rows nor a loading matrix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from baldur.baselines.base import Block
from baldur.core.parameters import check, one_of, optional
from baldur.core.types import Array
from baldur.exceptions import InputError
from baldur.views.standardised_blocks import gram_eigh

REDUCTION = optional(one_of("pca", "linear_kernel"))
"""Constraint of the argument ``reduction``; None keeps all information."""


@dataclass(frozen=True)
class Reduced:
    """Features of the training rows (n, r) and the lift (n, r) back to the view's columns."""

    features: Array
    lift: Array


def count_components(n_components: int | float | str | None, singular: Array, n: int) -> int:
    """Return the number of components for a count, "n-1", a share of variance, or None (all)."""
    rank = len(singular)
    if n_components is None or n_components == "n-1":
        return min(rank, n - 1)
    if isinstance(n_components, str) or n_components <= 0:
        raise InputError(
            "n_components must be a positive count, a share of variance in (0, 1), 'n-1' or None, "
            f"but got {n_components!r}."
        )
    if n_components < 1:
        share = np.cumsum(singular**2) / max(float(np.sum(singular**2)), np.finfo(float).tiny)
        return min(rank, int(np.searchsorted(share, n_components - 1e-12)) + 1)
    return min(rank, int(n_components))


def reduce_gram(
    K: Array,
    reduction: str | None = None,
    components: int | float | str | None = 0.95,
    *,
    rtol: float | None = None,
) -> Reduced:
    """Return the features and the lift of one view, from its training Gram matrix.

    Shapes: K (n, n).
    """
    U, s = gram_eigh(K, rtol)
    return _front_end(U, s, float(np.trace(K)), reduction, components)


def reduce_block(
    block: Block, reduction: str | None = None, components: int | float | str | None = 0.95
) -> Reduced:
    """Return the features and the lift of one view, from whichever of its two products is smaller.

    The result is that of `reduce_gram`, up to rounding and the signs of components. A view with
    fewer columns than rows needs the eigenvectors V of ``X'X`` alone, because ``U S = X V``.
    """
    n, D = block.view.shape
    if not 0 < D < n or block.rtol is not None:
        return reduce_gram(block.gram(), reduction, components, rtol=block.rtol)
    X = block.columns(np.arange(D))
    # As many multiples of the machine precision count as zero as for the Gram matrix.
    V, s = gram_eigh(X.T @ X, n * np.finfo(np.float64).eps)
    return _front_end((X @ V) / s, s, float(np.sum(X**2)), reduction, components)


def _front_end(
    U: Array, s: Array, trace: float, reduction: str | None, components: int | float | str | None
) -> Reduced:
    """Return what `reduce_gram` describes, from ``K = U S^2 U'`` and the trace of K."""
    check("reduction", reduction, REDUCTION)
    n = len(U)
    if reduction == "linear_kernel":
        c = max(trace / n, np.finfo(np.float64).tiny)
        # K/c = U (s^2/c) U'; weights on the rotated features reach X through X' U / c.
        return Reduced(U * (s**2 / c), U / c)
    q = len(s) if reduction is None else count_components(components, s, n)
    return Reduced(U[:, :q] * s[:q], U[:, :q] / s[:q])
