"""The path of ``sparsity="auto"`` scored on held-out rows, with work shared between the folds.

The views are read a few times for all folds together: once for marginal scores, once for the
Gram of each view, of which every fold takes a slice, once for the features that may come back,
and for the few columns that are a candidate anywhere.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from baldur.inference.all_features import AllFeatures, all_features
from baldur.inference.inclusion import Inclusion
from baldur.inference.mixture import Index, absent_matrix, gather, owners
from baldur.inference.reference import (
    Reference,
    fit_inclusions,
    make_reference,
    restrict,
)
from baldur.inference.scoring import Task, pointwise_loss
from baldur.inference.screening import (
    Problem,
    candidates,
    merged,
    positions,
    returning,
)
from baldur.model.likelihood import GaussianOutputs, Likelihood
from baldur.views.reads import passes

Array = NDArray[np.float64]
Rows = NDArray[np.intp]
Fold = tuple[Rows, Rows]
Watcher = Callable[[dict[str, Any]], None]

PATH = (0.6, 0.8, 0.91, 0.97, 1.0)
"""Shares of the variance of the reference's linear predictor at which the path is scored.

After them come two more steps with every feature of the views that matter: the posterior that has
everything in joins the average, and it is alone.
"""
N_STEPS = len(PATH) + 2
ENOUGH_ROWS = 190
"""Held-out rows that are enough to choose, about as many as samples of 200 have: larger samples
need fewer folds."""


@dataclass
class HeldOut:
    """Cross-validated losses, one column per sample.

    Attributes
    ----------
    rows : (n,) rows that were held out: all, or some folds of a large sample
    base : (n,) loss of the base rate
    path : (N_STEPS, n) losses along the path
    """

    rows: Rows
    base: Array
    path: Array


def noise_variance(likelihood: Likelihood) -> Array | None:
    """Return the noise variance of Gaussian outputs, None for logistic ones."""
    return 1.0 / likelihood.psi.mean if isinstance(likelihood, GaussianOutputs) else None


def one_blas_thread() -> threadpool_limits:
    """Limit BLAS to one thread: fits run side by side, and small problems lose with more.

    Whatever `n_jobs`: sums must not depend on the number of threads.
    """
    return threadpool_limits(limits=1)


class Gathered:
    """Columns of the candidates of several fits, gathered once.

    Attributes
    ----------
    union : Index, features that are a candidate anywhere
    X : (N, L) array
    """

    def __init__(self, problem: Problem, chosen: Sequence[Index]) -> None:
        M = len(problem.views)
        self.union = [np.unique(np.concatenate([c[m] for c in chosen])) for m in range(M)]
        self.X = gather(problem.views, self.union)

    def of(self, index: Index, rows: Rows) -> Array:
        """Return the columns of `index` on some rows."""
        return np.ascontiguousarray(self.X[rows][:, positions(self.union, index)])


def fit_all(
    problem: Problem,
    fits: Sequence[Rows],
    likelihoods: Sequence[Likelihood],
    n_jobs: int | None,
    max_iter: int,
    watch: Watcher | None = None,
) -> tuple[Gathered, list[Index], list[list[Inclusion]]]:
    """Fit the in-or-out posteriors on each set of rows, and again where features came back."""
    absent = absent_matrix(problem.views)
    chosen = candidates(problem, fits)
    columns = Gathered(problem, chosen)
    found: list[list[Inclusion]] = [[] for _ in fits]

    def run(which: Sequence[int]) -> None:
        jobs = (
            delayed(fit_inclusions)(
                columns.of(chosen[f], fits[f]),
                chosen[f],
                absent[fits[f]],
                problem.widths,
                likelihoods[f],
                max_iter,
            )
            for f in which
        )
        results = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator")(jobs)
        for f, made in zip(which, results, strict=True):
            found[f] = made
            for inclusion in made:
                for record in inclusion.history:
                    record["passes"] = passes(problem.views)
            if watch is not None:
                watch({**made[-1].history[-1], "event": f"fit {f + 1} of {len(fits)}"})

    with one_blas_thread():
        run(range(len(fits)))
        back = returning(problem, fits, chosen, found)
        again = [f for f, index in enumerate(back) if any(len(part) for part in index)]
        if again:
            chosen = [merged(inside, new) for inside, new in zip(chosen, back, strict=True)]
            columns = Gathered(problem, chosen)
            run(again)
    return columns, chosen, found


def score_fold(
    reference: Reference,
    X: Array,
    absent: Array,
    features: AllFeatures,
    likelihood: Likelihood,
    task: Task,
    T: Array,
    fold: Fold,
) -> Array:
    """Return held-out losses of the path, (N_STEPS, n_held).

    Parameters
    ----------
    reference : Reference, from the training rows of the fold
    X, absent : candidate columns and absent views of the held-out rows
    features : AllFeatures, on all rows
    likelihood : Likelihood, of the training rows
    task : Task
    T : (N, C) array of outputs
    fold : training rows, held-out rows
    """
    rows, held = fold
    masks = [reference.smallest(share) for share in PATH]
    masks.append(reference.dense_views[owners(reference.index)])
    losses: list[Array] = []
    moments = []
    for step, keep in enumerate(masks):
        # A set that is that of the step before predicts the same.
        if step == 0 or not np.array_equal(keep, masks[step - 1]):
            moments = restrict(reference, keep, likelihood).moments_of(X[:, keep], absent)
        used = [moments]
        if step == len(PATH):
            whole = reference.everything
            mean, var = features.predict(whole.sides, whole.slab, rows, held)
            plain = [(mean, var + absent @ whole.signal())]
            used = [moments + plain, plain]
        noise = noise_variance(likelihood)
        losses += [pointwise_loss(each, T[held], task, noise) for each in used]
    return np.array(losses)


def cross_validate(
    problem: Problem,
    T: Array,
    folds: Sequence[Fold],
    n_jobs: int | None = None,
    max_iter: int = 200,
    watch: Watcher | None = None,
) -> tuple[HeldOut, Reference]:
    """Score the path on held-out rows; also return the reference of all rows.

    Parameters
    ----------
    problem : Problem
    T : (N, C) array
        Outputs: 0 and 1, or real for regression.
    folds : list of (training rows, held-out rows)
    n_jobs : int, optional
        Fits at the same time.
    max_iter : int
        Most iterations of each posterior.
    watch : callable, optional
        Called with a record after each fit.
    """
    N = problem.n_samples
    everyone = np.arange(N)
    fits = [*(rows for rows, _ in folds), everyone]
    # Each fit has its own, because Gaussian outputs learn their noise in it.
    likelihoods = [problem.likelihood.rows(rows) for rows, _ in folds] + [problem.likelihood]
    columns, chosen, found = fit_all(problem, fits, likelihoods, n_jobs, max_iter, watch)
    features, absent = all_features(problem.views), absent_matrix(problem.views)

    def refer(f: int) -> Reference:
        rows = fits[f]
        return make_reference(
            columns.of(chosen[f], rows),
            chosen[f],
            absent[rows],
            found[f],
            features if f == len(folds) else features.within(rows),
            likelihoods[f],
            max_iter,
        )

    def score(f: int) -> Array:
        held = folds[f][1]
        X = columns.of(chosen[f], held)
        return score_fold(
            refer(f), X, absent[held], features, likelihoods[f], problem.task, T, folds[f]
        )

    with one_blas_thread():
        jobs = (delayed(score)(f) for f in range(len(folds)))
        losses = Parallel(n_jobs=n_jobs, prefer="threads")(jobs)
        reference = refer(len(folds))
    for record in reference.everything.history:
        record["passes"] = passes(problem.views)
    path, base = np.zeros((N_STEPS, N)), np.zeros(N)
    for (rows, held), lost in zip(folds, losses, strict=True):
        path[:, held] = lost
        likelihood = problem.likelihood.rows(rows)
        level = np.tile(likelihood.base_rate(), (len(held), 1))
        moments = [(level, np.full_like(level, 1e-12))]
        base[held] = pointwise_loss(moments, T[held], problem.task, noise_variance(likelihood))
    scored = np.sort(np.concatenate([held for _, held in folds]))
    return HeldOut(scored, base[scored], path[:, scored]), reference
