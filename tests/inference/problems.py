"""Small problems for the tests of settling sparsity."""

import numpy as np
from sklearn.model_selection import StratifiedKFold

from baldur.inference.screening import Problem
from baldur.model.likelihood import GaussianOutputs, QuadratureLogistic
from model.structured.problems import as_view


def make_problem(task="binary", N=48, sizes=(5, 20), seed=0, absent=False, kind=None, views=None):
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
    folds = list(StratifiedKFold(3, shuffle=True, random_state=0).split(codes, codes))
    return Problem(views, chosen(T, np.ones_like(T)), task), T, folds
