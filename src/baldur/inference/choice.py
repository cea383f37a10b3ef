"""The choice: the smallest model that is shown not to be worse.

A model is a candidate if, with 95 % confidence, its held-out loss exceeds the reference's by at
most `margin` of what the reference gains over the base rate. Losses are compared row by row;
repeats of the folds are averaged before, so they do not count as rows. The margin says what may be
lost, not that it should be: of the candidates, the smallest is kept that is next to nothing behind
the best model of the path, half a standard error of the gap or a tenth of what may be lost. That
also holds where the reference itself is beaten, as where few features carry all.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

CONFIDENT = 1.645
"""Standard errors of a one-sided 95 % bound."""
NEAR, A_LITTLE = 0.5, 0.1
"""How far behind the best is next to nothing: so many standard errors, or such a part of what may
be lost, whichever is more. The first alone would vanish with many rows, the second alone asks small
samples for what they cannot know. Of thirty such pairs and rules these keep sets that hang least on
the seed, at equal loss (ad_csf, golub, pd_speech)."""
RESAMPLES = 200
"""The choice is the mean place over so many resamples of the rows. A rule with thresholds jumps
when a loss moves by a hair; its mean over resamples does not."""


@dataclass(frozen=True)
class Gap:
    """Mean difference of two losses and its standard error."""

    mean: float
    error: float

    @property
    def upper(self) -> float:
        """Upper end of the one-sided 95 % interval."""
        return self.mean + CONFIDENT * self.error

    @property
    def in_errors(self) -> float:
        """The difference in standard errors."""
        if self.error > 0:
            return self.mean / self.error
        return float(np.copysign(np.inf, self.mean)) if self.mean else 0.0


def against_base_rate(errors: float) -> str:
    """Return in words how many standard errors a model is better, or worse, than the base rate."""
    than = "better" if errors >= 0 else "worse"
    return f"{abs(errors):.1f} standard errors {than} than the base rate"


def paired_gap(loss: Array, other: Array, weight: Array) -> Gap:
    """Return how much more `loss` is than `other`, rows weighted, each (n,)."""
    gap = loss - other
    share = weight / weight.sum()
    mean = float(share @ gap)
    error = float(np.sqrt((share**2 * (gap - mean) ** 2).sum()))
    rounding = np.finfo(float).eps * abs(mean)  # what rows that all differ alike leave behind
    return Gap(mean, error if error > rounding else 0.0)


def smallest_as_good(
    losses: Array, reference: Array, allowed: float, weight: Array
) -> tuple[int, NDArray[np.bool_]]:
    """Return the place of the model to keep, and which were candidates.

    Larger values of `allowed` never keep more.

    Parameters
    ----------
    losses : (K, n) array
        Models from small to large; the last one is always a candidate.
    reference : (n,) array
        Losses of the reference.
    allowed : float
        Loss above the reference's that is allowed, with 95 % confidence.
    weight : (n,) array
    """
    n = losses.shape[1]
    counts = np.empty((RESAMPLES, n))
    # Dealt by rank of the loss, so that the order of the rows does not matter.
    ranked = np.argsort(reference, kind="stable")
    counts[:, ranked] = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), RESAMPLES)
    drawn = np.concatenate([np.ones((1, n)), counts])
    shares = weight * drawn
    shares /= shares.sum(axis=1, keepdims=True)
    mean, error = _gaps(losses - reference, shares, drawn)
    candidate = mean + CONFIDENT * error <= allowed
    candidate[:, -1] = True
    best = (shares @ losses.T).argmin(axis=1)
    enough = candidate.copy()
    for place in np.unique(best):
        at = best == place
        mean, error = _gaps(losses - losses[place], shares[at], drawn[at])
        enough[at] &= mean <= np.maximum(NEAR * error, A_LITTLE * allowed)
    enough[:, -1] = True
    usual = round(float(enough[1:].argmax(axis=1).mean()))
    candidates = np.flatnonzero(candidate[0])
    return int(candidates[candidates >= usual][0]), candidate[0]


def _gaps(gap: Array, shares: Array, drawn: Array) -> tuple[Array, Array]:
    """Return means and standard errors of gaps (K, n) in several resamples (B, n), (B, K).

    A row that was drawn c times is c rows.
    """
    mean = shares @ gap.T
    squares = shares**2 / np.maximum(drawn, 1.0)
    spread = squares @ (gap**2).T - 2.0 * mean * (squares @ gap.T)
    spread += mean**2 * squares.sum(axis=1, keepdims=True)
    return mean, np.sqrt(np.maximum(spread, 0.0))
