"""Submodels of five and ten features, against an l1 path cut there and forward selection.

Usage::

    python benchmarks/few_features.py [--part ad_csf golub_leukemia] [--seeds 3] [--jobs 2]

5-fold cross-validation, shuffled as many times as ``--seeds`` says, the same folds for every
column; families stay together. One default fit per fold gives both sizes by ``submodel``. The l1
path is that of logistic regression on standardised columns, cut at the weakest penalty that leaves
at most so many features. Forward selection adds the column with the largest score statistic and
fits logistic regression again, without a penalty but for what keeps it finite.

Bars: AUC at least that of both on each set and size, and above both on average.
"""

import warnings

import numpy as np
from common import Bars, auc, fit_default, header, parse, row, run_parts
from competitors import concatenate
from shared_sets import read_fold, training
from sklearn.linear_model import LogisticRegression
from sklearn.svm import l1_min_c

from baldur import BaldurClassifier

SETS = ("ad_csf", "golub_leukemia", "pd_speech")
SIZES = (5, 10)
RIVALS = ("l1 path", "forward")
STEPS = 40
"""Penalties of the l1 path over two and a half decades from the first that selects nothing."""
WEAK = 100.0
"""C of the fits of forward selection: a prior standard deviation of 10 per weight."""


def baldur(name, shuffle, fold):
    """Return the AUC of the submodel of each size on one fold, and that of the default."""
    cohort, train, test = read_fold(name, shuffle, fold)
    model, _ = fit_default(BaldurClassifier, *training(cohort, train))
    models = [*(model.submodel(size) for size in SIZES), model]
    return [auc(cohort.y[test], one.predict_proba(cohort.data[test])) for one in models]


def rivals(name, shuffle, fold):
    """Return the AUC of the competitors of each size on one fold, (sizes, competitors)."""
    cohort, train, test = read_fold(name, shuffle, fold)
    X, X_new = concatenate(cohort.data, train, test, clipped=False)
    y, y_new = cohort.y[train], cohort.y[test]
    by_l1, by_steps = l1_path(X, y, X_new), forward(X, y, X_new)
    return [[auc(y_new, by_l1[size]), auc(y_new, by_steps[size])] for size in SIZES]


def l1_path(X, y, X_new):
    """Return probabilities of the largest model of the l1 path within each size."""
    found = {size: np.full((len(X_new), 2), 0.5) for size in SIZES}
    for C in l1_min_c(X, y, loss="log") * np.logspace(0, 2.5, STEPS):
        fit = LogisticRegression(penalty="l1", solver="liblinear", C=C, random_state=0).fit(X, y)
        count = np.count_nonzero(fit.coef_)
        for size in SIZES:
            if count <= size:
                found[size] = fit.predict_proba(X_new)
        if count > 2 * max(SIZES):
            break
    return found


def forward(X, y, X_new):
    """Return probabilities of forward selection at each size."""
    chosen, found = [], {}
    p = np.full(len(y), y.mean())
    for _ in range(max(SIZES)):
        weight = p * (1.0 - p)
        Z = np.column_stack([np.ones(len(y)), X[:, chosen]]) * np.sqrt(weight)[:, None]
        Q, _ = np.linalg.qr(Z)
        U = X * np.sqrt(weight)[:, None]
        left = (U**2).sum(axis=0) - ((Q.T @ U) ** 2).sum(axis=0)
        gain = (X.T @ (y - p)) ** 2 / np.maximum(left, 1e-6 * (U**2).sum(axis=0) + 1e-12)
        gain[chosen] = -1.0
        chosen.append(int(gain.argmax()))
        fit = LogisticRegression(C=WEAK, max_iter=1000).fit(X[:, chosen], y)
        p = fit.predict_proba(X[:, chosen])[:, 1]
        found[len(chosen)] = fit.predict_proba(X_new[:, chosen])
    return found


def main():
    """Measure, print the table and the bars."""
    warnings.simplefilter("ignore")
    given = parse(__doc__, SETS, 3)
    ours = run_parts(baldur, given, folds=range(5)).mean(axis=1)
    theirs = run_parts(rivals, given, folds=range(5), cache=given.cache).mean(axis=1)
    bars = Bars()
    header("set", "features", "BALDUR", *RIVALS, "BALDUR default")
    for i, name in enumerate(given.part):
        for j, size in enumerate(SIZES):
            row(name, size, ours[i, j], *theirs[i, j], ours[i, -1])
            bars.least(f"{name}, {size} features", ours[i, j], theirs[i, j].max())
    for r, rival in enumerate(RIVALS):
        bars.above(f"mean above {rival}", ours[:, :-1].mean(), theirs[..., r].mean())
    bars.show()


if __name__ == "__main__":
    main()
