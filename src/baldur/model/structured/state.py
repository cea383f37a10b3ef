"""State of one structured run: the views, fixed, and every posterior, changing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.model.ard import GammaPosterior
from baldur.model.likelihood import Likelihood, Noise, Sites
from baldur.model.posterior import Side
from baldur.model.priors import GammaPrior, Priors
from baldur.model.structured.rest import Rest
from baldur.views.products import PreparedView
from baldur.views.reads import passes

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Data:
    """What does not change during a run.

    Attributes
    ----------
    views : list of PreparedView, M views of N samples
    X : (N, D) array of all columns, on the feature side; None on the sample side
    likelihood : Likelihood
    priors : Priors
    whole : Data of which this one holds chosen columns, or None if it is the whole
    index : list of int arrays, the columns chosen of each view, or None
    """

    views: list[PreparedView]
    likelihood: Likelihood
    priors: Priors
    X: Array | None = None
    whole: Data | None = None
    index: list[NDArray[np.intp]] | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.views[0].shape[0]

    def delta_prior(self, m: int) -> GammaPrior:
        """Return the prior of delta_k^(m): shape 1/2, mean D_m.

        Departure from the paper, whose Gamma(1e-6, 1e-6) is so vague that every view and factor
        costs 14 nats to have at all, and evidence would drop them for that alone. With mean D_m a
        view's part of the linear predictor has variance about 1, give or take orders of magnitude.
        Columns that were left out still count: they are features of the view, just not in.
        """
        full = self if self.whole is None else self.whole
        return GammaPrior(0.5, 0.5 / full.views[m].shape[1])

    def passes(self) -> float:
        """Return how often the views, as wide as they were given, have been read."""
        return passes(self.views if self.whole is None else self.whole.views)

    @property
    def widths(self) -> list[int]:
        """Features per view."""
        return [view.shape[1] for view in self.views]


@dataclass
class State:
    """Every factor of q, in the paper's symbols.

    Attributes
    ----------
    kept : list of (D_m,) bool arrays; False where a feature was dropped
    gamma, delta : list of GammaPosterior per view, over features and over factors
    V, V_cov : (C, K) and (C, K, K); a zero covariance is a point estimate
    omega : GammaPosterior over factors
    b, b_var : (C,) intercepts outside the factors
    learn_loadings, learn_intercepts : bool
    sites : Sites
    noise : q(psi) of Gaussian outputs, None for logistic ones
    factors : list of K posteriors of weights
    grams : list of (N, N) X diag(1/gamma) X^T, on the sample side
    gram_parts : list of what each of them was computed from
    w, w_var : list of (K, D_m) moments of the weights, at the last gamma step
    extra : (N, K) variance added where a sample lacks a view
    rest : list of Rest per view, features that are in beside those of `Data`; empty for none
    """

    kept: list[NDArray[np.bool_]]
    gamma: list[GammaPosterior]
    delta: list[GammaPosterior]
    V: Array
    V_cov: Array
    omega: GammaPosterior
    b: Array
    b_var: Array
    learn_loadings: bool
    learn_intercepts: bool
    sites: Sites
    noise: Noise
    extra: Array
    factors: list[Side] = field(default_factory=list)
    grams: list[Array] = field(default_factory=list)
    gram_parts: list[tuple[Any, ...]] = field(default_factory=list)
    w: list[Array] = field(default_factory=list)
    w_var: list[Array] = field(default_factory=list)
    rest: list[Rest] = field(default_factory=list)

    @property
    def n_factors(self) -> int:
        """Number of factors."""
        return self.V.shape[1]

    def n_in(self, m: int) -> int:
        """Return how many features of view m are in."""
        return int(self.kept[m].sum()) + (self.rest[m].count if self.rest else 0)

    def latent(self) -> tuple[Array, Array]:
        """Return <f> and Var f on the training rows, each (N, K)."""
        mean = np.stack([factor.mean for factor in self.factors], axis=1)
        var = np.stack([factor.var for factor in self.factors], axis=1)
        return mean, var + self.extra

    def snapshot(self) -> dict[str, Any]:
        """Return a shallow copy of every part, for `restore`."""
        return {
            name: list(value) if isinstance(value, list) else value
            for name, value in vars(self).items()
        }

    def restore(self, parts: dict[str, Any]) -> None:
        """Take back every part from a snapshot, which stays usable."""
        for name, value in parts.items():
            setattr(self, name, list(value) if isinstance(value, list) else value)

    def prior_variance(self, m: int, k: int) -> Array:
        """Return 1/(<delta_k><gamma_d>) of view m, zero where dropped."""
        gamma = self.gamma[m].mean
        return np.where(self.kept[m], 1.0 / (self.delta[m].mean[k] * gamma), 0.0)


def output_moments(state: State) -> tuple[Array, Array]:
    """Return <eta> and Var eta, each (N, C).

    <eta_c> = b_c + <v_c>.<f>
    Var eta_c = Var b_c + sum_k <v_ck>^2 Var f_k + tr(Cov v_c (<f><f>^T + diag Var f))
    """
    F, F_var = state.latent()
    mean = state.b + F @ state.V.T
    var = state.b_var + F_var @ (state.V**2).T
    if state.V_cov.any():
        var = var + np.einsum("nk,ckl,nl->nc", F, state.V_cov, F)
        var = var + F_var @ np.einsum("ckk->ck", state.V_cov).T
    return mean, np.maximum(var, 1e-12)
