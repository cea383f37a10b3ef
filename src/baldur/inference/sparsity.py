"""``sparsity="auto"``: how many features, settled on training rows only.

1. *Reference.* Two posteriors under the in-or-out prior (see `baldur.model.structured.inclusion`)
   and one with every feature in, on the candidate features; their predictions are averaged. The
   share of features that are in is learned per view, so views need no settings of their own.
2. *Path.* Features are ranked by their part in the reference. For a few shares of the variance of
   its linear predictor, the smallest set that carries the share is kept, the rest dropped, and
   the posterior recomputed on what is kept.
3. *Choice*, on cross-validated log-loss. Nothing is kept if the reference loses to the base rate,
   little if it hardly wins; otherwise a sparse set, unless the whole reference is clearly better.

Everything that predicts is kept and everything kept predicts: the selected features, the weights
and the probabilities are of one posterior.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from baldur.inference.mixture import Index, Mixture, absent_matrix, gather
from baldur.inference.reference import (
    Problem,
    Reference,
    candidates,
    empty_mixture,
    fit_reference,
    fold_scores,
    redundancy,
    restrict,
)
from baldur.inference.scoring import pointwise_loss
from baldur.model.likelihood import GaussianOutputs, Likelihood

Array = NDArray[np.float64]
Fold = tuple[NDArray[np.intp], NDArray[np.intp]]

PATH = (0.6, 0.8, 0.91, 0.97, 1.0, 1.0)
"""Shares of the variance of the reference's linear predictor at which the path is scored.

