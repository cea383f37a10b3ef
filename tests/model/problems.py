"""Small problems for tests."""

import numpy as np

from baldur.inference.design import ColumnDesign, gather
from baldur.inference.inner_folds import Problem
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood
from baldur.model.posterior import INTERCEPT_VAR, with_ones
from baldur.views.prepared_view import PreparedView
from baldur.views.standardised_blocks import StandardisedArray


def as_view(X, absent=None, name="view"):
    """Return a float64 array as a PreparedView, rows of absent samples set to zero."""
    absent = np.zeros(len(X), dtype=bool) if absent is None else absent
    X = np.where(absent[:, None], 0.0, X)
    return PreparedView(name, StandardisedArray(np.ascontiguousarray(X)), absent)


def make_views(N=30, sizes=(3, 5), seed=0, absent=False):
    """Standardised Gaussian views; with `absent`, a fifth of the rows lack the last one."""
    rng = np.random.default_rng(seed)
    views = []
    for m, D in enumerate(sizes):
        X = rng.standard_normal((N, D))
        X = (X - X.mean(0)) / X.std(0)
        lacking = np.arange(N) % 5 == 2 if absent and m == len(sizes) - 1 else None
        views.append(as_view(X, lacking, f"view{m}"))
    return views


def make_outputs(views, task, seed=0, separable=False):
    """Outputs (N, C) that depend on the first features of every view."""
    rng = np.random.default_rng(seed + 1)
    N, C = views[0].shape[0], 1 if task == "binary" else 2 if task == "regression" else 3
    eta = np.zeros((N, C))
    for c in range(C):
        for view in views:
            eta[:, c] += 1.5 * view.columns([c % view.shape[1]])[:, 0]
    if not separable:
        eta = eta + rng.standard_normal((N, C))
    if task == "regression":
        return eta
    if task == "multiclass":
        return np.eye(C)[eta.argmax(axis=1)]
    return (eta > 0).astype(float)


def make_small(
    task="binary",
    *,
    N=30,
    sizes=(3, 5),
    seed=0,
    absent=False,
    separable=False,
    weighted=False,
):
    """Return a `Problem`."""
    views = make_views(N, sizes, seed, absent)
    T = make_outputs(views, task, seed, separable)
    rng = np.random.default_rng(seed + 2)
    weight = rng.uniform(0.5, 2.0, N) if weighted else np.ones(N)
    return Problem(views, T, weight, task)


def likelihood_of(problem):
    """Return the likelihood of one fit to all rows of a problem."""
    kind = GaussianLikelihood if problem.task == "regression" else LogisticLikelihood
    T = np.ascontiguousarray(problem.T.T)[None]
    return kind(T, np.broadcast_to(problem.weight, T.shape))


def absent_of(problem):
    """Return 1 where a row lacks a view, (1, N, M)."""
    return np.stack([view.absent for view in problem.views], axis=1).astype(float)[None]


def design_of(problem, intercept_var=INTERCEPT_VAR):
    """Return all features of a problem as the columns of one fit."""
    X = gather(problem.views, [np.arange(D) for D in problem.widths])
    owner = np.repeat(np.arange(len(problem.views)), problem.widths)
    count = np.array([float(len(X))])
    return ColumnDesign(with_ones(X)[None], owner[None], count, len(problem.views), intercept_var)
