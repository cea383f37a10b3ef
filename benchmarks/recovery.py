"""BALDUR with default settings on simulated data: how well it predicts, and what it finds.

Usage::

    python benchmarks/recovery.py [--cases a b c d blocks classes missing views] [--seeds 10]

N = 200 training rows, 2,000 test rows, views of 20 and 2,000 Gaussian features, logit s.d. 3:

- a: 5 informative features, all in the narrow view; b: 10, all in the wide view; c: 3 narrow and
  5 wide; d: none;
- blocks: c with features correlated at 0.8 in blocks of ten, where a kept feature of the right
  block counts as found; classes: c with three classes; missing: c with 20 % of the cells missing;
  views: c with the narrow view missing for 30 % of the rows.

Figures are means over seeds. "oracle" is a nearly unpenalised logistic regression on the
informative features alone. "found" and "false" count the features kept by ``selected_features_``.
With three classes the AUC is the mean over the classes, each against the rest.
"""

import argparse
import time
import warnings

import numpy as np
from competitors import concatenate, l1_scores
from joblib import Memory, Parallel, delayed
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsRestClassifier

from baldur import BaldurClassifier
from baldur.datasets import make_multiview

DIMS = {"narrow": 20, "wide": 2000}
MIXED = {"narrow": 3, "wide": 5}
CASES = {
    "a": {"informative": {"narrow": 5}},
    "b": {"informative": {"wide": 10}},
    "c": {"informative": MIXED},
    "d": {"informative": 0},
    "blocks": {"informative": MIXED, "correlation": 0.8, "block_size": 10},
    "classes": {"informative": MIXED, "n_classes": 3},
    "missing": {"informative": MIXED, "missing_cells": 0.2},
    "views": {"informative": MIXED, "missing_views": {"narrow": 0.3}},
}
AUC_BAR = {"a": 0.89, "b": 0.80, "c": 0.86}
N_TRAIN, N_TEST = 200, 2000


def simulate(case, seed, n_test=N_TEST):
    """Return a simulated set; the first 200 rows are for training."""
    return make_multiview(N_TRAIN + n_test, DIMS, random_state=seed, **CASES[case])


def auc(y, scores):
    """Return the AUC, or its mean over classes against the rest."""
    if scores.ndim == 1:
        return roc_auc_score(y, scores)
    return float(np.mean([roc_auc_score(y == c, scores[:, c]) for c in range(scores.shape[1])]))


def competitors(case, seed):
    """Return test AUC of l1 and of the oracle, and how many features l1 keeps."""
    sim = simulate(case, seed)
    y = sim.target
    train, test = np.arange(N_TRAIN), np.arange(N_TRAIN, len(y))
    X, X_new = concatenate(sim.data, train, test)
    classes = np.unique(y)
    if len(classes) == 2:
        l1, kept = l1_scores(X, y[train], X_new)
    else:
        parts = [l1_scores(X, (y[train] == c).astype(int), X_new) for c in classes]
        l1, kept = np.column_stack([p[0] for p in parts]), sum(p[1] for p in parts)
    support = np.concatenate([sim.truth.support(name) for name in sim.data.view_names])
    if not support.any():
        return auc(y[test], l1), 0.5, kept
    plain = LogisticRegression(C=100.0, max_iter=2000)
    if len(classes) > 2:
        plain = OneVsRestClassifier(plain)
    oracle = plain.fit(X[:, support], y[train]).decision_function(X_new[:, support])
    return auc(y[test], l1), auc(y[test], oracle), kept


def count_features(case, model, truth):
    """Return how many true features were found, and how many false ones kept."""
    found = false = 0
    for name, mask in model.selected_features_.items():
        support = truth.support(name)
        if case == "blocks":
            block = np.arange(len(mask)) // CASES[case]["block_size"]
            right = np.isin(block, block[support])
            found += sum(mask[block == block[d]].any() for d in np.flatnonzero(support))
            false += int((mask & ~right).sum())
        else:
            found += int((mask & support).sum())
            false += int((mask & ~support).sum())
    return found, false


def baldur(case, seed):
    """Return test AUC, found, false, mean |p - base rate| and seconds of BALDUR."""
    sim = simulate(case, seed)
    data, y = sim.data, sim.target
    started = time.perf_counter()
    model = BaldurClassifier().fit(data[:N_TRAIN], y[:N_TRAIN])
    seconds = time.perf_counter() - started
    p = model.predict_proba(data[N_TRAIN:])
    rate = np.mean(y[:N_TRAIN, None] == model.classes_, axis=0)
    away = float(np.abs(p - rate)[:, 1].mean())
    scores = p[:, 1] if p.shape[1] == 2 else p
    return auc(y[N_TRAIN:], scores), *count_features(case, model, sim.truth), away, seconds


def verdicts(case, ours, theirs, n_true):
    """Return the bars of a case as (what, value, bar, met)."""
    area, found, false, away, _ = ours
    out = []
    if case in AUC_BAR:
        out.append(("AUC", area, f">= {AUC_BAR[case]}", area >= AUC_BAR[case]))
        beat = theirs[0] + 0.01
        out.append(("AUC", area, f">= l1 + 0.01 = {beat:.3f}", area >= beat))
    if case in ("a", "c"):
        out.append(("share found", found / n_true, ">= 0.8", found / n_true >= 0.8))
        out.append(("false kept", false, "<= 2", false <= 2))
    if case == "d":
        out.append(("AUC", area, "0.5 +- 0.03", abs(area - 0.5) <= 0.03))
        out.append(("|p - base rate|", away, "<= 0.05", away <= 0.05))
        out.append(("kept", false, "<= 2", false <= 2))
    return out


def main():
    """Read the arguments and print the table and the bars."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=tuple(CASES), default=tuple(CASES))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--n-jobs", type=int, default=1, help="seeds at the same time")
    parser.add_argument("--cache", help="folder that remembers the competitors' scores")
    given = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    remembered = Memory(given.cache, verbose=0).cache(competitors)
    head = ("case", "BALDUR", "l1", "oracle", "true", "found", "false", "l1 kept")
    head += ("|p - rate|", "seconds", "AUC by seed")
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    bars = []
    for case in given.cases:
        seeds = range(given.seeds)
        runs = np.array(Parallel(given.n_jobs)(delayed(baldur)(case, s) for s in seeds))
        theirs = np.mean(Parallel(given.n_jobs)(delayed(remembered)(case, s) for s in seeds), 0)
        ours = runs.mean(axis=0)
        n_true = sum(len(f) for f in simulate(case, 0, 0).truth.features.values())
        cells = [f"{v:.3f}" for v in (ours[0], theirs[0], theirs[1])] + [str(n_true)]
        cells += [f"{v:.1f}" for v in (ours[1], ours[2], theirs[2])]
        cells += [f"{ours[3]:.3f}", f"{ours[4]:.1f}", " ".join(f"{v:.2f}" for v in runs[:, 0])]
        print(f"| {case} | " + " | ".join(cells) + " |", flush=True)
        bars += [(case, *bar) for bar in verdicts(case, ours, theirs, n_true)]
    print("\n| case | figure | value | bar | met |\n|" + " --- |" * 5)
    for case, what, value, bar, met in bars:
        print(f"| {case} | {what} | {value:.3f} | {bar} | {'yes' if met else 'NO'} |")


if __name__ == "__main__":
    main()