The whole reference comes twice: without and with the posterior that has every feature in.
"""
LARGE_SAMPLE = 1000
"""From this many samples one held-out fold is enough to choose."""
LITTLE, SPARSE, WHOLE, DENSE = 0, 2, 4, 5
"""Places on the path: kept on weak evidence, on good evidence, and of signal spread widely."""
REDUNDANT = 0.05
"""Adjusted R^2 from which dropped features count as doubles of kept ones."""
NO_SIGNAL = {True: 1.0, False: 0.5}
"""Standard errors by which the reference may lose to the base rate before nothing is kept."""
WEAK_SIGNAL = -1.0
"""Standard errors by which it must win to count as more than weak."""
WHOLE_WINS = {True: 0.9, False: 2.5}
"""Standard errors by which the reference must beat every sparser set to be kept whole."""


@dataclass
class HeldOut:
    """Cross-validated losses, one column per sample.

    Attributes
    ----------
    rows : (n,) rows that were held out: all, or one fold of a large sample
    base : (n,) loss of the base rate
    path : (len(PATH), n) losses along the path
    """

    rows: NDArray[np.intp]
    base: Array
    path: Array


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


def noise_variance(likelihood: Likelihood) -> Array | None:
    """Return the noise variance of Gaussian outputs, None for logistic ones."""
    return 1.0 / likelihood.psi.mean if isinstance(likelihood, GaussianOutputs) else None


def score_fold(
    X: Array,
    index: Index,
    absent: Array,
    n_features: Array,
    problem: Problem,
    T: Array,
    fold: Fold,
    max_iter: int,
) -> Array:
    """Return held-out losses of the path, (len(PATH), n_held)."""
    rows, held = fold
    likelihood = problem.likelihood.rows(rows)
    reference = fit_reference(X[rows], index, absent[rows], n_features, likelihood, max_iter)
    losses = []
    for step, share in enumerate(PATH):
        keep = reference.smallest(share)
        mixture = restrict(reference, keep, likelihood, with_dense=step == DENSE)
        moments = mixture.moments_of(X[held][:, keep], absent[held])
        losses.append(pointwise_loss(moments, T[held], problem.task, noise_variance(likelihood)))
    return np.array(losses)


def cross_validate(
    problem: Problem,
    T: Array,
    folds: Sequence[Fold],
    n_jobs: int | None = None,
    max_iter: int = 200,
) -> tuple[HeldOut, Index, Array]:
    """Score the path on held-out rows; also return the candidates of all rows and their columns.

    The views are read twice: once for the marginal scores of every fold and of all rows, once for
    the columns that are a candidate anywhere.
    """
    N = problem.n_samples
    everyone = np.arange(N)
    scores = fold_scores(problem, [rows for rows, _ in folds] + [everyone])
    chosen = [candidates(s) for s in scores]
    n_views = len(problem.views)
    union = [np.unique(np.concatenate([c[m] for c in chosen])) for m in range(n_views)]
    X = gather(problem.views, union)
    absent = absent_matrix(problem.views)
    n_features = np.array([view.shape[1] for view in problem.views], dtype=float)
    where = [_positions(union, index) for index in chosen]
    jobs = (
        delayed(score_fold)(
            X[:, where[f]], chosen[f], absent, n_features, problem, T, fold, max_iter
        )
        for f, fold in enumerate(folds)
    )
    with blas_threads(N):
        found = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
    path = np.zeros((len(PATH), N))
    base = np.zeros(N)
    scored = np.sort(np.concatenate([held for _, held in folds]))
    for (rows, held), losses in zip(folds, found, strict=True):
        path[:, held] = losses
        likelihood = problem.likelihood.rows(rows)
        level = np.tile(likelihood.base_rate(), (len(held), 1))
        moments = [(level, np.full_like(level, 1e-12))]
        base[held] = pointwise_loss(moments, T[held], problem.task, noise_variance(likelihood))
    return HeldOut(scored, base[scored], path[:, scored]), chosen[-1], X[:, where[-1]]


def _positions(union: Index, index: Index) -> NDArray[np.intp]:
    """Return where the features of `index` stand among the gathered columns of `union`."""
    edges = np.concatenate([[0], np.cumsum([len(u) for u in union])])
    parts = [edges[m] + np.searchsorted(union[m], index[m]) for m in range(len(union))]
    return np.concatenate(parts)


def standard_errors(loss: Array, other: Array, weight: Array) -> float:
    """Return how many standard errors `loss` lies above `other`, paired over samples."""
    gap = weight * (loss - other)
    spread = gap.std() / np.sqrt(len(gap))
    return float(gap.mean() / spread) if spread > 0 else 0.0


def choose_step(held_out: HeldOut, weight: Array, doubled: bool) -> int | None:
    """Return the step of the path to keep, or None to keep nothing.

    Where features stand for each other (`doubled`), a small set is one of many and averaging over
    them pays, so the whole reference is kept on weak evidence and after a modest win. Where they
    are independent, features of small probability are noise: weak evidence keeps little, and only
    a clear win keeps the whole.

    Parameters
    ----------
    held_out : HeldOut
    weight : (N,) array
    doubled : bool
        Whether the sparse set leaves out doubles of what it keeps.
    """
    widest = WHOLE
    if (weight * (held_out.path[DENSE] - held_out.path[WHOLE])).mean() < 0:
        widest = DENSE
    whole = held_out.path[widest]
    against_base = standard_errors(whole, held_out.base, weight)
    if against_base > NO_SIGNAL[doubled]:
        return None
    if against_base > WEAK_SIGNAL:
        return widest if doubled else LITTLE
    margins = [standard_errors(loss, whole, weight) for loss in held_out.path[: SPARSE + 1]]
    return widest if min(margins) > WHOLE_WINS[doubled] else SPARSE


def settle_sparsity(
    problem: Problem,
    T: Array,
    folds: Sequence[Fold],
    n_jobs: int | None = None,
    max_iter: int = 200,
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

    Returns
    -------
    Choice
    """
    if problem.n_samples >= LARGE_SAMPLE:
        folds = folds[:1]
    held_out, index, X = cross_validate(problem, T, folds, n_jobs, max_iter)
    n_features = np.array([view.shape[1] for view in problem.views], dtype=float)
    with blas_threads(problem.n_samples):
        reference = fit_reference(
            X, index, absent_matrix(problem.views), n_features, problem.likelihood, max_iter
        )
        weight = sample_weights(problem.likelihood)[held_out.rows]
        doubled = redundancy(reference, reference.smallest(PATH[SPARSE])) > REDUNDANT
        step = choose_step(held_out, weight, doubled)
        if step is None:
            mixture = empty_mixture(problem)
        else:
            keep = reference.smallest(PATH[step])
            mixture = restrict(reference, keep, problem.likelihood, with_dense=step == DENSE)
    return Choice(mixture, reference, describe_path(reference, held_out, weight, step), step)


def blas_threads(n_samples: int) -> threadpool_limits:
    """Limit BLAS to one thread while folds may run side by side.

    Whatever `n_jobs`: sums must not depend on the number of threads. A large sample has one fold
    and uses all of them.
    """
    return threadpool_limits(limits=None if n_samples >= LARGE_SAMPLE else 1)


def sample_weights(likelihood: Likelihood) -> Array:
    """Return one weight per sample, mean one."""
    weight = likelihood.weight.mean(axis=1)
    return weight / weight.mean()


def describe_path(
    reference: Reference, held_out: HeldOut, weight: Array, step: int | None
) -> list[dict[str, Any]]:
    """Return the path as records: nothing first, the widest posterior last."""
    shares = (0.0, *PATH)
    sizes = [0] + [int(reference.smallest(share).sum()) for share in PATH]
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
