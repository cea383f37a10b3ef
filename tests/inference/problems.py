"""Small problems for the tests of the ensemble, its path and its selection."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from baldur import inner_folds
from baldur.inference.features import Columns, columns_of
from baldur.inference.grams import Grams
from baldur.inference.new_rows import absent_matrix
from baldur.inference.reference import Candidates
from baldur.inference.screening import Problem
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from model.problems import as_view

KINDS = [QuadratureLogistic, GaussianOutputs]


def make_problem(
    task="binary", N=48, sizes=(5, 20), seed=0, absent=False, kind=None, views=None, repeats=1
):
    """Return a `Problem`, its outputs and three folds; signal in the first two features."""
    rng = np.random.default_rng(seed)
    if views is None:
        views = []
        for m, D in enumerate(sizes):
            X = rng.standard_normal((N, D))
            lacking = np.arange(N) % 6 == 1 if absent and m == len(sizes) - 1 else None
            views.append(as_view((X - X.mean(0)) / X.std(0), lacking, f"view{m}"))
    first = views[0].columns([0, 1])
    C = {"binary": 1, "regression": 1, "multilabel": 2, "multiclass": 3}[task]
    eta = 2.0 * np.column_stack([first[:, 0], first[:, 1], first.sum(axis=1)])[:, :C]
    noisy = eta + 0.7 * rng.standard_normal(eta.shape)
    if task == "regression":
        T = noisy
        codes = (T[:, 0] > np.median(T)).astype(int)
    elif task == "multiclass":
        codes = noisy.argmax(axis=1)
        T = np.eye(3)[codes]
    else:
        T = (noisy > 0).astype(float)
        codes = T[:, 0].astype(int)
    chosen = kind or (GaussianOutputs if task == "regression" else QuadratureLogistic)
    folds = []
    for repeat in range(repeats):
        folds += StratifiedKFold(3, shuffle=True, random_state=repeat).split(codes, codes)
    return Problem(views, chosen(T, np.ones_like(T)), task), T, folds


def everything(problem, by_grams=False):
    """Return every feature of a problem as the members see them: `Columns` or `Grams`."""
    if by_grams:
        return Grams([view.weighted_gram() for view in problem.views])
    return columns_of(problem.views, [np.arange(view.shape[1]) for view in problem.views])


def as_candidates(problem, by_grams=False):
    """Return all features as candidates."""
    return Candidates(
        everything(problem),
        everything(problem, by_grams),
        problem.widths,
        absent_matrix(problem.views),
    )


def plain_problem(kind=QuadratureLogistic, N=60, L=12, C=1, seed=0, separable=False):
    """Return standardised columns X (N, L), and a likelihood with signal in two of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, L))
    X = (X - X.mean(0)) / X.std(0)
    eta = 1.5 * X[:, [0]] - 1.5 * X[:, [L // 2]] + 0.3 * np.arange(C)
    noisy = eta + (0.0 if separable else rng.logistic(size=(N, C)))
    T = noisy if kind is GaussianOutputs else (noisy > 0).astype(float)
    return X, kind(T, np.ones_like(T))


def two_views(X, cut=None):
    """Return columns cut into two views."""
    cut = X.shape[1] // 2 if cut is None else cut
    return Columns(X, (np.arange(X.shape[1]) >= cut).astype(int), 2)


def target(likelihood):
    return likelihood.Y if isinstance(likelihood, GaussianOutputs) else likelihood.T


@pytest.fixture(scope="module", autouse=True)
def few_repeats():
    """Deal rows to inner folds once: answers are less steady, all else holds as well."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inner_folds, "MOST_REPEATS", 1)
        yield
