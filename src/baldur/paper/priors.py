"""Hyperparameters of the paper's generative model, fixed for a run."""

from __future__ import annotations

from dataclasses import dataclass, field

from baldur.model.gamma_prior import VAGUE, GammaPrior


@dataclass(frozen=True)
class Priors:
    """Hyperparameters of the generative model.

    Attributes
    ----------
    gamma : GammaPrior
        Prior of the feature precisions. ``shape == inf`` stands for the limit in which every
        gamma is one and only delta shrinks.
    delta, omega, tau, psi : GammaPrior
        Priors of the view-by-factor precisions, of the precisions of the columns of V, and of
        the noise precisions of Z and Y.
    intercept_precision : float
        Precision of the zero-mean Gaussian prior of each intercept b_c.
    """

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
