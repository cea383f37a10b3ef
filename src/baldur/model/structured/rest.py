"""Features that are in but not looked at one by one: the rest of a wide view.

While a few features are followed closely, the rest of their view keeps relative rates r_d of
q(gamma_d) = Gamma(a + K/2, c r_d) and shares one factor c. In sample space the rest is one N x N
matrix, so it costs nothing per sweep, yet it is part of the model: of the kernel, of delta, and
of the bound. With all r_d equal this is the flat start; a pass over the features sets them apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import digamma, gammaln

from baldur.model.priors import GammaPrior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Rest:
    """What the rest of one view amounts to.

    Attributes
    ----------
    count : int, number of features
    gram : (N, N) array, X diag(r_d/(a + K/2)) X^T over them
    log_rate, inverse_rate : float, sums of ln r_d and of 1/r_d
    scale : float, c
    """

    count: int
    gram: Array
    log_rate: float
    inverse_rate: float
    scale: float = 1.0

    @property
    def weighted_gram(self) -> Array:
        """X diag(1/<gamma>) X^T."""
        return self.scale * self.gram

    def gamma_term(self, prior: GammaPrior, shape: float) -> float:
        """E[ln p(gamma)] - E[ln q(gamma)], summed over the rest."""
        a, b = prior
        each = a * np.log(b) - gammaln(a) + shape + gammaln(shape) + (a - shape) * digamma(shape)
        logs = self.log_rate + self.count * np.log(self.scale)
        return float(self.count * each - a * logs - b * shape * self.inverse_rate / self.scale)

    def best_scale(self, prior: GammaPrior, shape: float, gamma_w2: float) -> float:
        """Return the c that is best given sum_kd <delta_k><gamma_d><w_kd^2> over the rest."""
        rate = prior.rate * self.inverse_rate + 0.5 * gamma_w2 * self.scale / shape
        return float(rate / self.count)
