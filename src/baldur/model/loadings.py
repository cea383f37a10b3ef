"""Loadings of outputs on latent factors, eta = b + V f, with their uncertainty."""

from __future__ import annotations

from dataclasses import dataclass

from baldur.types import Array


@dataclass(frozen=True)
class Loadings:
    """q(V) and q(b).

    Attributes
    ----------
    V, V_cov : (C, K) and (C, K, K) arrays; a zero covariance is a point estimate
    b, b_var : (C,) arrays
    """

    V: Array
    V_cov: Array
    b: Array
    b_var: Array
