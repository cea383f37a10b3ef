"""Hyperparameters of the paper's generative model, fixed for a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from baldur.model.gamma_prior import VAGUE, GammaPrior


@dataclass(frozen=True)
class Priors:
    """Hyperparameters of the generative model."""

    gamma: GammaPrior = VAGUE
    delta: GammaPrior = VAGUE
    omega: GammaPrior = VAGUE
    tau: GammaPrior = VAGUE
    psi: GammaPrior = VAGUE
    intercept_precision: float = field(default=1e-4)


def sparsity_prior(shape: float) -> GammaPrior:
    """Prior Gamma(a, a) of the feature precisions: from ARD (a = 1e-6) to none (a = inf)."""
    if not shape > 0:
        raise ValueError(f"the sparsity shape must be positive (inf allowed), got {shape!r}")
    return GammaPrior(float(shape), float(shape))
