"""Calibration of BALDUR with default settings on simulated data: probabilities and intervals.

Usage::

    python benchmarks/calibration.py [--part a b c] [--seeds 10] [--jobs 2]

The cases of ``recovery.py`` with 10,000 test rows. ECE is the expected calibration error over ten
bins of equal width, a mean over seeds; beside it stands the ECE of the true probabilities, which
is what sampling alone leaves. Coverage is the share of weights whose 90 % interval, ``coef_`` +-
1.645 ``coef_std_``, holds the true effect per unit of the input: over the true features (those
that were dropped count as missed) and over all features kept, pooled over seeds.
"""

import numpy as np
from common import Bars, fit_default, header, parse, row, run_parts, store
from recovery import N_TRAIN, simulate
from scipy.special import expit

from baldur import BaldurClassifier

N_TEST = 10_000
HALF = 1.645
ECE_BAR = 0.05
COVERED = (0.85, 0.95)
WITH_COVERAGE = ("a", "c")


def calibration_error(p, y, n_bins=10):
    """Return the mean gap between predicted and observed frequency, weighted by bin."""
    place = np.minimum((p * n_bins).astype(int), n_bins - 1)
    gaps = [abs(np.sum(p[place == b] - y[place == b])) for b in range(n_bins)]
    return float(np.sum(gaps) / len(p))


def one_run(case, seed):
    """Return ECE of BALDUR and of the truth, and hits and counts of the intervals."""
    sim = simulate(case, seed, N_TEST)
    data, y = sim.data, sim.target
    model, _ = fit_default(BaldurClassifier, data[:N_TRAIN], y[:N_TRAIN])
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
    given = parse(__doc__, ("a", "b", "c"), 10)
    found = run_parts(one_run, given)
    store(given, {case: found[i].tolist() for i, case in enumerate(given.part)})
    bars = Bars()
    header("case", "ECE", "of the truth", "coverage, true", "coverage, kept")
    for i, case in enumerate(given.part):
        ece, best = found[i].mean(axis=0)[:2]
        hits = found[i].sum(axis=0)[2:]
        true, kept = hits[0] / hits[1], hits[2] / max(hits[3], 1)
        row(case, ece, best, f"{true:.3f} of {hits[1]:.0f}", f"{kept:.3f} of {hits[3]:.0f}")
        bars.most(f"{case}: ECE", ece, ECE_BAR)
        if case in WITH_COVERAGE:
            bars.within(f"{case}: coverage of kept weights", kept, *COVERED)
    bars.show()


if __name__ == "__main__":
    main()
