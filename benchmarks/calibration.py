"""Calibration of BALDUR with default settings on simulated data: probabilities and intervals.

Usage::

    python benchmarks/calibration.py [--cases a b c] [--seeds 10] [--n-jobs 1]

The cases of ``recovery.py`` with 10,000 test rows. ECE is the expected calibration error over ten
bins of equal width, a mean over seeds; below it stands the ECE of the true probabilities, which
is what sampling alone leaves. Coverage is the share of weights whose 90 % interval, ``coef_`` +-
1.645 ``coef_std_``, holds the true effect per unit of the input: over the true features (those
that were dropped count as missed) and over all features kept, pooled over seeds.
"""

import argparse

import numpy as np
from joblib import Parallel, delayed
from recovery import N_TRAIN, simulate
from scipy.special import expit

from baldur import BaldurClassifier

N_TEST = 10_000
HALF = 1.645


def calibration_error(p, y, n_bins=10):
    """Return the mean gap between predicted and observed frequency, weighted by bin."""
    place = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = [abs(np.sum(p[place == b] - y[place == b])) for b in range(n_bins)]
    return float(np.sum(gaps) / len(p))


def one_run(case, seed):
    """Return ECE of BALDUR and of the truth, and hits and counts of the intervals."""
    sim = simulate(case, seed, N_TEST)
    data, y = sim.data, sim.target
    model = BaldurClassifier().fit(data[:N_TRAIN], y[:N_TRAIN])
    p = model.predict_proba(data[N_TRAIN:])[:, 1]
    counts = np.zeros(4)
    for name, mask in model.selected_features_.items():
        support = sim.truth.support(name)
        gap = np.abs(model.coef_[name][0] - sim.truth.weights(name))
        inside = gap <= HALF * model.coef_std_[name][0]
        counts += [inside[support].sum(), support.sum(), inside[mask].sum(), mask.sum()]
    best = calibration_error(expit(sim.truth.score[N_TRAIN:]), y[N_TRAIN:])
    return calibration_error(p, y[N_TRAIN:]), best, *counts


def main():
    """Read the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", choices=("a", "b", "c"), default=("a", "b", "c"))
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--n-jobs", type=int, default=1, help="seeds at the same time")
    given = parser.parse_args()
    head = ("case", "ECE", "of the truth", "bar 0.05 met", "coverage, true", "coverage, kept")
    print("| " + " | ".join((*head, "bar 0.85-0.95 met")) + " |\n|" + " --- |" * 7)
    for case in given.cases:
        runs = Parallel(given.n_jobs)(delayed(one_run)(case, s) for s in range(given.seeds))
        ece, best = np.mean(runs, axis=0)[:2]
        hits = np.sum(runs, axis=0)[2:]
        true, kept = hits[0] / hits[1], hits[2] / max(hits[3], 1)
        cells = [f"{ece:.4f}", f"{best:.4f}", "yes" if ece <= 0.05 else "NO"]
        cells += [f"{true:.3f} of {hits[1]:.0f}", f"{kept:.3f} of {hits[3]:.0f}"]
        both = 0.85 <= true <= 0.95 and 0.85 <= kept <= 0.95
        cells += [("yes" if both else "NO") if case == "a" else "no bar"]
        print(f"| {case} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
