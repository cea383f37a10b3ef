"""``sparsity="auto"``: how many features, settled on training rows only.

1. *Reference.* Two posteriors under the in-or-out prior (see `baldur.model.structured.inclusion`)
   on the candidate features, whose predictions are averaged, and one with every feature in. The
   share of features that are in is learned per view, so views need no settings of their own.
2. *Path.* Features are ranked by their part in the reference. For a few shares of the variance of
   its linear predictor, the smallest set that carries the share is kept, the rest dropped, and
   the posterior recomputed on what is kept. The last two steps keep every feature of the views
   that matter: the posterior with everything in joins the average, and it is alone.
3. *Choice*, on cross-validated log-loss. Nothing is kept if the path loses to the base rate,
   little if it hardly wins; otherwise the smallest set that is not clearly worse than a wider one.

Everything that predicts is kept and everything kept predicts: the selected features, the weights
and the probabilities are of one posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from baldur.inference.held_out import (
    ENOUGH_ROWS,
    PATH,
    Fold,
    HeldOut,
    Watcher,
    cross_validate,
    one_blas_thread,
)
from baldur.inference.mixture import Mixture
from baldur.inference.reference import Reference, empty_mixture, redundancy, restrict, widen
from baldur.inference.screening import Problem
from baldur.model.likelihood import Likelihood

Array = NDArray[np.float64]

LITTLE, SPARSE, WHOLE, DENSE, PLAIN = 0, 2, 4, 5, 6
"""Places on the path: kept on weak evidence, on good evidence, and of signal spread widely."""
REDUNDANT = 0.05
"""Adjusted R^2 from which dropped features count as doubles of kept ones."""
NO_SIGNAL = {True: 1.0, False: 0.5}
"""Standard errors by which the path must lose to the base rate to keep nothing: its wide end, and
where features are independent its narrow end too."""
WEAK_SIGNAL = {True: -1.0, False: -0.5}
"""Standard errors by which one end must win for the evidence to count as more than weak."""
WIDER_WINS = {True: 0.7, False: 3.0}
"""Standard errors by which a wider set must beat a sparser one to be kept instead."""
ALONE_WINS = 2.0
"""Standard errors by which the posterior with everything in must beat the average to be alone."""


@dataclass
class Choice:
    """What was settled, and on what grounds.

    Attributes
    ----------
    mixture : Mixture, the posterior that predicts
    reference : Reference, from all training rows
    path : list of dict, one per step: share of variance, features, loss, its standard error
    kept : int or None, the step chosen; None for nothing
    """

    mixture: Mixture
    reference: Reference
    path: list[dict[str, Any]]
    kept: int | None


def standard_errors(loss: Array, other: Array, weight: Array) -> float:
    """Return how many standard errors `loss` lies above `other`, paired over samples."""
    gap = weight * (loss - other)
    spread = gap.std() / np.sqrt(len(gap))
    return float(gap.mean() / spread) if spread > 0 else 0.0


def choose_step(held_out: HeldOut, weight: Array, doubled: bool) -> int | None:
    """Return the step of the path to keep, or None to keep nothing.

    The smallest set is kept to which no wider one is better by more than some standard errors.
    Where features stand for each other (`doubled`), a small set is one of many and averaging over
    them pays, so the whole reference is kept on weak evidence and wider sets after a modest win.
    Where they are independent, features of small probability are noise: weak evidence keeps
    little, and only a clear win keeps more.

    Parameters
    ----------
    held_out : HeldOut
    weight : (N,) array
    doubled : bool
        Whether the sparse set leaves out doubles of what it keeps.
    """
    average = (weight * held_out.path).mean(axis=1)
    alone = standard_errors(held_out.path[DENSE], held_out.path[PLAIN], weight) > ALONE_WINS
    dense = PLAIN if alone else DENSE
    widest = WHOLE if average[WHOLE] <= average[dense] else dense
    ends = [widest] if doubled else [LITTLE, widest]
    against_base = min(standard_errors(held_out.path[e], held_out.base, weight) for e in ends)
    if against_base > NO_SIGNAL[doubled]:
        return None
    if against_base > WEAK_SIGNAL[doubled]:
        return widest if doubled else LITTLE
    steps = [*range(SPARSE, DENSE), dense]
    for step in steps:
        losses = held_out.path[step]
        margins = [standard_errors(losses, held_out.path[w], weight) for w in steps if w > step]
        if max(margins, default=0.0) <= WIDER_WINS[doubled]:
            return step
    return steps[-1]


def settle_sparsity(
    problem: Problem,
    T: Array,
    folds: Sequence[Fold],
    n_jobs: int | None = None,
    max_iter: int = 200,
    watch: Watcher | None = None,
) -> Choice:
    """Fit the reference, score its path on held-out rows, and keep one step of it.

    Parameters
    ----------
    problem : Problem
    T : (N, C) array
        Outputs: 0 and 1, or real for regression.
    folds : list of (training rows, held-out rows)
    n_jobs : int, optional
        Folds fitted at the same time.
    max_iter : int
        Most iterations of each posterior.
    watch : callable, optional
        Called with a record after each fit.

    Returns
    -------
    Choice
    """
    sizes = np.cumsum([len(held) for _, held in folds])
    folds = folds[: 1 + int(np.searchsorted(sizes, min(ENOUGH_ROWS, sizes[-1])))]
    held_out, reference = cross_validate(problem, T, folds, n_jobs, max_iter, watch)
    with one_blas_thread():
        weight = sample_weights(problem.likelihood)[held_out.rows]
        doubled = redundancy(reference, reference.smallest(PATH[SPARSE])) > REDUNDANT
        step = choose_step(held_out, weight, doubled)
        if step is None:
            mixture = empty_mixture(problem)
        elif step >= DENSE:
            mixture = widen(reference, problem, plain=step == PLAIN)
        else:
            mixture = restrict(reference, reference.smallest(PATH[step]), problem.likelihood)
    path = describe_path(reference, problem, held_out, weight, step)
    return Choice(mixture, reference, path, step)


def sample_weights(likelihood: Likelihood) -> Array:
    """Return one weight per sample, mean one."""
    weight = likelihood.weight.mean(axis=1)
    return weight / weight.mean()


def describe_path(
    reference: Reference, problem: Problem, held_out: HeldOut, weight: Array, step: int | None
) -> list[dict[str, Any]]:
    """Return the path as records: nothing first, the widest posterior last."""
    shares = (0.0, *PATH, 1.0, 1.0)
    sizes = [0] + [int(reference.smallest(share).sum()) for share in PATH]
    sizes += [int(problem.widths[reference.dense_views].sum())] * 2
    losses = [held_out.base, *held_out.path]
    kept = 0 if step is None else step + 1
    return [
        {
            "share": share,
            "n_features": size,
            "loss": float((weight * loss).mean()),
            "loss_se": float((weight * loss).std() / np.sqrt(len(loss))),
            "kept": place == kept,
        }
        for place, (share, size, loss) in enumerate(zip(shares, sizes, losses, strict=True))
    ]
