"""Small problems for the tests of the members, the ensemble, its path and its selection."""

import numpy as np
from sklearn.model_selection import StratifiedKFold

from baldur.inference.design import ColumnDesign, GramDesign
from baldur.inference.inner_folds import FoldBatch, Problem, gather_data
from baldur.model.likelihood import GaussianLikelihood, LogisticLikelihood
from baldur.model.posterior import INTERCEPT_VAR, with_ones
from baldur.views.prepared_view import PreparedView
from baldur.views.standardised_blocks import StandardisedArray

KINDS = [LogisticLikelihood, GaussianLikelihood]
OUTPUTS = {"binary": 1, "regression": 1, "multilabel": 2, "multiclass": 3}


def as_view(X, absent=None, name="view"):
    """Return a float64 array as a PreparedView, rows of absent samples set to zero."""
    absent = np.zeros(len(X), dtype=bool) if absent is None else absent
    X = np.where(absent[:, None], 0.0, X)
    return PreparedView(name, absent, StandardisedArray(np.ascontiguousarray(X)))


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


def make_problem(task="binary", N=48, sizes=(5, 20), seed=0, absent=False, views=None, repeats=1):
    """Return a `Problem` and three folds; signal in the first two features."""
    rng = np.random.default_rng(seed)
    if views is None:
        views = []
        for m, D in enumerate(sizes):
            X = rng.standard_normal((N, D))
            lacking = np.arange(N) % 6 == 1 if absent and m == len(sizes) - 1 else None
            views.append(as_view((X - X.mean(0)) / X.std(0), lacking, f"view{m}"))
    first = views[0].columns([0, 1])
    C = OUTPUTS[task]
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
    folds = []
    for repeat in range(repeats):
        folds += StratifiedKFold(3, shuffle=True, random_state=repeat).split(codes, codes)
    return Problem(views, T, np.ones(N), task), folds


def unequal_folds(N, seed=0):
    """Return folds that leave out a third, a quarter and a sixth of the rows, in random order."""
    rng = np.random.default_rng(seed)
    folds = []
    for part in (3, 4, 6):
        order = rng.permutation(N)
        folds.append((order[N // part :], order[: N // part]))
    return folds


def gathered(problem, folds, by_grams=False):
    """Return what the folds share, every feature a candidate, and the folds as one batch.

    With `by_grams` the dense members see the features through their Gram matrices.
    """
    index = [np.arange(D) for D in problem.widths]
    grams = [view.weighted_gram() for view in problem.views] if by_grams else None
    data, places = gather_data(problem, [index] * len(folds), grams)
    return data, FoldBatch.of(data, folds, places)


def on_all_rows(problem, by_grams=False):
    """Return the data and a batch of one fold that is fitted to all rows and predicts them."""
    everyone = np.arange(problem.n_samples)
    return gathered(problem, [(everyone, everyone)], by_grams)


def plain_problem(kind=LogisticLikelihood, N=60, L=12, C=1, seed=0, separable=False, F=1):
    """Return standardised columns X (F, N, L), and a likelihood with signal in two of them."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((F, N, L))
    X = (X - X.mean(axis=1, keepdims=True)) / X.std(axis=1, keepdims=True)
    shift = 0.3 * np.arange(C)[:, None]
    eta = 1.5 * X[:, None, :, 0] - 1.5 * X[:, None, :, L // 2] + shift
    noisy = eta + (0.0 if separable else rng.logistic(size=(F, C, N)))
    T = noisy if kind is GaussianLikelihood else (noisy > 0).astype(float)
    return X, kind(T, np.ones_like(T))


def in_views(X, owner, n_views=None, intercept_var=INTERCEPT_VAR):
    """Return the design of columns (F, N, L) with views `owner` (L,)."""
    F, N, _ = X.shape
    M = int(owner.max()) + 1 if n_views is None else n_views
    count = np.full(F, float(N))
    return ColumnDesign(with_ones(X), np.tile(owner, (F, 1)), count, M, intercept_var)


def two_views(X, cut=None):
    """Return columns (F, N, L) cut into two views."""
    cut = X.shape[2] // 2 if cut is None else cut
    return in_views(X, (np.arange(X.shape[2]) >= cut).astype(int), 2)


def as_grams(design):
    """Return the same features through the Gram matrices of their views."""
    X, owner = design.X1[:, :, 1:], design.owner[0]
    parts = [X[:, :, owner == m] for m in range(design.n_views)]
    grams = np.stack([part @ part.swapaxes(1, 2) for part in parts], axis=1)
    return GramDesign(grams, design.count, design.intercept_var, absent=design.absent)
