"""BALDUR with default settings on real data, against ridge and l1, each plain and clipped.

Usage::

    python benchmarks/real.py [--part ad_csf breast_tcga_mixomics] [--seeds 3] [--jobs 2]

5-fold cross-validation, shuffled as many times as ``--seeds`` says, the same folds for every
column; families stay together. Competitors are cross-validated logistic regressions. With more than
two classes AUC is the mean over the classes, each against the rest. ``shared_sets.py`` says where
the sets are and how they are transformed.

Bars: AUC at least the best competitor's less .015 and log-loss at most the best competitor's plus
.02 on each set, and better than each competitor on average; breast_tcga_mixomics, by its split, at
least 67 of 70 right; mfeat_digits at least .98 right in at most ten times the time of
``LogisticRegressionCV`` in the same run.
"""

import time

import numpy as np
from common import (
    Bars,
    auc,
    fit_default,
    header,
    kept_features,
    loss,
    parse,
    row,
    run,
    run_parts,
    store,
)
from competitors import competitor, concatenate
from shared_sets import FOLDED, load, read_fold, training
from sklearn.linear_model import LogisticRegressionCV

from baldur import BaldurClassifier

RIVALS = ("ridge", "ridge clipped", "l1", "l1 clipped")
AUC_MARGIN, LOSS_MARGIN = 0.015, 0.02
TIMES = 10.0


def baldur(name, shuffle, fold):
    """Return AUC, log-loss, features kept and seconds of BALDUR on one fold."""
    cohort, train, test = read_fold(name, shuffle, fold)
    model, seconds = fit_default(BaldurClassifier, *training(cohort, train))
    p, y = model.predict_proba(cohort.data[test]), cohort.y[test]
    return auc(y, p), loss(y, p), kept_features(model), seconds


def rivals(name, shuffle, fold):
    """Return AUC, log-loss and features kept of every competitor on one fold."""
    cohort, train, test = read_fold(name, shuffle, fold)
    groups = None if cohort.groups is None else cohort.groups[train]
    prepared = {c: concatenate(cohort.data, train, test, clipped=c) for c in (False, True)}
    found = []
    for rival in RIVALS:
        X, X_new = prepared[rival.endswith("clipped")]
        p, kept = competitor(rival.removesuffix(" clipped"))(X, cohort.y[train], X_new, groups)
        found.append((auc(cohort.y[test], p), loss(cohort.y[test], p), kept))
    return found


def folded(names, given, bars):
    """Print the table of the cross-validated sets and add their bars."""
    ours = run_parts(baldur, given, names, range(5))
    theirs = run_parts(rivals, given, names, range(5), given.cache).mean(axis=1)
    there = store(given, {name: ours[i].tolist() for i, name in enumerate(names)}) or {}
    ours = ours.mean(axis=1)
    for at, title in enumerate(("AUC", "log-loss")):
        print(f"\n{title}, means over {given.seeds} shuffles of five folds:\n")
        other = ["other checkout"] if there else []
        header("set", "BALDUR", *RIVALS, "kept", "l1 kept", "seconds", *other)
        for i, name in enumerate(names):
            other = [np.mean(there[name], axis=0)[at]] if name in there else []
            cells = (f"{ours[i, 2]:.1f}", f"{theirs[i, 2, 2]:.1f}", f"{ours[i, 3]:.1f}", *other)
            row(name, ours[i, at], *theirs[i, :, at], *cells)
        row("average", ours[:, at].mean(), *theirs[:, :, at].mean(axis=0), "", "", "")
    for i, name in enumerate(names):
        bars.least(f"{name}: AUC", ours[i, 0], theirs[i, :, 0].max() - AUC_MARGIN)
        bars.most(f"{name}: log-loss", ours[i, 1], theirs[i, :, 1].min() + LOSS_MARGIN)
    average = theirs.mean(axis=0)
    for rival, (area, cost, _) in zip(RIVALS, average, strict=True):
        bars.above(f"average AUC, against {rival}", ours[:, 0].mean(), area)
        bars.most(f"average log-loss, against {rival}", ours[:, 1].mean(), cost)


def breast():
    """Return how many of the test rows are right, how many there are, features kept, seconds."""
    cohort = load("breast_tcga_mixomics")
    train, test = np.flatnonzero(cohort.split == "train"), np.flatnonzero(cohort.split == "test")
    model, seconds = fit_default(BaldurClassifier, cohort.data[train], cohort.y[train])
    right = int((model.predict(cohort.data[test]) == cohort.y[test]).sum())
    return right, len(test), kept_features(model), seconds


def digits(shuffle, fold):
    """Return accuracy and seconds of BALDUR and of LogisticRegressionCV, and features kept."""
    cohort, train, test = read_fold("mfeat_digits", shuffle, fold)
    model, seconds = fit_default(BaldurClassifier, cohort.data[train], cohort.y[train])
    X, X_new = concatenate(cohort.data, train, test)
    started = time.perf_counter()
    plain = LogisticRegressionCV(max_iter=1000).fit(X, cohort.y[train])
    other = time.perf_counter() - started
    right = model.score(cohort.data[test], cohort.y[test])
    return right, seconds, plain.score(X_new, cohort.y[test]), other, kept_features(model)


def main():
    """Read the arguments; print the tables and the bars."""
    given = parse(__doc__, (*FOLDED, "breast_tcga_mixomics", "mfeat_digits"), 3)
    bars = Bars()
    names = [name for name in FOLDED if name in given.part]
    if names:
        folded(names, given, bars)
    if "breast_tcga_mixomics" in given.part:
        right, n, kept, seconds = run(breast, [()], given.jobs)[0]
        print(f"\nbreast_tcga_mixomics: {right} of {n} right, {kept} kept, {seconds:.1f} s")
        bars.least("breast_tcga_mixomics: right of 70", right, 67)
    if "mfeat_digits" in given.part:
        # One after the other: two at a time would disturb the ratio of times.
        found = np.mean(run(digits, [(0, fold) for fold in range(5)], 1), axis=0)
        print(
            f"\nmfeat_digits: right {found[0]:.4f} in {found[1]:.1f} s a fold, {found[4]:.1f} "
            f"kept; LogisticRegressionCV {found[2]:.4f} in {found[3]:.1f} s"
        )
        bars.least("mfeat_digits: right", found[0], 0.98)
        bars.most("mfeat_digits: times LogisticRegressionCV", found[1] / found[3], TIMES)
    bars.show()


if __name__ == "__main__":
    main()
