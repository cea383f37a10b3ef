"""Gamma priors of precisions, and the vague one.

All Gamma distributions are written with a shape and a rate, so the mean is ``shape / rate``.
"""

from __future__ import annotations

from typing import NamedTuple


class GammaPrior(NamedTuple):
    """Shape and rate of a Gamma prior."""

    shape: float
    rate: float


VAGUE = GammaPrior(1e-6, 1e-6)
