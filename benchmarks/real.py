"""BALDUR with default settings on real data, against ridge, l1 and a random forest.

Usage::

    python benchmarks/real.py [--sets ad_csf pd_speech] [--n-jobs 1] [--cache FOLDER]

Stratified 5-fold (shuffle, seed 0), the same folds for every column; AUC and features kept are
means over folds. The data sets are looked for in ``$BALDUR_SHARED_DATA`` or ``../shared/data``.
Gene expression is log2 with a floor at 1; genera counts become log1p of 10,000 x relative
abundance and metabolites log1p. These transforms are fixed and work row by row, so nothing is
learned from them; everything learned is learned on training rows. ``--cache`` remembers the
competitors' scores, not BALDUR's.
"""

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
from competitors import concatenate, forest, l1_scores, ridge_scores
from joblib import Memory, Parallel, delayed
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import StratifiedKFold

from baldur import BaldurClassifier, MultiView
from baldur.datasets import load_shared

BINARY = (
    "ad_csf",
    "darwin_handwriting",
    "autism_gut_kang",
    "pd_speech",
    "golub_leukemia",
    "prostate_singh",
)
EXTRA = ("breast_tcga_mixomics", "mfeat_digits")
MARGIN = 0.01


def folder():
    """Folder of the data sets."""
    root = Path(__file__).resolve().parents[1]
    return Path(os.environ.get("BALDUR_SHARED_DATA", root.parent / "shared" / "data"))


def transform(name, view, X):
    """Apply the fixed transform of one view."""
    if name in ("golub_leukemia", "prostate_singh"):
        return np.log2(np.maximum(X, 1.0))
    if name == "autism_gut_kang" and view == "microbiome_genera":
        return np.log1p(1e4 * X / X.sum(axis=1, keepdims=True))
    if name == "autism_gut_kang" and view == "metabolome":
        return np.log1p(X)
    return X


def load(name):
    """Return views, labels and the fixed split (or None)."""
    found = load_shared(folder() / name)
    views = {
        v: transform(name, v, found.data.view(v).read().astype(float))
        for v in found.data.view_names
    }
    return MultiView(views), found.target, found.split


def five_folds(y):
    """Return the folds every column shares."""
    return list(StratifiedKFold(5, shuffle=True, random_state=0).split(np.zeros(len(y)), y))


def competitors(name, fold):
    """Return AUC of ridge, l1 and forest, and how many features l1 keeps, on one fold."""
    data, y, _ = load(name)
    train, test = five_folds(y)[fold]
    t = (y == np.unique(y)[1]).astype(int)
    X, X_new = concatenate(data, train, test)
    l1, kept = l1_scores(X, t[train], X_new)
    trees = forest(X, t[train]).predict_proba(X_new)[:, 1]
    scores = (ridge_scores(X, t[train], X_new), l1, trees)
    return [*(roc_auc_score(t[test], s) for s in scores), kept]


def baldur(name, fold):
    """Return AUC, features kept and seconds of BALDUR on one fold."""
    data, y, _ = load(name)
    train, test = five_folds(y)[fold]
    t = (y == np.unique(y)[1]).astype(int)
    started = time.perf_counter()
    model = BaldurClassifier().fit(data[train], t[train])
    seconds = time.perf_counter() - started
    kept = sum(int(mask.sum()) for mask in model.selected_features_.values())
    return roc_auc_score(t[test], model.predict_proba(data[test])[:, 1]), kept, seconds


def binary_table(names, n_jobs, memory):
    """Print one line per two-class set, its bar, and the averages."""
    remembered = memory.cache(competitors)
    head = ("set", "BALDUR", "ridge", "l1", "forest", "bar", "met", "kept", "l1 kept", "seconds")
    print("| " + " | ".join(head) + " |\n|" + " --- |" * len(head))
    rows = []
    for name in names:
        ours = np.mean(Parallel(n_jobs)(delayed(baldur)(name, f) for f in range(5)), axis=0)
        theirs = np.mean(Parallel(n_jobs)(delayed(remembered)(name, f) for f in range(5)), axis=0)
        bar = max(theirs[0], theirs[1]) - MARGIN
        rows.append((ours[0], theirs[2]))
        cells = [f"{v:.3f}" for v in (ours[0], *theirs[:3], bar)]
        cells += ["yes" if ours[0] >= bar else "NO", f"{ours[1]:.1f}", f"{theirs[3]:.1f}"]
        print(f"| {name} | " + " | ".join(cells) + f" | {ours[2]:.1f} |", flush=True)
    mean, trees = np.mean(rows, axis=0)
    met = "yes" if mean >= trees - MARGIN else "NO"
    print(f"\naverage: BALDUR {mean:.3f}, forest {trees:.3f}, bar {trees - MARGIN:.3f}: {met}")


def breast():
    """Print how many test rows are right; their protein view is missing."""
    data, y, split = load("breast_tcga_mixomics")
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    model = BaldurClassifier().fit(data[train], y[train])
    right = int((model.predict(data[test]) == y[test]).sum())
    X, X_new = concatenate(data, train, test)
    trees = int((forest(X, y[train]).predict(X_new) == y[test]).sum())
    kept = {name: int(mask.sum()) for name, mask in model.selected_features_.items()}
    met = "yes" if right >= 66 else "NO"
    print(f"\nbreast_tcga_mixomics: {right} of {len(test)} right (forest {trees}), bar 66: {met}")
    print(f"  kept {kept}, {model.fit_seconds_:.1f} s", flush=True)


def digit_fold(fold):
    """Return accuracy of BALDUR and of the forest, features kept, and seconds on one fold."""
    data, y, _ = load("mfeat_digits")
    train, test = five_folds(y)[fold]
    model = BaldurClassifier().fit(data[train], y[train])
    X, X_new = concatenate(data, train, test)
    trees = forest(X, y[train]).score(X_new, y[test])
    kept = sum(int(mask.sum()) for mask in model.selected_features_.values())
    return model.score(data[test], y[test]), trees, kept, model.fit_seconds_


def digits(n_jobs):
    """Print 5-fold accuracy on ten classes and six views."""
    found = np.mean(Parallel(n_jobs)(delayed(digit_fold)(f) for f in range(5)), axis=0)
    met = "yes" if found[0] >= 0.97 else "NO"
    print(f"\nmfeat_digits: accuracy {found[0]:.4f} (forest {found[1]:.4f}), bar 0.97: {met}")
    print(f"  kept {found[2]:.1f}, {found[3]:.1f} s a fold", flush=True)


def main():
    """Read the arguments and print the tables asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sets", nargs="+", choices=BINARY + EXTRA, default=BINARY + EXTRA)
    parser.add_argument("--n-jobs", type=int, default=1, help="folds at the same time")
    parser.add_argument("--cache", help="folder that remembers the competitors' scores")
    given = parser.parse_args()
    warnings.simplefilter("ignore", FutureWarning)
    binary = [name for name in BINARY if name in given.sets]
    if binary:
        binary_table(binary, given.n_jobs, Memory(given.cache, verbose=0))
    if "breast_tcga_mixomics" in given.sets:
        breast()
    if "mfeat_digits" in given.sets:
        digits(given.n_jobs)


if __name__ == "__main__":
    main()
