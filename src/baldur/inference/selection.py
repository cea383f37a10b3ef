"""Selection: the smallest submodel that is shown to predict as well as the ensemble.

A submodel is a candidate if, with 95 % confidence, its held-out loss exceeds the ensemble's by at
most `margin` of what the ensemble gains over the base rate. Losses are compared row by row;
repeats of the folds are averaged before, so they do not count as rows. The margin says what may be
lost, not that it should be: of the candidates, the smallest is selected whose loss is within half a
standard error of that of the best submodel, or a tenth of what may be lost. That also holds where
the ensemble itself is beaten, as where few features carry all.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass

import numpy as np

from baldur.core.types import Array, IntArray, Mask
from baldur.inference.predictive import Task, integrate_left_out, score_and_slopes
from baldur.inference.stacking import accuracies

CONFIDENT = 1.645
"""Standard errors of a one-sided 95 % bound."""
NEAR, A_LITTLE = 0.5, 0.1
"""How far behind the best submodel is as good: so many standard errors, or such a part of what may
be lost, whichever is more. The first alone would vanish with many rows, the second alone asks small
samples for what they cannot know. Of thirty such pairs and rules these select sets that depend
least on the seed, at equal loss (ad_csf, golub, pd_speech)."""
RESAMPLES = 200
"""The selection is the mean place over so many resamples of the rows. A rule with thresholds jumps
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


def select_smallest(
    losses: Array, ensemble: Array, allowed: float, weight: Array
) -> tuple[int, Mask]:
    """Return the index of the selected submodel, and which submodels were candidates.

    Larger values of `allowed` never select more.

    Shapes: losses (K, n), ensemble (n,), weight (n,).
    """
    n = losses.shape[1]
    counts = np.empty((RESAMPLES, n))
    # Resampling counts are assigned by loss rank, so that the order of the rows does not matter.
    ranked = np.argsort(ensemble, kind="stable")
    counts[:, ranked] = np.random.default_rng(0).multinomial(n, np.full(n, 1.0 / n), RESAMPLES)
    drawn = np.concatenate([np.ones((1, n)), counts])
    shares = weight * drawn
    shares /= shares.sum(axis=1, keepdims=True)
    mean, error = _gaps(losses - ensemble, shares, drawn)
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


@dataclass
class Scores:
    """How submodels compare with the ensemble, and their held-out losses."""

    stretch: Array  # (V, C); factor of the variance of their linear predictors
    left_out: Array  # (V, C); variance of the ensemble's linear predictor that each leaves out
    losses: Array  # (V, N); mean loss of each row over the folds that held it out
    accuracy: Array  # (V,) held-out AUC, in regression R2, and its standard error
    accuracy_error: Array

    def __getitem__(self, places: slice | list[int]) -> Scores:
        """Return the scores of some of the submodels."""
        return Scores(*(part[places] for part in astuple(self)))

    def followed_by(self, others: Scores) -> Scores:
        """Return the scores of these submodels followed by those of others."""
        pairs = zip(astuple(self), astuple(others), strict=True)
        return Scores(*(np.concatenate(pair) for pair in pairs))


def score_submodels(
    mean: Array,
    var: Array,
    whole_mean: Array,
    whole_var: Array,
    *,
    slope: float,
    row: IntArray,
    T: Array,
    weight: Array,
    task: Task,
) -> Scores:
    """Score submodels by their moments on held-out rows.

    The calibration slope has stretched their means, and stretches their standard deviations
    alike: what is known of a weight is known in proportion. But a submodel is no more uncertain
    than the ensemble, whose slope was learned with all its variance. What is left of that, and the
    distance of the means, is what a submodel leaves out: it is integrated over, see
    `integrate_left_out`. All this is measured on the held-out rows, all folds together.

    Shapes: mean, var (V, R, C), whole_mean, whole_var (R, C), row (R,), T, weight (N, C).
    """
    w = weight[row]
    own = np.einsum("vrc,r->vc", var, w)
    theirs = w @ whole_var
    apart = np.einsum("vrc,r->vc", (mean - whole_mean) ** 2, w)
    stretch = np.ones(own.shape)
    if task != "regression":  # where variances are mostly noise
        stretch = np.minimum(slope**2, np.maximum(theirs / np.maximum(own, 1e-300), 1.0))
    left_out = np.maximum((apart + theirs - stretch * own) / w.sum(), 0.0)
    mean, var = integrate_left_out(mean, stretch[:, None] * var, left_out[:, None], task)
    losses = mean_losses(mean, var, row, T, task)
    return Scores(stretch, left_out, losses, *accuracies(mean, var, row, T, weight, task))


def mean_losses(mean: Array, var: Array, row: IntArray, T: Array, task: Task) -> Array:
    """Return the mean loss of each row over the folds that held it out, (..., N).

    From moments (..., R, C) of R predictions for the rows `row` with outcomes T (N, C).
    """
    losses = -score_and_slopes(mean, var, T[row], task)[0]
    times = np.bincount(row, minlength=len(T))
    flat = losses.reshape(-1, len(row))
    total = np.stack([np.bincount(row, loss, minlength=len(T)) for loss in flat])
    return np.asarray(total / times).reshape(*losses.shape[:-1], len(T))
