"""Loadings of outputs on latent factors, eta = b + V f, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

from baldur.types import Array


@dataclass(frozen=True)
class Loadings:
    """q(V) and q(b)."""

    V: Array  # V, V_cov: (C, K); and (C, K, K) arrays; a zero covariance is a point estimate
    V_cov: Array
    b: Array  # b, b_var: (C,)
    b_var: Array
