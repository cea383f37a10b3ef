"""Nogueira's stability of feature selection, with its interval.

S. Nogueira, K. Sechidis and G. Brown, "On the stability of feature selection algorithms", Journal
of Machine Learning Research 18 (2018). With M selections of d features, z_if = 1 where selection i
has feature f, p_f the mean over i, k_i the size of selection i and kbar its mean,

    stability = 1 - mean_f[ M/(M-1) p_f (1 - p_f) ] / [ kbar/d (1 - kbar/d) ].

It is 1 when every selection is the same and has expectation 0 when selections of these sizes are
drawn at random. The interval is theirs too: with

    phi_i = [ 1/d sum_f z_if p_f - k_i kbar/d^2
              + stability/2 (2 k_i kbar/d^2 - k_i/d - kbar/d + 1) ] / [ kbar/d (1 - kbar/d) ]

the variance is 4/M^2 sum_i (phi_i - mean phi)^2. It takes the M selections for independent; those
of cross-validation share training rows, so the interval is on the narrow side.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import norm

from baldur.exceptions import InputError


@dataclass(frozen=True)
class StabilityIndex:
    """The index, its standard error, and the ends of its interval (NaN where undefined).

    Examples
    --------
    >>> from baldur.evaluation.selection.stability import nogueira
    >>> found = nogueira([[0, 1, 2], [0, 1, 3], [0, 1, 2]], n_features=20)
    >>> round(found.value, 2), round(found.error, 2)
    (0.74, 0.07)
    """

    value: float
    error: float
    low: float
    high: float


def nogueira(
    selections: Sequence[np.ndarray], n_features: int, level: float = 0.95
) -> StabilityIndex:
    """Compute the stability of several selections out of the same features.

    Examples
    --------
    >>> import numpy as np
    >>> from baldur.evaluation.selection.stability import nogueira
    >>> nogueira([np.array([0, 1]), np.array([0, 1])], n_features=10).value
    1.0
    """
    m, d = len(selections), int(n_features)
    if m < 2:
        raise InputError(f"Stability needs at least 2 selections, but got {m}.")
    sizes = np.array([len(s) for s in selections], dtype=float)
    used, counts = np.unique(
        np.concatenate([np.asarray(s) for s in selections]), return_counts=True
    )
    if used.size and (used[0] < 0 or used[-1] >= d):
        raise InputError(f"Selections must lie between 0 and {d - 1}, but reach {used[-1]}.")
    p = counts / m
    q = sizes.mean() / d
    spread = q * (1 - q)
    if spread == 0:
        return StabilityIndex(math.nan, math.nan, math.nan, math.nan)
    value = float(1.0 - m / (m - 1) * np.sum(p * (1 - p)) / d / spread)
    if m == 2:
        return StabilityIndex(value, math.nan, math.nan, math.nan)
    hits = np.array([p[np.searchsorted(used, s)].sum() for s in selections])
    share = sizes / d
    phi = (hits / d - share * q + value / 2 * (2 * share * q - share - q + 1)) / spread
    error = float(np.sqrt(4 / m**2 * np.sum((phi - phi.mean()) ** 2)))
    reach = float(norm.ppf(0.5 + level / 2)) * error
    return StabilityIndex(value, error, max(value - reach, -1.0), min(value + reach, 1.0))
