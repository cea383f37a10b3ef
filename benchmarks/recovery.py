"""BALDUR with default settings on simulated data: how well it predicts, and what it finds.

Usage::

    python benchmarks/recovery.py [--part a b c null blocks] [--seeds 10] [--jobs 2]

N = 200 training rows, 2,000 test rows, views of 20 and 2,000 Gaussian features, logit s.d. 3:

- a: 5 informative features, all in the narrow view; b: 10, all in the wide view; c: 3 narrow and
  5 wide; d: none;
- blocks: c with features correlated at 0.8 in blocks of ten, where a kept feature of the right
  block counts as found; classes: c with three classes; missing: c with 20 % of the cells missing;
  views: c with the narrow view missing for 30 % of the rows;
- null: d with 50 seeds: how often a signal is claimed (``signal_shown_``; where a checkout has no
  such attribute, features kept count as a claim) and what the log-loss loses to the base rate.

Figures are means over seeds. "oracle" is a nearly unpenalised logistic regression on the
informative features alone. "found" and "false" count the features kept by ``selected_features_``.
With three classes the AUC is the mean over the classes, each against the rest.
"""

import numpy as np
from common import Bars, auc, fit_default, header, loss, parse, row, run, run_parts, store
from competitors import base_rate, competitor, concatenate
from sklearn.linear_model import LogisticRegression
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
AUC_BAR = {"a": 0.905, "b": 0.79, "c": 0.855}
OVER_L1 = 0.01
N_TRAIN, N_TEST = 200, 2000
CLAIMS, LOSS_MEAN, LOSS_WORST = 0.10, 0.005, 0.03


def simulate(case, seed, n_test=N_TEST):
    """Return a simulated set; the first 200 rows are for training."""
    return make_multiview(N_TRAIN + n_test, DIMS, random_state=seed, **CASES[case])


def competitors(case, seed):
    """Return test AUC of l1 and of the oracle, and how many features l1 keeps."""
    sim = simulate(case, seed)
    y = sim.target
    X, X_new = concatenate(sim.data, np.arange(N_TRAIN), np.arange(N_TRAIN, len(y)))
    y, y_new = y[:N_TRAIN], y[N_TRAIN:]
    p, kept = competitor("l1")(X, y, X_new)
    support = np.concatenate([sim.truth.support(name) for name in sim.data.view_names])
    if not support.any():
        return auc(y_new, p), 0.5, kept
    plain = LogisticRegression(C=100.0, max_iter=2000)
    if len(np.unique(y)) > 2:
        plain = OneVsRestClassifier(plain)
    oracle = plain.fit(X[:, support], y).predict_proba(X_new[:, support])
    return auc(y_new, p), auc(y_new, oracle), kept


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
    model, seconds = fit_default(BaldurClassifier, data[:N_TRAIN], y[:N_TRAIN])
    p = model.predict_proba(data[N_TRAIN:])
    rate = np.mean(y[:N_TRAIN, None] == model.classes_, axis=0)
    away = float(np.abs(p - rate)[:, 1].mean())
    return auc(y[N_TRAIN:], p), *count_features(case, model, sim.truth), away, seconds


def null(seed):
    """Return whether a signal is claimed, the log-loss beyond the base rate's, features kept."""
    sim = simulate("d", seed)
    y = sim.target
    model, _ = fit_default(BaldurClassifier, sim.data[:N_TRAIN], y[:N_TRAIN])
    kept = count_features("d", model, sim.truth)[1]
    shown = getattr(model, "signal_shown_", None)
    claim = bool(kept) if shown is None else bool(shown)
    flat, _ = base_rate(None, y[:N_TRAIN], y[N_TRAIN:])
    p = model.predict_proba(sim.data[N_TRAIN:])
    strength = getattr(model, "signal_", np.nan)
    return claim, loss(y[N_TRAIN:], p) - loss(y[N_TRAIN:], flat), kept, float(strength)


def tell_null(given, bars):
    """Print the null part and add its bars."""
    seeds = given.null_seeds
    found = run(null, [(seed,) for seed in range(seeds)], given.jobs)
    claims, beyond, kept, strength = np.transpose(found)
    print(f"\nnull, {seeds} seeds:\n")
    header("claims", "log-loss beyond base rate", "worst", "mean kept", "largest signal_")
    largest = "-" if np.isnan(strength).all() else float(np.nanmax(strength))
    row(int(claims.sum()), beyond.mean(), beyond.max(), f"{kept.mean():.1f}", largest)
    bars.most("null: share that claims a signal", claims.mean(), CLAIMS)
    bars.most("null: log-loss beyond the base rate, mean", beyond.mean(), LOSS_MEAN)
    bars.most("null: log-loss beyond the base rate, worst", beyond.max(), LOSS_WORST)
    return {"null": [claims.tolist(), beyond.tolist(), kept.tolist()]}


def add_bars(bars, case, ours, theirs, n_true):
    """Add the bars of a case."""
    area, found, false, away, _ = ours
    if case in AUC_BAR:
        bars.least(f"{case}: AUC", area, AUC_BAR[case])
        bars.least(f"{case}: AUC, against l1 + {OVER_L1:g}", area, theirs[0] + OVER_L1)
    if case in ("a", "c"):
        bars.least(f"{case}: share found", found / n_true, 0.8)
        bars.most(f"{case}: false kept", false, 2)
    if case == "d":
        bars.within("d: AUC", area, 0.47, 0.53)
        bars.most("d: |p - base rate|", away, 0.05)


def main():
    """Read the arguments and print the table and the bars."""
    null_seeds = {"type": int, "default": 50, "help": "seeds of null (50)"}
    given = parse(__doc__, (*CASES, "null"), 10, null_seeds=null_seeds)
    cases = [case for case in given.part if case != "null"]
    runs = run_parts(baldur, given, cases)
    theirs = run_parts(competitors, given, cases, cache=given.cache).mean(axis=1)
    bars = Bars()
    if cases:
        head = ("case", "BALDUR", "l1", "oracle", "true", "found", "false", "l1 kept")
        header(*head, "mean |p - rate|", "seconds", "AUC by seed")
    for i, case in enumerate(cases):
        ours = runs[i].mean(axis=0)
        n_true = sum(len(f) for f in simulate(case, 0, 0).truth.features.values())
        counts = (f"{v:.1f}" for v in (ours[1], ours[2], theirs[i, 2]))
        by_seed = " ".join(f"{v:.2f}" for v in runs[i, :, 0])
        row(case, ours[0], *theirs[i, :2], n_true, *counts, ours[3], f"{ours[4]:.1f}", by_seed)
        add_bars(bars, case, ours, theirs[i], n_true)
    figures = {case: runs[i].tolist() for i, case in enumerate(cases)}
    if "null" in given.part:
        figures |= tell_null(given, bars)
    there = store(given, figures) or {}
    for case in [c for c in cases if c in there]:
        print(f"other checkout, {case}: AUC {np.mean(there[case], axis=0)[0]:.3f}")
    bars.show()


if __name__ == "__main__":
    main()
